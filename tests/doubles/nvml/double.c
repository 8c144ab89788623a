/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/doubles/nvml/double.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sources/energy/nvml_abi.h"

#define VISIBLE __attribute__((visibility("default")))
#define STEP_NS 100000000ULL

extern struct nvml_double nvml_double;
VISIBLE struct nvml_double nvml_double = {.gpus = 1};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static unsigned number_after(const char *text, const char *key, unsigned otherwise)
{
	const char *at = strstr(text, key);

	return at ? (unsigned)strtoul(at + strlen(key), NULL, 10) : otherwise;
}

static void read_variable(const char *text)
{
	nvml_double.gpus = number_after(text, "gpus=", 1);
	nvml_double.is_live = true;
	atomic_store(&nvml_double.hangs, strstr(text, "hang") != NULL);
	for (unsigned i = 0; i < NVML_DOUBLE_GPUS; i++) {
		nvml_double.gpu[i].milliwatts = number_after(text, "watts=", 300) * 1000;
		nvml_double.gpu[i].value_type = NVML_UNSIGNED_INT;
		nvml_double.gpu[i].is_mig = strstr(text, "mig") != NULL;
		nvml_double.gpu[i].energy_result =
			strstr(text, "no-energy") ? NVML_NOT_SUPPORTED : NVML_OK;
		nvml_double.gpu[i].instant_result =
			strstr(text, "no-instant") ? NVML_NOT_SUPPORTED : NVML_OK;
		nvml_double.gpu[i].enforced_milliwatts = number_after(text, "limit=", 0) * 1000;
		nvml_double.gpu[i].major = 9;
	}
}

static unsigned index_of(nvml_device device)
{
	return (unsigned)((uintptr_t)device - 1);
}

static void begin_reading(void)
{
	atomic_fetch_add(&nvml_double.calls, 1);
	while (atomic_load(&nvml_double.hangs))
		usleep(1000);
}

VISIBLE int nvmlInit_v2(void);
VISIBLE int nvmlShutdown(void);
VISIBLE const char *nvmlErrorString(int result);
VISIBLE int nvmlDeviceGetCount_v2(unsigned *count);
VISIBLE int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device);
VISIBLE int nvmlDeviceGetUUID(nvml_device device, char *text, unsigned size);
VISIBLE int nvmlDeviceGetTotalEnergyConsumption(nvml_device device, unsigned long long *energy);
VISIBLE int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *milliwatts);
VISIBLE int nvmlDeviceGetFieldValues(
	nvml_device device, int count, struct nvml_field_value *values);
VISIBLE int nvmlDeviceGetTemperature(nvml_device device, unsigned sensor, unsigned *celsius);
VISIBLE int nvmlDeviceGetClockInfo(nvml_device device, unsigned type, unsigned *mhz);
VISIBLE int nvmlDeviceGetMigMode(nvml_device device, unsigned *current, unsigned *pending);
VISIBLE int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor);
VISIBLE int nvmlDeviceGetEnforcedPowerLimit(nvml_device device, unsigned *milliwatts);
VISIBLE int nvmlDeviceGetPowerManagementLimit(nvml_device device, unsigned *milliwatts);

int nvmlInit_v2(void)
{
	const char *text = getenv("NVML_DOUBLE");

	if (text)
		read_variable(text);
	return nvml_double.init_result;
}

int nvmlShutdown(void)
{
	return NVML_OK;
}

const char *nvmlErrorString(int result)
{
	return result == NVML_DRIVER_NOT_LOADED ? "Driver Not Loaded"
	       : result == NVML_NO_PERMISSION   ? "Insufficient Permissions"
						: "an error of the stand-in";
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = nvml_double.gpus;
	return NVML_OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device)
{
	*device = (nvml_device)(uintptr_t)(index + 1);
	return nvml_double.gpu[index].open_result;
}

int nvmlDeviceGetUUID(nvml_device device, char *text, unsigned size)
{
	snprintf(text, size, "GPU-00000000-0000-0000-0000-00000000000%u", index_of(device));
	return NVML_OK;
}

int nvmlDeviceGetTotalEnergyConsumption(nvml_device device, unsigned long long *energy)
{
	unsigned index = index_of(device);

	begin_reading();
	if (nvml_double.gpu[index].energy_us)
		usleep(nvml_double.gpu[index].energy_us);
	*energy = nvml_double.gpu[index].millijoules;
	if (nvml_double.is_live)
		*energy = now_ns() / STEP_NS * (STEP_NS / 1000) *
			  nvml_double.gpu[index].milliwatts / 1000000;
	return nvml_double.gpu[index].energy_result;
}

int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *milliwatts)
{
	begin_reading();
	*milliwatts = nvml_double.gpu[index_of(device)].milliwatts;
	return nvml_double.gpu[index_of(device)].usage_result;
}

int nvmlDeviceGetFieldValues(nvml_device device, int count, struct nvml_field_value *values)
{
	unsigned index = index_of(device), milliwatts = nvml_double.gpu[index].milliwatts;

	begin_reading();
	for (int i = 0; i < count; i++) {
		memset(&values[i].value, 0xa5, sizeof(values[i].value));
		values[i].result = (unsigned)nvml_double.gpu[index].field_result;
		values[i].value_type = nvml_double.gpu[index].value_type;
		switch (values[i].value_type) {
		case NVML_DOUBLE:
			values[i].value.f64 = milliwatts;
			break;
		case NVML_UNSIGNED_INT:
			values[i].value.u32 = milliwatts;
			break;
		case NVML_UNSIGNED_SHORT:
			values[i].value.u16 = (unsigned short)milliwatts;
			break;
		case NVML_SIGNED_INT:
			values[i].value.i32 = (int)milliwatts;
			break;
		default:
			values[i].value.u64 = milliwatts;
		}
	}
	return nvml_double.gpu[index].instant_result;
}

int nvmlDeviceGetTemperature(nvml_device device, unsigned sensor, unsigned *celsius)
{
	*celsius = 40 + index_of(device);
	return NVML_OK;
}

int nvmlDeviceGetClockInfo(nvml_device device, unsigned type, unsigned *mhz)
{
	*mhz = 1980;
	return NVML_OK;
}

int nvmlDeviceGetMigMode(nvml_device device, unsigned *current, unsigned *pending)
{
	*current = *pending = nvml_double.gpu[index_of(device)].is_mig;
	return NVML_OK;
}

int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor)
{
	*major = nvml_double.gpu[index_of(device)].major;
	*minor = nvml_double.gpu[index_of(device)].minor;
	return NVML_OK;
}

static int tell_limit(unsigned limit, unsigned *milliwatts)
{
	*milliwatts = limit;
	return limit ? NVML_OK : NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetEnforcedPowerLimit(nvml_device device, unsigned *milliwatts)
{
	return tell_limit(nvml_double.gpu[index_of(device)].enforced_milliwatts, milliwatts);
}

int nvmlDeviceGetPowerManagementLimit(nvml_device device, unsigned *milliwatts)
{
	return tell_limit(nvml_double.gpu[index_of(device)].set_milliwatts, milliwatts);
}
