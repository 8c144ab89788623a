/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as sonde meets it, except that no device and no CUDA are there: it loads the library
 * that CUDA_INJECTION64_PATH names, as libcuda does, and tells the stand-in for libcupti what a
 * device would have done. Used by end-to-end tests alone.
 *
 *     cuda-program LIBCUPTI_DOUBLE STEPS [WHAT]
 *
 * Each step launches `scale` twice and `add` once, from functions of their own, and copies; after
 * the steps a graph of three kernels is captured, instantiated and replayed 10 times. WHAT: exit,
 * _exit, kill, fork: how it ends; faults: kernels without times, dropped records; graphs: graphs
 * alone, timed as a whole where that was asked for; late: work is told 20 ms after its launch, for
 * STEPS times 10 ms; ranges: steps lie in ranges "train step" of NVTX, and all of them in a range
 * "training" of the process; sync: STEPS times a kernel of one stream waits for one of another;
 * unified: STEPS times a kernel faults on managed memory, and the host on what it wrote;
 * unified-late: the same, and CUPTI never says that the driver is ready;
 * latency: STEPS times two kernels wait on the device after they were submitted, the second one
 * for longer, in a stream of a higher priority;
 * device-graphs: STEPS times a graph is replayed that launches another while it runs, which
 * launches itself when it has ended; then a graph of which no launch is known launches that;
 * host: STEPS times a stream has the host run a function between two kernels, and a graph one;
 * calls: a model is loaded and its weights are allocated, then two threads allocate, launch and
 * free STEPS times; calls-ended: the process ends within a call that allocates.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../nvtx/nvtx.h"
#include "double.h"
#include "wire/device.h"

#define NOINLINE __attribute__((noinline, noclone))
/* After a call, so that it does not become a jump. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

#define RUNTIME_LAUNCH        211
#define RUNTIME_MEMCPY        41
#define RUNTIME_SYNC          165
#define RUNTIME_RECORD        135
#define RUNTIME_WAIT_EVENT    147
#define RUNTIME_BEGIN         315
#define RUNTIME_END           319
#define RUNTIME_INSTANCE      443
#define RUNTIME_REPLAY        311
#define RUNTIME_MALLOC        20
#define RUNTIME_FREE          22
#define RUNTIME_MANAGED       206
#define RUNTIME_QUERY         138
#define RUNTIME_HOST_FUNCTION 284
#define DRIVER_ALLOC          243
#define DRIVER_FREE           245
#define DRIVER_LIBRARY        678
#define DRIVER_FUNCTION       683
#define OUT_OF_MEMORY         2
#define NOT_READY             600
#define GRAPH                 ((void *)10)
#define EXEC                  ((void *)20)
#define NODE(graph, i)        ((void *)(((uintptr_t)(graph) << 32) | (i)))
#define REPLAYS               10
#define KERNEL_NS             20000
#define CACHE_BYTES           (1 << 20)
#define WEIGHT_BYTES          (8 << 20)

static const struct double_functions *cupti;
static _Atomic uint32_t last_correlation;
static _Atomic uint32_t checksum; /* what the program computes */
static bool is_late, has_ranges;

static uint64_t device_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void pause_ns(long ns)
{
	const struct timespec time = {.tv_nsec = ns};

	nanosleep(&time, NULL);
}

/* ---- the device ---- */

static struct cupti_kernel kernel(const char *name, uint32_t correlation)
{
	uint64_t now = device_now();

	return (struct cupti_kernel){
		.kind = CUPTI_KIND_CONCURRENT_KERNEL,
		.registers = 64,
		.start = now + 1000,
		.end = now + 1000 + KERNEL_NS,
		.context = 1,
		.stream = 7,
		.grid = {64, 1, 1},
		.block = {256, 1, 1},
		.static_shared = 1024,
		.dynamic_shared = 2048,
		.correlation = correlation,
		.name = name,
	};
}

/* The device is done some time after its launch; a thread of its own tells. */
#define MAX_LATE 4096
static struct cupti_kernel late[MAX_LATE];
static _Atomic uint32_t late_count;

static void *tell_late(void *context)
{
	for (uint32_t i = 0;; i++) {
		while (i >= late_count)
			pause_ns(1000000);
		while (device_now() < late[i].end)
			pause_ns(1000000);
		cupti->emit(&late[i], sizeof(*late));
	}
	return NULL;
}

static void ran(const struct cupti_kernel *record)
{
	if (!is_late) {
		cupti->emit(record, sizeof(*record));
		return;
	}
	late[late_count] = *record;
	late[late_count].end += 20000000;
	late_count++;
}

/* ---- CUDA's calls, as far as they are called back ---- */

static NOINLINE uint32_t cuda_launch_kernel(const char *name)
{
	uint32_t correlation = ++last_correlation;
	struct cupti_kernel record;

	checksum++;
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, correlation, CUPTI_SITE_ENTER, 0);
	record = kernel(name, correlation);
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, correlation, CUPTI_SITE_EXIT, 0);
	ran(&record);
	return correlation;
}

static NOINLINE void cuda_memcpy(void)
{
	uint32_t correlation = ++last_correlation;
	struct cupti_memcpy record = {
		.kind = CUPTI_KIND_MEMCPY,
		.copy = CUPTI_COPY_HTOD,
		.from = 1,
		.to = 3,
		.bytes = 4096,
		.context = 1,
		.stream = 7,
		.correlation = correlation,
	};

	checksum++;
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_MEMCPY, correlation, CUPTI_SITE_ENTER, 0);
	record.start = device_now();
	record.end = record.start + KERNEL_NS;
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_MEMCPY, correlation, CUPTI_SITE_EXIT, 0);
	cupti->emit(&record, sizeof(record));
}

static NOINLINE void cuda_synchronize(void)
{
	uint32_t correlation = ++last_correlation;

	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_SYNC, correlation, CUPTI_SITE_ENTER, 0);
	pause_ns(100000);
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_SYNC, correlation, CUPTI_SITE_EXIT, 0);
}

static void call(uint32_t id, void (*within)(void))
{
	uint32_t correlation = ++last_correlation;

	cupti->call(CUPTI_DOMAIN_RUNTIME, id, correlation, CUPTI_SITE_ENTER, 0);
	if (within)
		within();
	cupti->call(CUPTI_DOMAIN_RUNTIME, id, correlation, CUPTI_SITE_EXIT, 0);
}

/* ---- a graph ---- */

static uint32_t node_count;
static const char *const layers[] = {"norm", "attention", "mlp"};

static void make_node(void)
{
	struct cupti_graph_data data = {.graph = GRAPH, .node = NODE(GRAPH, node_count++)};

	cupti->resource(CUPTI_RESOURCE_GRAPHNODE_CREATED, &data);
}

static NOINLINE void captured_launch(void)
{
	checksum++;
	call(RUNTIME_LAUNCH, make_node);
	KEEP_FRAME();
}

static NOINLINE void layer_norm(void)
{
	captured_launch();
	KEEP_FRAME();
}

static NOINLINE void layer_attention(void)
{
	captured_launch();
	KEEP_FRAME();
}

static NOINLINE void layer_mlp(void)
{
	captured_launch();
	KEEP_FRAME();
}

static void clone_nodes(void)
{
	struct cupti_graph_data exec = {.graph = GRAPH, .exec = EXEC};

	for (uint32_t i = 0; i < node_count; i++) {
		struct cupti_graph_data data = {
			.graph = EXEC, .node = NODE(EXEC, i), .original_node = NODE(GRAPH, i)};

		cupti->resource(CUPTI_RESOURCE_GRAPHNODE_CLONED, &data);
	}
	cupti->resource(CUPTI_RESOURCE_GRAPHEXEC_CREATED, &exec);
}

static NOINLINE void capture_model(void)
{
	call(RUNTIME_BEGIN, NULL);
	layer_norm();
	layer_attention();
	layer_mlp();
	call(RUNTIME_END, NULL);
	call(RUNTIME_INSTANCE, clone_nodes);
	KEEP_FRAME();
}

static void emit_replay(uint32_t correlation)
{
	struct cupti_graph_trace whole = {
		.kind = CUPTI_KIND_GRAPH_TRACE,
		.correlation = correlation,
		.start = device_now(),
		.end = device_now() + 3 * KERNEL_NS,
		.graph = (uint32_t)(uintptr_t)EXEC,
		.context = 1,
		.stream = 7,
	};

	if (cupti->times_whole(0)) {
		cupti->emit(&whole, sizeof(whole));
		return;
	}
	for (uint32_t i = node_count; i-- > 0;) {
		struct cupti_kernel record = kernel(layers[i], correlation);

		record.graph = (uint32_t)(uintptr_t)EXEC;
		record.graph_node = (uintptr_t)NODE(EXEC, i);
		cupti->emit(&record, sizeof(record));
	}
}

static NOINLINE void replay_model(void)
{
	uint32_t correlation = ++last_correlation;

	checksum++;
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_REPLAY, correlation, CUPTI_SITE_ENTER, 0);
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_REPLAY, correlation, CUPTI_SITE_EXIT, 0);
	emit_replay(correlation);
	KEEP_FRAME();
}

/* ---- the program ---- */

static NOINLINE void launch_scale(void)
{
	cuda_launch_kernel("scale");
	KEEP_FRAME();
}

static NOINLINE void launch_add(void)
{
	cuda_launch_kernel("add");
	KEEP_FRAME();
}

static NOINLINE void train_step(void)
{
	launch_scale();
	launch_scale();
	launch_add();
	cuda_memcpy();
	KEEP_FRAME();
}

static void *train(void *steps)
{
	for (uintptr_t i = 0; i < (uintptr_t)steps; i++) {
		if (has_ranges)
			nvtxRangePushA("train step");
		train_step();
		if (has_ranges)
			nvtxRangePop();
	}
	cuda_synchronize();
	return NULL;
}

static void launch_on(const char *name, uint32_t stream, uint64_t start, uint64_t kernels)
{
	uint32_t correlation = ++last_correlation;
	struct cupti_kernel record = kernel(name, correlation);

	checksum++;
	record.stream = stream;
	record.start = start;
	record.end = start + kernels * KERNEL_NS;
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, correlation, CUPTI_SITE_ENTER, 0);
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, correlation, CUPTI_SITE_EXIT, 0);
	cupti->emit(&record, sizeof(record));
}

/* Was queued for the time of one kernel, and submitted for that of `waits`. */
static void launch_early(const char *name, uint32_t stream, uint64_t waits, int32_t priority)
{
	uint32_t correlation = ++last_correlation;
	struct cupti_kernel record = kernel(name, correlation);

	checksum++;
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, correlation, CUPTI_SITE_ENTER, 0);
	record.queued = device_now();
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, correlation, CUPTI_SITE_EXIT, 0);
	record.submitted = record.queued + KERNEL_NS;
	record.start = record.submitted + waits * KERNEL_NS;
	record.end = record.start + KERNEL_NS;
	record.stream = stream;
	record.priority = priority;
	cupti->emit(&record, sizeof(record));
}

static void run_latency(unsigned long steps)
{
	for (unsigned long i = 0; i < steps; i++) {
		launch_early("soon", 7, 2, 0);
		launch_early("later", 8, 5, -3);
		pause_ns(20 * KERNEL_NS);
	}
}

static void emit_device_graph(uint32_t launcher, uint32_t mode, uint64_t start, uint64_t kernels)
{
	const struct cupti_device_graph record = {
		.kind = CUPTI_KIND_DEVICE_GRAPH_TRACE,
		.start = start,
		.end = start + kernels * KERNEL_NS,
		.graph = 21,
		.launcher = launcher,
		.mode = mode,
		.context = 1,
		.stream = 8,
	};

	cupti->emit(&record, sizeof(record));
}

/* The graph takes 3 kernels' time; what it launches ends before it and is reported first. */
static NOINLINE void replay_with_device_graphs(void)
{
	struct cupti_graph_trace whole = {
		.kind = CUPTI_KIND_GRAPH_TRACE,
		.graph = (uint32_t)(uintptr_t)EXEC,
		.context = 1,
		.stream = 7,
	};
	uint64_t start;

	checksum++;
	call(RUNTIME_REPLAY, NULL);
	start = device_now() + KERNEL_NS;
	whole.correlation = last_correlation;
	whole.start = start;
	whole.end = start + 3 * KERNEL_NS;
	emit_device_graph(21, CUPTI_DEVICE_LAUNCH_TAIL, start + 2 * KERNEL_NS, 2);
	emit_device_graph((uint32_t)(uintptr_t)EXEC, CUPTI_DEVICE_LAUNCH_FIRE_AND_FORGET,
		start + KERNEL_NS, 1);
	cupti->emit(&whole, sizeof(whole));
	pause_ns(20 * KERNEL_NS);
	KEEP_FRAME();
}

static void run_device_graphs(unsigned long steps)
{
	capture_model();
	for (unsigned long i = 0; i < steps; i++)
		replay_with_device_graphs();
	emit_device_graph(99, CUPTI_DEVICE_LAUNCH_SIBLING, device_now(), 5);
}

#define FUNCTION_NS (5 * KERNEL_NS)

/* A stream, then a graph that is replayed, has the host run a function; then a kernel runs. */
static void run_host_functions(unsigned long steps)
{
	for (unsigned long i = 0; i < steps; i++) {
		uint64_t start = device_now() + KERNEL_NS;
		struct cupti_host_launch function = {
			.kind = CUPTI_KIND_HOST_LAUNCH,
			.stream = 7,
			.context = 1,
			.start = start + KERNEL_NS,
			.end = start + KERNEL_NS + FUNCTION_NS,
		};
		struct cupti_graph_host_node node = {
			.kind = CUPTI_KIND_GRAPH_HOST_NODE,
			.stream = 8,
			.context = 1,
			.graph = (uint32_t)(uintptr_t)EXEC,
			.graph_node = (uintptr_t)NODE(EXEC, 0),
			.start = start,
			.end = start + 2 * FUNCTION_NS,
		};

		launch_on("before", 7, start, 1);
		function.correlation = last_correlation + 1;
		call(RUNTIME_HOST_FUNCTION, NULL);
		cupti->emit(&function, sizeof(function));
		launch_on("after", 7, function.end, 1);
		node.correlation = last_correlation + 1;
		call(RUNTIME_REPLAY, NULL);
		cupti->emit(&node, sizeof(node));
		launch_on("graph kernel", 8, node.end, 1);
		pause_ns(20 * KERNEL_NS);
	}
}

/* The event of a step is one that the step before recorded, too. */
static void wait_by_event(uint64_t event_sync)
{
	struct cupti_event record = {
		.kind = CUPTI_KIND_CUDA_EVENT,
		.correlation = last_correlation + 1,
		.context = 1,
		.stream = 7,
		.event = 40,
		.event_sync = event_sync,
	};
	struct cupti_synchronization wait = {
		.kind = CUPTI_KIND_SYNCHRONIZATION,
		.type = WIRE_SYNC_WAIT,
		.correlation = last_correlation + 2,
		.context = 1,
		.stream = 8,
		.event = 40,
		.event_sync = event_sync,
	};

	call(RUNTIME_RECORD, NULL);
	cupti->emit(&record, sizeof(record));
	call(RUNTIME_WAIT_EVENT, NULL);
	cupti->emit(&wait, sizeof(wait));
}

/* In each step stream 8 waits for stream 7 for the time of 9 kernels. */
static void run_sync(unsigned long steps)
{
	struct cupti_synchronization wait = {
		.kind = CUPTI_KIND_SYNCHRONIZATION,
		.type = WIRE_SYNC_CONTEXT,
		.context = 1,
		.stream = CUPTI_SYNC_INVALID,
		.event = CUPTI_SYNC_INVALID,
		.event_sync = CUPTI_SYNC_INVALID,
	};

	for (unsigned long i = 0; i < steps; i++) {
		uint64_t start = device_now() + 100 * KERNEL_NS;

		launch_on("prepare", 8, start, 1);
		launch_on("produce", 7, start, 10);
		wait_by_event(900 + i);
		launch_on("consume", 8, start + 10 * KERNEL_NS + 1000, 1);
		wait.start = device_now();
		wait.correlation = last_correlation + 1;
		/* Until the kernels have ended. */
		pause_ns(120 * KERNEL_NS);
		call(RUNTIME_SYNC, NULL);
		wait.end = device_now();
		cupti->emit(&wait, sizeof(wait));
	}
}

/* ---- calls that launch nothing ---- */

static void driver_call(uint32_t id, uint32_t correlation, long takes_ns)
{
	cupti->call(CUPTI_DOMAIN_DRIVER, id, correlation, CUPTI_SITE_ENTER, 0);
	if (takes_ns)
		pause_ns(takes_ns);
	cupti->call(CUPTI_DOMAIN_DRIVER, id, correlation, CUPTI_SITE_EXIT, 0);
}

static uint32_t call_with(uint32_t id, uint32_t driver_id, int32_t result)
{
	uint32_t correlation = ++last_correlation;

	checksum++;
	cupti->call(CUPTI_DOMAIN_RUNTIME, id, correlation, CUPTI_SITE_ENTER, 0);
	if (driver_id)
		driver_call(driver_id, correlation, 0);
	cupti->call(CUPTI_DOMAIN_RUNTIME, id, correlation, CUPTI_SITE_EXIT, result);
	return correlation;
}

static void emit_memory(uint32_t operation, uint64_t address, uint64_t bytes, uint32_t correlation)
{
	const struct cupti_memory memory = {
		.kind = CUPTI_KIND_MEMORY2,
		.operation = operation,
		.memory = 3,
		.correlation = correlation,
		.address = address,
		.bytes = bytes,
		.timestamp = device_now(),
	};

	cupti->emit(&memory, sizeof(memory));
}

/* Each thread has blocks of its own. */
static uint64_t cache_address(void)
{
	return (uint64_t)gettid() << 24;
}

static NOINLINE void allocate_cache(void)
{
	emit_memory(1, cache_address(), CACHE_BYTES, call_with(RUNTIME_MALLOC, DRIVER_ALLOC, 0));
	KEEP_FRAME();
}

/* They stay, in an operator as PyTorch's emit_nvtx() marks them. */
static NOINLINE void allocate_weights(void)
{
	nvtxRangePushA("aten::empty, op_id = 1, sizes = []");
	emit_memory(1, 0x8000, WEIGHT_BYTES, call_with(RUNTIME_MALLOC, DRIVER_ALLOC, 0));
	nvtxRangePop();
	KEEP_FRAME();
}

static NOINLINE void allocate_too_much(void)
{
	call_with(RUNTIME_MALLOC, DRIVER_ALLOC, OUT_OF_MEMORY);
	KEEP_FRAME();
}

static NOINLINE void free_cache(void)
{
	emit_memory(CUPTI_MEMORY_RELEASE, cache_address(), CACHE_BYTES,
		call_with(RUNTIME_FREE, DRIVER_FREE, 0));
	KEEP_FRAME();
}

/* The first launch of a kernel loads its code. */
static NOINLINE void load_model(void)
{
	uint32_t correlation = ++last_correlation;
	struct cupti_kernel record = kernel("first", correlation);

	checksum++;
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, correlation, CUPTI_SITE_ENTER, 0);
	driver_call(DRIVER_LIBRARY, correlation, 20000000);
	driver_call(DRIVER_FUNCTION, correlation, 0);
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, correlation, CUPTI_SITE_EXIT, 0);
	record.start = device_now();
	record.end = record.start + KERNEL_NS;
	cupti->emit(&record, sizeof(record));
	KEEP_FRAME();
}

static void *serve(void *steps)
{
	for (uintptr_t i = 0; i < (uintptr_t)steps; i++) {
		allocate_cache();
		launch_add();
		call_with(RUNTIME_QUERY, 0, NOT_READY);
		free_cache();
	}
	return NULL;
}

static void run_calls(unsigned long steps)
{
	pthread_t thread;

	load_model();
	allocate_weights();
	pthread_create(&thread, NULL, serve, (void *)steps);
	serve((void *)steps);
	pthread_join(thread, NULL);
	allocate_too_much();
	cuda_synchronize();
}

/* The last call has begun, and its end is not seen. */
static void run_calls_ended(void)
{
	launch_add();
	allocate_cache();
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_MALLOC, ++last_correlation, CUPTI_SITE_ENTER, 0);
}

/* ---- unified memory ---- */

#define MANAGED 0x7f0000000000ULL
#define PAGES   (2 << 20)

static NOINLINE void allocate_managed(void)
{
	struct cupti_memory record = {
		.kind = CUPTI_KIND_MEMORY2,
		.operation = 1,
		.memory = WIRE_MEMORY_MANAGED,
		.correlation = last_correlation + 1,
		.address = MANAGED,
		.bytes = 4 * PAGES,
	};

	call_with(RUNTIME_MANAGED, 0, 0);
	record.timestamp = device_now();
	cupti->emit(&record, sizeof(record));
	KEEP_FRAME();
}

/* What has no end has the start's. */
static void emit_unified(uint32_t counter, uint64_t start, uint64_t takes, uint64_t address,
	uint64_t value, uint32_t flags)
{
	bool to_host = counter == WIRE_UNIFIED_TO_HOST;
	struct cupti_unified_memory record = {
		.kind = CUPTI_KIND_UNIFIED_MEMORY,
		.counter = counter,
		.value = value,
		.start = start,
		.end = takes ? start + takes : 0,
		.address = address,
		.from = counter == WIRE_UNIFIED_TO_DEVICE ? CUPTI_UNIFIED_HOST : 0,
		.to = to_host ? CUPTI_UNIFIED_HOST : 0,
		.process = (uint32_t)getpid(),
		.flags = flags,
		.processors = {counter == WIRE_UNIFIED_THRASHING},
	};

	cupti->emit(&record, sizeof(record));
}

/* In each step two groups of faults and two migrations while "gather" runs, then one to the host,
 * before which it faulted; a page of the system once. */
static void run_unified(unsigned long steps)
{
	allocate_managed();
	for (unsigned long i = 0; i < steps; i++) {
		uint64_t start = device_now() + KERNEL_NS;

		launch_on("gather", 7, start, 10);
		emit_unified(WIRE_UNIFIED_DEVICE_FAULT, start + 1000, KERNEL_NS, MANAGED, 3,
			WIRE_ACCESS_READ);
		emit_unified(WIRE_UNIFIED_TO_DEVICE, start + 2000, 2 * KERNEL_NS, MANAGED, PAGES,
			WIRE_MIGRATION_COHERENCE);
		emit_unified(WIRE_UNIFIED_TO_DEVICE, start + 3 * KERNEL_NS, KERNEL_NS,
			MANAGED + PAGES, PAGES, WIRE_MIGRATION_USER);
		start += 11 * KERNEL_NS;
		emit_unified(WIRE_UNIFIED_HOST_FAULT, start, 0, MANAGED, 0x401000, 0);
		emit_unified(WIRE_UNIFIED_TO_HOST, start + 1000, KERNEL_NS, MANAGED, 65536,
			WIRE_MIGRATION_COHERENCE);
		emit_unified(WIRE_UNIFIED_THRASHING, start + 2000, 0, MANAGED, 65536,
			CUPTI_UNIFIED_ON_HOST);
		pause_ns(20 * KERNEL_NS);
	}
	emit_unified(WIRE_UNIFIED_TO_DEVICE, device_now(), KERNEL_NS, 0x1000, 4096, 0);
}

static void run_late(unsigned long steps)
{
	pthread_t thread;

	is_late = true;
	pthread_create(&thread, NULL, tell_late, NULL);
	for (unsigned long i = 0; i < steps && i < MAX_LATE; i++) {
		launch_scale();
		pause_ns(10000000);
	}
}

static void run_faults(void)
{
	struct cupti_kernel record;

	for (unsigned i = 0; i < 4; i++) {
		uint32_t correlation = ++last_correlation;

		cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, correlation, CUPTI_SITE_ENTER, 0);
		cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, correlation, CUPTI_SITE_EXIT, 0);
		record = kernel("odd", correlation);
		if (i == 0)
			record.start = record.end = 0;
		cupti->emit(&record, i == 1 || i == 2 ? 0 : sizeof(record));
	}
	record = kernel("orphan", 1000000); /* of a launch that nobody saw */
	cupti->emit(&record, sizeof(record));
	cupti->step_clock(0);
}

static void emit_device(void)
{
	struct cupti_device record = {
		.kind = CUPTI_KIND_DEVICE,
		.capability_major = 9,
		.multiprocessors = 132,
		.warp_threads = 32,
		.multiprocessor_warps = 64,
		.multiprocessor_blocks = 32,
		.multiprocessor_shared = 233472,
		.multiprocessor_registers = 65536,
		.block_registers = 65536,
		.block_shared = 49152,
		.block_threads = 1024,
		.uuid = {0xab, 0xcd, 0xef, 0x01, 2, 3},
		.name = "Double of a GPU",
	};
	struct cupti_overhead overhead = {
		.kind = CUPTI_KIND_OVERHEAD,
		.overhead = 2 << 16,
		.object = CUPTI_OBJECT_THREAD,
		.object_id = {(uint32_t)getpid(), (uint32_t)gettid()},
		.start = device_now() - 5000,
		.end = device_now(),
	};
	struct cupti_memory memory = {
		.kind = CUPTI_KIND_MEMORY2,
		.operation = 1,
		.memory = 3,
		.address = 0x7000,
		.bytes = 1 << 20,
		.timestamp = device_now(),
	};

	cupti->emit(&record, sizeof(record));
	cupti->emit(&overhead, sizeof(overhead));
	cupti->emit(&memory, sizeof(memory));
	memory.operation = CUPTI_MEMORY_RELEASE;
	cupti->emit(&memory, sizeof(memory));
}

/* As libcuda does. */
static void load_injection(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	int (*initialize)(void);

	*(void **)&initialize = library ? dlsym(library, "InitializeInjection") : NULL;
	if (initialize)
		initialize();
}

static void fork_child(unsigned long steps)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		train((void *)steps);
		exit(7);
	}
	waitpid(child, &status, 0);
	printf("child ended with %d\n", WEXITSTATUS(status));
	train((void *)1);
}

static void train_on_two_threads(unsigned long steps)
{
	nvtxRangeId_t training = has_ranges ? nvtxRangeStartA("training") : 0;
	pthread_t thread;

	pthread_create(&thread, NULL, train, (void *)steps);
	train((void *)steps);
	pthread_join(thread, NULL);
	if (has_ranges)
		nvtxRangeEnd(training);
}

int main(int count, char **arguments)
{
	const char *what = count > 3 ? arguments[3] : "exit";
	unsigned long steps = count > 2 ? strtoul(arguments[2], NULL, 10) : 0;
	void *library = count > 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;

	cupti = library ? dlsym(library, "double_cupti") : NULL;
	if (!cupti) {
		fputs("usage: cuda-program LIBCUPTI_DOUBLE STEPS [WHAT]\n", stderr);
		return 2;
	}
	has_ranges = strcmp(what, "ranges") == 0;
	load_injection();
	if (strcmp(what, "unified-late") != 0)
		cupti->resource(CUPTI_RESOURCE_DRIVER_READY, NULL);
	emit_device();
	if (strcmp(what, "late") == 0) {
		run_late(steps);
	} else if (strcmp(what, "sync") == 0) {
		run_sync(steps);
	} else if (strncmp(what, "unified", 7) == 0) {
		run_unified(steps);
	} else if (strcmp(what, "latency") == 0) {
		run_latency(steps);
	} else if (strcmp(what, "device-graphs") == 0) {
		run_device_graphs(steps);
	} else if (strcmp(what, "host") == 0) {
		run_host_functions(steps);
	} else if (strcmp(what, "calls") == 0) {
		run_calls(steps);
	} else if (strcmp(what, "calls-ended") == 0) {
		run_calls_ended();
	} else if (strcmp(what, "faults") == 0) {
		run_faults();
	} else {
		train_on_two_threads(steps);
		capture_model();
		for (unsigned i = 0; i < REPLAYS; i++)
			replay_model();
	}
	if (strcmp(what, "fork") == 0)
		fork_child(steps);
	printf("computed %u\n", checksum);
	fflush(stdout);
	if (strcmp(what, "_exit") == 0 || strcmp(what, "kill") == 0)
		pause_ns(900000000); /* what was flushed until then is kept */
	if (strcmp(what, "_exit") == 0)
		_exit(5);
	if (strcmp(what, "kill") == 0)
		raise(SIGKILL);
	return 5;
}
