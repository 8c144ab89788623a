/* SPDX-License-Identifier: Apache-2.0 */
/* Device work of a session: the library for the command, its rings, and the stacks of launches. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/device/reader.h"
#include "collect/hooks/python_hooks.h"
#include "collect/session/inject_library.h"
#include "collect/session/internal.h"
#include "sources/cpu/bpf_sampler.h"
#include "wire/api.h"

#define LAYERS_VARIABLE "OPENCL_LAYERS"
#define NVTX_VARIABLE   "NVTX_INJECTION64_PATH"
#define CUDA_VARIABLE   "CUDA_INJECTION64_PATH"
/* At the end, processes have so long to tell what they hold back. */
#define DRAIN_NS NS_PER_S

/* ---- the library and the command's environment ---- */

/* A list of layers: ours goes behind those that are there. */
static int layers_value(struct session_device *device, struct strbuf *out)
{
	const char *layers = getenv(LAYERS_VARIABLE);

	if (layers && *layers && !strstr(layers, INJECT_LIBRARY)) {
		strbuf_addf(out, "%s:", layers);
		errmsg_set(&device->layers_note, 0,
			LAYERS_VARIABLE " was set to %s; sonde's layer was added behind it",
			layers);
	}
	strbuf_add(out, device->library);
	return strbuf_status(out);
}

/* The tool that a variable names, where one alone can be named; NULL: none, or sonde. */
static const char *other_tool(const char *variable)
{
	const char *named = getenv(variable);

	return named && *named && !strstr(named, INJECT_LIBRARY) ? named : NULL;
}

static int add_variable(struct session_device *device, const char *name, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(device->environment) - 1; i++) {
		if (device->environment[i])
			continue;
		return asprintf(&device->environment[i], "%s=%s", name, value) < 0 ? -ENOMEM : 0;
	}
	return -ENOMEM;
}

static int add_cuda(struct session_device *device)
{
	const char *other = other_tool(CUDA_VARIABLE);

	if (!other)
		return add_variable(device, CUDA_VARIABLE, device->library);
	errmsg_set(&device->cuda_note, 0,
		"work of CUDA devices is not recorded: " CUDA_VARIABLE
		" names another tool, %s; record without it",
		other);
	return 0;
}

static int add_nvtx(struct session_device *device)
{
	const char *other = other_tool(NVTX_VARIABLE);

	if (!other)
		return add_variable(device, NVTX_VARIABLE, device->library);
	errmsg_set(&device->nvtx_note, 0,
		"NVTX ranges are not recorded: " NVTX_VARIABLE
		" was set to %s, which takes them; unset it to have them here",
		other);
	return 0;
}

/* A program that says ranges and steps by itself finds the library; others have it loaded. */
static int set_environment(struct session_device *device)
{
	_cleanup_strbuf_ struct strbuf layers = {0};
	int result = add_variable(device, "SONDE_SESSION", target_rings_folder(device->rings));

	if (device->library)
		result = result ?: add_variable(device, "SONDE_LIBRARY", device->library);
	if (result < 0 || !device->is_recorded)
		return result;
	result = layers_value(device, &layers);
	result = result ?: add_variable(device, LAYERS_VARIABLE, strbuf_cstr(&layers));
	result = result ?: add_cuda(device);
	return result ?: add_nvtx(device);
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
	result = result ?: add_variable(device, "PYTHONPATH", strbuf_cstr(&path));
	result = result ?: python_hooks_groups(groups, &names);
	return result ?: add_variable(device, "SONDE_HOOKS", strbuf_cstr(&names));
}

static int make_folder(struct session *session, struct errmsg *err)
{
	const struct session_options *options = session->options;
	struct target_gate_options gate = {
		.graph_mode = (__u8)options->graph_mode,
		.schedule = options->window.schedule,
		.step_pattern = options->window.step_on,
		.is_closed = options->window.trigger != CAPTURE_TRIGGER_NONE,
	};

	gate.schedule.max_steps = options->window.max_steps;
	return target_rings_open(&session->device.rings, &gate, err);
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

/* For programs that join the session later, without its variables. */
static int link_library(const struct session_device *device)
{
	_cleanup_strbuf_ struct strbuf path = {0};

	strbuf_addf(&path, "%s/" WIRE_API_LIBRARY, target_rings_folder(device->rings));
	if (strbuf_status(&path) < 0)
		return -ENOMEM;
	return symlink(device->library, strbuf_cstr(&path)) < 0 ? -errno : 0;
}

static int prepare(struct session *session, struct errmsg *err)
{
	struct session_device *device = &session->device;
	bool has_library = inject_library_find(&device->library) == 0;
	int result;

	device->is_recorded = session->options->command && has_library &&
			      session->options->scope != SESSION_SCOPE_CPU;
	if (session->options->command && !has_library)
		errmsg_set(err, -ENOENT,
			"device work is not recorded: " INJECT_LIBRARY
			" is not beside sonde; install sonde again");
	result = make_folder(session, err);
	if (result == 0 && has_library)
		result = link_library(device);
	if (result == 0)
		result = make_collectors(session);
	if (result == 0 && session->options->scope == SESSION_SCOPE_LAUNCH)
		target_gate_set_untimed(target_rings_gate(device->rings));
	if (result == 0)
		result = set_environment(device);
	return result < 0 || !device->library ? result : add_hooks(device, session->options->hooks);
}

/* Processes that are attached to have a folder, too: they may say ranges and steps by themselves.
 */
void session_prepare_device(struct session *session)
{
	struct session_device *device = &session->device;

	if (session->options->live.visitor)
		return;
	if (prepare(session, &device->note) < 0) {
		device->rings = target_rings_free(device->rings);
		device->is_recorded = false;
		return;
	}
	session->surroundings.environment = device->environment;
}

/* ---- stacks of launches ---- */

/* The kernel takes the stacks, at the marker. */
static int open_probe(struct session *session)
{
	struct session_device *device = &session->device;
	struct bpf_sampler_parts parts;
	int result;

	if (session->sampler != &bpf_sampler)
		return errmsg_set(&device->stacks_note, -EPERM,
			"launches of device work have no stacks: --launch-stacks bpf needs the BPF "
			"mode; run sonde with sudo, or leave the option out");
	bpf_sampler_parts(session->sampler_state, &parts);
	result = launch_source_open(&device->launches, &parts, &device->stacks_note);
	if (result == 0)
		result = launch_source_start(
			device->launches, device->library, &device->stacks_note);
	if (result < 0)
		device->launches = launch_source_free(device->launches);
	return result;
}

static enum wire_launch_stacks open_launches(struct session *session)
{
	struct errmsg *note = &session->device.stacks_note;
	struct errmsg reason;

	switch (session->options->launch_stacks) {
	case SESSION_LAUNCH_STACKS_OFF:
		return WIRE_LAUNCH_STACKS_OFF;
	case SESSION_LAUNCH_STACKS_INPROCESS:
		return WIRE_LAUNCH_STACKS_COPY;
	case SESSION_LAUNCH_STACKS_BPF:
		return open_probe(session) < 0 ? WIRE_LAUNCH_STACKS_OFF : WIRE_LAUNCH_STACKS_MARKER;
	case SESSION_LAUNCH_STACKS_AUTO:
		break;
	}
	if (session->sampler == &bpf_sampler && open_probe(session) == 0)
		return WIRE_LAUNCH_STACKS_MARKER;
	reason = *note;
	if (reason.text[0])
		errmsg_set(
			note, 0, "programs copied the stacks of their launches: %s", reason.text);
	else
		errmsg_set(note, 0,
			"programs copied the stacks of their launches, which takes longer than the "
			"BPF mode does; for that run sonde with sudo");
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
static bool tell_facts(struct session *session, const struct target_process *process)
{
	const struct process *known = address_spaces_find(session->spaces, process->pid);
	int result;

	if (!known || process->start_time_ns >= session->ordered_until_ns)
		return false;
	map_guard_enter(process->guard);
	result = launch_records_tell(session->device.launch_records, process->facts,
		process->start_time_ns, known, session->python);
	map_guard_leave();
	session_keep_failure(session, result);
	return true;
}

/*
 * Programs are told what their launches need. When the first one that launches is seen, which waits
 * for it, the stacks are prepared: most recordings never need the BPF program. With the tables
 * there, no launch has to carry a copy of its stack.
 */
static void start_launches(struct session *session)
{
	struct session_device *device = &session->device;
	struct target_process process;
	bool is_ready = true;
	size_t position = 0;

	if (!target_gate_is_launching(target_rings_gate(device->rings)))
		return;
	if (!device->tried_launches)
		target_gate_set_stacks(target_rings_gate(device->rings),
			device->is_recorded ? open_launches(session) : WIRE_LAUNCH_STACKS_OFF,
			!session->options->launch_memo_off);
	device->tried_launches = true;
	device_reader_lock(device->reader);
	while (target_rings_next(device->rings, &position, &process)) {
		if (!process.facts)
			continue;
		is_ready = tell_facts(session, &process) && is_ready;
		if (device->launches && !device->is_ready)
			is_ready = has_tables(session, process.pid) && is_ready;
	}
	if (is_ready && !device->is_ready)
		target_gate_set_ready(target_rings_gate(device->rings));
	device->is_ready = device->is_ready || is_ready;
	device_reader_unlock(device->reader);
}

/* ---- at work ---- */

/* Programs copy no more stacks when they have been told how the first were unwound. */
int session_device_timeout_ms(const struct session *session, int otherwise)
{
	const struct session_device *device = &session->device;

	return device->reader ? MIN(otherwise, device->launches ? 10 : 2) : otherwise;
}

static void on_device_record(void *context, uint32_t pid, const struct wire_record *record)
{
	struct session *session = context;
	struct session_device *device = &session->device;

	if (record->type == WIRE_RECORD_STEP) {
		session_keep_failure(
			session, session_windows_step(session, pid, (const void *)record));
		return;
	}
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
	device_reader_lock(session->device.reader);
	while (target_rings_next(session->device.rings, &position, &process)) {
		if (process.pid == sample->pid && process.start_time_ns <= sample->time_ns &&
			process.start_time_ns >= latest.start_time_ns)
			latest = process;
	}
	if (latest.facts) {
		map_guard_enter(latest.guard);
		launch_records_teach(latest.facts, sample->waited_ns, frames, frame_count);
		map_guard_leave();
	}
	device_reader_unlock(session->device.reader);
}

/* Without a thread for it, or after its end, the rings are read here. */
static int read_rings(struct session *session, bool everything)
{
	struct session_device *device = &session->device;
	int result = 1;

	if (device->reader)
		result = device_reader_take(device->reader, on_device_record, session);
	if (result < 0 || (device->reader && !everything))
		return result;
	result = target_rings_drain(device->rings, on_device_record, session);
	if (result == 0 && target_rings_is_used(device->rings) && !everything)
		device_reader_start(&device->reader, device->rings);
	return result < 0 ? result : 1;
}

int session_collect_device(struct session *session, bool everything)
{
	struct session_device *device = &session->device;
	int result;

	if (!device->rings)
		return 0;
	result = read_rings(session, everything);
	if (device->reader)
		start_launches(session);
	if (result <= 0)
		return result;
	result = range_collector_write(device->ranges, everything);
	return result
		       ?: device_collector_write(
				  device->collector, everything ? UINT64_MAX : monotonic_now_ns());
}

void session_stop_device(struct session *session)
{
	struct session_device *device = &session->device;

	if (device->rings) {
		device_reader_lock(device->reader);
		target_gate_drain(target_rings_gate(device->rings));
		device_reader_unlock(device->reader);
		device_collector_end(device->collector, monotonic_now_ns());
	}
	device_reader_stop(device->reader);
	if (device->launches)
		launch_source_stop(device->launches);
}

int session_drain_device(struct session *session)
{
	const struct timespec pause = {.tv_nsec = 2 * NS_PER_MS};
	struct session_device *device = &session->device;
	uint64_t until_ns = monotonic_now_ns() + DRAIN_NS;
	unsigned holding;
	int result = 0;

	if (!device->rings)
		return 0;
	while ((holding = target_rings_holding(device->rings)) && monotonic_now_ns() < until_ns &&
		result >= 0) {
		result = read_rings(session, true);
		nanosleep(&pause, NULL);
	}
	if (holding)
		errmsg_set(&device->drain_note, 0,
			"%u processes did not tell of their last device work within %d s", holding,
			(int)(DRAIN_NS / NS_PER_S));
	target_gate_close(target_rings_gate(device->rings));
	return MIN(result, 0);
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

	device->reader = device_reader_free(device->reader);
	device->rings = target_rings_free(device->rings);
	device->launches = launch_source_free(device->launches);
	device->collector = device_collector_free(device->collector);
	device->launch_records = launch_records_free(device->launch_records);
	device->ranges = range_collector_free(device->ranges);
	free(TAKE_PTR(device->library));
	for (size_t i = 0; i < ARRAY_SIZE(device->environment); i++)
		free(TAKE_PTR(device->environment[i]));
}

static void account_rings(
	const struct session_device *device, struct target_rings_account *ret_account)
{
	device_reader_lock(device->reader);
	target_rings_account(device->rings, ret_account);
	device_reader_unlock(device->reader);
}

void session_fill_device_stats(struct session *session, struct capture_device_stats *ret_stats)
{
	const struct session_device *device = &session->device;
	struct target_rings_account rings;
	struct launch_account launches = {0};
	const struct launch_records_account *told;
	const struct device_account *collected;

	*ret_stats = (struct capture_device_stats){0};
	if (!device->rings)
		return;
	account_rings(device, &rings);
	collected = device_collector_account(device->collector);
	told = launch_records_account(device->launch_records);
	if (device->launches)
		launch_source_account(device->launches, &launches);
	*ret_stats = (struct capture_device_stats){
		.processes = rings.processes,
		.launches = collected->launches,
		.works = collected->works,
		.stacks = pipeline_account(session->pipeline)->launch_stacks,
		/* A process that tries again counts each try. */
		.records_lost = rings.lost - MIN(rings.lost, collected->repeated),
		.records_without_ring = rings.no_ring,
		.records_damaged =
			rings.damaged + rings.refused + collected->malformed + told->malformed,
		.launches_untimed = collected->untimed,
		.stacks_lost = launches.lost + launches.busy + rings.no_copy,
		.started_before_launch = collected->started_before_launch,
		.clock_error_ns = collected->clock_error_ns,
		.stack_run_count = launches.run_count,
		.stack_run_time_ns = launches.run_time_ns,
		.stacks_known = told->same,
		.stacks_checked = told->checked,
		.stacks_copied = told->copies,
	};
}

void session_fill_range_stats(struct session *session, struct capture_range_stats *ret_stats)
{
	const struct session_device *device = &session->device;
	struct target_rings_account rings;

	*ret_stats = (struct capture_range_stats){0};
	if (!device->rings)
		return;
	account_rings(device, &rings);
	range_collector_account(device->ranges, ret_stats);
	ret_stats->calls_dropped = rings.no_range;
}
