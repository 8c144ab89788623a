/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of CUPTI's ABI as the CUDA door needs, for CUDA 11.8 and later: no header or library of
 * CUDA is needed to build or to load sonde. tests/unit/check-cupti-abi.py compares it with the real
 * headers of several versions. Records only grow at their end: one layout serves all versions, and
 * the comment at a field says from which version on it is there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "inject/cuda/cupti_calls.h"
#include "inject/cuda/cupti_other_calls.h"

typedef int cupti_result;
typedef void *cupti_handle; /* subscribers, contexts, streams, graphs, nodes … */

enum {
	CUPTI_OK = 0,
	CUPTI_E_INVALID_PARAMETER = 1,
	CUPTI_E_INVALID_OPERATION = 7,
	CUPTI_E_OUT_OF_MEMORY = 8,
	CUPTI_E_END_OF_BUFFER = 12, /* CUPTI_ERROR_MAX_LIMIT_REACHED */
	CUPTI_E_NOT_COMPATIBLE = 14,
	CUPTI_E_NOT_INITIALIZED = 15,
	CUPTI_E_HARDWARE_BUSY = 26,
	CUPTI_E_NOT_SUPPORTED = 27,
	CUPTI_E_UNIFIED = 28, /* CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED, as the next ones */
	CUPTI_E_UNIFIED_ON_DEVICE = 29,
	CUPTI_E_UNIFIED_WITHOUT_P2P = 30,
	CUPTI_E_UNIFIED_WITH_MPS = 31,
	CUPTI_E_VIRTUALIZED = 33,
	CUPTI_E_PRIVILEGES = 35,
	CUPTI_E_HELD = 39, /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
	CUPTI_E_VIRTUALIZED_PRIVILEGES = 40,
	CUPTI_E_CONFIDENTIAL = 41,
	CUPTI_E_MINING_DEVICE = 42,
	CUPTI_E_MIG = 43,
	CUPTI_E_SLI = 44,
	CUPTI_E_WSL = 45,
	CUPTI_E_UNKNOWN = 999,
};

/* cuptiGetVersion(): a counter up to CUDA 12, then major, minor and update. */
enum {
	CUPTI_VERSION_12_0 = 18, /* and 11.8 */
	CUPTI_VERSION_12_4 = 22,
	CUPTI_VERSION_12_6 = 24, /* PM sampling */
	CUPTI_VERSION_12_8 = 26,
	CUPTI_VERSION_12_9 = 27, /* may be refused a buffer */
	CUPTI_VERSION_13_0 = 130000,
	CUPTI_VERSION_13_1 = 130100,
	CUPTI_VERSION_13_2 = 130200, /* several subscribers, activity calls with a subscriber */
	CUPTI_VERSION_13_3 = 130300,
	CUPTI_VERSION_13_4 = 130400,
};

enum cupti_domain {
	CUPTI_DOMAIN_DRIVER = 1,
	CUPTI_DOMAIN_RUNTIME = 2,
	CUPTI_DOMAIN_RESOURCE = 3,
	CUPTI_DOMAIN_STATE = 6,
};

enum cupti_site {
	CUPTI_SITE_ENTER = 0,
	CUPTI_SITE_EXIT = 1,
};

enum cupti_resource {
	CUPTI_RESOURCE_CONTEXT_CREATED = 1,
	CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING = 2,
	CUPTI_RESOURCE_MODULE_LOADED = 6,
	CUPTI_RESOURCE_DRIVER_READY = 5, /* CU_INIT_FINISHED */
	CUPTI_RESOURCE_GRAPH_CREATED = 9,
	CUPTI_RESOURCE_GRAPH_DESTROY_STARTING = 10,
	CUPTI_RESOURCE_GRAPH_CLONED = 11,
	CUPTI_RESOURCE_GRAPHNODE_CREATED = 13,
	CUPTI_RESOURCE_GRAPHNODE_DESTROY_STARTING = 14,
	CUPTI_RESOURCE_GRAPHEXEC_CREATED = 18,
	CUPTI_RESOURCE_GRAPHEXEC_DESTROY_STARTING = 19,
	CUPTI_RESOURCE_GRAPHNODE_CLONED = 20,
};

enum cupti_state {
	CUPTI_STATE_FATAL_ERROR = 1,
	CUPTI_STATE_ERROR = 2,
};

enum cupti_kind {
	CUPTI_KIND_MEMCPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_KERNEL = 3, /* graph nodes, and serial kernels, may be reported as these */
	CUPTI_KIND_DEVICE = 8,
	CUPTI_KIND_CONCURRENT_KERNEL = 10,
	CUPTI_KIND_OVERHEAD = 17,
	CUPTI_KIND_MEMCPY2 = 22, /* between devices */
	CUPTI_KIND_UNIFIED_MEMORY = 25,
	CUPTI_KIND_CUDA_EVENT = 36, /* an event was recorded */
	CUPTI_KIND_SYNCHRONIZATION = 38,
	CUPTI_KIND_MEMORY2 = 49, /* allocations and releases */
	CUPTI_KIND_GRAPH_TRACE = 51,
	/* 12.8; comes with the one before where device graphs were asked for. */
	CUPTI_KIND_DEVICE_GRAPH_TRACE = 53,
	CUPTI_KIND_GRAPH_HOST_NODE = 56, /* 13.1, as the next one */
	CUPTI_KIND_HOST_LAUNCH = 58,
};

enum cupti_attribute {
	CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER = 5,
	/* Of one subscriber, before its kinds are enabled; for others there is a function. */
	CUPTI_ATTRIBUTE_LATENCY_TIMES = 15,
	CUPTI_ATTRIBUTE_DEVICE_GRAPHS = 19,
	/* From 13.3 on, with several subscribers: before any of them has enabled a kind. */
	CUPTI_ATTRIBUTE_SHARED_GRAPH_LEVEL = 20,
};

enum {
	CUPTI_THREAD_ID_SYSTEM = 1,
	CUPTI_FLUSH_FORCED = 1,
	CUPTI_OBJECT_THREAD = 2,
	CUPTI_HOST = INT32_MAX, /* the device and context of what begins on the host */
	CUPTI_MEMORY_RELEASE = 2,
};

enum cupti_copy {
	CUPTI_COPY_HTOD = 1,
	CUPTI_COPY_DTOH = 2,
	CUPTI_COPY_HTOA = 3,
	CUPTI_COPY_ATOH = 4,
};

#define CUPTI_UNIFIED_HOST     0xffffffffU
#define CUPTI_UNIFIED_ALL_GPUS 2 /* the scope that each process has */
#define CUPTI_UNIFIED_ON_HOST  1 /* flag of thrashing and throttling */

/* For cuptiActivityConfigureUnifiedMemoryCounter(). */
struct cupti_unified_config {
	uint32_t scope, counter, device, enable;
};

_Static_assert(
	sizeof(struct cupti_unified_config) == 16, "CUpti_ActivityUnifiedMemoryCounterConfig");

/* ---- callbacks ---- */

struct cupti_call_data {
	int32_t site; /* enum cupti_site */
	const char *function_name;
	const void *params;
	const int32_t *result; /* a CUresult or a cudaError_t; at exits */
	const char *symbol_name;
	cupti_handle context;
	uint32_t context_id;
	uint64_t *correlation_data;
	uint32_t correlation;
};

_Static_assert(sizeof(struct cupti_call_data) == 72, "CUpti_CallbackData");

struct cupti_resource_data {
	cupti_handle context;
	cupti_handle resource;
	const void *descriptor; /* of graphs: struct cupti_graph_data */
};

_Static_assert(sizeof(struct cupti_resource_data) == 24, "CUpti_ResourceData");

struct cupti_graph_data {
	cupti_handle graph, original_graph;
	cupti_handle node, original_node;
	int32_t node_type;
	cupti_handle dependency;
	cupti_handle exec;
};

_Static_assert(sizeof(struct cupti_graph_data) == 56, "CUpti_GraphData");

struct cupti_state_data {
	cupti_result result;
	const char *message;
};

_Static_assert(sizeof(struct cupti_state_data) == 16, "CUpti_StateData");

#define CUPTI_SUBSCRIBER_NAME_BYTES 64

struct cupti_subscriber_params {
	size_t bytes;
	const char *name;
	char *old_name;
	size_t old_name_bytes; /* 13.0 ends here */
	uint8_t allow_multiple;
	uint8_t padding[7];
};

#define CUPTI_SUBSCRIBER_PARAMS_13_0_BYTES offsetof(struct cupti_subscriber_params, allow_multiple)
_Static_assert(CUPTI_SUBSCRIBER_PARAMS_13_0_BYTES == 32, "CUpti_SubscriberParams of 13.0");
_Static_assert(sizeof(struct cupti_subscriber_params) == 40, "CUpti_SubscriberParams");

typedef void cupti_callback(void *user, int domain, uint32_t id, const void *data);
typedef void cupti_request(uint8_t **buffer, size_t *bytes, size_t *max_records);
typedef void cupti_complete(
	cupti_handle context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes);
typedef void cupti_request_v2(
	uint8_t **buffer, size_t *bytes, size_t *max_records, const void *info);
typedef void cupti_complete_v2(uint8_t *buffer, size_t bytes, size_t valid_bytes, const void *info);

/* ---- records ---- */

struct cupti_kernel {
	uint32_t kind;
	uint8_t cache_config, shared_memory_config;
	uint16_t registers;
	uint32_t global_cache_requested, global_cache_executed;
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared, dynamic_shared;
	uint32_t local_per_thread, local_total;
	uint32_t correlation;
	int64_t grid_id;
	const char *name; /* lives as long as the process */
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout_requested, carveout, padding;
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shared_limit;
	uint32_t graph; /* of the executable graph */
	void *access_policy;
	uint32_t channel, channel_type;
	uint32_t cluster[3];
	uint32_t cluster_scheduling;
	uint64_t local_total_64;
	uint32_t max_potential_cluster, max_active_clusters; /* 12.0 */
	uint8_t device_launched;                             /* 13.0 */
	uint8_t padding_3[7];
	int32_t priority; /* 13.1 */
	uint32_t padding_4, execution_model, padding_5;
	uint32_t source_graph; /* 13.4 */
	uint32_t padding_6;
	uint64_t source_node;
};

_Static_assert(offsetof(struct cupti_kernel, start) == 16, "CUpti_ActivityKernel5");
_Static_assert(offsetof(struct cupti_kernel, correlation) == 92, "CUpti_ActivityKernel5");
_Static_assert(offsetof(struct cupti_kernel, name) == 104, "CUpti_ActivityKernel5");
_Static_assert(offsetof(struct cupti_kernel, graph_node) == 144, "CUpti_ActivityKernel5");
_Static_assert(offsetof(struct cupti_kernel, graph) == 156, "CUpti_ActivityKernel5");
_Static_assert(offsetof(struct cupti_kernel, cluster) == 176, "CUpti_ActivityKernel9");
_Static_assert(offsetof(struct cupti_kernel, device_launched) == 208, "CUpti_ActivityKernel10");

struct cupti_memcpy {
	uint32_t kind;
	uint8_t copy, from, to, flags;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t correlation, runtime_correlation;
	uint32_t padding;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t channel;
};

_Static_assert(offsetof(struct cupti_memcpy, correlation) == 44, "CUpti_ActivityMemcpy5");
_Static_assert(offsetof(struct cupti_memcpy, graph_node) == 64, "CUpti_ActivityMemcpy5");
_Static_assert(offsetof(struct cupti_memcpy, graph) == 72, "CUpti_ActivityMemcpy5");

struct cupti_memcpy_peer {
	uint32_t kind;
	uint8_t copy, from, to, flags;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t from_device, from_context, to_device, to_context;
	uint32_t correlation;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t channel;
};

_Static_assert(offsetof(struct cupti_memcpy_peer, correlation) == 60, "CUpti_ActivityMemcpyPtoP4");
_Static_assert(offsetof(struct cupti_memcpy_peer, graph) == 80, "CUpti_ActivityMemcpyPtoP4");

struct cupti_memset {
	uint32_t kind;
	uint32_t value;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t correlation;
	uint16_t flags, memory;
	uint32_t padding;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t channel;
};

_Static_assert(offsetof(struct cupti_memset, graph_node) == 64, "CUpti_ActivityMemset4");

struct cupti_graph_trace {
	uint32_t kind;
	uint32_t correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream; /* of the first node: CUPTI_HOST is no device */
	void *reserved;
	uint32_t end_device, end_context; /* 12.4 */
};

_Static_assert(offsetof(struct cupti_graph_trace, graph) == 28, "CUpti_ActivityGraphTrace");
_Static_assert(sizeof(struct cupti_graph_trace) == 56, "CUpti_ActivityGraphTrace2");

enum cupti_device_launch {
	CUPTI_DEVICE_LAUNCH_FIRE_AND_FORGET = 1,
	CUPTI_DEVICE_LAUNCH_TAIL = 2,
	CUPTI_DEVICE_LAUNCH_SIBLING = 3,
};

/* A graph that a kernel of another launched. While the hardware traces, the last ones say nothing.
 */
struct cupti_device_graph { /* 12.8 */
	uint32_t kind;
	uint32_t device;
	uint64_t start, end;
	uint32_t graph, launcher; /* executable graphs */
	uint32_t mode;            /* enum cupti_device_launch */
	uint32_t context;
	uint64_t stream;
	void *reserved;
};

_Static_assert(offsetof(struct cupti_device_graph, graph) == 24, "CUpti_ActivityDeviceGraphTrace");
_Static_assert(sizeof(struct cupti_device_graph) == 56, "CUpti_ActivityDeviceGraphTrace");

struct cupti_overhead {
	uint32_t kind;
	uint32_t overhead;
	uint32_t object; /* CUPTI_OBJECT_THREAD: object_id is process, thread */
	uint32_t object_id[3];
	uint64_t start, end;  /* CUDA 12.0 ends here */
	uint32_t correlation; /* 12.3 */
	uint32_t reserved;
	void *details; /* 12.4; ours to free */
};

_Static_assert(offsetof(struct cupti_overhead, start) == 24, "CUpti_ActivityOverhead");
_Static_assert(sizeof(struct cupti_overhead) == 56, "CUpti_ActivityOverhead3");

struct cupti_device {
	uint32_t kind;
	uint32_t flags;
	uint64_t memory_bandwidth, memory_bytes;
	uint32_t constant_bytes, l2_bytes, warp_threads, core_clock_khz;
	uint32_t copy_engines, multiprocessors, max_ipc;
	uint32_t multiprocessor_warps, multiprocessor_blocks;
	uint32_t multiprocessor_shared, multiprocessor_registers;
	uint32_t block_registers, block_shared, block_threads;
	uint32_t max_block[3], max_grid[3];
	uint32_t capability_major, capability_minor;
	uint32_t id;
	uint32_t ecc;
	uint8_t uuid[16];
	const char *name;
	uint8_t cuda_visible, mig;
	uint8_t reserved[6];
	uint32_t gpu_instance, compute_instance;
	uint8_t mig_uuid[16];
};

_Static_assert(offsetof(struct cupti_device, mig_uuid) == 160, "CUpti_ActivityDevice4");
_Static_assert(offsetof(struct cupti_device, id) == 112, "CUpti_ActivityDevice4");
_Static_assert(offsetof(struct cupti_device, name) == 136, "CUpti_ActivityDevice4");

struct cupti_memory {
	uint32_t kind;
	uint32_t operation;
	uint32_t memory;
	uint32_t correlation;
	uint64_t address, bytes;
	uint64_t timestamp;
	uint64_t code_address;
	uint32_t process, device, context, stream;
	const char *name;
	uint32_t is_async;
	uint32_t padding;
	uint32_t pool; /* 0: of none */
	uint32_t padding_2;
	uint64_t pool_address, pool_threshold;
	uint64_t pool_bytes, pool_used;
};

_Static_assert(offsetof(struct cupti_memory, name) == 64, "CUpti_ActivityMemory3");
_Static_assert(offsetof(struct cupti_memory, pool_used) == 112, "CUpti_ActivityMemory3");

#define CUPTI_SYNC_INVALID 0xffffffffU

struct cupti_synchronization {
	uint32_t kind;
	uint32_t type; /* as enum wire_device_sync_type */
	uint64_t start, end;
	uint32_t correlation;
	uint32_t context, stream; /* stream: CUPTI_SYNC_INVALID: of none */
	uint32_t event;
	uint64_t event_sync; /* 12.8 */
	uint32_t result, padding;
};

_Static_assert(
	offsetof(struct cupti_synchronization, event_sync) == 40, "CUpti_ActivitySynchronization");
_Static_assert(sizeof(struct cupti_synchronization) == 56, "CUpti_ActivitySynchronization2");

/* Functions of the program that a stream, or a graph, has the host run. */
struct cupti_host_launch { /* 13.1, as the next one */
	uint32_t kind;
	uint32_t stream, context, device;
	uint32_t correlation;
	uint32_t process, thread;
	uint32_t padding;
	uint64_t start, end;
};

_Static_assert(sizeof(struct cupti_host_launch) == 48, "CUpti_ActivityHostLaunch");

struct cupti_graph_host_node {
	uint32_t kind;
	uint32_t stream, context, device;
	uint32_t correlation;
	uint32_t graph;
	uint64_t graph_node;
	uint32_t process, thread;
	uint64_t start, end;
};

_Static_assert(sizeof(struct cupti_graph_host_node) == 56, "CUpti_ActivityGraphHostNode");

struct cupti_event {
	uint32_t kind;
	uint32_t correlation;
	uint32_t context, stream;
	uint32_t event;
	uint32_t padding;
	uint32_t device; /* 12.8 */
	uint32_t padding_2;
	void *reserved;
	uint64_t timestamp;
	uint64_t event_sync;
};

_Static_assert(offsetof(struct cupti_event, device) == 24, "CUpti_ActivityCudaEvent");
_Static_assert(sizeof(struct cupti_event) == 56, "CUpti_ActivityCudaEvent2");

struct cupti_unified_memory {
	uint32_t kind;
	uint32_t counter; /* as enum wire_unified_type */
	uint64_t value;
	uint64_t start, end;
	uint64_t address;
	uint32_t from, to; /* CUPTI_UNIFIED_HOST: the host */
	uint32_t stream;   /* not valid, as the documentation says */
	uint32_t process;
	uint32_t flags; /* as wire_device_unified.cause, or CUPTI_UNIFIED_ON_HOST */
	uint32_t padding;
	uint64_t processors[5]; /* 12.8 */
};

_Static_assert(offsetof(struct cupti_unified_memory, processors) == 64,
	"CUpti_ActivityUnifiedMemoryCounter2");
_Static_assert(sizeof(struct cupti_unified_memory) == 104, "CUpti_ActivityUnifiedMemoryCounter3");
