/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/counts.h"
#include "analyses/statistics.h"
#include "base/strbuf.h"

/* Finds or adds the row of a name in a module, at a place in its source. */
static int find_row(struct diff *diff, const char *name, const char *module, const char *place,
	uint32_t *ret_row)
{
	_cleanup_strbuf_ struct strbuf key = {0};
	const char *kept;
	int r;

	strbuf_add_bytes(&key, name, strlen(name) + 1);
	strbuf_add_bytes(&key, module, strlen(module) + 1);
	strbuf_add(&key, place);
	if (strbuf_status(&key) < 0)
		return -ENOMEM;
	r = intern_add(&diff->names, key.data, key.length, ret_row);
	if (r <= 0)
		return r;
	kept = intern_get(&diff->names, *ret_row);
	return array_append(
		&diff->rows, (struct diff_row){.name = kept,
				     .module = kept + strlen(name) + 1,
				     .place = kept + strlen(name) + strlen(module) + 2});
}

static int row_of_function(
	struct diff *diff, const struct model *model, uint32_t function, uint32_t *ret_row)
{
	const char *module = model_function_module(model, function);
	const char *name = model_function_name(model, function);

	if (diff->options.by == BREAKDOWN_MODULE)
		return find_row(diff, module, module, "", ret_row);
	return find_row(diff, name, module, "", ret_row);
}

static int row_of_line(struct diff *diff, const struct model *model,
	const struct model_frame *frame, uint32_t *ret_row)
{
	_cleanup_strbuf_ struct strbuf place = {0};
	const char *slash = strrchr(frame->source_file, '/');

	if (!frame->line)
		return row_of_function(diff, model, frame->function, ret_row);
	strbuf_addf(&place, "%s:%u", slash ? slash + 1 : frame->source_file, frame->line);
	if (strbuf_status(&place) < 0)
		return -ENOMEM;
	return find_row(diff, model_function_name(model, frame->function),
		model_function_module(model, frame->function), strbuf_cstr(&place), ret_row);
}

static int rows_of_lines(struct diff *diff, const struct model *model, uint32_t **ret_rows)
{
	_cleanup_free_ uint32_t *by_frame = calloc(model->frames.count + 1, sizeof(*by_frame));
	int r = by_frame ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < model->frames.count; i++)
		r = row_of_line(diff, model, &model->frames.items[i], &by_frame[i]);
	if (r == 0)
		*ret_rows = TAKE_PTR(by_frame);
	return r;
}

/* The row of each frame, by way of its function's. */
static int rows_of_frames(struct diff *diff, const struct model *model, uint32_t **ret_rows)
{
	_cleanup_free_ uint32_t *by_function =
		calloc(model->functions.count + 1, sizeof(*by_function));
	_cleanup_free_ uint32_t *by_frame = calloc(model->frames.count + 1, sizeof(*by_frame));
	int r = by_function && by_frame ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < model->functions.count; i++)
		r = row_of_function(diff, model, i, &by_function[i]);
	for (size_t i = 0; r == 0 && i < model->frames.count; i++)
		by_frame[i] = by_function[model->frames.items[i].function];
	if (r == 0)
		*ret_rows = TAKE_PTR(by_frame);
	return r;
}

static int add_no_stack(struct diff *diff, const struct model *model, uint64_t samples, bool after)
{
	struct diff_row *row;
	uint32_t index;
	int r;

	if (!samples)
		return 0;
	r = row_of_function(diff, model, MODEL_NONE, &index);
	if (r < 0)
		return r;
	row = &diff->rows.items[index];
	*(after ? &row->self_after : &row->self_before) += samples;
	*(after ? &row->total_after : &row->total_before) += samples;
	return 0;
}

/* What a side does not have at all adds nothing to the other's. */
static struct energy_uncertainty uncertainty_of(
	const struct model *model, const struct energy_sums *sums)
{
	if (sums->all_j > 0)
		return energy_uncertainty_of(model, sums);
	return (struct energy_uncertainty){0};
}

/* Of all that is charged to samples: one row of them. */
static int find_total_uncertainty(
	struct diff_side *side, const struct model *model, const struct selected *selected)
{
	_cleanup_energy_key_sums_ struct energy_key_sums sums = {0};
	_cleanup_free_ uint32_t *keys = calloc(model->samples.count + 1, sizeof(*keys));
	int r = keys ? energy_sums_of_samples(&sums, model, selected, keys, 1) : -ENOMEM;

	if (r == 0)
		side->uncertainty = uncertainty_of(model, &sums.self[0]);
	return r;
}

/* `rows`: of each frame. */
static int find_uncertainties(struct diff *diff, const struct model *model,
	const struct selected *selected, const uint32_t *rows, bool after)
{
	_cleanup_energy_key_sums_ struct energy_key_sums sums = {0};
	size_t count = diff->rows.count;
	int r = energy_sums_of_frames(&sums, model, selected, rows, count);

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct diff_row *row = &diff->rows.items[i];
		bool is_self = diff->options.sort == BREAKDOWN_SORT_SELF;

		*(after ? &row->after_uncertainty : &row->before_uncertainty) =
			uncertainty_of(model, is_self ? &sums.self[i] : &sums.total[i]);
	}
	return r ?: find_total_uncertainty(after ? &diff->after : &diff->before, model, selected);
}

static int count_side(
	struct diff *diff, const struct model *model, const struct selected *selected, bool after)
{
	_cleanup_stack_counts_ struct stack_counts stacks = {0};
	_cleanup_frame_counts_ struct frame_counts counts = {0};
	_cleanup_free_ uint32_t *rows = NULL;
	int r = diff->options.by == BREAKDOWN_LINE ? rows_of_lines(diff, model, &rows)
						   : rows_of_frames(diff, model, &rows);

	r = r ?: stack_counts_init(&stacks, model, selected);
	r = r ?: frame_counts_init(&counts, model, &stacks, rows, diff->rows.count);
	for (size_t i = 0; r == 0 && i < counts.key_count; i++) {
		struct diff_row *row = &diff->rows.items[i];

		*(after ? &row->self_after : &row->self_before) += counts.self[i];
		*(after ? &row->total_after : &row->total_before) += counts.total[i];
	}
	if (r == 0 && diff->is_energy)
		r = find_uncertainties(diff, model, selected, rows, after);
	return r ?: add_no_stack(diff, model, stacks.no_stack, after);
}

/* What samples count together, for each of them. */
static double count_per_event(
	const struct diff *diff, const struct model *model, const struct selected *selected)
{
	uint64_t events = 0;

	if (diff->options.weight == MODEL_WEIGHT_CPU && !model->counts_energy)
		return 1;
	for (size_t i = 0; i < model->samples.count; i++)
		events += selected->samples[i];
	return events ? (double)selected->count / (double)events : 1;
}

static void describe_side(const struct diff *diff, struct diff_side *side,
	const struct model *model, const struct selected *selected)
{
	uint64_t period = model_has_time(model) ? model_sample_weight_ns(model) : 0;
	double weight = model->counts_energy ? 1e-6 : (double)period / NS_PER_S;
	uint64_t seen = model->stats.values.samples, lost = model->stats.values.samples_lost;

	*side = (struct diff_side){
		.samples = selected->count,
		.duration_ns = model_duration_ns(model),
		.has_duration = model_has_duration(model),
		.time_ns = selected->count * period,
		.unit_ns = period,
		.energy_j = model->counts_energy ? (double)selected->count / 1e6 : 0,
		.per_event = count_per_event(diff, model, selected),
		.sample_weight = weight,
		.lost_share = model->stats.present && seen + lost
				      ? (double)lost / (double)(seen + lost)
				      : NAN,
	};
	if (diff->options.per_second)
		side->sample_weight =
			side->duration_ns ? weight * NS_PER_S / (double)side->duration_ns : 0;
}

uint64_t diff_row_before(const struct diff *diff, const struct diff_row *row)
{
	return diff->options.sort == BREAKDOWN_SORT_SELF ? row->self_before : row->total_before;
}

uint64_t diff_row_after(const struct diff *diff, const struct diff_row *row)
{
	return diff->options.sort == BREAKDOWN_SORT_SELF ? row->self_after : row->total_after;
}

static uint64_t events_of(const struct diff_side *side, uint64_t count)
{
	return (uint64_t)((double)count / side->per_event + 0.5);
}

/* Did the time, or the energy, change? */
static double test_counts(const struct diff *diff, uint64_t before, uint64_t after)
{
	const struct diff_side *one = &diff->before, *other = &diff->after;

	if (!diff->has_time)
		return NAN;
	return statistics_two_counts(events_of(one, before), one->sample_weight * one->per_event,
		events_of(other, after), other->sample_weight * other->per_event);
}

static double share_of(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

static double time_change(const struct diff *diff, uint64_t before, uint64_t after)
{
	if (!diff->has_time)
		return NAN;
	return (double)after * diff->after.sample_weight -
	       (double)before * diff->before.sample_weight;
}

struct energy_uncertainty diff_change_uncertainty(const struct diff *diff,
	const struct energy_uncertainty *before, const struct energy_uncertainty *after)
{
	/* Of recordings of one second, or of one second of each: counts are microjoules. */
	double one = before->energy_j * diff->before.sample_weight * 1e6;
	double other = after->energy_j * diff->after.sample_weight * 1e6;

	if (isnan(one))
		return *before;
	if (isnan(other))
		return *after;
	if (one == 0 && other == 0)
		return (struct energy_uncertainty){NAN, ENERGY_DOUBT_SHORT};
	return (struct energy_uncertainty){.energy_j = sqrt(one * one + other * other)};
}

static void test_row(const struct diff *diff, struct diff_row *row)
{
	const struct diff_side *before = &diff->before, *after = &diff->after;
	uint64_t k1 = diff_row_before(diff, row), k2 = diff_row_after(diff, row);

	row->share_change = share_of(k2, after->samples) - share_of(k1, before->samples);
	row->share_q = statistics_two_proportions(events_of(before, k1),
		events_of(before, before->samples), events_of(after, k2),
		events_of(after, after->samples));
	row->time_change = time_change(diff, k1, k2);
	row->time_q = test_counts(diff, k1, k2);
}

/* Corrects for many rows; those that have no samples of the tested kind on either side are no
 * hypotheses. */
static int correct_rows(struct diff *diff)
{
	_cleanup_free_ double *share = calloc(diff->rows.count + 1, sizeof(*share));
	_cleanup_free_ double *time = calloc(diff->rows.count + 1, sizeof(*time));
	size_t tested = 0;
	int r = share && time ? 0 : -ENOMEM;

	if (r < 0)
		return r;
	array_foreach (&diff->rows, row) {
		if (!diff_row_before(diff, row) && !diff_row_after(diff, row))
			continue;
		share[tested] = row->share_q;
		time[tested++] = row->time_q;
	}
	r = r ?: statistics_benjamini_hochberg(share, tested);
	if (diff->has_time)
		r = r ?: statistics_benjamini_hochberg(time, tested);
	tested = 0;
	array_foreach (&diff->rows, row) {
		if (!diff_row_before(diff, row) && !diff_row_after(diff, row))
			continue;
		row->share_q = share[tested];
		row->time_q = time[tested++];
	}
	return r;
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct diff_row *a = left, *b = right;
	const struct diff *diff = context;
	double one = fabs(diff->has_time ? a->time_change : a->share_change);
	double other = fabs(diff->has_time ? b->time_change : b->share_change);
	int r;

	if (one != other)
		return one > other ? -1 : 1;
	r = strcmp(a->name, b->name);
	r = r ?: strcmp(a->module, b->module);
	return r ?: strcmp(a->place, b->place);
}

static void drop_empty_rows(struct diff *diff)
{
	size_t kept = 0;

	array_foreach (&diff->rows, row) {
		if (row->total_before || row->total_after)
			diff->rows.items[kept++] = *row;
	}
	diff->rows.count = kept;
}

static int compare_sides(struct diff *diff)
{
	const struct diff_side *before = &diff->before, *after = &diff->after;
	int r;

	diff->has_time = before->sample_weight > 0 && after->sample_weight > 0;
	diff->total_time_change = time_change(diff, before->samples, after->samples);
	diff->total_time_p = test_counts(diff, before->samples, after->samples);
	drop_empty_rows(diff);
	array_foreach (&diff->rows, row)
		test_row(diff, row);
	r = correct_rows(diff);
	if (diff->rows.count)
		qsort_r(diff->rows.items, diff->rows.count, sizeof(*diff->rows.items), compare_rows,
			diff);
	return r;
}

int diff_init(struct diff *diff, const struct diff_options *options, const struct model *before,
	const struct selected *before_selected, const struct model *after,
	const struct selected *after_selected)
{
	int r = 0;

	*diff = (struct diff){
		.options = *options,
		.is_energy = before->counts_energy && after->counts_energy,
	};
	describe_side(diff, &diff->before, before, before_selected);
	describe_side(diff, &diff->after, after, after_selected);
	r = r ?: count_side(diff, before, before_selected, false);
	r = r ?: count_side(diff, after, after_selected, true);
	r = r ?: compare_sides(diff);
	if (r < 0)
		diff_done(diff);
	return r;
}

void diff_done(struct diff *diff)
{
	array_done(&diff->rows);
	intern_done(&diff->names);
}

bool diff_row_is_significant(const struct diff *diff, const struct diff_row *row)
{
	return (diff->has_time ? row->time_q : row->share_q) <= DIFF_SIGNIFICANT;
}

void diff_find_regression(
	const struct diff *diff, double percent, struct diff_regression *ret_regression)
{
	double all = (double)diff->before.samples * diff->before.sample_weight;
	struct diff_regression found = {0};
	double worst = 0;

	found.total_percent = all > 0 ? 100 * diff->total_time_change / all : 0;
	found.total = found.total_percent > percent && diff->total_time_p <= DIFF_SIGNIFICANT;
	array_foreach (&diff->rows, row) {
		double slower = all > 0 ? 100 * row->time_change / all : 0;

		if (slower <= percent || slower <= worst || row->time_q > DIFF_SIGNIFICANT)
			continue;
		worst = found.row_percent = slower;
		found.row = row;
	}
	*ret_regression = found;
}
