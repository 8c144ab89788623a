/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a snapshot of PyTorch's memory, pickled or as JSON. */
#include "importers/importers.h"
#include "rows.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	rows_fuzz(&torch_memory_importer, bytes, length);
	return 0;
}
