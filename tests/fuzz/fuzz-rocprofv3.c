/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a result of rocprofv3 in JSON. */
#include "importers/importers.h"
#include "rows.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	rows_fuzz(&rocprofv3_importer, bytes, length);
	return 0;
}
