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
 * "training" of the process.
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

#define NOINLINE __attribute__((noinline, noclone))
/* After a call, so that it does not become a jump. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

#define RUNTIME_LAUNCH   211
#define RUNTIME_MEMCPY   41
#define RUNTIME_SYNC     165
#define RUNTIME_BEGIN    315
#define RUNTIME_END      319
#define RUNTIME_INSTANCE 443
#define RUNTIME_REPLAY   311
#define GRAPH            ((void *)10)
#define EXEC             ((void *)20)
#define NODE(graph, i)   ((void *)(((uintptr_t)(graph) << 32) | (i)))
#define REPLAYS          10
#define KERNEL_NS        20000

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

	if (cupti->kind_enabled(CUPTI_KIND_GRAPH_TRACE)) {
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
	emit_device();
	if (strcmp(what, "late") == 0) {
		run_late(steps);
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
