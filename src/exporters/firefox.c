/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processed profile format of the Firefox Profiler (profiler.firefox.com), version 48, which
 * later versions of its page upgrade: src/types/profile.js of firefox-devtools/profiler. Each
 * thread has tables of columns that refer to one another by index; a stack is a frame and the stack
 * that called it. Names are all there (`symbolicated`), so that nothing is looked up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/json.h"
#include "base/map.h"
#include "exporters/exporters.h"
#include "exporters/gzip.h"

#define FORMAT_VERSION   48
#define GECKO_VERSION    29 /* of the other format, which the page wants beside it */
#define OTHER            MODEL_CLASS_MAX
#define RESOURCE_LIBRARY 1

/* The rows of tables, as they are compared: no padding. */
struct func {
	uint32_t name, file; /* strings; file MODEL_NONE */
	uint32_t resource;   /* MODEL_NONE: none */
};
struct frame {
	uint32_t func, category, line, depth; /* line 0: not known; depth: of inlining */
};
struct stack {
	uint32_t prefix, frame; /* prefix MODEL_NONE: the outermost */
};
struct resource {
	uint32_t name, module; /* of a string; index in the profile's libs */
};

struct sample {
	uint64_t time_ns, count;
	uint32_t stack;
};

struct thread {
	struct intern strings, resources, funcs, frames, stacks; /* of the structs above */
	struct map_u64 known; /* stack of the model → stack here */
	ARRAY_OF(struct sample) samples;
};

struct profile {
	const struct model *model;
	struct thread *threads; /* as the model's */
};

static void profile_done(struct profile *profile)
{
	for (size_t i = 0; profile->threads && i < profile->model->threads.count; i++) {
		struct thread *thread = &profile->threads[i];

		intern_done(&thread->strings);
		intern_done(&thread->resources);
		intern_done(&thread->funcs);
		intern_done(&thread->frames);
		intern_done(&thread->stacks);
		map_u64_done(&thread->known);
		array_done(&thread->samples);
	}
	free(profile->threads);
}

/* ---- the tables of a thread ---- */

static int add_text(struct intern *strings, const char *text, uint32_t *ret_index)
{
	int r = intern_add(strings, text, strlen(text), ret_index);

	return r < 0 ? r : 0;
}

static int add_row(struct intern *table, const void *row, size_t size, uint32_t *ret_index)
{
	int r = intern_add(table, row, size, ret_index);

	return r < 0 ? r : 0;
}

static int add_func(
	struct thread *thread, const struct model *model, uint32_t function, uint32_t *ret_func)
{
	const struct model_function *known =
		function == MODEL_NONE ? NULL : &model->functions.items[function];
	struct func row = {.file = MODEL_NONE, .resource = MODEL_NONE};
	struct resource resource = {.module = known ? known->module : MODEL_NONE};
	int r = add_text(&thread->strings, model_function_name(model, function), &row.name);

	if (r == 0 && known && *known->source_file)
		r = add_text(&thread->strings, known->source_file, &row.file);
	if (r == 0 && resource.module != MODEL_NONE) {
		r = add_text(&thread->strings, model_module_name(model, resource.module),
			&resource.name);
		if (r == 0)
			r = add_row(&thread->resources, &resource, sizeof(resource), &row.resource);
	}
	return r < 0 ? r : add_row(&thread->funcs, &row, sizeof(row), ret_func);
}

static int add_stack(struct thread *thread, const struct model *model, uint32_t prefix,
	uint32_t index, uint32_t *ret_stack)
{
	struct frame row = {.category = OTHER};
	struct stack stack = {.prefix = prefix};
	uint32_t function = MODEL_NONE;
	int r;

	if (index != MODEL_NONE) {
		function = model->frames.items[index].function;
		row.line = model->frames.items[index].line;
		row.category = model->functions.items[function].class;
		while (model->frames.items[index - row.depth].inlined && row.depth < index)
			row.depth++;
	}
	r = add_func(thread, model, function, &row.func);
	if (r == 0)
		r = add_row(&thread->frames, &row, sizeof(row), &stack.frame);
	return r < 0 ? r : add_row(&thread->stacks, &stack, sizeof(stack), ret_stack);
}

/* MODEL_NONE, or without frames: "[no stack]". */
static int stack_of(
	struct thread *thread, const struct model *model, uint32_t index, uint32_t *ret_stack)
{
	const struct model_stack *stack = index == MODEL_NONE ? NULL : &model->stacks.items[index];
	uint32_t node = MODEL_NONE;
	uint64_t known;
	int r = 0;

	if (map_u64_get(&thread->known, index, &known)) {
		*ret_stack = (uint32_t)known;
		return 0;
	}
	if (!stack || !stack->count)
		r = add_stack(thread, model, MODEL_NONE, MODEL_NONE, &node);
	for (uint32_t i = 0; r == 0 && stack && i < stack->count; i++)
		r = add_stack(
			thread, model, node, model->stack_frames.items[stack->first + i], &node);
	*ret_stack = node;
	return r < 0 ? r : map_u64_set(&thread->known, index, node);
}

static int profile_init(
	struct profile *profile, const struct model *model, const struct selected *selected)
{
	int r;

	profile->model = model;
	profile->threads = calloc(model->threads.count + 1, sizeof(*profile->threads));
	r = profile->threads ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];
		struct thread *thread = &profile->threads[sample->thread];
		struct sample row = {.time_ns = sample->time_ns, .count = sample->count};

		if (!selected->samples[i])
			continue;
		r = stack_of(thread, model, sample->stack, &row.stack);
		if (r == 0)
			r = array_append(&thread->samples, row);
	}
	return r;
}

/* ---- columns ---- */

static void write_index(struct json_writer *json, uint32_t index)
{
	if (index == MODEL_NONE)
		json_null(json);
	else
		json_u64(json, index);
}

/* The 32-bit field at `offset` of each row. */
static void write_column(
	struct json_writer *json, const char *key, const struct intern *table, size_t offset)
{
	json_key(json, key);
	json_begin_array(json);
	array_foreach (&table->entries, entry) {
		uint32_t value;

		memcpy(&value, entry->bytes + offset, sizeof(value));
		write_index(json, value);
	}
	json_end_array(json);
}

enum constant { ZERO, MINUS_ONE, NOTHING, FALSE };

/* The same in each of `count` rows. */
static void write_constant(
	struct json_writer *json, const char *key, size_t count, enum constant constant)
{
	json_key(json, key);
	json_begin_array(json);
	for (size_t i = 0; i < count; i++) {
		if (constant == NOTHING)
			json_null(json);
		else if (constant == FALSE)
			json_bool(json, false);
		else
			json_i64(json, constant == MINUS_ONE ? -1 : 0);
	}
	json_end_array(json);
}

static void begin_table(struct json_writer *json, const char *key, size_t count)
{
	json_key(json, key);
	json_begin_object(json);
	json_member_u64(json, "length", count);
}

/* ---- tables ---- */

static double milliseconds(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void write_samples(
	struct json_writer *json, const struct model *model, const struct thread *thread)
{
	uint64_t start_ns = model->session.start_time_ns, weight = model_sample_weight_ns(model);
	bool has_time = model_has_time(model);

	begin_table(json, "samples", thread->samples.count);
	json_member_text(json, "weightType",
		has_time              ? "tracing-ms"
		: model->counts_bytes ? "bytes"
				      : "samples");
	json_key(json, "stack");
	json_begin_array(json);
	array_foreach (&thread->samples, sample)
		json_u64(json, sample->stack);
	json_end_array(json);
	json_key(json, "time");
	json_begin_array(json);
	array_foreach (&thread->samples, sample)
		json_double(
			json, milliseconds(sample->time_ns - MIN(sample->time_ns, start_ns)), 15);
	json_end_array(json);
	json_key(json, "weight");
	json_begin_array(json);
	array_foreach (&thread->samples, sample) {
		if (has_time)
			json_double(json, milliseconds(sample->count * weight), 15);
		else
			json_u64(json, sample->count);
	}
	json_end_array(json);
	json_end_object(json);
}

static void write_stacks(struct json_writer *json, const struct thread *thread)
{
	size_t count = thread->stacks.entries.count;

	begin_table(json, "stackTable", count);
	write_column(json, "frame", &thread->stacks, offsetof(struct stack, frame));
	write_column(json, "prefix", &thread->stacks, offsetof(struct stack, prefix));
	json_key(json, "category");
	json_begin_array(json);
	array_foreach (&thread->stacks.entries, entry) {
		struct stack stack;
		struct frame frame;

		memcpy(&stack, entry->bytes, sizeof(stack));
		memcpy(&frame, intern_get(&thread->frames, stack.frame), sizeof(frame));
		json_u64(json, frame.category);
	}
	json_end_array(json);
	write_constant(json, "subcategory", count, ZERO);
	json_end_object(json);
}

static void write_frames(struct json_writer *json, const struct thread *thread)
{
	size_t count = thread->frames.entries.count;

	begin_table(json, "frameTable", count);
	write_constant(json, "address", count, MINUS_ONE);
	write_column(json, "inlineDepth", &thread->frames, offsetof(struct frame, depth));
	write_column(json, "category", &thread->frames, offsetof(struct frame, category));
	write_constant(json, "subcategory", count, ZERO);
	write_column(json, "func", &thread->frames, offsetof(struct frame, func));
	write_constant(json, "nativeSymbol", count, NOTHING);
	write_constant(json, "innerWindowID", count, ZERO);
	write_constant(json, "implementation", count, NOTHING);
	json_key(json, "line");
	json_begin_array(json);
	array_foreach (&thread->frames.entries, entry) {
		struct frame frame;

		memcpy(&frame, entry->bytes, sizeof(frame));
		write_index(json, frame.line ? frame.line : MODEL_NONE);
	}
	json_end_array(json);
	write_constant(json, "column", count, NOTHING);
	json_end_object(json);
}

static void write_funcs(struct json_writer *json, const struct thread *thread)
{
	size_t count = thread->funcs.entries.count;

	begin_table(json, "funcTable", count);
	write_column(json, "name", &thread->funcs, offsetof(struct func, name));
	write_constant(json, "isJS", count, FALSE);
	write_constant(json, "relevantForJS", count, FALSE);
	json_key(json, "resource");
	json_begin_array(json);
	array_foreach (&thread->funcs.entries, entry) {
		struct func func;

		memcpy(&func, entry->bytes, sizeof(func));
		json_i64(json, func.resource == MODEL_NONE ? -1 : (int64_t)func.resource);
	}
	json_end_array(json);
	write_column(json, "fileName", &thread->funcs, offsetof(struct func, file));
	write_constant(json, "lineNumber", count, NOTHING);
	write_constant(json, "columnNumber", count, NOTHING);
	json_end_object(json);
}

static void write_resources(struct json_writer *json, const struct thread *thread)
{
	size_t count = thread->resources.entries.count;

	begin_table(json, "resourceTable", count);
	write_column(json, "lib", &thread->resources, offsetof(struct resource, module));
	write_column(json, "name", &thread->resources, offsetof(struct resource, name));
	write_constant(json, "host", count, NOTHING);
	json_key(json, "type");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++)
		json_u64(json, RESOURCE_LIBRARY);
	json_end_array(json);
	json_end_object(json);
}

/* Tables that the page expects, of what a recording of sonde has elsewhere. */
static void write_empty_tables(struct json_writer *json)
{
	static const char *const markers[] = {
		"data", "name", "startTime", "endTime", "phase", "category", NULL};
	static const char *const symbols[] = {"libIndex", "address", "name", "functionSize", NULL};

	begin_table(json, "markers", 0);
	for (size_t i = 0; markers[i]; i++)
		write_constant(json, markers[i], 0, ZERO);
	json_end_object(json);
	begin_table(json, "nativeSymbols", 0);
	for (size_t i = 0; symbols[i]; i++)
		write_constant(json, symbols[i], 0, ZERO);
	json_end_object(json);
}

/* ---- the document ---- */

static void write_plain(struct json_writer *json, const char *key, const char *text)
{
	_cleanup_strbuf_ struct strbuf plain = {0};

	escape_plain(&plain, text);
	json_key(json, key);
	json_string(json, strbuf_cstr(&plain));
	strbuf_inherit_status(json->out, &plain);
}

static void write_thread_head(
	struct json_writer *json, const struct model *model, const struct model_thread *thread)
{
	const struct model_process *process = &model->processes.items[thread->process];
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", process->pid);
	json_member_text(json, "processType", "default");
	write_plain(json, "processName", process->name);
	json_member_text(json, "pid", pid);
	json_member_u64(json, "tid", thread->tid);
	write_plain(json, "name", thread->name);
	json_key(json, "isMainThread");
	json_bool(json, thread->tid == process->pid);
	json_member_u64(json, "processStartupTime", 0);
	json_member_text(json, "processShutdownTime", NULL);
	json_member_u64(json, "registerTime", 0);
	json_member_text(json, "unregisterTime", NULL);
	json_key(json, "pausedRanges");
	json_begin_array(json);
	json_end_array(json);
}

static void write_thread(struct json_writer *json, const struct profile *profile, size_t index)
{
	const struct thread *thread = &profile->threads[index];

	json_begin_object(json);
	write_thread_head(json, profile->model, &profile->model->threads.items[index]);
	write_samples(json, profile->model, thread);
	write_stacks(json, thread);
	write_frames(json, thread);
	write_funcs(json, thread);
	write_resources(json, thread);
	write_empty_tables(json);
	json_key(json, "stringArray");
	json_begin_array(json);
	array_foreach (&thread->strings.entries, entry)
		json_string_n(json, entry->bytes, entry->length);
	json_end_array(json);
	json_end_object(json);
}

static void write_categories(struct json_writer *json)
{
	static const char *const colours[MODEL_CLASS_MAX + 1] = {
		[MODEL_CLASS_USER] = "yellow",
		[MODEL_CLASS_LIBRARY] = "lightblue",
		[MODEL_CLASS_FRAMEWORK] = "blue",
		[MODEL_CLASS_INTERPRETER] = "magenta",
		[MODEL_CLASS_NATIVE] = "green",
		[MODEL_CLASS_RUNTIME] = "purple",
		[MODEL_CLASS_SONDE] = "red",
		[MODEL_CLASS_KERNEL] = "orange",
		[OTHER] = "grey",
	};

	json_key(json, "categories");
	json_begin_array(json);
	for (int class = 0; class <= OTHER; class ++) {
		json_begin_object(json);
		json_member_text(json, "name",
			class == OTHER ? "Other" : model_class_to_string((enum model_class) class));
		json_member_text(json, "color", colours[class]);
		json_key(json, "subcategories");
		json_begin_array(json);
		json_string(json, "Other");
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_meta(
	struct json_writer *json, const struct model *model, const struct export_options *options)
{
	json_key(json, "meta");
	json_begin_object(json);
	json_member_u64(json, "preprocessedProfileVersion", FORMAT_VERSION);
	json_member_u64(json, "version", GECKO_VERSION);
	write_plain(json, "product", export_title(model, options));
	json_member_text(json, "importedFrom", "sonde " SONDE_VERSION);
	json_member_double(json, "interval",
		model->session.period_ns ? milliseconds(model->session.period_ns) : 1);
	json_key(json, "startTime");
	json_double(json, milliseconds(model->session.start_realtime_ns), 16);
	json_member_u64(json, "processType", 0);
	json_member_u64(json, "stackwalk", 1);
	json_member_u64(json, "logicalCPUs", model->session.cpu_count);
	json_member_text(json, "oscpu", model->session.kernel_release);
	json_key(json, "symbolicated");
	json_bool(json, true);
	json_key(json, "markerSchema");
	json_begin_array(json);
	json_end_array(json);
	write_categories(json);
	json_end_object(json);
}

static void write_build_id(struct json_writer *json, const struct model_module *module)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (unsigned i = 0; i < module->build_id.length; i++)
		strbuf_addf(&text, "%02x", module->build_id.bytes[i]);
	json_member_text(json, "codeId", strbuf_cstr(&text));
	strbuf_inherit_status(json->out, &text);
}

static void write_libs(struct json_writer *json, const struct model *model)
{
	json_key(json, "libs");
	json_begin_array(json);
	array_foreach (&model->modules, module) {
		json_begin_object(json);
		json_member_text(json, "arch", model->session.architecture);
		write_plain(json, "name", module->name);
		write_plain(json, "path", module->path);
		write_plain(json, "debugName", module->name);
		write_plain(json, "debugPath", module->path);
		write_plain(json, "breakpadId", "");
		write_build_id(json, module);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_document(
	struct strbuf *out, const struct profile *profile, const struct export_options *options)
{
	struct json_writer json = {.out = out};

	json_begin_object(&json);
	write_meta(&json, profile->model, options);
	write_libs(&json, profile->model);
	json_key(&json, "pages");
	json_begin_array(&json);
	json_end_array(&json);
	json_key(&json, "threads");
	json_begin_array(&json);
	for (size_t i = 0; i < profile->model->threads.count; i++) {
		if (profile->threads[i].samples.count)
			write_thread(&json, profile, i);
	}
	json_end_array(&json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
}

static int firefox_export(const struct model *model, const struct selection *selection,
	const struct export_options *asked, struct strbuf *out, struct errmsg *err)
{
	const struct export_options *options = export_options_or_default(asked);
	bool packs = options->output && text_ends_in(options->output, ".gz");
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_(profile_done) struct profile profile = {.model = model};
	_cleanup_strbuf_ struct strbuf plain = {0};
	int r = selection_apply(selection, model, &selected, err);

	r = r ?: profile_init(&profile, model, &selected);
	if (r == 0)
		write_document(packs ? &plain : out, &profile, options);
	if (r == 0 && packs)
		r = strbuf_status(&plain) ?: gzip_add(out, plain.data, plain.length);
	return export_result(r, out, "firefox", err);
}

const struct exporter firefox_exporter = {
	.name = "firefox",
	.description = "for profiler.firefox.com: samples of each thread in time order",
	.extension = ".profile.json",
	.is_weighed = true,
	.export = firefox_export,
};
