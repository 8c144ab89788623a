/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of kernels, GPUs and queues, which are defined before a record has them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/hip/hip.h"
#include "inject/intern.h"

#define MAX_GPUS 64
/* Kernels have numbers from 1 up, one for each code object that they are in. */
#define PAGE_KERNELS   1024
#define PAGES          1024
#define MAX_NAME_BYTES 65536
#define KERNEL_SUFFIX  ".kd" /* of their symbols: kernel descriptor */

_Static_assert((uint32_t)PAGES *PAGE_KERNELS == 1 << 20, "a kernel's number is its name's id");

/* ---- kernels ---- */

typedef _Atomic(struct hip_kernel *) kernel_slot;

static _Atomic(kernel_slot *) pages[PAGES];

static kernel_slot *make_page(uint64_t number)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	kernel_slot *page;

	pthread_mutex_lock(&lock);
	page = atomic_load_explicit(&pages[number / PAGE_KERNELS], memory_order_relaxed);
	if (!page) {
		page = calloc(PAGE_KERNELS, sizeof(*page));
		atomic_store_explicit(&pages[number / PAGE_KERNELS], page, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return page;
}

static size_t name_length(const char *name)
{
	size_t length = strnlen(name, MAX_NAME_BYTES), suffix = strlen(KERNEL_SUFFIX);

	if (length > suffix && strcmp(name + length - suffix, KERNEL_SUFFIX) == 0)
		length -= suffix;
	return length;
}

void hip_add_kernel(const struct rocprofiler_kernel_symbol *symbol)
{
	struct hip_kernel *kernel, *none = NULL;
	kernel_slot *page;
	size_t length;

	if (symbol->size <= offsetof(struct rocprofiler_kernel_symbol, accumulation_registers) ||
		!symbol->name || symbol->kernel >= (uint64_t)PAGES * PAGE_KERNELS)
		return;
	page = make_page(symbol->kernel);
	length = name_length(symbol->name);
	kernel = page ? calloc(1, sizeof(*kernel) + length + 1) : NULL;
	if (!kernel)
		return;
	kernel->registers = symbol->vector_registers;
	kernel->group_bytes = symbol->group_bytes;
	memcpy(kernel->name, symbol->name, length);
	/* Numbers are not used again. */
	if (!atomic_compare_exchange_strong(&page[symbol->kernel % PAGE_KERNELS], &none, kernel))
		free(kernel);
}

const struct hip_kernel *hip_find_kernel(uint64_t number, uint32_t *ret_name)
{
	uint32_t id = HIP_ID_BASE | (uint32_t)number;
	kernel_slot *page =
		number < (uint64_t)PAGES * PAGE_KERNELS
			? atomic_load_explicit(&pages[number / PAGE_KERNELS], memory_order_acquire)
			: NULL;
	struct hip_kernel *kernel =
		page ? atomic_load_explicit(&page[number % PAGE_KERNELS], memory_order_acquire)
		     : NULL;

	*ret_name = 0;
	if (!kernel)
		return NULL;
	if (kernel->sent_to != inject_image() &&
		inject_room_define_name(&hip.room, id, kernel->name))
		kernel->sent_to = inject_image();
	if (kernel->sent_to == inject_image())
		*ret_name = id;
	return kernel;
}

/* ---- GPUs ---- */

static struct gpu {
	uint64_t agent;
	struct wire_device_gpu record;
	char name[WIRE_DEVICE_TEXT_BYTES];
	uint32_t sent_to; /* inject_image() */
} gpus[MAX_GPUS];
static size_t gpu_count;

static void add_gpu(const struct rocprofiler_agent *agent)
{
	const char *product = agent->product && *agent->product ? agent->product : NULL;
	const char *name = agent->name && *agent->name ? agent->name : "AMD GPU";
	struct gpu *gpu = &gpus[gpu_count++];

	*gpu = (struct gpu){
		.agent = agent->id,
		.record = {.record = {.type = WIRE_RECORD_DEVICE_GPU,
				   .length_bytes = sizeof(gpu->record)},
			.id = HIP_ID_BASE | ((uint32_t)agent->ordinal + 1),
			.ordinal = (uint32_t)agent->ordinal,
			.memory_bytes = agent->memory_bytes,
			.capability_major = agent->gfx_version / 10000 % 100,
			.capability_minor = agent->gfx_version / 100 % 100,
			.multiprocessors = agent->compute_units,
			.warp_threads = agent->wave_items,
			.multiprocessor_warps = agent->waves_per_unit,
			.block_threads = agent->workgroup_items,
			.core_clock_khz = agent->core_clock_mhz * 1000},
	};
	if (product)
		snprintf(gpu->name, sizeof(gpu->name), "%s (%s)", product, name);
	else
		snprintf(gpu->name, sizeof(gpu->name), "%s", name);
}

static int take_agents(int version, const void **agents, size_t count, void *data)
{
	for (size_t i = 0; i < count && gpu_count < MAX_GPUS; i++) {
		const struct rocprofiler_agent *agent = agents[i];

		if (agent->size >= sizeof(*agent) && agent->type == ROCPROFILER_AGENT_GPU &&
			agent->ordinal >= 0)
			add_gpu(agent);
	}
	return ROCPROFILER_OK;
}

int hip_find_gpus(void)
{
	return hip.call.agents(
		ROCPROFILER_AGENT_VERSION_0, take_agents, sizeof(struct rocprofiler_agent), NULL);
}

void hip_send_gpus(void)
{
	for (size_t i = 0; i < gpu_count; i++) {
		struct gpu *gpu = &gpus[i];

		if (gpu->sent_to != inject_image() && inject_is_writable() &&
			inject_room_define(&hip.room, WIRE_RECORD_DEVICE_DEVICE, gpu->record.id, 0,
				gpu->name) &&
			inject_room_write(&hip.room, &gpu->record.record))
			gpu->sent_to = inject_image();
	}
}

uint32_t hip_device_id(uint64_t agent)
{
	for (size_t i = 0; i < gpu_count; i++)
		if (gpus[i].agent == agent)
			return gpus[i].record.id;
	return 0;
}

/* ---- queues ---- */

/* Queues of all devices have handles of their own; what copies for one has its device's id. */
uint32_t hip_queue_id(uint32_t device, uint64_t queue)
{
	static struct interner queues = {.id_base = HIP_ID_BASE};
	bool copies = queue == HIP_COPIES;
	struct interned *place = intern_number(&queues, copies ? device | 1ULL << 63 : queue);
	char text[32];
	uint32_t id;

	if (!place || interned_is_sent(place))
		return place ? place->id : 0;
	id = interned_id(&queues, place);
	if (copies)
		snprintf(text, sizeof(text), "copies");
	else
		snprintf(text, sizeof(text), "queue %u", id % WIRE_DEVICE_IDS_OF(1));
	if (!inject_room_define(&hip.room, WIRE_RECORD_DEVICE_QUEUE, id, device, text))
		return 0;
	interned_set_sent(place);
	return id;
}
