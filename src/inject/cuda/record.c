/* SPDX-License-Identifier: Apache-2.0 */
/* Records of CUPTI, in no order, become wire records; on the writer thread only. Kinds of memory
 * are those of wire/device.h: CUpti_ActivityMemoryKind has the same values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/cuda/cuda.h"

#define PAUSE_NS   1000000
#define MAX_PAUSES 200 /* for one record */

static uint64_t activities, served_launches, untimed, dropped, unknown_nodes, repeated, waited_out;

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

/*
 * One buffer of CUPTI's can hold more than a ring. This thread is ours and may wait for the
 * collector, but not again and again for one that has stopped.
 */
static bool wait_for_room(unsigned pauses)
{
	static bool patient = true;
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	if (!pauses) /* it has found room */
		patient = true;
	else if (pauses > MAX_PAUSES)
		patient = false;
	if (!pauses || !patient || !inject_is_writable())
		return false;
	repeated++;
	nanosleep(&pause, NULL);
	return true;
}

bool cuda_write(const struct wire_record *record)
{
	unsigned pauses = 0;

	while (!inject_write(record))
		if (!wait_for_room(++pauses)) {
			waited_out++;
			return false;
		}
	wait_for_room(0);
	return true;
}

bool cuda_define(uint16_t type, uint32_t id, uint32_t device, const char *text)
{
	unsigned pauses = 0;

	while (!inject_define(type, id, device, text))
		if (!wait_for_room(++pauses))
			return false;
	wait_for_room(0);
	return true;
}

/* ---- activities ---- */

/* What all kinds of activity have. */
struct common {
	unsigned kind; /* enum wire_device_kind */
	uint32_t correlation;
	uint64_t start, end, bytes;
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

static struct wire_device_gpu_activity start_activity(const struct common *common)
{
	static uint32_t replay; /* the last one of which a node came */
	struct wire_device_gpu_activity out = {
		.activity =
			{
				.record = {.type = WIRE_RECORD_DEVICE_ACTIVITY,
					.length_bytes = sizeof(out)},
				.correlation = cuda_correlation(common->correlation),
				.start = common->start,
				.end = common->end,
				.bytes = common->bytes,
				.device = cuda_device_id(common->device),
				.queue = cuda_queue_id(
					common->device, common->context, common->stream),
				.kind = (uint8_t)common->kind,
			},
		.capture = capture_of(common),
		.graph_node = common->node,
		.graph = common->graph,
		.context = common->context,
		.stream = common->stream,
	};

	activities++;
	if (!common->node || common->correlation != replay) {
		replay = common->node ? common->correlation : replay;
		served_launches++;
	}
	if (!common->start || !common->end) {
		untimed++;
		out.untimed = WIRE_DEVICE_NO_TIMES;
	}
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
		.node = record->graph_node,
		.source_node = cuda.cupti.version >= CUPTI_VERSION_13_4 ? record->source_node : 0,
	};
	struct wire_device_gpu_activity out = start_activity(&common);

	out.activity.name = cuda_name_id(record->name);
	for (unsigned i = 0; i < 3; i++) {
		out.activity.local_size[i] = (uint32_t)record->block[i];
		out.activity.global_size[i] =
			(uint64_t)(uint32_t)record->grid[i] * (uint32_t)record->block[i];
		out.cluster_size[i] = record->cluster[i];
	}
	out.registers = record->registers;
	out.static_shared_bytes = (uint32_t)record->static_shared;
	out.dynamic_shared_bytes = (uint32_t)record->dynamic_shared;
	out.local_bytes = record->local_per_thread;
	cuda_write(&out.activity.record);
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
	struct wire_device_gpu_activity out = start_activity(&common);

	out.from_memory = record->from;
	out.to_memory = record->to;
	cuda_write(&out.activity.record);
}

static void take_peer_copy(const struct cupti_memcpy_peer *record)
{
	struct common common = {
		.kind = WIRE_DEVICE_COPY,
		COMMON(record),
		.bytes = record->bytes,
		.node = record->graph_node,
	};
	struct wire_device_gpu_activity out = start_activity(&common);

	out.from_memory = record->from;
	out.to_memory = record->to;
	cuda_write(&out.activity.record);
}

static void take_fill(const struct cupti_memset *record)
{
	struct common common = {
		.kind = WIRE_DEVICE_FILL,
		COMMON(record),
		.bytes = record->bytes,
		.node = record->graph_node,
	};
	struct wire_device_gpu_activity out = start_activity(&common);

	out.to_memory = (uint8_t)record->memory;
	cuda_write(&out.activity.record);
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
	struct wire_device_gpu_activity out;

	place_on_device(record, &common);
	out = start_activity(&common);
	cuda_write(&out.activity.record);
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
	case CUPTI_KIND_OVERHEAD:
		take_overhead(record);
		break;
	case CUPTI_KIND_MEMORY2:
		take_memory(record);
		break;
	case CUPTI_KIND_DEVICE:
		cuda_take_device(record);
		break;
	default:
		break;
	}
}

void cuda_take_records(uint8_t *buffer, size_t valid_bytes, cupti_handle context, uint32_t stream)
{
	void *record = NULL;

	/* A replay's nodes were reported before the replay. */
	cuda_graph_drain();
	while (cupti_next_record(&cuda.cupti, buffer, valid_bytes, &record))
		take_record(record);
	dropped += cupti_dropped(&cuda.cupti, context, stream);
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
		.waited_out = waited_out,
		.repeated = repeated,
	};
}

static struct wire_device_counts before;

void cuda_reset_counts(void)
{
	before = count_all();
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
		.waited_out = all.waited_out - before.waited_out,
		.repeated = all.repeated - before.repeated,
	};
}

void cuda_send_counts(void)
{
	struct wire_device_counts out = count();
	unsigned pauses = 0;

	while (!inject_write(&out.record)) {
		if (!wait_for_room(++pauses)) {
			waited_out++;
			return;
		}
		out.repeated = repeated - before.repeated; /* its own tries count, too */
	}
	wait_for_room(0);
}
