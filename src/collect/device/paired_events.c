/* SPDX-License-Identifier: Apache-2.0 */
/* What a process reports beside its work: clocks, graphs, memory, waits, other calls, unified
 * memory, its GPUs, counts, notes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "collect/device/paired_state.h"

/* One process cannot fill the capture with what it says. */
#define MAX_PROCESS_NOTES 64
/* Pairs of clocks are written no more often. */
#define CLOCK_WRITE_NS NS_PER_S

int paired_add_clock(struct paired_collector *collector, struct paired_process *process,
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
		return paired_drop(collector);
	jumped = paired_clock_add(&process->clock, &pair);
	collector->account->clock_jumps += jumped;
	if (!jumped && process->clock_written_ns &&
		pair.host_ns < process->clock_written_ns + CLOCK_WRITE_NS)
		return 0;
	process->clock_written_ns = pair.host_ns;
	return device_output_event(collector->output, &event);
}

int paired_add_graph(struct paired_collector *collector, struct paired_process *process,
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
		return paired_drop(collector);
	return device_output_event(collector->output, &event);
}

int paired_add_node(struct paired_collector *collector, struct paired_process *process,
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
		return paired_drop(collector);
	memcpy(name, record + 1, record->text_bytes);
	name[record->text_bytes] = '\0';
	return device_output_event(collector->output, &event);
}

/* Reported with the work of the same moment, before the pair of clocks that follows. */
static bool to_host(const struct paired_process *process, uint64_t start, uint64_t end,
	struct host_interval *ret_host)
{
	const struct device_interval device = {
		.start = start, .end = end, .pairs = process->clock.count};

	return start && start <= end && end < DEVICE_MAX_NS &&
	       paired_clock_convert(&process->clock, &device, ret_host) && ret_host->start_ns &&
	       ret_host->start_ns < DEVICE_MAX_NS && ret_host->end_ns < DEVICE_MAX_NS;
}

int paired_add_overhead(struct paired_collector *collector, struct paired_process *process,
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
		return paired_drop(collector);
	event.time_ns = host.start_ns;
	event.overhead.duration_ns = host.end_ns - host.start_ns;
	return device_output_event(collector->output, &event);
}

int paired_add_memory(struct paired_collector *collector, struct paired_process *process,
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
			.gpu = device_gpu_number(record->device),
			.context = record->context,
			.stream = record->stream,
			.memory = record->memory,
			.released = record->released},
	};
	struct host_interval host;

	if (!to_host(process, record->time, record->time, &host) || record->released > 1)
		return paired_drop(collector);
	event.time_ns = host.start_ns;
	return device_output_event(collector->output, &event);
}

/* Of events, and of waits that nothing was waited for in, the time may not be known. */
int paired_add_sync(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_sync *record)
{
	struct capture_device_event event = {
		.kind = CAPTURE_DEVICE_SYNC,
		.pid = process->pid,
		.sync = {.correlation = record->correlation,
			.event_sync = record->event_sync,
			.context = record->context,
			.stream = record->stream,
			.event = record->event,
			.type = record->sync},
	};
	struct host_interval host;

	if (record->sync >= WIRE_SYNC_MAX || record->start > record->end ||
		record->end >= DEVICE_MAX_NS)
		return paired_drop(collector);
	if (to_host(process, record->start, record->end, &host)) {
		event.time_ns = host.start_ns;
		event.sync.duration_ns = host.end_ns - host.start_ns;
	}
	return device_output_event(collector->output, &event);
}

static bool is_unified(const struct wire_device_unified *record)
{
	static const uint8_t causes[WIRE_UNIFIED_MAX] = {
		[WIRE_UNIFIED_TO_DEVICE] = WIRE_MIGRATION_MAX,
		[WIRE_UNIFIED_TO_HOST] = WIRE_MIGRATION_MAX,
		[WIRE_UNIFIED_BETWEEN_DEVICES] = WIRE_MIGRATION_MAX,
		[WIRE_UNIFIED_DEVICE_FAULT] = WIRE_ACCESS_MAX,
		[WIRE_UNIFIED_REMOTE_MAP] = WIRE_MAP_MAX,
	};

	return record->type < WIRE_UNIFIED_MAX &&
	       (!record->cause || record->cause < causes[record->type]) && record->on_host <= 1;
}

int paired_add_unified(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_unified *record)
{
	struct capture_device_event event = {
		.kind = CAPTURE_UNIFIED_MEMORY,
		.pid = process->pid,
		.unified = {.address = record->address,
			.value = record->value,
			.devices = record->devices,
			.from = device_gpu_number(record->from),
			.to = device_gpu_number(record->to),
			.type = record->type,
			.cause = record->cause,
			.on_host = record->on_host},
	};
	struct host_interval host;

	if (!is_unified(record) ||
		!to_host(process, record->start, record->end ? record->end : record->start, &host))
		return paired_drop(collector);
	event.time_ns = host.start_ns;
	event.unified.duration_ns = host.end_ns - host.start_ns;
	return device_output_event(collector->output, &event);
}

static size_t ending(const char *name, size_t length, const char *text)
{
	size_t bytes = strlen(text);

	return length > bytes && memcmp(name + length - bytes, text, bytes) == 0 ? bytes : 0;
}

/* "_v2", "_v11020". */
static size_t version_ending(const char *name, size_t length)
{
	size_t at = length;

	while (at && name[at - 1] >= '0' && name[at - 1] <= '9')
		at--;
	return at < length && at > 2 && name[at - 1] == 'v' && name[at - 2] == '_' ? length - at + 2
										   : 0;
}

/* As the program wrote it: headers of CUDA define "cuMemAlloc" to be "cuMemAlloc_v2". */
static void cut_version(char *name)
{
	size_t length = strlen(name), bytes;

	do {
		bytes = version_ending(name, length)
				?: ending(name, length, "_ptsz") ?: ending(name, length, "_ptds");
		length -= bytes;
	} while (bytes);
	name[length] = '\0';
}

int paired_add_call(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_call *record)
{
	char name[WIRE_DEVICE_CALL_NAME_BYTES + 1];
	const struct capture_device_event event = {
		.kind = CAPTURE_DEVICE_CALL,
		.pid = process->pid,
		.time_ns = record->enter_ns,
		.text = name,
		.call = {.duration_ns = record->exit_ns - record->enter_ns,
			.correlation = record->correlation,
			.tid = record->tid,
			.failed = record->failed},
	};

	if (!record->enter_ns || record->enter_ns > record->exit_ns ||
		record->exit_ns >= DEVICE_MAX_NS || record->text_bytes >= sizeof(name) ||
		record->text_bytes > record->record.length_bytes - sizeof(*record))
		return paired_drop(collector);
	memcpy(name, record + 1, record->text_bytes);
	name[record->text_bytes] = '\0';
	cut_version(name);
	return device_output_event(collector->output, &event);
}

static uint64_t big_endian(const uint8_t *bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < sizeof(value); i++)
		value = value << 8 | bytes[i];
	return value;
}

int paired_add_gpu(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_gpu *record)
{
	const struct capture_device_event event = {
		.kind = CAPTURE_GPU,
		.pid = process->pid,
		.text = device_names_get(
			collector->names, process->pid, WIRE_RECORD_DEVICE_DEVICE, record->id),
		.gpu = {.number = device_gpu_number(record->id),
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
			.core_clock_khz = record->core_clock_khz,
			.is_mig = record->is_mig},
	};

	if (!event.gpu.number)
		return paired_drop(collector);
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

int paired_add_counts(struct paired_collector *collector, struct paired_process *process,
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
		return paired_drop(collector);
	if (memcmp(&event.counts, &process->counts, sizeof(event.counts)) == 0)
		return 0;
	sum_counts(collector->account, &process->counts, &event.counts);
	process->counts = event.counts;
	return device_output_event(collector->output, &event);
}

/* Many processes say the same. */
static int keep_note(struct paired_collector *collector, uint32_t note, const char *text)
{
	struct device_note *kept;

	for (size_t i = 0; i < collector->note_count; i++) {
		kept = &collector->notes[i];
		if (kept->note == note && strcmp(kept->text, text) == 0) {
			kept->count++;
			return 0;
		}
	}
	if (collector->note_count == PAIRED_MAX_NOTES)
		return 0;
	kept = &collector->notes[collector->note_count];
	*kept = (struct device_note){.note = note, .count = 1, .text = strdup(text)};
	if (!kept->text)
		return -ENOMEM;
	collector->note_count++;
	return 0;
}

int paired_add_note(struct paired_collector *collector, struct paired_process *process,
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
		return paired_drop(collector);
	process->notes++;
	result = keep_note(collector, record->id, text);
	return result < 0 ? result : device_output_event(collector->output, &event);
}
