/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device work: kernels and copies by name and device, as in analyses/device/kernels.h, and the
 * share of the last seconds in which a device had work, overlapping works once.
 */
#include <stdlib.h>

#include "live/state.h"

#define ROWS 30
/* Stretches of a device's last seconds; then those that lie close to each other become one. */
#define MOST_BUSY 16384
/* Between stretches that are made one: at first, then twice that, and so on. */
#define CLOSE_NS ((uint64_t)1000)

/* ---- kernels ---- */

static int find_kernel(struct live_figures *figures, const struct capture_device_work *work,
	uint32_t device, struct live_kernel **ret_kernel)
{
	struct live_devices *devices = &figures->devices;
	const char *name =
		work->name && *work->name ? work->name : wire_device_kind_name(work->kind);
	struct live_kernel kernel = {.device = device};
	uint64_t key, place;
	int r = live_keep_text(figures, name, &kernel.name);

	if (r < 0)
		return r;
	key = (uint64_t)kernel.name << 32 | device;
	if (!map_u64_get(&devices->kernel_index, key, &place)) {
		place = devices->kernels.count;
		r = array_append(&devices->kernels, kernel);
		if (r == 0)
			r = map_u64_set(&devices->kernel_index, key, place);
		if (r < 0)
			return r;
	}
	*ret_kernel = &devices->kernels.items[place];
	return 0;
}

static int find_device(struct live_figures *figures, uint32_t name, struct live_device **ret_device)
{
	struct live_devices *devices = &figures->devices;
	uint64_t place;
	int r;

	if (!map_u64_get(&devices->device_index, name, &place)) {
		place = devices->devices.count;
		r = array_append(&devices->devices, (struct live_device){.name = name});
		if (r == 0)
			r = map_u64_set(&devices->device_index, name, place);
		if (r < 0)
			return r;
	}
	*ret_device = &devices->devices.items[place];
	return 0;
}

/* ---- when it was busy ---- */

/* Leaves out what ended before the last seconds. */
static void forget_old(struct live_figures *figures, struct live_device *device)
{
	uint64_t begin_ns = live_recent_begin_ns(figures);
	size_t old = 0;

	while (old < device->busy.count && device->busy.items[old].end_ns <= begin_ns)
		old++;
	array_drop_first(&device->busy, old);
}

/* Makes stretches one that lie less than `gap_ns` apart. */
static void join_close(struct live_device *device, uint64_t gap_ns)
{
	struct live_busy *items = device->busy.items;
	size_t kept = 0;

	for (size_t i = 1; i < device->busy.count; i++) {
		if (items[i].start_ns - items[kept].end_ns < gap_ns)
			items[kept].end_ns = items[i].end_ns;
		else
			items[++kept] = items[i];
	}
	device->busy.count = kept + 1;
}

static void make_place(struct live_figures *figures, struct live_device *device)
{
	forget_old(figures, device);
	for (uint64_t gap_ns = CLOSE_NS; device->busy.count > MOST_BUSY / 2 && gap_ns; gap_ns *= 2)
		join_close(device, gap_ns);
}

/* Where a stretch that starts then belongs: behind those that start earlier. */
static size_t place_of(const struct live_device *device, uint64_t start_ns)
{
	size_t low = 0, high = device->busy.count;

	/* Most come in order. */
	if (high && device->busy.items[high - 1].start_ns <= start_ns)
		return high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (device->busy.items[middle].start_ns <= start_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int add_busy(struct live_figures *figures, struct live_device *device, uint64_t start_ns,
	uint64_t end_ns)
{
	struct live_busy *items;
	size_t at, behind;
	int r = 0;

	if (device->busy.count >= MOST_BUSY)
		make_place(figures, device);
	at = place_of(device, start_ns);
	items = device->busy.items;
	if (at && items[at - 1].end_ns >= start_ns) {
		at--;
		items[at].end_ns = MAX(items[at].end_ns, end_ns);
	} else {
		r = array_append(&device->busy, (struct live_busy){0});
		if (r < 0)
			return r;
		items = device->busy.items;
		memmove(items + at + 1, items + at, (device->busy.count - 1 - at) * sizeof(*items));
		items[at] = (struct live_busy){start_ns, end_ns};
	}
	for (behind = at + 1;
		behind < device->busy.count && items[behind].start_ns <= items[at].end_ns; behind++)
		items[at].end_ns = MAX(items[at].end_ns, items[behind].end_ns);
	memmove(items + at + 1, items + behind, (device->busy.count - behind) * sizeof(*items));
	device->busy.count -= behind - at - 1;
	return 0;
}

int live_add_work(struct live_figures *figures, const struct capture_device_work *work)
{
	uint64_t end_ns = MAX(work->end_ns, work->start_ns);
	struct live_kernel *kernel = NULL;
	struct live_device *device = NULL;
	uint32_t name;
	int r = live_keep_text(figures, work->device, &name);

	live_see_time(figures, work->start_ns);
	if (r == 0)
		r = find_kernel(figures, work, name, &kernel);
	if (r == 0)
		r = find_device(figures, name, &device);
	if (r != 0 || !kernel || !device)
		return r;
	kernel->count++;
	live_recent_add_span(figures, &kernel->time_ns, work->start_ns, end_ns);
	figures->devices.kernel_count += work->kind == WIRE_DEVICE_KERNEL;
	return end_ns > work->start_ns ? add_busy(figures, device, work->start_ns, end_ns) : 0;
}

/* ---- messages ---- */

static double busy_share(const struct live_figures *figures, const struct live_device *device)
{
	uint64_t begin_ns = live_recent_begin_ns(figures), busy_ns = 0;

	for (size_t i = 0; i < device->busy.count; i++) {
		uint64_t start_ns = MAX(device->busy.items[i].start_ns, begin_ns);
		uint64_t end_ns = MIN(device->busy.items[i].end_ns, figures->newest_ns);

		busy_ns += end_ns > start_ns ? end_ns - start_ns : 0;
	}
	if (figures->newest_ns <= begin_ns)
		return 0;
	return (double)busy_ns / (double)(figures->newest_ns - begin_ns);
}

void live_write_busy(struct live_figures *figures, struct json_writer *json)
{
	json_key(json, "gpu_busy");
	json_begin_array(json);
	for (size_t i = 0; i < MIN(figures->devices.devices.count, (size_t)256); i++) {
		struct live_device *device = &figures->devices.devices.items[i];

		forget_old(figures, device);
		json_begin_object(json);
		live_member_string(json, "device", live_text(figures, device->name));
		json_key(json, "share");
		json_double(json, busy_share(figures, device), 4);
		json_end_object(json);
	}
	json_end_array(json);
}

static int compare_kernels(const void *left, const void *right, void *context)
{
	const struct live_figures *figures = context;
	const struct live_kernel *a = &figures->devices.kernels.items[*(const uint32_t *)left];
	const struct live_kernel *b = &figures->devices.kernels.items[*(const uint32_t *)right];

	if (a->time_ns.total != b->time_ns.total)
		return a->time_ns.total > b->time_ns.total ? -1 : 1;
	return strcmp(live_text(figures, a->name), live_text(figures, b->name));
}

int live_write_kernels(struct live_figures *figures, struct json_writer *json)
{
	size_t count = figures->devices.kernels.count;
	_cleanup_free_ uint32_t *order = calloc(count + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), compare_kernels, figures);
	live_begin_message(figures, json);
	live_member_t_ms(figures, json, "t_ms", figures->newest_ns);
	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; i < MIN(count, (size_t)ROWS); i++) {
		const struct live_kernel *kernel = &figures->devices.kernels.items[order[i]];

		json_begin_object(json);
		live_member_string(json, "name", live_text(figures, kernel->name));
		live_member_text(figures, json, "module", kernel->device);
		json_member_u64(json, "count", kernel->count);
		live_member_ms(json, "self_ms", (double)kernel->time_ns.total);
		live_member_ms(
			json, "recent_ms", (double)live_recent_sum(figures, &kernel->time_ns));
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
	return 0;
}

void live_devices_done(struct live_devices *devices)
{
	array_foreach (&devices->devices, device)
		array_done(&device->busy);
	array_done(&devices->devices);
	array_done(&devices->kernels);
	map_u64_done(&devices->kernel_index);
	map_u64_done(&devices->device_index);
}
