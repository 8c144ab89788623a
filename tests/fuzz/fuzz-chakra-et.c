/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an execution trace of Chakra, as rows. */
#include "importers/importers.h"
#include "rows.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	rows_fuzz(&chakra_et_importer, bytes, length);
	return 0;
}
