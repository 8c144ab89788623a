/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Waiting threads: an iterator over all tasks, run some ten times a second. A thread that has not
 * run since the last look still waits at the same place, which costs a few reads; one that has is
 * unwound, as far as the budget goes. How long each thread did not run is exact, by its run time;
 * the stacks that it is charged to are sampled. Kernel 5.18 (bpf_copy_from_user_task).
 */
#include "bpf/kernel.bpf.h"

#define READ_USER(task, to, size, address)                                                         \
	bpf_copy_from_user_task(to, size, (const void *)(address), task, 0)
#include "bpf/reason.bpf.h"
#include "bpf/unwinder.bpf.h"
#include "bpf/wait_shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* What was waited before is not counted; or WAIT_NOT_COUNTED. */
__u64 count_from_ns = WAIT_NOT_COUNTED;

/* Set by the collector before each look: how many of 2^32 due stacks are taken, and how many at the
 * most; whether it is the last look, which takes none. */
__u64 chance = 1ULL << 32;
__u64 stacks_left = 0;
__u32 is_last = 0;
__u64 wait_counts[WAIT_COUNT_MAX];

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wait_look);
} looks SEC(".maps");

static __always_inline void count_wait(enum wait_counter counter)
{
	__sync_fetch_and_add(&wait_counts[counter], 1);
}

/* ---- records ---- */

/* More time for the stack that was sent last. */
static __noinline int report_time(struct task_struct *task, __u64 waited_ns, __u64 now_ns)
{
	struct wire_wake wake = {
		.record = {.type = WIRE_RECORD_WAKE, .length_bytes = sizeof(wake)},
		.time_ns = now_ns,
		.waited_ns = waited_ns,
	};

	wake.pid = visible_tgid(task);
	wake.tid = pid_namespace_level ? visible_pid(task) : (__u32)BPF_CORE_READ(task, pid);
	if (waited_ns)
		bpf_ringbuf_output(&samples, &wake, sizeof(wake), BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline bool has_gone_on(struct task_struct *task, const struct wait_look *look)
{
	return BPF_CORE_READ(task, on_cpu) ||
	       BPF_CORE_READ(task, se.sum_exec_runtime) != look->last_runtime_ns ||
	       BPF_CORE_READ(task, nvcsw) != look->switches;
}

/* Sends the stack that the thread waits with, and the time that waited for one. */
static __always_inline void take_stack(struct task_struct *task, struct wait_look *look,
	struct sampler_process *process, __u32 pid, __u64 now_ns)
{
	struct walk walk = {.task = task};
	struct wire_sample *sample;
	__u32 first = 0, state;
	__u64 length;
	long got;

	walk.scratch = bpf_map_lookup_elem(&scratches, &first);
	if (!walk.scratch)
		return;
	state = BPF_CORE_READ(task, __state);
	got = bpf_get_task_stack(task, walk.scratch->record + sizeof(struct wire_sample),
		WIRE_MAX_KERNEL_FRAMES * 8, 0);
	walk.scratch->kernel_frames =
		got > 0 ? ((__u64)got / 8) & (WIRE_MAX_KERNEL_FRAMES * 2 - 1) : 0;
	length = take_stacks(&walk, process, pid, true);
	if (has_gone_on(task, look)) {
		count_wait(WAIT_COUNT_RACED);
		return;
	}
	sample = (struct wire_sample *)walk.scratch->record;
	sample->wait = walk.scratch->python.gil == WIRE_GIL_WAITING
			       ? WIRE_WAIT_GIL
			       : wait_reason(task, walk.scratch->system_call,
					 walk.scratch->registers.leaf[ARCH_FIRST_ARGUMENT], state);
	sample->waited_ns = look->unattributed_ns;
	if (!send_sample(&walk, length, now_ns))
		return;
	count_wait(WAIT_COUNT_TAKEN);
	look->unattributed_ns = 0;
	look->has_stack = 1;
}

/* ---- one look at a thread ---- */

/* Before the recording begins: so that the first look in it knows what has run meanwhile. */
static __always_inline void early_look(
	struct task_struct *task, struct wait_look *look, __u64 now_ns)
{
	look->last_ns = now_ns;
	look->last_runtime_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
}

/*
 * The thread's state as it was when counting began, which is some time ago: since then it has run
 * the same share of the time as since it was last looked at, or made.
 */
static __always_inline void first_look(
	struct task_struct *task, struct wait_look *look, __u64 now_ns)
{
	__u64 runtime_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
	__u64 born_ns = BPF_CORE_READ(task, start_time);
	__u64 since_ns = look->last_ns ?: born_ns;
	__u64 ran_ns = runtime_ns - look->last_runtime_ns; /* 0: before it was looked at */
	bool is_new = born_ns > count_from_ns && born_ns <= now_ns;
	__u64 share;

	look->unattributed_ns = look->unreported_ns = look->has_stack = 0;
	look->last_ns = is_new ? born_ns : count_from_ns;
	look->last_runtime_ns = 0;
	look->switches = is_new ? 0 : BPF_CORE_READ(task, nvcsw);
	if (is_new)
		return;
	share = now_ns > since_ns ? (ran_ns << 16) / (now_ns - since_ns) : 0;
	if (share > 1 << 16)
		share = 1 << 16;
	if (now_ns > count_from_ns)
		look->last_runtime_ns = runtime_ns - ((now_ns - count_from_ns) * share >> 16);
}

/*
 * Brings the look up to date. Returns the time that the thread did not run since the last one;
 * *ret_same: it has not run at all.
 */
static __always_inline __u64 update_look(struct task_struct *task, struct wait_look *look,
	__u64 now_ns, bool *ret_same, __u64 *ret_switches)
{
	__u64 runtime = BPF_CORE_READ(task, se.sum_exec_runtime);
	__u64 switches = BPF_CORE_READ(task, nvcsw);
	__u64 elapsed = now_ns - look->last_ns, ran = runtime - look->last_runtime_ns;

	*ret_switches = switches - look->switches;
	*ret_same = !ran && !*ret_switches;
	look->last_ns = now_ns;
	look->last_runtime_ns = runtime;
	look->switches = switches;
	return elapsed > ran && (__s64)elapsed > 0 ? elapsed - ran : 0;
}

SEC("iter.s/task")
int look_at_task(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct sampler_process *process;
	__u64 now_ns, waited, switches;
	struct wait_look *look;
	bool on_cpu, same;
	__u32 pid;

	if (!task || task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return 0;
	pid = visible_tgid(task);
	process = bpf_map_lookup_elem(&processes, &pid);
	if (!pid || !process || (!whole_machine && !process->sampled))
		return 0;
	look = bpf_task_storage_get(&looks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!look)
		return 0;
	count_wait(WAIT_COUNT_LOOKED);
	now_ns = bpf_ktime_get_ns();
	if (count_from_ns == WAIT_NOT_COUNTED) {
		early_look(task, look, now_ns);
		return 0;
	}
	if (look->last_ns < count_from_ns)
		first_look(task, look, now_ns);
	on_cpu = BPF_CORE_READ(task, on_cpu); /* before the run time, which it may change */
	waited = update_look(task, look, now_ns, &same, &switches);
	if (same && !on_cpu && look->has_stack) {
		count_wait(WAIT_COUNT_UNCHANGED);
		look->unreported_ns += waited;
		if (look->unreported_ns < WAIT_REPORT_NS && !is_last)
			return 0;
		report_time(task, look->unreported_ns, now_ns);
		look->unreported_ns = 0;
		return 0;
	}
	if (look->has_stack) {
		/* One switch: what was waited lies before and after it, we do not know how much. */
		__u64 before = switches == 1 ? waited / 2 : 0;

		report_time(task, look->unreported_ns + before, now_ns - (waited - before));
		look->unreported_ns = look->has_stack = 0;
		waited -= before;
	}
	look->unattributed_ns += waited;
	if (on_cpu)
		return 0;
	count_wait(WAIT_COUNT_CHANGED);
	if (is_last) {
		report_time(task, look->unattributed_ns, now_ns);
	} else if (stacks_left && bpf_get_prandom_u32() < chance) {
		stacks_left--;
		take_stack(task, look, process, pid, now_ns);
	}
	return 0;
}

/* What a thread has waited and was not sent goes to the last stack that it was seen with. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_thread_exit, struct task_struct *task)
{
	struct wait_look *look = bpf_task_storage_get(&looks, task, 0, 0);
	__u64 now_ns = bpf_ktime_get_ns(), waited, switches;
	bool same;

	if (!look || look->last_ns < count_from_ns)
		return 0;
	waited = update_look(task, look, now_ns, &same, &switches);
	report_time(task, look->unreported_ns + look->unattributed_ns + waited, now_ns);
	return 0;
}
