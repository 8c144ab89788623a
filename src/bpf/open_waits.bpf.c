/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The ends of a recording of exact waits. The last look at all threads hands over the waits that
 * have not ended, up to now, and what was counted and not sent. Kernel 5.18
 * (bpf_copy_from_user_task).
 */
#include "bpf/kernel.bpf.h"

#define READ_USER(task, to, size, address)                                                         \
	bpf_copy_from_user_task(to, size, (const void *)(address), task, 0)
#include "bpf/unwinder.bpf.h"

#include "bpf/exact.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The first look, where stacks are not taken when waits are over: of all that wait already. */
__u32 is_first = 0;

/* It has been off the CPU since before the recording began, or since it was made. */
static __always_inline void begin_unseen(
	struct task_struct *task, struct exact_thread *thread, __u64 now_ns)
{
	thread->begin_ns = earliest_begin(task, now_ns);
	thread->state = BPF_CORE_READ(task, __state);
	thread->switches = count_switches(task);
}

static __always_inline bool has_gone_on(struct task_struct *task, __u64 switches)
{
	return BPF_CORE_READ(task, on_cpu) || count_switches(task) != switches;
}

/* Every task is looked at by the one reader of the iterator: one scratch will do. */
static __always_inline struct scratch *take_kernel_stack(struct task_struct *task)
{
	__u32 first = 0;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &first);
	long got;

	if (!scratch)
		return NULL;
	got = bpf_get_task_stack(
		task, scratch->record + sizeof(struct wire_sample), WIRE_MAX_KERNEL_FRAMES * 8, 0);
	scratch->kernel_frames = got > 0 ? ((__u64)got / 8) & (WIRE_MAX_KERNEL_FRAMES * 2 - 1) : 0;
	return scratch;
}

static __always_inline void send_open(struct task_struct *task, struct exact_thread *thread,
	const struct waiter *waiter, const struct interval *interval)
{
	struct walk walk = {.task = task};

	walk.scratch = take_kernel_stack(task);
	if (!walk.scratch || has_gone_on(task, thread->switches) ||
		!send_wait(&walk, waiter, interval, WIRE_SAMPLE_EXACT | WIRE_SAMPLE_OPEN, end_ns))
		count_interval(thread, WIRE_WAIT_UNSEEN, interval);
	else if (interval->runnable_ns && interval->runnable_ns < wait_min_ns)
		count_waits(thread, WIRE_WAIT_CPU, interval->runnable_ns);
}

/* A wire_wake says how long it waits. */
static __always_inline void send_begun(
	struct task_struct *task, struct exact_thread *thread, struct waiter *waiter)
{
	__u64 switches = count_switches(task), now_ns = bpf_ktime_get_ns();
	const struct interval unknown = {0};
	struct walk walk = {.task = task};

	/* In a window that begins with this look its stack belongs to it. */
	if (start_ns != EXACT_NOT_BEGUN)
		now_ns = start_ns;

	waiter->state = BPF_CORE_READ(task, __state);
	walk.scratch = take_kernel_stack(task);
	if (!walk.scratch || !send_wait(&walk, waiter, &unknown, 0, now_ns) ||
		has_gone_on(task, switches) || thread->known)
		return;
	begin_unseen(task, thread, now_ns);
	thread->reason = ((struct wire_sample *)walk.scratch->record)->wait;
	thread->sent = 1;
	thread->sent_ns = now_ns;
	thread->known = 1;
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
	thread = in_this_epoch(
		bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE));
	if (!thread || thread->ended)
		return 0;
	if (!thread->known && !BPF_CORE_READ(task, on_cpu)) {
		if (is_first) {
			send_begun(task, thread, &waiter);
			return 0;
		}
		begin_unseen(task, thread, end_ns);
	}
	if (is_first)
		return 0;
	waiter.state = thread->state;
	if (take_interval(thread, end_ns, &interval))
		send_open(task, thread, &waiter, &interval);
	tell_last_counts(task, thread, end_ns);
	return 0;
}
