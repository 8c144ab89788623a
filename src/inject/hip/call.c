/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "inject/hip/hip.h"
#include "inject/launch/stack.h"

#define MAX_CALLS 1024 /* numbers of HIP's calls */
/* What a call may take with its arguments: others are damaged. */
#define MAX_CALL_BYTES 65536

/* Those below ROLE_CAPTURE_BEGIN are enum wire_device_kind. */
enum call_role {
	ROLE_NONE = WIRE_DEVICE_NONE,
	ROLE_CAPTURE_BEGIN = 64,
	ROLE_CAPTURE_END,
};

/* By name, for their numbers change; the first that fits. */
static const struct {
	const char *begin, *part; /* part: "" or what else is in the name */
	uint8_t role;
} names[] = {
	{"hipGraphLaunch", "", WIRE_DEVICE_GRAPH},
	{"hipGraph", "", ROLE_NONE},
	{"hipDrvGraph", "", ROLE_NONE},
	{"hipLaunchHostFunc", "", ROLE_NONE},
	{"hipLaunchByPtr", "", WIRE_DEVICE_KERNEL},
	{"hipLaunch", "Kernel", WIRE_DEVICE_KERNEL},
	{"hipExtLaunch", "Kernel", WIRE_DEVICE_KERNEL},
	{"hipDrvLaunch", "Kernel", WIRE_DEVICE_KERNEL},
	{"hipModuleLaunch", "Kernel", WIRE_DEVICE_KERNEL},
	{"hipExtModuleLaunch", "Kernel", WIRE_DEVICE_KERNEL},
	{"hipHccModuleLaunch", "Kernel", WIRE_DEVICE_KERNEL},
	{"hipMemcpy", "DtoH", WIRE_DEVICE_READ},
	{"hipMemcpy", "AtoH", WIRE_DEVICE_READ},
	{"hipMemcpy", "FromSymbol", WIRE_DEVICE_READ},
	{"hipMemcpy", "HtoD", WIRE_DEVICE_WRITE},
	{"hipMemcpy", "HtoA", WIRE_DEVICE_WRITE},
	{"hipMemcpy", "ToSymbol", WIRE_DEVICE_WRITE},
	{"hipMemcpy", "", WIRE_DEVICE_COPY},
	{"hipDrvMemcpy", "", WIRE_DEVICE_COPY},
	{"hipMemset", "", WIRE_DEVICE_FILL},
	{"hipMemPrefetch", "", WIRE_DEVICE_MIGRATE},
	{"hipDeviceSynchronize", "", WIRE_DEVICE_FINISH},
	{"hipCtxSynchronize", "", WIRE_DEVICE_FINISH},
	{"hipStreamSynchronize", "", WIRE_DEVICE_FINISH},
	{"hipEventSynchronize", "", WIRE_DEVICE_WAIT},
	{"hipStreamBeginCapture", "", ROLE_CAPTURE_BEGIN},
	{"hipStreamEndCapture", "", ROLE_CAPTURE_END},
};

/* The outermost one that the thread is in. */
struct hip_call {
	bool is_active;
	uint8_t role;
	uint32_t works; /* that it gave to devices */
	uint64_t internal;
	uint64_t correlation, enter_ns;
};

static __thread struct hip_call current;
static uint8_t roles[MAX_CALLS];

static unsigned role_of(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strncmp(name, names[i].begin, strlen(names[i].begin)) == 0 &&
			strstr(name, names[i].part))
			return names[i].role;
	return ROLE_NONE;
}

static bool is_wait(unsigned role)
{
	return role == WIRE_DEVICE_FINISH || role == WIRE_DEVICE_WAIT;
}

/* ---- on the program's threads ---- */

static void enter(const struct rocprofiler_callback_record *record, unsigned role)
{
	struct hip_call *call = &current;

	/* Within another; but the end of one is not seen where tracing stops in it. */
	if (call->is_active && record->ancestor >= call->internal)
		return;
	call->is_active = false;
	if (!inject_is_open())
		return;
	*call = (struct hip_call){
		.is_active = true,
		.role = (uint8_t)role,
		.internal = record->internal,
		.correlation = is_wait(role) ? 0 : inject_correlation(),
		.enter_ns = inject_now_ns(),
	};
	/* The program's call, without the time that its stack took. */
	if (call->correlation && inject_launch_stack(call->correlation, call->enter_ns))
		call->enter_ns = inject_now_ns();
}

static bool has_failed(const struct rocprofiler_hip_call *payload)
{
	int32_t result;

	if (!payload || payload->size < sizeof(*payload) + ROCPROFILER_HIP_RESULT_BYTES ||
		payload->size > MAX_CALL_BYTES)
		return false;
	memcpy(&result, (const char *)payload + payload->size - ROCPROFILER_HIP_RESULT_BYTES,
		sizeof(result));
	return result != 0;
}

static enum wire_device_untimed why_untimed(const struct hip_call *call, bool failed)
{
	if (failed)
		return WIRE_DEVICE_FAILED;
	if (is_wait(call->role))
		return WIRE_DEVICE_TIMED;
	if (!inject_is_timed())
		return WIRE_DEVICE_NOT_ASKED;
	if (call->works)
		return WIRE_DEVICE_TIMED;
	return atomic_load_explicit(&hip.captures, memory_order_relaxed) ? WIRE_DEVICE_CAPTURED
									 : WIRE_DEVICE_NO_EVENT;
}

static void leave(struct hip_call *call, const struct rocprofiler_callback_record *record)
{
	struct wire_device_launch launch = {
		.record = {.type = WIRE_RECORD_DEVICE_LAUNCH, .length_bytes = sizeof(launch)},
		.correlation = call->correlation,
		.enter_ns = call->enter_ns,
		.exit_ns = inject_now_ns(),
		.tid = inject_tid(),
		.kind = call->role,
		.untimed = (uint8_t)why_untimed(call, has_failed(record->payload)),
	};

	call->is_active = false;
	if (launch.untimed == WIRE_DEVICE_CAPTURED)
		atomic_fetch_add_explicit(&hip.captured, 1, memory_order_relaxed);
	else if (call->works)
		atomic_fetch_add_explicit(&hip.launches, 1, memory_order_relaxed);
	inject_write(&launch.record);
}

/* One that began before its window is not known. */
static void count_capture(const struct rocprofiler_callback_record *record, unsigned role)
{
	if (record->phase != ROCPROFILER_PHASE_EXIT)
		return;
	if (role == ROLE_CAPTURE_BEGIN) {
		if (!has_failed(record->payload))
			atomic_fetch_add_explicit(&hip.captures, 1, memory_order_relaxed);
	} else if (atomic_load_explicit(&hip.captures, memory_order_relaxed)) {
		atomic_fetch_sub_explicit(&hip.captures, 1, memory_order_relaxed);
	}
}

static void on_call(struct rocprofiler_callback_record record, uint64_t *user, void *data)
{
	uint32_t operation = (uint32_t)record.operation;
	unsigned role = operation < MAX_CALLS ? roles[operation] : (unsigned)ROLE_NONE;
	int saved_errno;

	if (role == ROLE_NONE || atomic_load_explicit(&hip.is_over, memory_order_relaxed))
		return;
	saved_errno = errno;
	if (role >= ROLE_CAPTURE_BEGIN)
		count_capture(&record, role);
	else if (record.phase == ROCPROFILER_PHASE_ENTER)
		enter(&record, role);
	else if (current.is_active && current.internal == record.internal)
		leave(&current, &record);
	errno = saved_errno;
}

/* Work that is given to a device, by the call that the thread is in. */
static int on_request(uint64_t thread, struct rocprofiler_id context, int kind, int32_t operation,
	uint64_t internal, uint64_t *ret_external, void *data)
{
	struct hip_call *call = &current;

	atomic_fetch_add_explicit(&hip.expected, 1, memory_order_relaxed);
	*ret_external = call->is_active ? call->correlation : 0;
	call->works += call->is_active;
	return 0;
}

/* ---- asking for it ---- */

struct traced {
	int32_t operations[MAX_CALLS];
	size_t count;
};

static int take_operation(int kind, int32_t operation, void *data)
{
	struct traced *traced = data;
	const char *name = NULL;
	unsigned role;

	if (operation < 0 || operation >= MAX_CALLS || traced->count == MAX_CALLS ||
		hip.call.operation_name(kind, operation, &name, NULL) != ROCPROFILER_OK || !name)
		return 0;
	role = role_of(name);
	if (role == ROLE_NONE)
		return 0;
	roles[operation] = (uint8_t)role;
	traced->operations[traced->count++] = operation;
	return 0;
}

/* One by one: all would call back for every hipGetDevice(), too. */
int hip_trace_calls(void)
{
	static const int requests[] = {ROCPROFILER_REQUEST_DISPATCH, ROCPROFILER_REQUEST_COPY};
	static struct traced traced;
	int status =
		hip.call.each_operation(ROCPROFILER_CALLBACK_HIP_RUNTIME, take_operation, &traced);

	if (status == ROCPROFILER_OK)
		status = hip.call.trace_callbacks(hip.work, ROCPROFILER_CALLBACK_HIP_RUNTIME,
			traced.operations, traced.count, on_call, NULL);
	if (status == ROCPROFILER_OK && inject_is_timed())
		status = hip.call.answer_requests(
			hip.work, requests, sizeof(requests) / sizeof(*requests), on_request, NULL);
	return status;
}
