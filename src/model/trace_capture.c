/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A thread, or a stream: what tells its track from others. */
struct track_key {
	uint32_t process, thread; /* indices; thread MODEL_NONE: of the process, or a stream */
	uint32_t device, context, stream;
	uint32_t unused;
};

/* A correlation is unique in its process only. */
struct correlation_key {
	uint64_t correlation;
	uint32_t process, unused;
};

struct rows {
	const struct model *model;
	struct trace *trace;
	uint64_t origin_ns;
	struct intern tracks;       /* keys → track */
	struct map_u64 devices;     /* interned name → number */
	struct map_u64 calls;       /* correlations whose call is a row */
	struct intern correlations; /* keys → number, where many processes have some */
	uint32_t runtime, kernel, memory_copy, memory_fill, annotation, instant,
		memory;      /* strings */
	bool many_processes; /* that gave work to devices */
};

static int add_text(struct trace *trace, const char *text, uint32_t *ret_string)
{
	int r = intern_add(&trace->strings, text, strlen(text), ret_string);

	return r < 0 ? r : 0;
}

static int64_t since_origin(const struct rows *rows, uint64_t time_ns)
{
	return (int64_t)(time_ns - rows->origin_ns);
}

/* ---- tracks ---- */

static int name_thread(
	struct rows *rows, struct trace_track *track, uint32_t process, uint32_t thread)
{
	const struct model_process *owner = &rows->model->processes.items[process];
	const struct model_thread *self =
		thread == MODEL_NONE ? NULL : &rows->model->threads.items[thread];
	int r = add_text(rows->trace, owner->name, &track->process_name);

	track->pid = owner->pid;
	if (self)
		track->tid = self->tid;
	else
		r = r ?: add_text(rows->trace, "process", &track->tid_text);
	return r ?: add_text(rows->trace, self ? self->name : "process", &track->thread_name);
}

static int name_stream(struct rows *rows, struct trace_track *track,
	const struct model_device_work *work, const struct track_key *key)
{
	const struct model_process *owner = &rows->model->processes.items[work->process];
	char text[96];
	int r = add_text(rows->trace, owner->name, &track->process_name);

	track->pid = key->device;
	track->tid = key->stream;
	track->is_device = true;
	snprintf(text, sizeof(text), "GPU %u", key->device);
	r = r ?: add_text(rows->trace, text, &track->process_labels);
	if (rows->many_processes)
		snprintf(text, sizeof(text), "stream %u of process %u", key->stream, owner->pid);
	else
		snprintf(text, sizeof(text), "stream %u", key->stream);
	return r ?: add_text(rows->trace, text, &track->thread_name);
}

/* `work` NULL: of the host. */
static int find_track(struct rows *rows, const struct track_key *key,
	const struct model_device_work *work, uint32_t *ret_track)
{
	struct trace_track track = {
		.pid = TRACE_NO_NUMBER,
		.tid = TRACE_NO_NUMBER,
		.process_sort = TRACE_NO_NUMBER,
		.thread_sort = TRACE_NO_NUMBER,
		.recorded = work || key->thread == MODEL_NONE ? 0 : key->thread + 1,
	};
	int r = intern_add(&rows->tracks, key, sizeof(*key), ret_track);

	if (r <= 0)
		return r;
	r = work ? name_stream(rows, &track, work, key)
		 : name_thread(rows, &track, key->process, key->thread);
	return r ?: array_append(&rows->trace->tracks, track);
}

static int find_thread(struct rows *rows, uint32_t process, uint32_t thread, uint32_t *ret_track)
{
	const struct track_key key = {.process = process, .thread = thread, .device = MODEL_NONE};

	return find_track(rows, &key, NULL, ret_track);
}

/* Devices count from 0, in the order in which they are met. Equal names are equal pointers. */
static int find_device(struct rows *rows, const char *name, uint32_t *ret_device)
{
	uint64_t key = (uintptr_t)name, known;
	int r;

	if (map_u64_get(&rows->devices, key, &known)) {
		*ret_device = (uint32_t)known;
		return 0;
	}
	*ret_device = (uint32_t)rows->devices.count;
	r = trace_name_device(rows->trace, *ret_device, name, strlen(name));
	if (r < 0)
		return r;
	return map_u64_set(&rows->devices, key, *ret_device);
}

/* ---- rows ---- */

static int add_row(struct rows *rows, struct trace_event *event)
{
	if (rows->trace->events.count >= MODEL_NONE)
		return -ENOMEM;
	event->file_index = (uint32_t)rows->trace->events.count;
	return array_append(&rows->trace->events, *event);
}

/* As it was recorded; of several processes they are numbered, to differ in one trace. */
static int find_correlation(
	struct rows *rows, const struct model_device_work *work, uint64_t *ret_correlation)
{
	const struct correlation_key key = {work->correlation, work->process, 0};
	uint32_t number;
	int r;

	*ret_correlation = work->correlation;
	if (!work->correlation || !rows->many_processes)
		return 0;
	r = intern_add(&rows->correlations, &key, sizeof(key), &number);
	*ret_correlation = number + 1ULL;
	return MIN(r, 0);
}

static void fill_work(const struct model *model, const struct model_device_work *work,
	uint32_t device, uint32_t stream, struct trace_work *out)
{
	*out = (struct trace_work){
		.device = device,
		.context = work->gpu == MODEL_NONE ? TRACE_NO_NUMBER : work->context,
		.stream = stream,
		.bytes = work->bytes,
		.registers = work->registers,
		.shared_bytes = work->static_shared_bytes + work->dynamic_shared_bytes,
		.graph = work->graph,
		.graph_node = work->graph_node,
		.queued_ns = TRACE_NO_NUMBER,
		.wait_stream = TRACE_NO_NUMBER,
		.wait_event = TRACE_NO_NUMBER,
		.collective = MODEL_NONE,
		.recorded = (uint32_t)(work - model->device_works.items) + 1,
	};
	for (unsigned i = 0; i < 3; i++) {
		out->grid[i] = (uint32_t)work->global_size[i];
		out->block[i] = work->block_size[i];
	}
}

static bool is_kernel(const struct model_device_work *work)
{
	return work->kind == WIRE_DEVICE_KERNEL || work->kind == WIRE_DEVICE_GRAPH;
}

static int add_work(struct rows *rows, const struct model_device_work *work)
{
	uint32_t stream = work->gpu == MODEL_NONE ? work->queue : work->stream;
	struct track_key key = {
		.process = work->process,
		.thread = MODEL_NONE,
		.context = work->gpu == MODEL_NONE ? 0 : work->context,
		.stream = stream,
	};
	struct trace_event event = {
		.start_ns = since_origin(rows, work->start_ns),
		.duration_ns = (int64_t)(work->end_ns - work->start_ns),
		.external_id = TRACE_NO_ID,
		.category = TRACE_MEMCPY,
		.category_name = rows->memory_copy,
		.detail = (uint32_t)rows->trace->works.count,
	};
	struct trace_work detail;
	int r = find_correlation(rows, work, &event.correlation);

	if (r < 0)
		return r;
	r = find_device(rows, work->device, &key.device);
	if (r < 0)
		return r;

	if (is_kernel(work)) {
		event.category = TRACE_KERNEL;
		event.category_name = rows->kernel;
	} else if (work->kind == WIRE_DEVICE_FILL) {
		event.category = TRACE_MEMSET;
		event.category_name = rows->memory_fill;
	}
	fill_work(rows->model, work, key.device, stream, &detail);
	/* Nothing is moved where the host has the device's memory: it has no bandwidth. */
	if (work->kind == WIRE_DEVICE_MAP || work->kind == WIRE_DEVICE_UNMAP)
		detail.bytes = 0;
	r = add_text(rows->trace, work->name, &event.name);
	r = r ?: find_track(rows, &key, work, &event.track);
	r = r ?: array_append(&rows->trace->works, detail);
	return r ?: add_row(rows, &event);
}

/* What a runtime's calls are usually called, by the kind of work or wait. */
struct call_names {
	const char *of_kinds[WIRE_DEVICE_MAX];
	const char *other;
};

static const struct call_names opencl_calls = {
	.of_kinds =
		{
			[WIRE_DEVICE_KERNEL] = "clEnqueueNDRangeKernel",
			[WIRE_DEVICE_FILL] = "clEnqueueFillBuffer",
			[WIRE_DEVICE_READ] = "clEnqueueReadBuffer",
			[WIRE_DEVICE_WRITE] = "clEnqueueWriteBuffer",
			[WIRE_DEVICE_MAP] = "clEnqueueMapBuffer",
			[WIRE_DEVICE_UNMAP] = "clEnqueueUnmapMemObject",
			[WIRE_DEVICE_MIGRATE] = "clEnqueueMigrateMemObjects",
			[WIRE_DEVICE_WAIT] = "clWaitForEvents",
			[WIRE_DEVICE_FINISH] = "clFinish",
		},
	.other = "clEnqueueCopyBuffer",
};

static const struct call_names cuda_calls = {
	.of_kinds =
		{
			[WIRE_DEVICE_KERNEL] = "cudaLaunchKernel",
			[WIRE_DEVICE_FILL] = "cudaMemsetAsync",
			[WIRE_DEVICE_GRAPH] = "cudaGraphLaunch",
			[WIRE_DEVICE_MIGRATE] = "cudaMemPrefetchAsync",
			[WIRE_DEVICE_WAIT] = "[a wait: cudaEventSynchronize or the like]",
			[WIRE_DEVICE_FINISH] = "[a wait: cudaDeviceSynchronize or the like]",
		},
	.other = "cudaMemcpyAsync",
};

static const char *call_name(bool has_gpu, uint8_t kind)
{
	const struct call_names *calls = has_gpu ? &cuda_calls : &opencl_calls;
	const char *name = kind < WIRE_DEVICE_MAX ? calls->of_kinds[kind] : NULL;

	return name ? name : calls->other;
}

const char *trace_call_name(const struct model_device_work *work)
{
	return call_name(work->gpu != MODEL_NONE, work->replayed ? WIRE_DEVICE_GRAPH : work->kind);
}

static bool has_gpu(const struct model *model, uint32_t process)
{
	array_foreach (&model->gpus, gpu) {
		if (gpu->process == process)
			return true;
	}
	return false;
}

const char *trace_wait_name(const struct model *model, const struct model_device_wait *wait)
{
	return call_name(has_gpu(model, model->threads.items[wait->thread].process), wait->kind);
}

/* Once for each call, however much work it launched. */
static int add_call(struct rows *rows, const struct model_device_work *work)
{
	struct trace_event event = {
		.start_ns = since_origin(rows, work->launch_ns),
		.duration_ns = (int64_t)work->launch_duration_ns,
		.external_id = TRACE_NO_ID,
		.category = TRACE_RUNTIME,
		.category_name = rows->runtime,
		.detail = MODEL_NONE,
	};
	int r = find_correlation(rows, work, &event.correlation);

	if (r < 0)
		return r;
	if (!work->launch_ns || work->thread == MODEL_NONE || !event.correlation ||
		map_u64_get(&rows->calls, event.correlation, NULL))
		return 0;
	r = map_u64_set(&rows->calls, event.correlation, 1);
	r = r ?: find_thread(rows, work->process, work->thread, &event.track);
	/* Of other recorders' traces the call is a range, which has its name. */
	r = r
		    ?: add_text(rows->trace,
			       rows->model->session.present ? trace_call_name(work) : "[launch]",
			       &event.name);
	return r ?: add_row(rows, &event);
}

static int add_annotation(struct rows *rows, uint32_t process, uint32_t thread, const char *name,
	uint64_t start_ns, uint64_t end_ns)
{
	struct trace_event event = {
		.start_ns = since_origin(rows, start_ns),
		.duration_ns = (int64_t)(end_ns - start_ns),
		.external_id = TRACE_NO_ID,
		.category = TRACE_USER_ANNOTATION,
		.category_name = rows->annotation,
		.detail = MODEL_NONE,
	};
	int r = find_thread(rows, process, thread, &event.track);

	r = r ?: add_text(rows->trace, name, &event.name);
	return r ?: add_row(rows, &event);
}

/* Steps are called what tools for Kineto's traces look for. */
static int add_step(struct rows *rows, const struct model_step *step)
{
	char name[48];

	snprintf(name, sizeof(name), "ProfilerStep#%llu", (unsigned long long)step->number);
	return add_annotation(
		rows, step->process, step->thread, name, step->start_ns, step->end_ns);
}

static int add_waits(struct rows *rows)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < rows->model->device_waits.count; i++) {
		const struct model_device_wait *wait = &rows->model->device_waits.items[i];
		struct trace_event event = {
			.start_ns = since_origin(rows, wait->start_ns),
			.duration_ns = (int64_t)(wait->end_ns - wait->start_ns),
			.external_id = TRACE_NO_ID,
			.category = TRACE_RUNTIME,
			.category_name = rows->runtime,
			.detail = MODEL_NONE,
		};

		r = find_thread(rows, rows->model->threads.items[wait->thread].process,
			wait->thread, &event.track);
		r = r ?: add_text(rows->trace, trace_wait_name(rows->model, wait), &event.name);
		r = r ?: add_row(rows, &event);
	}
	return r;
}

/* An allocation as PyTorch's profiler has them. What is in use by then, the reader adds up. */
static int add_memory(struct rows *rows, const struct model_device_memory *from)
{
	const struct capture_memory *memory = &from->memory;
	struct trace_event event = {
		.start_ns = since_origin(rows, from->time_ns),
		.duration_ns = TRACE_NO_DURATION,
		.external_id = TRACE_NO_ID,
		.category = TRACE_CPU_INSTANT,
		.category_name = rows->instant,
		.name = rows->memory,
		.detail = (uint32_t)rows->trace->memory.count,
	};
	struct trace_memory detail = {
		.address = memory->address,
		.bytes = (int64_t)(memory->released ? 0 - memory->bytes : memory->bytes),
		.total_allocated = TRACE_NO_NUMBER,
		.total_reserved = TRACE_NO_NUMBER,
		.device_type = TRACE_DEVICE_CUDA,
	};
	uint32_t device;
	int r = find_device(
		rows, model_gpu_label(rows->model, from->process, memory->gpu), &device);

	if (r < 0)
		return r;
	detail.device_id = device;
	r = find_thread(rows, from->process, MODEL_NONE, &event.track);
	if (r < 0)
		return r;
	r = array_append(&rows->trace->memory, detail);
	return r < 0 ? r : add_row(rows, &event);
}

static int add_rows(struct rows *rows)
{
	const struct model *model = rows->model;
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->steps.count; i++)
		r = add_step(rows, &model->steps.items[i]);
	for (size_t i = 0; r == 0 && i < model->ranges.count; i++) {
		const struct model_range *range = &model->ranges.items[i];

		r = add_annotation(rows, range->process, range->thread, range->name,
			range->start_ns, range->end_ns);
		if (r == 0 && range->is_mark)
			rows->trace->events.items[rows->trace->events.count - 1].duration_ns =
				TRACE_NO_DURATION;
	}
	for (size_t i = 0; r == 0 && i < model->device_works.count; i++) {
		r = add_call(rows, &model->device_works.items[i]);
		r = r ?: add_work(rows, &model->device_works.items[i]);
	}
	for (size_t i = 0; r == 0 && i < model->device_memory.count; i++) {
		if (model_is_device_memory(&model->device_memory.items[i]))
			r = add_memory(rows, &model->device_memory.items[i]);
	}
	return r ?: add_waits(rows);
}

/* ---- the trace ---- */

static int add_words(struct rows *rows)
{
	int r = add_text(rows->trace, "cuda_runtime", &rows->runtime);

	r = r ?: add_text(rows->trace, "kernel", &rows->kernel);
	r = r ?: add_text(rows->trace, "gpu_memcpy", &rows->memory_copy);
	r = r ?: add_text(rows->trace, "gpu_memset", &rows->memory_fill);
	r = r ?: add_text(rows->trace, "cpu_instant_event", &rows->instant);
	r = r ?: add_text(rows->trace, "[memory]", &rows->memory);
	return r ?: add_text(rows->trace, "user_annotation", &rows->annotation);
}

static void find_origin(struct rows *rows)
{
	const struct model *model = rows->model;

	rows->origin_ns = model_start_ns(model);
	rows->trace->recorded = model;
	rows->trace->recorded_from_ns = rows->origin_ns;
	if (model->session.start_realtime_ns)
		rows->trace->base_ns = model->session.start_realtime_ns -
				       model->session.start_time_ns + rows->origin_ns;
	for (size_t i = 1; i < model->device_works.count; i++)
		rows->many_processes |= model->device_works.items[i].process !=
					model->device_works.items[0].process;
}

int trace_of_recording(struct trace **ret_trace, const struct model *model)
{
	_cleanup_trace_ struct trace *trace =
		trace_new(*model->session.command_line ? model->session.command_line : "recording");
	struct rows rows = {.model = model, .trace = trace};
	int r = trace ? 0 : -ENOMEM;

	if (r == 0) {
		trace->has_fractions = true;
		trace->arguments_kept = true;
		trace->rank = model_only_rank(model, &trace->world_size);
		trace->damage.truncated = model->completeness.truncated;
		find_origin(&rows);
		r = add_words(&rows);
	}
	r = r ?: add_rows(&rows);
	r = r ?: trace_finish(trace);
	intern_done(&rows.tracks);
	map_u64_done(&rows.devices);
	map_u64_done(&rows.calls);
	intern_done(&rows.correlations);
	if (r == 0)
		*ret_trace = TAKE_PTR(trace);
	return r;
}

int model_make_rows(struct model *model)
{
	_cleanup_trace_ struct trace *trace = NULL;
	int r = model->traces.count ? 0 : trace_of_recording(&trace, model);

	if (r < 0 || !trace)
		return r;
	r = array_append(&model->traces, trace);
	if (r == 0)
		trace = NULL;
	return r;
}

bool model_is_foreign(const struct model *model)
{
	return model->traces.count && !model->traces.items[0]->recorded;
}

/* ---- what kind of capture ---- */

/* Any of these ends the reading: a trace comes before all else, or not at all. */
enum { FOUND_TRACE = -EEXIST, FOUND_OTHER = -ENOENT };

static int find_trace(void *context _unused_, const struct capture_trace *trace _unused_)
{
	return FOUND_TRACE;
}

static int find_sample(void *context _unused_, const struct capture_sample *sample _unused_)
{
	return FOUND_OTHER;
}

static int find_process(void *context _unused_, const struct capture_process *process _unused_)
{
	return FOUND_OTHER;
}

static int find_thread_named(void *context _unused_, const struct capture_thread *thread _unused_)
{
	return FOUND_OTHER;
}

static int find_stats(void *context _unused_, const struct capture_stats *stats _unused_)
{
	return FOUND_OTHER;
}

bool capture_holds_traces(const char *path)
{
	static const struct capture_visitor visitor = {
		.trace = find_trace,
		.sample = find_sample,
		.process = find_process,
		.thread = find_thread_named,
		.stats = find_stats,
	};
	struct errmsg err;

	return capture_read(path, &visitor, NULL, NULL, &err) == FOUND_TRACE;
}
