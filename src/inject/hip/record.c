/* SPDX-License-Identifier: Apache-2.0 */
/* Records of rocprofiler-sdk, in no order, become wire records. */
#include <errno.h>

#include "inject/hip/hip.h"

#define BUFFER_BYTES ((size_t)4 << 20)

static struct wire_device_gpu_activity start_activity(
	const struct rocprofiler_record *record, unsigned kind, uint32_t device, uint64_t queue)
{
	struct wire_device_gpu_activity out = {
		.activity =
			{
				.record = {.type = WIRE_RECORD_DEVICE_ACTIVITY,
					.length_bytes = sizeof(out)},
				.correlation = record->external,
				.start = record->start,
				.end = record->end,
				.device = device,
				.queue = hip_queue_id(device, queue),
				.kind = (uint8_t)kind,
			},
	};

	out.stream = out.activity.queue % WIRE_DEVICE_IDS_OF(1);
	if (!record->start || !record->end) {
		atomic_fetch_add_explicit(&hip.untimed, 1, memory_order_relaxed);
		out.untimed = WIRE_DEVICE_NO_TIMES;
	}
	return out;
}

static void take_dispatch(const struct rocprofiler_dispatch *record)
{
	uint32_t device = hip_device_id(record->agent), name;
	const struct hip_kernel *kernel = hip_find_kernel(record->kernel, &name);
	uint32_t static_bytes = kernel ? kernel->group_bytes : 0;
	struct wire_device_gpu_activity out;

	if (!device)
		return;
	out = start_activity(&record->common, WIRE_DEVICE_KERNEL, device, record->queue);
	out.activity.name = name;
	for (unsigned i = 0; i < 3; i++) {
		out.activity.local_size[i] = record->workgroup[i];
		out.activity.global_size[i] = record->grid[i];
	}
	out.registers = kernel ? kernel->registers : 0;
	if (static_bytes > record->group_bytes)
		static_bytes = record->group_bytes;
	out.static_shared_bytes = static_bytes;
	out.dynamic_shared_bytes = record->group_bytes - static_bytes;
	out.local_bytes = record->private_bytes;
	inject_room_write(&hip.room, &out.activity.record);
}

static unsigned copy_kind(int32_t operation)
{
	if (operation == ROCPROFILER_COPY_HOST_TO_DEVICE)
		return WIRE_DEVICE_WRITE;
	return operation == ROCPROFILER_COPY_DEVICE_TO_HOST ? WIRE_DEVICE_READ : WIRE_DEVICE_COPY;
}

/* A copy is the work of the GPU that it comes from, or else of that which it goes to. */
static void take_copy(const struct rocprofiler_copy *record)
{
	uint32_t from = hip_device_id(record->from_agent), to = hip_device_id(record->to_agent);
	struct wire_device_gpu_activity out;

	if (!from && !to)
		return;
	out = start_activity(
		&record->common, copy_kind(record->common.operation), from ? from : to, HIP_COPIES);
	out.activity.bytes = record->bytes;
	out.from_memory = from ? WIRE_MEMORY_DEVICE : WIRE_MEMORY_UNKNOWN;
	out.to_memory = to ? WIRE_MEMORY_DEVICE : WIRE_MEMORY_UNKNOWN;
	inject_room_write(&hip.room, &out.activity.record);
}

static void take_record(const struct rocprofiler_header *header)
{
	const struct rocprofiler_record *record = header->payload;

	if (header->category != ROCPROFILER_CATEGORY_TRACING || !record)
		return;
	if (header->kind == ROCPROFILER_BUFFER_DISPATCH &&
		record->size >= sizeof(struct rocprofiler_dispatch))
		take_dispatch((const void *)record);
	else if (header->kind == ROCPROFILER_BUFFER_COPY &&
		 record->size >= sizeof(struct rocprofiler_copy))
		take_copy((const void *)record);
}

static void on_buffer(struct rocprofiler_id context, struct rocprofiler_id buffer,
	struct rocprofiler_header **headers, size_t count, void *data, uint64_t dropped)
{
	int saved_errno = errno;

	if (atomic_load_explicit(&hip.is_over, memory_order_relaxed))
		return;
	pthread_mutex_lock(&hip.sending);
	hip_send_gpus();
	for (size_t i = 0; i < count; i++)
		take_record(headers[i]);
	pthread_mutex_unlock(&hip.sending);
	atomic_fetch_add_explicit(&hip.arrived, count, memory_order_relaxed);
	atomic_store_explicit(&hip.dropped, dropped, memory_order_relaxed);
	errno = saved_errno;
}

/*
 * Not ROCPROFILER_POLICY_DISCARD: rocprofiler-sdk then has one buffer, and drops what ends while
 * that is read. Who waits for room is not the program, but the thread that notes the ends of work.
 */
int hip_trace_work(void)
{
	static const int kinds[] = {ROCPROFILER_BUFFER_DISPATCH, ROCPROFILER_BUFFER_COPY};
	int status = hip.call.create_buffer(hip.work, BUFFER_BYTES, BUFFER_BYTES / 2,
		ROCPROFILER_POLICY_LOSSLESS, on_buffer, NULL, &hip.buffer);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && status == ROCPROFILER_OK; i++)
		status = hip.call.trace_buffer(hip.work, kinds[i], NULL, 0, hip.buffer);
	return status;
}
