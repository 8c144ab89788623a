/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording lacks, what it cost, and how busy the CPUs were while it was made. */
#include <errno.h>
#include <string.h>

#include "analyses/cpu/completeness.h"
#include "analyses/cpu/timeline.h"
#include "model/format.h"
#include "report/sections.h"
#include "report/view.h"

#define TIMELINE_INTERVALS 100
#define FEW_SAMPLES        100

static const struct report_column place_columns[] = {
	{.key = "where", .kind = REPORT_TEXT},
	{.key = "cpu", .kind = REPORT_INTEGER},
	{.key = "count", .kind = REPORT_COUNT},
};
static const struct report_shape place_shape = REPORT_SHAPE(place_columns);

static const struct report_column loss_columns[] = {
	{.key = "samples_lost", .kind = REPORT_COUNT},
	{.key = "recording_complete", .kind = REPORT_FLAG, .help = "false: it was cut off"},
	{.key = "places", .kind = REPORT_ROWS, .shape = &place_shape},
};
static const struct report_shape loss_shape = REPORT_SHAPE(loss_columns);

static const struct report_column overhead_columns[] = {
	{.key = "bpf_run_count", .kind = REPORT_COUNT},
	{.key = "bpf_run_time_ns", .kind = REPORT_NS},
	{.key = "collector_cpu_ns", .kind = REPORT_NS},
	{.key = "collector_start_cpu_ns",
		.kind = REPORT_NS,
		.help = "of it, until sampling began, and for unwind tables and symbols; null: not "
			"known"},
	{.key = "collector_end_cpu_ns",
		.kind = REPORT_NS,
		.help = "of it, after sampling had ended"},
	{.key = "collector_peak_rss_bytes", .kind = REPORT_BYTES},
	{.key = "stacks_unwound_in_user_space", .kind = REPORT_COUNT},
	{.key = "tables_built", .kind = REPORT_COUNT},
	{.key = "tables_from_cache", .kind = REPORT_COUNT},
	{.key = "wait_run_count",
		.kind = REPORT_COUNT,
		.help = "sampling waiting threads, or measuring waits"},
	{.key = "wait_run_time_ns", .kind = REPORT_NS},
	{.key = "table_build_ns", .kind = REPORT_NS},
};
static const struct report_shape overhead_shape = REPORT_SHAPE(overhead_columns);

static const struct report_column note_columns[] = {{.kind = REPORT_TEXT}};
static const struct report_shape note_shape = REPORT_SHAPE(note_columns);

static const struct report_column sample_columns[] = {{.kind = REPORT_COUNT}};
static const struct report_shape sample_shape = REPORT_SHAPE(sample_columns);

static const struct report_column timeline_columns[] = {
	{.key = "interval_ns", .kind = REPORT_NS},
	{.key = "samples", .kind = REPORT_LIST, .shape = &sample_shape},
};
static const struct report_shape timeline_shape = REPORT_SHAPE(timeline_columns);

static const struct report_column columns[] = {
	{.key = "losses",
		.kind = REPORT_OBJECT,
		.shape = &loss_shape,
		.help = "null when the file has no account"},
	{.key = "overhead",
		.kind = REPORT_OBJECT,
		.shape = &overhead_shape,
		.help = "what recording cost"},
	{.key = "notes",
		.kind = REPORT_LIST,
		.shape = &note_shape,
		.help = "sentences: what was partial, and why"},
	{.key = "timeline",
		.kind = REPORT_OBJECT,
		.shape = &timeline_shape,
		.help = "samples in each of 100 intervals from the start"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* ---- members ---- */

static void add_losses(struct result *result, const struct model *model)
{
	const struct capture_stats *stats = &model->stats.values;

	if (!model->stats.present) {
		result_null(result);
		return;
	}
	result_open(result);
	result_u64(result, stats->samples_lost);
	result_flag(result, stats->complete);
	result_open(result);
	for (uint32_t i = 0; i < stats->loss_count; i++) {
		result_text(result, stats->losses[i].where);
		result_u64(result, stats->losses[i].cpu);
		result_u64(result, stats->losses[i].count);
	}
	result_close(result);
	result_close(result);
}

static void add_overhead(struct result *result, const struct model *model)
{
	const struct capture_stats *stats = &model->stats.values;
	bool bpf = stats->bpf_run_count != 0, is_split = stats->collector_start_cpu_ns != 0;

	if (!model->stats.present) {
		result_null(result);
		return;
	}
	result_open(result);
	result_known(result, bpf, stats->bpf_run_count);
	result_known(result, bpf, stats->bpf_run_time_ns);
	result_u64(result, stats->collector_cpu_ns);
	result_known(result, is_split, stats->collector_start_cpu_ns);
	result_known(result, is_split, stats->collector_end_cpu_ns);
	result_u64(result, stats->collector_peak_rss_bytes);
	result_u64(result, stats->stacks_unwound_in_user_space);
	result_u64(result, stats->tables_built);
	result_u64(result, stats->tables_from_cache);
	result_u64(result, stats->wait_run_count);
	result_u64(result, stats->wait_run_time_ns);
	result_u64(result, stats->table_build_ns);
	result_close(result);
}

static void add_notes(struct result *result, const struct capture_stats *stats)
{
	result_open(result);
	for (uint32_t i = 0; i < stats->note_count; i++)
		result_text(result, stats->notes[i]);
	result_close(result);
}

/* Returns the list of samples. */
static uint32_t add_timeline(struct result *result, const struct timeline *timeline)
{
	uint32_t samples;

	result_open(result);
	result_u64(result, timeline->interval_ns);
	samples = result_open(result);
	for (size_t i = 0; i < timeline->count; i++)
		result_u64(result, timeline->samples[i]);
	result_close(result);
	result_close(result);
	return samples;
}

/* ---- sentences ---- */

static const struct capture_loss *largest_loss(const struct capture_stats *stats)
{
	const struct capture_loss *largest = NULL;

	for (uint32_t i = 0; i < stats->loss_count; i++) {
		if (!largest || stats->losses[i].count > largest->count)
			largest = &stats->losses[i];
	}
	return largest;
}

/* What the loss at a place means, or what helps. */
static const char *loss_advice(const char *where)
{
	static const char *const advice[][2] = {
		{"sample_ring", "a lower frequency (sonde record -F) loses fewer"},
		{"sideband_ring", "too many mappings changed at once; processes were read again, "
				  "and code that was mapped only briefly has no name"},
		{"waiting_for_tables", "these stacks were written before their unwind tables were "
				       "ready; the next recording has them in its cache"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(advice); i++) {
		if (strcmp(advice[i][0], where) == 0)
			return advice[i][1];
	}
	return NULL;
}

static void add_worst_loss(struct strbuf *text, const struct capture_loss *worst)
{
	const char *advice = loss_advice(worst->where);

	strbuf_addf(text, "; most at %s", worst->where);
	if (strcmp(worst->where, "sample_ring") == 0)
		strbuf_addf(text, " of CPU %u", worst->cpu);
	strbuf_add(text, ", ");
	format_count(text, worst->count);
	if (advice)
		strbuf_addf(text, ": %s", advice);
}

static void say_losses(
	struct result *result, const struct model *model, const struct completeness *completeness)
{
	const struct capture_loss *worst = largest_loss(&model->stats.values);
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t taken = completeness->recorded + completeness->lost;

	if (report_is_imported(model))
		return;
	if (!completeness->losses_known) {
		result_sentence(result, 2,
			"Lost samples: unknown; the file has no account of them, because its end "
			"is missing or another recorder wrote it.");
		return;
	}
	strbuf_add(&text, "Lost samples: ");
	if (completeness->lost) {
		format_count(&text, completeness->lost);
		strbuf_addf(
			&text, " (%.2f %%)", 100.0 * (double)completeness->lost / (double)taken);
	} else {
		strbuf_add(&text, "none");
	}
	if (model->cut_off_count)
		strbuf_add(&text, " before it was cut off");
	if (worst && worst->count)
		add_worst_loss(&text, worst);
	strbuf_add_char(&text, '.');
	result_account(
		result, !completeness->lost && !model->cut_off_count && !(worst && worst->count));
	result_say(result, 2, &text);
	result_account(result, false);
}

/*
 * "Cost: start-up 540 ms of CPU time, then 0.4 % of a core, end 30 ms; 45.0 MiB of memory at
 * most; 2.1 us a sample in the kernel."
 */
static void say_cost(struct result *result, const struct model *model)
{
	const struct capture_stats *stats = &model->stats.values;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!model->stats.present || !stats->collector_cpu_ns)
		return;
	strbuf_add(&text, "Cost: ");
	format_collector_cpu(&text, stats, model_duration_ns(model));
	strbuf_add(&text, "; ");
	format_bytes(&text, stats->collector_peak_rss_bytes);
	strbuf_add(&text, " of memory at most");
	if (stats->bpf_run_count && stats->samples)
		strbuf_addf(&text, "; %.1f \xc2\xb5s a sample in the kernel",
			(double)stats->bpf_run_time_ns / (double)stats->samples / 1000);
	strbuf_add_char(&text, '.');
	result_account(result, true);
	result_say(result, 2, &text);
	result_account(result, false);
}

static void say_notes(struct result *result, const struct report_view *view)
{
	const struct capture_stats *stats = &view->model->stats.values;
	uint64_t samples = view->selected->count;

	for (uint32_t i = 0; i < stats->note_count; i++)
		result_sentencef(result, 2, "Note: %s", stats->notes[i]);
	if (samples && samples < FEW_SAMPLES)
		result_advise(result,
			&(struct result_advice){.id = "few_samples",
				.saves_ns = REPORT_SAVES_UNKNOWN,
				.evidence = {{"samples", (double)samples}}},
			"Few samples: shares are rough; record longer, or at a higher frequency "
			"(sonde record -F).");
}

static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	const struct model *model = view->model;
	_cleanup_timeline_ struct timeline timeline = {0};
	struct completeness completeness;
	uint32_t samples;
	int r = completeness_init(&completeness, model, view->selected);

	if (r == 0)
		r = timeline_init(&timeline, model, view->selected, TIMELINE_INTERVALS);
	if (r < 0)
		return r;
	result_open(result);
	add_losses(result, model);
	add_overhead(result, model);
	add_notes(result, &model->stats.values);
	samples = add_timeline(result, &timeline);
	result_close(result);
	say_losses(result, model, &completeness);
	say_cost(result, model);
	say_notes(result, view);
	result_account(result, true);
	if (model_has_time(model) && view->selected->count >= FEW_SAMPLES)
		result_draw(result, samples,
			&(struct result_bars){.title = "CPU use over time",
				.unit = "CPUs",
				.scale = (double)model_sample_weight_ns(model) /
					 (double)timeline.interval_ns});
	return 0;
}

const struct report_section account_section = {
	.value = {.title = "account", .kind = REPORT_OBJECT, .shape = &shape},
	.needs = REPORT_NEEDS_RECORDING,
	.is_head = true,
	.make = make,
};
