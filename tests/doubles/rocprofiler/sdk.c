/* SPDX-License-Identifier: Apache-2.0 */
#include "double.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT       __attribute__((visibility("default")))
#define MAX_RECORDS  65536
#define RECORD_BYTES 192

/* Numbers of HIP's calls, which are not those of any release. */
static const char *const calls[] = {"hipGetDevice", "hipMemSetAccess", "hipGraphInstantiate",
	"hipLaunchKernel", "hipMemcpyAsync", "hipMemset", "hipDeviceSynchronize",
	"hipStreamBeginCapture", "hipStreamEndCapture", "hipGraphLaunch"};
#define CALLS        (sizeof(calls) / sizeof(*calls))
#define FIRST_NUMBER 17

struct service {
	uint64_t context;
	rocprofiler_callback *callback;
	bool operations[FIRST_NUMBER + CALLS];
};

static const struct rocprofiler_tool *tool;
static bool is_finalized;
static _Atomic bool is_active[8];
static uint64_t contexts;
static struct service codes, hip_calls;
static rocprofiler_request *answer;
static _Atomic uint64_t correlations;
static __thread uint64_t user_data;

/* The buffer, and the thread that hands it over. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static rocprofiler_take_buffer *take;
static uint64_t buffer_context;
static unsigned char records[MAX_RECORDS][RECORD_BYTES] __attribute__((aligned(8)));
static struct rocprofiler_header headers[MAX_RECORDS], *pointers[MAX_RECORDS];
static size_t record_count;
static uint64_t flushes_wanted, flushes_done;

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? (int)strtol(text, NULL, 10) : otherwise;
}

static int refusal(void)
{
	return number("DOUBLE_ROCPROFILER_REFUSE", 0);
}

/* As the real one complains. */
static bool is_late(const char *what)
{
	if (is_finalized)
		fprintf(stderr, "rocprofiler-sdk double: %s after finalization\n", what);
	return is_finalized;
}

/* ---- contexts ---- */

EXPORT int rocprofiler_create_context(struct rocprofiler_id *ret_context);
EXPORT int rocprofiler_start_context(struct rocprofiler_id context);
EXPORT int rocprofiler_stop_context(struct rocprofiler_id context);

int rocprofiler_create_context(struct rocprofiler_id *ret_context)
{
	ret_context->handle = ++contexts;
	return ROCPROFILER_OK;
}

int rocprofiler_start_context(struct rocprofiler_id context)
{
	if (is_late("start_context"))
		return 1;
	is_active[context.handle] = true;
	return ROCPROFILER_OK;
}

int rocprofiler_stop_context(struct rocprofiler_id context)
{
	if (is_late("stop_context"))
		return 1;
	is_active[context.handle] = false;
	return ROCPROFILER_OK;
}

/* ---- the buffer ---- */

EXPORT int rocprofiler_create_buffer(struct rocprofiler_id context, size_t bytes, size_t watermark,
	int policy, rocprofiler_take_buffer *take_it, void *data,
	struct rocprofiler_id *ret_buffer);
EXPORT int rocprofiler_flush_buffer(struct rocprofiler_id buffer);

static void *hand_over(void *context)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (flushes_done == flushes_wanted)
			pthread_cond_wait(&changed, &lock);
		if (record_count)
			take((struct rocprofiler_id){buffer_context}, (struct rocprofiler_id){1},
				pointers, record_count, NULL, 0);
		record_count = 0;
		flushes_done = flushes_wanted;
		pthread_cond_broadcast(&changed);
	}
	return NULL;
}

int rocprofiler_create_buffer(struct rocprofiler_id context, size_t bytes, size_t watermark,
	int policy, rocprofiler_take_buffer *take_it, void *data, struct rocprofiler_id *ret_buffer)
{
	pthread_t thread;

	take = take_it;
	buffer_context = context.handle;
	ret_buffer->handle = 1;
	return refusal() ? refusal() : pthread_create(&thread, NULL, hand_over, NULL);
}

static void flush_locked(void)
{
	uint64_t wanted = ++flushes_wanted;

	pthread_cond_broadcast(&changed);
	while (flushes_done < wanted)
		pthread_cond_wait(&changed, &lock);
}

int rocprofiler_flush_buffer(struct rocprofiler_id buffer)
{
	if (is_late("flush_buffer"))
		return 1;
	pthread_mutex_lock(&lock);
	flush_locked();
	pthread_mutex_unlock(&lock);
	return ROCPROFILER_OK;
}

static void emit(int kind, const void *record, size_t bytes)
{
	if (!take || !is_active[buffer_context])
		return;
	pthread_mutex_lock(&lock);
	if (record_count == MAX_RECORDS)
		flush_locked();
	memcpy(records[record_count], record, bytes);
	headers[record_count] = (struct rocprofiler_header){
		ROCPROFILER_CATEGORY_TRACING, (uint32_t)kind, records[record_count]};
	pointers[record_count] = &headers[record_count];
	record_count++;
	pthread_mutex_unlock(&lock);
}

/* ---- services ---- */

EXPORT int rocprofiler_configure_callback_tracing_service(struct rocprofiler_id context, int kind,
	const int32_t *operations, size_t count, rocprofiler_callback *callback, void *data);
EXPORT int rocprofiler_configure_buffer_tracing_service(struct rocprofiler_id context, int kind,
	const int32_t *operations, size_t count, struct rocprofiler_id buffer);
EXPORT int rocprofiler_configure_external_correlation_id_request_service(
	struct rocprofiler_id context, const int *kinds, size_t count, rocprofiler_request *request,
	void *data);
EXPORT int rocprofiler_iterate_callback_tracing_kind_operations(
	int kind, rocprofiler_take_operation *take_it, void *data);
EXPORT int rocprofiler_query_callback_tracing_kind_operation_name(
	int kind, int32_t operation, const char **ret_name, uint64_t *ret_length);
EXPORT const char *rocprofiler_get_status_string(int status);

int rocprofiler_configure_callback_tracing_service(struct rocprofiler_id context, int kind,
	const int32_t *operations, size_t count, rocprofiler_callback *callback, void *data)
{
	struct service *service = kind == ROCPROFILER_CALLBACK_CODE_OBJECT ? &codes : &hip_calls;

	service->context = context.handle;
	service->callback = callback;
	for (size_t i = 0; i < count; i++)
		service->operations[operations[i]] = true;
	return refusal();
}

int rocprofiler_configure_buffer_tracing_service(struct rocprofiler_id context, int kind,
	const int32_t *operations, size_t count, struct rocprofiler_id buffer)
{
	return refusal();
}

int rocprofiler_configure_external_correlation_id_request_service(struct rocprofiler_id context,
	const int *kinds, size_t count, rocprofiler_request *request, void *data)
{
	answer = request;
	return refusal();
}

int rocprofiler_iterate_callback_tracing_kind_operations(
	int kind, rocprofiler_take_operation *take_it, void *data)
{
	for (int32_t i = 0; i < (int32_t)CALLS; i++)
		take_it(kind, FIRST_NUMBER + i, data);
	return ROCPROFILER_OK;
}

int rocprofiler_query_callback_tracing_kind_operation_name(
	int kind, int32_t operation, const char **ret_name, uint64_t *ret_length)
{
	*ret_name = calls[operation - FIRST_NUMBER];
	return ROCPROFILER_OK;
}

const char *rocprofiler_get_status_string(int status)
{
	return "the double refuses";
}

EXPORT int rocprofiler_query_available_agents(
	int version, rocprofiler_take_agents *take_it, size_t agent_bytes, void *data);

/* A CPU and two GPUs, of which hip.c uses the second. */
int rocprofiler_query_available_agents(
	int version, rocprofiler_take_agents *take_it, size_t agent_bytes, void *data)
{
	static struct rocprofiler_agent agents[] = {
		{.id = 100, .type = 1, .name = "Double of a CPU"},
		{.id = 200, .type = ROCPROFILER_AGENT_GPU, .name = "gfx90a", .ordinal = 0},
		{.id = 300,
			.type = ROCPROFILER_AGENT_GPU,
			.name = "gfx942",
			.product = "Double of an Instinct",
			.ordinal = 1,
			.gfx_version = 90402,
			.compute_units = 304,
			.wave_items = 64,
			.memory_bytes = 192ULL << 30},
	};
	const void *list[] = {&agents[0], &agents[1], &agents[2]};

	for (size_t i = 0; i < 3; i++)
		agents[i].size = sizeof(agents[i]);
	return take_it(version, list, 3, data);
}

/* ---- what hip.c calls ---- */

static void finalize(void)
{
	if (tool->finalize)
		tool->finalize(tool->data);
	is_finalized = true;
}

typedef struct rocprofiler_tool *configure_function(
	uint32_t version, const char *text, uint32_t priority, struct rocprofiler_client *client);

/* One of the list: the others are no tools. */
static configure_function *find_tool(void)
{
	char list[8192], *rest = NULL;
	configure_function *found = NULL;

	snprintf(list, sizeof(list), "%s", getenv("ROCP_TOOL_LIBRARIES"));
	for (char *path = strtok_r(list, ":", &rest); path; path = strtok_r(NULL, ":", &rest)) {
		void *library = dlopen(path, RTLD_LAZY), *symbol;

		if (!library)
			abort();
		symbol = dlsym(library, "rocprofiler_configure");
		if (symbol)
			*(void **)&found = symbol;
	}
	return found;
}

static void load_tools(void)
{
	struct rocprofiler_client client = {.size = sizeof(client)};
	configure_function *configure = find_tool();

	if (configure)
		tool = configure(
			(uint32_t)number("DOUBLE_ROCPROFILER_VERSION", ROCPROFILER_VERSION_1_0),
			"double", 0, &client);
	if (!tool)
		return;
	tool->initialize(NULL, tool->data);
	atexit(finalize);
}

static void call_back(const struct service *service, struct rocprofiler_callback_record *record)
{
	if (!service->callback || !is_active[service->context])
		return;
	record->context.handle = service->context;
	record->thread = (uint64_t)syscall(SYS_gettid);
	service->callback(*record, &user_data, NULL);
}

static void kernel(uint64_t kernel_number, const char *symbol)
{
	struct rocprofiler_kernel_symbol payload = {
		.size = sizeof(payload),
		.kernel = kernel_number,
		.name = symbol,
		.group_bytes = 1024,
		.vector_registers = 64,
	};
	struct rocprofiler_callback_record record = {
		.kind = ROCPROFILER_CALLBACK_CODE_OBJECT,
		.operation = ROCPROFILER_CODE_OBJECT_KERNEL,
		.phase = ROCPROFILER_PHASE_ENTER,
		.payload = &payload,
	};

	call_back(&codes, &record);
}

static void on_call(const char *call, uint64_t internal, int phase, int result)
{
	struct {
		uint64_t size;
		char arguments[64];
		char result[ROCPROFILER_HIP_RESULT_BYTES];
	} payload = {.size = sizeof(payload)};
	struct rocprofiler_callback_record record = {
		.kind = ROCPROFILER_CALLBACK_HIP_RUNTIME,
		.internal = internal,
		.phase = phase,
		.payload = &payload,
	};

	memcpy(payload.result, &result, sizeof(result));
	for (int32_t i = 0; i < (int32_t)CALLS; i++) {
		record.operation = FIRST_NUMBER + i;
		if (strcmp(calls[i], call) == 0 && hip_calls.operations[record.operation])
			call_back(&hip_calls, &record);
	}
}

static uint64_t enter(const char *call)
{
	uint64_t internal = ++correlations;

	on_call(call, internal, ROCPROFILER_PHASE_ENTER, 0);
	return internal;
}

static void leave(const char *call, uint64_t internal, int result)
{
	on_call(call, internal, ROCPROFILER_PHASE_EXIT, result);
}

static uint64_t request(int kind, uint64_t internal)
{
	uint64_t external = 0;

	if (answer && is_active[buffer_context])
		answer((uint64_t)syscall(SYS_gettid), (struct rocprofiler_id){buffer_context}, kind,
			0, internal, &external, NULL);
	return external;
}

static int is_tracing(void)
{
	return is_active[hip_calls.context];
}

EXPORT extern const struct double_rocprofiler double_rocprofiler;
const struct double_rocprofiler double_rocprofiler = {
	.load_tools = load_tools,
	.kernel = kernel,
	.enter = enter,
	.leave = leave,
	.request = request,
	.emit = emit,
	.is_tracing = is_tracing,
};
