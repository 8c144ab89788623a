/* SPDX-License-Identifier: Apache-2.0 */
/* What the waiting sources' BPF objects have of the CPU sampler. */
#pragma once

#include <bpf/libbpf.h>

#include "sources/cpu/bpf_sampler.h"

/* Makes an opened object, not loaded yet, use the sampler's maps. Returns 0 or a negative errno. */
int share_sampler_maps(struct bpf_object *object, const struct bpf_sampler_parts *parts);
/* Adds how often and how long a program ran, where that is measured. */
void add_program_time(
	const struct bpf_program *program, uint64_t *run_count, uint64_t *run_time_ns);
