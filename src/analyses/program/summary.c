/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/device/idle_limits.h"
#include "analyses/program/trace_frames.h"

/* With fewer launches shares are chance. */
#define MIN_LAUNCHES 20
/* Less of the time is not worth a word. */
#define MIN_IDLE_PERCENT  20
#define MIN_OTHER_PERCENT 10
/* What computes longer has no other problem. */
#define MIN_COMPUTE_PERCENT 80
/* Copies that could run beside other work, of the time of devices, and of so many. */
#define MIN_PAGEABLE_PERCENT 5
#define MIN_PAGEABLE_WORKS   10
/* Idle time for each launch up to which launching is its cause. */
#define MAX_LAUNCH_GAP_NS 100000

const char *trace_advice_name(enum trace_advice advice)
{
	switch (advice) {
	case TRACE_ADVICE_LAUNCH_BOUND:
		return "launch_bound";
	case TRACE_ADVICE_HOST_BOUND:
		return "host_bound";
	case TRACE_ADVICE_DEPENDENCIES:
		return "dependencies";
	case TRACE_ADVICE_COMMUNICATION:
		return "communication";
	case TRACE_ADVICE_COPIES:
		return "copies";
	case TRACE_ADVICE_KERNELS:
		return "kernels";
	case TRACE_ADVICE_BLOCKING:
		return "blocking_calls";
	case TRACE_ADVICE_SHORT_GAPS:
		return "short_gaps";
	case TRACE_ADVICE_NO_LAUNCHES:
		return "no_launches";
	case TRACE_ADVICE_PAGEABLE:
		return "pageable_copies";
	case TRACE_ADVICE_SLOW_LAUNCHES:
		return "slow_launches";
	default:
		return NULL;
	}
}

static void add_device(struct trace_summary *summary, const struct temporal_device *device,
	struct trace_summary_device place)
{
	int64_t span_ns = temporal_span_ns(device);
	const unsigned communication = 1 << TRACE_COMMUNICATION, memory = 1 << TRACE_MEMORY;

	place.idle_share = span_ns ? (double)device->idle_ns / (double)span_ns : 0;
	if (!summary->devices || place.idle_share < summary->least_idle.idle_share)
		summary->least_idle = place;
	if (!summary->devices || place.idle_share > summary->most_idle.idle_share)
		summary->most_idle = place;
	summary->devices++;
	summary->span_ns += span_ns;
	summary->idle_ns += device->idle_ns;
	for (unsigned set = 1; set < TEMPORAL_SETS; set++)
		summary->by_set_ns[set] += device->by_set_ns[set];
	summary->compute_ns += device->by_kind_ns[TRACE_COMPUTE];
	summary->communication_ns += device->by_kind_ns[TRACE_COMMUNICATION];
	summary->communication_beside_compute_ns += device->communication_beside_compute_ns;
	summary->only_communication_ns +=
		device->by_set_ns[communication] + device->by_set_ns[communication | memory];
	summary->only_memory_ns += device->by_set_ns[memory];
}

/* The call that a part of a gap is charged to, where it has this cause; MODEL_NONE: another. */
static uint32_t call_of(const struct trace_view *view, const struct device_idle_gap *gap,
	enum device_idle_cause cause)
{
	if (gap->cause != cause)
		return MODEL_NONE;
	return cause == DEVICE_IDLE_LAUNCH ? view->works.items[gap->next].launch : gap->call;
}

/* Parts of the gaps of a device with one call follow one another. */
static void find_longest(struct trace_summary_block *longest, const struct trace_view *view,
	const struct device_idle *idle, const struct device_idle_place *place,
	struct trace_summary_block block, enum device_idle_cause cause)
{
	for (uint32_t i = place->first; i < place->first + place->count; i++) {
		const struct device_idle_gap *gap = &idle->gaps.items[i];
		uint32_t call = call_of(view, gap, cause);

		if (call == MODEL_NONE)
			continue;
		if (call != block.row)
			block.idle_ns = 0;
		block.row = call;
		block.idle_ns += gap->end_ns - gap->start_ns;
		if (block.idle_ns > longest->idle_ns)
			*longest = block;
	}
}

static void add_idle(struct trace_summary *summary, const struct trace_view *view,
	const struct device_idle *idle, uint32_t index)
{
	const struct trace_summary_block none = {.view = index, .row = MODEL_NONE};

	array_foreach (&idle->places, place) {
		if (place->stream != MODEL_NONE)
			continue;
		for (int cause = 0; cause < DEVICE_IDLE_CAUSE_MAX; cause++)
			summary->idle_by_cause_ns[cause] += place->by_cause_ns[cause];
		find_longest(&summary->longest_block, view, idle, place, none, DEVICE_IDLE_BLOCKED);
		find_longest(&summary->longest_launch, view, idle, place, none, DEVICE_IDLE_LAUNCH);
	}
}

static int find_place(struct trace_summary_block *block, const struct trace_results *results)
{
	const uint32_t *parents;
	const struct trace *trace;

	block->op = block->python = MODEL_NONE;
	if (block->view == MODEL_NONE)
		return 0;
	trace = results->views[block->view].trace;
	parents = trace_parents(trace, true);
	if (!parents)
		return -ENOMEM;
	for (uint32_t row = parents[block->row]; row != MODEL_NONE; row = parents[row]) {
		const struct trace_event *event = &trace->events.items[row];

		if (event->category == TRACE_PYTHON_FUNCTION) {
			if (block->python == MODEL_NONE &&
				trace_frames_is_own_python(trace_text(trace, event->name)))
				block->python = row;
		} else if (block->op == MODEL_NONE && event->category <= TRACE_USER_ANNOTATION) {
			block->op = row;
		}
	}
	return 0;
}

/* Kineto has it in names: "Memcpy HtoD (Pageable -> Device)". */
static bool is_pageable(const struct trace *trace, const struct trace_view_work *work)
{
	const struct trace_event *event = &trace->events.items[work->row];
	const struct trace_work *detail = trace_work(trace, event);

	if (work->kind != TRACE_MEMORY)
		return false;
	if (trace->recorded && detail && detail->recorded)
		return trace->recorded->device_works.items[detail->recorded - 1].is_pageable;
	return strstr(trace_text(trace, event->name), "Pageable") != NULL;
}

static void add_copies(struct trace_summary *summary, const struct trace_view *view)
{
	array_foreach (&view->works, work) {
		if (!is_pageable(view->trace, work))
			continue;
		summary->pageable_works++;
		summary->pageable_ns += MAX(work->end_ns - work->start_ns, (int64_t)0);
	}
}

static int add_rank(struct trace_summary *summary, struct trace_results *results, uint32_t index)
{
	const struct temporal *temporal = trace_results_temporal(results, index);
	const struct device_idle *idle = trace_results_idle(results, index);
	const struct launches *launches = trace_results_launches(results, index);

	if (!temporal || !idle || !launches)
		return -ENOMEM;
	for (uint32_t i = 0; i < temporal->devices.count; i++)
		add_device(summary, &temporal->devices.items[i],
			(struct trace_summary_device){.view = index, .device = i});
	add_idle(summary, &results->views[index], idle, index);
	array_foreach (&results->views[index].works, work)
		summary->communication_works[work->communication]++;
	add_copies(summary, &results->views[index]);
	if (startup_add(&summary->startup, &results->views[index], index) < 0)
		return -ENOMEM;
	array_foreach (&launches->calls, call) {
		summary->launches += call->launches;
		summary->short_launches += call->short_works;
	}
	return 0;
}

static bool is_part(int64_t part_ns, int64_t whole_ns, int percent)
{
	return part_ns >= whole_ns / 100 * percent;
}

/* Launched, but not begun. */
static int64_t dependent_ns(const struct trace_summary *summary)
{
	return summary->idle_by_cause_ns[DEVICE_IDLE_EVENT] +
	       summary->idle_by_cause_ns[DEVICE_IDLE_OTHER];
}

/* What is most of the idle time, where nothing else was clear enough. */
static unsigned main_idle_advice(const struct trace_summary *summary)
{
	static const unsigned advices[DEVICE_IDLE_CAUSE_MAX] = {
		[DEVICE_IDLE_HOST] = TRACE_ADVICE_HOST_BOUND, /* with all that is the host's */
		[DEVICE_IDLE_BLOCKED] = TRACE_ADVICE_BLOCKING,
		[DEVICE_IDLE_LAUNCH] = TRACE_ADVICE_SLOW_LAUNCHES,
		[DEVICE_IDLE_KERNEL] = TRACE_ADVICE_SHORT_GAPS,
		[DEVICE_IDLE_EVENT] = TRACE_ADVICE_DEPENDENCIES,
		[DEVICE_IDLE_OTHER] = TRACE_ADVICE_DEPENDENCIES,
		[DEVICE_IDLE_UNKNOWN] = TRACE_ADVICE_NO_LAUNCHES,
	};
	int64_t most_ns = device_idle_host_ns(summary->idle_by_cause_ns);
	int most = DEVICE_IDLE_HOST;

	for (int cause = DEVICE_IDLE_BLOCKED; cause < DEVICE_IDLE_CAUSE_MAX; cause++) {
		if (summary->idle_by_cause_ns[cause] > most_ns) {
			most_ns = summary->idle_by_cause_ns[cause];
			most = cause;
		}
	}
	return advices[most];
}

static unsigned idle_advice(const struct trace_summary *summary)
{
	int64_t launch_ns = summary->idle_by_cause_ns[DEVICE_IDLE_LAUNCH];
	int64_t host_ns = device_idle_host_ns(summary->idle_by_cause_ns) + launch_ns;
	unsigned advice = 0;

	if (is_part(host_ns, summary->span_ns, MIN_IDLE_PERCENT) && summary->launches) {
		bool launch_bound = summary->short_launches >= summary->launches / 2 &&
				    host_ns / (int64_t)summary->launches <= MAX_LAUNCH_GAP_NS;

		if (launch_bound)
			advice |= TRACE_ADVICE_LAUNCH_BOUND;
		else if (launch_ns > host_ns - launch_ns)
			advice |= TRACE_ADVICE_SLOW_LAUNCHES;
		else
			advice |= TRACE_ADVICE_HOST_BOUND;
	}
	if (is_part(dependent_ns(summary), summary->span_ns, MIN_OTHER_PERCENT))
		advice |= TRACE_ADVICE_DEPENDENCIES;
	if (is_part(summary->idle_by_cause_ns[DEVICE_IDLE_BLOCKED], summary->span_ns,
		    MIN_OTHER_PERCENT))
		advice |= TRACE_ADVICE_BLOCKING;
	return advice;
}

static unsigned find_advice(const struct trace_summary *summary)
{
	unsigned advice = 0;

	if (!summary->span_ns)
		return 0;
	if (summary->launches >= MIN_LAUNCHES)
		advice = idle_advice(summary);
	if (!advice && is_part(summary->idle_ns, summary->span_ns, IDLE_ADVICE_PERCENT))
		advice = main_idle_advice(summary);
	if (summary->pageable_works >= MIN_PAGEABLE_WORKS &&
		is_part(summary->pageable_ns, summary->span_ns, MIN_PAGEABLE_PERCENT))
		advice |= TRACE_ADVICE_PAGEABLE;
	if (summary->launches < MIN_LAUNCHES)
		return advice;
	if (is_part(summary->only_communication_ns, summary->span_ns, MIN_OTHER_PERCENT))
		advice |= TRACE_ADVICE_COMMUNICATION;
	if (is_part(summary->only_memory_ns, summary->span_ns, MIN_OTHER_PERCENT) &&
		!(advice & TRACE_ADVICE_PAGEABLE))
		advice |= TRACE_ADVICE_COPIES;
	if (is_part(summary->compute_ns, summary->span_ns, MIN_COMPUTE_PERCENT))
		advice |= TRACE_ADVICE_KERNELS;
	return advice;
}

int64_t trace_summary_saves_ns(const struct trace_summary *summary, enum trace_advice advice)
{
	const int64_t *idle_ns = summary->idle_by_cause_ns;

	switch (advice) {
	case TRACE_ADVICE_LAUNCH_BOUND:
	case TRACE_ADVICE_HOST_BOUND:
		return device_idle_host_ns(idle_ns) + idle_ns[DEVICE_IDLE_LAUNCH];
	case TRACE_ADVICE_SLOW_LAUNCHES:
		return idle_ns[DEVICE_IDLE_LAUNCH];
	case TRACE_ADVICE_BLOCKING:
		return idle_ns[DEVICE_IDLE_BLOCKED];
	case TRACE_ADVICE_SHORT_GAPS:
		return idle_ns[DEVICE_IDLE_KERNEL];
	case TRACE_ADVICE_DEPENDENCIES:
		return dependent_ns(summary);
	case TRACE_ADVICE_NO_LAUNCHES:
		return idle_ns[DEVICE_IDLE_UNKNOWN];
	case TRACE_ADVICE_COMMUNICATION:
		return summary->only_communication_ns;
	case TRACE_ADVICE_COPIES:
		return summary->only_memory_ns;
	case TRACE_ADVICE_PAGEABLE:
		return summary->pageable_ns;
	default:
		return 0;
	}
}

int trace_summary_init(struct trace_summary *summary, struct trace_results *results)
{
	int r = 0;

	*summary = (struct trace_summary){.startup.view = MODEL_NONE,
		.longest_block.view = MODEL_NONE,
		.longest_launch.view = MODEL_NONE};
	for (uint32_t i = 0; r == 0 && i < results->count; i++)
		r = add_rank(summary, results, i);
	r = r ?: find_place(&summary->longest_block, results);
	r = r ?: find_place(&summary->longest_launch, results);
	if (r == 0)
		summary->advice = find_advice(summary);
	return r;
}
