/* SPDX-License-Identifier: Apache-2.0 */
/* Records of CUPTI, in no order, become wire records; on the writer thread only. Kinds of memory
 * are those of wire/device.h: CUpti_ActivityMemoryKind has the same values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/cuda/cuda.h"

static uint64_t activities, served_launches, untimed, dropped, unknown_nodes;

uint64_t cuda_activities(void)
{
	return activities;
}

uint64_t cuda_served_launches(void)
{
	return served_launches;
}

void cuda_forget_launches(void)
{
	served_launches = atomic_load_explicit(&cuda.launches, memory_order_relaxed);
}

uint64_t cuda_dropped(void)
{
	return dropped;
}

/* ---- writing ---- */

/* One buffer of CUPTI's can hold more than a ring. */
bool cuda_write(const struct wire_record *record)
{
	return inject_room_write(&cuda.room, record);
}

bool cuda_define(uint16_t type, uint32_t id, uint32_t device, const char *text)
{
	return inject_room_define(&cuda.room, type, id, device, text);
}

/* ---- activities ---- */

/* What all kinds of activity have. */
struct common {
	unsigned kind; /* enum wire_device_kind */
	uint32_t correlation;
	uint64_t start, end, bytes;
	const char *name;  /* of kernels */
	uint32_t name_id;  /* of what CUPTI gives no name; 0: none */
	uint32_t launcher; /* as in the wire record */
	uint32_t device, context, stream, graph;
	uint64_t node;
	uint64_t source_node; /* 0: unknown */
};

static uint64_t capture_of(const struct common *common)
{
	uint64_t capture = 0;

	if (!common->node || cuda_graph_capture(common->graph, common->node, &capture) ||
		(common->source_node && cuda_graph_capture(0, common->source_node, &capture)))
		return capture;
	unknown_nodes++;
	return 0;
}

/* Nodes of one replay follow each other, and are of one launch. */
static void count_served(const struct common *common)
{
	static uint32_t replay; /* the last one of which a node came */

	if (common->launcher || (common->node && common->correlation == replay))
		return;
	if (common->node)
		replay = common->correlation;
	served_launches++;
}

static enum wire_device_untimed take_times(const struct common *common)
{
	if (!common->start || !common->end) {
		untimed++;
		return WIRE_DEVICE_NO_TIMES;
	}
	if (common->graph && !common->launcher &&
		(common->node || common->kind == WIRE_DEVICE_GRAPH))
		cuda_level_take(&(struct cuda_replayed){
			.exec = common->graph,
			.correlation = common->correlation,
			.start = common->start,
			.end = common->end,
			.is_whole = common->kind == WIRE_DEVICE_GRAPH,
		});
	return WIRE_DEVICE_TIMED;
}

/*
 * Where it lies in the ring, for who fills in the rest and commits it; NULL: there was no room. The
 * definitions that it needs are written before.
 */
static struct wire_device_gpu_activity *begin_activity(
	const struct common *common, struct inject_place *ret_place)
{
	uint64_t capture = capture_of(common);
	uint64_t correlation = common->launcher ? 0 : cuda_correlation(common->correlation);
	uint32_t name = common->name_id ? common->name_id : cuda_name_id(common->name),
		 device = cuda_device_id(common->device),
		 queue = cuda_queue_id(common->device, common->context, common->stream);
	enum wire_device_untimed times = take_times(common);
	struct wire_device_gpu_activity *out;

	activities++;
	count_served(common);
	out = inject_room_reserve(&cuda.room, sizeof(*out), ret_place);
	if (!out)
		return NULL;
	*out = (struct wire_device_gpu_activity){
		.activity =
			{
				.record = {.type = WIRE_RECORD_DEVICE_ACTIVITY,
					.length_bytes = sizeof(*out)},
				.correlation = correlation,
				.start = common->start,
				.end = common->end,
				.bytes = common->bytes,
				.name = name,
				.device = device,
				.queue = queue,
				.kind = (uint8_t)common->kind,
			},
		.capture = capture,
		.graph_node = common->node,
		.graph = common->graph,
		.context = common->context,
		.stream = common->stream,
		.launcher = common->launcher,
		.untimed = (uint8_t)times,
	};
	return out;
}

/* What records of all kinds have, by the same names. */
#define COMMON(record)                                                                             \
	.correlation = (record)->correlation, .start = (record)->start, .end = (record)->end,      \
	.device = (record)->device, .context = (record)->context, .stream = (record)->stream,      \
	.graph = (record)->graph

static void take_kernel(const struct cupti_kernel *record)
{
	struct common common = {
		.kind = WIRE_DEVICE_KERNEL,
		COMMON(record),
		.name = record->name,
		.node = record->graph_node,
		.source_node = cuda.cupti.version >= CUPTI_VERSION_13_4 ? record->source_node : 0,
	};
	struct inject_place place;
	struct wire_device_gpu_activity *out = begin_activity(&common, &place);

	if (!out)
		return;
	cuda_latency_take(record, &out->activity);
	if (cuda.cupti.version >= CUPTI_VERSION_13_1) {
		out->has_priority = 1;
		out->priority = record->priority;
	}
	for (unsigned i = 0; i < 3; i++) {
		out->activity.local_size[i] = (uint32_t)record->block[i];
		out->activity.global_size[i] =
			(uint64_t)(uint32_t)record->grid[i] * (uint32_t)record->block[i];
		out->cluster_size[i] = record->cluster[i];
	}
	out->registers = record->registers;
	out->static_shared_bytes = (uint32_t)record->static_shared;
	out->dynamic_shared_bytes = (uint32_t)record->dynamic_shared;
	out->local_bytes = record->local_per_thread;
	inject_commit(&place);
}

static unsigned copy_kind(uint8_t copy)
{
	if (copy == CUPTI_COPY_HTOD || copy == CUPTI_COPY_HTOA)
		return WIRE_DEVICE_WRITE;
	if (copy == CUPTI_COPY_DTOH || copy == CUPTI_COPY_ATOH)
		return WIRE_DEVICE_READ;
	return WIRE_DEVICE_COPY;
}

static void take_copy(const struct cupti_memcpy *record)
{
	struct common common = {
		.kind = copy_kind(record->copy),
		COMMON(record),
		.bytes = record->bytes,
		.node = record->graph_node,
	};
	struct inject_place place;
	struct wire_device_gpu_activity *out = begin_activity(&common, &place);

	if (!out)
		return;
	out->from_memory = record->from;
	out->to_memory = record->to;
	inject_commit(&place);
}

static void take_peer_copy(const struct cupti_memcpy_peer *record)
{
	struct common common = {
		.kind = WIRE_DEVICE_COPY,
		COMMON(record),
		.bytes = record->bytes,
		.node = record->graph_node,
	};
	struct inject_place place;
	struct wire_device_gpu_activity *out = begin_activity(&common, &place);

	if (!out)
		return;
	out->from_memory = record->from;
	out->to_memory = record->to;
	inject_commit(&place);
}

static void take_fill(const struct cupti_memset *record)
{
	struct common common = {
		.kind = WIRE_DEVICE_FILL,
		COMMON(record),
		.bytes = record->bytes,
		.node = record->graph_node,
	};
	struct inject_place place;
	struct wire_device_gpu_activity *out = begin_activity(&common, &place);

	if (!out)
		return;
	out->to_memory = (uint8_t)record->memory;
	inject_commit(&place);
}

/* Where the graph begins with a node of the host: the device that it ends on, or the only one. */
static void place_on_device(const struct cupti_graph_trace *record, struct common *common)
{
	/* The record was shorter before. */
	bool has_end = cuda.cupti.version >= CUPTI_VERSION_12_4;

	if (common->device == CUPTI_HOST && has_end && record->end_device != CUPTI_HOST) {
		common->device = record->end_device;
		common->context = record->end_context;
	}
	if (common->device == CUPTI_HOST)
		common->device = cuda_unplaced_device();
	if (common->context == CUPTI_HOST)
		common->context = 0;
}

static void take_graph(const struct cupti_graph_trace *record)
{
	struct common common = {
		.kind = WIRE_DEVICE_GRAPH,
		COMMON(record),
	};
	struct inject_place place;

	place_on_device(record, &common);
	if (begin_activity(&common, &place))
		inject_commit(&place);
}

static void take_device_graph(const struct cupti_device_graph *record)
{
	const struct common common = {
		.kind = WIRE_DEVICE_GRAPH,
		.launcher = cuda_device_graph_launcher(record),
		.name_id = cuda_device_graph_name(record),
		.start = record->start,
		.end = record->end,
		.device = record->device,
		.context = record->context,
		.stream = (uint32_t)(record->stream | record->stream >> 32), /* or a handle */
		.graph = record->graph,
	};
	struct inject_place place;

	if (begin_activity(&common, &place))
		inject_commit(&place);
}

/* ---- the rest ---- */

static void take_overhead(const struct cupti_overhead *record)
{
	/* The record was shorter before. */
	bool correlated = cuda.cupti.version >= CUPTI_VERSION_12_4;
	struct wire_device_overhead out = {
		.record = {.type = WIRE_RECORD_DEVICE_OVERHEAD, .length_bytes = sizeof(out)},
		.start = record->start,
		.end = record->end,
		.kind = record->overhead,
	};

	if (record->object == CUPTI_OBJECT_THREAD)
		out.tid = record->object_id[1];
	if (correlated && record->correlation)
		out.correlation = cuda_correlation(record->correlation);
	if (correlated)
		free(record->details);
	if (cuda.is_tracing)
		cuda_write(&out.record);
}

static void take_memory(const struct cupti_memory *record)
{
	struct wire_device_memory out = {
		.record = {.type = WIRE_RECORD_DEVICE_MEMORY, .length_bytes = sizeof(out)},
		.time = record->timestamp,
		.correlation = cuda_correlation(record->correlation),
		.address = record->address,
		.bytes = record->bytes,
		.pool_bytes = record->pool ? record->pool_bytes : 0,
		.pool_used_bytes = record->pool ? record->pool_used : 0,
		.device = cuda_device_id(record->device),
		.context = record->context,
		.stream = record->stream,
		.memory = (uint8_t)record->memory,
		.released = record->operation == CUPTI_MEMORY_RELEASE,
	};

	cuda_write(&out.record);
}

static uint64_t event_sync_of(uint64_t id)
{
	return id == CUPTI_SYNC_INVALID || id == UINT64_MAX ? 0 : id;
}

static void take_sync(const struct cupti_synchronization *record)
{
	/* The record was shorter before, as that of events. */
	bool is_joined = cuda.cupti.version >= CUPTI_VERSION_12_8;
	struct wire_device_sync out = {
		.record = {.type = WIRE_RECORD_DEVICE_SYNC, .length_bytes = sizeof(out)},
		.start = record->start,
		.end = record->end,
		.correlation = cuda_correlation(record->correlation),
		.event_sync = is_joined ? event_sync_of(record->event_sync) : 0,
		.context = record->context,
		.stream = record->stream,
		.event = record->event,
		.sync = record->type <= WIRE_SYNC_CONTEXT ? (uint8_t)record->type
							  : WIRE_SYNC_UNKNOWN,
	};

	cuda_write(&out.record);
}

static void take_event(const struct cupti_event *record)
{
	bool is_joined = cuda.cupti.version >= CUPTI_VERSION_12_8;
	struct wire_device_sync out = {
		.record = {.type = WIRE_RECORD_DEVICE_SYNC, .length_bytes = sizeof(out)},
		.correlation = cuda_correlation(record->correlation),
		.event_sync = is_joined ? event_sync_of(record->event_sync) : 0,
		.context = record->context,
		.stream = record->stream,
		.event = record->event,
		.sync = WIRE_SYNC_RECORD,
	};

	cuda_write(&out.record);
}

/* Its stream does nothing meanwhile. A record without times says nothing. */
static void take_host_function(
	uint32_t correlation, uint32_t context, uint32_t stream, uint64_t start, uint64_t end)
{
	struct wire_device_sync out = {
		.record = {.type = WIRE_RECORD_DEVICE_SYNC, .length_bytes = sizeof(out)},
		.start = start,
		.end = end,
		.correlation = cuda_correlation(correlation),
		.context = context,
		.stream = stream,
		.event = WIRE_SYNC_NO_EVENT,
		.sync = WIRE_SYNC_HOST_FUNCTION,
	};

	if (start && end)
		cuda_write(&out.record);
}

static void take_host_launch(const struct cupti_host_launch *record)
{
	take_host_function(
		record->correlation, record->context, record->stream, record->start, record->end);
}

static void take_graph_host_node(const struct cupti_graph_host_node *record)
{
	take_host_function(
		record->correlation, record->context, record->stream, record->start, record->end);
}

static uint32_t unified_device(uint32_t ordinal)
{
	return ordinal == CUPTI_UNIFIED_HOST ? 0 : cuda_device_id(ordinal);
}

/* Which of its fields mean something depends on what happened. */
static void take_unified(const struct cupti_unified_memory *record)
{
	uint32_t type = record->counter < WIRE_UNIFIED_MAX ? record->counter : WIRE_UNIFIED_UNKNOWN;
	bool is_migration = type == WIRE_UNIFIED_TO_DEVICE || type == WIRE_UNIFIED_TO_HOST ||
			    type == WIRE_UNIFIED_BETWEEN_DEVICES;
	bool is_contended = type == WIRE_UNIFIED_THRASHING || type == WIRE_UNIFIED_THROTTLING;
	bool has_end = is_migration || type == WIRE_UNIFIED_DEVICE_FAULT ||
		       type == WIRE_UNIFIED_THROTTLING;
	struct wire_device_unified out = {
		.record = {.type = WIRE_RECORD_DEVICE_UNIFIED, .length_bytes = sizeof(out)},
		.start = record->start,
		.end = has_end ? record->end : 0,
		.address = record->address,
		.value = type == WIRE_UNIFIED_THROTTLING ? 0 : record->value,
		.type = (uint8_t)type,
		.on_host = is_contended && (record->flags & CUPTI_UNIFIED_ON_HOST),
	};

	if (is_migration || type == WIRE_UNIFIED_REMOTE_MAP)
		out.to = unified_device(record->to);
	if (is_migration || type == WIRE_UNIFIED_REMOTE_MAP || type == WIRE_UNIFIED_DEVICE_FAULT ||
		(type == WIRE_UNIFIED_THROTTLING && !out.on_host))
		out.from = unified_device(record->from);
	if (!is_contended && type != WIRE_UNIFIED_HOST_FAULT)
		out.cause = record->flags < WIRE_MIGRATION_MAX ? (uint8_t)record->flags : 0;
	/* The record was shorter before. */
	if (type == WIRE_UNIFIED_THRASHING && cuda.cupti.version >= CUPTI_VERSION_12_8)
		out.devices = record->processors[0];
	cuda_write(&out.record);
}

static void take_record(const void *record)
{
	uint32_t kind = *(const uint32_t *)record;

	/* Between windows only what a GPU is, and what is ours to free. */
	if (!cuda.is_tracing && kind != CUPTI_KIND_DEVICE && kind != CUPTI_KIND_OVERHEAD)
		return;
	switch (kind) {
	case CUPTI_KIND_KERNEL:
	case CUPTI_KIND_CONCURRENT_KERNEL:
		take_kernel(record);
		break;
	case CUPTI_KIND_MEMCPY:
		take_copy(record);
		break;
	case CUPTI_KIND_MEMCPY2:
		take_peer_copy(record);
		break;
	case CUPTI_KIND_MEMSET:
		take_fill(record);
		break;
	case CUPTI_KIND_GRAPH_TRACE:
		take_graph(record);
		break;
	case CUPTI_KIND_DEVICE_GRAPH_TRACE:
		take_device_graph(record);
		break;
	case CUPTI_KIND_OVERHEAD:
		take_overhead(record);
		break;
	case CUPTI_KIND_MEMORY2:
		take_memory(record);
		break;
	case CUPTI_KIND_SYNCHRONIZATION:
		take_sync(record);
		break;
	case CUPTI_KIND_CUDA_EVENT:
		take_event(record);
		break;
	case CUPTI_KIND_HOST_LAUNCH:
		take_host_launch(record);
		break;
	case CUPTI_KIND_GRAPH_HOST_NODE:
		take_graph_host_node(record);
		break;
	case CUPTI_KIND_UNIFIED_MEMORY:
		take_unified(record);
		break;
	case CUPTI_KIND_DEVICE:
		cuda_take_device(record);
		break;
	default:
		break;
	}
}

static bool is_activity(uint32_t kind)
{
	return kind == CUPTI_KIND_KERNEL || kind == CUPTI_KIND_CONCURRENT_KERNEL ||
	       kind == CUPTI_KIND_MEMCPY || kind == CUPTI_KIND_MEMCPY2 ||
	       kind == CUPTI_KIND_MEMSET || kind == CUPTI_KIND_GRAPH_TRACE ||
	       kind == CUPTI_KIND_DEVICE_GRAPH_TRACE;
}

/* At the process's end, where the time to write them is over. */
static void lose_records(uint8_t *buffer, size_t valid_bytes)
{
	uint64_t lost = 0;
	void *record = NULL;

	while (cupti_next_record(&cuda.cupti, buffer, valid_bytes, &record)) {
		uint32_t kind = *(const uint32_t *)record;

		activities += is_activity(kind);
		lost += kind != CUPTI_KIND_DEVICE;
	}
	inject_room_lose(&cuda.room, lost);
}

void cuda_take_records(uint8_t *buffer, size_t valid_bytes, cupti_handle context, uint32_t stream)
{
	void *record = NULL;

	cuda_names_begin();
	/* A replay's nodes were reported before the replay. */
	cuda_graph_drain();
	if (cuda.is_tracing && inject_room_is_over(&cuda.room))
		lose_records(buffer, valid_bytes);
	else
		while (cupti_next_record(&cuda.cupti, buffer, valid_bytes, &record))
			take_record(record);
	dropped += cupti_dropped(&cuda.cupti, context, stream);
	/* The next buffer may take long where the collector is late. */
	cuda_send_counts();
}

/* Of all sessions; and of those before this one. */
static struct wire_device_counts count_all(void)
{
	return (struct wire_device_counts){
		.launches = atomic_load_explicit(&cuda.launches, memory_order_relaxed),
		.captured = atomic_load_explicit(&cuda.captured, memory_order_relaxed),
		.activities = activities,
		.untimed = untimed,
		.dropped = dropped,
		.unknown_nodes = unknown_nodes,
		.lost_graph_events =
			atomic_load_explicit(&cuda.lost_graph_events, memory_order_relaxed),
		.refused_buffers =
			atomic_load_explicit(&cuda.refused_buffers, memory_order_relaxed),
		.foreign_buffers =
			atomic_load_explicit(&cuda.foreign_buffers, memory_order_relaxed),
	};
}

static struct wire_device_counts before;

void cuda_reset_counts(void)
{
	before = count_all();
	cuda.room.repeated = cuda.room.waited_out = 0;
}

static struct wire_device_counts count(void)
{
	struct wire_device_counts all = count_all();

	return (struct wire_device_counts){
		.record = {.type = WIRE_RECORD_DEVICE_COUNTS, .length_bytes = sizeof(all)},
		.time_ns = inject_now_ns(),
		.launches = all.launches - before.launches,
		.captured = all.captured - before.captured,
		.activities = all.activities - before.activities,
		.untimed = all.untimed - before.untimed,
		.dropped = all.dropped - before.dropped,
		.unknown_nodes = all.unknown_nodes - before.unknown_nodes,
		.lost_graph_events = all.lost_graph_events - before.lost_graph_events,
		.refused_buffers = all.refused_buffers - before.refused_buffers,
		.foreign_buffers = all.foreign_buffers - before.foreign_buffers,
	};
}

void cuda_send_counts(void)
{
	struct wire_device_counts out = count();

	inject_room_write_counts(&cuda.room, &out);
}

void cuda_send_last_counts(void)
{
	struct wire_device_counts out = count();

	inject_room_write_last_counts(&cuda.room, &out);
}
