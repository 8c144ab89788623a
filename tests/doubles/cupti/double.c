/* SPDX-License-Identifier: Apache-2.0 */
#include "double.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
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

static bool is_full(size_t bytes)
{
	bool full;

	pthread_mutex_lock(&lock);
	full = buffer && valid_bytes + bytes > buffer_bytes;
	pthread_mutex_unlock(&lock);
	return full;
}

static int emit(const void *record, size_t bytes)
{
	int room;

	if (!kinds[*(const uint32_t *)record])
		return 0;
	if (is_full(bytes))
		flush();
	pthread_mutex_lock(&lock);
	room = buffer || ask();
	if (room && bytes) {
		memcpy(buffer + valid_bytes, record, bytes);
		valid_bytes += (bytes + 7) / 8 * 8;
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
	case CUPTI_KIND_GRAPH_TRACE:
		return sizeof(struct cupti_graph_trace);
	default:
		return sizeof(struct cupti_kernel);
	}
}

static cupti_result next_record(uint8_t *from, size_t valid, void **record)
{
	uint8_t *next = from;

	if (*record)
		next = (uint8_t *)*record + (record_bytes(*(uint32_t *)*record) + 7) / 8 * 8;
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

/* ---- the script's ---- */

static void call(int domain, uint32_t id, uint32_t correlation, int site, int32_t result)
{
	uint64_t data = 0;
	struct cupti_call_data info = {
		.site = site,
		.function_name = "double",
		.symbol_name = "_Z5gemmsPfS_",
		.result = site == CUPTI_SITE_EXIT ? &result : NULL,
		.correlation_data = &data,
		.correlation = correlation,
	};

	if (callback && enabled[domain][id])
		callback(NULL, domain, id, &info);
}

static void resource(uint32_t id, const struct cupti_graph_data *data)
{
	struct cupti_resource_data info = {.descriptor = data};

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
};

/* ---- CUPTI's ---- */

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

EXPORT cupti_result cuptiGetVersion(uint32_t *version)
{
#ifdef DOUBLE_V2
	*version = (uint32_t)number("DOUBLE_CUPTI_VERSION", 130500);
#else
	*version = (uint32_t)number("DOUBLE_CUPTI_VERSION", 28);
#endif
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
	cupti_result result = subscribe(subscriber, function);
	const char *holder = getenv("DOUBLE_CUPTI_HOLDER");

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
