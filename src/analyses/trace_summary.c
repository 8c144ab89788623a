/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/trace_summary.h"

#include <errno.h>

/* With fewer launches shares are chance. */
#define MIN_LAUNCHES 20
/* Less of the time is not worth a word. */
#define MIN_IDLE_PERCENT  20
#define MIN_OTHER_PERCENT 10
/* What computes longer has no other problem. */
#define MIN_COMPUTE_PERCENT 80
/* Idle time for each launch up to which launching is its cause (see device_advice.c). */
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
	default:
		return NULL;
	}
}

static void add_device(struct trace_summary *summary, const struct trace_temporal_device *device,
	struct trace_summary_device place)
{
	int64_t span_ns = trace_temporal_span_ns(device);
	const unsigned communication = 1 << TRACE_COMMUNICATION, memory = 1 << TRACE_MEMORY;

	place.idle_share = span_ns ? (double)trace_temporal_idle_ns(device) / (double)span_ns : 0;
	if (!summary->devices || place.idle_share < summary->least_idle.idle_share)
		summary->least_idle = place;
	if (!summary->devices || place.idle_share > summary->most_idle.idle_share)
		summary->most_idle = place;
	summary->devices++;
	summary->span_ns += span_ns;
	summary->idle_ns += trace_temporal_idle_ns(device);
	for (unsigned set = 1; set < TRACE_KIND_SETS; set++)
		summary->by_set_ns[set] += device->by_set_ns[set];
	summary->compute_ns += device->by_kind_ns[TRACE_COMPUTE];
	summary->communication_ns += device->by_kind_ns[TRACE_COMMUNICATION];
	summary->communication_beside_compute_ns += device->communication_beside_compute_ns;
	summary->only_communication_ns +=
		device->by_set_ns[communication] + device->by_set_ns[communication | memory];
	summary->only_memory_ns += device->by_set_ns[memory];
}

static void add_idle(struct trace_summary *summary, const struct trace_idle *idle)
{
	array_foreach (&idle->places, place) {
		if (place->stream != MODEL_NONE)
			continue;
		for (int cause = 0; cause < TRACE_IDLE_CAUSE_MAX; cause++)
			summary->idle_by_cause_ns[cause] += place->by_cause_ns[cause];
	}
}

static int add_rank(struct trace_summary *summary, struct trace_results *results, uint32_t index)
{
	const struct trace_temporal *temporal = trace_results_temporal(results, index);
	const struct trace_idle *idle = trace_results_idle(results, index);
	const struct trace_launches *launches = trace_results_launches(results, index);

	if (!temporal || !idle || !launches)
		return -ENOMEM;
	for (uint32_t i = 0; i < temporal->devices.count; i++)
		add_device(summary, &temporal->devices.items[i],
			(struct trace_summary_device){.view = index, .device = i});
	add_idle(summary, idle);
	array_foreach (&results->views[index].works, work)
		summary->communication_works[work->communication]++;
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

static unsigned idle_advice(const struct trace_summary *summary)
{
	int64_t host_ns = summary->idle_by_cause_ns[TRACE_IDLE_HOST] +
			  summary->idle_by_cause_ns[TRACE_IDLE_LAUNCH];
	unsigned advice = 0;

	if (is_part(host_ns, summary->span_ns, MIN_IDLE_PERCENT) && summary->launches) {
		bool launch_bound = summary->short_launches >= summary->launches / 2 &&
				    host_ns / (int64_t)summary->launches <= MAX_LAUNCH_GAP_NS;

		advice |= launch_bound ? TRACE_ADVICE_LAUNCH_BOUND : TRACE_ADVICE_HOST_BOUND;
	}
	if (is_part(summary->idle_by_cause_ns[TRACE_IDLE_OTHER], summary->span_ns,
		    MIN_OTHER_PERCENT))
		advice |= TRACE_ADVICE_DEPENDENCIES;
	return advice;
}

static unsigned find_advice(const struct trace_summary *summary)
{
	unsigned advice;

	if (summary->launches < MIN_LAUNCHES || !summary->span_ns)
		return 0;
	advice = idle_advice(summary);
	if (is_part(summary->only_communication_ns, summary->span_ns, MIN_OTHER_PERCENT))
		advice |= TRACE_ADVICE_COMMUNICATION;
	if (is_part(summary->only_memory_ns, summary->span_ns, MIN_OTHER_PERCENT))
		advice |= TRACE_ADVICE_COPIES;
	if (is_part(summary->compute_ns, summary->span_ns, MIN_COMPUTE_PERCENT))
		advice |= TRACE_ADVICE_KERNELS;
	return advice;
}

int trace_summary_init(struct trace_summary *summary, struct trace_results *results)
{
	int r = 0;

	*summary = (struct trace_summary){0};
	for (uint32_t i = 0; r == 0 && i < results->count; i++)
		r = add_rank(summary, results, i);
	if (r == 0)
		summary->advice = find_advice(summary);
	return r;
}
