/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The end of a recording of exact waits: one look at all threads hands over the waits that have not
 * ended, up to now, and what was counted and not told. Kernel 5.18 (bpf_copy_from_user_task).
 */
#include "sources/cpu/kernel.bpf.h"

#define READ_USER(task, to, size, address)                                                         \
	bpf_copy_from_user_task(to, size, (const void *)(address), task, 0)
#include "sources/cpu/unwinder.bpf.h"
#include "sources/wait/exact.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* It has been off the CPU since before the recording began, or since it was made. */
static __always_inline void begin_unseen(struct task_struct *task, struct exact_thread *thread)
{
	__u64 born_ns = BPF_CORE_READ(task, start_time);

	thread->begin_ns = born_ns > start_ns ? born_ns : start_ns;
	thread->state = BPF_CORE_READ(task, __state);
	thread->switches = count_switches(task);
}

static __always_inline bool has_gone_on(struct task_struct *task, const struct exact_thread *thread)
{
	return BPF_CORE_READ(task, on_cpu) || count_switches(task) != thread->switches;
}

static __always_inline void send_open(struct task_struct *task, struct exact_thread *thread,
	const struct waiter *waiter, const struct interval *interval)
{
	struct walk walk = {.task = task};
	__u32 first = 0;
	long got;

	walk.scratch = bpf_map_lookup_elem(&scratches, &first);
	if (!walk.scratch)
		return;
	got = bpf_get_task_stack(task, walk.scratch->record + sizeof(struct wire_sample),
		WIRE_MAX_KERNEL_FRAMES * 8, 0);
	walk.scratch->kernel_frames =
		got > 0 ? ((__u64)got / 8) & (WIRE_MAX_KERNEL_FRAMES * 2 - 1) : 0;
	if (has_gone_on(task, thread) ||
		!send_wait(&walk, waiter, interval, WIRE_SAMPLE_EXACT | WIRE_SAMPLE_OPEN, end_ns))
		count_interval(thread, WIRE_WAIT_UNSEEN, interval);
	else if (interval->runnable_ns && interval->runnable_ns < wait_min_ns)
		count_waits(thread, WIRE_WAIT_CPU, interval->runnable_ns);
}

SEC("iter.s/task")
int look_at_open_wait(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct exact_thread *thread;
	struct interval interval;
	struct waiter waiter;
	bool watched;

	if (!task || task->flags & NO_WAITS || BPF_CORE_READ(task, exit_state))
		return 0;
	waiter.process = find_process(task, &waiter.pid, &watched);
	if (!watched)
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread || thread->ended)
		return 0;
	if (!thread->known && !BPF_CORE_READ(task, on_cpu))
		begin_unseen(task, thread);
	waiter.state = thread->state;
	if (take_interval(thread, end_ns, &interval))
		send_open(task, thread, &waiter, &interval);
	tell_counts(task, thread, end_ns);
	return 0;
}
