/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/writer/messages.h"

#include <string.h>

#include "capture/device_messages.h"
#include "capture/fields.h"
#include "capture/protobuf.h"

/* Fields whose zero means "unknown" or "none" are left out: absent reads as zero. */
static void put_nonzero(struct strbuf *out, uint32_t number, uint64_t value)
{
	if (value)
		pb_put_u64(out, number, value);
}

static void put_perf_defaults(struct strbuf *defaults, uint64_t period_ns)
{
	size_t perf = pb_begin(defaults, DEFAULTS_PERF_SAMPLE);
	size_t timebase = pb_begin(defaults, PERF_DEFAULTS_TIMEBASE);

	put_nonzero(defaults, TIMEBASE_PERIOD, period_ns);
	pb_put_u64(defaults, TIMEBASE_COUNTER, COUNTER_SW_CPU_CLOCK);
	pb_put_u64(defaults, TIMEBASE_CLOCK, PERF_CLOCK_MONOTONIC);
	pb_end(defaults, timebase);
	pb_end(defaults, perf);
}

static void put_stack_defaults(struct strbuf *defaults)
{
	size_t stack = pb_begin(defaults, DEFAULTS_STACK_SAMPLE), counter;

	pb_put_text(defaults, STACK_DEFAULTS_SOURCE, "sonde.cpu");
	counter = pb_begin(defaults, STACK_DEFAULTS_PRIMARY);
	pb_put_text(defaults, COUNTER_NAME, "cpu-clock");
	pb_put_u64(defaults, COUNTER_UNIT, COUNTER_UNIT_NANOSECONDS);
	pb_end(defaults, counter);
	pb_end(defaults, stack);
}

void put_defaults(struct strbuf *packet, uint64_t period_ns, bool stack_sample)
{
	size_t defaults = pb_begin(packet, PACKET_DEFAULTS);

	if (stack_sample)
		put_stack_defaults(packet);
	else
		put_perf_defaults(packet, period_ns);
	pb_put_u64(packet, DEFAULTS_TIMESTAMP_CLOCK, SAMPLE_CLOCK_ID);
	pb_end(packet, defaults);
}

static void put_clock(struct strbuf *snapshot, uint32_t id, uint64_t time_ns)
{
	size_t clock = pb_begin(snapshot, SNAPSHOT_CLOCKS);

	pb_put_u64(snapshot, CLOCK_ENTRY_ID, id);
	pb_put_u64(snapshot, CLOCK_ENTRY_TIMESTAMP, time_ns);
	if (id == SAMPLE_CLOCK_ID) {
		pb_put_u64(snapshot, CLOCK_ENTRY_INCREMENTAL, true);
		pb_put_u64(snapshot, CLOCK_ENTRY_UNIT_NS, 1);
	}
	pb_end(snapshot, clock);
}

void put_clock_snapshot(struct strbuf *packet, const struct capture_session *session)
{
	size_t snapshot = pb_begin(packet, PACKET_CLOCK_SNAPSHOT);

	put_clock(packet, CLOCK_ID_MONOTONIC, session->start_time_ns);
	if (session->start_realtime_ns)
		put_clock(packet, CLOCK_ID_REALTIME, session->start_realtime_ns);
	if (session->start_boottime_ns)
		put_clock(packet, CLOCK_ID_BOOTTIME, session->start_boottime_ns);
	put_clock(packet, SAMPLE_CLOCK_ID, session->start_time_ns);
	pb_put_u64(packet, SNAPSHOT_PRIMARY, CLOCK_ID_MONOTONIC);
	pb_end(packet, snapshot);
}

void put_system_info(struct strbuf *packet, const struct capture_session *session)
{
	size_t system = pb_begin(packet, PACKET_SYSTEM_INFO);
	size_t utsname = pb_begin(packet, SYSTEM_UTSNAME);

	pb_put_text(packet, UTSNAME_SYSNAME, "Linux");
	pb_put_text(packet, UTSNAME_RELEASE, session->kernel_release);
	pb_put_text(packet, UTSNAME_MACHINE, session->architecture);
	pb_end(packet, utsname);
	put_nonzero(packet, SYSTEM_CPUS, session->cpu_count);
	pb_end(packet, system);
}

static void put_session_clock(struct strbuf *packet, const struct capture_clock *clock)
{
	uint64_t drift_bits;

	if (clock->source == CAPTURE_CLOCK_OWN)
		return;
	pb_put_u64(packet, SESSION_CLOCK_SHIFT, (uint64_t)clock->shift_ns);
	if (clock->drift != 0) {
		memcpy(&drift_bits, &clock->drift, sizeof(drift_bits));
		pb_put_fixed64(packet, SESSION_CLOCK_DRIFT, drift_bits);
		pb_put_u64(packet, SESSION_CLOCK_DRIFT_FROM, clock->drift_from_ns);
	}
	if (clock->error_ns != UINT64_MAX)
		pb_put_u64(packet, SESSION_CLOCK_ERROR, clock->error_ns);
	pb_put_u64(packet, SESSION_CLOCK_SOURCE, (uint64_t)clock->source);
}

void put_session(struct strbuf *packet, const struct capture_session *session)
{
	size_t begin = pb_begin(packet, PACKET_SONDE_SESSION);

	pb_put_text(packet, SESSION_VERSION, session->sonde_version);
	pb_put_text(packet, SESSION_HOST, session->host);
	pb_put_text(packet, SESSION_KERNEL, session->kernel_release);
	pb_put_text(packet, SESSION_ARCHITECTURE, session->architecture);
	for (uint32_t i = 0; session->command && i < session->command_count; i++)
		pb_put_text(packet, SESSION_COMMAND, session->command[i]);
	pb_put_text(packet, SESSION_UNWIND_MODE, session->unwind_mode);
	pb_put_text(packet, SESSION_UNWIND_REASON, session->unwind_mode_reason);
	pb_put_u64(packet, SESSION_START, session->start_time_ns);
	put_nonzero(packet, SESSION_REALTIME, session->start_realtime_ns);
	put_nonzero(packet, SESSION_BOOTTIME, session->start_boottime_ns);
	put_nonzero(packet, SESSION_PERIOD, session->period_ns);
	put_nonzero(packet, SESSION_CPUS, session->cpu_count);
	pb_put_text(packet, SESSION_WAIT_MODE, session->wait_mode);
	put_nonzero(packet, SESSION_WAIT_PERIOD, session->wait_period_ns);
	put_nonzero(packet, SESSION_WAIT_MIN, session->wait_min_ns);
	pb_put_text(packet, SESSION_LAUNCH_STACKS, session->launch_stacks);
	put_nonzero(packet, SESSION_WHOLE_MACHINE, session->whole_machine);
	pb_put_text(packet, SESSION_FILE, session->file);
	put_session_clock(packet, &session->clock);
	pb_end(packet, begin);
}

static void put_process_info(struct strbuf *packet, const struct capture_process *process)
{
	size_t begin = pb_begin(packet, PACKET_SONDE_PROCESS);

	pb_put_u64(packet, PROCESS_INFO_PID, process->pid);
	put_nonzero(packet, PROCESS_INFO_PARENT, process->parent_pid);
	pb_put_text(packet, PROCESS_INFO_CGROUP, process->cgroup);
	if (process->has_rank)
		pb_put_u64(packet, PROCESS_INFO_RANK, process->rank);
	put_nonzero(packet, PROCESS_INFO_WORLD_SIZE, process->world_size);
	pb_end(packet, begin);
}

void put_process(struct strbuf *packet, const struct capture_process *process, uint64_t uuid)
{
	size_t track = pb_begin(packet, PACKET_TRACK_DESCRIPTOR), descriptor;

	pb_put_u64(packet, TRACK_UUID, uuid);
	descriptor = pb_begin(packet, TRACK_PROCESS);
	pb_put_u64(packet, PROCESS_PID, process->pid);
	for (uint32_t i = 0; i < process->cmdline_count; i++)
		pb_put_text(packet, PROCESS_CMDLINE, process->cmdline[i]);
	pb_put_text(packet, PROCESS_NAME, process->name);
	put_nonzero(packet, PROCESS_START_TIME, process->start_time_ns);
	pb_end(packet, descriptor);
	pb_end(packet, track);
	put_process_info(packet, process);
}

void put_process_tree(struct strbuf *packet, const struct capture_process *process)
{
	size_t tree = pb_begin(packet, PACKET_PROCESS_TREE);
	size_t begin = pb_begin(packet, TREE_PROCESS);

	pb_put_u64(packet, TREE_PID, process->pid);
	pb_put_u64(packet, TREE_PARENT, process->parent_pid);
	for (uint32_t i = 0; i < process->cmdline_count; i++)
		pb_put_text(packet, TREE_CMDLINE, process->cmdline[i]);
	pb_end(packet, begin);
	pb_end(packet, tree);
}

void put_thread(struct strbuf *packet, const struct capture_thread *thread, uint64_t uuid)
{
	size_t track = pb_begin(packet, PACKET_TRACK_DESCRIPTOR), descriptor;

	pb_put_u64(packet, TRACK_UUID, uuid);
	descriptor = pb_begin(packet, TRACK_THREAD);
	pb_put_u64(packet, THREAD_PID, thread->pid);
	pb_put_u64(packet, THREAD_TID, thread->tid);
	pb_put_text(packet, THREAD_NAME, thread->name);
	pb_end(packet, descriptor);
	pb_end(packet, track);
}

static void put_size(struct strbuf *packet, uint32_t field, uint64_t x, uint64_t y, uint64_t z)
{
	size_t begin = pb_begin(packet, field);

	pb_put_u64(packet, DIMENSION_X, (uint32_t)x);
	put_nonzero(packet, DIMENSION_Y, (uint32_t)y);
	put_nonzero(packet, DIMENSION_Z, (uint32_t)z);
	pb_end(packet, begin);
}

/* What Perfetto has fields for. It shows no stage without an event id. */
static void put_stage(struct strbuf *packet, const struct capture_device_work *work,
	const struct device_work_names *names, uint64_t event_id)
{
	size_t stage = pb_begin(packet, PACKET_GPU_STAGE), launch;

	pb_put_u64(packet, STAGE_EVENT_ID, event_id);
	pb_put_u64(packet, STAGE_DURATION, work->end_ns - work->start_ns);
	put_nonzero(packet, STAGE_CONTEXT, work->pid);
	pb_put_u64(packet, STAGE_GPU, 0);
	pb_put_u64(packet, STAGE_QUEUE_IID, names->queue);
	pb_put_u64(packet, STAGE_NAME_IID, names->name);
	if (work->global_size[0]) {
		launch = pb_begin(packet, STAGE_LAUNCH);
		put_size(packet, STAGE_GRID, work->global_size[0], work->global_size[1],
			work->global_size[2]);
		if (work->local_size[0])
			put_size(packet, STAGE_GROUP, work->local_size[0], work->local_size[1],
				work->local_size[2]);
		pb_end(packet, launch);
	}
	pb_end(packet, stage);
}

void put_device_work(struct strbuf *packet, const struct capture_device_work *work,
	const struct device_work_names *names, uint64_t event_id)
{
	size_t begin;

	put_stage(packet, work, names, event_id);
	begin = pb_begin(packet, PACKET_SONDE_DEVICE_WORK);
	pb_put_u64(packet, DEVICE_WORK_PID, work->pid);
	/* Also when it is 0: else readers take the event id for it. */
	pb_put_u64(packet, DEVICE_WORK_CORRELATION, work->correlation);
	pb_put_u64(packet, DEVICE_WORK_KIND, work->kind);
	put_nonzero(packet, DEVICE_WORK_QUEUED, work->queued_ns);
	put_nonzero(packet, DEVICE_WORK_SUBMIT, work->submit_ns);
	put_nonzero(packet, DEVICE_WORK_BYTES, work->bytes);
	put_nonzero(packet, DEVICE_WORK_FAILED, work->failed);
	pb_put_u64(packet, DEVICE_WORK_DEVICE_IID, names->device);
	put_nonzero(packet, DEVICE_WORK_QUEUE, work->queue);
	for (uint32_t i = 0; i < 3; i++) {
		if (work->global_size[i] > UINT32_MAX)
			pb_put_u64(packet, DEVICE_WORK_GLOBAL + i, work->global_size[i]);
	}
	put_nonzero(packet, DEVICE_WORK_TID, work->tid);
	put_nonzero(packet, DEVICE_WORK_LAUNCH, work->launch_ns);
	put_nonzero(packet, DEVICE_WORK_LAUNCH_DURATION, work->launch_duration_ns);
	if (work->gpu)
		put_device_work_fields(packet, work);
	pb_end(packet, begin);
}

void put_launch(struct strbuf *packet, const struct capture_launch *launch)
{
	size_t begin = pb_begin(packet, PACKET_SONDE_LAUNCH);

	pb_put_u64(packet, LAUNCH_PID, launch->pid);
	pb_put_u64(packet, LAUNCH_TID, launch->tid);
	put_nonzero(packet, LAUNCH_CORRELATION, launch->correlation);
	pb_put_u64(packet, LAUNCH_KIND, launch->kind);
	pb_put_u64(packet, LAUNCH_DURATION, launch->duration_ns);
	put_nonzero(packet, LAUNCH_UNTIMED, launch->untimed);
	put_nonzero(packet, LAUNCH_QUEUE, launch->queue);
	pb_end(packet, begin);
}

void put_launch_stack(struct strbuf *packet, const struct capture_launch_stack *stack)
{
	size_t begin = pb_begin(packet, PACKET_SONDE_LAUNCH_STACK);

	pb_put_u64(packet, LAUNCH_PID, stack->pid);
	pb_put_u64(packet, LAUNCH_TID, stack->tid);
	pb_put_u64(packet, LAUNCH_CORRELATION, stack->correlation);
	put_nonzero(packet, LAUNCH_STACK_CALLSTACK, stack->callstack);
	put_nonzero(packet, LAUNCH_STACK_SAME_AS, stack->same_as);
	put_nonzero(packet, LAUNCH_STACK_IS_CHECK, stack->is_check);
	pb_end(packet, begin);
}

static void put_annotation(
	struct strbuf *packet, const struct capture_range_field *field, uint64_t name)
{
	size_t begin = pb_begin(packet, EVENT_ANNOTATION);

	pb_put_u64(packet, ANNOTATION_NAME_IID, name);
	switch (field->type) {
	case WIRE_RANGE_U64:
		pb_put_u64(packet, ANNOTATION_UINT, field->value);
		break;
	case WIRE_RANGE_I64:
		pb_put_u64(packet, ANNOTATION_INT, field->value);
		break;
	case WIRE_RANGE_DOUBLE:
		pb_put_fixed64(packet, ANNOTATION_DOUBLE, field->value);
		break;
	default:
		pb_put_text(packet, ANNOTATION_TEXT, field->text);
	}
	pb_end(packet, begin);
}

void put_range_event(struct strbuf *packet, const struct capture_range_event *event,
	const struct range_event_names *names)
{
	size_t begin = pb_begin(packet, PACKET_TRACK_EVENT);

	put_nonzero(packet, EVENT_CATEGORY_IID, names->domain);
	put_nonzero(packet, EVENT_CATEGORY_IID, names->category);
	for (uint32_t i = 0; i < event->field_count; i++)
		put_annotation(packet, &event->fields[i], names->fields[i]);
	pb_put_u64(packet, EVENT_TYPE, event->kind);
	put_nonzero(packet, EVENT_NAME_IID, names->name);
	pb_put_u64(packet, EVENT_TRACK, event->track);
	pb_end(packet, begin);
}

/* Of a track with a name of its own; parent 0: it has none. Returns what pb_end() wants. */
static size_t begin_track(struct strbuf *packet, uint64_t uuid, uint64_t parent, const char *name)
{
	size_t begin = pb_begin(packet, PACKET_TRACK_DESCRIPTOR);

	pb_put_u64(packet, TRACK_UUID, uuid);
	pb_put_text(packet, TRACK_NAME, name);
	put_nonzero(packet, TRACK_PARENT, parent);
	return begin;
}

void put_child_track(struct strbuf *packet, uint64_t uuid, uint64_t parent, const char *name)
{
	pb_end(packet, begin_track(packet, uuid, parent, name));
}

void put_counter_track(struct strbuf *packet, uint64_t uuid, uint64_t parent, const char *name)
{
	size_t begin = begin_track(packet, uuid, parent, name);

	pb_put_text(packet, TRACK_COUNTER, ""); /* a message without fields */
	pb_end(packet, begin);
}

void put_power_track(struct strbuf *packet, uint64_t uuid, const char *name)
{
	size_t begin = begin_track(packet, uuid, 0, name), counter;

	counter = pb_begin(packet, TRACK_COUNTER);
	pb_put_text(packet, COUNTER_TRACK_UNIT_NAME, "W");
	pb_end(packet, counter);
	pb_put_u64(packet, TRACK_REPEATS, true);
	pb_end(packet, begin);
}

void put_counter(
	struct strbuf *packet, const struct capture_counter *counter, uint64_t track, uint64_t name)
{
	size_t begin = pb_begin(packet, PACKET_TRACK_EVENT);
	uint64_t bits;

	memcpy(&bits, &counter->value, sizeof(bits));
	pb_put_u64(packet, EVENT_TYPE, EVENT_TYPE_COUNTER);
	put_nonzero(packet, EVENT_NAME_IID, name);
	pb_put_u64(packet, EVENT_TRACK, track);
	pb_put_fixed64(packet, EVENT_COUNTER_DOUBLE, bits);
	pb_end(packet, begin);
}

void put_repeating_track(struct strbuf *packet, uint64_t uuid, uint64_t parent, const char *name)
{
	size_t begin = begin_track(packet, uuid, parent, name);

	pb_put_u64(packet, TRACK_REPEATS, true);
	pb_end(packet, begin);
}

void put_window(struct strbuf *packet, const struct capture_window *window)
{
	size_t begin = pb_begin(packet, PACKET_SONDE_WINDOW);

	pb_put_u64(packet, WINDOW_NUMBER, window->number);
	pb_put_u64(packet, WINDOW_BEGIN, window->begin_ns);
	put_nonzero(packet, WINDOW_END, window->end_ns);
	if (window->last_step >= window->first_step) {
		pb_put_u64(packet, WINDOW_FIRST_STEP, window->first_step);
		pb_put_u64(packet, WINDOW_LAST_STEP, window->last_step);
	}
	put_nonzero(packet, WINDOW_OPENED_BY, window->opened_by);
	put_nonzero(packet, WINDOW_CLOSED_BY, window->closed_by);
	pb_put_text(packet, WINDOW_LABEL, window->label);
	put_nonzero(packet, WINDOW_LEADER, window->leader_pid);
	pb_end(packet, begin);
}

void put_slice_begin(
	struct strbuf *packet, uint64_t track, uint64_t name_iid, const struct slice_flow *flow)
{
	size_t begin = pb_begin(packet, PACKET_TRACK_EVENT);

	pb_put_u64(packet, EVENT_TYPE, CAPTURE_RANGE_BEGIN);
	pb_put_u64(packet, EVENT_NAME_IID, name_iid);
	pb_put_u64(packet, EVENT_TRACK, track);
	if (flow && flow->id)
		pb_put_fixed64(packet, flow->ends ? EVENT_TERMINATING_FLOW : EVENT_FLOW, flow->id);
	pb_end(packet, begin);
}

void put_slice_end(struct strbuf *packet, uint64_t track)
{
	size_t begin = pb_begin(packet, PACKET_TRACK_EVENT);

	pb_put_u64(packet, EVENT_TYPE, CAPTURE_RANGE_END);
	pb_put_u64(packet, EVENT_TRACK, track);
	pb_end(packet, begin);
}

void put_step(struct strbuf *packet, const struct capture_step *step, uint64_t name_iid,
	uint64_t number_iid, uint64_t track)
{
	const struct capture_range_field number = {.type = WIRE_RANGE_U64, .value = step->number};
	size_t begin = pb_begin(packet, PACKET_TRACK_EVENT);

	put_annotation(packet, &number, number_iid);
	pb_put_u64(packet, EVENT_TYPE, CAPTURE_RANGE_BEGIN);
	pb_put_u64(packet, EVENT_NAME_IID, name_iid);
	pb_put_u64(packet, EVENT_TRACK, track);
	pb_end(packet, begin);
	begin = pb_begin(packet, PACKET_SONDE_STEP);
	pb_put_u64(packet, STEP_PID, step->pid);
	pb_put_u64(packet, STEP_TID, step->tid);
	pb_put_u64(packet, STEP_NUMBER, step->number);
	pb_put_u64(packet, STEP_NAME_IID, name_iid);
	pb_end(packet, begin);
}

static void put_range_stats(struct strbuf *message, const struct capture_range_stats *ranges)
{
	uint64_t values[CAPTURE_RANGE_STATS];
	size_t begin;

	memcpy(values, ranges, sizeof(values));
	if (!ranges->events && !ranges->calls_dropped)
		return;
	begin = pb_begin(message, STATS_RANGES);
	for (uint32_t i = 0; i < CAPTURE_RANGE_STATS; i++)
		put_nonzero(message, RANGE_STATS_FIRST + i, values[i]);
	pb_end(message, begin);
}

/* Absent when there is nothing to say. */
static void put_device_stats(struct strbuf *message, const struct capture_device_stats *device)
{
	uint64_t values[CAPTURE_DEVICE_STATS];
	size_t begin;

	memcpy(values, device, sizeof(values));
	if (!device->processes)
		return;
	begin = pb_begin(message, STATS_DEVICE);
	for (uint32_t i = 0; i < CAPTURE_DEVICE_STATS; i++)
		put_nonzero(message, DEVICE_STATS_FIRST + i, values[i]);
	pb_end(message, begin);
}

/* Stacks by reason: only those that there are. */
static void put_counts(
	struct strbuf *message, uint32_t field, const uint64_t *stacks, uint32_t reason_count)
{
	for (uint32_t reason = 0; reason < reason_count; reason++) {
		size_t begin;

		if (!stacks[reason])
			continue;
		begin = pb_begin(message, field);
		pb_put_u64(message, STOP_REASON, reason);
		pb_put_u64(message, STOP_STACKS, stacks[reason]);
		pb_end(message, begin);
	}
}

static void put_losses(struct strbuf *message, const struct capture_stats *stats)
{
	for (uint32_t i = 0; i < stats->loss_count; i++) {
		size_t begin = pb_begin(message, STATS_LOSSES);

		pb_put_text(message, LOSS_WHERE, stats->losses[i].where);
		pb_put_u64(message, LOSS_CPU, stats->losses[i].cpu);
		pb_put_u64(message, LOSS_COUNT, stats->losses[i].count);
		pb_end(message, begin);
	}
}

void put_stats(struct strbuf *message, const struct capture_stats *stats)
{
	pb_put_u64(message, STATS_END, stats->end_time_ns);
	pb_put_u64(message, STATS_SAMPLES, stats->samples);
	pb_put_u64(message, STATS_SAMPLES_LOST, stats->samples_lost);
	put_counts(message, STATS_BY_STOP, stats->stacks_by_stop, WIRE_STOP_MAX);
	pb_put_u64(message, STATS_USER_FRAMES, stats->user_frames);
	pb_put_u64(message, STATS_KERNEL_FRAMES, stats->kernel_frames);
	put_nonzero(message, STATS_BPF_RUNS, stats->bpf_run_count);
	put_nonzero(message, STATS_BPF_TIME, stats->bpf_run_time_ns);
	pb_put_u64(message, STATS_USER_UNWOUND, stats->stacks_unwound_in_user_space);
	pb_put_u64(message, STATS_CPU_TIME, stats->collector_cpu_ns);
	pb_put_u64(message, STATS_PEAK_RSS, stats->collector_peak_rss_bytes);
	pb_put_u64(message, STATS_TABLES_BUILT, stats->tables_built);
	pb_put_u64(message, STATS_TABLES_CACHED, stats->tables_from_cache);
	pb_put_u64(message, STATS_TABLE_TIME, stats->table_build_ns);
	pb_put_u64(message, STATS_BYTES_WRITTEN, stats->bytes_written);
	put_losses(message, stats);
	for (uint32_t i = 0; i < stats->note_count; i++)
		pb_put_text(message, STATS_NOTES, stats->notes[i]);
	if (stats->exit_status >= 0)
		pb_put_u64(message, STATS_EXIT_STATUS, (uint32_t)stats->exit_status);
	pb_put_u64(message, STATS_COMPLETE, stats->complete);
	put_counts(message, STATS_BY_PYTHON, stats->stacks_by_python, WIRE_PYTHON_MAX);
	put_nonzero(message, STATS_PYTHON_FRAMES, stats->python_frames);
	put_nonzero(message, STATS_WAIT_SAMPLES, stats->wait_samples);
	put_nonzero(message, STATS_WAITED, stats->waited_ns);
	put_nonzero(message, STATS_WAIT_RUNS, stats->wait_run_count);
	put_nonzero(message, STATS_WAIT_TIME, stats->wait_run_time_ns);
	put_nonzero(message, STATS_START_CPU_TIME, stats->collector_start_cpu_ns);
	put_nonzero(message, STATS_END_CPU_TIME, stats->collector_end_cpu_ns);
	put_device_stats(message, &stats->device);
	put_range_stats(message, &stats->ranges);
}
