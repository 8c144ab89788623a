/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices have to nest within a line of the trace, and ranges nest with neither samples nor the
 * ranges of other domains: each thread and domain has a line of its own, "NAME: DOMAIN". Ranges of
 * processes overlap one another: each process and domain has as many lines as ranges at once.
 */
#include "exporters/chrome/program.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "analyses/selection.h"
#include "base/json.h"
#include "base/map.h"
#include "exporters/exporters.h"
#include "model/gpu_counters.h"
#include "model/nvtx_operator.h"

/* Above every pid and tid (2^22). Devices have numbers above ranges. */
#define FIRST_STEPS_LINE (1U << 29)
#define WINDOWS_PROCESS  ((1U << 30) - 1)
#define FIRST_LINE       (1U << 30)
/* Lines of ranges of a process at once: beyond these the last one has slices that overlap. */
#define MAX_PLACES 256

/* Strings are interned: equal domains are equal pointers. */
struct line_key {
	const char *domain;
	uint32_t process, thread; /* thread MODEL_NONE: of the process */
	uint64_t place;           /* of ranges of a process that overlap */
};

struct program {
	const struct model *model;
	const uint64_t *process_numbers;
	struct trace *trace;
	struct intern lines;
	ARRAY_OF(uint32_t) tracks;        /* of each line */
	ARRAY_OF(uint64_t) busy_until_ns; /* of each line */
	struct map_u64 arguments;         /* string → the operator that has it */
	uint32_t annotation;              /* string */
};

static int add_text(struct program *program, const char *text, uint32_t *ret_string)
{
	return MIN(intern_add(&program->trace->strings, text, strlen(text), ret_string), 0);
}

/* ---- rows ---- */

/* `at`: its process, line and owner. */
static int add_track(struct program *program, const struct trace_track *at,
	const char *process_name, const char *thread_name, uint32_t *ret_track)
{
	struct trace_track track = *at;
	int r = add_text(program, process_name, &track.process_name);

	track.process_sort = track.thread_sort = TRACE_NO_NUMBER;
	r = r ?: add_text(program, thread_name, &track.thread_name);
	*ret_track = (uint32_t)program->trace->tracks.count;
	return r ?: array_append(&program->trace->tracks, track);
}

/* Rows with the same arguments share their detail. `object`: a JSON object. */
static int find_arguments(struct program *program, const struct strbuf *object, uint32_t *ret_op)
{
	struct trace_op op = trace_no_op;
	uint64_t known;
	int r = strbuf_status(object);

	*ret_op = MODEL_NONE;
	if (r < 0 || object->length <= strlen("{}"))
		return r;
	r = MIN(intern_add(
			&program->trace->strings, object->data + 1, object->length - 2, &op.others),
		0);
	if (r == 0 && map_u64_get(&program->arguments, op.others, &known)) {
		*ret_op = (uint32_t)known;
		return 0;
	}
	*ret_op = (uint32_t)program->trace->ops.count;
	r = r ?: map_u64_set(&program->arguments, op.others, *ret_op);
	return r ?: array_append(&program->trace->ops, op);
}

struct row {
	const char *name;
	uint64_t start_ns, end_ns;
	bool is_mark;
	uint32_t category_name; /* string; 0: none */
	uint32_t track;
	bool is_range; /* it may be an operator */
};

/* `arguments`: a JSON object. */
static int add_row(struct program *program, const struct row *row, const struct strbuf *arguments)
{
	uint64_t origin_ns = program->trace->recorded_from_ns;
	struct trace_event event = {
		.start_ns = (int64_t)(row->start_ns - origin_ns),
		.duration_ns = row->is_mark
				       ? TRACE_NO_DURATION
				       : (int64_t)(MAX(row->end_ns, row->start_ns) - row->start_ns),
		.external_id = TRACE_NO_ID,
		.category_name = row->category_name,
		.category = TRACE_USER_ANNOTATION,
		.track = row->track,
	};
	struct nvtx_operator marked;
	int r = find_arguments(program, arguments, &event.detail);

	r = r ?: add_text(program, row->name, &event.name);
	/* What emit_nvtx() marks is an operator, as PyTorch's profiler writes it. */
	if (r == 0 && row->is_range && !row->is_mark && nvtx_operator_read(row->name, &marked)) {
		r = add_text(program, "cpu_op", &event.category_name);
		r = r ?: nvtx_operator_set(program->trace, row->name, &marked, &event);
	}
	return r ?: array_append(&program->trace->events, event);
}

/* ---- ranges ---- */

static bool is_in_domain(const struct model_range *range)
{
	return *range->domain && strcmp(range->domain, "sonde") != 0;
}

/* The name says whose line it is, and its owner says so to who reads the file. */
static int add_line(struct program *program, const struct model_range *range, uint64_t place)
{
	const struct model *model = program->model;
	const struct model_thread *thread =
		range->thread == MODEL_NONE ? NULL : &model->threads.items[range->thread];
	const struct trace_track at = {
		.pid = (int64_t)program->process_numbers[range->process],
		.tid = (int64_t)(FIRST_LINE + program->tracks.count),
		.owner_tid = thread ? (int64_t)thread->tid : TRACE_OF_PROCESS,
	};
	_cleanup_strbuf_ struct strbuf name = {0};
	uint32_t track;
	int r;

	strbuf_addf(&name, "%s: %s",
		thread ? thread->name : model->processes.items[range->process].name,
		*range->domain ? range->domain : "ranges");
	if (place)
		strbuf_addf(&name, ", %llu", (unsigned long long)place + 1);
	r = strbuf_status(&name);
	r = r ?: add_track(program, &at, "", strbuf_cstr(&name), &track);
	r = r ?: array_append(&program->tracks, track);
	return r ?: array_append(&program->busy_until_ns, (uint64_t)0);
}

/* The first line of the range's owner and domain that is free; ranges come in order of start. */
static int find_line(struct program *program, const struct model_range *range, uint32_t *ret_track)
{
	struct line_key key = {
		.domain = range->domain, .process = range->process, .thread = range->thread};
	uint32_t line;
	int r;

	for (;; key.place++) {
		r = intern_add(&program->lines, &key, sizeof(key), &line);
		if (r != 0 || range->thread != MODEL_NONE || key.place + 1 == MAX_PLACES ||
			program->busy_until_ns.items[line] <= range->start_ns)
			break;
	}
	if (r > 0)
		r = add_line(program, range, key.place);
	if (r < 0)
		return r;
	program->busy_until_ns.items[line] = range->end_ns;
	*ret_track = program->tracks.items[line];
	return 0;
}

/* What the program gave with the range, and what says that it is one: its category is its own. */
static void write_arguments(
	struct json_writer *json, const struct model *model, const struct model_range *range)
{
	json_begin_object(json);
	if (is_in_domain(range))
		json_member_text(json, TRACE_RANGE_DOMAIN, range->domain);
	if (*range->category)
		json_member_text(json, "category", range->category);
	if (range->is_open)
		json_member_text(json, TRACE_END, TRACE_END_UNKNOWN);
	export_range_fields(json, model, range);
	json_end_object(json);
}

/* Ranges that a program did not put into a domain have the category that tools for the PyTorch
 * profiler's traces look for. */
static int add_range(struct program *program, const struct model_range *range)
{
	_cleanup_strbuf_ struct strbuf arguments = {0};
	struct json_writer json = {.out = &arguments};
	struct row row = {
		.name = *range->name ? range->name : "[no name]",
		.start_ns = range->start_ns,
		.end_ns = range->end_ns,
		.is_mark = range->is_mark,
		.is_range = true,
		.category_name = program->annotation,
	};
	int r = find_line(program, range, &row.track);

	if (r == 0 && is_in_domain(range))
		r = add_text(program, range->domain, &row.category_name);
	write_arguments(&json, program->model, range);
	return r ?: add_row(program, &row, &arguments);
}

/* ---- windows and steps ---- */

static int add_window(struct program *program, const struct model_window *window, uint32_t track)
{
	_cleanup_strbuf_ struct strbuf arguments = {0};
	struct json_writer json = {.out = &arguments};
	uint32_t category;
	char name[32];

	snprintf(name, sizeof(name), "window %u", window->number);
	json_begin_object(&json);
	json_member_u64(&json, "number", window->number);
	json_member_text(&json, "opened_by", capture_window_trigger_name(window->opened_by));
	json_member_text(&json, "closed_by", capture_window_reason_name(window->closed_by));
	if (*window->label)
		json_member_text(&json, "label", window->label);
	if (window->leader_pid)
		json_member_u64(&json, "leader_pid", window->leader_pid);
	if (window->last_step >= window->first_step) {
		json_member_u64(&json, "first_step", window->first_step);
		json_member_u64(&json, "last_step", window->last_step);
	}
	json_end_object(&json);
	if (add_text(program, TRACE_WINDOW_CATEGORY, &category) < 0)
		return -ENOMEM;
	return add_row(program,
		&(struct row){.name = *window->label ? window->label : name,
			.start_ns = window->begin_ns,
			.end_ns = window->end_ns,
			.category_name = category,
			.track = track},
		&arguments);
}

static int add_windows(struct program *program)
{
	const struct model *model = program->model;
	uint32_t track;
	int r;

	if (!model->windows.count || selection_left_out(model, SELECTION_WINDOWS))
		return 0;
	r = add_track(program, &(struct trace_track){.pid = WINDOWS_PROCESS, .tid = 1}, "Windows",
		"", &track);
	for (size_t i = 0; r == 0 && i < model->windows.count; i++)
		r = add_window(program, &model->windows.items[i], track);
	return r;
}

/* Called what tools for the PyTorch profiler's traces look for. */
static int add_step(struct program *program, const struct model_step *step, uint32_t track)
{
	_cleanup_strbuf_ struct strbuf arguments = {0};
	struct json_writer json = {.out = &arguments};
	char name[48];

	snprintf(name, sizeof(name), "ProfilerStep#%llu", (unsigned long long)step->number);
	json_begin_object(&json);
	json_member_text(&json, "name", step->name);
	json_member_u64(&json, "number", step->number);
	if (step->is_cut)
		json_member_text(&json, TRACE_END, TRACE_END_CUT);
	json_end_object(&json);
	return add_row(program,
		&(struct row){.name = name,
			.start_ns = step->start_ns,
			.end_ns = step->end_ns,
			.category_name = program->annotation,
			.track = track},
		&arguments);
}

static int add_steps(struct program *program)
{
	const struct model *model = program->model;
	int64_t line = FIRST_STEPS_LINE;
	uint32_t track = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->steps.count; i++) {
		const struct model_step *step = &model->steps.items[i];

		if (!i || step[-1].process != step->process || step[-1].name != step->name)
			r = add_track(program,
				&(struct trace_track){
					.pid = (int64_t)program->process_numbers[step->process],
					.tid = ++line},
				"", "steps", &track);
		r = r ?: add_step(program, step, track);
	}
	return r;
}

/* ---- counters ---- */

/* Of a process: all of its counters have one track. */
static int add_counters(struct program *program)
{
	const struct model *model = program->model;
	struct map_u64 tracks = {0};
	uint64_t track;
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->counters.count; i++) {
		const struct model_counter *counter = &model->counters.items[i];
		struct trace_counter row = {
			.time_ns = (int64_t)(counter->time_ns - program->trace->recorded_from_ns),
			.value = counter->value,
		};

		if (!isfinite(counter->value))
			continue;
		if (!map_u64_get(&tracks, counter->process, &track)) {
			r = add_track(program,
				&(struct trace_track){
					.pid = (int64_t)program->process_numbers[counter->process]},
				"", "", &row.track);
			track = row.track;
			r = r ?: map_u64_set(&tracks, counter->process, track);
		}
		row.track = (uint32_t)track;
		row.device = gpu_counter_device(model, counter, program->trace);
		r = r ?: add_text(program, counter->name, &row.name);
		r = r ?: add_text(program, TRACE_COUNTER_SERIES, &row.series);
		r = r ?: array_append(&program->trace->counters, row);
	}
	map_u64_done(&tracks);
	return r;
}

int chrome_add_program(
	struct trace *trace, const struct model *model, const uint64_t *process_numbers)
{
	struct program program = {
		.model = model, .process_numbers = process_numbers, .trace = trace};
	int r = add_text(&program, TRACE_ANNOTATION_CATEGORY, &program.annotation);

	for (size_t i = 0; r == 0 && i < model->ranges.count; i++)
		r = add_range(&program, &model->ranges.items[i]);
	r = r ?: add_windows(&program);
	r = r ?: add_steps(&program);
	r = r ?: add_counters(&program);
	intern_done(&program.lines);
	array_done(&program.tracks);
	array_done(&program.busy_until_ns);
	map_u64_done(&program.arguments);
	return r;
}
