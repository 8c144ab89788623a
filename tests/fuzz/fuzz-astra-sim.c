/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the log of astra-sim. */
#include "importers/importers.h"
#include "rows.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	rows_fuzz(&astra_sim_importer, bytes, length);
	return 0;
}
