/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "collect/device/paired_state.h"

#define MAX_PROCESSES 4096
/* Work that waits for a pair of clocks, of all processes. */
#define MAX_PENDING  65536
#define PAIR_WAIT_NS (2 * NS_PER_S)

int paired_collector_new(struct paired_collector **ret_collector,
	const struct device_output *output, const struct device_names *names,
	struct device_account *account)
{
	struct paired_collector *collector = calloc(1, sizeof(*collector));

	if (!collector)
		return -ENOMEM;
	collector->output = output;
	collector->names = names;
	collector->account = account;
	collector->end_ns = UINT64_MAX;
	*ret_collector = collector;
	return 0;
}

struct paired_collector *paired_collector_free(struct paired_collector *collector)
{
	if (!collector)
		return NULL;
	array_foreach (&collector->processes, process) {
		waiting_launches_done(&(*process)->launches);
		map_u64_done(&(*process)->pc_texts);
		free(*process);
	}
	for (size_t i = 0; i < collector->note_count; i++)
		free(collector->notes[i].text);
	array_done(&collector->processes);
	map_u64_done(&collector->process_index);
	array_done(&collector->pending);
	free(collector);
	return NULL;
}

/* -E2BIG: there are too many. */
static int find_process(
	struct paired_collector *collector, uint32_t pid, struct paired_process **ret_process)
{
	struct paired_process *process;
	uint64_t index;
	int result;

	if (map_u64_get(&collector->process_index, pid, &index)) {
		*ret_process = collector->processes.items[index];
		return 0;
	}
	if (collector->processes.count >= MAX_PROCESSES)
		return -E2BIG;
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->pid = pid;
	index = collector->processes.count;
	result = array_append(&collector->processes, process);
	if (result < 0) {
		free(process);
		return result;
	}
	*ret_process = process;
	return map_u64_set(&collector->process_index, pid, index);
}

/* ---- launches ---- */

/* The launches that have waited for their work until `exit_ns`. */
static int give_up_launches(
	struct paired_collector *collector, struct paired_process *process, uint64_t exit_ns)
{
	struct wire_device_launch launch;
	int result = 0;

	while (result == 0 && waiting_launches_oldest(&process->launches, exit_ns, &launch))
		result = device_output_launch(
			collector->output, process->pid, &launch, WIRE_DEVICE_TIMED);
	return result;
}

int paired_collector_launch(
	struct paired_collector *collector, uint32_t pid, const struct wire_device_launch *launch)
{
	bool is_graph = launch->kind == WIRE_DEVICE_GRAPH;
	struct paired_process *process;
	int result = find_process(collector, pid, &process);

	if (result == -E2BIG)
		return paired_drop(collector);
	collector->account->launches++;
	if (result == 0 && is_graph)
		result = device_output_launch(collector->output, pid, launch, WIRE_DEVICE_TIMED);
	if (result == 0 && waiting_launches_is_full(&process->launches))
		result = give_up_launches(collector, process, UINT64_MAX);
	return result < 0 ? result : waiting_launches_add(&process->launches, launch, is_graph);
}

/* ---- work ---- */

static bool is_whole_activity(const struct wire_device_gpu_activity *record)
{
	const struct wire_device_activity *activity = &record->activity;

	return wire_device_is_work(activity->kind) && activity->start <= activity->end &&
	       activity->end < DEVICE_MAX_NS && record->untimed < WIRE_DEVICE_UNTIMED_MAX &&
	       device_gpu_number(activity->device);
}

/* Work whose driver gave no times is reported as a launch without. */
static int write_untimed(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_activity *activity, const struct wire_device_launch *launch)
{
	const struct clock_pair *newest =
		&process->clock.pairs[(process->clock.count - 1) % DEVICE_CLOCK_PAIRS];
	const struct wire_device_launch unknown = {
		.correlation = activity->correlation,
		.enter_ns = process->clock.count ? newest->host_ns : 0,
		.exit_ns = process->clock.count ? newest->host_ns : 0,
		.queue = activity->queue,
		.kind = activity->kind,
	};

	collector->account->untimed++;
	return device_output_launch(
		collector->output, process->pid, launch ? launch : &unknown, WIRE_DEVICE_NO_TIMES);
}

static void fill_work(const struct paired_collector *collector,
	const struct paired_process *process, const struct wire_device_gpu_activity *from,
	struct capture_device_work *work)
{
	const struct wire_device_activity *activity = &from->activity;
	const char *device = device_names_get(
		collector->names, process->pid, WIRE_RECORD_DEVICE_DEVICE, activity->device);
	bool is_graph = activity->kind == WIRE_DEVICE_GRAPH;

	*work = (struct capture_device_work){
		.pid = process->pid,
		.correlation = activity->correlation,
		.kind = activity->kind,
		.name = device_names_get(
			collector->names, process->pid, WIRE_RECORD_DEVICE_NAME, activity->name),
		.device = device ? device : "",
		.queue = activity->queue,
		.bytes = activity->bytes,
		.gpu = device_gpu_number(activity->device),
		.context = from->context,
		.stream = from->stream,
		.registers = is_graph ? 0 : from->registers,
		.launcher = is_graph ? from->launcher : 0,
		.static_shared_bytes = from->static_shared_bytes,
		.dynamic_shared_bytes = from->dynamic_shared_bytes,
		.local_bytes = from->local_bytes,
		.from_memory = from->from_memory,
		.to_memory = from->to_memory,
		.graph = from->graph,
		.graph_node = from->graph_node,
		.capture = from->capture,
		.priority = from->has_priority ? capture_priority(from->priority) : 0,
	};
	memcpy(work->global_size, activity->global_size, sizeof(work->global_size));
	memcpy(work->local_size, activity->local_size, sizeof(work->local_size));
	memcpy(work->cluster_size, from->cluster_size, sizeof(work->cluster_size));
}

/*
 * Work begins after its launch: where the clocks say otherwise, by less than they are wrong at
 * most, they are.
 */
static void keep_order(struct host_interval *host, uint64_t launch_ns)
{
	uint64_t early_ns = host->start_ns < launch_ns ? launch_ns - host->start_ns : 0;

	if (early_ns > host->error_ns)
		return;
	host->start_ns += early_ns;
	host->end_ns += early_ns;
}

/* As far before its start as the device's clock says. */
static void fill_launch_times(
	const struct wire_device_activity *activity, struct capture_device_work *work)
{
	uint64_t waited = activity->start - activity->submit, buffered;

	if (!activity->submit || activity->submit > activity->start || waited >= work->start_ns)
		return;
	work->submit_ns = work->start_ns - waited;
	buffered = activity->submit - activity->queued;
	if (activity->queued && activity->queued <= activity->submit && buffered < work->submit_ns)
		work->queued_ns = work->submit_ns - buffered;
}

static int write_work(struct paired_collector *collector, struct paired_process *process,
	const struct pending_activity *pending, const struct wire_device_launch *launch)
{
	const struct wire_device_gpu_activity *from = &pending->activity;
	const struct device_interval device = {
		.start = from->activity.start,
		.end = from->activity.end,
		.not_before_ns = launch ? launch->enter_ns : 0,
		.pairs = pending->pairs,
	};
	struct capture_device_work work;
	struct host_interval host;

	if (!paired_clock_convert(&process->clock, &device, &host))
		return write_untimed(collector, process, &from->activity, launch);
	if (host.start_ns > DEVICE_MAX_NS || host.end_ns > DEVICE_MAX_NS)
		return paired_drop(collector);
	if (!launch && host.start_ns > collector->end_ns)
		return 0;
	keep_order(&host, device.not_before_ns);
	fill_work(collector, process, from, &work);
	work.start_ns = host.start_ns;
	work.end_ns = host.end_ns;
	fill_launch_times(&from->activity, &work);
	if (launch && launch->kind != WIRE_DEVICE_GRAPH) {
		work.tid = launch->tid;
		work.launch_ns = launch->enter_ns;
		work.launch_duration_ns = launch->exit_ns - launch->enter_ns;
	}
	collector->account->started_before_launch += host.start_ns < device.not_before_ns;
	collector->account->clock_error_ns = MAX(collector->account->clock_error_ns, host.error_ns);
	return device_output_work(collector->output, &work);
}

static int write_pending(struct paired_collector *collector, const struct pending_activity *pending)
{
	struct paired_process *process = collector->processes.items[pending->process];
	const struct wire_device_activity *activity = &pending->activity.activity;
	struct wire_device_launch launch;
	bool is_launched_by_device =
		activity->kind == WIRE_DEVICE_GRAPH && pending->activity.launcher;
	bool has_launch = !is_launched_by_device &&
			  waiting_launches_take(&process->launches, activity->correlation, &launch);

	/* There is no launch that could say so. */
	if (is_launched_by_device && pending->activity.untimed) {
		collector->account->untimed++;
		return 0;
	}
	if (pending->activity.untimed)
		return write_untimed(collector, process, activity, has_launch ? &launch : NULL);
	return write_work(collector, process, pending, has_launch ? &launch : NULL);
}

/* A pair of clocks has come after it, or will hardly come. */
static bool is_ready(
	const struct paired_collector *collector, struct pending_activity *pending, uint64_t now_ns)
{
	if (collector->processes.items[pending->process]->clock.count > pending->pairs)
		return true;
	if (!pending->seen_ns)
		pending->seen_ns = now_ns;
	return now_ns - pending->seen_ns >= PAIR_WAIT_NS;
}

static int write_all_pending(struct paired_collector *collector, uint64_t now_ns)
{
	size_t kept = 0;
	int result = 0;

	for (size_t i = 0; i < collector->pending.count; i++) {
		struct pending_activity *pending = &collector->pending.items[i];

		if (result == 0 && now_ns != UINT64_MAX && !is_ready(collector, pending, now_ns))
			collector->pending.items[kept++] = *pending;
		else if (result == 0)
			result = write_pending(collector, pending);
	}
	collector->pending.count = kept;
	return result;
}

static int add_activity(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_gpu_activity *activity)
{
	struct pending_activity pending = {.activity = *activity, .pairs = process->clock.count};
	uint64_t index;
	int result = 0;

	if (!is_whole_activity(activity))
		return paired_drop(collector);
	if (collector->pending.count >= MAX_PENDING)
		result = write_all_pending(collector, UINT64_MAX);
	map_u64_get(&collector->process_index, process->pid, &index);
	pending.process = (uint32_t)index;
	return result < 0 ? result : array_append(&collector->pending, pending);
}

/* ---- all of them ---- */

bool paired_collector_wants(const struct wire_record *record)
{
	return (record->type == WIRE_RECORD_DEVICE_ACTIVITY &&
		       record->length_bytes >= sizeof(struct wire_device_gpu_activity)) ||
	       record->type == WIRE_RECORD_DEVICE_NOTE ||
	       (record->type >= WIRE_RECORD_DEVICE_CLOCK &&
		       record->type <= WIRE_RECORD_DEVICE_UNIFIED) ||
	       record->type == WIRE_RECORD_DEVICE_PM;
}

static size_t least_bytes(const struct wire_record *record)
{
	switch (record->type) {
	case WIRE_RECORD_DEVICE_ACTIVITY:
		return sizeof(struct wire_device_gpu_activity);
	case WIRE_RECORD_DEVICE_NOTE:
		return sizeof(struct wire_device_definition);
	case WIRE_RECORD_DEVICE_CLOCK:
		return sizeof(struct wire_device_clock);
	case WIRE_RECORD_DEVICE_GRAPH:
		return sizeof(struct wire_device_graph);
	case WIRE_RECORD_DEVICE_OVERHEAD:
		return sizeof(struct wire_device_overhead);
	case WIRE_RECORD_DEVICE_COUNTS:
		return sizeof(struct wire_device_counts);
	case WIRE_RECORD_DEVICE_GPU:
		return sizeof(struct wire_device_gpu);
	case WIRE_RECORD_DEVICE_MEMORY:
		return sizeof(struct wire_device_memory);
	case WIRE_RECORD_DEVICE_SYNC:
		return sizeof(struct wire_device_sync);
	case WIRE_RECORD_DEVICE_CALL:
		return sizeof(struct wire_device_call);
	case WIRE_RECORD_DEVICE_PC:
		return sizeof(struct wire_device_pc);
	case WIRE_RECORD_DEVICE_PC_COUNTS:
		return sizeof(struct wire_device_pc_counts);
	case WIRE_RECORD_DEVICE_UNIFIED:
		return sizeof(struct wire_device_unified);
	case WIRE_RECORD_DEVICE_PM:
		return sizeof(struct wire_device_pm);
	default:
		return sizeof(struct wire_device_node);
	}
}

int paired_collector_add(
	struct paired_collector *collector, uint32_t pid, const struct wire_record *record)
{
	const void *whole = record;
	struct paired_process *process;
	int result = record->length_bytes < least_bytes(record)
			     ? -E2BIG
			     : find_process(collector, pid, &process);

	if (result < 0)
		return result == -E2BIG ? paired_drop(collector) : result;
	switch (record->type) {
	case WIRE_RECORD_DEVICE_ACTIVITY:
		return add_activity(collector, process, whole);
	case WIRE_RECORD_DEVICE_NOTE:
		return paired_add_note(collector, process, whole);
	case WIRE_RECORD_DEVICE_CLOCK:
		return paired_add_clock(collector, process, whole);
	case WIRE_RECORD_DEVICE_GRAPH:
		return paired_add_graph(collector, process, whole);
	case WIRE_RECORD_DEVICE_OVERHEAD:
		return paired_add_overhead(collector, process, whole);
	case WIRE_RECORD_DEVICE_COUNTS:
		return paired_add_counts(collector, process, whole);
	case WIRE_RECORD_DEVICE_GPU:
		return paired_add_gpu(collector, process, whole);
	case WIRE_RECORD_DEVICE_MEMORY:
		return paired_add_memory(collector, process, whole);
	case WIRE_RECORD_DEVICE_SYNC:
		return paired_add_sync(collector, process, whole);
	case WIRE_RECORD_DEVICE_CALL:
		return paired_add_call(collector, process, whole);
	case WIRE_RECORD_DEVICE_PC:
		return paired_add_pc(collector, process, whole);
	case WIRE_RECORD_DEVICE_PC_COUNTS:
		return paired_add_pc_counts(collector, process, whole);
	case WIRE_RECORD_DEVICE_UNIFIED:
		return paired_add_unified(collector, process, whole);
	case WIRE_RECORD_DEVICE_PM:
		return paired_add_pm(collector, process, whole);
	default:
		return paired_add_node(collector, process, whole);
	}
}

int paired_collector_write(struct paired_collector *collector, uint64_t now_ns)
{
	uint64_t exit_ns = now_ns == UINT64_MAX         ? now_ns
			   : now_ns > WAITING_LAUNCH_NS ? now_ns - WAITING_LAUNCH_NS
							: 0;
	int result = write_all_pending(collector, now_ns);

	for (size_t i = 0; result == 0 && i < collector->processes.count; i++)
		result = give_up_launches(collector, collector->processes.items[i], exit_ns);
	return result;
}

void paired_collector_end(struct paired_collector *collector, uint64_t end_ns)
{
	collector->end_ns = end_ns;
}

const struct device_note *paired_collector_notes(
	const struct paired_collector *collector, size_t *ret_count)
{
	*ret_count = collector->note_count;
	return collector->notes;
}
