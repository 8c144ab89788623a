/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs whose counters are sampled: those that the program makes contexts on. A GPU is sampled
 * while a window is open; its counters are free for others before and after. The writer decodes the
 * device's buffer as often as it flushes, and sends each sample.
 */
#include "inject/cuda/pm.h"

#include <stdlib.h>
#include <string.h>

#define MAX_GPUS     64
#define MAX_SAMPLES  1024 /* decoded at once */
#define MAX_DECODES  64   /* of a GPU in a row */
#define BUFFER_BYTES (64U << 20)
#define DATA_BYTES   (256U << 20) /* no counter data is larger */
#define INTERVAL_US  1000         /* where the session does not say */
/* Times of samples are those of CUPTI's clock, as far as they are no further off than this. */
#define CLOCK_SLACK_NS WORKER_SECOND

static struct gpu {
	struct pm_host host;
	cupti_handle sampling; /* NULL: it is not enabled */
	uint8_t *data;         /* what is decoded */
	size_t data_bytes;
	uint64_t begin; /* device clock */
	bool is_open;   /* `host` is */
	bool is_started, is_refused;
} gpus[MAX_GPUS];

static _Atomic uint64_t used; /* a bit for each GPU that the program made a context on */
static _Atomic bool is_watching;
static bool is_sampling; /* a window is open */

/* ---- calls ---- */

static bool has_functions(void)
{
	const struct cupti_functions *call = &cuda.cupti.call;

	return cuda.cupti.version >= CUPTI_VERSION_12_6 && call->profiler_initialize &&
	       call->pm_enable && call->pm_disable && call->pm_set && call->pm_start &&
	       call->pm_stop && call->pm_decode && call->pm_data_size && call->pm_data_init &&
	       call->pm_data_info && call->pm_sample && call->device_of_context &&
	       call->get_timestamp;
}

static cupti_result call_for(
	cupti_result (*function)(struct cupti_pm_params *params), const struct gpu *gpu)
{
	struct cupti_pm_params params = {
		.bytes = CUPTI_PM_BYTES(struct cupti_pm_params, sampling),
		.sampling = gpu->sampling,
	};

	return function(&params);
}

static uint64_t device_now(void)
{
	uint64_t now = 0;

	return cuda.cupti.call.get_timestamp(&now) == CUPTI_OK ? now : 0;
}

static cupti_result clear_data(struct gpu *gpu)
{
	struct cupti_pm_data_init_params params = {
		.bytes = CUPTI_PM_BYTES(struct cupti_pm_data_init_params, data),
		.sampling = gpu->sampling,
		.data_bytes = gpu->data_bytes,
		.data = gpu->data,
	};

	return cuda.cupti.call.pm_data_init(&params);
}

/* ---- starting ---- */

static uint64_t interval_ns(void)
{
	uint32_t interval_us = inject_session_gate()->pm_interval_us;

	return (interval_us ? interval_us : INTERVAL_US) * 1000ULL;
}

/* Turing and GA100 cannot by time: by cycles then, of which there are some in a nanosecond. */
static cupti_result configure(struct gpu *gpu)
{
	struct cupti_pm_config_params params = {
		.bytes = CUPTI_PM_BYTES(struct cupti_pm_config_params, trigger),
		.sampling = gpu->sampling,
		.image_bytes = gpu->host.image_bytes,
		.image = gpu->host.image,
		.buffer_bytes = BUFFER_BYTES,
		.interval = interval_ns(),
		.trigger = CUPTI_PM_BY_TIME,
	};
	cupti_result result = cuda.cupti.call.pm_set(&params);

	if (result == CUPTI_OK)
		return result;
	params.trigger = CUPTI_PM_BY_CLOCK;
	if (cuda.cupti.call.pm_set(&params) != CUPTI_OK)
		return result;
	inject_note(WIRE_NOTE_PM_SAMPLING,
		"This GPU (%s) is not sampled by time: a sample is taken every %llu cycles of its "
		"system clock, whose pace may change.",
		gpu->host.chip, (unsigned long long)params.interval);
	return CUPTI_OK;
}

static cupti_result make_data(struct gpu *gpu)
{
	struct cupti_pm_data_size_params params = {
		.bytes = CUPTI_PM_BYTES(struct cupti_pm_data_size_params, data_bytes),
		.sampling = gpu->sampling,
		.names = gpu->host.names,
		.count = gpu->host.count,
		.max_samples = MAX_SAMPLES,
	};
	cupti_result result = gpu->data ? CUPTI_OK : cuda.cupti.call.pm_data_size(&params);

	if (result != CUPTI_OK)
		return result;
	if (!gpu->data) {
		if (!params.data_bytes || params.data_bytes > DATA_BYTES)
			return CUPTI_E_OUT_OF_MEMORY;
		gpu->data = malloc(params.data_bytes);
		gpu->data_bytes = params.data_bytes;
	}
	return gpu->data ? clear_data(gpu) : CUPTI_E_OUT_OF_MEMORY;
}

static cupti_result enable(struct gpu *gpu, uint32_t number)
{
	struct cupti_pm_enable_params params = {
		.bytes = CUPTI_PM_BYTES(struct cupti_pm_enable_params, sampling),
		.device = number,
	};
	cupti_result result = cuda.cupti.call.pm_enable(&params);

	if (result != CUPTI_OK)
		return result;
	gpu->sampling = params.sampling;
	result = configure(gpu);
	return result == CUPTI_OK ? make_data(gpu) : result;
}

static cupti_result open_host(struct gpu *gpu, uint32_t number)
{
	struct cupti_profiler_params params = {
		.bytes = CUPTI_PM_BYTES(struct cupti_profiler_params, reserved)};
	cupti_result result = CUPTI_E_NOT_SUPPORTED;

	if (gpu->is_open)
		return CUPTI_OK;
	if (has_functions())
		result = cuda.cupti.call.profiler_initialize(&params);
	if (result == CUPTI_OK)
		result = pm_host_open(&gpu->host, number);
	gpu->is_open = result == CUPTI_OK;
	return result;
}

static void disable(struct gpu *gpu)
{
	if (gpu->sampling)
		call_for(cuda.cupti.call.pm_disable, gpu);
	gpu->sampling = NULL;
	gpu->is_started = false;
}

static void refuse(struct gpu *gpu, cupti_result result)
{
	disable(gpu);
	gpu->is_refused = true;
	pm_note_refusal(result, gpu->host.chip);
}

static void start(struct gpu *gpu)
{
	cupti_result result;

	gpu->begin = device_now();
	result = call_for(cuda.cupti.call.pm_start, gpu);
	gpu->is_started = result == CUPTI_OK;
	if (result != CUPTI_OK)
		refuse(gpu, result);
}

static void begin(struct gpu *gpu, uint32_t number)
{
	cupti_result result = open_host(gpu, number);

	if (result == CUPTI_OK)
		result = enable(gpu, number);
	if (result == CUPTI_OK)
		start(gpu);
	else
		refuse(gpu, result);
}

/* ---- samples ---- */

static void note_times(void)
{
	static bool is_noted;

	if (!is_noted)
		inject_note(WIRE_NOTE_PM_SAMPLING,
			"CUPTI gives samples of the GPU's counters times at which it was not "
			"sampled: they are left out.");
	is_noted = true;
}

static bool write_sample(
	const struct gpu *gpu, uint32_t number, const struct cupti_pm_sample_params *sample)
{
	struct wire_device_pm record = {
		.record = {.type = WIRE_RECORD_DEVICE_PM, .length_bytes = sizeof(record)},
		.start = sample->start,
		.end = sample->end,
		.device = cuda_device_id(number),
	};
	double values[WIRE_PM_MAX];

	if (!pm_host_values(&gpu->host, sample, values))
		return true;
	memcpy(record.values, values, sizeof(values));
	return cuda_write(&record.record);
}

static void send(const struct gpu *gpu, uint32_t number)
{
	struct cupti_pm_data_info_params info = {
		.bytes = CUPTI_PM_BYTES(struct cupti_pm_data_info_params, completed),
		.data = gpu->data,
		.data_bytes = gpu->data_bytes,
	};
	uint64_t now = device_now();

	if (cuda.cupti.call.pm_data_info(&info) != CUPTI_OK)
		return;
	for (size_t i = 0; i < info.completed && i < MAX_SAMPLES; i++) {
		struct cupti_pm_sample_params sample = {
			.bytes = CUPTI_PM_BYTES(struct cupti_pm_sample_params, end),
			.sampling = gpu->sampling,
			.data = gpu->data,
			.data_bytes = gpu->data_bytes,
			.index = i,
		};

		if (cuda.cupti.call.pm_sample(&sample) != CUPTI_OK)
			continue;
		if (sample.start >= sample.end || sample.start + CLOCK_SLACK_NS < gpu->begin ||
			sample.end > now + CLOCK_SLACK_NS)
			note_times();
		else if (!write_sample(gpu, number, &sample))
			return;
	}
}

static void note_overflow(void)
{
	static bool is_noted;

	if (!is_noted)
		inject_note(WIRE_NOTE_PM_SAMPLING,
			"Samples of the GPU's counters came faster than sonde reads them, and some are "
			"missing: take a longer --pm-interval.");
	is_noted = true;
}

/* False: no more can be had of it. */
static bool decode(struct gpu *gpu, uint32_t number, bool *ret_overflow)
{
	struct cupti_pm_decode_params params = {
		.bytes = CUPTI_PM_BYTES(struct cupti_pm_decode_params, overflow),
		.sampling = gpu->sampling,
		.data = gpu->data,
		.data_bytes = gpu->data_bytes,
	};
	cupti_result result = cuda.cupti.call.pm_decode(&params);

	if (result == CUPTI_E_OUT_OF_MEMORY || params.overflow)
		*ret_overflow = true;
	if (result != CUPTI_OK && result != CUPTI_E_OUT_OF_MEMORY) {
		refuse(gpu, result);
		return false;
	}
	if (result == CUPTI_OK)
		send(gpu, number);
	result = clear_data(gpu);
	if (result != CUPTI_OK)
		refuse(gpu, result);
	return result == CUPTI_OK && params.decoded == CUPTI_PM_DECODED_FULL && !*ret_overflow;
}

/* False: some are left. */
static bool decode_all(struct gpu *gpu, uint32_t number, bool *ret_overflow)
{
	for (unsigned i = 0; i < MAX_DECODES; i++)
		if (!decode(gpu, number, ret_overflow))
			return true;
	return false;
}

/* Of a buffer that was full no more comes until it is started anew. */
static void read_gpu(struct gpu *gpu, uint32_t number)
{
	bool overflow = false;

	decode_all(gpu, number, &overflow);
	if (!overflow || !gpu->is_started)
		return;
	note_overflow();
	call_for(cuda.cupti.call.pm_stop, gpu);
	start(gpu);
}

static void end(struct gpu *gpu, uint32_t number)
{
	bool overflow = false;

	if (!gpu->is_started)
		return;
	call_for(cuda.cupti.call.pm_stop, gpu);
	if (!decode_all(gpu, number, &overflow) || overflow)
		note_overflow();
	disable(gpu);
}

/* ---- on the program's threads ---- */

void cuda_pm_on_resource(uint32_t id, const struct cupti_resource_data *data)
{
	uint32_t number;

	if (id != CUPTI_RESOURCE_CONTEXT_CREATED || !data || !data->context ||
		!atomic_load_explicit(&is_watching, memory_order_relaxed))
		return;
	if (cuda.cupti.call.device_of_context(data->context, &number) != CUPTI_OK ||
		number >= MAX_GPUS)
		return;
	atomic_fetch_or_explicit(&used, 1ULL << number, memory_order_relaxed);
	inject_worker_wake(&cuda.writer);
}

/* ---- on the writer ---- */

void cuda_pm_watch(void)
{
	if (!inject_also_records(WIRE_ALSO_PMS) &&
		!atomic_load_explicit(&is_watching, memory_order_relaxed))
		return;
	if (!has_functions()) {
		pm_note_refusal(CUPTI_E_NOT_SUPPORTED, NULL);
		return;
	}
	atomic_store_explicit(&is_watching, true, memory_order_relaxed);
	cupti_enable_callback(
		&cuda.cupti, CUPTI_DOMAIN_RESOURCE, CUPTI_RESOURCE_CONTEXT_CREATED, true);
}

void cuda_pm_begin(void)
{
	static bool is_noted;

	if (!inject_also_records(WIRE_ALSO_PMS) || is_sampling)
		return;
	is_sampling = atomic_load_explicit(&is_watching, memory_order_relaxed);
	if (!is_sampling && !is_noted && has_functions())
		inject_note(WIRE_NOTE_PM_SAMPLING,
			"The program used CUDA before this recording, so that --pm-sampling has "
			"nothing: record it from its start.");
	is_noted = true;
}

void cuda_pm_follow(void)
{
	uint64_t bits = is_sampling ? atomic_load_explicit(&used, memory_order_relaxed) : 0;

	for (uint32_t i = 0; bits >> i && i < MAX_GPUS; i++)
		if (bits >> i & 1 && !gpus[i].is_started && !gpus[i].is_refused)
			begin(&gpus[i], i);
}

void cuda_pm_read(void)
{
	for (uint32_t i = 0; is_sampling && i < MAX_GPUS; i++)
		if (gpus[i].is_started)
			read_gpu(&gpus[i], i);
}

void cuda_pm_end(void)
{
	for (uint32_t i = 0; is_sampling && i < MAX_GPUS; i++)
		end(&gpus[i], i);
	is_sampling = false;
}
