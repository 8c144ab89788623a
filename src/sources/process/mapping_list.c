/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/process/mapping_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static int reserve(struct process *process, size_t extra)
{
	return array_grow_((void **)&process->mappings, &process->mapping_capacity,
		process->mapping_count, extra, sizeof(*process->mappings));
}

/* The index of the first mapping that ends beyond the address. */
static size_t first_ending_after(const struct process *process, uint64_t address)
{
	size_t low = 0, high = process->mapping_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (process->mappings[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const struct mapping *process_find_mapping(const struct process *process, uint64_t address)
{
	size_t index = first_ending_after(process, address);

	if (index == process->mapping_count || process->mappings[index].start > address)
		return NULL;
	return &process->mappings[index];
}

static bool is_same(const struct mapping *a, const struct mapping *b)
{
	return a->start == b->start && a->end == b->end && a->file_offset == b->file_offset &&
	       a->file == b->file;
}

/* The listener gets a copy: it may look at the process's list. */
static void remove_at(
	struct process *process, size_t index, const struct address_space_listener *listener)
{
	struct mapping removed = process->mappings[index];

	process->mapping_count--;
	memmove(&process->mappings[index], &process->mappings[index + 1],
		(process->mapping_count - index) * sizeof(removed));
	process->generation++;
	if (listener->mapping_removed)
		listener->mapping_removed(listener->context, process, &removed);
}

/* There is room: the callers reserve it before they change anything. */
static void insert(struct process *process, const struct mapping *mapping,
	const struct address_space_listener *listener)
{
	size_t index = first_ending_after(process, mapping->start);

	memmove(&process->mappings[index + 1], &process->mappings[index],
		(process->mapping_count - index) * sizeof(*mapping));
	process->mappings[index] = *mapping;
	process->mapping_count++;
	process->generation++;
	if (listener->mapping_added)
		listener->mapping_added(listener->context, process, mapping);
}

/* What is left of `old` below and above the range. */
static int cut(
	const struct mapping *old, uint64_t start, uint64_t end, struct mapping ret_pieces[2])
{
	int count = 0;

	if (old->start < start) {
		ret_pieces[count] = *old;
		ret_pieces[count++].end = start;
	}
	if (old->end > end) {
		ret_pieces[count] = *old;
		ret_pieces[count].start = end;
		if (old->kind == MAPPING_FILE || old->file_offset)
			ret_pieces[count].file_offset += end - old->start;
		count++;
	}
	return count;
}

int mapping_list_map(struct process *process, const struct mapping *mapping,
	const struct address_space_listener *listener)
{
	size_t index = first_ending_after(process, mapping->start);

	if (mapping->start >= mapping->end)
		return 0;
	if (index < process->mapping_count && is_same(&process->mappings[index], mapping))
		return 0;
	/* Cutting a hole into one mapping leaves two pieces and the new one. */
	if (reserve(process, 3) < 0)
		return -ENOMEM;
	while (index < process->mapping_count && process->mappings[index].start < mapping->end) {
		struct mapping pieces[2];
		int count = cut(&process->mappings[index], mapping->start, mapping->end, pieces);

		remove_at(process, index, listener);
		for (int i = 0; i < count; i++)
			insert(process, &pieces[i], listener);
		index = first_ending_after(process, mapping->start);
	}
	insert(process, mapping, listener);
	return 0;
}

static bool contains(const struct mapping *mappings, size_t count, const struct mapping *wanted)
{
	const struct process sorted = {
		.mappings = (struct mapping *)mappings, .mapping_count = count};
	size_t index = first_ending_after(&sorted, wanted->start);

	return index < count && is_same(&mappings[index], wanted);
}

int mapping_list_replace(struct process *process, const struct mapping *mappings, size_t count,
	const struct address_space_listener *listener)
{
	for (size_t i = process->mapping_count; i-- > 0;) {
		if (!contains(mappings, count, &process->mappings[i]))
			remove_at(process, i, listener);
	}
	for (size_t i = 0; i < count; i++) {
		if (mapping_list_map(process, &mappings[i], listener) < 0)
			return -ENOMEM;
	}
	return 0;
}

int mapping_list_fork(struct process *child, const struct process *parent,
	const struct address_space_listener *listener)
{
	if (reserve(child, parent->mapping_count) < 0)
		return -ENOMEM;
	if (parent->mapping_count)
		memcpy(child->mappings, parent->mappings,
			parent->mapping_count * sizeof(*child->mappings));
	child->mapping_count = parent->mapping_count;
	child->generation++;
	if (listener->process_forked)
		listener->process_forked(listener->context, parent, child);
	for (size_t i = 0; listener->mapping_added && i < child->mapping_count; i++)
		listener->mapping_added(listener->context, child, &child->mappings[i]);
	return 0;
}

void mapping_list_clear(struct process *process, const struct address_space_listener *listener)
{
	process->mapping_count = 0;
	process->generation++;
	if (listener->process_cleared)
		listener->process_cleared(listener->context, process);
}
