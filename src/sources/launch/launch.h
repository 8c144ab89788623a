/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launch source: takes the stack of every launch of device work, at the marker that the
 * injected library calls, through the CPU sampler's ring. A launch costs its thread one system call
 * and the unwinding.
 *
 * Call order: open → start → stop → account → free. One thread.
 */
#pragma once

#include <stdint.h>

#include "base/errmsg.h"
#include "sources/cpu/bpf_sampler.h"

struct launch_source;

struct launch_account {
	uint64_t run_count, run_time_ns; /* of the BPF program; 0: not measured */
	uint64_t taken, lost, busy;
};

/* Shares the maps of an open BPF sampler, which outlives the source. */
int launch_source_open(struct launch_source **ret_source, const struct bpf_sampler_parts *parts,
	struct errmsg *err);
struct launch_source *launch_source_free(struct launch_source *source);
/* `library`: path of libsonde-inject.so; every process that maps that file is probed. */
int launch_source_start(struct launch_source *source, const char *library, struct errmsg *err);
void launch_source_stop(struct launch_source *source);
void launch_source_account(const struct launch_source *source, struct launch_account *ret_account);
