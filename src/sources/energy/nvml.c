/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs of NVIDIA, by their management library. Devices are known by their UUID: their order here is
 * not that of CUDA, which CUDA_VISIBLE_DEVICES changes. Each is read in the best way it has:
 *
 * - its energy counter, where looking at that often enough to see it step costs little;
 * - its power at the moment (POWER_INSTANT), integrated;
 * - its power as nvidia-smi shows it, which is a mean of the last second on most devices since
 *   Ampere.
 *
 * Any call may take long, or not return: the thread that reads is this source's own.
 */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "sources/energy/nvml_abi.h"
#include "sources/energy/source.h"

#define TICK_NS         (20 * NS_PER_MS)
#define COUNTER_STEP_NS (100 * NS_PER_MS) /* the usual one */
#define IMPLAUSIBLE_W   3000
#define TRIALS          3
/* Of NVIDIA's sensors against a meter: docs/energy.md. */
#define RELATIVE_ERROR 0.05

enum gpu_way {
	GPU_COUNTER,
	GPU_INSTANT,
	GPU_USAGE,
};

struct nvml {
	void *library;
	struct nvml_calls calls;
	bool is_initialised;
	unsigned count;
	struct {
		nvml_device device;
		enum gpu_way way;
	} gpus[ENERGY_MAX_RAILS];
};

static int nvml_errno(int result)
{
	switch (result) {
	case NVML_OK:
		return 0;
	case NVML_NOT_SUPPORTED:
		return -ENOTSUP;
	case NVML_NO_PERMISSION:
		return -EACCES;
	case NVML_DRIVER_NOT_LOADED:
	case NVML_GPU_IS_LOST:
		return -ENODEV;
	case NVML_TIMEOUT:
		return -ETIMEDOUT;
	default:
		return -EIO;
	}
}

/* -ENOSYS: the library is too old to be of use. */
static int find_calls(struct nvml *nvml)
{
	struct nvml_calls *calls = &nvml->calls;
	const struct {
		void *call;
		const char *name;
		bool is_needed;
	} names[] = {
		{&calls->init, "nvmlInit_v2", true},
		{&calls->shutdown, "nvmlShutdown", true},
		{&calls->error_string, "nvmlErrorString", true},
		{&calls->device_count, "nvmlDeviceGetCount_v2", true},
		{&calls->device, "nvmlDeviceGetHandleByIndex_v2", true},
		{&calls->uuid, "nvmlDeviceGetUUID", true},
		{&calls->power_usage, "nvmlDeviceGetPowerUsage", true},
		{&calls->total_energy, "nvmlDeviceGetTotalEnergyConsumption", false},
		{&calls->field_values, "nvmlDeviceGetFieldValues", false},
		{&calls->temperature, "nvmlDeviceGetTemperature", false},
		{&calls->clock, "nvmlDeviceGetClockInfo", false},
		{&calls->mig_mode, "nvmlDeviceGetMigMode", false},
		{&calls->compute_capability, "nvmlDeviceGetCudaComputeCapability", false},
		{&calls->enforced_limit, "nvmlDeviceGetEnforcedPowerLimit", false},
		{&calls->set_limit, "nvmlDeviceGetPowerManagementLimit", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		void *call = dlsym(nvml->library, names[i].name);

		if (!call && names[i].is_needed)
			return -ENOSYS;
		memcpy(names[i].call, &call, sizeof(call));
	}
	return 0;
}

/* The type of the value is the driver's choice, and may be another one the next time. */
static int field_milliwatts(const struct nvml_field_value *field, double *ret_milliwatts)
{
	switch (field->value_type) {
	case NVML_DOUBLE:
		*ret_milliwatts = field->value.f64;
		break;
	case NVML_UNSIGNED_INT:
		*ret_milliwatts = field->value.u32;
		break;
	case NVML_UNSIGNED_LONG:
		*ret_milliwatts = (double)field->value.ulong;
		break;
	case NVML_UNSIGNED_LONG_LONG:
		*ret_milliwatts = (double)field->value.u64;
		break;
	case NVML_SIGNED_LONG_LONG:
		*ret_milliwatts = (double)field->value.i64;
		break;
	case NVML_SIGNED_INT:
		*ret_milliwatts = field->value.i32;
		break;
	case NVML_UNSIGNED_SHORT:
		*ret_milliwatts = field->value.u16;
		break;
	default:
		return -EINVAL;
	}
	return 0;
}

static int read_counter(struct nvml *nvml, nvml_device device, uint64_t *ret_value)
{
	unsigned long long millijoules = 0;
	int r;

	if (!nvml->calls.total_energy)
		return -ENOTSUP;
	r = nvml_errno(nvml->calls.total_energy(device, &millijoules));
	*ret_value = millijoules;
	return r;
}

static int read_instant(struct nvml *nvml, nvml_device device, uint64_t *ret_value)
{
	struct nvml_field_value field = {.field = NVML_FIELD_POWER_INSTANT};
	double milliwatts;
	int r;

	if (!nvml->calls.field_values)
		return -ENOTSUP;
	r = nvml_errno(nvml->calls.field_values(device, 1, &field));
	if (r == 0)
		r = nvml_errno((int)field.result);
	if (r == 0)
		r = field_milliwatts(&field, &milliwatts);
	if (r < 0)
		return r;
	/* A board that is on takes something: 0 stands for "not known". */
	if (!(milliwatts > 0) || milliwatts > 1e9)
		return -ENODATA;
	*ret_value = (uint64_t)llround(milliwatts * 1000);
	return 0;
}

static int read_usage(struct nvml *nvml, nvml_device device, uint64_t *ret_value)
{
	unsigned milliwatts = 0;
	int r = nvml_errno(nvml->calls.power_usage(device, &milliwatts));

	if (r == 0 && !milliwatts)
		r = -ENODATA;
	*ret_value = (uint64_t)milliwatts * 1000;
	return r;
}

static int read_gpu(struct nvml *nvml, nvml_device device, enum gpu_way way, uint64_t *ret_value)
{
	switch (way) {
	case GPU_COUNTER:
		return read_counter(nvml, device, ret_value);
	case GPU_INSTANT:
		return read_instant(nvml, device, ret_value);
	case GPU_USAGE:
		break;
	}
	return read_usage(nvml, device, ret_value);
}

/* The quickest of a few calls; an error where none works. */
static int try_way(struct nvml *nvml, nvml_device device, enum gpu_way way, uint64_t *ret_cost_ns)
{
	int r = 0;

	*ret_cost_ns = UINT64_MAX;
	for (int i = 0; i < TRIALS && r == 0; i++) {
		uint64_t begin_ns = monotonic_now_ns(), value, cost_ns;

		r = read_gpu(nvml, device, way, &value);
		cost_ns = monotonic_now_ns() - begin_ns;
		*ret_cost_ns = MIN(*ret_cost_ns, cost_ns);
	}
	return r;
}

static int choose_way(
	struct nvml *nvml, nvml_device device, unsigned devices, enum gpu_way *ret_way)
{
	/* Half a step between two looks. */
	double affordable_ns = ENERGY_SHARE * (double)COUNTER_STEP_NS / 2 / devices;
	uint64_t counter_ns, other_ns;
	int counter = try_way(nvml, device, GPU_COUNTER, &counter_ns);

	*ret_way = GPU_COUNTER;
	if (counter == 0 && (double)counter_ns <= affordable_ns)
		return 0;
	*ret_way = GPU_INSTANT;
	if (try_way(nvml, device, GPU_INSTANT, &other_ns) == 0)
		return 0;
	*ret_way = GPU_COUNTER;
	if (counter == 0)
		return 0;
	*ret_way = GPU_USAGE;
	return try_way(nvml, device, GPU_USAGE, &other_ns);
}

/* GA100 and what was before it give the power of the moment; others the mean of a second. */
static bool usage_is_mean(struct nvml *nvml, nvml_device device)
{
	int major = 0, minor = 0;

	if (!nvml->calls.compute_capability ||
		nvml->calls.compute_capability(device, &major, &minor) != NVML_OK)
		return true;
	return major > 8 || (major == 8 && minor > 0);
}

/* 0: not known. */
static double read_limit_w(const struct nvml *nvml, nvml_device device)
{
	unsigned milliwatts = 0;

	if ((!nvml->calls.enforced_limit ||
		    nvml->calls.enforced_limit(device, &milliwatts) != NVML_OK) &&
		(!nvml->calls.set_limit || nvml->calls.set_limit(device, &milliwatts) != NVML_OK))
		return 0;
	return milliwatts / 1000.0;
}

static void fill_rail(
	struct nvml *nvml, nvml_device device, enum gpu_way way, struct energy_rail *rail)
{
	rail->kind = way == GPU_COUNTER ? ENERGY_COUNTER : ENERGY_POWER;
	rail->quality = way == GPU_COUNTER            ? WIRE_ENERGY_COUNTER
			: way == GPU_INSTANT          ? WIRE_ENERGY_INTEGRATED
			: usage_is_mean(nvml, device) ? WIRE_ENERGY_AVERAGED
						      : WIRE_ENERGY_INTEGRATED;
	rail->nj_per_unit = 1e6;
	rail->implausible_w = IMPLAUSIBLE_W;
	rail->limit_w = read_limit_w(nvml, device);
	rail->relative_error = RELATIVE_ERROR;
}

static void _printf_(2, 3) add_reason(struct energy_found *found, const char *format, ...)
{
	size_t length = strlen(found->absence.text);
	va_list arguments;

	if (length)
		length += (size_t)snprintf(
			found->absence.text + length, sizeof(found->absence.text) - length, "; ");
	length = MIN(length, sizeof(found->absence.text));
	va_start(arguments, format);
	vsnprintf(found->absence.text + length, sizeof(found->absence.text) - length, format,
		arguments);
	va_end(arguments);
}

static void open_gpu(
	struct nvml *nvml, unsigned index, unsigned devices, struct energy_found *found)
{
	char uuid[NVML_TEXT_MAX] = "";
	unsigned mig = 0, pending;
	struct energy_rail *rail;
	enum gpu_way way;
	nvml_device device;
	int r = nvml->calls.device(index, &device);

	if (r != NVML_OK) {
		add_reason(found, "gpu%u cannot be opened: %s", index, nvml->calls.error_string(r));
		return;
	}
	nvml->calls.uuid(device, uuid, sizeof(uuid));
	uuid[sizeof(uuid) - 1] = '\0';
	if (nvml->calls.mig_mode && nvml->calls.mig_mode(device, &mig, &pending) == NVML_OK &&
		mig) {
		add_reason(found,
			"gpu%u (%s) is divided into MIG instances, and its power is not known by "
			"instance: to measure it, disable MIG (sudo nvidia-smi -i %u -mig 0)",
			index, uuid, index);
		return;
	}
	r = choose_way(nvml, device, devices, &way);
	if (r < 0) {
		add_reason(found,
			"gpu%u (%s) reports neither energy nor power: %s; virtual GPUs and some "
			"laptops have no sensor",
			index, uuid, strerror(-r));
		return;
	}
	rail = energy_found_add(found, WIRE_ENERGY_GPU, uuid, "gpu%u", index);
	if (!rail)
		return;
	fill_rail(nvml, device, way, rail);
	nvml->gpus[nvml->count].device = device;
	nvml->gpus[nvml->count++].way = way;
}

static void nvml_close(void *state)
{
	struct nvml *nvml = state;

	if (!nvml)
		return;
	if (nvml->is_initialised)
		nvml->calls.shutdown();
	if (nvml->library)
		dlclose(nvml->library);
	free(nvml);
}

static int start_library(
	struct nvml *nvml, const struct energy_place *place, struct energy_found *found)
{
	int r;

	nvml->library = dlopen(place->nvml, RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library) {
		add_reason(found, "%s cannot be loaded: %s; NVIDIA's driver brings it", place->nvml,
			dlerror());
		return -ENOENT;
	}
	r = find_calls(nvml);
	if (r < 0) {
		add_reason(found, "%s is too old: install a newer driver of NVIDIA", place->nvml);
		return r;
	}
	r = nvml->calls.init();
	if (r != NVML_OK) {
		add_reason(found, "%s does not start: %s%s", place->nvml,
			nvml->calls.error_string(r),
			r == NVML_VERSION_MISMATCH
				? "; library and driver differ: restart the machine after an update"
				: "");
		return nvml_errno(r);
	}
	nvml->is_initialised = true;
	return 0;
}

static int nvml_open(
	void **ret_state, const struct energy_place *place, struct energy_found *ret_found)
{
	struct nvml *nvml = calloc(1, sizeof(*nvml));
	unsigned devices = 0;
	int r;

	if (!nvml)
		return -ENOMEM;
	r = start_library(nvml, place, ret_found);
	if (r == 0) {
		int result = nvml->calls.device_count(&devices);

		if (result != NVML_OK)
			add_reason(ret_found, "%s does not count its GPUs: %s", place->nvml,
				nvml->calls.error_string(result));
		else if (!devices)
			add_reason(ret_found, "%s has no GPU", place->nvml);
	}
	for (unsigned i = 0; i < devices && i < ENERGY_MAX_RAILS; i++)
		open_gpu(nvml, i, devices, ret_found);
	if (!nvml->count) {
		nvml_close(nvml);
		return r < 0 ? r : -ENOENT;
	}
	ret_found->tick_ns = TICK_NS;
	*ret_state = nvml;
	return 0;
}

static void nvml_read(void *state, struct energy_reading *readings)
{
	struct nvml *nvml = state;

	for (unsigned i = 0; i < nvml->count; i++) {
		uint64_t begin_ns = monotonic_now_ns();

		readings[i].error =
			read_gpu(nvml, nvml->gpus[i].device, nvml->gpus[i].way, &readings[i].value);
		readings[i].time_ns = begin_ns + (monotonic_now_ns() - begin_ns) / 2;
	}
}

static void nvml_look(void *state, struct wire_energy_state *states)
{
	struct nvml *nvml = state;

	for (unsigned i = 0; i < nvml->count; i++) {
		nvml_device device = nvml->gpus[i].device;
		unsigned celsius, mhz;

		if (nvml->calls.temperature &&
			nvml->calls.temperature(device, NVML_TEMPERATURE_GPU, &celsius) ==
				NVML_OK &&
			celsius < 1000)
			states[i].temperature_mc = (int32_t)celsius * 1000;
		if (nvml->calls.clock && nvml->calls.clock(device, NVML_CLOCK_SM, &mhz) == NVML_OK)
			states[i].clock_mhz = mhz;
	}
}

const struct energy_source nvml_energy = {
	.name = "nvml",
	.title = "GPUs of NVIDIA, from NVML",
	.parts = ENERGY_PART(WIRE_ENERGY_GPU),
	.may_hang = true,
	.open = nvml_open,
	.read = nvml_read,
	.look = nvml_look,
	.close = nvml_close,
};
