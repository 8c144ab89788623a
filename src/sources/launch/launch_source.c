/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of launches: takes the stack of every launch of device work, at the marker that the
 * injected library calls, through the CPU sampler's ring. A launch costs its thread one system call
 * and the unwinding.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "bpf/launch.skel.h"
#include "bpf/launch_shared.h"
#include "sources/source.h"

#define MARKER "sonde_launch_marker"

struct launch_state {
	const char *library; /* every process that maps this file is probed */
	struct launch_bpf *skeleton;
	struct bpf_link *probe;
};

static int share_maps(struct launch_bpf *skeleton, const struct bpf_sampler_parts *parts)
{
	const struct {
		struct bpf_map *map;
		int fd;
	} shared[] = {
		{skeleton->maps.samples, parts->samples},
		{skeleton->maps.processes, parts->processes},
		{skeleton->maps.mappings, parts->mappings},
		{skeleton->maps.interpreters, parts->interpreters},
		{skeleton->maps.sent_codes, parts->sent_codes},
		{skeleton->maps.tables, parts->tables},
		{skeleton->maps.cached_rules, parts->cached_rules},
		{skeleton->maps.counters, parts->counters},
	};

	for (size_t i = 0; i < ARRAY_SIZE(shared); i++) {
		int result = bpf_map__reuse_fd(shared[i].map, shared[i].fd);

		if (result < 0)
			return result;
	}
	return 0;
}

static int load(
	struct launch_state *state, const struct bpf_sampler_parts *parts, struct errmsg *err)
{
	struct launch_bpf *skeleton = launch_bpf__open();
	uint32_t cpu_count = (uint32_t)MAX(libbpf_num_possible_cpus(), 1);
	int result;

	state->skeleton = skeleton;
	if (!skeleton)
		return errmsg_set(
			err, -errno, "cannot open the launch program: %s", strerror(errno));
	skeleton->rodata->whole_machine = parts->whole_machine;
	skeleton->rodata->pid_namespace_level = parts->pid_namespace_level;
	skeleton->rodata->pid_namespace_inode = parts->pid_namespace_inode;
	skeleton->rodata->wakeup_bytes = parts->wakeup_bytes;
	skeleton->rodata->cpu_count = cpu_count;
	skeleton->rodata->copies_until_bytes = parts->wakeup_bytes;
	bpf_map__set_max_entries(skeleton->maps.scratches, cpu_count + LAUNCH_SPARE_SCRATCHES);
	bpf_map__set_max_entries(skeleton->maps.scratch_users, cpu_count + LAUNCH_SPARE_SCRATCHES);
	result = share_maps(skeleton, parts);
	if (result == 0)
		result = launch_bpf__load(skeleton);
	if (result < 0)
		return errmsg_set(err, -ENOTSUP,
			"launches of device work have no stacks: the kernel refused the program "
			"(%s); it needs Linux 5.17",
			strerror(-result));
	return 0;
}

static void launch_close(void *pointer)
{
	struct launch_state *state = pointer;

	bpf_link__destroy(state->probe);
	launch_bpf__destroy(state->skeleton);
	free(state);
}

static int launch_open(void **ret_state, const struct source_settings *settings,
	const struct source_capabilities *offered, struct errmsg *err)
{
	struct launch_state *state;
	int r;

	if (!offered->bpf)
		return errmsg_set(err, -EPERM,
			"launches of device work have no stacks: --launch-stacks bpf needs the BPF "
			"mode: %s; or leave the option out",
			source_why_no_bpf(offered));
	state = calloc(1, sizeof(*state));
	if (!state)
		return -ENOMEM;
	state->library = settings->library;
	r = load(state, offered->bpf, err);
	if (r < 0) {
		launch_close(state);
		return r;
	}
	*ret_state = state;
	return 0;
}

static void launch_capabilities(void *pointer, struct source_capabilities *offered)
{
	offered->launch_stacks = true;
}

static int launch_start(void *pointer, struct errmsg *err)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .func_name = MARKER);
	struct launch_state *state = pointer;

	state->probe = bpf_program__attach_uprobe_opts(
		state->skeleton->progs.on_launch, -1, state->library, 0, &options);
	if (state->probe)
		return 0;
	return errmsg_set(err, -errno,
		"launches of device work have no stacks: cannot put a probe on %s: %s; the kernel "
		"needs CONFIG_UPROBES",
		state->library, strerror(errno));
}

static void launch_stop(void *pointer)
{
	struct launch_state *state = pointer;

	bpf_link__destroy(TAKE_PTR(state->probe));
}

static void launch_account(void *pointer, struct source_account *account)
{
	const struct launch_state *state = pointer;
	const uint64_t *counts = (const uint64_t *)state->skeleton->bss->launch_counts;
	struct bpf_prog_info information = {0};
	uint32_t length = sizeof(information);

	account->launch_stacks_lost += counts[LAUNCH_COUNT_LOST] + counts[LAUNCH_COUNT_BUSY];
	if (bpf_obj_get_info_by_fd(bpf_program__fd(state->skeleton->progs.on_launch), &information,
		    &length) == 0) {
		account->launching.count += information.run_cnt;
		account->launching.time_ns += information.run_time_ns;
	}
}

const struct source launch_source = {
	.name = "launch",
	.moment = SOURCE_AT_LAUNCH,
	.open = launch_open,
	.capabilities = launch_capabilities,
	.start = launch_start,
	.stop = launch_stop,
	.account = launch_account,
	.close = launch_close,
};
