/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/host_waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/device/trace_idle.h"
#include "analyses/trace_order.h"

const char *trace_host_waits_kind(const struct trace_host_waits_row *row)
{
	static const char *const kinds[TRACE_CATEGORY_MAX] = {
		[TRACE_CPU_OP] = "operator",
		[TRACE_USER_ANNOTATION] = "annotation",
		[TRACE_PYTHON_FUNCTION] = "python",
		[TRACE_RUNTIME] = "call",
		[TRACE_DRIVER] = "call",
	};

	return kinds[row->category] ? kinds[row->category] : "";
}

/* Part of a gap that a thread is charged for. */
struct gap {
	int64_t start_ns, end_ns;
	uint64_t number; /* of all views, from 1 on */
};

/* The gaps of one thread, by time, and its rows that are open. */
struct sweep {
	struct trace_host_waits *waits;
	const struct trace *trace;
	struct gap *gaps;
	size_t gap_count, passed; /* the first `passed` gaps are over */
	uint32_t *open;
	size_t depth;
	int64_t at_ns;
	uint32_t *rows; /* by name and category of this trace: the row, + 1; 0: not known yet */
};

static int add_row(struct sweep *sweep, const struct trace_event *event, uint32_t *ret_row)
{
	const char *name = event ? trace_text(sweep->trace, event->name) : NULL;
	_cleanup_strbuf_ struct strbuf key = {0};
	int r;

	strbuf_add_char(&key, (char)(event ? event->category + 1 : 0));
	strbuf_add(&key, name ? name : "");
	r = strbuf_status(&key);
	r = r ?: intern_add(&sweep->waits->names, key.data, key.length, ret_row);
	if (r <= 0)
		return r;
	return array_append(&sweep->waits->rows,
		(struct trace_host_waits_row){
			.name = name,
			.category = event ? (enum trace_category)event->category : TRACE_OTHER,
		});
}

/* Rows of the host have categories up to TRACE_DRIVER; 0 is that of none. */
static int find_row(struct sweep *sweep, const struct trace_event *event, uint32_t *ret_row)
{
	size_t key = event ? (size_t)event->name * (TRACE_DRIVER + 1) + event->category : 0;
	int r = 0;

	if (!sweep->rows[key]) {
		r = add_row(sweep, event, ret_row);
		sweep->rows[key] = *ret_row + 1;
	}
	*ret_row = sweep->rows[key] - 1;
	return r;
}

/* The innermost row, or none, from where the sweep is to `end_ns`. */
static int pass_time(struct sweep *sweep, int64_t end_ns)
{
	const struct trace_event *top =
		sweep->depth ? &sweep->trace->events.items[sweep->open[sweep->depth - 1]] : NULL;
	int64_t start_ns = sweep->at_ns;
	uint32_t row = 0;
	int r = 0;

	if (end_ns <= start_ns)
		return 0;
	sweep->at_ns = end_ns;
	while (sweep->passed < sweep->gap_count && sweep->gaps[sweep->passed].end_ns <= start_ns)
		sweep->passed++;
	for (size_t i = sweep->passed;
		r == 0 && i < sweep->gap_count && sweep->gaps[i].start_ns < end_ns; i++) {
		struct gap *gap = &sweep->gaps[i];
		struct trace_host_waits_row *charged;

		if (i == sweep->passed)
			r = find_row(sweep, top, &row);
		if (r < 0)
			break;
		charged = &sweep->waits->rows.items[row];
		charged->time_ns += MIN(gap->end_ns, end_ns) - MAX(gap->start_ns, start_ns);
		charged->gaps += charged->last_gap != gap->number;
		charged->last_gap = gap->number;
	}
	return r;
}

static bool is_host_row(const struct trace_event *event)
{
	return event->duration_ns != TRACE_NO_DURATION && event->category != TRACE_OTHER &&
	       event->category <= TRACE_DRIVER;
}

/* Ends the open rows that do so up to `time_ns`. */
static int close_rows(struct sweep *sweep, int64_t time_ns)
{
	int r = 0;

	while (r == 0 && sweep->depth) {
		int64_t end_ns =
			trace_end_ns(&sweep->trace->events.items[sweep->open[sweep->depth - 1]]);

		if (end_ns > time_ns)
			break;
		r = pass_time(sweep, end_ns);
		sweep->depth--;
	}
	return r ?: pass_time(sweep, time_ns);
}

static int sweep_track(struct sweep *sweep, const struct trace_track *track)
{
	int r = 0;

	sweep->at_ns = INT64_MIN;
	for (uint32_t i = 0; r == 0 && i < track->count; i++) {
		uint32_t row = sweep->trace->rows.items[track->first + i];
		const struct trace_event *event = &sweep->trace->events.items[row];

		if (!is_host_row(event))
			continue;
		r = close_rows(sweep, event->start_ns);
		sweep->open[sweep->depth++] = row;
	}
	return r ?: close_rows(sweep, INT64_MAX);
}

/* ---- gaps of threads ---- */

/* What threads are charged for; `tracks` gets the threads. Returns how many gaps there are. */
static size_t collect_gaps(struct trace_host_waits *waits, const struct trace_view *view,
	const struct trace_idle *idle, struct gap *gaps, int64_t *tracks)
{
	size_t count = 0;

	array_foreach (&idle->gaps, gap) {
		uint32_t launch = view->works.items[gap->next].launch;

		if ((gap->cause != TRACE_IDLE_HOST && gap->cause != TRACE_IDLE_BLOCKED) ||
			idle->places.items[gap->place].stream != MODEL_NONE)
			continue;
		tracks[count] = view->trace->events.items[launch].track;
		gaps[count++] = (struct gap){
			.start_ns = gap->start_ns,
			.end_ns = gap->end_ns,
			.number = ++waits->gaps,
		};
	}
	return count;
}

/* Gaps of several devices may overlap: each device's come by time, one device after the other. */
static int sort_gaps(struct gap *gaps, int64_t *tracks, size_t count)
{
	_cleanup_free_ struct gap *unsorted = malloc((count + 1) * sizeof(*unsorted));
	_cleanup_free_ uint32_t *order = malloc((count + 1) * sizeof(*order));
	_cleanup_free_ int64_t *keys = malloc((count + 1) * sizeof(*keys));
	_cleanup_free_ int64_t *old = malloc((count + 1) * sizeof(*old));
	int r = unsorted && order && keys && old ? 0 : -ENOMEM;

	for (int pass = 0; r == 0 && pass < 2; pass++) {
		for (size_t i = 0; i < count; i++) {
			unsorted[i] = gaps[i];
			old[i] = tracks[i];
			keys[i] = pass ? tracks[i] : gaps[i].start_ns;
		}
		r = trace_order_stable(keys, order, count);
		for (size_t i = 0; r == 0 && i < count; i++) {
			gaps[i] = unsorted[order[i]];
			tracks[i] = old[order[i]];
		}
	}
	return r;
}

static int sweep_gaps(struct sweep *sweep, struct gap *gaps, const int64_t *tracks, size_t count)
{
	uint32_t longest = 0;
	size_t next;
	int r = 0;

	array_foreach (&sweep->trace->tracks, track)
		longest = MAX(longest, track->count);
	sweep->open = malloc(((size_t)longest + 1) * sizeof(*sweep->open));
	if (!sweep->open)
		return -ENOMEM;
	for (size_t first = 0; r == 0 && first < count; first = next) {
		for (next = first; next < count && tracks[next] == tracks[first]; next++)
			sweep->waits->time_ns += gaps[next].end_ns - gaps[next].start_ns;
		sweep->gaps = gaps + first;
		sweep->gap_count = next - first;
		sweep->passed = 0;
		r = sweep_track(sweep, &sweep->trace->tracks.items[tracks[first]]);
	}
	free(sweep->open);
	return r;
}

int trace_host_waits_add(struct trace_host_waits *waits, const struct trace_view *view,
	const struct trace_idle *idle)
{
	struct sweep sweep = {.waits = waits, .trace = view->trace};
	_cleanup_free_ struct gap *gaps = calloc(idle->gaps.count + 1, sizeof(*gaps));
	_cleanup_free_ int64_t *tracks = calloc(idle->gaps.count + 1, sizeof(*tracks));
	_cleanup_free_ uint32_t *rows =
		calloc(view->trace->strings.entries.count * (TRACE_DRIVER + 1) + 1, sizeof(*rows));
	size_t count;
	int r;

	if (view->options.hta_compatible)
		return 0;
	if (!gaps || !tracks || !rows)
		return -ENOMEM;
	sweep.rows = rows;
	count = collect_gaps(waits, view, idle, gaps, tracks);
	r = sort_gaps(gaps, tracks, count);
	return r ?: sweep_gaps(&sweep, gaps, tracks, count);
}

static int compare_rows(const void *left, const void *right)
{
	const struct trace_host_waits_row *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	return strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

void trace_host_waits_finish(struct trace_host_waits *waits)
{
	intern_done(&waits->names);
	if (waits->rows.count)
		qsort(waits->rows.items, waits->rows.count, sizeof(*waits->rows.items),
			compare_rows);
}

void trace_host_waits_done(struct trace_host_waits *waits)
{
	array_done(&waits->rows);
	intern_done(&waits->names);
}
