/* SPDX-License-Identifier: Apache-2.0 */
/* Section: operators by the time that threads spent in them; and the answer without device work. */
#include <errno.h>

#include "analyses/program/cpu_ops.h"
#include "model/format.h"
#include "model/shorten.h"
#include "report/trace/report_json.h"
#include "report/trace/trace.h"

#define NAME_COLUMNS 48

/* ---- the answer ---- */

static double percent(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_time(const struct trace_report *report, const struct trace_cpu_summary *summary)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "Of ");
	format_duration(&text, (uint64_t)summary->span_ns / report->count);
	if (report->count > 1)
		strbuf_addf(&text, " (mean of %zu ranks)", report->count);
	strbuf_addf(&text, " from the begin of the first row to the end of the last, %s in ",
		summary->threads == 1 ? "the thread was" : "threads were");
	strbuf_addf(&text,
		"operators for %.1f %%: ", percent(summary->in_operators_ns, summary->span_ns));
	format_count(&text, summary->operators);
	strbuf_addf(&text, " operators of %u thread%s.", summary->threads,
		summary->threads == 1 ? "" : "s");
	if (summary->communication_ns)
		strbuf_addf(&text, " Communication took %.1f %% of the time in operators.",
			percent(summary->communication_ns, summary->self_ns));
	report_paragraph(&report->page, strbuf_cstr(&text), 2);
}

static void add_heaviest(const struct trace_report *report, const struct trace_cpu_summary *summary)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (size_t i = 0; i < TRACE_CPU_HEAVIEST && summary->heaviest[i].name; i++) {
		strbuf_add(&text, i ? ", " : "Heaviest by themselves: ");
		shorten_name(&text, summary->heaviest[i].name, NAME_COLUMNS);
		strbuf_addf(&text, " (%.1f %%)",
			percent(summary->heaviest[i].self_ns, summary->self_ns));
	}
	if (!text.length)
		return;
	strbuf_add(&text, ": --by cpu-operators has them all.");
	report_paragraph(&report->page, strbuf_cstr(&text), 2);
}

static const struct {
	enum trace_cpu_advice advice;
	const char *text;
} advices[] = {
	{TRACE_CPU_ADVICE_OUTSIDE,
		"Most of the time no operator ran: Python, loading of data, or waiting. Profile "
		"with with_stack=True to see which functions, or with sonde record to see all "
		"code."},
	{TRACE_CPU_ADVICE_COMMUNICATION,
		"Threads communicate, or wait for other ranks to do so: look at all ranks "
		"together for the one that is late."},
	{TRACE_CPU_ADVICE_SHORT,
		"Operators are short, less than 10 \xc2\xb5s on average, so that calling them is "
		"much of their time: larger batches, or torch.compile."},
	{TRACE_CPU_ADVICE_HEAVY,
		"Few operators take the time: look at their shapes (record_shapes=True), at "
		"torch.get_num_threads(), and with sonde record at the code that they run."},
};

int report_trace_cpu_answer(const struct trace_report *report)
{
	struct trace_cpu_summary summary;
	int r = trace_cpu_summary_init(&summary, report->views, report->count);

	if (r < 0 || !summary.operators)
		return r;
	report_heading(&report->page, "Where the time of the CPU's threads went");
	add_time(report, &summary);
	add_heaviest(report, &summary);
	for (size_t i = 0; i < ARRAY_SIZE(advices); i++) {
		if (summary.advice & advices[i].advice)
			report_trace_advice(report, advices[i].text);
	}
	return 0;
}

/* ---- the table ---- */

static const struct table_column all_columns[] = {
	{.title = "Rank", .right = true}, /* where there are several */
	{.title = "Thread"},
	{.title = "Self", .right = true},
	{.title = "Total", .right = true},
	{.title = "Count", .right = true},
	{.title = "Mean", .right = true},
	{.title = "Kind"},
	{.title = "Operator", .is_text = true, .shrinks_to = 16},
};

static void add_row(struct table *table, const struct trace_report *report,
	const struct trace_view *view, const struct trace_cpu_ops *ops,
	const struct trace_cpu_op *row)
{
	const struct trace_cpu_thread *thread = &ops->threads.items[row->thread];
	_cleanup_strbuf_ struct strbuf name = {0};

	if (report->count > 1)
		table_cellf(table, "%u", view->rank);
	trace_cpu_thread_name(view->trace, thread, &name);
	table_cell(table, strbuf_cstr(&name));
	report_trace_part(table, row->self_ns, thread->end_ns - thread->start_ns);
	report_trace_time(table, row->total_ns);
	table_count(table, row->count);
	report_trace_time(table, row->total_ns / (int64_t)row->count);
	table_cell(table, trace_cpu_op_kind(row));
	table_cell(table, trace_text(view->trace, row->name));
}

/* The same number of rows of each rank. */
static int print_rows(const struct trace_report *report)
{
	size_t skipped = report->count > 1 ? 0 : 1, rest = 0;
	size_t limit =
		report->limit ? (report->limit + report->count - 1) / report->count : SIZE_MAX;
	_cleanup_table_ struct table table = {
		.columns = all_columns + skipped,
		.column_count = ARRAY_SIZE(all_columns) - skipped,
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < report->count; i++) {
		_cleanup_trace_cpu_ops_ struct trace_cpu_ops ops = {0};
		size_t shown;

		r = trace_cpu_ops_init(&ops, &report->views[i]);
		shown = MIN(limit, ops.rows.count);
		rest += ops.rows.count - shown;
		for (size_t row = 0; row < shown; row++)
			add_row(&table, report, &report->views[i], &ops, &ops.rows.items[row]);
	}
	if (r == 0 && !table.cells.count && report->alone)
		report_paragraph(
			&report->page, "There are no operators of the CPU in the trace.", 0);
	if (r < 0 || !table.cells.count)
		return r;
	report_heading(&report->page,
		"Operators of the CPU (self: without what they call; shares of the thread's time)");
	r = table_print(&table, &report->page.terminal, report->page.out);
	report_trace_rest(report, rest, "operators");
	return r;
}

/* Where there is device work, operators are what launches it: the other table is in the report. */
static int print_cpu_operators(const struct trace_report *report)
{
	bool is_hta = report->views->options.hta_compatible;

	if (!report->alone && (is_hta || report_trace_has_works(report)))
		return 0;
	return print_rows(report);
}

static int write_cpu_operators(const struct trace_report *report, struct json_writer *json)
{
	return report_trace_write(report, json, trace_json_cpu_operators);
}

const struct report_section cpu_operators_section = {
	.value.key = "cpu_operators",
	.by = "cpu-operators",
	.summary = "operators of the CPU by the time that threads were in them",
	.needs = REPORT_NEEDS_TRACE,
	.print_trace = print_cpu_operators,
	.write_trace = write_cpu_operators,
};
