/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/trace_view.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/device/communication_rows.h"
#include "analyses/trace_order.h"
#include "base/text.h"

const char *const trace_kind_names[TRACE_KIND_MAX] = {
	[TRACE_COMPUTE] = "compute",
	[TRACE_COMMUNICATION] = "communication",
	[TRACE_MEMORY] = "memory",
	[TRACE_OTHER_KIND] = "other",
};

/* ---- kinds ---- */

/* Kineto has one category for all that MTIA devices do: copies and waits are known by name. */
static bool is_mtia(const struct trace_view *view, const struct trace_event *event)
{
	return event->category_name == view->mtia && event->category == TRACE_KERNEL;
}

static bool is_mtia_named(
	const struct trace_view *view, const struct trace_event *event, const char *beginning)
{
	return is_mtia(view, event) && begins_with(trace_text(view->trace, event->name), beginning);
}

static size_t row_of(const struct trace_view *view, const struct trace_event *event)
{
	return (size_t)(event - view->trace->events.items);
}

enum trace_kind trace_view_kind(const struct trace_view *view, const struct trace_event *event)
{
	if (event->category == TRACE_MEMCPY || event->category == TRACE_MEMSET ||
		is_mtia_named(view, event, "dma"))
		return TRACE_MEMORY;
	return view->communication && view->communication[row_of(view, event)] ? TRACE_COMMUNICATION
									       : TRACE_COMPUTE;
}

/* ---- times ---- */

int64_t trace_view_start_ns(const struct trace_view *view, const struct trace_event *event)
{
	return view->times ? view->times[row_of(view, event)].start_ns : event->start_ns;
}

int64_t trace_view_end_ns(const struct trace_view *view, const struct trace_event *event)
{
	if (view->times)
		return view->times[row_of(view, event)].end_ns;
	/* TRACE_NO_DURATION is negative, too. */
	return event->start_ns + MAX(event->duration_ns, (int64_t)0);
}

/* ---- rows ---- */

bool trace_view_has(const struct trace_view *view, const struct trace_event *event)
{
	return !view->left_out || !view->left_out[row_of(view, event)];
}

bool trace_view_is_of_thread(const struct trace_view *view, const struct trace_event *event)
{
	if (event->duration_ns == TRACE_NO_DURATION || !trace_view_has(view, event))
		return false;
	if (event->category == TRACE_OTHER)
		return !event->category_name;
	return event->category <= TRACE_DRIVER;
}

static bool is_step(const char *name)
{
	static const char beginning[] = "ProfilerStep#";

	return begins_with(name, beginning) && isdigit((unsigned char)name[sizeof(beginning) - 1]);
}

bool trace_step_number(const char *name, uint64_t *ret_number)
{
	if (!is_step(name))
		return false;
	errno = 0;
	*ret_number = strtoull(strchr(name, '#') + 1, NULL, 10);
	return errno == 0;
}

int trace_view_find_steps(
	struct trace_view *view, unsigned categories, struct trace_view_times *ret_last)
{
	struct trace_view_times last = {INT64_MIN, INT64_MIN};
	struct map_u64 names = {0};
	int r = 0;

	array_foreach (&view->trace->events, event) {
		if (!(categories & 1U << event->category) ||
			event->duration_ns == TRACE_NO_DURATION || event->is_capture ||
			!is_step(trace_text(view->trace, event->name)))
			continue;
		r = map_u64_set(&names, event->name, 1);
		if (r < 0)
			break;
		last.start_ns = MAX(last.start_ns, trace_view_start_ns(view, event));
		last.end_ns = MAX(last.end_ns, trace_view_end_ns(view, event));
	}
	view->steps = (uint32_t)names.count;
	*ret_last = last;
	map_u64_done(&names);
	return r;
}

int trace_view_leave_out_captures(struct trace_view *view)
{
	const struct trace *trace = view->trace;

	if (!trace->capture_rows)
		return 0;
	if (!view->left_out)
		view->left_out = calloc(trace->events.count + 1, sizeof(*view->left_out));
	if (!view->left_out)
		return -ENOMEM;
	for (size_t row = 0; row < trace->events.count; row++)
		view->left_out[row] |= trace->events.items[row].is_capture;
	return 0;
}

/* Of the last step, where there are two or more; work goes by its launch. */
static int leave_out_last_step(struct trace_view *view)
{
	const struct trace *trace = view->trace;
	struct trace_view_times last;
	int r = trace_view_find_steps(view, 1U << TRACE_USER_ANNOTATION, &last);

	if (r < 0 || view->steps < 2 || !view->options.drop_last_step)
		return r;
	view->left_out = calloc(trace->events.count + 1, sizeof(*view->left_out));
	if (!view->left_out)
		return -ENOMEM;
	for (size_t row = 0; row < trace->events.count; row++) {
		const struct trace_event *event = &trace->events.items[row];
		uint32_t launch = trace_is_work(event) ? trace_launch(trace, event) : MODEL_NONE;

		if (launch != MODEL_NONE)
			event = &trace->events.items[launch];
		view->left_out[row] = event->start_ns >= last.start_ns;
	}
	return 0;
}

/* ---- work ---- */

static int find_device(struct trace_view *view, int64_t number, uint32_t *ret_device)
{
	uint64_t known;
	int r;

	if (map_u64_get(&view->device_of_number, (uint64_t)number, &known)) {
		*ret_device = (uint32_t)known;
		return 0;
	}
	*ret_device = (uint32_t)view->devices.count;
	r = map_u64_set(&view->device_of_number, (uint64_t)number, *ret_device);
	return r ?: array_append(&view->devices, (struct trace_view_device){.number = number});
}

static int find_stream(
	struct trace_view *view, const struct trace_view_queue *queue, uint32_t *ret_stream)
{
	struct trace_view_stream stream = {.number = queue->number, .track = queue->track};
	uint64_t known;
	int r;

	if (map_u64_get(&view->stream_of_key, queue->key, &known)) {
		*ret_stream = (uint32_t)known;
		return 0;
	}
	*ret_stream = (uint32_t)view->streams.count;
	r = map_u64_set(&view->stream_of_key, queue->key, *ret_stream);
	r = r ?: find_device(view, queue->device, &stream.device);
	return r ?: array_append(&view->streams, stream);
}

int trace_view_add_work(struct trace_view *view, uint32_t row, const struct trace_view_queue *queue,
	enum trace_kind kind)
{
	const struct trace_event *event = &view->trace->events.items[row];
	struct trace_view_work work = {
		.start_ns = trace_view_start_ns(view, event),
		.end_ns = trace_view_end_ns(view, event),
		.row = row,
		.launch = trace_launch(view->trace, event),
		.origin = trace_origin(view->trace, event),
		.kind = (uint8_t)kind,
		.is_wait = event->category == TRACE_SYNC,
	};
	int r;

	if (!trace_view_has(view, event)) {
		view->dropped_works++;
		return 0;
	}
	r = find_stream(view, queue, &work.stream);
	if (r < 0)
		return r;
	if (kind == TRACE_COMMUNICATION && view->communication)
		work.communication = view->communication[row];
	view->works_without_launch += work.launch == MODEL_NONE;
	view->negative_durations += event->duration_ns < 0;
	view->streams.items[work.stream].works++;
	view->devices.items[view->streams.items[work.stream].device].works++;
	return array_append(&view->works, work);
}

/*
 * What tells a queue from others: its device and number, since work that overlaps may have tracks
 * of its own; else the track. Queues of a recording's processes may have one number.
 */
static struct trace_view_queue queue_of(const struct trace *trace, const struct trace_event *event)
{
	const struct trace_work *work = trace_work(trace, event);
	struct trace_view_queue queue = {
		.key = UINT64_MAX - event->track,
		.number = work ? work->stream : TRACE_NO_NUMBER,
		.device = work ? work->device : TRACE_NO_NUMBER,
		.track = event->track,
	};
	const int64_t limit = INT32_MAX;

	if (work && !work->recorded && work->device >= 0 && work->device < limit &&
		work->stream >= 0 && work->stream < limit)
		queue.key = (uint64_t)work->device << 32 | (uint64_t)work->stream;
	if (queue.device == TRACE_NO_NUMBER)
		queue.device = trace->tracks.items[event->track].pid;
	return queue;
}

static int add_works(struct trace_view *view)
{
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < view->trace->events.count; row++) {
		const struct trace_event *event = &view->trace->events.items[row];
		struct trace_view_queue queue;

		if (!trace_is_work(event) || event->duration_ns == TRACE_NO_DURATION ||
			is_mtia_named(view, event, "event_"))
			continue;
		queue = queue_of(view->trace, event);
		r = trace_view_add_work(view, row, &queue, trace_view_kind(view, event));
	}
	return r;
}

static int64_t start_of(const void *work)
{
	return ((const struct trace_view_work *)work)->start_ns;
}

struct trace_view trace_view_of(const struct trace *trace, uint32_t rank)
{
	static const char mtia[] = "mtia_ccp_events";
	struct trace_view view = {
		.trace = trace,
		.rank = trace->rank == MODEL_NONE ? rank : trace->rank,
	};

	if (!intern_find(&trace->strings, mtia, strlen(mtia), &view.mtia))
		view.mtia = MODEL_NONE;
	return view;
}

int trace_view_init(struct trace_view *view, const struct trace *trace, uint32_t rank,
	const struct trace_view_options *options)
{
	int r;

	*view = trace_view_of(trace, rank);
	view->options = *options;
	r = communication_of_rows(trace, &view->communication);
	r = r ?: leave_out_last_step(view);
	r = r ?: trace_view_leave_out_captures(view);
	r = r ?: add_works(view);
	if (r == 0)
		r = trace_order_items(view->works.items, view->works.count,
			sizeof(*view->works.items), start_of, trace_order_stable);
	if (r < 0)
		trace_view_done(view);
	return r;
}

void trace_view_done(struct trace_view *view)
{
	array_done(&view->works);
	array_done(&view->streams);
	array_done(&view->devices);
	map_u64_done(&view->stream_of_key);
	map_u64_done(&view->device_of_number);
	free(view->times);
	free(view->left_out);
	free(view->communication);
	view->times = NULL;
	view->left_out = NULL;
	view->communication = NULL;
}

/* ---- names ---- */

static bool is_unique_name(const struct trace_view *view, uint32_t device, const char *name)
{
	array_foreach (&view->devices, other) {
		if (other != &view->devices.items[device] &&
			strcmp(trace_device_name(view->trace, other->number), name) == 0)
			return false;
	}
	return true;
}

void trace_view_device_name(const struct trace_view *view, uint32_t device, struct strbuf *out)
{
	const struct trace_view_device *shown = &view->devices.items[device];
	const char *name = trace_device_name(view->trace, shown->number);

	if (*name && is_unique_name(view, device, name))
		strbuf_add(out, name);
	else if (shown->number == TRACE_NO_NUMBER)
		strbuf_add(out, shown->is_all ? "all GPUs" : "GPU");
	else
		strbuf_addf(out, "GPU %lld", (long long)shown->number);
}

void trace_view_stream_name(const struct trace_view *view, uint32_t stream, struct strbuf *out)
{
	const struct trace_view_stream *shown = &view->streams.items[stream];
	const struct trace_track *track;

	if (shown->number != TRACE_NO_NUMBER) {
		strbuf_addf(out, "stream %lld", (long long)shown->number);
		return;
	}
	track = &view->trace->tracks.items[shown->track];
	if (track->thread_name)
		strbuf_add(out, trace_text(view->trace, track->thread_name));
	else if (track->tid != TRACE_NO_NUMBER)
		strbuf_addf(out, "queue %lld", (long long)track->tid);
	else
		strbuf_addf(out, "queue %s", trace_text(view->trace, track->tid_text));
}
