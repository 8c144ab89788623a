/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for a kernel before 5.17, for LD_PRELOAD: the one beneath, but for its release and for
 * BPF programs that call bpf_loop, which it refuses as those kernels do. $OLD_KERNEL is the
 * release. With $OLD_KERNEL_HAS_LOOPS it is one that has the helper all the same.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int uname(struct utsname *system)
{
	int (*real)(struct utsname *) = (int (*)(struct utsname *))dlsym(RTLD_NEXT, "uname");
	const char *release = getenv("OLD_KERNEL");
	int r = real(system);

	if (r == 0 && release)
		snprintf(system->release, sizeof(system->release), "%s", release);
	return r;
}

static bool calls_loop(const union bpf_attr *load)
{
	const struct bpf_insn *instructions = (const void *)(uintptr_t)load->insns;

	for (uint32_t i = 0; i < load->insn_cnt; i++) {
		if (instructions[i].code == (BPF_JMP | BPF_CALL) && !instructions[i].src_reg &&
			instructions[i].imm == BPF_FUNC_loop)
			return true;
	}
	return false;
}

static long refuse(const union bpf_attr *load)
{
	char *log = (char *)(uintptr_t)load->log_buf;

	if (log && load->log_size)
		snprintf(log, load->log_size, "invalid func unknown#%d\n", BPF_FUNC_loop);
	errno = EINVAL;
	return -1;
}

EXPORTED long syscall(long number, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list arguments;

	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_bpf && a[0] == BPF_PROG_LOAD && !getenv("OLD_KERNEL_HAS_LOOPS") &&
		calls_loop((const void *)a[1]))
		return refuse((const void *)a[1]);
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
