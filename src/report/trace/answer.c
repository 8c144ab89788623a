/* SPDX-License-Identifier: Apache-2.0 */
/* What the report of traces says first: which traces, how complete, where the GPU time went. */
#include <errno.h>
#include <string.h>

#include "analyses/program/summary.h"
#include "base/escape.h"
#include "model/format.h"
#include "model/shorten.h"
#include "report/trace/report_json.h"
#include "report/trace/trace.h"

#define TOP_KERNELS  3
#define NAME_COLUMNS 48

static double percent(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* ---- which traces ---- */

static int64_t duration_ns(const struct trace *trace)
{
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;

	array_foreach (&trace->events, event) {
		first_ns = MIN(first_ns, event->start_ns);
		last_ns = MAX(last_ns, trace_end_ns(event));
	}
	return trace->events.count ? last_ns - first_ns : 0;
}

/* Files of one process need not say a rank. */
static void add_rank(const struct trace_report *report, struct strbuf *text)
{
	const struct trace *first = report->views->trace;
	bool is_known = report->count > 1 || first->rank != MODEL_NONE;

	if (report->count > 1)
		strbuf_addf(text, "the first of %zu ranks", report->count);
	else if (is_known)
		strbuf_addf(text, "rank %u", report->views->rank);
	else if (first->world_size)
		strbuf_add(text, "one rank");
	if (first->world_size)
		strbuf_addf(text, " of %u", first->world_size);
	if (is_known || first->world_size)
		strbuf_add(text, " \xc2\xb7 ");
}

static void add_title(const struct trace_report *report)
{
	const struct report_view *page = &report->page;
	const struct trace *first = report->views->trace;
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t rows = 0;
	int64_t longest_ns = 0;

	for (size_t i = 0; i < report->count; i++) {
		rows += report->views[i].trace->events.count;
		longest_ns = MAX(longest_ns, duration_ns(report->views[i].trace));
	}
	strbuf_addf(&text, "%s \xc2\xb7 ", first->path);
	add_rank(report, &text);
	format_count(&text, rows);
	strbuf_add(&text, " rows \xc2\xb7 ");
	format_duration(&text, (uint64_t)longest_ns);
	strbuf_add(page->out, terminal_bold(&page->terminal));
	escape_plain(page->out, strbuf_cstr(&text));
	strbuf_addf(page->out, "%s\n", terminal_plain(&page->terminal));
}

/* ---- how complete ---- */

struct losses {
	uint64_t skipped, mended, times, without_launch, works, dropped;
	bool truncated;
};

static struct losses sum_losses(const struct trace_report *report)
{
	struct losses losses = {0};

	for (size_t i = 0; i < report->count; i++) {
		const struct trace_view *view = &report->views[i];
		const struct trace_damage *damage = &view->trace->damage;

		losses.skipped += damage->skipped_events;
		losses.mended += damage->mended_events;
		losses.times += damage->repaired_times + view->negative_durations;
		losses.truncated |= damage->truncated;
		losses.without_launch += view->works_without_launch;
		losses.works += view->works.count;
		losses.dropped += view->dropped_works;
	}
	return losses;
}

static void add_loss(const struct trace_report *report, uint64_t count, const char *what)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!count)
		return;
	format_count(&text, count);
	strbuf_addf(&text, " %s", what);
	report_paragraph(&report->page, strbuf_cstr(&text), 2);
}

static void add_losses(const struct trace_report *report)
{
	struct losses losses = sum_losses(report);
	_cleanup_strbuf_ struct strbuf without = {0};

	if (losses.truncated)
		report_paragraph(&report->page,
			"The file was cut off: what came before is here, the rest is not.", 2);
	add_loss(report, losses.skipped, "events were not understood, and are not counted.");
	add_loss(report, losses.mended, "events were damaged, and could be read all the same.");
	add_loss(report, losses.times, "durations were negative or wrapped, and count as none.");
	strbuf_add(&without, "of ");
	format_count(&without, losses.works);
	strbuf_add(&without, " kernels, copies and fills have no launch in the trace.");
	add_loss(report, losses.without_launch, strbuf_cstr(&without));
	add_loss(report, losses.dropped,
		"kernels, copies and fills are left out: of the last profiler step, or launched "
		"outside of the others.");
}

/* ---- where the GPU time went ---- */

/* "Of 595 ms from its first work to the end of its last, GPU 0 computed for 22.1 %, …". */
static void add_time(const struct trace_report *report, const struct trace_summary *summary)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "Of ");
	format_duration(&text, (uint64_t)summary->span_ns / summary->devices);
	if (summary->devices == 1) {
		strbuf_add(&text, " from its first work to the end of its last, ");
		report_trace_place(report, &report->views[summary->most_idle.view],
			summary->most_idle.device, &text);
	} else {
		strbuf_addf(&text,
			" (mean of %u GPUs) from the first work of each to the end of its last, "
			"they",
			summary->devices);
	}
	strbuf_addf(&text, " computed for %.1f %%", percent(summary->compute_ns, summary->span_ns));
	if (summary->only_communication_ns)
		strbuf_addf(&text, ", only communicated for %.1f %%",
			percent(summary->only_communication_ns, summary->span_ns));
	if (summary->only_memory_ns)
		strbuf_addf(&text, ", only copied for %.1f %%",
			percent(summary->only_memory_ns, summary->span_ns));
	strbuf_addf(&text, " and %s idle for %.1f %%.", summary->devices == 1 ? "was" : "were",
		percent(summary->idle_ns, summary->span_ns));
	if (summary->communication_ns)
		strbuf_addf(&text, " Of the communication, %.1f %% ran beside computing.",
			percent(summary->communication_beside_compute_ns,
				summary->communication_ns));
	report_paragraph(&report->page, strbuf_cstr(&text), 2);
	strbuf_clear(&text);
	strbuf_add(&text, "Kernels that communicate are known: ");
	communication_add_counts(&text, summary->communication_works);
	strbuf_add(&text, ". --comm-kernels adds names.");
	if (summary->communication_ns)
		report_paragraph(&report->page, strbuf_cstr(&text), 2);
}

/* "Idle least: rank 3, 12.1 %; most: rank 0, 60.2 %." */
static void add_spread(const struct trace_report *report, const struct trace_summary *summary)
{
	const struct trace_summary_device *ends[] = {&summary->least_idle, &summary->most_idle};
	_cleanup_strbuf_ struct strbuf text = {0};

	if (summary->devices < 2)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		strbuf_add(&text, i ? "; most: " : "Idle least: ");
		report_trace_place(report, &report->views[ends[i]->view], ends[i]->device, &text);
		strbuf_addf(&text, ", %.1f %%", 100 * ends[i]->idle_share);
	}
	strbuf_add_char(&text, '.');
	report_paragraph(&report->page, strbuf_cstr(&text), 2);
}

/* "Why idle: 71.2 % the host had not come to launch what was next (…); …". */
static void add_causes(const struct trace_report *report, const struct trace_summary *summary)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (int cause = 0; cause < TRACE_IDLE_CAUSE_MAX; cause++) {
		double share = percent(summary->idle_by_cause_ns[cause], summary->idle_ns);

		if (share < 1)
			continue;
		strbuf_addf(&text, "%s%.1f %% %s", text.length ? "; " : "Why idle: ", share,
			trace_idle_cause_meaning((enum trace_idle_cause)cause));
	}
	if (!text.length)
		return;
	strbuf_add_char(&text, '.');
	report_paragraph(&report->page, strbuf_cstr(&text), 2);
}

static int add_host(const struct trace_report *report, const struct trace_summary *summary)
{
	const struct idle_rows *waits;
	_cleanup_strbuf_ struct strbuf text = {0};
	size_t shown = 0;

	if (trace_idle_host_ns(summary->idle_by_cause_ns) +
			summary->idle_by_cause_ns[TRACE_IDLE_BLOCKED] <
		summary->span_ns / 20)
		return 0;
	waits = trace_results_idle_rows(report->results);
	if (!waits)
		return -ENOMEM;
	for (size_t i = 0; shown < TOP_KERNELS && i < waits->rows.count; i++) {
		const struct idle_row *row = &waits->rows.items[i];

		if (!idle_row_is_host(row))
			continue;
		strbuf_add(&text, shown++ ? ", " : "Meanwhile the host was in ");
		if (row->name)
			shorten_name(&text, row->name, NAME_COLUMNS);
		else
			strbuf_add(&text, "code that is not in the trace");
		strbuf_addf(&text, " (%.1f %%)", percent(row->time_ns, waits->host_ns));
	}
	if (!shown)
		return 0;
	strbuf_add(&text, ": --by host has them all.");
	report_paragraph(&report->page, strbuf_cstr(&text), 2);
	return 0;
}

/* "The longest call that blocked: cudaMemcpyAsync, 463 ms, in aten::to, called by train.py(12)". */
static void add_block(const struct trace_report *report, const struct trace_summary *summary)
{
	const struct trace_summary_block *block = &summary->longest_block;
	_cleanup_strbuf_ struct strbuf text = {0};
	const struct trace *trace;
	const struct trace_event *call;

	if (summary->idle_by_cause_ns[TRACE_IDLE_BLOCKED] < summary->span_ns / 100)
		return;
	trace = report->views[block->view].trace;
	call = &trace->events.items[block->row];
	strbuf_addf(&text, "The call that blocked longest: %s, ", trace_text(trace, call->name));
	format_duration(&text, (uint64_t)call->duration_ns);
	if (report->count > 1)
		strbuf_addf(&text, " on rank %u", report->views[block->view].rank);
	if (block->op != MODEL_NONE) {
		strbuf_add(&text, ", in ");
		shorten_name(&text, trace_text(trace, trace->events.items[block->op].name),
			NAME_COLUMNS);
	}
	if (block->python != MODEL_NONE)
		strbuf_addf(&text, ", from %s",
			trace_text(trace, trace->events.items[block->python].name));
	strbuf_add_char(&text, '.');
	report_paragraph(&report->page, strbuf_cstr(&text), 2);
}

static int add_kernels(const struct trace_report *report)
{
	const struct kernels *ranks = trace_results_kernels(report->results);
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; i < MIN(ranks->rows.count, (size_t)TOP_KERNELS); i++) {
		strbuf_add(&text, i ? ", " : "Most of the work: ");
		shorten_name(&text, ranks->rows.items[i].name, NAME_COLUMNS);
		strbuf_addf(&text, " (%.1f %%)",
			percent(ranks->rows.items[i].total_ns, ranks->total_ns));
	}
	strbuf_add_char(&text, '.');
	report_paragraph(&report->page, strbuf_cstr(&text), 2);
	return 0;
}

/* ---- what would help ---- */

static const struct {
	enum trace_advice advice;
	const char *text;
} advices[] = {
	{TRACE_ADVICE_LAUNCH_BOUND,
		"Launch-bound: most kernels take less than their launch, and GPUs idle for the "
		"next one. Fuse kernels (torch.compile), give each more work, or launch them "
		"together as a CUDA graph."},
	{TRACE_ADVICE_HOST_BOUND,
		"GPUs wait for the program. See what the host was in: load data in other "
		"processes, do without calls that wait for the device (.item(), .cpu(), "
		"synchronize), and launch ahead."},
	{TRACE_ADVICE_BLOCKING,
		"Calls that block keep the program from launching: copy from pinned memory with "
		"non_blocking=True, read results later or less often (.item(), .cpu(), print), do "
		"without synchronize, allocate before the loop."},
	{TRACE_ADVICE_SHORT_GAPS,
		"The time goes into the gaps between launched kernels: fewer and larger kernels "
		"(torch.compile), or a CUDA graph of them."},
	{TRACE_ADVICE_NO_LAUNCHES,
		"Why GPUs were idle is not in the trace, since it lacks the calls that launched "
		"their work: record with ProfilerActivity.CPU, too."},
	{TRACE_ADVICE_DEPENDENCIES,
		"GPUs are idle although work was launched: it waits for events, or for other "
		"streams. See the critical path."},
	{TRACE_ADVICE_COMMUNICATION,
		"Communication runs by itself: start it earlier, in larger pieces, beside "
		"computing; and look for the rank that the others wait for."},
	{TRACE_ADVICE_COPIES,
		"Copies run by themselves: copy less, from pinned memory (pin_memory, "
		"non_blocking), on a stream of their own."},
	{TRACE_ADVICE_KERNELS,
		"GPUs compute nearly all of the time: what helps is faster kernels, lower "
		"precision, or less work."},
};

static void add_advice(const struct trace_report *report, const struct trace_summary *summary)
{
	for (size_t i = 0; i < ARRAY_SIZE(advices); i++) {
		int64_t saves_ns = trace_summary_saves_ns(summary, advices[i].advice);
		_cleanup_strbuf_ struct strbuf text = {0};

		if (!(summary->advice & advices[i].advice))
			continue;
		strbuf_add(&text, advices[i].text);
		if (saves_ns) {
			strbuf_add(&text, " At most ");
			format_duration(&text, (uint64_t)saves_ns / summary->devices);
			strbuf_addf(&text, "%s, %.1f %% of the time, can be saved so.",
				summary->devices > 1 ? " of each" : "",
				percent(saves_ns, summary->span_ns));
		}
		report_trace_advice(report, strbuf_cstr(&text));
	}
}

static int add_answer(const struct trace_report *report)
{
	struct trace_summary summary;
	int r = trace_summary_init(&summary, report->results);

	if (r < 0 || !summary.devices)
		return r;
	report_heading(&report->page, "Where the GPU time went");
	add_time(report, &summary);
	add_spread(report, &summary);
	add_causes(report, &summary);
	r = add_host(report, &summary);
	add_block(report, &summary);
	r = r ?: add_kernels(report);
	add_advice(report, &summary);
	return r;
}

static int print_about(const struct trace_report *report)
{
	/* HTA has none, and other definitions. */
	bool is_hta = report->views->options.hta_compatible;

	add_title(report);
	add_losses(report);
	if (report->alone)
		return 0;
	if (!report_trace_has_works(report)) {
		report_paragraph(&report->page,
			"There is no device work: no kernel, copy or fill of a GPU is in the "
			"trace.",
			0);
		return is_hta ? 0 : report_trace_cpu_answer(report);
	}
	return is_hta ? 0 : add_answer(report);
}

static int write_about(const struct trace_report *report, struct json_writer *json)
{
	int r = 0;

	json_key(json, "hta_compatible");
	json_bool(json, report->views->options.hta_compatible);
	json_key(json, "traces");
	json_begin_array(json);
	for (size_t i = 0; i < report->count; i++)
		trace_json_trace(json, &report->views[i]);
	json_end_array(json);
	if (!report->alone) {
		r = trace_json_summary(json, report->results);
		r = r < 0 ? r : trace_json_cpu_summary(json, report->results);
	}
	return r;
}

const struct report_section trace_about_section = {
	.needs = REPORT_NEEDS_TRACE,
	.is_head = true,
	.print_trace = print_about,
	.write_trace = write_about,
};
