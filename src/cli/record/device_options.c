/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record/device_options.h"

#include <errno.h>
#include <string.h>

const char *const device_option_stacks[] = {"auto", "bpf", "inprocess", "off", NULL};
const char *const device_option_memos[] = {"on", "off", NULL};
const char *const device_option_graphs[] = {"auto", "node", "graph", "device", NULL};
const char *const device_option_cudas[] = {"own", "share", "yield", NULL};
const char *const device_option_cuda_apis[] = {"launches", "all", NULL};

static enum session_launch_stacks parse_launch_stacks(const struct device_options *options)
{
	static const enum session_launch_stacks values[] = {
		['a'] = SESSION_LAUNCH_STACKS_AUTO,
		['b'] = SESSION_LAUNCH_STACKS_BPF,
		['i'] = SESSION_LAUNCH_STACKS_INPROCESS,
		['o'] = SESSION_LAUNCH_STACKS_OFF,
	};

	return values[(unsigned char)options->launch_stacks[0]];
}

/* What of the targets is recorded; -EINVAL with a sentence for what does not go together. */
static int parse_scope(const struct device_options *options, bool with_command,
	enum session_scope *ret_scope, struct errmsg *err)
{
	if (options->cpu_only + options->gpu_only + options->launch_only > 1)
		return errmsg_set(err, -EINVAL,
			"--cpu-only, --gpu-only and --launch-only exclude each other: give one of "
			"them");
	if ((options->gpu_only || options->launch_only) && !with_command)
		return errmsg_set(err, -EINVAL,
			"%s records device work, which works only for a command: give one after --",
			options->gpu_only ? "--gpu-only" : "--launch-only");
	if (options->launch_only && options->launch_stacks[0] == 'o')
		return errmsg_set(err, -EINVAL,
			"--launch-only with --launch-stacks off would record nothing: leave one "
			"out");
	if (options->hip && (!with_command || options->cpu_only))
		return errmsg_set(err, -EINVAL,
			"--hip is for a command, and not with --cpu-only, which loads nothing into "
			"it: %s",
			with_command ? "leave one of the two out" : "give one after --");
	*ret_scope = options->cpu_only      ? SESSION_SCOPE_CPU
		     : options->gpu_only    ? SESSION_SCOPE_GPU
		     : options->launch_only ? SESSION_SCOPE_LAUNCH
					    : SESSION_SCOPE_ALL;
	return 0;
}

static enum wire_graph_mode parse_graph(const struct device_options *options)
{
	if (strcmp(options->graph, "node") == 0)
		return WIRE_GRAPH_NODE;
	return strcmp(options->graph, "auto") == 0 ? WIRE_GRAPH_AUTO : WIRE_GRAPH_WHOLE;
}

static enum wire_tracer_mode parse_cuda(const struct device_options *options)
{
	if (strcmp(options->cuda, "share") == 0)
		return WIRE_TRACER_SHARE;
	return strcmp(options->cuda, "yield") == 0 ? WIRE_TRACER_YIELD : WIRE_TRACER_OWN;
}

/* What the option is of must be there. */
static int parse_cuda_api(const struct device_options *options, bool with_command,
	enum wire_call_mode *ret_mode, struct errmsg *err)
{
	bool all = strcmp(options->cuda_api, "all") == 0;

	if (all && (!with_command || options->cpu_only))
		return errmsg_set(err, -EINVAL,
			"--cuda-api all is for a command, and not with --cpu-only, which loads "
			"nothing into it: %s",
			with_command ? "leave one of the two out" : "give one after --");
	*ret_mode = all ? WIRE_CALLS_ALL : WIRE_CALLS_LAUNCHES;
	return 0;
}

static int check_pc_sampling(
	const struct device_options *options, bool with_command, struct errmsg *err)
{
	if (options->pc_sampling && (!with_command || options->cpu_only || options->launch_only))
		return errmsg_set(err, -EINVAL,
			"--pc-sampling is for a command, and not with --cpu-only or --launch-only, "
			"which do not ask the device: %s",
			with_command ? "leave one of the two out" : "give one after --");
	return 0;
}

static int parse_pm_sampling(const struct device_options *options, bool with_command,
	uint32_t *ret_interval_us, struct errmsg *err)
{
	uint64_t interval_us = options->pm_interval_us ?: DEVICE_PM_INTERVAL_US;

	if (options->pm_interval_us && !options->pm_sampling)
		return errmsg_set(err, -EINVAL, "--pm-interval is of --pm-sampling: give both");
	if (options->pm_sampling && (!with_command || options->cpu_only || options->launch_only))
		return errmsg_set(err, -EINVAL,
			"--pm-sampling is for a command, and not with --cpu-only or --launch-only, "
			"which do not ask the device: %s",
			with_command ? "leave one of the two out" : "give one after --");
	if (options->pm_sampling && options->pc_sampling)
		return errmsg_set(err, -EINVAL,
			"--pm-sampling and --pc-sampling both take the GPU's counters: record once "
			"with each");
	*ret_interval_us = options->pm_sampling ? (uint32_t)interval_us : 0;
	return 0;
}

/* An option of what CUDA's devices report, of processes that sonde starts. */
static int check_reported(const struct device_options *options, bool with_command, bool is_given,
	const char *name, struct errmsg *err)
{
	if (is_given && !with_command)
		return errmsg_set(err, -EINVAL, "%s is for a command: give one after --", name);
	if (is_given && (options->cpu_only || options->launch_only))
		return errmsg_set(err, -EINVAL,
			"%s needs what devices report, which %s does not ask for: leave one of "
			"the two out",
			name, options->cpu_only ? "--cpu-only" : "--launch-only");
	return 0;
}

int device_options_parse(const struct device_options *options, bool with_command,
	struct session_options *session, struct errmsg *err)
{
	int r;

	session->launch_stacks = parse_launch_stacks(options);
	session->launch_memo_off = strcmp(options->launch_memo, "off") == 0;
	session->graph_mode = parse_graph(options);
	session->tracer_mode = parse_cuda(options);
	session->opens_risky_doors = options->hip;
	session->samples_pcs = options->pc_sampling;
	session->unified_memory = options->unified_memory;
	session->launch_times = options->cuda_latency;
	session->device_graphs = strcmp(options->graph, "device") == 0;
	r = parse_cuda_api(options, with_command, &session->call_mode, err);
	r = r ?: check_pc_sampling(options, with_command, err);
	r = r ?: parse_pm_sampling(options, with_command, &session->pm_interval_us, err);
	r = r
		    ?: check_reported(options, with_command, options->unified_memory,
			       "--unified-memory", err);
	r = r
		    ?: check_reported(
			       options, with_command, options->cuda_latency, "--cuda-latency", err);
	r = r
		    ?: check_reported(options, with_command, session->device_graphs,
			       "--graph device", err);
	return r ?: parse_scope(options, with_command, &session->scope, err);
}
