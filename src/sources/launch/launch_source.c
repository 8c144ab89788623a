/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/launch/launch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "bpf/launch_shared.h"
#include "launch.skel.h"

#define MARKER "sonde_launch_marker"

struct launch_source {
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
	struct launch_source *source, const struct bpf_sampler_parts *parts, struct errmsg *err)
{
	struct launch_bpf *skeleton = launch_bpf__open();
	uint32_t cpu_count = (uint32_t)MAX(libbpf_num_possible_cpus(), 1);
	int result;

	source->skeleton = skeleton;
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

int launch_source_open(struct launch_source **ret_source, const struct bpf_sampler_parts *parts,
	struct errmsg *err)
{
	struct launch_source *source = calloc(1, sizeof(*source));
	int result;

	if (!source)
		return -ENOMEM;
	result = load(source, parts, err);
	if (result < 0) {
		launch_source_free(source);
		return result;
	}
	*ret_source = source;
	return 0;
}

struct launch_source *launch_source_free(struct launch_source *source)
{
	if (!source)
		return NULL;
	bpf_link__destroy(source->probe);
	launch_bpf__destroy(source->skeleton);
	free(source);
	return NULL;
}

int launch_source_start(struct launch_source *source, const char *library, struct errmsg *err)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .func_name = MARKER);

	source->probe = bpf_program__attach_uprobe_opts(
		source->skeleton->progs.on_launch, -1, library, 0, &options);
	if (source->probe)
		return 0;
	return errmsg_set(err, -errno,
		"launches of device work have no stacks: cannot put a probe on %s: %s; the kernel "
		"needs CONFIG_UPROBES",
		library, strerror(errno));
}

void launch_source_stop(struct launch_source *source)
{
	bpf_link__destroy(TAKE_PTR(source->probe));
}

void launch_source_account(const struct launch_source *source, struct launch_account *ret_account)
{
	const uint64_t *counts = (const uint64_t *)source->skeleton->bss->launch_counts;
	struct bpf_prog_info information = {0};
	uint32_t length = sizeof(information);

	*ret_account = (struct launch_account){
		.taken = counts[LAUNCH_COUNT_TAKEN],
		.lost = counts[LAUNCH_COUNT_LOST],
		.busy = counts[LAUNCH_COUNT_BUSY],
	};
	if (bpf_obj_get_info_by_fd(bpf_program__fd(source->skeleton->progs.on_launch), &information,
		    &length) == 0) {
		ret_account->run_count = information.run_cnt;
		ret_account->run_time_ns = information.run_time_ns;
	}
}
