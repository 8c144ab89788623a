/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/trace_view.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/device/communication_rows.h"
#include "analyses/trace_order.h"
#include "base/map.h"

const char *trace_kind_name(enum trace_kind kind)
{
	static const char *const names[TRACE_KIND_MAX] = {
		[TRACE_COMPUTE] = "compute",
		[TRACE_COMMUNICATION] = "communication",
		[TRACE_MEMORY] = "memory",
		[TRACE_OTHER_KIND] = "other",
	};

	return kind < TRACE_KIND_MAX ? names[kind] : NULL;
}

const char *trace_kind_hta_name(enum trace_kind kind)
{
	static const char *const names[TRACE_KIND_MAX] = {
		[TRACE_COMPUTE] = "COMPUTATION",
		[TRACE_COMMUNICATION] = "COMMUNICATION",
		[TRACE_MEMORY] = "MEMORY",
		[TRACE_OTHER_KIND] = "OTHER",
	};

	return kind < TRACE_KIND_MAX ? names[kind] : NULL;
}

void trace_kinds_name(unsigned set, bool hta, const char *between, struct strbuf *out)
{
	size_t begin = out->length;

	for (unsigned i = 0; i < TRACE_OTHER_KIND; i++) {
		enum trace_kind kind = (enum trace_kind)i;

		if (!(set & 1U << i))
			continue;
		if (out->length > begin)
			strbuf_add(out, between);
		strbuf_add(out, hta ? trace_kind_hta_name(kind) : trace_kind_name(kind));
	}
}

/* ---- kinds ---- */

static bool begins_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool begins_with_any(const char *text, const char *const *beginnings)
{
	for (; *beginnings; beginnings++) {
		if (begins_with(text, *beginnings))
			return true;
	}
	return false;
}

/* The patterns of hta/common/types.py, tried in the order of get_kernel_type(). */
static enum trace_kind hta_kind_of_name(const char *name)
{
	static const char *const communication[] = {"nccl", "hip", "hccl", NULL};
	static const char *const memory[] = {"Memcpy", "Memset", "dma", NULL};
	static const char *const others[] = {"Stream Wait Event", "runFunction", "job_exe",
		"packet", "pe_exe", "cpum_exe_subgraph", "collective_subgraph_execution", NULL};
	static const char *const contained[] = {"Memcpy", "Memset", "dma", "Sync"};

	if (begins_with_any(name, communication) || strstr(name, "ncclKernel"))
		return TRACE_COMMUNICATION;
	if (begins_with_any(name, memory))
		return TRACE_MEMORY;
	if (begins_with_any(name, others))
		return TRACE_OTHER_KIND;
	for (size_t i = 0; i < ARRAY_SIZE(contained); i++) {
		if (strstr(name, contained[i]))
			return TRACE_OTHER_KIND;
	}
	if (begins_with(name, "cuda") && strstr(name, "LaunchKernel"))
		return TRACE_OTHER_KIND;
	return TRACE_COMPUTE;
}

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

enum trace_kind trace_view_kind(const struct trace_view *view, const struct trace_event *event)
{
	uint8_t *by_name;

	if (!view->options.hta_compatible) {
		if (event->category == TRACE_MEMCPY || event->category == TRACE_MEMSET ||
			is_mtia_named(view, event, "dma"))
			return TRACE_MEMORY;
		return view->communication[event - view->trace->events.items] ? TRACE_COMMUNICATION
									      : TRACE_COMPUTE;
	}
	by_name = &view->kinds[event->name];
	if (!*by_name)
		*by_name = (uint8_t)(hta_kind_of_name(trace_text(view->trace, event->name)) + 1);
	return (enum trace_kind)(*by_name - 1);
}

/* ---- times ---- */

/* HTA holds microseconds as doubles, and rounds them where a file has fractions. */
static double as_us(int64_t ns)
{
	return (double)((long double)ns / NS_PER_US);
}

static bool is_rounded(const struct trace_view *view)
{
	return view->options.hta_compatible && view->trace->has_fractions;
}

int64_t trace_view_start_ns(const struct trace_view *view, const struct trace_event *event)
{
	if (!is_rounded(view))
		return event->start_ns;
	return (int64_t)ceil(as_us(event->start_ns)) * (int64_t)NS_PER_US;
}

int64_t trace_view_end_ns(const struct trace_view *view, const struct trace_event *event)
{
	if (event->duration_ns == TRACE_NO_DURATION)
		return trace_view_start_ns(view, event);
	if (is_rounded(view)) {
		double end_us = as_us(event->start_ns) + as_us(event->duration_ns);

		return (int64_t)floor(end_us) * (int64_t)NS_PER_US;
	}
	if (view->options.hta_compatible)
		return trace_end_ns(event);
	return event->start_ns + MAX(event->duration_ns, (int64_t)0);
}

/* ---- rows ---- */

/* HTA's GPUKernelFilter. */
static bool hta_is_device_row(const struct trace_view *view, const struct trace_event *event)
{
	const struct trace_work *work = trace_work(view->trace, event);

	if (event->name == view->event_sync || event->name == view->context_sync)
		return true;
	return work && work->stream != TRACE_NO_NUMBER && work->stream >= 0 && event->correlation;
}

static bool is_of_device(const struct trace_view *view, const struct trace_event *event)
{
	return view->options.hta_compatible ? hta_is_device_row(view, event) : trace_is_work(event);
}

static bool is_before_the_end(const struct trace_view *view, const struct trace_event *event)
{
	return trace_view_start_ns(view, event) < view->dropped_from_ns;
}

bool trace_view_has(const struct trace_view *view, const struct trace_event *event)
{
	uint32_t launch;

	if (view->options.hta_compatible && event->duration_ns == TRACE_NO_DURATION)
		return false;
	if (view->dropped_from_ns == INT64_MAX)
		return true;
	if (!is_of_device(view, event))
		return is_before_the_end(view, event);
	launch = trace_launch(view->trace, event);
	if (launch != MODEL_NONE)
		return is_before_the_end(view, &view->trace->events.items[launch]);
	return !view->options.hta_compatible && is_before_the_end(view, event);
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

/* HTA takes a device's annotations for steps of the host, too. */
static bool can_be_step(const struct trace_view *view, const struct trace_event *event)
{
	if (event->duration_ns == TRACE_NO_DURATION)
		return false;
	return event->category == TRACE_USER_ANNOTATION ||
	       (view->options.hta_compatible && event->category == TRACE_GPU_ANNOTATION);
}

static int find_steps(struct trace_view *view)
{
	int64_t last_start_ns = INT64_MIN, last_end_ns = INT64_MIN;
	struct map_u64 names = {0};
	int r = 0;

	array_foreach (&view->trace->events, event) {
		if (!can_be_step(view, event) || !is_step(trace_text(view->trace, event->name)))
			continue;
		r = map_u64_set(&names, event->name, 1);
		if (r < 0)
			break;
		last_start_ns = MAX(last_start_ns, trace_view_start_ns(view, event));
		last_end_ns = MAX(last_end_ns, trace_view_end_ns(view, event));
	}
	view->steps = (uint32_t)names.count;
	map_u64_done(&names);
	if (r < 0 || view->steps < 2)
		return r;
	if (view->options.hta_compatible)
		view->dropped_from_ns =
			view->options.keep_last_step ? last_end_ns + 1 : last_start_ns;
	else if (view->options.drop_last_step)
		view->dropped_from_ns = last_start_ns;
	return 0;
}

/* ---- work ---- */

/* Numbers → indices of streams or devices. */
struct places {
	struct map_u64 streams, devices;
};

static int find_device(
	struct trace_view *view, struct places *places, int64_t number, uint32_t *ret_device)
{
	uint64_t known;
	int r;

	if (map_u64_get(&places->devices, (uint64_t)number, &known)) {
		*ret_device = (uint32_t)known;
		return 0;
	}
	*ret_device = (uint32_t)view->devices.count;
	r = map_u64_set(&places->devices, (uint64_t)number, *ret_device);
	return r ?: array_append(&view->devices, (struct trace_view_device){.number = number});
}

static int add_stream(struct trace_view *view, struct places *places,
	const struct trace_event *event, const struct trace_work *work)
{
	const struct trace_track *track = &view->trace->tracks.items[event->track];
	struct trace_view_stream stream = {
		.number = work ? work->stream : TRACE_NO_NUMBER,
		.track = event->track,
	};
	int64_t device = work ? work->device : TRACE_NO_NUMBER;
	int r;

	if (device == TRACE_NO_NUMBER)
		device = track->pid;
	if (view->options.hta_compatible) {
		device = TRACE_NO_NUMBER;
		stream.track = MODEL_NONE;
	}
	r = find_device(view, places, device, &stream.device);
	return r ?: array_append(&view->streams, stream);
}

/*
 * What tells a stream from others: its device and number, since work that overlaps may have tracks
 * of its own; else the track. Queues of a recording's processes may have one number.
 */
static uint64_t stream_key(const struct trace_event *event, const struct trace_work *work)
{
	const int64_t limit = INT32_MAX;

	if (work && !work->recorded && work->device >= 0 && work->device < limit &&
		work->stream >= 0 && work->stream < limit)
		return (uint64_t)work->device << 32 | (uint64_t)work->stream;
	return UINT64_MAX - event->track;
}

static int find_stream(struct trace_view *view, struct places *places,
	const struct trace_event *event, uint32_t *ret_stream)
{
	const struct trace_work *work = trace_work(view->trace, event);
	uint64_t key =
		view->options.hta_compatible ? (uint64_t)work->stream : stream_key(event, work);
	uint64_t known;
	int r;

	if (map_u64_get(&places->streams, key, &known)) {
		*ret_stream = (uint32_t)known;
		return 0;
	}
	*ret_stream = (uint32_t)view->streams.count;
	r = map_u64_set(&places->streams, key, *ret_stream);
	return r ?: add_stream(view, places, event, work);
}

/* Of HTA, all rows with a stream: waits, too. */
static bool counts(const struct trace_view *view, const struct trace_event *event)
{
	const struct trace_work *work;

	if (event->duration_ns == TRACE_NO_DURATION)
		return false;
	if (!view->options.hta_compatible)
		return trace_is_work(event) && !is_mtia_named(view, event, "event_");
	work = trace_work(view->trace, event);
	return work && work->stream != TRACE_NO_NUMBER && work->stream != -1;
}

static int add_work(struct trace_view *view, struct places *places, uint32_t row)
{
	const struct trace_event *event = &view->trace->events.items[row];
	struct trace_view_work work = {
		.start_ns = trace_view_start_ns(view, event),
		.end_ns = trace_view_end_ns(view, event),
		.row = row,
		.launch = trace_launch(view->trace, event),
		.is_wait = event->category == TRACE_SYNC,
	};
	int r = find_stream(view, places, event, &work.stream);

	if (r < 0)
		return r;
	work.kind = (uint8_t)trace_view_kind(view, event);
	if (work.kind == TRACE_COMMUNICATION && view->communication)
		work.communication = view->communication[row];
	view->works_without_launch += work.launch == MODEL_NONE;
	view->negative_durations += event->duration_ns < 0;
	view->streams.items[work.stream].works++;
	view->devices.items[view->streams.items[work.stream].device].works++;
	return array_append(&view->works, work);
}

static int add_works(struct trace_view *view)
{
	struct places places = {0};
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < view->trace->events.count; row++) {
		const struct trace_event *event = &view->trace->events.items[row];

		if (!counts(view, event))
			continue;
		if (trace_view_has(view, event))
			r = add_work(view, &places, row);
		else
			view->dropped_works++;
	}
	map_u64_done(&places.streams);
	map_u64_done(&places.devices);
	return r;
}

/* HTA sorts each selection of rows by itself: its rows stay in the file's order. */
static int sort_works(struct trace_view *view)
{
	size_t count = view->works.count;
	_cleanup_free_ struct trace_view_work *unsorted = NULL;
	_cleanup_free_ uint32_t *order = NULL;
	_cleanup_free_ int64_t *starts = NULL;
	int r;

	if (view->options.hta_compatible || !count)
		return 0;
	unsorted = malloc(count * sizeof(*unsorted));
	starts = malloc(count * sizeof(*starts));
	order = malloc(count * sizeof(*order));
	if (!unsorted || !starts || !order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		starts[i] = view->works.items[i].start_ns;
	r = trace_order_stable(starts, order, count);
	if (r < 0)
		return r;
	memcpy(unsorted, view->works.items, count * sizeof(*unsorted));
	for (size_t i = 0; i < count; i++)
		view->works.items[i] = unsorted[order[i]];
	return 0;
}

static uint32_t find_name(const struct trace *trace, const char *name)
{
	uint32_t id;

	return intern_find(&trace->strings, name, strlen(name), &id) ? id : MODEL_NONE;
}

int trace_view_init(struct trace_view *view, const struct trace *trace, uint32_t rank,
	const struct trace_view_options *options)
{
	int r;

	*view = (struct trace_view){
		.trace = trace,
		.options = *options,
		.rank = trace->rank == MODEL_NONE ? rank : trace->rank,
		.dropped_from_ns = INT64_MAX,
		.event_sync = find_name(trace, "Event Sync"),
		.context_sync = find_name(trace, "Context Sync"),
		.mtia = find_name(trace, "mtia_ccp_events"),
	};
	if (options->hta_compatible) {
		view->kinds = calloc(trace->strings.entries.count + 1, sizeof(*view->kinds));
		r = view->kinds ? 0 : -ENOMEM;
	} else {
		r = communication_of_rows(trace, &view->communication);
	}
	r = r ?: find_steps(view);
	r = r ?: add_works(view);
	r = r ?: sort_works(view);
	if (r < 0)
		trace_view_done(view);
	return r;
}

void trace_view_done(struct trace_view *view)
{
	array_done(&view->works);
	array_done(&view->streams);
	array_done(&view->devices);
	free(view->kinds);
	free(view->communication);
	view->kinds = view->communication = NULL;
}

/* ---- names ---- */

const char *trace_view_kind_name(const struct trace_view *view, enum trace_kind kind)
{
	return view->options.hta_compatible ? trace_kind_hta_name(kind) : trace_kind_name(kind);
}

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
	int64_t number = view->devices.items[device].number;
	const char *name = trace_device_name(view->trace, number);

	if (*name && is_unique_name(view, device, name))
		strbuf_add(out, name);
	else if (number == TRACE_NO_NUMBER)
		strbuf_add(out, view->options.hta_compatible ? "all GPUs" : "GPU");
	else
		strbuf_addf(out, "GPU %lld", (long long)number);
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

int trace_view_sort(
	const struct trace_view *view, const int64_t *times_ns, uint32_t *order, size_t count)
{
	if (!view->options.hta_compatible)
		return trace_order_stable(times_ns, order, count);
	trace_order_numpy(times_ns, order, count);
	return 0;
}
