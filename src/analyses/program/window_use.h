/* SPDX-License-Identifier: Apache-2.0 */
/* What happened in each window of a recording. */
#pragma once

#include "analyses/selection.h"
#include "base/array.h"
#include "model/model.h"

struct window_row {
	uint64_t samples;        /* of running threads */
	uint64_t device_busy_ns; /* some work ran on some device */
	uint64_t works;          /* of devices, that began in it */
	uint64_t steps;          /* of all processes, that began in it */
};

struct window_use {
	ARRAY_OF(struct window_row) rows; /* one for each of model->windows */
};

/*
 * Work lies in the window that it began in; time counts in each that it ran in. Works come by
 * start; `busy_until_ns` is 0 before the first.
 */
void window_use_add_work(struct window_use *use, const struct model_window *windows,
	uint64_t start_ns, uint64_t end_ns, uint64_t *busy_until_ns);

/* Of a model that was not weighed; its selected samples, NULL: all. Returns 0 or -ENOMEM. */
int window_use_init(
	struct window_use *use, const struct model *model, const struct selected *selected);
void window_use_done(struct window_use *use);
#define _cleanup_window_use_ _cleanup_(window_use_done)
