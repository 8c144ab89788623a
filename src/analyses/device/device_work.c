/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/device_work.h"

#include <errno.h>
#include <stdlib.h>

#include "analyses/cpu/charge.h"
#include "base/map.h"
#include "model/windows.h"

struct tables {
	struct intern devices, lines, replays;
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

static int add_to_device(struct device_work *work, struct tables *tables, const struct model *model,
	const struct model_device_work *one)
{
	uint32_t index;
	int r = find_device(work, tables, one->device, &index);
	struct device_use *device;
	uint64_t *until, start_ns;

	if (r < 0)
		return r;
	device = &work->devices.items[index];
	until = &tables->busy_until_ns[index];
	start_ns = MAX(one->start_ns, *until);
	device->count++;
	device->work_ns += one->end_ns - one->start_ns;
	device->busy_ns += model_recorded_ns(model, start_ns, one->end_ns);
	*until = MAX(*until, one->end_ns);
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
	int r = add_to_device(work, tables, model, one);

	if (r == 0)
		r = add_to_line(work, tables, model, one);
	if (r == 0)
		r = add_call(work, tables, one);
	work->count++;
	work->total_ns += one->end_ns - one->start_ns;
	work->replayed += one->replayed;
	work->whole_replays += one->kind == WIRE_DEVICE_GRAPH;
	work->replayed_without_capture += one->replayed && !one->capture_known;
	work->by_capture[one->capture]++;
	work->by_attribution[one->unattributed]++;
	work->ns_by_attribution[one->unattributed] += one->end_ns - one->start_ns;
	work->started_before_launch += one->launch_ns && one->start_ns < one->launch_ns;
	return r;
}

static int compare_lines(const void *left, const void *right)
{
	const struct device_line *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return a->frame < b->frame ? -1 : a->frame > b->frame;
}

int device_work_init(struct device_work *work, const struct model *model)
{
	struct tables tables = {0};
	int r = 0;

	*work = (struct device_work){0};
	for (size_t i = 0; r == 0 && i < model->device_works.count; i++)
		r = add_work(work, &tables, model, &model->device_works.items[i]);
	array_foreach (&model->overheads, overhead) {
		work->overhead.count++;
		work->overhead.total_ns += overhead->overhead.duration_ns;
	}
	if (work->lines.count)
		qsort(work->lines.items, work->lines.count, sizeof(*work->lines.items),
			compare_lines);
	intern_done(&tables.devices);
	intern_done(&tables.lines);
	intern_done(&tables.replays);
	free(tables.busy_until_ns);
	if (r < 0)
		device_work_done(work);
	return r;
}

void device_work_done(struct device_work *work)
{
	array_done(&work->devices);
	array_done(&work->lines);
}
