/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/importers.h"

/* Of two that know one file the more exact one comes first. */
const struct importer *const importers[] = {
	&pytorch_et_importer,
	&torch_memory_importer,
	&rocprofv3_importer,
	&rocprofv3_csv_importer,
	&archive_importer,
	&nsys_importer,
	&xplane_importer,
	&chakra_et_importer,
	&astra_sim_importer,
	&kineto_importer,
	&pprof_importer,
	&perf_script_importer,
	&folded_importer,
	&vllm_log_importer,
	&nsight_importer,
	NULL,
};
