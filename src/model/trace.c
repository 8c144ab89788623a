/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/sort_runs.h"

const struct trace_work trace_no_work = {
	.device = TRACE_NO_NUMBER,
	.context = TRACE_NO_NUMBER,
	.stream = TRACE_NO_NUMBER,
	.queued_ns = TRACE_NO_NUMBER,
	.wait_stream = TRACE_NO_NUMBER,
	.wait_event = TRACE_NO_NUMBER,
	.collective = MODEL_NONE,
};

const struct trace_op trace_no_op = {
	.rf_id = TRACE_NO_ID,
	.sequence = TRACE_NO_NUMBER,
	.forward_thread = TRACE_NO_NUMBER,
	.ev_idx = TRACE_NO_NUMBER,
	.python_id = TRACE_NO_NUMBER,
	.python_parent_id = TRACE_NO_NUMBER,
	.python_module_id = TRACE_NO_NUMBER,
	.collective = MODEL_NONE,
};

const struct trace_memory trace_no_memory = {
	.bytes = TRACE_NO_NUMBER,
	.total_allocated = TRACE_NO_NUMBER,
	.total_reserved = TRACE_NO_NUMBER,
	.device_type = TRACE_NO_NUMBER,
	.device_id = TRACE_NO_NUMBER,
};

/* ---- what lies in what: made when it is asked for ---- */

struct trace_parents {
	pthread_mutex_t lock;
	uint32_t *of[2]; /* with Python functions, or without; NULL: not made yet */
};

static struct trace_parents *parents_new(void)
{
	struct trace_parents *parents = calloc(1, sizeof(*parents));

	if (parents)
		pthread_mutex_init(&parents->lock, NULL);
	return parents;
}

static void parents_forget(struct trace_parents *parents)
{
	for (size_t i = 0; i < ARRAY_SIZE(parents->of); i++) {
		free(parents->of[i]);
		parents->of[i] = NULL;
	}
}

static void parents_free(struct trace_parents *parents)
{
	if (!parents)
		return;
	parents_forget(parents);
	pthread_mutex_destroy(&parents->lock);
	free(parents);
}

/* ---- */

struct trace *trace_new(const char *path)
{
	_cleanup_trace_ struct trace *trace = calloc(1, sizeof(*trace));
	uint32_t empty;

	if (!trace)
		return NULL;
	trace->path = strdup(path);
	trace->parents = parents_new();
	trace->rank = MODEL_NONE;
	if (!trace->path || !trace->parents || intern_add(&trace->strings, "", 0, &empty) < 0)
		return NULL;
	return TAKE_PTR(trace);
}

struct trace *trace_free(struct trace *trace)
{
	if (!trace)
		return NULL;
	free((char *)trace->path);
	array_done(&trace->events);
	array_done(&trace->tracks);
	array_done(&trace->ops);
	array_done(&trace->works);
	array_done(&trace->collectives);
	array_done(&trace->memory);
	array_done(&trace->call_stacks);
	array_done(&trace->flows);
	array_done(&trace->counters);
	array_done(&trace->groups);
	array_done(&trace->devices);
	array_done(&trace->notes);
	parents_free(trace->parents);
	array_done(&trace->rows);
	id_map_done(&trace->launches);
	intern_done(&trace->strings);
	free(trace);
	return NULL;
}

void trace_freep(struct trace **trace)
{
	*trace = trace_free(*trace);
}

/* Longer ones first, so that rows come behind those that they lie in; then by the file. */
static bool row_is_before(const void *context, uint32_t a, uint32_t b)
{
	const struct trace_event *left = (const struct trace_event *)context + a;
	const struct trace_event *right = (const struct trace_event *)context + b;
	int64_t left_end_ns, right_end_ns;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns;
	left_end_ns = trace_end_ns(left);
	right_end_ns = trace_end_ns(right);
	return left_end_ns != right_end_ns ? left_end_ns > right_end_ns : a < b;
}

/* Gives each track its piece of `rows`, in the file's order. */
static int deal_rows(struct trace *trace)
{
	uint32_t first = 0;
	int r;

	array_clear(&trace->rows);
	r = array_reserve(&trace->rows, trace->events.count);
	if (r < 0)
		return r;
	trace->rows.count = trace->events.count;
	array_foreach (&trace->tracks, track)
		track->count = 0;
	array_foreach (&trace->events, event)
		trace->tracks.items[event->track].count++;
	array_foreach (&trace->tracks, track) {
		track->first = first;
		first += track->count;
		track->count = 0;
	}
	for (uint32_t i = 0; i < trace->events.count; i++) {
		struct trace_track *track = &trace->tracks.items[trace->events.items[i].track];

		trace->rows.items[track->first + track->count++] = i;
	}
	return 0;
}

static bool is_call(const struct trace_event *event)
{
	return event->category == TRACE_RUNTIME || event->category == TRACE_DRIVER;
}

static bool has_correlation(const struct trace_event *event)
{
	return is_call(event) && event->correlation;
}

static int index_launches(struct trace *trace)
{
	uint64_t first = UINT64_MAX, last = 0;
	size_t count = 0;
	int r;

	array_foreach (&trace->events, event) {
		if (!has_correlation(event))
			continue;
		count++;
		first = MIN(first, event->correlation);
		last = MAX(last, event->correlation);
	}
	id_map_done(&trace->launches);
	trace->repeated_correlations = 0;
	r = id_map_init(&trace->launches, first, last, count);
	for (uint32_t i = 0; r == 0 && i < trace->events.count; i++) {
		const struct trace_event *event = &trace->events.items[i];

		if (!has_correlation(event))
			continue;
		trace->repeated_correlations +=
			id_map_get(&trace->launches, event->correlation, NULL);
		r = id_map_set(&trace->launches, event->correlation, i);
	}
	return r;
}

/* ---- all tracks, side by side where that pays ---- */

#define ROWS_FOR_THREADS 500000

/* With the indices 0 … tracks.count: one more than there are tracks. */
static void for_each_track(
	const struct trace *trace, void (*run)(size_t index, void *context), void *context)
{
	if (trace->events.count >= ROWS_FOR_THREADS) {
		parallel_each(trace->tracks.count + 1, run, context);
		return;
	}
	for (size_t i = 0; i <= trace->tracks.count; i++)
		run(i, context);
}

struct finishing {
	struct trace *trace;
	atomic_int status;
};

static int sort_track(struct trace *trace, const struct trace_track *track)
{
	_cleanup_free_ uint32_t *room = malloc(((size_t)track->count + 1) * sizeof(*room));

	if (!room)
		return -ENOMEM;
	sort_runs(trace->rows.items + track->first, track->count, room, row_is_before,
		trace->events.items);
	return 0;
}

static void finish_one(size_t index, void *context)
{
	struct finishing *finishing = context;
	struct trace *trace = finishing->trace;
	int r = 0;

	if (index == 0)
		r = index_launches(trace);
	else if (trace->tracks.items[index - 1].count > 1)
		r = sort_track(trace, &trace->tracks.items[index - 1]);
	if (r < 0)
		finishing->status = r;
}

int trace_finish(struct trace *trace)
{
	struct finishing finishing = {.trace = trace};
	int r = deal_rows(trace);

	parents_forget(trace->parents);
	if (r < 0)
		return r;
	for_each_track(trace, finish_one, &finishing);
	return finishing.status;
}

/* ---- lines of one owner ---- */

/* Which track gets the rows of each; equal keys have one owner. */
static int find_owners(const struct trace *trace, struct intern *keys, uint32_t *owners)
{
	for (uint32_t i = 0; i < trace->tracks.count; i++) {
		const struct trace_track *track = &trace->tracks.items[i];
		bool is_line = track->owner_tid != 0;
		const int64_t key[] = {track->pid, is_line ? track->owner_tid : track->tid,
			track->pid_text, is_line ? 0 : track->tid_text};
		int r = intern_add(keys, key, sizeof(key), &owners[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

/* `owners`: keys, and afterwards tracks: the thread's own where it has one. */
static int name_owners(const struct trace *trace, size_t keys, uint32_t *owners)
{
	_cleanup_free_ uint32_t *tracks = malloc((keys + 1) * sizeof(*tracks));

	if (!tracks)
		return -ENOMEM;
	for (size_t i = trace->tracks.count; i-- > 0;)
		tracks[owners[i]] = (uint32_t)i;
	for (size_t i = trace->tracks.count; i-- > 0;) {
		if (!trace->tracks.items[i].owner_tid)
			tracks[owners[i]] = (uint32_t)i;
	}
	for (size_t i = 0; i < trace->tracks.count; i++)
		owners[i] = tracks[owners[i]];
	return 0;
}

static bool has_lines(const struct trace *trace)
{
	array_foreach (&trace->tracks, track) {
		if (track->owner_tid)
			return true;
	}
	return false;
}

int trace_join_lines(struct trace *trace)
{
	_cleanup_free_ uint32_t *owners = NULL;
	struct intern keys = {0};
	int r;

	if (!has_lines(trace))
		return 0;
	owners = malloc(trace->tracks.count * sizeof(*owners));
	if (!owners)
		return -ENOMEM;
	r = find_owners(trace, &keys, owners);
	if (r == 0)
		r = name_owners(trace, keys.entries.count, owners);
	intern_done(&keys);
	if (r < 0)
		return r;
	array_foreach (&trace->events, event)
		event->track = owners[event->track];
	array_foreach (&trace->flows, flow)
		flow->track = owners[flow->track];
	return trace_finish(trace);
}

/* ---- rows ---- */

const char *trace_counter_series(const struct trace *trace, const struct trace_counter *counter)
{
	const char *series = trace_text(trace, counter->series);

	return counter->series == counter->name || strcmp(series, TRACE_COUNTER_SERIES) == 0
		       ? ""
		       : series;
}

const struct trace_work *trace_work(const struct trace *trace, const struct trace_event *event)
{
	bool has = trace_is_work(event) || event->category == TRACE_SYNC ||
		   event->category == TRACE_GPU_ANNOTATION;

	return has && event->detail != MODEL_NONE ? &trace->works.items[event->detail] : NULL;
}

const struct trace_op *trace_op(const struct trace *trace, const struct trace_event *event)
{
	bool has = event->category <= TRACE_DRIVER || event->category == TRACE_OVERHEAD;

	return has && event->detail != MODEL_NONE ? &trace->ops.items[event->detail] : NULL;
}

int trace_others_each(const struct trace *trace, uint32_t others,
	int (*take)(void *userdata, const struct json_text *key, const struct json_text *value),
	void *userdata)
{
	_cleanup_strbuf_ struct strbuf object = {0};
	struct json_reader reader = {.is_last = true};
	struct json_text key, value;
	int r = 0;

	if (!others)
		return 0;
	strbuf_addf(&object, "{%s}", trace_text(trace, others));
	if (strbuf_status(&object) < 0)
		return -ENOMEM;
	reader.at = object.data;
	reader.end = object.data + object.length;
	if (json_reader_enter(&reader, '{') != JSON_OK)
		return 0;
	while (r >= 0 && json_reader_member(&reader, &key) == JSON_OK &&
		json_reader_value(&reader, &value) == JSON_OK)
		r = take(userdata, &key, &value);
	return MIN(r, 0);
}

uint32_t trace_launch(const struct trace *trace, const struct trace_event *work)
{
	uint64_t row;

	if (!work->correlation || !id_map_get(&trace->launches, work->correlation, &row))
		return MODEL_NONE;
	return (uint32_t)row;
}

uint32_t trace_origin(const struct trace *trace, const struct trace_event *work)
{
	const struct trace_work *detail = trace_work(trace, work);

	return detail && detail->captured_by ? detail->captured_by - 1 : trace_launch(trace, work);
}

static bool can_enclose(const struct trace_event *event, bool python)
{
	if (event->duration_ns == TRACE_NO_DURATION)
		return false;
	return event->category == TRACE_CPU_OP || event->category == TRACE_USER_ANNOTATION ||
	       is_call(event) || (python && event->category == TRACE_PYTHON_FUNCTION);
}

/*
 * `open` holds rows that have not ended, each in the one before it. A row that ends while a later
 * one goes on encloses nothing any more that the later one does not.
 */
static void find_parents(const struct trace *trace, const struct trace_track *track, bool python,
	uint32_t *open, uint32_t *parents)
{
	uint32_t depth = 0;

	for (uint32_t i = 0; i < track->count; i++) {
		uint32_t row = trace->rows.items[track->first + i];
		const struct trace_event *event = &trace->events.items[row];
		bool encloses = can_enclose(event, python);

		if (!encloses && event->category != TRACE_CPU_INSTANT)
			continue;
		while (depth) {
			const struct trace_event *top = &trace->events.items[open[depth - 1]];
			int64_t end_ns = trace_end_ns(top);

			if (end_ns > event->start_ns && end_ns >= trace_end_ns(event))
				break;
			if (end_ns == event->start_ns && top->start_ns == event->start_ns &&
				trace_end_ns(event) == end_ns)
				break;
			depth--;
		}
		if (depth)
			parents[row] = open[depth - 1];
		if (encloses)
			open[depth++] = row;
	}
}

struct finding {
	const struct trace *trace;
	uint32_t *parents;
	bool python;
	atomic_int status;
};

static void find_parents_in(size_t index, void *context)
{
	struct finding *finding = context;
	const struct trace_track *track = &finding->trace->tracks.items[index];
	_cleanup_free_ uint32_t *open = NULL;

	if (index == finding->trace->tracks.count || !track->count)
		return;
	open = malloc(track->count * sizeof(*open));
	if (open)
		find_parents(finding->trace, track, finding->python, open, finding->parents);
	else
		finding->status = -ENOMEM;
}

static uint32_t *make_parents(const struct trace *trace, bool python)
{
	size_t size = (trace->events.count + 1) * sizeof(uint32_t);
	_cleanup_free_ uint32_t *parents = malloc(size);
	struct finding finding = {.trace = trace, .parents = parents, .python = python};

	if (!parents)
		return NULL;
	memset(parents, 0xff, size);
	for_each_track(trace, find_parents_in, &finding);
	return finding.status < 0 ? NULL : TAKE_PTR(parents);
}

static bool has_python(const struct trace *trace)
{
	array_foreach (&trace->events, event) {
		if (event->category == TRACE_PYTHON_FUNCTION)
			return true;
	}
	return false;
}

const uint32_t *trace_parents(const struct trace *trace, bool python)
{
	bool differs = python && has_python(trace);
	struct trace_parents *parents = trace->parents;
	const uint32_t *found;

	pthread_mutex_lock(&parents->lock);
	if (!parents->of[differs])
		parents->of[differs] = make_parents(trace, differs);
	found = parents->of[differs];
	pthread_mutex_unlock(&parents->lock);
	return found;
}

bool trace_is_xla(const struct trace *trace)
{
	array_foreach (&trace->tracks, track) {
		const char *process = trace_text(trace, track->process_name);

		if (strncmp(process, "/device:", strlen("/device:")) == 0 ||
			strncmp(process, "/host:CPU", strlen("/host:CPU")) == 0)
			return true;
	}
	return false;
}
