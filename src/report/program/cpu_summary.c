/* SPDX-License-Identifier: Apache-2.0 */
/* Section: the answer of traces without device work: where the time of their threads went. */
#include <errno.h>

#include "analyses/program/cpu_ops.h"
#include "analyses/program/own_python.h"
#include "analyses/program/trace_frames.h"
#include "model/format.h"
#include "model/shorten.h"
#include "report/columns.h"
#include "report/sections.h"

#define NAME_COLUMNS 48

static const struct report_column heaviest_columns[] = {
	{.key = "name", .kind = REPORT_TEXT},
	{.key = "self_ns", .kind = REPORT_NS},
};
static const struct report_shape heaviest_shape = REPORT_SHAPE(heaviest_columns);

static const struct report_column advice_columns[] = {{.key = "id", .kind = REPORT_TEXT}};
static const struct report_shape advice_shape = REPORT_SHAPE(advice_columns);

static const struct report_column columns[] = {
	{.key = "threads", .kind = REPORT_COUNT},
	{.key = "operators", .kind = REPORT_COUNT, .help = "rows"},
	{.key = "span_ns", .kind = REPORT_NS, .help = "sums over ranks, as are the next ones"},
	{.key = "in_operators_ns",
		.kind = REPORT_NS,
		.help = "while at least one thread is in one"},
	{.key = "self_ns", .kind = REPORT_NS, .help = "of operators of all threads"},
	{.key = "communication_ns", .kind = REPORT_NS, .help = "a part of it"},
	{.key = "heaviest", .kind = REPORT_ROWS, .shape = &heaviest_shape},
	{.key = "advice", .kind = REPORT_LIST, .shape = &advice_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_summary(struct result *result, const struct trace_cpu_summary *summary)
{
	result_open(result);
	result_u64(result, summary->threads);
	result_u64(result, summary->operators);
	result_i64(result, summary->span_ns);
	result_i64(result, summary->in_operators_ns);
	result_i64(result, summary->self_ns);
	result_i64(result, summary->communication_ns);
	result_open(result);
	for (size_t i = 0; i < TRACE_CPU_HEAVIEST && summary->heaviest[i].name; i++) {
		result_text(result, summary->heaviest[i].name);
		result_i64(result, summary->heaviest[i].self_ns);
	}
	result_close(result);
	result_open(result);
	for (unsigned bit = 1; bit < TRACE_CPU_ADVICE_END; bit <<= 1) {
		if (summary->advice & bit)
			result_text(result, trace_cpu_advice_name((enum trace_cpu_advice)bit));
	}
	result_close(result);
	result_close(result);
}

static void add_time(struct result *result, const struct trace_report *report,
	const struct trace_cpu_summary *summary)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "Of ");
	format_duration(&text, (uint64_t)summary->span_ns / report->count);
	if (report->count > 1)
		strbuf_addf(&text, " (mean of %zu ranks)", report->count);
	strbuf_addf(&text, " from the first row of a thread to the end of the last, %s in ",
		summary->threads == 1 ? "the thread was" : "threads were");
	strbuf_addf(&text, "operators for %.1f %%: ",
		report_percent(summary->in_operators_ns, summary->span_ns));
	format_count(&text, summary->operators);
	strbuf_addf(&text, " operators of %u thread%s.", summary->threads,
		summary->threads == 1 ? "" : "s");
	if (summary->communication_ns)
		strbuf_addf(&text, " Communication took %.1f %% of the time in operators.",
			report_percent(summary->communication_ns, summary->self_ns));
	result_say(result, 2, &text);
}

static void add_heaviest(struct result *result, const struct trace_cpu_summary *summary)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (size_t i = 0; i < TRACE_CPU_HEAVIEST && summary->heaviest[i].name; i++) {
		strbuf_add(&text, i ? ", " : "Most self time: ");
		shorten_name(&text, summary->heaviest[i].name, NAME_COLUMNS);
		strbuf_addf(&text, " (%.1f %%)",
			report_percent(summary->heaviest[i].self_ns, summary->self_ns));
	}
	if (!text.length)
		return;
	strbuf_add(&text, ": --by cpu-operators has them all.");
	result_say(result, 2, &text);
}

/* "Of your Python functions most time was in step (train.py:12) (62.0 %), …". */
static void add_pythons(struct result *result, const struct own_pythons *pythons)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (size_t i = 0; i < MIN(pythons->items.count, (size_t)TRACE_CPU_HEAVIEST); i++) {
		const struct own_python *python = &pythons->items.items[i];

		strbuf_add(&text, i ? ", " : "Of your Python functions most time was in ");
		trace_frames_describe_python(python->name, &text);
		strbuf_addf(
			&text, " (%.1f %%)", report_percent(python->time_ns, pythons->thread_ns));
	}
	if (!pythons->items.count)
		return;
	strbuf_add(&text, ", with what they call.");
	result_say(result, 2, &text);
}

static const struct {
	enum trace_cpu_advice advice;
	const char *text;
	const char *of_xla; /* NULL: the same */
} advices[] = {
	{TRACE_CPU_ADVICE_OUTSIDE,
		"Most of the time no operator ran: Python, loading of data, or waiting. Profile "
		"with with_stack=True to see which functions, or with sonde record to see all "
		"code.",
		"Most of the time nothing that XLA traces ran: Python, loading of data, or waiting. "
		"Profile with sonde record to see all code."},
	{TRACE_CPU_ADVICE_COMMUNICATION,
		"Threads communicate, or wait for other ranks to do so: look at all ranks together "
		"to find the late one."},
	{TRACE_CPU_ADVICE_SHORT,
		"Operators are short, less than 10 \xc2\xb5s on average, so calling them is "
		"much of their time: use larger batches, or torch.compile.",
		"Calls are short, less than 10 \xc2\xb5s on average, so making them is much of their "
		"time: use larger batches, and put more under one jax.jit."},
	{TRACE_CPU_ADVICE_HEAVY,
		"Few operators take the time: look at their shapes (record_shapes=True), at "
		"torch.get_num_threads(), and with sonde record at the code that they run.",
		"Few calls take the time: look with sonde record at the code that they run."},
};

/* With Python's functions in the trace, the one that has most of the time. */
static void add_text(
	struct strbuf *text, size_t index, const struct own_pythons *pythons, bool is_xla)
{
	const struct own_python *most = pythons->items.items;
	bool is_python = advices[index].advice == TRACE_CPU_ADVICE_OUTSIDE && most;

	if (is_python)
		strbuf_add(text, "Most of the time no operator ran: Python, loading of data, or "
				 "waiting.");
	else
		strbuf_add(text, is_xla && advices[index].of_xla ? advices[index].of_xla
								 : advices[index].text);
	if (!most || advices[index].advice == TRACE_CPU_ADVICE_COMMUNICATION)
		return;
	strbuf_addf(text, " %.0f %% of the time is in ",
		report_percent(most->time_ns, pythons->thread_ns));
	trace_frames_describe_python(most->name, text);
	strbuf_add(text, is_python ? ": sonde record shows all code below it." : ".");
}

static void advise(struct result *result, const struct trace_cpu_summary *summary,
	const struct own_pythons *pythons, bool is_xla)
{
	for (size_t i = 0; i < ARRAY_SIZE(advices); i++) {
		_cleanup_strbuf_ struct strbuf text = {0};

		if (!(summary->advice & advices[i].advice))
			continue;
		add_text(&text, i, pythons, is_xla);
		strbuf_inherit_status(&result->texts, &text);
		result_advise(result,
			&(struct result_advice){.id = trace_cpu_advice_name(advices[i].advice),
				.saves_ns = REPORT_SAVES_UNKNOWN,
				.evidence = {{"span_ns", (double)summary->span_ns},
					{"in_operators_ns", (double)summary->in_operators_ns},
					{"communication_ns", (double)summary->communication_ns}}},
			strbuf_cstr(&text));
	}
}

static int find_pythons(struct own_pythons *pythons, const struct trace_report *report)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < report->count; i++)
		r = own_pythons_add(pythons, &report->views[i]);
	own_pythons_finish(pythons);
	return r;
}

static int make(struct result *result, const struct report_input *input)
{
	_cleanup_own_pythons_ struct own_pythons pythons = {0};
	struct trace_cpu_summary summary;
	int r;

	if (trace_report_has_works(input->trace))
		return 0;
	result_sentence(result, 0, report_why_no_device_work(input->view->model));
	/* Other tools have nothing like it. */
	if (!trace_report_is_own(input->trace))
		return 0;
	r = trace_cpu_summary_init(&summary, input->trace->views, input->trace->count);
	if (r == 0)
		r = find_pythons(&pythons, input->trace);
	if (r < 0 || !summary.operators)
		return r;
	add_summary(result, &summary);
	result_heading(result, "Where the time of the CPU's threads went");
	add_time(result, input->trace, &summary);
	add_heaviest(result, &summary);
	add_pythons(result, &pythons);
	advise(result, &summary, &pythons, trace_is_xla(input->trace->views->trace));
	return 0;
}

const struct report_section cpu_summary_section = {
	.value = {.key = "cpu_summary",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "for traces without device work; otherwise null"},
	.needs = REPORT_NEEDS_FOREIGN,
	.make = make,
};
