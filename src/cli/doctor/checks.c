/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `sonde doctor`: what is tried, and which source needs what. */
#include "cli/doctor/doctor.h"

const struct doctor_check doctor_checks[] = {
	{"kernel-release", "BPF sampling", doctor_probe_kernel_release},
	{"btf", "BPF programs that fit any kernel", doctor_probe_btf},
	{"bpf-program", "BPF sampling", doctor_probe_bpf_program},
	{"bpf-loop", "unwinding in the kernel", doctor_probe_bpf_loop},
	{"bpf-maps", "unwind tables in the kernel", doctor_probe_bpf_maps},
	{"bpf-attach", "BPF sampling", doctor_probe_bpf_attach},
	{"task-iterator", "sampling threads that wait", doctor_probe_task_iterator},
	{"wait-end", "stacks at the end of waits", doctor_probe_wait_end},
	{"perf-own", "sampling without privileges", doctor_probe_perf_own},
	{"perf-buffer", "sampling without privileges", doctor_probe_perf_buffer},
	{"counters", "energy by what processors do", doctor_probe_counters},
	{"sideband", "mappings and names of all processes", doctor_probe_sideband},
	{"sideband-own", "mappings and names of a command's processes", doctor_probe_sideband_own},
	{"procmap-query", "quick reading of many mappings", doctor_probe_procmap_query},
	{"map-files", "symbols of deleted, replaced and container files", doctor_probe_map_files},
	{"other-processes", "attaching to other users' processes", doctor_probe_other_processes},
	{"kallsyms", "kernel function names", doctor_probe_kallsyms},
	{"debug-info", "names and lines in system libraries", doctor_probe_debug_info},
	{"capabilities", "everything that needs a privilege", doctor_probe_capabilities},
	{"pid-namespace", "process ids as the kernel has them", doctor_probe_pid_namespace},
	{"cgroup2", "naming the container of a process", doctor_probe_cgroup2},
	{"inject-library", "device work", doctor_probe_inject_library},
	{"opencl-driver", "OpenCL device work", doctor_probe_opencl_driver},
	{"nvidia-driver", "CUDA device work", doctor_probe_nvidia_driver},
	{"cupti", "CUDA device work", doctor_probe_cupti},
	{"cuda-variable", "CUDA device work", doctor_probe_cuda_variable},
	{"python-hooks", "what Python frameworks do (--hooks)", doctor_probe_python_hooks},
	{"tracefs", "probes on tracepoints", doctor_probe_tracefs},
	{0},
};

const struct doctor_source doctor_sources[] = {
	{
		.name = "cpu-bpf",
		.title = "CPU samples, unwound in the kernel by BPF",
		.required = {"kernel-release", "btf", "bpf-program", "bpf-loop", "bpf-maps",
			"bpf-attach", "sideband"},
		.samples_cpu = true,
	},
	{
		.name = "cpu-user",
		.title = "CPU samples without privileges",
		.required = {"perf-own", "perf-buffer", "sideband-own"},
		.samples_cpu = true,
	},
	{
		.name = "python",
		.title = "Python functions and lines, and the interpreter lock",
		.required = {"kernel-release", "btf", "bpf-program", "bpf-loop", "bpf-maps",
			"bpf-attach", "sideband"},
		.helpful = {"other-processes"},
	},
	{
		.name = "waiting",
		.title = "what threads wait for",
		.required = {"kernel-release", "btf", "bpf-program", "bpf-loop", "bpf-maps",
			"bpf-attach", "sideband", "task-iterator"},
	},
	{
		.name = "waiting-exact",
		.title = "every wait, measured (--wait exact)",
		.required = {"kernel-release", "btf", "bpf-program", "bpf-loop", "bpf-maps",
			"bpf-attach", "sideband", "task-iterator"},
		.helpful = {"wait-end"},
	},
	{
		.name = "attach",
		.title = "attaching to running processes and to the whole machine",
		.required = {"sideband", "other-processes"},
		.helpful = {"map-files", "pid-namespace"},
	},
	{
		.name = "process-events",
		.title = "process, thread and mapping events",
		.required = {"sideband-own"},
		.helpful = {"sideband"},
	},
	{
		.name = "kernel-symbols",
		.title = "names of kernel functions",
		.required = {"kallsyms"},
	},
	{
		.name = "user-symbols",
		.title = "names and lines of user functions",
		.helpful = {"map-files", "debug-info"},
	},
	{
		.name = "opencl",
		.title = "OpenCL kernels and copies with the stacks of their launches",
		.required = {"inject-library", "opencl-driver"},
		.helpful = {"bpf-program", "bpf-loop", "bpf-attach"},
	},
	{
		.name = "cuda",
		.title = "CUDA kernels, copies and graphs with the stacks of their launches",
		.required = {"inject-library", "nvidia-driver", "cuda-variable"},
		.helpful = {"cupti", "bpf-program", "bpf-loop", "bpf-attach"},
	},
	{
		.name = "python-hooks",
		.title = "steps, collectives and the like of Python frameworks",
		.required = {"inject-library", "python-hooks"},
	},
	{0},
};

const struct doctor_setting doctor_settings[] = {
	{"perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid"},
	{"perf_event_mlock_kb", "/proc/sys/kernel/perf_event_mlock_kb"},
	{"perf_event_max_sample_rate", "/proc/sys/kernel/perf_event_max_sample_rate"},
	{"kptr_restrict", "/proc/sys/kernel/kptr_restrict"},
	{"unprivileged_bpf_disabled", "/proc/sys/kernel/unprivileged_bpf_disabled"},
	{"yama.ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope"},
	{"lockdown", "/sys/kernel/security/lockdown"},
	{0},
};
