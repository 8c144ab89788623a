/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of traces without device work. */
#include <errno.h>

#include "analyses/program/cpu_ops.h"
#include "model/format.h"
#include "model/shorten.h"
#include "report/trace/report_json.h"
#include "report/trace/trace.h"

#define NAME_COLUMNS 48

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
