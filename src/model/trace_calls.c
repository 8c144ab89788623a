/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_calls.h"

#define HIP_IDS 4 /* the runtime's number in ids: wire/device.h */

/*
 * What a runtime's calls are usually called, by the kind of work or wait: recordings know the kind,
 * not the name. Of a GPU a wait may be the synchronisation of a device, a context or a stream.
 */
struct call_names {
	const char *of_kinds[WIRE_DEVICE_MAX];
	const char *other;
};

static const struct call_names opencl_calls = {
	.of_kinds =
		{
			[WIRE_DEVICE_KERNEL] = "clEnqueueNDRangeKernel",
			[WIRE_DEVICE_FILL] = "clEnqueueFillBuffer",
			[WIRE_DEVICE_READ] = "clEnqueueReadBuffer",
			[WIRE_DEVICE_WRITE] = "clEnqueueWriteBuffer",
			[WIRE_DEVICE_MAP] = "clEnqueueMapBuffer",
			[WIRE_DEVICE_UNMAP] = "clEnqueueUnmapMemObject",
			[WIRE_DEVICE_MIGRATE] = "clEnqueueMigrateMemObjects",
			[WIRE_DEVICE_WAIT] = "clWaitForEvents",
			[WIRE_DEVICE_FINISH] = "clFinish",
		},
	.other = "clEnqueueCopyBuffer",
};

static const struct call_names cuda_calls = {
	.of_kinds =
		{
			[WIRE_DEVICE_KERNEL] = "cudaLaunchKernel",
			[WIRE_DEVICE_FILL] = "cudaMemsetAsync",
			[WIRE_DEVICE_GRAPH] = "cudaGraphLaunch",
			[WIRE_DEVICE_MIGRATE] = "cudaMemPrefetchAsync",
			[WIRE_DEVICE_WAIT] = "[a wait: cudaEventSynchronize or the like]",
			[WIRE_DEVICE_FINISH] = "[a wait: cudaDeviceSynchronize or the like]",
		},
	.other = "cudaMemcpyAsync",
};

static const struct call_names hip_calls = {
	.of_kinds =
		{
			[WIRE_DEVICE_KERNEL] = "hipLaunchKernel",
			[WIRE_DEVICE_FILL] = "hipMemsetAsync",
			[WIRE_DEVICE_GRAPH] = "hipGraphLaunch",
			[WIRE_DEVICE_MIGRATE] = "hipMemPrefetchAsync",
			[WIRE_DEVICE_WAIT] = "[a wait: hipEventSynchronize or the like]",
			[WIRE_DEVICE_FINISH] = "[a wait: hipDeviceSynchronize or the like]",
		},
	.other = "hipMemcpyAsync",
};

static const char *call_name(const struct call_names *calls, uint8_t kind)
{
	const char *name = kind < WIRE_DEVICE_MAX ? calls->of_kinds[kind] : NULL;

	return name ? name : calls->other;
}

bool trace_is_of_hip(const struct model_device_work *work)
{
	return work->queue / WIRE_DEVICE_IDS_OF(1) == HIP_IDS;
}

const char *trace_captured_call(const struct model_device_work *work, uint8_t kind)
{
	return call_name(work->gpu == MODEL_NONE ? &opencl_calls
			 : trace_is_of_hip(work) ? &hip_calls
						 : &cuda_calls,
		kind);
}

const char *trace_launch_call(const struct model_device_work *work)
{
	return trace_captured_call(work, work->replayed ? WIRE_DEVICE_GRAPH : work->launch_kind);
}

const char *trace_wait_call(enum trace_calls calls, uint8_t kind, uint32_t sync)
{
	static const struct call_names *const names[] = {
		[TRACE_CALLS_OPENCL] = &opencl_calls,
		[TRACE_CALLS_CUDA] = &cuda_calls,
		[TRACE_CALLS_HIP] = &hip_calls,
	};
	static const char *const of_syncs[WIRE_SYNC_MAX] = {
		[WIRE_SYNC_EVENT] = "[a wait: cudaEventSynchronize or the like]",
		[WIRE_SYNC_STREAM] = "[a wait: cudaStreamSynchronize or the like]",
		[WIRE_SYNC_CONTEXT] = "[a wait: cudaDeviceSynchronize or the like]",
	};

	if (calls == TRACE_CALLS_CUDA && sync < WIRE_SYNC_MAX && of_syncs[sync])
		return of_syncs[sync];
	return call_name(names[calls], kind);
}
