/* SPDX-License-Identifier: Apache-2.0 */
/* Section: which traces were read, and how complete they are. */
#include "compat/hta/hta.h"
#include "model/format.h"
#include "report/columns.h"
#include "report/sections.h"

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

static const struct report_column trace_columns[] = {
	{.key = "path", .kind = REPORT_TEXT},
	{.key = "rank", .kind = REPORT_INTEGER, .help = "null: the file does not say it"},
	{.key = "world_size", .kind = REPORT_COUNT},
	{.key = "rows", .kind = REPORT_COUNT},
	{.key = "device_works", .kind = REPORT_COUNT},
	{.key = "works_without_launch", .kind = REPORT_COUNT},
	{.key = "dropped_works", .kind = REPORT_COUNT, .help = "of steps left out"},
	{.key = "profiler_steps", .kind = REPORT_COUNT},
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

static void add_trace(struct result *result, const struct trace_view *view)
{
	const struct trace *trace = view->trace;

	result_text(result, trace->path);
	result_known(result, trace->rank != MODEL_NONE, trace->rank);
	result_known(result, trace->world_size != 0, trace->world_size);
	result_u64(result, trace->events.count);
	result_u64(result, view->works.count);
	result_u64(result, view->works_without_launch);
	result_u64(result, view->dropped_works);
	result_u64(result, view->steps);
	add_damage(result, view);
}

/* ---- the title ---- */

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

static void add_title(struct result *result, const struct trace_report *report)
{
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
			"Tables have one row for all ranks: counts and totals are added up, other "
			"figures are means; least and most of the figure before them, with the "
			"rank. --rank N has those of one.");
	add_losses(result, report);
	return 0;
}

const struct report_section traces_section = {
	.value = {.title = "traces", .kind = REPORT_OBJECT, .shape = &shape},
	.needs = REPORT_NEEDS_FOREIGN,
	.is_head = true,
	.make = make,
};
