/* SPDX-License-Identifier: Apache-2.0 */
/* Section: operators by the time that threads spent in them. */
#include "analyses/program/cpu_ops.h"
#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

static const struct report_column thread_columns[] = {
	{.key = "tid", .kind = REPORT_INTEGER},
	{.key = "name", .kind = REPORT_TEXT},
	{.key = "span_ns", .kind = REPORT_NS},
	{.key = "in_operators_ns", .kind = REPORT_NS, .help = "while at least one is open"},
};
static const struct report_shape thread_shape = REPORT_SHAPE(thread_columns);

static const struct report_column columns[] = {
	REPORT_RANK_COLUMN,
	{.title = "Thread", .kind = REPORT_TEXT, .hide = REPORT_HIDE_UNKNOWN},
	{.key = "thread", .kind = REPORT_OBJECT, .shape = &thread_shape},
	{.key = "self_ns",
		.title = "Self",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_SUM,
		.is_lead = true,
		.help = "without what it calls"},
	{.title = "", .kind = REPORT_SHARE, .join = REPORT_JOIN_MEAN},
	REPORT_RANK_SPREAD(0),
	{.key = "total_ns", .title = "Total", .kind = REPORT_NS, .join = REPORT_JOIN_SUM},
	{.key = "count", .title = "Count", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	{.title = "Mean", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	{.key = "kind",
		.title = "Kind",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.help = "operator, call or annotation"},
	{.key = "name",
		.title = "Operator",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.shrinks_to = 16},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_thread(
	struct result *result, const struct trace *trace, const struct trace_cpu_thread *thread)
{
	_cleanup_strbuf_ struct strbuf name = {0};

	trace_cpu_thread_name(trace, thread, &name);
	result_text(result, strbuf_cstr(&name));
	result_open(result);
	columns_add_number(result, trace->tracks.items[thread->track].tid);
	result_text(result, strbuf_cstr(&name));
	result_i64(result, thread->end_ns - thread->start_ns);
	result_i64(result, thread->in_operators_ns);
	result_close(result);
}

static void add_row(struct result *result, const struct trace_view *view,
	const struct trace_cpu_ops *ops, const struct trace_cpu_op *row)
{
	const struct trace_cpu_thread *thread = &ops->threads.items[row->thread];

	result_u64(result, view->rank);
	add_thread(result, view->trace, thread);
	result_i64(result, row->self_ns);
	result_share(result, (double)row->self_ns, (double)(thread->end_ns - thread->start_ns));
	report_add_rank_spread(result);
	result_i64(result, row->total_ns);
	result_u64(result, row->count);
	result_i64(result, row->total_ns / (int64_t)row->count);
	result_text(result, trace_cpu_op_kind(row));
	result_text(result, trace_text(view->trace, row->name));
}

/* Where there is device work, operators are what launches it: the other table is in the report. */
static bool is_shown(const struct report_input *input)
{
	if (input->is_alone || input->is_json)
		return true;
	return !trace_report_has_works(input->trace) && trace_report_is_own(input->trace);
}

static int make(struct result *result, const struct report_input *input)
{
	uint32_t table;

	if (!is_shown(input))
		return 0;
	table = result_open(result);
	for (size_t i = 0; i < input->trace->count; i++) {
		const struct trace_view *view = &input->trace->views[i];
		_cleanup_trace_cpu_ops_ struct trace_cpu_ops ops = {0};
		int r = trace_cpu_ops_init(&ops, view);
		size_t wanted;

		if (r < 0)
			return r;
		wanted = report_rows_of_rank(result, input, ops.rows.count, 20, 10);
		for (size_t row = 0; row < wanted; row++)
			add_row(result, view, &ops, &ops.rows.items[row]);
	}
	result_close(result);
	if (!result_count(result, table))
		return report_nothing(
			result, input, "There are no operators of the CPU in the trace.");
	result_heading(result,
		"Operators of the CPU (self: without what they call; shares of the thread's time)");
	result_show(result, report_join_ranks(result, input, table),
		&(struct result_show){
			.limit = report_rows_shown_of_ranks(input, 20, 10), .noun = "operators"});
	return 0;
}

const struct report_section cpu_operators_section = {
	.value = {.key = "cpu_operators",
		.total = "cpu_operators_total",
		.kind = REPORT_ROWS,
		.shape = &shape,
		.help = "by rank, then most self time first"},
	.by = "cpu-operators",
	.summary = "operators of the CPU by the time that threads were in them",
	.needs = REPORT_NEEDS_ROWS,
	.is_extra_of_recordings = true,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
