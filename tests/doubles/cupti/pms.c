/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose GPUs' counters are sampled, on the stand-in for libcupti. Used by end-to-end
 * tests alone.
 *
 *     cuda-pms LIBCUPTI_DOUBLE HOW
 *
 * HOW: run: it waits until it is sampled, or that was refused; at-once: it does not; strange: times
 * of samples are of another clock. Prints what was sampled, the interval, and how many calls of
 * CUPTI were not allowed.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../nvtx/nvtx.h"
#include "double.h"

#define RUNTIME_LAUNCH 211
#define SAMPLES        8
#define SAMPLE_NS      1000000ULL
#define WAIT_TRIES     3000
#define WAIT_NS        10000000

static const struct double_functions *cupti;
static const struct double_pm_functions *pms;

static uint64_t device_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void await_sampling(uint32_t gpu)
{
	const struct timespec pause = {.tv_nsec = WAIT_NS};

	for (int i = 0; i < WAIT_TRIES && !pms->is_started(gpu) && !pms->refusals(); i++)
		nanosleep(&pause, NULL);
}

static void launch(const char *name, uint64_t start, uint64_t end)
{
	static uint32_t last_correlation;
	const struct cupti_kernel record = {
		.kind = CUPTI_KIND_CONCURRENT_KERNEL,
		.correlation = ++last_correlation,
		.name = name,
		.grid = {1, 1, 1},
		.block = {32, 1, 1},
		.start = start,
		.end = end,
	};

	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, record.correlation, CUPTI_SITE_ENTER, 0);
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, record.correlation, CUPTI_SITE_EXIT, 0);
	cupti->emit(&record, sizeof(record));
}

/*
 * Eight samples of a millisecond: multiprocessors 10 to 80 % busy, tensor pipes half of that; 2 MB
 * received by NVLink in each, and 1 MB read by PCIe.
 */
static int count(uint32_t gpu, uint64_t begin)
{
	static struct double_pm_value values[SAMPLES][10];
	int sampled = 0;

	for (int i = 0; i < SAMPLES; i++) {
		const struct double_pm_value counted[10] = {
			{"sm__cycles_active", 10.0 * (i + 1)},
			{"sm__pipe_tensor_cycles_active", 5.0 * (i + 1)},
			{"dram__read_throughput", 40},
			{"dram__write_throughput", 20},
			{"dram__bytes_read", 3e6},
			{"dram__bytes_write", 1e6},
			{"nvlrx__bytes", 2e6},
			{"nvltx__bytes", 0},
			{"pcie__read_bytes", 1e6},
			{"pcie__write_bytes", 5e5},
		};
		const struct double_pm_sample sample = {
			.start = begin + (uint64_t)i * SAMPLE_NS,
			.end = begin + (uint64_t)(i + 1) * SAMPLE_NS,
			.values = values[i],
			.count = 10,
		};

		memcpy(values[i], counted, sizeof(counted));
		sampled += pms->sample(gpu, &sample);
	}
	return sampled;
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

static void emit_devices(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		const struct cupti_device record = {.kind = CUPTI_KIND_DEVICE,
			.id = i,
			.capability_major = 9,
			.cuda_visible = 1,
			.name = "Double of a GPU"};

		cupti->emit(&record, sizeof(record));
	}
}

int main(int argument_count, char **arguments)
{
	void *library = argument_count == 3 ? dlopen(arguments[1], RTLD_NOW) : NULL;
	uint64_t begin;
	int sampled;

	cupti = library ? dlsym(library, "double_cupti") : NULL;
	pms = library ? dlsym(library, "double_pm") : NULL;
	if (!cupti || !pms) {
		fputs("usage: cuda-pms LIBCUPTI_DOUBLE HOW\n", stderr);
		return 2;
	}
	load_injection();
	emit_devices();
	cupti->resource_of(CUPTI_RESOURCE_CONTEXT_CREATED, double_pm_context(0), NULL);
	if (strcmp(arguments[2], "at-once") != 0)
		await_sampling(0);
	begin = device_now();
	/* The first two samples, and the next five; "gemm" is launched in a range. */
	launch("copy", begin, begin + 2 * SAMPLE_NS);
	nvtxRangePushA("attention");
	launch("gemm", begin + 2 * SAMPLE_NS, begin + 7 * SAMPLE_NS);
	nvtxRangePop();
	sampled = count(0, strcmp(arguments[2], "strange") == 0 ? 1000 : begin);
	printf("samples %d, interval %llu, other GPU %d, faults %u\n", sampled,
		(unsigned long long)pms->interval(0), pms->is_enabled(1), pms->faults());
	return 0;
}
