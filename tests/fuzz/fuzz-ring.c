/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the ring file of a profiled process, and what is in it through to a capture. The
 * input: two bytes that say how far the ring's head is, then the ring's bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collect/device/device.h"
#include "collect/pipeline/ranges.h"
#include "sources/target/target_rings.h"
#include "target.h"

#define PID 77

struct sink {
	struct device_collector *collector;
	struct range_collector *ranges;
	uint64_t records;
};

static int see_work(void *context, const struct capture_device_work *work)
{
	if (work->end_ns < work->start_ns || !work->device)
		abort();
	return 0;
}

static int see_launch(void *context, const struct capture_launch *launch)
{
	if (launch->kind >= WIRE_DEVICE_MAX || launch->untimed >= WIRE_DEVICE_UNTIMED_MAX)
		abort();
	return 0;
}

/* Never more ends than begins on a track of a thread, whatever the records say. */
static int see_range(void *context, const struct capture_range_event *event)
{
	long *open = context;

	if (event->kind < CAPTURE_RANGE_BEGIN || event->kind > CAPTURE_RANGE_MARK)
		abort();
	if (event->kind != CAPTURE_RANGE_MARK)
		*open += event->kind == CAPTURE_RANGE_BEGIN ? 1 : -1;
	if (*open < 0 || !event->name || !event->domain || !event->category)
		abort();
	for (uint32_t i = 0; i < event->field_count; i++) {
		const struct capture_range_field *field = &event->fields[i];

		if (!field->name || !field->text || !field->type ||
			field->type >= WIRE_RANGE_VALUE_MAX)
			abort();
	}
	return 0;
}

static int see_counter(void *context, const struct capture_counter *counter)
{
	if (!counter->name || counter->pid != PID)
		abort();
	return 0;
}

static int see_event(void *context, const struct capture_device_event *event)
{
	if ((unsigned)event->kind >= CAPTURE_DEVICE_EVENT_MAX || event->pid != PID ||
		(event->text && strlen(event->text) > WIRE_DEVICE_MAX_BYTES))
		abort();
	return 0;
}

static const struct capture_visitor visitor = {.device_work = see_work,
	.launch = see_launch,
	.device_event = see_event,
	.range = see_range,
	.counter = see_counter};

static void on_record(void *context, uint32_t pid, const struct wire_record *record)
{
	struct sink *sink = context;

	if (record->length_bytes < sizeof(*record) || record->length_bytes > WIRE_LAUNCH_MAX_BYTES)
		abort();
	if (range_collector_takes(record)) {
		if (range_collector_add(sink->ranges, pid, record) < 0)
			abort();
	} else if (device_collector_add(sink->collector, pid, record) < 0) {
		abort();
	}
	/* Now and then, as the collector does: some of it waits, some has waited too long. */
	if (++sink->records % 3 == 0 &&
		device_collector_write(sink->collector, sink->records * NS_PER_S) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static struct wire_ring_file *file;
	static struct wire_ring_cursor cursors[WIRE_RING_COUNT];
	struct capture_writer *writer;
	uint64_t damaged = 0;
	struct sink sink = {0};
	long open_ranges = 0;
	uint16_t head;

	if (!file)
		file = calloc(1, WIRE_RING_FILE_BYTES);
	if (!file || length < sizeof(head))
		return 0;
	memcpy(&head, bytes, sizeof(head));
	bytes += sizeof(head);
	length -= sizeof(head);
	if (length > WIRE_RING_BYTES)
		return 0;
	memset(cursors, 0, sizeof(cursors));
	memcpy(wire_ring_data(file, 0), bytes, length);
	memset(wire_ring_data(file, 0) + length, 0, 64);
	file->pid = PID;
	file->rings[0].head = head == UINT16_MAX ? length / 8 * 8 : head;
	if (capture_writer_open_live(&writer, &visitor, &open_ranges, NULL) < 0 ||
		device_collector_new(&sink.collector, writer) < 0 ||
		range_collector_new(&sink.ranges, writer) < 0)
		abort();
	target_rings_read(file, file->pid, cursors, on_record, &sink, &damaged);
	if (device_collector_write(sink.collector, UINT64_MAX) < 0 ||
		range_collector_write(sink.ranges, false) < 0 ||
		range_collector_write(sink.ranges, true) < 0)
		abort();
	device_collector_free(sink.collector);
	range_collector_free(sink.ranges);
	capture_writer_free(writer);
	return 0;
}
