/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/hta/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char *const hta_kind_names[TRACE_KIND_MAX] = {
	[TRACE_COMPUTE] = "COMPUTATION",
	[TRACE_COMMUNICATION] = "COMMUNICATION",
	[TRACE_MEMORY] = "MEMORY",
	[TRACE_OTHER_KIND] = "OTHER",
};

uint32_t hta_find_name(const struct trace *trace, const char *name)
{
	uint32_t id;

	return intern_find(&trace->strings, name, strlen(name), &id) ? id : MODEL_NONE;
}

/* ---- kinds ---- */

static bool begins_with_any(const char *text, const char *const *beginnings)
{
	for (; *beginnings; beginnings++) {
		if (begins_with(text, *beginnings))
			return true;
	}
	return false;
}

/* The patterns of hta/common/types.py, tried in the order of get_kernel_type(). */
enum trace_kind hta_kind_of_name(const char *name)
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

/* ---- times ---- */

/* HTA holds microseconds as doubles, and rounds them where a file has fractions. */
static double as_us(int64_t ns)
{
	return (double)((long double)ns / NS_PER_US);
}

static struct trace_view_times times_of(const struct trace *trace, const struct trace_event *event)
{
	struct trace_view_times times = {event->start_ns, trace_end_ns(event)};

	if (!trace->has_fractions)
		return times;
	times.start_ns = (int64_t)ceil(as_us(event->start_ns)) * (int64_t)NS_PER_US;
	times.end_ns = times.start_ns;
	if (event->duration_ns != TRACE_NO_DURATION)
		times.end_ns = (int64_t)floor(as_us(event->start_ns) + as_us(event->duration_ns)) *
			       (int64_t)NS_PER_US;
	return times;
}

static int set_times(struct trace_view *view)
{
	const struct trace *trace = view->trace;

	view->times = malloc((trace->events.count + 1) * sizeof(*view->times));
	if (!view->times)
		return -ENOMEM;
	for (size_t row = 0; row < trace->events.count; row++)
		view->times[row] = times_of(trace, &trace->events.items[row]);
	return 0;
}

/* ---- rows ---- */

/* The names that HTA knows the waits of the host by. */
struct waits {
	uint32_t event, context;
};

/* HTA's GPUKernelFilter. */
static bool is_device_row(
	const struct trace *trace, const struct waits *waits, const struct trace_event *event)
{
	const struct trace_work *work = trace_work(trace, event);

	if (event->name == waits->event || event->name == waits->context)
		return true;
	return work && work->stream != TRACE_NO_NUMBER && work->stream >= 0 && event->correlation;
}

/* Rows that begin at this time, or were launched then, are of the step that is dropped. */
static bool is_left_out(const struct trace_view *view, const struct waits *waits,
	const struct trace_event *event, int64_t dropped_from_ns)
{
	uint32_t launch;

	if (event->duration_ns == TRACE_NO_DURATION || dropped_from_ns == INT64_MAX)
		return event->duration_ns == TRACE_NO_DURATION;
	if (is_device_row(view->trace, waits, event)) {
		launch = trace_launch(view->trace, event);
		if (launch == MODEL_NONE)
			return true;
		event = &view->trace->events.items[launch];
	}
	return trace_view_start_ns(view, event) >= dropped_from_ns;
}

/* HTA takes a device's annotations for steps of the host, too. */
static int leave_out(struct trace_view *view)
{
	const struct trace *trace = view->trace;
	const struct waits waits = {
		hta_find_name(trace, "Event Sync"), hta_find_name(trace, "Context Sync")};
	int64_t dropped_from_ns = INT64_MAX;
	struct trace_view_times last;
	int r = trace_view_find_steps(
		view, 1U << TRACE_USER_ANNOTATION | 1U << TRACE_GPU_ANNOTATION, &last);

	if (r < 0)
		return r;
	if (view->steps >= 2)
		dropped_from_ns = view->options.keep_last_step ? last.end_ns + 1 : last.start_ns;
	view->left_out = calloc(trace->events.count + 1, sizeof(*view->left_out));
	if (!view->left_out)
		return -ENOMEM;
	for (size_t row = 0; row < trace->events.count; row++)
		view->left_out[row] =
			is_left_out(view, &waits, &trace->events.items[row], dropped_from_ns);
	return 0;
}

/* ---- work ---- */

/* In the file's order: HTA sorts each selection of rows by itself. */
static int add_works(struct trace_view *view)
{
	const struct trace *trace = view->trace;
	/* By name: enum trace_kind + 1; 0: not asked for yet. */
	_cleanup_free_ uint8_t *kinds = calloc(trace->strings.entries.count + 1, sizeof(*kinds));
	int r = kinds ? 0 : -ENOMEM;

	for (uint32_t row = 0; r == 0 && row < trace->events.count; row++) {
		const struct trace_event *event = &trace->events.items[row];
		struct trace_view_queue queue = {.device = TRACE_NO_NUMBER, .track = MODEL_NONE};

		if (event->duration_ns == TRACE_NO_DURATION || !hta_is_of_stream(trace, event))
			continue;
		queue.number = trace_work(trace, event)->stream;
		queue.key = (uint64_t)queue.number;
		if (!kinds[event->name])
			kinds[event->name] =
				(uint8_t)(hta_kind_of_name(trace_text(trace, event->name)) + 1);
		r = trace_view_add_work(
			view, row, &queue, (enum trace_kind)(kinds[event->name] - 1));
	}
	array_foreach (&view->devices, device)
		device->is_all = true;
	/* HTA knows nothing of what captured a graph. */
	array_foreach (&view->works, work)
		work->origin = work->launch;
	return r;
}

int hta_view_init(struct trace_view *view, const struct trace *trace, uint32_t rank,
	const struct trace_view_options *options)
{
	int r;

	*view = trace_view_of(trace, rank);
	view->options = *options;
	r = set_times(view);
	r = r ?: leave_out(view);
	r = r ?: trace_view_leave_out_captures(view);
	r = r ?: add_works(view);
	if (r < 0)
		trace_view_done(view);
	return r;
}
