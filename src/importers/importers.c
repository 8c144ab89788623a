/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/importers.h"

/* Of two that know one file the more exact one comes first. */
const struct importer *const importers[] = {
	&pytorch_et_importer,
	&kineto_importer,
	&vllm_log_importer,
	NULL,
};
