/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/process/proc_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/macros.h"
#include "base/strbuf.h"

#define ENVIRONMENT_BYTES ((size_t)4 << 20)

/* What those that start ranks call the numbers, the surest first. */
static const struct {
	const char *rank, *world_size, *local_rank;
} variables[] = {
	{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
	{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
	{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
	{"PMIX_RANK", NULL, NULL},
	{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

/* The value of a variable in an environment, whose entries are ended by NUL; NULL: none. */
static const char *find_variable(const struct strbuf *environment, const char *name)
{
	size_t length = name ? strlen(name) : 0;

	for (size_t at = 0; name && at < environment->length;
		at += strlen(environment->data + at) + 1) {
		const char *entry = environment->data + at;

		if (strncmp(entry, name, length) == 0 && entry[length] == '=')
			return entry + length + 1;
	}
	return NULL;
}

static int64_t find_number(const struct strbuf *environment, const char *name)
{
	const char *value = find_variable(environment, name);
	char *end;
	long number;

	if (!value || !*value)
		return -1;
	number = strtol(value, &end, 10);
	return *end || number < 0 || number > INT32_MAX ? -1 : number;
}

/* All numbers are of one starter: the first whose rank there is. */
struct proc_ranks proc_find_ranks(const struct strbuf *environment)
{
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		int64_t rank = find_number(environment, variables[i].rank);

		if (rank >= 0)
			return (struct proc_ranks){
				.rank = rank,
				.world_size = find_number(environment, variables[i].world_size),
				.local_rank = find_number(environment, variables[i].local_rank),
			};
	}
	return PROC_RANKS_UNKNOWN;
}

struct proc_ranks proc_read_ranks(uint32_t pid)
{
	_cleanup_strbuf_ struct strbuf environment = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/environ", pid);
	if (read_whole_file(path, ENVIRONMENT_BYTES, &environment) < 0)
		return PROC_RANKS_UNKNOWN;
	return proc_find_ranks(&environment);
}
