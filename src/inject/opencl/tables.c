/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/opencl/tables.h"

#include <string.h>

#include "inject/inject.h"

#define MAX_KERNELS    16384 /* handles, a power of two */
#define MAX_NAMES      4096  /* a power of two */
#define MAX_QUEUES     1024  /* a power of two */
#define MAX_DEVICES    64
#define MAX_PROBES     32
#define MAX_NAME_BYTES 1024

const cl_function *opencl_next;

static uint64_t mix(uint64_t value)
{
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdULL;
	return value ^ value >> 33;
}

/* The slot that holds the key, or is free and takes it; -1: no room near. */
static int64_t find_slot(_Atomic uint64_t *keys, uint32_t count, uint64_t key)
{
	uint64_t hash = mix(key);

	for (uint32_t probe = 0; probe < MAX_PROBES; probe++) {
		uint32_t at = (uint32_t)(hash + probe) & (count - 1);
		uint64_t found = atomic_load_explicit(&keys[at], memory_order_acquire);

		if (found == 0 && atomic_compare_exchange_strong(&keys[at], &found, key))
			return at;
		if (found == key)
			return at;
	}
	return -1;
}

/* What one session knows, the next one does not. */
static bool is_sent(const _Atomic uint32_t *sent_to)
{
	return atomic_load_explicit(sent_to, memory_order_relaxed) == inject_image();
}

static void set_sent(_Atomic uint32_t *sent_to)
{
	atomic_store_explicit(sent_to, inject_image(), memory_order_relaxed);
}

/* ---- names ---- */

static _Atomic uint64_t name_keys[MAX_NAMES];
static _Atomic uint32_t name_sent_to[MAX_NAMES]; /* inject_image() */

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ULL;
	return hash ? hash : 1;
}

uint32_t opencl_name(const char *name)
{
	int64_t at = find_slot(name_keys, MAX_NAMES, hash_text(name));

	if (at < 0)
		return 0;
	if (!is_sent(&name_sent_to[at]) &&
		inject_define(WIRE_RECORD_DEVICE_NAME, (uint32_t)at + 1, 0, name))
		set_sent(&name_sent_to[at]);
	return (uint32_t)at + 1;
}

/* ---- kernels ---- */

static _Atomic uint64_t kernel_keys[MAX_KERNELS];
static _Atomic uint32_t kernel_names[MAX_KERNELS];

static uint32_t ask_name(cl_handle kernel)
{
	char name[MAX_NAME_BYTES] = "";

	if (NEXT(cl_get_info, CL_SLOT_GET_KERNEL_INFO)(
		    kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name) - 1, name, NULL) != CL_SUCCESS)
		return 0;
	return opencl_name(name);
}

uint32_t opencl_kernel_name(cl_handle kernel)
{
	int64_t at = find_slot(kernel_keys, MAX_KERNELS, (uint64_t)(uintptr_t)kernel);
	uint32_t name;

	if (at < 0 || !kernel)
		return ask_name(kernel);
	name = atomic_load_explicit(&kernel_names[at], memory_order_relaxed);
	if (!name || !is_sent(&name_sent_to[name - 1])) {
		name = ask_name(kernel);
		atomic_store_explicit(&kernel_names[at], name, memory_order_relaxed);
	}
	return name;
}

void opencl_kernel_created(cl_handle kernel)
{
	int64_t at = find_slot(kernel_keys, MAX_KERNELS, (uint64_t)(uintptr_t)kernel);

	if (at >= 0)
		atomic_store_explicit(&kernel_names[at], 0, memory_order_relaxed);
}

/* ---- devices ---- */

static _Atomic uint64_t device_keys[MAX_DEVICES];
static _Atomic uint32_t device_sent_to[MAX_DEVICES];

static uint32_t device_id(cl_handle device)
{
	return (uint32_t)(find_slot(device_keys, MAX_DEVICES, (uint64_t)(uintptr_t)device) + 1);
}

static bool define_device(uint32_t id)
{
	char name[MAX_NAME_BYTES] = "";
	cl_handle device;

	if (!id || is_sent(&device_sent_to[id - 1]))
		return true;
	device = (cl_handle)(uintptr_t)atomic_load_explicit(
		&device_keys[id - 1], memory_order_relaxed);
	NEXT(cl_get_info, CL_SLOT_GET_DEVICE_INFO)
	(device, CL_DEVICE_NAME, sizeof(name) - 1, name, NULL);
	if (!inject_define(WIRE_RECORD_DEVICE_DEVICE, id, 0, name))
		return false;
	set_sent(&device_sent_to[id - 1]);
	return true;
}

/* ---- queues ---- */

static _Atomic uint64_t queue_keys[MAX_QUEUES];
static _Atomic uint32_t queue_is_known[MAX_QUEUES]; /* the entry below is whole */
static _Atomic uint32_t queue_sent_to[MAX_QUEUES];
static struct opencl_queue queues[MAX_QUEUES];

/* Asks the driver what is not known from the queue's creation. */
static void complete(struct opencl_queue *entry, cl_handle queue, uint32_t id)
{
	cl_get_info *info = NEXT(cl_get_info, CL_SLOT_GET_QUEUE_INFO);
	cl_bitfield properties = 0;
	cl_handle device = NULL;

	info(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties, NULL);
	info(queue, CL_QUEUE_DEVICE, sizeof(cl_handle), &device, NULL);
	entry->is_timed = properties & CL_QUEUE_PROFILING_ENABLE;
	entry->device = device ? device_id(device) : 0;
	entry->id = id;
	atomic_store_explicit(&queue_sent_to[id - 1], 0, memory_order_relaxed);
}

const struct opencl_queue *opencl_queue(cl_handle queue)
{
	int64_t at = find_slot(queue_keys, MAX_QUEUES, (uint64_t)(uintptr_t)queue);
	struct opencl_queue found = {0};

	if (at < 0 || !queue)
		return NULL;
	if (atomic_load_explicit(&queue_is_known[at], memory_order_acquire))
		return &queues[at];
	complete(&found, queue, (uint32_t)at + 1);
	queues[at] = found; /* two that look at once write the same */
	atomic_store_explicit(&queue_is_known[at], 1, memory_order_release);
	return &queues[at];
}

void opencl_queue_define(const struct opencl_queue *queue)
{
	_Atomic uint32_t *sent_to = &queue_sent_to[queue->id - 1];

	if (is_sent(sent_to))
		return;
	if (define_device(queue->device) &&
		inject_define(WIRE_RECORD_DEVICE_QUEUE, queue->id, queue->device, ""))
		set_sent(sent_to);
}

void opencl_queue_created(cl_handle queue, bool is_timed_for_us, const cl_ulong *given)
{
	int64_t at = find_slot(queue_keys, MAX_QUEUES, (uint64_t)(uintptr_t)queue);
	struct opencl_queue entry = {.is_timed_for_us = is_timed_for_us};

	if (at < 0)
		return;
	while (given && entry.property_count + 1 < OPENCL_MAX_PROPERTIES) {
		entry.properties[entry.property_count] = given[entry.property_count];
		if (entry.property_count % 2 == 0 && !given[entry.property_count]) {
			entry.property_count++;
			break;
		}
		entry.property_count++;
	}
	complete(&entry, queue, (uint32_t)at + 1);
	queues[at] = entry;
	atomic_store_explicit(&queue_is_known[at], 1, memory_order_release);
}
