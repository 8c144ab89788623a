/* SPDX-License-Identifier: Apache-2.0 */
/* Of run.c: what clocks of several hosts show of collectives and barriers, which end together. */
#pragma once

#include "model/model.h"

/* A capture of a run. */
struct run_capture {
	struct model_source *source; /* its clock is by the hosts', and becomes better */
	char *host;
	uint64_t start_ns, realtime_ns, period_ns;
	uint32_t clock; /* the first capture of its clock */
	int status;
	struct errmsg err;
};

/* Returns 0 or a negative errno with a sentence. */
int run_refine_clocks(struct run_capture *captures, size_t count, struct errmsg *err);
