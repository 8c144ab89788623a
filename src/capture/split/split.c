/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capture is read several times: once for its windows and for what refers to what, then for
 * each batch of windows for what happened in them, and for the names of the code that they have.
 */
#include "capture/split/split.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/split/state.h"

/* Parts that are written at once: each is an open file. */
#define BATCH     64
#define EXTENSION ".pftrace"

char *capture_split_path(const char *path, uint32_t window)
{
	size_t length = strlen(path), extension = strlen(EXTENSION);
	bool has_extension =
		length > extension && strcmp(path + length - extension, EXTENSION) == 0;
	char *split;

	if (asprintf(&split, "%.*s.w%u%s", (int)(has_extension ? length - extension : length), path,
		    window, has_extension ? EXTENSION : "") < 0)
		return NULL;
	return split;
}

/* ---- the first reading: windows, and what refers to what ---- */

static int see_window(void *context, const struct capture_window *window)
{
	struct split *split = context;
	struct split_part part = {.window = *window};
	int r = split_tables_text(&split->tables, window->label, &part.window.label);

	array_foreach (&split->parts, known) {
		if (known->window.number == window->number) {
			known->window = part.window;
			return r;
		}
	}
	if (r == 0)
		r = array_append(&split->parts, part);
	return r;
}

static int see_launch(void *context, const struct capture_launch *launch)
{
	struct split *split = context;

	return launch->untimed == WIRE_DEVICE_CAPTURED
		       ? map_u64_set(&split->definitions,
				 split_launch_key(launch->pid, launch->correlation), 1)
		       : 0;
}

static int see_launch_stack(void *context, const struct capture_launch_stack *stack)
{
	struct split *split = context;
	uint64_t key = split_launch_key(stack->pid, stack->same_as);
	int r;

	if (!stack->same_as || map_u64_get(&split->shared_index, key, NULL))
		return 0;
	r = map_u64_set(&split->shared_index, key, split->shared.count);
	if (r < 0)
		return r;
	return array_append(&split->shared, (struct shared_stack){0});
}

static int see_device_event(void *context, const struct capture_device_event *event)
{
	struct split *split = context;

	if (event->kind == CAPTURE_GRAPH_CALL)
		return map_u64_set(&split->definitions,
			split_launch_key(event->pid, event->graph.correlation), 1);
	if (event->kind == CAPTURE_GRAPH_NODE)
		return map_u64_set(&split->definitions,
			split_launch_key(event->pid, event->node.correlation), 1);
	return 0;
}

static int see_stats(void *context, const struct capture_stats *stats)
{
	((struct split *)context)->accounts++;
	return 0;
}

static const struct capture_visitor first_reading = {
	.window = see_window,
	.launch = see_launch,
	.launch_stack = see_launch_stack,
	.device_event = see_device_event,
	.stats = see_stats,
};

/* ---- the second: what happened ---- */

/* Calls a function of all writers of the batch. */
#define for_batch(split, part)                                                                     \
	for (struct split_part *part = (split)->parts.items + (split)->first;                      \
		part < (split)->parts.items + (split)->end; part++)

/* ---- the third: names, and the account ---- */

static int split_symbols(void *context, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	capture_id own;
	int r = 0;

	for_batch ((struct split *)context, part) {
		if (split_has_site(&part->ids, mapping, rel_pc, &own))
			if (r == 0)
				r = capture_writer_symbols(part->writer, own, rel_pc, lines, count);
	}
	return r;
}

/* What was lost, and what recording cost, is known of the whole alone. */
static int put_account(struct split_part *part, const struct capture_stats *stats)
{
	const char **notes = calloc(stats->note_count + 1, sizeof(*notes));
	struct capture_stats out = *stats;
	char note[160];
	int r;

	if (!notes)
		return -ENOMEM;
	snprintf(note, sizeof(note),
		"This is window %u of a recording that was split: losses and costs are those of "
		"the whole recording.",
		part->window.number);
	memcpy(notes, stats->notes, stats->note_count * sizeof(*notes));
	notes[out.note_count++] = note;
	out.notes = notes;
	out.samples = part->samples;
	out.wait_samples = part->wait_samples;
	r = capture_writer_stats(part->writer, &out);
	free(notes);
	return r;
}

static int split_stats(void *context, const struct capture_stats *stats)
{
	struct split *split = context;
	int r = 0;

	if (++split->accounts_seen < split->accounts)
		return 0;
	for_batch (split, part)
		if (r == 0)
			r = put_account(part, stats);
	return r;
}

static const struct capture_visitor third_reading = {
	.symbols = split_symbols,
	.stats = split_stats,
};

/* ---- all of it ---- */

static void split_done(struct split *split)
{
	array_foreach (&split->parts, part) {
		capture_writer_free(part->writer);
		split_ids_done(&part->ids);
		free(part->path);
	}
	array_done(&split->parts);
	split_tables_done(&split->tables);
	map_u64_done(&split->shared_index);
	map_u64_done(&split->definitions);
	map_u64_done(&split->track_domains);
	map_u64_done(&split->track_numbers);
	array_done(&split->shared);
	array_done(&split->domains);
}

static int compare_parts(const void *left, const void *right)
{
	const struct split_part *a = left, *b = right;

	return a->window.begin_ns < b->window.begin_ns ? -1
						       : a->window.begin_ns > b->window.begin_ns;
}

static int open_batch(struct split *split, struct errmsg *err)
{
	int r = 0;

	for_batch (split, part) {
		part->path = capture_split_path(split->path, part->window.number);
		if (!part->path)
			return -ENOMEM;
		r = capture_writer_open(&part->writer, part->path, split->options, err);
		if (r < 0)
			return r;
	}
	return r;
}

/* The window comes last, and ends the steps in it, as viewers see them. */
static int close_batch(struct split *split, struct errmsg *err)
{
	int r = 0;

	for_batch (split, part) {
		int closed;

		if (r == 0)
			r = capture_writer_window(part->writer, &part->window);
		closed = capture_writer_close(part->writer, err);
		part->writer = NULL;
		part->was_made = closed == 0;
		split_ids_done(&part->ids);
		part->ids = (struct split_ids){0};
		if (r == 0)
			r = closed;
	}
	return r;
}

static int write_batch(struct split *split, struct errmsg *err)
{
	int r = open_batch(split, err);

	split->accounts_seen = 0;
	if (r == 0)
		r = capture_read(split->path, &split_events, split, NULL, err);
	if (r == 0)
		r = capture_read(split->path, &third_reading, split, NULL, err);
	if (r == 0)
		r = close_batch(split, err);
	return r;
}

static int write_parts(struct split *split, struct errmsg *err)
{
	int r = capture_read(split->path, &first_reading, split, NULL, err);

	if (r < 0 || !split->parts.count)
		return r;
	qsort(split->parts.items, split->parts.count, sizeof(*split->parts.items), compare_parts);
	while (r == 0 && split->end < split->parts.count) {
		split->first = split->end;
		split->end = MIN(split->end + BATCH, split->parts.count);
		r = write_batch(split, err);
	}
	return r;
}

int capture_split(const char *path, const struct capture_writer_options *options,
	uint32_t *ret_count, struct errmsg *err)
{
	struct split split = {.path = path, .options = options};
	int r = write_parts(&split, err);

	if (r == -ENOMEM)
		errmsg_set(err, r, "memory ran out while splitting %s by its windows", path);
	array_foreach (&split.parts, part) {
		if (r < 0 && part->was_made)
			unlink(part->path);
	}
	if (r == 0)
		*ret_count = (uint32_t)split.parts.count;
	split_done(&split);
	return r;
}
