/* SPDX-License-Identifier: Apache-2.0 */
#include "double.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_ID 1024

/* Shared with children, who count there what they do. */
struct shared {
	_Atomic uint32_t calls_in_children;
};

static struct shared *shared;
static pid_t first_pid;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cupti_callback *callback;
static _Atomic bool enabled[8][MAX_ID];
static _Atomic bool kinds[64];
static cupti_request *request;
static cupti_complete *complete;
static cupti_request_v2 *request_v2;
static cupti_complete_v2 *complete_v2;
static uint8_t *buffer;
static size_t buffer_bytes, valid_bytes;
static size_t dropped;
static _Atomic uint32_t flush_count;
static _Atomic uint32_t taken;
static _Atomic int64_t clock_step_ns;
static _Atomic bool is_shared, shares_whole; /* several subscribers, and their level of graphs */
static _Atomic uint8_t made_whole[256];      /* by executable graph */
static _Atomic bool driver_is_ready, unified_is_configured, has_latency, has_device_graphs;

__attribute__((constructor)) static void start(void)
{
	first_pid = getpid();
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? (int)strtol(text, NULL, 10) : otherwise;
}

/* What every function answers where there is no driver, or where another tool holds CUPTI. */
static cupti_result usual(void)
{
	if (getpid() != first_pid)
		atomic_fetch_add(&shared->calls_in_children, 1);
	return number("DOUBLE_CUPTI_SUBSCRIBE", 0);
}

/* ---- buffers ---- */

static void give_back(uint8_t *full, size_t bytes, size_t valid)
{
	cupti_complete_v2 *to_v2;
	cupti_complete *to;

	pthread_mutex_lock(&lock);
	to_v2 = complete_v2;
	to = complete;
	pthread_mutex_unlock(&lock);
	if (to_v2)
		to_v2(full, bytes, valid, NULL);
	else
		to(NULL, 0, full, bytes, valid);
}

static void flush(void)
{
	uint8_t *full;
	size_t bytes, valid;

	pthread_mutex_lock(&lock);
	full = buffer;
	bytes = buffer_bytes;
	valid = valid_bytes;
	buffer = NULL;
	pthread_mutex_unlock(&lock);
	if (full)
		give_back(full, bytes, valid);
}

static int ask(void)
{
	size_t most;

	buffer = NULL;
	buffer_bytes = 0;
	if (request_v2)
		request_v2(&buffer, &buffer_bytes, &most, NULL);
	else
		request(&buffer, &buffer_bytes, &most);
	valid_bytes = 0;
	return buffer != NULL;
}

static size_t in_buffer(size_t bytes)
{
	return (bytes + 7) / 8 * 8;
}

/* With the lock. */
static bool fits(size_t bytes)
{
	return valid_bytes + in_buffer(bytes) <= buffer_bytes;
}

static int own_version(void)
{
#ifdef DOUBLE_V2
	return number("DOUBLE_CUPTI_VERSION", 130500);
#else
	return number("DOUBLE_CUPTI_VERSION", 28);
#endif
}

/* Records of waits, events and unified memory became longer. */
static bool is_joined(void)
{
	return own_version() >= CUPTI_VERSION_12_8;
}

/* So did those of kernels. */
static size_t kernel_bytes(void)
{
	int version = own_version();

	if (version < CUPTI_VERSION_13_0)
		return offsetof(struct cupti_kernel, device_launched);
	if (version < CUPTI_VERSION_13_1)
		return offsetof(struct cupti_kernel, priority);
	return version < CUPTI_VERSION_13_4 ? offsetof(struct cupti_kernel, source_graph)
					    : sizeof(struct cupti_kernel);
}

static size_t record_bytes(uint32_t kind)
{
	switch (kind) {
	case CUPTI_KIND_MEMCPY:
		return sizeof(struct cupti_memcpy);
	case CUPTI_KIND_MEMCPY2:
		return sizeof(struct cupti_memcpy_peer);
	case CUPTI_KIND_MEMSET:
		return sizeof(struct cupti_memset);
	case CUPTI_KIND_DEVICE:
		return sizeof(struct cupti_device);
	case CUPTI_KIND_OVERHEAD:
		return sizeof(struct cupti_overhead);
	case CUPTI_KIND_MEMORY2:
		return sizeof(struct cupti_memory);
	case CUPTI_KIND_SYNCHRONIZATION:
		return is_joined() ? sizeof(struct cupti_synchronization)
				   : offsetof(struct cupti_synchronization, event_sync);
	case CUPTI_KIND_CUDA_EVENT:
		return is_joined() ? sizeof(struct cupti_event)
				   : offsetof(struct cupti_event, device);
	case CUPTI_KIND_GRAPH_TRACE:
		return sizeof(struct cupti_graph_trace);
	case CUPTI_KIND_DEVICE_GRAPH_TRACE:
		return sizeof(struct cupti_device_graph);
	case CUPTI_KIND_HOST_LAUNCH:
		return sizeof(struct cupti_host_launch);
	case CUPTI_KIND_GRAPH_HOST_NODE:
		return sizeof(struct cupti_graph_host_node);
	case CUPTI_KIND_UNIFIED_MEMORY:
		return is_joined() ? sizeof(struct cupti_unified_memory)
				   : offsetof(struct cupti_unified_memory, processors);
	default:
		return kernel_bytes();
	}
}

/* With the lock: what is there only where it was asked for. */
static void take_out(void *record)
{
	uint32_t kind = *(uint32_t *)record;
	struct cupti_kernel *kernel = record;

	if (has_latency || (kind != CUPTI_KIND_CONCURRENT_KERNEL && kind != CUPTI_KIND_KERNEL))
		return;
	kernel->queued = kernel->submitted = 0;
}

static int times_whole(uint32_t exec);

static bool is_asked_for(uint32_t kind)
{
	if (kind == CUPTI_KIND_DEVICE_GRAPH_TRACE)
		return has_device_graphs && own_version() >= CUPTI_VERSION_12_8 && times_whole(0);
	return kinds[kind];
}

static int emit(const void *record, size_t bytes)
{
	uint32_t kind = *(const uint32_t *)record;
	int room;

	if (!is_asked_for(kind))
		return 0;
	/* As long as in the version that it is. */
	if (bytes > record_bytes(kind))
		bytes = record_bytes(kind);
	pthread_mutex_lock(&lock);
	/* Another thread may fill the next buffer, too. */
	while (buffer && valid_bytes && !fits(bytes)) {
		pthread_mutex_unlock(&lock);
		flush();
		pthread_mutex_lock(&lock);
	}
	room = buffer || ask();
	if (room && bytes && fits(bytes)) {
		memcpy(buffer + valid_bytes, record, bytes);
		take_out(buffer + valid_bytes);
		valid_bytes += in_buffer(bytes);
	} else {
		dropped++;
	}
	pthread_mutex_unlock(&lock);
	return room;
}

static int request_only(void)
{
	int got;

	pthread_mutex_lock(&lock);
	got = ask();
	buffer = NULL;
	pthread_mutex_unlock(&lock);
	return got;
}

static int request_and_complete(void)
{
	int got;

	pthread_mutex_lock(&lock);
	got = buffer || ask();
	pthread_mutex_unlock(&lock);
	flush();
	return got;
}

static cupti_result next_record(uint8_t *from, size_t valid, void **record)
{
	uint8_t *next = from;

	if (*record)
		next = (uint8_t *)*record + in_buffer(record_bytes(*(uint32_t *)*record));
	if (next >= from + valid)
		return CUPTI_E_END_OF_BUFFER;
	*record = next;
	return CUPTI_OK;
}

/* ---- another tool ---- */

static uint8_t others_buffer[65536] __attribute__((aligned(8)));

static void others_request(uint8_t **to, size_t *bytes, size_t *most)
{
	*to = others_buffer;
	*bytes = sizeof(others_buffer);
	*most = 0;
}

static void others_complete(
	cupti_handle context, uint32_t stream, uint8_t *from, size_t bytes, size_t valid)
{
	void *record = NULL;

	while (next_record(from, valid, &record) == CUPTI_OK)
		taken++;
}

static void set_callbacks(cupti_request *to_request, cupti_complete *to_complete,
	cupti_request_v2 *to_request_v2, cupti_complete_v2 *to_complete_v2)
{
	pthread_mutex_lock(&lock);
	request = to_request;
	complete = to_complete;
	request_v2 = to_request_v2;
	complete_v2 = to_complete_v2;
	pthread_mutex_unlock(&lock);
}

static uint32_t flushes(void)
{
	return atomic_load(&flush_count);
}

static void take_over(void)
{
	flush();
	set_callbacks(others_request, others_complete, NULL, NULL);
}

static int is_subscribed(void)
{
	return callback != NULL;
}

static int is_taken_over(void)
{
	int so;

	pthread_mutex_lock(&lock);
	so = request == others_request;
	pthread_mutex_unlock(&lock);
	return so;
}

static uint32_t taken_records(void)
{
	return taken;
}

static void complete_foreign(void)
{
	give_back(others_buffer, sizeof(others_buffer), 0);
}

/* ---- graphs ---- */

/* The level is of all subscribers where there may be several. */
static int times_whole(uint32_t exec)
{
	if (exec && number("DOUBLE_CUPTI_STICKY", 0))
		return made_whole[exec % 256];
	return kinds[CUPTI_KIND_GRAPH_TRACE] && (!is_shared || shares_whole);
}

static uint64_t device_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* By node, each is followed by what timing it costs. */
static void replay(const struct double_replay *replayed)
{
	uint64_t now = device_now(), step_ns = replayed->node_ns;
	const struct cupti_graph_trace whole = {
		.kind = CUPTI_KIND_GRAPH_TRACE,
		.correlation = replayed->correlation,
		.start = now,
		.end = now + replayed->nodes * replayed->node_ns,
		.graph = replayed->exec,
		.context = 1,
		.stream = 7,
	};

	if (times_whole(replayed->exec)) {
		emit(&whole, sizeof(whole));
		return;
	}
	if (replayed->nodes > 1)
		step_ns += replayed->nodes * replayed->node_ns *
			   (uint64_t)number("DOUBLE_CUPTI_NODE_COST", 0) / 100 /
			   (replayed->nodes - 1);
	for (uint32_t i = replayed->nodes; i-- > 0;) {
		const struct cupti_kernel kernel = {
			.kind = CUPTI_KIND_CONCURRENT_KERNEL,
			.start = now + i * step_ns,
			.end = now + i * step_ns + replayed->node_ns,
			.context = 1,
			.stream = 7,
			.grid = {64, 1, 1},
			.block = {256, 1, 1},
			.correlation = replayed->correlation,
			.name = replayed->names ? replayed->names[i] : "_Z5gemmsPfS_",
			.graph = replayed->exec,
			.graph_node = (uint64_t)replayed->exec << 32 | i,
		};

		emit(&kernel, sizeof(kernel));
	}
}

/* ---- the script's ---- */

#define NAME(name, number, role) [number] = #name,
static const char *const driver_names[MAX_ID] = {
	CUPTI_DRIVER_CALLS(NAME) CUPTI_OTHER_DRIVER_CALLS(NAME)};
static const char *const runtime_names[MAX_ID] = {
	CUPTI_RUNTIME_CALLS(NAME) CUPTI_OTHER_RUNTIME_CALLS(NAME)};
#undef NAME

/* The runtime's without the version that its number has. */
static char runtime_texts[MAX_ID][96];

__attribute__((constructor)) static void make_names(void)
{
	for (size_t i = 0; i < MAX_ID; i++)
		if (runtime_names[i])
			snprintf(runtime_texts[i], sizeof(runtime_texts[i]), "%.*s",
				(int)(strstr(runtime_names[i], "_v") - runtime_names[i]),
				runtime_names[i]);
}

static const char *name_of(int domain, uint32_t id)
{
	return domain == CUPTI_DOMAIN_RUNTIME ? runtime_texts[id] : driver_names[id];
}

static void call(int domain, uint32_t id, uint32_t correlation, int site, int32_t result)
{
	uint64_t data = 0;
	struct cupti_call_data info = {
		.site = site,
		.symbol_name = "_Z5gemmsPfS_",
		.result = site == CUPTI_SITE_EXIT ? &result : NULL,
		.correlation_data = &data,
		.correlation = correlation,
	};

	if (!callback || !enabled[domain][id])
		return;
	info.function_name = name_of(domain, id);
	callback(NULL, domain, id, &info);
}

static void resource(uint32_t id, const struct cupti_graph_data *data)
{
	struct cupti_resource_data info = {.descriptor = data};

	if (id == CUPTI_RESOURCE_GRAPHEXEC_CREATED)
		made_whole[(uintptr_t)data->exec % 256] = (uint8_t)times_whole(0);
	if (id == CUPTI_RESOURCE_DRIVER_READY)
		driver_is_ready = true;
	if (callback && enabled[CUPTI_DOMAIN_RESOURCE][id])
		callback(NULL, CUPTI_DOMAIN_RESOURCE, id, &info);
}

static void resource_of(uint32_t id, cupti_handle context, const void *descriptor)
{
	struct cupti_resource_data info = {.context = context, .descriptor = (void *)descriptor};

	if (callback && enabled[CUPTI_DOMAIN_RESOURCE][id])
		callback(NULL, CUPTI_DOMAIN_RESOURCE, id, &info);
}

static void state(uint32_t id, cupti_result result, const char *message)
{
	struct cupti_state_data info = {.result = result, .message = message};

	if (callback && enabled[CUPTI_DOMAIN_STATE][id])
		callback(NULL, CUPTI_DOMAIN_STATE, id, &info);
}

static uint32_t calls_in_children(void)
{
	return atomic_load(&shared->calls_in_children);
}

static uint32_t enabled_callbacks(int domain)
{
	uint32_t count = 0;

	for (size_t i = 0; i < MAX_ID; i++)
		count += enabled[domain][i];
	return count;
}

static int kind_enabled(int kind)
{
	return kinds[kind];
}

static void step_clock(int64_t by_ns)
{
	clock_step_ns += by_ns;
}

EXPORT const struct double_functions double_cupti;
const struct double_functions double_cupti = {
	.call = call,
	.resource = resource,
	.resource_of = resource_of,
	.state = state,
	.emit = emit,
	.request = request_only,
	.request_and_complete = request_and_complete,
	.take_over = take_over,
	.is_taken_over = is_taken_over,
	.taken_records = taken_records,
	.complete_foreign = complete_foreign,
	.calls_in_children = calls_in_children,
	.enabled_callbacks = enabled_callbacks,
	.kind_enabled = kind_enabled,
	.step_clock = step_clock,
	.flushes = flushes,
	.is_subscribed = is_subscribed,
	.times_whole = times_whole,
	.replay = replay,
};

/* ---- CUPTI's ---- */

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

EXPORT cupti_result cuptiGetVersion(uint32_t *version)
{
	*version = (uint32_t)own_version();
	return CUPTI_OK;
}

EXPORT cupti_result cuptiGetTimestamp(uint64_t *timestamp)
{
	struct timespec now;

	if (getpid() != first_pid)
		atomic_fetch_add(&shared->calls_in_children, 1);
	clock_gettime(CLOCK_REALTIME, &now);
	*timestamp = (uint64_t)(now.tv_sec * 1000000000LL + now.tv_nsec + clock_step_ns);
	return CUPTI_OK;
}

EXPORT cupti_result cuptiGetResultString(cupti_result result, const char **text)
{
	*text = "CUPTI_ERROR_OF_THE_DOUBLE";
	return CUPTI_OK;
}

EXPORT cupti_result cuptiSetThreadIdType(int type)
{
	return usual();
}

EXPORT cupti_result cuptiEnableCallback(
	uint32_t enable, cupti_handle subscriber, int domain, uint32_t id)
{
	if (usual() != CUPTI_OK || id >= MAX_ID)
		return CUPTI_E_INVALID_PARAMETER;
	enabled[domain][id] = enable;
	return CUPTI_OK;
}

EXPORT cupti_result cuptiActivityFlushAll(uint32_t flag)
{
	cupti_result result = usual();

	if (result == CUPTI_OK)
		flush();
	atomic_fetch_add(&flush_count, 1);
	return result;
}

EXPORT cupti_result cuptiGetGraphId(cupti_handle graph, uint32_t *id)
{
	*id = (uint32_t)(uintptr_t)graph;
	return usual();
}

EXPORT cupti_result cuptiGetGraphExecId(cupti_handle exec, uint32_t *id)
{
	*id = (uint32_t)(uintptr_t)exec;
	return usual();
}

EXPORT cupti_result cuptiGetGraphNodeId(cupti_handle node, uint64_t *id)
{
	*id = (uintptr_t)node;
	return usual();
}

static cupti_result subscribe(cupti_handle *subscriber, cupti_callback *function)
{
	cupti_result result = usual();

	*subscriber = &callback;
	if (result == CUPTI_OK)
		callback = function;
	return result;
}

EXPORT cupti_result cuptiSubscribe(cupti_handle *subscriber, cupti_callback *function, void *user)
{
	return subscribe(subscriber, function);
}

EXPORT cupti_result cuptiUnsubscribe(cupti_handle subscriber)
{
	callback = NULL;
	memset(enabled, 0, sizeof(enabled));
	return subscriber == &callback ? usual() : CUPTI_E_INVALID_PARAMETER;
}

static cupti_result enable(int kind, bool on)
{
	cupti_result result = usual();

	if (kind == CUPTI_KIND_UNIFIED_MEMORY && on && !unified_is_configured)
		return CUPTI_E_INVALID_PARAMETER;
	/* It comes with that of graphs. */
	if (kind == CUPTI_KIND_DEVICE_GRAPH_TRACE)
		return CUPTI_E_INVALID_PARAMETER;
	if ((kind == CUPTI_KIND_HOST_LAUNCH || kind == CUPTI_KIND_GRAPH_HOST_NODE) &&
		own_version() < CUPTI_VERSION_13_1)
		return CUPTI_E_INVALID_PARAMETER;
	if (result == CUPTI_OK)
		kinds[kind] = on;
	return result;
}

EXPORT cupti_result cuptiActivityEnable(int kind)
{
	return enable(kind, true);
}

EXPORT cupti_result cuptiActivityDisable(int kind)
{
	return enable(kind, false);
}

/* As the documentation has it: after the driver has started, before the kind is enabled. */
EXPORT cupti_result cuptiActivityConfigureUnifiedMemoryCounter(
	struct cupti_unified_config *configs, uint32_t count)
{
	cupti_result refusal = number("DOUBLE_CUPTI_UNIFIED", CUPTI_OK);

	if (!driver_is_ready)
		return CUPTI_E_NOT_INITIALIZED;
	for (uint32_t i = 0; i < count; i++)
		if (configs[i].scope != CUPTI_UNIFIED_ALL_GPUS || !configs[i].enable ||
			configs[i].counter != i + 1)
			return CUPTI_E_INVALID_PARAMETER;
	unified_is_configured = refusal == CUPTI_OK && count;
	return refusal == CUPTI_OK ? usual() : refusal;
}

static cupti_result enable_latency(uint8_t enable)
{
	cupti_result refusal = number("DOUBLE_CUPTI_LATENCY", CUPTI_OK);

	/* It has none, and does not say so. */
	has_latency = enable && refusal == CUPTI_OK && !getenv("DOUBLE_CUPTI_LATENCY_NONE");
	return refusal == CUPTI_OK ? usual() : refusal;
}

static bool is_any_kind_on(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i])
			return true;
	return false;
}

EXPORT cupti_result cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
	/* The other family of functions is used. */
	if (is_shared)
		return CUPTI_E_NOT_COMPATIBLE;
	/* As the documentation has it, it is for the beginning. */
	return is_any_kind_on() ? CUPTI_E_INVALID_PARAMETER : enable_latency(enable);
}

/* Likewise: before CUDA is there, and the kinds that it is of. */
static cupti_result enable_device_graphs(uint8_t enable)
{
	cupti_result refusal = number("DOUBLE_CUPTI_DEVICE_GRAPHS", CUPTI_OK);

	if (driver_is_ready || is_any_kind_on())
		return CUPTI_E_INVALID_OPERATION;
	has_device_graphs = enable && refusal == CUPTI_OK;
	return refusal == CUPTI_OK ? usual() : refusal;
}

EXPORT cupti_result cuptiActivityEnableDeviceGraph(uint8_t enable)
{
	return is_shared ? CUPTI_E_NOT_COMPATIBLE : enable_device_graphs(enable);
}

EXPORT cupti_result cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value)
{
	return usual();
}

EXPORT cupti_result cuptiActivityRegisterCallbacks(
	cupti_request *to_request, cupti_complete *to_complete)
{
	cupti_result result =
		number("DOUBLE_CUPTI_SUBSCRIBE", 0) == CUPTI_E_UNKNOWN ? CUPTI_OK : usual();

	set_callbacks(to_request, to_complete, NULL, NULL);
	return result;
}

EXPORT cupti_result cuptiActivityGetNextRecord(uint8_t *from, size_t valid, void **record)
{
	return next_record(from, valid, record);
}

EXPORT cupti_result cuptiActivityGetNumDroppedRecords(
	cupti_handle context, uint32_t stream, size_t *ret_dropped)
{
	pthread_mutex_lock(&lock);
	*ret_dropped = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return usual();
}

#ifdef DOUBLE_V2
EXPORT cupti_result cuptiSubscribe_v2(cupti_handle *subscriber, cupti_callback *function,
	void *user, struct cupti_subscriber_params *params)
{
	const char *holder = getenv("DOUBLE_CUPTI_HOLDER");
	bool several = params->bytes >= sizeof(*params) && params->allow_multiple;
	cupti_result result;

	if (several && number("DOUBLE_CUPTI_SINGLE", 0))
		return CUPTI_E_HELD;
	result = subscribe(subscriber, function);
	is_shared = result == CUPTI_OK && several;
	if (result == CUPTI_E_HELD && holder && params->old_name)
		memcpy(params->old_name, holder, strlen(holder) + 1);
	return result;
}

EXPORT cupti_result cuptiActivityEnable_v2(cupti_handle subscriber, int kind, void *config)
{
	return subscriber == &callback ? enable(kind, true) : CUPTI_E_INVALID_PARAMETER;
}

EXPORT cupti_result cuptiActivityDisable_v2(cupti_handle subscriber, int kind, void *config)
{
	return subscriber == &callback ? enable(kind, false) : CUPTI_E_INVALID_PARAMETER;
}

EXPORT cupti_result cuptiActivitySetAttribute_v2(
	cupti_handle subscriber, int attribute, size_t *bytes, void *value)
{
	if (attribute == CUPTI_ATTRIBUTE_LATENCY_TIMES)
		return *bytes == 1 ? enable_latency(*(const uint8_t *)value)
				   : CUPTI_E_INVALID_PARAMETER;
	if (attribute == CUPTI_ATTRIBUTE_DEVICE_GRAPHS)
		return *bytes == 1 ? enable_device_graphs(*(const uint8_t *)value)
				   : CUPTI_E_INVALID_PARAMETER;
	if (attribute != CUPTI_ATTRIBUTE_SHARED_GRAPH_LEVEL)
		return usual();
	/* Too late. */
	if (is_any_kind_on())
		return CUPTI_E_INVALID_PARAMETER;
	shares_whole = *(const uint8_t *)value != 0;
	return usual();
}

EXPORT cupti_result cuptiActivityRegisterCallbacks_v2(
	cupti_handle subscriber, cupti_request_v2 *to_request, cupti_complete_v2 *to_complete)
{
	set_callbacks(NULL, NULL, to_request, to_complete);
	return usual();
}

EXPORT cupti_result cuptiActivityGetNextRecord_v2(
	cupti_handle subscriber, uint8_t *from, size_t valid, void **record)
{
	return next_record(from, valid, record);
}

EXPORT cupti_result cuptiActivityGetNumDroppedRecords_v2(
	cupti_handle subscriber, cupti_handle context, uint32_t stream, size_t *ret_dropped)
{
	return cuptiActivityGetNumDroppedRecords(context, stream, ret_dropped);
}
#endif
