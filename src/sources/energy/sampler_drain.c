/* SPDX-License-Identifier: Apache-2.0 */
/* Hands over what was measured: of sources, of a replay, of a model; cut where the recording is. */
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "sources/energy/sampler_internal.h"

/* Two readers of one rail are compared once both have so much; they differ by more than this. */
#define TWIN_NS         (2 * NS_PER_S)
#define TWIN_DIFFERENCE 0.1
#define TWIN_LEAST_W    0.5

/* Leaves of it what lies in the recording, with the same share of its energy as of its time. */
static bool clip(const struct energy_sampler *sampler, struct wire_energy_interval *interval)
{
	uint64_t start_ns = MAX(interval->start_ns, sampler->start_ns);
	uint64_t end_ns = MIN(interval->end_ns, sampler->end_ns);

	if (start_ns >= end_ns)
		return false;
	if (end_ns - start_ns != interval->end_ns - interval->start_ns)
		interval->energy_nj = (uint64_t)llround(
			(double)interval->energy_nj * (double)(end_ns - start_ns) /
			(double)(interval->end_ns - interval->start_ns));
	interval->start_ns = start_ns;
	interval->end_ns = end_ns;
	return true;
}

/* The time between two updates is learned while reading. */
static void refresh_domain(struct rail *rail)
{
	uint64_t period_ns;

	if (!rail->channel)
		return;
	period_ns =
		atomic_load_explicit(&rail->channel->period_ns[rail->index], memory_order_relaxed);
	rail->is_sent = rail->is_sent && period_ns == rail->sampled.domain.period_ns;
	rail->sampled.domain.period_ns = period_ns;
}

static int tell_domain(struct rail *rail, const struct energy_sink *sink)
{
	if (rail->is_sent)
		return 0;
	rail->is_sent = true;
	return sink->domain(sink->context, &rail->sampled.domain);
}

static int tell_state(struct energy_sampler *sampler, struct rail *rail,
	struct wire_energy_state state, const struct energy_sink *sink)
{
	if (rail->twin_of >= 0 || state.time_ns > sampler->end_ns)
		return 0;
	state.domain = rail->sampled.domain.id;
	/* What held before the recording holds at its start. */
	state.time_ns = MAX(state.time_ns, sampler->start_ns);
	if (sink)
		return sink->state(sink->context, &state);
	rail->state = state;
	return 0;
}

/* A parent's id is known before its children are. */
static int tell_domains(struct energy_sampler *sampler, const struct energy_sink *sink)
{
	int r = 0;

	for (unsigned i = 0; i < sampler->placed_count && r == 0; i++) {
		struct rail *rail = &sampler->rails[sampler->order[i]];
		struct wire_energy_state state = rail->state;

		r = tell_domain(rail, sink);
		rail->state.domain = WIRE_ENERGY_NO_DOMAIN;
		if (r == 0 && state.domain)
			r = tell_state(sampler, rail, state, sink);
	}
	for (unsigned i = 0; i < sampler->channel_count && r == 0; i++) {
		struct channel *channel = &sampler->channels[i];
		struct wire_energy_absence absence = {.source = channel->channel->source->name};

		if (channel->is_sent || atomic_load(&channel->channel->stage) == CHANNEL_OPENING)
			continue;
		channel->is_sent = true;
		absence.reason = channel->channel->found.absence.text;
		if (*absence.reason)
			r = sink->absence(sink->context, &absence);
	}
	return r;
}

static int tell_interval(struct energy_sampler *sampler, struct rail *rail,
	struct wire_energy_interval interval, const struct energy_sink *sink)
{
	if (!clip(sampler, &interval) || interval.start_ns < rail->until_ns)
		return 0;
	rail->until_ns = interval.end_ns;
	if (interval.gap) {
		rail->sampled.gap_ns += interval.end_ns - interval.start_ns;
		rail->gaps |= 1U << interval.gap;
	} else {
		rail->sampled.measured_ns += interval.end_ns - interval.start_ns;
		rail->sampled.energy_nj += interval.energy_nj;
	}
	if (!sink || rail->twin_of >= 0)
		return 0;
	interval.domain = rail->sampled.domain.id;
	interval.busy_ns = busy_clock_between(
		&sampler->busy, rail->busy_group, interval.start_ns, interval.end_ns);
	return sink->interval(sink->context, &interval);
}

static struct rail *rail_of(
	struct energy_sampler *sampler, const struct energy_channel *channel, unsigned index)
{
	for (unsigned i = 0; i < sampler->rail_count; i++) {
		if (sampler->rails[i].channel == channel && sampler->rails[i].index == index)
			return &sampler->rails[i];
	}
	return NULL;
}

/* Intervals wait until it is known how busy the processors were meanwhile. */
static int drain_channel(struct energy_sampler *sampler, struct channel *channel, uint64_t until_ns,
	const struct energy_sink *sink)
{
	const struct energy_event *event;
	int r = 0;

	while (r == 0 && channel->is_adopted && (event = energy_channel_peek(channel->channel))) {
		struct rail *rail = rail_of(sampler, channel->channel, event->rail);

		if (!event->is_state && event->interval.end_ns > until_ns)
			break;
		if (rail && event->is_state)
			r = tell_state(sampler, rail, event->state, sink);
		else if (rail)
			r = tell_interval(sampler, rail, event->interval, sink);
		energy_channel_pop(channel->channel);
	}
	return r;
}

/* Its times count from the recording's start. What goes on behind its end is cut there. */
static int drain_replay(
	struct energy_sampler *sampler, uint64_t until_ns, const struct energy_sink *sink)
{
	const struct energy_replay *replay = sampler->replay;
	int r = 0;

	if (!replay || !sampler->start_ns || !sink)
		return 0;
	while (r == 0 && sampler->next_state < replay->states.count) {
		struct wire_energy_state state = replay->states.items[sampler->next_state];

		state.time_ns += sampler->start_ns;
		if (state.time_ns > until_ns)
			break;
		sampler->next_state++;
		r = tell_state(sampler, &sampler->rails[state.domain - 1], state, sink);
	}
	while (r == 0 && sampler->next_interval < replay->intervals.count) {
		struct wire_energy_interval interval =
			replay->intervals.items[sampler->next_interval];

		interval.start_ns += sampler->start_ns;
		interval.end_ns += sampler->start_ns;
		if (interval.end_ns > until_ns)
			break;
		sampler->next_interval++;
		sampler->replay_goes_on |= interval.start_ns >= sampler->end_ns;
		r = tell_interval(sampler, &sampler->rails[interval.domain - 1], interval, sink);
	}
	return r;
}

/* By the time that processors were busy, in steps as long as that is known for. */
static int drain_model(
	struct energy_sampler *sampler, uint64_t until_ns, const struct energy_sink *sink)
{
	uint64_t last_ns = MIN(until_ns, sampler->end_ns);
	int r = 0;

	if (!sampler->model || !sampler->start_ns)
		return 0;
	sampler->model_until_ns = MAX(sampler->model_until_ns, sampler->start_ns);
	while (r == 0 && sampler->model_until_ns < last_ns) {
		struct wire_energy_interval interval = {.start_ns = sampler->model_until_ns,
			.end_ns = MIN(sampler->model_until_ns + MODEL_STEP_NS, sampler->end_ns)};
		uint64_t busy_ns;

		if (interval.end_ns > last_ns)
			break;
		busy_ns = busy_clock_between(&sampler->busy, 0, interval.start_ns, interval.end_ns);
		if (busy_ns == UINT64_MAX)
			interval.gap = WIRE_ENERGY_READ_FAILED;
		for (unsigned i = 0; r == 0 && i < sampler->model->domain_count; i++) {
			struct rail *rail = &sampler->rails[sampler->model_rails + i];

			/* A watt is a nanojoule in a nanosecond. */
			if (!interval.gap)
				interval.energy_nj = (uint64_t)llround(
					sampler->model->domains[i].idle_w *
						(double)(interval.end_ns - interval.start_ns) +
					sampler->model->busy_w[i] * (double)busy_ns);
			r = tell_interval(sampler, rail, interval, sink);
		}
		sampler->model_until_ns = interval.end_ns;
	}
	return r;
}

/* Two doors to one rail, both open: when both have measured for a while, they must agree. */
static void compare_twin(struct energy_sampler *sampler, struct rail *rail)
{
	const struct energy_sampled *other;
	double watts, other_watts;

	if (rail->is_compared || rail->twin_of < 0)
		return;
	other = &sampler->rails[rail->twin_of].sampled;
	if (rail->sampled.measured_ns < TWIN_NS || other->measured_ns < TWIN_NS)
		return;
	rail->is_compared = true;
	watts = sampled_mean_w(&rail->sampled);
	other_watts = sampled_mean_w(other);
	if (fabs(watts - other_watts) > TWIN_LEAST_W &&
		fabs(watts - other_watts) > TWIN_DIFFERENCE * MAX(watts, other_watts))
		errmsg_set(&sampler->twin_note, 0,
			"%s says that %s took %.1f W, and %s %.1f W: the counter's unit may be "
			"wrong; the first one is used",
			other->domain.source, other->domain.name, other_watts,
			rail->sampled.domain.source, watts);
}

/* A source all of whose rails are read by another one is done when they were compared. */
static void compare_twins(struct energy_sampler *sampler)
{
	for (unsigned i = 0; i < sampler->channel_count; i++) {
		struct channel *channel = &sampler->channels[i];
		bool is_done = channel->is_adopted;

		for (unsigned k = 0; k < sampler->rail_count; k++) {
			if (sampler->rails[k].channel != channel->channel)
				continue;
			compare_twin(sampler, &sampler->rails[k]);
			is_done = is_done && sampler->rails[k].is_compared;
		}
		atomic_store_explicit(&channel->channel->is_done, is_done, memory_order_relaxed);
	}
}

int sampler_drain_until(
	struct energy_sampler *sampler, uint64_t until_ns, const struct energy_sink *sink)
{
	int r = 0;

	for (unsigned i = 0; i < sampler->placed_count; i++)
		refresh_domain(&sampler->rails[sampler->order[i]]);
	if (sink)
		r = tell_domains(sampler, sink);
	for (unsigned i = 0; i < sampler->channel_count && r == 0; i++)
		r = drain_channel(sampler, &sampler->channels[i], until_ns, sink);
	if (r == 0)
		r = drain_replay(sampler, until_ns, sink);
	if (r == 0)
		r = drain_model(sampler, until_ns, sink);
	compare_twins(sampler);
	return r;
}

int energy_sampler_drain(struct energy_sampler *sampler, const struct energy_sink *sink)
{
	uint64_t now_ns = monotonic_now_ns();

	sampler_adopt_sources(sampler, 0);
	busy_clock_read(&sampler->busy, now_ns, false);
	return sampler_drain_until(sampler, MIN(now_ns, busy_clock_until_ns(&sampler->busy)), sink);
}

/* ---- the end ---- */

static bool has_ended(const struct energy_sampler *sampler, const struct energy_channel *channel)
{
	for (unsigned i = 0; i < sampler->worker_count; i++) {
		const struct worker *worker = &sampler->workers[i];

		if (channel >= worker->worker->channels &&
			channel < worker->worker->channels + WORKER_CHANNELS)
			return worker->has_ended;
	}
	return false;
}

/* What a rail that does not come to the end is missing there. */
static int tell_last_gap(
	struct energy_sampler *sampler, struct rail *rail, const struct energy_sink *sink)
{
	struct wire_energy_interval interval = {
		.start_ns = rail->until_ns, .end_ns = sampler->end_ns, .gap = WIRE_ENERGY_STALLED};
	const struct energy_meter *meter = NULL;
	uint64_t left_ns = sampler->end_ns - MIN(rail->until_ns, sampler->end_ns);

	if (rail->channel && has_ended(sampler, rail->channel))
		meter = &rail->channel->meters[rail->index];
	if (!rail->channel)
		interval.gap = WIRE_ENERGY_SOURCE_ENDED;
	else if (meter && meter->gap)
		interval.gap = meter->gap;
	else if (meter && left_ns < EDGE_NS)
		return 0;
	return left_ns ? tell_interval(sampler, rail, interval, sink) : 0;
}

int sampler_drain_last_gaps(struct energy_sampler *sampler, const struct energy_sink *sink)
{
	int r = 0;

	for (unsigned i = 0; i < sampler->placed_count && r == 0; i++)
		r = tell_last_gap(sampler, &sampler->rails[sampler->order[i]], sink);
	return r;
}
