/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Run once by the collector: how deep its PID namespace is. No file tells that from inside.
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pid {
	unsigned int level;
};
struct task_struct {
	struct pid *thread_pid;
};
#pragma clang attribute pop

SEC("syscall")
int own_level(void *context)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return BPF_CORE_READ(task, thread_pid, level);
}
