/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/path.h"

/* ---- what names say ---- */

/* Calls of CUDA, HIP and others that may wait: cudaMemcpyAsync() does for memory that is paged. */
static uint8_t flags_of(const char *name)
{
	bool blocks = strcasestr(name, "synchronize") || strstr(name, "Memcpy");
	bool loads = strncmp(name, "enumerate(DataLoader)", strlen("enumerate(DataLoader)")) == 0;

	return (uint8_t)((blocks ? TRACE_PATH_BLOCKING : 0) | (loads ? TRACE_PATH_LOADING : 0));
}

static int read_names(struct trace_path_source *source)
{
	const struct intern *strings = &source->trace->strings;

	source->names = calloc(strings->entries.count + 1, sizeof(*source->names));
	if (!source->names)
		return -ENOMEM;
	for (uint32_t i = 0; i < strings->entries.count; i++)
		source->names[i] = flags_of(intern_get(strings, i));
	return 0;
}

/* ---- rows of threads ---- */

/* Those that the path can lead through. */
static bool is_row(const struct trace_path_source *source, const struct trace_event *event)
{
	if (event->duration_ns == TRACE_NO_DURATION || !trace_view_has(source->view, event))
		return false;
	return event->category == TRACE_CPU_OP || event->category == TRACE_RUNTIME ||
	       event->category == TRACE_DRIVER ||
	       (event->category == TRACE_USER_ANNOTATION &&
		       (source->names[event->name] & TRACE_PATH_LOADING));
}

static int add_row(struct trace_path_source *source, uint32_t event, int64_t latest_ns)
{
	const struct trace_event *item = &source->trace->events.items[event];
	struct trace_path_row row = {
		.start_ns = trace_view_start_ns(source->view, item),
		.end_ns = trace_view_end_ns(source->view, item),
		.event = event,
	};

	if (row.end_ns > latest_ns) {
		row.end_ns = latest_ns;
		source->paths->clipped_rows++;
	}
	return array_append(&source->rows, row);
}

/* Rows end at the latest when the row ends that they lie in: `ends` holds those that are open. */
static int add_track(
	struct trace_path_source *source, const struct trace_track *track, int64_t *ends)
{
	uint32_t depth = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < track->count; i++) {
		uint32_t event = source->trace->rows.items[track->first + i];
		const struct trace_event *item = &source->trace->events.items[event];

		if (!is_row(source, item))
			continue;
		while (depth && ends[depth - 1] <= item->start_ns)
			depth--;
		r = add_row(source, event, depth ? ends[depth - 1] : INT64_MAX);
		if (r == 0)
			ends[depth++] = source->rows.items[source->rows.count - 1].end_ns;
	}
	return r;
}

static int compare_rows(const void *left, const void *right)
{
	const struct trace_path_row *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->event < b->event ? -1 : 1;
}

static int add_rows(struct trace_path_source *source)
{
	const struct trace *trace = source->trace;
	_cleanup_free_ int64_t *ends = NULL;
	uint32_t longest = 0;
	int r = 0;

	array_foreach (&trace->tracks, track)
		longest = MAX(longest, track->count);
	ends = malloc(((size_t)longest + 1) * sizeof(*ends));
	if (!ends)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < trace->tracks.count; i++)
		r = add_track(source, &trace->tracks.items[i], ends);
	if (source->rows.count)
		qsort(source->rows.items, source->rows.count, sizeof(*source->rows.items),
			compare_rows);
	return r;
}

/* ---- threads ---- */

struct place {
	int64_t pid, tid;
	uint32_t track;
};

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->track < b->track ? -1 : 1;
}

uint32_t *trace_path_places(const struct trace *trace)
{
	size_t count = trace->tracks.count;
	_cleanup_free_ struct place *sorted = malloc((count + 1) * sizeof(*sorted));
	uint32_t *places = sorted ? malloc((count + 1) * sizeof(*places)) : NULL;

	if (!places)
		return NULL;
	for (uint32_t i = 0; i < count; i++)
		sorted[i] =
			(struct place){trace->tracks.items[i].pid, trace->tracks.items[i].tid, i};
	qsort(sorted, count, sizeof(*sorted), compare_places);
	for (uint32_t i = 0; i < count; i++)
		places[sorted[i].track] = i;
	return places;
}

/* ---- threads that follow each other ---- */

/* The forward pass on one thread led to the backward pass on another so many times. */
struct pass {
	uint32_t backward, forward; /* tracks */
	uint64_t count;
};

struct passes {
	ARRAY_OF(struct pass) items;
};

static int compare_passes(const void *left, const void *right)
{
	const struct pass *a = left, *b = right;

	if (a->backward != b->backward)
		return a->backward < b->backward ? -1 : 1;
	return a->forward < b->forward ? -1 : a->forward > b->forward;
}

/* From an operator to the one of its gradient. */
static int find_passes(const struct trace *trace, struct passes *passes)
{
	struct map_u64 starts = {0};
	uint32_t name;
	uint64_t from;
	int r = 0;

	if (!intern_find(
		    &trace->strings, TRACE_FLOW_TO_BACKWARD, strlen(TRACE_FLOW_TO_BACKWARD), &name))
		return 0;
	array_foreach (&trace->flows, flow) {
		if (r == 0 && flow->category_name == name && !flow->is_end)
			r = map_u64_set(&starts, flow->id, flow->track);
	}
	array_foreach (&trace->flows, flow) {
		if (r < 0 || flow->category_name != name || !flow->is_end ||
			!map_u64_get(&starts, flow->id, &from) || from == flow->track)
			continue;
		if (trace->tracks.items[from].pid == trace->tracks.items[flow->track].pid)
			r = array_append(
				&passes->items, (struct pass){flow->track, (uint32_t)from, 1});
	}
	map_u64_done(&starts);
	return r;
}

/* A backward thread belongs to the thread that most of its operators come from. */
static void group_tracks(struct trace_path_source *source, struct passes *passes)
{
	struct pass best = {0}, run = {0};

	if (passes->items.count)
		qsort(passes->items.items, passes->items.count, sizeof(*passes->items.items),
			compare_passes);
	for (size_t i = 0; i <= passes->items.count; i++) {
		const struct pass *pass = i < passes->items.count ? &passes->items.items[i] : NULL;

		if (pass && run.count && compare_passes(pass, &run) == 0) {
			run.count++;
			continue;
		}
		if (run.count > best.count)
			best = run;
		if (best.count && (!pass || pass->backward != best.backward)) {
			/* Each runs parts of the other: neither follows the other. */
			if (source->groups[best.forward] == best.forward)
				source->groups[best.backward] = best.forward;
			best = (struct pass){0};
		}
		if (pass)
			run = *pass;
	}
}

static int make_groups(struct trace_path_source *source)
{
	struct passes passes = {0};
	int r;

	source->groups = malloc((source->trace->tracks.count + 1) * sizeof(*source->groups));
	if (!source->groups)
		return -ENOMEM;
	for (uint32_t i = 0; i < source->trace->tracks.count; i++)
		source->groups[i] = i;
	r = find_passes(source->trace, &passes);
	if (r == 0)
		group_tracks(source, &passes);
	array_done(&passes.items);
	return r;
}

/* ---- */

int trace_path_source_init(struct trace_path_source *source, const struct trace_view *view,
	struct critical_paths *paths)
{
	int r;

	*source = (struct trace_path_source){
		.view = view,
		.trace = view->trace,
		.paths = paths,
		.places = trace_path_places(view->trace),
		.blocked = calloc(view->trace->events.count + 1, sizeof(*source->blocked)),
	};
	r = source->places && source->blocked ? read_names(source) : -ENOMEM;
	r = r ?: add_rows(source);
	r = r ?: make_groups(source);
	return r ?: trace_path_waits_init(source);
}

void trace_path_source_done(struct trace_path_source *source)
{
	trace_path_waits_done(source);
	free(source->names);
	free(source->groups);
	free(source->places);
	free(source->blocked);
	array_done(&source->rows);
	array_done(&source->launched);
}
