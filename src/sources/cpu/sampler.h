/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who takes the CPU samples: the BPF sampler (bpf_sampler.c; unwinds in the kernel), or the perf
 * sampler (perf_sampler.c; no privileges: registers and a copy of the stack, unwound by the
 * collector). Both emit the same wire records. cpu_source.c chooses one, and is the struct source
 * (sources/source.h) through which the session runs it.
 *
 * Call order: probe? → open → follow* → start → (set_active | drain)* → stop → drain → account →
 * close. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "sources/unwinder.h"
#include "wire/sample.h"

struct cpu_sampler_options {
	uint64_t period_ns;  /* between two samples of one busy CPU */
	bool whole_machine;  /* every process, else only followed ones and their descendants */
	bool counts_work;    /* cycles and instructions of each sample, where CPUs count them */
	uint32_t ring_bytes; /* 0: chosen by rate and CPU count */
};

struct cpu_sampler_account {
	uint64_t samples;
	uint64_t run_count, run_time_ns; /* of the BPF program; 0: not measured */
	uint64_t lost_per_cpu[1024];     /* by CPU number */
	uint32_t cpu_count;
	char notes[1024]; /* what limits this sampler here and what would help: one sentence a line
			   */
};

typedef void cpu_sampler_record_function(void *context, const struct wire_record *record);

struct cpu_sampler {
	const char *name; /* "bpf" or "user": the capture's unwind_mode */
	/* 0 when it can run here and now; else a negative errno and what would make it run. */
	int (*probe)(struct errmsg *reason);
	int (*open)(
		void **ret_sampler, const struct cpu_sampler_options *options, struct errmsg *err);
	/* Samples this process from start() on, and all children it makes from now on. */
	int (*follow)(void *sampler, uint32_t pid, struct errmsg *err);
	int (*start)(void *sampler, struct errmsg *err);
	/* Takes no samples, or takes them again, as after start(): who is followed stays followed.
	 */
	int (*set_active)(void *sampler, bool active);
	/* Stores up to `capacity` descriptors that become readable when much is waiting; returns
	 * their number. */
	size_t (*descriptors)(void *sampler, int *ret_fds, size_t capacity);
	/* Hands over all waiting records, oldest first per CPU. Returns 0 or a negative errno. */
	int (*drain)(void *sampler, cpu_sampler_record_function *on_record, void *context);
	void (*stop)(void *sampler);
	/* Of a sampler that unwinds by itself; NULL: the collector unwinds copies of stacks. */
	void (*unwinder)(void *sampler, struct source_unwinder *ret_unwinder);
	void (*account)(void *sampler, struct cpu_sampler_account *ret_account);
	void (*close)(void *sampler); /* accepts NULL */
};

extern const struct cpu_sampler bpf_sampler;
extern const struct cpu_sampler perf_sampler;
