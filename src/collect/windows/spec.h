/* SPDX-License-Identifier: Apache-2.0 */
/* What `--window` says: when a window opens and closes. */
#pragma once

#include <stdint.h>

#include "base/errmsg.h"
#include "capture/capture.h"
#include "wire/gate.h"

#define WINDOW_MAX_STEPS 1000000000ULL /* of each number in a schedule */
#define WINDOW_MAX_S     1e6

struct window_spec {
	enum capture_window_trigger trigger; /* NONE: no windows, all is recorded */
	const char *text;                    /* as it was given; the caller's */
	const char *path;                    /* of a flag: the rest of `text` */
	uint64_t begin_ns, end_ns;           /* of `time`, since the start; end 0: none */
	int signal;
	struct wire_schedule schedule; /* of steps and calls */
	/* Not in the text: */
	uint64_t max_duration_ns; /* of one window; 0: no limit */
	uint64_t max_steps;
	const char *step_on; /* NULL: the first name that a process says */
};

/*
 * Reads "flag:PATH", "steps:wait=1,warmup=1,active=3,repeat=1", "calls:A-B,C-D", "time:START..END",
 * "signal:USR2" or "manual" into an empty spec, which keeps pointers into `text`. Returns 0, or
 * -EINVAL with a sentence that says what to write.
 */
int window_spec_parse(struct window_spec *spec, const char *text, struct errmsg *err);
/* Is --step-on's pattern one that programs can use? -EINVAL with a sentence. */
int window_spec_check_pattern(const char *pattern, struct errmsg *err);
/* Do steps of a program open windows, as the schedule says, or close them? */
static inline int window_spec_is_scheduled(const struct window_spec *spec)
{
	return spec->trigger == CAPTURE_TRIGGER_STEPS || spec->trigger == CAPTURE_TRIGGER_CALLS;
}
