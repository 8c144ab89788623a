/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/memory/unified.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/charge.h"
#include "model/unified.h"

/* Allocations of other times may begin behind an address: so many are looked at. */
#define MAX_LOOKS 64

struct allocation {
	uint64_t address, bytes;
	uint64_t from_ns, until_ns;
	const char *call; /* NULL: not known */
	uint32_t frame;
	uint32_t process;
};

/* What runs on a GPU of a process: indices in device_works, the last that began on top. */
struct running {
	const char *device;
	uint32_t process;
	ARRAY_OF(uint32_t) works;
};

/* Of a row; hashed as bytes. Equal texts of the model are equal pointers. */
struct use_key {
	uint64_t allocation; /* index, + 1 */
	const char *device, *kernel;
	uint64_t process;
};

struct call_key {
	uint64_t correlation, process;
};

struct finding {
	const struct model *model;
	struct unified_memory *unified;
	ARRAY_OF(struct allocation) allocations; /* by process, address and time */
	ARRAY_OF(struct running) running;
	ARRAY_OF(uint64_t) counted_ns; /* of each process: unasked time until then is counted */
	struct intern keys;            /* struct use_key → row */
	struct intern calls;           /* struct call_key → index in the next */
	ARRAY_OF(const char *) names;
	size_t next; /* in device_works */
};

/* ---- allocations ---- */

static int compare_memory(const void *left, const void *right)
{
	const struct model_device_memory *a = *(const struct model_device_memory *const *)left;
	const struct model_device_memory *b = *(const struct model_device_memory *const *)right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->memory.address != b->memory.address)
		return a->memory.address < b->memory.address ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a < b ? -1 : a > b;
}

struct memory_items {
	ARRAY_OF(const struct model_device_memory *) items;
};

static void memory_items_done(struct memory_items *memory)
{
	array_done(&memory->items);
}

static bool is_managed(const struct model_device_memory *item)
{
	return item->memory.memory == WIRE_MEMORY_MANAGED ||
	       item->memory.memory == WIRE_MEMORY_MANAGED_STATIC;
}

static int find_calls(struct finding *finding)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < finding->model->device_calls.count; i++) {
		const struct model_device_call *call = &finding->model->device_calls.items[i];
		const struct call_key key = {call->correlation, call->process};
		uint32_t id;

		r = intern_add(&finding->calls, &key, sizeof(key), &id);
		if (r > 0)
			r = array_append(&finding->names, call->name);
	}
	return MIN(r, 0);
}

/* NULL: not known. */
static const char *call_of(const struct finding *finding, const struct model_device_memory *item)
{
	const struct call_key key = {item->memory.correlation, item->process};
	uint32_t id;

	return item->memory.correlation && intern_find(&finding->calls, &key, sizeof(key), &id) &&
			       id < finding->names.count
		       ? finding->names.items[id]
		       : NULL;
}

/* Until what comes next at its address, be it its release or another. */
static int add_allocation(struct finding *finding, const struct model_device_memory *item,
	const struct model_device_memory *next)
{
	bool has_end = next && next->process == item->process &&
		       next->memory.address == item->memory.address;
	const struct allocation allocation = {
		.address = item->memory.address,
		.bytes = item->memory.bytes,
		.from_ns = item->time_ns,
		.until_ns = has_end ? next->time_ns : UINT64_MAX,
		.call = call_of(finding, item),
		.frame = charge_frame(finding->model, item->stack),
		.process = item->process,
	};
	return array_append(&finding->allocations, allocation);
}

static int find_allocations(struct finding *finding)
{
	_cleanup_(memory_items_done) struct memory_items memory = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < finding->model->device_memory.count; i++) {
		if (is_managed(&finding->model->device_memory.items[i]))
			r = array_append(&memory.items, &finding->model->device_memory.items[i]);
	}
	if (r < 0 || !memory.items.count)
		return r;
	r = find_calls(finding);
	qsort(memory.items.items, memory.items.count, sizeof(*memory.items.items), compare_memory);
	for (size_t i = 0; r == 0 && i < memory.items.count; i++) {
		if (!memory.items.items[i]->memory.released)
			r = add_allocation(finding, memory.items.items[i],
				i + 1 < memory.items.count ? memory.items.items[i + 1] : NULL);
	}
	return r;
}

static bool lies_before(const struct allocation *allocation, uint32_t process, uint64_t address)
{
	return allocation->process < process ||
	       (allocation->process == process && allocation->address <= address);
}

/* Its index; MODEL_NONE: none is known. */
static uint32_t allocation_of(
	const struct finding *finding, const struct model_unified_memory *item)
{
	uint64_t address = item->unified.address;
	size_t first = 0, last = finding->allocations.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (lies_before(&finding->allocations.items[middle], item->process, address))
			first = middle + 1;
		else
			last = middle;
	}
	for (size_t i = first; i-- > 0 && first - i <= MAX_LOOKS;) {
		const struct allocation *at = &finding->allocations.items[i];

		if (at->process != item->process)
			break;
		if (address - at->address < at->bytes && item->start_ns >= at->from_ns &&
			item->start_ns < at->until_ns)
			return (uint32_t)i;
	}
	return MODEL_NONE;
}

/* ---- what ran ---- */

static int find_running(
	struct finding *finding, const char *device, uint32_t process, struct running **ret_running)
{
	int r;

	array_foreach (&finding->running, one) {
		if (one->device == device && one->process == process) {
			*ret_running = one;
			return 0;
		}
	}
	r = array_append(&finding->running, (struct running){.device = device, .process = process});
	if (r == 0)
		*ret_running = &finding->running.items[finding->running.count - 1];
	return r;
}

/* Work comes by start, as what is asked for. */
static int begin_works(struct finding *finding, uint64_t time_ns)
{
	const struct model *model = finding->model;
	int r = 0;

	for (; r == 0 && finding->next < model->device_works.count; finding->next++) {
		const struct model_device_work *work = &model->device_works.items[finding->next];
		struct running *running = NULL;

		if (work->start_ns > time_ns)
			break;
		if (work->kind != WIRE_DEVICE_KERNEL && work->kind != WIRE_DEVICE_GRAPH)
			continue;
		r = find_running(finding, work->device, work->process, &running);
		if (r == 0 && running)
			r = array_append(&running->works, (uint32_t)finding->next);
	}
	return r;
}

/* What happens on the host alone, too, belongs to the GPU of a process that has one; else "". */
static const char *device_of(const struct model *model, const struct model_unified_memory *item)
{
	const char *only = "";

	if (*model_unified_device(item))
		return model_unified_device(item);
	array_foreach (&model->gpus, gpu) {
		if (gpu->process != item->process)
			continue;
		if (*only)
			return "";
		only = gpu->label;
	}
	return only;
}

static int kernel_at(struct finding *finding, const struct model_unified_memory *item,
	const char *device, uint32_t *ret_work)
{
	const struct model_device_work *works = finding->model->device_works.items;
	struct running *running = NULL;
	int r = begin_works(finding, item->start_ns);

	*ret_work = MODEL_NONE;
	if (r < 0 || !*device)
		return r;
	r = find_running(finding, device, item->process, &running);
	if (r < 0 || !running)
		return r;
	while (running->works.count &&
		works[running->works.items[running->works.count - 1]].end_ns <= item->start_ns)
		running->works.count--;
	if (running->works.count)
		*ret_work = running->works.items[running->works.count - 1];
	return 0;
}

/* ---- rows ---- */

static int find_use(struct finding *finding, const struct model_unified_memory *item,
	struct unified_use **ret_use)
{
	uint32_t allocation = allocation_of(finding, item), work, index;
	const struct allocation *known =
		allocation == MODEL_NONE ? NULL : &finding->allocations.items[allocation];
	struct use_key key = {
		.allocation = known ? allocation + 1ULL : 0,
		.device = device_of(finding->model, item),
		.process = item->process,
	};
	struct unified_use use = {.device = key.device, .frame = MODEL_NONE};
	int r = kernel_at(finding, item, key.device, &work);

	if (r < 0)
		return r;
	if (work != MODEL_NONE)
		key.kernel = finding->model->device_works.items[work].name;
	use.work = work;
	if (known) {
		use.address = known->address;
		use.bytes = known->bytes;
		use.call = known->call;
		use.frame = known->frame;
	}
	r = intern_add(&finding->keys, &key, sizeof(key), &index);
	if (r > 0)
		r = array_append(&finding->unified->rows, use);
	if (r == 0)
		*ret_use = &finding->unified->rows.items[index];
	finding->unified->has_unknown |= !known;
	return r;
}

static void count_bytes(struct unified_use *use, const struct capture_unified_memory *unified)
{
	use->migrations++;
	if (unified->type == WIRE_UNIFIED_TO_DEVICE)
		use->to_device_bytes += unified->value;
	else if (unified->type == WIRE_UNIFIED_TO_HOST)
		use->to_host_bytes += unified->value;
	else
		use->between_bytes += unified->value;
	if (unified->cause == WIRE_MIGRATION_USER)
		use->asked_bytes += unified->value;
	else if (unified->cause == WIRE_MIGRATION_EVICTION)
		use->evicted_bytes += unified->value;
}

static void count_item(struct unified_use *use, const struct model_unified_memory *item)
{
	const struct capture_unified_memory *unified = &item->unified;
	bool is_migration = model_unified_is_migration(unified->type);

	if (is_migration)
		count_bytes(use, unified);
	*(is_migration ? &use->migration_ns : &use->fault_ns) += item->end_ns - item->start_ns;
	use->host_faults += unified->type == WIRE_UNIFIED_HOST_FAULT;
	if (unified->type == WIRE_UNIFIED_DEVICE_FAULT)
		use->device_faults += MAX(unified->value, (uint64_t)1);
	use->thrashing += unified->type == WIRE_UNIFIED_THRASHING;
	use->throttling += unified->type == WIRE_UNIFIED_THROTTLING;
	use->remote_maps += unified->type == WIRE_UNIFIED_REMOTE_MAP;
}

/* ---- the time that it took ---- */

static bool is_unasked(const struct capture_unified_memory *unified)
{
	return (model_unified_is_migration(unified->type) &&
		       unified->cause != WIRE_MIGRATION_USER) ||
	       unified->type == WIRE_UNIFIED_DEVICE_FAULT ||
	       unified->type == WIRE_UNIFIED_THROTTLING;
}

/* They come by start. */
static void count_unasked(struct finding *finding, const struct model_unified_memory *item)
{
	uint64_t *counted_ns = &finding->counted_ns.items[item->process];
	uint64_t from_ns = MAX(*counted_ns, item->start_ns);

	if (!is_unasked(&item->unified))
		return;
	if (item->unified.type == WIRE_UNIFIED_TO_DEVICE)
		finding->unified->unasked_bytes += item->unified.value;
	if (item->end_ns <= from_ns)
		return;
	finding->unified->unasked_ns += item->end_ns - from_ns;
	*counted_ns = item->end_ns;
}

static uint64_t work_ns(const struct model *model)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0;

	array_foreach (&model->device_works, work) {
		first_ns = MIN(first_ns, work->start_ns);
		last_ns = MAX(last_ns, work->end_ns);
	}
	return last_ns > first_ns ? last_ns - first_ns : 0;
}

/* ---- all ---- */

static uint64_t time_of(const struct unified_use *use)
{
	return use->migration_ns + use->fault_ns;
}

static int compare_uses(const void *left, const void *right)
{
	const struct unified_use *a = left, *b = right;

	if (time_of(a) != time_of(b))
		return time_of(a) > time_of(b) ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->work < b->work ? -1 : a->work > b->work;
}

static int add_item(struct finding *finding, const struct model_unified_memory *item)
{
	struct unified_use *use = NULL;
	int r = find_use(finding, item, &use);

	if (r < 0 || !use)
		return r;
	count_item(use, item);
	count_unasked(finding, item);
	return 0;
}

static void finding_done(struct finding *finding)
{
	array_foreach (&finding->running, one)
		array_done(&one->works);
	array_done(&finding->running);
	array_done(&finding->allocations);
	array_done(&finding->counted_ns);
	intern_done(&finding->keys);
	intern_done(&finding->calls);
	array_done(&finding->names);
}

int unified_memory_init(struct unified_memory *unified, const struct model *model)
{
	_cleanup_(finding_done) struct finding finding = {.model = model, .unified = unified};
	int r = 0;

	*unified = (struct unified_memory){.work_ns = work_ns(model)};
	for (size_t i = 0; r == 0 && i < model->processes.count; i++)
		r = array_append(&finding.counted_ns, (uint64_t)0);
	r = r ?: find_allocations(&finding);
	for (size_t i = 0; r == 0 && i < model->unified_memory.count; i++)
		r = add_item(&finding, &model->unified_memory.items[i]);
	if (r < 0) {
		unified_memory_done(unified);
		return r;
	}
	if (unified->rows.count)
		qsort(unified->rows.items, unified->rows.count, sizeof(*unified->rows.items),
			compare_uses);
	return 0;
}

void unified_memory_done(struct unified_memory *unified)
{
	array_done(&unified->rows);
}
