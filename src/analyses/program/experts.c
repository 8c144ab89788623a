/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks tell of a layer first how many experts it has, moe.routed, then how often they were chosen
 * since the reading before, moe.experts and the others.
 */
#include "analyses/program/experts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/program/range_fields.h"
#include "base/map.h"

#define PREFIX "moe."
/* Of one layer, and of all: no model has more, and a damaged capture is not believed. */
#define MAX_EXPERTS 65536ULL
#define MAX_COUNTS  (1U << 22)

struct layer_key {
	uint64_t process, number;
};

struct pair_key {
	uint32_t layer, first, second, reserved;
};

/* Of each layer, the latest reading of its marks. */
struct open_reading {
	bool is_open;
	struct expert_reading reading;
	ARRAY_OF(uint64_t) counts;
};

struct work {
	const struct model *model;
	struct experts *experts;
	struct intern layers, pairs;
	ARRAY_OF(struct open_reading) open; /* by layer */
};

/* By hooks for vLLM, and by watched models. */
static bool is_counted(const char *domain)
{
	return strcmp(domain, "vllm") == 0 || strcmp(domain, "sonde.model") == 0;
}

static struct expert_spread spread_of(const uint64_t *counts, uint32_t count)
{
	struct expert_spread spread = {.minimum = count ? UINT64_MAX : 0};
	double squares = 0;

	for (uint32_t i = 0; i < count; i++) {
		spread.chosen += counts[i];
		spread.used += counts[i] != 0;
		spread.minimum = MIN(spread.minimum, counts[i]);
		spread.maximum = MAX(spread.maximum, counts[i]);
	}
	if (!count)
		return spread;
	spread.mean = (double)spread.chosen / count;
	for (uint32_t i = 0; i < count; i++) {
		double difference = (double)counts[i] - spread.mean;

		squares += difference * difference;
	}
	spread.deviation = sqrt(squares / count);
	spread.balance = spread.maximum ? spread.mean / (double)spread.maximum : 0;
	for (uint32_t i = 0; i < count; i++) {
		double share = (double)counts[i] / (double)spread.chosen;

		spread.entropy_bits -= counts[i] ? share * log2(share) : 0;
	}
	return spread;
}

static int find_layer(struct work *work, const struct model_range *mark, uint32_t *ret_layer)
{
	struct layer_key key = {.process = mark->process};
	int r;

	if (!range_u64(work->model, mark, "layer", &key.number))
		return -ENOENT;
	r = intern_add(&work->layers, &key, sizeof(key), ret_layer);
	if (r > 0)
		r = array_append(&work->experts->layers, (struct expert_layer){
								 .name = "",
								 .number = key.number,
								 .process = mark->process,
							 });
	if (r == 0 && work->open.count <= *ret_layer)
		r = array_append(&work->open, (struct open_reading){0});
	return r < 0 ? r : 0;
}

static int end_reading(struct work *work, struct open_reading *open)
{
	if (!open->is_open)
		return 0;
	open->is_open = false;
	open->reading.spread = spread_of(open->counts.items, (uint32_t)open->counts.count);
	return array_append(&work->experts->readings, open->reading);
}

/* The counts of a layer lie together: those of more experts than before go to the end. */
static int set_experts(struct work *work, struct expert_layer *layer, uint32_t experts)
{
	size_t first = work->experts->counts.count;
	int r = 0;

	if (experts <= layer->experts || first + experts > MAX_COUNTS)
		return 0;
	for (uint32_t i = 0; r == 0 && i < experts; i++) {
		bool is_known = i < layer->experts;
		size_t from = layer->first_count + i;

		r = array_append(
			&work->experts->counts, is_known ? work->experts->counts.items[from] : 0);
		if (r == 0)
			r = array_append(&work->experts->probabilities,
				is_known ? work->experts->probabilities.items[from] : 0);
	}
	if (r < 0)
		return r;
	layer->first_count = first;
	layer->experts = experts;
	return 0;
}

/* What the router's probabilities were, where it tells them. */
static void add_router(
	const struct work *work, struct expert_layer *layer, const struct model_range *mark)
{
	uint64_t tokens = range_u64_or_0(work->model, mark, "routed_tokens");
	double entropy_bits;

	if (!tokens || !range_double(work->model, mark, "router_entropy_bits", &entropy_bits) ||
		!(entropy_bits >= 0))
		return;
	layer->routed_tokens += tokens;
	layer->router_entropy_bits += entropy_bits; /* the sum, until all is read */
}

static int begin_reading(struct work *work, uint32_t index, const struct model_range *mark)
{
	struct expert_layer *layer = &work->experts->layers.items[index];
	struct open_reading *open = &work->open.items[index];
	uint64_t experts = range_u64_or_0(work->model, mark, "experts");
	int r = end_reading(work, open);

	layer->name = range_text(work->model, mark, "name");
	layer->top_k = (uint32_t)MIN(range_u64_or_0(work->model, mark, "top_k"), MAX_EXPERTS);
	layer->calls += range_u64_or_0(work->model, mark, "calls");
	layer->tokens += range_u64_or_0(work->model, mark, "tokens");
	layer->outside += range_u64_or_0(work->model, mark, "outside");
	add_router(work, layer, mark);
	layer->pairs_left_out |= range_u64_or_0(work->model, mark, "pairs_left_out") != 0;
	r = r ?: set_experts(work, layer, (uint32_t)MIN(experts, MAX_EXPERTS));
	open->is_open = true;
	open->reading = (struct expert_reading){.layer = index, .time_ns = mark->start_ns};
	array_clear(&open->counts);
	for (uint32_t i = 0; r == 0 && i < layer->experts; i++)
		r = array_append(&open->counts, 0);
	return r;
}

static double probability_of(const struct model_range_field *field)
{
	double value = 0;

	if (field->type == WIRE_RANGE_DOUBLE)
		memcpy(&value, &field->value, sizeof(value));
	return value >= 0 && isfinite(value) ? value : 0;
}

/* Fields that are named by a number below the limit: of experts, or bins. */
static bool numbered(const struct model_range_field *field, uint64_t limit, uint32_t *ret_number)
{
	char *end;
	unsigned long number;

	if (field->name[0] < '0' || field->name[0] > '9')
		return false;
	number = strtoul(field->name, &end, 10);
	if (*end || number >= limit)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

static int add_pair(struct work *work, uint32_t layer, uint32_t one, uint32_t other, uint64_t count)
{
	const struct pair_key key = {
		.layer = layer, .first = MIN(one, other), .second = MAX(one, other)};
	uint32_t id;
	int r = intern_add(&work->pairs, &key, sizeof(key), &id);

	if (r > 0)
		r = array_append(&work->experts->pairs,
			(struct expert_pair){
				.layer = layer, .first = key.first, .second = key.second});
	if (r == 0)
		work->experts->pairs.items[id].count += count;
	return r < 0 ? r : 0;
}

static int take_counts(struct work *work, uint32_t index, const struct model_range *mark)
{
	const char *what = mark->name + strlen(PREFIX);
	struct expert_layer *layer = &work->experts->layers.items[index];
	struct open_reading *open = &work->open.items[index];
	bool is_pairs = strcmp(what, "pairs") == 0, is_weights = strcmp(what, "weights") == 0;
	bool is_probabilities = strcmp(what, "probabilities") == 0;
	uint64_t one = range_u64_or_0(work->model, mark, "expert");
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < mark->field_count; i++) {
		const struct model_range_field *field =
			&work->model->range_fields.items[mark->first_field + i];
		uint32_t number;

		if (field->type == WIRE_RANGE_TEXT ||
			!numbered(field, is_weights ? EXPERT_WEIGHT_BINS : layer->experts, &number))
			continue;
		if (is_probabilities) {
			work->experts->probabilities.items[layer->first_count + number] +=
				probability_of(field);
		} else if (is_weights) {
			layer->weights[number] += field->value;
		} else if (is_pairs) {
			if (one < layer->experts)
				r = add_pair(work, index, (uint32_t)one, number, field->value);
		} else {
			work->experts->counts.items[layer->first_count + number] += field->value;
			if (number < open->counts.count)
				open->counts.items[number] += field->value;
		}
	}
	return r;
}

static int take_mark(struct work *work, const struct model_range *mark)
{
	const char *what = mark->name + strlen(PREFIX);
	uint32_t layer;
	int r = find_layer(work, mark, &layer);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (strcmp(what, "routed") == 0)
		return begin_reading(work, layer, mark);
	if (strcmp(what, "captured") == 0)
		work->experts->layers.items[layer].captured = true;
	else if (strcmp(what, "lost") == 0)
		work->experts->layers.items[layer].lost_calls +=
			range_u64_or_0(work->model, mark, "calls");
	else
		return take_counts(work, layer, mark);
	return 0;
}

static int compare_pairs(const void *left, const void *right)
{
	const struct expert_pair *a = left, *b = right;

	if (a->layer != b->layer)
		return a->layer < b->layer ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a->second < b->second ? -1 : a->second > b->second;
}

static int compare_readings(const void *left, const void *right)
{
	const struct expert_reading *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->layer < b->layer ? -1 : a->layer > b->layer;
}

static int compare_layers(const void *left, const void *right)
{
	const struct expert_layer *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* They come in the order in which they were read. */
static int sort_layers(struct work *work)
{
	struct experts *experts = work->experts;
	uint32_t *places = calloc(experts->layers.count + 1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	if (experts->layers.count)
		qsort(experts->layers.items, experts->layers.count, sizeof(*experts->layers.items),
			compare_layers);
	for (uint32_t i = 0; i < experts->layers.count; i++) {
		const struct expert_layer *layer = &experts->layers.items[i];
		const struct layer_key key = {.process = layer->process, .number = layer->number};
		uint32_t id;

		if (intern_find(&work->layers, &key, sizeof(key), &id))
			places[id] = i;
	}
	array_foreach (&experts->pairs, pair)
		pair->layer = places[pair->layer];
	array_foreach (&experts->readings, reading)
		reading->layer = places[reading->layer];
	free(places);
	return 0;
}

static void balance_layer(const struct experts *experts, struct expert_layer *layer)
{
	const uint64_t *counts = layer->experts ? &experts->counts.items[layer->first_count] : NULL;
	double sum = 0;

	layer->spread = spread_of(counts, layer->experts);
	for (uint32_t i = 0; i < layer->experts; i++) {
		double share = (double)counts[i] / (double)layer->spread.chosen;

		sum += share *
		       (layer->routed_tokens
				       ? experts->probabilities.items[layer->first_count + i] /
						 (double)layer->routed_tokens
				       : share);
	}
	layer->load_balance = layer->spread.chosen ? sum * layer->experts : NAN;
	layer->router_entropy_bits =
		layer->routed_tokens ? layer->router_entropy_bits / (double)layer->routed_tokens
				     : NAN;
}

static int fill(struct work *work)
{
	struct experts *experts = work->experts;
	int r = 0;

	for (size_t i = 0; r == 0 && i < work->model->ranges.count; i++) {
		const struct model_range *mark = &work->model->ranges.items[i];

		if (mark->is_mark && is_counted(mark->domain) &&
			strncmp(mark->name, PREFIX, strlen(PREFIX)) == 0)
			r = take_mark(work, mark);
	}
	array_foreach (&work->open, open)
		r = r ?: end_reading(work, open);
	r = r ?: sort_layers(work);
	if (r < 0)
		return r;
	array_foreach (&experts->layers, layer)
		balance_layer(experts, layer);
	if (experts->pairs.count)
		qsort(experts->pairs.items, experts->pairs.count, sizeof(*experts->pairs.items),
			compare_pairs);
	if (experts->readings.count)
		qsort(experts->readings.items, experts->readings.count,
			sizeof(*experts->readings.items), compare_readings);
	return r;
}

int experts_init(struct experts *experts, const struct model *model)
{
	struct work work = {.model = model, .experts = experts};
	int r;

	*experts = (struct experts){0};
	r = fill(&work);
	array_foreach (&work.open, open)
		array_done(&open->counts);
	array_done(&work.open);
	intern_done(&work.layers);
	intern_done(&work.pairs);
	if (r < 0)
		experts_done(experts);
	return r;
}

void experts_done(struct experts *experts)
{
	array_done(&experts->layers);
	array_done(&experts->counts);
	array_done(&experts->probabilities);
	array_done(&experts->pairs);
	array_done(&experts->readings);
}

size_t experts_top(const struct experts *experts, const struct expert_layer *layer, size_t limit,
	uint32_t *ret_experts)
{
	const uint64_t *counts = layer->experts ? &experts->counts.items[layer->first_count] : NULL;
	size_t found = 0;

	/* A few of a few hundred: each is put into its place. */
	for (uint32_t expert = 0; expert < layer->experts; expert++) {
		size_t place = found;

		while (place && counts[ret_experts[place - 1]] < counts[expert])
			place--;
		if (!counts[expert] || place >= limit)
			continue;
		found += found < limit;
		for (size_t i = found - 1; i > place; i--)
			ret_experts[i] = ret_experts[i - 1];
		ret_experts[place] = expert;
	}
	return found;
}
