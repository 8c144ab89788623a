/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contexts that are sampled. CUPTI's sampling is switched on as a context is made, in the
 * callback, as kernels may follow at once; it runs while a window is open. The writer reads the
 * data as often as it flushes, and sends it now and then, at the end of windows and of the process.
 */
#include "inject/cuda/pc.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MAX_CONTEXTS 32
#define BUFFER_PCS   2048 /* of a context */
#define MAX_READS    64   /* of a context in a row */
#define SEND_NS      (30 * WORKER_SECOND)
/* A callback waits no longer for the writer. */
#define CALLBACK_SECONDS 1

struct context {
	_Atomic(cupti_handle) context; /* NULL: the place is free */
	/* It was destroyed while the writer had the lock: CUPTI is not asked for it any more. */
	_Atomic bool is_gone;
	struct cupti_pc_data *data; /* CUPTI has it, too, until the context is disabled */
	size_t data_bytes;          /* of the mapping */
	bool is_started;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static struct context contexts[MAX_CONTEXTS];
static bool is_watching; /* for contexts, from before the first one */
static bool is_sampling; /* a window is open */
static bool is_refused;
static uint64_t since_ns; /* of what is not sent yet */
static uint64_t window_begin_ns;
static uint32_t period_cycles;

/* ---- why not ---- */

static const struct cuda_refusal refusals[] = {
	{CUPTI_E_PRIVILEGES,
		"The NVIDIA driver lets administrators alone sample instructions, so that "
		"--pc-sampling has nothing: run sonde as root, or have the driver loaded with "
		"NVreg_RestrictProfilingToAdminUsers=0 (options nvidia … in /etc/modprobe.d, then "
		"reboot): https://developer.nvidia.com/ERR_NVGPUCTRPERM."},
	{CUPTI_E_VIRTUALIZED_PRIVILEGES,
		"The host of this virtual GPU does not allow profiling, so that --pc-sampling has "
		"nothing: its administrator can allow it for the vGPU."},
	{CUPTI_E_NOT_SUPPORTED,
		"CUPTI cannot sample instructions on this device, so that --pc-sampling has "
		"nothing: that needs a GPU from Volta on (compute capability 7.0), with a driver "
		"that is not older than libcupti."},
	{CUPTI_E_VIRTUALIZED,
		"CUPTI cannot sample instructions on this virtual GPU, so that --pc-sampling has "
		"nothing: run on a whole GPU."},
	{CUPTI_E_MIG,
		"CUPTI cannot sample instructions on this MIG instance, so that --pc-sampling has "
		"nothing: run on a GPU that is not partitioned."},
	{CUPTI_E_CONFIDENTIAL,
		"CUPTI cannot sample instructions on a GPU in confidential computing mode, so that "
		"--pc-sampling has nothing: run without that mode."},
	{CUPTI_E_WSL,
		"CUPTI cannot sample instructions in the Windows Subsystem for Linux on this GPU, "
		"so that --pc-sampling has nothing: run on Linux itself."},
	{CUPTI_E_HARDWARE_BUSY,
		"Another profiler (ncu, DCGM's profiling metrics) has the GPU's counters, so that "
		"--pc-sampling has nothing: run again without it."},
};

static void refuse(cupti_result result)
{
	const struct cuda_refusal *refusal =
		cuda_find_refusal(refusals, sizeof(refusals) / sizeof(*refusals), result);

	is_refused = true;
	if (refusal)
		inject_note(WIRE_NOTE_PC_SAMPLING, "%s", refusal->text);
	else
		inject_note(WIRE_NOTE_PC_SAMPLING,
			"CUPTI refuses to sample instructions (error %d, %s), so that "
			"--pc-sampling has nothing: record without it.",
			result, cuda_result_name(result));
}

/* ---- a context ---- */

static bool has_functions(void)
{
	const struct cupti_functions *call = &cuda.cupti.call;

	return call->pc_enable && call->pc_disable && call->pc_start && call->pc_stop &&
	       call->pc_get_data && call->pc_set;
}

static cupti_result call_for(
	cupti_result (*function)(struct cupti_pc_params *params), cupti_handle context)
{
	struct cupti_pc_params params = {.bytes = sizeof(params), .context = context};

	return function(&params);
}

/* What CUPTI fills: each instruction has room for all reasons. */
static bool make_buffer(struct context *context, size_t reasons)
{
	size_t stride = cupti_pc_bytes(cuda.cupti.version), stalls = reasons * 8;
	size_t bytes = sizeof(struct cupti_pc_data) + BUFFER_PCS * (stride + stalls);
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	context->data = (void *)memory;
	context->data_bytes = bytes;
	*context->data = (struct cupti_pc_data){
		.bytes = sizeof(struct cupti_pc_data),
		.room = BUFFER_PCS,
		.pcs = (void *)(memory + sizeof(struct cupti_pc_data)),
	};
	memory += sizeof(struct cupti_pc_data);
	for (size_t i = 0; i < BUFFER_PCS; i++) {
		struct cupti_pc *pc = (void *)(memory + i * stride);

		pc->bytes = stride;
		pc->stalls = (void *)(memory + BUFFER_PCS * stride + i * stalls);
	}
	return true;
}

static cupti_result configure(const struct context *context)
{
	struct cupti_pc_config items[] = {
		{.attribute = CUPTI_PC_MODE, .number = CUPTI_PC_CONTINUOUS},
		{.attribute = CUPTI_PC_START_STOP, .number = 1},
		{.attribute = CUPTI_PC_BUFFER, .pointer = context->data},
	};
	struct cupti_pc_config period = {.attribute = CUPTI_PC_PERIOD};
	struct cupti_pc_config_params params = {
		.bytes = sizeof(params),
		.context = context->context,
		.count = sizeof(items) / sizeof(*items),
		.items = items,
	};
	cupti_result result = cuda.cupti.call.pc_set(&params);

	if (result != CUPTI_OK)
		return result;
	params.count = 1;
	params.items = &period;
	if (cuda.cupti.call.pc_get && cuda.cupti.call.pc_get(&params) == CUPTI_OK &&
		period.number < 32)
		period_cycles = 1U << period.number;
	return CUPTI_OK;
}

static void free_context(struct context *context)
{
	if (context->data)
		munmap(context->data, context->data_bytes);
	context->data = NULL;
	context->is_started = false;
	context->is_gone = false;
	context->context = NULL;
}

/* Their buffers stay: CUPTI may know them yet. */
static void forget_gone(void)
{
	for (size_t i = 0; i < MAX_CONTEXTS; i++) {
		if (!contexts[i].is_gone)
			continue;
		contexts[i].data = NULL;
		free_context(&contexts[i]);
	}
}

static cupti_result enable(struct context *context)
{
	size_t reasons;
	cupti_result result = has_functions()
				      ? call_for(cuda.cupti.call.pc_enable, context->context)
				      : CUPTI_E_NOT_SUPPORTED;

	if (result != CUPTI_OK)
		return result;
	result = cuda_pc_read_reasons(context->context, &reasons);
	if (result == CUPTI_OK && !make_buffer(context, reasons))
		result = CUPTI_E_OUT_OF_MEMORY;
	if (result == CUPTI_OK)
		result = configure(context);
	if (result != CUPTI_OK)
		call_for(cuda.cupti.call.pc_disable, context->context);
	return result;
}

static void start(struct context *context)
{
	cupti_result result = call_for(cuda.cupti.call.pc_start, context->context);

	context->is_started = result == CUPTI_OK;
	if (result != CUPTI_OK && !is_refused)
		refuse(result);
}

/* The functions' names are not freed: CUPTI shares them with records of activities. */
static void read_data(struct context *context)
{
	struct cupti_pc_data *data = context->data;
	struct cupti_pc_data_params params = {
		.bytes = sizeof(params), .context = context->context, .data = data};

	for (unsigned i = 0; i < MAX_READS; i++) {
		cupti_result result;

		data->samples = data->dropped = data->foreign_samples = 0;
		data->count = data->remaining = 0;
		data->is_full = 0;
		result = cuda.cupti.call.pc_get_data(&params);
		if (result != CUPTI_OK) {
			/* Of a context that went meanwhile, too. */
			cuda_pc_count_failed(result == CUPTI_E_OUT_OF_MEMORY);
			return;
		}
		cuda_pc_add(data);
		if (!data->remaining || context->is_gone)
			return;
	}
}

static void stop(struct context *context)
{
	if (!context->is_started || context->is_gone)
		return;
	call_for(cuda.cupti.call.pc_stop, context->context);
	context->is_started = false;
	read_data(context);
}

/* ---- on the program's threads ---- */

/*
 * The driver may hold locks of its own in a callback, for which the writer waits in CUPTI: so this
 * waits in bounded time.
 */
static bool lock_in_callback(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += CALLBACK_SECONDS;
	return pthread_mutex_timedlock(&lock, &until) == 0;
}

static void add_context(cupti_handle handle)
{
	for (size_t i = 0; i < MAX_CONTEXTS; i++) {
		struct context *context = &contexts[i];
		cupti_result result;

		if (context->context)
			continue;
		context->context = handle;
		result = enable(context);
		if (result != CUPTI_OK) {
			free_context(context);
			refuse(result);
		} else if (is_sampling) {
			start(context);
		}
		return;
	}
	is_refused = true;
	inject_note(WIRE_NOTE_PC_SAMPLING,
		"The program has more than %d CUDA contexts: instructions of later ones are not "
		"sampled.",
		MAX_CONTEXTS);
}

static void remove_context(cupti_handle handle)
{
	for (size_t i = 0; i < MAX_CONTEXTS; i++) {
		struct context *context = &contexts[i];

		if (context->context != handle)
			continue;
		stop(context);
		call_for(cuda.cupti.call.pc_disable, handle);
		free_context(context);
	}
}

static void on_created(cupti_handle handle)
{
	if (!lock_in_callback()) {
		inject_note(WIRE_NOTE_PC_SAMPLING,
			"A CUDA context was made while data of others was read for more than %d "
			"s: its instructions are not sampled.",
			CALLBACK_SECONDS);
		return;
	}
	if (!is_refused)
		add_context(handle);
	pthread_mutex_unlock(&lock);
}

static void on_destroy(cupti_handle handle)
{
	if (lock_in_callback()) {
		remove_context(handle);
		pthread_mutex_unlock(&lock);
		return;
	}
	for (size_t i = 0; i < MAX_CONTEXTS; i++)
		if (contexts[i].context == handle)
			contexts[i].is_gone = true;
}

bool cuda_pc_on_resource(uint32_t id, const struct cupti_resource_data *data)
{
	if (!is_watching)
		return false;
	if (id == CUPTI_RESOURCE_MODULE_LOADED) {
		if (data && data->descriptor)
			cuda_pc_keep_module(data->descriptor);
		return true;
	}
	if (id != CUPTI_RESOURCE_CONTEXT_CREATED && id != CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING)
		return false;
	if (!data || !data->context)
		return true;
	if (id == CUPTI_RESOURCE_CONTEXT_CREATED)
		on_created(data->context);
	else
		on_destroy(data->context);
	return true;
}

/* ---- on the writer ---- */

void cuda_pc_watch(void)
{
	static const uint32_t ids[] = {CUPTI_RESOURCE_CONTEXT_CREATED,
		CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING, CUPTI_RESOURCE_MODULE_LOADED};

	if (!inject_also_records(WIRE_ALSO_PCS) && !is_watching)
		return;
	is_watching = true;
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		cupti_enable_callback(&cuda.cupti, CUPTI_DOMAIN_RESOURCE, ids[i], true);
}

static uint64_t gate_begin_ns(void)
{
	return atomic_load_explicit(&inject_session_gate()->begin_ns, memory_order_relaxed);
}

static void send(void)
{
	cuda_pc_send(since_ns, period_cycles);
	since_ns = inject_now_ns();
}

void cuda_pc_begin(void)
{
	static bool is_reported;

	if (!inject_also_records(WIRE_ALSO_PCS) || is_sampling)
		return;
	if (!is_watching) {
		if (!is_reported)
			inject_note(WIRE_NOTE_PC_SAMPLING,
				"The program used CUDA before this recording, so that --pc-sampling "
				"has nothing: record it from its start.");
		is_reported = true;
		return;
	}
	pthread_mutex_lock(&lock);
	forget_gone();
	cuda_pc_forget();
	window_begin_ns = gate_begin_ns();
	since_ns = inject_now_ns();
	is_sampling = true;
	for (size_t i = 0; i < MAX_CONTEXTS; i++)
		if (contexts[i].context)
			start(&contexts[i]);
	pthread_mutex_unlock(&lock);
}

void cuda_pc_end(void)
{
	if (!is_sampling)
		return;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < MAX_CONTEXTS; i++)
		stop(&contexts[i]);
	is_sampling = false;
	send();
	pthread_mutex_unlock(&lock);
}

/* What was sampled before the window, while the program warmed up, has a time of before it. */
void cuda_pc_read(uint64_t now_ns)
{
	uint64_t begin_ns;

	if (!is_sampling)
		return;
	begin_ns = gate_begin_ns();
	pthread_mutex_lock(&lock);
	forget_gone();
	for (size_t i = 0; i < MAX_CONTEXTS; i++)
		if (contexts[i].is_started)
			read_data(&contexts[i]);
	if (begin_ns != window_begin_ns || cuda_pc_is_nearly_full() || now_ns >= since_ns + SEND_NS)
		send();
	window_begin_ns = begin_ns;
	pthread_mutex_unlock(&lock);
}
