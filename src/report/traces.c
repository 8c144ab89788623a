/* SPDX-License-Identifier: Apache-2.0 */
/* Section: which traces were read, and how complete they are. */
#include <ctype.h>

#include "analyses/program/rank_set.h"
#include "compat/hta/hta.h"
#include "model/format.h"
#include "report/columns.h"
#include "report/sections.h"
#include "report/view.h"

static const struct report_column damage_columns[] = {
	{.key = "skipped_events", .kind = REPORT_COUNT, .help = "not understood"},
	{.key = "skipped_bytes", .kind = REPORT_BYTES},
	{.key = "mended_events", .kind = REPORT_COUNT},
	{.key = "repaired_times", .kind = REPORT_COUNT},
	{.key = "unended_events", .kind = REPORT_COUNT},
	{.key = "negative_durations", .kind = REPORT_COUNT},
	{.key = "truncated", .kind = REPORT_FLAG},
};
static const struct report_shape damage_shape = REPORT_SHAPE(damage_columns);

static const struct report_column replay_columns[] = {
	{.key = "captures", .kind = REPORT_COUNT},
	{.key = "replays", .kind = REPORT_COUNT, .help = "with their launch"},
	{.key = "nodes", .kind = REPORT_COUNT},
	{.key = "known_nodes", .kind = REPORT_COUNT, .help = "whose call in the capture is known"},
	{.key = "unclear_nodes",
		.kind = REPORT_COUNT,
		.help = "of either of several calls of the capture"},
	{.key = "alike",
		.kind = REPORT_COUNT,
		.help = "replays that fit several captures of the same operators"},
	{.key = "no_capture", .kind = REPORT_COUNT, .help = "replays with no capture before them"},
	{.key = "no_fit", .kind = REPORT_COUNT, .help = "replays whose nodes no capture has"},
	{.key = "several", .kind = REPORT_COUNT, .help = "replays that several captures fit"},
	{.key = "streams",
		.kind = REPORT_COUNT,
		.help = "replays on several streams, whose capture names no kernels"},
};
static const struct report_shape replay_shape = REPORT_SHAPE(replay_columns);

static const struct report_column trace_columns[] = {
	{.key = "path", .kind = REPORT_TEXT},
	{.key = "rank", .kind = REPORT_INTEGER, .help = "null: the file does not say it"},
	{.key = "world_size", .kind = REPORT_COUNT},
	{.key = "rows", .kind = REPORT_COUNT},
	{.key = "device_works", .kind = REPORT_COUNT},
	{.key = "works_without_launch", .kind = REPORT_COUNT},
	{.key = "dropped_works", .kind = REPORT_COUNT, .help = "of steps left out"},
	{.key = "profiler_steps", .kind = REPORT_COUNT},
	{.key = "graph_replays", .kind = REPORT_OBJECT, .shape = &replay_shape},
	{.key = "damage", .kind = REPORT_OBJECT, .shape = &damage_shape},
};
static const struct report_shape trace_shape = REPORT_SHAPE(trace_columns);

static const struct report_column columns[] = {
	{.key = "hta_compatible", .kind = REPORT_FLAG},
	{.key = "traces", .kind = REPORT_ROWS, .shape = &trace_shape, .help = "by rank"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_damage(struct result *result, const struct trace_view *view)
{
	const struct trace_damage *damage = &view->trace->damage;

	result_open(result);
	result_u64(result, damage->skipped_events);
	result_u64(result, damage->skipped_bytes);
	result_u64(result, damage->mended_events);
	result_u64(result, damage->repaired_times);
	result_u64(result, damage->unended_events);
	result_u64(result, view->negative_durations);
	result_flag(result, damage->truncated);
	result_close(result);
}

static void add_replays(struct result *result, const struct trace_replays *replays)
{
	result_open(result);
	result_u64(result, replays->captures);
	result_u64(result, replays->replays);
	result_u64(result, replays->nodes);
	result_u64(result, replays->known_nodes);
	result_u64(result, replays->unclear_nodes);
	result_u64(result, replays->alike);
	for (size_t i = 0; i < TRACE_REPLAY_UNKNOWN_MAX; i++)
		result_u64(result, replays->unknown[i]);
	result_close(result);
}

static void add_trace(struct result *result, const struct trace_view *view)
{
	const struct trace *trace = view->trace;

	result_text(result, trace->path);
	result_known(result, trace->rank != MODEL_NONE, trace->rank);
	result_known(result, trace->world_size != 0, trace->world_size);
	result_u64(result, trace->events.count - trace->capture_rows);
	result_u64(result, view->works.count);
	result_u64(result, view->works_without_launch);
	result_u64(result, view->dropped_works);
	result_u64(result, view->steps);
	add_replays(result, &trace->replays);
	add_damage(result, view);
}

/* ---- the title ---- */

static int64_t duration_ns(const struct trace *trace)
{
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;

	array_foreach (&trace->events, event) {
		if (event->is_capture)
			continue;
		first_ns = MIN(first_ns, event->start_ns);
		last_ns = MAX(last_ns, trace_end_ns(event));
	}
	return last_ns > first_ns ? last_ns - first_ns : 0;
}

/* From the first device work that counts to the end of the last; 0: there is none. */
static int64_t works_span_ns(const struct trace_view *view)
{
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;

	array_foreach (&view->works, work) {
		first_ns = MIN(first_ns, work->start_ns);
		last_ns = MAX(last_ns, work->end_ns);
	}
	return last_ns > first_ns ? last_ns - first_ns : 0;
}

/* "668 ms · 620 ms from first to last GPU work": of the longest. */
static void add_durations(const struct trace_report *report, struct strbuf *text)
{
	int64_t longest_ns = 0, works_ns = 0;

	for (size_t i = 0; i < report->count; i++) {
		longest_ns = MAX(longest_ns, duration_ns(report->views[i].trace));
		works_ns = MAX(works_ns, works_span_ns(&report->views[i]));
	}
	format_duration(text, (uint64_t)longest_ns);
	if (!works_ns)
		return;
	strbuf_add(text, " \xc2\xb7 ");
	format_duration(text, (uint64_t)works_ns);
	strbuf_add(text, " from first to last GPU work");
}

/* Two traces may be of one rank: see add_rank_set(). */
static void add_rank_count(const struct trace_report *report, struct strbuf *text)
{
	size_t ranks = 1;

	for (size_t i = 1; i < report->count; i++)
		ranks += report->views[i].rank != report->views[i - 1].rank;
	strbuf_addf(text, "the first of %zu ", report->count);
	if (ranks < report->count)
		strbuf_addf(text, "traces of %zu ", ranks);
	strbuf_add(text, ranks == 1 ? "rank" : "ranks");
}

/* Files of one process need not say a rank. */
static void add_rank(const struct trace_report *report, struct strbuf *text)
{
	const struct trace *first = report->views->trace;
	bool is_known = report->count > 1 || first->rank != MODEL_NONE;

	if (report->count > 1)
		add_rank_count(report, text);
	else if (is_known)
		strbuf_addf(text, "rank %u", report->views->rank);
	else if (first->world_size)
		strbuf_add(text, "one rank");
	if (first->world_size)
		strbuf_addf(text, " of %u", first->world_size);
	if (is_known || first->world_size)
		strbuf_add(text, " \xc2\xb7 ");
}

static void add_title(struct result *result, const struct trace_report *report)
{
	const struct trace *first = report->views->trace;
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t rows = 0;

	for (size_t i = 0; i < report->count; i++) {
		const struct trace *trace = report->views[i].trace;

		rows += trace->events.count - trace->capture_rows;
	}
	strbuf_addf(&text, "%s \xc2\xb7 ", first->path);
	add_rank(report, &text);
	format_count(&text, rows);
	strbuf_add(&text, " rows \xc2\xb7 ");
	add_durations(report, &text);
	strbuf_inherit_status(&result->texts, &text);
	result_title(result, strbuf_cstr(&text));
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

static void add_loss(struct result *result, uint64_t count, const char *what)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!count)
		return;
	format_count(&text, count);
	strbuf_addf(&text, " %s", what);
	result_say(result, 2, &text);
}

/* Which ranks are missing, or there twice. */
static void add_rank_set(struct result *result, const struct report_input *input)
{
	const struct model *model = input->view->model;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (input->trace->count < 2)
		return;
	rank_set_describe(
		(const struct trace *const *)model->traces.items, model->traces.count, &text);
	if (!text.length)
		return;
	text.data[0] = (char)toupper((unsigned char)text.data[0]);
	strbuf_add_char(&text, '.');
	result_say(result, 2, &text);
}

static void add_losses(struct result *result, const struct trace_report *report)
{
	struct losses losses = sum_losses(report);
	_cleanup_strbuf_ struct strbuf without = {0};

	if (losses.truncated)
		result_sentence(result, 2,
			"The file was cut off: the part before is here, the rest is missing.");
	add_loss(result, losses.skipped, "events could not be read, and are not counted.");
	add_loss(result, losses.mended, "events were damaged, but could be read.");
	add_loss(result, losses.times, "durations were negative or wrapped, and count as none.");
	strbuf_add(&without, "of ");
	format_count(&without, losses.works);
	strbuf_add(&without, " kernels, copies and fills have no launch in the trace.");
	add_loss(result, losses.without_launch, strbuf_cstr(&without));
	add_loss(result, losses.dropped,
		"kernels, copies and fills are left out: those of the last profiler step, or "
		"launched outside the others.");
}

static void add_replays_of(struct result *result, uint64_t count, uint64_t all, const char *what)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "of ");
	format_count(&text, all);
	strbuf_addf(&text, " replays of graphs %s", what);
	add_loss(result, count, strbuf_cstr(&text));
}

/* Of which replays it is not known what captured them, and why. */
static void add_unknown_replays(struct result *result, const struct trace_report *report)
{
	static const char *const reasons[TRACE_REPLAY_UNKNOWN_MAX] = {
		[TRACE_REPLAY_NO_CAPTURE] = "have no operators: the capture is not in the trace. "
					    "Give the trace of the capture as a second file.",
		[TRACE_REPLAY_NO_FIT] = "have no operators: no capture before "
					"them has their kernels in that order.",
		[TRACE_REPLAY_SEVERAL] = "have no operators: several captures "
					 "fit, and their operators differ.",
		[TRACE_REPLAY_STREAMS] = "have no operators: they ran on several streams, and the "
					 "calls of the captures do not name their kernels.",
	};
	struct trace_replays sum = {0};

	for (size_t i = 0; i < report->count; i++) {
		const struct trace_replays *replays = &report->views[i].trace->replays;

		sum.replays += replays->replays;
		sum.alike += replays->alike;
		sum.unclear_nodes += replays->unclear_nodes;
		for (size_t reason = 0; reason < TRACE_REPLAY_UNKNOWN_MAX; reason++)
			sum.unknown[reason] += replays->unknown[reason];
	}
	for (size_t reason = 0; reason < TRACE_REPLAY_UNKNOWN_MAX; reason++)
		add_replays_of(result, sum.unknown[reason], sum.replays, reasons[reason]);
	add_replays_of(result, sum.alike, sum.replays,
		"fit several captures of the same operators: their modules are those of the first.");
	add_loss(result, sum.unclear_nodes,
		"nodes of graphs fit several calls of their capture, and have no operators.");
}

static int make(struct result *result, const struct report_input *input)
{
	const struct trace_report *report = input->trace;

	result_open(result);
	result_flag(result, report->definitions == &hta_definitions);
	result_open(result);
	for (size_t i = 0; i < report->count; i++)
		add_trace(result, &report->views[i]);
	result_close(result);
	result_close(result);
	add_title(result, report);
	if (report->count > 1 && report_is_own(input))
		result_sentence(result, 2,
			"Tables have one row for all ranks: counts and totals are added up, shares "
			"are those of the sums, other figures are means; least and most of the "
			"figure before them, with the rank. --rank N has those of one.");
	add_rank_set(result, input);
	add_losses(result, report);
	if (report->definitions != &hta_definitions)
		add_unknown_replays(result, report);
	return 0;
}

const struct report_section traces_section = {
	.value = {.title = "traces", .kind = REPORT_OBJECT, .shape = &shape},
	.needs = REPORT_NEEDS_FOREIGN,
	.is_head = true,
	.make = make,
};
