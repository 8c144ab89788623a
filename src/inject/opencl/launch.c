/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/opencl/launch.h"

#include <string.h>
#include <time.h>

#include "inject/inject.h"
#include "inject/launch/stack.h"

#define MAX_IN_FLIGHT 65536 /* memory that is not used costs nothing */
/* At its end a program waits at most 0.1 s for callbacks that are telling. */
#define TELLING_PAUSE_NS 100000
#define SENDING_LOOKS    1000

enum flight_state {
	FLIGHT_FREE,
	FLIGHT_PENDING,   /* its end was not seen */
	FLIGHT_LOOKED_AT, /* by a sweep */
	FLIGHT_CALLED,    /* the callback came meanwhile: the sweep frees it */
	FLIGHT_TELLING,   /* by the callback, which then frees it */
	FLIGHT_READ,      /* its times are sent; the callback, still to come, frees it */
};

/* Work between its launch and its end. */
struct flight {
	_Atomic uint32_t state; /* enum flight_state */
	_Atomic uint32_t next;  /* in the free list: index + 1 */
	cl_handle event;        /* we hold a reference */
	struct wire_device_activity activity;
};

static struct flight flights[MAX_IN_FLIGHT];
static _Atomic uint32_t used_flights; /* never taken before: from here on */
static _Atomic uint64_t free_flights; /* a tag against reuse << 32 | index + 1 */
static _Atomic uint32_t in_flight;

static struct flight *take_flight(void)
{
	uint64_t top = atomic_load_explicit(&free_flights, memory_order_acquire);
	uint32_t fresh;

	while ((uint32_t)top) {
		struct flight *flight = &flights[(uint32_t)top - 1];
		uint64_t below = ((top >> 32) + 1) << 32 |
				 atomic_load_explicit(&flight->next, memory_order_relaxed);

		if (atomic_compare_exchange_weak_explicit(
			    &free_flights, &top, below, memory_order_acquire, memory_order_acquire))
			return flight;
	}
	if (atomic_load_explicit(&used_flights, memory_order_relaxed) >= MAX_IN_FLIGHT)
		return NULL;
	fresh = atomic_fetch_add_explicit(&used_flights, 1, memory_order_relaxed);
	return fresh < MAX_IN_FLIGHT ? &flights[fresh] : NULL;
}

static void free_flight(struct flight *flight)
{
	uint64_t top = atomic_load_explicit(&free_flights, memory_order_relaxed), above;

	atomic_store_explicit(&flight->state, FLIGHT_FREE, memory_order_relaxed);
	atomic_fetch_sub_explicit(&in_flight, 1, memory_order_relaxed);
	do {
		atomic_store_explicit(&flight->next, (uint32_t)top, memory_order_relaxed);
		above = ((top >> 32) + 1) << 32 | (uint64_t)(flight - flights + 1);
	} while (!atomic_compare_exchange_weak_explicit(
		&free_flights, &top, above, memory_order_release, memory_order_relaxed));
}

/* ---- the work's end ---- */

/* False where the driver gives no times, or such as cannot be. */
static bool read_times(struct flight *flight)
{
	cl_get_info *info = NEXT(cl_get_info, CL_SLOT_GET_EVENT_PROFILING_INFO);
	struct wire_device_activity *activity = &flight->activity;
	const struct {
		cl_uint what;
		__u64 *to;
	} times[] = {
		{CL_PROFILING_COMMAND_QUEUED, &activity->queued},
		{CL_PROFILING_COMMAND_SUBMIT, &activity->submit},
		{CL_PROFILING_COMMAND_START, &activity->start},
		{CL_PROFILING_COMMAND_END, &activity->end},
	};
	uint64_t last = 0;

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		cl_ulong time = 0;

		if (info(flight->event, times[i].what, sizeof(time), &time, NULL) != CL_SUCCESS ||
			time < last)
			return false;
		*times[i].to = last = time;
	}
	return last;
}

static void tell_activity(struct flight *flight, bool failed)
{
	const struct wire_device_activity *activity = &flight->activity;
	bool is_timed = !failed && read_times(flight);
	const struct wire_device_launch untimed = {
		.record = {.type = WIRE_RECORD_DEVICE_LAUNCH, .length_bytes = sizeof(untimed)},
		.correlation = activity->correlation,
		.enter_ns = activity->enter_ns,
		.exit_ns = activity->after_ns,
		.tid = activity->tid,
		.queue = activity->queue,
		.kind = activity->kind,
		.untimed = failed ? WIRE_DEVICE_FAILED : WIRE_DEVICE_NO_TIMES,
	};

	inject_write(is_timed ? &activity->record : &untimed.record);
}

static void end_flight(struct flight *flight)
{
	NEXT(cl_change_count, CL_SLOT_RELEASE_EVENT)(flight->event);
	free_flight(flight);
}

/*
 * No callback is to come any more: returns what the flight was. FLIGHT_LOOKED_AT: a sweep has it,
 * tells of it and ends it.
 */
static uint32_t close_flight(struct flight *flight)
{
	uint32_t state = atomic_load(&flight->state);

	while (state != FLIGHT_READ &&
		!atomic_compare_exchange_weak(&flight->state, &state,
			state == FLIGHT_LOOKED_AT ? FLIGHT_CALLED : FLIGHT_TELLING))
		;
	return state;
}

/* On a thread of the driver: no call that waits. */
static void on_complete(cl_handle event, cl_int status, void *context)
{
	struct flight *flight = context;
	uint32_t state = close_flight(flight);

	if (state == FLIGHT_PENDING)
		tell_activity(flight, status < 0);
	if (state != FLIGHT_LOOKED_AT)
		end_flight(flight);
}

static void look_at(struct flight *flight)
{
	uint32_t state = FLIGHT_PENDING;
	bool is_sent = false;
	cl_int status = 1;

	if (!atomic_compare_exchange_strong(&flight->state, &state, FLIGHT_LOOKED_AT))
		return;
	NEXT(cl_get_info, CL_SLOT_GET_EVENT_INFO)
	(flight->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
	if (status <= CL_COMPLETE) {
		tell_activity(flight, status < 0);
		is_sent = true;
	}
	state = FLIGHT_LOOKED_AT;
	if (atomic_compare_exchange_strong(
		    &flight->state, &state, is_sent ? FLIGHT_READ : FLIGHT_PENDING))
		return;
	if (!is_sent)
		tell_activity(flight, false);
	end_flight(flight);
}

void opencl_launch_sweep(void)
{
	uint32_t left = atomic_load_explicit(&in_flight, memory_order_relaxed);
	uint32_t used = atomic_load_explicit(&used_flights, memory_order_relaxed);

	if (!inject_is_open())
		return;
	for (uint32_t i = 0; left && i < used && i < MAX_IN_FLIGHT; i++) {
		if (atomic_load_explicit(&flights[i].state, memory_order_relaxed) == FLIGHT_FREE)
			continue;
		left--;
		look_at(&flights[i]);
	}
}

static bool is_being_sent(const struct flight *flight)
{
	uint32_t state = atomic_load_explicit(&flight->state, memory_order_acquire);

	return state == FLIGHT_LOOKED_AT || state == FLIGHT_CALLED || state == FLIGHT_TELLING;
}

void opencl_launch_finish(void)
{
	const struct timespec pause = {.tv_nsec = TELLING_PAUSE_NS};
	uint32_t used, looks = 0;

	opencl_launch_sweep();
	used = atomic_load_explicit(&used_flights, memory_order_relaxed);
	for (uint32_t i = 0; i < used && i < MAX_IN_FLIGHT; i++) {
		while (is_being_sent(&flights[i]) && looks++ < SENDING_LOOKS)
			nanosleep(&pause, NULL);
	}
}

/* ---- the launch ---- */

bool opencl_launch_record(struct opencl_launch *launch, cl_handle queue, enum wire_device_kind kind)
{
	memset(launch, 0, sizeof(*launch));
	launch->correlation = inject_correlation();
	if (!launch->correlation)
		return false;
	launch->is_open = true;
	launch->kind = kind;
	launch->queue = opencl_queue(queue);
	if (launch->queue)
		opencl_queue_define(launch->queue);
	launch->enter_ns = inject_now_ns();
	launch->took_stack = inject_launch_stack(launch->correlation, launch->enter_ns);
	return true;
}

static void tell_launch(
	const struct opencl_launch *launch, uint64_t exit_ns, enum wire_device_untimed untimed)
{
	struct wire_device_launch record = {
		.record = {.type = WIRE_RECORD_DEVICE_LAUNCH, .length_bytes = sizeof(record)},
		.correlation = launch->correlation,
		.enter_ns = launch->enter_ns,
		.exit_ns = exit_ns,
		.tid = inject_tid(),
		.queue = launch->queue ? launch->queue->id : 0,
		.kind = launch->kind,
		.untimed = untimed,
	};

	inject_write(&record.record);
}

static void fill_activity(
	struct flight *flight, const struct opencl_launch *launch, uint64_t after_ns)
{
	flight->activity = (struct wire_device_activity){
		.record = {.type = WIRE_RECORD_DEVICE_ACTIVITY,
			.length_bytes = sizeof(flight->activity)},
		.correlation = launch->correlation,
		.enter_ns = launch->enter_ns,
		.tid = inject_tid(),
		.before_ns = launch->before_ns,
		.after_ns = after_ns,
		.bytes = launch->bytes,
		.device = launch->queue->device,
		.queue = launch->queue->id,
		.name = launch->name,
		.kind = launch->kind,
	};
	memcpy(flight->activity.global_size, launch->global_size, sizeof(launch->global_size));
	memcpy(flight->activity.local_size, launch->local_size, sizeof(launch->local_size));
}

/* Takes the reference to the event. */
static enum wire_device_untimed follow(
	const struct opencl_launch *launch, cl_handle event, uint64_t after_ns)
{
	struct flight *flight = take_flight();
	uint32_t state;

	if (!flight) {
		inject_count_no_context();
		NEXT(cl_change_count, CL_SLOT_RELEASE_EVENT)(event);
		return WIRE_DEVICE_NO_CONTEXT;
	}
	fill_activity(flight, launch, after_ns);
	flight->event = event;
	atomic_fetch_add_explicit(&in_flight, 1, memory_order_relaxed);
	atomic_store_explicit(&flight->state, FLIGHT_PENDING, memory_order_release);
	if (NEXT(cl_set_event_callback, CL_SLOT_SET_EVENT_CALLBACK)(
		    event, CL_COMPLETE, on_complete, flight) == CL_SUCCESS)
		return WIRE_DEVICE_TIMED;
	state = close_flight(flight);
	if (state != FLIGHT_LOOKED_AT)
		end_flight(flight);
	return state == FLIGHT_PENDING ? WIRE_DEVICE_NO_EVENT : WIRE_DEVICE_TIMED;
}

static void tell_wait(enum wire_device_kind kind, const struct opencl_queue *queue,
	uint64_t enter_ns, uint64_t exit_ns)
{
	const struct opencl_launch wait = {.kind = kind, .queue = queue, .enter_ns = enter_ns};

	tell_launch(&wait, exit_ns, WIRE_DEVICE_TIMED);
}

void opencl_launch_send(struct opencl_launch *launch, cl_int result, const cl_handle *event)
{
	uint64_t exit_ns = inject_now_ns();
	enum wire_device_untimed untimed;

	if (result != CL_SUCCESS) {
		untimed = WIRE_DEVICE_FAILED;
	} else if (!inject_is_timed()) {
		untimed = WIRE_DEVICE_NOT_ASKED;
	} else if (!launch->queue || !launch->queue->is_timed) {
		untimed = WIRE_DEVICE_NO_PROFILING;
	} else if (launch->own_event) {
		untimed = follow(launch, launch->own_event, exit_ns);
	} else if (event && *event &&
		   NEXT(cl_change_count, CL_SLOT_RETAIN_EVENT)(*event) == CL_SUCCESS) {
		untimed = follow(launch, *event, exit_ns);
	} else {
		untimed = WIRE_DEVICE_NO_EVENT;
	}
	if (untimed != WIRE_DEVICE_TIMED)
		tell_launch(launch, exit_ns, untimed);
	if (launch->is_blocking && result == CL_SUCCESS)
		tell_wait(WIRE_DEVICE_WAIT, launch->queue, launch->before_ns, exit_ns);
}

void opencl_waited(enum wire_device_kind kind, cl_handle queue, uint64_t enter_ns)
{
	tell_wait(kind, queue ? opencl_queue(queue) : NULL, enter_ns, inject_now_ns());
}
