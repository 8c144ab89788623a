/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which member of which struct of a trace each field of a capture's TraceRow is: for writing rows
 * into captures and for reading them back.
 */
#pragma once

#include "capture/trace_rows.h"
#include "model/trace.h"

/* Fills the layout and the values of a row; texts are strings of the trace. */
void trace_fields_get(
	const struct trace *trace, const struct trace_event *event, struct capture_trace_row *row);

/*
 * The other way: sets the members of an event and adds what tells more of it. The row's texts are
 * the trace's strings, as above. Returns 0 or -ENOMEM.
 */
int trace_fields_set(
	struct trace *trace, const struct capture_trace_row *row, struct trace_event *event);

/*
 * Takes out of a row of this category what only exporters need, and what importers leave out
 * without trace_read_options.keep_arguments. Its texts are in row->strings.
 */
void trace_fields_drop_arguments(struct capture_trace_row *row, enum trace_category category);
/* Do analyses look at arrows of this category? */
bool trace_fields_needs_flow(const char *category);
