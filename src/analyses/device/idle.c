/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/idle.h"

#include <errno.h>
#include <stdlib.h>

#include "analyses/cpu/thread_history.h"
#include "analyses/device/blocking.h"
#include "analyses/device/idle_limits.h"
#include "model/windows.h"

/* Its name, as a frame, for a table, and what it means. */
#define CAUSE(name, frame, title, meaning)                                                         \
	{                                                                                          \
		name, "[idle: " frame "]", title, meaning                                          \
	}

static const char *const causes[DEVICE_IDLE_CAUSE_MAX][4] = {
	[DEVICE_IDLE_HOST] = CAUSE("host_wait", "host wait", "Host wait",
		"the host had not launched the next work yet"),
	[DEVICE_IDLE_RUNNING] =
		CAUSE("running", "running", "Running", "the launching thread ran code"),
	[DEVICE_IDLE_GIL] = CAUSE(
		"gil", "GIL", "GIL", "the launching thread waited for Python's interpreter lock"),
	[DEVICE_IDLE_LOCK] = CAUSE("lock", "lock", "Lock", "it waited for a lock or condition"),
	[DEVICE_IDLE_SLEEP] = CAUSE("sleep", "sleep", "Sleep", "it slept"),
	[DEVICE_IDLE_DISK] = CAUSE("disk", "disk", "Disk", "it waited for a file or disk"),
	[DEVICE_IDLE_CHANNEL] = CAUSE("pipe_socket_poll", "pipe, socket or poll", "Pipe",
		"it waited for a pipe, socket or poll"),
	[DEVICE_IDLE_CPU] = CAUSE("cpu", "CPU", "CPU", "it could have run but had no CPU"),
	[DEVICE_IDLE_WAIT] =
		CAUSE("other_wait", "other wait", "Other wait", "it waited for something else"),
	[DEVICE_IDLE_BLOCKED] = CAUSE("blocking_call", "blocking call", "Blocking call",
		"the host was blocked in a copy, wait or allocation"),
	[DEVICE_IDLE_LAUNCH] =
		CAUSE("launch", "launch", "Launch", "the next work was being launched"),
	[DEVICE_IDLE_KERNEL] = CAUSE("kernel_wait", "kernel wait", "Kernel wait",
		"between kernels, less than 30 \xc2\xb5s"),
	[DEVICE_IDLE_EVENT] = CAUSE("event", "event", "Event",
		"launched, but its stream waited for an event of other work"),
	[DEVICE_IDLE_OTHER] =
		CAUSE("other", "other", "Other", "launched, but waiting for what is not known"),
	[DEVICE_IDLE_UNKNOWN] = CAUSE("unknown", "unknown", "Unknown", "its launch is not known"),
};

static const char *word(enum device_idle_cause cause, unsigned which)
{
	return cause < DEVICE_IDLE_CAUSE_MAX ? causes[cause][which] : NULL;
}

const char *device_idle_cause_name(enum device_idle_cause cause)
{
	return word(cause, 0);
}

const char *device_idle_cause_leaf(enum device_idle_cause cause)
{
	return word(cause, 1);
}

const char *device_idle_cause_title(enum device_idle_cause cause)
{
	return word(cause, 2);
}

const char *device_idle_cause_meaning(enum device_idle_cause cause)
{
	return word(cause, 3);
}

int64_t device_idle_host_ns(const int64_t by_cause_ns[DEVICE_IDLE_CAUSE_MAX])
{
	int64_t sum_ns = 0;

	for (int cause = 0; device_idle_is_host((enum device_idle_cause)cause); cause++)
		sum_ns += by_cause_ns[cause];
	return sum_ns;
}

static enum device_idle_cause cause_of_wait(enum wire_wait wait)
{
	static const enum device_idle_cause known[WIRE_WAIT_MAX] = {
		[WIRE_WAIT_NONE] = DEVICE_IDLE_RUNNING,
		[WIRE_WAIT_CPU] = DEVICE_IDLE_CPU,
		[WIRE_WAIT_LOCK] = DEVICE_IDLE_LOCK,
		[WIRE_WAIT_GIL] = DEVICE_IDLE_GIL,
		[WIRE_WAIT_POLL] = DEVICE_IDLE_CHANNEL,
		[WIRE_WAIT_SLEEP] = DEVICE_IDLE_SLEEP,
		[WIRE_WAIT_PIPE] = DEVICE_IDLE_CHANNEL,
		[WIRE_WAIT_SOCKET] = DEVICE_IDLE_CHANNEL,
		[WIRE_WAIT_DISK] = DEVICE_IDLE_DISK,
		[WIRE_WAIT_FILE_LOCK] = DEVICE_IDLE_LOCK,
	};

	return wait < WIRE_WAIT_MAX && known[wait] ? known[wait] : DEVICE_IDLE_WAIT;
}

/* ---- gaps ---- */

/* What gaps are charged by. */
struct finding {
	struct device_idle *idle;
	const struct trace_view *view;
	const struct model *model; /* of a recording; NULL: there are no samples */
	struct trace_blocking blocking;
	struct thread_history history;
};

/* Parts of one sample are one. */
static int append_part(const struct finding *finding, const struct device_idle_gap *part)
{
	struct device_idle *idle = finding->idle;
	struct device_idle_gap *last =
		idle->gaps.count ? &idle->gaps.items[idle->gaps.count - 1] : NULL;

	if (last && last->place == part->place && last->next == part->next &&
		last->end_ns == part->start_ns && last->cause == part->cause &&
		last->call == part->call && last->sync == part->sync &&
		last->sample == part->sample) {
		last->end_ns = part->end_ns;
		return 0;
	}
	return array_append(&idle->gaps, *part);
}

static const struct model_device_work *recorded_next(
	const struct finding *finding, const struct device_idle_gap *part)
{
	const struct trace *trace = finding->view->trace;
	const struct trace_event *event =
		&trace->events.items[finding->view->works.items[part->next].row];
	const struct trace_work *work = trace_work(trace, event);

	return &finding->model->device_works.items[work->recorded - 1];
}

/* A sample that was taken outside of a call cannot tell where the call is. */
static bool was_taken_in(
	const struct finding *finding, const struct model_sample *sample, uint32_t call)
{
	const struct trace_event *event;
	int64_t time_ns;

	if (call == MODEL_NONE)
		return true;
	event = &finding->view->trace->events.items[call];
	time_ns = (int64_t)(sample->time_ns - finding->view->trace->recorded_from_ns);
	return time_ns >= event->start_ns && time_ns <= trace_end_ns(event);
}

/* Tells a part apart by what the launching thread did. */
static int add_sampled(
	const struct finding *finding, struct device_idle_gap part, uint32_t call_stack)
{
	uint64_t from_ns = finding->view->trace->recorded_from_ns;
	uint32_t thread = recorded_next(finding, &part)->thread;
	enum device_idle_cause cause = part.cause;
	int64_t end_ns = part.end_ns;
	int r = 0;

	while (r == 0 && part.start_ns < end_ns) {
		uint64_t until_ns = from_ns + (uint64_t)end_ns;
		const struct model_sample *sample;

		part.cause = cause;
		part.stack = call_stack;
		part.sample = thread_history_find(
			&finding->history, thread, from_ns + (uint64_t)part.start_ns, &until_ns);
		sample = part.sample == MODEL_NONE ? NULL
						   : &finding->model->samples.items[part.sample];
		if (sample && was_taken_in(finding, sample, part.call)) {
			part.stack = sample->stack;
			if (cause == DEVICE_IDLE_HOST)
				part.cause = cause_of_wait(sample->wait);
		} else {
			part.sample = MODEL_NONE;
		}
		part.end_ns = (int64_t)(until_ns - from_ns);
		r = append_part(finding, &part);
		part.start_ns = part.end_ns;
	}
	return r;
}

static uint32_t number_of(const struct device_idle *idle, const struct device_sync *sync)
{
	return sync ? (uint32_t)(sync - idle->syncs.items.items) + 1 : 0;
}

static int add_part(const struct finding *finding, const struct device_idle_gap *gap,
	enum device_idle_cause cause, int64_t end_ns)
{
	const struct trace *trace = finding->view->trace;
	struct device_idle_gap part = *gap;

	part.cause = cause;
	part.end_ns = end_ns;
	if (cause == DEVICE_IDLE_BLOCKED)
		part.sync = number_of(
			finding->idle, device_syncs_of_call(&finding->idle->syncs, gap->call));
	part.sample = part.stack = MODEL_NONE;
	if (part.start_ns >= end_ns)
		return 0;
	if (!finding->model || cause == DEVICE_IDLE_UNKNOWN)
		return append_part(finding, &part);
	if (cause == DEVICE_IDLE_HOST)
		return add_sampled(finding, part, MODEL_NONE);
	if (cause == DEVICE_IDLE_BLOCKED)
		return add_sampled(
			finding, part, trace_call_stack(trace, &trace->events.items[part.call]));
	part.stack = recorded_next(finding, &part)->launch_stack;
	return append_part(finding, &part);
}

/*
 * From the gap's start up to `end_ns`, which is where the gap starts afterwards. `launch`: the one
 * call of the thread that can have blocked, or is within it; NULL: any.
 */
static int add_gap(const struct finding *finding, struct device_idle_gap *gap, uint32_t track,
	const struct trace_event *launch, int64_t end_ns)
{
	const struct trace_blocking *blocking = &finding->blocking;
	size_t i = trace_blocking_find(blocking, track, gap->start_ns);
	int r = 0;

	for (; r == 0 && i < blocking->calls.count; i++) {
		const struct trace_blocking_call *call = &blocking->calls.items[i];

		if (call->track != track || call->start_ns >= end_ns)
			break;
		if (launch &&
			(call->start_ns > launch->start_ns || call->end_ns < trace_end_ns(launch)))
			continue;
		r = add_part(finding, gap, gap->cause, call->start_ns);
		gap->start_ns = MAX(gap->start_ns, call->start_ns);
		gap->call = call->row;
		r = r ?: add_part(finding, gap, DEVICE_IDLE_BLOCKED, MIN(call->end_ns, end_ns));
		gap->start_ns = MIN(call->end_ns, end_ns);
		gap->call = MODEL_NONE;
	}
	r = r ?: add_part(finding, gap, gap->cause, end_ns);
	gap->start_ns = end_ns;
	return r;
}

/*
 * Up to where the event came that the launched work's stream waited for, which is where the gap
 * starts afterwards.
 */
static int add_event(const struct finding *finding, struct device_idle_gap *gap)
{
	const struct device_syncs *syncs = &finding->idle->syncs;
	const struct device_sync *sync = device_syncs_of_work(syncs, gap->next);
	const struct trace_view_work *works = finding->view->works.items;
	int64_t end_ns;
	int r;

	if (!sync || sync->waited == MODEL_NONE)
		return 0;
	end_ns = MIN(works[sync->waited].end_ns, works[gap->next].start_ns);
	if (end_ns <= gap->start_ns)
		return 0;
	gap->sync = number_of(finding->idle, sync);
	r = add_part(finding, gap, DEVICE_IDLE_EVENT, end_ns);
	gap->sync = 0;
	gap->start_ns = end_ns;
	return r ?: 1;
}

/* What is left of a gap whose next work was launched before. */
static int charge_launched(const struct finding *finding, struct device_idle_gap *gap,
	const struct trace_event *launch)
{
	const struct trace_view_work *work = &finding->view->works.items[gap->next];

	gap->cause = DEVICE_IDLE_KERNEL;
	if (work->start_ns - gap->start_ns < IDLE_KERNEL_WAIT_NS)
		return add_part(finding, gap, gap->cause, work->start_ns);
	gap->cause = DEVICE_IDLE_OTHER;
	return add_gap(finding, gap, launch->track, launch, work->start_ns);
}

static int charge_gap(const struct finding *finding, struct device_idle_gap gap)
{
	const struct trace_view *view = finding->view;
	const struct trace_view_work *work = &view->works.items[gap.next];
	const struct trace_event *launch;
	int64_t launch_ns;
	bool was_launched;
	int r = 0;

	gap.call = MODEL_NONE;
	gap.cause = DEVICE_IDLE_UNKNOWN;
	if (work->launch == MODEL_NONE)
		return add_part(finding, &gap, gap.cause, work->start_ns);
	launch = &view->trace->events.items[work->launch];
	launch_ns = trace_view_start_ns(view, launch);
	was_launched = launch_ns <= gap.start_ns;
	if (!was_launched) {
		gap.cause = DEVICE_IDLE_HOST;
		r = add_gap(finding, &gap, launch->track, NULL, MIN(launch_ns, work->start_ns));
	}
	r = r ?: add_event(finding, &gap);
	if (r < 0)
		return r;
	if (was_launched || r)
		return charge_launched(finding, &gap, launch);
	gap.cause = DEVICE_IDLE_LAUNCH;
	return add_gap(finding, &gap, launch->track, launch, work->start_ns);
}

/* The gaps of one place, whose works these are. In another window it begins anew: what it did
 * between them nobody knows. */
static int pass_place(
	const struct finding *finding, uint32_t place, const uint32_t *works, size_t count)
{
	const struct trace_view *view = finding->view;
	int64_t until_ns = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct trace_view_work *work = &view->works.items[works[i]];

		if (i && work->start_ns > until_ns &&
			trace_is_continuous(view->trace, until_ns, work->start_ns)) {
			finding->idle->places.items[place].gap_count++;
			r = charge_gap(finding, (struct device_idle_gap){
							.start_ns = until_ns,
							.end_ns = work->start_ns,
							.place = place,
							.next = works[i],
						});
		}
		until_ns = i ? MAX(until_ns, work->end_ns) : work->end_ns;
	}
	return r;
}

static uint32_t place_of(
	const struct trace_view *view, const struct trace_view_work *work, bool of_streams)
{
	return of_streams ? work->stream : view->streams.items[work->stream].device;
}

/* The devices, or the streams, one after the other: their places begin at `first`. */
static int pass_places(
	const struct finding *finding, uint32_t first, uint32_t count, bool of_streams)
{
	const struct trace_view *view = finding->view;
	_cleanup_free_ uint32_t *works = calloc(view->works.count + 1, sizeof(*works));
	_cleanup_free_ size_t *ends = calloc((size_t)count + 1, sizeof(*ends));
	size_t begin = 0;
	int r = works && ends ? 0 : -ENOMEM;

	if (r < 0)
		return r;
	array_foreach (&view->works, work)
		ends[place_of(view, work, of_streams)]++;
	for (uint32_t i = 0; i < count; i++) {
		size_t here = ends[i];

		ends[i] = begin;
		begin += here;
	}
	for (uint32_t i = 0; i < view->works.count; i++)
		works[ends[place_of(view, &view->works.items[i], of_streams)]++] = i;
	begin = 0;
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		r = pass_place(finding, first + i, works + begin, ends[i] - begin);
		begin = ends[i];
	}
	return r;
}

static int find_gaps(struct device_idle *idle, const struct trace_view *view)
{
	struct finding finding = {.idle = idle, .view = view, .model = view->trace->recorded};
	int r = trace_blocking_init(&finding.blocking, view->trace);

	if (r == 0 && finding.model)
		r = thread_history_init(&finding.history, finding.model);
	if (r == 0)
		r = pass_places(&finding, 0, (uint32_t)view->devices.count, false);
	if (r == 0)
		r = pass_places(&finding, (uint32_t)view->devices.count,
			(uint32_t)view->streams.count, true);
	trace_blocking_done(&finding.blocking);
	thread_history_done(&finding.history);
	return r;
}

static int add_places(struct device_idle *idle, const struct trace_view *view)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < view->devices.count; i++)
		r = array_append(&idle->places,
			(struct device_idle_place){.device = i, .stream = MODEL_NONE});
	for (uint32_t i = 0; r == 0 && i < view->streams.count; i++)
		r = array_append(&idle->places, (struct device_idle_place){
							.device = view->streams.items[i].device,
							.stream = i,
						});
	return r;
}

/* ---- sums ---- */

void device_idle_finish(struct device_idle *idle)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < idle->places.count; i++) {
		struct device_idle_place *place = &idle->places.items[i];

		place->first = at;
		for (; at < idle->gaps.count && idle->gaps.items[at].place == i; at++) {
			const struct device_idle_gap *gap = &idle->gaps.items[at];

			place->by_cause_ns[gap->cause] += gap->end_ns - gap->start_ns;
			place->is_listed[gap->cause] = true;
		}
		place->count = at - place->first;
		for (int cause = 0; cause < DEVICE_IDLE_CAUSE_MAX; cause++)
			place->idle_ns += place->by_cause_ns[cause];
	}
}

int device_idle_describe(const struct device_idle *idle, const struct device_idle_place *place,
	enum device_idle_cause cause, struct trace_describe *ret_describe)
{
	_cleanup_free_ int64_t *lengths = calloc((size_t)place->count + 1, sizeof(*lengths));
	size_t found = 0;

	if (!lengths)
		return -ENOMEM;
	for (uint32_t i = place->first; i < place->first + place->count; i++) {
		const struct device_idle_gap *gap = &idle->gaps.items[i];

		const struct device_idle_gap *last = i > place->first ? gap - 1 : NULL;

		if (gap->cause != cause)
			continue;
		/* Samples cut a part into several. */
		if (found && last && last->cause == cause && last->next == gap->next &&
			last->end_ns == gap->start_ns && last->call == gap->call)
			lengths[found - 1] += gap->end_ns - gap->start_ns;
		else
			lengths[found++] = gap->end_ns - gap->start_ns;
	}
	return trace_describe_ns(ret_describe, lengths, found);
}

const char *device_idle_target(const struct device_idle *idle, const struct device_idle_gap *gap)
{
	return gap->sync
		       ? device_syncs_target(&idle->syncs, &idle->syncs.items.items[gap->sync - 1])
		       : NULL;
}

int device_idle_init(struct device_idle *idle, const struct trace_view *view)
{
	int r;

	*idle = (struct device_idle){0};
	r = device_syncs_init(&idle->syncs, view);
	r = r ?: add_places(idle, view);
	r = r ?: find_gaps(idle, view);
	if (r < 0)
		device_idle_done(idle);
	else
		device_idle_finish(idle);
	return r;
}

void device_idle_done(struct device_idle *idle)
{
	array_done(&idle->places);
	array_done(&idle->gaps);
	device_syncs_done(&idle->syncs);
}
