/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a range that may be an operator: its sizes must be JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/json_reader.h"
#include "model/nvtx_operator.h"
#include "target.h"

static void check_sizes(const struct nvtx_operator *found)
{
	const char *end = found->sizes + found->sizes_bytes;
	struct json_reader reader = {.at = found->sizes, .end = end, .is_last = true};

	if (found->sizes[0] != '[' || end[-1] != ']' || json_reader_enter(&reader, '[') != JSON_OK)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	char *name = calloc(1, length + 1);
	struct nvtx_operator found;

	if (!name)
		return 0;
	memcpy(name, bytes, length);
	if (nvtx_operator_read(name, &found)) {
		const char *end = name + strlen(name);

		if (found.name_bytes > strlen(name) ||
			(found.sizes && found.sizes + found.sizes_bytes > end))
			abort();
		if (found.sizes)
			check_sizes(&found);
	}
	free(name);
	return 0;
}
