/* SPDX-License-Identifier: Apache-2.0 */
/* One call of the program that gives work to a device: from its begin to the work's end. */
#pragma once

#include "inject/inject.h"
#include "inject/opencl/tables.h"
#include "wire/device.h"

struct opencl_launch {
	uint64_t correlation;
	uint64_t enter_ns, before_ns, bytes;
	const struct opencl_queue *queue;
	uint32_t name;
	uint64_t global_size[3];
	uint32_t local_size[3];
	enum wire_device_kind kind;
	cl_handle own_event;
	bool is_open;     /* false: nothing is recorded of it */
	bool is_blocking; /* the call returns when the work has ended */
	bool took_stack;
};

/* What begin and end do with an open gate. */
bool opencl_launch_record(
	struct opencl_launch *launch, cl_handle queue, enum wire_device_kind kind);
void opencl_launch_send(struct opencl_launch *launch, cl_int result, const cl_handle *event);

/*
 * Takes the stack; false, having done nothing, when nothing is to be recorded. No function, since a
 * program whose window is closed pays for each call, and an inlined one would be in the stack.
 */
#define opencl_launch_begin(launch, queue, kind)                                                   \
	((launch)->is_open = false, inject_is_open() && opencl_launch_record(launch, queue, kind))

/*
 * Where the driver puts the command's event: the program's place, or ours when it has none. The
 * last thing before the call, which begins now.
 */
static inline cl_handle *opencl_launch_event(struct opencl_launch *launch, cl_handle *event)
{
	if (!launch->is_open)
		return event;
	/* Taking a stack takes long, and knowing it does not. */
	launch->before_ns = launch->took_stack ? inject_now_ns() : launch->enter_ns;
	return event || !launch->queue || !launch->queue->is_timed || !inject_is_timed()
		       ? event
		       : &launch->own_event;
}

/* After the call, with its result and the event place that the program gave. */
static inline void opencl_launch_end(
	struct opencl_launch *launch, cl_int result, const cl_handle *event)
{
	if (launch->is_open)
		opencl_launch_send(launch, result, event);
}

/* A call in which the host waited. */
void opencl_waited(enum wire_device_kind kind, cl_handle queue, uint64_t enter_ns);

/* Reads the times of all work that has ended: its callbacks may come too late, at exit. */
void opencl_launch_sweep(void);
/*
 * The same at the program's end, and waits, in bounded time, for callbacks that are telling: exit()
 * would end their threads before they have written.
 */
void opencl_launch_finish(void);

/*
 * The call with our event where the program has none, and what is recorded of it: `amount` is
 * looked at only when it is recorded. What all commands end with is the caller's CL_EVENTS.
 */
#define LAUNCH(type, slot, queue, device_kind, amount, blocks, ...)                                \
	({                                                                                         \
		struct opencl_launch _launch;                                                      \
		cl_int _result;                                                                    \
		if (opencl_launch_begin(&_launch, queue, device_kind)) {                           \
			_launch.bytes = (amount);                                                  \
			_launch.is_blocking = (blocks);                                            \
		}                                                                                  \
		_result = NEXT(type, slot)(queue, __VA_ARGS__, wait_count, waits,                  \
			opencl_launch_event(&_launch, event));                                     \
		opencl_launch_end(&_launch, _result, event);                                       \
		_result;                                                                           \
	})
