/* SPDX-License-Identifier: Apache-2.0 */
/* Every importer, each defined at the bottom of its own file. */
#pragma once

#include "importers/importer.h"

extern const struct importer astra_sim_importer, chakra_et_importer, folded_importer,
	kineto_importer, perf_script_importer, pprof_importer, nsys_importer, pytorch_et_importer,
	rocprofv3_importer, torch_memory_importer, vllm_log_importer, xplane_importer;
/* refused/refused.c */
extern const struct importer archive_importer, rocprofv3_csv_importer, nsight_importer;
