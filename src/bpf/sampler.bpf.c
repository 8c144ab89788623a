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

/* ---- what a CPU did since its last tick ---- */

/* Set before load: the maps below have the events of all CPUs. */
const volatile bool counts_work = false;

struct events {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
};
struct events cycle_events SEC(".maps"), instruction_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sampler_counts);
} last_counts SEC(".maps");

/* False after the first reading, and where the event shared its counter with others meanwhile. */
static __always_inline bool read_count(void *events, struct sampler_count *last, __u64 *ret_count)
{
	struct bpf_perf_event_value now;
	struct sampler_count before = *last;

	if (bpf_perf_event_read_value(events, BPF_F_CURRENT_CPU, &now, sizeof(now))) {
		last->enabled_ns = 0;
		return false;
	}
	last->value = now.counter;
	last->enabled_ns = now.enabled;
	last->running_ns = now.running;
	*ret_count = now.counter - before.value;
	return before.enabled_ns &&
	       now.enabled - before.enabled_ns == now.running - before.running_ns;
}

/* At each tick, whoever runs: each sample then has one period's. */
static __always_inline bool count_work(__u64 *ret_cycles, __u64 *ret_instructions)
{
	__u32 zero = 0;
	struct sampler_counts *last;
	bool counted;

	if (!counts_work)
		return false;
	last = bpf_map_lookup_elem(&last_counts, &zero);
	if (!last)
		return false;
	counted = read_count(&cycle_events, &last->cycles, ret_cycles);
	return read_count(&instruction_events, &last->instructions, ret_instructions) && counted;
}

/* ---- samples ---- */

SEC("perf_event")
int take_sample(struct registers *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id(), pid;
	__u64 now_ns = bpf_ktime_get_ns(), length, cycles = 0, instructions = 0;
	bool is_counted = count_work(&cycles, &instructions);
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
	if (is_counted) {
		struct wire_sample *sample = (struct wire_sample *)scratch->record;

		sample->flags |= WIRE_SAMPLE_COUNTED;
		sample->cycles = cycles;
		sample->instructions = instructions;
	}
	send_sample(&walk, length, now_ns);
	return 0;
}
