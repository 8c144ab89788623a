/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's callbacks: copies everything into the builder's raw tables. */
#include "model/builder/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

int builder_text(struct model_builder *builder, const char *text, uint32_t *ret_id)
{
	*ret_id = MODEL_NONE;
	if (!text || !*text)
		return 0;
	return MIN(intern_add(&builder->model->strings, text, strlen(text), ret_id), 0);
}

int builder_keep(struct model_builder *builder, const char *text, const char **ret_text)
{
	uint32_t id;
	int r = builder_text(builder, text, &id);

	if (r < 0)
		return r;
	*ret_text = id == MODEL_NONE ? "" : intern_get(&builder->model->strings, id);
	return 0;
}

/* Joins argv by spaces into a lasting string. */
static int builder_keep_words(struct model_builder *builder, const char *const *words,
	uint32_t count, const char **ret_text)
{
	_cleanup_strbuf_ struct strbuf joined = {0};

	for (uint32_t i = 0; words && i < count; i++) {
		if (i)
			strbuf_add_char(&joined, ' ');
		strbuf_add(&joined, words[i] ? words[i] : "");
	}
	if (strbuf_status(&joined) < 0)
		return -ENOMEM;
	return builder_keep(builder, strbuf_cstr(&joined), ret_text);
}

static int visit_session(void *context, const struct capture_session *session)
{
	struct model_builder *builder = context;
	struct model_session *kept = &builder->model->session;
	int r = builder_recording_begins(builder, session);

	if (r < 0 || builder->model->recordings.count > 1)
		return r;
	r = r ?: builder_keep(builder, session->sonde_version, &kept->sonde_version);
	r = r ?: builder_keep(builder, session->host, &kept->host);
	r = r ?: builder_keep(builder, session->kernel_release, &kept->kernel_release);
	r = r ?: builder_keep(builder, session->architecture, &kept->architecture);
	r = r ?: builder_keep(builder, session->unwind_mode, &kept->unwind_mode);
	r = r ?: builder_keep(builder, session->unwind_mode_reason, &kept->unwind_mode_reason);
	r = r ?: builder_keep(builder, session->wait_mode, &kept->wait_mode);
	r = r ?: builder_keep(builder, session->launch_stacks, &kept->launch_stacks);
	if (r == 0)
		r = builder_keep_words(
			builder, session->command, session->command_count, &kept->command_line);
	if (r < 0)
		return r;
	kept->start_time_ns = session->start_time_ns;
	kept->start_realtime_ns = session->start_realtime_ns;
	kept->period_ns = session->period_ns;
	kept->wait_period_ns = session->wait_period_ns;
	kept->wait_min_ns = session->wait_min_ns;
	kept->cpu_count = session->cpu_count;
	kept->whole_machine = session->whole_machine;
	kept->present = true;
	return 0;
}

static int builder_add_module(struct model_builder *builder, const struct capture_mapping *mapping)
{
	struct model_module module = {0};
	const char *slash;
	int r = builder_keep(builder, mapping->path, &module.path);

	if (r < 0)
		return r;
	slash = strrchr(module.path, '/');
	module.name = slash && slash[1] ? slash + 1 : module.path;
	if (!*module.name) {
		r = builder_keep(builder, "[anon]", &module.name);
		if (r < 0)
			return r;
	}
	module.build_id.length = MIN(mapping->build_id_length, sizeof(module.build_id.bytes));
	if (module.build_id.length)
		memcpy(module.build_id.bytes, mapping->build_id, module.build_id.length);
	/* After what a snapshot's weighing added. */
	builder->model->modules.count = builder->module_keys.entries.count - 1;
	return array_append(&builder->model->modules, module);
}

/* Joined captures repeat mappings: one file with one build id is one module. */
static int visit_mapping(void *context, capture_id id, const struct capture_mapping *mapping)
{
	struct model_builder *builder = context;
	_cleanup_strbuf_ struct strbuf key = {0};
	uint32_t module;
	int r;

	strbuf_add_char(&key, (char)mapping->build_id_length);
	if (mapping->build_id_length)
		strbuf_add_bytes(&key, mapping->build_id, mapping->build_id_length);
	strbuf_add(&key, mapping->path ? mapping->path : "");
	if (strbuf_status(&key) < 0)
		return -ENOMEM;
	r = intern_add(&builder->module_keys, key.data, key.length, &module);
	if (r > 0)
		r = builder_add_module(builder, mapping);
	if (r < 0)
		return r;
	r = reach_id(&builder->modules_by_mapping, id, MODEL_NONE);
	if (r < 0)
		return r;
	builder->modules_by_mapping.items[id] = module;
	return 0;
}

uint32_t builder_module_of_mapping(const struct model_builder *builder, capture_id mapping)
{
	return mapping && mapping < builder->modules_by_mapping.count
		       ? builder->modules_by_mapping.items[mapping]
		       : MODEL_NONE;
}

/* Adds a process after the others of its pid. */
static int builder_add_process(
	struct model_builder *builder, uint32_t pid, uint64_t start_time_ns, uint32_t *ret_process)
{
	struct model *model = builder->model;
	struct model_process process = {
		.pid = pid,
		.start_time_ns = start_time_ns,
		.name = "",
		.command_line = "",
		.cgroup = "",
		.rank = MODEL_NONE,
		.host = builder->host ? builder->host : "",
		.recording = (uint32_t)builder->model->recordings.count - 1,
	};
	uint32_t index = (uint32_t)model->processes.count;
	uint64_t earlier = MODEL_NONE;
	int r = 0;

	map_u64_get(&builder->processes, pid, &earlier);
	while (r == 0 && builder->earlier_same_pid.count < index) /* made by model_weigh() */
		r = array_append(&builder->earlier_same_pid, MODEL_NONE);
	r = r ?: array_append(&model->processes, process);
	r = r ?: array_append(&builder->earlier_same_pid, (uint32_t)earlier);
	r = r ?: map_u64_set(&builder->processes, pid, index);
	if (r < 0)
		return r;
	*ret_process = index;
	return 0;
}

/*
 * The process that a descriptor is about: the latest of its pid, unless that one started at another
 * known time, which means that the pid was used again.
 */
static int builder_described_process(
	struct model_builder *builder, const struct capture_process *process, uint32_t *ret_process)
{
	uint64_t latest;

	if (map_u64_get(&builder->processes, process->pid, &latest)) {
		struct model_process *known = &builder->model->processes.items[latest];

		if (!known->start_time_ns)
			known->start_time_ns = process->start_time_ns;
		if (!process->start_time_ns || known->start_time_ns == process->start_time_ns) {
			*ret_process = (uint32_t)latest;
			return 0;
		}
	}
	return builder_add_process(builder, process->pid, process->start_time_ns, ret_process);
}

static int visit_process(void *context, const struct capture_process *process)
{
	struct model_builder *builder = context;
	const char *name = "", *command_line = "", *cgroup = "";
	struct model_process *kept;
	uint32_t index;
	int r = 0;

	r = r ?: builder_described_process(builder, process, &index);
	r = r ?: builder_keep(builder, process->name, &name);
	r = r ?: builder_keep(builder, process->cgroup, &cgroup);
	if (r == 0)
		r = builder_keep_words(
			builder, process->cmdline, process->cmdline_count, &command_line);
	if (r < 0)
		return r;
	kept = &builder->model->processes.items[index];
	if (process->parent_pid)
		kept->parent_pid = process->parent_pid;
	if (*name)
		kept->name = name;
	if (*command_line)
		kept->command_line = command_line;
	if (*cgroup)
		kept->cgroup = cgroup;
	if (process->has_rank)
		kept->rank = process->rank;
	if (process->world_size)
		kept->world_size = process->world_size;
	return 0;
}

int builder_thread(
	struct model_builder *builder, uint32_t process, uint32_t tid, uint32_t *ret_thread)
{
	struct model_thread thread = {.tid = tid, .process = process, .name = ""};
	uint64_t key = (uint64_t)process << 32 | tid, known;
	int r = 0;

	if (map_u64_get(&builder->threads, key, &known)) {
		*ret_thread = (uint32_t)known;
		return 0;
	}
	known = builder->model->threads.count;
	r = r ?: array_append(&builder->model->threads, thread);
	r = r ?: map_u64_set(&builder->threads, key, known);
	if (r < 0)
		return r;
	*ret_thread = (uint32_t)known;
	return 0;
}

int builder_process_at(
	struct model_builder *builder, uint32_t pid, uint64_t time_ns, uint32_t *ret_process)
{
	uint64_t latest;
	uint32_t found, earliest;

	if (!map_u64_get(&builder->processes, pid, &latest))
		return builder_add_process(builder, pid, 0, ret_process);
	found = earliest = (uint32_t)latest;
	for (; found != MODEL_NONE; found = builder->earlier_same_pid.items[found]) {
		if (builder->model->processes.items[found].start_time_ns <= time_ns)
			break;
		earliest = found;
	}
	*ret_process = found == MODEL_NONE ? earliest : found;
	return 0;
}

static int visit_thread(void *context, const struct capture_thread *thread)
{
	struct model_builder *builder = context;
	const char *name = "";
	uint32_t process, index;
	int r = 0;

	/* A descriptor is about the latest process of its pid so far. */
	r = r ?: builder_process_at(builder, thread->pid, UINT64_MAX, &process);
	r = r ?: builder_thread(builder, process, thread->tid, &index);
	r = r ?: builder_keep(builder, thread->name, &name);
	if (r < 0)
		return r;
	if (*name)
		builder->model->threads.items[index].name = name;
	return 0;
}

/* A period of the sampling clock is shorter than what fits; a file may say anything. */
static uint32_t saturated(uint64_t count)
{
	return (uint32_t)MIN(count, (uint64_t)UINT32_MAX);
}

static int visit_sample(void *context, const struct capture_sample *sample)
{
	struct model_builder *builder = context;

	if (builder->paused)
		return 0;
	return array_append(&builder->samples,
		(struct raw_sample){
			.time_ns = sample->time_ns,
			.pid = sample->pid,
			.tid = sample->tid,
			.callstack = builder_stack_of(builder, sample->callstack),
			.cpu = (uint16_t)sample->cpu,
			.mode = (uint8_t)sample->mode,
			.gil = (uint8_t)sample->gil,
			.gil_holder_tid = sample->gil_holder_tid,
			.wait = (uint8_t)sample->wait,
			.wait_is_open = sample->wait_is_open,
			.wait_count = sample->wait_count,
			.duration_ns = sample->duration_ns,
			.cycles = saturated(sample->cycles),
			.instructions = saturated(sample->instructions),
		});
}

static int visit_device_work(void *context, const struct capture_device_work *work)
{
	struct model_builder *builder = context;
	struct capture_device_work kept = *work;
	int r = builder_keep(builder, work->device, &kept.device);

	r = r ?: builder_keep(builder, work->name, &kept.name);
	return r ?: array_append(&builder->device_works, kept);
}

static int visit_launch(void *context, const struct capture_launch *launch)
{
	struct model_builder *builder = context;

	return array_append(&builder->launches, *launch);
}

static int visit_launch_stack(void *context, const struct capture_launch_stack *stack)
{
	struct model_builder *builder = context;
	struct capture_launch_stack kept = *stack;

	kept.callstack = builder_stack_of(builder, stack->callstack);
	return array_append(&builder->launch_stacks, kept);
}

static int visit_device_event(void *context, const struct capture_device_event *event)
{
	struct model_builder *builder = context;
	struct capture_device_event kept = *event;
	int r = builder_keep(builder, event->text, &kept.text);

	return r ?: array_append(&builder->device_events, kept);
}

static int visit_symbols(void *context, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	struct model_builder *builder = context;
	struct site_key key = {
		.rel_pc = rel_pc, .module = builder_module_of_mapping(builder, mapping)};
	struct raw_site site = {
		.first = (uint32_t)builder->lines.count,
		.count = (uint32_t)count,
	};
	uint32_t id;
	int r = intern_add(&builder->sites, &key, sizeof(key), &id);

	if (r > 0)
		r = array_append(&builder->site_lines, site);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct raw_line raw = {.line = lines[i].line};

		r = r ?: builder_text(builder, lines[i].function, &raw.name);
		r = r ?: builder_text(builder, lines[i].file, &raw.source_file);
		r = r ?: array_append(&builder->lines, raw);
	}
	if (r < 0)
		return r;
	builder->site_lines.items[id] = site; /* of a site written twice, the last counts */
	return 0;
}

static int visit_progress(void *context, uint64_t bytes, uint64_t total_bytes)
{
	struct model_builder *builder = context;

	if (builder->progress)
		builder->progress(builder->progress_context, bytes, total_bytes);
	return 0;
}

void model_builder_set_progress(
	struct model_builder *builder, model_progress_function *progress, void *context)
{
	builder->progress = progress;
	builder->progress_context = context;
}

void model_builder_choose_windows(struct model_builder *builder, const struct window_choice *choice)
{
	builder->window_choice = *choice;
}

void model_builder_drop_arguments(struct model_builder *builder, bool drop)
{
	builder->drop_arguments = drop;
}

size_t model_builder_forget_samples(struct model_builder *builder, uint64_t before_ns)
{
	size_t kept = 0;

	array_foreach (&builder->samples, sample) {
		if (sample->time_ns >= before_ns)
			builder->samples.items[kept++] = *sample;
	}
	builder->samples.count = kept;
	builder_forget_energy(builder, before_ns);
	return builder->stacks.count;
}

void model_builder_pause(struct model_builder *builder, bool pause)
{
	builder->paused = pause;
}

void model_builder_forget_callstacks(struct model_builder *builder)
{
	builder->samples.count = 0;
	builder_forget_stacks(builder);
}

int model_builder_new(struct model_builder **ret_builder)
{
	_cleanup_model_builder_ struct model_builder *builder = calloc(1, sizeof(*builder));

	if (!builder)
		return -ENOMEM;
	builder->model = model_new();
	if (!builder->model)
		return -ENOMEM;
	*ret_builder = TAKE_PTR(builder);
	return 0;
}

struct model_builder *model_builder_free(struct model_builder *builder)
{
	if (!builder)
		return NULL;
	model_free(builder->model);
	array_done(&builder->modules_by_mapping);
	intern_done(&builder->module_keys);
	builder_stacks_done(builder);
	intern_done(&builder->sites);
	array_done(&builder->site_lines);
	array_done(&builder->lines);
	array_done(&builder->samples);
	array_done(&builder->device_works);
	array_done(&builder->launches);
	array_done(&builder->launch_stacks);
	builder_recordings_done(builder);
	builder_ranges_done(builder);
	builder_counters_done(builder);
	builder_energy_done(builder);
	builder_traces_done(builder);
	builder_windows_done(builder);
	array_done(&builder->device_events);
	map_u64_done(&builder->processes);
	array_done(&builder->earlier_same_pid);
	map_u64_done(&builder->threads);
	map_u64_done(&builder->functions);
	free(builder);
	return NULL;
}

void model_builder_freep(struct model_builder **builder)
{
	*builder = model_builder_free(*builder);
}

const struct capture_visitor model_builder_visitor = {
	.session = visit_session,
	.mapping = visit_mapping,
	.frame = builder_visit_frame,
	.callstack = builder_visit_callstack,
	.process = visit_process,
	.thread = visit_thread,
	.sample = visit_sample,
	.device_work = visit_device_work,
	.launch = visit_launch,
	.launch_stack = visit_launch_stack,
	.range = builder_visit_range,
	.counter = builder_visit_counter,
	.energy_domain = builder_visit_energy_domain,
	.energy_interval = builder_visit_energy_interval,
	.energy_state = builder_visit_energy_state,
	.energy_absence = builder_visit_energy_absence,
	.window = builder_visit_window,
	.step = builder_visit_step,
	.device_event = visit_device_event,
	.symbols = visit_symbols,
	.stats = builder_visit_stats,
	.trace = builder_visit_trace,
	.trace_track = builder_visit_trace_track,
	.trace_row = builder_visit_trace_row,
	.trace_flow = builder_visit_trace_flow,
	.trace_counter = builder_visit_trace_counter,
	.trace_group = builder_visit_trace_group,
	.progress = visit_progress,
};
