/* SPDX-License-Identifier: Apache-2.0 */
/* sonde diff of traces: counts and durations by operator, call and kernel. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct diff_trace_arguments {
	bool hta_compatible;
	bool json;
	bool all;     /* unchanged rows, too */
	size_t limit; /* rows; 0: as suits */
};

/* Prints what changed from one path to the other, or why it cannot. Returns the exit status. */
int diff_traces(
	const struct diff_trace_arguments *arguments, const char *before, const char *after);
