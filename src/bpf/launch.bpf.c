/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Stacks of launches: a probe on the injected library's marker, which every launch of device work
 * calls with its correlation id. Runs the same unwinder as the CPU sampler and puts its
 * wire_sample, with WIRE_SAMPLE_LAUNCH, into the same ring.
 */
#include "bpf/kernel.bpf.h"

#define READ_USER(task, to, size, address) bpf_probe_read_user(to, size, (const void *)(address))
#include "bpf/launch_shared.h"
#include "bpf/unwinder.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 cpu_count = 1;
const volatile __u64 copies_until_bytes = 1 << 20;
__u64 launch_counts[LAUNCH_COUNT_MAX];

/* A probe's program may be preempted by another thread's: each takes a scratch for itself. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* as many as scratches, set before load */
	__type(key, __u32);
	__type(value, __u64);
} scratch_users SEC(".maps");

static __always_inline void count_launch(enum launch_counter counter)
{
	__sync_fetch_and_add(&launch_counts[counter], 1);
}

static __always_inline __u64 *take_scratch(__u32 slot)
{
	__u64 *user = bpf_map_lookup_elem(&scratch_users, &slot);

	if (!user || __sync_val_compare_and_swap(user, 0, 1))
		return NULL;
	return user;
}

static __always_inline void take_launch_stack(struct scratch *scratch, struct task_struct *task,
	struct sampler_process *process, __u32 pid, __u64 correlation)
{
	struct walk walk = {.task = task, .scratch = scratch};
	struct wire_sample *sample = (struct wire_sample *)scratch->record;
	__u64 now_ns = bpf_ktime_get_ns(), length;

	scratch->kernel_frames = 0;
	length = take_stacks(&walk, process, pid, false);
	/* Copies of stacks, which come first in a program's life, leave room for other records. */
	if (scratch->stop != WIRE_STOP_COMPLETE &&
		bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) > copies_until_bytes) {
		count_launch(LAUNCH_COUNT_LOST);
		return;
	}
	sample->flags |= WIRE_SAMPLE_LAUNCH;
	sample->correlation = correlation;
	count_launch(send_sample(&walk, length, now_ns) ? LAUNCH_COUNT_TAKEN : LAUNCH_COUNT_LOST);
}

SEC("uprobe")
int on_launch(struct registers *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 pid = visible_tgid(task), slot = bpf_get_smp_processor_id();
	struct sampler_process *process;
	struct scratch *scratch;
	__u64 *user;

	process = bpf_map_lookup_elem(&processes, &pid);
	if (!pid || (!whole_machine && !(process && process->sampled)))
		return 0;
	user = take_scratch(slot);
	for (__u32 i = 0; !user && i < LAUNCH_SPARE_SCRATCHES; i++) {
		slot = cpu_count + i;
		user = take_scratch(slot);
	}
	scratch = bpf_map_lookup_elem(&scratches, &slot);
	if (!user || !scratch) {
		count_launch(LAUNCH_COUNT_BUSY);
		return 0;
	}
	take_launch_stack(scratch, task, process, pid, arch_first_argument(context));
	__sync_lock_test_and_set(user, 0);
	return 0;
}
