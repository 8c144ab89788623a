/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/energy/sampler.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "sources/energy/busy_clock.h"
#include "sources/energy/replay.h"
#include "sources/energy/worker.h"

#define CHANNELS_MAX  8
#define RAILS_MAX     256
#define REPLAY        "replay:"
#define MODEL_STEP_NS (100 * NS_PER_MS)
/* Two readers of one rail are compared once both have so much; they differ by more than this. */
#define TWIN_NS         (2 * NS_PER_S)
#define TWIN_DIFFERENCE 0.1
#define TWIN_LEAST_W    0.5
/* Slow counters are waited for so long at the end, and sources that may hang. */
#define LAST_STEP_NS (300 * NS_PER_MS)
#define STOP_NS      (500 * NS_PER_MS)
#define LOOK_NS      (5 * NS_PER_MS)
/* The time before a counter's first step and after its last one is no gap. */
#define EDGE_NS NS_PER_S

struct rail {
	struct energy_sampled sampled;  /* id 0: not placed yet, or a twin */
	struct energy_channel *channel; /* NULL: the replay, or the model */
	unsigned index;                 /* in the channel */
	int parent, twin_of;            /* indices in sampler.rails; -1 */
	bool is_told;                   /* the sink knows the domain as it is now */
	bool is_compared;               /* with its twin */
	uint64_t until_ns;              /* handed over so far */
	struct wire_energy_state state; /* of before the start, not handed over; domain 0: none */
	uint32_t gaps;                  /* bits: enum wire_energy_gap */
};

struct channel {
	struct energy_worker *worker;
	struct energy_channel *channel;
	bool is_adopted, is_told; /* told: its absence */
};

struct worker {
	struct energy_worker *worker;
	bool is_stopped, has_ended; /* stopped, and its thread has ended */
};

struct energy_sampler {
	struct energy_place place;
	uint64_t tick_ns;
	unsigned channel_count, rail_count, placed_count;
	struct channel channels[CHANNELS_MAX]; /* in the table's order */
	unsigned worker_count;
	struct worker workers[CHANNELS_MAX];
	struct rail rails[RAILS_MAX];
	unsigned order[RAILS_MAX]; /* by id - 1 */
	struct energy_replay *replay;
	size_t next_interval, next_state; /* of the replay */
	struct energy_replay *model;
	unsigned model_rails;    /* the first of its rails */
	uint64_t model_until_ns; /* handed over so far */
	struct busy_clock busy;
	uint64_t opened_ns, start_ns, end_ns;
	bool is_auto; /* all sources are asked, whether they are there or not */
	struct errmsg twin_note;
	bool replay_goes_on; /* behind the recording's end */
};

/* ---- the tree of rails ---- */

static const struct energy_rail *found_rail(const struct rail *rail)
{
	return &rail->channel->found.rails[rail->index];
}

static bool is_rapl(const struct energy_source *source)
{
	return source == &perf_energy || source == &powercap_energy;
}

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
		sampler->rail_count++;
	}
	channel->is_adopted = true;
}

/* Sources that have been opened since the last look. */
static void adopt_all(struct energy_sampler *sampler, uint64_t deadline_ns)
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

static void adopt_replay(struct energy_sampler *sampler)
{
	for (unsigned i = 0; i < sampler->replay->domain_count; i++) {
		const struct wire_energy_domain *domain = &sampler->replay->domains[i];

		sampler->rails[sampler->rail_count++] = (struct rail){
			.sampled.domain = *domain,
			.parent = (int)domain->parent - 1,
			.twin_of = -1,
		};
		sampler->order[sampler->placed_count++] = i;
	}
}

/* Its ids follow those of the replay; no rail of a sensor is a part of an estimated one. */
static void adopt_model(struct energy_sampler *sampler)
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

/* ---- opening ---- */

static int start_worker(
	struct energy_sampler *sampler, const struct energy_source *const *sources, unsigned count)
{
	struct worker *worker = &sampler->workers[sampler->worker_count];
	int r;

	if (!count)
		return 0;
	r = energy_worker_start(&worker->worker, sources, count, &sampler->place, sampler->tick_ns);
	if (r < 0)
		return r;
	sampler->worker_count++;
	for (unsigned i = 0; i < count; i++)
		sampler->channels[sampler->channel_count++] = (struct channel){
			.worker = worker->worker, .channel = &worker->worker->channels[i]};
	return 0;
}

/* Those that may hang work by themselves, the others together: waking up costs more than reading.
 */
static int start_workers(struct energy_sampler *sampler, const bool *wanted)
{
	const struct energy_source *together[CHANNELS_MAX];
	unsigned count = 0;
	int r;

	for (unsigned i = 0; energy_sources[i]; i++) {
		if (wanted[i] && !energy_sources[i]->may_hang)
			together[count++] = energy_sources[i];
	}
	r = start_worker(sampler, together, count);
	for (unsigned i = 0; energy_sources[i] && r == 0; i++) {
		if (wanted[i] && energy_sources[i]->may_hang)
			r = start_worker(sampler, &energy_sources[i], 1);
	}
	return r;
}

static int find_source(const char *name, size_t length)
{
	for (int i = 0; energy_sources[i]; i++) {
		if (strlen(energy_sources[i]->name) == length &&
			memcmp(energy_sources[i]->name, name, length) == 0)
			return i;
	}
	return -1;
}

static int unknown_source(const char *name, size_t length, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf names = {0};

	for (const struct energy_source *const *source = energy_sources; *source; source++)
		strbuf_addf(&names, "%s, ", (*source)->name);
	return errmsg_set(err, -EINVAL,
		"there is no source of energy %.*s: give auto, off, or some of %s" REPLAY
		"FILE, with commas between them",
		(int)MIN(length, (size_t)64), name, strbuf_cstr(&names));
}

static int start_sources(struct energy_sampler *sampler, const char *list, struct errmsg *err)
{
	bool wanted[CHANNELS_MAX] = {false};
	bool is_replay = false;
	int r = 0;

	sampler->is_auto = list && strcmp(list, "auto") == 0;
	for (unsigned i = 0; energy_sources[i]; i++)
		wanted[i] = sampler->is_auto;
	while (!sampler->is_auto && list) {
		size_t length = strcspn(list, ",");
		int index = find_source(list, length);

		is_replay = strncmp(list, REPLAY, strlen(REPLAY)) == 0;
		if (!is_replay && index < 0)
			return unknown_source(list, length, err);
		if (!is_replay)
			wanted[index] = true;
		if (is_replay || !list[length])
			break;
		list += length + 1;
	}
	if (is_replay)
		r = energy_replay_open(&sampler->replay, list + strlen(REPLAY), err);
	return r < 0 ? r : start_workers(sampler, wanted);
}

int energy_sampler_open(struct energy_sampler **ret_sampler,
	const struct energy_sampler_options *options, struct errmsg *err)
{
	_cleanup_energy_sampler_ struct energy_sampler *sampler = calloc(1, sizeof(*sampler));
	char path[512];
	int r;

	if (!sampler)
		return -ENOMEM;
	sampler->place = options->place ? *options->place : energy_place_machine();
	sampler->busy.fd = -1;
	sampler->tick_ns = options->tick_ns;
	sampler->opened_ns = monotonic_now_ns();
	sampler->end_ns = UINT64_MAX;
	r = start_sources(sampler, options->sources, err);
	if (r < 0)
		return r;
	if (options->model)
		r = energy_model_open(&sampler->model, options->model, err);
	if (r < 0)
		return r;
	if (sampler->replay)
		adopt_replay(sampler);
	if (sampler->model)
		adopt_model(sampler);
	adopt_all(sampler, sampler->opened_ns + options->wait_ns);
	snprintf(path, sizeof(path), "%s/proc/stat", sampler->place.root);
	busy_clock_open(&sampler->busy, path);
	*ret_sampler = TAKE_PTR(sampler);
	return 0;
}

struct energy_sampler *energy_sampler_free(struct energy_sampler *sampler)
{
	if (!sampler)
		return NULL;
	for (unsigned i = 0; i < sampler->worker_count; i++) {
		struct worker *worker = &sampler->workers[i];

		if (!worker->is_stopped)
			energy_worker_stop(worker->worker, monotonic_now_ns() + STOP_NS);
		energy_worker_free(worker->worker);
	}
	energy_replay_free(sampler->replay);
	energy_replay_free(sampler->model);
	busy_clock_close(&sampler->busy);
	free(sampler);
	return NULL;
}

void energy_sampler_freep(struct energy_sampler **sampler)
{
	energy_sampler_free(*sampler);
}

unsigned energy_sampler_count(const struct energy_sampler *sampler)
{
	return sampler->placed_count;
}

const struct energy_sampled *energy_sampler_at(const struct energy_sampler *sampler, unsigned index)
{
	return &sampler->rails[sampler->order[index]].sampled;
}

const char *energy_sampler_absence(const struct energy_sampler *sampler, unsigned index,
	const struct energy_source **ret_source)
{
	const struct energy_channel *channel;

	if (index >= sampler->channel_count)
		return NULL;
	channel = sampler->channels[index].channel;
	*ret_source = channel->source;
	if (atomic_load(&channel->stage) == CHANNEL_OPENING)
		return "it does not answer: look at the kernel's log (sudo dmesg)";
	return channel->found.absence.text;
}

/* ---- handing over ---- */

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
	rail->is_told = rail->is_told && period_ns == rail->sampled.domain.period_ns;
	rail->sampled.domain.period_ns = period_ns;
}

static int tell_domain(struct rail *rail, const struct energy_sink *sink)
{
	if (rail->is_told)
		return 0;
	rail->is_told = true;
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

		if (channel->is_told || atomic_load(&channel->channel->stage) == CHANNEL_OPENING)
			continue;
		channel->is_told = true;
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
	interval.busy_ns = busy_clock_between(&sampler->busy, interval.start_ns, interval.end_ns);
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
		busy_ns = busy_clock_between(&sampler->busy, interval.start_ns, interval.end_ns);
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

static double mean_w(const struct energy_sampled *sampled)
{
	return sampled->measured_ns ? (double)sampled->energy_nj / (double)sampled->measured_ns : 0;
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
	watts = mean_w(&rail->sampled);
	other_watts = mean_w(other);
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

static int drain_until(
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

	adopt_all(sampler, 0);
	busy_clock_read(&sampler->busy, now_ns, false);
	return drain_until(sampler, MIN(now_ns, busy_clock_until_ns(&sampler->busy)), sink);
}

static void forget_sums(struct energy_sampler *sampler)
{
	for (unsigned i = 0; i < sampler->rail_count; i++) {
		struct rail *rail = &sampler->rails[i];

		rail->sampled.energy_nj = rail->sampled.measured_ns = rail->sampled.gap_ns = 0;
		rail->gaps = 0;
		rail->until_ns = sampler->start_ns;
	}
}

void energy_sampler_take_baseline(struct energy_sampler *sampler)
{
	for (unsigned i = 0; i < sampler->rail_count; i++) {
		struct rail *rail = &sampler->rails[i];

		if (!rail->channel || !rail->sampled.measured_ns)
			continue;
		rail->sampled.domain.idle_w = mean_w(&rail->sampled);
		rail->is_told = false;
	}
	forget_sums(sampler);
}

void energy_sampler_start(struct energy_sampler *sampler, uint64_t start_ns)
{
	sampler->start_ns = start_ns;
	forget_sums(sampler);
	busy_clock_read(&sampler->busy, start_ns, true);
}

/* ---- the end ---- */

static bool waits_for_step(const struct energy_sampler *sampler)
{
	for (unsigned i = 0; i < sampler->placed_count; i++) {
		const struct rail *rail = &sampler->rails[sampler->order[i]];

		if (rail->channel && found_rail(rail)->kind == ENERGY_COUNTER &&
			!rail->channel->meters[rail->index].is_fast && rail->sampled.measured_ns &&
			rail->until_ns < sampler->end_ns &&
			sampler->end_ns - rail->until_ns < EDGE_NS)
			return true;
	}
	return false;
}

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

int energy_sampler_finish(
	struct energy_sampler *sampler, uint64_t end_ns, const struct energy_sink *sink)
{
	uint64_t deadline_ns = monotonic_now_ns() + LAST_STEP_NS;
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	int r;

	sampler->end_ns = end_ns;
	r = energy_sampler_drain(sampler, sink);
	while (r == 0 && waits_for_step(sampler) && monotonic_now_ns() < deadline_ns) {
		nanosleep(&pause, NULL);
		r = energy_sampler_drain(sampler, sink);
	}
	deadline_ns = monotonic_now_ns() + STOP_NS;
	for (unsigned i = 0; i < sampler->worker_count; i++) {
		struct worker *worker = &sampler->workers[i];

		worker->has_ended = energy_worker_stop(worker->worker, deadline_ns);
		worker->is_stopped = true;
	}
	busy_clock_read(&sampler->busy, monotonic_now_ns(), true);
	if (r == 0)
		r = drain_until(sampler, UINT64_MAX, sink);
	for (unsigned i = 0; i < sampler->placed_count && r == 0; i++)
		r = tell_last_gap(sampler, &sampler->rails[sampler->order[i]], sink);
	return r;
}

/* ---- notes ---- */

static const char *gap_reason(uint32_t gaps)
{
	static const char *const reasons[WIRE_ENERGY_GAP_MAX] = {
		[WIRE_ENERGY_READ_FAILED] = "it could not be read",
		[WIRE_ENERGY_IMPLAUSIBLE] = "the counter jumped by more than can be",
		[WIRE_ENERGY_WENT_BACK] = "the counter went back",
		[WIRE_ENERGY_SUSPENDED] = "the machine slept",
		[WIRE_ENERGY_STALLED] = "the source did not answer in time, or always the same",
	};

	return reasons[__builtin_ctz(gaps)];
}

static void add_gap_note(
	const struct rail *rail, void (*add)(void *context, const char *sentence), void *context)
{
	const struct energy_sampled *sampled = &rail->sampled;
	struct errmsg note;
	int error = 0;

	/* A replay's are no news: they are in its file. */
	if (!rail->gaps || !rail->channel)
		return;
	if (rail->gaps & 1U << WIRE_ENERGY_READ_FAILED)
		error = atomic_load_explicit(
			&rail->channel->error[rail->index], memory_order_relaxed);
	errmsg_set(&note, 0, "what %s took (%s) is not known for %.2f s of %.2f s: %s%s%s",
		sampled->domain.name, sampled->domain.source, (double)sampled->gap_ns / 1e9,
		(double)(sampled->gap_ns + sampled->measured_ns) / 1e9, gap_reason(rail->gaps),
		error ? ": " : "", error ? strerror(-error) : "");
	add(context, note.text);
}

/* Who asks for a source by its name is told when it is not there. */
static void add_absence_notes(const struct energy_sampler *sampler,
	void (*add)(void *context, const char *sentence), void *context)
{
	const struct energy_source *source;
	const char *absence;

	for (unsigned i = 0; (absence = energy_sampler_absence(sampler, i, &source)); i++) {
		struct errmsg note;

		if (sampler->is_auto || !*absence)
			continue;
		errmsg_set(&note, 0, "energy from %s: %s", source->name, absence);
		add(context, note.text);
	}
}

void energy_sampler_notes(const struct energy_sampler *sampler,
	void (*add)(void *context, const char *sentence), void *context)
{
	bool has_rapl = false;

	add_absence_notes(sampler, add, context);
	for (unsigned i = 0; i < sampler->placed_count; i++) {
		const struct rail *rail = &sampler->rails[sampler->order[i]];

		has_rapl = has_rapl || (rail->channel && is_rapl(rail->channel->source));
		add_gap_note(rail, add, context);
	}
	if (has_rapl && sampler->place.is_guest)
		add(context, "this is a virtual machine: what RAPL counts here may be the host's "
			     "whole socket, with all that runs beside");
	if (sampler->twin_note.text[0])
		add(context, sampler->twin_note.text);
	if (sampler->replay && sampler->replay->note.text[0])
		add(context, sampler->replay->note.text);
	if (sampler->replay_goes_on)
		add(context, "the recording of energy that is replayed goes on after this one's "
			     "end: that part is not used");
}
