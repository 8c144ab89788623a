/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the BPF programs read of the kernel: fields by name, relocated by CO-RE. */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define bool _Bool
#define true 1
#define false 0

#include "wire/sample.h"

#include ARCH_HEADER(calls)
#include ARCH_HEADER(kernel.bpf)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};
struct pid_namespace {
	struct ns_common ns;
};
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[];
};
struct return_instance {
	unsigned long orig_ret_vaddr;
	_Bool chained;
	struct return_instance *next;
};
struct uprobe_task {
	struct return_instance *return_instances;
};
struct xol_area {
	unsigned long vaddr;
};
struct uprobes_state {
	struct xol_area *xol_area;
};
struct mm_struct {
	struct uprobes_state uprobes_state;
};
typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
};
struct inode {
	unsigned short i_mode;
};
struct file {
	struct inode *f_inode;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct sched_entity {
	unsigned long long sum_exec_runtime;
};
struct task_struct {
	unsigned int flags;
	unsigned int __state;
	unsigned char on_cpu; /* of an int before Linux 7.2 the lowest byte */
	int exit_state;
	struct sched_entity se;
	unsigned long nvcsw, nivcsw;
	unsigned long long start_time;
	struct thread_struct thread;
	struct files_struct *files;
	int pid, tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct mm_struct *mm;
	struct uprobe_task *utask;
	struct signal_struct *signal;
	char comm[16];
	unsigned long long self_exec_id;
	unsigned int in_execve : 1;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#define PF_IO_WORKER   0x00000010
#define PF_USER_WORKER 0x00004000
#define PF_KTHREAD     0x00200000
