/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Keys and values of the BPF maps: shared by sampler.bpf.c and bpf_sampler.c. */
#pragma once

#include <linux/types.h>

#include "unwind/python_layout.h"
#include "unwind/table.h"

/* What BPF knows of a process. Processes that forked without changing a mapping share a space. */
struct sampler_process {
	__u32 space;      /* 0: its mappings are not known yet */
	__u32 generation; /* grows when a mapping of the space changes: outdates cached rules */
	__u32 sampled;
	__u32 python;      /* index into the interpreters map; 0: none */
	__u64 block_sizes; /* bit n: some mapping of the space has a block of 1 << n bytes */
	/* Stacks copied for an address in no known mapping since the collector wrote this entry. */
	__u32 unmapped_copies;
	__u32 reserved;
};

/* What a CPU's counters stood at when its sampling clock ticked last. */
struct sampler_counts {
	struct sampler_count {
		__u64 value, enabled_ns, running_ns; /* enabled_ns 0: not read yet */
	} cycles, instructions;
};

/* A mapping is known by the aligned power-of-two blocks that make it up. */
struct sampler_mapping_key {
	__u32 space;
	__u32 block_bits;
	__u64 address; /* of the block's start */
};

#define SAMPLER_BLOCK_BITS_MIN 12
#define SAMPLER_BLOCK_BITS_MAX 46

enum sampler_mapping_kind {
	SAMPLER_MAPPING_TABLE,         /* unwind by the table of `file` */
	SAMPLER_MAPPING_FRAME_POINTER, /* JIT code */
};

struct sampler_mapping {
	__u64 start, end;
	__u64 bias; /* address - bias = virtual address in the file */
	__u32 file; /* mapped_file.index, index into the tables map */
	__u32 kind;
};

/*
 * A rule found before, for the next sample with the same return address. All CPUs share these
 * without a lock: a reader that sees half of a write finds that `check` ^ `packed` is not its key.
 */
struct sampler_cached_rule {
	__u64 check;  /* key ^ packed */
	__u64 packed; /* see pack_rule() in unwinder.bpf.h */
};

/* Hashes of code objects, see sent_before() in python.bpf.h. */
struct sampler_sent_codes {
	__u64 hash[2];
};

enum sampler_counter {
	SAMPLER_COUNT_SAMPLES,
	SAMPLER_COUNT_LOST, /* the ring was full */
	SAMPLER_COUNT_CACHE_MISS,
	SAMPLER_COUNT_FRAMES,
	SAMPLER_COUNT_COPIES, /* stacks sent to be unwound in user space */
	SAMPLER_COUNT_COPIES_DENIED,
	SAMPLER_COUNT_PYTHON_FRAMES,
	SAMPLER_COUNT_CODES,         /* code objects sent */
	SAMPLER_COUNT_CODES_LOST,    /* the ring was full: sent when seen again */
	SAMPLER_COUNT_CHILDREN_LOST, /* forked while the table of processes was full: not sampled */
	SAMPLER_COUNT_MAX
};

#define SAMPLER_MAX_FILES          16384
#define SAMPLER_MAX_PROCESSES      65536
#define SAMPLER_MAX_MAPPINGS       (1 << 19) /* blocks */
#define SAMPLER_MAX_INTERPRETERS   4096
#define SAMPLER_SENT_CODES         32768
#define SAMPLER_CACHED_RULES       8192
#define SAMPLER_MAX_CHAINED_PROBES 16
/*
 * Stacks of a process that end in no known mapping: so many are copied, which is plenty for the
 * time until the collector knows the new mapping. After that the piece may never come, and there
 * are so many copies per CPU and second.
 */
#define SAMPLER_UNMAPPED_COPIES 512
#define SAMPLER_COPY_BUDGET     20
/* The collector is woken at most so often for processes and mappings that it does not know. */
#define SAMPLER_WAKE_NS 2000000ULL
/* Mappings that the last frames of a CPU lay in; a power of two. */
#define SAMPLER_RECENT_MAPPINGS 8
