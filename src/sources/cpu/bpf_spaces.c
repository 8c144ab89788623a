/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/cpu/bpf_spaces.h"

#include <bpf/bpf.h>

#include "base/array.h"
#include "base/map.h"
#include "bpf/sampler_shared.h"

struct space {
	uint32_t id;
	uint32_t generation;
	uint32_t users;                          /* processes */
	uint32_t python;                         /* slot in the interpreters map; 0: none */
	uint64_t block_sizes;                    /* as in struct sampler_process */
	ARRAY_OF(struct sampler_mapping) ranges; /* sorted by start */
};

struct bpf_spaces {
	struct bpf_spaces_maps maps;
	bool whole_machine;
	uint32_t next_id;
	uint32_t slot_users[SAMPLER_MAX_INTERPRETERS]; /* spaces */
	struct map_u64 by_pid;                         /* → struct space * */
};

int bpf_spaces_new(
	struct bpf_spaces **ret_spaces, const struct bpf_spaces_maps *maps, bool whole_machine)
{
	struct bpf_spaces *spaces = calloc(1, sizeof(*spaces));

	if (!spaces)
		return -ENOMEM;
	spaces->maps = *maps;
	spaces->whole_machine = whole_machine;
	spaces->next_id = 1;
	*ret_spaces = spaces;
	return 0;
}

static struct space *space_of(struct bpf_spaces *spaces, uint32_t pid)
{
	uint64_t value;

	return map_u64_get(&spaces->by_pid, pid, &value) ? (struct space *)(uintptr_t)value : NULL;
}

/* Calls `visit` for each largest aligned power-of-two block of the range. */
static int for_each_block(const struct bpf_spaces *spaces, struct space *space,
	const struct sampler_mapping *range,
	int (*visit)(
		int fd, const struct sampler_mapping_key *key, const struct sampler_mapping *value))
{
	uint64_t at = range->start;
	int result = 0;

	while (at < range->end && result == 0) {
		int bits = at ? MIN(__builtin_ctzll(at), SAMPLER_BLOCK_BITS_MAX)
			      : SAMPLER_BLOCK_BITS_MAX;
		struct sampler_mapping_key key;

		while ((1ULL << bits) > range->end - at)
			bits--;
		key = (struct sampler_mapping_key){
			.space = space->id,
			.block_bits = (uint32_t)bits,
			.address = at,
		};
		space->block_sizes |= 1ULL << bits;
		result = visit(spaces->maps.mappings_fd, &key, range);
		at += 1ULL << bits;
	}
	return result;
}

static int insert_block(
	int fd, const struct sampler_mapping_key *key, const struct sampler_mapping *value)
{
	return bpf_map_update_elem(fd, key, value, BPF_ANY) < 0 ? -errno : 0;
}

static int delete_block(
	int fd, const struct sampler_mapping_key *key, const struct sampler_mapping *value _unused_)
{
	bpf_map_delete_elem(fd, key);
	return 0;
}

static size_t find_range(const struct space *space, uint64_t start)
{
	size_t low = 0, high = space->ranges.count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (space->ranges.items[middle].start < start)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Tells the program. A process that is followed has an entry from the start, which the program
 * removes when it exits: one that is gone does not come back.
 */
static void publish(struct bpf_spaces *spaces, uint32_t pid, const struct space *space)
{
	struct sampler_process value = {
		.space = space ? space->id : 0,
		.generation = space ? space->generation : 0,
		.sampled = !spaces->whole_machine,
		.python = space ? space->python : 0,
		.block_sizes = space ? space->block_sizes : 0,
	};

	bpf_map_update_elem(spaces->maps.processes_fd, &pid, &value,
		spaces->whole_machine ? BPF_ANY : BPF_EXIST);
}

int bpf_spaces_follow(struct bpf_spaces *spaces, uint32_t pid)
{
	struct sampler_process value = {.sampled = 1};

	/* -EEXIST: followed already. */
	if (bpf_map_update_elem(spaces->maps.processes_fd, &pid, &value, BPF_NOEXIST) < 0 &&
		errno != EEXIST)
		return -errno;
	if (space_of(spaces, pid))
		publish(spaces, pid, space_of(spaces, pid));
	return 0;
}

static struct space *space_new(struct bpf_spaces *spaces, uint32_t pid)
{
	struct space *space = calloc(1, sizeof(*space));

	if (!space)
		return NULL;
	space->id = spaces->next_id++;
	space->users = 1;
	spaces->slot_users[0]++; /* no interpreter; this slot is never given */
	if (map_u64_set(&spaces->by_pid, pid, (uintptr_t)space) < 0) {
		free(space);
		return NULL;
	}
	return space;
}

static void use_slot(struct bpf_spaces *spaces, struct space *space, uint32_t slot)
{
	spaces->slot_users[space->python]--;
	space->python = slot;
	spaces->slot_users[slot]++;
}

static void space_unref(struct bpf_spaces *spaces, struct space *space)
{
	if (--space->users)
		return;
	array_foreach (&space->ranges, range)
		for_each_block(spaces, space, range, delete_block);
	array_done(&space->ranges);
	spaces->slot_users[space->python]--;
	free(space);
}

static int space_insert(
	struct bpf_spaces *spaces, struct space *space, const struct sampler_mapping *range)
{
	size_t at = find_range(space, range->start);
	int result;

	result = array_reserve(&space->ranges, 1);
	if (result < 0)
		return result;
	memmove(&space->ranges.items[at + 1], &space->ranges.items[at],
		(space->ranges.count - at) * sizeof(*space->ranges.items));
	space->ranges.items[at] = *range;
	space->ranges.count++;
	return for_each_block(spaces, space, range, insert_block);
}

/* The process's own space to change: a copy when it shares one. */
static struct space *space_to_change(struct bpf_spaces *spaces, uint32_t pid)
{
	struct space *shared = space_of(spaces, pid), *own;

	if (shared && shared->users == 1)
		return shared;
	own = space_new(spaces, pid);
	if (!own || !shared)
		return own;
	array_foreach (&shared->ranges, range)
		space_insert(spaces, own, range);
	use_slot(spaces, own, shared->python);
	space_unref(spaces, shared);
	return own;
}

int bpf_spaces_map(struct bpf_spaces *spaces, uint32_t pid, const struct mapping *mapping,
	uint64_t bias, bool frame_pointer)
{
	struct sampler_mapping range = {
		.start = mapping->start,
		.end = mapping->end,
		.bias = bias,
		.file = mapping->file,
		.kind = frame_pointer ? SAMPLER_MAPPING_FRAME_POINTER : SAMPLER_MAPPING_TABLE,
	};
	struct space *space = space_of(spaces, pid);
	size_t at = space ? find_range(space, range.start) : 0;
	int result;

	/* After a fork the child's mappings are reported one by one: the shared space has them. */
	if (space && at < space->ranges.count &&
		memcmp(&space->ranges.items[at], &range, sizeof(range)) == 0)
		return 0;
	space = space_to_change(spaces, pid);
	if (!space)
		return -ENOMEM;
	result = space_insert(spaces, space, &range);
	space->generation++;
	publish(spaces, pid, space);
	return result;
}

void bpf_spaces_unmap(struct bpf_spaces *spaces, uint32_t pid, const struct mapping *mapping)
{
	struct space *space = space_of(spaces, pid);
	size_t at;

	if (!space)
		return;
	space = space_to_change(spaces, pid);
	if (!space)
		return;
	at = find_range(space, mapping->start);
	if (at >= space->ranges.count || space->ranges.items[at].start != mapping->start)
		return;
	for_each_block(spaces, space, &space->ranges.items[at], delete_block);
	memmove(&space->ranges.items[at], &space->ranges.items[at + 1],
		(--space->ranges.count - at) * sizeof(*space->ranges.items));
	space->generation++;
	publish(spaces, pid, space);
}

int bpf_spaces_set_python(
	struct bpf_spaces *spaces, uint32_t pid, const struct python_image_facts *facts)
{
	struct space *space = space_of(spaces, pid);
	uint32_t slot;

	if (!space)
		return -ESRCH;
	space = space_to_change(spaces, pid);
	if (!space)
		return -ENOMEM;
	if (!facts) {
		use_slot(spaces, space, 0);
		publish(spaces, pid, space);
		return 0;
	}
	slot = space->python;
	for (uint32_t i = 1; !slot && i < SAMPLER_MAX_INTERPRETERS; i++) {
		if (!spaces->slot_users[i])
			slot = i;
	}
	if (!slot)
		return -ENOSPC;
	if (bpf_map_update_elem(spaces->maps.interpreters_fd, &slot, facts, BPF_ANY) < 0)
		return -errno;
	use_slot(spaces, space, slot);
	publish(spaces, pid, space);
	return 0;
}

void bpf_spaces_clear(struct bpf_spaces *spaces, uint32_t pid)
{
	struct space *space = space_of(spaces, pid);

	if (!space)
		return;
	map_u64_remove(&spaces->by_pid, pid);
	publish(spaces, pid, NULL);
	if (spaces->whole_machine)
		bpf_map_delete_elem(spaces->maps.processes_fd, &pid);
	space_unref(spaces, space);
}

int bpf_spaces_fork(struct bpf_spaces *spaces, uint32_t parent_pid, uint32_t child_pid)
{
	struct space *space = space_of(spaces, parent_pid);
	int result;

	if (!space)
		return 0;
	bpf_spaces_clear(spaces, child_pid);
	result = map_u64_set(&spaces->by_pid, child_pid, (uintptr_t)space);
	if (result < 0)
		return result;
	space->users++;
	publish(spaces, child_pid, space);
	return 0;
}

struct bpf_spaces *bpf_spaces_free(struct bpf_spaces *spaces)
{
	uint64_t pid, value;
	size_t position = 0;

	if (!spaces)
		return NULL;
	while (map_u64_next(&spaces->by_pid, &position, &pid, &value)) {
		struct space *space = (struct space *)(uintptr_t)value;

		/* The maps go with the program: no need to empty them. */
		if (--space->users == 0) {
			array_done(&space->ranges);
			free(space);
		}
	}
	map_u64_done(&spaces->by_pid);
	free(spaces);
	return NULL;
}
