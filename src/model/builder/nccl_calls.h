/* SPDX-License-Identifier: Apache-2.0 */
/* Of collectives.c: NCCL's calls, by the ranges of its NVTX domain, and what they launch together.
 */
#pragma once

#include "model/builder/internal.h"

/* A range of NCCL's. */
struct nccl_call {
	uint64_t start_ns, end_ns;
	uint64_t bytes, communicator; /* 0: not known */
	const char *name;
	uint32_t pid, tid;
	uint32_t range;    /* index of the raw range */
	uint32_t sequence; /* 0: not known */
	uint32_t peer;     /* of a send or receive; UINT32_MAX: not known */
	uint8_t kind;
	bool has_bytes;
};

/* When calls launch: those of batch[first] … */
struct nccl_launch {
	uint64_t start_ns, end_ns;
	uint32_t pid, tid;
	uint32_t first, count;
};

/* As one process knows it. */
struct nccl_communicator {
	uint32_t ranks; /* 0: not known */
	uint32_t made;  /* how often a communicator of this id was made, with its ranks here */
	uint32_t calls; /* that all its ranks make alike */
};

struct nccl_calls {
	ARRAY_OF(struct nccl_call) calls;      /* by process, thread and time */
	ARRAY_OF(uint32_t) batch;              /* indices of calls */
	ARRAY_OF(struct nccl_launch) launches; /* by process, thread and time */
	struct intern communicator_keys;
	ARRAY_OF(struct nccl_communicator) communicators; /* by id of their keys */
	struct map_u64 processes;                         /* pids that have calls */
	ARRAY_OF(uint8_t) peers; /* of the group that is looked at: enum direction, by rank */
};

/* Of the builder's ranges, whatever of them was chosen. Returns 0 or -ENOMEM. */
int nccl_calls_init(struct nccl_calls *calls, const struct model_builder *builder);
void nccl_calls_done(struct nccl_calls *calls);

bool nccl_calls_has_process(const struct nccl_calls *calls, uint32_t pid);
/* Which launched what this thread launched at this moment? False: none did. */
bool nccl_calls_find(const struct nccl_calls *calls, uint32_t pid, uint32_t tid, uint64_t time_ns,
	uint32_t *ret_launch);
/* What each of the kernels that it launched moves; the sequence number is the first one's. Returns
 * 0 or -ENOMEM. */
int nccl_calls_describe(struct nccl_calls *calls, uint32_t launch, uint32_t kernels,
	struct model_collective *ret_collective);
/* Of a later one that runs a call of its own, in the order in which they were launched. */
uint32_t nccl_calls_sequence(const struct nccl_calls *calls, uint32_t launch, uint32_t kernel);
