/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles: a dictionary of strings, functions, locations, stacks and attributes, and a
 * profile for each kind of value, which refer to it by index. Written message by message: nothing
 * but the tables' indices is held.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/escape.h"
#include "base/map.h"
#include "capture/protobuf.h"
#include "exporters/exporters.h"
#include "exporters/otlp_fields.h"
#include "model/kinds.h"

#define HEX_SIZE (2 * 64 + 1)

/* Samples of one thread with one stack. */
struct sample_group {
	uint32_t thread, stack;
	uint64_t count, weight;
};

struct dictionary {
	struct intern strings;
	struct strbuf mappings, locations, functions, attributes,
		stacks; /* fields of these tables */
	/* By the model's index; 0: it is not there yet. */
	uint32_t *mapping_ids, *location_ids, *function_ids, *stack_ids, *thread_attributes;
	uint32_t type_attributes[CAPTURE_FRAME_JIT + 1]; /* by kind of frame; 0: not there yet */
	uint32_t mapping_count, location_count, function_count, attribute_count, stack_count;
	int error; /* the first -ENOMEM; later steps do nothing */
};

struct otlp {
	const struct model *model;
	struct dictionary dictionary;
	ARRAY_OF(struct sample_group) groups;
	struct map_u64 group_of; /* thread << 32 | stack → group */
};

/* ---- the dictionary ---- */

static uint32_t string_index(struct dictionary *dictionary, const char *text)
{
	_cleanup_strbuf_ struct strbuf plain = {0};
	uint32_t id = 0;

	escape_plain(&plain, text ? text : "");
	if (strbuf_status(&plain) < 0 ||
		intern_add(&dictionary->strings, strbuf_cstr(&plain), plain.length, &id) < 0)
		dictionary->error = -ENOMEM;
	return id;
}

/* An item that says nothing: "none" of its table. */
static void put_none(struct strbuf *table, uint32_t number)
{
	pb_end(table, pb_begin(table, number));
}

static uint32_t add_attribute(
	struct dictionary *dictionary, const char *key, const char *text, int64_t number)
{
	struct strbuf *out = &dictionary->attributes;
	size_t attribute = pb_begin(out, OTLP_ATTRIBUTES), value;
	_cleanup_strbuf_ struct strbuf plain = {0};

	pb_put_u64(out, OTLP_KEY, string_index(dictionary, key));
	value = pb_begin(out, OTLP_VALUE);
	if (text) {
		escape_plain(&plain, text);
		strbuf_inherit_status(out, &plain);
		pb_put_text(out, OTLP_VALUE_TEXT, strbuf_cstr(&plain));
	} else {
		pb_put_u64(out, OTLP_VALUE_INT, (uint64_t)number);
	}
	pb_end(out, value);
	pb_end(out, attribute);
	return dictionary->attribute_count++;
}

/* A field of packed numbers that follow one another. */
static void put_indices(struct strbuf *out, uint32_t field, uint32_t first, uint32_t count)
{
	size_t begin = pb_begin(out, field);

	for (uint32_t i = 0; i < count; i++)
		pb_put_varint(out, first + i);
	pb_end(out, begin);
}

static uint32_t add_mapping(struct otlp *otlp, uint32_t module)
{
	struct dictionary *dictionary = &otlp->dictionary;
	const struct model_module *found = &otlp->model->modules.items[module];
	struct strbuf *out = &dictionary->mappings;
	char hex[HEX_SIZE] = "";
	uint32_t attribute = 0;
	size_t begin;

	if (dictionary->mapping_ids[module])
		return dictionary->mapping_ids[module];
	for (size_t i = 0; i < found->build_id.length; i++)
		snprintf(hex + 2 * i, 3, "%02x", found->build_id.bytes[i]);
	if (hex[0])
		attribute = add_attribute(dictionary, "process.executable.build_id.gnu", hex, 0);
	/* Addresses are those in the file. */
	begin = pb_begin(out, OTLP_MAPPINGS);
	pb_put_u64(out, OTLP_MAPPING_LIMIT, INT64_MAX);
	pb_put_u64(out, OTLP_MAPPING_FILE, string_index(dictionary, found->path));
	if (attribute)
		put_indices(out, OTLP_MAPPING_ATTRIBUTES, attribute, 1);
	pb_end(out, begin);
	dictionary->mapping_ids[module] = ++dictionary->mapping_count;
	return dictionary->mapping_count;
}

/* `function` may be MODEL_NONE: a sample without a stack. */
static uint32_t add_function(struct otlp *otlp, uint32_t function)
{
	struct dictionary *dictionary = &otlp->dictionary;
	const struct model *model = otlp->model;
	size_t slot = function == MODEL_NONE ? model->functions.count : function, begin;
	struct strbuf *out = &dictionary->functions;
	uint32_t name;

	if (dictionary->function_ids[slot])
		return dictionary->function_ids[slot];
	name = string_index(dictionary, model_function_name(model, function));
	begin = pb_begin(out, OTLP_FUNCTIONS);
	pb_put_u64(out, OTLP_FUNCTION_NAME, name);
	pb_put_u64(out, OTLP_FUNCTION_SYSTEM_NAME, name);
	if (function != MODEL_NONE && *model->functions.items[function].source_file)
		pb_put_u64(out, OTLP_FUNCTION_FILE,
			string_index(dictionary, model->functions.items[function].source_file));
	pb_end(out, begin);
	dictionary->function_ids[slot] = ++dictionary->function_count;
	return dictionary->function_count;
}

/* The kind of a frame, as OpenTelemetry's conventions call it. */
static uint32_t add_frame_type(struct otlp *otlp, const struct model_frame *frame)
{
	static const char *const types[] = {
		[CAPTURE_FRAME_NATIVE] = "native",
		[CAPTURE_FRAME_KERNEL] = "kernel",
		[CAPTURE_FRAME_INTERPRETED] = "cpython",
		[CAPTURE_FRAME_JIT] = "jit",
	};
	struct dictionary *dictionary = &otlp->dictionary;
	unsigned kind = otlp->model->functions.items[frame->function].kind;

	if (kind >= ARRAY_SIZE(types) || !types[kind])
		kind = CAPTURE_FRAME_NATIVE;
	if (!dictionary->type_attributes[kind])
		dictionary->type_attributes[kind] =
			add_attribute(dictionary, "profile.frame.type", types[kind], 0);
	return dictionary->type_attributes[kind];
}

static void put_line(struct strbuf *out, uint32_t function, uint32_t line)
{
	size_t begin = pb_begin(out, OTLP_LOCATION_LINES);

	pb_put_u64(out, OTLP_LINE_FUNCTION, function);
	if (line)
		pb_put_u64(out, OTLP_LINE_NUMBER, line);
	pb_end(out, begin);
}

/* With the functions that are inlined there, innermost first. */
static void put_location(struct otlp *otlp, uint32_t index, uint32_t *function_ids, uint32_t count)
{
	struct dictionary *dictionary = &otlp->dictionary;
	const struct model *model = otlp->model;
	const struct model_frame *frame = &model->frames.items[index];
	uint32_t module = model->functions.items[frame->function].module;
	uint32_t mapping = module == MODEL_NONE ? 0 : add_mapping(otlp, module);
	uint32_t type = add_frame_type(otlp, frame);
	struct strbuf *out = &dictionary->locations;
	size_t begin = pb_begin(out, OTLP_LOCATIONS);

	if (mapping)
		pb_put_u64(out, OTLP_LOCATION_MAPPING, mapping);
	pb_put_u64(out, OTLP_LOCATION_ADDRESS, frame->rel_pc);
	for (uint32_t i = count; i-- > 0;)
		put_line(out, function_ids[i], model->frames.items[index + i].line);
	put_indices(out, OTLP_LOCATION_ATTRIBUTES, type, 1);
	pb_end(out, begin);
}

static uint32_t add_location(struct otlp *otlp, uint32_t index)
{
	struct dictionary *dictionary = &otlp->dictionary;
	uint32_t count = export_inlined_after(otlp->model, index) + 1;
	_cleanup_free_ uint32_t *function_ids = NULL;

	if (dictionary->location_ids[index])
		return dictionary->location_ids[index];
	function_ids = calloc(count, sizeof(*function_ids));
	if (!function_ids) {
		dictionary->error = -ENOMEM;
		return 0;
	}
	for (uint32_t i = 0; i < count; i++)
		function_ids[i] = add_function(otlp, otlp->model->frames.items[index + i].function);
	put_location(otlp, index, function_ids, count);
	dictionary->location_ids[index] = ++dictionary->location_count;
	return dictionary->location_count;
}

/* What stands for a stack that there is not: "[no stack]". */
static uint32_t add_no_location(struct otlp *otlp)
{
	struct dictionary *dictionary = &otlp->dictionary;
	size_t slot = otlp->model->frames.count, begin;
	uint32_t function = add_function(otlp, MODEL_NONE);

	if (!dictionary->location_ids[slot]) {
		begin = pb_begin(&dictionary->locations, OTLP_LOCATIONS);
		put_line(&dictionary->locations, function, 0);
		pb_end(&dictionary->locations, begin);
		dictionary->location_ids[slot] = ++dictionary->location_count;
	}
	return dictionary->location_ids[slot];
}

/* Inlined frames follow the frame that they were inlined into, and are lines of its location. */
static bool is_location(const struct model *model, const uint32_t *frames, uint32_t position)
{
	return position == 0 || !model->frames.items[frames[position]].inlined ||
	       frames[position] != frames[position - 1] + 1;
}

static uint32_t add_stack(struct otlp *otlp, uint32_t index)
{
	const struct model *model = otlp->model;
	struct dictionary *dictionary = &otlp->dictionary;
	const struct model_stack *stack = index == MODEL_NONE ? NULL : &model->stacks.items[index];
	size_t slot = stack ? index : model->stacks.count, begin;
	_cleanup_strbuf_ struct strbuf locations = {0};

	if (dictionary->stack_ids[slot])
		return dictionary->stack_ids[slot];
	for (uint32_t i = stack ? stack->count : 0; i-- > 0;) {
		const uint32_t *frames = model->stack_frames.items + stack->first;

		if (is_location(model, frames, i))
			pb_put_varint(&locations, add_location(otlp, frames[i]));
	}
	if (!locations.length)
		pb_put_varint(&locations, add_no_location(otlp));
	strbuf_inherit_status(&dictionary->stacks, &locations);
	begin = pb_begin(&dictionary->stacks, OTLP_STACKS);
	pb_put_bytes(&dictionary->stacks, OTLP_STACK_LOCATIONS, strbuf_cstr(&locations),
		locations.length);
	pb_end(&dictionary->stacks, begin);
	dictionary->stack_ids[slot] = ++dictionary->stack_count;
	return dictionary->stack_count;
}

enum { ATTRIBUTES_PER_THREAD = 4 };

/* The first of the thread's attributes, which follow one another. */
static uint32_t add_thread(struct otlp *otlp, uint32_t index)
{
	struct dictionary *dictionary = &otlp->dictionary;
	const struct model_thread *thread = &otlp->model->threads.items[index];
	const struct model_process *process = &otlp->model->processes.items[thread->process];

	if (dictionary->thread_attributes[index])
		return dictionary->thread_attributes[index];
	dictionary->thread_attributes[index] =
		add_attribute(dictionary, "process.executable.name", process->name, 0);
	add_attribute(dictionary, "process.pid", NULL, process->pid);
	add_attribute(dictionary, "thread.name", thread->name, 0);
	add_attribute(dictionary, "thread.id", NULL, thread->tid);
	return dictionary->thread_attributes[index];
}

/* ---- samples ---- */

static int add_sample(struct otlp *otlp, const struct model_sample *sample)
{
	uint64_t key = (uint64_t)sample->thread << 32 | sample->stack, index;
	const struct sample_group group = {.thread = sample->thread, .stack = sample->stack};
	int r = 0;

	if (!map_u64_get(&otlp->group_of, key, &index)) {
		index = otlp->groups.count;
		r = array_append(&otlp->groups, group);
		if (r == 0)
			r = map_u64_set(&otlp->group_of, key, index);
		if (r < 0)
			return r;
	}
	otlp->groups.items[index].count++;
	otlp->groups.items[index].weight += sample->count * model_sample_weight_ns(otlp->model);
	return 0;
}

static void put_type(
	struct otlp *otlp, struct strbuf *out, uint32_t field, const char *type, const char *unit)
{
	size_t begin = pb_begin(out, field);

	pb_put_u64(out, OTLP_TYPE, string_index(&otlp->dictionary, type));
	pb_put_u64(out, OTLP_UNIT, string_index(&otlp->dictionary, unit));
	pb_end(out, begin);
}

static void put_samples(struct otlp *otlp, bool counts, struct strbuf *out)
{
	array_foreach (&otlp->groups, group) {
		uint32_t stack = add_stack(otlp, group->stack);
		uint32_t attributes = add_thread(otlp, group->thread);
		size_t sample = pb_begin(out, OTLP_PROFILE_SAMPLES), values;

		pb_put_u64(out, OTLP_SAMPLE_STACK, stack);
		put_indices(out, OTLP_SAMPLE_ATTRIBUTES, attributes, ATTRIBUTES_PER_THREAD);
		values = pb_begin(out, OTLP_SAMPLE_VALUES);
		pb_put_varint(out, counts ? group->count : group->weight);
		pb_end(out, values);
		pb_end(out, sample);
	}
}

/* 16 bytes that are the same whenever the same recording is exported. */
static void put_id(const struct model *model, bool counts, struct strbuf *out)
{
	uint64_t id[2];

	id[0] = hash_u64(model->session.start_realtime_ns ^ (uint64_t)counts);
	id[1] = hash_u64(id[0] ^ model->session.start_time_ns);
	pb_put_bytes(out, OTLP_PROFILE_ID, id, sizeof(id));
}

static void put_profile(struct otlp *otlp, bool counts, struct strbuf *out)
{
	const struct model *model = otlp->model;
	const struct export_unit weight = export_unit_of(model, counts);
	size_t begin = pb_begin(out, OTLP_SCOPE_ITEMS);

	put_type(otlp, out, OTLP_PROFILE_SAMPLE_TYPE, weight.type, weight.unit);
	put_samples(otlp, counts, out);
	pb_put_fixed64(out, OTLP_PROFILE_TIME, model->session.start_realtime_ns);
	pb_put_u64(out, OTLP_PROFILE_DURATION, model_duration_ns(model));
	if (model_has_time(model)) {
		put_type(otlp, out, OTLP_PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
		pb_put_u64(out, OTLP_PROFILE_PERIOD, model_sample_weight_ns(model));
	}
	put_id(model, counts, out);
	pb_end(out, begin);
}

/* ---- the whole ---- */

static void put_text_attribute(struct strbuf *out, const char *key, const char *text)
{
	size_t attribute = pb_begin(out, OTLP_RESOURCE_ATTRIBUTE), value;

	pb_put_text(out, OTLP_KEY, key);
	value = pb_begin(out, OTLP_VALUE);
	pb_put_text(out, OTLP_VALUE_TEXT, text ? text : "");
	pb_end(out, value);
	pb_end(out, attribute);
}

static void put_resource(
	const struct model *model, const struct export_options *options, struct strbuf *out)
{
	size_t resource = pb_begin(out, OTLP_RESOURCE);

	put_text_attribute(out, "service.name", export_title(model, options));
	put_text_attribute(out, "host.name", model->session.host);
	put_text_attribute(out, "host.arch", model->session.architecture);
	put_text_attribute(out, "os.version", model->session.kernel_release);
	pb_end(out, resource);
}

static void put_scope(struct otlp *otlp, struct strbuf *out)
{
	size_t scopes = pb_begin(out, OTLP_SCOPES), scope = pb_begin(out, OTLP_SCOPE);

	pb_put_text(out, OTLP_SCOPE_NAME, "sonde");
	pb_put_text(out, OTLP_SCOPE_VERSION, SONDE_VERSION);
	pb_end(out, scope);
	put_profile(otlp, true, out);
	if (export_has_weight(otlp->model))
		put_profile(otlp, false, out);
	pb_end(out, scopes);
}

static void put_table(struct strbuf *out, const struct strbuf *table, uint32_t number)
{
	put_none(out, number);
	strbuf_add_bytes(out, strbuf_cstr(table), table->length);
	strbuf_inherit_status(out, table);
}

static void put_dictionary(const struct dictionary *dictionary, struct strbuf *out)
{
	size_t begin = pb_begin(out, OTLP_DICTIONARY);

	put_table(out, &dictionary->mappings, OTLP_MAPPINGS);
	put_table(out, &dictionary->locations, OTLP_LOCATIONS);
	put_table(out, &dictionary->functions, OTLP_FUNCTIONS);
	put_none(out, OTLP_LINKS);
	array_foreach (&dictionary->strings.entries, entry)
		pb_put_text(out, OTLP_STRINGS, entry->bytes);
	put_table(out, &dictionary->attributes, OTLP_ATTRIBUTES);
	put_table(out, &dictionary->stacks, OTLP_STACKS);
	pb_end(out, begin);
}

static int make_dictionary(struct otlp *otlp)
{
	struct dictionary *dictionary = &otlp->dictionary;
	const struct model *model = otlp->model;

	/* One more than there are, for "none". */
	dictionary->mapping_ids = calloc(model->modules.count + 1, sizeof(uint32_t));
	dictionary->location_ids = calloc(model->frames.count + 1, sizeof(uint32_t));
	dictionary->function_ids = calloc(model->functions.count + 1, sizeof(uint32_t));
	dictionary->stack_ids = calloc(model->stacks.count + 1, sizeof(uint32_t));
	dictionary->thread_attributes = calloc(model->threads.count + 1, sizeof(uint32_t));
	dictionary->attribute_count = 1; /* the first is "none" */
	string_index(dictionary, "");
	return dictionary->mapping_ids && dictionary->location_ids && dictionary->function_ids &&
			       dictionary->stack_ids && dictionary->thread_attributes
		       ? dictionary->error
		       : -ENOMEM;
}

static void otlp_done(struct otlp *otlp)
{
	struct dictionary *dictionary = &otlp->dictionary;

	intern_done(&dictionary->strings);
	strbuf_done(&dictionary->mappings);
	strbuf_done(&dictionary->locations);
	strbuf_done(&dictionary->functions);
	strbuf_done(&dictionary->attributes);
	strbuf_done(&dictionary->stacks);
	free(dictionary->mapping_ids);
	free(dictionary->location_ids);
	free(dictionary->function_ids);
	free(dictionary->stack_ids);
	free(dictionary->thread_attributes);
	array_done(&otlp->groups);
	map_u64_done(&otlp->group_of);
}

static int otlp_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_(otlp_done) struct otlp otlp = {.model = model};
	int r = selection_apply(selection, model, &selected, err);
	size_t begin;

	if (r < 0)
		return r;
	r = make_dictionary(&otlp);
	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		if (selected.samples[i])
			r = add_sample(&otlp, &model->samples.items[i]);
	}
	if (r < 0)
		return export_result(r, out, "otlp", err);
	begin = pb_begin(out, OTLP_RESOURCE_PROFILES);
	put_resource(model, export_options_or_default(options), out);
	put_scope(&otlp, out);
	pb_end(out, begin);
	put_dictionary(&otlp.dictionary, out);
	return export_result(otlp.dictionary.error, out, "otlp", err);
}

const struct exporter otlp_exporter = {
	.name = "otlp",
	.description = "OpenTelemetry profiles (protobuf, v1development)",
	.extension = ".otlp.pb",
	.is_weighed = true,
	.is_binary = true,
	.export = otlp_export,
};
