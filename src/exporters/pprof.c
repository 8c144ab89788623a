/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's profile.proto, compressed. Sample types are samples/count and, where a sample's time is
 * known, cpu/nanoseconds; each sample carries its process and thread as labels. Ids are the model's
 * indices plus one; only what is used is written.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/escape.h"
#include "base/json.h"
#include "exporters/exporters.h"
#include "exporters/gzip.h"
#include "model/kinds.h"
#include "pprof.pb-c.h"

typedef Perftools__Profiles__Profile profile_message;
typedef Perftools__Profiles__Sample sample_message;
typedef Perftools__Profiles__Label label_message;
typedef Perftools__Profiles__Mapping mapping_message;
typedef Perftools__Profiles__Location location_message;
typedef Perftools__Profiles__Line line_message;
typedef Perftools__Profiles__Function function_message;
typedef Perftools__Profiles__ValueType value_type_message;

enum { LABELS_PER_THREAD = 4 }; /* process, pid, thread, tid */

/* Samples of one thread with one stack. */
struct sample_group {
	uint32_t thread, stack;
	int64_t values[2]; /* count, nanoseconds */
};

/*
 * Everything the message points to. Blocks are freed together: the message itself owns nothing.
 */
struct profile_builder {
	const struct model *model;
	profile_message message;
	struct intern strings;
	int error; /* the first -ENOMEM; later steps do nothing */
	ARRAY_OF(void *) blocks;
	ARRAY_OF(struct sample_group) groups;
	struct map_u64 group_of;                              /* thread << 32 | stack → group */
	uint8_t *used_frames, *used_functions, *used_modules; /* by index; one more for "none" */
	uint64_t *module_limits;                              /* highest address seen */
	label_message **labels;                               /* LABELS_PER_THREAD by thread */
};

/* Zeroed memory that lives as long as the builder; NULL when there is none. */
static void *take_block(struct profile_builder *builder, size_t count, size_t size)
{
	void *block = builder->error ? NULL : calloc(count + 1, size);

	if (!block || array_append(&builder->blocks, block) < 0) {
		free(block);
		builder->error = -ENOMEM;
		return NULL;
	}
	return block;
}

static int64_t string_id(struct profile_builder *builder, const char *text)
{
	_cleanup_strbuf_ struct strbuf plain = {0};
	uint32_t id = 0;

	escape_plain(&plain, text);
	if (builder->error || strbuf_status(&plain) < 0 ||
		intern_add(&builder->strings, strbuf_cstr(&plain), plain.length, &id) < 0) {
		builder->error = -ENOMEM;
		return 0;
	}
	return id;
}

static void add_sample(struct profile_builder *builder, const struct model_sample *sample)
{
	uint64_t key = (uint64_t)sample->thread << 32 | sample->stack, index;
	struct sample_group group = {.thread = sample->thread, .stack = sample->stack};
	int r = 0;

	if (!map_u64_get(&builder->group_of, key, &index)) {
		index = builder->groups.count;
		r = r ?: array_append(&builder->groups, group);
		r = r ?: map_u64_set(&builder->group_of, key, index);
		if (r < 0) {
			builder->error = r;
			return;
		}
	}
	builder->groups.items[index].values[0]++;
	builder->groups.items[index].values[1] +=
		(int64_t)(sample->count * model_sample_weight_ns(builder->model));
}

/* Marks a location and its module; its functions are marked when its lines are written. */
static void use_location(struct profile_builder *builder, uint32_t index)
{
	const struct model *model = builder->model;
	const struct model_frame *frame = &model->frames.items[index];
	uint32_t module = model->functions.items[frame->function].module;

	builder->used_frames[index] = 1;
	if (module == MODEL_NONE)
		return;
	builder->used_modules[module] = 1;
	builder->module_limits[module] = MAX(builder->module_limits[module], frame->rel_pc);
}

/*
 * Inlined frames follow the frame they were inlined into, in the model's frames and in every stack:
 * they are lines of its location. A stack that begins with one, which no symboliser writes, shows
 * it as a frame.
 */
static bool is_location(const struct model *model, const uint32_t *frames, uint32_t position)
{
	return position == 0 || !model->frames.items[frames[position]].inlined ||
	       frames[position] != frames[position - 1] + 1;
}

static void fill_stack(
	struct profile_builder *builder, sample_message *sample, const struct sample_group *group)
{
	const struct model *model = builder->model;
	const struct model_stack *stack =
		group->stack == MODEL_NONE ? NULL : &model->stacks.items[group->stack];
	const uint32_t *frames;

	sample->location_id =
		take_block(builder, stack ? stack->count : 1, sizeof(*sample->location_id));
	if (!sample->location_id)
		return;
	if (!stack || !stack->count) {
		sample->location_id[sample->n_location_id++] = model->frames.count + 1;
		builder->used_frames[model->frames.count] = 1;
		return;
	}
	frames = model->stack_frames.items + stack->first;
	for (uint32_t i = stack->count; i-- > 0;) {
		if (!is_location(model, frames, i))
			continue;
		use_location(builder, frames[i]);
		sample->location_id[sample->n_location_id++] = frames[i] + 1ULL;
	}
}

static void add_samples(struct profile_builder *builder)
{
	size_t count = builder->groups.count;
	sample_message *samples = take_block(builder, count, sizeof(*samples));
	sample_message **list = take_block(builder, count, sizeof(*list));

	for (size_t i = 0; !builder->error && i < count; i++) {
		struct sample_group *group = &builder->groups.items[i];

		perftools__profiles__sample__init(&samples[i]);
		samples[i].n_value = export_has_weight(builder->model) ? 2 : 1;
		samples[i].value = group->values;
		samples[i].n_label = LABELS_PER_THREAD;
		samples[i].label = builder->labels + (size_t)group->thread * LABELS_PER_THREAD;
		fill_stack(builder, &samples[i], group);
		list[i] = &samples[i];
	}
	builder->message.sample = list;
	builder->message.n_sample = builder->error ? 0 : count;
}

static void set_label(struct profile_builder *builder, label_message *label, const char *key,
	const char *text, int64_t number)
{
	perftools__profiles__label__init(label);
	label->key = string_id(builder, key);
	if (text)
		label->str = string_id(builder, text);
	label->num = number;
}

/* Every sample of a thread shares its labels. */
static void add_labels(struct profile_builder *builder)
{
	const struct model *model = builder->model;
	size_t count = model->threads.count * LABELS_PER_THREAD;
	label_message *labels = take_block(builder, count, sizeof(*labels));

	builder->labels = take_block(builder, count, sizeof(*builder->labels));
	for (size_t i = 0; !builder->error && i < model->threads.count; i++) {
		const struct model_thread *thread = &model->threads.items[i];
		const struct model_process *process = &model->processes.items[thread->process];
		label_message *own = labels + i * LABELS_PER_THREAD;

		set_label(builder, &own[0], "process", process->name, 0);
		set_label(builder, &own[1], "pid", NULL, process->pid);
		set_label(builder, &own[2], "thread", thread->name, 0);
		set_label(builder, &own[3], "tid", NULL, thread->tid);
		for (size_t k = 0; k < LABELS_PER_THREAD; k++)
			builder->labels[i * LABELS_PER_THREAD + k] = &own[k];
	}
}

static void set_line(line_message *line, uint64_t function, uint32_t number)
{
	perftools__profiles__line__init(line);
	line->function_id = function + 1;
	line->line = number;
}

/* Lines innermost first. Marks their functions. */
static void fill_location(
	struct profile_builder *builder, location_message *location, uint32_t index)
{
	const struct model *model = builder->model;
	bool no_stack = index == model->frames.count;
	uint32_t count = no_stack ? 1 : export_inlined_after(model, index) + 1, module = MODEL_NONE;
	line_message *lines = take_block(builder, count, sizeof(*lines));

	location->line = take_block(builder, count, sizeof(*location->line));
	if (builder->error)
		return;
	location->id = index + 1ULL;
	location->n_line = count;
	if (no_stack) {
		set_line(&lines[0], model->functions.count, 0);
		builder->used_functions[model->functions.count] = 1;
	}
	for (uint32_t i = 0; !no_stack && i < count; i++) {
		const struct model_frame *frame = &model->frames.items[index + count - 1 - i];

		set_line(&lines[i], frame->function, frame->line);
		builder->used_functions[frame->function] = 1;
		module = model->functions.items[frame->function].module;
		location->address = frame->rel_pc;
	}
	for (uint32_t i = 0; i < count; i++)
		location->line[i] = &lines[i];
	location->mapping_id = module == MODEL_NONE ? 0 : module + 1ULL;
}

/* 0 for NULL: then the builder is out of memory. */
static size_t count_used(const uint8_t *used, size_t count)
{
	size_t total = 0;

	for (size_t i = 0; used && i < count; i++)
		total += used[i];
	return total;
}

static void add_locations(struct profile_builder *builder)
{
	size_t all = builder->model->frames.count + 1;
	size_t count = count_used(builder->used_frames, all);
	location_message *locations = take_block(builder, count, sizeof(*locations));
	location_message **list = take_block(builder, count, sizeof(*list));
	size_t added = 0;

	for (uint32_t i = 0; !builder->error && i < all; i++) {
		if (!builder->used_frames[i])
			continue;
		perftools__profiles__location__init(&locations[added]);
		fill_location(builder, &locations[added], i);
		list[added] = &locations[added];
		added++;
	}
	builder->message.location = list;
	builder->message.n_location = builder->error ? 0 : added;
}

static void fill_function(
	struct profile_builder *builder, function_message *message, uint32_t index)
{
	const struct model *model = builder->model;
	bool no_stack = index == model->functions.count;

	message->id = index + 1ULL;
	message->name = message->system_name =
		string_id(builder, model_function_name(model, no_stack ? MODEL_NONE : index));
	if (!no_stack)
		message->filename = string_id(builder, model->functions.items[index].source_file);
}

static void add_functions(struct profile_builder *builder)
{
	size_t all = builder->model->functions.count + 1;
	size_t count = count_used(builder->used_functions, all);
	function_message *functions = take_block(builder, count, sizeof(*functions));
	function_message **list = take_block(builder, count, sizeof(*list));
	size_t added = 0;

	for (uint32_t i = 0; !builder->error && i < all; i++) {
		if (!builder->used_functions[i])
			continue;
		perftools__profiles__function__init(&functions[added]);
		fill_function(builder, &functions[added], i);
		list[added] = &functions[added];
		added++;
	}
	builder->message.function = list;
	builder->message.n_function = builder->error ? 0 : added;
}

/*
 * Addresses of locations are those in the file: a mapping from 0 at offset 0 leaves them as they
 * are.
 */
static void add_mappings(struct profile_builder *builder)
{
	const struct model *model = builder->model;
	size_t count = count_used(builder->used_modules, model->modules.count);
	mapping_message *mappings = take_block(builder, count, sizeof(*mappings));
	mapping_message **list = take_block(builder, count, sizeof(*list));
	char hex[BUILD_ID_HEX_SIZE];
	size_t added = 0;

	for (size_t i = 0; !builder->error && i < model->modules.count; i++) {
		mapping_message *mapping = &mappings[added];

		if (!builder->used_modules[i])
			continue;
		perftools__profiles__mapping__init(mapping);
		mapping->id = i + 1;
		mapping->memory_limit = builder->module_limits[i] == UINT64_MAX
						? UINT64_MAX
						: builder->module_limits[i] + 1;
		mapping->filename = string_id(builder, model->modules.items[i].path);
		mapping->build_id = string_id(builder, build_id_hex(&model->modules.items[i], hex));
		mapping->has_functions = mapping->has_filenames = true;
		mapping->has_line_numbers = mapping->has_inline_frames = true;
		list[added++] = mapping;
	}
	builder->message.mapping = list;
	builder->message.n_mapping = builder->error ? 0 : added;
}

static void add_value_types(struct profile_builder *builder)
{
	bool has_second = export_has_weight(builder->model);
	const struct export_unit units[] = {
		export_unit_of(builder->model, true), export_unit_of(builder->model, false)};
	value_type_message *types = take_block(builder, 3, sizeof(*types));
	value_type_message **list = take_block(builder, 2, sizeof(*list));

	if (builder->error)
		return;
	for (size_t i = 0; i < 3; i++)
		perftools__profiles__value_type__init(&types[i]);
	types[0].type = string_id(builder, units[0].type);
	types[0].unit = string_id(builder, units[0].unit);
	types[1].type = types[2].type = string_id(builder, units[1].type);
	types[1].unit = types[2].unit = string_id(builder, units[1].unit);
	list[0] = &types[0];
	list[1] = &types[1];
	builder->message.sample_type = list;
	builder->message.n_sample_type = has_second ? 2 : 1;
	builder->message.default_sample_type = types[has_second].type;
	if (!has_second || builder->model->counts_bytes) /* those are no samples of a period */
		return;
	builder->message.period_type = &types[2];
	builder->message.period = (int64_t)model_sample_weight_ns(builder->model);
}

static void add_header(struct profile_builder *builder, const struct export_options *options)
{
	int64_t *comments = take_block(builder, 2, sizeof(*comments));

	if (builder->error)
		return;
	comments[0] = string_id(builder, export_title(builder->model, options));
	comments[1] = string_id(builder, "recorded by sonde");
	builder->message.comment = comments;
	builder->message.n_comment = 2;
	builder->message.time_nanos = (int64_t)builder->model->session.start_realtime_ns;
	builder->message.duration_nanos = (int64_t)model_duration_ns(builder->model);
}

static void add_strings(struct profile_builder *builder)
{
	size_t count = builder->strings.entries.count;
	char **list = take_block(builder, count, sizeof(*list));

	for (size_t i = 0; list && i < count; i++)
		list[i] = (char *)intern_get(&builder->strings, (uint32_t)i);
	builder->message.string_table = list;
	builder->message.n_string_table = list ? count : 0;
}

static void build(struct profile_builder *builder, const struct selected *selected,
	const struct export_options *options)
{
	const struct model *model = builder->model;

	perftools__profiles__profile__init(&builder->message);
	string_id(builder, ""); /* the format wants it first */
	builder->used_frames = take_block(builder, model->frames.count + 1, 1);
	builder->used_functions = take_block(builder, model->functions.count + 1, 1);
	builder->used_modules = take_block(builder, model->modules.count, 1);
	builder->module_limits =
		take_block(builder, model->modules.count, sizeof(*builder->module_limits));
	for (size_t i = 0; !builder->error && i < model->samples.count; i++) {
		if (selected->samples[i])
			add_sample(builder, &model->samples.items[i]);
	}
	add_header(builder, options);
	add_value_types(builder);
	add_labels(builder);
	add_samples(builder);
	add_locations(builder);
	add_functions(builder);
	add_mappings(builder);
	add_strings(builder);
}

static void builder_done(struct profile_builder *builder)
{
	array_foreach (&builder->blocks, block)
		free(*block);
	array_done(&builder->blocks);
	array_done(&builder->groups);
	map_u64_done(&builder->group_of);
	intern_done(&builder->strings);
}

static int pack(const profile_message *message, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf plain = {0};
	size_t length = perftools__profiles__profile__get_packed_size(message);
	uint8_t *room = strbuf_extend(&plain, length);

	if (!room)
		return -ENOMEM;
	perftools__profiles__profile__pack(message, room);
	return gzip_add(out, plain.data, plain.length);
}

static int pprof_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_(builder_done) struct profile_builder builder = {.model = model};
	int r = selection_apply(selection, model, &selected, err);

	if (r == 0) {
		build(&builder, &selected, export_options_or_default(options));
		r = builder.error ?: pack(&builder.message, out);
	}
	return export_result(r, out, "pprof", err);
}

const struct exporter pprof_exporter = {
	.name = "pprof",
	.description = "for pprof and the stores that take its profiles (compressed protobuf)",
	.extension = ".pb.gz",
	.is_weighed = true,
	.is_binary = true,
	.export = pprof_export,
};
