/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The unwinder as the BPF programs compile it: their maps, the walk over native frames by the
 * tables of unwind/table.h, the walk over Python frames (python.bpf.h), and the record that both
 * fill (stacks.bpf.h). The includer defines, before including this file:
 *
 *   READ_USER(task, to, size, address)   reads memory of the task's process; 0 on success
 *   AWAITED_COPY_BUDGET                  stack copies per CPU and second while a table
 *                                        is on its way; not defined: any number
 *
 * For a stack it calls take_stacks(), and then send_sample(), both in stacks.bpf.h, with a struct
 * walk that has the task and a scratch of its own. The kernel's frames, if any, are in the scratch
 * before that.
 */
#pragma once

#ifndef AWAITED_COPY_BUDGET
#define AWAITED_COPY_BUDGET 0
#endif

#include "bpf/kernel.bpf.h"
#include "bpf/sampler_shared.h"
#include "unwind/frame_place.h"
#include "wire/sample.h"

#define UNWIND_READ_U64(context, address, value) read_stack_u64(context, address, value)
#define UNWIND_TABLE_WORD(table, index, value)                                                     \
	({                                                                                         \
		__u32 _word_index = (index);                                                       \
		const __u64 *_word = bpf_map_lookup_elem((table), &_word_index);                   \
		if (_word)                                                                         \
			*(value) = *_word;                                                         \
		!_word;                                                                            \
	})

struct walk;
static int read_stack_u64(struct walk *walk, __u64 address, __u64 *ret_value);
#include "unwind/step.h"

/* ---- set before load ---- */
const volatile bool whole_machine = false;
const volatile __u32 pid_namespace_level = 0;
const volatile __u32 pid_namespace_inode = 0;
const volatile __u64 wakeup_bytes = 1 << 20;

/* When the collector was woken last for something that it does not know. */
__u64 woken_ns = 0;

/* ---- maps ---- */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} samples SEC(".maps");

/* Thread groups by PID in the collector's namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SAMPLER_MAX_PROCESSES);
	__type(key, __u32);
	__type(value, struct sampler_process);
} processes SEC(".maps");

/* A hash and no LPM trie: programs that may sleep cannot use one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SAMPLER_MAX_MAPPINGS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct sampler_mapping_key);
	__type(value, struct sampler_mapping);
} mappings SEC(".maps");

/* By sampler_process.python; 0 is not used. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAMPLER_MAX_INTERPRETERS);
	__type(key, __u32);
	__type(value, struct python_image_facts);
} interpreters SEC(".maps");

/* Code objects whose names were sent: hashes, two to a set. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAMPLER_SENT_CODES);
	__type(key, __u32);
	__type(value, struct sampler_sent_codes);
} sent_codes SEC(".maps");

struct table_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SAMPLER_MAX_FILES);
	__type(key, __u32);
	__array(values, struct table_map);
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAMPLER_CACHED_RULES);
	__type(key, __u32);
	__type(value, struct sampler_cached_rule);
} cached_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SAMPLER_COUNT_MAX);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* The stack is read in pieces: one miss of the CPU's caches then serves several frames. */
#define STACK_WINDOW_BYTES 1024
#define NO_WINDOW          (1ULL << 63) /* no user address is near it */
#define PYTHON_FRAME_WORDS (sizeof(struct wire_python_frame) / 8)
/* A power of two above the words of all frames. */
#define MAX_FRAME_WORDS 4096
_Static_assert(MAX_FRAME_WORDS > WIRE_MAX_KERNEL_FRAMES + WIRE_MAX_USER_FRAMES +
					 WIRE_MAX_PYTHON_FRAMES * PYTHON_FRAME_WORDS,
	"frames fit");
/* Copies are a hundred times as long as other records: they fill half of the ring at most. */
#define COPIES_UNTIL_WAKEUPS 4
#define COPY_PAGES           (WIRE_MAX_STACK_COPY_BYTES / 4096)
#define RECORD_BYTES                                                                               \
	(sizeof(struct wire_sample) + MAX_FRAME_WORDS * 8 + sizeof(struct wire_stack_copy) +       \
		WIRE_MAX_STACK_COPY_BYTES)

#define CODE_RECORD_BYTES                                                                          \
	(sizeof(struct wire_python_code) + 3 * WIRE_PYTHON_TEXT_BYTES + WIRE_PYTHON_LINES_BYTES)
/* One read gets what is needed of a frame. */
#define PYTHON_WINDOW_BYTES 128

struct python_scratch {
	__u64 at;     /* the next frame to read */
	__u64 thread; /* PyThreadState; 0: none */
	__u64 interpreter;
	__u64 thread_pointer;
	__u64 gil_holder;
	__u32 reason; /* enum wire_python */
	__u32 gil;    /* enum wire_gil */
	__u32 holder_is_pointer;
	__u32 last_at;      /* word of the last frame in the record; 0: none yet */
	__u64 checked_code; /* of the frame before; 0: none */
	__u32 check;
	__u8 frame[PYTHON_WINDOW_BYTES + 8];
	__u8 code[PYTHON_CODE_BYTES + 8];
	__u8 record[CODE_RECORD_BYTES + 4096];
};

/* Working memory of one CPU: too large for the BPF stack, and for a PERCPU map's 32 KB. */
struct scratch {
	struct unwind_state state;
	struct sampler_process owner;
	__u32 owner_known;
	__u32 stop;
	__u32 kernel_frames;
	__u32 python_frames, user_frames; /* walked: more than the record has room for */
	__u32 evaluations_left_out, entries_left_out;
	struct return_instance *return_instance;
	__u32 return_instances_read;
	__u32 copies_in_window;
	__u64 copy_window_ns;
	__u64 copied;
	__u64 window_at; /* user address of the bytes in `window` */
	__u8 window[STACK_WINDOW_BYTES];
	struct sampler_process recent_owner; /* whose mappings `recent` holds */
	struct sampler_mapping recent[SAMPLER_RECENT_MAPPINGS];
	__u32 recent_next;
	struct registers
		kernel_registers; /* as the kernel has them: arm64's fill half a stack of BPF */
	struct wire_stack_copy registers;
	__u64 system_call; /* its number; -1 outside of one */
	struct python_scratch python;
	__u8 record[RECORD_BYTES + 4096]; /* slack: one page read may start below the limit */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one per CPU, set before load */
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* ---- helpers ---- */
static __always_inline void count(__u32 counter, __u64 amount)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &counter);

	if (value)
		*value += amount;
}

/* The task's PID in the collector's namespace; 0 when it is not visible there. */
static __always_inline __u32 visible_pid(struct task_struct *task)
{
	struct upid number;
	struct pid *pid;

	if (!pid_namespace_level)
		return BPF_CORE_READ(task, pid);
	pid = BPF_CORE_READ(task, thread_pid);
	if (!pid || BPF_CORE_READ(pid, level) < pid_namespace_level)
		return 0;
	bpf_core_read(&number.nr, sizeof(number.nr), &pid->numbers[pid_namespace_level].nr);
	bpf_core_read(&number.ns, sizeof(number.ns), &pid->numbers[pid_namespace_level].ns);
	if (BPF_CORE_READ(number.ns, ns.inum) != pid_namespace_inode)
		return 0;
	return number.nr;
}

static __always_inline __u32 visible_tgid(struct task_struct *task)
{
	return pid_namespace_level ? visible_pid(BPF_CORE_READ(task, group_leader))
				   : (__u32)BPF_CORE_READ(task, tgid);
}

/* bpf_loop wants a pointer into the BPF stack as its context. */
struct walk {
	struct scratch *scratch;
	struct task_struct *task;
	struct sampler_process *process;    /* NULL: not known */
	const struct python_target *python; /* of a struct python_image_facts */
};

/* ---- stack memory ---- */
static __noinline int refill_window(struct walk *walk, __u64 address)
{
	struct scratch *scratch = walk->scratch;

	scratch->window_at = address;
	if (!READ_USER(walk->task, scratch->window, sizeof(scratch->window), address))
		return 0;
	scratch->window_at = NO_WINDOW;
	return -1;
}

static __noinline int read_stack_u64(struct walk *walk, __u64 address, __u64 *ret_value)
{
	struct scratch *scratch = walk->scratch;
	__u64 offset = address - scratch->window_at;

	if (offset > STACK_WINDOW_BYTES - sizeof(*ret_value)) {
		/* Less than a window is left below the end of the stack. */
		if (refill_window(walk, address))
			return READ_USER(walk->task, ret_value, sizeof(*ret_value), address);
		offset = 0;
	}
	*ret_value = *(__u64 *)(scratch->window + offset);
	return 0;
}

/* ---- one frame ---- */

static __always_inline bool same_owner(
	const struct sampler_process *left, const struct sampler_process *right)
{
	return left->space == right->space && left->generation == right->generation;
}

/* The mapping that covers the address: the hash holds its power-of-two blocks. */
static __always_inline const struct sampler_mapping *look_up_mapping(
	struct scratch *scratch, __u64 address)
{
	struct sampler_mapping_key key = {.space = scratch->owner.space};
	__u64 sizes = scratch->owner.block_sizes;

	for (int bits = SAMPLER_BLOCK_BITS_MAX; bits >= SAMPLER_BLOCK_BITS_MIN; bits--) {
		const struct sampler_mapping *found;

		if (!(sizes >> bits & 1))
			continue;
		key.block_bits = bits;
		key.address = address >> bits << bits;
		found = bpf_map_lookup_elem(&mappings, &key);
		if (found)
			return found;
	}
	return NULL;
}

/* Neighbouring frames lie in few files: the last ones are kept, since a look-up costs some twenty
 * cache misses. */
static __always_inline const struct sampler_mapping *find_mapping(
	struct scratch *scratch, __u64 address)
{
	const struct sampler_mapping *found;
	__u32 at;

	if (!same_owner(&scratch->recent_owner, &scratch->owner)) {
		__builtin_memset(scratch->recent, 0, sizeof(scratch->recent));
		scratch->recent_owner = scratch->owner;
	}
	for (int i = 0; i < SAMPLER_RECENT_MAPPINGS; i++) {
		if (address >= scratch->recent[i].start && address < scratch->recent[i].end)
			return &scratch->recent[i];
	}
	found = look_up_mapping(scratch, address);
	if (!found)
		return NULL;
	at = scratch->recent_next++ & (SAMPLER_RECENT_MAPPINGS - 1);
	scratch->recent[at] = *found;
	return found;
}

/*
 * The table's rule for a virtual address of its file. Returns 0 or UNWIND_STOPPED(reason). A global
 * function is verified once and by itself. In the callback of bpf_loop, Linux 6.19.4 and later
 * compare each state of the search with those before, which takes minutes ("bpf: bpf_scc_visit
 * instance and backedges accumulation for bpf_loop()").
 */
int find_in_table(__u32 file, __u64 vaddr, struct unwind_rule *ret_rule);
__noinline int find_in_table(__u32 file, __u64 vaddr, struct unwind_rule *ret_rule)
{
	void *table = bpf_map_lookup_elem(&tables, &file);

	if (!table || !ret_rule)
		return UNWIND_STOPPED(WIRE_STOP_NO_TABLE);
	unwind_table_find(table, vaddr, ret_rule);
	return 0;
}

/* Finds the rule by mapping and table. Returns 0 or UNWIND_STOPPED(reason). */
static __noinline int find_rule(
	struct scratch *scratch, __u64 address, struct unwind_rule *ret_rule)
{
	const struct sampler_mapping *mapping = find_mapping(scratch, address);

	count(SAMPLER_COUNT_CACHE_MISS, 1);
	if (!mapping)
		return UNWIND_STOPPED(WIRE_STOP_NO_MAPPING);
	if (mapping->kind == SAMPLER_MAPPING_FRAME_POINTER) {
		ret_rule->cfa = UNWIND_CFA_FRAME_POINTER;
		ret_rule->fp = UNWIND_SAVED_AT_CFA;
		ret_rule->fp_offset = -16;
		ret_rule->ra_offset = -8;
		return 0;
	}
	return find_in_table(mapping->file, address - mapping->bias, ret_rule);
}

/* ---- rules found before ---- */

/* Unique for address, space and generation but for one chance in 2^64. */
static __always_inline __u64 rule_key(const struct scratch *scratch, __u64 address)
{
	__u64 owner = (__u64)scratch->owner.space << 32 | scratch->owner.generation;
	__u64 key = (address ^ owner * 0xff51afd7ed558ccdULL) * 0x9e3779b97f4a7c15ULL;

	return (key ^ key >> 32) * 0xc4ceb9fe1a85ec53ULL;
}

/*
 * Nearly every rule fits into one word: kinds of CFA, frame pointer and second register in bits 0,
 * 4 and 6, the CFA's offset in 8 to 31, those of the two registers in 32 and 48. False for the
 * others, which are looked up each time.
 */
#if !ARCH_HAS_LINK_REGISTER
static __always_inline bool pack_rule(const struct unwind_rule *rule, __u64 *ret_packed)
{
	bool plain = rule->cfa == UNWIND_CFA_NONE || rule->cfa == UNWIND_CFA_END ||
		     rule->cfa == UNWIND_CFA_SIGNAL || rule->ra_offset == -8;

	if (!plain || rule->ra != UNWIND_RA_AT_CFA || rule->cfa_addend ||
		rule->cfa_offset > 0x7fffff || rule->cfa_offset < -0x800000)
		return false;
	*ret_packed = rule->cfa | (__u64)rule->fp << 4 | (__u64)rule->second << 6 |
		      (__u64)((__u32)rule->cfa_offset & 0xffffff) << 8 |
		      (__u64)(__u16)rule->fp_offset << 32 | (__u64)(__u16)rule->second_offset << 48;
	return true;
}

static __always_inline void unpack_rule(__u64 packed, struct unwind_rule *ret_rule)
{
	ret_rule->cfa = packed & 15;
	ret_rule->fp = packed >> 4 & 3;
	ret_rule->second = packed >> 6 & 3;
	ret_rule->cfa_offset = (__s32)(__u32)packed >> 8;
	ret_rule->ra_offset = -8;
	ret_rule->fp_offset = (__s16)(packed >> 32);
	ret_rule->second_offset = (__s16)(packed >> 48);
}

#else
/* The second register is the link register: the return address takes its place. */
static __always_inline bool pack_rule(const struct unwind_rule *rule, __u64 *ret_packed)
{
	if (rule->ra == UNWIND_RA_LEAF_REGISTER || rule->second || rule->cfa_addend ||
		rule->cfa_offset > 0x7fffff || rule->cfa_offset < -0x800000)
		return false;
	*ret_packed = rule->cfa | (__u64)rule->fp << 4 | (__u64)rule->ra << 6 |
		      (__u64)((__u32)rule->cfa_offset & 0xffffff) << 8 |
		      (__u64)(__u16)rule->fp_offset << 32 | (__u64)(__u16)rule->ra_offset << 48;
	return true;
}

static __always_inline void unpack_rule(__u64 packed, struct unwind_rule *ret_rule)
{
	ret_rule->cfa = packed & 15;
	ret_rule->fp = packed >> 4 & 3;
	ret_rule->ra = packed >> 6 & 3;
	ret_rule->cfa_offset = (__s32)(__u32)packed >> 8;
	ret_rule->fp_offset = (__s16)(packed >> 32);
	ret_rule->ra_offset = (__s16)(packed >> 48);
}
#endif

/* ---- return probes ---- */

/*
 * A return address that a uretprobe replaced: the real one is in the task's list of pending
 * returns. True when pc was such a trampoline and is now the real address.
 */
static __noinline int leave_trampoline(struct walk *walk)
{
	struct scratch *scratch = walk->scratch;
	struct task_struct *task = walk->task;
	struct return_instance *instance = scratch->return_instance;
	struct xol_area *area;

	area = BPF_CORE_READ(task, mm, uprobes_state.xol_area);
	if (!area || scratch->state.pc != BPF_CORE_READ(area, vaddr))
		return 0;
	if (!scratch->return_instances_read) {
		scratch->return_instances_read = 1;
		instance = BPF_CORE_READ(task, utask, return_instances);
	}
	if (!instance)
		return 0;
	scratch->state.pc = BPF_CORE_READ(instance, orig_ret_vaddr);
	/* Probes chained on one return address share it: skip to the next replaced address. */
	for (int i = 0; i < SAMPLER_MAX_CHAINED_PROBES; i++) {
		if (!BPF_CORE_READ(instance, chained))
			break;
		instance = BPF_CORE_READ(instance, next);
		if (!instance)
			break;
	}
	scratch->return_instance = instance ? BPF_CORE_READ(instance, next) : NULL;
	return 1;
}

/* Words of the record before the user frames. */
static __always_inline __u32 frame_words(const struct scratch *scratch)
{
	return scratch->kernel_frames +
	       kept_frames(scratch->python_frames, WIRE_MAX_PYTHON_FRAMES) * PYTHON_FRAME_WORDS;
}

/* Is this native frame one that evaluates Python? */
static __noinline int is_evaluation(struct walk *walk, __u64 address)
{
	const struct python_image_facts *facts = (const struct python_image_facts *)walk->python;

	if (!facts)
		return 0;
	for (int i = 0; i < PYTHON_MAX_EVAL_RANGES; i++) {
		if (address >= facts->eval[i].start && address < facts->eval[i].end)
			return 1;
	}
	return 0;
}

static __always_inline void put_user_frame(struct walk *walk, __u64 address)
{
	struct scratch *scratch = walk->scratch;
	__u64 *frames = (__u64 *)(scratch->record + sizeof(struct wire_sample));
	__u32 at = frame_words(scratch) +
		   frame_place(scratch->user_frames, WIRE_MAX_USER_FRAMES, WIRE_OUTER_USER_FRAMES);

	at &= MAX_FRAME_WORDS - 1;
	if (scratch->user_frames >= WIRE_MAX_USER_FRAMES)
		scratch->evaluations_left_out += is_evaluation(walk, frames[at]);
	frames[at] = address;
	scratch->user_frames++;
}

static long walk_frame(__u32 index __attribute__((unused)), struct walk *walk)
{
	struct scratch *scratch = walk->scratch;
	__u64 address = unwind_lookup_pc(&scratch->state);
	__u64 key = rule_key(scratch, address), packed;
	__u32 slot = key & (SAMPLER_CACHED_RULES - 1);
	struct sampler_cached_rule *cached;
	struct unwind_rule rule = {0};
	int result;

	cached = bpf_map_lookup_elem(&cached_rules, &slot);
	if (!cached)
		return 1;
	packed = cached->packed;
	if ((cached->check ^ packed) == key) {
		unpack_rule(packed, &rule);
	} else {
		result = find_rule(scratch, address, &rule);
		if (result) {
			if (leave_trampoline(walk))
				return 0;
			scratch->stop = UNWIND_STOP_REASON(result);
		} else if (pack_rule(&rule, &packed)) {
			cached->packed = packed;
			cached->check = key ^ packed;
		}
	}
	put_user_frame(walk, address);
	if (scratch->stop != WIRE_STOP_DEPTH)
		return 1;
	if (rule.cfa == UNWIND_CFA_NONE && leave_trampoline(walk)) {
		scratch->user_frames--;
		return 0;
	}
	result = unwind_step(walk, &scratch->state, &rule);
	if (!result)
		return 0;
	scratch->stop = UNWIND_STOP_REASON(result);
	return 1;
}

#include "bpf/python.bpf.h"

#include "bpf/stacks.bpf.h"
