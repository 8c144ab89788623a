/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde report` of traces: loads them, and has the sections of report/trace/ printed or written.
 */
#pragma once

#include "report/trace/trace.h"

struct report_trace_arguments {
	struct trace_view_options view;
	const char *by; /* --by; NULL: all sections */
	struct trace_choice choice;
	uint64_t rank;  /* UINT64_MAX: all */
	uint64_t limit; /* 0: as suits */
	bool json;
};

/* `sonde report` of traces: prints it, or why there is none. Returns the exit status. */
int report_traces(
	const struct report_trace_arguments *arguments, const char *const *paths, size_t count);
