/* SPDX-License-Identifier: Apache-2.0 */
/* Energy: rails that are the same, and their intervals, in order and within the windows. */
#include "model/energy.h"

#include <math.h>
#include <stdlib.h>

#include "model/builder/internal.h"

void builder_energy_done(struct model_builder *builder)
{
	array_done(&builder->energy_ids);
	array_done(&builder->energy_intervals);
	array_done(&builder->energy_states);
}

/* ---- what the capture says ---- */

/* Texts are interned: equal ones are one pointer. */
static bool is_same_rail(const struct model_energy_domain *a, const struct model_energy_domain *b)
{
	return a->host == b->host && a->source == b->source && a->name == b->name &&
	       a->device == b->device && a->is_replayed == b->is_replayed;
}

static uint32_t domain_of(const struct model_builder *builder, uint32_t id)
{
	return id < builder->energy_ids.count ? builder->energy_ids.items[id] : MODEL_NONE;
}

static int map_id(struct model_builder *builder, uint32_t id, uint32_t index)
{
	int r = 0;

	while (r == 0 && builder->energy_ids.count <= id)
		r = array_append(&builder->energy_ids, MODEL_NONE);
	if (r == 0)
		builder->energy_ids.items[id] = index;
	return r;
}

static int keep_domain(
	struct model_builder *builder, uint32_t id, const struct model_energy_domain *domain)
{
	struct model *model = builder->model;
	uint32_t index = domain_of(builder, id);

	for (uint32_t i = 0; index == MODEL_NONE && i < model->energy_domains.count; i++) {
		if (is_same_rail(&model->energy_domains.items[i], domain))
			index = i;
	}
	if (index == MODEL_NONE) {
		index = (uint32_t)model->energy_domains.count;
		return array_append(&model->energy_domains, *domain) ?: map_id(builder, id, index);
	}
	model->energy_domains.items[index] = *domain;
	return map_id(builder, id, index);
}

int builder_visit_energy_domain(void *context, const struct wire_energy_domain *given)
{
	struct model_builder *builder = context;
	uint32_t before = domain_of(builder, given->id);
	struct model_energy_domain domain = {
		.parent =
			given->parent < given->id ? domain_of(builder, given->parent) : MODEL_NONE,
		.part = (uint8_t)given->part,
		.quality = (uint8_t)given->quality,
		.is_replayed = given->is_replayed,
		.period_ns = given->period_ns,
		.cost_ns = given->cost_ns,
		.relative_error = given->relative_error,
		.idle_w = given->idle_w,
		.limit_w = given->limit_w > 0 ? given->limit_w : NAN,
		.host = builder->host ? builder->host : "",
		.made_thread = before == MODEL_NONE
				       ? MODEL_NONE
				       : builder->model->energy_domains.items[before].made_thread,
	};
	int r = builder_keep(builder, given->name, &domain.name);

	r = r ?: builder_keep(builder, given->source, &domain.source);
	r = r ?: builder_keep(builder, given->device, &domain.device);
	r = r ?: builder_keep(builder, given->cpus ? given->cpus : "", &domain.cpus);
	return r ?: keep_domain(builder, given->id, &domain);
}

int builder_visit_energy_interval(void *context, const struct wire_energy_interval *interval)
{
	struct model_builder *builder = context;
	struct wire_energy_interval kept = *interval;

	kept.domain = domain_of(builder, interval->domain);
	if (builder->paused || kept.domain == MODEL_NONE || kept.end_ns <= kept.start_ns)
		return 0;
	return array_append(&builder->energy_intervals, kept);
}

int builder_visit_energy_state(void *context, const struct wire_energy_state *state)
{
	struct model_builder *builder = context;
	struct wire_energy_state kept = *state;

	kept.domain = domain_of(builder, state->domain);
	if (builder->paused || kept.domain == MODEL_NONE)
		return 0;
	return array_append(&builder->energy_states, kept);
}

int builder_visit_energy_absence(void *context, const struct wire_energy_absence *absence)
{
	struct model_builder *builder = context;
	struct model_energy_absence kept;
	int r = builder_keep(builder, absence->source, &kept.source);

	r = r ?: builder_keep(builder, absence->reason, &kept.reason);
	if (r < 0)
		return r;
	array_foreach (&builder->model->energy_absences, known) {
		if (known->source == kept.source && known->reason == kept.reason)
			return 0;
	}
	return array_append(&builder->model->energy_absences, kept);
}

void builder_forget_energy(struct model_builder *builder, uint64_t before_ns)
{
	size_t kept = 0;

	array_foreach (&builder->energy_intervals, interval) {
		if (interval->end_ns > before_ns)
			builder->energy_intervals.items[kept++] = *interval;
	}
	builder->energy_intervals.count = kept;
	kept = 0;
	array_foreach (&builder->energy_states, state) {
		if (state->time_ns >= before_ns)
			builder->energy_states.items[kept++] = *state;
	}
	builder->energy_states.count = kept;
}

/* ---- the model ---- */

static int compare_intervals(const void *left, const void *right)
{
	const struct wire_energy_interval *a = left, *b = right;

	if (a->domain != b->domain)
		return a->domain < b->domain ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static int compare_states(const void *left, const void *right)
{
	const struct wire_energy_state *a = left, *b = right;

	if (a->domain != b->domain)
		return a->domain < b->domain ? -1 : 1;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

/* The parts that lie in windows; all of it where there are none. */
static int add_interval(struct model *model, const struct model_energy_interval *interval)
{
	int r = 0;

	if (!model->whole_window_count)
		return array_append(&model->energy_intervals, *interval);
	array_foreach (&model->windows, window) {
		struct model_energy_interval part = *interval;

		if (window->begin_ns >= interval->end_ns)
			break;
		if (model_energy_cut(&part, window->begin_ns, window->end_ns))
			r = r ?: array_append(&model->energy_intervals, part);
	}
	return r;
}

/* What two recordings of one host measured of one rail at the same time counts once. */
static int add_intervals(struct model_builder *builder, uint64_t from_ns)
{
	uint64_t end_ns = 0;
	uint32_t domain = MODEL_NONE;
	int r = 0;

	array_foreach (&builder->energy_intervals, raw) {
		struct model_energy_interval interval = {
			.start_ns = raw->start_ns,
			.end_ns = raw->end_ns,
			.energy_j = raw->gap ? 0 : (double)raw->energy_nj / 1e9,
			.busy_ns = raw->busy_ns == UINT64_MAX ? NAN : (double)raw->busy_ns,
			.domain = raw->domain,
			.gap = (uint8_t)raw->gap,
		};

		if (raw->domain != domain)
			end_ns = from_ns;
		domain = raw->domain;
		if (model_energy_cut(&interval, end_ns, UINT64_MAX))
			r = r ?: add_interval(builder->model, &interval);
		end_ns = MAX(end_ns, raw->end_ns);
	}
	return r;
}

int builder_resolve_energy(struct model_builder *builder, uint64_t from_ns)
{
	struct model *model = builder->model;
	int r;

	if (builder->energy_intervals.count)
		qsort(builder->energy_intervals.items, builder->energy_intervals.count,
			sizeof(*builder->energy_intervals.items), compare_intervals);
	if (builder->energy_states.count)
		qsort(builder->energy_states.items, builder->energy_states.count,
			sizeof(*builder->energy_states.items), compare_states);
	r = add_intervals(builder, from_ns);
	array_foreach (&builder->energy_states, state) {
		const struct model_energy_state kept = {
			.time_ns = state->time_ns,
			.domain = state->domain,
			.temperature_mc = state->temperature_mc,
			.clock_mhz = state->clock_mhz,
		};

		if (state->time_ns >= from_ns && builder_is_chosen(builder, state->time_ns))
			r = r ?: array_append(&model->energy_states, kept);
	}
	model_energy_index(model);
	return r;
}
