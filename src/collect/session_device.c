/* SPDX-License-Identifier: Apache-2.0 */
/* Device work of a session: the library for the command, its rings, and the stacks of launches. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/inject_library.h"
#include "collect/session_internal.h"
#include "sources/cpu/bpf_sampler.h"

#define LAYERS_VARIABLE "OPENCL_LAYERS"
#define NVTX_VARIABLE   "NVTX_INJECTION64_PATH"
#define CUDA_VARIABLE   "CUDA_INJECTION64_PATH"
/* At the end, processes have so long to tell what they hold back. */
#define DRAIN_NS NS_PER_S
/* Before the first launch, tables are waited for no longer. */
#define PREPARE_NS (500 * NS_PER_MS)

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

/* One library alone can be named there. */
static const char *taken_injection(const struct session_device *device)
{
	const char *other = getenv(CUDA_VARIABLE);

	return other && *other && strcmp(other, device->library) != 0 ? other : NULL;
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

/* It names one library, too: another tool's stays. */
static int add_nvtx(struct session_device *device)
{
	const char *other = getenv(NVTX_VARIABLE);

	if (!other || !*other || strstr(other, INJECT_LIBRARY))
		return add_variable(device, NVTX_VARIABLE, device->library);
	errmsg_set(&device->nvtx_note, 0,
		"NVTX ranges are not recorded: " NVTX_VARIABLE
		" was set to %s, which takes them; unset it to have them here",
		other);
	return 0;
}

static int set_environment(struct session_device *device)
{
	_cleanup_strbuf_ struct strbuf layers = {0};
	const char *taken = taken_injection(device);
	int result = layers_value(device, &layers);

	result = result ?: add_variable(device, LAYERS_VARIABLE, strbuf_cstr(&layers));
	result =
		result ?: add_variable(device, "SONDE_SESSION", target_rings_folder(device->rings));
	if (taken)
		errmsg_set(&device->cuda_note, 0,
			"work of CUDA devices is not recorded: " CUDA_VARIABLE
			" names another tool, %s; record without it",
			taken);
	else
		result = result ?: add_variable(device, CUDA_VARIABLE, device->library);
	return result ?: add_nvtx(device);
}

static int prepare(struct session *session, struct errmsg *err)
{
	struct session_device *device = &session->device;
	int result = inject_library_find(&device->library);

	if (result < 0)
		return errmsg_set(err, result,
			"device work is not recorded: " INJECT_LIBRARY
			" is not beside sonde; install "
			"sonde again");
	result = target_rings_open(&device->rings, session->options->graph_mode, err);
	if (result == 0)
		result = device_collector_new(&device->collector, session->writer);
	if (result == 0)
		result = range_collector_new(&device->ranges, session->writer);
	return result < 0 ? result : set_environment(device);
}

void session_prepare_device(struct session *session)
{
	struct session_device *device = &session->device;

	if (!session->options->command || session->options->live.visitor)
		return;
	if (prepare(session, &device->note) < 0) {
		device->rings = target_rings_free(device->rings);
		return;
	}
	session->surroundings.environment = device->environment;
}

/* ---- stacks of launches ---- */

static void open_launches(struct session *session)
{
	struct session_device *device = &session->device;
	struct bpf_sampler_parts parts;

	if (!session->options->launch_stacks)
		return;
	if (session->sampler != &bpf_sampler) {
		errmsg_set(&device->stacks_note, -EPERM,
			"launches of device work have no stacks: that needs the BPF mode; run "
			"sonde with sudo");
		return;
	}
	bpf_sampler_parts(session->sampler_state, &parts);
	if (launch_source_open(&device->launches, &parts, &device->stacks_note) < 0)
		return;
	if (launch_source_start(device->launches, device->library, &device->stacks_note) < 0)
		device->launches = launch_source_free(device->launches);
}

/*
 * Asks for the unwind tables of all files of the process; true when all are there. The library is
 * the last file that it mapped: when that is known all are, for events are looked at in order.
 */
static bool has_tables(struct session *session, uint32_t pid)
{
	const struct process *process = address_spaces_find(session->spaces, pid);
	bool has_all = true, has_library = false;

	for (size_t i = 0; process && i < process->mapping_count; i++) {
		const struct mapping *mapping = &process->mappings[i];
		const uint64_t *words;
		uint64_t word_count;

		if (mapping->kind != MAPPING_FILE)
			continue;
		has_library |= strcmp(address_spaces_file(session->spaces, mapping->file)->path,
				       session->device.library) == 0;
		if (file_store_table(session->files, mapping->file, &words, &word_count) ==
			FILE_PENDING)
			has_all = false;
	}
	return has_all && has_library;
}

/*
 * When the first process is seen, which waits for it: most recordings never need the program. With
 * the tables there, no launch has to carry a copy of its stack.
 */
static void start_launches(struct session *session)
{
	struct session_device *device = &session->device;
	bool is_ready = true;
	size_t position = 0;
	uint32_t pid;

	if (device->is_ready || !target_rings_is_used(device->rings))
		return;
	if (!device->tried_launches)
		open_launches(session);
	device->tried_launches = true;
	if (!device->prepared_ns)
		device->prepared_ns = monotonic_now_ns();
	while (device->launches && target_rings_next_pid(device->rings, &position, &pid))
		is_ready = has_tables(session, pid) && is_ready;
	/* A process of another PID namespace never gets known here. */
	is_ready = is_ready || monotonic_now_ns() - device->prepared_ns > PREPARE_NS;
	device->is_ready = is_ready;
	if (is_ready)
		target_rings_set_ready(device->rings);
}

/* ---- at work ---- */

/* A thread writes 1 MB in some tens of milliseconds when it does nothing but launch. */
int session_device_timeout_ms(const struct session *session, int otherwise)
{
	const struct session_device *device = &session->device;

	if (!device->rings || !target_rings_is_used(device->rings))
		return otherwise;
	return MIN(otherwise, target_rings_fill(device->rings) > 0.1 ? 1 : 10);
}

static void on_device_record(void *context, uint32_t pid, const struct wire_record *record)
{
	struct session *session = context;

	session_keep_failure(
		session, range_collector_takes(record)
				 ? range_collector_add(session->device.ranges, pid, record)
				 : device_collector_add(session->device.collector, pid, record));
}

int session_collect_device(struct session *session, bool everything)
{
	struct session_device *device = &session->device;
	int result;

	if (!device->rings)
		return 0;
	result = target_rings_drain(device->rings, on_device_record, session);
	start_launches(session);
	result = result ?: range_collector_write(device->ranges, everything);
	return result < 0 ? result
			  : device_collector_write(device->collector,
				    everything ? UINT64_MAX : monotonic_now_ns());
}

void session_stop_device(struct session *session)
{
	struct session_device *device = &session->device;

	if (device->rings) {
		target_rings_drain_gate(device->rings);
		device_collector_end(device->collector, monotonic_now_ns());
	}
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
		result == 0) {
		result = target_rings_drain(device->rings, on_device_record, session);
		nanosleep(&pause, NULL);
	}
	if (holding)
		errmsg_set(&device->drain_note, 0,
			"%u processes did not tell of their last device work within %d s", holding,
			(int)(DRAIN_NS / NS_PER_S));
	target_rings_close_gate(device->rings);
	return result;
}

void session_close_device(struct session *session)
{
	struct session_device *device = &session->device;

	device->rings = target_rings_free(device->rings);
	device->launches = launch_source_free(device->launches);
	device->collector = device_collector_free(device->collector);
	device->ranges = range_collector_free(device->ranges);
	free(TAKE_PTR(device->library));
	for (size_t i = 0; i < ARRAY_SIZE(device->environment); i++)
		free(TAKE_PTR(device->environment[i]));
}

void session_fill_device_stats(struct session *session, struct capture_device_stats *ret_stats)
{
	const struct session_device *device = &session->device;
	struct target_rings_account rings;
	struct launch_account launches = {0};
	const struct device_account *collected;

	*ret_stats = (struct capture_device_stats){0};
	if (!device->rings)
		return;
	target_rings_account(device->rings, &rings);
	collected = device_collector_account(device->collector);
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
		.records_damaged = rings.damaged + rings.refused + collected->malformed,
		.launches_untimed = collected->untimed,
		.stacks_lost = launches.lost + launches.busy,
		.started_before_launch = collected->started_before_launch,
		.clock_error_ns = collected->clock_error_ns,
		.stack_run_count = launches.run_count,
		.stack_run_time_ns = launches.run_time_ns,
	};
}

void session_fill_range_stats(struct session *session, struct capture_range_stats *ret_stats)
{
	const struct session_device *device = &session->device;
	struct target_rings_account rings;

	*ret_stats = (struct capture_range_stats){0};
	if (!device->rings)
		return;
	target_rings_account(device->rings, &rings);
	range_collector_account(device->ranges, ret_stats);
	ret_stats->calls_dropped = rings.no_range;
}
