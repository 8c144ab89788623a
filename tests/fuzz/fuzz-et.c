/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a Chakra execution trace, plain. */
#include "chakra/et_file.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct et_reader *reader = NULL;
	const et_node *node;

	if (et_reader_open_bytes(&reader, bytes, length, "trace", NULL) < 0)
		return 0;
	while (et_reader_next(reader, &node, NULL) == 1)
		et_find_attribute(node, "comm_type");
	et_reader_free(reader);
	return 0;
}
