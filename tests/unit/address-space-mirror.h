/* SPDX-License-Identifier: Apache-2.0 */
/* A listener that keeps its own copy of all mappings and notes when what it is told cannot be. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sources/process/address_space.h"

struct mirror_mapping {
	uint32_t pid;
	struct mapping mapping;
};

struct mirror {
	ARRAY_OF(struct mirror_mapping) mappings;
	unsigned added, removed, cleared, forked, files;
	bool inconsistent;
};

static void mirror_added(
	void *context, const struct process *process, const struct mapping *mapping)
{
	struct mirror *mirror = context;
	struct mirror_mapping copy = {process->pid, *mapping};

	mirror->added++;
	array_foreach (&mirror->mappings, other) {
		if (other->pid == copy.pid && other->mapping.start < mapping->end &&
			mapping->start < other->mapping.end)
			mirror->inconsistent = true;
	}
	if (array_append(&mirror->mappings, copy) < 0)
		abort();
}

static void mirror_removed(
	void *context, const struct process *process, const struct mapping *mapping)
{
	struct mirror *mirror = context;

	mirror->removed++;
	for (size_t i = 0; i < mirror->mappings.count; i++) {
		struct mirror_mapping *copy = &mirror->mappings.items[i];

		if (copy->pid == process->pid && copy->mapping.start == mapping->start &&
			copy->mapping.end == mapping->end && copy->mapping.file == mapping->file) {
			*copy = mirror->mappings.items[--mirror->mappings.count];
			return;
		}
	}
	mirror->inconsistent = true;
}

static void mirror_cleared(void *context, const struct process *process)
{
	struct mirror *mirror = context;
	size_t kept = 0;

	mirror->cleared++;
	for (size_t i = 0; i < mirror->mappings.count; i++) {
		if (mirror->mappings.items[i].pid != process->pid)
			mirror->mappings.items[kept++] = mirror->mappings.items[i];
	}
	mirror->mappings.count = kept;
}

static void mirror_forked(void *context, const struct process *parent, const struct process *child)
{
	struct mirror *mirror = context;

	mirror->forked++;
	if (parent->mapping_count != child->mapping_count)
		mirror->inconsistent = true;
}

static void mirror_file(void *context, const struct mapped_file *file)
{
	struct mirror *mirror = context;

	if (file->index != mirror->files++)
		mirror->inconsistent = true;
}

static bool mirror_equals(const struct mirror *mirror, const struct process *process)
{
	size_t count = 0;

	array_foreach (&mirror->mappings, copy) {
		const struct mapping *mapping;

		if (copy->pid != process->pid)
			continue;
		count++;
		mapping = process_find_mapping(process, copy->mapping.start);
		if (!mapping || memcmp(mapping, &copy->mapping, sizeof(*mapping)) != 0)
			return false;
	}
	return count == process->mapping_count && !mirror->inconsistent;
}

static struct address_space_listener mirror_listener(struct mirror *mirror)
{
	return (struct address_space_listener){
		.context = mirror,
		.mapping_added = mirror_added,
		.mapping_removed = mirror_removed,
		.process_cleared = mirror_cleared,
		.process_forked = mirror_forked,
		.file_added = mirror_file,
	};
}
