/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/collectives/size.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/macros.h"

unsigned collective_element_bytes(const char *dtype)
{
	static const struct {
		const char *name;
		unsigned bytes;
	} types[] = {
		{"Float", 4},
		{"Double", 8},
		{"Half", 2},
		{"BFloat16", 2},
		{"Int", 4},
		{"Long", 8},
		{"Short", 2},
		{"Char", 1},
		{"Byte", 1},
		{"Bool", 1},
		{"ComplexFloat", 8},
		{"ComplexDouble", 16},
		{"Float8_e4m3fn", 1},
		{"Float8_e5m2", 1},
		{"Float8_e4m3fnuz", 1},
		{"Float8_e5m2fnuz", 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strcasecmp(types[i].name, dtype) == 0)
			return types[i].bytes;
	}
	return 0;
}

enum shape { OTHER, REDUCE_ALL, GATHER_ALL, SCATTER, EXCHANGE };

/* Names are "all_reduce", "allreduce", "ncclDevKernel_AllReduce_…", "_allgather_base". */
static enum shape shape_of(const char *name)
{
	static const struct {
		const char *letters;
		enum shape shape;
	} shapes[] = {
		{"allreduce", REDUCE_ALL},
		{"allgather", GATHER_ALL},
		{"reducescatter", SCATTER},
		{"alltoall", EXCHANGE},
	};
	char letters[128];
	size_t length = 0;

	for (; *name && *name != '(' && length + 1 < sizeof(letters); name++) {
		if (isalnum((unsigned char)*name))
			letters[length++] = (char)tolower((unsigned char)*name);
	}
	letters[length] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		if (strstr(letters, shapes[i].letters))
			return shapes[i].shape;
	}
	return OTHER;
}

int64_t collective_size_of_part(const char *name, int64_t part_bytes, int64_t ranks)
{
	int64_t all;

	if (shape_of(name) != GATHER_ALL)
		return part_bytes;
	return ranks < 1 || __builtin_mul_overflow(part_bytes, ranks, &all) ? INT64_MIN : all;
}

double collective_bus_factor(const char *name, uint32_t ranks)
{
	if (ranks < 2)
		return 0;
	switch (shape_of(name)) {
	case REDUCE_ALL:
		return 2.0 * (ranks - 1) / ranks;
	case GATHER_ALL:
	case SCATTER:
	case EXCHANGE:
		return (double)(ranks - 1) / ranks;
	default:
		return 0;
	}
}

static bool starts_with_any(const char *word, size_t length, const char *const *words)
{
	for (; *words; words++) {
		if (length >= strlen(*words) && strncmp(word, *words, strlen(*words)) == 0)
			return true;
	}
	return false;
}

void collective_algorithm(const char *kernel, char *algorithm, char *protocol, unsigned size)
{
	static const char *const algorithms[] = {"RING", "TREE", "COLLNET", "NVLS", "PAT", NULL};
	static const char *const protocols[] = {"LL", "SIMPLE", NULL};

	*algorithm = *protocol = '\0';
	if (strncmp(kernel, "nccl", 4) != 0)
		return;
	while (*kernel && *kernel != '(') {
		size_t length = strcspn(kernel, "_(");

		if (starts_with_any(kernel, length, algorithms))
			snprintf(algorithm, size, "%.*s", (int)length, kernel);
		else if (starts_with_any(kernel, length, protocols))
			snprintf(protocol, size, "%.*s", (int)length, kernel);
		kernel += length;
		kernel += *kernel == '_';
	}
}
