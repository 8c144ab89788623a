/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's PM Sampling API and as much of its Profiler Host API as that needs, from CUDA 12.6 on, as
 * cupti_abi.h has the rest, and compared with the real headers by the same test. Structures begin
 * with their size up to the end of the last field, which is CUPTI_PM_BYTES.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "inject/cuda/cupti_abi.h"

#define CUPTI_PM_BYTES(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

enum {
	CUPTI_FOR_PM_SAMPLING = 1,
};

/* What a sample is taken by. */
enum cupti_pm_trigger {
	CUPTI_PM_BY_CLOCK = 0, /* cycles of the GPU's system clock */
	CUPTI_PM_BY_TIME = 1,  /* nanoseconds; not on Turing and GA100 */
};

enum cupti_pm_decoded {
	CUPTI_PM_DECODED_FULL = 1, /* up to the room of the counter data */
	CUPTI_PM_DECODED_ALL = 2,
};

struct cupti_profiler_params {
	size_t bytes;
	void *reserved;
};

struct cupti_chip_params {
	size_t bytes;
	void *reserved;
	size_t device;
	const char *name;
};

/* ---- the host's part: which metrics a chip has, and what they come to ---- */

struct cupti_host_init_params {
	size_t bytes;
	void *reserved;
	int type;
	uint32_t padding;
	const char *chip;
	const uint8_t *availability;
	cupti_handle host;
	const char *single_pass_set; /* 13.2 */
};

static inline size_t cupti_host_init_bytes(uint32_t version)
{
	return version >= CUPTI_VERSION_13_2
		       ? CUPTI_PM_BYTES(struct cupti_host_init_params, single_pass_set)
		       : CUPTI_PM_BYTES(struct cupti_host_init_params, host);
}

struct cupti_host_params {
	size_t bytes;
	void *reserved;
	cupti_handle host;
};

struct cupti_host_metrics_params {
	size_t bytes;
	void *reserved;
	cupti_handle host;
	const char **names;
	size_t count;
};

struct cupti_host_size_params {
	size_t bytes;
	void *reserved;
	cupti_handle host;
	size_t image_bytes;
};

struct cupti_host_image_params {
	size_t bytes;
	void *reserved;
	cupti_handle host;
	size_t image_bytes;
	uint8_t *image;
};

struct cupti_host_passes_params {
	size_t bytes;
	void *reserved;
	size_t image_bytes;
	uint8_t *image;
	size_t passes;
};

struct cupti_host_values_params {
	size_t bytes;
	void *reserved;
	cupti_handle host;
	const uint8_t *data;
	size_t data_bytes;
	size_t index;
	const char **names;
	size_t count;
	double *values;
};

/* ---- the device's part ---- */

struct cupti_pm_availability_params {
	size_t bytes;
	void *reserved;
	size_t device;
	size_t image_bytes; /* CUPTI's to say where `image` is NULL */
	uint8_t *image;
};

struct cupti_pm_enable_params {
	size_t bytes;
	void *reserved;
	size_t device;
	cupti_handle sampling;
};

/* Of disabling, starting and stopping. */
struct cupti_pm_params {
	size_t bytes;
	void *reserved;
	cupti_handle sampling;
};

struct cupti_pm_config_params {
	size_t bytes;
	void *reserved;
	cupti_handle sampling;
	size_t image_bytes;
	const uint8_t *image;
	size_t buffer_bytes;
	uint64_t interval;
	int trigger; /* enum cupti_pm_trigger; 12.8 has another field behind it */
};

struct cupti_pm_decode_params {
	size_t bytes;
	void *reserved;
	cupti_handle sampling;
	uint8_t *data;
	size_t data_bytes;
	int decoded; /* enum cupti_pm_decoded */
	uint8_t overflow;
	uint8_t padding[3];
};

struct cupti_pm_data_size_params {
	size_t bytes;
	void *reserved;
	cupti_handle sampling;
	const char **names;
	size_t count;
	uint32_t max_samples;
	uint32_t padding;
	size_t data_bytes;
};

struct cupti_pm_data_init_params {
	size_t bytes;
	void *reserved;
	cupti_handle sampling;
	size_t data_bytes;
	uint8_t *data;
};

struct cupti_pm_data_info_params {
	size_t bytes;
	void *reserved;
	const uint8_t *data;
	size_t data_bytes;
	size_t total, populated, completed;
};

struct cupti_pm_sample_params {
	size_t bytes;
	void *reserved;
	cupti_handle sampling;
	const uint8_t *data;
	size_t data_bytes;
	size_t index;
	uint64_t start, end;
};

_Static_assert(sizeof(struct cupti_pm_sample_params) == 64,
	"CUpti_PmSampling_CounterData_GetSampleInfo_Params");
