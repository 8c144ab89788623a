/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for NVIDIA's management library, named as that one is, since it is opened by name. A
 * test that loads it sets `nvml_double`; other programs say in NVML_DOUBLE what there is: words of
 * "gpus=2", "watts=300", "limit=700" (watts), "mig", "no-energy", "no-instant", "hang", which
 * blocks every reading.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#define NVML_DOUBLE_GPUS 4

struct nvml_double {
	unsigned gpus;
	int init_result;
	atomic_bool hangs; /* every reading, until it is false again */
	bool is_live;      /* millijoules by the clock, in steps of 100 ms */
	atomic_uint calls; /* readings so far */
	struct {
		unsigned long long millijoules;
		unsigned milliwatts, value_type;
		int open_result, energy_result, instant_result, field_result, usage_result;
		bool is_mig;
		int major, minor;   /* compute capability */
		unsigned energy_us; /* what a reading of the counter costs */
		unsigned enforced_milliwatts, set_milliwatts; /* power limits; 0: not supported */
	} gpu[NVML_DOUBLE_GPUS];
};
