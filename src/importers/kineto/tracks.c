/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and streams of a trace: by pid and tid, which may be numbers or words. */
#include "importers/kineto/parser.h"

#include <errno.h>

struct track_key {
	int64_t pid, tid;
	uint32_t pid_text, tid_text;
};

struct process_key {
	int64_t pid;
	uint64_t pid_text;
};

/* A pid or tid: a number, or the text of what is none. */
struct track_number {
	int64_t value; /* TRACE_NO_NUMBER: see the text */
	uint32_t text; /* string; 0: a number */
};

static int read_number(struct kineto_parser *parser, const struct json_text *value,
	struct track_number *ret_number)
{
	const struct json_text text = json_text_inside(value);
	struct track_number number = {0};
	int r;

	if (json_text_i64(&text, &number.value) < 0 || number.value == TRACE_NO_NUMBER) {
		number.value = TRACE_NO_NUMBER;
		r = text.length ? kineto_add_string(parser, value, &number.text) : 0;
		if (r < 0)
			return r;
	}
	*ret_number = number;
	return 0;
}

static int find_process(
	struct kineto_parser *parser, const struct track_number *pid, uint32_t *ret_process)
{
	const struct process_key key = {pid->value, pid->text};
	struct kineto_tracks *tracks = &parser->tracks;
	int r = intern_add(&tracks->process_keys, &key, sizeof(key), ret_process);

	if (r > 0)
		r = array_append(
			&tracks->processes, (struct kineto_process){.sort = TRACE_NO_NUMBER});
	return r;
}

int kineto_add_track(
	struct kineto_parser *parser, const struct trace_track *track, uint32_t *ret_track)
{
	const struct track_key key = {track->pid, track->tid, track->pid_text, track->tid_text};
	const struct track_number pid = {track->pid, track->pid_text};
	struct kineto_tracks *tracks = &parser->tracks;
	uint32_t process;
	int r = intern_add(&tracks->keys, &key, sizeof(key), ret_track);

	if (r <= 0)
		return r;
	r = find_process(parser, &pid, &process);
	if (r < 0)
		return r;
	r = array_append(&tracks->process_of, process);
	return r < 0 ? r : array_append(&parser->trace->tracks, *track);
}

static int look_up_track(struct kineto_parser *parser, const struct json_text *pid_value,
	const struct json_text *tid_value, uint32_t *ret_track)
{
	struct track_number pid, tid;

	if (read_number(parser, pid_value, &pid) < 0 || read_number(parser, tid_value, &tid) < 0)
		return -ENOMEM;
	return kineto_add_track(parser,
		&(struct trace_track){
			.pid = pid.value,
			.tid = tid.value,
			.pid_text = pid.text,
			.tid_text = tid.text,
			.process_sort = TRACE_NO_NUMBER,
			.thread_sort = TRACE_NO_NUMBER,
		},
		ret_track);
}

int kineto_find_track(struct kineto_parser *parser, const struct json_text *pid,
	const struct json_text *tid, uint32_t *ret_track)
{
	struct kineto_tracks *tracks = &parser->tracks;
	int r;

	if (kineto_is_last(&tracks->last_tid, tid) && kineto_is_last(&tracks->last_pid, pid)) {
		*ret_track = tracks->last;
		return 0;
	}
	r = look_up_track(parser, pid, tid, ret_track);
	if (r < 0)
		return r;
	kineto_set_last(&tracks->last_pid, pid);
	kineto_set_last(&tracks->last_tid, tid);
	tracks->last = *ret_track;
	return 0;
}

static int read_process_metadata(
	struct kineto_parser *parser, const struct json_text *name, const struct json_text *pid)
{
	const struct json_text *value;
	struct kineto_process *known;
	struct track_number number;
	uint32_t process;

	if (read_number(parser, pid, &number) < 0 || find_process(parser, &number, &process) < 0)
		return -ENOMEM;
	known = &parser->tracks.processes.items[process];
	if (json_text_equals(name, "process_sort_index"))
		return !kineto_take_i64(&parser->arguments, KINETO_SORT_INDEX, &known->sort);
	if (json_text_equals(name, "process_name")) {
		value = kineto_take(&parser->arguments, KINETO_NAME);
		return value ? kineto_add_string(parser, value, &known->name) : 1;
	}
	value = kineto_take(&parser->arguments, KINETO_LABELS);
	return value ? kineto_add_string(parser, value, &known->labels) : 1;
}

static int read_thread_metadata(struct kineto_parser *parser, const struct json_text *name,
	const struct json_text *pid, const struct json_text *tid)
{
	const struct json_text *value;
	struct trace_track *known;
	uint32_t track;
	int r = kineto_find_track(parser, pid, tid, &track);

	if (r < 0)
		return r;
	known = &parser->trace->tracks.items[track];
	if (json_text_equals(name, "thread_sort_index"))
		return !kineto_take_i64(&parser->arguments, KINETO_SORT_INDEX, &known->thread_sort);
	kineto_take_i64(&parser->arguments, KINETO_OWNER, &known->owner_tid);
	value = kineto_take(&parser->arguments, KINETO_NAME);
	return value ? kineto_add_string(parser, value, &known->thread_name) : 1;
}

int kineto_read_metadata(struct kineto_parser *parser, const struct json_text *name,
	const struct json_text *pid, const struct json_text *tid)
{
	if (json_text_equals(name, "process_name") || json_text_equals(name, "process_labels") ||
		json_text_equals(name, "process_sort_index"))
		return read_process_metadata(parser, name, pid);
	if (json_text_equals(name, "thread_name") || json_text_equals(name, "thread_sort_index"))
		return read_thread_metadata(parser, name, pid, tid);
	return 1;
}

void kineto_finish_tracks(struct kineto_parser *parser)
{
	for (size_t i = 0; i < parser->trace->tracks.count; i++) {
		struct trace_track *track = &parser->trace->tracks.items[i];
		const struct kineto_process *process =
			&parser->tracks.processes.items[parser->tracks.process_of.items[i]];

		track->process_name = process->name;
		track->process_labels = process->labels;
		track->process_sort = process->sort;
	}
}

void kineto_tracks_done(struct kineto_tracks *tracks)
{
	intern_done(&tracks->keys);
	intern_done(&tracks->process_keys);
	array_done(&tracks->processes);
	array_done(&tracks->process_of);
}
