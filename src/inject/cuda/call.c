/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/cuda/cuda.h"

#include <errno.h>

#include "inject/launch/stack.h"

/* Correlation ids of CUDA, beside those of other runtimes. */
#define CORRELATION_CUDA (1ULL << 48)
/* The newest id is noted only now and then: threads do not fight for its cache line. */
#define CORRELATION_STEP (1U << 20)

#define ROLE(name, number, role) [number] = CUDA_ROLE_##role,
static const uint8_t driver_roles[] = {CUPTI_DRIVER_CALLS(ROLE)};
static const uint8_t runtime_roles[] = {CUPTI_RUNTIME_CALLS(ROLE)};
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

static __thread struct thread_calls thread_calls;
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
	if (domain == CUPTI_DOMAIN_DRIVER)
		return id < sizeof(driver_roles) ? driver_roles[id] : CUDA_ROLE_NONE;
	return id < sizeof(runtime_roles) ? runtime_roles[id] : CUDA_ROLE_NONE;
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

static bool is_wait(unsigned role)
{
	return role == CUDA_ROLE_FINISH || role == CUDA_ROLE_WAIT;
}

/* ---- telling ---- */

static void count_launch(const struct cuda_call *call, uint64_t exit_ns, bool failed)
{
	if (is_wait(call->role)) {
		if (failed || !call->waits_for_all)
			return;
		atomic_store_explicit(&cuda.last_wait_launches,
			atomic_load_explicit(&cuda.launches, memory_order_relaxed),
			memory_order_relaxed);
		atomic_store_explicit(&cuda.last_wait_ns, exit_ns, memory_order_relaxed);
	} else if (call->nodes) {
		atomic_fetch_add_explicit(&cuda.captured, 1, memory_order_relaxed);
	} else if (!failed && inject_is_timed()) {
		atomic_fetch_add_explicit(&cuda.launches, 1, memory_order_relaxed);
	}
}

static void write_launch(const struct cuda_call *call, uint64_t exit_ns, bool failed)
{
	struct wire_device_launch launch = {
		.record = {.type = WIRE_RECORD_DEVICE_LAUNCH, .length_bytes = sizeof(launch)},
		.correlation = is_wait(call->role) ? 0 : call->correlation,
		.enter_ns = call->enter_ns,
		.exit_ns = exit_ns,
		.tid = inject_tid(),
		.kind = call->role,
	};

	if (failed)
		launch.untimed = WIRE_DEVICE_FAILED;
	else if (call->nodes)
		launch.untimed = WIRE_DEVICE_CAPTURED;
	else if (!inject_is_timed() && !is_wait(call->role))
		launch.untimed = WIRE_DEVICE_NOT_ASKED;
	count_launch(call, exit_ns, failed);
	inject_write(&launch.record);
}

static void write_graph(const struct cuda_call *call, uint64_t exit_ns, bool failed)
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

static void enter(
	struct cuda_call *call, int domain, uint32_t id, const struct cupti_call_data *data)
{
	unsigned role = role_of(domain, id);

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
	if (!is_wait(role) && inject_launch_stack(call->correlation, call->enter_ns))
		call->enter_ns = inject_now_ns();
}

static void leave(struct cuda_call *call, const struct cupti_call_data *data)
{
	bool failed = data->result && *data->result != 0;
	int saved_errno = errno;
	uint64_t exit_ns = inject_now_ns();

	call->active = false;
	if (call->role < CUDA_ROLE_CAPTURE_BEGIN)
		write_launch(call, exit_ns, failed);
	else
		write_graph(call, exit_ns, failed);
	errno = saved_errno;
}

void cuda_on_call(int domain, uint32_t id, const struct cupti_call_data *data)
{
	struct thread_calls *thread;
	struct cuda_call *call;
	unsigned role;

	if (data->site == CUPTI_SITE_ENTER && !inject_is_open())
		return;
	thread = &thread_calls;
	call = domain == CUPTI_DOMAIN_DRIVER ? &thread->driver : &thread->runtime;
	if (data->site != CUPTI_SITE_ENTER) {
		if (call->active && call->id == data->correlation)
			leave(call, data);
		return;
	}
	if (domain == CUPTI_DOMAIN_DRIVER && thread->runtime.active &&
		thread->runtime.id == data->correlation)
		return;
	role = role_of(domain, id);
	if (role != CUDA_ROLE_NONE)
		enter(call, domain, id, data);
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
