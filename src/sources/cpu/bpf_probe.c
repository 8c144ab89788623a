/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/cpu/bpf_probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (!getenv("SONDE_DEBUG_BPF"))
		return 0;
	return vfprintf(stderr, format, arguments);
}

bool bpf_may_read_kernel(void)
{
	static const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_10},
		{.code = BPF_ALU64 | BPF_ADD, .dst_reg = BPF_REG_1, .imm = -8},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 8},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_probe_read_kernel},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	_cleanup_close_ int fd = bpf_prog_load(
		BPF_PROG_TYPE_PERF_EVENT, "sonde_probe", "GPL", program, ARRAY_SIZE(program), NULL);

	return fd >= 0;
}

/* 0 where the release has another form. */
static void read_release(unsigned *ret_major, unsigned *ret_minor)
{
	struct utsname system;

	*ret_major = *ret_minor = 0;
	if (uname(&system) == 0)
		sscanf(system.release, "%3u.%3u", ret_major, ret_minor);
}

bool bpf_release_has_loops(void)
{
	unsigned major, minor;

	read_release(&major, &minor);
	return !major || major > 5 || (major == 5 && minor >= 17);
}

/* Some distributions have it in kernels of an earlier release. */
bool bpf_has_loops(struct errmsg *reason)
{
	unsigned major, minor;

	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) != 0)
		return true;
	read_release(&major, &minor);
	errmsg_set(reason, 0, "Linux %u.%u lacks bpf_loop, which came with 5.17", major, minor);
	return false;
}

static int explain_refusal(struct errmsg *reason)
{
	unsigned major, minor;

	if (bpf_release_has_loops())
		return errmsg_set(reason, -EPERM,
			"loading BPF programs needs CAP_BPF and CAP_PERFMON; run sonde with sudo");
	read_release(&major, &minor);
	return errmsg_set(reason, -EPERM,
		"loading BPF programs needs CAP_BPF and CAP_PERFMON, and bpf_loop, which came with "
		"Linux 5.17 (this is %u.%u)",
		major, minor);
}

void bpf_set_print(void)
{
	libbpf_set_print(print_libbpf);
}

int bpf_probe(struct errmsg *reason)
{
	struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	_cleanup_close_ int fd = -1;

	bpf_set_print();
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return errmsg_set(reason, -ENOTSUP,
			"the kernel has no BTF (/sys/kernel/btf/vmlinux); boot one built with "
			"CONFIG_DEBUG_INFO_BTF=y");
	fd = bpf_prog_load(
		BPF_PROG_TYPE_PERF_EVENT, "sonde_probe", "GPL", program, ARRAY_SIZE(program), NULL);
	if (fd < 0 && (errno == EPERM || errno == EACCES))
		return explain_refusal(reason);
	if (fd < 0 && errno == ENOSYS)
		return errmsg_set(reason, -ENOSYS,
			"bpf(2) is missing: the kernel was built without CONFIG_BPF_SYSCALL, or a "
			"sandbox such as gVisor hides it");
	if (fd < 0)
		return errmsg_set(reason, -errno,
			"the kernel refuses perf_event BPF programs (%s); it needs "
			"CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS",
			strerror(errno));
	if (!bpf_has_loops(reason))
		return -ENOTSUP;
	if (!bpf_may_read_kernel())
		return errmsg_set(reason, -EPERM,
			"kernel lockdown forbids BPF programs to read the kernel's memory; boot "
			"without lockdown=confidentiality");
	return 0;
}
