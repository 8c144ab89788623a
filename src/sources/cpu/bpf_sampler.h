/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other BPF sources of stacks (waits, launches) share with the CPU sampler: its maps and its
 * settings. Their samples go into its ring, and come out of its drain. The sampler itself is
 * bpf_sampler of sampler.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* By the names of unwinder.bpf.h. The descriptors stay the sampler's. */
struct bpf_sampler_parts {
	int samples, processes, mappings, interpreters, sent_codes, tables, cached_rules, counters;
	bool whole_machine;
	uint32_t pid_namespace_level, pid_namespace_inode;
	uint64_t wakeup_bytes;
};

/* `sampler`: an open one of bpf_sampler. */
void bpf_sampler_parts(void *sampler, struct bpf_sampler_parts *ret_parts);
