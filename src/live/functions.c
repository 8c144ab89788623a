/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions by the CPU time of their own, as the report's section function has them: of each sample
 * the innermost frame that the report shows (model/shown.h: without the interpreter's own functions
 * where there are Python frames), named by the innermost inlined function where lines are known.
 */
#include <stdio.h>
#include <stdlib.h>

#include "live/state.h"
#include "model/classify.h"
#include "model/shown.h"

#define ROWS 30

/* A function, while rows are made. */
struct row {
	uint32_t name, mapping;
	uint64_t samples, recent;
};

/* ---- what a capture names ---- */

int live_add_mapping(
	struct live_figures *figures, capture_id id, const struct capture_mapping *mapping)
{
	enum model_class class = classify_native(mapping->path, false);
	struct live_mapping kept = {
		.is_interpreter = class == MODEL_CLASS_INTERPRETER,
		.is_sonde = class == MODEL_CLASS_SONDE,
		.is_start = class == MODEL_CLASS_NATIVE || class == MODEL_CLASS_RUNTIME,
	};
	int r = live_keep_text(figures, mapping->path, &kept.path);

	(void)id; /* counted up from 1 */
	return r ?: array_append(&figures->functions.mappings, kept);
}

static void classify_frame(
	const struct live_figures *figures, struct live_frame *frame, enum capture_frame_kind kind)
{
	const struct live_mapping *mapping =
		frame->mapping ? &figures->functions.mappings.items[frame->mapping - 1] : NULL;

	frame->is_python = kind == CAPTURE_FRAME_INTERPRETED;
	if (kind == CAPTURE_FRAME_KERNEL || !mapping)
		return;
	if (frame->is_python) {
		enum model_class class = classify_python(live_text(figures, mapping->path));

		frame->is_interpreter = class == MODEL_CLASS_INTERPRETER;
		frame->is_sonde = class == MODEL_CLASS_SONDE;
		return;
	}
	frame->is_interpreter = mapping->is_interpreter;
	frame->is_sonde = mapping->is_sonde;
	frame->is_start = mapping->is_start;
}

int live_add_frame(struct live_figures *figures, capture_id id, const struct capture_frame *frame)
{
	struct live_frame kept = {.rel_pc = frame->rel_pc, .mapping = frame->mapping};
	int r = 0;

	(void)id;
	classify_frame(figures, &kept, frame->kind);
	if (kept.is_sonde)
		kept.mapping = 0; /* as model_hide_sonde() has it */
	if (kept.is_sonde || (frame->function && *frame->function)) {
		r = live_keep_text(
			figures, kept.is_sonde ? MODEL_SONDE_FRAME : frame->function, &kept.name);
		kept.name++;
	}
	return r ?: array_append(&figures->functions.frames, kept);
}

static const struct live_frame *frame_of(const struct live_figures *figures, capture_id id)
{
	return &figures->functions.frames.items[id - 1];
}

/* The innermost frame that is shown, as of model_hide_interpreter(). */
static capture_id innermost_shown(
	const struct live_figures *figures, const capture_id *frames, size_t count)
{
	size_t python_at = 0;

	while (python_at < count && !frame_of(figures, frames[python_at])->is_python)
		python_at++;
	if (python_at == count)
		return count ? frames[count - 1] : 0;
	for (size_t i = count; i-- > 0;) {
		const struct live_frame *frame = frame_of(figures, frames[i]);

		if (!frame->is_interpreter && (i >= python_at || !frame->is_start))
			return frames[i];
	}
	return frames[count - 1];
}

int live_add_callstack(
	struct live_figures *figures, capture_id id, const capture_id *frames, size_t count)
{
	(void)id;
	return array_append(&figures->functions.innermost, innermost_shown(figures, frames, count));
}

static uint64_t place_key(uint32_t mapping, uint64_t rel_pc)
{
	return hash_u64(rel_pc ^ hash_u64(mapping));
}

int live_add_symbols(struct live_figures *figures, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	uint32_t name;
	int r;

	if (!count || !lines[0].function || !*lines[0].function)
		return 0;
	r = live_keep_text(figures, lines[0].function, &name);
	return r ?: map_u64_set(&figures->functions.symbols, place_key(mapping, rel_pc), name);
}

/* ---- counting ---- */

int live_count_sample(struct live_figures *figures, const struct capture_sample *sample)
{
	struct live_functions *functions = &figures->functions;
	uint64_t second = live_second(figures, sample->time_ns);
	uint32_t id = sample->callstack ? functions->innermost.items[sample->callstack - 1] : 0;
	struct live_frame *frame;
	int r = 0;

	if (!id) {
		live_recent_add(&functions->without_stack, second, 1);
		return 0;
	}
	frame = &functions->frames.items[id - 1];
	if (!frame->cost) {
		r = array_append(&functions->costs, (struct live_cost){.frame = id});
		frame->cost = (uint32_t)functions->costs.count;
	}
	if (r == 0)
		live_recent_add(&functions->costs.items[frame->cost - 1].samples, second, 1);
	return r;
}

/* ---- rows ---- */

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int name_frame(
	struct live_figures *figures, const struct live_frame *frame, uint32_t *ret_name)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t name;

	if (map_u64_get(
		    &figures->functions.symbols, place_key(frame->mapping, frame->rel_pc), &name)) {
		*ret_name = (uint32_t)name;
		return 0;
	}
	if (frame->name) {
		*ret_name = frame->name - 1;
		return 0;
	}
	strbuf_add(&text, "[unknown]");
	if (frame->mapping)
		strbuf_addf(&text, " %s",
			file_name(live_text(figures,
				figures->functions.mappings.items[frame->mapping - 1].path)));
	return strbuf_status(&text) ?: live_keep_text(figures, strbuf_cstr(&text), ret_name);
}

struct rows {
	ARRAY_OF(struct row) items;
	struct map_u64 index;
};

static int add_cost(struct live_figures *figures, struct rows *rows, const struct live_cost *cost)
{
	const struct live_frame *frame = frame_of(figures, cost->frame);
	struct row *row;
	uint64_t place, key;
	uint32_t name = 0;
	int r = name_frame(figures, frame, &name);

	if (r < 0)
		return r;
	key = (uint64_t)name << 32 | frame->mapping;
	if (!rows->items.items || !map_u64_get(&rows->index, key, &place)) {
		place = rows->items.count;
		r = map_u64_set(&rows->index, key, place);
		if (r == 0)
			r = array_append(&rows->items,
				(struct row){.name = name, .mapping = frame->mapping});
		if (r != 0)
			return r;
	}
	row = &rows->items.items[place];
	row->samples += cost->samples.total;
	row->recent += live_recent_sum(figures, &cost->samples);
	return 0;
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct row *a = left, *b = right;

	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return strcmp(live_text(context, a->name), live_text(context, b->name));
}

static void write_row(
	const struct live_figures *figures, struct json_writer *json, const struct row *row)
{
	double period_ns = (double)figures->session.period_ns;

	json_begin_object(json);
	live_member_string(json, "name", live_text(figures, row->name));
	live_member_name(json, "module",
		row->mapping ? file_name(live_text(figures,
				       figures->functions.mappings.items[row->mapping - 1].path))
			     : "");
	live_member_ms(json, "self_ms", (double)row->samples * period_ns);
	live_member_ms(json, "recent_ms", (double)row->recent * period_ns);
	json_end_object(json);
}

int live_write_functions(struct live_figures *figures, struct json_writer *json)
{
	struct rows rows = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < figures->functions.costs.count; i++)
		r = add_cost(figures, &rows, &figures->functions.costs.items[i]);
	if (r == 0 && rows.items.count)
		qsort_r(rows.items.items, rows.items.count, sizeof(struct row), compare_rows,
			figures);
	live_begin_message(figures, json);
	live_member_t_ms(figures, json, "t_ms", figures->newest_ns);
	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; r == 0 && i < MIN(rows.items.count, (size_t)ROWS); i++)
		write_row(figures, json, &rows.items.items[i]);
	json_end_array(json);
	json_end_object(json);
	array_done(&rows.items);
	map_u64_done(&rows.index);
	return r;
}

void live_functions_done(struct live_functions *functions)
{
	array_done(&functions->mappings);
	array_done(&functions->frames);
	array_done(&functions->innermost);
	array_done(&functions->costs);
	map_u64_done(&functions->symbols);
}
