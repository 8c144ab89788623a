/* SPDX-License-Identifier: Apache-2.0 */
/* What bpf(2) lets this process do: every probe loads, creates or attaches the real thing, then
 * drops it. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "cli/doctor/doctor.h"
#include "sources/cpu/bpf_probe.h"
#include "sources/wait/exact_waits.h"

static const char kernel_fix[] = "run a distribution's kernel of release 5.17 or later";

/* The smallest sampling program: return 0. Returns a descriptor or a negative errno. */
static int load_program(void)
{
	static const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "sonde_doctor", "Dual BSD/GPL",
		instructions, ARRAY_SIZE(instructions), NULL);

	return fd < 0 ? -errno : fd;
}

static void explain(struct doctor_result *ret_result, const char *what, int error)
{
	const char *missing = doctor_missing_capabilities(
		DOCTOR_CAPABILITY(CAP_BPF) | DOCTOR_CAPABILITY(CAP_PERFMON));

	if ((error == -EPERM || error == -EACCES) && *missing)
		doctor_no(ret_result, doctor_privilege_fix(), "%s is refused: %s (missing %s)",
			what, strerror(-error), missing);
	else if (error == -EPERM || error == -EACCES)
		doctor_no(ret_result, doctor_privilege_fix(),
			"%s is refused: %s (a seccomp filter or lockdown forbids it)", what,
			strerror(-error));
	else if (error == -ENOSYS)
		doctor_no(ret_result, kernel_fix, "this kernel has no bpf(2)");
	else
		doctor_no(ret_result, kernel_fix, "%s fails: %s", what, strerror(-error));
}

void doctor_probe_bpf_program(struct doctor_result *ret_result)
{
	_cleanup_close_ int fd = load_program();

	if (fd < 0)
		explain(ret_result, "loading a BPF program", fd);
	else if (!bpf_may_read_kernel())
		doctor_no(ret_result, "boot without lockdown=confidentiality",
			"kernel lockdown forbids BPF programs to read the kernel's memory");
	else
		doctor_works(ret_result, "a perf_event program loads");
}

void doctor_probe_bpf_loop(struct doctor_result *ret_result)
{
	_cleanup_close_ int fd = load_program();
	struct errmsg reason;

	/* Without the right to load, libbpf's probe would take the refusal for a yes. */
	if (fd < 0) {
		doctor_no(ret_result, "", "not tried: no BPF program loads");
		return;
	}
	if (bpf_has_loops(&reason))
		doctor_works(ret_result, "the verifier knows bpf_loop");
	else
		doctor_no(ret_result, kernel_fix, "%s", reason.text);
}

/* What distributions put into kernels of an earlier release counts, where it can be tried. */
void doctor_probe_kernel_release(struct doctor_result *ret_result)
{
	_cleanup_close_ int fd = load_program();
	struct utsname system;
	struct errmsg reason;

	uname(&system);
	if (bpf_release_has_loops())
		doctor_works(ret_result, "release %s; BPF sampling needs 5.17", system.release);
	else if (fd >= 0 && bpf_has_loops(&reason))
		doctor_works(ret_result, "release %s, with bpf_loop of 5.17", system.release);
	else if (fd >= 0)
		doctor_no(ret_result, kernel_fix, "%s", reason.text);
	else
		doctor_no(ret_result, kernel_fix,
			"release %s; BPF sampling needs bpf_loop, which came with 5.17",
			system.release);
}

/* A program that walks all tasks and may sleep, since it reads other processes' memory. */
static int load_task_iterator(void)
{
	static const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	struct bpf_prog_load_opts options = {
		.sz = sizeof(options),
		.expected_attach_type = BPF_TRACE_ITER,
		.prog_flags = BPF_F_SLEEPABLE,
	};
	int type = libbpf_find_vmlinux_btf_id("task", BPF_TRACE_ITER), fd;

	if (type < 0)
		return type;
	options.attach_btf_id = (unsigned)type;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "sonde_doctor", "Dual BSD/GPL", instructions,
		ARRAY_SIZE(instructions), &options);
	return fd < 0 ? -errno : fd;
}

void doctor_probe_task_iterator(struct doctor_result *ret_result)
{
	_cleanup_close_ int sampler_fd = load_program(), fd = -1;

	if (sampler_fd < 0) {
		doctor_no(ret_result, "", "not tried: no BPF program loads");
		return;
	}
	fd = load_task_iterator();
	if (fd >= 0)
		doctor_works(ret_result, "a program that walks all threads loads");
	else
		doctor_no(ret_result, "run a distribution's kernel of release 5.18 or later",
			"a program that walks all threads does not load: %s", strerror(-fd));
}

/* Each kind of map that holds unwind tables or carries samples. Returns a descriptor or a negative
 * errno. */
static int create_map(enum bpf_map_type type)
{
	struct bpf_map_create_opts options = {.sz = sizeof(options)};
	_cleanup_close_ int inner_fd = -1;
	int fd;

	switch (type) {
	case BPF_MAP_TYPE_RINGBUF:
		fd = bpf_map_create(
			type, "sonde_doctor", 0, 0, (unsigned)sysconf(_SC_PAGESIZE), NULL);
		break;
	case BPF_MAP_TYPE_HASH:
		options.map_flags = BPF_F_NO_PREALLOC;
		fd = bpf_map_create(type, "sonde_doctor", 16, 8, 16, &options);
		break;
	case BPF_MAP_TYPE_ARRAY:
		options.map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP;
		fd = bpf_map_create(type, "sonde_doctor", 4, 8, 1, &options);
		break;
	case BPF_MAP_TYPE_HASH_OF_MAPS:
		inner_fd = create_map(BPF_MAP_TYPE_ARRAY);
		if (inner_fd < 0)
			return inner_fd;
		options.inner_map_fd = (unsigned)inner_fd;
		options.map_flags = BPF_F_NO_PREALLOC;
		fd = bpf_map_create(type, "sonde_doctor", 8, 4, 16, &options);
		break;
	default:
		return -EINVAL;
	}
	return fd < 0 ? -errno : fd;
}

void doctor_probe_bpf_maps(struct doctor_result *ret_result)
{
	static const struct {
		enum bpf_map_type type;
		const char *name;
	} maps[] = {
		{BPF_MAP_TYPE_RINGBUF, "a ring buffer"},
		{BPF_MAP_TYPE_HASH, "a growing hash"},
		{BPF_MAP_TYPE_ARRAY, "a mappable array"},
		{BPF_MAP_TYPE_HASH_OF_MAPS, "a map of maps"},
	};

	for (size_t index = 0; index < ARRAY_SIZE(maps); index++) {
		_cleanup_close_ int fd = create_map(maps[index].type);
		_cleanup_strbuf_ struct strbuf what = {0};

		if (fd >= 0)
			continue;
		strbuf_addf(&what, "making %s", maps[index].name);
		explain(ret_result, strbuf_cstr(&what), fd);
		return;
	}
	doctor_works(ret_result, "ring buffer, growing hash, mappable array and map of maps");
}

void doctor_probe_bpf_attach(struct doctor_result *ret_result)
{
	_cleanup_close_ int program_fd = load_program(), event_fd = -1, link_fd = -1;

	if (program_fd < 0) {
		doctor_no(ret_result, "", "not tried: no BPF program loads");
		return;
	}
	event_fd = doctor_open_machine_clock();
	if (event_fd < 0) {
		doctor_no(ret_result, doctor_privilege_fix(),
			"opening a cpu-clock event for all processes fails: %s",
			strerror(-event_fd));
		return;
	}
	link_fd = bpf_link_create(program_fd, event_fd, BPF_PERF_EVENT, NULL);
	if (link_fd < 0)
		explain(ret_result, "attaching a BPF program to a cpu-clock event", -errno);
	else
		doctor_works(ret_result, "a program runs on a cpu-clock event of all processes");
}

void doctor_probe_wait_end(struct doctor_result *ret_result)
{
	libbpf_set_print(NULL); /* what it does not find, the check says */
	if (exact_waits_see_the_end())
		doctor_works(ret_result, "the kernel has the tracepoint sched_exit_tp");
	else
		doctor_partly(ret_result, "run a kernel that has it, as Linux 6.18",
			"the kernel has no tracepoint sched_exit_tp: `--wait exact` takes the "
			"stacks of short waits, too, which costs more");
}
