/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/wait/share.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "base/macros.h"

int share_sampler_maps(struct bpf_object *object, const struct bpf_sampler_parts *parts)
{
	const struct {
		const char *name;
		int fd;
	} shared[] = {
		{"samples", parts->samples},
		{"processes", parts->processes},
		{"mappings", parts->mappings},
		{"interpreters", parts->interpreters},
		{"sent_codes", parts->sent_codes},
		{"tables", parts->tables},
		{"cached_rules", parts->cached_rules},
		{"counters", parts->counters},
	};

	for (size_t i = 0; i < ARRAY_SIZE(shared); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, shared[i].name);
		int result = map ? bpf_map__reuse_fd(map, shared[i].fd) : -ENOENT;

		if (result < 0)
			return result;
	}
	return 0;
}

void program_runs_add(struct program_runs *runs, const struct bpf_program *program)
{
	struct bpf_prog_info information = {0};
	uint32_t length = sizeof(information);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &information, &length) < 0)
		return;
	runs->count += information.run_cnt;
	runs->time_ns += information.run_time_ns;
	runs->missed += information.recursion_misses;
}
