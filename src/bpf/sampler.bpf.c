/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The CPU sampler: a perf_event program on the cpu-clock of every CPU, and the programs that follow
 * the process tree. Each sample takes the kernel stack, unwinds the user stack without frame
 * pointers, walks the Python frames, and puts one wire_sample into the ring. Kernel 5.17
 * (bpf_loop).
 */
#include "bpf/kernel.bpf.h"

#define READ_USER(task, to, size, address) bpf_probe_read_user(to, size, (const void *)(address))
#include "bpf/unwinder.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* ---- the process tree ---- */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct sampler_process *known;
	__u32 parent_pid, child_pid;

	if (child->pid != child->tgid)
		return 0;
	parent_pid = visible_tgid(parent);
	child_pid = visible_tgid(child);
	known = bpf_map_lookup_elem(&processes, &parent_pid);
	/* The child has the parent's mappings, and is sampled if the parent is. */
	if (known && bpf_map_update_elem(&processes, &child_pid, known, BPF_ANY) && known->sampled)
		count(SAMPLER_COUNT_CHILDREN_LOST, 1);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	__u32 pid = visible_tgid(task);
	struct sampler_process *known = bpf_map_lookup_elem(&processes, &pid);

	if (known)
		known->space = known->python = known->unmapped_copies = 0;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	__u32 pid;

	if (BPF_CORE_READ(task, signal, live.counter) != 0)
		return 0;
	pid = visible_tgid(task);
	bpf_map_delete_elem(&processes, &pid);
	return 0;
}

/* ---- samples ---- */

SEC("perf_event")
int take_sample(struct registers *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id(), pid;
	__u64 now_ns = bpf_ktime_get_ns(), length;
	bool in_kernel = arch_is_kernel(context);
	struct sampler_process *process;
	struct walk walk = {.task = task};
	struct scratch *scratch;
	long got;

	if (!task->pid)
		return 0;
	pid = pid_namespace_level ? visible_tgid(task) : (__u32)task->tgid;
	process = bpf_map_lookup_elem(&processes, &pid);
	if (!pid || (!whole_machine && !(process && process->sampled)))
		return 0;
	scratch = bpf_map_lookup_elem(&scratches, &cpu);
	if (!scratch)
		return 0;
	walk.scratch = scratch;
	scratch->kernel_frames = 0;
	if (in_kernel) {
		got = bpf_get_stack(context, scratch->record + sizeof(struct wire_sample),
			WIRE_MAX_KERNEL_FRAMES * 8, 0);
		if (got > 0)
			scratch->kernel_frames =
				((__u64)got / 8) & (WIRE_MAX_KERNEL_FRAMES * 2 - 1);
	}
	length = take_stacks(&walk, process, pid, in_kernel);
	send_sample(&walk, length, now_ns);
	return 0;
}
