/* SPDX-License-Identifier: Apache-2.0 */
/* One tree of the rails of all sources: each rail once, below what contains it, with an id. */
#include <math.h>
#include <string.h>

#include "sources/energy/sampler_internal.h"

/* The same rail by another door, which was found before; -1. */
static int find_twin(const struct energy_sampler *sampler, const struct rail *rail)
{
	if (!is_rapl(rail->channel->source))
		return -1;
	for (unsigned i = 0; i < sampler->rail_count; i++) {
		const struct rail *other = &sampler->rails[i];

		if (other->channel && other->channel != rail->channel &&
			is_rapl(other->channel->source) && other->twin_of < 0 &&
			strcmp(found_rail(other)->name, found_rail(rail)->name) == 0)
			return (int)i;
	}
	return -1;
}

/* The smallest of other sources that contains it; -1. */
static int find_enclosing(const struct energy_sampler *sampler, const struct rail *rail)
{
	const struct energy_rail *inner = found_rail(rail);
	int best = -1, least = __builtin_popcount(ENERGY_ALL_PARTS) + 1;

	for (unsigned i = 0; i < sampler->rail_count; i++) {
		const struct rail *other = &sampler->rails[i];
		uint32_t encloses;
		int size;

		if (!other->channel || other == rail || other->twin_of >= 0)
			continue;
		encloses = found_rail(other)->encloses;
		size = __builtin_popcount(encloses);
		if (!(encloses & ENERGY_PART(inner->part)) || size >= least ||
			size <= __builtin_popcount(inner->encloses))
			continue;
		best = (int)i;
		least = size;
	}
	return best;
}

static void fill_domain(struct rail *rail)
{
	const struct energy_rail *found = found_rail(rail);

	rail->sampled.tick_ns = rail->channel->tick_ns;
	rail->sampled.domain = (struct wire_energy_domain){
		.part = found->part,
		.quality = found->quality,
		.name = found->name,
		.source = rail->channel->source->name,
		.device = found->device,
		.period_ns = atomic_load_explicit(
			&rail->channel->period_ns[rail->index], memory_order_relaxed),
		.cost_ns = rail->channel->cost_ns / rail->channel->found.count,
		.relative_error = found->relative_error,
		.idle_w = NAN,
		.limit_w = found->limit_w,
		.cpus = found->cpus,
	};
}

/* Ids for the rails that have none, parents first. */
static void place_rails(struct energy_sampler *sampler)
{
	bool goes_on = true;

	while (goes_on) {
		goes_on = false;
		for (unsigned i = 0; i < sampler->rail_count; i++) {
			struct rail *rail = &sampler->rails[i];
			uint32_t parent_id = WIRE_ENERGY_NO_DOMAIN;

			if (rail->sampled.domain.id || rail->twin_of >= 0)
				continue;
			if (rail->parent >= 0)
				parent_id = sampler->rails[rail->parent].sampled.domain.id;
			if (rail->parent >= 0 && !parent_id)
				continue;
			sampler->order[sampler->placed_count++] = i;
			rail->sampled.domain.id = sampler->placed_count;
			rail->sampled.domain.parent = parent_id;
			goes_on = true;
		}
	}
}

static void find_parents(struct energy_sampler *sampler)
{
	for (unsigned i = 0; i < sampler->rail_count; i++) {
		struct rail *rail = &sampler->rails[i];

		if (!rail->channel || rail->sampled.domain.id || rail->twin_of >= 0)
			continue;
		if (rail->parent >= 0 && sampler->rails[rail->parent].twin_of >= 0)
			rail->parent = sampler->rails[rail->parent].twin_of;
		if (rail->parent < 0)
			rail->parent = find_enclosing(sampler, rail);
	}
}

/* The rails of a source that is open now. */
static void adopt(struct energy_sampler *sampler, struct channel *channel)
{
	const struct energy_found *found = &channel->channel->found;
	unsigned first = sampler->rail_count;

	for (unsigned i = 0; i < found->count && sampler->rail_count < RAILS_MAX; i++) {
		struct rail *rail = &sampler->rails[sampler->rail_count];
		int parent = found->rails[i].parent;

		*rail = (struct rail){
			.channel = channel->channel,
			.index = i,
			.parent = parent < 0 ? -1 : (int)first + parent,
			.twin_of = -1,
			.until_ns = sampler->start_ns,
		};
		rail->twin_of = find_twin(sampler, rail);
		fill_domain(rail);
		rail->busy_group = busy_clock_group(&sampler->busy, found->rails[i].cpus);
		sampler->rail_count++;
	}
	channel->is_adopted = true;
}

void sampler_adopt_sources(struct energy_sampler *sampler, uint64_t deadline_ns)
{
	bool is_new = false;

	for (unsigned i = 0; i < sampler->channel_count; i++) {
		struct channel *channel = &sampler->channels[i];

		if (channel->is_adopted || energy_worker_wait(channel->worker, channel->channel,
						   deadline_ns) != CHANNEL_READS)
			continue;
		adopt(sampler, channel);
		is_new = true;
	}
	if (!is_new)
		return;
	find_parents(sampler);
	place_rails(sampler);
}

void sampler_adopt_replay(struct energy_sampler *sampler)
{
	for (unsigned i = 0; i < sampler->replay->domain_count; i++) {
		const struct wire_energy_domain *domain = &sampler->replay->domains[i];

		sampler->rails[sampler->rail_count++] = (struct rail){
			.sampled.domain = *domain,
			.parent = (int)domain->parent - 1,
			.twin_of = -1,
			.busy_group = busy_clock_group(&sampler->busy, domain->cpus),
		};
		sampler->order[sampler->placed_count++] = i;
	}
}

/* Its ids follow those of the replay; no rail of a sensor is a part of an estimated one. */
void sampler_adopt_model(struct energy_sampler *sampler)
{
	sampler->model_rails = sampler->rail_count;
	for (unsigned i = 0; i < sampler->model->domain_count; i++) {
		struct rail rail = {
			.sampled.domain = sampler->model->domains[i], .parent = -1, .twin_of = -1};

		sampler->order[sampler->placed_count++] = sampler->rail_count;
		rail.sampled.domain.id = sampler->placed_count;
		rail.sampled.domain.parent = WIRE_ENERGY_NO_DOMAIN;
		rail.sampled.domain.period_ns = MODEL_STEP_NS;
		sampler->rails[sampler->rail_count++] = rail;
	}
}
