/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every event of a recording as one JSON object a line, in order of time, for jq, data frames and
 * programs of one's own: what was recorded, before anything is added up. The first line is the
 * session. Times are nanoseconds of CLOCK_MONOTONIC.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "exporters/exporters.h"
#include "model/energy.h"
#include "model/kinds.h"
#include "model/unified.h"

enum event_type {
	EVENT_WINDOW,
	EVENT_STEP,
	EVENT_RANGE,
	EVENT_COUNTER,
	EVENT_ENERGY,
	EVENT_MEMORY,
	EVENT_DEVICE_WORK,
	EVENT_DEVICE_WAIT,
	EVENT_DEVICE_SYNC,
	EVENT_UNIFIED_MEMORY,
	EVENT_SAMPLE,
};

struct event {
	uint64_t time_ns;
	enum event_type type;
	uint32_t index; /* of its array in the model */
};

struct events {
	ARRAY_OF(struct event) items;
};

static int add(struct events *events, enum event_type type, uint64_t time_ns, size_t index)
{
	return array_append(&events->items,
		(struct event){.time_ns = time_ns, .type = type, .index = (uint32_t)index});
}

/* Adds an event for each item of an array of the model. */
#define ADD_ALL(array, type, time)                                                                 \
	for (size_t i = 0; r == 0 && i < model->array.count; i++)                                  \
	r = add(events, type, model->array.items[i].time, i)

static int add_all(struct events *events, const struct model *model)
{
	int r = 0;

	if (!selection_left_out(model, SELECTION_WINDOWS))
		ADD_ALL(windows, EVENT_WINDOW, begin_ns);
	ADD_ALL(steps, EVENT_STEP, start_ns);
	ADD_ALL(ranges, EVENT_RANGE, start_ns);
	ADD_ALL(counters, EVENT_COUNTER, time_ns);
	if (!selection_left_out(model, SELECTION_ENERGY))
		ADD_ALL(energy_intervals, EVENT_ENERGY, start_ns);
	ADD_ALL(device_memory, EVENT_MEMORY, time_ns);
	ADD_ALL(device_works, EVENT_DEVICE_WORK, start_ns);
	ADD_ALL(device_waits, EVENT_DEVICE_WAIT, start_ns);
	ADD_ALL(device_syncs, EVENT_DEVICE_SYNC, start_ns);
	ADD_ALL(unified_memory, EVENT_UNIFIED_MEMORY, start_ns);
	return r;
}

static int add_samples(
	struct events *events, const struct model *model, const struct selected *selected)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		if (selected->samples[i])
			r = add(events, EVENT_SAMPLE, model->samples.items[i].time_ns, i);
	}
	return r;
}

static int compare_events(const void *left, const void *right)
{
	const struct event *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* ---- members that events share ---- */

static void begin(struct json_writer *json, const char *type)
{
	json_begin_object(json);
	json_key(json, "type");
	json_string(json, type);
}

static void write_span(struct json_writer *json, uint64_t start_ns, uint64_t end_ns)
{
	json_member_u64(json, "start_ns", start_ns);
	json_member_u64(json, "end_ns", end_ns);
}

static void write_process(struct json_writer *json, const struct model *model, uint32_t process)
{
	json_member_u64(json, "pid", model->processes.items[process].pid);
	json_member_text(json, "process", model->processes.items[process].name);
}

/* The thread and its process; `thread` may be MODEL_NONE. */
static void write_thread(
	struct json_writer *json, const struct model *model, uint32_t process, uint32_t thread)
{
	bool known = thread != MODEL_NONE;

	write_process(json, model, process);
	json_member_known(json, "tid", known, known ? model->threads.items[thread].tid : 0);
	json_member_text(json, "thread", known ? model->threads.items[thread].name : NULL);
}

static void write_frame(struct json_writer *json, const struct model *model, uint32_t index)
{
	const struct model_frame *frame = &model->frames.items[index];
	const struct model_function *function = &model->functions.items[frame->function];

	json_begin_object(json);
	json_member_text(json, "function", function->name);
	json_member_text(json, "module", model_module_name(model, function->module));
	json_member_text(json, "kind", kind_name(function->kind));
	json_member_text(json, "file", frame->source_file);
	json_member_known(json, "line", frame->line != 0, frame->line);
	json_end_object(json);
}

/* Outermost frame first; null: there is none. */
static void write_stack(struct json_writer *json, const struct model *model, uint32_t index)
{
	const struct model_stack *stack;

	json_key(json, "stack");
	if (index == MODEL_NONE) {
		json_null(json);
		return;
	}
	stack = &model->stacks.items[index];
	json_begin_array(json);
	for (uint32_t i = 0; i < stack->count; i++)
		write_frame(json, model, model->stack_frames.items[stack->first + i]);
	json_end_array(json);
	json_member_text(json, "stack_stop", wire_stop_name(stack->stop));
}

static void write_sizes(
	struct json_writer *json, const char *key, uint64_t x, uint64_t y, uint64_t z)
{
	json_key(json, key);
	json_begin_array(json);
	json_u64(json, x);
	json_u64(json, y);
	json_u64(json, z);
	json_end_array(json);
}

/* ---- events ---- */

static void write_session(struct json_writer *json, const struct model *model)
{
	const struct model_session *session = &model->session;

	begin(json, "session");
	json_member_u64(json, "version", 1);
	json_member_text(json, "sonde_version", session->sonde_version);
	json_member_text(json, "host", session->host);
	json_member_text(json, "command_line", session->command_line);
	json_member_u64(json, "start_ns", model_start_ns(model));
	json_member_known(
		json, "start_realtime_ns", session->start_realtime_ns, session->start_realtime_ns);
	json_member_known(json, "period_ns", session->period_ns, session->period_ns);
	json_end_object(json);
}

/* What it was charged with; nothing where no energy was measured. */
static void write_charge(struct json_writer *json, const struct model *model, double energy_j)
{
	if (model->energy_intervals.count)
		json_member_double(json, "charged_j", energy_j);
}

/* What ran for a period, or waited until this time. */
static void write_sample(
	struct json_writer *json, const struct model *model, const struct model_sample *sample)
{
	bool waits = sample->wait != WIRE_WAIT_NONE;

	begin(json, waits ? "wait" : "sample");
	json_member_u64(json, "time_ns", sample->time_ns);
	write_thread(json, model, model->threads.items[sample->thread].process, sample->thread);
	if (waits) {
		json_member_u64(json, "duration_ns", sample->duration_ns);
		json_member_text(json, "waits_for", wire_wait_name(sample->wait));
	} else {
		json_member_u64(json, "cpu", sample->cpu);
		json_member_text(
			json, "mode", sample->mode == CAPTURE_MODE_KERNEL ? "kernel" : "user");
		write_charge(json, model, sample->energy_j);
	}
	json_member_text(json, "gil", wire_gil_name(sample->gil));
	write_stack(json, model, sample->stack);
	json_end_object(json);
}

static void write_launch(
	struct json_writer *json, const struct model *model, const struct model_device_work *work)
{
	bool known = work->launch_ns != 0;

	json_member_known(json, "launch_ns", known, work->launch_ns);
	json_member_known(json, "launch_duration_ns", known, work->launch_duration_ns);
	json_member_known(json, "queued_ns", work->submit_ns && work->queued_ns, work->queued_ns);
	json_member_known(json, "submitted_ns", work->submit_ns != 0, work->submit_ns);
	json_member_known(json, "correlation", work->correlation != 0, work->correlation);
	write_stack(json, model, work->stack);
	if (work->stack == MODEL_NONE)
		json_member_text(
			json, "why_no_stack", model_unattributed_to_string(work->unattributed));
}

static void write_priority(struct json_writer *json, const struct model_device_work *work)
{
	json_key(json, "priority");
	if (work->has_priority)
		json_i64(json, work->priority);
	else
		json_null(json);
}

static void write_device_work(
	struct json_writer *json, const struct model *model, const struct model_device_work *work)
{
	begin(json, wire_device_kind_name(work->kind));
	write_span(json, work->start_ns, work->end_ns);
	json_member_text(json, "name", work->name);
	json_member_text(json, "device", work->device);
	json_member_u64(json, "queue", work->queue);
	json_member_u64(json, "stream", work->stream);
	write_thread(json, model, work->process, work->thread);
	json_member_known(json, "bytes", work->kind != WIRE_DEVICE_KERNEL, work->bytes);
	if (work->kind == WIRE_DEVICE_KERNEL) {
		write_sizes(json, "global_size", work->global_size[0], work->global_size[1],
			work->global_size[2]);
		write_sizes(json, "block_size", work->block_size[0], work->block_size[1],
			work->block_size[2]);
		json_member_u64(json, "static_shared_bytes", work->static_shared_bytes);
		json_member_u64(json, "dynamic_shared_bytes", work->dynamic_shared_bytes);
		json_member_known(json, "registers", work->registers, work->registers);
		write_priority(json, work);
	}
	json_member_known(json, "graph", work->graph != 0, work->graph);
	json_member_known(json, "graph_node", work->graph != 0, work->graph_node);
	json_member_known(json, "launched_by_graph",
		work->launcher && work->launcher != WIRE_LAUNCHER_UNKNOWN, work->launcher);
	write_charge(json, model, work->energy_j);
	write_launch(json, model, work);
	json_end_object(json);
}

static void write_device_wait(
	struct json_writer *json, const struct model *model, const struct model_device_wait *wait)
{
	begin(json, "device_wait");
	write_span(json, wait->start_ns, wait->end_ns);
	write_thread(json, model, model->threads.items[wait->thread].process, wait->thread);
	json_end_object(json);
}

static void write_stream(struct json_writer *json, const char *key, uint32_t stream)
{
	json_member_known(json, key, stream != WIRE_SYNC_NO_STREAM, stream);
}

/* What waits for what, as the tracing library says it, or what can be waited for is recorded. */
static void write_device_sync(
	struct json_writer *json, const struct model *model, const struct model_device_sync *sync)
{
	static const char *const kinds[WIRE_SYNC_MAX] = {
		[WIRE_SYNC_EVENT] = "event",
		[WIRE_SYNC_WAIT] = "stream_wait_event",
		[WIRE_SYNC_STREAM] = "stream",
		[WIRE_SYNC_CONTEXT] = "device",
		[WIRE_SYNC_RECORD] = "event_record",
		[WIRE_SYNC_HOST_FUNCTION] = "host_function",
	};
	bool has_event = sync->sync.event != WIRE_SYNC_NO_EVENT;
	uint32_t type = sync->sync.type;

	begin(json, "device_sync");
	json_member_known(json, "start_ns", sync->start_ns != 0, sync->start_ns);
	json_member_known(json, "end_ns", sync->start_ns != 0, sync->end_ns);
	json_member_text(json, "kind", type < WIRE_SYNC_MAX ? kinds[type] : NULL);
	write_process(json, model, sync->process);
	json_member_text(json, "device", sync->device);
	json_member_u64(json, "context", sync->sync.context);
	write_stream(json, "stream", sync->sync.stream);
	json_member_known(json, "event", has_event, sync->sync.event);
	json_member_u64(json, "correlation", sync->sync.correlation);
	json_member_text(json, "waited_device", sync->event_device);
	write_stream(json, "waited_stream", sync->event_stream);
	json_member_known(
		json, "waited_correlation", sync->event_correlation != 0, sync->event_correlation);
	json_end_object(json);
}

static void write_range(
	struct json_writer *json, const struct model *model, const struct model_range *range)
{
	begin(json, range->is_mark ? "mark" : "range");
	json_member_u64(json, "start_ns", range->start_ns);
	json_member_known(json, "end_ns", !range->is_open, range->end_ns);
	json_member_text(json, "name", range->name);
	json_member_text(json, "domain", range->domain);
	json_member_text(json, "category", range->category);
	write_thread(json, model, range->process, range->thread);
	json_key(json, "fields");
	json_begin_object(json);
	export_range_fields(json, model, range);
	json_end_object(json);
	json_end_object(json);
}

static void write_counter(
	struct json_writer *json, const struct model *model, const struct model_counter *counter)
{
	begin(json, "counter");
	json_member_u64(json, "time_ns", counter->time_ns);
	json_member_text(json, "name", counter->name);
	json_member_double(json, "value", counter->value);
	write_process(json, model, counter->process);
	json_end_object(json);
}

static void write_energy(struct json_writer *json, const struct model *model,
	const struct model_energy_interval *item)
{
	const struct model_energy_domain *domain = &model->energy_domains.items[item->domain];

	begin(json, "energy");
	write_span(json, item->start_ns, item->end_ns);
	json_member_text(json, "rail", domain->name);
	json_member_text(json, "quality", model_energy_quality_name(domain->quality));
	json_key(json, "is_replayed");
	json_bool(json, domain->is_replayed);
	json_member_double(json,
		domain->quality == WIRE_ENERGY_ESTIMATED ? "est_energy_j" : "energy_j",
		item->gap ? NAN : item->energy_j);
	json_member_text(json, "gap", item->gap ? model_energy_gap_name(item->gap) : NULL);
	json_key(json, "is_cut");
	json_bool(json, item->is_cut);
	json_end_object(json);
}

static void write_memory(
	struct json_writer *json, const struct model *model, const struct model_device_memory *item)
{
	const struct capture_memory *memory = &item->memory;

	begin(json, memory->released ? "memory_release" : "memory_allocation");
	json_member_u64(json, "time_ns", item->time_ns);
	json_member_u64(json, "address", memory->address);
	json_member_u64(json, "bytes", memory->bytes);
	json_member_known(json, "pool_bytes", memory->pool_bytes, memory->pool_bytes);
	json_member_known(json, "pool_used_bytes", memory->pool_bytes, memory->pool_used_bytes);
	json_member_u64(json, "memory_kind", memory->memory);
	write_process(json, model, item->process);
	json_end_object(json);
}

/* Of a fault of the host the instruction, of faults of a device how many groups. */
static void write_unified(struct json_writer *json, const struct model *model,
	const struct model_unified_memory *item)
{
	const struct capture_unified_memory *unified = &item->unified;
	uint32_t type = unified->type;

	begin(json, "unified_memory");
	write_span(json, item->start_ns, item->end_ns);
	json_member_text(json, "kind", model_unified_name(type));
	json_member_text(json, "cause", model_unified_cause(unified));
	json_member_u64(json, "address", unified->address);
	json_member_known(json, "bytes", model_unified_has_bytes(type), unified->value);
	json_member_known(json, "fault_groups", type == WIRE_UNIFIED_DEVICE_FAULT, unified->value);
	json_member_known(json, "instruction", type == WIRE_UNIFIED_HOST_FAULT, unified->value);
	json_member_text(json, "from", *item->from ? item->from : NULL);
	json_member_text(json, "to", *item->to ? item->to : NULL);
	json_member_known(json, "devices", unified->devices != 0, unified->devices);
	json_key(json, "on_host");
	json_bool(json, unified->on_host);
	write_process(json, model, item->process);
	json_end_object(json);
}

static void write_step(
	struct json_writer *json, const struct model *model, const struct model_step *step)
{
	begin(json, "step");
	write_span(json, step->start_ns, step->end_ns);
	json_member_u64(json, "number", step->number);
	json_member_text(json, "name", step->name);
	write_thread(json, model, step->process, step->thread);
	json_key(json, "is_cut");
	json_bool(json, step->is_cut);
	json_end_object(json);
}

static void write_window(struct json_writer *json, const struct model_window *window)
{
	begin(json, "window");
	write_span(json, window->begin_ns, window->end_ns);
	json_member_u64(json, "number", window->number);
	json_member_text(json, "label", window->label);
	json_member_text(json, "opened_by", capture_window_trigger_name(window->opened_by));
	json_member_text(json, "closed_by", capture_window_reason_name(window->closed_by));
	json_end_object(json);
}

static void write_event(
	struct json_writer *json, const struct model *model, const struct event *event)
{
	switch (event->type) {
	case EVENT_WINDOW:
		write_window(json, &model->windows.items[event->index]);
		break;
	case EVENT_STEP:
		write_step(json, model, &model->steps.items[event->index]);
		break;
	case EVENT_RANGE:
		write_range(json, model, &model->ranges.items[event->index]);
		break;
	case EVENT_COUNTER:
		write_counter(json, model, &model->counters.items[event->index]);
		break;
	case EVENT_ENERGY:
		write_energy(json, model, &model->energy_intervals.items[event->index]);
		break;
	case EVENT_MEMORY:
		write_memory(json, model, &model->device_memory.items[event->index]);
		break;
	case EVENT_DEVICE_WORK:
		write_device_work(json, model, &model->device_works.items[event->index]);
		break;
	case EVENT_DEVICE_WAIT:
		write_device_wait(json, model, &model->device_waits.items[event->index]);
		break;
	case EVENT_DEVICE_SYNC:
		write_device_sync(json, model, &model->device_syncs.items[event->index]);
		break;
	case EVENT_UNIFIED_MEMORY:
		write_unified(json, model, &model->unified_memory.items[event->index]);
		break;
	case EVENT_SAMPLE:
		write_sample(json, model, &model->samples.items[event->index]);
		break;
	}
}

static void write_lines(struct strbuf *out, const struct model *model, const struct events *events)
{
	struct json_writer json = {.out = out};

	write_session(&json, model);
	strbuf_add_char(out, '\n');
	array_foreach (&events->items, event) {
		json = (struct json_writer){.out = out};
		write_event(&json, model, event);
		strbuf_add_char(out, '\n');
	}
}

static int jsonl_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	struct selection with_waits = selection ? *selection : (struct selection){0};
	_cleanup_(selected_done) struct selected selected = {0};
	struct events events = {0};
	int r;

	with_waits.weight = MODEL_WEIGHT_WALL;
	r = selection_apply(&with_waits, model, &selected, err);
	r = r ?: add_all(&events, model);
	r = r ?: add_samples(&events, model, &selected);
	if (r == 0) {
		if (events.items.count)
			qsort(events.items.items, events.items.count, sizeof(events.items.items[0]),
				compare_events);
		write_lines(out, model, &events);
	}
	array_done(&events.items);
	return export_result(r, out, "jsonl", err);
}

const struct exporter jsonl_exporter = {
	.name = "jsonl",
	.has_events = true,
	.description = "every event as one JSON object per line, in time order",
	.extension = ".jsonl",
	.export = jsonl_export,
};
