/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/idle_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/charge.h"
#include "analyses/program/trace_frames.h"
#include "analyses/trace_order.h"

const char *idle_row_kind(const struct idle_row *row)
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

/* Part of a gap of a device, by who is charged for it. There may be millions. */
struct part {
	int64_t start_ns;
	uint32_t gap;  /* index in idle->gaps */
	int32_t track; /* of the thread; -1: it is not the host's */
};

struct open_row {
	uint32_t row;
	uint32_t
		python; /* the innermost of the user's own functions, it or around it; MODEL_NONE */
	bool loads_data; /* it, or a row around it */
};

/* The parts of one thread, by time, and its rows that are open. */
struct sweep {
	struct idle_rows *rows;
	const struct trace *trace;
	const struct device_idle *idle;
	const struct part *parts;
	size_t part_count, passed; /* the first `passed` parts are over */
	struct open_row *open;
	size_t depth;
	int64_t at_ns;
	uint64_t works_before; /* of earlier views: a gap's number is that of the work that ended it
				*/
	uint32_t *names;       /* of this trace's strings: in rows->names, + 1; 0: not known yet */
	uint8_t *loads_data;   /* likewise: of a data loader; 0: not known yet, 1: no, 2: yes */
	uint8_t *own_python;   /* likewise: a Python function of the user's own */
};

/* Hashed as bytes. */
struct row_key {
	struct charge_key frame;
	uint32_t device, name; /* name 0: none */
	uint32_t cause, category;
	uint32_t target, unused; /* target 0: none */
};

static int find_name(struct sweep *sweep, const struct trace_event *event, uint32_t *ret_name)
{
	uint32_t *known = event ? &sweep->names[event->name] : NULL;
	const char *text;
	int r;

	*ret_name = known ? *known : 0;
	if (!known || *known)
		return 0;
	text = trace_text(sweep->trace, event->name);
	r = intern_add(&sweep->rows->names, text, strlen(text), known);
	*ret_name = ++*known;
	return MIN(r, 0);
}

/* Texts of the view's syncs end with it. */
static int find_target(struct sweep *sweep, const struct device_idle_gap *gap, uint32_t *ret_target)
{
	const char *text = device_idle_target(sweep->idle, gap);
	int r;

	*ret_target = 0;
	if (!text)
		return 0;
	r = intern_add(&sweep->rows->names, text, strlen(text), ret_target);
	++*ret_target;
	return MIN(r, 0);
}

static int find_row(struct sweep *sweep, const struct device_idle_gap *gap, uint32_t frame,
	const struct trace_event *event, struct idle_row **ret_row)
{
	const struct model *model = sweep->trace->recorded;
	struct row_key key = {
		.device = sweep->rows->by_device ? sweep->idle->places.items[gap->place].device
						 : MODEL_NONE,
		.cause = gap->cause,
		.category = event ? event->category : TRACE_OTHER,
	};
	uint32_t index = 0;
	int r = find_name(sweep, event, &key.name);

	r = r ?: find_target(sweep, gap, &key.target);
	if (model)
		key.frame = charge_key(model, frame, 0);
	if (r == 0)
		r = intern_add(&sweep->rows->keys, &key, sizeof(key), &index);
	if (r > 0)
		r = array_append(&sweep->rows->rows,
			(struct idle_row){
				.device = key.device,
				.cause = gap->cause,
				.frame = frame,
				.name = event ? trace_text(sweep->trace, event->name) : NULL,
				.category = (enum trace_category)key.category,
				.target = key.target
						  ? intern_get(&sweep->rows->names, key.target - 1)
						  : NULL,
			});
	if (r < 0)
		return r;
	*ret_row = &sweep->rows->rows.items[index];
	return 0;
}

/* A line says more than a step or range around it. */
static const struct trace_event *blamed(uint32_t frame, const struct trace_event *event)
{
	bool is_work =
		event && (event->category == TRACE_CPU_OP || event->category == TRACE_RUNTIME ||
				 event->category == TRACE_DRIVER);

	return frame == MODEL_NONE || is_work ? event : NULL;
}

static int charge_python(struct sweep *sweep, const struct device_idle_gap *gap,
	const struct open_row *open, int64_t time_ns)
{
	struct {
		uint32_t name, is_blocked;
	} key = {.is_blocked = gap->cause == DEVICE_IDLE_BLOCKED};
	const struct trace_event *event;
	uint32_t index;
	int r;

	if (!open || open->python == MODEL_NONE || gap->cause > DEVICE_IDLE_BLOCKED)
		return 0;
	event = &sweep->trace->events.items[open->python];
	r = find_name(sweep, event, &key.name);
	if (r == 0)
		r = intern_add(&sweep->rows->python_keys, &key, sizeof(key), &index);
	if (r > 0)
		r = array_append(&sweep->rows->pythons,
			(struct idle_python){.name = trace_text(sweep->trace, event->name),
				.is_blocked = key.is_blocked != 0});
	if (r < 0)
		return r;
	sweep->rows->pythons.items[index].time_ns += time_ns;
	return 0;
}

static int charge(struct sweep *sweep, const struct device_idle_gap *gap,
	const struct open_row *open, int64_t time_ns)
{
	const struct trace_event *event = open ? &sweep->trace->events.items[open->row] : NULL;
	const struct model *model = sweep->trace->recorded;
	uint32_t frame = model ? charge_frame(model, gap->stack) : MODEL_NONE;
	uint64_t number = sweep->works_before + gap->next + 1, key;
	struct idle_row *row = NULL;
	int r = find_row(sweep, gap, frame, blamed(frame, event), &row);

	r = r ?: charge_python(sweep, gap, open, time_ns);
	if (r < 0 || !row)
		return r;
	if (gap->cause == DEVICE_IDLE_DISK ||
		(open && open->loads_data && gap->cause < DEVICE_IDLE_BLOCKED))
		sweep->rows->loading_ns += time_ns;
	row->time_ns += time_ns;
	row->gaps += row->last_gap != number;
	row->last_gap = number;
	if (gap->sample == MODEL_NONE)
		return 0;
	key = (uint64_t)(row - sweep->rows->rows.items) << 32 | gap->sample;
	if (map_u64_get(&sweep->rows->samples, key, NULL))
		return 0;
	row->samples++;
	return map_u64_set(&sweep->rows->samples, key, 1);
}

static const struct device_idle_gap *gap_of(const struct sweep *sweep, const struct part *part)
{
	return &sweep->idle->gaps.items[part->gap];
}

/* The innermost row, or none, from where the sweep is to `end_ns`. */
static int pass_time(struct sweep *sweep, int64_t end_ns)
{
	const struct open_row *top = sweep->depth ? &sweep->open[sweep->depth - 1] : NULL;
	int64_t start_ns = sweep->at_ns;
	int r = 0;

	if (end_ns <= start_ns)
		return 0;
	sweep->at_ns = end_ns;
	while (sweep->passed < sweep->part_count &&
		gap_of(sweep, &sweep->parts[sweep->passed])->end_ns <= start_ns)
		sweep->passed++;
	for (size_t i = sweep->passed; r == 0 && i < sweep->part_count; i++) {
		const struct device_idle_gap *gap = gap_of(sweep, &sweep->parts[i]);
		int64_t time_ns = MIN(gap->end_ns, end_ns) - MAX(gap->start_ns, start_ns);

		if (gap->start_ns >= end_ns)
			break;
		if (time_ns > 0)
			r = charge(sweep, gap, top, time_ns);
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
		int64_t end_ns = trace_end_ns(
			&sweep->trace->events.items[sweep->open[sweep->depth - 1].row]);

		if (end_ns > time_ns)
			break;
		r = pass_time(sweep, end_ns);
		sweep->depth--;
	}
	return r < 0 ? r : pass_time(sweep, time_ns);
}

/* PyTorch's DataLoader, by its annotations and its files; tf.data, as XLA's profiler has it. */
static bool loads_data(struct sweep *sweep, const struct trace_event *event)
{
	static const char *const words[] = {"dataloader", "data_loader", "torch/utils/data/",
		"DataPipe", "tf_data", "tf.data", "IteratorGetNext"};
	uint8_t *known = &sweep->loads_data[event->name];
	const char *name = trace_text(sweep->trace, event->name);

	for (size_t i = 0; !*known && i < ARRAY_SIZE(words); i++) {
		if (strcasestr(name, words[i]))
			*known = 2;
	}
	if (!*known)
		*known = 1;
	return *known == 2;
}

static bool is_own_python(struct sweep *sweep, const struct trace_event *event)
{
	uint8_t *known = &sweep->own_python[event->name];

	if (event->category != TRACE_PYTHON_FUNCTION)
		return false;
	if (!*known)
		*known = trace_frames_is_own_python(trace_text(sweep->trace, event->name)) ? 2 : 1;
	return *known == 2;
}

static void open_row(struct sweep *sweep, uint32_t row)
{
	const struct open_row *around = sweep->depth ? &sweep->open[sweep->depth - 1] : NULL;
	const struct trace_event *event = &sweep->trace->events.items[row];
	struct open_row open = {.row = row, .python = around ? around->python : MODEL_NONE};

	open.loads_data = (around && around->loads_data) || loads_data(sweep, event);
	if (is_own_python(sweep, event))
		open.python = row;
	sweep->open[sweep->depth++] = open;
}

static int sweep_track(struct sweep *sweep, const struct trace_track *track)
{
	int r = 0;

	sweep->at_ns = INT64_MIN;
	for (uint32_t i = 0; r == 0 && i < track->count; i++) {
		uint32_t row = sweep->trace->rows.items[track->first + i];
		const struct trace_event *event = &sweep->trace->events.items[row];

		if (event->is_capture || !is_host_row(event))
			continue;
		r = close_rows(sweep, event->start_ns);
		open_row(sweep, row);
	}
	return r < 0 ? r : close_rows(sweep, INT64_MAX);
}

/* ---- parts of threads ---- */

/* Those of devices. Returns how many there are. */
static size_t collect_parts(struct idle_rows *rows, const struct trace_view *view,
	const struct device_idle *idle, struct part *parts)
{
	uint32_t next = MODEL_NONE;
	size_t count = 0;

	for (uint32_t i = 0; i < idle->gaps.count; i++) {
		const struct device_idle_gap *gap = &idle->gaps.items[i];
		uint32_t launch = view->works.items[gap->next].launch;

		if (idle->places.items[gap->place].stream != MODEL_NONE)
			continue;
		rows->gaps += gap->next != next;
		next = gap->next;
		parts[count++] = (struct part){
			.start_ns = gap->start_ns,
			.gap = i,
			.track = gap->cause > DEVICE_IDLE_BLOCKED
					 ? -1
					 : (int32_t)view->trace->events.items[launch].track,
		};
	}
	return count;
}

static int64_t start_of(const void *part)
{
	return ((const struct part *)part)->start_ns;
}

static int64_t track_of(const void *part)
{
	return ((const struct part *)part)->track;
}

/* Parts of several devices may overlap: each device's come by time, one device after the other. */
static int sort_parts(struct part *parts, size_t count)
{
	int r = trace_order_items(parts, count, sizeof(*parts), start_of, trace_order_stable);

	return r ?: trace_order_items(parts, count, sizeof(*parts), track_of, trace_order_stable);
}

/* Of one thread; those of none are first, and charged as they are. */
static int sweep_parts(struct sweep *sweep, const struct part *parts, size_t count, int32_t track)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct device_idle_gap *gap = gap_of(sweep, &parts[i]);
		int64_t time_ns = gap->end_ns - gap->start_ns;

		sweep->rows->time_ns += time_ns;
		if (track < 0)
			r = charge(sweep, gap, NULL, time_ns);
		else
			sweep->rows->host_ns += time_ns;
	}
	if (r < 0 || track < 0)
		return r;
	sweep->parts = parts;
	sweep->part_count = count;
	sweep->passed = 0;
	return sweep_track(sweep, &sweep->trace->tracks.items[track]);
}

static int sweep_all(struct sweep *sweep, const struct part *parts, size_t count)
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
		for (next = first; next < count && parts[next].track == parts[first].track; next++)
			;
		r = sweep_parts(sweep, parts + first, next - first, parts[first].track);
	}
	free(sweep->open);
	return r;
}

int idle_rows_add(
	struct idle_rows *rows, const struct trace_view *view, const struct device_idle *idle)
{
	struct sweep sweep = {
		.rows = rows,
		.trace = view->trace,
		.idle = idle,
		.works_before = rows->works,
	};
	_cleanup_free_ struct part *parts = calloc(idle->gaps.count + 1, sizeof(*parts));
	_cleanup_free_ uint32_t *names =
		calloc(view->trace->strings.entries.count + 1, sizeof(*names));
	_cleanup_free_ uint8_t *loads_data =
		calloc(view->trace->strings.entries.count + 1, sizeof(*loads_data));
	_cleanup_free_ uint8_t *own_python =
		calloc(view->trace->strings.entries.count + 1, sizeof(*own_python));
	size_t count;
	int r;

	if (!parts || !names || !loads_data || !own_python)
		return -ENOMEM;
	sweep.names = names;
	sweep.loads_data = loads_data;
	sweep.own_python = own_python;
	count = collect_parts(rows, view, idle, parts);
	rows->works += view->works.count;
	r = sort_parts(parts, count);
	return r < 0 ? r : sweep_all(&sweep, parts, count);
}

static int compare_rows(const void *left, const void *right)
{
	const struct idle_row *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	if (a->cause != b->cause)
		return a->cause < b->cause ? -1 : 1;
	if (a->frame != b->frame)
		return a->frame < b->frame ? -1 : 1;
	if (a->target != b->target)
		return strcmp(a->target ? a->target : "", b->target ? b->target : "");
	return strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

static int compare_pythons(const void *left, const void *right)
{
	const struct idle_python *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	if (a->is_blocked != b->is_blocked)
		return a->is_blocked ? 1 : -1;
	return strcmp(a->name, b->name);
}

void idle_rows_finish(struct idle_rows *rows)
{
	if (rows->pythons.count)
		qsort(rows->pythons.items, rows->pythons.count, sizeof(*rows->pythons.items),
			compare_pythons);
	if (rows->rows.count)
		qsort(rows->rows.items, rows->rows.count, sizeof(*rows->rows.items), compare_rows);
}

void idle_rows_done(struct idle_rows *rows)
{
	array_done(&rows->rows);
	array_done(&rows->pythons);
	intern_done(&rows->python_keys);
	intern_done(&rows->names);
	intern_done(&rows->keys);
	map_u64_done(&rows->samples);
}
