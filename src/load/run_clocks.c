/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each capture is read once for its collectives: ranges that are calls of them, and kernels of
 * devices. All else is passed over, so that memory holds 40 bytes for each collective of a rank.
 */
#include "load/run_clocks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/collectives/calls.h"
#include "analyses/device/communication.h"
#include "base/parallel.h"

/* What a capture has of one collective; the texts are ids in its strings. */
struct end {
	uint32_t rank, name, group; /* group 0: not known */
	int64_t group_size, sequence;
	int64_t start_ns, end_ns;
};

/* A call on a track, and ranges in it. */
struct open_call {
	struct end end;
	uint32_t depth;
};

struct gathered {
	struct run_capture *capture;
	struct intern strings;
	struct map_u64 ranks; /* pid → rank */
	ARRAY_OF(struct end) ends;
	struct map_u64 tracks; /* → index in `open`, + 1; 0: nothing is open */
	ARRAY_OF(struct open_call) open;
};

static int64_t run_time(const struct gathered *gathered, uint64_t time_ns)
{
	return (int64_t)capture_clock_ns(&gathered->capture->source->clock, time_ns);
}

static int take_process(void *context, const struct capture_process *process)
{
	struct gathered *gathered = context;

	return process->has_rank ? map_u64_set(&gathered->ranks, process->pid, process->rank) : 0;
}

static int add_text(struct gathered *gathered, const char *text, size_t length, uint32_t *ret_id)
{
	int r = intern_add(&gathered->strings, text, length, ret_id);

	return r < 0 ? r : 0;
}

/* ---- ranges ---- */

static int64_t number_of(const struct capture_range_event *event, const char *name)
{
	for (uint32_t i = 0; i < event->field_count; i++) {
		const struct capture_range_field *field = &event->fields[i];

		if (strcmp(field->name, name) == 0 && field->type != WIRE_RANGE_TEXT)
			return (int64_t)field->value;
	}
	return TRACE_NO_NUMBER;
}

static const char *group_of(const struct capture_range_event *event)
{
	for (uint32_t i = 0; i < event->field_count; i++) {
		const struct capture_range_field *field = &event->fields[i];

		if (strcmp(field->name, COLLECTIVE_GROUP) == 0 && field->type == WIRE_RANGE_TEXT)
			return field->text;
	}
	return "";
}

static int begin_call(struct gathered *gathered, const struct capture_range_event *event)
{
	const char *group = group_of(event);
	struct open_call call = {
		.end = {.group_size = number_of(event, COLLECTIVE_GROUP_SIZE),
			.sequence = number_of(event, COLLECTIVE_SEQUENCE),
			.start_ns = run_time(gathered, event->time_ns)},
	};
	uint64_t rank;
	int r;

	if (!collective_is_call(event->name) || number_of(event, COLLECTIVE_ASYNC) > 0 ||
		!map_u64_get(&gathered->ranks, event->pid, &rank))
		return 0;
	call.end.rank = (uint32_t)rank;
	r = add_text(gathered, event->name, strlen(event->name), &call.end.name);
	if (r == 0)
		r = add_text(gathered, group, strlen(group), &call.end.group);
	if (r == 0)
		r = array_append(&gathered->open, call);
	return r < 0 ? r : map_u64_set(&gathered->tracks, event->track, gathered->open.count);
}

static int take_range(void *context, const struct capture_range_event *event)
{
	struct gathered *gathered = context;
	struct open_call *call;
	uint64_t index = 0;
	int r;

	if (event->kind == CAPTURE_RANGE_MARK)
		return 0;
	map_u64_get(&gathered->tracks, event->track, &index);
	if (!index)
		return event->kind == CAPTURE_RANGE_BEGIN ? begin_call(gathered, event) : 0;
	call = &gathered->open.items[index - 1];
	if (event->kind == CAPTURE_RANGE_BEGIN) {
		call->depth++;
		return 0;
	}
	if (call->depth) {
		call->depth--;
		return 0;
	}
	call->end.end_ns = run_time(gathered, event->time_ns);
	r = array_append(&gathered->ends, call->end);
	return r < 0 ? r : map_u64_set(&gathered->tracks, event->track, 0);
}

/* ---- device work ---- */

static int take_device_work(void *context, const struct capture_device_work *work)
{
	struct gathered *gathered = context;
	struct end end = {
		.group_size = TRACE_NO_NUMBER,
		.sequence = TRACE_NO_NUMBER,
		.start_ns = run_time(gathered, work->start_ns),
		.end_ns = run_time(gathered, work->end_ns),
	};
	uint64_t rank;
	int r;

	if (!work->name || communication_of_name(work->name) == COMMUNICATION_NOT ||
		collective_is_one_sided(work->name) ||
		!map_u64_get(&gathered->ranks, work->pid, &rank))
		return 0;
	end.rank = (uint32_t)rank;
	r = add_text(gathered, work->name, strcspn(work->name, "("), &end.name);
	if (r == 0)
		r = add_text(gathered, "", 0, &end.group);
	return r < 0 ? r : array_append(&gathered->ends, end);
}

static const struct capture_visitor visitor = {
	.process = take_process,
	.range = take_range,
	.device_work = take_device_work,
};

static void gather(size_t index, void *context)
{
	struct gathered *gathered = &((struct gathered *)context)[index];
	struct run_capture *capture = gathered->capture;

	capture->status =
		capture_read(capture->source->path, &visitor, gathered, NULL, &capture->err);
}

static void gathered_done(struct gathered *gathered)
{
	intern_done(&gathered->strings);
	map_u64_done(&gathered->ranks);
	array_done(&gathered->ends);
	map_u64_done(&gathered->tracks);
	array_done(&gathered->open);
}

/* ---- clocks ---- */

static int add_ends(
	struct collective_matches *matches, struct intern *kinds, const struct gathered *gathered)
{
	int r = 0;

	array_foreach (&gathered->ends, end) {
		const struct collective_call call = {
			.rank = {.rank = end->rank},
			.name = intern_get(&gathered->strings, end->name),
			.group = intern_get(&gathered->strings, end->group),
			.group_size = end->group_size,
			.sequence = end->sequence,
			.bytes = TRACE_NO_NUMBER,
			.step = RANK_NO_STEP,
			.start_ns = end->start_ns,
			.end_ns = end->end_ns,
		};

		r = r ?: collective_calls_add(matches, kinds, &call);
	}
	return r;
}

/* The error of a capture is the median of its ranks', which have one clock. */
struct shown {
	ARRAY_OF(int64_t) errors;
	ARRAY_OF(double) drifts;
};

static int compare_doubles(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static int read_clock(const struct collective_matches *matches, const struct gathered *all,
	size_t count, uint32_t of_clock, struct shown *shown)
{
	struct map_u64 seen = {0};
	int r = 0;

	array_clear(&shown->errors);
	array_clear(&shown->drifts);
	for (size_t i = 0; i < count; i++) {
		if (all[i].capture->clock != of_clock)
			continue;
		array_foreach (&all[i].ends, end) {
			const struct collective_rank_key key = {.rank = end->rank};
			uint32_t id;

			if (r < 0 || map_u64_get(&seen, end->rank, NULL) ||
				!intern_find(&matches->ranks, &key, sizeof(key), &id) ||
				!matches->clocks[id].is_known)
				continue;
			r = map_u64_set(&seen, end->rank, 1);
			if (r == 0)
				r = array_append(&shown->errors, matches->clocks[id].error_ns);
			if (r == 0)
				r = array_append(&shown->drifts, matches->clocks[id].drift);
		}
	}
	map_u64_done(&seen);
	return r;
}

/* Over the time of the collectives a drift below what is left of errors is none that one knows. */
static double known_drift(const struct collective_matches *matches, double drift)
{
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;

	array_foreach (&matches->parts, part) {
		first_ns = MIN(first_ns, part->end_ns);
		last_ns = MAX(last_ns, part->end_ns);
	}
	return fabs(drift) * ((double)last_ns - (double)first_ns) >
			       2 * (double)matches->end_error_ns
		       ? drift
		       : 0;
}

/* What lies within the error of the ends says nothing against what the hosts' clocks say. */
static void correct(struct capture_clock *clock, const struct collective_matches *matches,
	int64_t error_ns, double drift)
{
	if ((uint64_t)llabs(error_ns) <= matches->end_error_ns)
		error_ns = 0;
	clock->source = CAPTURE_CLOCK_COLLECTIVES;
	clock->drift = -known_drift(matches, drift);
	clock->drift_from_ns = (uint64_t)matches->middle_ns - (uint64_t)clock->shift_ns;
	clock->shift_ns = trace_difference_ns(clock->shift_ns, error_ns);
	clock->error_ns = matches->end_error_ns;
}

static int correct_all(
	const struct collective_matches *matches, const struct gathered *all, size_t count)
{
	struct shown shown = {0};
	int r = 0;

	for (uint32_t clock = 0; r == 0 && clock < count; clock++) {
		if (all[clock].capture->clock != clock)
			continue;
		r = read_clock(matches, all, count, clock, &shown);
		if (r < 0 || !shown.errors.count)
			continue;
		qsort(shown.drifts.items, shown.drifts.count, sizeof(double), compare_doubles);
		for (size_t i = 0; i < count; i++) {
			if (all[i].capture->clock == clock)
				correct(&all[i].capture->source->clock, matches,
					collective_median_ns(
						shown.errors.items, shown.errors.count),
					shown.drifts.items[shown.drifts.count / 2]);
		}
	}
	array_done(&shown.errors);
	array_done(&shown.drifts);
	return r;
}

static int match_ends(const struct gathered *all, size_t count)
{
	_cleanup_collective_matches_ struct collective_matches matches = {0};
	struct intern kinds = {0};
	uint32_t nothing;
	int r = intern_add(&matches.strings, "", 0, &nothing);

	for (size_t i = 0; r >= 0 && i < count; i++)
		r = add_ends(&matches, &kinds, &all[i]);
	if (r >= 0)
		r = collective_matches_finish(&matches);
	if (r == 0 && matches.items.count > matches.apart)
		r = correct_all(&matches, all, count);
	intern_done(&kinds);
	return r < 0 ? r : 0;
}

int run_refine_clocks(struct run_capture *captures, size_t count, struct errmsg *err)
{
	struct gathered *all = calloc(count, sizeof(*all));
	int r = all ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++)
		all[i].capture = &captures[i];
	if (r == 0)
		parallel_each(count, gather, all);
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (captures[i].status < 0)
			*err = captures[i].err;
		r = captures[i].status;
	}
	if (r == 0)
		r = match_ends(all, count);
	for (size_t i = 0; all && i < count; i++)
		gathered_done(&all[i]);
	free(all);
	return r;
}
