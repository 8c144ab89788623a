/* SPDX-License-Identifier: Apache-2.0 */
#include "query/timeline/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "model/trace_capture.h"
#include "query/timeline/tracks.h"

const char *timeline_text(struct timeline *timeline, const char *format, ...)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	va_list arguments;
	uint32_t id;

	va_start(arguments, format);
	strbuf_vaddf(&text, format, arguments);
	va_end(arguments);
	if (strbuf_status(&text) < 0 ||
		intern_add(&timeline->texts, strbuf_cstr(&text), text.length, &id) < 0)
		return NULL;
	return intern_get(&timeline->texts, id);
}

int64_t timeline_time(int64_t time_ns, int64_t offset_ns)
{
	int64_t sum;

	if (__builtin_add_overflow(time_ns, offset_ns, &sum))
		return offset_ns < 0 ? 0 : TIMELINE_END_NS;
	return MAX(0, MIN(sum, TIMELINE_END_NS));
}

/* ---- sources ---- */

static int64_t sum(int64_t left, int64_t right)
{
	int64_t result;

	if (__builtin_add_overflow(left, right, &result))
		return left < 0 ? INT64_MIN : INT64_MAX;
	return result;
}

static int64_t base_of(const struct trace *trace)
{
	return (int64_t)MIN(trace->base_ns, (uint64_t)INT64_MAX);
}

/* When the first row began, as the file has it; INT64_MAX: there is none. */
static int64_t first_start(const struct trace *trace)
{
	int64_t first_ns = INT64_MAX;

	array_foreach (&trace->tracks, track) {
		for (uint32_t i = 0; i < track->count; i++) {
			const struct trace_event *event =
				&trace->events.items[trace->rows.items[track->first + i]];

			if (event->is_capture)
				continue;
			first_ns = MIN(first_ns, event->start_ns);
			break;
		}
	}
	return first_ns;
}

/* Clocks of several ranks are one where all say when theirs began; else each begins at 0. */
static void find_offsets(struct timeline *timeline)
{
	int64_t origin_ns = INT64_MAX;
	bool have_bases = true;

	array_foreach (&timeline->sources, source) {
		have_bases &= source->trace->base_ns != 0;
		origin_ns = MIN(origin_ns, sum(first_start(source->trace), base_of(source->trace)));
	}
	array_foreach (&timeline->sources, source) {
		int64_t first_ns = first_start(source->trace);

		if (timeline->own || first_ns == INT64_MAX)
			continue;
		source->offset_ns = have_bases ? sum(base_of(source->trace), -origin_ns)
					       : sum(0, -MAX(first_ns, -INT64_MAX));
	}
}

static int add_source(struct timeline *timeline, const struct trace *trace)
{
	struct timeline_source source = {
		.trace = trace,
		.first_name = timeline->name_count,
		.lanes = malloc(trace->events.count + 1),
	};
	int r = source.lanes ? 0 : -ENOMEM;

	for (int i = 0; i < 2; i++) {
		source.track_of[i] = malloc((trace->tracks.count + 1) * sizeof(uint32_t));
		r = source.track_of[i] ? r : -ENOMEM;
	}
	if (r == 0)
		memset(source.lanes, TIMELINE_LANES_MAX, trace->events.count + 1);
	timeline->name_count += (uint32_t)trace->strings.entries.count;
	return array_append(&timeline->sources, source) < 0 ? -ENOMEM : r;
}

static int add_sources(struct timeline *timeline)
{
	const struct model *model = timeline->model;
	int r = 0;

	if (!model_is_foreign(model)) {
		timeline->origin_ns = (int64_t)MIN(model_start_ns(model), (uint64_t)INT64_MAX);
		r = trace_of_recording(&timeline->own, model);
		return r < 0 ? r : add_source(timeline, timeline->own);
	}
	array_foreach (&model->traces, trace) {
		if (r == 0)
			r = add_source(timeline, *trace);
	}
	return r;
}

/* ---- tracks ---- */

static int compare_numbers(int64_t left, int64_t right)
{
	return left < right ? -1 : left > right;
}

static int compare_tracks(const void *left, const void *right)
{
	const struct timeline_track *a = left, *b = right;
	int order = compare_numbers(a->source, b->source);

	order = order ? order : compare_numbers(a->process_sort, b->process_sort);
	order = order ? order
		      : compare_numbers(a->kind == TIMELINE_STREAM, b->kind == TIMELINE_STREAM);
	order = order ? order : compare_numbers(a->pid, b->pid);
	order = order ? order : strcmp(a->process, b->process);
	order = order ? order
		      : compare_numbers(a->kind == TIMELINE_COUNTER, b->kind == TIMELINE_COUNTER);
	order = order ? order : compare_numbers(a->thread_sort, b->thread_sort);
	order = order ? order : compare_numbers(a->tid, b->tid);
	order = order ? order : strcmp(a->name, b->name);
	order = order ? order : compare_numbers(a->trace_track, b->trace_track);
	order = order ? order : compare_numbers(a->thread, b->thread);
	return order ? order : compare_numbers(a->kind, b->kind);
}

static void order_tracks(struct timeline *timeline)
{
	if (timeline->tracks.count)
		qsort(timeline->tracks.items, timeline->tracks.count,
			sizeof(*timeline->tracks.items), compare_tracks);
	array_foreach (&timeline->sources, source) {
		for (size_t i = 0; i <= source->trace->tracks.count; i++)
			source->track_of[0][i] = source->track_of[1][i] = MODEL_NONE;
	}
	for (uint32_t i = 0; i < timeline->tracks.count; i++) {
		const struct timeline_track *track = &timeline->tracks.items[i];

		if (track->trace_track != MODEL_NONE)
			timeline->sources.items[track->source]
				.track_of[track->kind == TIMELINE_PYTHON][track->trace_track] = i;
	}
}

static void find_end(struct timeline *timeline)
{
	array_foreach (&timeline->tracks, track) {
		const struct counter *counter = &track->counter;

		for (size_t i = 0; i < track->lane_count; i++) {
			const struct lane *lane = &track->lanes[i].lane;
			struct lane_slice last = lane->slice(lane->context, lane->count - 1);

			timeline->end_ns = MAX(timeline->end_ns, last.start_ns + last.duration_ns);
		}
		if (counter->points.count && !track->is_rate)
			timeline->end_ns = MAX(timeline->end_ns,
				counter->points.items[counter->points.count - 1].time_ns);
	}
}

static int fill(struct timeline *timeline)
{
	int r = 0;

	array_foreach (&timeline->tracks, track) {
		if (r == 0 && track->trace_track != MODEL_NONE)
			r = timeline_fill_rows(timeline, track);
	}
	if (r == 0)
		r = timeline_fill_samples(timeline);
	if (r == 0)
		find_end(timeline);
	return r;
}

static int make(struct timeline *timeline)
{
	int r = add_sources(timeline);

	if (r < 0)
		return r;
	timeline->first_function = timeline->name_count;
	timeline->first_wait =
		timeline->first_function + (uint32_t)timeline->model->functions.count;
	timeline->name_count = timeline->first_wait + WIRE_WAIT_MAX;
	find_offsets(timeline);
	r = timeline_add_row_tracks(timeline);
	if (r == 0)
		r = timeline_add_sample_tracks(timeline);
	if (r == 0)
		r = timeline_add_counters(timeline);
	if (r < 0)
		return r;
	order_tracks(timeline);
	return fill(timeline);
}

int timeline_new(struct timeline **ret_timeline, const struct query *query, struct errmsg *err)
{
	_cleanup_timeline_ struct timeline *timeline = calloc(1, sizeof(*timeline));

	if (timeline)
		timeline->model = query->model;
	if (!timeline || make(timeline) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while making the timeline of %s",
			query->paths[0]);
	if (!timeline->tracks.count)
		return errmsg_set(err, -ENODATA,
			"%s has nothing for a timeline: no samples, rows or counters",
			query->paths[0]);
	*ret_timeline = TAKE_PTR(timeline);
	return 0;
}

static void track_done(struct timeline_track *track)
{
	for (size_t i = 0; i < track->lane_count; i++) {
		lane_done(&track->lanes[i].lane);
		free(track->lanes[i].places);
	}
	free(track->lanes);
	counter_done(&track->counter);
}

struct timeline *timeline_free(struct timeline *timeline)
{
	if (!timeline)
		return NULL;
	array_foreach (&timeline->tracks, track)
		track_done(track);
	array_done(&timeline->tracks);
	array_foreach (&timeline->sources, source) {
		free(source->lanes);
		free(source->track_of[0]);
		free(source->track_of[1]);
	}
	array_done(&timeline->sources);
	intern_done(&timeline->texts);
	trace_free(timeline->own);
	free(timeline);
	return NULL;
}

void timeline_freep(struct timeline **timeline)
{
	*timeline = timeline_free(*timeline);
}

/* ---- what there is ---- */

static void write_number(struct json_writer *json, const char *key, int64_t number)
{
	json_key(json, key);
	if (number == TRACE_NO_NUMBER)
		json_null(json);
	else
		json_i64(json, number);
}

static void write_track(const struct timeline *timeline, uint32_t id, struct json_writer *json)
{
	static const char *const kinds[TIMELINE_KIND_MAX] = {
		[TIMELINE_THREAD] = "thread",
		[TIMELINE_PYTHON] = "python",
		[TIMELINE_SAMPLES] = "samples",
		[TIMELINE_STREAM] = "stream",
		[TIMELINE_COUNTER] = "counter",
	};
	const struct timeline_track *track = &timeline->tracks.items[id];
	const struct trace *trace = timeline->sources.items[track->source].trace;

	json_begin_object(json);
	json_member_u64(json, "id", id);
	json_member_text(json, "kind", kinds[track->kind]);
	json_member_text(json, "name", track->name);
	json_member_text(json, "process", track->process);
	write_number(json, "pid", track->pid);
	write_number(json, "tid", track->tid);
	json_member_known(json, "rank", trace->rank != MODEL_NONE, trace->rank);
	json_member_u64(json, "lanes", track->lane_count);
	json_member_u64(json, "slices", track->slices);
	json_member_u64(json, "too_deep", track->too_deep);
	if (track->kind == TIMELINE_COUNTER && track->counter.points.count) {
		json_member_double(json, "minimum", track->counter.all.minimum);
		json_member_double(json, "maximum", track->counter.all.maximum);
	}
	json_end_object(json);
}

int timeline_tracks(const struct timeline *timeline, uint64_t version, struct strbuf *out)
{
	struct json_writer json = {.out = out};
	char text[17];

	snprintf(text, sizeof(text), "%016llx", (unsigned long long)version);
	json_begin_object(&json);
	json_member_text(&json, "version", text);
	json_member_u64(&json, "duration_ns", (uint64_t)timeline->end_ns);
	json_key(&json, "tracks");
	json_begin_array(&json);
	for (uint32_t i = 0; i < timeline->tracks.count; i++)
		write_track(timeline, i, &json);
	json_end_array(&json);
	json_end_object(&json);
	return strbuf_status(out);
}

/* ---- names ---- */

void timeline_write_name(const struct timeline *timeline, uint32_t name, struct json_writer *json)
{
	if (name >= timeline->name_count) {
		json_null(json);
	} else if (name == timeline->first_wait) {
		json_string(json, "[no stack]");
	} else if (name > timeline->first_wait) {
		_cleanup_strbuf_ struct strbuf text = {0};

		strbuf_addf(&text, "[waiting: %s]", wire_wait_name(name - timeline->first_wait));
		json_string(json, strbuf_cstr(&text));
		strbuf_inherit_status(json->out, &text);
	} else if (name >= timeline->first_function) {
		json_string(json,
			timeline->model->functions.items[name - timeline->first_function].name);
	} else {
		size_t i = timeline->sources.count - 1;

		while (timeline->sources.items[i].first_name > name)
			i--;
		json_string(json, trace_text(timeline->sources.items[i].trace,
					  name - timeline->sources.items[i].first_name));
	}
}

int timeline_names(const struct timeline *timeline, const uint32_t *names, size_t count,
	struct strbuf *out, struct errmsg *err)
{
	struct json_writer json = {.out = out};

	if (count > TIMELINE_NAMES_MAX)
		return errmsg_set(err, -EINVAL, "%zu names are too many at once: ask for %d", count,
			TIMELINE_NAMES_MAX);
	json_begin_array(&json);
	for (size_t i = 0; i < count; i++)
		timeline_write_name(timeline, names[i], &json);
	json_end_array(&json);
	if (strbuf_status(out) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while writing names");
	return 0;
}
