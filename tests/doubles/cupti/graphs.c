/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two models whose operators PyTorch's emit_nvtx() marks, run eagerly or as graphs, on the stand-in
 * for libcupti. Used by end-to-end tests alone.
 *
 *     cuda-graphs LIBCUPTI_DOUBLE HOW COUNT
 *
 * HOW: eager: each model COUNT times; replay: the encoder is captured by the main thread and the
 * decoder by another, then each is replayed COUNT times in ranges "serve"; before: the same, but
 * what was captured is not told, as if it had been before the recording; levels: the encoder's
 * graph is replayed COUNT times, and CUPTI's buffers are read meanwhile.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../nvtx/nvtx.h"
#include "double.h"

#define NOINLINE __attribute__((noinline, noclone))
/* After a call, so that it does not become a jump. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

#define RUNTIME_MEMCPY   41
#define RUNTIME_LAUNCH   211
#define RUNTIME_REPLAY   311
#define RUNTIME_BEGIN    315
#define RUNTIME_END      319
#define RUNTIME_INSTANCE 443
#define NODE(graph, i)   ((void *)(((uintptr_t)(graph) << 32) | (i)))
#define MAX_LAYERS       3
#define TYPE_COPY        1 /* CUgraphNodeType */

struct layer {
	const char *range;
	const char *kernel; /* NULL: a copy */
	uint64_t duration_ns;
};

struct model {
	const char *name;
	uintptr_t graph, exec; /* ids */
	struct layer layers[MAX_LAYERS];
};

static const struct model encoder = {
	"encoder",
	10,
	20,
	{
		{"aten::layer_norm, seq = 3, op_id = 11, sizes = [[64, 32], [], [32]]", "norm",
			10000},
		{"aten::mm, op_id = 12, sizes = [[64, 32], [32, 16]]", "gemm", 40000},
		{"aten::add, op_id = 13", "add", 3000},
	},
};
static const struct model decoder = {
	"decoder",
	11,
	21,
	{
		{"aten::embedding", "gather", 5000},
		{"aten::mm, op_id = 22, sizes = [[1, 32], [32, 16]]", "gemm", 7000},
		{"aten::copy_, op_id = 23", NULL, 2000},
	},
};

static const struct double_functions *cupti;
static uint32_t last_correlation; /* the second thread ends before the first goes on */
static uint64_t device_free_ns;
static bool is_captured;
static uint32_t node_count;
static const struct model *capturing;

static uint64_t device_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* What PyTorch does around a call. Ranges and calls have clocks that may be some nanoseconds apart
 * (inject/clock.h), and CUDA's own calls take a thousand. */
static void prepare(void)
{
	uint64_t until = device_now() + 20000;

	while (device_now() < until)
		;
}

/* ---- the device: one stream ---- */

static uint64_t next_start(uint64_t duration_ns)
{
	uint64_t start = device_now() + 1000;

	if (start < device_free_ns)
		start = device_free_ns;
	device_free_ns = start + duration_ns;
	return start;
}

static void ran(const struct layer *layer, uint32_t correlation, uint32_t graph, uint64_t node)
{
	uint64_t start = next_start(layer->duration_ns);
	const struct cupti_kernel kernel = {
		.kind = CUPTI_KIND_CONCURRENT_KERNEL,
		.start = start,
		.end = start + layer->duration_ns,
		.context = 1,
		.stream = 7,
		.grid = {64, 1, 1},
		.block = {256, 1, 1},
		.correlation = correlation,
		.name = layer->kernel,
		.graph = graph,
		.graph_node = node,
	};
	const struct cupti_memcpy copy = {
		.kind = CUPTI_KIND_MEMCPY,
		.copy = CUPTI_COPY_HTOD,
		.from = 1,
		.to = 3,
		.bytes = 4096,
		.start = start,
		.end = start + layer->duration_ns,
		.context = 1,
		.stream = 7,
		.correlation = correlation,
		.graph = graph,
		.graph_node = node,
	};

	if (layer->kernel)
		cupti->emit(&kernel, sizeof(kernel));
	else
		cupti->emit(&copy, sizeof(copy));
}

/* ---- CUDA's calls ---- */

static NOINLINE uint32_t call(uint32_t id, void (*within)(void))
{
	uint32_t correlation = ++last_correlation;

	cupti->call(CUPTI_DOMAIN_RUNTIME, id, correlation, CUPTI_SITE_ENTER, 0);
	if (within)
		within();
	cupti->call(CUPTI_DOMAIN_RUNTIME, id, correlation, CUPTI_SITE_EXIT, 0);
	return correlation;
}

static void make_node(void)
{
	struct cupti_graph_data data = {
		.graph = (void *)capturing->graph, .node = NODE(capturing->graph, node_count)};

	if (!capturing->layers[node_count++].kernel)
		data.node_type = TYPE_COPY;
	cupti->resource(CUPTI_RESOURCE_GRAPHNODE_CREATED, &data);
}

static void clone_nodes(void)
{
	struct cupti_graph_data exec = {
		.graph = (void *)capturing->graph, .exec = (void *)capturing->exec};

	for (uint32_t i = 0; i < node_count; i++) {
		struct cupti_graph_data data = {
			.graph = (void *)capturing->exec,
			.node = NODE(capturing->exec, i),
			.original_node = NODE(capturing->graph, i),
		};

		cupti->resource(CUPTI_RESOURCE_GRAPHNODE_CLONED, &data);
	}
	cupti->resource(CUPTI_RESOURCE_GRAPHEXEC_CREATED, &exec);
}

/* ---- the program ---- */

static NOINLINE void run_layer(const struct layer *layer)
{
	uint32_t id = layer->kernel ? RUNTIME_LAUNCH : RUNTIME_MEMCPY;

	nvtxRangePushA(layer->range);
	prepare();
	if (is_captured)
		call(id, make_node);
	else
		ran(layer, call(id, NULL), 0, 0);
	prepare();
	nvtxRangePop();
}

static NOINLINE void run_model(const struct model *model)
{
	nvtxRangePushA(model->name);
	for (unsigned i = 0; i < MAX_LAYERS; i++)
		run_layer(&model->layers[i]);
	nvtxRangePop();
	KEEP_FRAME();
}

static void *capture_model(void *model)
{
	capturing = model;
	node_count = 0;
	is_captured = true;
	call(RUNTIME_BEGIN, NULL);
	run_model(model);
	call(RUNTIME_END, NULL);
	call(RUNTIME_INSTANCE, clone_nodes);
	is_captured = false;
	return NULL;
}

static NOINLINE void replay_model(const struct model *model)
{
	uint32_t correlation;

	nvtxRangePushA("serve");
	prepare();
	correlation = call(RUNTIME_REPLAY, NULL);
	prepare();
	nvtxRangePop();
	for (unsigned i = 0; i < MAX_LAYERS; i++)
		ran(&model->layers[i], correlation, (uint32_t)model->exec,
			(uintptr_t)NODE(model->exec, i));
}

/* Some replays are on their way while the records of others are read. */
static void replay_levels(unsigned long count)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const char *names[MAX_LAYERS];
	struct double_replay replay = {.exec = (uint32_t)encoder.exec,
		.nodes = MAX_LAYERS,
		.node_ns = 20000,
		.names = names};

	for (unsigned i = 0; i < MAX_LAYERS; i++)
		names[i] = encoder.layers[i].kernel;
	capture_model((void *)&encoder);
	for (unsigned long i = 0; i < count; i++) {
		uint32_t flushed = cupti->flushes();

		replay.correlation = call(RUNTIME_REPLAY, NULL);
		cupti->replay(&replay);
		for (unsigned j = 0; i % 8 == 0 && j < 30000 && cupti->flushes() == flushed; j++)
			nanosleep(&pause, NULL);
	}
}

static void capture_both(void)
{
	pthread_t thread;

	capture_model((void *)&encoder);
	pthread_create(&thread, NULL, capture_model, (void *)&decoder);
	pthread_join(thread, NULL);
}

static void emit_device(void)
{
	const struct cupti_device record = {
		.kind = CUPTI_KIND_DEVICE, .capability_major = 9, .name = "Double of a GPU"};

	cupti->emit(&record, sizeof(record));
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

int main(int count, char **arguments)
{
	void *library = count == 4 ? dlopen(arguments[1], RTLD_NOW) : NULL;
	bool is_eager, is_seen, has_levels;

	cupti = library ? dlsym(library, "double_cupti") : NULL;
	if (!cupti) {
		fputs("usage: cuda-graphs LIBCUPTI_DOUBLE HOW COUNT\n", stderr);
		return 2;
	}
	is_eager = strcmp(arguments[2], "eager") == 0;
	is_seen = strcmp(arguments[2], "replay") == 0;
	has_levels = strcmp(arguments[2], "levels") == 0;
	load_injection();
	emit_device();
	if (is_seen)
		capture_both();
	if (has_levels)
		replay_levels(strtoul(arguments[3], NULL, 10));
	for (unsigned long i = strtoul(arguments[3], NULL, 10); i > 0 && !has_levels; i--) {
		if (is_eager) {
			run_model(&encoder);
			run_model(&decoder);
		} else {
			replay_model(&encoder);
			replay_model(&decoder);
		}
	}
	return 0;
}
