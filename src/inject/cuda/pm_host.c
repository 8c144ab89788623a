/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which metrics a GPU is sampled by. A chip does not have all of them, and PM sampling takes those
 * alone that the chip counts in one pass: each is tried beside those before it.
 */
#include "inject/cuda/pm.h"

#include <math.h>
#include <stdlib.h>

#define PERCENT     ".avg.pct_of_peak_sustained_elapsed"
#define NO_OTHER    WIRE_PM_MAX
#define IMAGE_BYTES (64U << 20) /* no image is larger */

/* In the order in which they are tried; bytes are divided by the sample's time here. */
static const struct {
	uint8_t counter;    /* enum wire_pm_counter */
	uint8_t instead_of; /* only where the chip has none of this */
	const char *name;
} metrics[] = {
	{WIRE_PM_SM_BUSY, NO_OTHER, "sm__cycles_active" PERCENT},
	{WIRE_PM_TENSOR_BUSY, NO_OTHER, "sm__pipe_tensor_cycles_active" PERCENT},
	{WIRE_PM_DRAM_READ, NO_OTHER, "dram__read_throughput" PERCENT},
	{WIRE_PM_DRAM_WRITE, NO_OTHER, "dram__write_throughput" PERCENT},
	{WIRE_PM_DRAM_READ_BYTES, WIRE_PM_DRAM_READ, "dram__bytes_read.sum"},
	{WIRE_PM_DRAM_WRITE_BYTES, WIRE_PM_DRAM_WRITE, "dram__bytes_write.sum"},
	{WIRE_PM_NVLINK_RECEIVED_BYTES, NO_OTHER, "nvlrx__bytes.sum"},
	{WIRE_PM_NVLINK_SENT_BYTES, NO_OTHER, "nvltx__bytes.sum"},
	{WIRE_PM_PCIE_READ_BYTES, NO_OTHER, "pcie__read_bytes.sum"},
	{WIRE_PM_PCIE_WRITE_BYTES, NO_OTHER, "pcie__write_bytes.sum"},
};

static bool is_bytes(uint8_t counter)
{
	return counter >= WIRE_PM_DRAM_READ_BYTES;
}

/* ---- one set of metrics ---- */

static void drop(struct pm_host *host)
{
	struct cupti_host_params params = {
		.bytes = CUPTI_PM_BYTES(struct cupti_host_params, host), .host = host->host};

	if (host->host)
		cuda.cupti.call.host_deinitialize(&params);
	free(host->image);
	host->host = NULL;
	host->image = NULL;
	host->image_bytes = 0;
}

static cupti_result initialize(struct pm_host *host)
{
	struct cupti_host_init_params params = {
		.bytes = cupti_host_init_bytes(cuda.cupti.version),
		.type = CUPTI_FOR_PM_SAMPLING,
		.chip = host->chip,
		.availability = host->availability,
	};
	cupti_result result = cuda.cupti.call.host_initialize(&params);

	if (result == CUPTI_OK)
		host->host = params.host;
	return result;
}

static cupti_result make_image(struct pm_host *host)
{
	struct cupti_host_metrics_params metric = {
		.bytes = CUPTI_PM_BYTES(struct cupti_host_metrics_params, count),
		.host = host->host,
		.names = host->names,
		.count = host->count,
	};
	struct cupti_host_size_params size = {
		.bytes = CUPTI_PM_BYTES(struct cupti_host_size_params, image_bytes),
		.host = host->host,
	};
	struct cupti_host_image_params image = {
		.bytes = CUPTI_PM_BYTES(struct cupti_host_image_params, image),
		.host = host->host,
	};
	cupti_result result = cuda.cupti.call.host_add(&metric);

	if (result == CUPTI_OK)
		result = cuda.cupti.call.host_image_size(&size);
	if (result != CUPTI_OK)
		return result;
	if (!size.image_bytes || size.image_bytes > IMAGE_BYTES)
		return CUPTI_E_OUT_OF_MEMORY;
	host->image = malloc(size.image_bytes);
	if (!host->image)
		return CUPTI_E_OUT_OF_MEMORY;
	host->image_bytes = image.image_bytes = size.image_bytes;
	image.image = host->image;
	return cuda.cupti.call.host_image(&image);
}

/* The host object and the image for these metrics; CUPTI_E_NOT_SUPPORTED: not in one pass. */
static cupti_result build(struct pm_host *host)
{
	struct cupti_host_passes_params passes = {
		.bytes = CUPTI_PM_BYTES(struct cupti_host_passes_params, passes)};
	cupti_result result = initialize(host);

	if (result == CUPTI_OK)
		result = make_image(host);
	if (result == CUPTI_OK) {
		passes.image = host->image;
		passes.image_bytes = host->image_bytes;
		result = cuda.cupti.call.host_passes(&passes);
	}
	if (result == CUPTI_OK && passes.passes != 1)
		result = CUPTI_E_NOT_SUPPORTED;
	if (result != CUPTI_OK)
		drop(host);
	return result;
}

/* ---- the choice ---- */

static bool has(const struct pm_host *host, uint8_t counter)
{
	for (size_t i = 0; i < host->count; i++)
		if (host->counters[i] == counter)
			return true;
	return false;
}

static cupti_result choose(struct pm_host *host)
{
	cupti_result result = initialize(host);

	drop(host);
	for (size_t i = 0; result == CUPTI_OK && i < sizeof(metrics) / sizeof(*metrics); i++) {
		if (has(host, metrics[i].instead_of))
			continue;
		host->names[host->count] = metrics[i].name;
		host->counters[host->count++] = metrics[i].counter;
		if (build(host) == CUPTI_OK)
			drop(host);
		else
			host->count--;
	}
	if (result == CUPTI_OK && !host->count)
		result = CUPTI_E_NOT_SUPPORTED;
	return result;
}

/* What counters the device has, in a form of CUPTI's own, which knows chips of before without. */
static cupti_result read_availability(struct pm_host *host, uint32_t gpu)
{
	struct cupti_pm_availability_params params = {
		.bytes = CUPTI_PM_BYTES(struct cupti_pm_availability_params, image), .device = gpu};
	cupti_result result = cuda.cupti.call.pm_availability(&params);

	if (result != CUPTI_OK || !params.image_bytes || params.image_bytes > IMAGE_BYTES)
		return result;
	host->availability = malloc(params.image_bytes);
	if (!host->availability)
		return CUPTI_E_OUT_OF_MEMORY;
	params.image = host->availability;
	return cuda.cupti.call.pm_availability(&params);
}

static bool has_functions(void)
{
	const struct cupti_functions *call = &cuda.cupti.call;

	return call->chip_name && call->host_initialize && call->host_deinitialize &&
	       call->host_add && call->host_image_size && call->host_image && call->host_passes &&
	       call->host_values && call->pm_availability;
}

cupti_result pm_host_open(struct pm_host *ret_host, uint32_t gpu)
{
	struct cupti_chip_params chip = {
		.bytes = CUPTI_PM_BYTES(struct cupti_chip_params, name), .device = gpu};
	cupti_result result = CUPTI_E_NOT_SUPPORTED;

	*ret_host = (struct pm_host){0};
	if (has_functions())
		result = cuda.cupti.call.chip_name(&chip);
	ret_host->chip = chip.name;
	if (result == CUPTI_OK)
		result = read_availability(ret_host, gpu);
	if (result == CUPTI_OK)
		result = choose(ret_host);
	if (result == CUPTI_OK)
		result = build(ret_host);
	if (result != CUPTI_OK)
		pm_host_close(ret_host);
	return result;
}

void pm_host_close(struct pm_host *host)
{
	drop(host);
	free(host->availability);
	host->availability = NULL;
	host->count = 0;
}

/* ---- values ---- */

bool pm_host_values(
	const struct pm_host *host, const struct cupti_pm_sample_params *sample, double *ret_values)
{
	const char *names[WIRE_PM_MAX];
	double values[WIRE_PM_MAX] = {0};
	struct cupti_host_values_params params = {
		.bytes = CUPTI_PM_BYTES(struct cupti_host_values_params, values),
		.host = host->host,
		.data = sample->data,
		.data_bytes = sample->data_bytes,
		.index = sample->index,
		.names = names,
		.count = host->count,
		.values = values,
	};
	double seconds = (double)(sample->end - sample->start) / (double)WORKER_SECOND;

	for (size_t i = 0; i < host->count; i++)
		names[i] = host->names[i];
	if (cuda.cupti.call.host_values(&params) != CUPTI_OK)
		return false;
	for (size_t i = 0; i < WIRE_PM_MAX; i++)
		ret_values[i] = NAN;
	for (size_t i = 0; i < host->count; i++)
		ret_values[host->counters[i]] =
			is_bytes(host->counters[i]) ? values[i] / seconds : values[i];
	return true;
}
