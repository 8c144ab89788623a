/* SPDX-License-Identifier: Apache-2.0 */
/* Device work of a session: the library for the command, its rings, and the stacks of launches. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/hooks/python_hooks.h"
#include "collect/session/inject_library.h"
#include "collect/session/internal.h"
#include "wire/api.h"

/*
 * How drivers and headers find the library that sonde has loaded into the command: one
 * variable each. docs/adding-a-runtime.md has the other steps.
 */
static const struct door {
	const char *variable;
	const char
		*lost; /* what is not recorded where another tool is named; NULL: a list of tools */
	bool is_risky; /* the vendor's libraries end a program in which they cannot use it */
} doors[] = {
	{.variable = "OPENCL_LAYERS"},
	{.variable = "CUDA_INJECTION64_PATH", .lost = "work of CUDA devices is not recorded"},
	{.variable = "NVTX_INJECTION64_PATH", .lost = "NVTX ranges are not recorded"},
	{.variable = "ROCP_TOOL_LIBRARIES", .is_risky = true},
};

_Static_assert(ARRAY_SIZE(doors) <= SESSION_DOORS_MAX, "each may have a note");

/* ---- the library and the command's environment ---- */

static int add_variable(struct session_device *device, const char *name, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(device->environment) - 1; i++) {
		if (device->environment[i])
			continue;
		return asprintf(&device->environment[i], "%s=%s", name, value) < 0 ? -ENOMEM : 0;
	}
	return -ENOMEM;
}

/* In a list ours goes behind those that are there; where one alone can be named, it stays. */
static int add_door(
	struct session_device *device, const struct door *door, struct session_door_note *note)
{
	const char *there = getenv(door->variable);
	_cleanup_strbuf_ struct strbuf value = {0};
	int r;

	if (there && *there && !strstr(there, INJECT_LIBRARY)) {
		note->is_of_work = !door->lost;
		if (door->lost) {
			errmsg_set(&note->text, 0,
				"%s: %s names another tool, %s; record without it", door->lost,
				door->variable, there);
			return 0;
		}
		errmsg_set(&note->text, 0, "%s was set to %s; sonde was added behind it",
			door->variable, there);
		strbuf_addf(&value, "%s:", there);
	}
	strbuf_add(&value, device->library);
	r = strbuf_status(&value);
	if (r < 0)
		return r;
	return add_variable(device, door->variable, strbuf_cstr(&value));
}

/* A program that says ranges and steps by itself finds the library; others have it loaded. */
static int set_environment(struct session_device *device, bool opens_risky)
{
	int r = add_variable(device, "SONDE_SESSION", target_rings_folder(device->rings));

	if (r == 0 && device->library)
		r = add_variable(device, "SONDE_LIBRARY", device->library);
	if (!device->is_recorded)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(doors) && r == 0; i++)
		if (!doors[i].is_risky || opens_risky)
			r = add_door(device, &doors[i], &device->door_notes[i]);
	return r;
}

/* Without the package the recording has everything but what hooks would add. */
static int add_hooks(struct session_device *device, const char *groups)
{
	_cleanup_free_ char *folder = NULL;
	_cleanup_strbuf_ struct strbuf path = {0}, names = {0};
	struct errmsg reason;
	int result;

	if (!groups || strcmp(groups, PYTHON_HOOKS_NONE) == 0)
		return 0;
	if (python_package_find(&folder, &reason) < 0) {
		errmsg_set(
			&device->hooks_note, 0, "Python programs have no hooks: %s", reason.text);
		return 0;
	}
	result = python_hooks_path(folder, &path);
	if (result == 0)
		result = add_variable(device, "PYTHONPATH", strbuf_cstr(&path));
	if (result == 0)
		result = python_hooks_groups(groups, &names);
	if (result == 0)
		result = add_variable(device, "SONDE_HOOKS", strbuf_cstr(&names));
	return result;
}

static int make_collectors(struct session *session)
{
	struct session_device *device = &session->device;
	int result = device_collector_new(&device->collector, session->writer);

	if (result == 0)
		result = launch_records_new(&device->launch_records, session->writer);
	if (result == 0)
		result = range_collector_new(&device->ranges, session->writer);
	if (result < 0)
		return result;
	device_collector_set_windows(device->collector, &session->windows.list);
	range_collector_set_windows(device->ranges, &session->windows.list);
	return 0;
}

/* A live view that is not kept has no folder. */
void session_describe_device(struct session *session)
{
	const struct session_options *options = session->options;
	struct session_device *device = &session->device;

	if (options->live.visitor && !options->live.is_kept)
		return;
	device->gate = (struct target_gate_options){
		.graph_mode = (__u8)options->graph_mode,
		.tracer_mode = (__u8)options->tracer_mode,
		.call_mode = (__u8)options->call_mode,
		.samples_pcs = options->samples_pcs,
		.unified_memory = options->unified_memory,
		.launch_times = options->launch_times,
		.device_graphs = options->device_graphs,
		.pm_interval_us = options->pm_interval_us,
		.schedule = options->window.schedule,
		.step_pattern = options->window.step_on,
		.is_closed = options->window.trigger != CAPTURE_TRIGGER_NONE,
	};
	device->gate.schedule.max_steps = options->window.max_steps;
	session->settings.gate = &device->gate;
	if (inject_library_find(&device->library) == 0)
		session->settings.library = device->library;
	else if (options->command)
		errmsg_set(&device->note, 0,
			"device work is not recorded: " INJECT_LIBRARY
			" is not beside sonde; install sonde again");
}

/* Processes that are attached to have a folder, too: they may say ranges and steps by themselves.
 */
int session_prepare_device(struct session *session)
{
	const struct session_options *options = session->options;
	struct session_device *device = &session->device;
	int r;

	device->rings = session->sources.offered.rings;
	if (!device->rings) {
		if (session->sources.offered.why_no_rings.text[0])
			device->note = session->sources.offered.why_no_rings;
		return 0;
	}
	device->is_recorded =
		options->command && device->library && options->scope != SESSION_SCOPE_CPU;
	r = make_collectors(session);
	if (r < 0)
		return r;
	if (options->scope == SESSION_SCOPE_LAUNCH)
		target_gate_set_untimed(target_rings_gate(device->rings));
	r = set_environment(device, options->opens_risky_doors);
	if (r == 0 && device->library)
		r = add_hooks(device, options->hooks);
	session->surroundings.environment = device->environment;
	return r;
}

/* ---- stacks of launches ---- */

/* The kernel takes the stacks, at the marker. */
static bool open_launches(struct session *session)
{
	source_set_open(&session->sources, SOURCE_AT_LAUNCH, &session->settings,
		&session->device.stacks_note);
	return session->sources.offered.launch_stacks;
}

static enum wire_launch_stacks choose_launch_stacks(struct session *session)
{
	struct errmsg *note = &session->device.stacks_note;
	struct errmsg reason;

	switch (session->options->launch_stacks) {
	case SESSION_LAUNCH_STACKS_OFF:
		return WIRE_LAUNCH_STACKS_OFF;
	case SESSION_LAUNCH_STACKS_INPROCESS:
		return WIRE_LAUNCH_STACKS_COPY;
	case SESSION_LAUNCH_STACKS_BPF:
		return open_launches(session) ? WIRE_LAUNCH_STACKS_MARKER : WIRE_LAUNCH_STACKS_OFF;
	case SESSION_LAUNCH_STACKS_AUTO:
		break;
	}
	if (session->sources.offered.bpf && open_launches(session))
		return WIRE_LAUNCH_STACKS_MARKER;
	reason = *note;
	if (reason.text[0])
		errmsg_set(
			note, 0, "programs copied the stacks of their launches: %s", reason.text);
	else
		errmsg_set(note, 0,
			"programs copied the stacks of their launches, which takes longer than in "
			"the BPF mode%s%s",
			session->result->mode_reason.text[0] ? ": " : "",
			session->result->mode_reason.text);
	return WIRE_LAUNCH_STACKS_COPY;
}

/* Asks for the unwind tables of all files of the process; true when all are there. */
static bool has_tables(struct session *session, uint32_t pid)
{
	const struct process *process = address_spaces_find(session->spaces, pid);
	bool has_all = true;

	for (size_t i = 0; process && i < process->mapping_count; i++) {
		const uint64_t *words;
		uint64_t word_count;

		if (process->mappings[i].kind == MAPPING_FILE &&
			file_store_table(session->files, process->mappings[i].file, &words,
				&word_count) == FILE_PENDING)
			has_all = false;
	}
	return has_all;
}

/*
 * Whether the process's address space is known as it is since its file was made: what was known
 * before may be that of the program which the process ran then.
 */
static bool send_facts(struct session *session, const struct target_process *process)
{
	const struct process *known = address_spaces_find(session->spaces, process->pid);
	int result;

	if (!known || process->start_time_ns >= session->ordered_until_ns)
		return false;
	map_guard_enter(process->guard);
	result = launch_records_send_facts(session->device.launch_records, process->facts,
		process->start_time_ns, known, session->python);
	map_guard_leave();
	session_keep_failure(session, result);
	return true;
}

/* Before the first file was found no process counts as ready. */
static bool has_processes(struct target_rings *rings)
{
	bool is_used;

	target_rings_lock(rings);
	is_used = target_rings_is_used(rings);
	target_rings_unlock(rings);
	return is_used;
}

/*
 * Programs learn what their launches need. When the first one that launches is seen, which waits
 * for it, the stacks are prepared: most recordings never need the BPF program. With the tables
 * there, no launch has to carry a copy of its stack.
 */
static void start_launches(struct session *session)
{
	struct session_device *device = &session->device;
	struct target_process process;
	bool is_ready = true;
	size_t position = 0;

	if (!target_gate_is_launching(target_rings_gate(device->rings)) ||
		!has_processes(device->rings))
		return;
	if (!device->tried_launches) {
		target_gate_set_launch_probe(
			target_rings_gate(device->rings), WIRE_LAUNCH_PROBE_LOADS);
		target_gate_set_stacks(target_rings_gate(device->rings),
			device->is_recorded ? choose_launch_stacks(session)
					    : WIRE_LAUNCH_STACKS_OFF,
			!session->options->launch_memo_off);
		target_gate_set_launch_probe(
			target_rings_gate(device->rings), WIRE_LAUNCH_PROBE_DECIDED);
	}
	device->tried_launches = true;
	target_rings_lock(device->rings);
	while (target_rings_next(device->rings, &position, &process)) {
		if (!process.facts)
			continue;
		is_ready = send_facts(session, &process) && is_ready;
		if (session->sources.offered.launch_stacks && !device->is_ready)
			is_ready = has_tables(session, process.pid) && is_ready;
	}
	if (is_ready && !device->is_ready)
		target_gate_set_ready(target_rings_gate(device->rings));
	device->is_ready = device->is_ready || is_ready;
	target_rings_unlock(device->rings);
}

/* ---- at work ---- */

void session_on_target_record(void *context, uint32_t pid, const struct wire_record *record)
{
	struct session *session = context;
	struct session_device *device = &session->device;

	if (record->type == WIRE_RECORD_STEP) {
		session_keep_failure(
			session, session_windows_step(session, pid, (const void *)record));
		return;
	}
	session_keep_failure(session, pipeline_see_process(session->pipeline, pid));
	session_keep_failure(
		session, launch_records_is_one(record)
				 ? launch_records_add(device->launch_records, session->pipeline,
					   session->python, pid, record)
			 : range_collector_takes(record)
				 ? range_collector_add(device->ranges, pid, record)
				 : device_collector_add(device->collector, pid, record));
}

/* The program that the process ran then has the latest of its files from before. */
void session_on_launch_stack(
	void *context, const struct wire_sample *sample, const uint64_t *frames, size_t frame_count)
{
	struct session *session = context;
	struct target_process process, latest = {0};
	size_t position = 0;

	if (!session->device.rings)
		return;
	target_rings_lock(session->device.rings);
	while (target_rings_next(session->device.rings, &position, &process)) {
		if (process.pid == sample->pid && process.start_time_ns <= sample->time_ns &&
			process.start_time_ns >= latest.start_time_ns)
			latest = process;
	}
	if (latest.facts) {
		map_guard_enter(latest.guard);
		launch_records_add_hint(latest.facts, sample->correlation, frames, frame_count);
		map_guard_leave();
	}
	target_rings_unlock(session->device.rings);
}

void session_on_target_read(void *context)
{
	struct session *session = context;

	session->device.is_read = true;
}

int session_collect_device(struct session *session, bool everything)
{
	struct session_device *device = &session->device;
	int r;

	if (!device->rings)
		return 0;
	if (!session->sampling_ended)
		start_launches(session);
	if (!device->is_read)
		return 0;
	device->is_read = false;
	r = range_collector_write(device->ranges, everything);
	if (r < 0)
		return r;
	return device_collector_write(
		device->collector, everything ? UINT64_MAX : monotonic_now_ns());
}

int session_read_hooks(struct session *session)
{
	const struct session_device *device = &session->device;

	return device->rings ? hook_table_read(
				       &session->result->hooks, target_rings_folder(device->rings))
			     : 0;
}

void session_close_device(struct session *session)
{
	struct session_device *device = &session->device;

	device->collector = device_collector_free(device->collector);
	device->launch_records = launch_records_free(device->launch_records);
	device->ranges = range_collector_free(device->ranges);
	free(TAKE_PTR(device->library));
	for (size_t i = 0; i < ARRAY_SIZE(device->environment); i++)
		free(TAKE_PTR(device->environment[i]));
}

void session_fill_device_stats(struct session *session, const struct source_account *account,
	struct capture_device_stats *ret_stats)
{
	const struct session_device *device = &session->device;
	const struct target_rings_account *rings = &account->rings;
	const struct launch_records_account *launched;
	const struct device_account *collected;

	*ret_stats = (struct capture_device_stats){0};
	if (!device->rings)
		return;
	collected = device_collector_account(device->collector);
	launched = launch_records_account(device->launch_records);
	*ret_stats = (struct capture_device_stats){
		.processes = rings->processes,
		.launches = collected->launches,
		.works = collected->works,
		.stacks = pipeline_account(session->pipeline)->launch_stacks,
		/* A process that tries again counts each try. */
		.records_lost = rings->lost - MIN(rings->lost, collected->repeated),
		.records_without_ring = rings->no_ring,
		.records_damaged = rings->damaged + rings->refused + collected->malformed +
				   launched->malformed,
		.launches_untimed = collected->untimed,
		.stacks_lost = account->launch_stacks_lost + rings->no_copy,
		.started_before_launch = collected->started_before_launch,
		.clock_error_ns = collected->clock_error_ns,
		.stack_run_count = account->launching.count,
		.stack_run_time_ns = account->launching.time_ns,
		.stacks_known = launched->same,
		.stacks_checked = launched->checked,
		.stacks_copied = launched->copies,
	};
}

void session_fill_range_stats(struct session *session, const struct source_account *account,
	struct capture_range_stats *ret_stats)
{
	const struct session_device *device = &session->device;

	*ret_stats = (struct capture_range_stats){0};
	if (!device->rings)
		return;
	range_collector_account(device->ranges, ret_stats);
	ret_stats->calls_dropped = account->rings.no_range;
}
