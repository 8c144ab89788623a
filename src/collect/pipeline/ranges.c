/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pipeline/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "collect/pipeline/range_stacks.h"
#include "collect/pipeline/range_texts.h"

/* No honest process has more of these. */
#define MAX_WAITING 256
#define MAX_THREADS (1U << 16)
/* Of one drain, which takes at most what the rings hold. */
#define MAX_PENDING (1U << 22)
/* Times beyond this are not of this machine. */
#define MAX_TIME_NS (100ULL * 365 * 86400 * NS_PER_S)

static const char lost_name[] = "[name lost]";

struct pending_event {
	struct wire_range_event event;
	uint32_t pid;
	uint32_t first_field, field_count;
	uint64_t order; /* of events of one moment */
};

/* Fields whose event comes next in their thread's ring: a drain may end between the two. */
struct waiting_fields {
	struct wire_range_fields head;
	uint32_t pid, first_field;
};

struct thread_name {
	uint32_t pid, tid, text;
};

struct range_collector {
	struct capture_writer *writer;
	struct capture_range_stats account;
	struct range_texts texts;
	ARRAY_OF(struct pending_event) pending;
	ARRAY_OF(struct wire_range_field) fields; /* of pending events, and of those that wait */
	ARRAY_OF(struct waiting_fields) waiting;  /* in the order of their fields */
	uint64_t order, waited_order;             /* events before this one have waited */
	ARRAY_OF(struct thread_name) thread_names;
	struct range_stacks *stacks;
	struct windows *windows; /* NULL: all is recorded */
	size_t windows_cut;      /* whose open ranges were ended */
};

int range_collector_new(struct range_collector **ret_collector, struct capture_writer *writer)
{
	struct range_collector *collector = calloc(1, sizeof(*collector));

	if (!collector)
		return -ENOMEM;
	collector->writer = writer;
	collector->stacks = range_stacks_new();
	if (!collector->stacks) {
		free(collector);
		return -ENOMEM;
	}
	*ret_collector = collector;
	return 0;
}

struct range_collector *range_collector_free(struct range_collector *collector)
{
	if (!collector)
		return NULL;
	range_texts_done(&collector->texts);
	array_done(&collector->pending);
	array_done(&collector->fields);
	array_done(&collector->waiting);
	array_done(&collector->thread_names);
	range_stacks_free(collector->stacks);
	free(collector);
	return NULL;
}

static int refuse(struct range_collector *collector)
{
	collector->account.records_damaged++;
	return 0;
}

void range_collector_set_windows(struct range_collector *collector, struct windows *windows)
{
	collector->windows = windows;
}

/* ---- texts and names ---- */

static int add_text(
	struct range_collector *collector, uint32_t pid, const struct wire_range_text *text)
{
	int result = range_texts_add(&collector->texts, pid, text);

	if (result == -EINVAL)
		return refuse(collector);
	collector->account.names_cut += text->is_cut && !text->at;
	return result;
}

static int add_name(
	struct range_collector *collector, uint32_t pid, const struct wire_range_name *name)
{
	uint32_t text;
	int result;

	if (name->record.length_bytes < sizeof(*name))
		return refuse(collector);
	/* Its text stands before it in the same ring, or was reported long ago. */
	if (!range_texts_find(&collector->texts, pid, name, &text)) {
		collector->account.names_lost++;
		return 0;
	}
	if (name->record.type == WIRE_RECORD_RANGE_THREAD) {
		if (collector->thread_names.count >= MAX_THREADS)
			return refuse(collector);
		return array_append(&collector->thread_names,
			(struct thread_name){.pid = pid, .tid = name->id, .text = text});
	}
	result = range_texts_name_category(&collector->texts, pid, name, text);
	return result == -EINVAL ? refuse(collector) : result;
}

/* ---- events ---- */

/* Takes those of a thread out; false where none wait. */
static bool take_waiting(struct range_collector *collector, uint32_t pid, uint32_t tid,
	struct waiting_fields *ret_waiting)
{
	for (size_t i = 0; i < collector->waiting.count; i++) {
		struct waiting_fields *waiting = &collector->waiting.items[i];

		if (waiting->pid != pid || waiting->head.tid != tid)
			continue;
		*ret_waiting = *waiting;
		collector->waiting.count--;
		memmove(waiting, waiting + 1, (collector->waiting.count - i) * sizeof(*waiting));
		return true;
	}
	return false;
}

static int add_fields(
	struct range_collector *collector, uint32_t pid, const struct wire_range_fields *fields)
{
	const struct wire_range_field *field = (const void *)(fields + 1);
	struct waiting_fields waiting;
	int result = 0;

	if (fields->record.length_bytes < sizeof(*fields) ||
		fields->count > WIRE_RANGE_MAX_FIELDS ||
		fields->count * sizeof(*field) > fields->record.length_bytes - sizeof(*fields))
		return refuse(collector);
	take_waiting(collector, pid, fields->tid, &waiting); /* their event was lost */
	if (!fields->count)
		return 0;
	if (collector->waiting.count >= MAX_WAITING)
		return refuse(collector);
	waiting = (struct waiting_fields){
		.head = *fields, .pid = pid, .first_field = (uint32_t)collector->fields.count};
	for (uint32_t i = 0; result == 0 && i < fields->count; i++)
		result = array_append(&collector->fields, field[i]);
	if (result == 0)
		result = array_append(&collector->waiting, waiting);
	return result;
}

static int add_event(
	struct range_collector *collector, uint32_t pid, const struct wire_range_event *event)
{
	struct pending_event pending = {.pid = pid, .order = collector->order++};
	struct waiting_fields waiting;
	bool has_fields;

	if (event->record.length_bytes < sizeof(*event))
		return refuse(collector);
	has_fields = take_waiting(collector, pid, event->tid, &waiting);
	if (event->time_ns > MAX_TIME_NS || collector->pending.count >= MAX_PENDING)
		return refuse(collector);
	pending.event = *event;
	if (has_fields && waiting.head.time_ns == event->time_ns &&
		waiting.head.image == event->image) {
		pending.field_count = waiting.head.count;
		pending.first_field = waiting.first_field;
	}
	return array_append(&collector->pending, pending);
}

/* With no event pending, only the fields that wait are kept. */
static void clear_fields(struct range_collector *collector)
{
	size_t count = 0;

	array_foreach (&collector->waiting, waiting) {
		memmove(&collector->fields.items[count],
			&collector->fields.items[waiting->first_field],
			waiting->head.count * sizeof(*collector->fields.items));
		waiting->first_field = (uint32_t)count;
		count += waiting->head.count;
	}
	collector->fields.count = count;
}

/* Waits for its name and its turn among the events, with its value as their id. */
static int add_counter(
	struct range_collector *collector, uint32_t pid, const struct wire_counter *counter)
{
	struct wire_range_event event = {.record = counter->record};

	if (counter->record.length_bytes < sizeof(*counter) || !counter->name)
		return refuse(collector);
	event.record.length_bytes = sizeof(event);
	event.time_ns = counter->time_ns;
	event.tid = counter->tid;
	event.image = counter->image;
	event.name = counter->name;
	event.id = counter->value;
	return add_event(collector, pid, &event);
}

static int add_short(
	struct range_collector *collector, uint32_t pid, const struct wire_range_short *level)
{
	struct wire_range_event event = {.record = level->record};

	if (level->record.length_bytes < sizeof(*level))
		return refuse(collector);
	event.record.type = level->record.type == WIRE_RECORD_RANGE_SHORT_PUSH
				    ? WIRE_RECORD_RANGE_PUSH
				    : WIRE_RECORD_RANGE_POP;
	event.record.length_bytes = sizeof(event);
	event.time_ns = level->time_ns;
	event.tid = level->tid;
	event.image = level->image;
	event.name = level->name;
	event.domain = level->domain;
	event.depth = level->record.reserved;
	return add_event(collector, pid, &event);
}

bool range_collector_takes(const struct wire_record *record)
{
	return record->type >= WIRE_RECORD_RANGE_TEXT && record->type <= WIRE_RECORD_RANGE_LAST;
}

int range_collector_add(
	struct range_collector *collector, uint32_t pid, const struct wire_record *record)
{
	switch (record->type) {
	case WIRE_RECORD_RANGE_TEXT:
		return add_text(collector, pid, (const void *)record);
	case WIRE_RECORD_RANGE_CATEGORY:
	case WIRE_RECORD_RANGE_THREAD:
		return add_name(collector, pid, (const void *)record);
	case WIRE_RECORD_RANGE_FIELDS:
		return add_fields(collector, pid, (const void *)record);
	case WIRE_RECORD_COUNTER:
		return add_counter(collector, pid, (const void *)record);
	case WIRE_RECORD_RANGE_SHORT_PUSH:
	case WIRE_RECORD_RANGE_SHORT_POP:
		return add_short(collector, pid, (const void *)record);
	default:
		return range_collector_takes(record)
			       ? add_event(collector, pid, (const void *)record)
			       : refuse(collector);
	}
}

/* ---- writing ---- */

static const char *text_of(
	const struct range_collector *collector, const struct pending_event *pending, uint32_t id)
{
	return id ? range_texts_get(&collector->texts, pending->pid, pending->event.image, id) : "";
}

/* All that the event refers to has come, and its range has begun. */
static bool is_ready(const struct range_collector *collector, const struct pending_event *pending)
{
	const struct wire_range_event *event = &pending->event;

	if (!text_of(collector, pending, event->name) ||
		!text_of(collector, pending, event->domain))
		return false;
	for (uint32_t i = 0; i < pending->field_count; i++) {
		const struct wire_range_field *field =
			&collector->fields.items[pending->first_field + i];

		if (!text_of(collector, pending, field->name) ||
			(field->type == WIRE_RANGE_TEXT &&
				!text_of(collector, pending, (uint32_t)field->value)))
			return false;
	}
	return event->record.type != WIRE_RECORD_RANGE_END ||
	       range_stacks_is_started(collector->stacks, pending->pid, event->id);
}

static const char *known_text(
	struct range_collector *collector, const struct pending_event *pending, uint32_t id)
{
	const char *text = text_of(collector, pending, id);

	collector->account.names_lost += !text;
	return text ? text : lost_name;
}

/* Unnamed categories are identified by number. */
static const char *category_of(struct range_collector *collector,
	const struct pending_event *pending, char *number, size_t size)
{
	const struct wire_range_event *event = &pending->event;
	const char *name =
		event->category ? range_texts_category(&collector->texts, pending->pid, event) : "";

	if (!name)
		snprintf(number, size, "category %u", event->category);
	return name ? name : number;
}

static uint32_t fill_fields(struct range_collector *collector, const struct pending_event *pending,
	struct capture_range_field *ret_fields)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < pending->field_count; i++) {
		const struct wire_range_field *field =
			&collector->fields.items[pending->first_field + i];

		if (!field->type || field->type >= WIRE_RANGE_VALUE_MAX) {
			refuse(collector);
			continue;
		}
		ret_fields[count++] = (struct capture_range_field){
			.name = field->name ? known_text(collector, pending, field->name)
					    : "payload",
			.type = (enum wire_range_value)field->type,
			.value = field->value,
			.text = field->type == WIRE_RANGE_TEXT
					? known_text(collector, pending, (uint32_t)field->value)
					: "",
		};
	}
	return count;
}

static int write_counter(struct range_collector *collector, const struct pending_event *pending)
{
	struct capture_counter out = {
		.time_ns = pending->event.time_ns,
		.pid = pending->pid,
		.name = known_text(collector, pending, pending->event.name),
	};

	memcpy(&out.value, &pending->event.id, sizeof(out.value));
	return capture_writer_counter(collector->writer, &out);
}

static int write_event(struct range_collector *collector, const struct pending_event *pending)
{
	struct capture_range_field fields[WIRE_RANGE_MAX_FIELDS];
	char number[32];
	struct capture_range_event out = {
		.time_ns = pending->event.time_ns,
		.pid = pending->pid,
		.tid = pending->event.tid,
		.domain = known_text(collector, pending, pending->event.domain),
		.name = known_text(collector, pending, pending->event.name),
		.category = category_of(collector, pending, number, sizeof(number)),
		.fields = fields,
		.field_count = fill_fields(collector, pending, fields),
	};

	collector->account.events++;
	if (pending->event.record.type == WIRE_RECORD_COUNTER)
		return write_counter(collector, pending);
	return range_stacks_write(
		collector->stacks, collector->writer, &pending->event, &out, &collector->account);
}

/* Ranges that are open at the end of a window end there. */
static int cut_ranges(struct range_collector *collector, uint64_t until_ns)
{
	struct windows *windows = collector->windows;
	int result = 0;

	while (result == 0 && windows && collector->windows_cut < windows->items.count) {
		const struct capture_window *window = &windows->items.items[collector->windows_cut];

		if (!window->end_ns || window->end_ns > until_ns)
			break;
		result = range_stacks_cut(collector->stacks, collector->writer, window->end_ns - 1,
			&collector->account);
		collector->windows_cut++;
	}
	return result;
}

/* The end of what began before its window is no end for nothing. */
static int write_in_window(struct range_collector *collector, const struct pending_event *pending)
{
	uint64_t unbalanced_ends = collector->account.unbalanced_ends;
	int result;

	if (!collector->windows || collector->windows->is_whole)
		return write_event(collector, pending);
	if (!windows_has(collector->windows, pending->event.time_ns))
		return 0;
	result = cut_ranges(collector, pending->event.time_ns);
	if (result == 0)
		result = write_event(collector, pending);
	collector->account.unbalanced_ends = unbalanced_ends;
	return result;
}

static int compare_events(const void *left, const void *right)
{
	const struct pending_event *a = left, *b = right;

	if (a->event.time_ns != b->event.time_ns)
		return a->event.time_ns < b->event.time_ns ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/*
 * Events stay in order, so that one that is not ready holds those after it; but each of them only
 * till the next call.
 */
int range_collector_write(struct range_collector *collector, bool everything)
{
	uint64_t waited = collector->waited_order;
	size_t done = 0;
	int result = 0;

	if (collector->pending.count)
		qsort(collector->pending.items, collector->pending.count,
			sizeof(*collector->pending.items), compare_events);
	for (; result == 0 && done < collector->pending.count; done++) {
		const struct pending_event *pending = &collector->pending.items[done];

		if (!everything && pending->order >= waited && !is_ready(collector, pending))
			break;
		result = write_in_window(collector, pending);
	}
	if (result == 0 && everything)
		result = cut_ranges(collector, UINT64_MAX);
	collector->waited_order = collector->order;
	collector->pending.count -= done;
	if (collector->pending.count)
		memmove(collector->pending.items, collector->pending.items + done,
			collector->pending.count * sizeof(*collector->pending.items));
	else
		clear_fields(collector);
	return result;
}

int range_collector_name_threads(struct range_collector *collector)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < collector->thread_names.count; i++) {
		const struct thread_name *name = &collector->thread_names.items[i];
		const struct capture_thread out = {
			.pid = name->pid,
			.tid = name->tid,
			.name = range_texts_text(&collector->texts, name->text),
		};

		result = capture_writer_thread(collector->writer, &out);
	}
	return result;
}

void range_collector_account(
	const struct range_collector *collector, struct capture_range_stats *ret_stats)
{
	*ret_stats = collector->account;
	ret_stats->open_at_end += range_stacks_open_count(collector->stacks);
}
