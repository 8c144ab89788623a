/* SPDX-License-Identifier: Apache-2.0 */
/* What happened, for the part that it happened in; and what all parts need, for each of them. */
#include <string.h>

#include "capture/split/state.h"

/* The domain of ranges that have none is called so in captures. */
#define DEFAULT_DOMAIN "NVTX"

static bool is_in(const struct split_part *part, uint64_t time_ns)
{
	return time_ns >= part->window.begin_ns &&
	       (!part->window.end_ns || time_ns < part->window.end_ns);
}

/* NULL: no part of the batch. */
static struct split_part *part_at(struct split *split, uint64_t time_ns)
{
	for_batch (split, part) {
		if (is_in(part, time_ns))
			return part;
	}
	return NULL;
}

static int split_session(void *context, const struct capture_session *session)
{
	int r = 0;

	for_batch ((struct split *)context, part)
		if (r == 0)
			r = capture_writer_session(part->writer, session);
	return r;
}

static int split_process(void *context, const struct capture_process *process)
{
	int r = 0;

	for_batch ((struct split *)context, part)
		if (r == 0)
			r = capture_writer_process(part->writer, process);
	return r;
}

static int split_thread(void *context, const struct capture_thread *thread)
{
	int r = 0;

	for_batch ((struct split *)context, part)
		if (r == 0)
			r = capture_writer_thread(part->writer, thread);
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
	struct split_part *part = part_at(split, sample->time_ns);
	struct capture_sample out = *sample;
	int r;

	if (!part)
		return 0;
	part->samples += sample->wait == WIRE_WAIT_NONE;
	part->wait_samples += sample->wait != WIRE_WAIT_NONE;
	r = split_callstack(&split->tables, &part->ids, part->writer, sample->callstack,
		sample->wait == WIRE_WAIT_NONE, &out.callstack);
	if (r == 0)
		r = capture_writer_sample(part->writer, &out);
	return r;
}

static int split_device_work(void *context, const struct capture_device_work *work)
{
	struct split_part *part = part_at(context, work->start_ns);

	return part ? capture_writer_device_work(part->writer, work) : 0;
}

/* Definitions are of use to every part from their own window on. */
static bool has_definition(const struct split_part *part, uint64_t time_ns)
{
	return !part->window.end_ns || time_ns < part->window.end_ns;
}

static int split_launch(void *context, const struct capture_launch *launch)
{
	bool is_definition = launch->untimed == WIRE_DEVICE_CAPTURED;
	int r = 0;

	for_batch ((struct split *)context, part) {
		if (is_definition ? has_definition(part, launch->time_ns)
				  : is_in(part, launch->time_ns))
			if (r == 0)
				r = capture_writer_launch(part->writer, launch);
	}
	return r;
}

/* Of a launch with the stack of another: one that the part does not have is written in its place.
 */
static bool resolve_shared(const struct split *split, const struct split_part *part,
	const struct capture_launch_stack *stack, struct capture_launch_stack *out)
{
	const struct shared_stack *shared;
	uint64_t index;

	if (!stack->same_as || !map_u64_get(&split->shared_index,
				       split_launch_key(stack->pid, stack->same_as), &index))
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
	struct split *split, struct split_part *part, const struct capture_launch_stack *stack)
{
	struct capture_launch_stack out = *stack;
	int r;

	if (!resolve_shared(split, part, stack, &out))
		return 0;
	r = split_callstack(
		&split->tables, &part->ids, part->writer, out.callstack, false, &out.callstack);
	if (r == 0)
		r = capture_writer_launch_stack(part->writer, &out);
	return r;
}

static int split_launch_stack(void *context, const struct capture_launch_stack *stack)
{
	struct split *split = context;
	uint64_t key = split_launch_key(stack->pid, stack->correlation), index;
	bool is_definition = map_u64_get(&split->definitions, key, NULL);
	int r = 0;

	if (stack->callstack && map_u64_get(&split->shared_index, key, &index))
		split->shared.items[index] = (struct shared_stack){
			.time_ns = stack->time_ns,
			.callstack = stack->callstack,
			.tid = stack->tid,
		};
	for_batch (split, part) {
		if (is_definition ? has_definition(part, stack->time_ns)
				  : is_in(part, stack->time_ns))
			if (r == 0)
				r = put_launch_stack(split, part, stack);
	}
	return r;
}

static int split_device_event(void *context, const struct capture_device_event *event)
{
	bool has_moment = capture_device_event_is_moment(event);
	int r = 0;

	for_batch ((struct split *)context, part) {
		if (!has_moment || is_in(part, event->time_ns))
			if (r == 0)
				r = capture_writer_device_event(part->writer, event);
	}
	return r;
}

/* An end has no domain, and tracks of a process have no number: those of their begins count. */
static int complete_range(struct split *split, struct capture_range_event *event)
{
	uint64_t known;
	int r = 0;

	if (event->kind != CAPTURE_RANGE_END &&
		!map_u64_get(&split->track_domains, event->track, NULL)) {
		const char *domain =
			strcmp(event->domain, DEFAULT_DOMAIN) == 0 ? "" : event->domain;

		r = split_tables_text(&split->tables, domain, &domain);
		if (r == 0)
			r = map_u64_set(&split->track_domains, event->track, split->domains.count);
		if (r == 0)
			r = array_append(&split->domains, domain);
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
	struct split_part *part = part_at(split, event->time_ns);
	struct capture_range_event out = *event;
	int r = complete_range(split, &out);

	return r < 0 || !part ? r : capture_writer_range(part->writer, &out);
}

static int split_counter(void *context, const struct capture_counter *counter)
{
	struct split_part *part = part_at(context, counter->time_ns);

	return part ? capture_writer_counter(part->writer, counter) : 0;
}

/* Facts of rails are of use to every part. */
static int split_energy_domain(void *context, const struct wire_energy_domain *domain)
{
	int r = 0;

	for_batch ((struct split *)context, part)
		if (r == 0)
			r = capture_writer_energy_domain(part->writer, domain);
	return r;
}

/* As measured, in every part that it reaches into: readers cut it. */
static int split_energy_interval(void *context, const struct wire_energy_interval *interval)
{
	int r = 0;

	for_batch ((struct split *)context, part) {
		if (interval->end_ns > part->window.begin_ns &&
			has_definition(part, interval->start_ns))
			if (r == 0)
				r = capture_writer_energy_interval(part->writer, interval);
	}
	return r;
}

static int split_energy_state(void *context, const struct wire_energy_state *state)
{
	struct split_part *part = part_at(context, state->time_ns);

	return part ? capture_writer_energy_state(part->writer, state) : 0;
}

static int split_energy_absence(void *context, const struct wire_energy_absence *absence)
{
	int r = 0;

	for_batch ((struct split *)context, part)
		if (r == 0)
			r = capture_writer_energy_absence(part->writer, absence);
	return r;
}

static int split_step(void *context, const struct capture_step *step)
{
	struct split_part *part = part_at(context, step->time_ns);

	return part ? capture_writer_step(part->writer, step) : 0;
}

const struct capture_visitor split_events = {
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
	.counter = split_counter,
	.step = split_step,
	.device_event = split_device_event,
	.energy_domain = split_energy_domain,
	.energy_interval = split_energy_interval,
	.energy_state = split_energy_state,
	.energy_absence = split_energy_absence,
};
