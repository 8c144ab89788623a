/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/map.h"

/* Ids and definitions beyond these are no honest process's. */
#define MAX_ID          (1U << 20)
#define MAX_DEFINITIONS (1U << 20)
/* Clocks of one machine drift apart no faster than NTP may slew one of them. */
#define DRIFT_PER_S_NS 500000
#define MAX_CLOCKS     4096
/* Times further apart than this are not of one recording. */
#define MAX_SPAN_NS (100ULL * 365 * 86400 * NS_PER_S)

/*
 * The offset host - device lies in [lower, upper] at `at_ns`. Each launch narrows that: the driver
 * took its queueing time between our two looks at the host's clock. With time it widens again.
 */
struct device_clock {
	int64_t lower, upper;
	uint64_t at_ns;
};

struct pending_work {
	struct wire_device_activity activity;
	uint32_t pid;
	bool waited; /* for its name, once */
};

struct device_collector {
	struct capture_writer *writer;
	struct device_account account;
	struct intern texts;
	struct map_u64 definitions; /* definition_key() → id in texts */
	struct map_u64 clock_index; /* pid << 32 | device → index in clocks */
	ARRAY_OF(struct device_clock) clocks;
	ARRAY_OF(struct pending_work) pending;
};

int device_collector_new(struct device_collector **ret_collector, struct capture_writer *writer)
{
	struct device_collector *collector = calloc(1, sizeof(*collector));

	if (!collector)
		return -ENOMEM;
	collector->writer = writer;
	*ret_collector = collector;
	return 0;
}

struct device_collector *device_collector_free(struct device_collector *collector)
{
	if (!collector)
		return NULL;
	intern_done(&collector->texts);
	map_u64_done(&collector->definitions);
	map_u64_done(&collector->clock_index);
	array_done(&collector->clocks);
	array_done(&collector->pending);
	free(collector);
	return NULL;
}

/* ---- names ---- */

static uint64_t definition_key(uint32_t pid, uint32_t type, uint32_t id)
{
	return (uint64_t)pid << 32 | (uint64_t)(type & 15) << 24 | id;
}

/* NULL: not told, or not yet. */
static const char *text_of(
	const struct device_collector *collector, uint32_t pid, uint32_t type, uint32_t id)
{
	uint64_t text;

	if (!id || id > MAX_ID ||
		!map_u64_get(&collector->definitions, definition_key(pid, type, id), &text))
		return NULL;
	return intern_get(&collector->texts, (uint32_t)text);
}

static bool is_whole_definition(const struct wire_device_definition *definition)
{
	return definition->record.length_bytes >= sizeof(*definition) && definition->id &&
	       definition->id <= MAX_ID && definition->text_bytes <= WIRE_DEVICE_TEXT_BYTES &&
	       definition->text_bytes <= definition->record.length_bytes - sizeof(*definition);
}

static int add_definition(struct device_collector *collector, uint32_t pid,
	const struct wire_device_definition *definition)
{
	char text[WIRE_DEVICE_TEXT_BYTES + 1];
	uint32_t id;
	int result;

	if (!is_whole_definition(definition) || collector->definitions.count >= MAX_DEFINITIONS) {
		collector->account.malformed++;
		return 0;
	}
	memcpy(text, definition + 1, definition->text_bytes);
	text[definition->text_bytes] = '\0';
	result = intern_add(&collector->texts, text, strlen(text), &id);
	return result < 0
		       ? result
		       : map_u64_set(&collector->definitions,
				 definition_key(pid, definition->record.type, definition->id), id);
}

/* ---- clocks ---- */

static int find_clock(struct device_collector *collector, uint32_t pid, uint32_t device,
	struct device_clock **ret_clock)
{
	uint64_t key = (uint64_t)pid << 32 | device, index;
	int result;

	if (map_u64_get(&collector->clock_index, key, &index)) {
		*ret_clock = &collector->clocks.items[index];
		return 0;
	}
	if (collector->clocks.count >= MAX_CLOCKS)
		return -E2BIG;
	index = collector->clocks.count;
	result = array_append(
		&collector->clocks, (struct device_clock){.lower = INT64_MIN, .upper = INT64_MAX});
	if (result == 0)
		result = map_u64_set(&collector->clock_index, key, index);
	*ret_clock = &collector->clocks.items[collector->clocks.count - 1];
	return result;
}

/* Brings the clock to the moment of a launch. */
static void narrow_clock(struct device_clock *clock, const struct wire_device_activity *activity)
{
	int64_t lower = (int64_t)(activity->before_ns - activity->queued);
	int64_t upper = (int64_t)(activity->after_ns - activity->queued);
	uint64_t elapsed_ns =
		activity->before_ns > clock->at_ns ? activity->before_ns - clock->at_ns : 0;
	int64_t drift = (int64_t)(elapsed_ns / (NS_PER_S / DRIFT_PER_S_NS));

	if (clock->at_ns) {
		clock->lower -= drift;
		clock->upper += drift;
	}
	clock->at_ns = MAX(clock->at_ns, activity->before_ns);
	if (MAX(lower, clock->lower) <= MIN(upper, clock->upper)) {
		clock->lower = MAX(lower, clock->lower);
		clock->upper = MIN(upper, clock->upper);
	} else { /* it jumped */
		clock->lower = lower;
		clock->upper = upper;
	}
}

static uint64_t to_host(const struct device_clock *clock, uint64_t device_time)
{
	return device_time + (uint64_t)(clock->lower + (clock->upper - clock->lower) / 2);
}

/* ---- records ---- */

static bool is_whole_launch(const struct wire_device_launch *launch)
{
	return launch->record.length_bytes >= sizeof(*launch) && launch->kind > WIRE_DEVICE_NONE &&
	       launch->kind < WIRE_DEVICE_MAX && launch->untimed < WIRE_DEVICE_UNTIMED_MAX &&
	       launch->enter_ns <= launch->exit_ns && launch->exit_ns < MAX_SPAN_NS;
}

static int add_launch(
	struct device_collector *collector, uint32_t pid, const struct wire_device_launch *launch)
{
	const struct capture_launch out = {
		.time_ns = launch->enter_ns,
		.duration_ns = launch->exit_ns - launch->enter_ns,
		.pid = pid,
		.tid = launch->tid,
		.correlation = launch->correlation,
		.kind = launch->kind,
		.untimed = launch->untimed,
		.queue = launch->queue,
	};

	if (!is_whole_launch(launch)) {
		collector->account.malformed++;
		return 0;
	}
	if (launch->kind != WIRE_DEVICE_FINISH && launch->kind != WIRE_DEVICE_WAIT) {
		collector->account.launches++;
		collector->account.untimed += launch->untimed != WIRE_DEVICE_TIMED;
	}
	return capture_writer_launch(collector->writer, &out);
}

/* All its times in one order, and near enough to one another to count with. */
static bool is_whole_activity(const struct wire_device_activity *activity)
{
	return activity->record.length_bytes >= sizeof(*activity) &&
	       activity->kind > WIRE_DEVICE_NONE && activity->kind < WIRE_DEVICE_FINISH &&
	       activity->queued <= activity->submit && activity->submit <= activity->start &&
	       activity->start <= activity->end && activity->end < INT64_MAX &&
	       activity->end - activity->queued < MAX_SPAN_NS &&
	       activity->before_ns <= activity->after_ns && activity->after_ns < MAX_SPAN_NS;
}

static int add_activity(struct device_collector *collector, uint32_t pid,
	const struct wire_device_activity *activity)
{
	if (activity->record.length_bytes >= sizeof(*activity) && activity->failed) {
		collector->account.untimed++;
		return 0;
	}
	if (!is_whole_activity(activity)) {
		collector->account.malformed++;
		return 0;
	}
	return array_append(
		&collector->pending, (struct pending_work){.activity = *activity, .pid = pid});
}

int device_collector_add(
	struct device_collector *collector, uint32_t pid, const struct wire_record *record)
{
	switch (record->type) {
	case WIRE_RECORD_DEVICE_LAUNCH:
		return add_launch(collector, pid, (const void *)record);
	case WIRE_RECORD_DEVICE_ACTIVITY:
		return add_activity(collector, pid, (const void *)record);
	case WIRE_RECORD_DEVICE_NAME:
	case WIRE_RECORD_DEVICE_DEVICE:
	case WIRE_RECORD_DEVICE_QUEUE:
		return add_definition(collector, pid, (const void *)record);
	default:
		collector->account.malformed++;
		return 0;
	}
}

/* ---- work ---- */

static int write_work(struct device_collector *collector, const struct pending_work *pending)
{
	const struct wire_device_activity *activity = &pending->activity;
	const char *device =
		text_of(collector, pending->pid, WIRE_RECORD_DEVICE_DEVICE, activity->device);
	struct capture_device_work out = {
		.pid = pending->pid,
		.correlation = activity->correlation,
		.kind = activity->kind,
		.name = text_of(collector, pending->pid, WIRE_RECORD_DEVICE_NAME, activity->name),
		.device = device ? device : "",
		.queue = activity->queue,
		.bytes = activity->bytes,
	};
	struct device_clock *clock;
	int result = find_clock(collector, pending->pid, activity->device, &clock);

	if (result == -E2BIG) {
		collector->account.malformed++;
		return 0;
	}
	if (result < 0)
		return result;
	memcpy(out.global_size, activity->global_size, sizeof(out.global_size));
	memcpy(out.local_size, activity->local_size, sizeof(out.local_size));
	narrow_clock(clock, activity);
	out.queued_ns = to_host(clock, activity->queued);
	out.submit_ns = to_host(clock, activity->submit);
	out.start_ns = to_host(clock, activity->start);
	out.end_ns = to_host(clock, activity->end);
	collector->account.works++;
	collector->account.started_before_launch += out.start_ns < activity->before_ns;
	collector->account.clock_error_ns = MAX(
		collector->account.clock_error_ns, (uint64_t)((clock->upper - clock->lower) / 2));
	return capture_writer_device_work(collector->writer, &out);
}

static int compare_launch_times(const void *left, const void *right)
{
	const struct pending_work *a = left, *b = right;

	return a->activity.before_ns < b->activity.before_ns
		       ? -1
		       : a->activity.before_ns > b->activity.before_ns;
}

int device_collector_write(struct device_collector *collector, bool everything)
{
	size_t kept = 0;
	int result = 0;

	if (collector->pending.count)
		qsort(collector->pending.items, collector->pending.count,
			sizeof(*collector->pending.items), compare_launch_times);
	for (size_t i = 0; i < collector->pending.count && result == 0; i++) {
		struct pending_work *pending = &collector->pending.items[i];

		if (!everything && !pending->waited && pending->activity.name &&
			!text_of(collector, pending->pid, WIRE_RECORD_DEVICE_NAME,
				pending->activity.name)) {
			pending->waited = true;
			collector->pending.items[kept++] = *pending;
			continue;
		}
		result = write_work(collector, pending);
	}
	collector->pending.count = kept;
	return result;
}

const struct device_account *device_collector_account(const struct device_collector *collector)
{
	return &collector->account;
}
