/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who defines the figures of a report: sonde's analyses, with one definition each, or another
 * tool's in compat/, faults included. A report has one set for all that it says. What is not here
 * is the same for all: sonde's own analysis of the rows that the view has.
 *
 * The commands report and diff choose the set by their options, in trace_view_options.definitions;
 * trace_report_init() hands it to sections (report/rows.h).
 *
 * To add a member:
 *   1. the member below, with the type of sonde's own function;
 *   2. sonde's function in own_definitions (definitions.c), and one in the set of each other tool
 *      in compat/: sections do not ask whether there is one;
 *   3. the section calls input->trace->definitions->NAME() in place of NAME_init(); where two
 *      sections need the result, trace_results.c does, for both.
 */
#pragma once

#include "analyses/device/copies.h"
#include "analyses/device/idle.h"
#include "analyses/device/launches.h"
#include "analyses/device/queue.h"
#include "analyses/path/critical_path.h"
#include "analyses/program/ops.h"
#include "analyses/program/ranks.h"
#include "analyses/trace_view.h"

struct trace_definitions {
	const char *const *kind_names; /* by enum trace_kind */
	const char *between_kinds;     /* of those that ran at the same time */
	int (*view)(struct trace_view *view, const struct trace *trace, uint32_t rank,
		const struct trace_view_options *options);
	int (*idle)(struct device_idle *idle, const struct trace_view *view);
	int (*launches)(struct launches *launches, const struct trace_view *view);
	int (*queue)(struct queue *queue, const struct trace_view *view);
	int (*copies)(struct copies *copies, const struct trace_view *view);
	int (*operators)(struct trace_ops *ops, const struct trace_view *view);
	int (*paths)(struct critical_paths *paths, const struct trace_view *view,
		const struct critical_path_options *options);
	struct rank_definition ranks; /* what ranks are compared by */
};

extern const struct trace_definitions own_definitions;
