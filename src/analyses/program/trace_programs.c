/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/trace_programs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/program/trace_held.h"
#include "analyses/program/trace_idle.h"
#include "base/demangle.h"
#include "base/json_reader.h"
#include "base/sort.h"

/* The model's time of the first row: 0 would be a time that is not known. */
#define ORIGIN_NS 1

struct making {
	struct model *model;
	const struct trace_view *views; /* the first one's base is that of all */
	size_t count;
	int64_t first_ns;
	struct trace_stacks *stacks; /* NULL: none are wanted */
	bool wants_thread_time;
	struct weight_spans *idle, *held; /* NULL: not wanted */
	uint32_t first_thread;            /* of the view */
	/* The device whose name was made last: most work is of the device of the work before. */
	const struct trace_view *named_of;
	uint32_t named;
	const char *device_name;
};

/* add_threads() made one of each track. */
static uint32_t thread_of(
	const struct making *making, const struct trace_view *view, uint32_t track)
{
	bool is_of_process = view->trace->tracks.items[track].owner_tid == TRACE_OF_PROCESS;

	return is_of_process ? MODEL_NONE : making->first_thread + track;
}

static int keep(struct model *model, const char *text, const char **ret_text)
{
	uint32_t id;
	int r = intern_add(&model->strings, text, strlen(text), &id);

	if (r < 0)
		return r;
	*ret_text = intern_get(&model->strings, id);
	return 0;
}

/* ROCm's are mangled in traces. */
static int keep_kernel(struct model *model, const char *text, const char **ret_text)
{
	_cleanup_strbuf_ struct strbuf plain = {0};
	int r;

	if (strncmp(text, "_Z", 2) != 0)
		return keep(model, text, ret_text);
	demangle_symbol(text, &plain);
	r = strbuf_status(&plain);
	return r < 0 ? r : keep(model, strbuf_cstr(&plain), ret_text);
}

static bool is_annotation(const struct trace_view *view, const struct trace_event *event)
{
	return event->category == TRACE_USER_ANNOTATION && trace_view_has(view, event);
}

/* Times of ranks have one base: see struct trace. Unsigned: those of damaged files may wrap. */
static int64_t common_ns(const struct making *making, const struct trace_view *view, int64_t ns)
{
	return (int64_t)((uint64_t)ns + view->trace->base_ns - making->views->trace->base_ns);
}

static uint64_t model_ns(const struct making *making, const struct trace_view *view, int64_t ns)
{
	int64_t since_ns = common_ns(making, view, ns);

	if (since_ns <= making->first_ns)
		return ORIGIN_NS;
	return ORIGIN_NS + ((uint64_t)since_ns - (uint64_t)making->first_ns);
}

static void find_first(struct making *making)
{
	making->first_ns = INT64_MAX;
	for (size_t i = 0; i < making->count; i++) {
		const struct trace_view *view = &making->views[i];

		if (view->trace->is_narrowed)
			making->first_ns = MIN(making->first_ns,
				common_ns(making, view, view->trace->first_row_ns));
		array_foreach (&view->trace->events, event) {
			int64_t ns = common_ns(making, view, trace_view_start_ns(view, event));

			if (!event->is_capture)
				making->first_ns = MIN(making->first_ns, ns);
		}
	}
}

/* ---- processes and threads ---- */

/* A number of the file that fits; 0: there is none. */
static uint32_t number_of(int64_t number)
{
	return number > 0 && number <= UINT32_MAX ? (uint32_t)number : 0;
}

/* The thread that has the first annotation, or else the first row. */
static const struct trace_track *first_track(const struct trace_view *view)
{
	const struct trace_event *first = NULL;

	array_foreach (&view->trace->events, event) {
		if (is_annotation(view, event))
			return &view->trace->tracks.items[event->track];
		if (!first && trace_view_is_of_thread(view, event))
			first = event;
	}
	return first ? &view->trace->tracks.items[first->track] : NULL;
}

/* "pid 12" where there is no name, as in recordings. */
static int keep_name(struct making *making, const char *name, const char *word, int64_t number,
	const char **ret_name)
{
	char text[32];

	if (*name || number == TRACE_NO_NUMBER)
		return keep(making->model, name, ret_name);
	snprintf(text, sizeof(text), "%s %lld", word, (long long)number);
	return keep(making->model, text, ret_name);
}

static int add_process(struct making *making, const struct trace_view *view)
{
	bool has_rank = view->trace->rank != MODEL_NONE || making->count > 1;
	const struct trace_track *track = first_track(view);
	struct model_process process = {
		.pid = track ? number_of(track->pid) : 0,
		.command_line = "",
		.cgroup = "",
		.host = "",
		.rank = has_rank ? view->rank : MODEL_NONE,
		.world_size = view->trace->world_size,
	};
	int r = keep_name(making, track ? trace_text(view->trace, track->process_name) : "", "pid",
		track ? track->pid : TRACE_NO_NUMBER, &process.name);

	return r < 0 ? r : array_append(&making->model->processes, process);
}

/* One of each track, in the tracks' order. */
static int add_threads(struct making *making, const struct trace_view *view, uint32_t process)
{
	int r = 0;

	making->first_thread = (uint32_t)making->model->threads.count;
	array_foreach (&view->trace->tracks, track) {
		struct model_thread thread = {.tid = number_of(track->tid), .process = process};

		if (r == 0)
			r = keep_name(making, trace_text(view->trace, track->thread_name), "tid",
				track->tid, &thread.name);
		if (r == 0)
			r = array_append(&making->model->threads, thread);
	}
	return r;
}

/* ---- steps and ranges ---- */

/* Where no other name is given, steps are those of PyTorch's profiler. */
#define STEP_NAME "ProfilerStep"

/* What sonde writes with steps and ranges of recordings. */
struct given {
	struct strbuf name; /* of steps */
	bool is_cut, is_open;
	bool has_bytes;
	uint64_t bytes;
};

static void given_done(struct given *given)
{
	strbuf_done(&given->name);
}

static int take_given(void *userdata, const struct json_text *key, const struct json_text *value)
{
	const struct json_text text = json_text_inside(value);
	struct given *given = userdata;

	if (json_text_equals(key, TRACE_END)) {
		given->is_cut = json_text_equals(&text, TRACE_END_CUT);
		given->is_open = json_text_equals(&text, TRACE_END_UNKNOWN);
	} else if (json_text_equals(key, "name") && json_text_is_string(value)) {
		strbuf_clear(&given->name);
		json_text_unescape(&given->name, &text);
	} else if (json_text_equals(key, "bytes") || json_text_equals(key, "Bytes")) {
		given->has_bytes = json_text_u64(&text, &given->bytes) == 0;
	}
	return strbuf_status(&given->name);
}

/* Returns 0 or -ENOMEM. */
static int read_given(
	struct given *given, const struct trace_view *view, const struct trace_event *event)
{
	const struct trace_op *op = trace_op(view->trace, event);

	return op ? trace_others_each(view->trace, op->others, take_given, given) : 0;
}

static int add_step(struct making *making, const struct model_range *range, uint64_t number,
	const struct given *given)
{
	const char *name = given->name.length ? given->name.data : STEP_NAME;
	struct model_step step = {
		.start_ns = range->start_ns,
		.end_ns = range->end_ns,
		.number = number,
		.process = range->process,
		.thread = range->thread,
		.window = MODEL_NONE,
		.is_cut = given->is_cut,
	};
	int r = keep(making->model, name, &step.name);

	return r < 0 ? r : array_append(&making->model->steps, step);
}

/* "" but of the ranges of a domain. */
static const char *domain_of(const struct trace_view *view, const struct trace_event *event)
{
	const char *category = trace_text(view->trace, event->category_name);

	return strcmp(category, TRACE_ANNOTATION_CATEGORY) == 0 ? "" : category;
}

static int add_range(struct making *making, struct model_range *range, const struct given *given)
{
	const struct model_range_field bytes = {
		.name = "bytes", .text = "", .value = given->bytes, .type = WIRE_RANGE_U64};
	int r = 0;

	range->is_open = given->is_open;
	range->first_field = (uint32_t)making->model->range_fields.count;
	range->field_count = given->has_bytes;
	if (given->has_bytes)
		r = array_append(&making->model->range_fields, bytes);
	return r < 0 ? r : array_append(&making->model->ranges, *range);
}

static int add_annotation(struct making *making, const struct trace_view *view,
	const struct trace_event *event, uint32_t process)
{
	struct model_range range = {
		.start_ns = model_ns(making, view, trace_view_start_ns(view, event)),
		.end_ns = model_ns(making, view, trace_view_end_ns(view, event)),
		.domain = "",
		.category = "",
		.process = process,
		.thread = thread_of(making, view, event->track),
		.is_mark = event->duration_ns == TRACE_NO_DURATION,
	};
	const char *name = trace_text(view->trace, event->name);
	_cleanup_(given_done) struct given given = {0};
	uint64_t number;
	int r = read_given(&given, view, event);

	range.end_ns = MAX(range.start_ns, range.end_ns);
	if (r == 0 && !range.is_mark && trace_step_number(name, &number))
		return add_step(making, &range, number, &given);
	if (r == 0)
		r = keep(making->model, name, &range.name);
	if (r == 0)
		r = keep(making->model, domain_of(view, event), &range.domain);
	return r < 0 ? r : add_range(making, &range, &given);
}

static int compare_ranges(const void *left, const void *right)
{
	const struct model_range *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->end_ns > b->end_ns ? -1 : a->end_ns < b->end_ns;
}

static int compare_steps(const void *left, const void *right)
{
	const struct model_step *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (order)
		return order;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* ---- device work ---- */

static enum wire_device_kind kind_of(const struct trace_event *event)
{
	return event->category == TRACE_KERNEL   ? WIRE_DEVICE_KERNEL
	       : event->category == TRACE_MEMSET ? WIRE_DEVICE_FILL
						 : WIRE_DEVICE_COPY;
}

static int name_device(struct making *making, const struct trace_view *view, uint32_t device)
{
	char text[64];
	int r;

	if (making->named_of == view && making->named == device)
		return 0;
	snprintf(text, sizeof(text), "%u of rank %u", device, view->rank);
	r = keep(making->model, text, &making->device_name);
	if (r < 0)
		return r;
	making->named_of = view;
	making->named = device;
	return 0;
}

/* Who launched it; what nobody did in the trace is its stream's own. */
static int find_launched(struct making *making, const struct trace_view *view,
	const struct trace_view_work *row, uint32_t process, struct model_launched *ret_work)
{
	bool is_launched = row->launch != MODEL_NONE;
	const struct trace_event *by =
		&view->trace->events.items[is_launched ? row->launch : row->row];
	uint64_t start_ns = model_ns(making, view, row->start_ns);
	int r = name_device(making, view, view->streams.items[row->stream].device);

	*ret_work = (struct model_launched){
		.start_ns = start_ns,
		.end_ns = MAX(start_ns, model_ns(making, view, row->end_ns)),
		.launch_ns =
			is_launched ? model_ns(making, view, trace_view_start_ns(view, by)) : 0,
		.device = making->device_name,
		.process = process,
		.thread = thread_of(making, view, by->track),
	};
	return r;
}

static int add_with_stack(struct making *making, const struct trace_view *view,
	const struct trace_view_work *row, const struct model_launched *launched)
{
	const struct trace_event *event = &view->trace->events.items[row->row];
	const struct trace_work *detail = trace_work(view->trace, event);
	struct trace_stacks *stacks = making->stacks;
	struct model_device_work work = {
		.start_ns = launched->start_ns,
		.end_ns = launched->end_ns,
		.launch_ns = launched->launch_ns,
		.device = launched->device,
		.process = launched->process,
		.thread = launched->thread,
		.stack = MODEL_NONE,
		.kind = (uint8_t)kind_of(event),
		.gpu = MODEL_NONE,
		.replayed = detail && detail->graph,
	};
	int r = keep_kernel(making->model, trace_text(view->trace, event->name), &work.name);

	if (r == 0 && row->origin != MODEL_NONE)
		r = trace_stacks_get(stacks, stacks->by_row[row->origin], &work.stack);
	work.launch_stack = work.stack;
	if (r == 0 && row->launch != MODEL_NONE && row->origin != row->launch)
		r = trace_stacks_get(stacks, stacks->by_row[row->launch], &work.launch_stack);
	if (r < 0)
		return r;
	if (work.stack == MODEL_NONE)
		work.unattributed = MODEL_NO_STACK;
	return array_append(&making->model->device_works, work);
}

static int add_work(struct making *making, const struct trace_view *view,
	const struct trace_view_work *row, uint32_t process)
{
	struct model_launched launched;
	int r = find_launched(making, view, row, process, &launched);

	if (r < 0)
		return r;
	return making->stacks ? add_with_stack(making, view, row, &launched)
			      : array_append(&making->model->launched_works, launched);
}

/* Of a work without a launch nothing but its stack's absence is known. */
static bool is_wanted(const struct making *making, const struct trace_view_work *work)
{
	return !work->is_wait && (making->stacks || work->launch != MODEL_NONE);
}

static int compare_works(const void *left, const void *right)
{
	const struct model_device_work *a = left, *b = right;

	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static int compare_launched(const void *left, const void *right)
{
	const struct model_launched *a = left, *b = right;

	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* ---- threads' time ---- */

static int add_stretch(
	struct making *making, const struct trace_view *view, const struct trace_stretch *stretch)
{
	uint64_t duration_ns = (uint64_t)(stretch->end_ns - stretch->start_ns);
	struct model_sample sample = {
		.time_ns = model_ns(making, view, stretch->start_ns),
		.thread = thread_of(making, view, stretch->track),
		.gil_holder = MODEL_NONE,
		.count = duration_ns,
		.duration_ns = duration_ns,
	};
	int r = trace_stacks_get(making->stacks, stretch->place, &sample.stack);

	return r < 0 ? r : array_append(&making->model->samples, sample);
}

static int compare_samples(const void *left, const void *right)
{
	const struct model_sample *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

/* ---- idle devices ---- */

static int add_idle_part(struct making *making, const struct trace_view *view,
	const struct trace_idle_part *part, uint32_t process)
{
	struct model_span span = {
		.start_ns = model_ns(making, view, part->start_ns),
		.end_ns = model_ns(making, view, part->end_ns),
		.process = process,
		.thread = thread_of(making, view, part->track),
		.leaf = device_idle_cause_leaf(part->cause),
	};
	int r = trace_stacks_get(making->stacks, part->place, &span.stack);

	return r < 0 ? r : array_append(&making->idle->items, span);
}

static int add_idle(struct making *making, const struct trace_view *view, uint32_t process)
{
	_cleanup_trace_idle_ struct trace_idle idle = {0};
	int r = trace_idle_find(&idle, making->stacks, view);

	for (size_t i = 0; r == 0 && i < idle.parts.count; i++)
		r = add_idle_part(making, view, &idle.parts.items[i], process);
	return r;
}

/* ---- memory at devices' peaks ---- */

static int add_held_part(struct making *making, const struct trace_view *view,
	const struct trace_held_part *part, const char *device, uint32_t process)
{
	struct model_span span = {
		.start_ns = model_ns(making, view, part->time_ns),
		.process = process,
		.thread = part->track == MODEL_NONE ? MODEL_NONE
						    : thread_of(making, view, part->track),
		.leaf = part->leaf,
		.bytes = part->bytes,
	};
	int r = trace_stacks_get(making->stacks, part->place, &span.stack);

	if (r == 0)
		r = keep(making->model, device, &span.device);
	return r < 0 ? r : array_append(&making->held->items, span);
}

static int add_held(struct making *making, const struct trace_view *view, uint32_t process)
{
	_cleanup_trace_held_ struct trace_held held = {0};
	int r = trace_held_find(&held, making->stacks, view);

	for (size_t i = 0; r == 0 && i < held.parts.count; i++) {
		const struct trace_held_part *part = &held.parts.items[i];

		r = add_held_part(
			making, view, part, held.devices.items[part->device].frame, process);
	}
	return r;
}

/* What is made of the view's stacks. */
static int add_stacks(struct making *making, const struct trace_view *view, uint32_t process)
{
	const struct trace_stacks *stacks = making->stacks;
	int r = 0;

	for (size_t i = 0; r == 0 && making->wants_thread_time && i < stacks->stretches.count; i++)
		r = add_stretch(making, view, &stacks->stretches.items[i]);
	if (r == 0 && making->idle)
		r = add_idle(making, view, process);
	if (r == 0 && making->held)
		r = add_held(making, view, process);
	return r;
}

/* ---- all of it ---- */

static int add_view(struct making *making, const struct trace_view *view)
{
	uint32_t process = (uint32_t)making->model->processes.count;
	int r = add_process(making, view);

	if (r == 0)
		r = add_threads(making, view, process);
	if (r == 0 && making->stacks)
		r = trace_stacks_find(
			making->stacks, view, making->wants_thread_time || making->idle);
	array_foreach (&view->trace->events, event) {
		if (r == 0 && is_annotation(view, event))
			r = add_annotation(making, view, event, process);
	}
	array_foreach (&view->works, work) {
		if (r == 0 && is_wanted(making, work))
			r = add_work(making, view, work, process);
	}
	if (r < 0 || !making->stacks)
		return r;
	return add_stacks(making, view, process);
}

#define SORT(array, compare)                                                                       \
	do {                                                                                       \
		sort_unless_sorted(                                                                \
			(array)->items, (array)->count, sizeof(*(array)->items), compare);         \
	} while (0)

static int fill(struct making *making)
{
	struct model *model = making->model;
	int r = 0;

	if (model->processes.count)
		return 0;
	find_first(making);
	for (size_t i = 0; r == 0 && i < making->count; i++)
		r = add_view(making, &making->views[i]);
	if (r < 0)
		return r;
	model->session.start_time_ns = ORIGIN_NS;
	SORT(&model->ranges, compare_ranges);
	SORT(&model->steps, compare_steps);
	SORT(&model->device_works, compare_works);
	SORT(&model->launched_works, compare_launched);
	SORT(&model->samples, compare_samples);
	return 0;
}

int trace_programs_fill(struct model *model, const struct trace_view *views, size_t count)
{
	struct making making = {.model = model, .views = views, .count = count};

	return fill(&making);
}

int trace_programs_fill_stacks(struct model *model, const struct trace_view *views, size_t count,
	const struct trace_programs_options *options)
{
	_cleanup_trace_stacks_ struct trace_stacks stacks = {
		.frames.model = model, .joins_backward = options->joins_backward};
	struct making making = {
		.model = model,
		.views = views,
		.count = count,
		.stacks = &stacks,
		.wants_thread_time = options->wants_thread_time,
		.idle = options->idle,
		.held = options->held,
	};

	return fill(&making);
}
