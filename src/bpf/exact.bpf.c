/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Every wait of the recorded threads: its begin is kept as the thread leaves the CPU; when it is
 * back on one and has waited long enough, its stack is taken, in its own context, with the frames
 * that it waited in still in place (sched_exit_tp, which Linux 6.18 has). Shorter waits are
 * counted. Kernels without that tracepoint take stacks as threads leave the CPU, before it is known
 * how long they wait. Kernel 5.18 (sched_switch's fourth argument).
 */
#include "bpf/kernel.bpf.h"

#define PYTHON_WAIT_IS_OVER                1
#define AWAITED_COPY_BUDGET                200 /* 100,000 waits a second would fill the memory */
#define READ_USER(task, to, size, address) bpf_probe_read_user(to, size, (const void *)(address))
#include "bpf/unwinder.bpf.h"

#include "bpf/exact.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile bool walk_at_switch = false;

__u64 unmeasured = 0; /* no memory to keep the begin of a wait */
__u64 unseen = 0;     /* switches that this program was not run for */
__u64 crowded = 0;    /* no stack for a long wait: the ring is for the CPU samples, too */

static __always_inline bool is_recording(void)
{
	return start_ns && !end_ns;
}

/* What is kept of a watched thread, NULL for others. */
static __always_inline struct exact_thread *thread_of(struct task_struct *task)
{
	struct exact_thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	bool watched;
	__u32 pid;

	if (thread)
		return in_this_epoch(thread);
	find_process(task, &pid, &watched);
	if (!watched)
		return NULL;
	thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		__sync_fetch_and_add(&unmeasured, 1);
	return in_this_epoch(thread);
}

/* It was off the CPU when the recording began, and we do not know what for. */
static __always_inline void begin_unseen(
	struct task_struct *task, struct exact_thread *thread, __u64 now_ns)
{
	thread->known = 1;
	thread->sent_ns = now_ns;
	thread->begin_ns = earliest_begin(task, now_ns);
	thread->state = STATE_INTERRUPTIBLE;
	thread->reason = WIRE_WAIT_UNSEEN;
}

/* Half of the ring is left to others. */
static __always_inline bool has_room(void)
{
	return bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) < 4 * wakeup_bytes;
}

static __always_inline struct scratch *own_scratch(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratches, &cpu);
}

static __always_inline void take_kernel_stack(void *context, struct scratch *scratch)
{
	long got = bpf_get_stack(context, scratch->record + sizeof(struct wire_sample),
		WIRE_MAX_KERNEL_FRAMES * 8, 0);

	scratch->kernel_frames = got > 0 ? ((__u64)got / 8) & (WIRE_MAX_KERNEL_FRAMES * 2 - 1) : 0;
}

/* ---- leaving the CPU ---- */

/* Its stack, in case that it waits long; a wire_wake says how long. */
static __always_inline void send_leaving(
	void *context, struct task_struct *task, struct exact_thread *thread, __u64 now_ns)
{
	struct waiter waiter = {.state = thread->state};
	const struct interval unknown = {0};
	struct walk walk = {.task = task};
	bool watched;

	thread->reason = WIRE_WAIT_UNSEEN;
	thread->sent = 0;
	walk.scratch = own_scratch();
	waiter.process = find_process(task, &waiter.pid, &watched);
	if (!walk.scratch)
		return;
	if (!has_room()) {
		thread->reason = reason_without_stack(&walk, waiter.process, waiter.state);
		return;
	}
	take_kernel_stack(context, walk.scratch);
	thread->sent = send_wait(&walk, &waiter, &unknown, 0, now_ns);
	thread->reason = ((struct wire_sample *)walk.scratch->record)->wait;
}

/* It is back without having been seen: it waited for as long as it did not run. */
static __always_inline void end_unseen_return(
	struct task_struct *task, struct exact_thread *thread, __u64 now_ns)
{
	__u64 ran_ns = BPF_CORE_READ(task, se.sum_exec_runtime) - thread->runtime_ns;
	__u64 elapsed_ns = now_ns - thread->begin_ns, recorded_ns = now_ns - start_ns, waited_ns;

	if (now_ns <= start_ns)
		return;
	__sync_fetch_and_add(&unseen, 1);
	if (ran_ns >= elapsed_ns)
		return;
	waited_ns = elapsed_ns - ran_ns;
	count_waits(thread, walk_at_switch ? thread->reason : WIRE_WAIT_UNSEEN,
		waited_ns < recorded_ns ? waited_ns : recorded_ns);
}

static __always_inline void leave_cpu(
	void *context, struct task_struct *task, __u32 state, __u64 now_ns)
{
	struct exact_thread *thread = thread_of(task);

	if (!thread || thread->ended)
		return;
	if (!thread->known) {
		thread->known = 1;
		thread->sent_ns = now_ns;
	}
	if (thread->begin_ns)
		end_unseen_return(task, thread, now_ns);
	thread->runtime_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
	thread->state = state;
	thread->switches = count_switches(task);
	thread->wake_ns = 0;
	thread->begin_ns = now_ns;
	if (walk_at_switch)
		send_leaving(context, task, thread, now_ns);
}

/* ---- back on a CPU ---- */

/* It is on a CPU and was not seen leaving one; a new thread has not left any yet. */
static __always_inline void count_unseen_leaving(const struct exact_thread *thread)
{
	if (thread->switches)
		__sync_fetch_and_add(&unseen, 1);
}

/* A new thread waited for its first CPU: it has no stack yet. */
static __always_inline void first_run(struct task_struct *task, __u64 now_ns)
{
	__u64 born_ns = task->start_time;
	struct exact_thread *thread;

	if (born_ns < start_ns || born_ns >= now_ns)
		return;
	thread = thread_of(task);
	if (!thread || thread->known)
		return;
	thread->known = 1;
	thread->sent_ns = now_ns;
	count_waits(thread, WIRE_WAIT_CPU, now_ns - born_ns);
}

/* The stack was sent when the thread left the CPU. */
static __always_inline void end_sent_wait(
	struct task_struct *task, struct exact_thread *thread, __u64 now_ns)
{
	struct wire_wake wake = {
		.record = {.type = WIRE_RECORD_WAKE, .length_bytes = sizeof(wake)},
		.time_ns = now_ns,
		.flags = WIRE_SAMPLE_EXACT,
	};
	struct interval interval;

	if (!take_interval(thread, now_ns, &interval)) {
		count_unseen_leaving(thread);
		return;
	}
	wake.pid = visible_tgid(task);
	wake.tid = pid_namespace_level ? visible_pid(task) : (__u32)BPF_CORE_READ(task, pid);
	wake.waited_ns = interval.waited_ns;
	wake.runnable_ns = interval.runnable_ns;
	if (interval.runnable_ns && interval.runnable_ns >= wait_min_ns)
		wake.flags |= WIRE_SAMPLE_FOR_CPU;
	if (interval.waited_ns >= wait_min_ns && !thread->sent)
		__sync_fetch_and_add(&crowded, 1);
	if (interval.waited_ns < wait_min_ns || !thread->sent)
		count_interval(thread, thread->reason, &interval);
	else if (bpf_ringbuf_output(&samples, &wake, sizeof(wake), BPF_RB_NO_WAKEUP))
		count_interval(thread, thread->reason, &interval);
	else if (interval.runnable_ns && !(wake.flags & WIRE_SAMPLE_FOR_CPU))
		count_waits(thread, WIRE_WAIT_CPU, interval.runnable_ns);
	if (now_ns - thread->sent_ns >= EXACT_SEND_NS)
		tell_counts(task, thread, now_ns);
}

static __always_inline void arrive(struct task_struct *task, __u64 now_ns)
{
	struct exact_thread *thread;

	if (!task->se.sum_exec_runtime)
		first_run(task, now_ns);
	if (!walk_at_switch || task->flags & NO_WAITS)
		return;
	thread = thread_of(task);
	if (!thread || thread->ended)
		return;
	if (!thread->known)
		begin_unseen(task, thread, now_ns);
	if (!forget_early_wait(thread, now_ns))
		end_sent_wait(task, thread, now_ns);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *from, struct task_struct *to,
	unsigned int state)
{
	__u64 now_ns;

	if (!is_recording())
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (!(from->flags & NO_WAITS))
		leave_cpu(ctx, from, preempted ? 0 : state, now_ns);
	arrive(to, now_ns);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	struct exact_thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (thread && thread->begin_ns && thread->state && !thread->wake_ns)
		thread->wake_ns = bpf_ktime_get_ns();
	return 0;
}

/* Takes the stack of a wait that is over. */
static __always_inline void finish_wait(void *context, struct task_struct *task,
	struct exact_thread *thread, const struct interval *interval, __u64 now_ns)
{
	struct waiter waiter = {.state = thread->state};
	struct walk walk = {.task = task};
	__u32 reason = WIRE_WAIT_UNSEEN;
	bool watched;

	walk.scratch = own_scratch();
	if (!walk.scratch)
		return;
	waiter.process = find_process(task, &waiter.pid, &watched);
	if (interval->waited_ns < wait_min_ns || !has_room()) {
		if (interval->waited_ns >= wait_min_ns)
			__sync_fetch_and_add(&crowded, 1);
		reason = reason_without_stack(&walk, waiter.process, waiter.state);
		count_interval(thread, reason, interval);
		return;
	}
	take_kernel_stack(context, walk.scratch);
	if (!send_wait(&walk, &waiter, interval, WIRE_SAMPLE_EXACT, now_ns))
		count_interval(
			thread, ((struct wire_sample *)walk.scratch->record)->wait, interval);
	else if (interval->runnable_ns && interval->runnable_ns < wait_min_ns)
		count_waits(thread, WIRE_WAIT_CPU, interval->runnable_ns);
}

SEC("tp_btf/sched_exit_tp")
int BPF_PROG(on_return, bool is_switch)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct exact_thread *thread;
	struct interval interval;
	__u64 now_ns;

	if (!is_switch || !is_recording() || task->flags & NO_WAITS)
		return 0;
	thread = thread_of(task);
	if (!thread || thread->ended)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (!thread->known)
		begin_unseen(task, thread, now_ns);
	if (forget_early_wait(thread, now_ns))
		return 0;
	if (!take_interval(thread, now_ns, &interval)) {
		count_unseen_leaving(thread);
		return 0;
	}
	finish_wait(ctx, task, thread, &interval, now_ns);
	if (now_ns - thread->sent_ns >= EXACT_SEND_NS)
		tell_counts(task, thread, now_ns);
	return 0;
}

/* ---- the end ---- */

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_thread_exit, struct task_struct *task)
{
	struct exact_thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (!thread || !is_recording() || thread->epoch != epoch)
		return 0;
	tell_last_counts(task, thread, bpf_ktime_get_ns());
	return 0;
}
