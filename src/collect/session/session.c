/* SPDX-License-Identifier: Apache-2.0 */
/* A session at work: the event loop, and how it ends. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/session/internal.h"

#define TICK_MS  100
#define FLUSH_NS (700 * NS_PER_MS)
/* Writing more at once would keep us from the rings for too long. */
#define FLUSH_BYTES ((size_t)1 << 20)
/* A record is in its ring this long after its time stamp at the latest. */
#define IN_FLIGHT_NS        (2 * NS_PER_MS)
#define WAIT_FOR_TABLES_NS  (60 * NS_PER_S)
#define KEEP_EXITED_NS      (2 * NS_PER_S)
#define MAXIMUM_DESCRIPTORS 1200
#define OWN_DESCRIPTORS     4

/* What is older than this moment is in the queues after the drains: it can be put in order. */
static int collect_waiting(struct session *session, bool everything)
{
	uint64_t before_ns = monotonic_now_ns();
	int result = source_set_drain(&session->sources, &session->sink);

	if (result == 0)
		result = session_collect_device(session, everything);
	if (result == 0)
		result = pipeline_process(
			session->pipeline, everything ? UINT64_MAX : before_ns - IN_FLIGHT_NS);
	session->ordered_until_ns = before_ns - IN_FLIGHT_NS;
	if (result == 0 && pipeline_waiting(session->pipeline))
		result = pipeline_retry(session->pipeline, false);
	python_registry_check(session->python);
	address_spaces_forget_exited(session->spaces, before_ns - KEEP_EXITED_NS);
	return result < 0 ? result : session->failure;
}

static int flush(struct session *session, struct errmsg *err)
{
	int result = session_write_limits(session);

	if (result < 0)
		return errmsg_set(err, result, "cannot keep the samples: %s", strerror(-result));
	session_fill_stats(session, false);
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
		if (session->options->window.signal &&
			(int)info.ssi_signo == session->options->window.signal) {
			session_windows_signal(session);
			continue;
		}
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
	if (options->live.visitor && !options->live.tick(options->live.tick_context, session))
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
	int fds[MAXIMUM_DESCRIPTORS - OWN_DESCRIPTORS];
	size_t count = source_set_descriptors(&session->sources, fds, ARRAY_SIZE(fds));

	for (size_t i = 0; i < count; i++)
		ret_polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	ret_polls[count++] = (struct pollfd){.fd = session->signal_fd, .events = POLLIN};
	if (session->options->live.visitor)
		ret_polls[count++] =
			(struct pollfd){.fd = session->options->live.input_fd, .events = POLLIN};
	if (session->windows.poll_fd >= 0)
		ret_polls[count++] =
			(struct pollfd){.fd = session->windows.poll_fd, .events = POLLIN};
	ret_polls[count++] =
		(struct pollfd){.fd = file_store_descriptor(session->files), .events = POLLIN};
	return count;
}

static bool should_flush(const struct session *session)
{
	uint64_t flush_ns = session->options->flush_ns ? session->options->flush_ns : FLUSH_NS;

	return monotonic_now_ns() - session->last_flush_ns >= flush_ns ||
	       capture_writer_waiting(session->writer) >= FLUSH_BYTES;
}

static int run_loop(struct session *session, struct errmsg *err)
{
	struct pollfd polls[MAXIMUM_DESCRIPTORS];
	size_t count = gather_descriptors(session, polls);
	int result;

	for (;;) {
		int timeout_ms = source_set_timeout_ms(&session->sources, wait_timeout_ms(session));

		if (poll(polls, count, timeout_ms) < 0 && errno != EINTR)
			return errmsg_set(
				err, -errno, "waiting for samples failed: %s", strerror(errno));
		file_store_acknowledge(session->files);
		on_signals(session);
		result = session_windows_run(session);
		if (result == 0)
			result = collect_waiting(session, false);
		if (result < 0)
			return errmsg_set(
				err, result, "cannot keep the samples: %s", strerror(-result));
		if (should_flush(session)) {
			result = flush(session, err);
			if (result < 0)
				return result;
		}
		if (should_end(session))
			return 0;
	}
}

/* A signal after the end of the recording ends what is still read. */
static bool finishing_given_up(void *context)
{
	struct session *session = context;

	on_signals(session);
	return session->interrupts > session->interrupts_at_end;
}

/* Samples of the last moments may wait for tables: a short first run is as whole as a long one. */
static int wait_for_tables(struct session *session)
{
	uint64_t deadline_ns = monotonic_now_ns() + WAIT_FOR_TABLES_NS;
	struct pollfd ready = {.fd = file_store_descriptor(session->files), .events = POLLIN};
	int result = pipeline_retry(session->pipeline, false);

	while (result == 0 && pipeline_waiting(session->pipeline) &&
		monotonic_now_ns() < deadline_ns && !finishing_given_up(session)) {
		if (session->options->on_finishing)
			session->options->on_finishing(session->options->context,
				"unwind tables and symbols", pipeline_waiting(session->pipeline));
		poll(&ready, 1, TICK_MS);
		file_store_acknowledge(session->files);
		result = pipeline_retry(session->pipeline, false);
	}
	return result < 0 ? result : pipeline_retry(session->pipeline, true);
}

static int finish(struct session *session, struct errmsg *err)
{
	struct line_account lines;
	int result;

	session->interrupts_at_end = session->interrupts;
	/* Before anything is stopped, which takes long on a busy machine. */
	session->end_ns = monotonic_now_ns();
	session_windows_end(session);
	if (session->device.collector)
		device_collector_end(session->device.collector, session->end_ns);
	source_set_pause(&session->sources);
	source_set_stop(&session->sources);
	session->sampling_ended = true;
	session->cpu_at_end = session_cpu_now(session);
	if (session->options->live.visitor && !session->options->live.is_kept) {
		/* nobody looks at it any more */
		session->result->command_status =
			session->target.ended ? session->target.exit_status : -1;
		return 0;
	}
	result = source_set_finish(&session->sources, session->end_ns, &session->sink);
	if (result == 0)
		result = session_read_hooks(session);
	if (result == 0)
		result = collect_waiting(session, true);
	if (result == 0)
		result = session_windows_write(session);
	if (result == 0)
		result = wait_for_tables(session);
	if (result == 0)
		result = resolver_write_late_names(session->resolver,
			monotonic_now_ns() + LATE_NAMES_NS, &session->late_names_read);
	if (result == 0 && session->device.ranges)
		result = range_collector_name_threads(session->device.ranges);
	if (result < 0)
		return errmsg_set(err, result, "cannot finish the capture: %s", strerror(-result));
	/* Whatever happens while foreign debug information is read: the samples are in the file. */
	result = flush(session, err);
	if (result < 0)
		return result;
	resolver_write_lines(session->resolver, monotonic_now_ns() + SESSION_LINES_NS,
		finishing_given_up, session, &lines);
	session->result->command_status = session->target.ended ? session->target.exit_status : -1;
	session_fill_stats(session, true);
	session_add_end_notes(session, &lines);
	result = capture_writer_stats(session->writer, &session->result->stats);
	if (result < 0)
		return errmsg_set(err, result, "cannot finish the capture: %s", strerror(-result));
	result = capture_writer_close(TAKE_PTR(session->writer), err);
	if (result == 0 && session->options->split)
		result = session_split(session, err);
	session_windows_finish(session);
	return result;
}

void session_forget_callstacks(struct session *session)
{
	capture_writer_forget_callstacks(session->writer);
	pipeline_forget_waits(session->pipeline);
}

void session_renew_callstacks(struct session *session)
{
	capture_writer_renew_callstacks(session->writer);
}

uint64_t session_settled_ns(const struct session *session)
{
	return MIN(session->ordered_until_ns, pipeline_waiting_since_ns(session->pipeline));
}

static void close_parts(struct session *session)
{
	session_windows_close(session);
	pipeline_free(session->pipeline);
	resolver_free(session->resolver);
	address_spaces_free(session->spaces);
	python_registry_free(session->python);
	file_store_free(session->files);
	session_close_device(session);
	source_set_close(&session->sources);
	capture_writer_free(session->writer);
	array_foreach (&session->pid_fds, fd)
		close(*fd);
	array_done(&session->pid_fds);
	map_u64_done(&session->followed);
}

int session_run(const struct session_options *options, struct session_result *ret_result,
	struct errmsg *err)
{
	struct session session = {
		.options = options,
		.result = ret_result,
		.signal_fd = -1,
		.windows = {.poll_fd = -1, .poke_fd = -1, .timer_fd = -1},
		.target = {.go_fd = -1, .error_fd = -1, .pid_fd = -1},
	};
	int result;

	*ret_result = (struct session_result){.command_status = -1};
	result = session_start(&session, err);
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
	free(TAKE_PTR(result->output));
	hook_table_done(&result->hooks);
}
