/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/chrome/device.h"

#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/map.h"
#include "model/trace_capture.h"

/* Numbers that no pid, tid or earlier process has: chrome.c's begin here. */
#define FIRST_NUMBER (1u << 30)

/* Work of one queue that overlaps, of queues without order, needs a place for each. */
struct lane_key {
	const char *device; /* interned: equal names are equal pointers */
	uint32_t process, queue, place;
	uint32_t unused;
};

struct launch_key {
	uint64_t launch_ns;
	uint32_t thread;
	uint32_t unused;
};

struct tracks {
	struct json_writer json;
	const struct model *model;
	const struct chrome_clock *clock;
	const uint64_t *process_numbers;
	struct intern devices, lanes, launches, launching_threads;
	ARRAY_OF(uint64_t) busy_until_ns;  /* by id of lanes */
	ARRAY_OF(uint64_t) device_numbers; /* by id of devices */
};

static void begin_event(struct tracks *tracks, const char *phase, const char *name)
{
	strbuf_add(tracks->json.out, ",\n");
	tracks->json.has_items[0] = false; /* the comma is there */
	json_begin_object(&tracks->json);
	json_member_text(&tracks->json, "ph", phase);
	json_member_text(&tracks->json, "name", name);
}

static void add_number(struct tracks *tracks, const char *key, uint64_t value)
{
	json_key(&tracks->json, key);
	json_u64(&tracks->json, value);
}

static void add_place(struct tracks *tracks, uint64_t process, uint64_t thread)
{
	add_number(tracks, "pid", process);
	add_number(tracks, "tid", thread);
}

static void add_name(struct tracks *tracks, const char *event, const char *name, uint64_t process,
	uint64_t thread)
{
	begin_event(tracks, "M", event);
	add_place(tracks, process, thread);
	json_key(&tracks->json, "args");
	json_begin_object(&tracks->json);
	json_key(&tracks->json, "name");
	json_string(&tracks->json, name);
	json_end_object(&tracks->json);
	json_end_object(&tracks->json);
}

/* ---- where it stands ---- */

static uint64_t device_number(const struct tracks *tracks, uint32_t device)
{
	return tracks->device_numbers.items[device];
}

/* The device's own number, as Kineto has it, where no process has that. */
static uint64_t choose_number(const struct tracks *tracks, uint32_t device)
{
	bool is_taken = false;

	for (size_t i = 0; i < tracks->model->processes.count; i++)
		is_taken |= tracks->process_numbers[i] == device;
	if (!is_taken)
		return device;
	return FIRST_NUMBER + tracks->model->processes.count + device;
}

static int find_device(struct tracks *tracks, const char *name, uint32_t *ret_device)
{
	int r = intern_add(&tracks->devices, &name, sizeof(name), ret_device);

	if (r > 0)
		r = array_append(&tracks->device_numbers, choose_number(tracks, *ret_device)) ?: 1;
	if (r > 0)
		add_name(tracks, "process_name", *name ? name : "unknown device",
			device_number(tracks, *ret_device), 0);
	return r < 0 ? r : 0;
}

static int name_lane(struct tracks *tracks, const struct model_device_work *work, uint64_t device,
	uint64_t lane, uint32_t place)
{
	const struct model_process *process = &tracks->model->processes.items[work->process];
	_cleanup_strbuf_ struct strbuf name = {0};

	strbuf_addf(&name, "queue %u of %s (%u)", work->queue, process->name, process->pid);
	if (place)
		strbuf_addf(&name, ", %u", place + 1);
	add_name(tracks, "thread_name", strbuf_cstr(&name), device, lane);
	return strbuf_status(&name);
}

/* The first place of its queue that is free when it begins; work comes in order of start. */
static int find_lane(struct tracks *tracks, const struct model_device_work *work, uint64_t device,
	uint64_t *ret_lane)
{
	struct lane_key key = {
		.device = work->device, .process = work->process, .queue = work->queue};
	bool is_new;
	uint32_t id;
	int r;

	for (;; key.place++) {
		r = intern_add(&tracks->lanes, &key, sizeof(key), &id);
		if (r != 0 || tracks->busy_until_ns.items[id] <= work->start_ns)
			break;
	}
	is_new = r > 0;
	if (is_new)
		r = array_append(&tracks->busy_until_ns, (uint64_t)0);
	if (r < 0)
		return r;
	*ret_lane = (uint64_t)id + 1;
	tracks->busy_until_ns.items[id] = work->end_ns;
	return is_new ? name_lane(tracks, work, device, *ret_lane, key.place) : 0;
}

/* ---- events ---- */

static const char *category(const struct model_device_work *work)
{
	switch (work->kind) {
	case WIRE_DEVICE_KERNEL:
	case WIRE_DEVICE_GRAPH:
		return "kernel";
	case WIRE_DEVICE_FILL:
		return "gpu_memset";
	default:
		return "gpu_memcpy";
	}
}

static void add_sizes(struct tracks *tracks, const char *key, const uint64_t sizes[3])
{
	json_key(&tracks->json, key);
	json_begin_array(&tracks->json);
	for (int i = 0; i < 3; i++)
		json_u64(&tracks->json, sizes[i]);
	json_end_array(&tracks->json);
}

/* Of CUDA, as the PyTorch profiler calls it. */
static void add_launch_sizes(struct tracks *tracks, const struct model_device_work *work)
{
	const uint64_t block[] = {work->block_size[0], work->block_size[1], work->block_size[2]};

	add_number(tracks, "context", work->context);
	if (work->graph) {
		add_number(tracks, "graph id", work->graph);
		add_number(tracks, "graph node id", work->graph_node);
	}
	if (work->kind != WIRE_DEVICE_KERNEL)
		return;
	add_number(tracks, "registers per thread", work->registers);
	add_number(tracks, "shared memory",
		(uint64_t)work->static_shared_bytes + work->dynamic_shared_bytes);
	add_sizes(tracks, "grid", work->global_size);
	add_sizes(tracks, "block", block);
}

static void add_work(struct tracks *tracks, const struct model_device_work *work,
	uint64_t correlation, uint32_t device, uint64_t lane)
{
	struct json_writer *json = &tracks->json;
	bool is_cuda = work->gpu != MODEL_NONE;

	begin_event(tracks, "X", work->name);
	json_member_text(json, "cat", category(work));
	json_key(json, "args");
	json_begin_object(json);
	add_number(tracks, "device", device);
	add_number(tracks, "stream", is_cuda ? work->stream : work->queue);
	add_number(tracks, "correlation", correlation);
	if (work->bytes)
		add_number(tracks, "bytes", work->bytes);
	if (is_cuda)
		add_launch_sizes(tracks, work);
	else if (work->global_size[0])
		add_sizes(tracks, "global size", work->global_size);
	json_end_object(json);
	chrome_add_span(json->out, tracks->clock, work->start_ns, work->end_ns);
	add_place(tracks, device_number(tracks, device), lane);
	json_end_object(json);
}

/* Beside the thread: its samples and its calls do not nest. */
static uint64_t launching_thread(const struct model_thread *thread)
{
	return (uint64_t)FIRST_NUMBER + thread->tid;
}

static void add_arrow_end(struct tracks *tracks, const char *phase, uint64_t correlation,
	uint64_t time_ns, uint64_t process, uint64_t thread)
{
	begin_event(tracks, phase, "ac2g");
	json_member_text(&tracks->json, "cat", "ac2g");
	add_number(tracks, "id", correlation);
	if (*phase == 'f') {
		json_member_text(&tracks->json, "bp", "e");
	}
	chrome_add_time(tracks->json.out, tracks->clock, time_ns);
	add_place(tracks, process, thread);
	json_end_object(&tracks->json);
}

static int name_launching_thread(struct tracks *tracks, uint32_t index)
{
	const struct model_thread *thread = &tracks->model->threads.items[index];
	_cleanup_strbuf_ struct strbuf name = {0};
	uint32_t id;
	int r = intern_add(&tracks->launching_threads, &index, sizeof(index), &id);

	if (r <= 0)
		return r;
	strbuf_addf(&name, "launches of %s (%u)", thread->name, thread->tid);
	add_name(tracks, "thread_name", strbuf_cstr(&name),
		tracks->process_numbers[thread->process], launching_thread(thread));
	return strbuf_status(&name);
}

/*
 * Once for each call, however much work it launched. All of it has the call's correlation; its
 * category is what tools for the PyTorch profiler's traces know, whatever the runtime is.
 */
static int add_call(
	struct tracks *tracks, const struct model_device_work *work, uint64_t *ret_correlation)
{
	const struct launch_key key = {.launch_ns = work->launch_ns, .thread = work->thread};
	const struct model_thread *thread = &tracks->model->threads.items[work->thread];
	uint64_t process = tracks->process_numbers[thread->process];
	uint32_t id;
	int r = name_launching_thread(tracks, work->thread);

	r = r < 0 ? r : intern_add(&tracks->launches, &key, sizeof(key), &id);
	if (r < 0)
		return r;
	*ret_correlation = (uint64_t)id + 1;
	if (r == 0)
		return 0;
	begin_event(tracks, "X", trace_call_name(work));
	json_member_text(&tracks->json, "cat", "cuda_runtime");
	json_key(&tracks->json, "args");
	json_begin_object(&tracks->json);
	add_number(tracks, "correlation", *ret_correlation);
	json_end_object(&tracks->json);
	chrome_add_span(tracks->json.out, tracks->clock, work->launch_ns,
		work->launch_ns + work->launch_duration_ns);
	add_place(tracks, process, launching_thread(thread));
	json_end_object(&tracks->json);
	add_arrow_end(
		tracks, "s", *ret_correlation, work->launch_ns, process, launching_thread(thread));
	return 0;
}

/* A call that waits for the device. */
static int add_wait(struct tracks *tracks, const struct model_device_wait *wait)
{
	const struct model_thread *thread = &tracks->model->threads.items[wait->thread];
	int r = name_launching_thread(tracks, wait->thread);

	if (r < 0)
		return r;
	begin_event(tracks, "X", trace_wait_name(tracks->model, wait));
	json_member_text(&tracks->json, "cat", "cuda_runtime");
	chrome_add_span(tracks->json.out, tracks->clock, wait->start_ns, wait->end_ns);
	add_place(tracks, tracks->process_numbers[thread->process], launching_thread(thread));
	json_end_object(&tracks->json);
	return 0;
}

/* As PyTorch's profiler has what its allocators do. */
static int add_memory(struct tracks *tracks, const struct model_device_memory *from)
{
	const struct capture_memory *memory = &from->memory;
	struct json_writer *json = &tracks->json;
	uint32_t device;
	int r = find_device(
		tracks, model_gpu_label(tracks->model, from->process, memory->gpu), &device);

	if (r < 0)
		return r;
	begin_event(tracks, "i", "[memory]");
	json_member_text(json, "cat", "cpu_instant_event");
	json_member_text(json, "s", "t");
	json_key(json, "args");
	json_begin_object(json);
	add_number(tracks, "Device Type", TRACE_DEVICE_CUDA);
	add_number(tracks, "Device Id", device);
	add_number(tracks, "Addr", memory->address);
	json_key(json, "Bytes");
	json_i64(json, (int64_t)(memory->released ? 0 - memory->bytes : memory->bytes));
	json_end_object(json);
	chrome_add_time(json->out, tracks->clock, from->time_ns);
	add_place(tracks, tracks->process_numbers[from->process], 0);
	json_end_object(json);
	return 0;
}

static int add_all_of(struct tracks *tracks, size_t index)
{
	const struct model_device_work *work = &tracks->model->device_works.items[index];
	bool is_launch_known = work->thread != MODEL_NONE && work->launch_ns;
	/* Above those of calls. */
	uint64_t lane = 0, correlation = FIRST_NUMBER + index;
	uint32_t device;
	int r = find_device(tracks, work->device, &device);

	r = r ?: find_lane(tracks, work, device_number(tracks, device), &lane);
	if (r == 0 && is_launch_known)
		r = add_call(tracks, work, &correlation);
	if (r < 0)
		return r;
	add_work(tracks, work, correlation, device, lane);
	if (is_launch_known)
		add_arrow_end(tracks, "f", correlation, work->start_ns,
			device_number(tracks, device), lane);
	return 0;
}

/* Of each device once. */
static int add_device_name(struct json_writer *json, struct intern *devices, const char *name)
{
	uint32_t number;
	int r = intern_add(devices, &name, sizeof(name), &number);

	if (r <= 0)
		return r;
	json_begin_object(json);
	json_member_u64(json, "id", number);
	json_key(json, "name");
	json_string(json, name);
	json_end_object(json);
	return 0;
}

int chrome_add_device_names(struct json_writer *json, const struct model *model)
{
	struct intern devices = {0};
	int r = 0;

	json_key(json, "deviceProperties");
	json_begin_array(json);
	for (size_t i = 0; r == 0 && i < model->device_works.count; i++)
		r = add_device_name(json, &devices, model->device_works.items[i].device);
	for (size_t i = 0; r == 0 && i < model->device_memory.count; i++) {
		const struct model_device_memory *one = &model->device_memory.items[i];

		if (model_is_device_memory(one))
			r = add_device_name(json, &devices,
				model_gpu_label(model, one->process, one->memory.gpu));
	}
	json_end_array(json);
	intern_done(&devices);
	return r;
}

int chrome_add_device_work(struct strbuf *out, const struct model *model,
	const struct chrome_clock *clock, const uint64_t *process_numbers)
{
	struct tracks tracks = {.json = {.out = out, .depth = 1},
		.model = model,
		.clock = clock,
		.process_numbers = process_numbers};
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->device_works.count; i++)
		r = add_all_of(&tracks, i);
	for (size_t i = 0; r == 0 && i < model->device_memory.count; i++) {
		if (model_is_device_memory(&model->device_memory.items[i]))
			r = add_memory(&tracks, &model->device_memory.items[i]);
	}
	for (size_t i = 0; r == 0 && i < model->device_waits.count; i++)
		r = add_wait(&tracks, &model->device_waits.items[i]);
	intern_done(&tracks.devices);
	intern_done(&tracks.lanes);
	intern_done(&tracks.launches);
	intern_done(&tracks.launching_threads);
	array_done(&tracks.busy_until_ns);
	array_done(&tracks.device_numbers);
	return r;
}
