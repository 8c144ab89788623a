/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bar on standard error for work that takes longer than a second, when someone is there to see
 * it. It is wiped when the work ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what; /* "loading capture.pftrace" */
	uint64_t started_ns, drawn_ns, observed_ns;
	bool wanted; /* standard error is a terminal */
	bool shown;
};

void progress_begin(struct progress *progress, const char *what);
/* Of type model_progress_function; the context is the struct progress. */
void progress_update(void *context, uint64_t done, uint64_t total);
void progress_end(struct progress *progress);

/*
 * From now on every progress of this process is also passed on: to the server whose worker it is.
 * NULL: to nobody.
 */
void progress_observe(
	void (*function)(void *context, uint64_t done, uint64_t total), void *context);
