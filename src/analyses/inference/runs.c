/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/inference/runs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/program/experts.h"
#include "analyses/program/range_fields.h"

static const char *const label_names[RUN_LABEL_MAX] = {
	[RUN_BATCH] = "batch_size",
	[RUN_CONTEXT] = "context_length",
	[RUN_PARAMETERS] = "parameters",
	[RUN_ACTIVE] = "active_parameters",
	[RUN_EXPERTS] = "experts",
};

static const char *const figure_names[RUN_FIGURE_MAX] = {
	[RUN_TOKENS_PER_S] = "tokens_per_s",
	[RUN_TTFT_NS] = "ttft_p50_ns",
	[RUN_TPOT_NS] = "tpot_p50_ns",
	[RUN_WATTS] = "average_w",
	[RUN_JOULES_PER_TOKEN] = "joules_per_token",
};

const char *run_label_name(enum run_label label)
{
	return label_names[label];
}

const char *run_figure_name(enum run_figure figure)
{
	return figure_names[figure];
}

enum run_label run_label_from_string(const char *name, size_t length)
{
	for (int i = 0; i < RUN_LABEL_MAX; i++) {
		if (strlen(label_names[i]) == length && memcmp(label_names[i], name, length) == 0)
			return (enum run_label)i;
	}
	return RUN_LABEL_MAX;
}

/* ---- what a run is ---- */

double kv_cache_bytes(double layers, double tokens, double heads, double head_size,
	double number_bytes, double batch)
{
	return 2 * layers * tokens * heads * head_size * number_bytes * batch;
}

/* Numbers that only the cache of keys and values is made of. */
enum { CACHE_LAYERS, CACHE_HEADS, CACHE_HEAD_SIZE, CACHE_NUMBER_BYTES, CACHE_MAX };

static void take_mark(struct run *run, const struct model *model, const struct model_range *mark,
	double cache[CACHE_MAX])
{
	static const char *const names[CACHE_MAX] = {
		"layers", "kv_heads", "head_dim", "kv_number_bytes"};

	if (*range_text(model, mark, "model"))
		run->model = range_text(model, mark, "model");
	if (*range_text(model, mark, "precision"))
		run->precision = range_text(model, mark, "precision");
	for (int i = 0; i < RUN_LABEL_MAX; i++)
		range_double(model, mark, label_names[i], &run->labels[i]);
	for (int i = 0; i < CACHE_MAX; i++)
		range_double(model, mark, names[i], &cache[i]);
}

/* The model that makes candidates in assisted decoding is not what a run is of. */
static bool is_smaller(
	const struct run *run, const struct model *model, const struct model_range *mark)
{
	double parameters = NAN;

	range_double(model, mark, label_names[RUN_PARAMETERS], &parameters);
	return strcmp(mark->name, "configuration") == 0 && parameters < run->labels[RUN_PARAMETERS];
}

/* What the program says of its run counts more than what hooks found. */
static void take_marks(struct run *run, const struct model *model, double cache[CACHE_MAX])
{
	static const struct {
		const char *domain, *name;
	} marks[] = {{"sonde.model", "structure"}, {"sonde.model", "configuration"},
		{"sonde.run", "run"}};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		array_foreach (&model->ranges, mark) {
			if (mark->is_mark && range_is(mark, marks[i].domain, marks[i].name) &&
				!is_smaller(run, model, mark))
				take_mark(run, model, mark, cache);
		}
	}
}

static void take_requests(struct run *run, const struct inference *inference)
{
	double batch = NAN, context = NAN;

	array_foreach (&inference->requests, request) {
		double sequences = (double)MAX(request->batch, 1ULL);
		double tokens =
			(double)request->tokens + (double)request->prompt_tokens / sequences;

		if (request->batch)
			batch = fmax(batch, (double)request->batch);
		if (request->prompt_known)
			context = fmax(context, tokens);
	}
	if (isnan(run->labels[RUN_BATCH]))
		run->labels[RUN_BATCH] = batch;
	if (isnan(run->labels[RUN_CONTEXT]))
		run->labels[RUN_CONTEXT] = context;
}

static int take_experts(struct run *run, const struct model *model)
{
	_cleanup_experts_ struct experts experts = {0};
	double balance = 0, entropy = 0, load = 0, count = 0;
	int r = experts_init(&experts, model);

	array_foreach (&experts.layers, layer) {
		if (!layer->spread.chosen)
			continue;
		balance += layer->spread.balance;
		entropy +=
			layer->experts > 1 ? layer->spread.entropy_bits / log2(layer->experts) : 1;
		load += layer->load_balance;
		count++;
		if (isnan(run->labels[RUN_EXPERTS]))
			run->labels[RUN_EXPERTS] = layer->experts;
	}
	run->expert_balance = count > 0 ? balance / count : NAN;
	run->expert_entropy = count > 0 ? entropy / count : NAN;
	run->expert_load = count > 0 ? load / count : NAN;
	return r;
}

int run_describe(struct run *run, const struct model *model, const struct inference *inference)
{
	double cache[CACHE_MAX] = {NAN, NAN, NAN, NAN};
	int r;

	run->model = run->precision = "";
	for (int i = 0; i < RUN_LABEL_MAX; i++)
		run->labels[i] = NAN;
	for (int i = 0; i < RUN_FIGURE_MAX; i++)
		run->figures[i] = NAN;
	take_marks(run, model, cache);
	take_requests(run, inference);
	r = take_experts(run, model);
	if (r < 0)
		return r;
	run->figures[RUN_TOKENS_PER_S] = inference->tokens_per_s;
	run->figures[RUN_TTFT_NS] = inference->metrics[INFERENCE_TTFT].p50;
	run->figures[RUN_TPOT_NS] = inference->metrics[INFERENCE_TPOT].p50;
	run->output_tokens = (double)inference->output_tokens;
	run->kv_cache_bytes = kv_cache_bytes(cache[CACHE_LAYERS], run->labels[RUN_CONTEXT],
		cache[CACHE_HEADS], cache[CACHE_HEAD_SIZE], cache[CACHE_NUMBER_BYTES],
		isnan(run->labels[RUN_BATCH]) ? 1 : run->labels[RUN_BATCH]);
	return 0;
}

/* ---- the best ones ---- */

/* More is better of one figure alone. */
static double cost_of(const struct run *run, enum run_figure figure)
{
	return figure == RUN_TOKENS_PER_S ? -run->figures[figure] : run->figures[figure];
}

uint32_t runs_best(const struct runs *runs, enum run_figure figure)
{
	uint32_t best = MODEL_NONE;

	for (uint32_t i = 0; i < runs->items.count; i++) {
		double cost = cost_of(&runs->items.items[i], figure);

		if (!isnan(cost) &&
			(best == MODEL_NONE || cost < cost_of(&runs->items.items[best], figure)))
			best = i;
	}
	return best;
}

static bool all_have(const struct runs *runs, enum run_figure figure)
{
	array_foreach (&runs->items, run) {
		if (isnan(run->figures[figure]))
			return false;
	}
	return true;
}

/* As good in both, and better in one. */
static bool beats(const struct run *a, const struct run *b, enum run_figure figure)
{
	double speed_a = cost_of(a, RUN_TOKENS_PER_S), speed_b = cost_of(b, RUN_TOKENS_PER_S);
	double cost_a = cost_of(a, figure), cost_b = cost_of(b, figure);

	return speed_a <= speed_b && cost_a <= cost_b && (speed_a < speed_b || cost_a < cost_b);
}

static int compare_speeds(const void *left, const void *right)
{
	const struct run *a = *(struct run *const *)left, *b = *(struct run *const *)right;
	double of_a = a->figures[RUN_TOKENS_PER_S], of_b = b->figures[RUN_TOKENS_PER_S];

	return of_a < of_b ? -1 : of_a > of_b;
}

/* Twice the area of the triangle that a point makes with the chord: its distance, but for the
 * chord's length, which is the same for all. */
static void mark_knee(struct run **front, size_t count, enum run_figure figure)
{
	const struct run *first = front[0], *last = front[count - 1];
	double width = last->figures[RUN_TOKENS_PER_S] - first->figures[RUN_TOKENS_PER_S];
	double height = last->figures[figure] - first->figures[figure];
	double farthest = 0;
	struct run *knee = NULL;

	if (count < 3 || width == 0 || height == 0)
		return;
	for (size_t i = 1; i + 1 < count; i++) {
		double x =
			(front[i]->figures[RUN_TOKENS_PER_S] - first->figures[RUN_TOKENS_PER_S]) /
			width;
		double y = (front[i]->figures[figure] - first->figures[figure]) / height;

		if (fabs(x - y) > farthest) {
			farthest = fabs(x - y);
			knee = front[i];
		}
	}
	if (knee)
		knee->is_knee = true;
}

int runs_find_optimal(struct runs *runs)
{
	enum run_figure figure =
		all_have(runs, RUN_JOULES_PER_TOKEN) ? RUN_JOULES_PER_TOKEN : RUN_TTFT_NS;
	_cleanup_free_ struct run **front = calloc(runs->items.count + 1, sizeof(struct run *));
	size_t count = 0;

	if (!front)
		return -ENOMEM;
	array_foreach (&runs->items, run) {
		run->is_optimal =
			!isnan(run->figures[figure]) && !isnan(run->figures[RUN_TOKENS_PER_S]);
		array_foreach (&runs->items, other)
			run->is_optimal &= !beats(other, run, figure);
		if (run->is_optimal)
			front[count++] = run;
	}
	if (count) {
		qsort(front, count, sizeof(struct run *), compare_speeds);
		mark_knee(front, count, figure);
	}
	return (int)count;
}

/* ---- series ---- */

/* Alike in all but what they are compared by. A longer context of a batch is no other batch. */
static bool alike(const struct run *a, const struct run *b, enum run_label by)
{
	if (strcmp(a->model, b->model) != 0)
		return false;
	if (by != RUN_LABEL_MAX && strcmp(a->precision, b->precision) != 0)
		return false;
	for (int i = 0; i < RUN_LABEL_MAX; i++) {
		if (i != (int)by && !run_labels_are_equal(a->labels[i], b->labels[i]))
			return false;
	}
	return true;
}

static bool differs(const struct run *a, const struct run *b, enum run_label by)
{
	if (by == RUN_LABEL_MAX)
		return strcmp(a->precision, b->precision) != 0;
	return !isnan(a->labels[by]) && !isnan(b->labels[by]) && a->labels[by] != b->labels[by];
}

struct by_label {
	const struct runs *runs;
	enum run_label by;
};

static int compare_labels(const void *left, const void *right, void *context)
{
	const struct by_label *order = context;
	uint32_t of_a = *(const uint32_t *)left, of_b = *(const uint32_t *)right;

	if (order->by != RUN_LABEL_MAX) {
		double a = order->runs->items.items[of_a].labels[order->by];
		double b = order->runs->items.items[of_b].labels[order->by];

		if (a != b)
			return a < b ? -1 : 1;
	}
	return of_a < of_b ? -1 : of_a > of_b;
}

/* What the series is compared by, its best, and where a context saturates. */
static void judge(struct run_series *series, const struct runs *runs)
{
	const struct run *items = runs->items.items;
	double first;

	series->figure = RUN_JOULES_PER_TOKEN;
	array_foreach (&series->runs, index) {
		if (isnan(items[*index].figures[RUN_JOULES_PER_TOKEN]))
			series->figure = series->by == RUN_CONTEXT ? RUN_TPOT_NS : RUN_TOKENS_PER_S;
	}
	series->best = series->saturated = MODEL_NONE;
	first = items[series->runs.items[0]].figures[series->figure];
	array_foreach (&series->runs, index) {
		const struct run *run = &items[*index];

		if (isnan(run->figures[series->figure]))
			continue;
		if (series->best == MODEL_NONE ||
			cost_of(run, series->figure) <
				cost_of(&items[series->best], series->figure))
			series->best = *index;
		if (series->by == RUN_CONTEXT && series->saturated == MODEL_NONE &&
			run->figures[series->figure] >= RUN_SATURATION * first)
			series->saturated = *index;
	}
}

/* Of a run with all later ones that differ in this alone, unless an earlier run has them. */
static int add_series(struct run_comparison *comparison, const struct runs *runs, uint32_t first,
	enum run_label by)
{
	const struct run *run = &runs->items.items[first];
	struct run_series series = {.by = by};
	struct by_label order = {runs, by};
	int r;

	for (uint32_t i = 0; i < first; i++) {
		if (alike(&runs->items.items[i], run, by) &&
			differs(&runs->items.items[i], run, by))
			return 0;
	}
	r = array_append(&series.runs, first);
	for (uint32_t i = first + 1; r == 0 && i < runs->items.count; i++) {
		const struct run *other = &runs->items.items[i];

		if (alike(other, run, by) && differs(other, run, by))
			r = array_append(&series.runs, i);
	}
	if (r == 0 && series.runs.count > 1) {
		qsort_r(series.runs.items, series.runs.count, sizeof(*series.runs.items),
			compare_labels, &order);
		judge(&series, runs);
		r = array_append(&comparison->series, series);
		if (r == 0)
			return 0;
	}
	array_done(&series.runs);
	return r;
}

int run_comparison_init(struct run_comparison *comparison, const struct runs *runs)
{
	static const enum run_label labels[] = {RUN_BATCH, RUN_CONTEXT, RUN_LABEL_MAX};
	int r = 0;

	*comparison = (struct run_comparison){0};
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
		for (uint32_t first = 0; r == 0 && first < runs->items.count; first++)
			r = add_series(comparison, runs, first, labels[i]);
	}
	if (r == 0)
		r = runs_find_precisions(comparison, runs);
	if (r == 0)
		r = runs_find_mixtures(comparison, runs);
	if (r < 0)
		run_comparison_done(comparison);
	return r;
}

void run_comparison_done(struct run_comparison *comparison)
{
	array_foreach (&comparison->series, series)
		array_done(&series->runs);
	array_done(&comparison->series);
	array_done(&comparison->precisions);
	array_done(&comparison->mixtures);
}

/* ---- what may make them differ besides what they are ---- */

static double state_of(const struct run *run, enum span_energy_side side, bool is_clock)
{
	return is_clock ? run->states[side].mean_mhz : run->states[side].mean_c;
}

/* The least and the most, where both are known and are not one. */
static void find_extremes(const struct runs *runs, enum span_energy_side side, bool is_clock,
	uint32_t *ret_least, uint32_t *ret_most)
{
	uint32_t least = MODEL_NONE, most = MODEL_NONE;

	for (uint32_t i = 0; i < runs->items.count; i++) {
		double value = state_of(&runs->items.items[i], side, is_clock);

		if (isnan(value))
			continue;
		if (least == MODEL_NONE ||
			value < state_of(&runs->items.items[least], side, is_clock))
			least = i;
		if (most == MODEL_NONE ||
			value > state_of(&runs->items.items[most], side, is_clock))
			most = i;
	}
	*ret_least = least;
	*ret_most = most;
}

struct run_states runs_states(const struct runs *runs, enum span_energy_side side)
{
	const struct run *items = runs->items.items;
	struct run_states states;

	find_extremes(runs, side, false, &states.coolest, &states.warmest);
	if (states.warmest == MODEL_NONE ||
		items[states.warmest].states[side].mean_c -
				items[states.coolest].states[side].mean_c <=
			RUN_ALIKE_C)
		states.coolest = states.warmest = MODEL_NONE;
	find_extremes(runs, side, true, &states.slowest, &states.fastest);
	if (states.fastest == MODEL_NONE ||
		items[states.fastest].states[side].mean_mhz <=
			(1 + RUN_ALIKE_CLOCK) * items[states.slowest].states[side].mean_mhz)
		states.slowest = states.fastest = MODEL_NONE;
	return states;
}
