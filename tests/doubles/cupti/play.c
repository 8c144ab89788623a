/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays a program that uses CUDA: loads the stand-in for libcupti and libsonde-inject.so as libcuda
 * would, then the script that its argument names. No device, no driver, no CUDA. Its exit status is
 * that of a program which nothing disturbed: 0, or 3 where the script says so.
 *
 *     play LIBSONDE_INJECT LIBCUPTI_DOUBLE SCRIPT
 *
 * PLAY_LOAD names libraries, with colons, that the program has loaded before.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "double.h"
#include "wire/api.h"
#include "wire/device.h"
#include "wire/ring.h"

#define DRIVER_LAUNCH       307 /* cuLaunchKernel */
#define RUNTIME_LAUNCH      211 /* cudaLaunchKernel */
#define RUNTIME_MEMCPY      41  /* cudaMemcpyAsync */
#define DRIVER_MEMCPY       277 /* cuMemcpyHtoDAsync_v2 */
#define DRIVER_MEMSET       218 /* cuMemsetD16Async */
#define RUNTIME_SYNC        165 /* cudaDeviceSynchronize */
#define RUNTIME_EVENT_SYNC  137 /* cudaEventSynchronize */
#define RUNTIME_RECORD      135 /* cudaEventRecord */
#define RUNTIME_WAIT_EVENT  147 /* cudaStreamWaitEvent */
#define RUNTIME_STREAM_SYNC 131 /* cudaStreamSynchronize */
#define RUNTIME_MALLOC      20  /* cudaMalloc */
#define RUNTIME_FREE        22  /* cudaFree */
#define RUNTIME_EVENT_QUERY 138 /* cudaEventQuery */
#define RUNTIME_LIBRARY     470 /* cudaLibraryLoadData */
#define DRIVER_ALLOC        243 /* cuMemAlloc_v2 */
#define DRIVER_FREE         245 /* cuMemFree_v2 */
#define DRIVER_MODULE       19  /* cuModuleLoadData */
#define DRIVER_LIBRARY      678 /* cuLibraryLoadData */
#define DRIVER_FUNCTION     683 /* cuKernelGetFunction */
#define NOT_READY           600
#define RUNTIME_BEGIN       315
#define RUNTIME_END         319
#define RUNTIME_INSTANCE    443
#define RUNTIME_REPLAY      311
#define DRIVER_REPLAY       514
#define NODE(graph, index)  ((void *)(((uintptr_t)(graph) << 32) | (index)))
#define GRAPH(id)           ((void *)(uintptr_t)(id))
#define THREADS             64
#define LAUNCHES_PER_THREAD 50 /* all of them fit into one ring that nobody reads */

static const struct double_functions *cupti;
static void *injected;             /* libsonde-inject.so */
static int (*initialize)(void);    /* what libcuda calls when the program first uses CUDA */
static _Atomic uint32_t originals; /* how often the calls themselves ran */
static uint32_t calls;             /* that the program made */

static void pause_ms(unsigned ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&time, NULL);
}

/* Machines may be busy: what takes milliseconds is waited for in seconds. False: it did not come.
 */
static int wait_for(int (*happened)(void))
{
	for (unsigned i = 0; i < 3000 && !happened(); i++)
		pause_ms(10);
	return happened();
}

/*
 * Until all records that were emitted have been read. The first flush that ends may have begun
 * before them, the second hands them over, and before it asks for the third the writer has read
 * what it was handed.
 */
static int wait_for_records(void)
{
	uint32_t before = cupti->flushes();

	for (unsigned i = 0; i < 3000 && cupti->flushes() - before < 3; i++)
		pause_ms(10);
	return cupti->flushes() - before >= 3;
}

static int is_tracing(void)
{
	return cupti->enabled_callbacks(CUPTI_DOMAIN_DRIVER) &&
	       cupti->enabled_callbacks(CUPTI_DOMAIN_RUNTIME);
}

static int is_not_tracing(void)
{
	return !cupti->enabled_callbacks(CUPTI_DOMAIN_RUNTIME);
}

static int is_not_asked_for(void)
{
	return !cupti->kind_enabled(CUPTI_KIND_CONCURRENT_KERNEL);
}

static int is_taken_back(void)
{
	return !cupti->is_taken_over();
}

static uint64_t device_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* ---- CUDA, as far as it is called back ---- */

static void original(void)
{
	atomic_fetch_add(&originals, 1);
}

static void runtime_call(uint32_t id, uint32_t correlation, void (*within)(uint32_t))
{
	cupti->call(CUPTI_DOMAIN_RUNTIME, id, correlation, CUPTI_SITE_ENTER, 0);
	within(correlation);
	cupti->call(CUPTI_DOMAIN_RUNTIME, id, correlation, CUPTI_SITE_EXIT, 0);
}

static void driver_call(uint32_t id, uint32_t correlation, int32_t result)
{
	cupti->call(CUPTI_DOMAIN_DRIVER, id, correlation, CUPTI_SITE_ENTER, 0);
	original();
	cupti->call(CUPTI_DOMAIN_DRIVER, id, correlation, CUPTI_SITE_EXIT, result);
}

static void within_launch(uint32_t correlation)
{
	driver_call(DRIVER_LAUNCH, correlation, 0);
}

static void within_copy(uint32_t correlation)
{
	driver_call(DRIVER_MEMCPY, correlation, 0);
}

static void within_replay(uint32_t correlation)
{
	driver_call(DRIVER_REPLAY, correlation, 0);
}

static void within_nothing(uint32_t correlation)
{
	original();
}

static void launch(uint32_t correlation)
{
	calls++;
	runtime_call(RUNTIME_LAUNCH, correlation, within_launch);
}

static void sync_device(uint32_t correlation)
{
	calls++;
	runtime_call(RUNTIME_SYNC, correlation, within_nothing);
}

/* ---- records ---- */

static struct cupti_kernel kernel(uint32_t correlation)
{
	uint64_t now = device_now();

	return (struct cupti_kernel){
		.kind = CUPTI_KIND_CONCURRENT_KERNEL,
		.registers = 42,
		.start = now,
		.end = now + 1000,
		.context = 1,
		.stream = 7,
		.grid = {4, 2, 1},
		.block = {128, 1, 1},
		.static_shared = 256,
		.dynamic_shared = 512,
		.correlation = correlation,
		.name = "_Z5gemmsPfS_",
	};
}

static void emit_kernel(uint32_t correlation)
{
	struct cupti_kernel record = kernel(correlation);

	cupti->emit(&record, sizeof(record));
}

static void emit_node(uint32_t correlation, uint32_t exec, void *node)
{
	struct cupti_kernel record = kernel(correlation);

	record.graph = exec;
	record.graph_node = (uintptr_t)node;
	cupti->emit(&record, sizeof(record));
}

static void emit_device(void)
{
	struct cupti_device record = {
		.kind = CUPTI_KIND_DEVICE,
		.capability_major = 9,
		.multiprocessors = 132,
		.uuid = {1, 2, 3},
		.name = "Double of a GPU",
	};

	cupti->emit(&record, sizeof(record));
}

/* Three instances of one GPU, of which the program sees the second. */
static int play_mig(void)
{
	struct cupti_device record = {
		.kind = CUPTI_KIND_DEVICE,
		.uuid = {1, 2, 3},
		.name = "Double of a GPU",
		.mig = 1,
	};

	for (uint8_t i = 0; i < 3; i++) {
		record.gpu_instance = i;
		record.cuda_visible = i == 1;
		record.mig_uuid[0] = 10 + i;
		cupti->emit(&record, sizeof(record));
	}
	launch(1);
	emit_kernel(1);
	return 0;
}

/* ---- graphs ---- */

static void node_made(uint32_t graph, void *node)
{
	struct cupti_graph_data data = {.graph = GRAPH(graph), .node = node};

	cupti->resource(CUPTI_RESOURCE_GRAPHNODE_CREATED, &data);
}

static void node_cloned(uint32_t graph, void *from, void *to)
{
	struct cupti_graph_data data = {.graph = GRAPH(graph), .node = to, .original_node = from};

	cupti->resource(CUPTI_RESOURCE_GRAPHNODE_CLONED, &data);
}

static uint32_t capture_graph, capture_index;

static void within_captured_launch(uint32_t correlation)
{
	cupti->call(CUPTI_DOMAIN_DRIVER, DRIVER_LAUNCH, correlation, CUPTI_SITE_ENTER, 0);
	original();
	node_made(capture_graph, NODE(capture_graph, capture_index));
	cupti->call(CUPTI_DOMAIN_DRIVER, DRIVER_LAUNCH, correlation, CUPTI_SITE_EXIT, 0);
}

/* Launches with these ids become nodes 0, 1 … of the graph. */
static void capture(uint32_t graph, uint32_t first, uint32_t count)
{
	struct cupti_graph_data data = {.graph = GRAPH(graph)};

	capture_graph = graph;
	calls += count + 2;
	runtime_call(RUNTIME_BEGIN, first - 1, within_nothing);
	cupti->resource(CUPTI_RESOURCE_GRAPH_CREATED, &data);
	for (capture_index = 0; capture_index < count; capture_index++)
		runtime_call(RUNTIME_LAUNCH, first + capture_index, within_captured_launch);
	runtime_call(RUNTIME_END, first + count, within_nothing);
}

/* The nodes of `exec` are clones of the graph's, by callbacks where `told`. */
static void instantiate(
	uint32_t correlation, uint32_t graph, uint32_t exec, uint32_t count, int told)
{
	struct cupti_graph_data data = {.graph = GRAPH(graph), .exec = GRAPH(exec)};

	calls++;
	original();
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_INSTANCE, correlation, CUPTI_SITE_ENTER, 0);
	for (uint32_t i = 0; told && i < count; i++)
		node_cloned(exec, NODE(graph, i), NODE(exec, i));
	cupti->resource(CUPTI_RESOURCE_GRAPHEXEC_CREATED, &data);
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_INSTANCE, correlation, CUPTI_SITE_EXIT, 0);
}

static void replay(uint32_t correlation, uint32_t exec, uint32_t count)
{
	calls++;
	runtime_call(RUNTIME_REPLAY, correlation, within_replay);
	for (uint32_t i = count; i > 0; i--)
		emit_node(correlation, exec, NODE(exec, i - 1));
}

/* ---- scripts ---- */

static int play_plain(void)
{
	struct cupti_memcpy copy = {
		.kind = CUPTI_KIND_MEMCPY,
		.copy = CUPTI_COPY_HTOD,
		.from = 1,
		.to = 3,
		.bytes = 4096,
		.start = device_now(),
		.end = device_now() + 10,
		.context = 1,
		.stream = 7,
		.correlation = 4,
	};
	struct cupti_memset fill = {
		.kind = CUPTI_KIND_MEMSET,
		.bytes = 8192,
		.start = device_now(),
		.end = device_now() + 10,
		.context = 1,
		.stream = 8,
		.correlation = 5,
	};
	struct cupti_overhead overhead = {
		.kind = CUPTI_KIND_OVERHEAD,
		.overhead = 2 << 16,
		.object = CUPTI_OBJECT_THREAD,
		.object_id = {1, 99},
		.start = 1,
		.end = 2,
	};

	emit_device();
	for (uint32_t i = 1; i <= 3; i++)
		launch(i);
	calls += 2;
	runtime_call(RUNTIME_MEMCPY, 4, within_copy);
	driver_call(DRIVER_MEMSET, 5, 0);
	/* Unordered. */
	cupti->emit(&fill, sizeof(fill));
	emit_kernel(3);
	cupti->emit(&copy, sizeof(copy));
	emit_kernel(1);
	cupti->emit(&overhead, sizeof(overhead));
	emit_kernel(2);
	calls++;
	driver_call(DRIVER_LAUNCH, 6, 700);
	sync_device(7);
	return 3;
}

static int play_zero_times(void)
{
	struct cupti_kernel record = kernel(1);

	launch(1);
	launch(2);
	record.start = record.end = 0;
	cupti->emit(&record, sizeof(record));
	emit_kernel(2);
	return 0;
}

static int play_dropped(void)
{
	struct cupti_kernel nothing = kernel(1);

	launch(1);
	launch(2);
	launch(3);
	emit_kernel(1);
	cupti->emit(&nothing, 0);
	cupti->emit(&nothing, 0);
	return 0;
}

static int play_wrap(void)
{
	static const uint32_t ids[] = {0xfffffffdU, 0xfffffffeU, 0xffffffffU, 0, 1, 2};

	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		launch(ids[i]);
	for (size_t i = sizeof(ids) / sizeof(*ids); i > 0; i--)
		emit_kernel(ids[i - 1]);
	return 0;
}

static int play_graph(void)
{
	capture(10, 101, 3);
	instantiate(110, 10, 20, 3, 1);
	replay(111, 20, 3);
	replay(112, 20, 3);
	return 0;
}

/* Without callbacks for clones: the node's place in the graph tells. */
static int play_graph_places(void)
{
	capture(10, 101, 2);
	instantiate(110, 10, 20, 2, 0);
	replay(111, 20, 2);
	return 0;
}

/*
 * A captured graph is cloned, becomes the child of one that is built by hand, and the body of a
 * conditional node.
 */
static int play_graph_family(void)
{
	struct cupti_graph_data clone = {.graph = GRAPH(11), .original_graph = GRAPH(10)};
	struct cupti_graph_data exec = {.graph = GRAPH(12), .exec = GRAPH(20)};

	capture(10, 101, 2);
	cupti->resource(CUPTI_RESOURCE_GRAPH_CLONED, &clone);
	for (uint32_t i = 0; i < 2; i++)
		node_cloned(11, NODE(10, i), NODE(11, i));
	/* cuGraphAddKernelNode() and cuGraphAddChildGraphNode(), which nothing calls back. */
	node_made(12, NODE(12, 0));
	node_made(12, NODE(12, 1));
	for (uint32_t i = 0; i < 2; i++)
		node_cloned(13, NODE(11, i), NODE(13, i));
	/* The body of a conditional node, captured into its own graph. */
	capture(14, 121, 1);
	calls++;
	original();
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_INSTANCE, 130, CUPTI_SITE_ENTER, 0);
	node_cloned(20, NODE(12, 0), NODE(20, 0));
	node_cloned(20, NODE(13, 0), NODE(20, 1));
	node_cloned(20, NODE(13, 1), NODE(20, 2));
	node_cloned(20, NODE(14, 0), NODE(20, 3));
	cupti->resource(CUPTI_RESOURCE_GRAPHEXEC_CREATED, &exec);
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_INSTANCE, 130, CUPTI_SITE_EXIT, 0);
	replay(131, 20, 4);
	/* Of a graph that nobody told of. */
	emit_node(131, 77, NODE(77, 5));
	return 0;
}

static int play_graph_level(void)
{
	struct cupti_graph_trace record = {
		.kind = CUPTI_KIND_GRAPH_TRACE,
		.correlation = 111,
		.start = device_now(),
		.end = device_now() + 5000,
		.graph = 20,
		.context = 1,
		.stream = 7,
	};

	capture(10, 101, 3);
	instantiate(110, 10, 20, 3, 1);
	replay(111, 20, 0);
	/* Only then are graphs timed so. */
	if (cupti->times_whole(0))
		cupti->emit(&record, sizeof(record));
	return 0;
}

/* Graph 20, which the host launched, launches 21, and that 22, and itself, as 22 does; then a graph
 * that is not known launches 23. */
static int play_device_graphs(void)
{
	uint64_t now = device_now();
	struct cupti_device_graph record = {
		.kind = CUPTI_KIND_DEVICE_GRAPH_TRACE, .context = 1, .stream = 7};
	static const struct {
		uint32_t graph, launcher, mode;
	} launches[] = {
		{21, 20, CUPTI_DEVICE_LAUNCH_FIRE_AND_FORGET},
		{22, 21, CUPTI_DEVICE_LAUNCH_SIBLING},
		{21, 21, CUPTI_DEVICE_LAUNCH_TAIL},
		{22, 22, CUPTI_DEVICE_LAUNCH_TAIL},
		{23, 99, 7},
		{24, 0, 0}, /* while the hardware traces */
		{25, 20, CUPTI_DEVICE_LAUNCH_TAIL},
	};

	play_graph_level();
	for (size_t i = 0; i < sizeof(launches) / sizeof(*launches); i++) {
		record.graph = launches[i].graph;
		record.launcher = launches[i].launcher;
		record.mode = launches[i].mode;
		record.start = now + 1000 * (i + 1);
		record.end = record.start + 500;
		if (record.graph == 25)
			record.start = record.end = 0;
		record.stream = i ? 7 : 2ULL << 56;
		cupti->emit(&record, sizeof(record));
	}
	return 0;
}

/*
 * A graph is replayed until its level has changed so often, and what is known of that has been
 * read.
 */
static int play_levels(unsigned changes)
{
	struct double_replay one = {.exec = 20, .correlation = 111, .nodes = 3, .node_ns = 100000};
	int before = 0;

	capture(10, 101, 3);
	instantiate(110, 10, 20, 3, 1);
	for (uint32_t i = 0; changes && i < 20000; i++) {
		uint32_t flushed = cupti->flushes();

		calls++;
		runtime_call(RUNTIME_REPLAY, one.correlation, within_replay);
		cupti->replay(&one);
		one.correlation++;
		for (unsigned j = 0; j < 30000 && cupti->flushes() == flushed; j++)
			pause_ms(1);
		changes -= cupti->kind_enabled(CUPTI_KIND_GRAPH_TRACE) != before;
		before = cupti->kind_enabled(CUPTI_KIND_GRAPH_TRACE);
	}
	return changes || !wait_for_records() ? 9 : 0;
}

/* As a whole, and back. */
static int play_levels_2(void)
{
	return play_levels(2);
}

/* As a whole, nodes once more, and back. */
static int play_levels_3(void)
{
	return play_levels(3);
}

/* Never. */
static int play_levels_0(void)
{
	struct double_replay one = {.exec = 20, .correlation = 111, .nodes = 3, .node_ns = 100000};

	capture(10, 101, 3);
	instantiate(110, 10, 20, 3, 1);
	for (uint32_t i = 0; i < 200; i++, one.correlation++) {
		calls++;
		runtime_call(RUNTIME_REPLAY, one.correlation, within_replay);
		cupti->replay(&one);
	}
	if (!wait_for_records())
		return 9;
	return cupti->kind_enabled(CUPTI_KIND_GRAPH_TRACE) ? 9 : 0;
}

/* Graphs whose first node is the host's; of the second not even the end is on a device. */
static int play_graph_from_host(void)
{
	struct cupti_graph_trace record = {
		.kind = CUPTI_KIND_GRAPH_TRACE,
		.correlation = 111,
		.start = device_now(),
		.end = device_now() + 5000,
		.device = CUPTI_HOST,
		.graph = 20,
		.context = CUPTI_HOST,
		.stream = 7,
		.end_device = 1,
		.end_context = 2,
	};

	replay(111, 20, 0);
	replay(112, 20, 0);
	cupti->emit(&record, sizeof(record));
	record.correlation = 112;
	record.end_device = CUPTI_HOST;
	record.end_context = CUPTI_HOST;
	cupti->emit(&record, sizeof(record));
	return 0;
}

/* All is destroyed while the records of the replay are still to come. */
static int play_destroyed(void)
{
	struct cupti_graph_data graph = {.graph = GRAPH(10)}, exec = {.exec = GRAPH(20)};

	capture(10, 101, 2);
	instantiate(110, 10, 20, 2, 1);
	calls++;
	runtime_call(RUNTIME_REPLAY, 111, within_replay);
	cupti->resource(CUPTI_RESOURCE_GRAPHEXEC_DESTROY_STARTING, &exec);
	for (uint32_t i = 0; i < 2; i++) {
		graph.node = NODE(10, i);
		cupti->resource(CUPTI_RESOURCE_GRAPHNODE_DESTROY_STARTING, &graph);
	}
	cupti->resource(CUPTI_RESOURCE_GRAPH_DESTROY_STARTING, &graph);
	pause_ms(60);
	emit_node(111, 20, NODE(20, 1));
	emit_node(111, 20, NODE(20, 0));
	return 0;
}

/* Graphs are made, run and destroyed over and over: ids are used again, memory is not kept. */
static int play_rebuilt(void)
{
	struct cupti_graph_data graph = {.graph = GRAPH(10)}, exec = {.exec = GRAPH(20)};

	for (uint32_t i = 0; i < 8; i++) {
		capture(10, 101 + i * 20, 1);
		instantiate(110 + i * 20, 10, 20, 1, 1);
		replay(111 + i * 20, 20, 1);
		cupti->resource(CUPTI_RESOURCE_GRAPHEXEC_DESTROY_STARTING, &exec);
		cupti->resource(CUPTI_RESOURCE_GRAPH_DESTROY_STARTING, &graph);
		if (!wait_for_records())
			return 9;
	}
	return 0;
}

/*
 * The parent has opened the session and never uses CUDA; the child does, as workers of a server
 * that forks do.
 */
static int play_first_in_child(void)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		if (initialize() != 1)
			_exit(9);
		for (uint32_t i = 1; i <= 1000; i++) {
			launch(i);
			emit_kernel(i);
		}
		exit(atomic_load(&originals) == calls ? 5 : 8);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
		WEXITSTATUS(status) != 5)
		return 9;
	return 0;
}

static int play_fork(void)
{
	int status = -1;
	pid_t child;

	launch(1);
	emit_kernel(1);
	child = fork();
	if (child == 0) {
		/* A child that uses CUDA although it must not, and ends with its exit handlers. */
		launch(2);
		exit(5);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
		WEXITSTATUS(status) != 5 || cupti->calls_in_children())
		return 9;
	launch(3);
	emit_kernel(3);
	return 0;
}

static int play_taken_over(void)
{
	launch(1);
	emit_kernel(1);
	if (!wait_for_records())
		return 9;
	cupti->take_over();
	launch(2);
	emit_kernel(2);
	sync_device(3);
	if (!wait_for(is_taken_back) || cupti->taken_records() != 1)
		return 9;
	launch(4);
	cupti->complete_foreign();
	emit_kernel(4);
	return 0;
}

/* The record of the GPU comes after work of it. */
static int play_late_device(void)
{
	launch(1);
	emit_kernel(1);
	if (!wait_for_records())
		return 9;
	emit_device();
	if (!wait_for_records())
		return 9;
	launch(2);
	emit_kernel(2);
	return 0;
}

static void *launch_many(void *first)
{
	for (uint32_t i = 0; i < LAUNCHES_PER_THREAD; i++)
		runtime_call(RUNTIME_LAUNCH, (uint32_t)(uintptr_t)first + i, within_launch);
	return NULL;
}

/* Each has LAUNCHES_PER_THREAD correlation ids, from what it gets on. */
static int on_threads(void *(*run)(void *))
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(1 + i * LAUNCHES_PER_THREAD)) !=
			0)
			return 9;
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	calls += THREADS * LAUNCHES_PER_THREAD;
	return 0;
}

static int play_threads(void)
{
	if (on_threads(launch_many) != 0)
		return 9;
	for (uint32_t i = 1; i <= 400; i++)
		emit_kernel(i);
	return 0;
}

static struct wire_gate *map_gate(void)
{
	char path[4096];
	int fd;
	void *gate;

	snprintf(path, sizeof(path), "%s/" WIRE_GATE_NAME, getenv("SONDE_SESSION"));
	fd = open(path, O_RDWR | O_CLOEXEC);
	gate = mmap(NULL, sizeof(struct wire_gate), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return gate;
}

static int is_timed_whole(void)
{
	return cupti->kind_enabled(CUPTI_KIND_GRAPH_TRACE);
}

/* The window ends while nodes are sampled, and nothing is launched after it. */
static int play_levels_closed(void)
{
	struct wire_gate *gate = map_gate();
	int status = play_levels(2);

	if (status)
		return status;
	atomic_store(&gate->state, WIRE_GATE_CLOSED);
	return wait_for(is_timed_whole) ? 0 : 9;
}

/* The gate is closed, opens, closes. */
static int play_window(void)
{
	struct wire_gate *gate = map_gate();

	pause_ms(60);
	if (!is_not_tracing())
		return 9;
	emit_device(); /* as CUPTI does when CUDA starts, where it is asked to by then */
	if (!wait_for_records())
		return 9;
	launch(1);
	emit_kernel(1); /* which nobody asked for */
	/* CUPTI has no records of graphs that were captured while kernels were not asked for. */
	if (!cupti->kind_enabled(CUPTI_KIND_CONCURRENT_KERNEL))
		return 9;
	capture(10, 101, 1); /* seen all the same */
	atomic_store(&gate->state, WIRE_GATE_OPEN);
	if (!wait_for(is_tracing))
		return 9;
	launch(2);
	emit_kernel(2);
	instantiate(110, 10, 20, 1, 1);
	replay(111, 20, 1);
	pause_ms(500);
	atomic_store(&gate->state, WIRE_GATE_CLOSED);
	if (!wait_for(is_not_tracing))
		return 9;
	launch(3);
	emit_kernel(3);
	if (!wait_for_records())
		return 9;
	/* The session ends: nobody will open another window. */
	atomic_store(&gate->heartbeat_ns, 1);
	return wait_for(is_not_asked_for) ? 0 : 9;
}

/* What the device launches before the window is not recorded; CUPTI was asked when CUDA started. */
static int play_device_graphs_window(void)
{
	struct wire_gate *gate = map_gate();
	struct cupti_device_graph before = {.kind = CUPTI_KIND_DEVICE_GRAPH_TRACE,
		.start = device_now(),
		.end = device_now() + 5000,
		.graph = 77,
		.launcher = 20};

	cupti->emit(&before, sizeof(before));
	if (!wait_for_records())
		return 9;
	atomic_store(&gate->state, WIRE_GATE_OPEN);
	if (!wait_for(is_tracing))
		return 9;
	return play_device_graphs();
}

static const struct wire_ring_file *map_ring_file(void)
{
	char pattern[4096];
	void *file = NULL;
	glob_t found;
	int fd;

	snprintf(pattern, sizeof(pattern), "%s/" WIRE_RING_PREFIX "*", getenv("SONDE_SESSION"));
	if (glob(pattern, 0, NULL, &found) != 0)
		return NULL;
	fd = open(found.gl_pathv[0], O_RDONLY | O_CLOEXEC);
	file = mmap(NULL, sizeof(struct wire_ring_file), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	globfree(&found);
	return file;
}

static const struct wire_ring_file *ring_file;

static int is_sent(void)
{
	return atomic_load(&ring_file->held) == WIRE_HELD_SENT;
}

/* The gate drains while a kernel still runs. */
static int play_drain(void)
{
	struct wire_gate *gate = map_gate();

	ring_file = map_ring_file();
	launch(1);
	launch(2);
	emit_kernel(1);
	atomic_store(&gate->state, WIRE_GATE_DRAINING);
	emit_kernel(2);
	if (!wait_for(is_sent) || !wait_for(is_not_tracing))
		return 9;
	launch(3);
	emit_kernel(3);
	return 0;
}

/* Buffers are asked for and never come back. */
static int play_buffers(void)
{
	uint32_t given = 0;

	while (given < 2000 && cupti->request())
		given++;
	return given == 256 ? 0 : 9;
}

/*
 * CUPTI asks for buffers after the exit handlers, and more often than there are slots: up to 12.8
 * it crashes when it gets none.
 */
static void ask_at_the_end(void)
{
	for (unsigned i = 0; i < 3000; i++)
		if (!cupti->request_and_complete())
			_exit(9);
}

static int play_asked_at_the_end(void)
{
	launch(1);
	emit_kernel(1);
	return wait_for_records() ? 0 : 9;
}

static int play_clock(void)
{
	launch(1);
	emit_kernel(1);
	pause_ms(300);
	cupti->step_clock(5000000);
	pause_ms(300);
	return 0;
}

static int play_state(void)
{
	cupti->state(CUPTI_STATE_FATAL_ERROR, 999, "the double fell over");
	return 0;
}

static int play_exit(void)
{
	launch(1);
	emit_kernel(1);
	_exit(wait_for_records() && originals == calls ? 4 : 9);
}

static int play_memory(void)
{
	struct cupti_memory record = {
		.kind = CUPTI_KIND_MEMORY2,
		.operation = 1,
		.memory = 3,
		.correlation = 5,
		.address = 0x7000,
		.bytes = 1 << 20,
		.timestamp = device_now(),
		.pool = 1,
		.pool_bytes = 1 << 25,
		.pool_used = 1 << 20,
	};

	cupti->emit(&record, sizeof(record));
	record.operation = CUPTI_MEMORY_RELEASE;
	record.pool_used = 0;
	cupti->emit(&record, sizeof(record));
	return 0;
}

/* CUPTI before 12.8 has no ids by which events and waits are joined. */
static void emit_event(uint32_t correlation, uint32_t stream, uint64_t event_sync)
{
	struct cupti_event record = {
		.kind = CUPTI_KIND_CUDA_EVENT,
		.correlation = correlation,
		.context = 1,
		.stream = stream,
		.event = 40,
		.event_sync = event_sync,
	};

	cupti->emit(&record, event_sync ? sizeof(record) : offsetof(struct cupti_event, device));
}

static void emit_wait(uint32_t correlation, uint32_t type, uint32_t stream, uint64_t event_sync)
{
	struct cupti_synchronization record = {
		.kind = CUPTI_KIND_SYNCHRONIZATION,
		.type = type,
		.start = type == WIRE_SYNC_WAIT ? 0 : device_now(),
		.correlation = correlation,
		.context = 1,
		.stream = stream,
		.event = type <= WIRE_SYNC_WAIT ? 40 : CUPTI_SYNC_INVALID,
		.event_sync = event_sync,
	};

	record.end = record.start;
	cupti->emit(&record,
		event_sync ? sizeof(record) : offsetof(struct cupti_synchronization, event_sync));
}

/* An event is recorded twice, and waited for each time; then all is. */
static int play_syncs(uint64_t event_sync, uint64_t of_none)
{
	calls += 5;
	launch(1);
	runtime_call(RUNTIME_RECORD, 2, within_nothing);
	emit_event(2, 7, event_sync);
	runtime_call(RUNTIME_WAIT_EVENT, 3, within_nothing);
	emit_wait(3, WIRE_SYNC_WAIT, 8, event_sync);
	runtime_call(RUNTIME_RECORD, 4, within_nothing);
	emit_event(4, 8, event_sync ? event_sync + 1 : 0);
	runtime_call(RUNTIME_EVENT_SYNC, 5, within_nothing);
	emit_wait(5, WIRE_SYNC_EVENT, CUPTI_SYNC_INVALID, event_sync ? event_sync + 1 : 0);
	runtime_call(RUNTIME_SYNC, 6, within_nothing);
	emit_wait(6, WIRE_SYNC_CONTEXT, CUPTI_SYNC_INVALID, of_none);
	emit_kernel(1);
	return 0;
}

static int play_sync(void)
{
	return play_syncs(900, CUPTI_SYNC_INVALID);
}

static int play_sync_before_12_8(void)
{
	return play_syncs(0, 0);
}

/* What is counted of 50,000 events and of as many waits for them. */
static int play_many_syncs(void)
{
	for (uint32_t i = 1; i <= 50000; i++) {
		runtime_call(RUNTIME_RECORD, 2 * i, within_nothing);
		emit_event(2 * i, 7, i);
		runtime_call(RUNTIME_WAIT_EVENT, 2 * i + 1, within_nothing);
		emit_wait(2 * i + 1, WIRE_SYNC_WAIT, 8, i);
	}
	return 0;
}

static void *clone_many(void *first)
{
	for (uint32_t i = 0; i < 100000; i++)
		node_cloned(30, NODE(10, 0), NODE(30, (uint32_t)(uintptr_t)first + i));
	return NULL;
}

/* Two threads clone more nodes at once than the queue holds, then all of them run. */
static int play_clones(void)
{
	pthread_t threads[2];

	capture(10, 101, 1);
	for (size_t i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, clone_many, (void *)(i * 100000)) != 0)
			return 9;
	for (size_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	calls++;
	runtime_call(RUNTIME_REPLAY, 111, within_replay);
	for (uint32_t i = 0; i < 200000; i += 100)
		emit_node(111, 30, NODE(30, i));
	return 0;
}

/* More records than a ring holds, while somebody reads. */
static int play_many(void)
{
	for (uint32_t i = 1; i <= 50000; i++) {
		launch(i);
		emit_kernel(i);
	}
	return 0;
}

/* A little more than a ring holds before its reader makes it larger. */
static int play_full(void)
{
	uint32_t count = WIRE_RING_AT_FIRST / sizeof(struct wire_device_gpu_activity) + 100;

	for (uint32_t i = 1; i <= count; i++)
		emit_kernel(i);
	return 0;
}

static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* On a CPU, which a busy machine does not change by much. */
static uint64_t launches_ns(uint32_t count)
{
	uint64_t begin = thread_ns();

	for (uint32_t i = 0; i < count; i++)
		launch(i);
	return (thread_ns() - begin) / count;
}

/* What the thread that reads the records has run on a CPU. */
static uint64_t writer_ns(void)
{
	char path[512], comm[32];
	uint64_t ran_ns = 0;
	glob_t found;
	FILE *file;

	if (glob("/proc/self/task/*/comm", 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		file = fopen(found.gl_pathv[i], "re");
		if (!file || !fgets(comm, sizeof(comm), file))
			comm[0] = '\0';
		if (file)
			fclose(file);
		if (strcmp(comm, "sonde-cuda\n") != 0)
			continue;
		snprintf(path, sizeof(path), "%.*sschedstat",
			(int)(strlen(found.gl_pathv[i]) - strlen("comm")), found.gl_pathv[i]);
		file = fopen(path, "re");
		if (file && fgets(path, sizeof(path), file))
			ran_ns = strtoull(path, NULL, 10);
		if (file)
			fclose(file);
	}
	globfree(&found);
	return ran_ns;
}

/* Prints what a launch costs, with the stand-in's share in it; nobody need read the ring. */
static int play_cost(void)
{
	struct wire_gate *gate = map_gate();
	struct cupti_kernel record = kernel(1);
	uint64_t open_ns, closed_ns, reader_ns;

	if (!cupti->is_subscribed()) {
		fputs("play: sonde uses no stand-in: set SONDE_CUPTI to it\n", stderr);
		return 9;
	}
	pause_ms(100);
	open_ns = launches_ns(1000);
	atomic_store(&gate->state, WIRE_GATE_CLOSED);
	if (!wait_for(is_not_tracing))
		return 9;
	closed_ns = launches_ns(1000000);
	reader_ns = writer_ns();
	for (uint32_t i = 0; i < 1000000; i++)
		cupti->emit(&record, sizeof(record));
	if (!wait_for_records())
		return 9;
	reader_ns = (writer_ns() - reader_ns) / 1000000;
	printf("a launch takes %llu ns in an open window, %llu ns in a closed one, and its record "
	       "%llu ns of the writer there\n",
		(unsigned long long)open_ns, (unsigned long long)closed_ns,
		(unsigned long long)reader_ns);
	return 0;
}

/* ---- calls that launch nothing ---- */

static void within_alloc(uint32_t correlation)
{
	driver_call(DRIVER_ALLOC, correlation, 0);
}

static void within_free(uint32_t correlation)
{
	driver_call(DRIVER_FREE, correlation, 0);
}

static void within_library(uint32_t correlation)
{
	driver_call(DRIVER_LIBRARY, correlation, 0);
}

/* Code is loaded when it is first used. */
static void within_first_launch(uint32_t correlation)
{
	driver_call(DRIVER_LIBRARY, correlation, 0);
	driver_call(DRIVER_FUNCTION, correlation, 0);
	driver_call(DRIVER_LAUNCH, correlation, 0);
}

static void within_first_alloc(uint32_t correlation)
{
	driver_call(DRIVER_MODULE, correlation, 0);
	driver_call(DRIVER_ALLOC, correlation, 0);
}

static int play_calls(void)
{
	calls += 7;
	runtime_call(RUNTIME_MALLOC, 1, within_alloc);
	driver_call(DRIVER_ALLOC, 2, 2); /* out of memory */
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_EVENT_QUERY, 3, CUPTI_SITE_ENTER, 0);
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_EVENT_QUERY, 3, CUPTI_SITE_EXIT, NOT_READY);
	runtime_call(RUNTIME_LAUNCH, 4, within_first_launch);
	runtime_call(RUNTIME_LIBRARY, 5, within_library);
	runtime_call(RUNTIME_MALLOC, 6, within_first_alloc);
	runtime_call(RUNTIME_RECORD, 7, within_nothing);
	originals = calls;
	return 0;
}

static void *allocate_many(void *first)
{
	for (uint32_t i = 0; i < LAUNCHES_PER_THREAD; i += 2) {
		runtime_call(RUNTIME_MALLOC, (uint32_t)(uintptr_t)first + i, within_alloc);
		runtime_call(RUNTIME_FREE, (uint32_t)(uintptr_t)first + i + 1, within_free);
	}
	return NULL;
}

static int play_many_calls(void)
{
	for (uint32_t i = 1; i <= 50000; i++)
		runtime_call(RUNTIME_MALLOC, i, within_alloc);
	calls = originals;
	return 0;
}

static int play_calls_threads(void)
{
	return on_threads(allocate_many);
}

#define ONE(name, number, role) +1

static int is_tracing_all(void)
{
	return cupti->enabled_callbacks(CUPTI_DOMAIN_RUNTIME) ==
		       0 CUPTI_RUNTIME_CALLS(ONE) CUPTI_OTHER_RUNTIME_CALLS(ONE) &&
	       cupti->enabled_callbacks(CUPTI_DOMAIN_DRIVER) ==
		       0 CUPTI_DRIVER_CALLS(ONE) CUPTI_OTHER_DRIVER_CALLS(ONE);
}

static void site(uint32_t id, uint32_t correlation, int where)
{
	cupti->call(CUPTI_DOMAIN_RUNTIME, id, correlation, where, 0);
}

/*
 * One call lies before the window, one in it, and these over its edges: one that began before it,
 * one that ends when its callbacks are off, and one of the time when it is being closed.
 */
static int play_calls_window(void)
{
	struct wire_gate *gate = map_gate();

	runtime_call(RUNTIME_MALLOC, 1, within_alloc);
	site(RUNTIME_MALLOC, 2, CUPTI_SITE_ENTER);
	atomic_store(&gate->state, WIRE_GATE_OPEN);
	if (!wait_for(is_tracing_all))
		return 9;
	site(RUNTIME_MALLOC, 2, CUPTI_SITE_EXIT);
	runtime_call(RUNTIME_FREE, 3, within_free);
	site(RUNTIME_MALLOC, 4, CUPTI_SITE_ENTER);
	atomic_store(&gate->state, WIRE_GATE_DRAINING);
	runtime_call(RUNTIME_MALLOC, 5, within_alloc);
	if (!wait_for(is_not_tracing))
		return 9;
	site(RUNTIME_MALLOC, 4, CUPTI_SITE_EXIT);
	atomic_store(&gate->state, WIRE_GATE_OPEN);
	if (!wait_for(is_tracing_all))
		return 9;
	runtime_call(RUNTIME_FREE, 6, within_free);
	calls = originals;
	atomic_store(&gate->state, WIRE_GATE_CLOSED);
	return wait_for(is_not_tracing) ? 0 : 9;
}

/* While a kernel is waited for, what ends after the window is recorded. As often as it takes. */
static int play_calls_late(void)
{
	struct wire_gate *gate = map_gate();

	for (uint32_t i = 1; i < 100; i++) {
		uint32_t before, after;

		atomic_store(&gate->state, WIRE_GATE_OPEN);
		if (!wait_for(is_tracing_all))
			return 9;
		launch(2 * i); /* it does not end */
		site(RUNTIME_MALLOC, 2 * i + 1, CUPTI_SITE_ENTER);
		atomic_store(&gate->state, WIRE_GATE_DRAINING);
		while (cupti->enabled_callbacks(CUPTI_DOMAIN_RUNTIME) ==
			0 CUPTI_RUNTIME_CALLS(ONE) CUPTI_OTHER_RUNTIME_CALLS(ONE))
			pause_ms(1);
		before = cupti->enabled_callbacks(CUPTI_DOMAIN_RUNTIME);
		site(RUNTIME_MALLOC, 2 * i + 1, CUPTI_SITE_EXIT);
		after = cupti->enabled_callbacks(CUPTI_DOMAIN_RUNTIME);
		if (!wait_for(is_not_tracing))
			return 9;
		calls = originals;
		if (before == after && after >= 0 CUPTI_OTHER_RUNTIME_CALLS(ONE))
			return 0;
	}
	return 9;
}

static int play_long_name(void)
{
	struct cupti_kernel record;
	static char name[1201];

	memset(name, 'n', sizeof(name) - 1);
	launch(1);
	record = kernel(1);
	record.name = name;
	cupti->emit(&record, sizeof(record));
	return 0;
}

/*
 * 1,024 kernels with names of 330 characters, as libtorch's are, each a hundred times; prints what
 * a record costs the thread that reads them.
 */
static int play_names(void)
{
	static char names[1024][331];
	struct cupti_kernel record;
	uint64_t begin_ns = writer_ns();
	uint32_t id = 0;

	for (size_t i = 0; i < 1024; i++) {
		memset(names[i], 'n', 330);
		names[i][329 - i % 10] = (char)('a' + i / 10 % 26);
		names[i][300 - i / 260] = 'z';
	}
	for (unsigned round = 0; round < 100; round++) {
		for (size_t i = 0; i < 1024; i++) {
			record = kernel(++id);
			record.name = names[i];
			cupti->emit(&record, sizeof(record));
		}
	}
	if (!wait_for_records())
		return 9;
	printf("a record takes %llu ns of the writer\n",
		(unsigned long long)((writer_ns() - begin_ns) / id));
	return 0;
}

/* The module is loaded again: another kernel's name is at the place of the first. */
static int play_name_replaced(void)
{
	static char name[32] = "before";
	struct cupti_kernel record;

	for (uint32_t i = 1; i <= 2; i++) {
		launch(i);
		record = kernel(i);
		record.name = name;
		cupti->emit(&record, sizeof(record));
		if (!wait_for_records())
			return 9;
		memcpy(name, "after", sizeof("after"));
	}
	return 0;
}

static void *emit_when_flushed(void *context)
{
	(void)context;
	wait_for_records();
	emit_kernel(2);
	return NULL;
}

static void begin_to_end(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, emit_when_flushed, NULL) != 0)
		_exit(9);
	pthread_detach(thread);
}

/* A kernel that ends only after the program has begun to end. */
static int play_in_flight(void)
{
	launch(1);
	emit_kernel(1);
	launch(2);
	atexit(begin_to_end);
	return 0;
}

/* A kernel runs long, while another stream is waited for. */
static int play_long_kernel(void)
{
	launch(1);
	emit_kernel(1);
	if (!wait_for_records())
		return 9;
	launch(2);
	calls++;
	runtime_call(RUNTIME_STREAM_SYNC, 3, within_nothing);
	pause_ms(2500);
	emit_kernel(2);
	return 0;
}

/*
 * torch.profiler runs for a while: its hooks call the library. Kineto's callbacks take the place of
 * ours, and stay when it has stopped. Says who had the work of its time.
 */
static int play_profiler(void)
{
	void (*profiler)(int) = NULL;

	*(void **)&profiler = dlsym(injected, "sonde_profiler");
	launch(1);
	emit_kernel(1);
	profiler(1);
	printf("%s", cupti->is_subscribed() ? "kept, " : "given, ");
	cupti->take_over();
	launch(2);
	emit_kernel(2);
	profiler(0);
	printf("%s\n", cupti->is_taken_over() ? "theirs" : "ours");
	launch(3);
	emit_kernel(3);
	return 0;
}

/* Joins the sessions whose folders it reads, and launches in each as often as its number says. */
static int play_joins(void)
{
	const struct wire_api *(*api)(uint32_t) = NULL;
	char folder[256];
	uint32_t id = 1;

	*(void **)&api = dlsym(injected, "sonde_api");
	launch(id);
	emit_kernel(id++);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (unsigned session = 2; fgets(folder, sizeof(folder), stdin); session++) {
		folder[strcspn(folder, "\n")] = '\0';
		if (!api(WIRE_API_VERSION)->open_session(folder) || !wait_for(is_tracing))
			return 9;
		for (unsigned i = 0; i < session; i++) {
			launch(id);
			emit_kernel(id++);
		}
		if (!wait_for_records())
			return 9;
		printf("launched\n");
		fflush(stdout);
	}
	return 0;
}

/* Taken over in a program that never waits. */
static int play_taken_unnoticed(void)
{
	launch(1);
	emit_kernel(1);
	if (!wait_for_records())
		return 9;
	cupti->take_over();
	for (uint32_t i = 2; i < 70000; i++)
		launch(i);
	return wait_for(is_taken_back) ? 0 : 9;
}

static const struct {
	const char *name;
	int (*play)(void);
} scripts[] = {
	{"plain", play_plain},
	{"zero-times", play_zero_times},
	{"dropped", play_dropped},
	{"wrap", play_wrap},
	{"graph", play_graph},
	{"graph-places", play_graph_places},
	{"graph-family", play_graph_family},
	{"graph-level", play_graph_level},
	{"device-graphs", play_device_graphs},
	{"device-graphs-window", play_device_graphs_window},
	{"graph-from-host", play_graph_from_host},
	{"levels-0", play_levels_0},
	{"levels-2", play_levels_2},
	{"levels-3", play_levels_3},
	{"levels-closed", play_levels_closed},
	{"destroyed", play_destroyed},
	{"rebuilt", play_rebuilt},
	{"fork", play_fork},
	{"first-in-child", play_first_in_child},
	{"taken-over", play_taken_over},
	{"threads", play_threads},
	{"window", play_window},
	{"late-device", play_late_device},
	{"drain", play_drain},
	{"buffers", play_buffers},
	{"asked-at-the-end", play_asked_at_the_end},
	{"clock", play_clock},
	{"state", play_state},
	{"exit", play_exit},
	{"long-name", play_long_name},
	{"memory", play_memory},
	{"mig", play_mig},
	{"sync", play_sync},
	{"sync-before-12.8", play_sync_before_12_8},
	{"many-syncs", play_many_syncs},
	{"clones", play_clones},
	{"many", play_many},
	{"full", play_full},
	{"calls", play_calls},
	{"many-calls", play_many_calls},
	{"calls-threads", play_calls_threads},
	{"calls-window", play_calls_window},
	{"calls-late", play_calls_late},
	{"cost", play_cost},
	{"names", play_names},
	{"name-replaced", play_name_replaced},
	{"in-flight", play_in_flight},
	{"long-kernel", play_long_kernel},
	{"taken-unnoticed", play_taken_unnoticed},
	{"profiler", play_profiler},
	{"joins", play_joins},
};

static void load_others(void)
{
	const char *list = getenv("PLAY_LOAD");
	char path[4096];

	while (list && *list) {
		size_t length = strcspn(list, ":");

		snprintf(path, sizeof(path), "%.*s", (int)length, list);
		if (!dlopen(path, RTLD_NOW))
			fprintf(stderr, "play: %s\n", dlerror());
		list += length + (list[length] == ':');
	}
}

static int get_no_table(uint32_t module, void *ret_table, unsigned *ret_count)
{
	(void)module, (void)ret_table, (void)ret_count;
	return 0;
}

static const void *get_export(uint32_t table)
{
	static const struct {
		size_t bytes;
		int (*get)(uint32_t, void *, unsigned *);
	} callbacks = {sizeof(callbacks), get_no_table};

	(void)table;
	return &callbacks;
}

/* NVTX opens the session, too. */
static int open_by_nvtx(void *inject)
{
	int (*nvtx)(const void *(*)(uint32_t)) = NULL;

	*(void **)&nvtx = dlsym(inject, "InitializeInjectionNvtx2");
	if (!nvtx)
		return 2;
	nvtx(get_export);
	return 0;
}

/* 0: all is well so far; else what the program ends with. */
static int load(const char *inject_path, const char *cupti_path, int is_child_first)
{
	void *inject, *library = dlopen(cupti_path, RTLD_NOW);
	cupti = library ? dlsym(library, "double_cupti") : NULL;
	if (!cupti) {
		fprintf(stderr, "play: no stand-in for CUPTI: %s\n", dlerror());
		return 2;
	}
	load_others();
	inject = dlopen(inject_path, RTLD_NOW);
	*(void **)&initialize = inject ? dlsym(inject, "InitializeInjection") : NULL;
	if (!initialize) {
		fprintf(stderr, "play: no InitializeInjection(): %s\n", dlerror());
		return 2;
	}
	injected = inject;
	return is_child_first ? open_by_nvtx(inject) : initialize() == 1 ? 0 : 2;
}

int main(int argument_count, char **arguments)
{
	int status;

	if (argument_count != 4) {
		fputs("usage: play LIBSONDE_INJECT LIBCUPTI_DOUBLE SCRIPT\n", stderr);
		return 2;
	}
	/* What is registered first runs last. */
	if (strcmp(arguments[3], "asked-at-the-end") == 0)
		atexit(ask_at_the_end);
	status = load(arguments[1], arguments[2], !strcmp(arguments[3], "first-in-child"));
	if (status)
		return status;
	for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
		if (strcmp(scripts[i].name, arguments[3]) != 0)
			continue;
		status = scripts[i].play();
		return atomic_load(&originals) == calls ? status : 8;
	}
	fprintf(stderr, "play: no script is called %s\n", arguments[3]);
	return 2;
}
