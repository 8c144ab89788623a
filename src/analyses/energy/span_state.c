/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/energy/span_state.h"

#include <math.h>

#include "base/macros.h"

/* The first of the rail at or after a moment. */
static size_t find_state(const struct model *model, uint32_t domain, uint64_t time_ns)
{
	size_t first = 0, last = model->energy_states.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;
		const struct model_energy_state *state = &model->energy_states.items[middle];

		if (state->domain < domain || (state->domain == domain && state->time_ns < time_ns))
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

static const struct model_energy_state *state_at(
	const struct model *model, uint32_t domain, size_t index)
{
	if (index >= model->energy_states.count ||
		model->energy_states.items[index].domain != domain)
		return NULL;
	return &model->energy_states.items[index];
}

static void note_what_there_is(
	struct span_state_sums *sums, const struct model *model, uint32_t domain)
{
	const struct model_energy_state *state;

	if (sums->has_temperature && sums->has_clock)
		return;
	for (size_t i = find_state(model, domain, 0); (state = state_at(model, domain, i)); i++) {
		sums->has_temperature |= state->temperature_mc != INT32_MIN;
		sums->has_clock |= state->clock_mhz != 0;
		if (sums->has_temperature && sums->has_clock)
			return;
	}
}

static void add_state(
	struct span_state_sums *sums, const struct model_energy_state *state, double weight_ns)
{
	double temperature_c = (double)state->temperature_mc / 1e3;
	double clock_mhz = state->clock_mhz;

	if (state->temperature_mc != INT32_MIN) {
		sums->temperature += temperature_c * weight_ns;
		sums->temperature_ns += weight_ns;
		sums->highest_c = fmax(sums->highest_c, temperature_c);
	}
	if (state->clock_mhz) {
		sums->clock += clock_mhz * weight_ns;
		sums->clock_ns += weight_ns;
		sums->lowest_mhz = fmin(sums->lowest_mhz, clock_mhz);
		sums->highest_mhz = fmax(sums->highest_mhz, clock_mhz);
	}
}

/* How far a reading is from a span that has none inside. */
static uint64_t distance_of(
	const struct model_energy_state *state, uint64_t start_ns, uint64_t end_ns)
{
	if (!state)
		return UINT64_MAX;
	return state->time_ns < start_ns ? start_ns - state->time_ns : state->time_ns - end_ns;
}

void span_state_begin(struct span_state_sums *sums)
{
	*sums = (struct span_state_sums){.highest_c = NAN, .lowest_mhz = NAN, .highest_mhz = NAN};
}

void span_state_add(struct span_state_sums *sums, const struct model *model, uint32_t domain,
	uint64_t start_ns, uint64_t end_ns)
{
	size_t first = find_state(model, domain, start_ns);
	size_t last = find_state(model, domain, end_ns + 1);
	const struct model_energy_state *before, *after;
	uint64_t to_before, to_after;
	double length_ns = (double)(end_ns - start_ns);

	note_what_there_is(sums, model, domain);
	for (size_t i = first; i < last; i++)
		add_state(sums, state_at(model, domain, i), length_ns / (double)(last - first));
	if (first < last)
		return;
	before = first ? state_at(model, domain, first - 1) : NULL;
	after = state_at(model, domain, first);
	to_before = distance_of(before, start_ns, end_ns);
	to_after = distance_of(after, start_ns, end_ns);
	if (MIN(to_before, to_after) <= SPAN_STATE_NEAR_NS)
		add_state(sums, to_before <= to_after ? before : after, length_ns);
}

struct span_state span_state_end(const struct span_state_sums *sums)
{
	bool is_warm = sums->temperature_ns > 0, is_clocked = sums->clock_ns > 0;

	return (struct span_state){
		.mean_c = is_warm ? sums->temperature / sums->temperature_ns : NAN,
		.highest_c = is_warm ? sums->highest_c : NAN,
		.mean_mhz = is_clocked ? sums->clock / sums->clock_ns : NAN,
		.lowest_mhz = is_clocked ? sums->lowest_mhz : NAN,
		.highest_mhz = is_clocked ? sums->highest_mhz : NAN,
		.temperature_reason = is_warm                 ? NULL
				      : sums->has_temperature ? "not_read_meanwhile"
							      : "not_read",
		.clock_reason = is_clocked        ? NULL
				: sums->has_clock ? "not_read_meanwhile"
						  : "not_read",
	};
}
