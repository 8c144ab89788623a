/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dump/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/thread_names.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/map.h"
#include "model/format.h"
#include "report/cpu/samples.h"

/* A thread, and what is known of it. */
struct row {
	uint32_t tid;
	char name[16];
	const struct model_sample *sample; /* its newest; NULL: none came */
};

static bool is_better(const struct model_sample *sample, const struct model_sample *known)
{
	return !known || known->stack == MODEL_NONE || sample->stack != MODEL_NONE;
}

/* Samples are in order of time. */
static const struct model_sample *newest_sample(
	const struct model *model, uint32_t pid, uint32_t tid)
{
	const struct model_sample *found = NULL;

	array_foreach (&model->samples, sample) {
		const struct model_thread *thread = &model->threads.items[sample->thread];

		if (thread->tid == tid && model->processes.items[thread->process].pid == pid &&
			sample->wait != WIRE_WAIT_UNSEEN && is_better(sample, found))
			found = sample;
	}
	return found;
}

/* The row of thread `i`; its name is "" when it has ended. */
static struct row row_of(const struct dump_threads *threads, size_t i)
{
	struct row row = {.tid = threads->tids->pids.items[i]};

	if (proc_read_thread_name(threads->pid, row.tid, row.name) < 0)
		row.name[0] = '\0';
	row.sample = newest_sample(threads->model, threads->pid, row.tid);
	return row;
}

static const struct model_process *process_of(const struct dump_threads *threads)
{
	array_foreach (&threads->model->processes, process) {
		if (process->pid == threads->pid)
			return process;
	}
	return NULL;
}

static const struct model_stack *stack_of(const struct model *model, const struct row *row)
{
	return row->sample && row->sample->stack != MODEL_NONE
		       ? &model->stacks.items[row->sample->stack]
		       : NULL;
}

/* ---- text ---- */

static void add_state(struct strbuf *out, const struct model *model, const struct row *row)
{
	const struct model_sample *sample = row->sample;

	if (!sample) {
		strbuf_add(out, "no stack came: it ran too briefly, or ended");
		return;
	}
	if (sample->wait == WIRE_WAIT_NONE)
		strbuf_add(out, "running");
	else
		strbuf_addf(out, "waiting: %s", report_wait_meaning(sample->wait));
	if (sample->gil == WIRE_GIL_HELD)
		strbuf_add(out, ", holds Python's interpreter lock");
	if (sample->gil == WIRE_GIL_WAITING && sample->gil_holder != MODEL_NONE)
		strbuf_addf(
			out, ", held by thread %u", model->threads.items[sample->gil_holder].tid);
}

/* "    join (/usr/lib/python3.11/threading.py:1112)" */
static void add_frame(struct strbuf *out, const struct model *model, uint32_t index)
{
	const struct model_frame *frame = &model->frames.items[index];
	_cleanup_strbuf_ struct strbuf name = {0}, place = {0};

	if (model->functions.items[frame->function].kind == CAPTURE_FRAME_KERNEL)
		return; /* the state says what the kernel does */
	model_frame_name(model, index, &name);
	if (*frame->source_file && frame->line)
		strbuf_addf(&place, "%s:%u", frame->source_file, frame->line);
	else if (*frame->source_file)
		strbuf_add(&place, frame->source_file);
	else
		strbuf_add(&place, model_function_module(model, frame->function));
	strbuf_add(out, "    ");
	escape_plain(out, strbuf_cstr(&name));
	strbuf_add(out, " (");
	escape_plain(out, strbuf_cstr(&place));
	strbuf_add(out, ")\n");
	strbuf_inherit_status(out, &name);
	strbuf_inherit_status(out, &place);
}

/* What stands behind the thread's name: its state and its stack. */
static void add_body(struct strbuf *out, const struct model *model, const struct row *row)
{
	const struct model_stack *stack = stack_of(model, row);

	add_state(out, model, row);
	strbuf_add_char(out, '\n');
	for (uint32_t i = stack ? stack->count : 0; i-- > 0;)
		add_frame(out, model, model->stack_frames.items[stack->first + i]);
	if (stack && stack->stop != WIRE_STOP_COMPLETE && stack->stop != WIRE_STOP_NO_USER_STACK)
		strbuf_addf(out, "    [the stack ends early: %s]\n", wire_stop_name(stack->stop));
}

/* Threads whose state and stack are printed alike, such as the idle workers of a pool. */
struct group {
	ARRAY_OF(struct row) rows; /* by tid */
};

struct groups {
	struct intern bodies; /* the id of a body is the index of its group */
	ARRAY_OF(struct group) items;
};

static int add_to_group(struct groups *groups, const struct model *model, const struct row *row)
{
	_cleanup_strbuf_ struct strbuf body = {0};
	uint32_t id;
	int r;

	add_body(&body, model, row);
	if (strbuf_status(&body) < 0)
		return strbuf_status(&body);
	r = intern_add(&groups->bodies, strbuf_cstr(&body), body.length, &id);
	if (r > 0)
		r = array_append(&groups->items, (struct group){0});
	return r < 0 ? r : array_append(&groups->items.items[id].rows, *row);
}

static void groups_done(struct groups *groups)
{
	array_foreach (&groups->items, group)
		array_done(&group->rows);
	array_done(&groups->items);
	intern_done(&groups->bodies);
}

/* "4711-4713 4720": every id, for those who search for one. */
static void add_tids(struct strbuf *out, const struct group *group)
{
	const struct row *rows = group->rows.items;
	size_t last;

	for (size_t first = 0; first < group->rows.count; first = last + 1) {
		last = first;
		while (last + 1 < group->rows.count && rows[last + 1].tid == rows[last].tid + 1)
			last++;
		strbuf_addf(out, " %u", rows[first].tid);
		if (last > first)
			strbuf_addf(out, "-%u", rows[last].tid);
	}
}

#define NAMES_SHOWN 4U

/* "worker_0" "worker_1" and 62 other names. */
static int add_names(struct strbuf *out, const struct group *group)
{
	struct intern names = {0};
	uint32_t id;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < group->rows.count; i++) {
		const char *name = group->rows.items[i].name;

		r = intern_add(&names, name, strlen(name), &id);
	}
	for (size_t i = 0; r >= 0 && i < MIN(names.entries.count, (size_t)NAMES_SHOWN); i++) {
		strbuf_add(out, " \"");
		escape_plain(out, intern_get(&names, (uint32_t)i));
		strbuf_add(out, "\"");
	}
	if (names.entries.count > NAMES_SHOWN)
		strbuf_addf(out, " and %zu more name%s", names.entries.count - NAMES_SHOWN,
			names.entries.count == NAMES_SHOWN + 1 ? "" : "s");
	intern_done(&names);
	return r < 0 ? r : 0;
}

static int add_group(struct strbuf *out, const struct group *group, const char *body)
{
	int r;

	strbuf_add(out, "\n");
	if (group->rows.count == 1)
		strbuf_add(out, "Thread");
	else
		strbuf_addf(out, "%zu threads", group->rows.count);
	add_tids(out, group);
	r = add_names(out, group);
	strbuf_addf(out, ": %s", body);
	return r;
}

int dump_threads_print(const struct dump_threads *threads, struct strbuf *out)
{
	const struct model_process *process = process_of(threads);
	_cleanup_strbuf_ struct strbuf command = {0};
	struct groups groups = {0};
	const char *missing;
	int r = 0;

	strbuf_addf(out, "Process %u: ", threads->pid);
	if (process)
		format_command(
			&command, *process->command_line ? process->command_line : process->name);
	escape_plain(out, process ? strbuf_cstr(&command) : "[unknown]");
	strbuf_inherit_status(out, &command);
	strbuf_add_char(out, '\n');
	for (size_t i = 0; r == 0 && i < threads->tids->pids.count; i++) {
		const struct row row = row_of(threads, i);

		r = add_to_group(&groups, threads->model, &row);
	}
	for (size_t i = 0; r == 0 && i < groups.items.count; i++)
		r = add_group(out, &groups.items.items[i], intern_get(&groups.bodies, (uint32_t)i));
	groups_done(&groups);
	missing = thread_names_missing(threads->model);
	if (missing)
		strbuf_addf(out, "\n%s\n", missing);
	return r < 0 ? r : strbuf_status(out);
}

/* ---- JSON ---- */

static const char *kind_of(const struct model_function *function)
{
	switch (function->kind) {
	case CAPTURE_FRAME_KERNEL:
		return "kernel";
	case CAPTURE_FRAME_INTERPRETED:
		return "python";
	case CAPTURE_FRAME_JIT:
		return "jit";
	default:
		return "native";
	}
}

static void write_frame(struct json_writer *json, const struct model *model, uint32_t index)
{
	const struct model_frame *frame = &model->frames.items[index];
	_cleanup_strbuf_ struct strbuf name = {0};

	model_frame_name(model, index, &name);
	json_begin_object(json);
	json_member_text(json, "function", strbuf_cstr(&name));
	json_member_text(json, "file", frame->source_file);
	json_member_known(json, "line", frame->line != 0, frame->line);
	json_member_text(json, "module", model_function_module(model, frame->function));
	json_member_text(json, "kind", kind_of(&model->functions.items[frame->function]));
	json_key(json, "inlined");
	json_bool(json, frame->inlined);
	json_end_object(json);
	strbuf_inherit_status(json->out, &name);
}

static void write_row(struct json_writer *json, const struct model *model, const struct row *row)
{
	const struct model_stack *stack = stack_of(model, row);
	const struct model_sample *sample = row->sample;
	bool waits = sample && sample->wait != WIRE_WAIT_NONE;
	bool is_held = sample && sample->gil_holder != MODEL_NONE;

	json_begin_object(json);
	json_member_u64(json, "tid", row->tid);
	json_member_text(json, "name", row->name);
	json_member_text(json, "state", !sample ? "unknown" : waits ? "waiting" : "running");
	json_member_text(json, "waits_for", waits ? wire_wait_name(sample->wait) : NULL);
	json_member_text(json, "interpreter_lock",
		sample && sample->gil ? wire_gil_name(sample->gil) : NULL);
	json_member_known(json, "interpreter_lock_holder", is_held,
		is_held ? model->threads.items[sample->gil_holder].tid : 0);
	json_member_text(json, "stack_end", stack ? wire_stop_name(stack->stop) : NULL);
	json_key(json, "frames");
	json_begin_array(json);
	for (uint32_t i = stack ? stack->count : 0; i-- > 0;)
		write_frame(json, model, model->stack_frames.items[stack->first + i]);
	json_end_array(json);
	json_end_object(json);
}

int dump_threads_json(const struct dump_threads *threads, struct strbuf *out)
{
	const struct model_process *process = process_of(threads);
	struct json_writer json = {.out = out, .pretty = true};

	json_begin_object(&json);
	json_member_text(&json, "format", "sonde-dump");
	json_member_u64(&json, "version", 1);
	json_member_text(&json, "sonde_version", SONDE_VERSION);
	json_member_text(&json, "mode", threads->mode);
	json_member_u64(&json, "pid", threads->pid);
	json_member_text(&json, "command_line", process ? process->command_line : NULL);
	json_key(&json, "threads");
	json_begin_array(&json);
	for (size_t i = 0; i < threads->tids->pids.count; i++) {
		const struct row row = row_of(threads, i);

		write_row(&json, threads->model, &row);
	}
	json_end_array(&json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return strbuf_status(out);
}
