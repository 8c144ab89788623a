/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/map.h"
#include "capture/writer.h"
#include "collect/files.h"
#include "collect/pipeline.h"
#include "collect/resolver.h"
#include "collect/target.h"
#include "sources/cpu/sampler.h"
#include "sources/process/address_space.h"
#include "sources/process/sideband.h"

#define TICK_MS  100
#define FLUSH_NS (700 * NS_PER_MS)
/* A record is in its ring this long after its time stamp at the latest. */
#define IN_FLIGHT_NS        (2 * NS_PER_MS)
#define WAIT_FOR_TABLES_NS  (60 * NS_PER_S)
#define WAIT_FOR_LINES_NS   (5 * NS_PER_S)
#define KEEP_EXITED_NS      (2 * NS_PER_S)
#define MAXIMUM_DESCRIPTORS 1200
/* Looking for processes that started while their parents were being followed. */
#define MAXIMUM_FOLLOW_ROUNDS 8

struct session {
	const struct session_options *options;
	struct session_result *result;
	const struct cpu_sampler *sampler;
	void *sampler_state;
	struct sideband *sideband;
	struct address_spaces *spaces;
	struct file_store *files;
	struct resolver *resolver;
	struct pipeline *pipeline;
	struct capture_writer *writer;
	struct target target;
	struct errmsg kernel_note; /* why kernel functions have no names; "": they have */
	ARRAY_OF(int) pid_fds;     /* of attached processes that still live */
	struct map_u64 followed;   /* pids that the samplers were told of */
	struct target_surroundings surroundings;
	int signal_fd;
	unsigned interrupts;
	bool target_running; /* released and not reaped */
	bool sampling_ended;
	uint64_t start_ns, end_ns, last_flush_ns;
	uint64_t ranges_refused; /* mappings that the sampler had no room for */
	int failure;             /* the first error inside a callback */
};

/* Callbacks cannot return an error: the loop ends at the first. */
static void keep_failure(struct session *session, int result)
{
	if (result < 0 && session->failure == 0)
		session->failure = result;
}

/* ---- address-space changes → file store and sampler
 * ----------------------------------------------------- */

static void on_file_added(void *context, const struct mapped_file *file)
{
	struct session *session = context;

	keep_failure(session, file_store_add(session->files, file));
}

static void on_mapping_added(
	void *context, const struct process *process, const struct mapping *mapping)
{
	struct session *session = context;
	uint64_t bias = 0;
	bool frame_pointer;

	if (!session->sampler->map || mapping->kind == MAPPING_UPROBES)
		return;
	keep_failure(session, file_store_see(session->files,
				      address_spaces_file(session->spaces, mapping->file)));
	frame_pointer = !file_store_bias(session->files, mapping, &bias);
	if (session->sampler->map(
		    session->sampler_state, process->pid, mapping, bias, frame_pointer) < 0)
		session->ranges_refused++;
}

static void on_mapping_removed(
	void *context, const struct process *process, const struct mapping *mapping)
{
	struct session *session = context;

	if (session->sampler->unmap)
		session->sampler->unmap(session->sampler_state, process->pid, mapping);
}

static void on_process_cleared(void *context, const struct process *process)
{
	struct session *session = context;

	if (session->sampler->clear_space)
		session->sampler->clear_space(session->sampler_state, process->pid);
}

static void on_process_forked(
	void *context, const struct process *parent, const struct process *child)
{
	struct session *session = context;

	if (session->sampler->fork_space)
		session->sampler->fork_space(session->sampler_state, parent->pid, child->pid);
}

/* ---- notes ---- */

static void _printf_(2, 3) add_note(struct session_result *result, const char *format, ...)
{
	struct errmsg *note = &result->notes[result->stats.note_count];
	va_list arguments;

	if (result->stats.note_count >= ARRAY_SIZE(result->notes))
		return;
	va_start(arguments, format);
	vsnprintf(note->text, sizeof(note->text), format, arguments);
	va_end(arguments);
	result->note_pointers[result->stats.note_count++] = note->text;
}

/* ---- opening
 * --------------------------------------------------------------------------------------------- */

static int choose_sampler(struct session *session, struct errmsg *err)
{
	struct errmsg *reason = &session->result->mode_reason;
	enum session_mode mode = session->options->mode;

	session->sampler = &bpf_sampler;
	if (mode == SESSION_MODE_USER)
		errmsg_set(reason, 0, "asked for with --mode user");
	else if (bpf_sampler.probe(reason) == 0)
		reason->text[0] = '\0';
	else if (mode == SESSION_MODE_BPF)
		return errmsg_set(err, -EPERM, "cannot record with --mode bpf: %s", reason->text);
	if (!reason->text[0])
		return 0;
	session->sampler = &perf_sampler;
	return perf_sampler.probe(err);
}

/*
 * Signals are read from a descriptor. A hangup that was to be ignored (nohup) stays ignored; a
 * reader of our output that went away is an error like others, not our end; and a SIGCHLD that the
 * parent ignored would take the command's exit status away.
 */
static int block_signals(struct session *session, struct errmsg *err)
{
	struct sigaction hangup, wait_for_children = {.sa_handler = SIG_DFL};
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGCHLD);
	if (sigaction(SIGHUP, NULL, &hangup) < 0 || hangup.sa_handler != SIG_IGN)
		sigaddset(&mask, SIGHUP);
	session->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (session->signal_fd < 0)
		return errmsg_set(err, -errno, "cannot watch for signals: %s", strerror(errno));
	sigaddset(&mask, SIGPIPE);
	sigprocmask(SIG_BLOCK, &mask, &session->surroundings.signal_mask);
	sigaction(SIGCHLD, &wait_for_children, &session->surroundings.on_child_signal);
	return 0;
}

/* Many files stay open while their tables are built: use what the hard limit allows. */
static void raise_descriptor_limit(struct session *session)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	session->surroundings.descriptors = limit;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Ours and those of /proc are compared all the time: they must count from the same namespace. */
static int check_proc(struct errmsg *err)
{
	char text[16] = "";

	if (readlink("/proc/self", text, sizeof(text) - 1) < 0)
		return errmsg_set(err, -errno,
			"cannot read /proc: %s; mount it: mount -t proc proc /proc",
			strerror(errno));
	if (strtol(text, NULL, 10) == getpid())
		return 0;
	return errmsg_set(err, -EINVAL,
		"cannot tell processes apart: /proc shows another PID namespace than sonde's; "
		"mount one for it: mount -t proc proc /proc (unshare --mount-proc does)");
}

static int open_parts(struct session *session, struct errmsg *err)
{
	const struct session_options *options = session->options;
	struct address_space_listener listener = {
		.context = session,
		.file_added = on_file_added,
		.mapping_added = on_mapping_added,
		.mapping_removed = on_mapping_removed,
		.process_cleared = on_process_cleared,
		.process_forked = on_process_forked,
	};
	struct cpu_sampler_options sampling = {
		.period_ns = options->period_ns,
		.whole_machine = options->whole_machine,
	};
	uint32_t sideband_pid = session->sampler == &bpf_sampler ? 0
				: options->command               ? (uint32_t)session->target.pid
								 : options->pids[0];
	struct pipeline_parts parts = {.only_descendants = !options->whole_machine};
	int result;

	result = session->sampler->open(&session->sampler_state, &sampling, err);
	if (result == 0)
		result = sideband_open(&session->sideband, sideband_pid, err);
	if (result == 0)
		result = file_store_new(
			&session->files, session->sampler, session->sampler_state, err);
	if (result == 0)
		result = address_spaces_new(&session->spaces, &listener);
	if (result == 0)
		result = resolver_new(&session->resolver, session->spaces, session->files,
			session->writer, &session->kernel_note);
	if (result < 0)
		return result;
	parts.spaces = session->spaces;
	parts.files = session->files;
	parts.resolver = session->resolver;
	parts.writer = session->writer;
	return pipeline_new(&session->pipeline, &parts);
}

static const char *why_not_attached(int error)
{
	switch (error) {
	case ESRCH:
		return "there is no such process";
	case EINVAL: /* until Linux 6.15 */
	case ENOENT:
		return "it is a thread; give the id of its process";
	default:
		return strerror(error);
	}
}

static int watch_end(struct session *session, uint32_t pid, struct errmsg *err)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), result;

	if (fd < 0)
		return errmsg_set(err, -errno,
			"cannot attach to process %u: %s; `ps -Lp %u` shows whether it runs", pid,
			why_not_attached(errno), pid);
	result = array_append(&session->pid_fds, fd);
	if (result < 0)
		close(fd);
	return result;
}

static int follow_process(struct session *session, uint32_t pid, struct errmsg *err)
{
	int result;

	if (map_u64_get(&session->followed, pid, NULL))
		return 0;
	result = session->sampler->follow(session->sampler_state, pid, err);
	if (result == 0 && pid != session->options->pids[0])
		result = sideband_follow(session->sideband, pid, err);
	return result < 0 ? result : map_u64_set(&session->followed, pid, 1);
}

/* Those that were not there, or not known, before. Returns their number or a negative errno. */
static int follow_known(struct session *session, uint32_t root_pid, struct errmsg *err)
{
	size_t followed_before = session->followed.count, position = 0;
	const struct process *process;

	while ((process = address_spaces_next(session->spaces, &position))) {
		int result = follow_process(session, process->pid, err);

		if (result == -ESRCH && process->pid != root_pid)
			continue; /* a child that ended meanwhile */
		if (result < 0)
			return result;
	}
	return (int)(session->followed.count - followed_before);
}

/*
 * Every process that already descends from it is followed as well. What a process starts before it
 * is followed is missed by the samplers, and found by looking again.
 */
static int follow_tree(struct session *session, uint32_t pid, struct errmsg *err)
{
	int result = watch_end(session, pid, err);

	for (int round = 0; result >= 0 && round < MAXIMUM_FOLLOW_ROUNDS; round++) {
		result = address_spaces_add_tree(session->spaces, pid, err);
		if (result == 0)
			result = follow_known(session, pid, err);
		if (result == 0)
			break;
	}
	return MIN(result, 0);
}

static int follow_targets(struct session *session, struct errmsg *err)
{
	const struct session_options *options = session->options;
	int result = 0;

	if (options->command)
		result = session->sampler->follow(
			session->sampler_state, (uint32_t)session->target.pid, err);
	if (result == 0 && options->command)
		address_spaces_add_process(session->spaces, (uint32_t)session->target.pid, NULL);
	for (uint32_t i = 0; i < options->pid_count && result == 0; i++)
		result = follow_tree(session, options->pids[i], err);
	if (result == 0 && options->whole_machine)
		result = MIN(address_spaces_add_all(session->spaces), 0);
	return result;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static int write_session(struct session *session, struct errmsg *err)
{
	const struct session_options *options = session->options;
	struct utsname system;
	int result;
	struct capture_session out = {
		.sonde_version = SONDE_VERSION,
		.command = (const char *const *)options->command,
		.unwind_mode = session->sampler->name,
		.unwind_mode_reason = session->result->mode_reason.text[0]
					      ? session->result->mode_reason.text
					      : NULL,
		.start_time_ns = clock_ns(CLOCK_MONOTONIC),
		.start_realtime_ns = clock_ns(CLOCK_REALTIME),
		.start_boottime_ns = clock_ns(CLOCK_BOOTTIME),
		.period_ns = options->period_ns,
		.cpu_count = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
	};

	uname(&system);
	out.host = system.nodename;
	out.kernel_release = system.release;
	out.architecture = system.machine;
	while (options->command && options->command[out.command_count])
		out.command_count++;
	result = capture_writer_session(session->writer, &out);
	/* A disk that is full already is noticed before the command starts. */
	return result < 0 ? result : capture_writer_flush(session->writer, err);
}

/* ---- running
 * --------------------------------------------------------------------------------------------- */

static void on_record(void *context, const struct wire_record *record)
{
	struct session *session = context;

	keep_failure(session, pipeline_add_record(session->pipeline, record));
}

static void on_event(void *context, const struct sideband_event *event)
{
	struct session *session = context;

	keep_failure(session, pipeline_add_event(session->pipeline, event));
}

/* What is older than this moment is in the queues after the drains: it can be put in order. */
static int collect_waiting(struct session *session, bool everything)
{
	uint64_t before_ns = monotonic_now_ns();
	int result = sideband_drain(session->sideband, on_event, session);

	if (result == 0)
		result = session->sampler->drain(session->sampler_state, on_record, session);
	if (result == 0)
		result = pipeline_process(
			session->pipeline, everything ? UINT64_MAX : before_ns - IN_FLIGHT_NS);
	if (result == 0 && pipeline_waiting(session->pipeline))
		result = pipeline_retry(session->pipeline, false);
	address_spaces_forget_exited(session->spaces, before_ns - KEEP_EXITED_NS);
	return result < 0 ? result : session->failure;
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

static void account_losses(struct session *session, const struct cpu_sampler_account *sampler,
	struct capture_stats *stats)
{
	const struct pipeline_account *pipeline = pipeline_account(session->pipeline);
	struct capture_loss *losses = calloc((size_t)sampler->cpu_count + 3, sizeof(*losses));

	free(session->result->losses);
	session->result->losses = losses;
	stats->losses = losses;
	stats->loss_count = 0;
	stats->samples_lost = 0;
	if (!losses)
		return;
	for (uint32_t cpu = 0; cpu < sampler->cpu_count; cpu++) {
		if (!sampler->lost_per_cpu[cpu])
			continue;
		losses[stats->loss_count++] = (struct capture_loss){
			.where = "sample_ring", .cpu = cpu, .count = sampler->lost_per_cpu[cpu]};
		stats->samples_lost += sampler->lost_per_cpu[cpu];
	}
	if (pipeline->side_band_lost)
		losses[stats->loss_count++] = (struct capture_loss){
			.where = "sideband_ring", .count = pipeline->side_band_lost};
	if (pipeline->gave_up_waiting)
		losses[stats->loss_count++] = (struct capture_loss){
			.where = "waiting_for_tables", .count = pipeline->gave_up_waiting};
	if (pipeline->malformed)
		losses[stats->loss_count++] = (struct capture_loss){
			.where = "malformed_record", .count = pipeline->malformed};
	stats->samples_lost += pipeline->malformed;
}

static void fill_stats(struct session *session, bool complete)
{
	const struct pipeline_account *pipeline = pipeline_account(session->pipeline);
	struct capture_stats *stats = &session->result->stats;
	struct file_store_account files;
	struct cpu_sampler_account *sampler = calloc(1, sizeof(*sampler));
	struct rusage usage;

	if (!sampler)
		return;
	session->sampler->account(session->sampler_state, sampler);
	file_store_account(session->files, &files);
	getrusage(RUSAGE_SELF, &usage);
	stats->end_time_ns = session->end_ns ? session->end_ns : monotonic_now_ns();
	stats->samples = pipeline->samples;
	memcpy(stats->stacks_by_stop, pipeline->stacks_by_stop, sizeof(stats->stacks_by_stop));
	stats->user_frames = pipeline->user_frames;
	stats->kernel_frames = pipeline->kernel_frames;
	stats->bpf_run_count = sampler->run_count;
	stats->bpf_run_time_ns = sampler->run_time_ns;
	stats->stacks_unwound_in_user_space = pipeline->unwound_in_user_space;
	stats->collector_cpu_ns =
		((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * NS_PER_S +
		((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * NS_PER_US;
	stats->collector_peak_rss_bytes = peak_rss_bytes();
	stats->tables_built = files.tables_built;
	stats->tables_from_cache = files.tables_from_cache;
	stats->table_build_ns = files.table_build_ns;
	stats->bytes_written = capture_writer_bytes(session->writer);
	stats->notes = session->result->note_pointers;
	stats->exit_status = session->result->command_status;
	stats->complete = complete;
	account_losses(session, sampler, stats);
	free(sampler);
}

static int flush(struct session *session, struct errmsg *err)
{
	fill_stats(session, false);
	capture_writer_stats(session->writer, &session->result->stats);
	session->last_flush_ns = monotonic_now_ns();
	return capture_writer_flush(session->writer, err);
}

/*
 * A signal to sonde alone is passed on to the command, which a terminal's ^C has reached already.
 * The recording ends when the command does, or at the second signal.
 */
static void on_signals(struct session *session)
{
	struct signalfd_siginfo info;

	while (read(session->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		session->interrupts++;
		if (session->target_running && info.ssi_code <= 0) /* not from the terminal */
			kill(session->target.pid, (int)info.ssi_signo);
	}
	if (session->target_running && target_reap(&session->target, false))
		session->target_running = false;
}

/* The command outlives the recording: signals to us are still for it. */
static void wait_for_command(struct session *session)
{
	struct pollfd signals = {.fd = session->signal_fd, .events = POLLIN};

	for (on_signals(session); session->target_running; on_signals(session))
		poll(&signals, 1, -1);
}

static bool attached_ended(struct session *session)
{
	if (!session->pid_fds.count)
		return false;
	for (size_t i = 0; i < session->pid_fds.count;) {
		struct pollfd ended = {.fd = session->pid_fds.items[i], .events = POLLIN};

		if (poll(&ended, 1, 0) == 1) {
			close(session->pid_fds.items[i]);
			session->pid_fds.items[i] =
				session->pid_fds.items[--session->pid_fds.count];
		} else {
			i++;
		}
	}
	return session->pid_fds.count == 0;
}

static bool should_end(struct session *session)
{
	const struct session_options *options = session->options;
	uint64_t elapsed_ns = monotonic_now_ns() - session->start_ns;

	if (options->duration_ns && elapsed_ns >= options->duration_ns)
		return true;
	if (options->command)
		return !session->target_running || session->interrupts > 1;
	return session->interrupts || attached_ended(session);
}

static int wait_timeout_ms(const struct session *session)
{
	uint64_t elapsed_ns = monotonic_now_ns() - session->start_ns, left_ms;

	if (!session->options->duration_ns)
		return TICK_MS;
	if (elapsed_ns >= session->options->duration_ns)
		return 0;
	left_ms = (session->options->duration_ns - elapsed_ns + NS_PER_MS - 1) / NS_PER_MS;
	return (int)MIN(left_ms, (uint64_t)TICK_MS);
}

static size_t gather_descriptors(struct session *session, struct pollfd *ret_polls)
{
	int fds[MAXIMUM_DESCRIPTORS - 2];
	size_t count = session->sampler->descriptors(session->sampler_state, fds, ARRAY_SIZE(fds));

	count += sideband_descriptors(session->sideband, fds + count, ARRAY_SIZE(fds) - count);
	for (size_t i = 0; i < count; i++)
		ret_polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	ret_polls[count++] = (struct pollfd){.fd = session->signal_fd, .events = POLLIN};
	ret_polls[count++] =
		(struct pollfd){.fd = file_store_descriptor(session->files), .events = POLLIN};
	return count;
}

static int run_loop(struct session *session, struct errmsg *err)
{
	struct pollfd polls[MAXIMUM_DESCRIPTORS];
	size_t count = gather_descriptors(session, polls);
	int result;

	for (;;) {
		if (poll(polls, count, wait_timeout_ms(session)) < 0 && errno != EINTR)
			return errmsg_set(
				err, -errno, "waiting for samples failed: %s", strerror(errno));
		file_store_acknowledge(session->files);
		on_signals(session);
		result = collect_waiting(session, false);
		if (result < 0)
			return errmsg_set(
				err, result, "cannot keep the samples: %s", strerror(-result));
		if (monotonic_now_ns() - session->last_flush_ns >= FLUSH_NS) {
			result = flush(session, err);
			if (result < 0)
				return result;
		}
		if (should_end(session))
			return 0;
	}
}

/* ---- ending
 * ---------------------------------------------------------------------------------------------- */

/* Samples of the last moments may wait for tables: a short first run is as whole as a long one. */
static int wait_for_tables(struct session *session)
{
	uint64_t deadline_ns = monotonic_now_ns() + WAIT_FOR_TABLES_NS;
	struct pollfd ready = {.fd = file_store_descriptor(session->files), .events = POLLIN};
	int result = pipeline_retry(session->pipeline, false);

	while (result == 0 && pipeline_waiting(session->pipeline) &&
		monotonic_now_ns() < deadline_ns && session->interrupts < 3) {
		if (session->options->on_finishing)
			session->options->on_finishing(session->options->context,
				"unwind tables and symbols", pipeline_waiting(session->pipeline));
		poll(&ready, 1, TICK_MS);
		file_store_acknowledge(session->files);
		on_signals(session);
		result = pipeline_retry(session->pipeline, false);
	}
	return result < 0 ? result : pipeline_retry(session->pipeline, true);
}

/* The sampler's own remarks: one sentence a line. */
static void add_sampler_notes(struct session *session)
{
	struct cpu_sampler_account *account = calloc(1, sizeof(*account));
	char *rest, *sentence;

	if (!account)
		return;
	session->sampler->account(session->sampler_state, account);
	for (rest = account->notes; (sentence = strsep(&rest, "\n"));) {
		if (*sentence)
			add_note(session->result, "%s", sentence);
	}
	free(account);
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
	if (files.tables_refused)
		add_note(session->result,
			"%llu unwind tables found no room in the kernel's maps; stacks through "
			"their files were copied and unwound by sonde, which costs more",
			(unsigned long long)files.tables_refused);
	if (session->ranges_refused)
		add_note(session->result,
			"%llu mapped ranges found no room in the kernel's maps; stacks end there; "
			"record fewer processes at once (-p instead of -a)",
			(unsigned long long)session->ranges_refused);
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

static void add_end_notes(struct session *session, uint64_t frames_without_lines)
{
	const struct capture_stats *stats = &session->result->stats;

	if (session->kernel_note.text[0] && stats->kernel_frames)
		add_note(session->result, "%s", session->kernel_note.text);
	add_sampler_notes(session);
	add_file_notes(session);
	add_rate_note(session);
	if (!stats->samples)
		add_note(session->result,
			"no samples were taken: what was recorded used less CPU time than one "
			"sampling period%s",
			session->sampler == &bpf_sampler
				? ""
				: ", or gained privileges (set-uid), which ends sampling by users");
	if (stats->samples_lost)
		add_note(session->result,
			"%llu samples were lost because the sample ring was full; lower the rate "
			"(-F)",
			(unsigned long long)stats->samples_lost);
	if (frames_without_lines)
		add_note(session->result,
			"%llu frames have no source lines: reading debug information took more "
			"than %d s",
			(unsigned long long)frames_without_lines,
			(int)(WAIT_FOR_LINES_NS / NS_PER_S));
}

static int finish(struct session *session, struct errmsg *err)
{
	uint64_t without_lines;
	int result;

	session->sampler->stop(session->sampler_state);
	session->end_ns = monotonic_now_ns();
	session->sampling_ended = true;
	result = collect_waiting(session, true);
	if (result == 0)
		result = wait_for_tables(session);
	if (result < 0)
		return errmsg_set(err, result, "cannot finish the capture: %s", strerror(-result));
	/* Whatever happens while foreign debug information is read: the samples are in the file. */
	result = flush(session, err);
	if (result < 0)
		return result;
	without_lines =
		resolver_write_lines(session->resolver, monotonic_now_ns() + WAIT_FOR_LINES_NS);
	session->result->command_status = session->target.ended ? session->target.exit_status : -1;
	fill_stats(session, true);
	add_end_notes(session, without_lines);
	result = capture_writer_stats(session->writer, &session->result->stats);
	if (result < 0)
		return errmsg_set(err, result, "cannot finish the capture: %s", strerror(-result));
	return capture_writer_close(TAKE_PTR(session->writer), err);
}

static void close_parts(struct session *session)
{
	pipeline_free(session->pipeline);
	resolver_free(session->resolver);
	address_spaces_free(session->spaces);
	file_store_free(session->files);
	sideband_free(session->sideband);
	if (session->sampler)
		session->sampler->close(session->sampler_state);
	capture_writer_free(session->writer);
	array_foreach (&session->pid_fds, fd)
		close(*fd);
	array_done(&session->pid_fds);
	map_u64_done(&session->followed);
}

static int start(struct session *session, struct errmsg *err)
{
	const struct session_options *options = session->options;
	struct capture_writer_options writer_options = {
		.size = sizeof(writer_options),
		.uncompressed = options->uncompressed,
		.stack_sample = options->stack_sample,
	};
	int result = capture_writer_open(&session->writer, options->output, &writer_options, err);

	if (result == 0)
		result = block_signals(session, err);
	if (result == 0 && options->command)
		result = target_start(
			&session->target, options->command, &session->surroundings, err);
	if (result == 0)
		result = open_parts(session, err);
	if (result == 0)
		result = write_session(session, err);
	if (result == 0)
		result = follow_targets(session, err);
	if (result == 0)
		result = session->sampler->start(session->sampler_state, err);
	if (result < 0)
		return result;
	session->start_ns = session->last_flush_ns = monotonic_now_ns();
	if (options->command) {
		result = target_release(&session->target, options->command[0], err);
		session->target_running = result == 0;
		if (result < 0)
			session->result->command_status = result == -ENOENT ? 127 : 126;
	}
	if (result == 0 && options->on_started)
		options->on_started(options->context, session->sampler->name,
			session->result->mode_reason.text);
	return result;
}

int session_run(const struct session_options *options, struct session_result *ret_result,
	struct errmsg *err)
{
	struct session session = {
		.options = options,
		.result = ret_result,
		.signal_fd = -1,
		.target = {.go_fd = -1, .error_fd = -1, .pid_fd = -1},
	};
	int result;

	*ret_result = (struct session_result){.command_status = -1};
	raise_descriptor_limit(&session);
	result = check_proc(err);
	if (result == 0)
		result = choose_sampler(&session, err);
	ret_result->mode = session.sampler ? session.sampler->name : "";
	if (result == 0)
		result = start(&session, err);
	if (result == 0)
		result = run_loop(&session, err);
	if (result == 0)
		result = finish(&session, err);
	ret_result->duration_ns =
		(session.end_ns ? session.end_ns : monotonic_now_ns()) - session.start_ns;
	close_parts(&session);
	/* Whatever became of the recording, the command runs to its end, and its status is the
	 * user's. */
	if (session.target_running) {
		wait_for_command(&session);
		ret_result->command_status = session.target.exit_status;
	}
	closep(&session.signal_fd);
	target_done(&session.target);
	if (session.target.ended && ret_result->command_status < 0)
		ret_result->command_status = session.target.exit_status;
	return result;
}

void session_result_done(struct session_result *result)
{
	free(TAKE_PTR(result->losses));
}
