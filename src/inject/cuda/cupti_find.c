/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where libcupti may be. Two copies in one process do not share a subscription, so that the one
 * that the program has mapped, or will map from its wheels, comes first.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/cuda/cupti.h"

#define PATH_BYTES CUPTI_PATH_BYTES
/* The drivers of series 525 came with CUDA 12, those of series 580 with CUDA 13. */
#define DRIVER_OF_CUDA_12 525
#define DRIVER_OF_CUDA_13 580

/* Paths of libraries that the program has mapped; "" where it has not. */
struct mapped {
	char cupti[PATH_BYTES];
	char runtime[PATH_BYTES]; /* libcudart */
	char torch[PATH_BYTES];
	char driver[PATH_BYTES];                   /* libcuda */
	char packages[CUPTI_PACKAGES][PATH_BYTES]; /* that hold any of them */
	size_t package_count;
};

static void note_packages(struct mapped *mapped, const char *path)
{
	char *to = mapped->packages[mapped->package_count];

	if (mapped->package_count == CUPTI_PACKAGES || !cupti_packages_of(path, to))
		return;
	for (size_t i = 0; i < mapped->package_count; i++)
		if (!strcmp(mapped->packages[i], to))
			return;
	mapped->package_count++;
}

static int note_library(struct dl_phdr_info *info, size_t size, void *context)
{
	struct mapped *mapped = context;
	const char *base = strrchr(info->dlpi_name, '/');
	const struct {
		const char *prefix;
		char *to;
	} wanted[] = {
		{"/libcupti.so", mapped->cupti},
		{"/libcudart.so", mapped->runtime},
		{"/libtorch_cuda.so", mapped->torch},
		{"/libtorch_cpu.so", mapped->torch},
		{"/libcuda.so", mapped->driver},
	};

	for (size_t i = 0; base && i < sizeof(wanted) / sizeof(*wanted); i++)
		if (!strncmp(base, wanted[i].prefix, strlen(wanted[i].prefix)))
			snprintf(wanted[i].to, PATH_BYTES, "%s", info->dlpi_name);
	note_packages(mapped, info->dlpi_name);
	return 0;
}

/* The installed driver is known by the name of the file: libcuda.so.575.57.08. */
static unsigned driver_series(const char *path)
{
	char real[PATH_MAX];
	const char *number;

	if (!*path || !realpath(path, real))
		return 0;
	number = strstr(real, "libcuda.so.");
	return number ? (unsigned)strtoul(number + strlen("libcuda.so."), NULL, 10) : 0;
}

unsigned cupti_driver_cuda_major(void)
{
	struct mapped mapped = {0};
	unsigned series;

	dl_iterate_phdr(note_library, &mapped);
	series = driver_series(mapped.driver);
	if (series >= DRIVER_OF_CUDA_13)
		return 13; /* or later, which its own libcupti.so.13 serves */
	return series >= DRIVER_OF_CUDA_12 ? 12 : 0;
}

/* `path` with its last `levels` components replaced. */
static bool try_beside(
	cupti_try *try, void *context, const char *path, unsigned levels, const char *rest)
{
	char to[PATH_BYTES];
	char *end;

	snprintf(to, sizeof(to), "%s", path);
	for (unsigned i = 0; i < levels; i++) {
		end = strrchr(to, '/');
		if (!end)
			return false;
		*end = '\0';
	}
	if (strlen(to) + strlen(rest) >= sizeof(to))
		return false;
	end = to + strlen(to);
	memcpy(end, rest, strlen(rest) + 1);
	return access(to, R_OK) == 0 && try(context, to, false);
}

struct place {
	unsigned levels; /* to go up from the library */
	const char *rest;
};

/* In wheels of PyPI, conda environments, and toolkits. */
static const struct place beside_runtime[] = {
	{1, "/libcupti.so.13"}, /* nvidia/cu13/lib */
	{1, "/libcupti.so.12"},
	{1, "/libcupti.so"},
	{3, "/cuda_cupti/lib/libcupti.so.12"}, /* from nvidia/cuda_runtime/lib */
	{3, "/cuda_cupti/lib/libcupti.so.11.8"},
	{2, "/extras/CUPTI/lib64/libcupti.so"},
	{4, "/extras/CUPTI/lib64/libcupti.so"},
};
static const struct place beside_torch[] = {
	{1, "/libcupti.so"},
	{3, "/nvidia/cu13/lib/libcupti.so.13"},
	{3, "/nvidia/cuda_cupti/lib/libcupti.so.12"},
	{3, "/nvidia/cuda_cupti/lib/libcupti.so.11.8"},
};

static bool try_places(cupti_try *try, void *context, const char *library,
	const struct place *places, size_t count)
{
	for (size_t i = 0; *library && i < count; i++)
		if (try_beside(try, context, library, places[i].levels, places[i].rest))
			return true;
	return false;
}

/* The runtime's version is the program's; torch may have its runtime within. */
static bool try_beside_mapped(cupti_try *try, void *context, const struct mapped *mapped)
{
	return try_places(try, context, mapped->runtime, beside_runtime,
		       sizeof(beside_runtime) / sizeof(*beside_runtime)) ||
	       try_places(try, context, mapped->torch, beside_torch,
		       sizeof(beside_torch) / sizeof(*beside_torch));
}

/* Names that the loader knows. */
static bool try_loader(cupti_try *try, void *context)
{
	static const char *const names[] = {
		"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (try(context, names[i], false))
			return true;
	return false;
}

static bool try_mapped_packages(struct cupti_search *search, const struct mapped *mapped)
{
	for (size_t i = 0; i < mapped->package_count; i++)
		if (cupti_try_packages(search, mapped->packages[i]))
			return true;
	return false;
}

static bool try_program(struct cupti_search *search)
{
	char file[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", file, sizeof(file) - 1);

	file[length > 0 ? length : 0] = '\0';
	return cupti_try_program(search, length > 0 ? file : NULL, program_invocation_name);
}

bool cupti_find(struct cupti_search *search)
{
	const char *wanted = secure_getenv("SONDE_CUPTI");
	struct mapped mapped = {0};

	dl_iterate_phdr(note_library, &mapped);
	return (*mapped.cupti && search->try(search->context, mapped.cupti, true)) ||
	       (wanted && search->try(search->context, wanted, false)) ||
	       try_beside_mapped(search->try, search->context, &mapped) ||
	       try_mapped_packages(search, &mapped) || try_program(search) ||
	       try_loader(search->try, search->context) || cupti_try_toolkits(search);
}
