/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose kernels are sampled, on the stand-in for libcupti. Used by end-to-end tests
 * alone.
 *
 *     cuda-pcs LIBCUPTI_DOUBLE HOW
 *
 * HOW: exit: one context, which is there to the end; destroy: it is destroyed; early: samples
 * before its first launch, too. Prints whether it is
 * sampled at its end, and how many calls of CUPTI were not allowed.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "double.h"
#include "inject/cuda/cupti_pc_abi.h"

#define RUNTIME_LAUNCH  211
#define LONG_SCOREBOARD 2
#define LONG_NOT_ISSUED 3
#define MATH_THROTTLE   7
#define SELECTED        12
#define CONTEXT         ((cupti_handle)0x1000)

static const struct double_functions *cupti;
static const struct double_pc_functions *pcs;
static uint32_t last_correlation;

/* As nvcc -lineinfo makes it; the other has no lines. */
static const char with_lines[] = "debug_line\n"
				 "_Z5scalePf 10 /src/app scale.cu 11\n"
				 "_Z5scalePf 20 /src/app scale.cu 12\n"
				 "_Z5scalePf 30 /src/app scale.cu 12\n";
static const char without_lines[] = "of a library\n";

static uint64_t device_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void launch(const char *name)
{
	struct cupti_kernel record = {
		.kind = CUPTI_KIND_CONCURRENT_KERNEL,
		.correlation = ++last_correlation,
		.name = name,
		.grid = {1, 1, 1},
		.block = {32, 1, 1},
	};

	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, record.correlation, CUPTI_SITE_ENTER, 0);
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, record.correlation, CUPTI_SITE_EXIT, 0);
	record.start = device_now();
	record.end = record.start + 1000;
	cupti->emit(&record, sizeof(record));
}

static void load_module(const char *text, size_t bytes)
{
	const struct cupti_module_data module = {.id = 1, .cubin = text, .cubin_bytes = bytes};

	cupti->resource_of(CUPTI_RESOURCE_MODULE_LOADED, CONTEXT, &module);
}

static void scale(uint64_t pc_offset, uint32_t reason, uint32_t samples)
{
	const struct double_pc_sample sample = {
		.cubin = double_pc_crc(with_lines, sizeof(with_lines)),
		.pc_offset = pc_offset,
		.function = "_Z5scalePf",
		.function_index = 1,
		.reason = reason,
		.samples = samples,
	};

	pcs->sample(CONTEXT, &sample);
}

static void gemm(uint64_t pc_offset, uint32_t reason, uint32_t samples)
{
	const struct double_pc_sample sample = {
		.cubin = double_pc_crc(without_lines, sizeof(without_lines)),
		.pc_offset = pc_offset,
		.function = "gemm",
		.function_index = 4,
		.reason = reason,
		.samples = samples,
	};

	pcs->sample(CONTEXT, &sample);
}

/* scale 150 samples, of which 90 in line 12; gemm 50. */
static void run(void)
{
	launch("_Z5scalePf");
	scale(0x10, SELECTED, 60);
	scale(0x20, LONG_SCOREBOARD, 70);
	scale(0x20, LONG_NOT_ISSUED, 65);
	scale(0x30, MATH_THROTTLE, 20);
	launch("gemm");
	gemm(0x100, MATH_THROTTLE, 40);
	gemm(0x110, SELECTED, 10);
	pcs->lose(CONTEXT, 7, 5);
}

static void load_injection(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	int (*initialize)(void);

	*(void **)&initialize = library ? dlsym(library, "InitializeInjection") : NULL;
	if (initialize)
		initialize();
}

static void emit_device(void)
{
	const struct cupti_device record = {
		.kind = CUPTI_KIND_DEVICE, .capability_major = 9, .name = "Double of a GPU"};

	cupti->emit(&record, sizeof(record));
}

int main(int count, char **arguments)
{
	void *library = count == 3 ? dlopen(arguments[1], RTLD_NOW) : NULL;

	cupti = library ? dlsym(library, "double_cupti") : NULL;
	pcs = library ? dlsym(library, "double_pc") : NULL;
	if (!cupti || !pcs) {
		fputs("usage: cuda-pcs LIBCUPTI_DOUBLE HOW\n", stderr);
		return 2;
	}
	load_injection();
	emit_device();
	cupti->resource_of(CUPTI_RESOURCE_CONTEXT_CREATED, CONTEXT, NULL);
	load_module(with_lines, sizeof(with_lines));
	load_module(without_lines, sizeof(without_lines));
	run();
	if (strcmp(arguments[2], "destroy") == 0)
		cupti->resource_of(CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING, CONTEXT, NULL);
	printf("sampled %d, faults %u\n", pcs->is_started(CONTEXT), pcs->faults());
	return 0;
}
