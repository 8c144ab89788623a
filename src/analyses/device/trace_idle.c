/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/trace_idle.h"

#include <errno.h>
#include <stdlib.h>

#include "analyses/device/blocking.h"
#include "analyses/device/idle_limits.h"

const char *trace_idle_cause_name(enum trace_idle_cause cause)
{
	static const char *const names[TRACE_IDLE_CAUSE_MAX] = {
		[TRACE_IDLE_HOST] = "host_wait",
		[TRACE_IDLE_BLOCKED] = "blocking_call",
		[TRACE_IDLE_LAUNCH] = "launch",
		[TRACE_IDLE_KERNEL] = "kernel_wait",
		[TRACE_IDLE_OTHER] = "other",
		[TRACE_IDLE_UNKNOWN] = "unknown",
	};

	return cause < TRACE_IDLE_CAUSE_MAX ? names[cause] : NULL;
}

const char *trace_idle_cause_meaning(enum trace_idle_cause cause)
{
	static const char *const meanings[TRACE_IDLE_CAUSE_MAX] = {
		[TRACE_IDLE_HOST] = "the host had not come to launch what was next",
		[TRACE_IDLE_BLOCKED] = "the host was blocked in a copy, wait or allocation",
		[TRACE_IDLE_LAUNCH] = "it was being launched",
		[TRACE_IDLE_KERNEL] = "between kernels, less than 30 \xc2\xb5s",
		[TRACE_IDLE_OTHER] = "launched; waited for an event or another stream",
		[TRACE_IDLE_UNKNOWN] = "its launch is not in the trace",
	};

	return cause < TRACE_IDLE_CAUSE_MAX ? meanings[cause] : NULL;
}

/* ---- ours ---- */

static int add_part(struct trace_idle *idle, const struct trace_idle_gap *gap,
	enum trace_idle_cause cause, int64_t end_ns)
{
	struct trace_idle_gap part = *gap;

	part.cause = cause;
	part.end_ns = end_ns;
	return part.start_ns < end_ns ? array_append(&idle->gaps, part) : 0;
}

/*
 * From the gap's start up to `end_ns`, which is where the gap starts afterwards. `launch`: the one
 * call of the thread that can have blocked, or is within it; NULL: any.
 */
static int add_gap(struct trace_idle *idle, const struct trace_blocking *blocking,
	struct trace_idle_gap *gap, uint32_t track, const struct trace_event *launch,
	int64_t end_ns)
{
	size_t i = trace_blocking_find(blocking, track, gap->start_ns);
	int r = 0;

	for (; r == 0 && i < blocking->calls.count; i++) {
		const struct trace_blocking_call *call = &blocking->calls.items[i];

		if (call->track != track || call->start_ns >= end_ns)
			break;
		if (launch &&
			(call->start_ns > launch->start_ns || call->end_ns < trace_end_ns(launch)))
			continue;
		r = add_part(idle, gap, gap->cause, call->start_ns);
		gap->start_ns = MAX(gap->start_ns, call->start_ns);
		gap->call = call->row;
		r = r ?: add_part(idle, gap, TRACE_IDLE_BLOCKED, MIN(call->end_ns, end_ns));
		gap->start_ns = MIN(call->end_ns, end_ns);
		gap->call = MODEL_NONE;
	}
	r = r ?: add_part(idle, gap, gap->cause, end_ns);
	gap->start_ns = end_ns;
	return r;
}

static int charge_gap(struct trace_idle *idle, const struct trace_view *view,
	const struct trace_blocking *blocking, struct trace_idle_gap gap)
{
	const struct trace_view_work *work = &view->works.items[gap.next];
	const struct trace_event *launch;
	int64_t launch_ns;
	int r = 0;

	gap.call = MODEL_NONE;
	gap.cause = TRACE_IDLE_UNKNOWN;
	if (work->launch == MODEL_NONE)
		return add_part(idle, &gap, gap.cause, work->start_ns);
	launch = &view->trace->events.items[work->launch];
	launch_ns = trace_view_start_ns(view, launch);
	if (launch_ns <= gap.start_ns) {
		gap.cause = TRACE_IDLE_KERNEL;
		if (work->start_ns - gap.start_ns < IDLE_KERNEL_WAIT_NS)
			return add_part(idle, &gap, gap.cause, work->start_ns);
		gap.cause = TRACE_IDLE_OTHER;
		return add_gap(idle, blocking, &gap, launch->track, launch, work->start_ns);
	}
	gap.cause = TRACE_IDLE_HOST;
	r = add_gap(idle, blocking, &gap, launch->track, NULL, MIN(launch_ns, work->start_ns));
	gap.cause = TRACE_IDLE_LAUNCH;
	return r ?: add_gap(idle, blocking, &gap, launch->track, launch, work->start_ns);
}

/* The end of the last work of a place. */
struct busy {
	int64_t until_ns;
	bool is_known;
};

static int pass_work(struct trace_idle *idle, const struct trace_view *view,
	const struct trace_blocking *blocking, struct busy *busy, uint32_t place, uint32_t index)
{
	const struct trace_view_work *work = &view->works.items[index];
	int r = 0;

	if (busy->is_known && work->start_ns > busy->until_ns)
		r = charge_gap(idle, view, blocking,
			(struct trace_idle_gap){
				.start_ns = busy->until_ns,
				.end_ns = work->start_ns,
				.place = place,
				.next = index,
			});
	busy->until_ns = busy->is_known ? MAX(busy->until_ns, work->end_ns) : work->end_ns;
	busy->is_known = true;
	return r;
}

static int find_gaps(struct trace_idle *idle, const struct trace_view *view)
{
	uint32_t devices = (uint32_t)view->devices.count;
	_cleanup_free_ struct busy *busy = calloc(devices + view->streams.count + 1, sizeof(*busy));
	_cleanup_trace_blocking_ struct trace_blocking blocking = {0};
	int r = busy ? trace_blocking_init(&blocking, view->trace) : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < view->works.count; i++) {
		uint32_t stream = view->works.items[i].stream;
		uint32_t device = view->streams.items[stream].device;

		r = pass_work(idle, view, &blocking, &busy[device], device, i);
		r = r
			    ?: pass_work(idle, view, &blocking, &busy[devices + stream],
				       devices + stream, i);
	}
	return r;
}

static int add_places(struct trace_idle *idle, const struct trace_view *view)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < view->devices.count; i++)
		r = array_append(&idle->places,
			(struct trace_idle_place){.device = i, .stream = MODEL_NONE});
	for (uint32_t i = 0; r == 0 && i < view->streams.count; i++)
		r = array_append(&idle->places, (struct trace_idle_place){
							.device = view->streams.items[i].device,
							.stream = i,
						});
	return r;
}

/* ---- HTA's ---- */

/*
 * The row that HTA takes for a launch: of work whose correlation no call has, the first row of the
 * file. Work without a correlation has none.
 */
static const struct trace_event *hta_launch(
	const struct trace_view *view, const struct trace_view_work *work)
{
	const struct trace_event *first = view->trace->events.items;

	if (work->launch != MODEL_NONE)
		return &view->trace->events.items[work->launch];
	if (!view->trace->events.items[work->row].correlation)
		return NULL;
	return first->file_index == 0 && trace_view_has(view, first) ? first : NULL;
}

static enum trace_idle_cause hta_cause(
	const struct trace_view *view, const struct trace_view_work *work, int64_t previous_end_ns)
{
	const struct trace_event *launch = hta_launch(view, work);

	if (launch && trace_view_start_ns(view, launch) > previous_end_ns)
		return TRACE_IDLE_HOST;
	return work->start_ns - previous_end_ns < IDLE_KERNEL_WAIT_NS ? TRACE_IDLE_KERNEL
								      : TRACE_IDLE_OTHER;
}

/* `works`: indices of one stream's, in the file's order. */
static int hta_add_stream(struct trace_idle *idle, const struct trace_view *view, uint32_t place,
	const uint32_t *works, size_t count)
{
	_cleanup_free_ int64_t *starts = malloc((count + 1) * sizeof(*starts));
	_cleanup_free_ uint32_t *order = malloc((count + 1) * sizeof(*order));
	int r = starts && order ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++)
		starts[i] = view->works.items[works[i]].start_ns;
	r = r ?: trace_view_sort(view, starts, order, count);
	for (size_t i = 1; r == 0 && i < count; i++) {
		uint32_t next = works[order[i]];
		const struct trace_view_work *work = &view->works.items[next];
		int64_t end_ns = view->works.items[works[order[i - 1]]].end_ns;

		r = array_append(&idle->gaps, (struct trace_idle_gap){
						      .start_ns = end_ns,
						      .end_ns = work->start_ns,
						      .place = place,
						      .next = next,
						      .call = MODEL_NONE,
						      .cause = hta_cause(view, work, end_ns),
					      });
	}
	/* Before the first work is a gap of no length, and no cause. */
	idle->places.items[place].is_listed[TRACE_IDLE_OTHER] = true;
	return r;
}

static int hta_find_gaps(struct trace_idle *idle, const struct trace_view *view)
{
	_cleanup_free_ uint32_t *works = malloc((view->works.count + 1) * sizeof(*works));
	int r = works ? 0 : -ENOMEM;

	for (uint32_t stream = 0; r == 0 && stream < view->streams.count; stream++) {
		uint32_t place = (uint32_t)idle->places.count;
		size_t count = 0;

		for (uint32_t i = 0; i < view->works.count; i++) {
			if (view->works.items[i].stream == stream && !view->works.items[i].is_wait)
				works[count++] = i;
		}
		if (!count)
			continue;
		r = array_append(&idle->places, (struct trace_idle_place){.stream = stream});
		r = r ?: hta_add_stream(idle, view, place, works, count);
	}
	return r;
}

/* ---- sums ---- */

/* Brings the gaps of each place together; those of one stay in their order. */
static int deal_gaps(struct trace_idle *idle, size_t *firsts)
{
	size_t count = idle->gaps.count, first = 0;
	_cleanup_free_ struct trace_idle_gap *gaps = malloc((count + 1) * sizeof(*gaps));

	if (!gaps)
		return -ENOMEM;
	if (count)
		memcpy(gaps, idle->gaps.items, count * sizeof(*gaps));
	array_foreach (&idle->gaps, gap)
		firsts[gap->place]++;
	for (size_t i = 0; i <= idle->places.count; i++) {
		size_t here = firsts[i];

		firsts[i] = first;
		first += here;
	}
	for (size_t i = 0; i < count; i++)
		idle->gaps.items[firsts[gaps[i].place]++] = gaps[i];
	return 0;
}

static int add_sums(struct trace_idle *idle)
{
	/* After dealing, where the next place's gaps begin. */
	_cleanup_free_ size_t *ends = calloc(idle->places.count + 1, sizeof(*ends));
	uint32_t first = 0;
	int r = ends ? deal_gaps(idle, ends) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < idle->places.count; i++) {
		struct trace_idle_place *place = &idle->places.items[i];

		place->first = first;
		place->count = (uint32_t)ends[i] - first;
		first += place->count;
		for (uint32_t gap = place->first; gap < first; gap++) {
			const struct trace_idle_gap *counted = &idle->gaps.items[gap];

			place->by_cause_ns[counted->cause] += counted->end_ns - counted->start_ns;
			place->is_listed[counted->cause] = true;
		}
		for (int cause = 0; cause < TRACE_IDLE_CAUSE_MAX; cause++)
			place->idle_ns += place->by_cause_ns[cause];
	}
	return r;
}

int trace_idle_describe(const struct trace_idle *idle, const struct trace_idle_place *place,
	enum trace_idle_cause cause, struct trace_describe *ret_describe)
{
	_cleanup_free_ int64_t *lengths = malloc(((size_t)place->count + 1) * sizeof(*lengths));
	size_t found = 0;

	if (!lengths)
		return -ENOMEM;
	for (uint32_t i = place->first; i < place->first + place->count; i++) {
		const struct trace_idle_gap *gap = &idle->gaps.items[i];

		if (gap->cause == cause)
			lengths[found++] = gap->end_ns - gap->start_ns;
	}
	return trace_describe_ns(ret_describe, lengths, found);
}

int trace_idle_init(struct trace_idle *idle, const struct trace_view *view)
{
	int r;

	*idle = (struct trace_idle){0};
	if (view->options.hta_compatible) {
		r = hta_find_gaps(idle, view);
	} else {
		r = add_places(idle, view);
		r = r ?: find_gaps(idle, view);
	}
	r = r ?: add_sums(idle);
	if (r < 0)
		trace_idle_done(idle);
	return r;
}

void trace_idle_done(struct trace_idle *idle)
{
	array_done(&idle->places);
	array_done(&idle->gaps);
}
