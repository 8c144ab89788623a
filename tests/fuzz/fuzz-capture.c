/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a capture: what the visitor is told must hold together, and every text must end. */
#include <stdlib.h>
#include <string.h>

#include "capture/reader/reader.h"
#include "target.h"

struct seen {
	capture_id mappings, frames, callstacks;
	size_t text_bytes;
};

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void touch(struct seen *seen, const char *text)
{
	seen->text_bytes += text ? strlen(text) : 0;
}

static int see_session(void *context, const struct capture_session *session)
{
	touch(context, session->sonde_version);
	touch(context, session->unwind_mode_reason);
	for (uint32_t i = 0; i < session->command_count; i++)
		touch(context, session->command[i]);
	return 0;
}

static int see_mapping(void *context, capture_id id, const struct capture_mapping *mapping)
{
	struct seen *seen = context;

	require(id == ++seen->mappings);
	require(!mapping->build_id_length == !mapping->build_id);
	touch(seen, mapping->path);
	return 0;
}

static int see_frame(void *context, capture_id id, const struct capture_frame *frame)
{
	struct seen *seen = context;

	require(id == ++seen->frames);
	require(frame->mapping <= seen->mappings);
	require(frame->kind >= CAPTURE_FRAME_NATIVE && frame->kind <= CAPTURE_FRAME_JIT);
	touch(seen, frame->function);
	touch(seen, frame->source_file);
	return 0;
}

static int see_callstack(void *context, capture_id id, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python)
{
	struct seen *seen = context;

	require(id == ++seen->callstacks);
	require((unsigned)stop < WIRE_STOP_MAX);
	require((unsigned)python < WIRE_PYTHON_MAX);
	for (size_t i = 0; i < count; i++)
		require(frames[i] >= 1 && frames[i] <= seen->frames);
	return 0;
}

static int see_process(void *context, const struct capture_process *process)
{
	touch(context, process->name);
	touch(context, process->cgroup);
	for (uint32_t i = 0; i < process->cmdline_count; i++)
		touch(context, process->cmdline[i]);
	return 0;
}

static int see_thread(void *context, const struct capture_thread *thread)
{
	require(thread->name);
	touch(context, thread->name);
	return 0;
}

static int see_sample(void *context, const struct capture_sample *sample)
{
	const struct seen *seen = context;

	require(sample->callstack <= seen->callstacks);
	require(sample->mode == CAPTURE_MODE_KERNEL || sample->mode == CAPTURE_MODE_USER);
	return 0;
}

static int see_device_work(void *context, const struct capture_device_work *work)
{
	require((unsigned)work->kind < WIRE_DEVICE_MAX);
	require(work->device);
	touch(context, work->name);
	touch(context, work->device);
	return 0;
}

static int see_device_event(void *context, const struct capture_device_event *event)
{
	touch(context, event->text);
	require((unsigned)event->kind < CAPTURE_DEVICE_EVENT_MAX);
	return 0;
}

static int see_launch(void *context, const struct capture_launch *launch)
{
	require((unsigned)launch->kind < WIRE_DEVICE_MAX);
	require((unsigned)launch->untimed < WIRE_DEVICE_UNTIMED_MAX);
	return 0;
}

static int see_launch_stack(void *context, const struct capture_launch_stack *stack)
{
	const struct seen *seen = context;

	require(stack->callstack <= seen->callstacks);
	return 0;
}

static int see_range(void *context, const struct capture_range_event *event)
{
	require(event->kind >= CAPTURE_RANGE_BEGIN && event->kind <= CAPTURE_RANGE_MARK);
	require(event->pid && (event->tid != 0) == (event->lane == 0));
	require(event->name && event->domain && event->category);
	touch(context, event->name);
	touch(context, event->domain);
	touch(context, event->category);
	require(event->field_count <= WIRE_RANGE_MAX_FIELDS);
	for (uint32_t i = 0; i < event->field_count; i++) {
		require(event->fields[i].type && event->fields[i].type < WIRE_RANGE_VALUE_MAX);
		touch(context, event->fields[i].name);
		touch(context, event->fields[i].text);
	}
	return 0;
}

static int see_window(void *context, const struct capture_window *window)
{
	require(!window->end_ns || window->end_ns >= window->begin_ns);
	require(window->opened_by < CAPTURE_TRIGGER_MAX && window->closed_by < CAPTURE_REASON_MAX);
	touch(context, window->label);
	return 0;
}

static int see_energy_domain(void *context, const struct wire_energy_domain *domain)
{
	require(domain->id >= 1 && domain->parent < domain->id);
	require(domain->part >= 1 && domain->part < WIRE_ENERGY_PART_MAX);
	require(domain->quality >= 1 && domain->quality < WIRE_ENERGY_QUALITY_MAX);
	touch(context, domain->name);
	touch(context, domain->source);
	touch(context, domain->device);
	return 0;
}

static int see_energy_interval(void *context, const struct wire_energy_interval *interval)
{
	require(interval->end_ns > interval->start_ns);
	require(interval->domain >= 1 && interval->gap < WIRE_ENERGY_GAP_MAX);
	require(!interval->gap || !interval->energy_nj);
	return 0;
}

static int see_energy_absence(void *context, const struct wire_energy_absence *absence)
{
	touch(context, absence->source);
	touch(context, absence->reason);
	return 0;
}

static int see_step(void *context, const struct capture_step *step)
{
	require(step->name);
	touch(context, step->name);
	return 0;
}

static int see_symbols(void *context, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	struct seen *seen = context;

	require(mapping <= seen->mappings);
	for (size_t i = 0; i < count; i++) {
		require(lines[i].function);
		touch(seen, lines[i].file);
	}
	return 0;
}

static int see_stats(void *context, const struct capture_stats *stats)
{
	for (uint32_t i = 0; i < stats->loss_count; i++)
		touch(context, stats->losses[i].where);
	for (uint32_t i = 0; i < stats->note_count; i++)
		touch(context, stats->notes[i]);
	return 0;
}

static int see_trace(void *context, const struct capture_trace *trace)
{
	touch(context, trace->path);
	touch(context, trace->header);
	for (size_t i = 0; i < trace->category_count; i++)
		touch(context, trace->categories[i].name);
	return 0;
}

static int see_trace_track(void *context, const struct capture_trace_track *track)
{
	touch(context, track->pid_text);
	touch(context, track->thread_name);
	return 0;
}

static int see_trace_row(void *context, const struct capture_trace_row *row)
{
	uint64_t texts = row->layout & ROW_TEXTS;

	if (row->kind == CAPTURE_ROW_END)
		return 0;
	require(row->name < row->strings->entries.count);
	require(row->category < row->strings->entries.count);
	for (; texts; texts &= texts - 1)
		require(row->values[__builtin_ctzll(texts)] < row->strings->entries.count);
	return 0;
}

static int see_trace_flow(void *context, const struct capture_trace_flow *flow)
{
	touch(context, flow->category);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static const struct capture_visitor visitor = {
		.session = see_session,
		.mapping = see_mapping,
		.frame = see_frame,
		.callstack = see_callstack,
		.process = see_process,
		.thread = see_thread,
		.sample = see_sample,
		.device_work = see_device_work,
		.device_event = see_device_event,
		.launch = see_launch,
		.launch_stack = see_launch_stack,
		.range = see_range,
		.window = see_window,
		.step = see_step,
		.energy_domain = see_energy_domain,
		.energy_interval = see_energy_interval,
		.energy_absence = see_energy_absence,
		.symbols = see_symbols,
		.stats = see_stats,
		.trace = see_trace,
		.trace_track = see_trace_track,
		.trace_row = see_trace_row,
		.trace_flow = see_trace_flow,
	};
	struct capture_read_result result;
	struct seen seen = {0};
	struct errmsg err = {""};
	int status = capture_read_memory(bytes, length, "input", &visitor, &seen, &result, &err);

	require((status < 0) == (err.text[0] != '\0'));
	require(result.bytes <= length || (length > 2 && bytes[0] == 0x1f));
	return 0;
}
