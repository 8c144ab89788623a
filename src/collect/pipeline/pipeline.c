/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pipeline/pipeline.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "collect/pipeline/state.h"
#include "symbols/python_code.h"

/* Samples that wait for tables may hold this much; beyond it they are written with what there is.
 */
#define WAITING_LIMIT_BYTES ((size_t)64 << 20)

int pipeline_new(struct pipeline **ret_pipeline, const struct pipeline_parts *parts)
{
	struct pipeline *pipeline = calloc(1, sizeof(*pipeline));

	if (!pipeline)
		return -ENOMEM;
	pipeline->parts = *parts;
	*ret_pipeline = pipeline;
	return 0;
}

/* ---- samples that wait ---- */

static size_t snapshot_bytes(size_t mapping_count)
{
	return sizeof(struct snapshot) + mapping_count * sizeof(struct mapping);
}

static void snapshot_unref(struct pipeline *pipeline, struct snapshot *snapshot)
{
	if (!snapshot || --snapshot->users)
		return;
	pipeline->waiting_bytes -= snapshot_bytes(snapshot->count);
	free(snapshot);
}

static struct snapshot *snapshot_of(struct pipeline *pipeline, const struct process *process)
{
	struct snapshot *latest = pipeline->latest_snapshot;
	size_t count = process ? process->mapping_count : 0;

	if (latest && process && latest->pid == process->pid &&
		latest->first_seen_ns == process->first_seen_ns &&
		latest->generation == process->generation) {
		latest->users++;
		return latest;
	}
	snapshot_unref(pipeline, latest);
	latest = pipeline->latest_snapshot = calloc(1, snapshot_bytes(count));
	if (!latest)
		return NULL;
	pipeline->waiting_bytes += snapshot_bytes(count);
	latest->users = 2; /* the pipeline's and the caller's */
	latest->pid = process ? process->pid : 0;
	latest->first_seen_ns = process ? process->first_seen_ns : 0;
	latest->generation = process ? process->generation : 0;
	latest->count = count;
	if (count)
		memcpy(latest->mappings, process->mappings, count * sizeof(struct mapping));
	return latest;
}

static int keep_waiting(
	struct pipeline *pipeline, struct wire_sample *sample, const struct process *process)
{
	struct waiting_sample waiting = {
		.sample = sample,
		.snapshot = snapshot_of(pipeline, process),
	};

	if (!waiting.snapshot || array_append(&pipeline->waiting, waiting) < 0) {
		snapshot_unref(pipeline, waiting.snapshot);
		return -ENOMEM;
	}
	pipeline->waiting_bytes += sample->record.length_bytes;
	return 0;
}

/* Writes it with what there is. */
static int give_up_waiting(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct process *process, const struct space_view *view)
{
	pipeline->account.gave_up_waiting++;
	return pipeline_try_sample(pipeline, sample, process, view, true);
}

/* Takes the sample. */
static int handle_sample(struct pipeline *pipeline, struct wire_sample *sample)
{
	struct process *process = address_spaces_find(pipeline->parts.spaces, sample->pid);
	struct space_view view = {0};
	int result;

	if (!process && address_spaces_add_process(pipeline->parts.spaces, sample->pid, NULL) == 0)
		process = address_spaces_find(pipeline->parts.spaces, sample->pid);
	if (process)
		view = (struct space_view){process->mappings, process->mapping_count};
	result = pipeline_try_sample(pipeline, sample, process, &view, false);
	if (result == -EAGAIN && pipeline->waiting_bytes <= WAITING_LIMIT_BYTES) {
		result = keep_waiting(pipeline, sample, process);
		if (result == 0)
			return 0;
	}
	if (result == -EAGAIN)
		result = give_up_waiting(pipeline, sample, process, &view);
	free(sample);
	return result;
}

int pipeline_retry(struct pipeline *pipeline, bool give_up)
{
	size_t kept = 0;
	int failed = 0;

	for (size_t i = 0; i < pipeline->waiting.count; i++) {
		struct waiting_sample *waiting = &pipeline->waiting.items[i];
		struct space_view view = {waiting->snapshot->mappings, waiting->snapshot->count};
		const struct process *process =
			address_spaces_find(pipeline->parts.spaces, waiting->sample->pid);
		int result = pipeline_try_sample(pipeline, waiting->sample, process, &view, false);

		if (result == -EAGAIN && (give_up || failed))
			result = give_up_waiting(pipeline, waiting->sample, process, &view);
		if (result == -EAGAIN) {
			pipeline->waiting.items[kept++] = *waiting;
			continue;
		}
		pipeline->waiting_bytes -= waiting->sample->record.length_bytes;
		snapshot_unref(pipeline, waiting->snapshot);
		free(waiting->sample);
		failed = failed ? failed : result;
	}
	pipeline->waiting.count = kept;
	return failed;
}

size_t pipeline_waiting(const struct pipeline *pipeline)
{
	return pipeline->waiting.count;
}

uint64_t pipeline_waiting_since_ns(const struct pipeline *pipeline)
{
	uint64_t since_ns = UINT64_MAX;

	array_foreach (&pipeline->waiting, waiting)
		since_ns = MIN(since_ns, (uint64_t)waiting->sample->time_ns);
	return since_ns;
}

/* ---- order ---- */

/* Both ends of a deep stack are there, and it claims no more than those. */
static bool is_ring_full(uint16_t count, uint16_t left_out, uint16_t of_them, uint16_t capacity)
{
	return count <= capacity && of_them <= left_out && (!left_out || count == capacity);
}

/* Is the sample whole? Every count in it is checked against its length. */
static bool is_whole_sample(const struct wire_record *record)
{
	const struct wire_sample *sample = (const void *)record;
	const struct wire_stack_copy *copy;
	uint64_t length = sizeof(*sample);

	if (record->length_bytes < length || sample->kernel_frame_count > WIRE_MAX_KERNEL_FRAMES ||
		!is_ring_full(sample->user_frame_count, sample->user_left_out,
			sample->evaluations_left_out, WIRE_MAX_USER_FRAMES) ||
		!is_ring_full(sample->python_frame_count, sample->python_left_out,
			sample->entries_left_out, WIRE_MAX_PYTHON_FRAMES) ||
		sample->stop >= WIRE_STOP_MAX || sample->python >= WIRE_PYTHON_MAX ||
		sample->gil >= WIRE_GIL_MAX || sample->wait >= WIRE_WAIT_MAX)
		return false;
	length += ((uint64_t)sample->kernel_frame_count + sample->user_frame_count) * 8 +
		  (uint64_t)sample->python_frame_count * sizeof(struct wire_python_frame);
	if (!(sample->flags & WIRE_SAMPLE_STACK_COPY))
		return record->length_bytes >= length;
	copy = (const void *)((const char *)record + length);
	length += sizeof(*copy);
	return record->length_bytes >= length && copy->stack_bytes <= record->length_bytes - length;
}

static bool is_whole(const struct wire_record *record)
{
	switch (record->type) {
	case WIRE_RECORD_SAMPLE:
		return is_whole_sample(record);
	case WIRE_RECORD_WAKE:
		return record->length_bytes >= sizeof(struct wire_wake);
	case WIRE_RECORD_WAIT_COUNT:
		return record->length_bytes >= sizeof(struct wire_wait_count) &&
		       ((const struct wire_wait_count *)record)->wait > WIRE_WAIT_NONE &&
		       ((const struct wire_wait_count *)record)->wait < WIRE_WAIT_MAX;
	case WIRE_RECORD_PYTHON_CODE:
		return python_code_is_whole((const void *)record);
	default:
		return false;
	}
}

/* The outermost frames of a deep stack come as a ring, whose innermost one is at `first`. */
static void straighten(void *ring, size_t count, size_t item_bytes, size_t first)
{
	unsigned char turned[WIRE_OUTER_PYTHON_FRAMES * sizeof(struct wire_python_frame)];
	size_t head = first % count * item_bytes, bytes = count * item_bytes;

	assert(bytes <= sizeof(turned));
	memcpy(turned, (unsigned char *)ring + head, bytes - head);
	memcpy(turned + bytes - head, ring, head);
	memcpy(ring, turned, bytes);
}

static void straighten_frames(struct wire_sample *sample)
{
	struct wire_python_frame *python = (void *)(sample->frames + sample->kernel_frame_count);
	__u64 *user = (__u64 *)(python + sample->python_frame_count);

	if (sample->python_left_out)
		straighten(python + WIRE_MAX_PYTHON_FRAMES - WIRE_OUTER_PYTHON_FRAMES,
			WIRE_OUTER_PYTHON_FRAMES, sizeof(*python), sample->python_left_out);
	if (sample->user_left_out)
		straighten(user + WIRE_MAX_USER_FRAMES - WIRE_OUTER_USER_FRAMES,
			WIRE_OUTER_USER_FRAMES, sizeof(*user), sample->user_left_out);
}

int pipeline_add_record(struct pipeline *pipeline, const struct wire_record *record)
{
	struct timed_record *copy;

	if (!is_whole(record)) {
		pipeline->account.malformed++;
		return 0;
	}
	/* Sent before the first sample with it: not put in order, so that it is there. */
	if (record->type == WIRE_RECORD_PYTHON_CODE)
		return python_registry_add_code(pipeline->parts.python, (const void *)record);
	copy = malloc(record->length_bytes);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, record, record->length_bytes);
	if (record->type == WIRE_RECORD_SAMPLE) {
		struct wire_sample *sample = (struct wire_sample *)copy;

		sample->thread_name[sizeof(sample->thread_name) - 1] = '\0';
		sample->process_name[sizeof(sample->process_name) - 1] = '\0';
		straighten_frames(sample);
	}
	if (array_append(&pipeline->records, copy) < 0) {
		free(copy);
		return -ENOMEM;
	}
	return 0;
}

int pipeline_add_event(struct pipeline *pipeline, const struct sideband_event *event)
{
	struct queued_event queued = {.event = *event, .order = pipeline->next_order++};
	char *name = strdup(event->name ? event->name : "");

	queued.event.name = name;
	if (!name || array_append(&pipeline->events, queued) < 0) {
		free(name);
		return -ENOMEM;
	}
	return 0;
}

static int compare_records(const void *left, const void *right)
{
	const struct timed_record *a = *(struct timed_record *const *)left;
	const struct timed_record *b = *(struct timed_record *const *)right;

	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static int compare_events(const void *left, const void *right)
{
	const struct queued_event *a = left, *b = right;

	if (a->event.time_ns != b->event.time_ns)
		return a->event.time_ns < b->event.time_ns ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* A process that runs another program now may never be sampled again: its last name counts. */
static int retell_process(struct pipeline *pipeline, const struct sideband_event *event)
{
	const struct process *process = address_spaces_find(pipeline->parts.spaces, event->pid);

	if (!process || event->tid != event->pid ||
		!map_u64_get(&pipeline->known_processes, event->pid, NULL))
		return 0;
	return pipeline_write_process(pipeline, event->pid, "", process);
}

/* True when the event ended the process. */
static bool has_ended(const struct pipeline *pipeline, const struct sideband_event *event)
{
	const struct process *process = address_spaces_find(pipeline->parts.spaces, event->pid);

	return process && process->exited;
}

/* Takes the event's name. */
static int handle_event(struct pipeline *pipeline, struct queued_event *queued)
{
	int result = 0;

	if (queued->event.type == SIDEBAND_KSYMBOL)
		resolver_kernel_symbol(pipeline->parts.resolver, &queued->event);
	else
		result = address_spaces_apply(
			pipeline->parts.spaces, &queued->event, pipeline->parts.only_descendants);
	if (result == 0 && queued->event.type == SIDEBAND_COMM)
		result = retell_process(pipeline, &queued->event);
	if (result == 0 && queued->event.type == SIDEBAND_EXIT &&
		has_ended(pipeline, &queued->event))
		result = resolver_process_ended(pipeline->parts.resolver, queued->event.pid);
	if (queued->event.type == SIDEBAND_LOST)
		pipeline->account.side_band_lost += queued->event.lost;
	free((char *)queued->event.name);
	return result;
}

/* Cuts a record to its window; false: it lies in none. */
static bool is_recorded(struct windows *windows, struct timed_record *record)
{
	struct wire_wait_count *counted = (struct wire_wait_count *)record;
	struct wire_sample *sample = (struct wire_sample *)record;
	struct wire_wake *wake = (struct wire_wake *)record;
	__u64 none = 0;

	switch (record->record.type) {
	case WIRE_RECORD_WAKE:
		return pipeline_cut_wait(
			windows, &wake->time_ns, &wake->waited_ns, &wake->runnable_ns);
	case WIRE_RECORD_WAIT_COUNT:
		return pipeline_cut_wait(windows, &counted->time_ns, &counted->waited_ns, &none);
	default:
		if (sample->wait)
			return pipeline_cut_wait(windows, &sample->time_ns, &sample->waited_ns,
				&sample->runnable_ns);
		if (!windows)
			return true;
		/* What was launched is recorded whenever it is reported: its stack is, too. */
		return sample->flags & WIRE_SAMPLE_LAUNCH
			       ? windows_has(windows, sample->time_ns)
			       : windows_has_sample(windows, sample->time_ns);
	}
}

/* Takes the record. */
static int handle_record(struct pipeline *pipeline, struct timed_record *record)
{
	int result;

	if (!is_recorded(pipeline->parts.windows, record)) {
		pipeline->account.outside++;
		free(record);
		return 0;
	}
	if (record->record.type == WIRE_RECORD_SAMPLE)
		return handle_sample(pipeline, (struct wire_sample *)record);
	result = record->record.type == WIRE_RECORD_WAKE
			 ? pipeline_handle_wake(pipeline, (const struct wire_wake *)record)
			 : pipeline_handle_wait_count(
				   pipeline, (const struct wire_wait_count *)record);
	free(record);
	return result;
}

int pipeline_process(struct pipeline *pipeline, uint64_t until_ns)
{
	size_t record_at = 0, event_at = 0;
	int result = 0;

	if (pipeline->records.count)
		qsort(pipeline->records.items, pipeline->records.count,
			sizeof(*pipeline->records.items), compare_records);
	if (pipeline->events.count)
		qsort(pipeline->events.items, pipeline->events.count,
			sizeof(*pipeline->events.items), compare_events);
	while (result == 0) {
		uint64_t record_ns = record_at < pipeline->records.count
					     ? pipeline->records.items[record_at]->time_ns
					     : UINT64_MAX;
		uint64_t event_ns = event_at < pipeline->events.count
					    ? pipeline->events.items[event_at].event.time_ns
					    : UINT64_MAX;

		if (MIN(record_ns, event_ns) >= until_ns)
			break;
		if (pipeline->parts.between)
			pipeline->parts.between(pipeline->parts.context);
		if (event_ns <= record_ns)
			result = handle_event(pipeline, &pipeline->events.items[event_at++]);
		else
			result = handle_record(pipeline, pipeline->records.items[record_at++]);
	}
	pipeline->records.count -= record_at;
	pipeline->events.count -= event_at;
	if (record_at)
		memmove(pipeline->records.items, pipeline->records.items + record_at,
			pipeline->records.count * sizeof(*pipeline->records.items));
	if (event_at)
		memmove(pipeline->events.items, pipeline->events.items + event_at,
			pipeline->events.count * sizeof(*pipeline->events.items));
	return result < 0 ? result : pipeline_write_unnamed(pipeline);
}

const struct pipeline_account *pipeline_account(const struct pipeline *pipeline)
{
	return &pipeline->account;
}

struct pipeline *pipeline_free(struct pipeline *pipeline)
{
	if (!pipeline)
		return NULL;
	array_foreach (&pipeline->records, record)
		free(*record);
	array_foreach (&pipeline->events, queued)
		free((char *)queued->event.name);
	array_foreach (&pipeline->waiting, waiting) {
		snapshot_unref(pipeline, waiting->snapshot);
		free(waiting->sample);
	}
	snapshot_unref(pipeline, pipeline->latest_snapshot);
	array_done(&pipeline->records);
	array_done(&pipeline->events);
	array_done(&pipeline->waiting);
	map_u64_done(&pipeline->known_processes);
	map_u64_done(&pipeline->known_threads);
	array_done(&pipeline->unnamed);
	map_u64_done(&pipeline->last_waits);
	array_done(&pipeline->waits);
	map_u64_done(&pipeline->thread_pointers);
	free(pipeline);
	return NULL;
}
