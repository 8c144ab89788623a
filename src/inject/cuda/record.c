/* SPDX-License-Identifier: Apache-2.0 */
/* Records of CUPTI, in no order, become wire records; on the writer thread only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/cuda/cuda.h"

#define PAUSE_NS   1000000
#define MAX_PAUSES 200 /* for one record */
#define MAX_GPUS   64  /* of one process */
/* Names that are known by their place, and how many places each may have. */
#define KNOWN_NAMES  4096
#define KNOWN_PLACES 8
/* The number of what CUPTI says to be on the host. */
#define HOST_ORDINAL 0xffff

static uint64_t activities, served_launches, untimed, dropped, unknown_nodes, repeated, waited_out;

uint64_t cuda_activities(void)
{
	return activities;
}

uint64_t cuda_served_launches(void)
{
	return served_launches;
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

/* ---- ids ---- */

/* An open hash of what has an id: kernel names by their text, streams by their number. */
struct interned {
	uint64_t hash; /* 0: free */
	char *text;    /* NULL: the hash is the key */
	uint32_t id;   /* 0: not sent yet */
};

struct interner {
	struct interned *table;
	size_t count, capacity; /* a power of two */
	uint32_t last_id;
};

static struct interner names, streams, devices;

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ULL;
	return hash ? hash : 1;
}

static struct interned *place_of(
	struct interned *table, size_t capacity, uint64_t hash, const char *text)
{
	size_t i = (hash * 0x9e3779b97f4a7c15ULL) >> 24;

	for (;; i++) {
		struct interned *place = &table[i & (capacity - 1)];

		if (!place->hash || (place->hash == hash &&
					    (!text || (place->text && !strcmp(place->text, text)))))
			return place;
	}
}

static bool grow(struct interner *interner)
{
	size_t capacity = interner->capacity ? interner->capacity * 2 : 256;
	struct interned *table = calloc(capacity, sizeof(*table));

	if (!table)
		return false;
	for (size_t i = 0; i < interner->capacity; i++) {
		const struct interned *old = &interner->table[i];

		if (old->hash)
			*place_of(table, capacity, old->hash, old->text) = *old;
	}
	free(interner->table);
	interner->table = table;
	interner->capacity = capacity;
	return true;
}

/* NULL: out of memory. */
static struct interned *intern(struct interner *interner, uint64_t hash, const char *text)
{
	struct interned *place;

	if (interner->count * 2 >= interner->capacity && !grow(interner))
		return NULL;
	place = place_of(interner->table, interner->capacity, hash, text);
	if (place->hash)
		return place;
	if (text) {
		place->text = strdup(text);
		if (!place->text)
			return NULL;
	}
	place->hash = hash;
	interner->count++;
	return place;
}

/* Long names go in parts; an id is given when all of it found room. */
static uint32_t define_name(const char *name, struct interned *place)
{
	uint32_t id;

	id = CUDA_ID_BASE | ++names.last_id;
	if (!cuda_define(WIRE_RECORD_DEVICE_NAME, id, 0, name))
		return 0;
	for (size_t rest = strlen(name); rest > WIRE_DEVICE_TEXT_BYTES;
		rest -= WIRE_DEVICE_TEXT_BYTES)
		if (!cuda_define(WIRE_RECORD_DEVICE_NAME_PART, id, 0,
			    name + strlen(name) - rest + WIRE_DEVICE_TEXT_BYTES))
			return 0;
	place->id = id;
	return id;
}

/*
 * Names by CUPTI's pointers: hashing three hundred characters for each record takes longer than all
 * else. The text is compared, as a module that is loaded again may have another name at its place.
 */
static struct known_name {
	const char *name; /* CUPTI's */
	const char *text; /* of the interner */
	uint32_t id;
} known_names[KNOWN_NAMES];

/* Where the name is, or goes: the first of some places that is free or its own. */
static struct known_name *known_place(const char *name)
{
	size_t first = ((uintptr_t)name * 0x9e3779b97f4a7c15ULL) >> 32;

	for (size_t i = 0; i < KNOWN_PLACES; i++) {
		struct known_name *known = &known_names[(first + i) % KNOWN_NAMES];

		if (!known->name || known->name == name)
			return known;
	}
	return &known_names[first % KNOWN_NAMES];
}

static uint32_t name_id(const char *name)
{
	struct known_name *known = known_place(name);
	struct interned *place;

	if (!name)
		return 0;
	if (known->name == name && !strcmp(known->text, name))
		return known->id;
	place = intern(&names, hash_text(name), name);
	if (!place || (!place->id && !define_name(name, place)))
		return 0;
	*known = (struct known_name){.name = name, .text = place->text, .id = place->id};
	return known->id;
}

/*
 * CUPTI says once what a GPU is, when CUDA starts: the gate may be closed then. What it said is
 * kept and sent before the first record that needs it, and when a window opens.
 */
static struct gpu {
	struct wire_device_gpu record;
	char name[WIRE_DEVICE_TEXT_BYTES]; /* "": CUPTI gave none */
	bool is_sent, is_visible;
} gpus[MAX_GPUS];
static size_t gpu_count;

static struct gpu *find_gpu(uint32_t id)
{
	for (size_t i = 0; i < gpu_count; i++)
		if (gpus[i].record.id == id)
			return &gpus[i];
	return NULL;
}

static uint32_t device_id_of(uint32_t ordinal)
{
	return CUDA_ID_BASE | (ordinal + 1);
}

static void send_gpu(struct gpu *gpu)
{
	if (gpu->is_sent || !inject_is_writable())
		return;
	if (gpu->name[0] && !cuda_define(WIRE_RECORD_DEVICE_DEVICE, gpu->record.id, 0, gpu->name))
		return;
	gpu->is_sent = cuda_write(&gpu->record.record);
}

void cuda_send_gpus(void)
{
	for (size_t i = 0; i < gpu_count; i++)
		send_gpu(&gpus[i]);
}

/* A GPU whose own record has not come yet is known by its number until then. */
static uint32_t device_id(uint32_t ordinal)
{
	uint32_t id = device_id_of(ordinal);
	struct gpu *gpu = find_gpu(id);
	struct interned *place;
	char text[64];

	if (gpu && gpu->name[0]) {
		send_gpu(gpu);
		return id;
	}
	place = intern(&devices, ordinal + 1ULL, NULL);
	if (!place || place->id)
		return id;
	if (ordinal == HOST_ORDINAL)
		snprintf(text, sizeof(text), "CUDA graphs of no known device");
	else
		snprintf(text, sizeof(text), "CUDA device %u", ordinal);
	if (cuda_define(WIRE_RECORD_DEVICE_DEVICE, id, 0, text))
		place->id = id;
	return id;
}

static uint32_t queue_id(uint32_t device, uint32_t context, uint32_t stream)
{
	struct interned *place = intern(&streams, ((uint64_t)context << 32 | stream) + 1, NULL);
	char text[64];
	uint32_t id;

	if (!place || place->id)
		return place ? place->id : 0;
	id = CUDA_ID_BASE | ++streams.last_id;
	if (context > 1)
		snprintf(text, sizeof(text), "stream %u of context %u", stream, context);
	else
		snprintf(text, sizeof(text), "stream %u", stream);
	if (!cuda_define(WIRE_RECORD_DEVICE_QUEUE, id, device_id(device), text))
		return 0;
	place->id = id;
	return id;
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
				.device = device_id(common->device),
				.queue = queue_id(common->device, common->context, common->stream),
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

	out.activity.name = name_id(record->name);
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
		common->device = gpu_count == 1 ? gpus[0].record.ordinal : HOST_ORDINAL;
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
		.device = device_id(record->device),
		.context = record->context,
		.stream = record->stream,
		.memory = (uint8_t)record->memory,
		.released = record->operation == CUPTI_MEMORY_RELEASE,
	};

	cuda_write(&out.record);
}

static void take_device(const struct cupti_device *record)
{
	uint32_t id = device_id_of(record->id);
	struct gpu *gpu = find_gpu(id);

	if (!gpu && gpu_count == MAX_GPUS)
		return;
	/* The other instances of a partitioned GPU have the number of the program's own. */
	if (gpu && gpu->is_visible && !record->cuda_visible)
		return;
	if (!gpu)
		gpu = &gpus[gpu_count++];
	gpu->is_sent = false;
	gpu->is_visible = record->cuda_visible;
	gpu->record = (struct wire_device_gpu){
		.record = {.type = WIRE_RECORD_DEVICE_GPU, .length_bytes = sizeof(gpu->record)},
		.id = id,
		.ordinal = record->id,
		.memory_bytes = record->memory_bytes,
		.capability_major = record->capability_major,
		.capability_minor = record->capability_minor,
		.multiprocessors = record->multiprocessors,
		.warp_threads = record->warp_threads,
		.multiprocessor_warps = record->multiprocessor_warps,
		.multiprocessor_blocks = record->multiprocessor_blocks,
		.multiprocessor_shared_bytes = record->multiprocessor_shared,
		.multiprocessor_registers = record->multiprocessor_registers,
		.block_registers = record->block_registers,
		.block_shared_bytes = record->block_shared,
		.block_threads = record->block_threads,
		.core_clock_khz = record->core_clock_khz,
		.is_mig = record->mig,
	};

	memcpy(gpu->record.uuid, record->mig ? record->mig_uuid : record->uuid,
		sizeof(gpu->record.uuid));
	if (record->name)
		snprintf(gpu->name, sizeof(gpu->name), "%s", record->name);
	send_gpu(gpu);
}

static void take_record(const void *record)
{
	switch (*(const uint32_t *)record) {
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
		take_device(record);
		break;
	default:
		break;
	}
}

void cuda_take_records(uint8_t *buffer, size_t valid_bytes, cupti_handle context, uint32_t stream)
{
	void *record = NULL;

	/* What a replay's nodes are was said before the replay. */
	cuda_graph_drain();
	while (cupti_next_record(&cuda.cupti, buffer, valid_bytes, &record))
		take_record(record);
	dropped += cupti_dropped(&cuda.cupti, context, stream);
}

void cuda_send_counts(void)
{
	struct wire_device_counts out = {
		.record = {.type = WIRE_RECORD_DEVICE_COUNTS, .length_bytes = sizeof(out)},
		.time_ns = inject_now_ns(),
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
	};
	unsigned pauses = 0;

	out.repeated = repeated;
	while (!inject_write(&out.record)) {
		if (!wait_for_room(++pauses)) {
			waited_out++;
			return;
		}
		out.repeated = repeated; /* its own tries count, too */
	}
	wait_for_room(0);
}
