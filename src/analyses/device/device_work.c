/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/device_work.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/charge.h"
#include "analyses/medians.h"
#include "base/map.h"
#include "model/windows.h"

/* CUpti_ActivityMemoryKind: these are the host's. */
#define MEMORY_PAGEABLE 1
#define MEMORY_PINNED   2

/* Strings are interned: equal names are equal pointers. */
struct kernel_key {
	const char *name, *device;
	uint64_t kind;
};

struct tables {
	struct intern devices, kernels, lines, replays;
	uint64_t *busy_until_ns;  /* of each device, as its work is seen in order of start */
	struct medians durations; /* by kernel, in the order of kernels */
};

static int find_device(
	struct device_work *work, struct tables *tables, const char *name, uint32_t *ret_device)
{
	int r = intern_add(&tables->devices, &name, sizeof(name), ret_device);
	uint64_t *longer;

	if (r <= 0)
		return r;
	longer = realloc(tables->busy_until_ns, (*ret_device + 1) * sizeof(*longer));
	if (!longer)
		return -ENOMEM;
	longer[*ret_device] = 0;
	tables->busy_until_ns = longer;
	return array_append(&work->devices, (struct device_use){.name = name, .gpu = MODEL_NONE});
}

static int add_to_device(struct device_work *work, struct tables *tables, const struct model *model,
	const struct model_device_work *one, uint32_t *ret_device)
{
	int r = find_device(work, tables, one->device, ret_device);
	struct device_use *device;
	uint64_t *until, start_ns;

	if (r < 0)
		return r;
	device = &work->devices.items[*ret_device];
	until = &tables->busy_until_ns[*ret_device];
	start_ns = MAX(one->start_ns, *until);
	if (device->gpu == MODEL_NONE)
		device->gpu = one->gpu;
	device->count++;
	device->work_ns += one->end_ns - one->start_ns;
	device->busy_ns += model_recorded_ns(model, start_ns, one->end_ns);
	*until = MAX(*until, one->end_ns);
	return 0;
}

/* Runs of one kernel may differ: the longest stands for them. */
static void take_configuration(
	struct device_kernel *kernel, const struct model_device_work *one, bool is_longest)
{
	struct device_configuration configuration = {
		.registers = one->registers,
		.static_shared_bytes = one->static_shared_bytes,
		.dynamic_shared_bytes = one->dynamic_shared_bytes,
	};

	memcpy(configuration.block_size, one->block_size, sizeof(configuration.block_size));
	if (kernel->has_configuration &&
		memcmp(&configuration, &kernel->configuration, sizeof(configuration)) != 0)
		kernel->configurations_differ = true;
	if (kernel->has_configuration && !is_longest)
		return;
	kernel->has_configuration = true;
	kernel->configuration = configuration;
}

static void add_occupancies(struct device_work *work, const struct model *model)
{
	array_foreach (&work->kernels, kernel) {
		const struct device_configuration *configuration = &kernel->configuration;
		uint32_t gpu = work->devices.items[kernel->device].gpu;
		const uint32_t *block = configuration->block_size;
		const struct occupancy_launch launch = {
			.block_threads = block[0] * block[1] * block[2],
			.registers = configuration->registers,
			.shared_bytes = (uint64_t)configuration->static_shared_bytes +
					configuration->dynamic_shared_bytes,
		};

		if (kernel->has_configuration && gpu != MODEL_NONE)
			kernel->occupancy_known = occupancy_of(
				&model->gpus.items[gpu].facts, &launch, &kernel->occupancy);
	}
}

bool device_work_is_device_memory(const struct capture_memory *memory)
{
	return memory->memory != MEMORY_PAGEABLE && memory->memory != MEMORY_PINNED;
}

/* What is released without having been seen was allocated before. */
static int add_allocations(struct device_allocations *sum, const struct model *model)
{
	struct intern keys = {0};
	ARRAY_OF(uint64_t) bytes = {0}; /* by id of `keys` */
	int r = 0;

	for (size_t i = 0; r >= 0 && i < model->device_memory.count; i++) {
		const struct model_device_memory *one = &model->device_memory.items[i];
		const uint64_t key[] = {one->process, one->memory.address};
		uint64_t *held;
		uint32_t id;

		if (!device_work_is_device_memory(&one->memory))
			continue;
		r = intern_add(&keys, key, sizeof(key), &id);
		if (r > 0)
			r = array_append(&bytes, 0);
		if (r < 0)
			break;
		assert(id < bytes.count);
		held = &bytes.items[id];
		sum->left_bytes -= *held;
		*held = one->memory.released ? 0 : one->memory.bytes;
		sum->left_bytes += *held;
		sum->peak_bytes = MAX(sum->peak_bytes, sum->left_bytes);
		sum->releases += one->memory.released;
		sum->allocations += !one->memory.released;
		sum->allocated_bytes += one->memory.released ? 0 : one->memory.bytes;
	}
	intern_done(&keys);
	array_done(&bytes);
	return MIN(r, 0);
}

static int add_to_kernel(struct device_work *work, struct tables *tables,
	const struct model_device_work *one, uint32_t device)
{
	const struct kernel_key key = {.name = one->name, .device = one->device, .kind = one->kind};
	uint64_t time_ns = one->end_ns - one->start_ns;
	struct device_kernel *kernel;
	uint32_t id;
	int r = intern_add(&tables->kernels, &key, sizeof(key), &id);

	if (r > 0)
		r = array_append(&work->kernels, (struct device_kernel){
							 .name = one->name,
							 .device = device,
							 .kind = one->kind,
							 .minimum_ns = UINT64_MAX,
						 });
	if (r < 0)
		return r;
	kernel = &work->kernels.items[id];
	if (one->kind == WIRE_DEVICE_KERNEL && one->gpu != MODEL_NONE)
		take_configuration(kernel, one, time_ns > kernel->maximum_ns);
	kernel->count++;
	kernel->total_ns += time_ns;
	kernel->minimum_ns = MIN(kernel->minimum_ns, time_ns);
	kernel->maximum_ns = MAX(kernel->maximum_ns, time_ns);
	kernel->bytes += one->bytes;
	return medians_add(&tables->durations, id, (int64_t)time_ns);
}

static int add_to_line(struct device_work *work, struct tables *tables, const struct model *model,
	const struct model_device_work *one)
{
	struct device_line line = {
		.frame = charge_frame(model, one->stack),
		.unattributed = one->unattributed,
	};
	const struct charge_key key = charge_key(model, line.frame, one->unattributed);
	uint32_t id;
	int r = intern_add(&tables->lines, &key, sizeof(key), &id);

	if (r > 0)
		r = array_append(&work->lines, line);
	if (r < 0)
		return r;
	work->lines.items[id].count++;
	work->lines.items[id].total_ns += one->end_ns - one->start_ns;
	return 0;
}

/* One call may launch many: its time counts once. */
static int add_call(
	struct device_work *work, struct tables *tables, const struct model_device_work *one)
{
	const uint64_t key[] = {one->process, one->correlation};
	uint32_t id;
	int r = 1;

	if (!one->launch_ns)
		return 0;
	if (one->replayed)
		r = intern_add(&tables->replays, key, sizeof(key), &id);
	if (r > 0) {
		work->launch_calls++;
		work->launch_call_ns += one->launch_duration_ns;
	}
	return MIN(r, 0);
}

static int add_work(struct device_work *work, struct tables *tables, const struct model *model,
	const struct model_device_work *one)
{
	uint32_t device = 0;
	int r = add_to_device(work, tables, model, one, &device);

	r = r ?: add_to_kernel(work, tables, one, device);
	r = r ?: add_to_line(work, tables, model, one);
	r = r ?: add_call(work, tables, one);
	work->count++;
	work->total_ns += one->end_ns - one->start_ns;
	work->failed += one->failed;
	work->replayed += one->replayed;
	work->replayed_without_capture += one->replayed && !one->capture_known;
	work->by_attribution[one->unattributed]++;
	work->ns_by_attribution[one->unattributed] += one->end_ns - one->start_ns;
	work->started_before_launch += one->launch_ns && one->start_ns < one->launch_ns;
	return r;
}

static int compare_times(uint64_t left, uint64_t right)
{
	return left > right ? -1 : left < right;
}

static int compare_kernels(const void *left, const void *right)
{
	const struct device_kernel *a = left, *b = right;
	int order = compare_times(a->total_ns, b->total_ns);

	return order ? order : strcmp(a->name, b->name);
}

static int compare_lines(const void *left, const void *right)
{
	const struct device_line *a = left, *b = right;
	int order = compare_times(a->total_ns, b->total_ns);

	return order ? order : a->frame < b->frame ? -1 : a->frame > b->frame;
}

static void sort_rows(struct device_work *work)
{
	if (work->kernels.count)
		qsort(work->kernels.items, work->kernels.count, sizeof(*work->kernels.items),
			compare_kernels);
	if (work->lines.count)
		qsort(work->lines.items, work->lines.count, sizeof(*work->lines.items),
			compare_lines);
}

int device_work_init(struct device_work *work, const struct model *model)
{
	struct tables tables = {0};
	int r = 0;

	*work = (struct device_work){0};
	for (size_t i = 0; r == 0 && i < model->device_works.count; i++)
		r = add_work(work, &tables, model, &model->device_works.items[i]);
	r = r ?: add_allocations(&work->allocations, model);
	array_foreach (&model->overheads, overhead) {
		work->overhead.count++;
		work->overhead.total_ns += overhead->overhead.duration_ns;
	}
	if (r == 0) {
		medians_finish(&tables.durations);
		for (uint32_t i = 0; i < work->kernels.count; i++)
			work->kernels.items[i].median_ns =
				(uint64_t)medians_of(&tables.durations, i);
		add_occupancies(work, model);
		sort_rows(work);
	}
	intern_done(&tables.devices);
	intern_done(&tables.kernels);
	intern_done(&tables.lines);
	intern_done(&tables.replays);
	medians_done(&tables.durations);
	free(tables.busy_until_ns);
	if (r < 0)
		device_work_done(work);
	return r;
}

void device_work_done(struct device_work *work)
{
	array_done(&work->devices);
	array_done(&work->kernels);
	array_done(&work->lines);
}
