/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_graph_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OPEN 1024 /* captures that are looked at, the last ones */

/* ---- kinds and names ---- */

void capture_key_add(struct capture_key *key, uint8_t kind, uint32_t name)
{
	uint64_t one = hash_u64((uint64_t)kind << 32 | (kind == TRACE_KERNEL ? name : 0));

	key->order = hash_u64(key->order * 31 + one);
	key->kinds = hash_u64(key->kinds * 31 + kind);
	key->names += one;
}

uint8_t graph_node_kind(const struct trace *trace, const struct trace_event *event)
{
	const char *name;

	if (event->category != TRACE_KERNEL)
		return event->category;
	name = trace_text(trace, event->name);
	if (strncmp(name, "__amd_rocclr_", strlen("__amd_rocclr_")) != 0)
		return TRACE_KERNEL;
	return strstr(name, "copyBuffer")   ? TRACE_MEMCPY
	       : strstr(name, "fillBuffer") ? TRACE_MEMSET
					    : TRACE_KERNEL;
}

/* What a call is to a capture: the category of what it launches, or one of these. */
enum call_class {
	CALL_NOT_SEEN,
	CALL_KERNEL = TRACE_KERNEL,
	CALL_COPY = TRACE_MEMCPY,
	CALL_FILL = TRACE_MEMSET,
	CALL_NONE = TRACE_CATEGORY_MAX,
	CALL_BEGIN,
	CALL_END,
	CALL_WAIT,
};

static uint8_t class_of_name(const char *name)
{
	if (strstr(name, "StreamBeginCapture"))
		return CALL_BEGIN;
	if (strstr(name, "StreamEndCapture"))
		return CALL_END;
	if (strstr(name, "StreamWaitEvent"))
		return CALL_WAIT;
	if (strstr(name, "Get") || strstr(name, "HostFunc"))
		return CALL_NONE;
	if (strstr(name, "Launch"))
		return CALL_KERNEL;
	return strstr(name, "Memcpy") ? CALL_COPY : strstr(name, "Memset") ? CALL_FILL : CALL_NONE;
}

/* ---- captures ---- */

struct timed {
	int64_t start_ns;
	uint32_t row;
};

struct gathering {
	struct graph_captures *captures;
	const struct trace *captured, *trace;
	const uint32_t *parents;
	uint8_t *classes; /* by name */
	ARRAY_OF(struct timed) calls;
	ARRAY_OF(uint32_t) owners; /* of captures->calls: the capture */
	struct map_u64 worked;     /* correlations that have work */
	uint64_t *texts;           /* hashes of strings; 0: not made yet */
};

static void gathering_done(struct gathering *gathering)
{
	free(gathering->classes);
	free(gathering->texts);
	array_done(&gathering->calls);
	array_done(&gathering->owners);
	map_u64_done(&gathering->worked);
}

static bool is_call(const struct trace_event *event)
{
	return (event->category == TRACE_RUNTIME || event->category == TRACE_DRIVER) &&
	       event->duration_ns != TRACE_NO_DURATION && !event->is_capture;
}

static uint8_t class_of(const struct gathering *gathering, const struct trace_event *event)
{
	uint8_t *known = &gathering->classes[event->name];

	if (*known == CALL_NOT_SEEN)
		*known = class_of_name(trace_text(gathering->captured, event->name));
	return *known;
}

static int compare_timed(const void *left, const void *right)
{
	const struct timed *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

/* All calls that matter, where there is a capture. */
static int find_calls(struct gathering *gathering)
{
	const struct trace *captured = gathering->captured;
	bool has_captures = false;
	int r = 0;

	array_foreach (&captured->events, event) {
		uint8_t class = is_call(event) ? class_of(gathering, event) : CALL_NONE;

		has_captures |= class == CALL_BEGIN;
		if (r == 0 && class != CALL_NONE)
			r = array_append(&gathering->calls,
				(struct timed){event->start_ns,
					(uint32_t)(event - captured->events.items)});
	}
	if (!has_captures)
		array_clear(&gathering->calls);
	array_foreach (&captured->events, event) {
		if (r == 0 && has_captures && trace_is_work(event) && event->correlation)
			r = map_u64_set(&gathering->worked, event->correlation, 1);
	}
	if (r == 0 && gathering->calls.count)
		qsort(gathering->calls.items, gathering->calls.count,
			sizeof(*gathering->calls.items), compare_timed);
	return r;
}

/* The open capture of the thread, else the only one of its process; SIZE_MAX: none. */
static size_t open_capture(
	const struct gathering *gathering, const struct trace_event *event, size_t first_open)
{
	const struct trace *captured = gathering->captured;
	int64_t pid = captured->tracks.items[event->track].pid;
	size_t found = SIZE_MAX, others = 0, count = gathering->captures->items.count;

	/* One that never ends must not make every call look at all that came after it. */
	first_open = MAX(first_open, count > MOST_OPEN ? count - MOST_OPEN : 0);
	for (size_t i = count; i-- > first_open;) {
		struct graph_capture *one = &gathering->captures->items.items[i];

		if (one->has_ended || one->pid != pid)
			continue;
		if (one->track == event->track)
			return i;
		found = i;
		others++;
	}
	for (size_t i = first_open; others > 1 && i < count; i++)
		gathering->captures->items.items[i].is_mixed = true;
	return others == 1 ? found : SIZE_MAX;
}

static uint64_t hash_of(const struct gathering *gathering, uint32_t string)
{
	const struct intern_entry *text = &gathering->captured->strings.entries.items[string];

	if (!gathering->texts[string])
		gathering->texts[string] = hash_bytes(text->bytes, text->length, 7) | 1;
	return gathering->texts[string];
}

/* Of the operators around a call, with all that tells what they cost. */
static uint64_t operators_around(const struct gathering *gathering, uint32_t row)
{
	const struct trace *captured = gathering->captured;
	uint64_t hash = 0;

	for (row = gathering->parents[row]; row != MODEL_NONE; row = gathering->parents[row]) {
		const struct trace_event *event = &captured->events.items[row];
		const struct trace_op *op = trace_op(captured, event);

		if (event->category != TRACE_CPU_OP)
			continue;
		hash = hash_u64(hash * 31 + hash_of(gathering, event->name));
		if (!op)
			continue;
		hash = hash_u64(hash * 31 + hash_of(gathering, op->input_dims));
		hash = hash_u64(hash * 31 + hash_of(gathering, op->input_types));
		hash = hash_u64(hash * 31 + hash_of(gathering, op->concrete_inputs));
	}
	return hash;
}

/* "kernel" of the arguments, as rows have it that were read from a capture of sonde. */
static int take_kernel(void *userdata, const struct json_text *key, const struct json_text *value)
{
	const struct json_text **found = userdata;

	if (key->length == strlen("kernel") && memcmp(key->bytes, "kernel", key->length) == 0) {
		**(struct json_text **)found = *value;
		return -ECANCELED;
	}
	return 0;
}

static uint32_t kernel_of(const struct gathering *gathering, const struct trace_event *event)
{
	const struct trace_op *op = trace_op(gathering->captured, event);
	struct json_text value = {0}, *found = &value;
	const char *name;
	uint32_t kernel;
	size_t length;

	if (!op)
		return 0;
	name = trace_text(gathering->captured, op->kernel);
	length = strlen(name);
	if (!op->kernel && op->others) {
		trace_others_each(gathering->captured, op->others, take_kernel, &found);
		if (value.length < 2 || memchr(value.bytes, '\\', value.length))
			return 0;
		name = value.bytes + 1;
		length = value.length - 2;
	}
	if (!length)
		return 0;
	return intern_find(&gathering->trace->strings, name, length, &kernel) ? kernel : MODEL_NONE;
}

/* A runtime's call that calls the driver's is one. */
static int add_call(struct gathering *gathering, const struct trace_event *event, size_t owner)
{
	struct graph_capture *capture = &gathering->captures->items.items[owner];
	uint32_t row = (uint32_t)(event - gathering->captured->events.items);
	struct graph_call call = {.row = row, .kind = class_of(gathering, event)};
	int r;

	if (capture->track == event->track) {
		if (event->start_ns < capture->call_end_ns)
			return 0;
		capture->call_end_ns = trace_end_ns(event);
	}
	call.kernel = kernel_of(gathering, event);
	call.operators = operators_around(gathering, row);
	capture->count++;
	capture->is_named &= call.kind != TRACE_KERNEL || call.kernel;
	capture->operators = hash_u64(capture->operators * 31 + call.operators);
	capture_key_add(&capture->key, call.kind, call.kernel);
	if (call.kind != TRACE_KERNEL)
		call.kernel = 0;
	r = array_append(&gathering->captures->calls, call);
	return r ?: array_append(&gathering->owners, (uint32_t)owner);
}

static int see_call(
	struct gathering *gathering, const struct trace_event *event, size_t *first_open)
{
	struct graph_captures *captures = gathering->captures;
	uint8_t class = class_of(gathering, event);
	size_t owner;

	while (*first_open < captures->items.count && captures->items.items[*first_open].has_ended)
		++*first_open;
	if (class == CALL_BEGIN)
		return array_append(&captures->items,
			(struct graph_capture){
				.pid = gathering->captured->tracks.items[event->track].pid,
				.track = event->track,
				.is_named = true});
	owner = open_capture(gathering, event, *first_open);
	if (owner == SIZE_MAX)
		return 0;
	if (class == CALL_END) {
		captures->items.items[owner].has_ended = true;
		captures->items.items[owner].end_ns = trace_end_ns(event);
	} else if (class == CALL_WAIT) {
		captures->items.items[owner].is_forked = true;
	} else if (!event->correlation ||
		   !map_u64_get(&gathering->worked, event->correlation, NULL)) {
		return add_call(gathering, event, owner);
	}
	return 0;
}

/* Calls in the order of their captures; of captures those that have ended, and have calls of which
 * it is known whose they are. */
static int sort_calls(struct gathering *gathering)
{
	struct graph_captures *captures = gathering->captures;
	size_t count = captures->calls.count, first = 0, kept = 0;
	_cleanup_free_ struct graph_call *sorted = malloc((count + 1) * sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	array_foreach (&captures->items, capture) {
		capture->first = first;
		first += capture->count;
		capture->count = 0;
	}
	for (size_t i = 0; i < count; i++) {
		struct graph_capture *capture = &captures->items.items[gathering->owners.items[i]];

		sorted[capture->first + capture->count++] = captures->calls.items[i];
	}
	if (count)
		memcpy(captures->calls.items, sorted, count * sizeof(*sorted));
	array_foreach (&captures->items, capture) {
		if (capture->has_ended && !capture->is_mixed && capture->count)
			captures->items.items[kept++] = *capture;
	}
	captures->items.count = kept;
	return 0;
}

int graph_captures_init(
	struct graph_captures *captures, const struct trace *captured, const struct trace *trace)
{
	_cleanup_(gathering_done) struct gathering gathering = {
		.captures = captures,
		.captured = captured,
		.trace = trace,
		.classes = calloc(captured->strings.entries.count + 1, 1),
	};
	size_t first_open = 0;
	int r = gathering.classes ? 0 : -ENOMEM;

	*captures = (struct graph_captures){0};
	r = r ?: find_calls(&gathering);
	if (r < 0 || !gathering.calls.count)
		return r;
	gathering.parents = trace_parents(captured, false);
	gathering.texts = calloc(captured->strings.entries.count + 1, sizeof(*gathering.texts));
	if (!gathering.parents || !gathering.texts)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < gathering.calls.count; i++)
		r = see_call(&gathering, &captured->events.items[gathering.calls.items[i].row],
			&first_open);
	return r ?: sort_calls(&gathering);
}

void graph_captures_done(struct graph_captures *captures)
{
	array_done(&captures->items);
	array_done(&captures->calls);
}

/* ---- rows of another trace ---- */

struct copying {
	struct trace *trace;
	const struct trace *captured;
	uint32_t *rows, *tracks; /* of captured → of trace; MODEL_NONE: not copied */
	uint32_t *strings;
};

static void copying_done(struct copying *copying)
{
	free(copying->rows);
	free(copying->tracks);
	free(copying->strings);
}

static int copying_init(struct copying *copying)
{
	const struct trace *captured = copying->captured;
	size_t rows = (captured->events.count + 1) * sizeof(uint32_t);
	size_t tracks = (captured->tracks.count + 1) * sizeof(uint32_t);

	copying->rows = malloc(rows);
	copying->tracks = malloc(tracks);
	copying->strings = calloc(captured->strings.entries.count + 1, sizeof(uint32_t));
	if (!copying->rows || !copying->tracks || !copying->strings)
		return -ENOMEM;
	memset(copying->rows, 0xff, rows);
	memset(copying->tracks, 0xff, tracks);
	return 0;
}

static int copy_string(struct copying *copying, uint32_t *string)
{
	const struct intern_entry *text = &copying->captured->strings.entries.items[*string];
	uint32_t *known = &copying->strings[*string];
	int r = 0;

	if (*string && !*known)
		r = intern_add(&copying->trace->strings, text->bytes, text->length, known);
	*string = *known;
	return MIN(r, 0);
}

static int copy_track(struct copying *copying, uint32_t *track)
{
	struct trace_track one = copying->captured->tracks.items[*track];
	uint32_t *known = &copying->tracks[*track];

	if (*known != MODEL_NONE) {
		*track = *known;
		return 0;
	}
	*track = *known = (uint32_t)copying->trace->tracks.count;
	if (copy_string(copying, &one.pid_text) < 0 || copy_string(copying, &one.tid_text) < 0 ||
		copy_string(copying, &one.process_name) < 0 ||
		copy_string(copying, &one.thread_name) < 0 ||
		copy_string(copying, &one.process_labels) < 0)
		return -ENOMEM;
	one.count = 0;
	return array_append(&copying->trace->tracks, one);
}

static int copy_op(struct copying *copying, const struct trace_op *op, uint32_t *ret_detail)
{
	struct trace_op one = *op;

	one.collective = MODEL_NONE;
	if (copy_string(copying, &one.input_dims) < 0 ||
		copy_string(copying, &one.input_types) < 0 ||
		copy_string(copying, &one.input_strides) < 0 ||
		copy_string(copying, &one.concrete_inputs) < 0 ||
		copy_string(copying, &one.call_stack) < 0 ||
		copy_string(copying, &one.module_hierarchy) < 0 ||
		copy_string(copying, &one.kernel) < 0 || copy_string(copying, &one.others) < 0)
		return -ENOMEM;
	*ret_detail = (uint32_t)copying->trace->ops.count;
	return array_append(&copying->trace->ops, one);
}

/* It has no correlation: that would be of another call here. */
static int copy_row(struct copying *copying, uint32_t row)
{
	const struct trace_event *event = &copying->captured->events.items[row];
	const struct trace_op *op = trace_op(copying->captured, event);
	struct trace_event one = *event;
	int r = 0;

	one.correlation = 0;
	one.detail = MODEL_NONE;
	one.is_capture = true;
	one.start_ns = (int64_t)((uint64_t)event->start_ns + copying->captured->base_ns -
				 copying->trace->base_ns);
	if (copy_string(copying, &one.name) < 0 || copy_string(copying, &one.category_name) < 0 ||
		copy_track(copying, &one.track) < 0)
		return -ENOMEM;
	if (op)
		r = copy_op(copying, op, &one.detail);
	copying->rows[row] = (uint32_t)copying->trace->events.count;
	copying->trace->capture_rows++;
	return r ?: array_append(&copying->trace->events, one);
}

/* The calls, and what they lie in. */
static int copy_rows(struct copying *copying, const struct graph_origin *origins, size_t count)
{
	const uint32_t *parents = trace_parents(copying->captured, true);
	int r = parents ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++) {
		uint32_t row = origins[i].call;

		for (; r == 0 && row != MODEL_NONE && copying->rows[row] == MODEL_NONE;
			row = parents[row])
			r = copy_row(copying, row);
	}
	return r;
}

int graph_origins_apply(struct trace *trace, const struct trace *captured,
	const struct graph_origin *origins, size_t count)
{
	_cleanup_(copying_done) struct copying copying = {.trace = trace, .captured = captured};
	bool is_other = captured != trace;
	int r = is_other && count ? copying_init(&copying) : 0;

	if (r == 0 && is_other && count)
		r = copy_rows(&copying, origins, count);
	for (size_t i = 0; r == 0 && i < count; i++)
		trace->works.items[origins[i].work].captured_by =
			1 + (is_other ? copying.rows[origins[i].call] : origins[i].call);
	return r == 0 && is_other && count ? trace_finish(trace) : r;
}
