/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capture is read several times: once for its windows and for what refers to what, then for
 * each batch of windows for what happened in them, and for the names of the code that they have.
 */
#include "capture/split.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/split_tables.h"

/* Parts that are written at once: each is an open file. */
#define BATCH     64
#define EXTENSION ".pftrace"

/* The domain of ranges that have none is called so in captures. */
#define DEFAULT_DOMAIN "NVTX"

struct part {
	struct capture_window window; /* label: the tables' */
	char *path;
	struct capture_writer *writer; /* NULL: before and after its batch */
	bool was_made;                 /* its file, by us */
	struct split_ids ids;
	uint64_t samples, wait_samples;
};

/* A stack that later launches have, too. */
struct shared_stack {
	uint64_t time_ns;
	capture_id callstack;
	uint32_t tid;
};

struct split {
	const char *path;
	const struct capture_writer_options *options;
	struct split_tables tables;
	ARRAY_OF(struct part) parts;      /* by their begins */
	size_t first, end;                /* the batch */
	uint64_t accounts, accounts_seen; /* the last of these counts */
	/* By launch_key(): launches whose stacks others have; those that are no work of their own,
	 * but what a graph is made of, and may be of use to all that follow. */
	struct map_u64 shared_index, definitions;
	ARRAY_OF(struct shared_stack) shared;
	/* By the track of a range event: its domain, + 1, and its number among tracks. */
	struct map_u64 track_domains, track_numbers;
	ARRAY_OF(const char *) domains;
};

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

static uint64_t launch_key(uint32_t pid, uint64_t correlation)
{
	return hash_u64(correlation ^ hash_u64(pid));
}

/* ---- the first reading: windows, and what refers to what ---- */

static int see_window(void *context, const struct capture_window *window)
{
	struct split *split = context;
	struct part part = {.window = *window};
	int r = split_tables_text(&split->tables, window->label, &part.window.label);

	array_foreach (&split->parts, known) {
		if (known->window.number == window->number) {
			known->window = part.window;
			return r;
		}
	}
	return r ?: array_append(&split->parts, part);
}

static int see_launch(void *context, const struct capture_launch *launch)
{
	struct split *split = context;

	return launch->untimed == WIRE_DEVICE_CAPTURED
		       ? map_u64_set(&split->definitions,
				 launch_key(launch->pid, launch->correlation), 1)
		       : 0;
}

static int see_launch_stack(void *context, const struct capture_launch_stack *stack)
{
	struct split *split = context;
	uint64_t key = launch_key(stack->pid, stack->same_as);

	if (!stack->same_as || map_u64_get(&split->shared_index, key, NULL))
		return 0;
	return map_u64_set(&split->shared_index, key, split->shared.count)
		       ?: array_append(&split->shared, (struct shared_stack){0});
}

static int see_device_event(void *context, const struct capture_device_event *event)
{
	struct split *split = context;

	if (event->kind == CAPTURE_GRAPH_CALL)
		return map_u64_set(
			&split->definitions, launch_key(event->pid, event->graph.correlation), 1);
	if (event->kind == CAPTURE_GRAPH_NODE)
		return map_u64_set(
			&split->definitions, launch_key(event->pid, event->node.correlation), 1);
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
	for (struct part *part = (split)->parts.items + (split)->first;                            \
		part < (split)->parts.items + (split)->end; part++)

static bool is_in(const struct part *part, uint64_t time_ns)
{
	return time_ns >= part->window.begin_ns &&
	       (!part->window.end_ns || time_ns < part->window.end_ns);
}

/* NULL: no part of the batch. */
static struct part *part_at(struct split *split, uint64_t time_ns)
{
	for_batch(split, part)
	{
		if (is_in(part, time_ns))
			return part;
	}
	return NULL;
}

static int split_session(void *context, const struct capture_session *session)
{
	int r = 0;

	for_batch((struct split *)context, part) r =
		r ?: capture_writer_session(part->writer, session);
	return r;
}

static int split_process(void *context, const struct capture_process *process)
{
	int r = 0;

	for_batch((struct split *)context, part) r =
		r ?: capture_writer_process(part->writer, process);
	return r;
}

static int split_thread(void *context, const struct capture_thread *thread)
{
	int r = 0;

	for_batch((struct split *)context, part) r =
		r ?: capture_writer_thread(part->writer, thread);
	return r;
}

/* Each reading tells ids anew, in the same order: the first batch's are those of all. */
static int split_add_mapping(void *context, capture_id id, const struct capture_mapping *mapping)
{
	struct split *split = context;

	return id <= split->tables.mappings.count
		       ? 0
		       : split_tables_add_mapping(&split->tables, mapping);
}

static int split_add_frame(void *context, capture_id id, const struct capture_frame *frame)
{
	struct split *split = context;

	return id <= split->tables.frames.count ? 0 : split_tables_add_frame(&split->tables, frame);
}

static int split_add_callstack(void *context, capture_id id, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python)
{
	struct split *split = context;

	return id <= split->tables.callstacks.count
		       ? 0
		       : split_tables_add_callstack(&split->tables, frames, count, stop, python);
}

static int split_sample(void *context, const struct capture_sample *sample)
{
	struct split *split = context;
	struct part *part = part_at(split, sample->time_ns);
	struct capture_sample out = *sample;
	int r;

	if (!part)
		return 0;
	part->samples += sample->wait == WIRE_WAIT_NONE;
	part->wait_samples += sample->wait != WIRE_WAIT_NONE;
	r = split_callstack(
		&split->tables, &part->ids, part->writer, sample->callstack, &out.callstack);
	return r ?: capture_writer_sample(part->writer, &out);
}

static int split_device_work(void *context, const struct capture_device_work *work)
{
	struct part *part = part_at(context, work->start_ns);

	return part ? capture_writer_device_work(part->writer, work) : 0;
}

/* Definitions are of use to every part from their own window on. */
static bool has_definition(const struct part *part, uint64_t time_ns)
{
	return !part->window.end_ns || time_ns < part->window.end_ns;
}

static int split_launch(void *context, const struct capture_launch *launch)
{
	bool is_definition = launch->untimed == WIRE_DEVICE_CAPTURED;
	int r = 0;

	for_batch((struct split *)context, part)
	{
		if (is_definition ? has_definition(part, launch->time_ns)
				  : is_in(part, launch->time_ns))
			r = r ?: capture_writer_launch(part->writer, launch);
	}
	return r;
}

/* Of a launch with the stack of another: one that the part does not have is written in its place.
 */
static bool resolve_shared(const struct split *split, const struct part *part,
	const struct capture_launch_stack *stack, struct capture_launch_stack *out)
{
	const struct shared_stack *shared;
	uint64_t index;

	if (!stack->same_as ||
		!map_u64_get(&split->shared_index, launch_key(stack->pid, stack->same_as), &index))
		return true;
	shared = &split->shared.items[index];
	if (is_in(part, shared->time_ns))
		return true;
	out->same_as = 0;
	out->callstack = shared->callstack;
	out->tid = out->tid ? out->tid : shared->tid;
	return !stack->is_check && out->callstack;
}

static int put_launch_stack(
	struct split *split, struct part *part, const struct capture_launch_stack *stack)
{
	struct capture_launch_stack out = *stack;
	int r;

	if (!resolve_shared(split, part, stack, &out))
		return 0;
	r = split_callstack(
		&split->tables, &part->ids, part->writer, out.callstack, &out.callstack);
	return r ?: capture_writer_launch_stack(part->writer, &out);
}

static int split_launch_stack(void *context, const struct capture_launch_stack *stack)
{
	struct split *split = context;
	uint64_t key = launch_key(stack->pid, stack->correlation), index;
	bool is_definition = map_u64_get(&split->definitions, key, NULL);
	int r = 0;

	if (stack->callstack && map_u64_get(&split->shared_index, key, &index))
		split->shared.items[index] = (struct shared_stack){
			.time_ns = stack->time_ns,
			.callstack = stack->callstack,
			.tid = stack->tid,
		};
	for_batch(split, part)
	{
		if (is_definition ? has_definition(part, stack->time_ns)
				  : is_in(part, stack->time_ns))
			r = r ?: put_launch_stack(split, part, stack);
	}
	return r;
}

static int split_device_event(void *context, const struct capture_device_event *event)
{
	bool has_moment = event->kind == CAPTURE_OVERHEAD || event->kind == CAPTURE_MEMORY;
	int r = 0;

	for_batch((struct split *)context, part)
	{
		if (!has_moment || is_in(part, event->time_ns))
			r = r ?: capture_writer_device_event(part->writer, event);
	}
	return r;
}

/* An end says no domain, and tracks of a process no number: as their begins said. */
static int complete_range(struct split *split, struct capture_range_event *event)
{
	uint64_t known;
	int r = 0;

	if (event->kind != CAPTURE_RANGE_END) {
		const char *domain =
			strcmp(event->domain, DEFAULT_DOMAIN) == 0 ? "" : event->domain;

		r = split_tables_text(&split->tables, domain, &domain);
		r = r ?: map_u64_set(&split->track_domains, event->track, split->domains.count);
		r = r ?: array_append(&split->domains, domain);
	}
	if (r < 0)
		return r;
	if (map_u64_get(&split->track_domains, event->track, &known))
		event->domain = split->domains.items[known];
	if (!event->lane)
		return 0;
	if (!map_u64_get(&split->track_numbers, event->track, &known)) {
		known = split->track_numbers.count + 1;
		r = map_u64_set(&split->track_numbers, event->track, known);
	}
	event->lane = (uint32_t)known;
	return r;
}

static int split_range(void *context, const struct capture_range_event *event)
{
	struct split *split = context;
	struct part *part = part_at(split, event->time_ns);
	struct capture_range_event out = *event;
	int r = complete_range(split, &out);

	return r < 0 || !part ? r : capture_writer_range(part->writer, &out);
}

static int split_step(void *context, const struct capture_step *step)
{
	struct part *part = part_at(context, step->time_ns);

	return part ? capture_writer_step(part->writer, step) : 0;
}

static const struct capture_visitor second_reading = {
	.session = split_session,
	.mapping = split_add_mapping,
	.frame = split_add_frame,
	.callstack = split_add_callstack,
	.process = split_process,
	.thread = split_thread,
	.sample = split_sample,
	.device_work = split_device_work,
	.launch = split_launch,
	.launch_stack = split_launch_stack,
	.range = split_range,
	.step = split_step,
	.device_event = split_device_event,
};

/* ---- the third: names, and the account ---- */

static int split_symbols(void *context, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	capture_id own;
	int r = 0;

	for_batch((struct split *)context, part)
	{
		if (split_has_site(&part->ids, mapping, rel_pc, &own))
			r = r ?: capture_writer_symbols(part->writer, own, rel_pc, lines, count);
	}
	return r;
}

/* What was lost, and what recording cost, is known of the whole alone. */
static int put_account(struct part *part, const struct capture_stats *stats)
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
	for_batch(split, part) r = r ?: put_account(part, stats);
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
	const struct part *a = left, *b = right;

	return a->window.begin_ns < b->window.begin_ns ? -1
						       : a->window.begin_ns > b->window.begin_ns;
}

static int open_batch(struct split *split, struct errmsg *err)
{
	int r = 0;

	for_batch(split, part)
	{
		part->path = capture_split_path(split->path, part->window.number);
		if (!part->path)
			return -ENOMEM;
		r = capture_writer_open(&part->writer, part->path, split->options, err);
		if (r < 0)
			return r;
		part->was_made = true;
	}
	return r;
}

/* The window comes last, and ends the steps in it, as viewers see them. */
static int close_batch(struct split *split, struct errmsg *err)
{
	int r = 0;

	for_batch(split, part)
	{
		int closed;

		r = r ?: capture_writer_window(part->writer, &part->window);
		closed = capture_writer_close(part->writer, err);
		part->writer = NULL;
		split_ids_done(&part->ids);
		part->ids = (struct split_ids){0};
		r = r ?: closed;
	}
	return r;
}

static int write_batch(struct split *split, struct errmsg *err)
{
	int r = open_batch(split, err);

	split->accounts_seen = 0;
	r = r ?: capture_read(split->path, &second_reading, split, NULL, err);
	r = r ?: capture_read(split->path, &third_reading, split, NULL, err);
	return r ?: close_batch(split, err);
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
