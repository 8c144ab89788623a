/* SPDX-License-Identifier: Apache-2.0 */
/* What happens, to the window that it happens in. */
#include <string.h>

#include "capture/series/state.h"

static int see_session(void *context, const struct capture_session *session)
{
	struct capture_series *series = context;
	int r = series_keep_session(series, session);

	return r < 0 ? r : capture_series_advance(series, session->start_time_ns, 0);
}

static int see_mapping(void *context, capture_id id, const struct capture_mapping *mapping)
{
	return split_tables_add_mapping(&((struct capture_series *)context)->tables, mapping);
}

static uint64_t site_key(capture_id mapping, uint64_t rel_pc)
{
	return hash_u64(rel_pc ^ hash_u64(mapping));
}

static int see_frame(void *context, capture_id id, const struct capture_frame *frame)
{
	struct capture_series *series = context;
	int r = split_tables_add_frame(&series->tables, frame);

	if (r < 0 || frame->function)
		return r;
	return map_u64_set(&series->nameless, site_key(frame->mapping, frame->rel_pc), id);
}

static int see_callstack(void *context, capture_id id, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python)
{
	return series_add_callstack(context, id, frames, count, stop, python);
}

static int see_process(void *context, const struct capture_process *process)
{
	return series_keep_process(context, process);
}

static int see_thread(void *context, const struct capture_thread *thread)
{
	return series_keep_thread(context, thread);
}

/* A name that was found late: for the windows that have the frame, and for those to come. */
static int see_symbols(void *context, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	struct capture_series *series = context;
	uint64_t key = site_key(mapping, rel_pc), frame;
	capture_id own;
	int r = 0;

	if (count == 1 && lines[0].function && map_u64_get(&series->nameless, key, &frame)) {
		map_u64_remove(&series->nameless, key);
		r = split_tables_text(&series->tables, lines[0].function,
			&series->tables.frames.items[frame - 1].function);
	}
	for_parts (series, part) {
		if (r == 0 && part->writer && split_has_site(&part->ids, mapping, rel_pc, &own))
			r = capture_writer_symbols(part->writer, own, rel_pc, lines, count);
	}
	return r;
}

static int put_sample(struct capture_series *series, struct series_part *part,
	const struct capture_sample *sample)
{
	struct capture_sample out = *sample;
	int r;

	if (!series_part_takes(part))
		return 0;
	part->samples += sample->wait == WIRE_WAIT_NONE;
	part->wait_samples += sample->wait != WIRE_WAIT_NONE;
	r = series_tell_thread(series, part, sample->pid, sample->tid);
	if (r == 0)
		r = series_callstack(series, part, sample->callstack,
			sample->wait == WIRE_WAIT_NONE, &out.callstack);
	return r < 0 ? r : capture_writer_sample(part->writer, &out);
}

/* A wait is cut where windows begin. What of it lies in windows that are closed is in none. */
static int put_wait(struct capture_series *series, const struct capture_sample *sample)
{
	uint64_t begin_ns = sample->time_ns - MIN(sample->duration_ns, sample->time_ns);
	bool is_in_any = false;
	int r = series_open_until(series, sample->time_ns);

	for_parts (series, part) {
		struct capture_sample cut = *sample;
		uint64_t from_ns = MAX(begin_ns, part->begin_ns);

		cut.time_ns = MIN(sample->time_ns, part->end_ns - 1);
		if (from_ns >= cut.time_ns || r < 0)
			continue;
		cut.duration_ns = cut.time_ns - from_ns;
		cut.wait_is_open = sample->wait_is_open && cut.time_ns == sample->time_ns;
		is_in_any = true;
		r = put_sample(series, part, &cut);
	}
	series->account.late += !is_in_any;
	return r;
}

static int see_sample(void *context, const struct capture_sample *sample)
{
	struct series_part *part;

	if (sample->wait != WIRE_WAIT_NONE && sample->duration_ns && !sample->wait_count)
		return put_wait(context, sample);
	part = series_part_at(context, sample->time_ns);
	return part ? put_sample(context, part, sample) : 0;
}

static int see_device_work(void *context, const struct capture_device_work *work)
{
	struct capture_device_work out = *work;
	struct series_part *part;
	int r = series_count_work(context, work);

	/* Long work that began in a window that is closed. */
	if (work->end_ns <= work->start_ns)
		part = series_part_at(context, work->start_ns);
	else
		part = series_part_from(context, &out.start_ns);
	if (r < 0 || !part || out.start_ns > out.end_ns || !series_part_takes(part))
		return r;
	r = series_tell_thread(context, part, work->pid, work->tid);
	return r < 0 ? r : capture_writer_device_work(part->writer, &out);
}

static int see_launch(void *context, const struct capture_launch *launch)
{
	const struct series_definition definition = {
		.event.kind = CAPTURE_DEVICE_EVENT_MAX, .launch = *launch};
	struct series_part *part = series_part_at(context, launch->time_ns);
	int r = 0;

	if (launch->untimed == WIRE_DEVICE_CAPTURED)
		r = series_keep_definition(context, &definition);
	if (r < 0 || !part || !series_part_takes(part))
		return r;
	r = series_tell_thread(context, part, launch->pid, launch->tid);
	return r < 0 ? r : capture_writer_launch(part->writer, launch);
}

/* In a window without the launch whose stack it has, the stack stands in its place. */
static int put_launch_stack(struct capture_series *series, struct series_part *part,
	const struct capture_launch_stack *stack)
{
	struct capture_launch_stack out = *stack;
	const struct series_launch *other = NULL;
	int r;

	if (stack->same_as)
		other = series_find_launch(series, stack->pid, stack->same_as);
	if (other && (other->time_ns < part->begin_ns || other->time_ns >= part->end_ns)) {
		out.same_as = 0;
		out.callstack = other->callstack;
		out.tid = out.tid ? out.tid : other->tid;
		if (stack->is_check)
			return 0;
	}
	r = series_tell_thread(series, part, out.pid, out.tid);
	if (r == 0)
		r = series_callstack(series, part, out.callstack, false, &out.callstack);
	return r < 0 ? r : capture_writer_launch_stack(part->writer, &out);
}

static int see_launch_stack(void *context, const struct capture_launch_stack *stack)
{
	struct capture_series *series = context;
	uint64_t key = series_launch_key(stack->pid, stack->correlation), index;
	struct series_part *part = series_part_at(series, stack->time_ns);
	int r = 0;

	if (stack->callstack)
		r = series_keep_launch(series, stack);
	if (map_u64_get(&series->definition_launches, key, &index))
		series->definitions.items[index - 1].stack = *stack;
	return r < 0 || !part || !series_part_takes(part) ? r
							  : put_launch_stack(series, part, stack);
}

static int see_range(void *context, const struct capture_range_event *event)
{
	series_count_mark(context, event);
	return series_range(context, event);
}

static int see_counter(void *context, const struct capture_counter *counter)
{
	struct series_part *part = series_part_at(context, counter->time_ns);
	int r;

	if (!part || !series_part_takes(part))
		return 0;
	r = series_tell_thread(context, part, counter->pid, 0);
	return r < 0 ? r : capture_writer_counter(part->writer, counter);
}

static int see_energy_domain(void *context, const struct wire_energy_domain *domain)
{
	return series_keep_domain(context, domain);
}

/* As measured, in every window that it reaches into: readers cut it. */
static int see_energy_interval(void *context, const struct wire_energy_interval *interval)
{
	struct capture_series *series = context;
	bool is_in_any = false;
	int r = series_open_until(series, interval->end_ns);

	for_parts (series, part) {
		if (interval->end_ns <= part->begin_ns || interval->start_ns >= part->end_ns)
			continue;
		is_in_any = true;
		if (r == 0 && series_part_takes(part))
			r = capture_writer_energy_interval(part->writer, interval);
	}
	series->account.late += !is_in_any;
	return r < 0 ? r : series_count_energy(series, interval);
}

static int see_energy_state(void *context, const struct wire_energy_state *state)
{
	struct series_part *part = series_part_at(context, state->time_ns);

	return part && series_part_takes(part) ? capture_writer_energy_state(part->writer, state)
					       : 0;
}

static int see_energy_absence(void *context, const struct wire_energy_absence *absence)
{
	return series_keep_absence(context, absence);
}

/* GPUs and graphs are of use to all windows that follow; the rest to that of its moment. */
static int see_device_event(void *context, const struct capture_device_event *event)
{
	const struct series_definition definition = {.event = *event};
	struct capture_series *series = context;
	bool is_definition = event->kind == CAPTURE_GPU || event->kind == CAPTURE_GRAPH_CALL ||
			     event->kind == CAPTURE_GRAPH_NODE;
	struct series_part *part = NULL;
	int r = is_definition ? series_keep_definition(series, &definition) : 0;

	if (event->time_ns && !is_definition)
		part = series_part_at(series, event->time_ns);
	else if (series->parts.count)
		part = series->parts.items[series->parts.count - 1];
	if (r < 0 || !part || !series_part_takes(part))
		return r;
	r = series_tell_thread(series, part, event->pid, 0);
	return r < 0 ? r : capture_writer_device_event(part->writer, event);
}

static int see_step(void *context, const struct capture_step *step)
{
	struct series_part *part = series_part_at(context, step->time_ns);
	int r;

	((struct capture_series *)context)->account.steps++;

	if (!part || !series_part_takes(part))
		return 0;
	r = series_tell_thread(context, part, step->pid, step->tid);
	return r < 0 ? r : capture_writer_step(part->writer, step);
}

static int see_stats(void *context, const struct capture_stats *stats)
{
	return series_count(context, stats);
}

const struct capture_visitor capture_series_visitor = {
	.session = see_session,
	.mapping = see_mapping,
	.frame = see_frame,
	.callstack = see_callstack,
	.process = see_process,
	.thread = see_thread,
	.sample = see_sample,
	.device_work = see_device_work,
	.launch = see_launch,
	.launch_stack = see_launch_stack,
	.range = see_range,
	.counter = see_counter,
	.energy_domain = see_energy_domain,
	.energy_interval = see_energy_interval,
	.energy_state = see_energy_state,
	.energy_absence = see_energy_absence,
	.device_event = see_device_event,
	.step = see_step,
	.symbols = see_symbols,
	.stats = see_stats,
};
