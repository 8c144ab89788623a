/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `sonde record` that say what of devices is recorded, and how. */
#pragma once

#include <stdbool.h>

#include "base/errmsg.h"
#include "cli/command.h"
#include "collect/session/session.h"

#define DEVICE_PM_INTERVAL_US       1000
#define DEVICE_PM_INTERVAL_LEAST_US 10
#define DEVICE_PM_INTERVAL_MOST_US  1000000

struct device_options {
	const char *launch_stacks, *launch_memo, *graph, *cuda, *cuda_api;
	bool cpu_only, gpu_only, launch_only, hip, pc_sampling, pm_sampling, unified_memory,
		cuda_latency;
	uint64_t pm_interval_us; /* 0: not given */
};

#define DEVICE_DEFAULTS                                                                            \
	{                                                                                          \
		.launch_stacks = "auto", .launch_memo = "on", .graph = "auto", .cuda = "own",      \
		.cuda_api = "launches"                                                             \
	}

extern const char *const device_option_stacks[],
	*const device_option_memos[], *const device_option_graphs[],
					      *const device_option_cudas[],
						      *const device_option_cuda_apis[];

#define DEVICE_OPTIONS(target)                                                                               \
	{.long_name = "launch-stacks",                                                                       \
		.type = OPTION_CHOICE,                                                                       \
		.argument = "HOW",                                                                           \
		.help = "Stacks of the calls that give work to a device. bpf: the kernel unwinds "           \
			"them; inprocess: programs copy them, which needs no privileges; off: "              \
			"device work without stacks; auto: bpf where it can run, otherwise "                 \
			"inprocess. Default: auto.",                                                         \
		.value = (void *)&(target).launch_stacks,                                                    \
		.choices = device_option_stacks,                                                             \
		.group = "Device work"},                                                                     \
		{.long_name = "launch-memo",                                                                 \
			.type = OPTION_CHOICE,                                                               \
			.argument = "HOW",                                                                   \
			.help = "on: a launch on the same path as an earlier one reuses its stack; one in "  \
				"64 of them is taken anyway, so the report can say how often the reused "    \
				"stack was wrong; off: every stack is taken. Default: on.",                  \
			.value = (void *)&(target).launch_memo,                                              \
			.choices = device_option_memos,                                                      \
			.group = "Device work"},                                                             \
		{.long_name = "cpu-only",                                                                    \
			.type = OPTION_FLAG,                                                                 \
			.help = "No device work: sonde loads nothing into the programs.",                    \
			.value = &(target).cpu_only,                                                         \
			.group = "Device work"},                                                             \
		{.long_name = "gpu-only",                                                                    \
			.type = OPTION_FLAG,                                                                 \
			.help = "Only device work with the stacks of its launches: threads are not "         \
				"sampled.",                                                                  \
			.value = &(target).gpu_only,                                                         \
			.group = "Device work"},                                                             \
		{.long_name = "launch-only",                                                                 \
			.type = OPTION_FLAG,                                                                 \
			.help = "Only launches with their stacks and correlation ids: devices are not "      \
				"asked for times. Shows what recording stacks costs and misses.",            \
			.value = &(target).launch_only,                                                      \
			.group = "Device work"},                                                             \
		{.long_name = "graph",                                                                       \
			.type = OPTION_CHOICE,                                                               \
			.argument = "DETAIL",                                                                \
			.help = "How launches of CUDA graphs are timed: node times each kernel in them; "    \
				"graph times each launch as a whole, which costs less; device also times "   \
				"those that kernels launch (not tested on a GPU); auto times kernels while " \
				"that adds less than 10 % to a replay, which is measured, else each "        \
				"launch, and kernels in one replay of many. Default: auto.",                 \
			.value = (void *)&(target).graph,                                                    \
			.choices = device_option_graphs,                                                     \
			.group = "Device work"},                                                             \
		{.long_name = "cuda",                                                                        \
			.type = OPTION_CHOICE,                                                               \
			.argument = "WHOSE",                                                                 \
			.help = "Who traces the GPU where the program runs torch.profiler: own, sonde (the " \
				"profiler's trace lacks the GPU); share, the profiler while it runs, then "  \
				"sonde again; yield, the profiler from its first start on. Default: own.",   \
			.value = (void *)&(target).cuda,                                                     \
			.choices = device_option_cudas,                                                      \
			.group = "Device work"},                                                             \
		{.long_name = "cuda-api",                                                                    \
			.type = OPTION_CHOICE,                                                               \
			.argument = "CALLS",                                                                 \
			.help = "Which calls of CUDA are recorded. launches: launches, copies, waits, "      \
				"events, graphs, allocations; all: also memory pools, queries, prefetches, " \
				"host functions, and loading and compiling of code. Default: launches.",     \
			.value = (void *)&(target).cuda_api,                                                 \
			.choices = device_option_cuda_apis,                                                  \
			.group = "Device work"},                                                             \
		{                                                                                            \
			.long_name = "pc-sampling",                                                          \
			.type = OPTION_FLAG,                                                                 \
			.help = "Also sample which instructions of CUDA's kernels warps wait at, and why: "  \
				"sonde report --by stalls. Needs the right to profile "                      \
				"(NVreg_RestrictProfilingToAdminUsers) and a GPU from Volta on. Not tested " \
				"on a GPU.",                                                                 \
			.value = &(target).pc_sampling,                                                      \
		},                                                                                           \
		{.long_name = "pm-sampling",                                                                 \
			.type = OPTION_FLAG,                                                                 \
			.help = "Also sample what the GPUs that a CUDA program uses count: how busy SMs "    \
				"and tensor pipes are, traffic of DRAM, NVLink and PCIe: sonde report "      \
				"--by counter. Needs the right to profile "                                  \
				"(NVreg_RestrictProfilingToAdminUsers), a GPU from Turing on and CUPTI "     \
				"12.6. Not tested on a GPU.",                                                \
			.value = &(target).pm_sampling,                                                      \
			.group = "Device work"},                                                             \
		{.long_name = "pm-interval",                                                                 \
			.type = OPTION_U64,                                                                  \
			.argument = "MICROSECONDS",                                                          \
			.help = "With --pm-sampling: from one sample to the next. Default: 1000.",           \
			.minimum = DEVICE_PM_INTERVAL_LEAST_US,                                              \
			.maximum = DEVICE_PM_INTERVAL_MOST_US,                                               \
			.value = &(target).pm_interval_us,                                                   \
			.group = "Device work"},                                                             \
		{.long_name = "unified-memory",                                                              \
			.type = OPTION_FLAG,                                                                 \
			.help = "Also record page faults and migrations of CUDA's unified memory "           \
				"(cudaMallocManaged). May slow programs that have many. Not tested on a "    \
				"GPU.",                                                                      \
			.value = &(target).unified_memory,                                                   \
			.group = "Device work"},                                                             \
		{.long_name = "cuda-latency",                                                                \
			.type = OPTION_FLAG,                                                                 \
			.help = "Also record when the driver took each launch of a CUDA kernel and when it " \
				"handed it to the GPU: how long kernels wait there, in --by launches and "   \
				"--by kernel. Not tested on a GPU.",                                         \
			.value = &(target).cuda_latency,                                                     \
			.group = "Device work"},                                                             \
	{                                                                                                    \
		.long_name = "hip", .type = OPTION_FLAG,                                                     \
		.help = "Also record kernels and copies of HIP programs, by rocprofiler-sdk of ROCm "        \
			"7. Not tested on an AMD GPU. Where AMD's libraries do not find "                    \
			"rocprofiler-sdk they end the program when it first uses HIP.",                      \
		.value = &(target).hip, .group = "Device work"                                               \
	}

/*
 * Fills the devices' part of `session`. Returns 0, or -EINVAL with a sentence for what does not go
 * together.
 */
int device_options_parse(const struct device_options *options, bool with_command,
	struct session_options *session, struct errmsg *err);
