/* SPDX-License-Identifier: Apache-2.0 */
/* Several recordings as one run, on one clock: a capture for each node or rank of a job. */
#pragma once

#include "load/capture.h"

/*
 * How the times of each capture become those of one clock. `sources` have their paths. Warns of
 * captures that were sampled at another frequency than the first. Returns 0 or a negative errno
 * with a sentence.
 */
int run_find_clocks(struct model_source *sources, size_t count, struct errmsg *err);

/* Their model, as load_capture() makes it of one. */
int load_run(struct model **ret_model, const char *const *paths, size_t count,
	const struct shown_options *shown, const struct selection *selection, struct errmsg *err);
