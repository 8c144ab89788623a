/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/energy/channel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"

/* Waking up, going to sleep and putting away what was read. */
#define WAKE_NS     8000
#define TICK_MAX_NS (10 * NS_PER_S)
/* How many readings the start takes, and how long it looks for counters that step all the time. */
#define PROBE_READINGS 5
#define PROBE_NS       (4 * NS_PER_MS)
#define PROBE_STEPS    3
/* Medians of so few steps are a first guess; of so many they stay. */
#define GUESS_STEPS   3
#define LEARNED_STEPS 20

static uint64_t clock_now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t slept_ns(void)
{
	uint64_t monotonic = clock_now_ns(CLOCK_MONOTONIC);

	return clock_now_ns(CLOCK_BOOTTIME) - monotonic;
}

/* ---- the queue ---- */

static bool queue_has_room(struct energy_channel *channel, unsigned count)
{
	struct energy_queue *queue = &channel->queue;
	uint32_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);

	return tail - atomic_load_explicit(&queue->head, memory_order_acquire) <=
	       CHANNEL_QUEUE - count;
}

static void queue_push(struct energy_channel *channel, const struct energy_event *event)
{
	struct energy_queue *queue = &channel->queue;
	uint32_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);

	queue->events[tail % CHANNEL_QUEUE] = *event;
	atomic_store_explicit(&queue->tail, tail + 1, memory_order_release);
}

const struct energy_event *energy_channel_peek(struct energy_channel *channel)
{
	struct energy_queue *queue = &channel->queue;
	uint32_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);

	if (head == atomic_load_explicit(&queue->tail, memory_order_acquire))
		return NULL;
	return &queue->events[head % CHANNEL_QUEUE];
}

void energy_channel_pop(struct energy_channel *channel)
{
	struct energy_queue *queue = &channel->queue;

	atomic_store_explicit(&queue->head,
		atomic_load_explicit(&queue->head, memory_order_relaxed) + 1, memory_order_release);
}

/* ---- what the thread does ---- */

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Steps of each counter while it is read again and again. Returns how long that was. */
static uint64_t watch_steps(struct energy_channel *channel, uint64_t steps[ENERGY_MAX_RAILS])
{
	struct energy_reading first[ENERGY_MAX_RAILS] = {0}, now[ENERGY_MAX_RAILS] = {0};
	uint64_t begin_ns = monotonic_now_ns();
	bool is_enough = false;

	channel->source->read(channel->state, first);
	while (!is_enough && monotonic_now_ns() - begin_ns < PROBE_NS) {
		is_enough = true;

		channel->source->read(channel->state, now);
		for (unsigned i = 0; i < channel->found.count; i++) {
			if (!now[i].error && !first[i].error && now[i].value != first[i].value)
				steps[i]++;
			first[i] = now[i];
			is_enough = is_enough && steps[i] >= PROBE_STEPS;
		}
	}
	return monotonic_now_ns() - begin_ns;
}

void energy_channel_probe(struct energy_channel *channel)
{
	uint64_t costs[PROBE_READINGS], steps[ENERGY_MAX_RAILS] = {0};
	struct energy_reading readings[ENERGY_MAX_RAILS] = {0};
	uint64_t watched_ns = 0;
	uint64_t base_ns =
		channel->wanted_tick_ns ? channel->wanted_tick_ns : channel->found.tick_ns;
	double times;

	for (unsigned i = 0; i < PROBE_READINGS; i++) {
		uint64_t begin_ns = monotonic_now_ns();

		channel->source->read(channel->state, readings);
		costs[i] = monotonic_now_ns() - begin_ns;
	}
	qsort(costs, PROBE_READINGS, sizeof(*costs), compare_u64);
	channel->cost_ns = costs[PROBE_READINGS / 2];
	if (channel->cost_ns < PROBE_NS / 4)
		watched_ns = watch_steps(channel, steps);
	/* A multiple of what it asks for: sources that share a thread are read in one waking. */
	base_ns = MAX(base_ns, (uint64_t)NS_PER_MS);
	times = ceil(((double)channel->cost_ns + WAKE_NS) / ENERGY_SHARE / (double)base_ns);
	channel->tick_ns = MIN((uint64_t)times * base_ns, (uint64_t)TICK_MAX_NS);
	for (unsigned i = 0; i < channel->found.count; i++) {
		const struct energy_rail *rail = &channel->found.rails[i];
		bool is_fast = rail->kind == ENERGY_COUNTER && steps[i] >= PROBE_STEPS;

		energy_meter_init(&channel->meters[i], rail, is_fast, channel->tick_ns);
		atomic_store_explicit(&channel->period_ns[i],
			is_fast ? watched_ns / steps[i] : rail->period_ns, memory_order_relaxed);
	}
}

/* At the third step and at the twentieth. */
static void tell_period(struct energy_channel *channel, unsigned rail)
{
	const struct energy_meter *meter = &channel->meters[rail];

	if (meter->is_fast || channel->found.rails[rail].period_ns)
		return;
	if (meter->distance_count == GUESS_STEPS || meter->distance_count == LEARNED_STEPS)
		atomic_store_explicit(&channel->period_ns[rail],
			energy_meter_period_ns(meter, GUESS_STEPS), memory_order_relaxed);
}

void energy_channel_take(struct energy_channel *channel, struct energy_reading *readings,
	uint64_t t0_ns, uint64_t t1_ns, uint64_t sleep_ns)
{
	for (unsigned i = 0; i < channel->found.count; i++) {
		struct energy_event event = {.rail = i};

		if (!readings[i].time_ns)
			readings[i].time_ns = t0_ns + (t1_ns - t0_ns) / 2;
		if (readings[i].error)
			atomic_store_explicit(
				&channel->error[i], readings[i].error, memory_order_relaxed);
		if (energy_meter_add(&channel->meters[i], &readings[i], t1_ns - t0_ns, sleep_ns,
			    &event.interval))
			queue_push(channel, &event);
		tell_period(channel, i);
	}
}

static void look(struct energy_channel *channel, uint64_t now_ns)
{
	struct wire_energy_state states[ENERGY_MAX_RAILS];

	for (unsigned i = 0; i < channel->found.count; i++)
		states[i] =
			(struct wire_energy_state){.time_ns = now_ns, .temperature_mc = INT32_MIN};
	channel->source->look(channel->state, states);
	for (unsigned i = 0; i < channel->found.count; i++) {
		struct energy_event event = {.is_state = true, .rail = i, .state = states[i]};

		if (states[i].temperature_mc != INT32_MIN || states[i].clock_mhz)
			queue_push(channel, &event);
	}
}

/* Where nobody empties the queue, counters go on by themselves, and power has a gap. */
void energy_channel_read(struct energy_channel *channel)
{
	struct energy_reading readings[ENERGY_MAX_RAILS] = {0};
	uint64_t t0_ns = monotonic_now_ns(), t1_ns;

	if (!queue_has_room(channel, 2 * channel->found.count))
		return;
	channel->source->read(channel->state, readings);
	t1_ns = monotonic_now_ns();
	energy_channel_take(channel, readings, t0_ns, t1_ns, slept_ns());
	if (!channel->source->look || t1_ns < channel->look_ns)
		return;
	channel->look_ns = t1_ns + NS_PER_S;
	look(channel, t1_ns);
}

void energy_channel_open(struct energy_channel *channel)
{
	enum channel_stage stage = CHANNEL_ABSENT;

	if (channel->source->open(&channel->state, &channel->place, &channel->found) == 0) {
		energy_channel_probe(channel);
		stage = CHANNEL_READS;
	}
	atomic_store(&channel->stage, stage);
}

void energy_channel_close(struct energy_channel *channel)
{
	if (channel->state)
		channel->source->close(TAKE_PTR(channel->state));
}
