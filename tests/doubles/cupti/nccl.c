/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank of a job that communicates as by NCCL: it opens the ranges of NVTX that NCCL opens, with
 * its payloads, and launches kernels of NCCL's names in them, on the stand-in for libcupti. Used by
 * end-to-end tests alone.
 *
 *     cuda-nccl LIBCUPTI_DOUBLE FILE RANKS RELEASE
 *
 * RELEASE: what NCCL reports: none: nothing (NCCL_NVTX_DISABLE); 2.12: ranges alone; 2.16: bytes;
 * 2.25: communicators, too. All RANKS ranks ($RANK says which) share FILE, which is empty at first:
 * once all have launched, collective i takes place at the same time on all of them. It takes i + 1
 * times 100 µs from the begin of the last rank on, which begins 1 ms after the others.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../nvtx/nvtx.h"
#include "double.h"

#define RUNTIME_LAUNCH   211
#define RUNTIME_REPLAY   311
#define RUNTIME_BEGIN    315
#define RUNTIME_END      319
#define RUNTIME_INSTANCE 443
#define GRAPH            10
#define EXEC             20
#define NODE(graph, i)   ((void *)(((uintptr_t)(graph) << 32) | (i)))
#define MAX_KERNELS      64
#define SPACING_NS       20000000
#define LATE_NS          1000000
#define TRANSFER_NS      100000
#define COMMUNICATOR     0xfeed000012345678
#define SCHEMA(id)       (NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + (id))
#define REDUCTION        SCHEMA(99)
#define KERNEL(name)     "ncclDevKernel_" name "(ncclDevKernelArgsStorage<4096ul>)"
#define ALL_REDUCE       KERNEL("AllReduce_Sum_f32_RING_LL")
#define PIECE_BYTES      65536

enum release { RELEASE_NONE, RELEASE_2_12, RELEASE_2_16, RELEASE_2_25 };

static const struct double_functions *cupti;
static nvtxDomainHandle_t domain;
static enum release release;
static int rank, ranks;
static uint32_t last_correlation;
static uint32_t node_count;

/* What the device will have run, in order. */
static struct {
	const char *name;
	uint32_t correlation;
	void *node;
} kernels[MAX_KERNELS];
static unsigned kernel_count;

static uint64_t device_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void pause_until(uint64_t time_ns)
{
	const struct timespec step = {.tv_nsec = 1000000};

	while (device_now() < time_ns)
		nanosleep(&step, NULL);
}

/* ---- NCCL's ranges ---- */

struct with_communicator {
	uint64_t communicator;
	size_t bytes;
	int more[2];
};

struct without_communicator {
	size_t bytes;
	int more[2];
};

struct made {
	uint64_t communicator;
	int ranks, rank, device;
};

static nvtxPayloadSchemaEntry_t entry(uint64_t type, const char *name, size_t offset)
{
	return (nvtxPayloadSchemaEntry_t){.type = type, .name = name, .offset = offset};
}

static void add_schema(
	uint64_t id, const nvtxPayloadSchemaEntry_t *entries, size_t count, size_t bytes)
{
	const nvtxPayloadSchemaAttr_t schema = {
		.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID,
		.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
		.entries = entries,
		.numEntries = count,
		.payloadStaticSize = bytes,
		.schemaId = SCHEMA(id),
	};

	nvtxPayloadSchemaRegister(domain, &schema);
}

static void add_schemas(void)
{
	static const nvtxPayloadEnum_t values[] = {{"Sum", 0, 0}, {"Max", 2, 0}};
	const nvtxPayloadEnumAttr_t reduction = {
		.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
			     NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
			     NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE |
			     NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID,
		.entries = values,
		.numEntries = 2,
		.sizeOfEnum = sizeof(int),
		.schemaId = REDUCTION,
	};
	const nvtxPayloadSchemaEntry_t calls[] = {
		entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", 0),
		entry(NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]",
			offsetof(struct with_communicator, bytes)),
		entry(REDUCTION, "Reduction operation", offsetof(struct with_communicator, more)),
	};
	const nvtxPayloadSchemaEntry_t old_calls[] = {
		entry(NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", 0),
		entry(REDUCTION, "Reduction operation",
			offsetof(struct without_communicator, more)),
	};
	const nvtxPayloadSchemaEntry_t old_broadcasts[] = {
		entry(NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Bytes", 0),
		entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "Root",
			offsetof(struct without_communicator, more)),
	};
	const nvtxPayloadSchemaEntry_t sends[] = {
		calls[0],
		calls[1],
		entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "Peer rank",
			offsetof(struct with_communicator, more)),
	};
	const nvtxPayloadSchemaEntry_t old_sends[] = {
		old_broadcasts[0],
		entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "Peer rank",
			offsetof(struct without_communicator, more)),
	};
	const nvtxPayloadSchemaEntry_t making[] = {
		entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", 0),
		entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", offsetof(struct made, ranks)),
		entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "Rank", offsetof(struct made, rank)),
		entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "CUDA device", offsetof(struct made, device)),
	};

	nvtxPayloadEnumRegister(domain, &reduction);
	add_schema(0, making, 4, sizeof(struct made));
	if (release == RELEASE_2_25) {
		add_schema(1, calls, 3, sizeof(struct with_communicator));
		add_schema(2, calls, 2, sizeof(struct with_communicator));
		add_schema(3, sends, 3, sizeof(struct with_communicator));
	} else {
		add_schema(1, old_calls, 2, sizeof(struct without_communicator));
		add_schema(2, old_broadcasts, 2, sizeof(struct without_communicator));
		add_schema(3, old_sends, 2, sizeof(struct without_communicator));
	}
}

static void push(const char *name, uint64_t schema, const void *payload, size_t bytes)
{
	const nvtxPayloadData_t data = {SCHEMA(schema), bytes, payload};
	nvtxEventAttributes_t event = {.version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.messageType = NVTX_MESSAGE_TYPE_REGISTERED};

	if (release == RELEASE_NONE)
		return;
	event.message.registered = nvtxDomainRegisterStringA(domain, name);
	if (payload && release != RELEASE_2_12) {
		event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
		event.reserved0 = 1;
		event.payload.ullValue = (uint64_t)(uintptr_t)&data;
	}
	nvtxDomainRangePushEx(domain, &event);
}

static void pop(void)
{
	if (release != RELEASE_NONE)
		nvtxDomainRangePop(domain);
}

static void enter_by(const char *name, uint64_t schema, size_t bytes, int peer)
{
	const struct with_communicator now = {COMMUNICATOR, bytes, {peer, 0}};
	const struct without_communicator old = {bytes, {peer, 0}};

	if (release == RELEASE_2_25)
		push(name, schema, &now, sizeof(now));
	else
		push(name, schema, &old, sizeof(old));
}

/* A call, up to where it launches. */
static void enter(const char *name, size_t bytes)
{
	enter_by(name, strcmp(name, "ncclBroadcast") == 0 ? 2 : 1, bytes, 0);
}

static void group_start(void)
{
	push("ncclGroupStart", 0, NULL, 0);
	pop();
}

static void made_communicator(void)
{
	const struct made made = {COMMUNICATOR, ranks, rank, 0};
	const nvtxPayloadData_t data = {SCHEMA(0), sizeof(made), &made};

	if (release != RELEASE_2_25)
		return;
	push("ncclCommInitRank", 0, NULL, 0);
	nvtxRangePopPayload(domain, &data, 1);
}

/* ---- CUDA ---- */

static void call(uint32_t id, uint32_t correlation, void (*within)(void))
{
	cupti->call(CUPTI_DOMAIN_RUNTIME, id, correlation, CUPTI_SITE_ENTER, 0);
	if (within)
		within();
	cupti->call(CUPTI_DOMAIN_RUNTIME, id, correlation, CUPTI_SITE_EXIT, 0);
}

static void will_run(const char *name, uint32_t correlation, void *node)
{
	kernels[kernel_count].name = name;
	kernels[kernel_count].correlation = correlation;
	kernels[kernel_count++].node = node;
}

static void launch(const char *name)
{
	call(RUNTIME_LAUNCH, ++last_correlation, NULL);
	will_run(name, last_correlation, NULL);
}

static void make_node(void)
{
	struct cupti_graph_data data = {.graph = (void *)GRAPH, .node = NODE(GRAPH, node_count++)};

	cupti->resource(CUPTI_RESOURCE_GRAPHNODE_CREATED, &data);
}

static void clone_nodes(void)
{
	struct cupti_graph_data exec = {.graph = (void *)GRAPH, .exec = (void *)EXEC};

	for (uint32_t i = 0; i < node_count; i++) {
		struct cupti_graph_data data = {.graph = (void *)EXEC,
			.node = NODE(EXEC, i),
			.original_node = NODE(GRAPH, i)};

		cupti->resource(CUPTI_RESOURCE_GRAPHNODE_CLONED, &data);
	}
	cupti->resource(CUPTI_RESOURCE_GRAPHEXEC_CREATED, &exec);
}

/* ---- the program ---- */

static void one(const char *name, size_t bytes, const char *kernel)
{
	enter(name, bytes);
	launch(kernel);
	pop();
}

/* `kernel` runs at the group's end, as often as `launches` says. */
static void group(size_t first_bytes, size_t bytes, unsigned calls, unsigned launches)
{
	group_start();
	for (unsigned i = 0; i < calls; i++) {
		enter("ncclAllReduce", i ? bytes : first_bytes);
		pop();
	}
	push("ncclGroupEnd", 0, NULL, 0);
	for (unsigned i = 0; i < launches; i++)
		launch(ALL_REDUCE);
	pop();
}

/* Sends to all ranks up to `last`, and receives from them; the piece for rank i has i + 1 parts. */
static void exchange(int last)
{
	group_start();
	for (int peer = 0; peer <= last; peer++) {
		enter_by("ncclSend", 3, (size_t)(peer + 1) * PIECE_BYTES, peer);
		pop();
		enter_by("ncclRecv", 3, (size_t)(rank + 1) * PIECE_BYTES, peer);
		pop();
	}
	push("ncclGroupEnd", 0, NULL, 0);
	launch(KERNEL("SendRecv"));
	pop();
}

static void graph(size_t bytes, unsigned replays)
{
	call(RUNTIME_BEGIN, ++last_correlation, NULL);
	enter("ncclAllReduce", bytes);
	call(RUNTIME_LAUNCH, ++last_correlation, make_node);
	pop();
	call(RUNTIME_END, ++last_correlation, NULL);
	call(RUNTIME_INSTANCE, ++last_correlation, clone_nodes);
	for (unsigned i = 0; i < replays; i++) {
		call(RUNTIME_REPLAY, ++last_correlation, NULL);
		will_run(ALL_REDUCE, last_correlation, NODE(EXEC, 0));
	}
}

static void communicate(void)
{
	made_communicator();
	one("ncclAllReduce", 1 << 20, ALL_REDUCE);
	one("ncclAllGather", 1 << 16, KERNEL("AllGather_RING_SIMPLE"));
	one("ncclReduceScatter", 1 << 15, KERNEL("ReduceScatter_Sum_f32_RING_LL"));
	group(4096, 4096, 3, 1);
	group(1 << 21, 1 << 21, 2, 2);
	group(8192, 16384, 2, 2);
	one("ncclBroadcast", 512, KERNEL("Broadcast_RING_LL"));
	launch(ALL_REDUCE);
	graph(1 << 18, 3);
	exchange(ranks - 1);
	exchange(0);
}

/* Until all ranks are here: the time at which their collectives begin. */
static uint64_t meet(const char *path)
{
	int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct {
		_Atomic uint32_t arrived;
		_Atomic uint64_t begin_ns;
	} * shared;

	if (file < 0 || ftruncate(file, 4096) < 0)
		exit(2);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (shared == MAP_FAILED)
		exit(2);
	if (atomic_fetch_add(&shared->arrived, 1) == (uint32_t)ranks - 1)
		shared->begin_ns = device_now();
	while (!shared->begin_ns)
		pause_until(device_now() + 1000000);
	return shared->begin_ns;
}

static void emit_kernels(uint64_t begin_ns)
{
	struct cupti_kernel record = {
		.kind = CUPTI_KIND_CONCURRENT_KERNEL,
		.context = 1,
		.stream = 7,
		.grid = {24, 1, 1},
		.block = {512, 1, 1},
	};

	for (unsigned i = 0; i < kernel_count; i++) {
		uint64_t last_ns = begin_ns + i * SPACING_NS + LATE_NS;

		record.start = rank == ranks - 1 ? last_ns : last_ns - LATE_NS;
		record.end = last_ns + (i + 1) * TRANSFER_NS;
		record.correlation = kernels[i].correlation;
		record.name = kernels[i].name;
		record.graph = kernels[i].node ? EXEC : 0;
		record.graph_node = (uintptr_t)kernels[i].node;
		pause_until(record.end);
		cupti->emit(&record, sizeof(record));
	}
}

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
	static const char *const releases[] = {"none", "2.12", "2.16", "2.25"};
	const char *own_rank = getenv("RANK");
	void *library = count > 4 ? dlopen(arguments[1], RTLD_NOW) : NULL;

	cupti = library ? dlsym(library, "double_cupti") : NULL;
	if (!cupti || !own_rank) {
		fputs("usage: RANK=… cuda-nccl LIBCUPTI_DOUBLE FILE RANKS RELEASE\n", stderr);
		return 2;
	}
	rank = atoi(own_rank);
	ranks = atoi(arguments[3]);
	while (release < RELEASE_2_25 && strcmp(releases[release], arguments[4]) != 0)
		release++;
	load_injection();
	if (release != RELEASE_NONE) {
		domain = nvtxDomainCreateA("NCCL");
		add_schemas();
	}
	communicate();
	emit_kernels(meet(arguments[2]));
	return 0;
}
