/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing a session up: who samples, what is opened, who is followed. */
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

#include "base/file.h"
#include "collect/session/internal.h"

/* Looking for processes that started while their parents were being followed. */
#define MAXIMUM_FOLLOW_ROUNDS 8

void session_keep_failure(struct session *session, int result)
{
	if (result < 0 && session->failure == 0)
		session->failure = result;
}

bool session_samples(const struct session_options *options)
{
	return options->scope == SESSION_SCOPE_ALL || options->scope == SESSION_SCOPE_CPU;
}

static void on_file_added(void *context, const struct mapped_file *file)
{
	struct session *session = context;

	session_keep_failure(session, file_store_add(session->files, file));
}

static void on_mapping_added(
	void *context, const struct process *process, const struct mapping *mapping)
{
	struct session *session = context;
	const struct source_unwinder *unwinder = &session->sources.offered.unwinder;
	const struct mapped_file *file;
	uint64_t bias = 0;
	bool frame_pointer;

	if (mapping->kind == MAPPING_UPROBES)
		return;
	file = address_spaces_file(session->spaces, mapping->file);
	session_keep_failure(session, file_store_see(session->files, file));
	frame_pointer = !file_store_bias(session->files, mapping, &bias);
	if (unwinder->map &&
		unwinder->map(unwinder->state, process->pid, mapping, bias, frame_pointer) < 0)
		session->ranges_refused++;
	session_keep_failure(
		session, python_registry_mapping(session->python, process, mapping, file->path));
}

static void on_mapping_removed(
	void *context, const struct process *process, const struct mapping *mapping)
{
	struct session *session = context;
	const struct source_unwinder *unwinder = &session->sources.offered.unwinder;

	if (unwinder->unmap)
		unwinder->unmap(unwinder->state, process->pid, mapping);
}

static void on_process_cleared(void *context, const struct process *process)
{
	struct session *session = context;
	const struct source_unwinder *unwinder = &session->sources.offered.unwinder;

	if (unwinder->clear_space)
		unwinder->clear_space(unwinder->state, process->pid);
	python_registry_clear(session->python, process->pid);
}

static void on_process_forked(
	void *context, const struct process *parent, const struct process *child)
{
	struct session *session = context;
	const struct source_unwinder *unwinder = &session->sources.offered.unwinder;

	if (unwinder->fork_space)
		unwinder->fork_space(unwinder->state, parent->pid, child->pid);
	session_keep_failure(session, python_registry_fork(session->python, parent, child));
}

/* ---- the sources ---- */

static struct source_settings settings_of(const struct session_options *options)
{
	return (struct source_settings){
		.samples = session_samples(options),
		.whole_machine = options->whole_machine,
		.period_ns = options->period_ns,
		.may_use_bpf = options->mode != SESSION_MODE_USER,
		.must_use_bpf = options->mode == SESSION_MODE_BPF,
		.waits = options->wait != SESSION_WAIT_OFF,
		.exact_waits = options->wait == SESSION_WAIT_EXACT,
		.wait_period_ns = SESSION_WAIT_PERIOD_NS,
		.wait_min_ns = options->wait_min_ns,
		.energy = options->energy,
		.energy_model = options->energy_model,
		.require_energy = options->require_energy,
		.energy_baseline_ns = options->energy_baseline_ns,
		.interrupt_fd = -1,
	};
}

static void on_record(void *context, const struct wire_record *record)
{
	struct session *session = context;

	session_keep_failure(session, pipeline_add_record(session->pipeline, record));
}

static void on_event(void *context, const struct sideband_event *event)
{
	struct session *session = context;

	session_keep_failure(session, pipeline_add_event(session->pipeline, event));
}

static int write_domain(void *context, const struct wire_energy_domain *domain)
{
	return capture_writer_energy_domain(context, domain);
}

static int write_interval(void *context, const struct wire_energy_interval *interval)
{
	return capture_writer_energy_interval(context, interval);
}

static int write_state(void *context, const struct wire_energy_state *state)
{
	return capture_writer_energy_state(context, state);
}

static int write_absence(void *context, const struct wire_energy_absence *absence)
{
	return capture_writer_energy_absence(context, absence);
}

static void set_sink(struct session *session)
{
	session->energy_sink = (struct energy_sink){
		.context = session->writer,
		.domain = write_domain,
		.interval = write_interval,
		.state = write_state,
		.absence = write_absence,
	};
	session->sink = (struct source_sink){
		.context = session,
		.record = on_record,
		.event = on_event,
		.target_record = session_on_target_record,
		.target_read = session_on_target_read,
		.energy = &session->energy_sink,
	};
}

static int probe_sources(struct session *session, struct errmsg *err)
{
	const struct session_options *options = session->options;

	session->settings = settings_of(options);
	session_describe_device(session);
	return source_set_probe(&session->sources,
		options->sources ? options->sources : source_table, &session->settings, err);
}

static int open_first_sources(struct session *session, struct errmsg *err)
{
	session->settings.interrupt_fd = session->signal_fd;
	return source_set_open(&session->sources, SOURCE_BEFORE_COMMAND, &session->settings, err);
}

static int open_sources(struct session *session, struct errmsg *err)
{
	const struct session_options *options = session->options;
	const char *reason;
	int r;

	session->settings.pid = options->command     ? (uint32_t)session->target.pid
				: options->pid_count ? options->pids[0]
						     : 0;
	r = source_set_open(&session->sources, SOURCE_WITH_COMMAND, &session->settings, err);
	reason = session->sources.offered.unwind_mode_reason;
	if (reason)
		errmsg_set(&session->result->mode_reason, 0, "%s", reason);
	return r;
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
	if (session->options->window.signal)
		sigaddset(&mask, session->options->window.signal);
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
	const struct source_unwinder *unwinder = &session->sources.offered.unwinder;
	struct pipeline_parts parts = {
		.only_descendants = !options->whole_machine,
		.on_launch_stack = session_on_launch_stack,
		.context = session,
	};
	int result;

	result = file_store_new(&session->files, unwinder, err);
	if (result == 0)
		result = python_registry_new(
			&session->python, session->files, unwinder, session->writer);
	if (result == 0)
		result = address_spaces_new(&session->spaces, &listener);
	if (result == 0)
		result = resolver_new(
			&session->resolver, session->spaces, session->files, session->writer);
	if (result < 0)
		return result;
	parts.spaces = session->spaces;
	parts.files = session->files;
	parts.resolver = session->resolver;
	parts.python = session->python;
	parts.writer = session->writer;
	parts.windows = &session->windows.list;
	if (options->window.trigger != CAPTURE_TRIGGER_NONE)
		parts.between = session_windows_run_soon;
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
	result = source_set_follow(&session->sources, pid, err);
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
		result = source_set_follow(&session->sources, (uint32_t)session->target.pid, err);
	if (result == 0 && options->command)
		address_spaces_add_process(session->spaces, (uint32_t)session->target.pid, NULL);
	for (uint32_t i = 0; i < options->pid_count && result == 0; i++)
		result = follow_tree(session, options->pids[i], err);
	if (result == 0 && options->whole_machine)
		result = MIN(address_spaces_add_all(session->spaces), 0);
	session_find_limits(session);
	return result;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* As far as it is known before a program launches anything. */
static const char *launch_stacks_of(const struct session *session)
{
	bool has_bpf = session->sources.offered.bpf;

	switch (session->options->launch_stacks) {
	case SESSION_LAUNCH_STACKS_AUTO:
		return has_bpf ? "bpf" : "inprocess";
	case SESSION_LAUNCH_STACKS_BPF:
		return has_bpf ? "bpf" : "off";
	case SESSION_LAUNCH_STACKS_INPROCESS:
		return "inprocess";
	case SESSION_LAUNCH_STACKS_OFF:
		break;
	}
	return "off";
}

static int write_session(struct session *session)
{
	const struct session_options *options = session->options;
	const struct source_capabilities *offered = &session->sources.offered;
	uint64_t since_start_ns = monotonic_now_ns() - session->start_ns;
	struct utsname system;
	int result;
	struct capture_session out = {
		.sonde_version = SONDE_VERSION,
		.command = (const char *const *)options->command,
		.unwind_mode = offered->unwind_mode ?: "off",
		.unwind_mode_reason = session->result->mode_reason.text[0]
					      ? session->result->mode_reason.text
					      : NULL,
		.start_time_ns = session->start_ns,
		.start_realtime_ns = clock_ns(CLOCK_REALTIME) - since_start_ns,
		.start_boottime_ns = clock_ns(CLOCK_BOOTTIME) - since_start_ns,
		.period_ns = options->period_ns,
		.cpu_count = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
		.wait_mode = offered->wait_mode ?: "off",
		.wait_period_ns = offered->wait_period_ns,
		.wait_min_ns = offered->wait_min_ns,
		.launch_stacks = "off",
		.whole_machine = options->whole_machine,
	};

	if (session->device.is_recorded)
		out.launch_stacks = launch_stacks_of(session);
	uname(&system);
	out.host = system.nodename;
	out.kernel_release = system.release;
	out.architecture = system.machine;
	while (options->command && options->command[out.command_count])
		out.command_count++;
	result = capture_writer_session(session->writer, &out);
	if (result == 0)
		result = session_windows_describe(session, &out);
	return result;
}

/* Where others find the session that have not inherited it. */
static int write_session_file(struct session *session, struct errmsg *err)
{
	static const struct output_how how = {.access = OUTPUT_PRIVATE};
	const char *path = session->options->session_file;
	_cleanup_strbuf_ struct strbuf text = {0};
	struct errmsg reason = {""};
	int result;

	if (!path)
		return 0;
	if (!session->device.rings)
		return errmsg_set(err, -ENOENT, "cannot write --session-file %s: %s", path,
			session->sources.offered.why_no_rings.text);
	strbuf_addf(&text, "%s\n", target_rings_folder(session->device.rings));
	result = output_place_write(path, &how, strbuf_cstr(&text), text.length, &reason);
	return result < 0 ? errmsg_set(err, result, "cannot write --session-file %s: %s", path,
				    reason.text)
			  : 0;
}

/* Where somebody else's file appeared under the name meanwhile, the capture has another one. */
static int name_capture(struct session *session, struct errmsg *err)
{
	const struct session_options *options = session->options;
	const char *path;
	struct errmsg sentence;
	int result = capture_writer_name(session->writer, err);

	if (result < 0 || options->live.visitor)
		return result;
	path = capture_writer_path(session->writer);
	if (strcmp(path, options->output) == 0)
		return 0;
	session->result->output = strdup(path);
	if (!session->result->output)
		return errmsg_set(err, -ENOMEM, "memory ran out; the capture is %s", path);
	result = session_windows_rename(session);
	if (result < 0)
		return errmsg_set(err, result, "memory ran out; the capture is %s", path);
	errmsg_set(&sentence, 0,
		"%s is another recording's, or appeared meanwhile, and is kept: this capture is %s",
		options->output, path);
	if (options->on_other_output)
		options->on_other_output(options->context, sentence.text);
	return 0;
}

/* All sources are attached, which takes long on a busy machine: the recording is what comes now. */
static int begin_recording(struct session *session, struct errmsg *err)
{
	int result;

	session->start_ns = session->last_flush_ns = monotonic_now_ns();
	session->cpu_at_begin = session_cpu_now(session);
	result = write_session(session);
	if (result < 0)
		return errmsg_set(err, result, "cannot begin the capture: %s", strerror(-result));
	result = session_windows_start(session, err);
	/* A disk that is full already is noticed before the command starts. */
	if (result == 0)
		result = capture_writer_flush(session->writer, err);
	return result < 0 ? result : write_session_file(session, err);
}

static int start_recording(struct session *session, struct errmsg *err)
{
	const struct session_options *options = session->options;
	struct capture_writer_options writer_options = {
		.size = sizeof(writer_options),
		.uncompressed = options->uncompressed,
		.stack_sample = options->stack_sample,
		.device_slices = options->device_slices,
		.how = options->how,
	};
	int result = options->live.visitor
			     ? capture_writer_open_live(&session->writer, options->live.visitor,
				       options->live.visitor_context, err)
			     : capture_writer_open(
				       &session->writer, options->output, &writer_options, err);

	if (result == 0)
		set_sink(session);
	if (result == 0)
		result = block_signals(session, err);
	if (result == 0)
		result = open_first_sources(session, err);
	if (result == 0)
		result = session_prepare_device(session);
	if (result == 0)
		result = session_windows_open(session, err);
	if (result == 0 && options->command)
		result = target_start(
			&session->target, options->command, &session->surroundings, err);
	if (result == 0)
		result = open_sources(session, err);
	if (result == 0)
		result = open_parts(session, err);
	if (result == 0)
		result = follow_targets(session, err);
	if (result == 0)
		result = source_set_start(&session->sources, err);
	if (result == 0)
		result = begin_recording(session, err);
	if (result < 0)
		return result;
	if (options->command) {
		result = target_release(&session->target, options->command[0], err);
		session->target_running = result == 0;
		if (result < 0)
			session->result->command_status = result == -ENOENT ? 127 : 126;
	}
	if (result == 0)
		result = name_capture(session, err);
	if (result == 0 && options->on_started)
		options->on_started(options->context, session_output(options, session->result));
	return result;
}

int session_start(struct session *session, struct errmsg *err)
{
	int result;

	raise_descriptor_limit(session);
	result = check_proc(err);
	if (result == 0)
		result = probe_sources(session, err);
	return result == 0 ? start_recording(session, err) : result;
}
