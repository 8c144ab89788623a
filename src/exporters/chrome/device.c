/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/chrome/device.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "model/trace_capture.h"
#include "model/unified.h"

/* Numbers that no pid, tid or earlier process has: chrome.c's begin here. */
#define FIRST_NUMBER (1u << 30)

/* A line of the trace: its track. */
struct line_key {
	uint32_t device;  /* MODEL_NONE: of the host */
	uint32_t process; /* MODEL_NONE: of one thread */
	uint32_t number;  /* of the queue, or of the thread */
	uint32_t
		place; /* work of one queue that overlaps, of queues without order, needs several */
};

struct layout {
	const struct model *model;
	const uint64_t *process_numbers;
	struct trace *trace;
	struct intern lines;                 /* ids are indices in tracks */
	ARRAY_OF(struct trace_track) tracks; /* in place of the trace's */
	ARRAY_OF(uint64_t) busy_until_ns;    /* of each */
	uint32_t arrow;                      /* string */
	struct map_u64 launches;             /* correlations of work */
	size_t memory, unified;              /* of the model's that come next */
};

static int add_text(struct layout *layout, const char *text, uint32_t *ret_string)
{
	return MIN(intern_add(&layout->trace->strings, text, strlen(text), ret_string), 0);
}

/* ---- lines ---- */

static int add_line(struct layout *layout, uint64_t process, uint64_t thread, int64_t owner_tid,
	const char *process_name, const char *thread_name)
{
	struct trace_track track = {
		.pid = (int64_t)process,
		.tid = (int64_t)thread,
		.process_sort = TRACE_NO_NUMBER,
		.thread_sort = TRACE_NO_NUMBER,
		.owner_tid = owner_tid,
	};
	int r = add_text(layout, process_name, &track.process_name);

	if (r == 0)
		r = add_text(layout, thread_name, &track.thread_name);
	if (r == 0)
		r = array_append(&layout->tracks, track);
	return r < 0 ? r : array_append(&layout->busy_until_ns, (uint64_t)0);
}

/* The device's own number, as Kineto has it, where no process has that. */
static uint64_t device_number(const struct layout *layout, uint32_t device)
{
	for (size_t i = 0; i < layout->model->processes.count; i++) {
		if (layout->process_numbers[i] == device)
			return FIRST_NUMBER + layout->model->processes.count + device;
	}
	return device;
}

static int add_queue(struct layout *layout, const struct line_key *key, uint32_t line)
{
	const struct model_process *process = &layout->model->processes.items[key->process];
	const char *device = trace_device_name(layout->trace, key->device);
	_cleanup_strbuf_ struct strbuf name = {0};

	strbuf_addf(&name, "queue %u of %s (%u)", key->number, process->name, process->pid);
	if (key->place)
		strbuf_addf(&name, ", %u", key->place + 1);
	if (strbuf_status(&name) < 0)
		return -ENOMEM;
	return add_line(layout, device_number(layout, key->device), line + 1ULL, 0,
		*device ? device : "unknown device", strbuf_cstr(&name));
}

/* The first place of its queue that is free when it begins; work comes in order of start. */
static int find_queue(struct layout *layout, const struct model_device_work *work, uint32_t device,
	uint32_t *ret_line)
{
	struct line_key key = {.device = device, .process = work->process, .number = work->queue};
	int r;

	for (;; key.place++) {
		r = intern_add(&layout->lines, &key, sizeof(key), ret_line);
		if (r != 0 || layout->busy_until_ns.items[*ret_line] <= work->start_ns)
			break;
	}
	if (r > 0)
		r = add_queue(layout, &key, *ret_line);
	if (r == 0)
		layout->busy_until_ns.items[*ret_line] = work->end_ns;
	return r;
}

/* Beside the thread: its samples and its calls do not nest. */
static int find_launching_thread(struct layout *layout, uint32_t thread, uint32_t *ret_line)
{
	const struct line_key key = {MODEL_NONE, MODEL_NONE, thread, 0};
	const struct model_thread *launching = &layout->model->threads.items[thread];
	_cleanup_strbuf_ struct strbuf name = {0};
	int r = intern_add(&layout->lines, &key, sizeof(key), ret_line);

	if (r <= 0)
		return r;
	strbuf_addf(&name, "launches of %s (%u)", launching->name, launching->tid);
	if (strbuf_status(&name) < 0)
		return -ENOMEM;
	return add_line(layout, layout->process_numbers[launching->process],
		(uint64_t)FIRST_NUMBER + launching->tid, launching->tid, "", strbuf_cstr(&name));
}

static int find_process(struct layout *layout, uint32_t process, uint32_t *ret_line)
{
	const struct line_key key = {MODEL_NONE, process, 0, 0};
	int r = intern_add(&layout->lines, &key, sizeof(key), ret_line);

	return r <= 0 ? r : add_line(layout, layout->process_numbers[process], 0, 0, "", "");
}

/* ---- rows ---- */

static int add_arrow_end(struct layout *layout, const struct trace_event *event, bool is_end)
{
	const struct trace_flow flow = {
		.time_ns = event->start_ns,
		.id = event->correlation,
		.track = event->track,
		.category_name = layout->arrow,
		.is_end = is_end,
	};

	return array_append(&layout->trace->flows, flow);
}

static int place_work(struct layout *layout, struct trace_event *event)
{
	const struct trace_work *detail = trace_work(layout->trace, event);
	int r = find_queue(layout, &layout->model->device_works.items[detail->recorded - 1],
		(uint32_t)detail->device, &event->track);

	if (r < 0 || trace_launch(layout->trace, event) == MODEL_NONE)
		return r;
	return add_arrow_end(layout, event, true);
}

/* Beside the queues: what waits overlaps with their work. */
static int place_sync(struct layout *layout, struct trace_event *event)
{
	const struct trace_work *detail = trace_work(layout->trace, event);
	const struct trace_track *track = &layout->trace->tracks.items[event->track];
	const char *device = trace_device_name(layout->trace, detail->device);
	const struct line_key key = {(uint32_t)detail->device, MODEL_NONE, event->track, 0};
	_cleanup_strbuf_ struct strbuf name = {0};
	int r = intern_add(&layout->lines, &key, sizeof(key), &event->track);

	if (r <= 0)
		return r;
	strbuf_addf(&name, "waits, %s", trace_text(layout->trace, track->thread_name));
	if (strbuf_status(&name) < 0)
		return -ENOMEM;
	return add_line(layout, device_number(layout, (uint32_t)detail->device),
		event->track + 1ULL, 0, *device ? device : "unknown device", strbuf_cstr(&name));
}

/* Those that wait for a device launch nothing. */
static int place_call(struct layout *layout, struct trace_event *event)
{
	uint32_t thread = layout->trace->tracks.items[event->track].recorded - 1;
	int r = find_launching_thread(layout, thread, &event->track);

	return r < 0 || !map_u64_get(&layout->launches, event->correlation, NULL)
		       ? r
		       : add_arrow_end(layout, event, false);
}

/* They come in the order of the model's. */
static int place_memory(struct layout *layout, struct trace_event *event)
{
	const struct model_device_memory *memory = layout->model->device_memory.items;

	while (!model_is_device_memory(&memory[layout->memory]))
		layout->memory++;
	return find_process(layout, memory[layout->memory++].process, &event->track);
}

/* The same; beside the queues, each kind in as many lines as it needs. */
static int place_unified(struct layout *layout, struct trace_event *event)
{
	const struct model_unified_memory *item =
		&layout->model->unified_memory.items[layout->unified++];
	const struct trace_track *track = &layout->trace->tracks.items[event->track];
	struct line_key key = {(uint32_t)track->pid, MODEL_NONE, event->track, 0};
	const char *device = model_unified_device(item);
	int r;

	if (!track->is_device)
		return find_process(layout, item->process, &event->track);
	for (;; key.place++) {
		r = intern_add(&layout->lines, &key, sizeof(key), &event->track);
		if (r != 0 || layout->busy_until_ns.items[event->track] <= item->start_ns)
			break;
	}
	if (r > 0)
		r = add_line(layout, device_number(layout, key.device), event->track + 1ULL, 0,
			*device ? device : "unknown device",
			trace_text(layout->trace, track->thread_name));
	if (r == 0)
		layout->busy_until_ns.items[event->track] = item->end_ns;
	return r;
}

static bool is_unified(const struct trace *trace, const struct trace_event *event)
{
	return event->category == TRACE_OTHER &&
	       strcmp(trace_text(trace, event->category_name), TRACE_UNIFIED_CATEGORY) == 0;
}

static int place_row(struct layout *layout, struct trace_event *event)
{
	if (trace_is_work(event))
		return place_work(layout, event);
	if (event->category == TRACE_SYNC)
		return place_sync(layout, event);
	if (event->category == TRACE_CPU_INSTANT)
		return place_memory(layout, event);
	return event->category == TRACE_OTHER ? place_unified(layout, event)
					      : place_call(layout, event);
}

static int place_rows(struct layout *layout)
{
	struct trace *trace = layout->trace;
	size_t kept = 0;
	int r = add_text(layout, "ac2g", &layout->arrow);

	array_foreach (&trace->events, event) {
		if (r == 0 && trace_is_work(event) && event->correlation)
			r = map_u64_set(&layout->launches, event->correlation, 1);
	}
	for (size_t i = 0; r == 0 && i < trace->events.count; i++) {
		struct trace_event event = trace->events.items[i];

		if ((event.category <= TRACE_USER_ANNOTATION && !is_unified(trace, &event)) ||
			event.is_capture)
			continue;
		r = place_row(layout, &event);
		trace->events.items[kept++] = event;
	}
	trace->events.count = kept;
	return r;
}

int chrome_device_rows(
	struct trace **ret_trace, const struct model *model, const uint64_t *process_numbers)
{
	_cleanup_trace_ struct trace *trace = NULL;
	struct layout layout = {.model = model, .process_numbers = process_numbers};
	int r = trace_of_recording(&trace, model);

	if (r < 0)
		return r;
	layout.trace = trace;
	r = place_rows(&layout);
	intern_done(&layout.lines);
	map_u64_done(&layout.launches);
	array_done(&layout.busy_until_ns);
	array_done(&trace->tracks);
	trace->tracks.items = layout.tracks.items;
	trace->tracks.count = layout.tracks.count;
	trace->tracks.capacity = layout.tracks.capacity;
	if (r == 0)
		*ret_trace = TAKE_PTR(trace);
	return r;
}
