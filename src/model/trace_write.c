/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A track's rows in the order of time, as slices that nest: what overlaps without lying in one
 * another goes to lanes of its own. The ends of slices that are open wait in a heap.
 */
#include "model/trace_write.h"

#include <errno.h>

#include "capture/writer/trace.h"
#include "model/trace_fields.h"

/* Lanes that are looked at for room: beyond these each overlap opens one. */
#define LANES_TRIED ((size_t)64)
#define FLUSH_BYTES ((size_t)4 << 20)
/* Times beyond this are not of our calendar, and viewers would not show them. */
#define LATEST_NS ((uint64_t)1 << 62)

struct open_slice {
	int64_t end_ns;
	uint32_t order; /* later ones lie in earlier ones of their lane */
	uint32_t lane;
};

struct lane {
	ARRAY_OF(int64_t) ends_ns; /* of what is open, outermost first */
};

struct trace_output {
	struct capture_writer *writer;
	struct capture_trace_writer *out;
	const struct trace *trace;
	struct errmsg *err;
	uint64_t origin_ns;
	struct map_u64 flows;      /* key of flow_key() → index */
	ARRAY_OF(bool) is_written; /* by flow: with its row */
	struct map_u64 flow_ends;  /* flow_key() of whether it is an end → index */
	struct map_u64 works;      /* correlations that have work */
	struct map_u64 launchers;  /* correlation → pid of the row that launched */
	uint32_t first_pid;        /* of those with threads; 0: none */
	ARRAY_OF(struct open_slice) heap;
	ARRAY_OF(struct lane) lanes;
	uint32_t order;
	struct capture_trace_row row;
};

static void output_done(struct trace_output *output)
{
	capture_trace_free(output->out);
	map_u64_done(&output->flows);
	map_u64_done(&output->flow_ends);
	map_u64_done(&output->works);
	map_u64_done(&output->launchers);
	array_done(&output->is_written);
	array_done(&output->heap);
	array_foreach (&output->lanes, lane)
		array_done(&lane->ends_ns);
	array_done(&output->lanes);
}

/* ---- arrows ---- */

static uint64_t flow_key(uint32_t track, uint64_t id, int64_t time_ns)
{
	const uint64_t key[] = {track, id, (uint64_t)time_ns};

	return hash_bytes(key, sizeof(key), 0);
}

/* 0: none of the operating system's. */
static uint32_t pid_of_track(const struct trace *trace, uint32_t number)
{
	const struct trace_track *track = &trace->tracks.items[number];

	return track->is_device || track->pid <= 0 || track->pid > INT32_MAX ? 0
									     : (uint32_t)track->pid;
}

static int note_launcher(struct trace_output *output, const struct trace_event *event)
{
	uint32_t pid = pid_of_track(output->trace, event->track);

	return pid ? map_u64_set(&output->launchers, event->correlation, pid) : 0;
}

static void find_first_pid(struct trace_output *output)
{
	for (uint32_t i = 0; i < output->trace->tracks.count && !output->first_pid; i++)
		output->first_pid = pid_of_track(output->trace, i);
}

/* Tracks of devices are no process's: it is the launch's, else the trace's first. */
static uint32_t pid_of_work(const struct trace_output *output, const struct trace_event *event)
{
	uint64_t pid = output->first_pid;

	if (event->correlation)
		map_u64_get(&output->launchers, event->correlation, &pid);
	return (uint32_t)pid;
}

static int index_flows(struct trace_output *output)
{
	const struct trace *trace = output->trace;
	int r = array_reserve(&output->is_written, trace->flows.count);

	for (size_t i = 0; r == 0 && i < trace->flows.count; i++) {
		const struct trace_flow *flow = &trace->flows.items[i];
		uint64_t key = flow_key(flow->track, flow->id, flow->time_ns);

		output->is_written.items[output->is_written.count++] = false;
		if (!map_u64_get(&output->flows, key, NULL))
			r = map_u64_set(&output->flows, key, i);
		key = flow_key(flow->track, flow->is_end, flow->time_ns);
		if (r == 0 && !map_u64_get(&output->flow_ends, key, NULL))
			r = map_u64_set(&output->flow_ends, key, i);
	}
	for (size_t i = 0; r == 0 && i < trace->events.count; i++) {
		const struct trace_event *event = &trace->events.items[i];

		if (trace_is_work(event) && event->correlation)
			r = map_u64_set(&output->works, event->correlation, i);
		else if (event->correlation)
			r = note_launcher(output, event);
	}
	return r;
}

/* An arrow that begins or ends where the row does, and has its correlation, is written with it. */
static void take_flow(struct trace_output *output, const struct trace_event *event)
{
	struct capture_trace_row *row = &output->row;
	const struct trace_flow *flow;
	uint64_t index;

	if (!event->correlation || !output->flows.count ||
		!map_u64_get(&output->flows,
			flow_key(event->track, event->correlation, event->start_ns), &index))
		return;
	flow = &output->trace->flows.items[index];
	if (output->is_written.items[index] || flow->id != event->correlation ||
		flow->track != event->track || flow->time_ns != event->start_ns ||
		!flow->category_name)
		return;
	output->is_written.items[index] = true;
	row->layout |= ROW_BIT(ROW_FLOW) | ROW_BIT(ROW_FLOW_ENDS);
	row->values[ROW_FLOW] = flow->category_name;
	row->values[ROW_FLOW_ENDS] = flow->is_end;
}

/*
 * Another arrow that begins or ends where the slice begins, such as from an operator to its
 * gradient's; 0: none. Of slices that begin at once it is the outermost's.
 */
static uint64_t show_flow(struct trace_output *output, const struct trace_event *event, bool is_end)
{
	uint64_t key = flow_key(event->track, is_end, event->start_ns), index;
	const struct trace_flow *flow;

	if (!map_u64_get(&output->flow_ends, key, &index))
		return 0;
	map_u64_remove(&output->flow_ends, key);
	flow = &output->trace->flows.items[index];
	return output->is_written.items[index] ? 0 : flow_key(flow->category_name, flow->id, 0);
}

static int write_other_flows(struct trace_output *output)
{
	const struct trace *trace = output->trace;
	int r = 0;

	for (size_t i = 0; r == 0 && i < trace->flows.count; i++) {
		const struct trace_flow *flow = &trace->flows.items[i];
		const struct capture_trace_flow out = {
			.time_ns = output->origin_ns + (uint64_t)flow->time_ns,
			.id = flow->id,
			.track = flow->track,
			.category = trace_text(trace, flow->category_name),
			.is_end = flow->is_end,
		};

		if (!output->is_written.items[i])
			r = capture_trace_flow(output->out, &out);
	}
	return r;
}

/* ---- the heap: the first end on top; of equal ones the innermost ---- */

static bool ends_before(const struct open_slice *a, const struct open_slice *b)
{
	return a->end_ns != b->end_ns ? a->end_ns < b->end_ns : a->order > b->order;
}

static void swap(struct open_slice *a, struct open_slice *b)
{
	struct open_slice kept = *a;

	*a = *b;
	*b = kept;
}

static int heap_push(struct trace_output *output, struct open_slice slice)
{
	struct open_slice *items;
	size_t at = output->heap.count;
	int r = array_append(&output->heap, slice);

	items = output->heap.items;
	for (; r == 0 && at && ends_before(&items[at], &items[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&items[at], &items[(at - 1) / 2]);
	return r;
}

static struct open_slice heap_pop(struct trace_output *output)
{
	struct open_slice *items = output->heap.items, top = items[0];
	size_t at = 0, count = --output->heap.count;

	items[0] = items[count];
	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= count)
			return top;
		if (child + 1 < count && ends_before(&items[child + 1], &items[child]))
			child++;
		if (!ends_before(&items[child], &items[at]))
			return top;
		swap(&items[at], &items[child]);
		at = child;
	}
}

/* ---- rows ---- */

static int write_row(struct trace_output *output, const struct capture_trace_row *row)
{
	int r = capture_trace_row(output->out, row);

	if (r == 0 && capture_writer_waiting(output->writer) > FLUSH_BYTES)
		r = capture_writer_flush(output->writer, output->err);
	return r;
}

/* Ends what is over at that time. */
static int write_ends(struct trace_output *output, int64_t time_ns)
{
	int r = 0;

	while (r == 0 && output->heap.count && output->heap.items[0].end_ns <= time_ns) {
		struct open_slice slice = heap_pop(output);
		const struct capture_trace_row end = {
			.kind = CAPTURE_ROW_END,
			.time_ns = output->origin_ns + (uint64_t)slice.end_ns,
			.lane = slice.lane,
		};

		output->lanes.items[slice.lane].ends_ns.count--;
		r = write_row(output, &end);
	}
	return r;
}

/* The first lane where the slice lies in what is open there. */
static int find_lane(struct trace_output *output, int64_t end_ns, uint32_t *ret_lane)
{
	size_t tried = MIN(output->lanes.count, LANES_TRIED);

	for (size_t i = 0; i < tried; i++) {
		const struct lane *lane = &output->lanes.items[i];

		if (!lane->ends_ns.count ||
			end_ns <= lane->ends_ns.items[lane->ends_ns.count - 1]) {
			*ret_lane = (uint32_t)i;
			return 0;
		}
	}
	*ret_lane = (uint32_t)output->lanes.count;
	return array_append(&output->lanes, (struct lane){0});
}

static int write_slice(struct trace_output *output, const struct trace_event *event)
{
	struct capture_trace_row *row = &output->row;
	int64_t end_ns = MAX(event->start_ns, trace_end_ns(event));
	uint32_t lane;
	int r = find_lane(output, end_ns, &lane);

	if (r < 0)
		return r;
	row->kind = CAPTURE_ROW_BEGIN;
	row->flow = show_flow(output, event, false);
	row->ended_flow = show_flow(output, event, true);
	row->lane = lane;
	row->launches = event->correlation && !row->values[ROW_FLOW_ENDS] &&
			map_u64_get(&output->works, event->correlation, NULL);
	r = write_row(output, row);
	r = r ?: array_append(&output->lanes.items[lane].ends_ns, end_ns);
	return r ?: heap_push(output, (struct open_slice){end_ns, output->order++, lane});
}

static int write_event(struct trace_output *output, const struct trace_event *event)
{
	struct capture_trace_row *row = &output->row;
	bool is_moment = event->duration_ns == TRACE_NO_DURATION;

	trace_fields_get(output->trace, event, row);
	row->time_ns = output->origin_ns + (uint64_t)event->start_ns;
	row->name = event->name;
	row->category = event->category_name;
	row->lane = 0;
	row->launches = false;
	row->flow = row->ended_flow = 0;
	row->layout |= ROW_BIT(ROW_FILE_INDEX);
	row->values[ROW_FILE_INDEX] = event->file_index;
	row->values[ROW_FLOW_ENDS] = false;
	take_flow(output, event);
	if (!is_moment && event->duration_ns < 0) {
		row->layout |= ROW_BIT(ROW_DURATION);
		row->values[ROW_DURATION] = (uint64_t)event->duration_ns;
	}
	if (is_moment) {
		row->kind = CAPTURE_ROW_MOMENT;
		return write_row(output, row);
	}
	if (!trace_is_work(event))
		return write_slice(output, event);
	row->kind = CAPTURE_ROW_STAGE;
	row->pid = pid_of_work(output, event);
	row->duration_ns = event->duration_ns < 0 ? 0 : (uint64_t)event->duration_ns;
	return write_row(output, row);
}

static int write_track(struct trace_output *output, uint32_t number, bool is_long)
{
	const struct trace *trace = output->trace;
	const struct trace_track *track = &trace->tracks.items[number];
	const struct capture_trace_track about = {
		.number = number,
		.pid = track->pid,
		.tid = track->tid,
		.pid_text = trace_text(trace, track->pid_text),
		.tid_text = trace_text(trace, track->tid_text),
		.process_name = trace_text(trace, track->process_name),
		.thread_name = trace_text(trace, track->thread_name),
		.process_labels = trace_text(trace, track->process_labels),
		.process_sort = track->process_sort,
		.thread_sort = track->thread_sort,
		.owner_tid = track->owner_tid,
		.is_device = track->is_device,
	};
	int r = capture_trace_track(output->out, &about, is_long);

	for (; output->lanes.count > LANES_TRIED; output->lanes.count--)
		array_done(&output->lanes.items[output->lanes.count - 1].ends_ns);
	for (uint32_t i = 0; r == 0 && i < track->count; i++) {
		const struct trace_event *event =
			&trace->events.items[trace->rows.items[track->first + i]];

		r = write_ends(output, event->start_ns);
		r = r ?: write_event(output, event);
	}
	return r ?: write_ends(output, INT64_MAX);
}

/* ---- the trace ---- */

static int write_counters(struct trace_output *output)
{
	const struct trace *trace = output->trace;
	int r = 0;

	for (size_t i = 0; r == 0 && i < trace->counters.count; i++) {
		const struct trace_counter *counter = &trace->counters.items[i];
		const struct trace_track *track = &trace->tracks.items[counter->track];
		const struct capture_trace_counter out = {
			.time_ns = output->origin_ns + (uint64_t)counter->time_ns,
			.track = counter->track,
			.device = counter->device,
			.name = trace_text(trace, counter->name),
			.series = trace_text(trace, counter->series),
			.value = counter->value,
		};
		const struct capture_counter shown = {
			.time_ns = out.time_ns,
			.pid = (uint32_t)track->pid,
			.name = *out.name ? out.name : out.series,
			.value = out.value,
		};

		r = capture_trace_counter(output->out, &out);
		if (r == 0 && track->pid > 0 && track->pid <= INT32_MAX)
			r = capture_writer_counter(output->writer, &shown);
	}
	return r;
}

static int write_groups(struct trace_output *output)
{
	const struct trace *trace = output->trace;
	int r = 0;

	for (size_t i = 0; r == 0 && i < trace->groups.count; i++) {
		const struct trace_group *group = &trace->groups.items[i];
		const struct capture_trace_group out = {
			.name = trace_text(trace, group->name),
			.description = trace_text(trace, group->description),
			.backend = trace_text(trace, group->backend),
			.ranks = trace_text(trace, group->ranks),
			.size = group->size,
		};

		r = capture_trace_group(output->out, &out);
	}
	return r;
}

struct categories {
	ARRAY_OF(struct capture_trace_category) items;
};

/* Each category of the rows once. Kinds follow from names. */
static int find_categories(const struct trace *trace, struct categories *ret_categories)
{
	struct map_u64 seen = {0};
	uint32_t last = MODEL_NONE;
	int r = 0;

	for (size_t i = 0; r == 0 && i < trace->events.count; i++) {
		const struct trace_event *event = &trace->events.items[i];

		if (event->category_name == last)
			continue;
		last = event->category_name;
		if (map_u64_get(&seen, last, NULL))
			continue;
		r = map_u64_set(&seen, last, 0);
		if (r == 0)
			r = array_append(
				&ret_categories->items, (struct capture_trace_category){
								.name = trace_text(trace, last),
								.kind = event->category,
							});
	}
	map_u64_done(&seen);
	return r;
}

static int begin_trace(struct trace_output *output, uint64_t begin_ns)
{
	const struct trace *trace = output->trace;
	struct categories categories = {0};
	struct capture_trace about = {
		.path = trace->path,
		.origin_ns = output->origin_ns,
		.base_ns = trace->base_ns,
		.rank = trace->rank,
		.world_size = trace->world_size,
		.backend = trace_text(trace, trace->backend),
		.header = trace_text(trace, trace->header),
		.has_fractions = trace->has_fractions,
		.arguments_kept = trace->arguments_kept,
		.damage =
			{
				.skipped_events = trace->damage.skipped_events,
				.skipped_bytes = trace->damage.skipped_bytes,
				.mended_events = trace->damage.mended_events,
				.repaired_times = trace->damage.repaired_times,
				.unended_events = trace->damage.unended_events,
				.truncated = trace->damage.truncated,
			},
		.row_count = trace->events.count,
		.begin_ns = begin_ns,
	};
	int r = find_categories(trace, &categories);

	about.categories = categories.items.items;
	about.category_count = categories.items.count;
	r = r ?: capture_trace_begin(&output->out, output->writer, &about, &trace->strings);
	array_done(&categories.items);
	return r;
}

static int write_tracks(struct trace_output *output, bool is_long)
{
	const struct trace *trace = output->trace;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < trace->tracks.count; i++) {
		if ((trace->tracks.items[i].count >= CAPTURE_TRACE_LONG_TRACK) == is_long)
			r = write_track(output, i, is_long);
	}
	return r;
}

static int64_t first_start_ns(const struct trace *trace)
{
	int64_t first_ns = trace->events.count ? INT64_MAX : 0;

	array_foreach (&trace->events, event)
		first_ns = MIN(first_ns, event->start_ns);
	return first_ns;
}

/*
 * Where the trace's 0 is in the capture: where it says itself; else so that its first row comes
 * `margin_ns`, which a clock can count from, after the session's start at 1 us. A start at 0 would
 * be none, and viewers then relate no other clock to the rows'.
 */
static uint64_t origin_ns(const struct trace *trace, uint64_t margin_ns)
{
	int64_t first_ns = first_start_ns(trace), begin_ns;

	if (trace->base_ns < LATEST_NS &&
		!__builtin_add_overflow((int64_t)trace->base_ns, first_ns, &begin_ns) &&
		begin_ns >= (int64_t)(margin_ns + NS_PER_US))
		return trace->base_ns;
	return margin_ns + NS_PER_US - (uint64_t)first_ns;
}

static int write_trace(struct trace_output *output, uint64_t margin_ns)
{
	int r;

	output->origin_ns = origin_ns(output->trace, margin_ns);
	r = begin_trace(output, output->origin_ns + (uint64_t)first_start_ns(output->trace));
	find_first_pid(output);
	r = r ?: index_flows(output);
	r = r ?: write_groups(output);
	r = r ?: write_tracks(output, false);
	r = r ?: write_tracks(output, true);
	r = r ?: write_other_flows(output);
	return r ?: write_counters(output);
}

/* ---- the session ---- */

/* Each track may take a microsecond of the clock before the first row. */
static uint64_t clock_margin_ns(struct trace *const *traces, size_t count)
{
	uint64_t tracks = 2;

	for (size_t i = 0; i < count; i++)
		tracks += traces[i]->tracks.count;
	return tracks * NS_PER_US;
}

static int write_session(struct capture_writer *writer, struct trace *const *traces, size_t count,
	uint64_t margin_ns)
{
	ARRAY_OF(const char *) paths = {0};
	struct capture_session session = {
		.sonde_version = SONDE_VERSION,
		.host = "",
		.kernel_release = "",
		.architecture = "",
		.unwind_mode = "",
		.start_time_ns = UINT64_MAX,
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		uint64_t begin_ns =
			origin_ns(traces[i], margin_ns) + (uint64_t)first_start_ns(traces[i]);

		session.start_time_ns = MIN(session.start_time_ns, begin_ns - margin_ns);
		r = array_append(&paths, traces[i]->path);
	}
	session.command = paths.items;
	session.command_count = (uint32_t)paths.count;
	session.start_realtime_ns = session.start_boottime_ns = session.start_time_ns;
	r = r ?: capture_writer_session(writer, &session);
	array_done(&paths);
	return r;
}

int trace_write(struct capture_writer *writer, struct trace *const *traces, size_t count,
	struct errmsg *err)
{
	uint64_t margin_ns = clock_margin_ns(traces, count);
	int r = write_session(writer, traces, count, margin_ns);

	for (size_t i = 0; r == 0 && i < count; i++) {
		_cleanup_(output_done) struct trace_output output = {
			.writer = writer, .trace = traces[i], .err = err};

		r = write_trace(&output, margin_ns);
	}
	if (r == -ENOMEM)
		errmsg_set(err, r, "memory ran out while writing the capture");
	return r;
}
