/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank of a distributed job a process is, as what started it says in its environment. */
#pragma once

#include <stdint.h>

#include "base/strbuf.h"

/* -1: not known. */
struct proc_ranks {
	int64_t rank, world_size, local_rank;
};

#define PROC_RANKS_UNKNOWN ((struct proc_ranks){.rank = -1, .world_size = -1, .local_rank = -1})

/*
 * As torchrun, Open MPI, MPICH, PMIx and Slurm say it. It is the environment that the program was
 * started with: what it sets itself is not seen. All -1 where there is none, or the process has
 * ended.
 */
struct proc_ranks proc_read_ranks(uint32_t pid);
/* The same of an environment that was read: NAME=VALUE, each ended by a NUL. */
struct proc_ranks proc_find_ranks(const struct strbuf *environment);
