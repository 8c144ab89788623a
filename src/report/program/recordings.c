/* SPDX-License-Identifier: Apache-2.0 */
/* Section: the captures that a run is made of, what each lost, and how their clocks were aligned.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "model/format.h"
#include "report/sections.h"
#include "report/view.h"

static const struct report_column columns[] = {
	{.key = "host", .title = "Host", .kind = REPORT_TEXT},
	{.key = "ranks",
		.title = "Ranks",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of its processes: 0, 3-5"},
	{.key = "begins_ns",
		.title = "Begins",
		.kind = REPORT_NS,
		.help = "after the first of them"},
	{.key = "length_ns",
		.title = "Length",
		.kind = REPORT_NS,
		.help = "null: it has no account, since it was cut off early"},
	{.key = "samples", .title = "Samples", .kind = REPORT_COUNT},
	{.key = "samples_lost", .title = "Lost", .kind = REPORT_COUNT},
	{.key = "records_lost",
		.title = "Records lost",
		.kind = REPORT_COUNT,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of device work, its stacks, and ends of ranges"},
	{.key = "is_complete", .kind = REPORT_FLAG, .help = "false: it was cut off"},
	{.key = "clock_shift_ns",
		.title = "Clock moved",
		.kind = REPORT_NS,
		.is_change = true,
		.help = "what was added to its times; null: they are as recorded"},
	{.key = "clock_drift",
		.kind = REPORT_NUMBER,
		.help = "seconds in a second that were added besides"},
	{.key = "clock_error_ns",
		.title = "Error",
		.kind = REPORT_NS,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "that is left, estimated; null: not known"},
	{.key = "clock_source",
		.title = "By",
		.kind = REPORT_TEXT,
		.help = "hosts: their clocks when they began; collectives: and when "
			"these ended"},
	{.key = "file", .title = "File", .kind = REPORT_TEXT, .shrinks_to = 12},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static const char *const clock_sources[CAPTURE_CLOCK_MAX] = {
	[CAPTURE_CLOCK_OWN] = "",
	[CAPTURE_CLOCK_HOSTS] = "hosts",
	[CAPTURE_CLOCK_COLLECTIVES] = "collectives",
};

/* ---- ranks ---- */

static int compare_numbers(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

struct ranks {
	ARRAY_OF(uint32_t) items;
};

static void ranks_done(struct ranks *ranks)
{
	array_done(&ranks->items);
}

static void add_run(struct strbuf *out, uint32_t first, uint32_t last)
{
	strbuf_addf(out, "%s%" PRIu32, out->length ? ", " : "", first);
	if (last > first)
		strbuf_addf(out, "-%" PRIu32, last);
}

/* "0, 3-5": in order, each once. */
static int describe_ranks(const struct model *model, uint32_t recording, struct strbuf *out)
{
	_cleanup_(ranks_done) struct ranks ranks = {0};
	int r = 0;

	array_foreach (&model->processes, process) {
		if (r == 0 && process->recording == recording && process->rank != MODEL_NONE)
			r = array_append(&ranks.items, process->rank);
	}
	if (r < 0)
		return r;
	if (ranks.items.count)
		qsort(ranks.items.items, ranks.items.count, sizeof(*ranks.items.items),
			compare_numbers);
	for (size_t i = 0, next; i < ranks.items.count; i = next) {
		uint32_t first = ranks.items.items[i], last = first;

		for (next = i + 1; next < ranks.items.count && ranks.items.items[next] <= last + 1;)
			last = ranks.items.items[next++];
		add_run(out, first, last);
	}
	return strbuf_status(out);
}

/* ---- rows ---- */

static int add_row(struct result *result, const struct model *model, uint32_t index)
{
	const struct model_recording *recording = &model->recordings.items[index];
	const struct capture_clock *clock = &recording->clock;
	bool is_moved = clock->source != CAPTURE_CLOCK_OWN;
	_cleanup_strbuf_ struct strbuf ranks = {0};
	int r = describe_ranks(model, index, &ranks);

	if (r < 0)
		return r;
	result_text(result, recording->host);
	result_text(result, strbuf_cstr(&ranks));
	result_u64(result, model_since_start_ns(model, recording->start_ns));
	result_known(result, recording->end_ns != 0, recording->end_ns - recording->start_ns);
	result_u64(result, recording->samples);
	result_u64(result, recording->samples_lost);
	result_u64(result, recording->records_lost);
	result_flag(result, recording->is_complete);
	if (is_moved)
		result_i64(result, clock->shift_ns);
	else
		result_null(result);
	result_number(result, clock->drift);
	result_known(result, is_moved && clock->error_ns != UINT64_MAX, clock->error_ns);
	result_text(result, clock_sources[clock->source]);
	result_text(result, recording->file);
	return 0;
}

/* ---- sentences ---- */

struct clocks {
	uint64_t hosts, collectives, largest_error_ns;
};

static struct clocks count_clocks(const struct model *model)
{
	struct clocks clocks = {0};

	array_foreach (&model->recordings, recording) {
		const struct capture_clock *clock = &recording->clock;

		clocks.hosts += clock->source == CAPTURE_CLOCK_HOSTS;
		clocks.collectives += clock->source == CAPTURE_CLOCK_COLLECTIVES;
		if (clock->error_ns != UINT64_MAX)
			clocks.largest_error_ns = MAX(clocks.largest_error_ns, clock->error_ns);
	}
	return clocks;
}

static void say_clocks(struct result *result, const struct model *model)
{
	const struct clocks clocks = count_clocks(model);
	_cleanup_strbuf_ struct strbuf text = {0};

	if (clocks.collectives) {
		strbuf_addf(&text,
			"The hosts' clocks were aligned by what each took for the time of day, and "
			"then by the ends of collectives: times of different hosts may be wrong by "
			"about ");
		format_duration(&text, clocks.largest_error_ns);
		strbuf_add_char(&text, '.');
		if (clocks.hosts)
			strbuf_addf(&text,
				" Of %" PRIu64 " recordings no collective led to the others.",
				clocks.hosts);
	} else if (clocks.hosts) {
		strbuf_add(&text,
			"All recordings have one clock, or were aligned by what each host took for "
			"the time of day: how far hosts differ is not known without collectives.");
	}
	if (text.length)
		result_say(result, 2, &text);
}

static void say_losses(struct result *result, const struct model *model)
{
	uint64_t with_losses = 0;

	array_foreach (&model->recordings, recording)
		with_losses += recording->samples_lost || recording->records_lost;
	if (with_losses)
		result_sentencef(result, 2,
			"%" PRIu64 " of %zu recordings lost something: their ranks are "
			"underrepresented in the tables.",
			with_losses, model->recordings.count);
}

static int make(struct result *result, const struct report_input *input)
{
	const struct model *model = input->view->model;
	uint32_t table;
	int r = 0;

	if (model->recordings.count < 2)
		return report_nothing(result, input,
			"This is one recording: of a run of several, give their folder, or all of "
			"their files.");
	table = result_open(result);
	for (uint32_t i = 0; r == 0 && i < model->recordings.count; i++)
		r = add_row(result, model, i);
	result_close(result);
	if (r < 0)
		return r;
	result_heading(result, "Recordings of this run");
	result_show(result, table,
		&(struct result_show){
			.limit = report_rows_shown(input, 100, 8), .noun = "recordings"});
	say_clocks(result, model);
	say_losses(result, model);
	return 0;
}

const struct report_section recordings_section = {
	.value = {.key = "recordings",
		.kind = REPORT_ROWS,
		.shape = &shape,
		.help = "of a run of several captures; null: it is one"},
	.by = "recording",
	.summary = "the captures of a run: what each lost, and its clock",
	.needs = REPORT_NEEDS_RECORDING,
	.shows = SELECTION_RANGES,
	.make = make,
};
