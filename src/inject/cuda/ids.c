/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of kernel names, devices and queues, which are defined before a record has them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/cuda/cuda.h"

#define MAX_GPUS 64 /* of one process */
/* Names that are known by their place, and how many places each may have. */
#define KNOWN_NAMES  4096
#define KNOWN_PLACES 8
/* The number of what CUPTI says to be on the host. */
#define HOST_ORDINAL 0xffff

/* An open hash of what has an id: kernel names by their text, streams by their number. */
struct interned {
	uint64_t hash;    /* 0: free */
	char *text;       /* NULL: the hash is the key */
	uint32_t id;      /* 0: none yet */
	uint32_t sent_to; /* inject_image(): what one session knows, the next one does not */
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

static bool is_sent(const struct interned *place)
{
	return place->id && place->sent_to == inject_image();
}

/* Long names go in parts; an id is given when all of it found room. */
static uint32_t define_name(const char *name, struct interned *place)
{
	uint32_t id = place->id ? place->id : CUDA_ID_BASE | ++names.last_id;

	if (!cuda_define(WIRE_RECORD_DEVICE_NAME, id, 0, name))
		return 0;
	for (size_t rest = strlen(name); rest > WIRE_DEVICE_TEXT_BYTES;
		rest -= WIRE_DEVICE_TEXT_BYTES)
		if (!cuda_define(WIRE_RECORD_DEVICE_NAME_PART, id, 0,
			    name + strlen(name) - rest + WIRE_DEVICE_TEXT_BYTES))
			return 0;
	place->id = id;
	place->sent_to = inject_image();
	return id;
}

/*
 * Names by CUPTI's pointers: hashing three hundred characters for each record takes longer than all
 * else. The text is compared, as a module that is loaded again may have another name at its place.
 */
static struct known_name {
	const char *name; /* CUPTI's */
	const char *text; /* of the interner */
	uint32_t id, sent_to;
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

uint32_t cuda_name_id(const char *name)
{
	struct known_name *known = known_place(name);
	struct interned *place;

	if (!name)
		return 0;
	if (known->name == name && known->sent_to == inject_image() && !strcmp(known->text, name))
		return known->id;
	place = intern(&names, hash_text(name), name);
	if (!place || (!is_sent(place) && !define_name(name, place)))
		return 0;
	*known = (struct known_name){
		.name = name, .text = place->text, .id = place->id, .sent_to = place->sent_to};
	return known->id;
}

/*
 * CUPTI says once what a GPU is, when CUDA starts: the gate may be closed then. What it sent is
 * kept and sent before the first record that needs it, and when a window opens.
 */
static struct gpu {
	struct wire_device_gpu record;
	char name[WIRE_DEVICE_TEXT_BYTES]; /* "": CUPTI gave none */
	uint32_t sent_to;                  /* inject_image() */
	bool is_visible;
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
	if (gpu->sent_to == inject_image() || !inject_is_writable())
		return;
	if (gpu->name[0] && !cuda_define(WIRE_RECORD_DEVICE_DEVICE, gpu->record.id, 0, gpu->name))
		return;
	if (cuda_write(&gpu->record.record))
		gpu->sent_to = inject_image();
}

void cuda_send_gpus(void)
{
	for (size_t i = 0; i < gpu_count; i++)
		send_gpu(&gpus[i]);
}

/* A GPU whose own record has not come yet is known by its number until then. */
uint32_t cuda_device_id(uint32_t ordinal)
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
	if (!place || is_sent(place))
		return id;
	if (ordinal == HOST_ORDINAL)
		snprintf(text, sizeof(text), "CUDA graphs of no known device");
	else
		snprintf(text, sizeof(text), "CUDA device %u", ordinal);
	if (cuda_define(WIRE_RECORD_DEVICE_DEVICE, id, 0, text)) {
		place->id = id;
		place->sent_to = inject_image();
	}
	return id;
}

uint32_t cuda_queue_id(uint32_t device, uint32_t context, uint32_t stream)
{
	struct interned *place = intern(&streams, ((uint64_t)context << 32 | stream) + 1, NULL);
	char text[64];
	uint32_t id;

	if (!place || is_sent(place))
		return place ? place->id : 0;
	id = place->id ? place->id : CUDA_ID_BASE | ++streams.last_id;
	if (context > 1)
		snprintf(text, sizeof(text), "stream %u of context %u", stream, context);
	else
		snprintf(text, sizeof(text), "stream %u", stream);
	if (!cuda_define(WIRE_RECORD_DEVICE_QUEUE, id, cuda_device_id(device), text))
		return 0;
	place->id = id;
	place->sent_to = inject_image();
	return id;
}

uint32_t cuda_unplaced_device(void)
{
	return gpu_count == 1 ? gpus[0].record.ordinal : HOST_ORDINAL;
}

void cuda_take_device(const struct cupti_device *record)
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
	gpu->sent_to = 0;
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
