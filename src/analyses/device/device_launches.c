/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/device_launches.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "model/windows.h"

/* One call, and the work that it started. */
struct launch {
	uint64_t begin_ns, end_ns; /* of the call */
	uint64_t start_ns;         /* of its first work */
	uint64_t work_ns;          /* of all its work */
	uint32_t device;           /* index */
	bool is_kernel;
	bool found_idle_queue;
};

struct launch_key {
	uint64_t launch_ns;
	uint32_t process, thread;
};

struct queue_key {
	const char *device; /* interned: equal names are equal pointers */
	uint32_t process, queue;
};

/* A launch begins to wait for its device, or has waited. */
struct step {
	uint64_t time_ns;
	uint32_t device;
	int32_t change;
};

/* Of one device, while its work and then its steps are looked at in the order of time. */
struct progress {
	uint64_t last_start_ns;   /* of its work */
	uint64_t since_ns, depth; /* launches that wait */
};

struct tables {
	struct intern devices, launch_keys, queue_keys;
	ARRAY_OF(struct launch) launches;   /* by id of launch_keys: in order of their start */
	ARRAY_OF(uint64_t) busy_until_ns;   /* by id of queue_keys */
	ARRAY_OF(struct progress) progress; /* by device */
	ARRAY_OF(struct step) steps;
	ARRAY_OF(uint64_t) times; /* of one distribution */
};

static void tables_done(struct tables *tables)
{
	intern_done(&tables->devices);
	intern_done(&tables->launch_keys);
	intern_done(&tables->queue_keys);
	array_done(&tables->launches);
	array_done(&tables->busy_until_ns);
	array_done(&tables->progress);
	array_done(&tables->steps);
	array_done(&tables->times);
}

/* ---- calls ---- */

static bool is_kernel(const struct model_device_work *work)
{
	return work->kind == WIRE_DEVICE_KERNEL || work->kind == WIRE_DEVICE_GRAPH;
}

/* Of the work before this one, in order of start. */
static int find_queue(
	struct tables *tables, const struct model_device_work *work, uint64_t **ret_busy_until_ns)
{
	const struct queue_key key = {
		.device = work->device, .process = work->process, .queue = work->queue};
	uint32_t id;
	int r = intern_add(&tables->queue_keys, &key, sizeof(key), &id);

	if (r > 0)
		r = array_append(&tables->busy_until_ns, (uint64_t)0);
	if (r < 0)
		return r;
	*ret_busy_until_ns = &tables->busy_until_ns.items[id];
	return 0;
}

static int add_to_launch(struct tables *tables, const struct model_device_work *work,
	uint32_t device, uint64_t busy_until_ns)
{
	const struct launch_key key = {
		.launch_ns = work->launch_ns, .process = work->process, .thread = work->thread};
	uint32_t id;
	int r = intern_add(&tables->launch_keys, &key, sizeof(key), &id);

	if (r > 0)
		r = array_append(&tables->launches,
			(struct launch){
				.begin_ns = work->launch_ns,
				.end_ns = work->launch_ns + work->launch_duration_ns,
				.start_ns = work->start_ns,
				.device = device,
				.is_kernel = is_kernel(work),
				.found_idle_queue = busy_until_ns <= work->launch_ns,
			});
	if (r < 0)
		return r;
	tables->launches.items[id].work_ns += work->end_ns - work->start_ns;
	return 0;
}

static int find_device(struct device_launches *launches, struct tables *tables,
	const struct model_device_work *work, uint32_t *ret_device)
{
	int r = intern_add(&tables->devices, &work->device, sizeof(work->device), ret_device);

	if (r <= 0)
		return r;
	r = array_append(&launches->devices, (struct device_launches_device){.name = work->device});
	return r
		       ?: array_append(&tables->progress, (struct progress){
								  .last_start_ns = work->start_ns,
								  .since_ns = work->start_ns,
							  });
}

static int add_work(struct device_launches *launches, struct tables *tables,
	const struct model *model, const struct model_device_work *work)
{
	struct device_launches_device *device;
	uint64_t *busy_until_ns;
	struct progress *progress;
	uint32_t index;
	int r = find_device(launches, tables, work, &index);

	r = r ?: find_queue(tables, work, &busy_until_ns);
	if (r != 0)
		return r;
	device = &launches->devices.items[index];
	progress = &tables->progress.items[index];
	if (model_is_continuous(model, progress->last_start_ns, work->start_ns))
		device->span_ns += work->start_ns - progress->last_start_ns;
	progress->last_start_ns = work->start_ns;
	if (work->launch_ns)
		r = add_to_launch(tables, work, index, *busy_until_ns);
	else
		device->not_counted++;
	*busy_until_ns = MAX(*busy_until_ns, work->end_ns);
	return r;
}

/* ---- queue depth ---- */

/* At one moment, what begins to work goes before what begins to wait. */
static int compare_steps(const void *left, const void *right)
{
	const struct step *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->change - b->change;
}

static int add_steps(struct tables *tables)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < tables->launches.count; i++) {
		const struct launch *launch = &tables->launches.items[i];

		if (launch->end_ns >= launch->start_ns)
			continue;
		r = array_append(&tables->steps, (struct step){launch->end_ns, launch->device, 1});
		r = r
			    ?: array_append(&tables->steps,
				       (struct step){launch->start_ns, launch->device, -1});
	}
	if (r == 0 && tables->steps.count)
		qsort(tables->steps.items, tables->steps.count, sizeof(*tables->steps.items),
			compare_steps);
	return r;
}

/* Of the time after the device's first work began. */
static void add_depths(
	struct device_launches *launches, struct tables *tables, const struct model *model)
{
	array_foreach (&launches->devices, device)
		device->empty_ns = device->span_ns;
	array_foreach (&tables->steps, step) {
		struct device_launches_device *device = &launches->devices.items[step->device];
		struct progress *progress = &tables->progress.items[step->device];
		uint64_t since_ns = progress->since_ns, passed_ns = 0;

		progress->since_ns = MAX(step->time_ns, since_ns);
		if (model_is_continuous(model, since_ns, progress->since_ns))
			passed_ns = progress->since_ns - since_ns;
		device->depth_time += progress->depth * passed_ns;
		device->empty_ns -= progress->depth ? MIN(passed_ns, device->empty_ns) : 0;
		progress->depth += (uint64_t)(int64_t)step->change;
		device->depth_max = MAX(device->depth_max, progress->depth);
	}
}

/* ---- distributions ---- */

static int compare_numbers(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static uint64_t percentile(const uint64_t *sorted, size_t count, unsigned percent)
{
	return sorted[(count * percent + 99) / 100 - 1];
}

static struct device_distribution distribution(uint64_t *times, size_t count)
{
	if (!count)
		return (struct device_distribution){0};
	qsort(times, count, sizeof(*times), compare_numbers);
	return (struct device_distribution){
		.count = count,
		.median_ns = percentile(times, count, 50),
		.p90_ns = percentile(times, count, 90),
		.p99_ns = percentile(times, count, 99),
	};
}

static void count_launches(struct device_launches *launches, const struct tables *tables)
{
	array_foreach (&tables->launches, launch) {
		struct device_launches_device *device = &launches->devices.items[launch->device];

		device->launches++;
		device->kernel_launches += launch->is_kernel;
		device->short_kernels +=
			launch->is_kernel && launch->work_ns < launch->end_ns - launch->begin_ns;
	}
}

static int add_distributions(
	struct device_launches_device *device, uint32_t index, struct tables *tables)
{
	int r = 0;

	array_clear(&tables->times);
	for (size_t i = 0; r == 0 && i < tables->launches.count; i++) {
		const struct launch *launch = &tables->launches.items[i];

		if (launch->device == index && launch->is_kernel)
			r = array_append(&tables->times, launch->end_ns - launch->begin_ns);
	}
	device->call = distribution(tables->times.items, tables->times.count);
	array_clear(&tables->times);
	for (size_t i = 0; r == 0 && i < tables->launches.count; i++) {
		const struct launch *launch = &tables->launches.items[i];

		if (launch->device == index && launch->is_kernel && launch->found_idle_queue &&
			launch->start_ns >= launch->begin_ns)
			r = array_append(&tables->times, launch->start_ns - launch->begin_ns);
	}
	device->latency = distribution(tables->times.items, tables->times.count);
	return r;
}

int device_launches_init(struct device_launches *launches, const struct model *model)
{
	struct tables tables = {0};
	int r = 0;

	*launches = (struct device_launches){0};
	for (size_t i = 0; r == 0 && i < model->device_works.count; i++)
		r = add_work(launches, &tables, model, &model->device_works.items[i]);
	r = r ?: add_steps(&tables);
	if (r == 0) {
		add_depths(launches, &tables, model);
		count_launches(launches, &tables);
	}
	for (uint32_t i = 0; r == 0 && i < launches->devices.count; i++)
		r = add_distributions(&launches->devices.items[i], i, &tables);
	tables_done(&tables);
	if (r < 0)
		device_launches_done(launches);
	return r;
}

void device_launches_done(struct device_launches *launches)
{
	array_done(&launches->devices);
}
