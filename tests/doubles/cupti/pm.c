/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PM sampling of the stand-in for libcupti. It counts nothing: a program says what a GPU would
 * have counted, by double_pm. Calls in an order, or with sizes, that NVIDIA's headers do not allow
 * are counted and refused. What a chip has, and counts in one pass, is as NVIDIA's libnvperf_host
 * of CUDA 12.9 says of the four chips here.
 *
 *   DOUBLE_CUPTI_PM       what asking for the device's counters answers, 0 if not set
 *   DOUBLE_CUPTI_PM_CHIP  GH100 if not set; GA100, TU102, GB100; others are not known
 *   DOUBLE_CUPTI_PM_FULL  so many times the hardware's buffer is full
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "double.h"
#include "inject/cuda/cupti_pm_abi.h"

#define EXPORT       __attribute__((visibility("default")))
#define MAX_GPUS     4
#define MAX_WAITING  4096
#define AT_ONCE      3 /* samples are decoded, however much room there is */
#define MAX_METRICS  16
#define IMAGE_MAGIC  0x69
#define DATA_MAGIC   0x64617461U
#define AVAILABLE    24 /* bytes of what says which counters there are */
#define LEAST_BUFFER 4096

static const struct {
	const char *name;
	const char *lacking; /* chips that do not have it, or not in one pass */
} metrics[] = {
	{"sm__cycles_active", ""},
	{"sm__pipe_tensor_cycles_active", "TU102"},
	{"dram__read_throughput", "TU102"},
	{"dram__write_throughput", "TU102"},
	{"dram__bytes_read", ""},
	{"dram__bytes_write", ""},
	{"nvlrx__bytes", ""},
	{"nvltx__bytes", ""},
	{"pcie__read_bytes", "GB100"},
	{"pcie__write_bytes", "GB100"},
};
#define METRICS (sizeof(metrics) / sizeof(*metrics))

struct gpu {
	bool is_enabled, is_started, is_configured;
	uint64_t interval;
	struct double_pm_sample waiting[MAX_WAITING];
	size_t count;
};

struct host {
	uint8_t metrics[MAX_METRICS];
	size_t count;
	bool is_one_pass;
};

struct data {
	uint32_t magic, count, room, padding;
	struct double_pm_sample samples[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu gpus[MAX_GPUS];
static uint32_t faults, refusals;
static bool is_initialized;
static int full_times = -1;

static const char *chip(void)
{
	return getenv("DOUBLE_CUPTI_PM_CHIP") ?: "GH100";
}

static int setting(const char *name)
{
	const char *text = getenv(name);

	return text ? (int)strtol(text, NULL, 10) : 0;
}

static cupti_result fault(void)
{
	faults++;
	return CUPTI_E_INVALID_PARAMETER;
}

/* ---- the program's ---- */

static int sample(uint32_t number, const struct double_pm_sample *counted)
{
	struct gpu *gpu = &gpus[number];
	int is_sampled;

	pthread_mutex_lock(&lock);
	is_sampled = gpu->is_started && gpu->count < MAX_WAITING;
	if (is_sampled)
		gpu->waiting[gpu->count++] = *counted;
	pthread_mutex_unlock(&lock);
	return is_sampled;
}

static uint32_t count_of(const uint32_t *counter)
{
	uint32_t count;

	pthread_mutex_lock(&lock);
	count = *counter;
	pthread_mutex_unlock(&lock);
	return count;
}

static uint32_t fault_count(void)
{
	return count_of(&faults);
}

static uint32_t refusal_count(void)
{
	return count_of(&refusals);
}

static int is_enabled(uint32_t number)
{
	int is;

	pthread_mutex_lock(&lock);
	is = gpus[number].is_enabled;
	pthread_mutex_unlock(&lock);
	return is;
}

static int is_started(uint32_t number)
{
	int is;

	pthread_mutex_lock(&lock);
	is = gpus[number].is_started;
	pthread_mutex_unlock(&lock);
	return is;
}

static uint64_t interval(uint32_t number)
{
	uint64_t of;

	pthread_mutex_lock(&lock);
	of = gpus[number].interval;
	pthread_mutex_unlock(&lock);
	return of;
}

EXPORT const struct double_pm_functions double_pm;
const struct double_pm_functions double_pm = {
	.sample = sample,
	.faults = fault_count,
	.refusals = refusal_count,
	.is_enabled = is_enabled,
	.is_started = is_started,
	.interval = interval,
};

/* ---- CUPTI's: the host ---- */

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define IS_SIZED(params, type, last) ((params)->bytes == CUPTI_PM_BYTES(struct type, last))

EXPORT cupti_result cuptiGetDeviceId(cupti_handle context, uint32_t *device)
{
	*device = (uint32_t)(((uintptr_t)context - 0x1000) / 0x100);
	return *device < MAX_GPUS ? CUPTI_OK : CUPTI_E_INVALID_PARAMETER;
}

EXPORT cupti_result cuptiProfilerInitialize(struct cupti_profiler_params *params)
{
	cupti_result result = CUPTI_OK;

	pthread_mutex_lock(&lock);
	is_initialized = true;
	if (!IS_SIZED(params, cupti_profiler_params, reserved))
		result = fault();
	pthread_mutex_unlock(&lock);
	return result;
}

EXPORT cupti_result cuptiDeviceGetChipName(struct cupti_chip_params *params)
{
	params->name = chip();
	return IS_SIZED(params, cupti_chip_params, name) && params->device < MAX_GPUS ? CUPTI_OK
										      : fault();
}

EXPORT cupti_result cuptiProfilerHostInitialize(struct cupti_host_init_params *params)
{
	static const char *const known[] = {"GH100", "GA100", "TU102", "GB100"};
	uint32_t version;
	cupti_result cuptiGetVersion(uint32_t *);

	cuptiGetVersion(&version);
	if (params->bytes != cupti_host_init_bytes(version) || !is_initialized ||
		params->type != CUPTI_FOR_PM_SAMPLING || !params->availability)
		return fault();
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strcmp(known[i], params->chip) != 0)
			continue;
		params->host = calloc(1, sizeof(struct host));
		return CUPTI_OK;
	}
	pthread_mutex_lock(&lock);
	refusals++;
	pthread_mutex_unlock(&lock);
	return CUPTI_E_NOT_SUPPORTED;
}

EXPORT cupti_result cuptiProfilerHostDeinitialize(struct cupti_host_params *params)
{
	free(params->host);
	return IS_SIZED(params, cupti_host_params, host) ? CUPTI_OK : fault();
}

/* A name's metric; METRICS: there is none. */
static size_t metric_of(const char *name)
{
	size_t length = strcspn(name, "."), i = 0;

	while (i < METRICS &&
		(strlen(metrics[i].name) != length || strncmp(metrics[i].name, name, length) != 0))
		i++;
	return i;
}

EXPORT cupti_result cuptiProfilerHostConfigAddMetrics(struct cupti_host_metrics_params *params)
{
	struct host *host = params->host;

	if (!IS_SIZED(params, cupti_host_metrics_params, count) || host->count)
		return fault();
	host->is_one_pass = true;
	for (size_t i = 0; i < params->count; i++) {
		size_t metric = metric_of(params->names[i]);

		if (metric == METRICS)
			return CUPTI_E_INVALID_PARAMETER;
		host->is_one_pass &=
			!strstr(metrics[metric].lacking, chip()) || !*metrics[metric].lacking;
		host->metrics[host->count++] = (uint8_t)metric;
	}
	return CUPTI_OK;
}

EXPORT cupti_result cuptiProfilerHostGetConfigImageSize(struct cupti_host_size_params *params)
{
	params->image_bytes = 3 + ((struct host *)params->host)->count;
	return IS_SIZED(params, cupti_host_size_params, image_bytes) ? CUPTI_OK : fault();
}

EXPORT cupti_result cuptiProfilerHostGetConfigImage(struct cupti_host_image_params *params)
{
	const struct host *host = params->host;

	if (!IS_SIZED(params, cupti_host_image_params, image) ||
		params->image_bytes != 3 + host->count)
		return fault();
	params->image[0] = IMAGE_MAGIC;
	params->image[1] = host->is_one_pass ? 1 : 2;
	params->image[2] = (uint8_t)host->count;
	memcpy(params->image + 3, host->metrics, host->count);
	return CUPTI_OK;
}

EXPORT cupti_result cuptiProfilerHostGetNumOfPasses(struct cupti_host_passes_params *params)
{
	if (!IS_SIZED(params, cupti_host_passes_params, passes) || params->image[0] != IMAGE_MAGIC)
		return fault();
	params->passes = params->image[1];
	return CUPTI_OK;
}

static double value_of(const struct double_pm_sample *counted, const char *name)
{
	size_t metric = metric_of(name);

	for (size_t i = 0; metric < METRICS && i < counted->count; i++)
		if (strcmp(counted->values[i].metric, metrics[metric].name) == 0)
			return counted->values[i].value;
	return 0;
}

EXPORT cupti_result cuptiProfilerHostEvaluateToGpuValues(struct cupti_host_values_params *params)
{
	const struct data *data = (const void *)params->data;

	if (!IS_SIZED(params, cupti_host_values_params, values) || data->magic != DATA_MAGIC ||
		params->index >= data->count)
		return fault();
	for (size_t i = 0; i < params->count; i++)
		params->values[i] = value_of(&data->samples[params->index], params->names[i]);
	return CUPTI_OK;
}

/* ---- CUPTI's: the device ---- */

static struct gpu *gpu_of(cupti_handle handle)
{
	size_t number = (size_t)((struct gpu *)handle - gpus);

	if (number < MAX_GPUS && gpus[number].is_enabled)
		return &gpus[number];
	faults++;
	return NULL;
}

EXPORT cupti_result cuptiPmSamplingGetCounterAvailability(
	struct cupti_pm_availability_params *params)
{
	cupti_result result = setting("DOUBLE_CUPTI_PM");

	pthread_mutex_lock(&lock);
	refusals += result != CUPTI_OK;
	if (!IS_SIZED(params, cupti_pm_availability_params, image) || !is_initialized)
		result = fault();
	pthread_mutex_unlock(&lock);
	if (result == CUPTI_OK && params->image)
		memset(params->image, 1, params->image_bytes);
	params->image_bytes = AVAILABLE;
	return result;
}

EXPORT cupti_result cuptiPmSamplingEnable(struct cupti_pm_enable_params *params)
{
	struct gpu *gpu = &gpus[params->device % MAX_GPUS];
	cupti_result result = CUPTI_OK;

	pthread_mutex_lock(&lock);
	if (!IS_SIZED(params, cupti_pm_enable_params, sampling) || gpu->is_enabled)
		result = fault();
	gpu->is_enabled = true;
	gpu->is_configured = gpu->is_started = false;
	gpu->count = 0;
	params->sampling = gpu;
	pthread_mutex_unlock(&lock);
	return result;
}

EXPORT cupti_result cuptiPmSamplingDisable(struct cupti_pm_params *params)
{
	struct gpu *gpu;

	pthread_mutex_lock(&lock);
	gpu = gpu_of(params->sampling);
	if (gpu)
		gpu->is_enabled = gpu->is_started = false;
	pthread_mutex_unlock(&lock);
	return gpu ? CUPTI_OK : CUPTI_E_INVALID_PARAMETER;
}

EXPORT cupti_result cuptiPmSamplingSetConfig(struct cupti_pm_config_params *params)
{
	struct gpu *gpu;
	cupti_result result = CUPTI_OK;

	pthread_mutex_lock(&lock);
	gpu = gpu_of(params->sampling);
	if (!gpu || !IS_SIZED(params, cupti_pm_config_params, trigger) || !params->interval ||
		params->buffer_bytes < LEAST_BUFFER || params->image[0] != IMAGE_MAGIC)
		result = fault();
	else if (params->image[1] != 1)
		result = CUPTI_E_NOT_SUPPORTED;
	else if (params->trigger == CUPTI_PM_BY_TIME &&
		 (strcmp(chip(), "GA100") == 0 || strcmp(chip(), "TU102") == 0))
		result = CUPTI_E_INVALID_PARAMETER;
	if (gpu && result == CUPTI_OK) {
		gpu->is_configured = true;
		gpu->interval = params->interval;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static cupti_result set_started(const struct cupti_pm_params *params, bool on)
{
	struct gpu *gpu;
	cupti_result result = CUPTI_OK;

	pthread_mutex_lock(&lock);
	gpu = gpu_of(params->sampling);
	if (!gpu || !IS_SIZED(params, cupti_pm_params, sampling) || !gpu->is_configured ||
		gpu->is_started == on)
		result = fault();
	else
		gpu->is_started = on;
	pthread_mutex_unlock(&lock);
	return result;
}

EXPORT cupti_result cuptiPmSamplingStart(struct cupti_pm_params *params)
{
	return set_started(params, true);
}

EXPORT cupti_result cuptiPmSamplingStop(struct cupti_pm_params *params)
{
	return set_started(params, false);
}

EXPORT cupti_result cuptiPmSamplingGetCounterDataSize(struct cupti_pm_data_size_params *params)
{
	params->data_bytes =
		sizeof(struct data) + params->max_samples * sizeof(struct double_pm_sample);
	return IS_SIZED(params, cupti_pm_data_size_params, data_bytes) ? CUPTI_OK : fault();
}

EXPORT cupti_result cuptiPmSamplingCounterDataImageInitialize(
	struct cupti_pm_data_init_params *params)
{
	struct data *data = (void *)params->data;

	if (!IS_SIZED(params, cupti_pm_data_init_params, data))
		return fault();
	*data = (struct data){
		.magic = DATA_MAGIC,
		.room = (uint32_t)((params->data_bytes - sizeof(*data)) /
				   sizeof(struct double_pm_sample)),
	};
	return CUPTI_OK;
}

static void take(struct gpu *gpu, struct data *data, struct cupti_pm_decode_params *params)
{
	size_t count = gpu->count < AT_ONCE ? gpu->count : AT_ONCE;

	if (count > data->room)
		count = data->room;
	memcpy(data->samples, gpu->waiting, count * sizeof(*data->samples));
	data->count = (uint32_t)count;
	gpu->count -= count;
	memmove(gpu->waiting, gpu->waiting + count, gpu->count * sizeof(*gpu->waiting));
	params->decoded = gpu->count ? CUPTI_PM_DECODED_FULL : CUPTI_PM_DECODED_ALL;
}

EXPORT cupti_result cuptiPmSamplingDecodeData(struct cupti_pm_decode_params *params)
{
	struct data *data = (void *)params->data;
	struct gpu *gpu;
	cupti_result result = CUPTI_OK;

	pthread_mutex_lock(&lock);
	if (full_times < 0)
		full_times = setting("DOUBLE_CUPTI_PM_FULL");
	gpu = gpu_of(params->sampling);
	/* Data that is decoded into was cleared since. */
	if (!gpu || !IS_SIZED(params, cupti_pm_decode_params, overflow) ||
		data->magic != DATA_MAGIC || data->count) {
		result = fault();
	} else if (full_times > 0 && gpu->count) {
		full_times--;
		gpu->count = 0;
		params->overflow = 1;
		result = CUPTI_E_OUT_OF_MEMORY;
	} else {
		take(gpu, data, params);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

EXPORT cupti_result cuptiPmSamplingGetCounterDataInfo(struct cupti_pm_data_info_params *params)
{
	const struct data *data = (const void *)params->data;

	params->total = data->room;
	params->populated = params->completed = data->count;
	return IS_SIZED(params, cupti_pm_data_info_params, completed) ? CUPTI_OK : fault();
}

EXPORT cupti_result cuptiPmSamplingCounterDataGetSampleInfo(struct cupti_pm_sample_params *params)
{
	const struct data *data = (const void *)params->data;

	if (!IS_SIZED(params, cupti_pm_sample_params, end) || params->index >= data->count)
		return fault();
	params->start = data->samples[params->index].start;
	params->end = data->samples[params->index].end;
	return CUPTI_OK;
}
