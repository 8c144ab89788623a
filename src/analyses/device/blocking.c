/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/blocking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/device/idle_limits.h"

enum blocks {
	BLOCKS_UNKNOWN, /* not asked */
	BLOCKS_NOT,
	BLOCKS_AS_WAIT,
	BLOCKS_AS_COPY,
	BLOCKS_AS_LONG_COPY, /* it may wait, or only hand the work over */
	BLOCKS_AS_ALLOCATION,
};

static bool contains_any(const char *name, const char *const *words)
{
	for (; *words; words++) {
		if (strstr(name, *words))
			return true;
	}
	return false;
}

/* Calls of CUDA, HIP, Level Zero and SYCL's runtime, and of OpenCL. */
static enum blocks blocks_of(const char *name)
{
	static const char *const waits[] = {
		"Synchronize", "clFinish", "clWaitForEvents", "urQueueFinish", "urEventWait", NULL};
	static const char *const copies[] = {"Memcpy", "Memset", "EnqueueMem", "clEnqueueRead",
		"clEnqueueWrite", "clEnqueueCopy", "clEnqueueFill", "clEnqueueMap",
		"clEnqueueUnmap", "clEnqueueMigrate", NULL};
	static const char *const allocations[] = {
		"Malloc", "Free", "HostAlloc", "MemAlloc", "HostRegister", NULL};

	if (contains_any(name, waits))
		return BLOCKS_AS_WAIT;
	if (contains_any(name, copies))
		return strstr(name, "Async") || strstr(name, "Enqueue") ? BLOCKS_AS_LONG_COPY
									: BLOCKS_AS_COPY;
	if (contains_any(name, allocations) && !strstr(name, "Async"))
		return BLOCKS_AS_ALLOCATION;
	return BLOCKS_NOT;
}

static bool is_blocking(const struct trace *trace, const struct trace_event *event, uint8_t *names,
	enum trace_blocking_kind *ret_kind)
{
	static const enum trace_blocking_kind kinds[] = {
		[BLOCKS_AS_WAIT] = TRACE_BLOCKING_WAIT,
		[BLOCKS_AS_COPY] = TRACE_BLOCKING_COPY,
		[BLOCKS_AS_LONG_COPY] = TRACE_BLOCKING_COPY,
		[BLOCKS_AS_ALLOCATION] = TRACE_BLOCKING_ALLOCATION,
	};
	uint8_t *known = &names[event->name];

	if ((event->category != TRACE_RUNTIME && event->category != TRACE_DRIVER) ||
		event->duration_ns <= 0)
		return false;
	if (*known == BLOCKS_UNKNOWN)
		*known = (uint8_t)blocks_of(trace_text(trace, event->name));
	*ret_kind = kinds[*known];
	return *known != BLOCKS_NOT &&
	       (*known != BLOCKS_AS_LONG_COPY || event->duration_ns >= IDLE_BLOCKING_COPY_NS);
}

static int add_track(
	struct trace_blocking *blocking, const struct trace *trace, uint32_t index, uint8_t *names)
{
	const struct trace_track *track = &trace->tracks.items[index];
	int64_t end_ns = INT64_MIN;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < track->count; i++) {
		uint32_t row = trace->rows.items[track->first + i];
		const struct trace_event *event = &trace->events.items[row];
		enum trace_blocking_kind kind;

		/* The driver's call within the runtime's is the same wait. */
		if (event->is_capture || event->start_ns < end_ns ||
			!is_blocking(trace, event, names, &kind))
			continue;
		end_ns = trace_end_ns(event);
		r = array_append(&blocking->calls, (struct trace_blocking_call){
							   .start_ns = event->start_ns,
							   .end_ns = end_ns,
							   .row = row,
							   .track = index,
							   .kind = kind,
						   });
	}
	return r;
}

int trace_blocking_init(struct trace_blocking *blocking, const struct trace *trace)
{
	_cleanup_free_ uint8_t *names = calloc(trace->strings.entries.count + 1, 1);
	int r = names ? 0 : -ENOMEM;

	*blocking = (struct trace_blocking){0};
	for (uint32_t i = 0; r == 0 && i < trace->tracks.count; i++)
		r = add_track(blocking, trace, i, names);
	if (r < 0)
		trace_blocking_done(blocking);
	return r;
}

void trace_blocking_done(struct trace_blocking *blocking)
{
	array_done(&blocking->calls);
}

size_t trace_blocking_find(const struct trace_blocking *blocking, uint32_t track, int64_t at_ns)
{
	size_t first = 0, last = blocking->calls.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;
		const struct trace_blocking_call *call = &blocking->calls.items[middle];

		if (call->track < track || (call->track == track && call->end_ns <= at_ns))
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}
