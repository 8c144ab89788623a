/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/join/join.h"
#include "model/builder/builder.h"
#include "model/trace.h"
#include "model/windows.h"

/* 0 where it is not known. */
static uint64_t file_size(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

/* The first number of the choice that the file does not have; 0: it has them all. */
static uint32_t missing_window(const struct model *model, const struct window_choice *choice)
{
	for (uint32_t i = 0; i < choice->count; i++) {
		uint32_t number = choice->ranges[i].first, found = 0;

		array_foreach (&model->windows, window)
			found += window->number >= number &&
				 window->number <= choice->ranges[i].last;
		if (!found)
			return number;
	}
	return 0;
}

static int check_choice(const struct model *model, const struct window_choice *choice,
	const char *path, struct errmsg *err)
{
	uint32_t missing = missing_window(model, choice);

	if (!missing)
		return 0;
	if (!model->whole_window_count)
		return errmsg_set(err, -EINVAL,
			"--window %u: %s has no windows, all of the time was recorded; leave the "
			"option out, or choose a time with --time",
			missing, path);
	return errmsg_set(err, -EINVAL,
		"--window %u: %s has %u windows and none of that number; sonde report --by window "
		"lists them",
		missing, path, model->whole_window_count);
}

/* Progress over all files. */
struct run_progress {
	model_progress_function *function;
	void *context;
	uint64_t before, total; /* bytes */
};

static void progress_of_run(void *context, uint64_t bytes, uint64_t total_bytes)
{
	const struct run_progress *progress = context;

	if (progress->function)
		progress->function(progress->context, progress->before + bytes,
			progress->total ? progress->total : total_bytes);
}

/* What is known of all of them. */
static void add_completeness(
	struct capture_read_result *sum, const struct capture_read_result *more)
{
	sum->bytes += more->bytes;
	sum->packets += more->packets;
	sum->skipped_packets += more->skipped_packets;
	sum->other_packets += more->other_packets;
	if (more->truncated && !sum->truncated)
		sum->truncated_at = more->truncated_at;
	sum->truncated |= more->truncated;
}

static int read_run(struct model_builder *builder, struct model_source *sources, size_t count,
	struct run_progress *progress, struct capture_read_result *completeness, struct errmsg *err)
{
	_cleanup_capture_join_ struct capture_join *join = NULL;
	int r = capture_join_new(&join, &model_builder_visitor, builder);

	for (size_t i = 0; r == 0 && i < count; i++) {
		r = capture_join_read(
			join, sources[i].path, &sources[i].clock, &sources[i].read, err);
		progress->before += sources[i].read.bytes;
		add_completeness(completeness, &sources[i].read);
	}
	return r;
}

static int read_one(struct model_builder *builder, const char *path,
	struct capture_read_result *completeness, struct errmsg *err)
{
	return capture_read(path, &model_builder_visitor, builder, completeness, err);
}

/* What else a load is asked for. */
struct asked {
	const struct window_choice *choice; /* NULL: all */
	bool drop_arguments;
	model_progress_function *progress;
	void *progress_context;
};

static int load(struct model **ret_model, struct model_source *sources, size_t count,
	const struct asked *asked, struct errmsg *err)
{
	_cleanup_model_builder_ struct model_builder *builder = NULL;
	_cleanup_model_ struct model *model = NULL;
	struct capture_read_result completeness = {0};
	struct run_progress all = {.function = asked->progress, .context = asked->progress_context};
	const struct window_choice *choice = asked->choice;
	const char *path = sources[0].path;
	int r = model_builder_new(&builder);

	if (r == 0) {
		for (size_t i = 0; i < count; i++)
			all.total += file_size(sources[i].path);
		model_builder_set_progress(builder, progress_of_run, &all);
		model_builder_drop_arguments(builder, asked->drop_arguments);
		if (choice)
			model_builder_choose_windows(builder, choice);
		r = count == 1 ? read_one(builder, path, &completeness, err)
			       : read_run(builder, sources, count, &all, &completeness, err);
		if (r < 0 && r != -ENOMEM)
			return r;
	}
	if (r == 0)
		r = model_builder_finish(builder, &completeness, &model);
	if (r == -ENOMEM)
		return errmsg_set(err, r,
			"memory ran out while loading %s: close other programs, or record a "
			"shorter time",
			path);
	if (r == 0 && choice)
		r = check_choice(model, choice, path, err);
	if (r == 0)
		*ret_model = TAKE_PTR(model);
	return r;
}

int model_load_run(struct model **ret_model, struct model_source *sources, size_t count,
	const struct window_choice *choice, model_progress_function *progress,
	void *progress_context, struct errmsg *err)
{
	const struct asked asked = {
		.choice = choice, .progress = progress, .progress_context = progress_context};

	return load(ret_model, sources, count, &asked, err);
}

int model_load_for_rows(struct model **ret_model, const char *path, bool keep_arguments,
	model_progress_function *progress, void *progress_context, struct errmsg *err)
{
	struct model_source source = {.path = path};
	const struct asked asked = {.drop_arguments = !keep_arguments,
		.progress = progress,
		.progress_context = progress_context};

	return load(ret_model, &source, 1, &asked, err);
}

int model_load_windows(struct model **ret_model, const char *path,
	const struct window_choice *choice, model_progress_function *progress,
	void *progress_context, struct errmsg *err)
{
	struct model_source source = {.path = path};

	return model_load_run(ret_model, &source, 1, choice, progress, progress_context, err);
}

int model_load(struct model **ret_model, const char *path, model_progress_function *progress,
	void *progress_context, struct errmsg *err)
{
	return model_load_windows(ret_model, path, NULL, progress, progress_context, err);
}

struct model *model_new(void)
{
	struct model *model = calloc(1, sizeof(*model));

	if (!model)
		return NULL;
	model->session = (struct model_session){
		.sonde_version = "",
		.host = "",
		.kernel_release = "",
		.architecture = "",
		.command_line = "",
		.unwind_mode = "",
		.unwind_mode_reason = "",
		.wait_mode = "",
		.launch_stacks = "",
	};
	return model;
}

struct model *model_free(struct model *model)
{
	if (!model)
		return NULL;
	array_done(&model->processes);
	array_done(&model->threads);
	array_done(&model->modules);
	array_done(&model->functions);
	array_done(&model->frames);
	array_done(&model->stack_frames);
	array_done(&model->stacks);
	array_done(&model->samples);
	array_done(&model->device_works);
	array_done(&model->launched_works);
	array_done(&model->device_waits);
	array_done(&model->recordings);
	array_done(&model->ranges);
	array_done(&model->capture_ranges);
	array_done(&model->range_fields);
	array_done(&model->counters);
	array_done(&model->energy_domains);
	array_done(&model->energy_intervals);
	array_done(&model->energy_states);
	array_done(&model->energy_absences);
	array_done(&model->energy_errors);
	array_done(&model->windows);
	array_done(&model->steps);
	array_done(&model->chosen_steps);
	array_done(&model->gpus);
	array_done(&model->graph_calls);
	array_done(&model->graph_nodes);
	array_done(&model->captured_calls);
	array_done(&model->collectives);
	array_done(&model->overheads);
	array_done(&model->device_memory);
	array_done(&model->device_syncs);
	array_done(&model->device_calls);
	array_done(&model->unified_memory);
	array_done(&model->device_notes);
	array_done(&model->pcs);
	array_foreach (&model->traces, trace)
		trace_free(*trace);
	array_done(&model->traces);
	free((void *)model->stats.values.losses);
	free((void *)model->stats.values.notes);
	intern_done(&model->strings);
	free(model);
	return NULL;
}

void model_freep(struct model **model)
{
	*model = model_free(*model);
}

uint64_t model_sample_weight_ns(const struct model *model)
{
	if (model->unit_ns)
		return model->unit_ns;
	return model->session.period_ns ? model->session.period_ns : 1;
}

bool model_has_time(const struct model *model)
{
	return (model->session.period_ns || model->unit_ns) && !model->counts_energy &&
	       !model->counts_bytes;
}

static const char *const weight_names[MODEL_WEIGHT_MAX] = {
	[MODEL_WEIGHT_CPU] = "cpu",
	[MODEL_WEIGHT_WAIT] = "wait",
	[MODEL_WEIGHT_WALL] = "wall",
	[MODEL_WEIGHT_GPU] = "gpu",
	[MODEL_WEIGHT_GPU_IDLE] = "gpu-idle",
	[MODEL_WEIGHT_GPU_BYTES] = "gpu-bytes",
	[MODEL_WEIGHT_CPU_GPU] = "cpu+gpu",
	[MODEL_WEIGHT_ENERGY] = "energy",
};

const char *model_weight_to_string(enum model_weight weight)
{
	return (unsigned)weight < MODEL_WEIGHT_MAX ? weight_names[weight] : NULL;
}

enum model_weight model_weight_from_string(const char *name)
{
	for (int i = 0; i < MODEL_WEIGHT_MAX; i++) {
		if (strcmp(name, weight_names[i]) == 0)
			return (enum model_weight)i;
	}
	return MODEL_WEIGHT_INVALID;
}

bool model_sample_counts(const struct model_sample *sample, enum model_weight weight)
{
	bool waits = sample->wait != WIRE_WAIT_NONE;

	return weight == MODEL_WEIGHT_WALL || waits == (weight == MODEL_WEIGHT_WAIT);
}

uint32_t model_only_rank(const struct model *model, uint32_t *ret_world_size)
{
	uint32_t rank = MODEL_NONE;

	array_foreach (&model->processes, process) {
		if (process->rank == MODEL_NONE)
			continue;
		if (rank != MODEL_NONE && rank != process->rank)
			return MODEL_NONE;
		rank = process->rank;
		*ret_world_size = process->world_size;
	}
	return rank;
}

uint64_t model_running_samples(const struct model *model)
{
	uint64_t count = 0;

	array_foreach (&model->samples, sample)
		count += sample->wait == WIRE_WAIT_NONE;
	return count;
}

uint64_t model_sample_time_ns(const struct model *model, const struct model_sample *sample)
{
	if (sample->wait == WIRE_WAIT_NONE && model->session.period_ns)
		return model->session.period_ns;
	return sample->duration_ns;
}

size_t model_launched_count(const struct model *model)
{
	return model->launched_works.count ? model->launched_works.count
					   : model->device_works.count;
}

struct model_launched model_launched(const struct model *model, size_t index)
{
	const struct model_device_work *work;

	if (model->launched_works.count)
		return model->launched_works.items[index];
	work = &model->device_works.items[index];
	return (struct model_launched){
		.start_ns = work->start_ns,
		.end_ns = work->end_ns,
		.launch_ns = work->launch_ns,
		.device = work->device,
		.process = work->process,
		.thread = work->thread,
	};
}

uint64_t model_start_ns(const struct model *model)
{
	uint64_t start = UINT64_MAX;

	if (model->session.start_time_ns)
		return model->session.start_time_ns;
	/* Of other recorders: the first of all that is known. */
	if (model->samples.count)
		start = model->samples.items[0].time_ns;
	if (model->ranges.count)
		start = MIN(start, model->ranges.items[0].start_ns);
	if (model->device_works.count)
		start = MIN(start, model->device_works.items[0].start_ns);
	return start == UINT64_MAX ? 0 : start;
}

uint64_t model_since_start_ns(const struct model *model, uint64_t time_ns)
{
	uint64_t start_ns = model_start_ns(model);

	return time_ns > start_ns ? time_ns - start_ns : 0;
}

static uint64_t foreign_end_ns(const struct model *model)
{
	uint64_t end = 0;

	array_foreach (&model->ranges, range)
		end = MAX(end, range->end_ns);
	for (size_t i = 0; i < model_launched_count(model); i++)
		end = MAX(end, model_launched(model, i).end_ns);
	return end;
}

uint64_t model_duration_ns(const struct model *model)
{
	return model->windows.count ? model_recorded_ns(model, 0, UINT64_MAX)
				    : model_elapsed_ns(model);
}

bool model_has_duration(const struct model *model)
{
	return model->session.period_ns || model->session.cpu_count || !model->samples.count ||
	       model_elapsed_ns(model) > model->samples.count;
}

uint64_t model_elapsed_ns(const struct model *model)
{
	uint64_t start = model_start_ns(model), end = model->stats.values.end_time_ns;

	end = MAX(end, model->windows_end_ns);
	if (model->samples.count)
		end = MAX(end, model->samples.items[model->samples.count - 1].time_ns);
	if (!model->session.present)
		end = MAX(end, foreign_end_ns(model));
	return end > start ? end - start : 0;
}

const char *model_function_name(const struct model *model, uint32_t function)
{
	return function == MODEL_NONE ? "[no stack]" : model->functions.items[function].name;
}

void model_frame_name(const struct model *model, uint32_t frame, struct strbuf *out)
{
	const struct model_frame *found = &model->frames.items[frame];
	const struct model_function *function = &model->functions.items[found->function];

	strbuf_add(out, function->name);
	if (function->unnamed && !function->start_known)
		strbuf_addf(out, "%s0x%llx", function->module == MODEL_NONE ? " " : "+",
			(unsigned long long)found->rel_pc);
}

void model_frame_place(const struct model *model, uint32_t frame, struct strbuf *out)
{
	const struct model_frame *found = &model->frames.items[frame];

	model_frame_name(model, frame, out);
	if (found->line)
		strbuf_addf(out, " (%s:%u)", found->source_file, found->line);
}

const char *model_function_module(const struct model *model, uint32_t function)
{
	return model_module_name(model,
		function == MODEL_NONE ? MODEL_NONE : model->functions.items[function].module);
}

const char *model_module_name(const struct model *model, uint32_t module)
{
	return module == MODEL_NONE ? "[unknown]" : model->modules.items[module].name;
}

uint32_t model_stack_leaf(const struct model *model, uint32_t stack)
{
	const struct model_stack *found;

	if (stack == MODEL_NONE)
		return MODEL_NONE;
	found = &model->stacks.items[stack];
	return found->count ? model->stack_frames.items[found->first + found->count - 1]
			    : MODEL_NONE;
}
