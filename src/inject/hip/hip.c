/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/hip/hip.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inject/hip/runtime.h"

struct hip hip = {.sending = PTHREAD_MUTEX_INITIALIZER};

/* What rocprofiler-sdk said of itself, for start(). */
static struct {
	uint32_t version;
	const void *caller; /* an address in it */
} sdk;

__attribute__((visibility("default"))) struct rocprofiler_tool *rocprofiler_configure(
	uint32_t version, const char *text, uint32_t priority, struct rocprofiler_client *client);

/* The parent goes on. */
static void in_child(void)
{
	atomic_store_explicit(&hip.is_over, true, memory_order_relaxed);
}

#define FUNCTION(field, symbol) {offsetof(struct rocprofiler_functions, field), symbol},
static const struct {
	size_t offset;
	const char *name;
} functions[] = {ROCPROFILER_FUNCTIONS(FUNCTION)};
#undef FUNCTION

/* From the library that called us, which others of its name are not. */
static const char *missing_function(void)
{
	Dl_info info;
	void *library = dladdr(sdk.caller, &info) && info.dli_fname
				? dlopen(info.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD)
				: NULL;

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *function = library ? dlsym(library, functions[i].name) : NULL;

		if (!function &&
			functions[i].offset != offsetof(struct rocprofiler_functions, status_text))
			return functions[i].name;
		memcpy((char *)&hip.call + functions[i].offset, &function, sizeof(function));
	}
	inject_note(WIRE_NOTE_TRACER, "HIP is traced by rocprofiler-sdk %u.%u.%u, %s.",
		sdk.version / 10000, sdk.version / 100 % 100, sdk.version % 100, info.dli_fname);
	return NULL;
}

/* Without it the writer still tells why. */
static bool is_usable(void)
{
	const char *missing;

	if (sdk.version < ROCPROFILER_VERSION_1_0) {
		inject_note(WIRE_NOTE_NO_TRACER,
			"rocprofiler-sdk %u.%u is older than 1.0 (ROCm 7), which sonde needs, so "
			"that HIP device work is not timed: run the program with ROCm 7.",
			sdk.version / 10000, sdk.version / 100 % 100);
		return false;
	}
	missing = missing_function();
	if (missing)
		inject_note(WIRE_NOTE_NO_TRACER,
			"rocprofiler-sdk has no %s(), so that HIP device work is not timed: run "
			"the program with ROCm 7.",
			missing);
	return !missing;
}

static bool start(void)
{
	if (!inject_worker_init(&hip.writer))
		return false;
	hip.is_traced = is_usable();
	return hip.is_traced || hip_writer_start();
}

/* By then rocprofiler-sdk has ended, as a rule. */
static void stop(void)
{
	hip_writer_stop();
}

/* ---- the tool ---- */

/* On the thread of a program that loads code, before the code runs. */
static void on_code(struct rocprofiler_callback_record record, uint64_t *user, void *data)
{
	int saved_errno = errno;

	if (record.operation == ROCPROFILER_CODE_OBJECT_KERNEL &&
		record.phase == ROCPROFILER_PHASE_ENTER && record.payload)
		hip_add_kernel(record.payload);
	errno = saved_errno;
}

static int trace_names(void)
{
	int status = hip.call.create_context(&hip.names);

	if (status == ROCPROFILER_OK)
		status = hip.call.trace_callbacks(
			hip.names, ROCPROFILER_CALLBACK_CODE_OBJECT, NULL, 0, on_code, NULL);
	return status == ROCPROFILER_OK ? hip.call.start_context(hip.names) : status;
}

static int trace(void)
{
	int status = hip_find_gpus();

	if (status == ROCPROFILER_OK)
		status = trace_names();
	if (status == ROCPROFILER_OK)
		status = hip.call.create_context(&hip.work);
	if (status == ROCPROFILER_OK)
		status = hip_trace_calls();
	if (status == ROCPROFILER_OK && inject_is_timed())
		status = hip_trace_work();
	return status;
}

static int initialize(rocprofiler_finalize_function *finalize_client, void *data)
{
	int saved_errno = errno, status = trace();
	const char *text = status != ROCPROFILER_OK && hip.call.status_text
				   ? hip.call.status_text(status)
				   : NULL;

	if (status != ROCPROFILER_OK)
		inject_note(WIRE_NOTE_REFUSED,
			"rocprofiler-sdk refuses to trace (error %d, %s), so that HIP device work "
			"is not timed.",
			status, text ? text : "unknown");
	hip.is_traced = status == ROCPROFILER_OK;
	hip_writer_start();
	errno = saved_errno;
	return hip.is_traced ? 0 : -1;
}

/* At the program's end, before stop(): the last moment at which rocprofiler-sdk may be called. */
static void finalize(void *data)
{
	int saved_errno = errno;

	if (!atomic_load_explicit(&hip.is_over, memory_order_relaxed))
		hip_writer_stop();
	atomic_store_explicit(&hip.is_over, true, memory_order_relaxed);
	errno = saved_errno;
}

/*
 * rocprofiler-sdk asks every library that the program has loaded, and another tool may be why it is
 * there: HIP is traced where that was asked for.
 */
static bool is_asked_for(void)
{
	const char *tools = secure_getenv("ROCP_TOOL_LIBRARIES");

	return tools && strstr(tools, "libsonde-inject");
}

/* NULL: the program runs as without sonde. */
struct rocprofiler_tool *rocprofiler_configure(
	uint32_t version, const char *text, uint32_t priority, struct rocprofiler_client *client)
{
	static struct rocprofiler_tool tool = {
		.size = sizeof(tool), .initialize = initialize, .finalize = finalize};

	if (!is_asked_for())
		return NULL;
	sdk.version = version;
	sdk.caller = __builtin_return_address(0);
	client->name = "sonde";
	return runtime_enter(&hip_runtime) && hip.is_traced ? &tool : NULL;
}

const struct runtime hip_runtime = {
	.start = start,
	.stop = stop,
	.flush = hip_writer_flush,
	.join_session = hip_writer_flush,
	.fork_child = in_child,
};
