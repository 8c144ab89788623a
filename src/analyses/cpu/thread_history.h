/* SPDX-License-Identifier: Apache-2.0 */
/* What threads of a recording did, and when, as far as samples say it. */
#pragma once

#include "base/array.h"
#include "model/model.h"

/*
 * What covers a moment, first come first: a wait is measured or looked at, a running sample stands
 * for its surroundings.
 */
enum thread_history_layer {
	THREAD_HISTORY_WAITING,
	THREAD_HISTORY_RUNNING,
	THREAD_HISTORY_LAYERS,
};

struct thread_interval {
	uint64_t start_ns, end_ns;
	uint32_t thread, sample; /* indices */
};

/* Of all threads; each layer sorted by thread and time, those of one thread disjoint. */
struct thread_history {
	ARRAY_OF(struct thread_interval) layers[THREAD_HISTORY_LAYERS];
};

/* Before model_weigh(), which changes samples. Returns 0 or -ENOMEM. */
int thread_history_init(struct thread_history *history, const struct model *model);
/* The sample that covers `at_ns`, or MODEL_NONE; *until_ns is lowered to where that changes. */
uint32_t thread_history_find(
	const struct thread_history *history, uint32_t thread, uint64_t at_ns, uint64_t *until_ns);
void thread_history_done(struct thread_history *history);
#define _cleanup_thread_history_ _cleanup_(thread_history_done)
