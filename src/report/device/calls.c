/* SPDX-License-Identifier: Apache-2.0 */
/* Section: calls of the runtime and the driver, and what of them loads code. */
#include "analyses/device/calls.h"

#include <errno.h>
#include <stdlib.h>

#include "model/format.h"
#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

static const struct report_column line_columns[] = {
	REPORT_RANK_COLUMN,
	{.key = "total_ns",
		.title = "Total",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_SUM,
		.is_lead = true},
	REPORT_RANK_SPREAD(0),
	{.key = "count", .title = "Calls", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	{.key = "longest_ns", .title = "Longest", .kind = REPORT_NS, .join = REPORT_JOIN_MOST},
	{.title = "Call", .kind = REPORT_TEXT, .join = REPORT_JOIN_KEY, .shrinks_to = 14},
	{.title = "Line",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.is_path = true,
		.shrinks_to = 14},
	{.title = "Function",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.is_name = true,
		.shrinks_to = 10},
	{.key = "function", .kind = REPORT_TEXT},
	{.key = "module", .kind = REPORT_TEXT},
	{.key = "source_file", .kind = REPORT_TEXT},
	{.key = "line", .kind = REPORT_INTEGER},
	{.key = "stack",
		.kind = REPORT_TEXT,
		.help = "of the longest of these calls, from the outermost frame on, with "
			"semicolons between; null: not known"},
};
static const struct report_shape line_shape = REPORT_SHAPE(line_columns);

static const struct report_column columns[] = {
	REPORT_RANK_COLUMN,
	{.key = "total_ns",
		.title = "Total",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_SUM,
		.is_lead = true,
		.help = "with the calls within them"},
	REPORT_RANK_SPREAD(0),
	{.key = "count", .title = "Calls", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	{.key = "mean_ns", .title = "Mean", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	{.key = "longest_ns", .title = "Longest", .kind = REPORT_NS, .join = REPORT_JOIN_MOST},
	{.key = "failed",
		.title = "Failed",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "null: not known, as of other tools' traces and of launches without "
			"--cuda-api all"},
	{.key = "loads_code",
		.kind = REPORT_FLAG,
		.help = "it loads code of the device, or compiles it"},
	{.key = "name",
		.title = "Call",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.shrinks_to = 20},
	{.key = "lines",
		.total = "lines_total",
		.kind = REPORT_ROWS,
		.shape = &line_shape,
		.help = "of recordings: the lines that made these calls, most time first; what "
			"loads code in another call is that call's line"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_line(
	struct result *result, const struct trace_view *view, const struct call_line *line)
{
	const struct model *model = view->trace->recorded;

	result_u64(result, view->rank);
	result_i64(result, line->total_ns);
	report_add_rank_spread(result);
	result_u64(result, line->count);
	result_i64(result, line->longest_ns);
	result_text(result, line->name);
	columns_add_frame(result, model, line->frame, "[stack not known]");
	columns_add_stack(result, model, line->stack);
}

/* Of one call. Returns the table. */
static uint32_t add_lines(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct calls *calls, const struct call_use *use)
{
	uint32_t table = result_open(result);
	size_t count = 0, wanted;

	array_foreach (&calls->lines, line)
		count += line->name == use->name;
	wanted = report_rows_wanted(result, input, count);
	array_foreach (&calls->lines, line) {
		if (line->name == use->name && wanted) {
			add_line(result, view, line);
			wanted--;
		}
	}
	result_close(result);
	return table;
}

/* Returns the table of its lines. */
static uint32_t add_row(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct calls *calls, const struct call_use *use)
{
	result_u64(result, view->rank);
	result_i64(result, use->total_ns);
	report_add_rank_spread(result);
	result_u64(result, use->count);
	result_i64(result, use->total_ns / (int64_t)use->count);
	result_i64(result, use->longest_ns);
	result_known(result, calls->others || use->recorded, use->failed);
	result_flag(result, use->is_load);
	result_text(result, use->name);
	return add_lines(result, input, view, calls, use);
}

static void show_lines(struct result *result, const struct report_input *input,
	const struct calls *all, uint32_t like)
{
	uint32_t table = result_open_apart(result, like);

	for (size_t i = 0; i < input->trace->count; i++)
		array_foreach (&all[i].lines, line)
			add_line(result, &input->trace->views[i], line);
	result_close(result);
	if (!result_count(result, table))
		return;
	result_lines(result, "\n");
	result_sentence(result, 0, "Lines that made them:");
	result_show(result, report_join_ranks(result, input, table),
		&(struct result_show){.limit = report_rows_shown(input, 20, 10), .noun = "lines"});
}

static void say_time(struct result *result, int64_t covered_ns, int64_t load_ns)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "Threads were in these calls for ");
	format_duration(&text, (uint64_t)covered_ns);
	if (load_ns) {
		strbuf_add(&text, "; ");
		format_duration(&text, (uint64_t)load_ns);
		strbuf_add(&text, " of it loaded or compiled code of the device");
	}
	result_sentencef(result, 2, "%s.", strbuf_cstr(&text));
}

struct all_calls {
	struct calls *views; /* as many as there are */
	size_t count;
};

static void all_calls_done(struct all_calls *all)
{
	for (size_t i = 0; i < all->count; i++)
		calls_done(&all->views[i]);
	free(all->views);
}

static int count_all(const struct report_input *input, struct all_calls *all)
{
	int r = 0;

	all->views = calloc(input->trace->count + 1, sizeof(*all->views));
	if (!all->views)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < input->trace->count; i++) {
		r = calls_init(&all->views[i], &input->trace->views[i]);
		all->count += r == 0;
	}
	return r;
}

static void say_what_is_missing(struct result *result)
{
	result_sentence(result, 2,
		"Of CUDA only launches, waits, events and allocations were recorded: sonde record "
		"--cuda-api all also records queries, loading of code and other calls.");
}

static void show(struct result *result, const struct report_input *input,
	const struct all_calls *all, uint32_t table, uint32_t lines)
{
	int64_t covered_ns = 0, load_ns = 0;
	bool has_others = false;

	for (size_t i = 0; i < all->count; i++) {
		covered_ns += all->views[i].covered_ns;
		load_ns += all->views[i].load_ns;
		has_others |= all->views[i].others;
	}
	/* Of launches alone there is a table already. */
	if (!input->is_alone && !has_others)
		return;
	table = report_join_ranks(result, input, table);
	result_heading(result, "Calls of the runtime and the driver");
	result_show(result, table,
		&(struct result_show){.limit = report_rows_shown(input, 20, 10), .noun = "calls"});
	say_time(result, covered_ns, load_ns);
	if (input->is_alone && !report_is_foreign(input) && !has_others)
		say_what_is_missing(result);
	if (input->is_alone)
		show_lines(result, input, all->views, lines);
}

static int make(struct result *result, const struct report_input *input)
{
	_cleanup_(all_calls_done) struct all_calls all = {0};
	uint32_t table, lines = 0;
	int r = count_all(input, &all);

	if (r < 0)
		return r;
	table = result_open(result);
	for (size_t i = 0; i < all.count; i++)
		array_foreach (&all.views[i].rows, use)
			lines = add_row(result, input, &input->trace->views[i], &all.views[i], use);
	result_close(result);
	if (!result_count(result, table))
		return report_nothing(
			result, input, "There are no calls of a device's runtime or driver.");
	show(result, input, &all, table, lines);
	return 0;
}

const struct report_section calls_section = {
	.value = {.key = "calls",
		.kind = REPORT_ROWS,
		.shape = &shape,
		.help = "calls of the runtime and the driver by rank, then most time first"},
	.by = "calls",
	.summary = "calls of CUDA and its driver by time, and what loaded code",
	.needs = REPORT_NEEDS_ROWS,
	.is_extra_of_foreign = true,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
