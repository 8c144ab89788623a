/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an export of Nsight Systems, which is an SQLite database. */
#include "importers/importers.h"
#include "rows.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	rows_fuzz(&nsys_importer, bytes, length);
	return 0;
}
