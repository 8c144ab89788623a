/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/device_messages.h"

#include <stddef.h>
#include <string.h>

#include "base/macros.h"
#include "capture/fields.h"

/* A number of a struct; zero is not written. */
struct message_field {
	uint16_t number; /* in the message */
	uint16_t offset; /* in the struct, of a uint32_t or uint64_t */
	uint16_t bytes;
};

struct message_fields {
	const struct message_field *items;
	size_t count;
};

#define FIELD(number, type, member)                                                                \
	{                                                                                          \
		number, offsetof(struct type, member), sizeof(((struct type *)0)->member)          \
	}

static const struct message_field device_work_items[] = {
	FIELD(16, capture_device_work, gpu),
	FIELD(17, capture_device_work, context),
	FIELD(18, capture_device_work, stream),
	FIELD(19, capture_device_work, registers),
	FIELD(20, capture_device_work, static_shared_bytes),
	FIELD(21, capture_device_work, dynamic_shared_bytes),
	FIELD(22, capture_device_work, local_bytes),
	FIELD(23, capture_device_work, cluster_size[0]),
	FIELD(24, capture_device_work, cluster_size[1]),
	FIELD(25, capture_device_work, cluster_size[2]),
	FIELD(26, capture_device_work, capture),
	FIELD(27, capture_device_work, graph),
	FIELD(28, capture_device_work, graph_node),
	FIELD(29, capture_device_work, from_memory),
	FIELD(30, capture_device_work, to_memory),
	FIELD(31, capture_device_work, priority),
	FIELD(32, capture_device_work, launcher),
};

static const struct message_fields device_work_fields = {
	device_work_items, ARRAY_SIZE(device_work_items)};

/* 1 and 2 are the pid and the text. */
#define EVENT(number, member) FIELD(number, capture_device_event, member)

static const struct message_field gpu_items[] = {
	EVENT(3, gpu.number),
	EVENT(4, gpu.uuid_high),
	EVENT(5, gpu.uuid_low),
	EVENT(6, gpu.memory_bytes),
	EVENT(7, gpu.capability_major),
	EVENT(8, gpu.capability_minor),
	EVENT(9, gpu.multiprocessors),
	EVENT(10, gpu.warp_threads),
	EVENT(11, gpu.multiprocessor_warps),
	EVENT(12, gpu.multiprocessor_blocks),
	EVENT(13, gpu.multiprocessor_shared_bytes),
	EVENT(14, gpu.multiprocessor_registers),
	EVENT(15, gpu.block_registers),
	EVENT(16, gpu.block_shared_bytes),
	EVENT(17, gpu.block_threads),
	EVENT(18, gpu.core_clock_khz),
	EVENT(19, gpu.is_mig),
};

static const struct message_field graph_items[] = {
	EVENT(3, graph.event),
	EVENT(4, graph.tid),
	EVENT(5, graph.duration_ns),
	EVENT(6, graph.correlation),
	EVENT(7, graph.graph),
	EVENT(8, graph.other),
	EVENT(9, graph.nodes),
	EVENT(10, graph.failed),
};

static const struct message_field node_items[] = {
	EVENT(3, node.node),
	EVENT(4, node.original),
	EVENT(5, node.correlation),
	EVENT(6, node.graph),
	EVENT(7, node.node_type),
};

static const struct message_field overhead_items[] = {
	EVENT(3, overhead.kind),
	EVENT(4, overhead.duration_ns),
	EVENT(5, overhead.tid),
	EVENT(6, overhead.correlation),
};

static const struct message_field memory_items[] = {
	EVENT(3, memory.address),
	EVENT(4, memory.bytes),
	EVENT(5, memory.released),
	EVENT(6, memory.memory),
	EVENT(7, memory.gpu),
	EVENT(8, memory.context),
	EVENT(9, memory.stream),
	EVENT(10, memory.correlation),
	EVENT(11, memory.pool_bytes),
	EVENT(12, memory.pool_used_bytes),
};

static const struct message_field counts_items[] = {
	EVENT(3, counts.launches),
	EVENT(4, counts.captured),
	EVENT(5, counts.activities),
	EVENT(6, counts.untimed),
	EVENT(7, counts.dropped),
	EVENT(8, counts.unknown_nodes),
	EVENT(9, counts.lost_graph_events),
	EVENT(10, counts.refused_buffers),
	EVENT(11, counts.foreign_buffers),
	EVENT(12, counts.repeated),
	EVENT(13, counts.waited_out),
};

static const struct message_field note_items[] = {
	EVENT(3, note.note),
};

static const struct message_field clock_items[] = {
	EVENT(3, clock.device),
	EVENT(4, clock.boottime_ns),
	EVENT(5, clock.width_ns),
};

static const struct message_field sync_items[] = {
	EVENT(3, sync.type),
	EVENT(4, sync.duration_ns),
	EVENT(5, sync.correlation),
	EVENT(6, sync.event_sync),
	EVENT(7, sync.context),
	EVENT(8, sync.stream),
	EVENT(9, sync.event),
};

static const struct message_field call_items[] = {
	EVENT(3, call.tid),
	EVENT(4, call.duration_ns),
	EVENT(5, call.correlation),
	EVENT(6, call.failed),
};

static const struct message_field pc_text_items[] = {
	EVENT(3, pc_text.id),
};

static const struct message_field pc_items[] = {
	EVENT(3, pc.cubin),
	EVENT(4, pc.pc_offset),
	EVENT(5, pc.samples),
	EVENT(6, pc.not_issued),
	EVENT(7, pc.function),
	EVENT(8, pc.reason),
	EVENT(9, pc.file),
	EVENT(10, pc.line),
};

static const struct message_field pc_counts_items[] = {
	EVENT(3, pc_counts.samples),
	EVENT(4, pc_counts.dropped),
	EVENT(5, pc_counts.foreign),
	EVENT(6, pc_counts.lost),
	EVENT(7, pc_counts.reads),
	EVENT(8, pc_counts.full_reads),
	EVENT(9, pc_counts.failed_reads),
	EVENT(10, pc_counts.period_cycles),
};

static const struct message_field unified_items[] = {
	EVENT(3, unified.type),
	EVENT(4, unified.duration_ns),
	EVENT(5, unified.address),
	EVENT(6, unified.value),
	EVENT(7, unified.from),
	EVENT(8, unified.to),
	EVENT(9, unified.cause),
	EVENT(10, unified.on_host),
	EVENT(11, unified.devices),
};

/* The order is that of the packet's fields, too. */
static const struct message_fields event_fields[CAPTURE_DEVICE_EVENT_MAX] = {
	[CAPTURE_GPU] = {gpu_items, ARRAY_SIZE(gpu_items)},
	[CAPTURE_GRAPH_CALL] = {graph_items, ARRAY_SIZE(graph_items)},
	[CAPTURE_GRAPH_NODE] = {node_items, ARRAY_SIZE(node_items)},
	[CAPTURE_OVERHEAD] = {overhead_items, ARRAY_SIZE(overhead_items)},
	[CAPTURE_MEMORY] = {memory_items, ARRAY_SIZE(memory_items)},
	[CAPTURE_DEVICE_COUNTS] = {counts_items, ARRAY_SIZE(counts_items)},
	[CAPTURE_DEVICE_NOTE] = {note_items, ARRAY_SIZE(note_items)},
	[CAPTURE_DEVICE_CLOCK] = {clock_items, ARRAY_SIZE(clock_items)},
	[CAPTURE_DEVICE_SYNC] = {sync_items, ARRAY_SIZE(sync_items)},
	[CAPTURE_DEVICE_CALL] = {call_items, ARRAY_SIZE(call_items)},
	[CAPTURE_PC_TEXT] = {pc_text_items, ARRAY_SIZE(pc_text_items)},
	[CAPTURE_PC] = {pc_items, ARRAY_SIZE(pc_items)},
	[CAPTURE_PC_COUNTS] = {pc_counts_items, ARRAY_SIZE(pc_counts_items)},
	[CAPTURE_UNIFIED_MEMORY] = {unified_items, ARRAY_SIZE(unified_items)},
};

static void put_fields(
	struct strbuf *message, const struct message_fields *fields, const void *from)
{
	for (size_t i = 0; i < fields->count; i++) {
		const struct message_field *field = &fields->items[i];
		uint64_t value = 0;

		/* Little endian, as all that sonde runs on: a short number fills the low bytes. */
		memcpy(&value, (const char *)from + field->offset, field->bytes);
		if (value)
			pb_put_u64(message, field->number, value);
	}
}

static void take_field(const struct pb_field *taken, const struct message_fields *fields, void *to)
{
	for (size_t i = 0; i < fields->count; i++) {
		const struct message_field *field = &fields->items[i];

		if (taken->tag != PB_VARINT(field->number))
			continue;
		memcpy((char *)to + field->offset, &taken->value, field->bytes);
		return;
	}
}

void put_device_work_fields(struct strbuf *message, const struct capture_device_work *work)
{
	put_fields(message, &device_work_fields, work);
}

void take_device_work_field(const struct pb_field *field, struct capture_device_work *work)
{
	take_field(field, &device_work_fields, work);
}

uint32_t device_event_packet_field(enum capture_device_event_kind kind)
{
	return kind < CAPTURE_PC_TEXT
		       ? PACKET_SONDE_DEVICE_EVENT + (uint32_t)kind
		       : PACKET_SONDE_PC_EVENT + (uint32_t)kind - (uint32_t)CAPTURE_PC_TEXT;
}

enum capture_device_event_kind device_event_kind_of(uint32_t packet_field)
{
	uint32_t kind = packet_field - PACKET_SONDE_DEVICE_EVENT,
		 pc_kind = packet_field - PACKET_SONDE_PC_EVENT;

	if (kind < CAPTURE_PC_TEXT)
		return (enum capture_device_event_kind)kind;
	return pc_kind < CAPTURE_DEVICE_EVENT_MAX - CAPTURE_PC_TEXT
		       ? (enum capture_device_event_kind)(pc_kind + CAPTURE_PC_TEXT)
		       : CAPTURE_DEVICE_EVENT_MAX;
}

void put_device_event(struct strbuf *packet, const struct capture_device_event *event)
{
	size_t begin = pb_begin(packet, device_event_packet_field(event->kind));

	pb_put_u64(packet, DEVICE_EVENT_PID, event->pid);
	pb_put_text(packet, DEVICE_EVENT_TEXT, event->text);
	put_fields(packet, &event_fields[event->kind], event);
	pb_end(packet, begin);
}

int take_device_event(
	struct pb_bytes message, struct capture_device_event *event, struct pb_bytes *ret_text)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more;

	*ret_text = (struct pb_bytes){0};
	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(DEVICE_EVENT_PID))
			event->pid = (uint32_t)field.value;
		else if (field.tag == PB_BYTES(DEVICE_EVENT_TEXT))
			*ret_text = field.bytes;
		else
			take_field(&field, &event_fields[event->kind], event);
	}
	return more;
}
