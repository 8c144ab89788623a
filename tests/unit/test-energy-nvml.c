/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs of NVIDIA, by a stand-in for their management library (tests/doubles/nvml). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "sources/energy/nvml_abi.h"
#include "sources/energy/source.h"
#include "sources/energy/worker.h"
#include "tests/doubles/nvml/double.h"

static struct nvml_double *double_;
static const struct energy_place place = {.root = "", .nvml = NVML_LIBRARY};

static int load(void **state _unused_)
{
	void *library = dlopen(NVML_LIBRARY, RTLD_NOW);

	double_ = library ? dlsym(library, "nvml_double") : NULL;
	return double_ ? 0 : -1;
}

static void begin(unsigned gpus)
{
	memset(double_, 0, sizeof(*double_));
	double_->gpus = gpus;
	for (unsigned i = 0; i < gpus; i++) {
		double_->gpu[i].milliwatts = 300000 + i * 1000;
		double_->gpu[i].value_type = NVML_UNSIGNED_INT;
		double_->gpu[i].major = 9;
	}
}

static uint64_t read_value(void *source, unsigned index, int *ret_error)
{
	struct energy_reading readings[ENERGY_MAX_RAILS] = {0};

	nvml_energy.read(source, readings);
	*ret_error = readings[index].error;
	assert_true(readings[index].time_ns > 0);
	return readings[index].value;
}

static void test_counter_of_a_gpu(void **state _unused_)
{
	struct energy_found found = {0};
	struct wire_energy_state states[1] = {0};
	void *source;
	int error;

	begin(1);
	double_->gpu[0].millijoules = 1234;
	assert_int_equal(nvml_energy.open(&source, &place, &found), 0);
	assert_int_equal(found.rails[0].kind, ENERGY_COUNTER);
	assert_int_equal(found.rails[0].quality, WIRE_ENERGY_COUNTER);
	assert_string_equal(found.rails[0].name, "gpu0");
	assert_int_equal(strncmp(found.rails[0].device, "GPU-", 4), 0);
	assert_int_equal(read_value(source, 0, &error), 1234);
	double_->gpu[0].energy_result = NVML_GPU_IS_LOST;
	read_value(source, 0, &error);
	assert_int_equal(error, -ENODEV);
	nvml_energy.look(source, states);
	assert_int_equal(states[0].temperature_mc, 40000);
	assert_int_equal(states[0].clock_mhz, 1980);
	nvml_energy.close(source);
}

/* Twice the 2.4 ms that some drivers take: it could not be read often enough to see it step. */
static void test_costly_counter_gives_way_to_power(void **state _unused_)
{
	struct energy_found found = {0};
	void *source;
	int error;

	begin(1);
	double_->gpu[0].energy_us = 5000;
	assert_int_equal(nvml_energy.open(&source, &place, &found), 0);
	assert_int_equal(found.rails[0].kind, ENERGY_POWER);
	assert_int_equal(found.rails[0].quality, WIRE_ENERGY_INTEGRATED);
	assert_int_equal(read_value(source, 0, &error), 300000000);
	nvml_energy.close(source);
	/* Where there is nothing else, it is read seldom. */
	double_->gpu[0].instant_result = NVML_NOT_SUPPORTED;
	found = (struct energy_found){0};
	assert_int_equal(nvml_energy.open(&source, &place, &found), 0);
	assert_int_equal(found.rails[0].kind, ENERGY_COUNTER);
	nvml_energy.close(source);
}

static void test_value_types_change(void **state _unused_)
{
	static const unsigned types[] = {NVML_DOUBLE, NVML_UNSIGNED_INT, NVML_UNSIGNED_LONG,
		NVML_UNSIGNED_LONG_LONG, NVML_SIGNED_LONG_LONG, NVML_SIGNED_INT,
		NVML_UNSIGNED_SHORT};
	struct energy_found found = {0};
	void *source;
	int error;

	begin(1);
	double_->gpu[0].energy_result = NVML_NOT_SUPPORTED;
	double_->gpu[0].milliwatts = 60000;
	assert_int_equal(nvml_energy.open(&source, &place, &found), 0);
	assert_int_equal(found.rails[0].quality, WIRE_ENERGY_INTEGRATED);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		double_->gpu[0].value_type = types[i];
		assert_int_equal(read_value(source, 0, &error), 60000000);
		assert_int_equal(error, 0);
	}
	double_->gpu[0].value_type = 77;
	read_value(source, 0, &error);
	assert_int_equal(error, -EINVAL);
	double_->gpu[0].value_type = NVML_UNSIGNED_INT;
	double_->gpu[0].field_result = NVML_NOT_SUPPORTED; /* of this value, not of the call */
	read_value(source, 0, &error);
	assert_int_equal(error, -ENOTSUP);
	double_->gpu[0].field_result = NVML_OK;
	double_->gpu[0].milliwatts = 0; /* a GPU that takes nothing is one that is not known */
	read_value(source, 0, &error);
	assert_int_equal(error, -ENODATA);
	nvml_energy.close(source);
}

/* What nvidia-smi shows is of the moment until GA100, and a mean of a second after it. */
static void test_usage_is_a_mean_on_newer_gpus(void **state _unused_)
{
	static const struct {
		int major, minor, quality;
	} cases[] = {{7, 5, WIRE_ENERGY_INTEGRATED}, {8, 0, WIRE_ENERGY_INTEGRATED},
		{8, 6, WIRE_ENERGY_AVERAGED}, {8, 9, WIRE_ENERGY_AVERAGED},
		{9, 0, WIRE_ENERGY_AVERAGED}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct energy_found found = {0};
		void *source;

		begin(1);
		double_->gpu[0].energy_result = double_->gpu[0].instant_result = NVML_NOT_SUPPORTED;
		double_->gpu[0].major = cases[i].major;
		double_->gpu[0].minor = cases[i].minor;
		assert_int_equal(nvml_energy.open(&source, &place, &found), 0);
		assert_int_equal(found.rails[0].quality, cases[i].quality);
		nvml_energy.close(source);
	}
}

static void test_two_gpus_whatever_cuda_may_see(void **state _unused_)
{
	struct energy_found found = {0};
	void *source;
	int error;

	begin(2);
	double_->gpu[0].millijoules = 10;
	double_->gpu[1].millijoules = 20;
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	assert_int_equal(nvml_energy.open(&source, &place, &found), 0);
	unsetenv("CUDA_VISIBLE_DEVICES");
	assert_int_equal(found.count, 2);
	assert_string_equal(found.rails[1].device, "GPU-00000000-0000-0000-0000-000000000001");
	assert_int_equal(read_value(source, 1, &error), 20);
	nvml_energy.close(source);
}

/* The limit that is in force, else the one that is set. */
static void test_power_limits(void **state _unused_)
{
	struct energy_found found = {0};
	void *source;

	begin(3);
	double_->gpu[0].enforced_milliwatts = 500000; /* the board is hotter than it may be */
	double_->gpu[0].set_milliwatts = 700000;
	double_->gpu[1].set_milliwatts = 650500;
	assert_int_equal(nvml_energy.open(&source, &place, &found), 0);
	assert_true(found.rails[0].limit_w == 500);
	assert_true(found.rails[1].limit_w == 650.5);
	assert_true(found.rails[2].limit_w == 0); /* not known */
	nvml_energy.close(source);
}

static void test_what_has_no_figure_says_why(void **state _unused_)
{
	struct energy_found found = {0};
	void *source;

	begin(4);
	double_->gpu[0].is_mig = true;
	double_->gpu[1].energy_result = double_->gpu[1].instant_result =
		double_->gpu[1].usage_result = NVML_NOT_SUPPORTED;
	double_->gpu[2].open_result = NVML_NO_PERMISSION;
	assert_int_equal(nvml_energy.open(&source, &place, &found), 0);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.rails[0].name, "gpu3");
	assert_non_null(strstr(found.absence.text, "gpu0 (GPU-"));
	assert_non_null(strstr(found.absence.text, "MIG"));
	assert_non_null(strstr(found.absence.text, "gpu1"));
	assert_non_null(strstr(found.absence.text, "gpu2 cannot be opened: Insufficient"));
	nvml_energy.close(source);
}

static void test_no_library_and_no_driver(void **state _unused_)
{
	struct energy_place nowhere = {.root = "", .nvml = "libnot-there.so.1"};
	struct energy_found found = {0};
	void *source;

	assert_true(nvml_energy.open(&source, &nowhere, &found) < 0);
	assert_non_null(strstr(found.absence.text, "libnot-there.so.1"));
	begin(1);
	double_->init_result = NVML_DRIVER_NOT_LOADED;
	found = (struct energy_found){0};
	assert_int_equal(nvml_energy.open(&source, &place, &found), -ENODEV);
	assert_non_null(strstr(found.absence.text, "Driver Not Loaded"));
	begin(0);
	found = (struct energy_found){0};
	assert_true(nvml_energy.open(&source, &place, &found) < 0);
	assert_non_null(strstr(found.absence.text, "has no GPU"));
}

/* A reset of the driver begins the counter anew: that is a gap. */
static void test_reset_is_a_gap(void **state _unused_)
{
	struct energy_found found = {0};
	struct energy_reading reading = {.time_ns = NS_PER_S};
	struct wire_energy_interval interval;
	struct energy_meter meter;
	void *source;

	begin(1);
	assert_int_equal(nvml_energy.open(&source, &place, &found), 0);
	energy_meter_init(&meter, &found.rails[0], false, 20 * NS_PER_MS);
	for (unsigned i = 0; i < 4; i++) {
		static const uint64_t values[] = {5000, 6000, 100, 200};

		reading.value = values[i];
		reading.time_ns += 100 * NS_PER_MS;
		if (energy_meter_add(&meter, &reading, 0, 0, &interval))
			assert_int_equal(
				interval.gap, i == 2 ? WIRE_ENERGY_WENT_BACK : WIRE_ENERGY_NO_GAP);
	}
	nvml_energy.close(source);
}

/* The thread is left behind; who waits for it waits no longer than it says. */
static void test_hanging_call_is_left_behind(void **state _unused_)
{
	const struct energy_source *source = &nvml_energy;
	struct energy_worker *worker;

	begin(1);
	double_->is_live = true;
	assert_int_equal(energy_worker_start(&worker, &source, 1, &place, 0), 0);
	assert_int_equal(
		energy_worker_wait(worker, worker->channels, monotonic_now_ns() + 60 * NS_PER_S),
		CHANNEL_READS);
	atomic_store(&double_->hangs, true);
	atomic_store(&double_->calls, 0);
	while (!atomic_load(&double_->calls))
		sched_yield();
	assert_false(energy_worker_stop(worker, monotonic_now_ns() + 20 * NS_PER_MS));
	atomic_store(&double_->hangs, false);
	/* It goes on, and ends by itself. */
	assert_true(energy_worker_stop(worker, monotonic_now_ns() + 60 * NS_PER_S));
	energy_worker_free(worker);
}

static void test_hanging_start_is_left_behind(void **state _unused_)
{
	const struct energy_source *source = &nvml_energy;
	struct energy_worker *worker;

	begin(1);
	atomic_store(&double_->hangs, true);
	assert_int_equal(energy_worker_start(&worker, &source, 1, &place, 0), 0);
	assert_int_equal(
		energy_worker_wait(worker, worker->channels, monotonic_now_ns() + 20 * NS_PER_MS),
		CHANNEL_OPENING);
	assert_false(energy_worker_stop(worker, 0));
	atomic_store(&double_->hangs, false);
	assert_true(energy_worker_stop(worker, monotonic_now_ns() + 60 * NS_PER_S));
	energy_worker_free(worker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counter_of_a_gpu),
		cmocka_unit_test(test_costly_counter_gives_way_to_power),
		cmocka_unit_test(test_value_types_change),
		cmocka_unit_test(test_usage_is_a_mean_on_newer_gpus),
		cmocka_unit_test(test_two_gpus_whatever_cuda_may_see),
		cmocka_unit_test(test_power_limits),
		cmocka_unit_test(test_what_has_no_figure_says_why),
		cmocka_unit_test(test_no_library_and_no_driver),
		cmocka_unit_test(test_reset_is_a_gap),
		cmocka_unit_test(test_hanging_call_is_left_behind),
		cmocka_unit_test(test_hanging_start_is_left_behind),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
