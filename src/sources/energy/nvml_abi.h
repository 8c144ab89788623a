/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sonde uses of NVIDIA's management library, declared by itself: the library is opened when
 * sonde runs, and no header of NVIDIA is needed to build.
 */
#pragma once

#include <stddef.h>

typedef struct nvml_device *nvml_device;

enum nvml_result {
	NVML_OK = 0,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_GPU_IS_LOST = 15,
	NVML_VERSION_MISMATCH = 18, /* library and driver: one was updated without the other */
};

enum nvml_value_type {
	NVML_DOUBLE,
	NVML_UNSIGNED_INT,
	NVML_UNSIGNED_LONG,
	NVML_UNSIGNED_LONG_LONG,
	NVML_SIGNED_LONG_LONG,
	NVML_SIGNED_INT,
	NVML_UNSIGNED_SHORT,
};

union nvml_value {
	double f64;
	unsigned u32;
	unsigned long ulong;
	unsigned long long u64;
	long long i64;
	int i32;
	unsigned short u16;
};

#define NVML_FIELD_POWER_INSTANT 186 /* milliwatts */

struct nvml_field_value {
	unsigned field, scope; /* scope 0: the GPU's board */
	long long timestamp_us, latency_us;
	unsigned value_type; /* enum nvml_value_type: differs by driver */
	unsigned result;     /* enum nvml_result of this field */
	union nvml_value value;
};
_Static_assert(
	sizeof(struct nvml_field_value) == 40 && offsetof(struct nvml_field_value, value) == 32,
	"nvmlFieldValue_t");

#define NVML_TEMPERATURE_GPU 0
#define NVML_CLOCK_SM        1
#define NVML_TEXT_MAX        96

struct nvml_calls {
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error_string)(int result);
	int (*device_count)(unsigned *count);
	int (*device)(unsigned index, nvml_device *device);
	int (*uuid)(nvml_device device, char *text, unsigned size);
	int (*total_energy)(nvml_device device, unsigned long long *millijoules);
	int (*power_usage)(nvml_device device, unsigned *milliwatts);
	/* May be missing from old libraries: */
	int (*field_values)(nvml_device device, int count, struct nvml_field_value *values);
	int (*temperature)(nvml_device device, unsigned sensor, unsigned *celsius);
	int (*clock)(nvml_device device, unsigned type, unsigned *mhz);
	int (*mig_mode)(nvml_device device, unsigned *current, unsigned *pending);
	int (*compute_capability)(nvml_device device, int *major, int *minor);
	int (*enforced_limit)(nvml_device device, unsigned *milliwatts); /* the lowest in force */
	int (*set_limit)(nvml_device device, unsigned *milliwatts);
};
