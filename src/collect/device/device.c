/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/device/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/map.h"
#include "collect/device/clock.h"
#include "collect/device/output.h"
#include "collect/device/paired.h"

/* Clocks of one machine drift apart no faster; when they do, that is taken for a jump. */
#define DRIFT_PER_S_NS 100000
/* Work waits up to this long for a launch that tells its clock better than so. */
#define GOOD_CLOCK_NS 4000
#define CLOCK_WAIT_NS NS_PER_S
#define MAX_CLOCKS    4096

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
	uint32_t clock;       /* index */
	int64_t lower, upper; /* of the offset at this moment */
	bool waited;          /* for its name, once */
};

struct device_collector {
	struct device_output output;
	struct device_account account;
	struct device_names names;
	struct paired_collector *paired;
	struct map_u64 clock_index; /* pid << 32 | device → index in clocks */
	ARRAY_OF(struct device_clock) clocks, clocks_back; /* the second within one write */
	ARRAY_OF(struct pending_work) pending;
};

int device_collector_new(struct device_collector **ret_collector, struct capture_writer *writer)
{
	struct device_collector *collector = calloc(1, sizeof(*collector));

	if (!collector)
		return -ENOMEM;
	collector->output =
		(struct device_output){.writer = writer, .account = &collector->account};
	if (paired_collector_new(&collector->paired, &collector->output, &collector->names,
		    &collector->account) < 0) {
		free(collector);
		return -ENOMEM;
	}
	*ret_collector = collector;
	return 0;
}

struct device_collector *device_collector_free(struct device_collector *collector)
{
	if (!collector)
		return NULL;
	collector->paired = paired_collector_free(collector->paired);
	device_names_done(&collector->names);
	map_u64_done(&collector->clock_index);
	array_done(&collector->clocks);
	array_done(&collector->clocks_back);
	array_done(&collector->pending);
	free(collector);
	return NULL;
}

void device_collector_set_windows(struct device_collector *collector, struct windows *windows)
{
	collector->output.windows = windows;
}

/* ---- clocks ---- */

static int find_clock(
	struct device_collector *collector, uint32_t pid, uint32_t device, uint32_t *ret_clock)
{
	uint64_t key = (uint64_t)pid << 32 | device, index;
	int result;

	if (map_u64_get(&collector->clock_index, key, &index)) {
		*ret_clock = (uint32_t)index;
		return 0;
	}
	if (collector->clocks.count >= MAX_CLOCKS)
		return -E2BIG;
	index = collector->clocks.count;
	result = array_append(&collector->clocks, (struct device_clock){0});
	if (result == 0)
		result = array_append(&collector->clocks_back, (struct device_clock){0});
	if (result == 0)
		result = map_u64_set(&collector->clock_index, key, index);
	*ret_clock = (uint32_t)index;
	return result;
}

/* What a launch says by itself: the driver's time lies between our two. */
static void take_bracket(struct pending_work *pending)
{
	const struct wire_device_activity *activity = &pending->activity;

	pending->lower = (int64_t)(activity->before_ns - activity->queued);
	pending->upper = (int64_t)(activity->after_ns - activity->queued);
}

/*
 * Brings the clock to the moment of a launch, and narrows what each knows by the other. When they
 * contradict each other the clock has jumped: then the launch is right.
 */
static void pass_clock(struct device_clock *clock, struct pending_work *pending)
{
	uint64_t at_ns = pending->activity.before_ns;
	uint64_t apart_ns = at_ns > clock->at_ns ? at_ns - clock->at_ns : clock->at_ns - at_ns;
	int64_t drift = (int64_t)(apart_ns / (NS_PER_S / DRIFT_PER_S_NS));

	if (clock->at_ns) {
		int64_t lower = MAX(pending->lower, clock->lower - drift);
		int64_t upper = MIN(pending->upper, clock->upper + drift);

		if (lower <= upper) {
			pending->lower = lower;
			pending->upper = upper;
		}
	}
	clock->at_ns = at_ns;
	clock->lower = pending->lower;
	clock->upper = pending->upper;
}

/* Each launch tells the clock to those after it, and then to those before it. */
static void align_clocks(struct device_collector *collector)
{
	array_foreach (&collector->pending, pending)
		pass_clock(&collector->clocks.items[pending->clock], pending);
	for (size_t i = collector->pending.count; i-- > 0;) {
		struct pending_work *pending = &collector->pending.items[i];

		pass_clock(&collector->clocks_back.items[pending->clock], pending);
	}
	memset(collector->clocks_back.items, 0,
		collector->clocks_back.count * sizeof(*collector->clocks_back.items));
}

static uint64_t to_host(const struct pending_work *pending, uint64_t device_time)
{
	return device_time + (uint64_t)(pending->lower + (pending->upper - pending->lower) / 2);
}

/* ---- records ---- */

static bool is_whole_launch(const struct wire_device_launch *launch)
{
	return launch->record.length_bytes >= sizeof(*launch) && launch->kind > WIRE_DEVICE_NONE &&
	       launch->kind < WIRE_DEVICE_MAX && launch->untimed < WIRE_DEVICE_UNTIMED_MAX &&
	       launch->enter_ns <= launch->exit_ns && launch->exit_ns < DEVICE_MAX_NS;
}

static int add_launch(
	struct device_collector *collector, uint32_t pid, const struct wire_device_launch *launch)
{
	if (!is_whole_launch(launch)) {
		collector->account.malformed++;
		return 0;
	}
	if (wire_device_is_work(launch->kind)) {
		if (launch->untimed == WIRE_DEVICE_TIMED)
			return paired_collector_launch(collector->paired, pid, launch);
		if (launch->untimed != WIRE_DEVICE_CAPTURED) {
			collector->account.launches++;
			collector->account.untimed++;
		}
	}
	return device_output_launch(&collector->output, pid, launch, launch->untimed);
}

/* All its times in one order, and near enough to one another to count with. */
static bool is_whole_activity(const struct wire_device_activity *activity)
{
	return activity->record.length_bytes >= sizeof(*activity) &&
	       wire_device_is_work(activity->kind) && activity->queued <= activity->submit &&
	       activity->submit <= activity->start && activity->start <= activity->end &&
	       activity->end < INT64_MAX && activity->end - activity->queued < DEVICE_MAX_NS &&
	       activity->enter_ns <= activity->before_ns &&
	       activity->before_ns <= activity->after_ns && activity->after_ns < DEVICE_MAX_NS;
}

/* Work that failed has no times. */
static int add_failed(struct device_collector *collector, uint32_t pid,
	const struct wire_device_activity *activity)
{
	const struct wire_device_launch launch = {
		.record = {.type = WIRE_RECORD_DEVICE_LAUNCH, .length_bytes = sizeof(launch)},
		.correlation = activity->correlation,
		.enter_ns = activity->enter_ns,
		.exit_ns = activity->after_ns,
		.tid = activity->tid,
		.queue = activity->queue,
		.kind = activity->kind,
		.untimed = WIRE_DEVICE_FAILED,
	};

	return add_launch(collector, pid, &launch);
}

static int add_activity(struct device_collector *collector, uint32_t pid,
	const struct wire_device_activity *activity)
{
	struct pending_work pending = {.pid = pid};
	int result;

	if (activity->record.length_bytes >= sizeof(*activity) && activity->failed)
		return add_failed(collector, pid, activity);
	if (!is_whole_activity(activity)) {
		collector->account.malformed++;
		return 0;
	}
	pending.activity = *activity;
	result = find_clock(collector, pid, activity->device, &pending.clock);
	if (result == -E2BIG) {
		collector->account.malformed++;
		return 0;
	}
	take_bracket(&pending);
	return result < 0 ? result : array_append(&collector->pending, pending);
}

int device_collector_add(
	struct device_collector *collector, uint32_t pid, const struct wire_record *record)
{
	int result;

	if (paired_collector_wants(record))
		return paired_collector_add(collector->paired, pid, record);
	switch (record->type) {
	case WIRE_RECORD_DEVICE_LAUNCH:
		return add_launch(collector, pid, (const void *)record);
	case WIRE_RECORD_DEVICE_ACTIVITY:
		return add_activity(collector, pid, (const void *)record);
	case WIRE_RECORD_DEVICE_NAME:
	case WIRE_RECORD_DEVICE_DEVICE:
	case WIRE_RECORD_DEVICE_QUEUE:
	case WIRE_RECORD_DEVICE_NAME_PART:
		result = device_names_add(&collector->names, pid, (const void *)record);
		collector->account.malformed += result == 0;
		return MIN(result, 0);
	default:
		collector->account.malformed++;
		return 0;
	}
}

/* ---- work ---- */

static int write_work(struct device_collector *collector, const struct pending_work *pending)
{
	const struct wire_device_activity *activity = &pending->activity;
	const char *device = device_names_get(
		&collector->names, pending->pid, WIRE_RECORD_DEVICE_DEVICE, activity->device);
	struct capture_device_work out = {
		.pid = pending->pid,
		.tid = activity->tid,
		/* The program's call, without the time that its stack took. */
		.launch_ns = activity->before_ns,
		.launch_duration_ns = activity->after_ns - activity->before_ns,
		.correlation = activity->correlation,
		.kind = activity->kind,
		.name = device_names_get(
			&collector->names, pending->pid, WIRE_RECORD_DEVICE_NAME, activity->name),
		.device = device ? device : "",
		.queue = activity->queue,
		.bytes = activity->bytes,
	};

	memcpy(out.global_size, activity->global_size, sizeof(out.global_size));
	memcpy(out.local_size, activity->local_size, sizeof(out.local_size));
	out.queued_ns = to_host(pending, activity->queued);
	out.submit_ns = to_host(pending, activity->submit);
	out.start_ns = to_host(pending, activity->start);
	out.end_ns = to_host(pending, activity->end);
	collector->account.launches++;
	collector->account.started_before_launch += out.start_ns < activity->before_ns;
	collector->account.clock_error_ns = MAX(collector->account.clock_error_ns,
		(uint64_t)((pending->upper - pending->lower) / 2));
	return device_output_work(&collector->output, &out);
}

static int compare_launch_times(const void *left, const void *right)
{
	const struct pending_work *a = left, *b = right;

	return a->activity.before_ns < b->activity.before_ns
		       ? -1
		       : a->activity.before_ns > b->activity.before_ns;
}

/* What one thread tells mostly comes in order. */
static void sort_pending(struct device_collector *collector)
{
	struct pending_work *items = collector->pending.items;
	size_t count = collector->pending.count, i = 1;

	while (i < count && compare_launch_times(&items[i - 1], &items[i]) <= 0)
		i++;
	if (i < count)
		qsort(items, count, sizeof(*items), compare_launch_times);
}

/* Its name may be in a ring that was read before; its clock may soon be known better. */
static bool should_wait(
	const struct device_collector *collector, struct pending_work *pending, uint64_t now_ns)
{
	const struct wire_device_activity *activity = &pending->activity;
	bool has_name = !activity->name || device_names_get(&collector->names, pending->pid,
						   WIRE_RECORD_DEVICE_NAME, activity->name);

	if (pending->upper - pending->lower > 2 * GOOD_CLOCK_NS &&
		activity->after_ns + CLOCK_WAIT_NS > now_ns && activity->after_ns <= now_ns)
		return true;
	if (has_name || pending->waited)
		return false;
	pending->waited = true;
	return true;
}

int device_collector_write(struct device_collector *collector, uint64_t now_ns)
{
	size_t kept = 0;
	int result = paired_collector_write(collector->paired, now_ns);

	if (!collector->pending.count)
		return result;
	sort_pending(collector);
	align_clocks(collector);
	for (size_t i = 0; i < collector->pending.count; i++) {
		struct pending_work *pending = &collector->pending.items[i];

		if (result == 0 && now_ns != UINT64_MAX && should_wait(collector, pending, now_ns))
			collector->pending.items[kept++] = *pending;
		else if (result == 0)
			result = write_work(collector, pending);
	}
	collector->pending.count = kept;
	return result;
}

const struct device_account *device_collector_account(const struct device_collector *collector)
{
	return &collector->account;
}

void device_collector_end(struct device_collector *collector, uint64_t end_ns)
{
	paired_collector_end(collector->paired, end_ns);
}

const struct device_note *device_collector_notes(
	const struct device_collector *collector, size_t *ret_count)
{
	return paired_collector_notes(collector->paired, ret_count);
}
