/* SPDX-License-Identifier: Apache-2.0 */
/* What perf_event_open(2) lets this process do. All events are opened disabled and closed again. */
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch/arch.h"
#include ARCH_HEADER(perf)
#include "base/file.h"
#include "cli/doctor/doctor.h"
#include "sources/cpu/work_counters.h"

/* The data pages of one CPU's buffer in the mode without privileges. */
#define BUFFER_PAGES 128

static int open_event(struct perf_event_attr *attributes, pid_t pid, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attributes, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int current_cpu(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? 0 : cpu;
}

int doctor_open_machine_clock(void)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 10 * NS_PER_MS,
		.disabled = 1,
	};

	return open_event(&attributes, -1, current_cpu());
}

/* What the mode without privileges opens: registers and a copy of the stack, inherited by children.
 */
static int open_own_clock(bool exclude_kernel)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 10 * NS_PER_MS,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = ARCH_PERF_MASK,
		.sample_stack_user = 16384,
		.exclude_callchain_user = 1,
		.exclude_kernel = exclude_kernel,
		.exclude_hv = exclude_kernel,
		.disabled = 1,
		.inherit = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	return open_event(&attributes, 0, current_cpu());
}

static void refuse(struct doctor_result *ret_result, const char *what, int error)
{
	long paranoid = doctor_sysctl("perf_event_paranoid");

	if ((error == -EACCES || error == -EPERM) && paranoid > 2)
		doctor_no(ret_result, "sudo sysctl kernel.perf_event_paranoid=2",
			"%s is refused: kernel.perf_event_paranoid is %ld", what, paranoid);
	else if (error == -EACCES || error == -EPERM)
		doctor_no(ret_result, doctor_privilege_fix(),
			"%s is refused: %s (a seccomp filter or a security module forbids it)",
			what, strerror(-error));
	else if (error == -ENOSYS)
		doctor_no(ret_result, doctor_privilege_fix(),
			"perf_event_open(2) is missing: the kernel lacks it or a seccomp filter "
			"hides it");
	else
		doctor_no(ret_result, "", "%s fails: %s", what, strerror(-error));
}

void doctor_probe_perf_own(struct doctor_result *ret_result)
{
	_cleanup_close_ int with_kernel = open_own_clock(false), user_only = -1;

	if (with_kernel >= 0) {
		doctor_works(ret_result, "user and kernel stacks of your own processes");
		return;
	}
	user_only = open_own_clock(true);
	if (user_only < 0)
		refuse(ret_result, "sampling your own processes", user_only);
	else
		doctor_partly(ret_result, "sudo sysctl kernel.perf_event_paranoid=1",
			"only user stacks of your own processes: kernel.perf_event_paranoid is "
			"%ld, kernel stacks need 1 or less",
			doctor_sysctl("perf_event_paranoid"));
}

void doctor_probe_perf_buffer(struct doctor_result *ret_result)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), length = (BUFFER_PAGES + 1) * page;
	_cleanup_close_ int fd = open_own_clock(true);
	void *buffer;

	if (fd < 0) {
		refuse(ret_result, "sampling your own processes", fd);
		return;
	}
	buffer = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (buffer == MAP_FAILED) {
		doctor_no(ret_result, "sudo sysctl kernel.perf_event_mlock_kb=516",
			"a sample buffer of %zu KiB cannot be mapped: %s "
			"(kernel.perf_event_mlock_kb is %ld)",
			length / 1024, strerror(errno), doctor_sysctl("perf_event_mlock_kb"));
		return;
	}
	munmap(buffer, length);
	doctor_works(ret_result, "a sample buffer of %zu KiB a CPU", length / 1024);
}

/* Who maps, forks, executes, ends; with `all_processes` also kernel text that comes and goes. */
static int open_sideband(bool all_processes, bool build_ids)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.build_id = build_ids,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.ksymbol = all_processes,
		.exclude_kernel = !all_processes,
		.disabled = 1,
		.inherit = !all_processes,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	return open_event(&attributes, all_processes ? -1 : 0, current_cpu());
}

static void probe_sideband(struct doctor_result *ret_result, bool all_processes)
{
	const char *whose = all_processes ? "all processes" : "one's own processes";
	_cleanup_close_ int fd = open_sideband(all_processes, true), without_ids = -1;

	if (fd >= 0) {
		/* Root's recordings ask for inodes, which disturb nobody: see docs/record.md. */
		doctor_works(ret_result, "mappings with build-ids, names, forks and exits of %s%s",
			whose,
			all_processes && geteuid() != 0
				? "; a perf record beside sonde needs --buildid-mmap"
				: "");
		return;
	}
	without_ids = open_sideband(all_processes, false);
	if (without_ids >= 0)
		doctor_partly(ret_result, "run a kernel of release 5.12 or later",
			"mapping events of %s come without build-ids: %s", whose, strerror(-fd));
	else if (all_processes)
		doctor_no(ret_result, doctor_privilege_fix(),
			"watching all processes is refused: %s (kernel.perf_event_paranoid is %ld "
			"and CAP_PERFMON is missing)",
			strerror(-without_ids), doctor_sysctl("perf_event_paranoid"));
	else
		refuse(ret_result, "watching your own processes", without_ids);
}

void doctor_probe_sideband(struct doctor_result *ret_result)
{
	probe_sideband(ret_result, true);
}

void doctor_probe_sideband_own(struct doctor_result *ret_result)
{
	probe_sideband(ret_result, false);
}

/* Those that samples take their cycles and instructions from. */
void doctor_probe_counters(struct doctor_result *ret_result)
{
	_cleanup_work_counters_ struct work_counters *counters = NULL;
	long cpu_count = sysconf(_SC_NPROCESSORS_CONF);
	struct errmsg reason;

	if (work_counters_open(&counters, (int)MAX(cpu_count, 1L), &reason) == 0)
		doctor_works(ret_result, "cycles and instructions of every CPU can be counted");
	else
		doctor_partly(
			ret_result, "", "%s: energy is split between threads by time", reason.text);
}
