/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/cuda/cuda.h"

#include <string.h>

#include "inject/launch/stack.h"

/* Correlation ids of CUDA, beside those of other runtimes. */
#define CORRELATION_CUDA (1ULL << 48)
/* The newest id is noted only now and then: threads do not fight for its cache line. */
#define CORRELATION_STEP (1U << 20)
/* What a launch runs is put together, and what it does not is kept apart. */
#define INLINE   __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

#define CALL_IDS                 1024 /* more than there are */
#define ROLE(name, number, role) [number] = CUDA_ROLE_##role,
static const uint8_t roles[][CALL_IDS] = {
	[CUPTI_DOMAIN_DRIVER] = {CUPTI_DRIVER_CALLS(ROLE) CUPTI_OTHER_DRIVER_CALLS(ROLE)},
	[CUPTI_DOMAIN_RUNTIME] = {CUPTI_RUNTIME_CALLS(ROLE) CUPTI_OTHER_RUNTIME_CALLS(ROLE)},
};
#undef ROLE

/*
 * The runtime's call and the driver's within it have one correlation id and are one launch, written
 * at the outer one.
 */
struct thread_calls {
	struct cuda_call driver, runtime;
	uint32_t captured_nodes; /* since the capture began */
	uint32_t captured_graph;
};

/* Of the fast kind, as in inject.c: all of a library's are, where one is. */
static __thread struct thread_calls thread_calls __attribute__((tls_model("initial-exec")));
static _Atomic uint32_t generation; /* of the enabled callbacks */
static _Atomic uint64_t newest_id = 1ULL << 32;
static _Atomic uint64_t instantiations;

uint64_t cuda_correlation(uint32_t id)
{
	uint64_t newest = atomic_load_explicit(&newest_id, memory_order_relaxed);
	int32_t ahead = (int32_t)(id - (uint32_t)newest);
	uint64_t wide = newest + (uint64_t)(int64_t)ahead;

	if (ahead > (int32_t)CORRELATION_STEP)
		atomic_compare_exchange_strong_explicit(
			&newest_id, &newest, wide, memory_order_relaxed, memory_order_relaxed);
	return CORRELATION_CUDA | wide;
}

static unsigned role_of(int domain, uint32_t id)
{
	return id < CALL_IDS ? roles[domain][id] : CUDA_ROLE_NONE;
}

static bool waits_for_all(int domain, uint32_t id)
{
	static const uint16_t driver[] = {CUPTI_DRIVER_WAITS}, runtime[] = {CUPTI_RUNTIME_WAITS};
	const uint16_t *ids = domain == CUPTI_DOMAIN_DRIVER ? driver : runtime;
	size_t count = domain == CUPTI_DOMAIN_DRIVER ? sizeof(driver) : sizeof(runtime);

	for (size_t i = 0; i < count / sizeof(*ids); i++)
		if (ids[i] == id)
			return true;
	return false;
}

static bool is_other(unsigned role)
{
	return role == CUDA_ROLE_ALLOCATE || role == CUDA_ROLE_OTHER || role == CUDA_ROLE_LOAD;
}

static bool is_wait(unsigned role)
{
	return role == CUDA_ROLE_FINISH || role == CUDA_ROLE_WAIT;
}

/* ---- telling ---- */

static void note_wait(const struct cuda_call *call, uint64_t exit_ns, bool failed)
{
	if (failed || !call->waits_for_all)
		return;
	atomic_store_explicit(&cuda.last_wait_launches,
		atomic_load_explicit(&cuda.launches, memory_order_relaxed), memory_order_relaxed);
	atomic_store_explicit(&cuda.last_wait_ns, exit_ns, memory_order_relaxed);
}

static enum wire_device_untimed untimed_of(const struct cuda_call *call, bool failed)
{
	if (failed)
		return WIRE_DEVICE_FAILED;
	if (call->nodes)
		return WIRE_DEVICE_CAPTURED;
	return inject_is_timed() ? WIRE_DEVICE_TIMED : WIRE_DEVICE_NOT_ASKED;
}

static void count_launch(const struct cuda_call *call, enum wire_device_untimed untimed)
{
	if (untimed == WIRE_DEVICE_TIMED)
		atomic_fetch_add_explicit(&cuda.launches, 1, memory_order_relaxed);
	else if (call->nodes)
		atomic_fetch_add_explicit(&cuda.captured, 1, memory_order_relaxed);
}

/* False, and counted, where there was no room. */
static inline INLINE bool write_record(
	const struct cuda_call *call, uint64_t exit_ns, enum wire_device_untimed untimed)
{
	struct inject_place place;
	struct wire_device_launch *launch = inject_reserve(sizeof(*launch), &place);

	if (!launch)
		return false;
	*launch = (struct wire_device_launch){
		.record = {.type = WIRE_RECORD_DEVICE_LAUNCH, .length_bytes = sizeof(*launch)},
		.correlation = call->correlation,
		.enter_ns = call->enter_ns,
		.exit_ns = exit_ns,
		.tid = inject_tid(),
		.kind = call->role,
		.untimed = (uint8_t)untimed,
	};
	inject_commit(&place);
	return true;
}

static inline INLINE void write_launch(const struct cuda_call *call, uint64_t exit_ns, bool failed)
{
	enum wire_device_untimed untimed = untimed_of(call, failed);

	count_launch(call, untimed);
	write_record(call, exit_ns, untimed);
}

/* A launch has had its stack taken at its begin. */
static void write_wait(const struct cuda_call *call, uint64_t exit_ns, bool failed)
{
	note_wait(call, exit_ns, failed);
	if (write_record(call, exit_ns, failed ? WIRE_DEVICE_FAILED : WIRE_DEVICE_TIMED) &&
		atomic_load_explicit(&cuda.others_are_on, memory_order_relaxed))
		cuda_stack_of_call(call->correlation, call->enter_ns);
}

static NOINLINE void write_graph(const struct cuda_call *call, uint64_t exit_ns, bool failed)
{
	static const uint8_t events[] = {
		[0] = WIRE_GRAPH_CAPTURE_BEGIN,
		[CUDA_ROLE_CAPTURE_END - CUDA_ROLE_CAPTURE_BEGIN] = WIRE_GRAPH_CAPTURE_END,
		[CUDA_ROLE_INSTANTIATE - CUDA_ROLE_CAPTURE_BEGIN] = WIRE_GRAPH_INSTANTIATE,
		[CUDA_ROLE_UPDATE - CUDA_ROLE_CAPTURE_BEGIN] = WIRE_GRAPH_UPDATE,
	};
	struct thread_calls *thread = &thread_calls;
	struct wire_device_graph graph = {
		.record = {.type = WIRE_RECORD_DEVICE_GRAPH, .length_bytes = sizeof(graph)},
		.enter_ns = call->enter_ns,
		.exit_ns = exit_ns,
		.correlation = call->correlation,
		.tid = inject_tid(),
		.graph = call->graph,
		.other = call->other,
		.nodes = call->nodes,
		.event = events[call->role - CUDA_ROLE_CAPTURE_BEGIN],
		.failed = failed,
	};

	if (call->role == CUDA_ROLE_CAPTURE_BEGIN) {
		thread->captured_nodes = 0;
		thread->captured_graph = 0;
	} else if (call->role == CUDA_ROLE_CAPTURE_END) {
		graph.graph = thread->captured_graph;
		graph.nodes = thread->captured_nodes;
	}
	inject_write(&graph.record);
}

/* ---- the callbacks ---- */

static NOINLINE void enter(struct cuda_call *call, int domain, uint32_t id, unsigned role,
	const struct cupti_call_data *data)
{
	*call = (struct cuda_call){
		.active = true,
		.waits_for_all = is_wait(role) && waits_for_all(domain, id),
		.role = (uint8_t)role,
		.id = data->correlation,
		.generation = atomic_load_explicit(&generation, memory_order_relaxed),
		.correlation = cuda_correlation(data->correlation),
		.symbol = role == CUDA_ROLE_KERNEL ? data->symbol_name : NULL,
	};
	if (role == CUDA_ROLE_INSTANTIATE)
		call->instantiation =
			1 + atomic_fetch_add_explicit(&instantiations, 1, memory_order_relaxed);
	call->enter_ns = inject_now_ns();
	/* The program's call, without the time that its stack took. */
	if (!is_wait(role) && role != CUDA_ROLE_EDGE && inject_takes_stacks() &&
		inject_launch_stack(call->correlation, call->enter_ns))
		call->enter_ns = inject_now_ns();
}

static void write_replay(const struct cuda_call *call, uint64_t exit_ns, bool failed)
{
	if (untimed_of(call, failed) == WIRE_DEVICE_TIMED)
		atomic_fetch_add_explicit(&cuda.graph_launches, 1, memory_order_relaxed);
	write_launch(call, exit_ns, failed);
}

/* What is neither work of its own nor on events. */
static NOINLINE void leave_rare(const struct cuda_call *call, uint64_t exit_ns, bool failed)
{
	if (is_wait(call->role))
		write_wait(call, exit_ns, failed);
	else if (call->role == CUDA_ROLE_GRAPH)
		write_replay(call, exit_ns, failed);
	else
		write_graph(call, exit_ns, failed);
}

/* errno stays: nothing here sets it but what puts it back. */
static NOINLINE void leave(struct cuda_call *call, const struct cupti_call_data *data)
{
	bool failed = data->result && *data->result != 0;
	uint64_t exit_ns = inject_now_ns();

	call->active = false;
	if (call->role < CUDA_ROLE_FINISH)
		write_launch(call, exit_ns, failed);
	else if (call->role == CUDA_ROLE_EDGE)
		cuda_write_call(call->correlation, call->enter_ns, exit_ns, data);
	else
		leave_rare(call, exit_ns, failed);
}

static NOINLINE void on_other(int domain, unsigned role, const struct cupti_call_data *data)
{
	const struct cuda_call *runtime = &thread_calls.runtime;
	uint32_t now = atomic_load_explicit(&generation, memory_order_relaxed);

	if (data->site != CUPTI_SITE_ENTER)
		cuda_leave_other(domain, data);
	else if (inject_is_open())
		cuda_enter_other(domain, role, data, runtime->active && runtime->generation == now);
}

/* The driver's call in the runtime's, which is written at that. */
static bool is_within(const struct thread_calls *thread, int domain, uint32_t id)
{
	return domain == CUPTI_DOMAIN_DRIVER && thread->runtime.active && thread->runtime.id == id;
}

void cuda_on_call(int domain, uint32_t id, const struct cupti_call_data *data)
{
	struct thread_calls *thread = &thread_calls;
	bool within = is_within(thread, domain, data->correlation);
	struct cuda_call *call;
	unsigned role;

	/* Half of all callbacks. */
	if (within && !atomic_load_explicit(&cuda.others_are_on, memory_order_relaxed))
		return;
	role = role_of(domain, id);
	call = domain == CUPTI_DOMAIN_DRIVER ? &thread->driver : &thread->runtime;
	if (is_other(role)) {
		on_other(domain, role, data);
	} else if (data->site != CUPTI_SITE_ENTER) {
		if (call->active && call->id == data->correlation)
			leave(call, data);
	} else if (role != CUDA_ROLE_NONE && !within && inject_is_open()) {
		enter(call, domain, id, role, data);
	}
}

struct cuda_call *cuda_current_call(void)
{
	uint32_t now = atomic_load_explicit(&generation, memory_order_relaxed);
	struct thread_calls *thread = &thread_calls;

	if (thread->driver.active && thread->driver.generation == now)
		return &thread->driver;
	if (thread->runtime.active && thread->runtime.generation == now)
		return &thread->runtime;
	return NULL;
}

uint64_t cuda_launch_without_call(unsigned kind)
{
	struct cuda_call call = {.role = (uint8_t)kind, .nodes = 1};

	call.correlation = inject_correlation();
	if (!inject_is_open())
		return call.correlation;
	call.enter_ns = inject_now_ns();
	inject_launch_stack(call.correlation, call.enter_ns);
	write_launch(&call, call.enter_ns, false);
	return call.correlation;
}

void cuda_count_captured_node(uint32_t graph)
{
	thread_calls.captured_nodes++;
	thread_calls.captured_graph = graph;
}

#define NUMBER(name, number, role) number,
static const uint16_t driver_calls[] = {CUPTI_DRIVER_CALLS(NUMBER)};
static const uint16_t runtime_calls[] = {CUPTI_RUNTIME_CALLS(NUMBER)};
#undef NUMBER

/* One by one: whole domains would call back for every cudaGetDevice(), too. */
void cuda_enable_calls(bool on)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
	/* Versions that do not know a call refuse it, which is fine. */
	for (size_t i = 0; i < sizeof(driver_calls) / sizeof(*driver_calls); i++)
		cupti_enable_callback(&cuda.cupti, CUPTI_DOMAIN_DRIVER, driver_calls[i], on);
	for (size_t i = 0; i < sizeof(runtime_calls) / sizeof(*runtime_calls); i++)
		cupti_enable_callback(&cuda.cupti, CUPTI_DOMAIN_RUNTIME, runtime_calls[i], on);
}
