/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_capture_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/trace_calls.h"
#include "model/unified.h"

/* A thread, or a stream: what tells its track from others. */
struct track_key {
	uint32_t process, thread; /* indices; thread MODEL_NONE: of the process, or a stream */
	uint32_t device, context, stream;
	uint32_t unified; /* of unified memory: enum wire_unified_type, + 1 */
};

/* A correlation is unique in its process only. */
struct correlation_key {
	uint64_t correlation;
	uint32_t process, unused;
};

int capture_rows_text(struct trace *trace, const char *text, uint32_t *ret_string)
{
	int r = intern_add(&trace->strings, text, strlen(text), ret_string);

	return r < 0 ? r : 0;
}

/* ---- tracks ---- */

static int name_thread(
	struct capture_rows *rows, struct trace_track *track, uint32_t process, uint32_t thread)
{
	const struct model_process *owner = &rows->model->processes.items[process];
	const struct model_thread *self =
		thread == MODEL_NONE ? NULL : &rows->model->threads.items[thread];
	int r = capture_rows_text(rows->trace, owner->name, &track->process_name);

	track->pid = owner->pid;
	if (self)
		track->tid = self->tid;
	else
		r = r ?: capture_rows_text(rows->trace, "process", &track->tid_text);
	return r
		       ?: capture_rows_text(
				  rows->trace, self ? self->name : "process", &track->thread_name);
}

static int name_stream(
	struct capture_rows *rows, struct trace_track *track, const struct track_key *key)
{
	const struct model_process *owner = &rows->model->processes.items[key->process];
	bool has_number = key->stream != WIRE_SYNC_NO_STREAM;
	char text[96];
	int r = capture_rows_text(rows->trace, owner->name, &track->process_name);

	track->pid = key->device;
	track->tid = has_number ? key->stream : TRACE_NO_NUMBER;
	track->is_device = true;
	snprintf(text, sizeof(text), "GPU %u", key->device);
	r = r ?: capture_rows_text(rows->trace, text, &track->process_labels);
	if (key->unified)
		snprintf(text, sizeof(text), "unified memory of process %u: %s", owner->pid,
			model_unified_name(key->unified - 1));
	else if (!has_number)
		snprintf(text, sizeof(text), "waits of process %u", owner->pid);
	else if (rows->many_processes)
		snprintf(text, sizeof(text), "stream %u of process %u", key->stream, owner->pid);
	else
		snprintf(text, sizeof(text), "stream %u", key->stream);
	if (!has_number)
		r = r ?: capture_rows_text(rows->trace, text, &track->tid_text);
	return r ?: capture_rows_text(rows->trace, text, &track->thread_name);
}

static int find_track(struct capture_rows *rows, const struct track_key *key, uint32_t *ret_track)
{
	bool is_host = key->device == MODEL_NONE;
	struct trace_track track = {
		.pid = TRACE_NO_NUMBER,
		.tid = TRACE_NO_NUMBER,
		.process_sort = TRACE_NO_NUMBER,
		.thread_sort = TRACE_NO_NUMBER,
		.recorded = key->thread == MODEL_NONE ? 0 : key->thread + 1,
	};
	int r = intern_add(&rows->tracks, key, sizeof(*key), ret_track);

	if (r <= 0)
		return r;
	r = is_host ? name_thread(rows, &track, key->process, key->thread)
		    : name_stream(rows, &track, key);
	return r ?: array_append(&rows->trace->tracks, track);
}

int capture_rows_thread(
	struct capture_rows *rows, uint32_t process, uint32_t thread, uint32_t *ret_track)
{
	const struct track_key key = {.process = process, .thread = thread, .device = MODEL_NONE};

	return find_track(rows, &key, ret_track);
}

/* Devices count from 0, in the order in which they are met. Equal names are equal pointers. */
int capture_rows_device(struct capture_rows *rows, const char *name, uint32_t *ret_device)
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

int capture_rows_unified_track(
	struct capture_rows *rows, const struct model_unified_memory *item, uint32_t *ret_track)
{
	struct track_key key = {
		.process = item->process,
		.thread = MODEL_NONE,
		.stream = WIRE_SYNC_NO_STREAM,
		.unified = item->unified.type + 1,
	};
	int r;

	if (!*model_unified_device(item))
		return capture_rows_thread(rows, item->process, MODEL_NONE, ret_track);
	r = capture_rows_device(rows, model_unified_device(item), &key.device);
	return r ?: find_track(rows, &key, ret_track);
}

/* ---- rows ---- */

int capture_rows_add(struct capture_rows *rows, struct trace_event *event)
{
	if (rows->trace->events.count >= MODEL_NONE)
		return -ENOMEM;
	event->file_index = (uint32_t)rows->trace->events.count;
	return array_append(&rows->trace->events, *event);
}

int capture_rows_correlation(struct capture_rows *rows, uint32_t process, uint64_t correlation,
	uint64_t *ret_correlation)
{
	const struct correlation_key key = {correlation, process, 0};
	uint32_t number;
	int r;

	*ret_correlation = correlation;
	if (!correlation || !rows->many_processes)
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

/* What the driver says of its launch. */
static int add_launch(
	struct capture_rows *rows, const struct model_device_work *work, struct trace_work *out)
{
	char member[32];
	int r = 0;

	if (work->submit_ns && work->queued_ns)
		out->queued_ns = capture_rows_time(rows, work->queued_ns);
	if (!work->has_priority)
		return 0;
	if (!rows->priority_member || rows->priority != work->priority) {
		snprintf(member, sizeof(member), "\"priority\":%d", work->priority);
		r = capture_rows_text(rows->trace, member, &rows->priority_member);
		rows->priority = work->priority;
	}
	out->others = rows->priority_member;
	return r;
}

static bool is_kernel(const struct model_device_work *work)
{
	return work->kind == WIRE_DEVICE_KERNEL || work->kind == WIRE_DEVICE_GRAPH;
}

static int add_work(struct capture_rows *rows, const struct model_device_work *work)
{
	uint32_t stream = work->gpu == MODEL_NONE ? work->queue : work->stream;
	struct track_key key = {
		.process = work->process,
		.thread = MODEL_NONE,
		.context = work->gpu == MODEL_NONE ? 0 : work->context,
		.stream = stream,
	};
	struct trace_event event = {
		.start_ns = capture_rows_time(rows, work->start_ns),
		.duration_ns = (int64_t)(work->end_ns - work->start_ns),
		.external_id = TRACE_NO_ID,
		.category = TRACE_MEMCPY,
		.category_name = rows->memory_copy,
		.detail = (uint32_t)rows->trace->works.count,
	};
	struct trace_work detail;
	int r = capture_rows_correlation(
		rows, work->process, work->correlation, &event.correlation);

	if (r < 0)
		return r;
	r = capture_rows_device(rows, work->device, &key.device);
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
	if (work->capture == MODEL_CAPTURE_KNOWN)
		detail.captured_by = rows->captured[work->captured_call];
	/* Nothing is moved where the host has the device's memory: it has no bandwidth. */
	if (work->kind == WIRE_DEVICE_MAP || work->kind == WIRE_DEVICE_UNMAP)
		detail.bytes = 0;
	r = add_launch(rows, work, &detail);
	r = r ?: capture_rows_collective(rows, work, &detail.collective);
	r = r ?: capture_rows_text(rows->trace, work->name, &event.name);
	r = r ?: find_track(rows, &key, &event.track);
	r = r ?: array_append(&rows->trace->works, detail);
	return r ?: capture_rows_add(rows, &event);
}

static bool has_gpu(const struct model *model, uint32_t process)
{
	array_foreach (&model->gpus, gpu) {
		if (gpu->process == process)
			return true;
	}
	return false;
}

static const char *wait_name(
	const struct capture_rows *rows, const struct model_device_wait *wait, uint64_t correlation)
{
	uint32_t process = rows->model->threads.items[wait->thread].process;
	enum trace_calls calls = map_u64_get(&rows->hip, process, NULL) ? TRACE_CALLS_HIP
				 : has_gpu(rows->model, process)        ? TRACE_CALLS_CUDA
									: TRACE_CALLS_OPENCL;
	uint64_t sync = WIRE_SYNC_UNKNOWN;

	if (correlation)
		map_u64_get(&rows->syncs, correlation, &sync);
	return trace_wait_call(calls, wait->kind, (uint32_t)sync);
}

/* Of CUDA: "cuMemAlloc" is the driver's, "cudaMalloc" the runtime's. */
static bool is_of_driver(const char *name)
{
	return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

/* Most rows of some recordings have none: the array ends with the last that has one. */
static int add_stack(struct trace *trace, const struct trace_event *event, uint32_t stack)
{
	int r = stack == MODEL_NONE || trace->call_stacks.count > event->file_index
			? 0
			: array_reserve(&trace->call_stacks,
				  event->file_index + 1 - trace->call_stacks.count);

	if (r < 0 || stack == MODEL_NONE)
		return r;
	while (trace->call_stacks.count <= event->file_index)
		trace->call_stacks.items[trace->call_stacks.count++] = MODEL_NONE;
	trace->call_stacks.items[event->file_index] = stack;
	return 0;
}

int capture_rows_add_call(struct capture_rows *rows, const struct capture_row_call *call)
{
	bool is_driver = is_of_driver(call->name);
	struct trace_event event = {
		.start_ns = capture_rows_time(rows, call->start_ns),
		.duration_ns = (int64_t)(call->end_ns - call->start_ns),
		.correlation = call->correlation,
		.external_id = TRACE_NO_ID,
		.category = is_driver ? TRACE_DRIVER : TRACE_RUNTIME,
		.category_name = is_driver ? rows->driver : rows->runtime,
		.detail = MODEL_NONE,
	};
	int r = capture_rows_thread(rows, call->process, call->thread, &event.track);

	r = r ?: capture_rows_text(rows->trace, call->name, &event.name);
	r = r ?: capture_rows_add(rows, &event);
	return r ?: add_stack(rows->trace, &event, call->stack);
}

/* Once for each call, however much work it launched. */
static int add_call(struct capture_rows *rows, const struct model_device_work *work)
{
	struct capture_row_call call = {
		.process = work->process,
		.thread = work->thread,
		.stack = work->launch_stack,
		/* Of other recorders' traces the call is a range, which has its name. */
		.name = rows->model->session.present ? trace_launch_call(work) : "[launch]",
		.start_ns = work->launch_ns,
		.end_ns = work->launch_ns + work->launch_duration_ns,
	};
	int r = capture_rows_correlation(rows, work->process, work->correlation, &call.correlation);

	if (r == 0 && trace_is_of_hip(work))
		r = map_u64_set(&rows->hip, work->process, 1);
	if (r < 0)
		return r;
	if (!work->launch_ns || work->thread == MODEL_NONE || !call.correlation ||
		map_u64_get(&rows->calls, call.correlation, NULL))
		return 0;
	r = map_u64_set(&rows->calls, call.correlation, 1);
	return r ?: capture_rows_add_call(rows, &call);
}

/* Steps are called what tools for Kineto's traces look for. */
static int add_step(struct capture_rows *rows, const struct model_step *step)
{
	char name[48];

	snprintf(name, sizeof(name), "ProfilerStep#%llu", (unsigned long long)step->number);
	return capture_rows_add_annotation(
		rows, step->process, step->thread, name, step->start_ns, step->end_ns);
}

static int add_sync_types(struct capture_rows *rows)
{
	uint64_t correlation;
	int r = 0;

	for (size_t i = 0; r == 0 && i < rows->model->device_syncs.count; i++) {
		const struct model_device_sync *sync = &rows->model->device_syncs.items[i];

		r = capture_rows_correlation(
			rows, sync->process, sync->sync.correlation, &correlation);
		if (r == 0 && correlation && sync->sync.type != WIRE_SYNC_HOST_FUNCTION)
			r = map_u64_set(&rows->syncs, correlation, sync->sync.type);
	}
	return r;
}

static int add_wait(struct capture_rows *rows, const struct model_device_wait *wait)
{
	struct capture_row_call call = {
		.process = rows->model->threads.items[wait->thread].process,
		.thread = wait->thread,
		.stack = wait->stack,
		.start_ns = wait->start_ns,
		.end_ns = wait->end_ns,
	};
	int r = capture_rows_correlation(rows, call.process, wait->correlation, &call.correlation);

	call.name = wait_name(rows, wait, call.correlation);
	return r ?: capture_rows_add_call(rows, &call);
}

static int add_other_call(struct capture_rows *rows, const struct model_device_call *from)
{
	struct capture_row_call call = {
		.process = from->process,
		.thread = from->thread,
		.stack = from->stack,
		.name = from->name,
		.start_ns = from->start_ns,
		.end_ns = from->end_ns,
	};
	int r = capture_rows_correlation(rows, from->process, from->correlation, &call.correlation);

	return r ?: capture_rows_add_call(rows, &call);
}

static int add_waits(struct capture_rows *rows)
{
	const struct model *model = rows->model;
	int r = add_sync_types(rows);

	for (size_t i = 0; r == 0 && i < model->device_waits.count; i++)
		r = add_wait(rows, &model->device_waits.items[i]);
	for (size_t i = 0; r == 0 && i < model->device_calls.count; i++)
		r = add_other_call(rows, &model->device_calls.items[i]);
	return r;
}

/* What waits, as Kineto calls it; NULL: nothing does. */
static const char *sync_name(uint32_t type)
{
	static const char *const names[WIRE_SYNC_MAX] = {
		[WIRE_SYNC_EVENT] = "Event Sync",
		[WIRE_SYNC_WAIT] = "Stream Wait Event",
		[WIRE_SYNC_STREAM] = "Stream Sync",
		[WIRE_SYNC_CONTEXT] = "Context Sync",
		[WIRE_SYNC_HOST_FUNCTION] = TRACE_HOST_FUNCTION,
	};

	return type < WIRE_SYNC_MAX ? names[type] : NULL;
}

/* Streams have a number on their device. */
static int fill_event(
	struct capture_rows *rows, const struct model_device_sync *sync, struct trace_work *detail)
{
	uint32_t device;
	int r;

	if (sync->event_stream == WIRE_SYNC_NO_STREAM)
		return 0;
	if (sync->event_device == sync->device) {
		detail->wait_stream = sync->event_stream;
		return 0;
	}
	if (!*sync->event_device)
		return 0;
	r = capture_rows_device(rows, sync->event_device, &device);
	detail->far_device = device + 1;
	detail->far_stream = sync->event_stream + 1;
	return r;
}

static int add_sync(struct capture_rows *rows, const struct model_device_sync *sync)
{
	struct track_key key = {
		.process = sync->process,
		.thread = MODEL_NONE,
		.context = sync->sync.context,
		.stream = sync->sync.stream,
	};
	struct trace_event event = {
		.start_ns = capture_rows_time(rows, sync->start_ns),
		.duration_ns = (int64_t)(sync->end_ns - sync->start_ns),
		.external_id = TRACE_NO_ID,
		.category = TRACE_SYNC,
		.category_name = rows->sync,
		.detail = (uint32_t)rows->trace->works.count,
	};
	struct trace_work detail = trace_no_work;
	int r = capture_rows_correlation(
		rows, sync->process, sync->sync.correlation, &event.correlation);

	r = r ?: capture_rows_device(rows, sync->device, &key.device);
	detail.device = key.device;
	detail.context = key.context;
	if (key.stream != WIRE_SYNC_NO_STREAM)
		detail.stream = key.stream;
	r = r ?: fill_event(rows, sync, &detail);
	if (sync->sync.type == WIRE_SYNC_EVENT || sync->sync.type == WIRE_SYNC_WAIT)
		detail.wait_event = sync->sync.event;
	if (sync->event_correlation)
		r = r
			    ?: capture_rows_correlation(rows, sync->process,
				       sync->event_correlation, &detail.wait_correlation);
	r = r ?: capture_rows_text(rows->trace, sync_name(sync->sync.type), &event.name);
	detail.sync_kind = event.name;
	r = r ?: find_track(rows, &key, &event.track);
	r = r ?: array_append(&rows->trace->works, detail);
	return r ?: capture_rows_add(rows, &event);
}

static int add_rows(struct capture_rows *rows)
{
	const struct model *model = rows->model;
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->steps.count; i++)
		r = add_step(rows, &model->steps.items[i]);
	r = r ?: capture_rows_add_ranges(rows);
	r = r ?: capture_rows_add_captured(rows);
	for (size_t i = 0; r == 0 && i < model->device_works.count; i++) {
		r = add_call(rows, &model->device_works.items[i]);
		r = r ?: add_work(rows, &model->device_works.items[i]);
	}
	for (size_t i = 0; r == 0 && i < model->device_memory.count; i++) {
		if (model_is_device_memory(&model->device_memory.items[i]))
			r = capture_rows_add_memory(rows, &model->device_memory.items[i]);
	}
	r = r ?: add_waits(rows);
	for (size_t i = 0; r == 0 && i < model->device_syncs.count; i++) {
		const struct model_device_sync *sync = &model->device_syncs.items[i];

		if (sync->start_ns && sync_name(sync->sync.type))
			r = add_sync(rows, sync);
	}
	return r ?: capture_rows_add_unified(rows);
}

/* ---- the trace ---- */

static int add_words(struct capture_rows *rows)
{
	int r = capture_rows_text(rows->trace, "cuda_runtime", &rows->runtime);

	r = r ?: capture_rows_text(rows->trace, "cuda_driver", &rows->driver);
	r = r ?: capture_rows_text(rows->trace, "kernel", &rows->kernel);
	r = r ?: capture_rows_text(rows->trace, "gpu_memcpy", &rows->memory_copy);
	r = r ?: capture_rows_text(rows->trace, "gpu_memset", &rows->memory_fill);
	r = r ?: capture_rows_text(rows->trace, "cpu_instant_event", &rows->instant);
	r = r ?: capture_rows_text(rows->trace, "[memory]", &rows->memory);
	r = r ?: capture_rows_text(rows->trace, "cuda_sync", &rows->sync);
	r = r ?: capture_rows_text(rows->trace, "cpu_op", &rows->operator);
	return r ?: capture_rows_text(rows->trace, "user_annotation", &rows->annotation);
}

static void find_origin(struct capture_rows *rows)
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
	struct capture_rows rows = {.model = model, .trace = trace};
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
	map_u64_done(&rows.hip);
	map_u64_done(&rows.syncs);
	map_u64_done(&rows.stacks);
	intern_done(&rows.correlations);
	free(rows.captured);
	free(rows.collectives);
	if (r == 0)
		*ret_trace = TAKE_PTR(trace);
	return r;
}
