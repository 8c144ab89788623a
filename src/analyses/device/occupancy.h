/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The theoretical occupancy of a CUDA kernel: how many of a multiprocessor's warps its launch
 * configuration lets be there at once, and what stops more. The rules are those of NVIDIA's
 * occupancy calculator (cuda_occupancy.h): registers are given to warps in units of 256, each
 * quarter of a multiprocessor having a quarter of them; shared memory to blocks in units of 128
 * bytes, before compute capability 8 of 256, and from 8 on each block has 1 KB more. What a kernel
 * achieves is less: blocks end at different times, and there may be too few of them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/trace.h"

enum occupancy_limit {
	OCCUPANCY_WARPS,  /* the multiprocessor is full, or what is left takes no block */
	OCCUPANCY_BLOCKS, /* it takes no more blocks, however small */
	OCCUPANCY_REGISTERS,
	OCCUPANCY_SHARED,
	OCCUPANCY_LIMIT_MAX,
};

/* "warps", "blocks", "registers", "shared memory" */
const char *occupancy_limit_name(enum occupancy_limit limit);

struct occupancy_launch {
	uint32_t block_threads;
	uint32_t registers; /* of one thread */
	uint64_t shared_bytes;
};

struct occupancy {
	uint32_t blocks, warps; /* on one multiprocessor */
	double share;           /* of its warps, 0 to 1 */
	enum occupancy_limit limit;
};

/* False where the GPU's facts are not known, or none of its multiprocessors could run it. */
bool occupancy_of(const struct capture_gpu *gpu, const struct occupancy_launch *launch,
	struct occupancy *ret_occupancy);
/* Of a row of a recording, on its GPU; else false. */
bool occupancy_of_work(
	const struct trace *trace, const struct trace_work *work, struct occupancy *ret_occupancy);
