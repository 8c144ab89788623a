/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PC sampling of the stand-in for libcupti. It samples nothing: a program says which samples a
 * device would have taken, by double_pc. Calls in an order that NVIDIA's header does not allow are
 * counted and refused. Its "cubins" are text: a line "debug_line", then lines "FUNCTION PC FOLDER
 * FILE LINE".
 *
 *   DOUBLE_CUPTI_PC       what enabling answers, 0 if not set
 *   DOUBLE_CUPTI_PC_FULL  so many reads find the hardware's buffer full
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "double.h"
#include "inject/cuda/cupti_pc_abi.h"

#define EXPORT       __attribute__((visibility("default")))
#define MAX_CONTEXTS 64
#define MAX_SAMPLED  4096
#define AT_ONCE      3 /* instructions in a read, however large the buffer is: others remain */
#define PERIOD       12
#define PREFIX       "smsp__pcsamp_warps_issue_stalled_"

static const struct {
	uint32_t number;
	const char *name;
} reasons[] = {
	{2, PREFIX "long_scoreboard"},
	{9, PREFIX "math_pipe_throttle_not_issued"},
	{7, PREFIX "math_pipe_throttle"},
	{3, PREFIX "long_scoreboard_not_issued"},
	{12, PREFIX "selected"},
};
#define REASONS (sizeof(reasons) / sizeof(*reasons))

struct sampled {
	cupti_handle context;
	struct double_pc_sample sample;
};

struct context {
	cupti_handle handle;
	bool is_started, has_mode, has_control;
	struct cupti_pc_data *data;
	uint64_t dropped, foreign;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context contexts[MAX_CONTEXTS];
static struct sampled waiting[MAX_SAMPLED];
static size_t waiting_count;
static uint32_t faults; /* calls that the header does not allow */
static int full_reads = -1;

static int setting(const char *name)
{
	const char *text = getenv(name);

	return text ? (int)strtol(text, NULL, 10) : 0;
}

static size_t stride(void)
{
	uint32_t version;
	cupti_result cuptiGetVersion(uint32_t *);

	cuptiGetVersion(&version);
	return cupti_pc_bytes(version);
}

/* Every caller holds the lock. */
static struct context *find(cupti_handle handle)
{
	for (size_t i = 0; handle && i < MAX_CONTEXTS; i++)
		if (contexts[i].handle == handle)
			return &contexts[i];
	faults++;
	return NULL;
}

/* ---- the program's ---- */

static void sample(cupti_handle handle, const struct double_pc_sample *taken)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < MAX_CONTEXTS; i++)
		if (contexts[i].handle == handle && contexts[i].is_started &&
			waiting_count < MAX_SAMPLED)
			waiting[waiting_count++] = (struct sampled){handle, *taken};
	pthread_mutex_unlock(&lock);
}

static void lose(cupti_handle handle, uint64_t dropped, uint64_t foreign)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < MAX_CONTEXTS; i++)
		if (contexts[i].handle == handle && contexts[i].is_started) {
			contexts[i].dropped += dropped;
			contexts[i].foreign += foreign;
		}
	pthread_mutex_unlock(&lock);
}

static uint32_t fault_count(void)
{
	return faults;
}

static int is_started(cupti_handle handle)
{
	int so = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < MAX_CONTEXTS; i++)
		so |= contexts[i].handle == handle && contexts[i].is_started;
	pthread_mutex_unlock(&lock);
	return so;
}

EXPORT const struct double_pc_functions double_pc;
const struct double_pc_functions double_pc = {
	.sample = sample,
	.lose = lose,
	.faults = fault_count,
	.is_started = is_started,
};

/* ---- reading ---- */

static struct cupti_pc *pc_at(const struct cupti_pc_data *data, size_t index)
{
	return (void *)((char *)data->pcs + index * stride());
}

/* A sample of an instruction that `data` has already, or the next of it; false: no room. */
static bool put(struct cupti_pc_data *data, const struct double_pc_sample *taken)
{
	struct cupti_pc *pc;
	size_t i = 0;

	while (i < data->count && (pc_at(data, i)->cubin_crc != taken->cubin ||
					  pc_at(data, i)->pc_offset != taken->pc_offset))
		i++;
	if (i == AT_ONCE || i == data->room)
		return false;
	pc = pc_at(data, i);
	if (pc->bytes != stride())
		faults++;
	if (i == data->count) {
		data->count++;
		pc->cubin_crc = taken->cubin;
		pc->pc_offset = taken->pc_offset;
		pc->function_index = taken->function_index;
		pc->function = (char *)taken->function;
		pc->stall_count = 0;
	}
	pc->stalls[pc->stall_count++] = (struct cupti_pc_stall){taken->reason, taken->samples};
	return true;
}

static bool is_part(uint32_t number)
{
	for (size_t i = 0; i < REASONS; i++)
		if (reasons[i].number == number)
			return strstr(reasons[i].name, "_not_issued") != NULL;
	return false;
}

static void fill(struct context *context, struct cupti_pc_data *data)
{
	size_t kept = 0;

	data->count = 0;
	data->remaining = 0;
	data->samples = context->dropped + context->foreign;
	data->dropped = context->dropped;
	data->foreign_samples = context->foreign;
	context->dropped = context->foreign = 0;
	for (size_t i = 0; i < waiting_count; i++) {
		bool own = waiting[i].context == context->handle;

		if (own && put(data, &waiting[i].sample)) {
			/* What was not issued is in its whole reason, too. */
			if (!is_part(waiting[i].sample.reason))
				data->samples += waiting[i].sample.samples;
			continue;
		}
		data->remaining += own;
		waiting[kept++] = waiting[i];
	}
	waiting_count = kept;
}

/* ---- CUPTI's ---- */

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static bool is_sized(size_t bytes, size_t expected)
{
	faults += bytes != expected;
	return bytes == expected;
}

EXPORT cupti_result cuptiPCSamplingEnable(struct cupti_pc_params *params)
{
	cupti_result result = setting("DOUBLE_CUPTI_PC");

	pthread_mutex_lock(&lock);
	if (!is_sized(params->bytes, sizeof(*params)))
		result = CUPTI_E_INVALID_PARAMETER;
	for (size_t i = 0; result == CUPTI_OK && i < MAX_CONTEXTS; i++)
		if (!contexts[i].handle) {
			contexts[i] = (struct context){.handle = params->context};
			break;
		}
	pthread_mutex_unlock(&lock);
	return result;
}

static cupti_result set_started(const struct cupti_pc_params *params, bool on)
{
	struct context *context;
	bool is_wrong;

	pthread_mutex_lock(&lock);
	context = is_sized(params->bytes, sizeof(*params)) ? find(params->context) : NULL;
	is_wrong = !context || context->is_started == on || !context->has_control;
	faults += is_wrong;
	if (!is_wrong)
		context->is_started = on;
	pthread_mutex_unlock(&lock);
	return is_wrong ? CUPTI_E_INVALID_PARAMETER : CUPTI_OK;
}

EXPORT cupti_result cuptiPCSamplingStart(struct cupti_pc_params *params)
{
	return set_started(params, true);
}

EXPORT cupti_result cuptiPCSamplingStop(struct cupti_pc_params *params)
{
	return set_started(params, false);
}

EXPORT cupti_result cuptiPCSamplingDisable(struct cupti_pc_params *params)
{
	struct context *context;

	pthread_mutex_lock(&lock);
	context = find(params->context);
	if (context)
		*context = (struct context){0};
	pthread_mutex_unlock(&lock);
	return context ? CUPTI_OK : CUPTI_E_INVALID_PARAMETER;
}

EXPORT cupti_result cuptiPCSamplingGetData(struct cupti_pc_data_params *params)
{
	struct context *context;
	cupti_result result = CUPTI_OK;

	pthread_mutex_lock(&lock);
	if (full_reads < 0)
		full_reads = setting("DOUBLE_CUPTI_PC_FULL");
	context = is_sized(params->bytes, sizeof(*params)) ? find(params->context) : NULL;
	if (!context || !context->has_mode || params->data->bytes != sizeof(*params->data)) {
		faults++;
		result = CUPTI_E_INVALID_PARAMETER;
	} else if (full_reads > 0 && waiting_count) {
		full_reads--;
		params->data->is_full = 1;
		result = CUPTI_E_OUT_OF_MEMORY;
	} else {
		fill(context, params->data);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static void take_item(struct context *context, const struct cupti_pc_config *item)
{
	if (item->attribute == CUPTI_PC_MODE)
		context->has_mode = item->number == CUPTI_PC_CONTINUOUS;
	else if (item->attribute == CUPTI_PC_START_STOP)
		context->has_control = item->number == 1;
	else if (item->attribute == CUPTI_PC_BUFFER)
		context->data = item->pointer;
}

EXPORT cupti_result cuptiPCSamplingSetConfigurationAttribute(struct cupti_pc_config_params *params)
{
	struct context *context;

	pthread_mutex_lock(&lock);
	context = is_sized(params->bytes, sizeof(*params)) ? find(params->context) : NULL;
	for (size_t i = 0; context && i < params->count; i++)
		take_item(context, &params->items[i]);
	pthread_mutex_unlock(&lock);
	return context ? CUPTI_OK : CUPTI_E_INVALID_PARAMETER;
}

EXPORT cupti_result cuptiPCSamplingGetConfigurationAttribute(struct cupti_pc_config_params *params)
{
	for (size_t i = 0; i < params->count; i++)
		if (params->items[i].attribute == CUPTI_PC_PERIOD)
			params->items[i].number = PERIOD;
	return CUPTI_OK;
}

EXPORT cupti_result cuptiPCSamplingGetNumStallReasons(struct cupti_pc_reason_count_params *params)
{
	*params->count = REASONS;
	return CUPTI_OK;
}

EXPORT cupti_result cuptiPCSamplingGetStallReasons(struct cupti_pc_reasons_params *params)
{
	for (size_t i = 0; i < params->count && i < REASONS; i++) {
		params->indices[i] = reasons[i].number;
		snprintf(params->names[i], CUPTI_PC_REASON_BYTES, "%s", reasons[i].name);
	}
	return params->count == REASONS ? CUPTI_OK : CUPTI_E_INVALID_PARAMETER;
}

EXPORT cupti_result cuptiGetCubinCrc(struct cupti_cubin_crc_params *params)
{
	params->crc = double_pc_crc(params->cubin, params->cubin_bytes);
	return CUPTI_OK;
}

EXPORT cupti_result cuptiGetSassToSourceCorrelation(struct cupti_pc_line_params *params)
{
	char *text = strndup(params->cubin, params->cubin_bytes), *rest = text, *line;
	cupti_result result = CUPTI_E_INVALID_PARAMETER;

	while (result != CUPTI_OK && (line = strsep(&rest, "\n"))) {
		char function[64], folder[64], file[64];
		unsigned long pc;
		unsigned number;

		if (sscanf(line, "%63s %lx %63s %63s %u", function, &pc, folder, file, &number) !=
				5 ||
			pc != params->pc_offset || strcmp(function, params->function) != 0)
			continue;
		params->line = number;
		params->file = strdup(file);
		params->folder = strdup(folder);
		result = CUPTI_OK;
	}
	free(text);
	return result;
}
