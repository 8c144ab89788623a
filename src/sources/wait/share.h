/* SPDX-License-Identifier: Apache-2.0 */
/* What the waiting sources' BPF objects have of the CPU sampler. */
#pragma once

#include <bpf/libbpf.h>

#include "sources/cpu/bpf_sampler.h"

/* Makes an opened object, not loaded yet, use the sampler's maps. Returns 0 or a negative errno. */
int share_sampler_maps(struct bpf_object *object, const struct bpf_sampler_parts *parts);
struct program_runs {
	uint64_t count, time_ns; /* 0: not measured */
	uint64_t missed;         /* the kernel did not run it: it ran on that CPU already */
};

/* Adds those of one program. */
void program_runs_add(struct program_runs *runs, const struct bpf_program *program);
