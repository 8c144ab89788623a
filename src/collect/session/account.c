/* SPDX-License-Identifier: Apache-2.0 */
/* What a session took, lost and cost. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/file.h"
#include "collect/session/internal.h"

static void _printf_(2, 3) add_note(struct session_result *result, const char *format, ...)
{
	struct errmsg *note = &result->notes[result->stats.note_count];
	va_list arguments;

	if (result->stats.note_count >= ARRAY_SIZE(result->notes)) {
		errmsg_set(
			note - 1, 0, "there were too many notes: this one and others were dropped");
		return;
	}
	va_start(arguments, format);
	vsnprintf(note->text, sizeof(note->text), format, arguments);
	va_end(arguments);
	result->note_pointers[result->stats.note_count++] = note->text;
}

static uint64_t peak_rss_bytes(void)
{
	_cleanup_strbuf_ struct strbuf status = {0};
	const char *line;

	if (read_whole_file("/proc/self/status", 1 << 16, &status) < 0)
		return 0;
	line = strstr(strbuf_cstr(&status), "\nVmHWM:");
	return line ? strtoull(line + strlen("\nVmHWM:"), NULL, 10) * 1024 : 0;
}

static void account_losses(
	struct session *session, const struct source_account *sources, struct capture_stats *stats)
{
	const struct pipeline_account *pipeline = pipeline_account(session->pipeline);
	struct capture_loss *losses = calloc(sources->losses.count + 3, sizeof(*losses));

	free(session->result->losses);
	session->result->losses = losses;
	stats->losses = losses;
	stats->loss_count = 0;
	stats->samples_lost = 0;
	if (!losses)
		return;
	array_foreach (&sources->losses, loss)
		losses[stats->loss_count++] = (struct capture_loss){
			.where = loss->where, .cpu = loss->cpu, .count = loss->count};
	if (pipeline->side_band_lost)
		losses[stats->loss_count++] = (struct capture_loss){
			.where = "sideband_ring", .count = pipeline->side_band_lost};
	if (pipeline->gave_up_waiting)
		losses[stats->loss_count++] = (struct capture_loss){
			.where = "waiting_for_tables", .count = pipeline->gave_up_waiting};
	if (pipeline->malformed)
		losses[stats->loss_count++] = (struct capture_loss){
			.where = "malformed_record", .count = pipeline->malformed};
	stats->samples_lost = sources->samples_lost + pipeline->malformed;
}

/* Of sonde and of its children that have ended, such as the one that reads names and lines. */
static uint64_t cpu_time_ns(const struct target *target)
{
	struct rusage self, children;
	uint64_t children_ns;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	children_ns = rusage_cpu_ns(&children);
	return rusage_cpu_ns(&self) + children_ns - MIN(target->cpu_ns, children_ns);
}

struct session_cpu session_cpu_now(struct session *session)
{
	struct file_store_account files;

	file_store_account(session->files, &files);
	return (struct session_cpu){
		.all_ns = cpu_time_ns(&session->target), .files_ns = files.cpu_ns};
}

/* Tables and symbols are made once for each file: that is no cost that goes on. */
static void account_cpu(struct session *session, struct capture_stats *stats)
{
	const struct session_cpu now = session_cpu_now(session), *begin = &session->cpu_at_begin,
				 *end = &session->cpu_at_end;

	stats->collector_cpu_ns = now.all_ns;
	stats->collector_start_cpu_ns = begin->all_ns + now.files_ns - begin->files_ns;
	if (session->sampling_ended)
		stats->collector_end_cpu_ns =
			now.all_ns - end->all_ns -
			MIN(now.files_ns - end->files_ns, now.all_ns - end->all_ns);
}

void session_fill_stats(struct session *session, bool complete)
{
	const struct pipeline_account *pipeline = pipeline_account(session->pipeline);
	struct capture_stats *stats = &session->result->stats;
	struct file_store_account files;
	const struct source_capabilities *offered = &session->sources.offered;
	struct source_account sources;

	source_set_account(&session->sources, &sources);
	file_store_account(session->files, &files);
	stats->end_time_ns = session->end_ns ? session->end_ns : monotonic_now_ns();
	stats->samples = pipeline->samples;
	memcpy(stats->stacks_by_stop, pipeline->stacks_by_stop, sizeof(stats->stacks_by_stop));
	memcpy(stats->stacks_by_python, pipeline->stacks_by_python,
		sizeof(stats->stacks_by_python));
	stats->user_frames = pipeline->user_frames;
	stats->python_frames = pipeline->python_frames;
	stats->wait_samples = pipeline->wait_samples;
	stats->waited_ns = pipeline->waited_ns;
	session_fill_device_stats(session, &sources, &stats->device);
	session_fill_range_stats(session, &sources, &stats->ranges);
	stats->kernel_frames = pipeline->kernel_frames;
	stats->bpf_run_count = sources.sampling.count;
	stats->bpf_run_time_ns = sources.sampling.time_ns;
	stats->wait_run_count = sources.waiting.count;
	stats->wait_run_time_ns = sources.waiting.time_ns;
	stats->stacks_unwound_in_user_space = pipeline->unwound_in_user_space;
	account_cpu(session, stats);
	stats->collector_peak_rss_bytes = peak_rss_bytes();
	stats->tables_built = files.tables_built;
	stats->tables_from_cache = files.tables_from_cache;
	stats->table_build_ns = files.table_build_ns;
	stats->bytes_written = capture_writer_bytes(session->writer);
	stats->notes = session->result->note_pointers;
	stats->exit_status = session->result->command_status;
	stats->complete = complete;
	account_losses(session, &sources, stats);
	session->result->energy = sources.energy;
	session->result->waits_are_exact =
		offered->wait_mode && strcmp(offered->wait_mode, "exact") == 0;
	source_account_done(&sources);
}

/* What samples met that could not be looked into. */
static void add_file_notes(struct session *session)
{
	struct file_store_account files;

	file_store_account(session->files, &files);
	if (files.unreadable)
		add_note(session->result,
			"%llu files could not be read, and functions in them have no names: %s",
			(unsigned long long)files.unreadable, files.unreadable_example.text);
	if (files.left_out > 1)
		add_note(session->result,
			"symbols or unwind tables of %llu files were left out: %s",
			(unsigned long long)files.left_out, files.left_out_example.text);
	else if (files.left_out)
		add_note(session->result, "symbols or unwind tables were left out: %s",
			files.left_out_example.text);
	if (files.tables_refused)
		add_note(session->result,
			"%llu unwind tables did not fit into the kernel's maps; stacks through "
			"their files were copied and unwound by sonde, which costs more",
			(unsigned long long)files.tables_refused);
	if (session->ranges_refused)
		add_note(session->result,
			"%llu mapped ranges did not fit into the kernel's maps; stacks end there; "
			"record fewer processes at once (-p instead of -a)",
			(unsigned long long)session->ranges_refused);
}

static void add_python_notes(struct session *session)
{
	struct python_account python;

	python_registry_account(session->python, &python);
	if (python.unknown.text[0])
		add_note(session->result, "%s", python.unknown.text);
	if (python.frames_stale)
		add_note(session->result,
			"%llu Python frames have no name: their code object was gone before it "
			"could be read",
			(unsigned long long)python.frames_stale);
	if (python.frames_unread)
		add_note(session->result,
			"%llu Python frames have no name: their code object could not be read",
			(unsigned long long)python.frames_unread);
}

/* What the tracing libraries in the processes reported and counted. */
static void add_injected_notes(struct session *session)
{
	const struct session_device *device = &session->device;
	const struct device_account *account = device_collector_account(device->collector);
	size_t count;
	const struct device_note *notes = device_collector_notes(device->collector, &count);

	for (size_t i = 0; i < count; i++) {
		if (notes[i].note == WIRE_NOTE_TRACER) /* nothing is amiss */
			continue;
		if (notes[i].count > 1)
			add_note(session->result, "%s (%u times)", notes[i].text, notes[i].count);
		else
			add_note(session->result, "%s", notes[i].text);
	}
	if (account->dropped)
		add_note(session->result,
			"%llu records of device work were dropped by the driver's tracing library before sonde got them: "
			"the times of kernels lack these",
			(unsigned long long)account->dropped);
	if (account->without_times)
		add_note(session->result,
			"%llu pieces of device work have no times: the driver gave none, so they "
			"are counted without their time",
			(unsigned long long)account->without_times);
	if (account->buffers_refused)
		add_note(session->result,
			"%llu times CUPTI got no buffer, and dropped its records: leave a CPU to "
			"the program",
			(unsigned long long)account->buffers_refused);
	if (account->unknown_nodes)
		add_note(session->result,
			"%llu pieces of device work in CUDA graphs are charged to the launch of "
			"their graph: when they were captured is not known (%llu events of graphs "
			"were lost)",
			(unsigned long long)account->unknown_nodes,
			(unsigned long long)account->graph_events_lost);
}

struct device_runtime {
	const char *library, *name;
	const char *option; /* without which it is not recorded; NULL: none is needed */
};

/* The runtime that it gives work to devices with; NULL: none that is seen. */
static const struct device_runtime *device_runtime(
	struct session *session, const struct process *process)
{
	static const struct device_runtime runtimes[] = {
		{"/libcuda.so", "CUDA"},
		{"/libOpenCL.so", "OpenCL"},
		{"/libamdhip64", "HIP", "--hip"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
		for (size_t k = 0; k < process->mapping_count; k++) {
			const struct mapped_file *file =
				address_spaces_file(session->spaces, process->mappings[k].file);

			if (process->mappings[k].kind == MAPPING_FILE && file && file->path &&
				strstr(file->path, runtimes[i].library))
				return &runtimes[i];
		}
	return NULL;
}

static bool is_in_session(struct target_rings *rings, uint32_t pid)
{
	struct target_process process;
	bool is_found = false;
	size_t position = 0;

	if (!rings)
		return false;
	target_rings_lock(rings);
	while (!is_found && target_rings_next(rings, &position, &process))
		is_found = process.pid == pid;
	target_rings_unlock(rings);
	return is_found;
}

/* Drivers load sonde's library when a program first uses them, and only where it says so. */
static void add_attached_note(struct session *session)
{
	const struct process *process, *first = NULL;
	const struct device_runtime *runtime, *first_runtime = NULL;
	size_t position = 0, others = 0;
	char more[64] = "";

	if (session->options->command || session->options->scope == SESSION_SCOPE_CPU)
		return;
	while ((process = address_spaces_next(session->spaces, &position))) {
		runtime = device_runtime(session, process);
		if (!runtime || is_in_session(session->device.rings, process->pid))
			continue;
		others += first != NULL;
		first_runtime = first ? first_runtime : runtime;
		first = first ? first : process;
	}
	if (!first)
		return;
	if (others)
		snprintf(more, sizeof(more), ", and that of %zu other%s", others,
			others > 1 ? "s" : "");
	add_note(session->result,
		"device work of %s (%u), which uses %s%s, is not recorded: a driver loads sonde's "
		"library when the program starts to use it. Start the program with sonde record; "
		"one that was may join this session with sonde_open_session()",
		first->name, first->pid, first_runtime->name, more);
}

/* A command's, that uses a runtime whose door was not opened. */
static void add_unopened_note(struct session *session)
{
	const struct device_runtime *runtime;
	const struct process *process;
	size_t position = 0;

	if (!session->device.is_recorded || session->options->opens_risky_doors)
		return;
	while ((process = address_spaces_next(session->spaces, &position))) {
		runtime = device_runtime(session, process);
		if (!runtime || !runtime->option)
			continue;
		add_note(session->result,
			"device work of %s (%u), which uses %s, is not recorded without %s: see "
			"sonde record --help",
			process->name, process->pid, runtime->name, runtime->option);
		return;
	}
}

static void add_device_notes(struct session *session)
{
	const struct capture_device_stats *stats = &session->result->stats.device;
	const struct session_device *device = &session->device;

	if (device->note.text[0])
		add_note(session->result, "%s", device->note.text);
	add_attached_note(session);
	add_unopened_note(session);
	for (size_t i = 0; i < SESSION_DOORS_MAX; i++) {
		const struct session_door_note *note = &device->door_notes[i];

		if (note->text.text[0] && (!note->is_of_work || stats->processes))
			add_note(session->result, "%s", note->text.text);
	}
	if (!stats->processes)
		return;
	add_injected_notes(session);
	if (device->stacks_note.text[0] && stats->launches)
		add_note(session->result, "%s", device->stacks_note.text);
	if (stats->records_lost || stats->records_without_ring)
		add_note(session->result,
			"%llu records of device work and ranges were lost because a ring was full, "
			"%llu because more than %d threads had any at once",
			(unsigned long long)stats->records_lost,
			(unsigned long long)stats->records_without_ring, WIRE_RING_COUNT);
	if (stats->records_damaged)
		add_note(session->result,
			"%llu records of device work and ranges were damaged and left out",
			(unsigned long long)stats->records_damaged);
	if (stats->stacks_lost)
		add_note(session->result,
			"%llu launches have no stack: a ring was full, too many launched at once, "
			"or programs that copy their stacks ran on ones that are not a thread's",
			(unsigned long long)stats->stacks_lost);
	if (stats->launches && target_gate_went_unprobed(target_rings_gate(device->rings)))
		add_note(session->result,
			"the first launches of a program have no stack: it went on before the "
			"probe for them was there, since the machine was busy; record again with "
			"less work beside it");
	if (stats->started_before_launch)
		add_note(session->result,
			"%llu pieces of device work began before their launch, by the device's "
			"clock as it was aligned, within %.1f us",
			(unsigned long long)stats->started_before_launch,
			(double)stats->clock_error_ns / 1e3);
}

static void add_range_notes(struct session *session)
{
	const struct capture_range_stats *stats = &session->result->stats.ranges;
	const struct {
		uint64_t count;
		const char *what;
	} notes[] = {
		{stats->unbalanced_ends, "ends of ranges had no begin"},
		{stats->ends_lost,
			"the ends of ranges were lost: they end where later records show it"},
		{stats->open_at_thread_end, "ranges were still open when their thread ended"},
		{stats->open_at_end, "ranges were still open when their program ended"},
		{stats->too_many, "ranges were left out: too many were open at once"},
		{stats->names_lost, "names of ranges were lost because a ring was full"},
		{stats->names_cut, "names of ranges were cut after 1,024 bytes"},
		{stats->records_damaged, "records of ranges were damaged and left out"},
		{stats->calls_dropped, "NVTX calls were left out: a signal handler interrupted "
				       "another call, or they were nested too deeply"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		if (notes[i].count)
			add_note(session->result, "%llu %s", (unsigned long long)notes[i].count,
				notes[i].what);
	}
}

/* The kernel takes samples at this rate at most, and lowers it when they cost too much. */
static void add_rate_note(struct session *session)
{
	uint64_t wanted_hz = NS_PER_S / session->options->period_ns;
	_cleanup_strbuf_ struct strbuf text = {0};
	unsigned long long allowed_hz;

	if (read_whole_file("/proc/sys/kernel/perf_event_max_sample_rate", 64, &text) < 0)
		return;
	allowed_hz = strtoull(strbuf_cstr(&text), NULL, 10);
	if (allowed_hz && allowed_hz < wanted_hz)
		add_note(session->result,
			"the kernel takes at most %llu samples per second and CPU, not %llu, so "
			"times are too short; lower the rate (-F), or raise "
			"kernel.perf_event_max_sample_rate",
			allowed_hz, (unsigned long long)wanted_hz);
}

static void add_jit_notes(struct session *session)
{
	struct jit_names_account names;

	resolver_jit_account(session->resolver, &names);
	if (names.refused)
		add_note(session->result, "generated code of %llu process%s has no names: %s",
			(unsigned long long)names.refused, names.refused == 1 ? "" : "es",
			names.refused_example.text);
	if (names.cut)
		add_note(session->result, "%s", names.cut_example.text);
	if (!session->late_names_read)
		add_note(session->result,
			"names of generated code may be missing: perf maps were still being read "
			"%d s after the recording",
			(int)(LATE_NAMES_NS / NS_PER_S));
}

#define HOOK_NOTES_MAX 8

/* Hooks that do not record: what they would have reported is missing. */
static void add_hook_notes(struct session *session)
{
	const struct hook_table *table = &session->result->hooks;
	struct python_account python;
	unsigned failures = 0;

	python_registry_account(session->python, &python);
	if (session->device.hooks_note.text[0] && python.codes)
		add_note(session->result, "%s", session->device.hooks_note.text);
	array_foreach (&table->hooks, hook) {
		enum hook_state state = hook_status_state(hook);

		if (state < HOOK_NOT_FOUND || ++failures > HOOK_NOTES_MAX)
			continue;
		add_note(session->result, "the %s hook for %s of %s %s in %llu process%s: %s",
			hook->group, hook->attribute, hook->module,
			state == HOOK_ERROR ? "failed" : "was not found",
			(unsigned long long)hook->processes[state],
			hook->processes[state] == 1 ? "" : "es", hook->detail);
	}
	if (failures > HOOK_NOTES_MAX)
		add_note(session->result, "%u more hooks failed or were not found",
			failures - HOOK_NOTES_MAX);
	if (table->malformed)
		add_note(session->result, "%llu records of Python hooks were damaged and left out",
			(unsigned long long)table->malformed);
}

static void add_sentence(struct session *session, const char *sentence)
{
	add_note(session->result, "%s", sentence);
}

static void add_source_note(void *context, const char *sentence)
{
	add_sentence(context, sentence);
}

/* Where a window was sampled late, the note on that is the reason. */
static void add_no_samples_note(struct session *session)
{
	const struct session_windows *windows = &session->windows;
	bool has_windows = !windows->list.is_whole;

	if (windows->late || (has_windows && !windows->list.items.count))
		return;
	add_note(session->result,
		"no samples were taken: the recorded processes used less CPU time than one "
		"sampling period (%.1f ms)%s%s",
		(double)session->options->period_ns / 1e6,
		has_windows ? "; raise the rate (-F), or give longer windows" : "",
		session->sources.offered.bpf
			? ""
			: ", or gained privileges (set-uid), which ends sampling by users");
}

static void add_depth_note(struct session *session)
{
	const struct pipeline_account *account = pipeline_account(session->pipeline);
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!account->deep_stacks)
		return;
	strbuf_add_count(&text, account->deep_stacks);
	strbuf_addf(&text,
		" stacks were deeper than %d native or %d Python frames: both ends of each are "
		"kept, and ",
		WIRE_MAX_USER_FRAMES, WIRE_MAX_PYTHON_FRAMES);
	strbuf_add_count(&text, account->frames_left_out);
	strbuf_add(&text, " frames between them are left out, at most ");
	strbuf_add_count(&text, account->most_left_out);
	strbuf_add(&text, " of a stack");
	add_note(session->result, "%s", strbuf_cstr(&text));
}

static void add_line_notes(struct session *session, const struct line_account *lines)
{
	if (lines->files_left_out > 1)
		add_note(session->result, "source lines of %llu files were left out; the first: %s",
			(unsigned long long)lines->files_left_out, lines->example.text);
	else if (lines->files_left_out)
		add_note(session->result, "%s", lines->example.text);
	else if (lines->addresses_left_out)
		add_note(session->result,
			"%llu frames have no source lines: reading debug information was stopped "
			"by Ctrl-C, or took more than %d s",
			(unsigned long long)lines->addresses_left_out,
			(int)(SESSION_LINES_NS / NS_PER_S));
}

void session_add_end_notes(struct session *session, const struct line_account *lines)
{
	const struct capture_stats *stats = &session->result->stats;

	if (*resolver_kernel_note(session->resolver))
		add_note(session->result, "%s", resolver_kernel_note(session->resolver));
	add_file_notes(session);
	add_jit_notes(session);
	add_depth_note(session);
	add_python_notes(session);
	add_hook_notes(session);
	source_set_notes(&session->sources, add_source_note, session);
	session_windows_notes(session, add_sentence);
	add_device_notes(session);
	add_range_notes(session);
	if (session_samples(session->options))
		add_rate_note(session);
	if (!stats->samples && session_samples(session->options))
		add_no_samples_note(session);
	if (stats->samples_lost)
		add_note(session->result,
			"%llu samples were lost because the sample ring was full; lower the rate "
			"(-F)",
			(unsigned long long)stats->samples_lost);
	add_line_notes(session, lines);
}
