/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Waits measured from begin to end: what is kept of a thread, and how a wait is sent or counted.
 * Included after unwinder.bpf.h.
 */
#pragma once

#include "bpf/exact_shared.h"
#include "bpf/reason.bpf.h"

#define STATE_INTERRUPTIBLE 0x0001
#define NO_SYSTEM_CALL      (1ULL << 62)
#define NO_WAITS            (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)

const volatile __u64 wait_min_ns = 0; /* the stack of shorter waits is not taken */

/* Set by the collector: waits count from the one to the other. start_ns: or EXACT_NOT_BEGUN. */
__u64 start_ns = 0;
__u64 end_ns = 0;
/* Counts up when recording is resumed: what is kept of threads is of the time before. */
__u32 epoch = 0;
/* Waits of threads that ended while the ring was full. */
__u64 lost = 0;
__u64 lost_ns = 0;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct exact_thread);
} threads SEC(".maps");

/* A wait that is over, or as much of it as there is. */
struct interval {
	__u64 waited_ns;
	__u64 runnable_ns; /* the last part of it, in which the thread could run */
};

/* The thread as this recording knows it. */
static __always_inline struct exact_thread *in_this_epoch(struct exact_thread *thread)
{
	if (thread && thread->epoch != epoch) {
		__builtin_memset(thread, 0, sizeof(*thread));
		thread->epoch = epoch;
	}
	return thread;
}

static __always_inline struct sampler_process *find_process(
	struct task_struct *task, __u32 *ret_pid, bool *ret_watched)
{
	__u32 pid = visible_tgid(task);
	struct sampler_process *process = bpf_map_lookup_elem(&processes, &pid);

	*ret_pid = pid;
	*ret_watched = pid && (whole_machine || (process && process->sampled));
	return process;
}

static __always_inline __u64 count_switches(struct task_struct *task)
{
	return BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
}

static __always_inline void count_waits(struct exact_thread *thread, __u32 reason, __u64 waited_ns)
{
	struct exact_count *count = &thread->counts[reason & (EXACT_REASONS - 1)];

	count->count++;
	count->waited_ns += waited_ns;
}

static __always_inline void count_interval(
	struct exact_thread *thread, __u32 reason, const struct interval *interval)
{
	count_waits(thread, reason, interval->waited_ns - interval->runnable_ns);
	if (interval->runnable_ns)
		count_waits(thread, WIRE_WAIT_CPU, interval->runnable_ns);
}

/* Sends what was counted. Where the ring is full, it is kept for the next time. */
static __noinline int tell_counts(
	struct task_struct *task, struct exact_thread *thread, __u64 now_ns)
{
	struct wire_wait_count record = {
		.record = {.type = WIRE_RECORD_WAIT_COUNT, .length_bytes = sizeof(record)},
		.time_ns = now_ns,
	};

	if (!thread)
		return 0;
	thread->sent_ns = now_ns;
	record.pid = visible_tgid(task);
	record.tid = pid_namespace_level ? visible_pid(task) : (__u32)BPF_CORE_READ(task, pid);
	for (__u32 reason = 0; reason < EXACT_REASONS; reason++) {
		struct exact_count *count = &thread->counts[reason];

		if (!count->count)
			continue;
		record.wait = reason;
		record.count = count->count;
		record.waited_ns = count->waited_ns;
		if (bpf_ringbuf_output(&samples, &record, sizeof(record), BPF_RB_NO_WAKEUP))
			return 0;
		count->count = count->waited_ns = 0;
	}
	return 0;
}

/* The last time: what finds no room is lost, and counted. */
static __always_inline void tell_last_counts(
	struct task_struct *task, struct exact_thread *thread, __u64 now_ns)
{
	thread->ended = 1;
	tell_counts(task, thread, now_ns);
	for (__u32 reason = 0; reason < EXACT_REASONS; reason++) {
		struct exact_count *count = &thread->counts[reason];

		if (!count->count)
			continue;
		__sync_fetch_and_add(&lost, count->count);
		__sync_fetch_and_add(&lost_ns, count->waited_ns);
	}
}

/* Since when a thread waits at the earliest, of which it is not known when it left the CPU. */
static __always_inline __u64 earliest_begin(struct task_struct *task, __u64 now_ns)
{
	__u64 born_ns = BPF_CORE_READ(task, start_time);
	__u64 first_ns = start_ns == EXACT_NOT_BEGUN ? now_ns : start_ns;

	return born_ns > first_ns ? born_ns : first_ns;
}

/* Is what ended now over before the recording began? Then it is forgotten. */
static __always_inline bool forget_early_wait(struct exact_thread *thread, __u64 now_ns)
{
	if (now_ns > start_ns)
		return false;
	thread->begin_ns = thread->wake_ns = 0;
	return true;
}

/* Ends the wait that the thread is in, of which counts what was recorded. False: it is in none. */
static __always_inline bool take_interval(
	struct exact_thread *thread, __u64 now_ns, struct interval *ret_interval)
{
	__u64 begin_ns = thread->begin_ns, wake_ns = thread->wake_ns, first_ns = start_ns;

	thread->begin_ns = thread->wake_ns = 0;
	if (begin_ns && begin_ns < first_ns)
		begin_ns = first_ns;
	if (!begin_ns || begin_ns >= now_ns)
		return false;
	if (wake_ns && wake_ns < begin_ns) /* it has waited for a CPU alone */
		wake_ns = begin_ns;
	ret_interval->waited_ns = now_ns - begin_ns;
	ret_interval->runnable_ns = wake_ns >= begin_ns && wake_ns < now_ns ? now_ns - wake_ns : 0;
	return true;
}

static __always_inline int reason_of_walk(struct walk *walk, __u32 state)
{
	const struct scratch *scratch = walk->scratch;

	if (state & STATE_MASK && scratch->python.gil == WIRE_GIL_WAITING)
		return WIRE_WAIT_GIL;
	return wait_reason(walk->task, scratch->system_call,
		scratch->registers.leaf[ARCH_FIRST_ARGUMENT], state);
}

/* The reason of a wait whose stack is not walked. */
static __always_inline int reason_without_stack(
	struct walk *walk, struct sampler_process *process, __u32 state)
{
	struct scratch *scratch = walk->scratch;
	__u32 python = process ? process->python : 0;

	if (!(state & (STATE_MASK)))
		return WIRE_WAIT_CPU;
	scratch->system_call = NO_SYSTEM_CALL;
	scratch->python.gil = WIRE_GIL_NONE;
	if (read_user_registers(scratch, walk->task) == WIRE_STOP_COMPLETE && python &&
		scratch->system_call == ARCH_CALL_FUTEX) {
		walk->python = bpf_map_lookup_elem(&interpreters, &python);
		look_at_python(walk);
	}
	return reason_of_walk(walk, state);
}

/* Who waits. */
struct waiter {
	struct sampler_process *process;
	__u32 pid, state;
};

/* Sends the stack, kernel frames being in the record already. */
static __always_inline int send_wait(struct walk *walk, const struct waiter *waiter,
	const struct interval *interval, __u32 flags, __u64 now_ns)
{
	struct scratch *scratch = walk->scratch;
	struct wire_sample *sample = (struct wire_sample *)scratch->record;
	__u64 length;

	scratch->system_call = NO_SYSTEM_CALL;
	length = take_stacks(walk, waiter->process, waiter->pid, true);
	sample->wait = reason_of_walk(walk, waiter->state);
	sample->waited_ns = interval->waited_ns;
	sample->runnable_ns = interval->runnable_ns;
	sample->flags |= flags;
	if (interval->runnable_ns >= wait_min_ns && interval->runnable_ns)
		sample->flags |= WIRE_SAMPLE_FOR_CPU;
	return send_sample(walk, length, now_ns);
}
