/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/device_cuda.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/map.h"
#include "collect/device_clock.h"
#include "collect/waiting_launches.h"

#define MAX_PROCESSES 4096
#define MAX_GPUS      1024
/* Work that waits for a pair of clocks, of all processes. */
#define MAX_PENDING  65536
#define PAIR_WAIT_NS (2 * NS_PER_S)
/* One process cannot fill the capture with what it says. */
#define MAX_PROCESS_NOTES 64
#define MAX_NOTES         16
/* Pairs of clocks are written no more often. */
#define CLOCK_WRITE_NS NS_PER_S
/* CUDA's ids have this bit; a device's are its ordinal + 1. */
#define RUNTIME_BIT (1U << 31)

struct cuda_process {
	uint32_t pid;
	uint32_t notes;
	struct paired_clock clock;
	uint64_t clock_written_ns;
	struct waiting_launches launches;
	struct capture_device_counts counts;
};

struct pending_activity {
	struct wire_device_gpu_activity activity;
	uint32_t process; /* index */
	uint64_t pairs;   /* of the process's clock when it came */
	uint64_t seen_ns; /* 0: not looked at yet */
};

struct cuda_collector {
	const struct device_output *output;
	const struct device_names *names;
	struct device_account *account;
	struct map_u64 process_index; /* pid → index in processes */
	ARRAY_OF(struct cuda_process *) processes;
	ARRAY_OF(struct pending_activity) pending;
	struct device_note notes[MAX_NOTES];
	size_t note_count;
	uint64_t end_ns; /* UINT64_MAX: the recording goes on */
};

int cuda_collector_new(struct cuda_collector **ret_collector, const struct device_output *output,
	const struct device_names *names, struct device_account *account)
{
	struct cuda_collector *collector = calloc(1, sizeof(*collector));

	if (!collector)
		return -ENOMEM;
	collector->output = output;
	collector->names = names;
	collector->account = account;
	collector->end_ns = UINT64_MAX;
	*ret_collector = collector;
	return 0;
}

struct cuda_collector *cuda_collector_free(struct cuda_collector *collector)
{
	if (!collector)
		return NULL;
	array_foreach (&collector->processes, process) {
		waiting_launches_done(&(*process)->launches);
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

static int drop(struct cuda_collector *collector)
{
	collector->account->malformed++;
	return 0;
}

/* -E2BIG: there are too many. */
static int find_process(
	struct cuda_collector *collector, uint32_t pid, struct cuda_process **ret_process)
{
	struct cuda_process *process;
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

static uint32_t gpu_number(uint32_t id)
{
	uint32_t number = id & ~RUNTIME_BIT;

	return id & RUNTIME_BIT && number <= MAX_GPUS ? number : 0;
}

/* ---- launches ---- */

static int write_launch(struct cuda_collector *collector, uint32_t pid,
	const struct wire_device_launch *launch, unsigned untimed)
{
	const struct capture_launch out = {
		.time_ns = launch->enter_ns,
		.duration_ns = launch->exit_ns - launch->enter_ns,
		.pid = pid,
		.tid = launch->tid,
		.correlation = launch->correlation,
		.kind = launch->kind,
		.untimed = untimed,
		.queue = launch->queue,
	};

	return device_output_launch(collector->output, &out);
}

/* The launches that have waited for their work until `exit_ns`. */
static int give_up_launches(
	struct cuda_collector *collector, struct cuda_process *process, uint64_t exit_ns)
{
	struct wire_device_launch launch;
	int result = 0;

	while (result == 0 && waiting_launches_oldest(&process->launches, exit_ns, &launch))
		result = write_launch(collector, process->pid, &launch, WIRE_DEVICE_TIMED);
	return result;
}

int cuda_collector_launch(
	struct cuda_collector *collector, uint32_t pid, const struct wire_device_launch *launch)
{
	bool is_graph = launch->kind == WIRE_DEVICE_GRAPH;
	struct cuda_process *process;
	int result = find_process(collector, pid, &process);

	if (result == -E2BIG)
		return drop(collector);
	collector->account->launches++;
	if (result == 0 && is_graph)
		result = write_launch(collector, pid, launch, WIRE_DEVICE_TIMED);
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
	       gpu_number(activity->device);
}

/* Work whose driver gave no times is told of as a launch without. */
static int write_untimed(struct cuda_collector *collector, struct cuda_process *process,
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
	return write_launch(
		collector, process->pid, launch ? launch : &unknown, WIRE_DEVICE_NO_TIMES);
}

static void fill_work(const struct cuda_collector *collector, const struct cuda_process *process,
	const struct wire_device_gpu_activity *from, struct capture_device_work *work)
{
	const struct wire_device_activity *activity = &from->activity;
	const char *device = device_names_get(
		collector->names, process->pid, WIRE_RECORD_DEVICE_DEVICE, activity->device);

	*work = (struct capture_device_work){
		.pid = process->pid,
		.correlation = activity->correlation,
		.kind = activity->kind,
		.name = device_names_get(
			collector->names, process->pid, WIRE_RECORD_DEVICE_NAME, activity->name),
		.device = device ? device : "",
		.queue = activity->queue,
		.bytes = activity->bytes,
		.gpu = gpu_number(activity->device),
		.context = from->context,
		.stream = from->stream,
		.registers = from->registers,
		.static_shared_bytes = from->static_shared_bytes,
		.dynamic_shared_bytes = from->dynamic_shared_bytes,
		.local_bytes = from->local_bytes,
		.from_memory = from->from_memory,
		.to_memory = from->to_memory,
		.graph = from->graph,
		.graph_node = from->graph_node,
		.capture = from->capture,
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

static int write_work(struct cuda_collector *collector, struct cuda_process *process,
	const struct pending_activity *pending, const struct wire_device_launch *launch)
{
	const struct wire_device_gpu_activity *from = &pending->activity;
	const struct device_interval device = {
		.start = from->activity.start,
		.end = from->activity.end,
		.not_before_ns = launch ? launch->enter_ns : 0,
		.told_at = pending->pairs,
	};
	struct capture_device_work work;
	struct host_interval host;

	if (!paired_clock_convert(&process->clock, &device, &host))
		return write_untimed(collector, process, &from->activity, launch);
	if (host.start_ns > DEVICE_MAX_NS || host.end_ns > DEVICE_MAX_NS)
		return drop(collector);
	if (!launch && host.start_ns > collector->end_ns)
		return 0;
	keep_order(&host, device.not_before_ns);
	fill_work(collector, process, from, &work);
	work.start_ns = host.start_ns;
	work.end_ns = host.end_ns;
	if (launch && launch->kind != WIRE_DEVICE_GRAPH) {
		work.tid = launch->tid;
		work.launch_ns = launch->enter_ns;
		work.launch_duration_ns = launch->exit_ns - launch->enter_ns;
	}
	collector->account->started_before_launch += host.start_ns < device.not_before_ns;
	collector->account->clock_error_ns = MAX(collector->account->clock_error_ns, host.error_ns);
	return device_output_work(collector->output, &work);
}

static int write_pending(struct cuda_collector *collector, const struct pending_activity *pending)
{
	struct cuda_process *process = collector->processes.items[pending->process];
	const struct wire_device_activity *activity = &pending->activity.activity;
	struct wire_device_launch launch;
	bool has_launch = waiting_launches_take(&process->launches, activity->correlation, &launch);

	if (pending->activity.untimed)
		return write_untimed(collector, process, activity, has_launch ? &launch : NULL);
	return write_work(collector, process, pending, has_launch ? &launch : NULL);
}

/* A pair of clocks has come after it, or will hardly come. */
static bool is_ready(
	const struct cuda_collector *collector, struct pending_activity *pending, uint64_t now_ns)
{
	if (collector->processes.items[pending->process]->clock.count > pending->pairs)
		return true;
	if (!pending->seen_ns)
		pending->seen_ns = now_ns;
	return now_ns - pending->seen_ns >= PAIR_WAIT_NS;
}

static int write_all_pending(struct cuda_collector *collector, uint64_t now_ns)
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

static int add_activity(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_gpu_activity *activity)
{
	struct pending_activity pending = {.activity = *activity, .pairs = process->clock.count};
	uint64_t index;
	int result = 0;

	if (!is_whole_activity(activity))
		return drop(collector);
	if (collector->pending.count >= MAX_PENDING)
		result = write_all_pending(collector, UINT64_MAX);
	map_u64_get(&collector->process_index, process->pid, &index);
	pending.process = (uint32_t)index;
	return result < 0 ? result : array_append(&collector->pending, pending);
}

/* ---- what else is told ---- */

static int add_clock(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_clock *record)
{
	const struct clock_pair pair = {
		.host_ns = record->monotonic_ns,
		.device = record->device,
		.width_ns = record->width_ns,
	};
	const struct capture_device_event event = {
		.kind = CAPTURE_DEVICE_CLOCK,
		.pid = process->pid,
		.time_ns = record->monotonic_ns,
		.clock = {.device = record->device,
			.boottime_ns = record->boottime_ns,
			.width_ns = record->width_ns},
	};
	bool jumped;

	if (!pair.host_ns || pair.host_ns >= DEVICE_MAX_NS || pair.device >= DEVICE_MAX_NS)
		return drop(collector);
	jumped = paired_clock_add(&process->clock, &pair);
	collector->account->clock_jumps += jumped;
	if (!jumped && process->clock_written_ns &&
		pair.host_ns < process->clock_written_ns + CLOCK_WRITE_NS)
		return 0;
	process->clock_written_ns = pair.host_ns;
	return device_output_event(collector->output, &event);
}

static int add_graph(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_graph *record)
{
	const struct capture_device_event event = {
		.kind = CAPTURE_GRAPH_CALL,
		.pid = process->pid,
		.time_ns = record->enter_ns,
		.graph = {.duration_ns = record->exit_ns - record->enter_ns,
			.correlation = record->correlation,
			.tid = record->tid,
			.event = record->event,
			.graph = record->graph,
			.other = record->other,
			.nodes = record->nodes,
			.failed = record->failed},
	};

	if (!record->enter_ns || record->enter_ns > record->exit_ns ||
		record->exit_ns >= DEVICE_MAX_NS || !record->event ||
		record->event > WIRE_GRAPH_CLONE)
		return drop(collector);
	return device_output_event(collector->output, &event);
}

static int add_node(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_node *record)
{
	char name[WIRE_DEVICE_MAX_BYTES];
	const struct capture_device_event event = {
		.kind = CAPTURE_GRAPH_NODE,
		.pid = process->pid,
		.text = record->text_bytes ? name : NULL,
		.node = {.node = record->node,
			.original = record->original,
			.correlation = record->correlation,
			.graph = record->graph,
			.node_type = record->node_type},
	};

	if (record->text_bytes > record->record.length_bytes - sizeof(*record) ||
		record->text_bytes >= sizeof(name))
		return drop(collector);
	memcpy(name, record + 1, record->text_bytes);
	name[record->text_bytes] = '\0';
	return device_output_event(collector->output, &event);
}

/* Told with the work of the same moment, before the pair of clocks that follows. */
static bool to_host(const struct cuda_process *process, uint64_t start, uint64_t end,
	struct host_interval *ret_host)
{
	const struct device_interval device = {
		.start = start, .end = end, .told_at = process->clock.count};

	return start && start <= end && end < DEVICE_MAX_NS &&
	       paired_clock_convert(&process->clock, &device, ret_host) && ret_host->start_ns &&
	       ret_host->start_ns < DEVICE_MAX_NS && ret_host->end_ns < DEVICE_MAX_NS;
}

static int add_overhead(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_overhead *record)
{
	struct capture_device_event event = {
		.kind = CAPTURE_OVERHEAD,
		.pid = process->pid,
		.overhead = {.correlation = record->correlation,
			.tid = record->tid,
			.kind = record->kind},
	};
	struct host_interval host;

	if (!to_host(process, record->start, record->end, &host))
		return drop(collector);
	event.time_ns = host.start_ns;
	event.overhead.duration_ns = host.end_ns - host.start_ns;
	return device_output_event(collector->output, &event);
}

static int add_memory(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_memory *record)
{
	struct capture_device_event event = {
		.kind = CAPTURE_MEMORY,
		.pid = process->pid,
		.memory = {.correlation = record->correlation,
			.address = record->address,
			.bytes = record->bytes,
			.pool_bytes = record->pool_bytes,
			.pool_used_bytes = record->pool_used_bytes,
			.gpu = gpu_number(record->device),
			.context = record->context,
			.stream = record->stream,
			.memory = record->memory,
			.released = record->released},
	};
	struct host_interval host;

	if (!to_host(process, record->time, record->time, &host) || record->released > 1)
		return drop(collector);
	event.time_ns = host.start_ns;
	return device_output_event(collector->output, &event);
}

static uint64_t big_endian(const uint8_t *bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < sizeof(value); i++)
		value = value << 8 | bytes[i];
	return value;
}

static int add_gpu(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_gpu *record)
{
	const struct capture_device_event event = {
		.kind = CAPTURE_GPU,
		.pid = process->pid,
		.text = device_names_get(
			collector->names, process->pid, WIRE_RECORD_DEVICE_DEVICE, record->id),
		.gpu = {.number = gpu_number(record->id),
			.uuid_high = big_endian(record->uuid),
			.uuid_low = big_endian(record->uuid + 8),
			.memory_bytes = record->memory_bytes,
			.capability_major = record->capability_major,
			.capability_minor = record->capability_minor,
			.multiprocessors = record->multiprocessors,
			.warp_threads = record->warp_threads,
			.multiprocessor_warps = record->multiprocessor_warps,
			.multiprocessor_blocks = record->multiprocessor_blocks,
			.multiprocessor_shared_bytes = record->multiprocessor_shared_bytes,
			.multiprocessor_registers = record->multiprocessor_registers,
			.block_registers = record->block_registers,
			.block_shared_bytes = record->block_shared_bytes,
			.block_threads = record->block_threads,
			.core_clock_khz = record->core_clock_khz},
	};

	if (!event.gpu.number)
		return drop(collector);
	return device_output_event(collector->output, &event);
}

/* A process that executes another program counts from 0 again. */
static uint64_t more(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

/* What a process counted last stands for it. */
static void sum_counts(struct device_account *account, const struct capture_device_counts *before,
	const struct capture_device_counts *now)
{
	account->dropped += more(before->dropped, now->dropped);
	account->without_times += more(before->untimed, now->untimed);
	account->unknown_nodes += more(before->unknown_nodes, now->unknown_nodes);
	account->graph_events_lost += more(before->lost_graph_events, now->lost_graph_events);
	account->buffers_refused += more(before->refused_buffers, now->refused_buffers);
	account->repeated += more(before->repeated, now->repeated);
}

static int add_counts(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_counts *record)
{
	struct capture_device_event event = {
		.kind = CAPTURE_DEVICE_COUNTS,
		.pid = process->pid,
		.time_ns = record->time_ns,
		.counts = {.launches = record->launches,
			.captured = record->captured,
			.activities = record->activities,
			.untimed = record->untimed,
			.dropped = record->dropped,
			.unknown_nodes = record->unknown_nodes,
			.lost_graph_events = record->lost_graph_events,
			.refused_buffers = record->refused_buffers,
			.foreign_buffers = record->foreign_buffers,
			.repeated = record->repeated,
			.waited_out = record->waited_out},
	};

	if (!record->time_ns || record->time_ns >= DEVICE_MAX_NS)
		return drop(collector);
	if (memcmp(&event.counts, &process->counts, sizeof(event.counts)) == 0)
		return 0;
	sum_counts(collector->account, &process->counts, &event.counts);
	process->counts = event.counts;
	return device_output_event(collector->output, &event);
}

/* Many processes say the same. */
static int keep_note(struct cuda_collector *collector, uint32_t note, const char *text)
{
	struct device_note *kept;

	for (size_t i = 0; i < collector->note_count; i++) {
		kept = &collector->notes[i];
		if (kept->note == note && strcmp(kept->text, text) == 0) {
			kept->count++;
			return 0;
		}
	}
	if (collector->note_count == MAX_NOTES)
		return 0;
	kept = &collector->notes[collector->note_count];
	*kept = (struct device_note){.note = note, .count = 1, .text = strdup(text)};
	if (!kept->text)
		return -ENOMEM;
	collector->note_count++;
	return 0;
}

static int add_note(struct cuda_collector *collector, struct cuda_process *process,
	const struct wire_device_definition *record)
{
	char text[WIRE_DEVICE_TEXT_BYTES + 1];
	const struct capture_device_event event = {
		.kind = CAPTURE_DEVICE_NOTE,
		.pid = process->pid,
		.text = text,
		.note = {.note = record->id},
	};
	int result;

	if (record->id >= WIRE_NOTE_MAX || !device_definition_text(record, text) ||
		process->notes == MAX_PROCESS_NOTES)
		return drop(collector);
	process->notes++;
	result = keep_note(collector, record->id, text);
	return result < 0 ? result : device_output_event(collector->output, &event);
}

/* ---- all of them ---- */

bool cuda_collector_wants(const struct wire_record *record)
{
	return (record->type == WIRE_RECORD_DEVICE_ACTIVITY &&
		       record->length_bytes >= sizeof(struct wire_device_gpu_activity)) ||
	       record->type == WIRE_RECORD_DEVICE_NOTE ||
	       (record->type >= WIRE_RECORD_DEVICE_CLOCK &&
		       record->type <= WIRE_RECORD_DEVICE_NODE);
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
	default:
		return sizeof(struct wire_device_node);
	}
}

int cuda_collector_add(
	struct cuda_collector *collector, uint32_t pid, const struct wire_record *record)
{
	const void *whole = record;
	struct cuda_process *process;
	int result = record->length_bytes < least_bytes(record)
			     ? -E2BIG
			     : find_process(collector, pid, &process);

	if (result < 0)
		return result == -E2BIG ? drop(collector) : result;
	switch (record->type) {
	case WIRE_RECORD_DEVICE_ACTIVITY:
		return add_activity(collector, process, whole);
	case WIRE_RECORD_DEVICE_NOTE:
		return add_note(collector, process, whole);
	case WIRE_RECORD_DEVICE_CLOCK:
		return add_clock(collector, process, whole);
	case WIRE_RECORD_DEVICE_GRAPH:
		return add_graph(collector, process, whole);
	case WIRE_RECORD_DEVICE_OVERHEAD:
		return add_overhead(collector, process, whole);
	case WIRE_RECORD_DEVICE_COUNTS:
		return add_counts(collector, process, whole);
	case WIRE_RECORD_DEVICE_GPU:
		return add_gpu(collector, process, whole);
	case WIRE_RECORD_DEVICE_MEMORY:
		return add_memory(collector, process, whole);
	default:
		return add_node(collector, process, whole);
	}
}

int cuda_collector_write(struct cuda_collector *collector, uint64_t now_ns)
{
	uint64_t exit_ns = now_ns == UINT64_MAX         ? now_ns
			   : now_ns > WAITING_LAUNCH_NS ? now_ns - WAITING_LAUNCH_NS
							: 0;
	int result = write_all_pending(collector, now_ns);

	for (size_t i = 0; result == 0 && i < collector->processes.count; i++)
		result = give_up_launches(collector, collector->processes.items[i], exit_ns);
	return result;
}

void cuda_collector_end(struct cuda_collector *collector, uint64_t end_ns)
{
	collector->end_ns = end_ns;
}

const struct device_note *cuda_collector_notes(
	const struct cuda_collector *collector, size_t *ret_count)
{
	*ret_count = collector->note_count;
	return collector->notes;
}
