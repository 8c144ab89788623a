/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of kernel names, devices and queues, which are defined before a record has them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/cuda/cuda.h"
#include "inject/intern.h"

#define MAX_GPUS 64 /* of one process */
/* Names that are known by their place, and how many places each may have. */
#define KNOWN_NAMES  4096
#define KNOWN_PLACES 8
/* The number of what CUPTI says to be on the host. */
#define HOST_ORDINAL 0xffff

static struct interner names = {.id_base = CUDA_ID_BASE}, streams = {.id_base = CUDA_ID_BASE},
		       devices;

/* The id is good when all of the name found room. */
static bool define_name(const char *name, struct interned *place)
{
	if (!inject_room_define_name(&cuda.room, interned_id(&names, place), name))
		return false;
	interned_set_sent(place);
	return true;
}

/*
 * Names by CUPTI's pointers: reading three hundred characters for each record takes longer than all
 * else. A module that is loaded again may have another name at its place, so that each buffer's
 * first record of a name has its text compared.
 */
static struct known_name {
	const char *name; /* CUPTI's */
	const char *text; /* of the interner */
	uint32_t id, sent_to;
	uint32_t compared_in; /* `batch` */
} known_names[KNOWN_NAMES];
static uint32_t batch;

void cuda_names_begin(void)
{
	batch++;
}

static bool has_its_text(struct known_name *known)
{
	if (known->compared_in != batch && strcmp(known->text, known->name) != 0)
		return false;
	known->compared_in = batch;
	return true;
}

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

/* NULL: there was no room for its definition, or no memory. */
static struct interned *define_text(const char *text)
{
	struct interned *place = intern_text(&names, text);

	return place && (interned_is_sent(place) || define_name(text, place)) ? place : NULL;
}

uint32_t cuda_text_id(const char *text)
{
	const struct interned *place = define_text(text);

	return place ? place->id : 0;
}

uint32_t cuda_name_id(const char *name)
{
	struct known_name *known;
	struct interned *place;

	if (!name)
		return 0;
	known = known_place(name);
	if (known->name == name && known->sent_to == inject_image() && has_its_text(known))
		return known->id;
	place = define_text(name);
	if (!place)
		return 0;
	*known = (struct known_name){.name = name,
		.text = place->text,
		.id = place->id,
		.sent_to = place->sent_to,
		.compared_in = batch};
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
	place = intern_number(&devices, ordinal);
	if (!place || interned_is_sent(place))
		return id;
	if (ordinal == HOST_ORDINAL)
		snprintf(text, sizeof(text), "CUDA graphs of no known device");
	else
		snprintf(text, sizeof(text), "CUDA device %u", ordinal);
	if (cuda_define(WIRE_RECORD_DEVICE_DEVICE, id, 0, text)) {
		place->id = id;
		interned_set_sent(place);
	}
	return id;
}

uint32_t cuda_queue_id(uint32_t device, uint32_t context, uint32_t stream)
{
	struct interned *place = intern_number(&streams, (uint64_t)context << 32 | stream);
	char text[64];
	uint32_t id;

	if (!place || interned_is_sent(place))
		return place ? place->id : 0;
	id = interned_id(&streams, place);
	if (context > 1)
		snprintf(text, sizeof(text), "stream %u of context %u", stream, context);
	else
		snprintf(text, sizeof(text), "stream %u", stream);
	if (!cuda_define(WIRE_RECORD_DEVICE_QUEUE, id, cuda_device_id(device), text))
		return 0;
	interned_set_sent(place);
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
