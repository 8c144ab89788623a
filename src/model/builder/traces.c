/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imported traces, from what a capture's reader says of them. Rows come track by track; in the
 * trace they are in the order of the file that it was imported from.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort_runs.h"
#include "model/builder/internal.h"
#include "model/trace.h"
#include "model/trace_fields.h"
#include "model/trace_graphs.h"

/* A lane of a track: the rows that are open there, outermost first. */
struct trace_lane {
	ARRAY_OF(uint32_t) open;
};

/* What is known of the trace that is being read. */
struct trace_builder {
	struct trace *trace;
	bool drop_arguments;
	uint64_t origin_ns;
	ARRAY_OF(uint8_t) kinds; /* by string: of categories */
	/* The reader's strings → the trace's; MODEL_NONE: not there yet. */
	const struct intern *reader_strings;
	ARRAY_OF(uint32_t) strings;
	struct map_u64 tracks;            /* number → index */
	uint32_t last_number, last_track; /* of the row before; MODEL_NONE: none */
	ARRAY_OF(uint32_t) numbers;       /* by track */
	struct map_u64 lane_index;
	uint64_t last_lane_key, last_lane; /* of the row before */
	ARRAY_OF(struct trace_lane) lanes;
};

static void forget_trace(struct trace_builder *state)
{
	state->trace = NULL;
	state->reader_strings = NULL;
	state->last_track = MODEL_NONE;
	array_clear(&state->kinds);
	array_clear(&state->strings);
	array_clear(&state->numbers);
	map_u64_clear(&state->tracks);
	map_u64_clear(&state->lane_index);
	array_foreach (&state->lanes, lane)
		array_done(&lane->open);
	array_clear(&state->lanes);
}

void builder_traces_done(struct model_builder *builder)
{
	struct trace_builder *state = builder->traces;

	if (!state)
		return;
	trace_free(state->trace);
	forget_trace(state);
	array_done(&state->kinds);
	array_done(&state->strings);
	array_done(&state->numbers);
	map_u64_done(&state->tracks);
	map_u64_done(&state->lane_index);
	array_done(&state->lanes);
	free(state);
	builder->traces = NULL;
}

static int add_string(struct trace *trace, const char *text, uint32_t *ret_string)
{
	int r = intern_add(&trace->strings, text, strlen(text), ret_string);

	return r < 0 ? r : 0;
}

/* ---- in the file's order ---- */

struct place {
	uint32_t file_index, row;
};

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->file_index != b->file_index)
		return a->file_index < b->file_index ? -1 : 1;
	return a->row < b->row ? -1 : 1;
}

/* Each row has a position of its own in the file, and the file not many more. Fails with -E2BIG. */
static int find_order(const struct trace *trace, uint32_t **ret_order)
{
	_cleanup_free_ uint32_t *rows = NULL;
	uint32_t last = 0;
	size_t count = 0;

	array_foreach (&trace->events, event)
		last = MAX(last, event->file_index);
	if (last / 8 > trace->events.count)
		return -E2BIG;
	rows = malloc(((size_t)last + 1) * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	memset(rows, 0xff, ((size_t)last + 1) * sizeof(*rows));
	for (uint32_t i = 0; i < trace->events.count; i++) {
		uint32_t *row = &rows[trace->events.items[i].file_index];

		if (*row != MODEL_NONE)
			return -E2BIG;
		*row = i;
	}
	for (size_t i = 0; i <= last; i++) {
		if (rows[i] != MODEL_NONE)
			rows[count++] = rows[i];
	}
	*ret_order = TAKE_PTR(rows);
	return 0;
}

static bool is_row_before(const void *events, uint32_t a, uint32_t b)
{
	const struct trace_event *items = events;

	return items[a].file_index < items[b].file_index;
}

static int sort_order(const struct trace *trace, uint32_t **ret_order)
{
	size_t count = trace->events.count;
	_cleanup_free_ uint32_t *room = malloc((count + 1) * sizeof(*room));
	_cleanup_free_ uint32_t *order = malloc((count + 1) * sizeof(*order));

	if (!room || !order)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	sort_runs(order, count, room, is_row_before, trace->events.items);
	*ret_order = TAKE_PTR(order);
	return 0;
}

/* More bytes than caches hold, and than malloc() keeps when they are freed. */
#define COPIED_FROM ((size_t)32 << 20)

/*
 * Many, out of a copy: there, rows of a track lie one behind the other, while moves in their place
 * wait for memory at each row. The copy is gone before analyses need as much.
 */
static void move_events(struct trace *trace, uint32_t *order)
{
	size_t count = trace->events.count, bytes = count * sizeof(*trace->events.items);
	_cleanup_free_ struct trace_event *copy = bytes > COPIED_FROM ? malloc(bytes) : NULL;

	if (!copy) {
		sort_move_items(trace->events.items, sizeof(*trace->events.items), order, count);
		return;
	}
	want_huge_pages(copy, bytes);
	memcpy(copy, trace->events.items, bytes);
	for (size_t i = 0; i < count; i++)
		trace->events.items[i] = copy[order[i]];
}

static int sort_events(struct trace *trace)
{
	_cleanup_free_ uint32_t *order = NULL;
	int r = find_order(trace, &order);

	if (r == -E2BIG)
		r = sort_order(trace, &order);
	if (r == 0)
		move_events(trace, order);
	return r;
}

/* Tracks come in any order, and what refers to them by the numbers that they had. */
static int sort_tracks(struct trace_builder *state)
{
	struct trace *trace = state->trace;
	size_t count = trace->tracks.count;
	_cleanup_free_ struct place *places = malloc((count + 1) * sizeof(*places));
	_cleanup_free_ uint32_t *renumbered = malloc((count + 1) * sizeof(*renumbered));
	struct trace_track *tracks = malloc((count + 1) * sizeof(*tracks));

	if (!places || !renumbered || !tracks) {
		free(tracks);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		places[i] = (struct place){state->numbers.items[i], i};
	qsort(places, count, sizeof(*places), compare_places);
	for (uint32_t i = 0; i < count; i++) {
		tracks[i] = trace->tracks.items[places[i].row];
		renumbered[places[i].row] = i;
	}
	array_foreach (&trace->events, event)
		event->track = renumbered[event->track];
	array_foreach (&trace->flows, flow)
		flow->track = renumbered[flow->track];
	array_foreach (&trace->counters, counter)
		counter->track = renumbered[counter->track];
	free(trace->tracks.items);
	trace->tracks.items = tracks;
	trace->tracks.capacity = count + 1;
	return 0;
}

/* Hands the trace that was read last over to the model. */
int builder_resolve_traces(struct model_builder *builder)
{
	struct trace_builder *state = builder->traces;
	int r;

	if (!state || !state->trace)
		return 0;
	r = sort_tracks(state);
	r = r ?: sort_events(state->trace);
	r = r ?: trace_finish(state->trace);
	/* Where arguments are dropped, whoever loads it joins lines of threads before. */
	if (r == 0 && !state->drop_arguments && trace_join_graphs(state->trace, state->trace) < 0)
		r = -ENOMEM;
	r = r ?: array_append(&builder->model->traces, state->trace);
	if (r == 0)
		forget_trace(state);
	return r;
}

/* ---- a trace begins ---- */

static int take_categories(struct trace_builder *state, const struct capture_trace *about)
{
	for (size_t i = 0; i < about->category_count; i++) {
		uint32_t kind = about->categories[i].kind, string;
		int r = add_string(state->trace, about->categories[i].name, &string);

		while (r == 0 && state->kinds.count <= string)
			r = array_append(&state->kinds, TRACE_OTHER);
		if (r < 0)
			return r;
		if (kind < TRACE_CATEGORY_MAX)
			state->kinds.items[string] = (uint8_t)kind;
	}
	return 0;
}

int builder_visit_trace(void *context, const struct capture_trace *about)
{
	struct model_builder *builder = context;
	int r = builder_resolve_traces(builder);
	struct trace_builder *state;
	struct trace *trace;

	if (r < 0)
		return r;
	if (!builder->traces)
		builder->traces = calloc(1, sizeof(*builder->traces));
	state = builder->traces;
	if (!state)
		return -ENOMEM;
	trace = state->trace = trace_new(about->path);
	if (!trace)
		return -ENOMEM;
	state->last_track = MODEL_NONE;
	state->drop_arguments = builder->drop_arguments;
	state->origin_ns = about->origin_ns;
	trace->base_ns = about->base_ns;
	trace->rank = about->rank;
	trace->world_size = about->world_size;
	trace->has_fractions = about->has_fractions;
	trace->arguments_kept = about->arguments_kept && !state->drop_arguments;
	trace->damage.skipped_events = about->damage.skipped_events;
	trace->damage.skipped_bytes = about->damage.skipped_bytes;
	trace->damage.mended_events = about->damage.mended_events;
	trace->damage.repaired_times = about->damage.repaired_times;
	trace->damage.unended_events = about->damage.unended_events;
	trace->damage.truncated = about->damage.truncated;
	r = add_string(trace, about->backend, &trace->backend);
	r = r ?: add_string(trace, about->header, &trace->header);
	if (r == 0)
		r = trace_read_header_devices(trace);
	return r ?: take_categories(state, about);
}

int builder_visit_trace_track(void *context, const struct capture_trace_track *about)
{
	struct trace_builder *state = ((struct model_builder *)context)->traces;
	struct trace_track track = {
		.pid = about->pid,
		.tid = about->tid,
		.process_sort = about->process_sort,
		.thread_sort = about->thread_sort,
		.owner_tid = about->owner_tid,
		.is_device = about->is_device,
	};
	struct trace *trace = state ? state->trace : NULL;
	int r;

	if (!trace || map_u64_get(&state->tracks, about->number, NULL))
		return 0;
	r = add_string(trace, about->pid_text, &track.pid_text);
	r = r ?: add_string(trace, about->tid_text, &track.tid_text);
	r = r ?: add_string(trace, about->process_name, &track.process_name);
	r = r ?: add_string(trace, about->thread_name, &track.thread_name);
	r = r ?: add_string(trace, about->process_labels, &track.process_labels);
	r = r ?: map_u64_set(&state->tracks, about->number, trace->tracks.count);
	r = r ?: array_append(&state->numbers, about->number);
	return r ?: array_append(&trace->tracks, track);
}

/* ---- rows ---- */

/* The trace's string of one of the reader's. */
static int map_string(struct trace_builder *state, const struct intern *strings, uint64_t id,
	uint32_t *ret_string)
{
	const struct intern_entry *entry = &strings->entries.items[id];
	int r = 0;

	if (state->reader_strings != strings) {
		state->reader_strings = strings;
		array_clear(&state->strings);
	}
	while (r == 0 && state->strings.count <= id)
		r = array_append(&state->strings, MODEL_NONE);
	if (r < 0)
		return r;
	if (state->strings.items[id] == MODEL_NONE) {
		r = intern_add(&state->trace->strings, entry->bytes, entry->length,
			&state->strings.items[id]);
		if (r < 0)
			return r;
	}
	*ret_string = state->strings.items[id];
	return 0;
}

/* What kind of thing a category of the reader's is. */
static int find_category(
	struct trace_builder *state, struct capture_trace_row *row, struct trace_event *event)
{
	int r = map_string(state, row->strings, row->category, &row->category);

	if (r < 0)
		return r;
	event->category_name = row->category;
	if (row->category < state->kinds.count)
		event->category = state->kinds.items[row->category];
	return 0;
}

/* False where the trace has none of this number. */
static bool find_track(struct trace_builder *state, uint32_t number, uint32_t *ret_track)
{
	uint64_t index;

	if (state->last_track == MODEL_NONE || state->last_number != number) {
		if (!map_u64_get(&state->tracks, number, &index))
			return false;
		state->last_number = number;
		state->last_track = (uint32_t)index;
	}
	*ret_track = state->last_track;
	return true;
}

/* The lane's open rows. NULL when memory ran out. */
static struct trace_lane *find_lane(
	struct trace_builder *state, uint32_t track, const struct capture_trace_row *row)
{
	uint64_t key = row->lane ? row->lane : track, index;

	if (state->lanes.count && state->last_lane_key == key)
		return &state->lanes.items[state->last_lane];
	if (!map_u64_get(&state->lane_index, key, &index)) {
		index = state->lanes.count;
		if (array_append(&state->lanes, (struct trace_lane){0}) < 0 ||
			map_u64_set(&state->lane_index, key, index) < 0)
			return NULL;
	}
	state->last_lane_key = key;
	state->last_lane = index;
	return &state->lanes.items[index];
}

/*
 * Times of a damaged capture may be anything: within these, sums of them are numbers, as in what
 * importers read.
 */
static int64_t bounded_ns(struct trace_builder *state, int64_t ns, int64_t lowest, int64_t highest)
{
	if (ns >= lowest && ns <= highest)
		return ns;
	state->trace->damage.repaired_times++;
	return ns < lowest ? lowest : highest;
}

static int64_t time_since_origin(struct trace_builder *state, uint64_t time_ns)
{
	return bounded_ns(state, (int64_t)(time_ns - state->origin_ns), -(INT64_C(1) << 61),
		INT64_C(1) << 62);
}

static int64_t duration_of(struct trace_builder *state, uint64_t duration_ns)
{
	return bounded_ns(state, (int64_t)duration_ns, -(INT64_C(1) << 61), INT64_C(1) << 61);
}

static int end_row(struct trace_builder *state, uint32_t track, const struct capture_trace_row *row)
{
	struct trace_lane *lane = find_lane(state, track, row);
	struct trace_event *event;

	if (!lane)
		return -ENOMEM;
	if (!lane->open.count) {
		state->trace->damage.skipped_events++;
		return 0;
	}
	event = &state->trace->events.items[lane->open.items[--lane->open.count]];
	if (event->duration_ns == TRACE_NO_DURATION)
		event->duration_ns = duration_of(
			state, row->time_ns - state->origin_ns - (uint64_t)event->start_ns);
	return 0;
}

static int add_flow(
	struct trace *trace, const struct trace_event *event, const struct capture_trace_row *row)
{
	if (!(row->layout & ROW_BIT(ROW_FLOW)))
		return 0;
	return array_append(&trace->flows, (struct trace_flow){
						   .time_ns = event->start_ns,
						   .id = event->correlation,
						   .track = event->track,
						   .category_name = (uint32_t)row->values[ROW_FLOW],
						   .is_end = row->values[ROW_FLOW_ENDS],
					   });
}

/* A row whose texts are the trace's. */
static int add_row(
	struct trace_builder *state, const struct capture_trace_row *row, struct trace_event *event)
{
	struct trace *trace = state->trace;
	uint32_t index = (uint32_t)trace->events.count;
	struct trace_lane *lane;
	int r = trace_fields_set(trace, row, event);

	if (row->layout & ROW_BIT(ROW_DURATION))
		event->duration_ns = duration_of(state, row->values[ROW_DURATION]);
	r = r ?: add_flow(trace, event, row);
	r = r ?: array_append(&trace->events, *event);
	if (r < 0 || row->kind != CAPTURE_ROW_BEGIN)
		return r;
	lane = find_lane(state, event->track, row);
	return lane ? array_append(&lane->open, index) : -ENOMEM;
}

static int map_texts(struct trace_builder *state, struct capture_trace_row *row)
{
	uint64_t left = row->layout & ROW_TEXTS;
	int r = map_string(state, row->strings, row->name, &row->name);

	for (; r == 0 && left; left &= left - 1) {
		unsigned field = (unsigned)__builtin_ctzll(left);
		uint32_t string = 0;

		r = map_string(state, row->strings, row->values[field], &string);
		row->values[field] = string;
	}
	return r;
}

int builder_visit_trace_row(void *context, const struct capture_trace_row *given)
{
	struct trace_builder *state = ((struct model_builder *)context)->traces;
	struct trace_event event = {.duration_ns = TRACE_NO_DURATION};
	struct capture_trace_row row;
	uint32_t track;
	int r;

	if (!state || !state->trace || !find_track(state, given->track, &track))
		return 0;
	if (given->kind == CAPTURE_ROW_END)
		return end_row(state, track, given);
	row = *given;
	r = find_category(state, &row, &event);
	if (r == 0 && state->drop_arguments)
		trace_fields_drop_arguments(&row, event.category);
	r = r ?: map_texts(state, &row);
	if (r < 0)
		return r;
	event.start_ns = time_since_origin(state, row.time_ns);
	event.name = row.name;
	event.track = track;
	if (row.layout & ROW_BIT(ROW_FILE_INDEX))
		event.file_index = (uint32_t)row.values[ROW_FILE_INDEX];
	if (row.kind == CAPTURE_ROW_STAGE)
		event.duration_ns = duration_of(state, row.duration_ns);
	return add_row(state, &row, &event);
}

/* ---- what is of no row ---- */

int builder_visit_trace_flow(void *context, const struct capture_trace_flow *given)
{
	struct trace_builder *state = ((struct model_builder *)context)->traces;
	struct trace_flow flow = {.id = given->id, .is_end = given->is_end};
	uint64_t track;
	int r;

	if (!state || !state->trace || !map_u64_get(&state->tracks, given->track, &track))
		return 0;
	if (state->drop_arguments && !trace_fields_needs_flow(given->category))
		return 0;
	flow.time_ns = time_since_origin(state, given->time_ns);
	flow.track = (uint32_t)track;
	r = add_string(state->trace, given->category, &flow.category_name);
	return r ?: array_append(&state->trace->flows, flow);
}

int builder_visit_trace_counter(void *context, const struct capture_trace_counter *given)
{
	struct trace_builder *state = ((struct model_builder *)context)->traces;
	struct trace_counter counter = {.value = given->value, .device = given->device};
	uint64_t track;
	int r;

	if (!state || !state->trace || !map_u64_get(&state->tracks, given->track, &track))
		return 0;
	counter.time_ns = time_since_origin(state, given->time_ns);
	counter.track = (uint32_t)track;
	r = add_string(state->trace, given->name, &counter.name);
	r = r ?: add_string(state->trace, given->series, &counter.series);
	return r ?: array_append(&state->trace->counters, counter);
}

int builder_visit_trace_group(void *context, const struct capture_trace_group *given)
{
	struct trace_builder *state = ((struct model_builder *)context)->traces;
	struct trace *trace = state ? state->trace : NULL;
	struct trace_group group = {.size = given->size};
	int r;

	if (!trace)
		return 0;
	r = add_string(trace, given->name, &group.name);
	r = r ?: add_string(trace, given->description, &group.description);
	r = r ?: add_string(trace, given->backend, &group.backend);
	r = r ?: add_string(trace, given->ranks, &group.ranks);
	return r ?: array_append(&trace->groups, group);
}
