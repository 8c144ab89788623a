/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs count by PM sampling, among the counters of processes: by their names. */
#pragma once

#include "model/trace.h"

struct gpu_counter {
	uint32_t gpu; /* CUDA's number of it in the process */
	enum wire_pm_counter counter;
};

/* Of a counter's name, "GPU 0 SM busy (%)". False: it is another one. */
bool gpu_counter_of_name(const char *name, struct gpu_counter *ret_counter);

/* Of a recording, in its rows: the number, + 1, of the device that a value is of; 0: of none, or of
 * one that did no work. */
uint32_t gpu_counter_device(
	const struct model *model, const struct model_counter *counter, const struct trace *rows);
