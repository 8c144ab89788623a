/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device_work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/charge.h"
#include "base/map.h"

/* Strings are interned: equal names are equal pointers. */
struct kernel_key {
	const char *name, *device;
	uint64_t kind;
};

struct tables {
	struct intern devices, kernels, lines;
	uint64_t *busy_until_ns; /* of each device, as its work is seen in order of start */
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
	return array_append(&work->devices, (struct device_use){.name = name});
}

static int add_to_device(struct device_work *work, struct tables *tables,
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
	device->count++;
	device->work_ns += one->end_ns - one->start_ns;
	if (one->end_ns > start_ns)
		device->busy_ns += one->end_ns - start_ns;
	*until = MAX(*until, one->end_ns);
	return 0;
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
	kernel->count++;
	kernel->total_ns += time_ns;
	kernel->minimum_ns = MIN(kernel->minimum_ns, time_ns);
	kernel->maximum_ns = MAX(kernel->maximum_ns, time_ns);
	kernel->bytes += one->bytes;
	return 0;
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

static int add_work(struct device_work *work, struct tables *tables, const struct model *model,
	const struct model_device_work *one)
{
	uint32_t device = 0;
	int r = add_to_device(work, tables, one, &device);

	r = r ?: add_to_kernel(work, tables, one, device);
	r = r ?: add_to_line(work, tables, model, one);
	work->count++;
	work->total_ns += one->end_ns - one->start_ns;
	work->failed += one->failed;
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
	if (!work->count)
		return;
	qsort(work->kernels.items, work->kernels.count, sizeof(*work->kernels.items),
		compare_kernels);
	qsort(work->lines.items, work->lines.count, sizeof(*work->lines.items), compare_lines);
}

int device_work_init(struct device_work *work, const struct model *model)
{
	struct tables tables = {0};
	int r = 0;

	*work = (struct device_work){0};
	for (size_t i = 0; r == 0 && i < model->device_works.count; i++)
		r = add_work(work, &tables, model, &model->device_works.items[i]);
	sort_rows(work);
	intern_done(&tables.devices);
	intern_done(&tables.kernels);
	intern_done(&tables.lines);
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
