/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/session/window.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/session/internal.h"

/* After a window, processes have so long to tell what they hold back. */
#define DRAIN_NS NS_PER_S
/* Between two looks at whether the leader lives. */
#define LEADER_LOOK_NS (20 * NS_PER_MS)
/* The leader's edges are made in less than a microsecond. */
#define EDGE_TRIES 5

static struct target_gate *gate_of(struct session *session)
{
	return session->device.rings ? target_rings_gate(session->device.rings) : NULL;
}

/* ---- windows begin and end ---- */

static void begin_window(
	struct session *session, uint64_t time_ns, enum capture_window_trigger trigger)
{
	struct session_windows *windows = &session->windows;
	int result = windows_begin(&windows->list, time_ns, trigger);

	if (result == -E2BIG) {
		windows->is_too_many = true;
		target_gate_stop_schedule(gate_of(session));
		return;
	}
	session_keep_failure(session, result);
	if (result < 0)
		return;
	window_trigger_opened(&windows->trigger, windows_last(&windows->list)->begin_ns);
	windows->list.planned_end_ns = window_trigger_planned_end_ns(&windows->trigger);
}

/* The window that ended just now: was the sampler running before it? */
static void note_late_sampler(struct session *session)
{
	struct session_windows *windows = &session->windows;
	const struct capture_window *window = windows_last(&windows->list);
	uint64_t late_ns = windows->sampler ? window_switch_late_ns(windows->sampler,
						      window->begin_ns, window->end_ns)
					    : 0;

	/* Less than a period loses no sample. */
	if (late_ns >= session->options->period_ns && windows->late++ == 0) {
		windows->first_late = window->number;
		windows->first_late_ns = late_ns;
	}
}

static void end_window(struct session *session, uint64_t time_ns, enum capture_window_reason reason)
{
	struct session_windows *windows = &session->windows;

	if (!windows->list.is_open)
		return;
	windows_end(&windows->list, time_ns, reason);
	note_late_sampler(session);
	window_trigger_closed(&windows->trigger, reason, time_ns);
	windows->drain_until_ns = monotonic_now_ns() + DRAIN_NS;
}

/* ---- the leader's edges ---- */

/* 0: it is `sonde ctl`, or its file was not found yet. */
static uint32_t leader_pid(struct session *session)
{
	uint64_t leader = target_gate_leader(gate_of(session));
	struct target_process process;
	size_t position = 0;
	uint32_t pid = 0;

	target_rings_lock(session->device.rings);
	while (target_rings_next(session->device.rings, &position, &process)) {
		if (process.start_time_ns == leader)
			pid = process.pid;
	}
	target_rings_unlock(session->device.rings);
	return pid;
}

static void apply_edge(struct session *session, const struct wire_window_edge *edge)
{
	struct session_windows *windows = &session->windows;
	struct capture_window *window = windows_last(&windows->list);

	/* A window in a window: no leader of ours does that. */
	if (edge->phase == WIRE_PHASE_ACTIVE && windows->list.is_open)
		return;
	windows->phase = edge->phase;
	if (edge->phase == WIRE_PHASE_ACTIVE) {
		begin_window(session, edge->time_ns, session_window_spec(session)->trigger);
		window = windows_last(&windows->list);
		if (window && windows->list.is_open) {
			window->first_step = edge->step;
			window->leader_pid = leader_pid(session);
		}
	} else if (edge->phase == WIRE_PHASE_CLOSED && windows->list.is_open) {
		if (edge->step > window->first_step)
			window->last_step = edge->step - 1;
		if (!window->leader_pid) /* its file may be found after its first window began */
			window->leader_pid = leader_pid(session);
		end_window(session, edge->time_ns,
			edge->reason == WIRE_WINDOW_MAX_STEPS ? CAPTURE_REASON_MAX_STEPS
							      : CAPTURE_REASON_SCHEDULE);
	}
}

static uint64_t look_at_gate(void *context)
{
	struct session *session = context;
	struct wire_window_edge edges[WIRE_WINDOW_EDGES];
	uint64_t known_ns;
	size_t count = target_gate_read_edges(gate_of(session), edges, &known_ns);

	for (size_t i = 0; i < count; i++)
		apply_edge(session, &edges[i]);
	return known_ns;
}

/* The process that made the file at this moment: whether it still runs the same program. */
static bool is_ended(struct session *session, uint64_t start_time_ns)
{
	struct target_process process, leader = {0};
	const struct process *known;
	size_t position = 0;
	bool is_followed_by_another = false;

	target_rings_lock(session->device.rings);
	while (target_rings_next(session->device.rings, &position, &process)) {
		if (process.start_time_ns == start_time_ns)
			leader = process;
	}
	position = 0;
	while (target_rings_next(session->device.rings, &position, &process)) {
		if (process.pid == leader.pid && process.start_time_ns > start_time_ns)
			is_followed_by_another = true;
	}
	target_rings_unlock(session->device.rings);
	if (!leader.pid) /* its file was not found yet */
		return false;
	known = address_spaces_find(session->spaces, leader.pid);
	return is_followed_by_another || (known && known->exited) ||
	       (kill((pid_t)leader.pid, 0) < 0 && errno == ESRCH);
}

static void look_after_leader(struct session *session)
{
	struct session_windows *windows = &session->windows;
	uint64_t leader = target_gate_leader(gate_of(session)), now_ns = monotonic_now_ns();
	bool is_stepped = window_spec_is_scheduled(session_window_spec(session));

	if (now_ns - windows->leader_seen_ns < LEADER_LOOK_NS)
		return;
	windows->leader_seen_ns = now_ns;
	if (leader == WIRE_GATE_NOBODY || leader == WIRE_GATE_COLLECTOR ||
		!is_ended(session, leader))
		return;
	look_at_gate(session); /* its last edges */
	target_gate_free_leader(gate_of(session));
	if (!is_stepped || windows->phase == WIRE_PHASE_CLOSED)
		return;
	windows->is_leader_ended = true;
	end_window(session, target_gate_set_phase(gate_of(session), WIRE_PHASE_CLOSED),
		CAPTURE_REASON_LEADER_ENDED);
	windows->phase = WIRE_PHASE_CLOSED;
}

/* ---- by hand, by the flag, by signals and by the clock ---- */

/* The leader may be about to close the window by its steps: its edges come first. */
static uint64_t set_phase(struct session *session, enum wire_phase phase)
{
	uint64_t now_ns = 0;

	for (int tries = 0; !now_ns && tries < EDGE_TRIES; tries++) {
		look_at_gate(session);
		now_ns = target_gate_set_phase(gate_of(session), phase);
	}
	if (now_ns)
		session->windows.phase = phase;
	return now_ns;
}

static int open_now(struct session *session, enum capture_window_trigger trigger)
{
	uint64_t now_ns;

	if (session->windows.list.is_open || session->windows.is_too_many)
		return -EALREADY;
	if (session->windows.sampler)
		window_switch_set(session->windows.sampler, true);
	now_ns = set_phase(session, WIRE_PHASE_ACTIVE);
	if (!now_ns)
		return -EAGAIN;
	begin_window(session, now_ns, trigger);
	return session->windows.list.is_open ? 0 : -E2BIG;
}

static int close_now(struct session *session, enum capture_window_reason reason)
{
	uint64_t now_ns;

	if (!session->windows.list.is_open)
		return -EALREADY;
	now_ns = set_phase(session, WIRE_PHASE_CLOSED);
	if (!now_ns)
		return -EAGAIN;
	end_window(session, now_ns, reason);
	return 0;
}

static void act(
	struct session *session, enum window_action action, enum capture_window_reason reason)
{
	if (action == WINDOW_OPEN)
		open_now(session, session_window_spec(session)->trigger);
	else if (action == WINDOW_CLOSE)
		close_now(session, reason);
}

static void look_at_flag(struct session *session)
{
	struct session_windows *windows = &session->windows;
	struct errmsg note = {{0}};
	bool is_up = window_flag_is_up(windows->flag, &note);

	session_say(session, &note);
	act(session, window_trigger_flag(&windows->trigger, is_up, monotonic_now_ns()),
		CAPTURE_REASON_TRIGGER);
}

void session_windows_signal(struct session *session)
{
	act(session, window_trigger_signal(&session->windows.trigger), CAPTURE_REASON_TRIGGER);
}

int session_windows_begin_now(struct session *session, const char *label, struct errmsg *err)
{
	struct session_windows *windows = &session->windows;
	int result;

	if (windows->list.is_whole)
		return errmsg_set(err, -EINVAL,
			"this recording has no windows, it records all of the time: record with "
			"--window manual");
	if (window_spec_is_scheduled(session_window_spec(session)))
		return errmsg_set(err, -EINVAL,
			"the windows of this recording are opened by steps, as --window %s says: "
			"record with --window manual",
			session_window_spec(session)->text);
	look_at_gate(session);
	if (windows->list.is_open)
		return errmsg_set(err, -EALREADY, "window %u is open already: stop it first",
			windows_last(&windows->list)->number);
	result = open_now(session, CAPTURE_TRIGGER_MANUAL);
	if (result < 0)
		return errmsg_set(err, result,
			windows->is_too_many
				? "there were %d windows, the maximum: start a new recording"
				: "the window could not be opened: try again",
			WINDOWS_MAX);
	return *label ? windows_set_label(&windows->list, label) : 0;
}

int session_windows_end_now(
	struct session *session, enum capture_window_reason reason, struct errmsg *err)
{
	int result;

	if (session->windows.list.is_whole)
		return errmsg_set(err, -EINVAL,
			"this recording has no windows, it records all of the time: end it with "
			"Ctrl-C");
	look_at_gate(session);
	result = close_now(session, reason);
	if (result == -EALREADY)
		return errmsg_set(err, result, "no window is open: start one first");
	return result < 0 ? errmsg_set(err, result, "the window could not be closed: try again")
			  : 0;
}

int session_windows_own_step(struct session *session, const char *name, struct errmsg *err)
{
	struct session_windows *windows = &session->windows;
	struct capture_step step = {
		.pid = session->target.pid           ? (uint32_t)session->target.pid
		       : session->options->pid_count ? session->options->pids[0]
						     : 0,
		.number = windows->own_steps + 1,
		.name = *name ? name : "step",
	};

	step.tid = step.pid;
	if (target_gate_step(gate_of(session), step.number) < 0)
		return errmsg_set(err, -EBUSY,
			"a process of this recording makes steps itself, and those count");
	windows->own_steps++;
	look_at_gate(session);
	step.time_ns = monotonic_now_ns();
	if (step.pid && windows_has(&windows->list, step.time_ns))
		session_keep_failure(session, capture_writer_step(session->writer, &step));
	return 0;
}

/* ---- sources ---- */

static int switch_sources(void *context, bool active)
{
	struct session *session = context;

	return source_set_switch(&session->sources, active);
}

/* Brings the sources to what the window is: samples first, they are what somebody waits for. */
static int set_sources(struct session *session)
{
	struct session_windows *windows = &session->windows;
	struct capture_window *window = windows_last(&windows->list);
	uint32_t number = windows->list.is_open ? window->number : 0;
	bool is_on = windows->phase != WIRE_PHASE_CLOSED;
	int result = windows->sampler ? window_switch_set(windows->sampler, is_on) : 0;

	if (windows->phase == windows->sources && number == windows->sources_window)
		return result;
	if (!is_on)
		source_set_pause(&session->sources);
	else if (result == 0)
		result = source_set_resume(
			&session->sources, number ? window->begin_ns : monotonic_now_ns());
	windows->sources = windows->phase;
	windows->sources_window = number;
	return result;
}

/* ---- at work ---- */

static void get_gate_path(const struct session *session, char ret_path[PATH_MAX])
{
	snprintf(ret_path, PATH_MAX, "%s/" WIRE_GATE_NAME,
		target_rings_folder(session->device.rings));
}

static bool watch(struct session_windows *windows, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(windows->poll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static int open_polls(struct session *session)
{
	struct session_windows *windows = &session->windows;
	char gate_path[PATH_MAX];

	windows->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	windows->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	windows->poke_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	get_gate_path(session, gate_path);
	if (windows->poll_fd < 0 || windows->timer_fd < 0 || windows->poke_fd < 0 ||
		inotify_add_watch(windows->poke_fd, gate_path, IN_ATTRIB) < 0 ||
		!watch(windows, windows->timer_fd) || !watch(windows, windows->poke_fd))
		return -errno;
	return 0;
}

int session_windows_open(struct session *session, struct errmsg *err)
{
	struct session_windows *windows = &session->windows;
	const struct window_spec *spec = session_window_spec(session);
	int result;

	windows->list.is_whole = spec->trigger == CAPTURE_TRIGGER_NONE;
	windows->list.look = look_at_gate;
	windows->list.context = session;
	windows->trigger.spec = spec;
	windows->phase = windows->sources = WIRE_PHASE_ACTIVE;
	if (!session->device.rings)
		return windows->list.is_whole
			       ? 0
			       : errmsg_set(err, -ENOENT, "cannot record windows: %s",
					 session->sources.offered.why_no_rings.text);
	result = open_polls(session);
	if (result < 0)
		return errmsg_set(err, result,
			"cannot watch for windows: %s; raise `ulimit -n`, or "
			"fs.inotify.max_user_instances",
			strerror(-result));
	if (control_open(&windows->control, target_rings_folder(session->device.rings),
		    session_windows_answer, session, &windows->note) == 0)
		watch(windows, control_descriptor(windows->control));
	if (spec->trigger != CAPTURE_TRIGGER_FLAG)
		return 0;
	result = window_flag_open(&windows->flag, spec->path, err);
	if (result == 0)
		watch(windows, window_flag_descriptor(windows->flag));
	return result;
}

/* There are no windows: all is one. */
static int start_whole(struct session *session, struct errmsg *err)
{
	int result = source_set_resume(&session->sources, session->start_ns);

	if (!session->options->sources) /* those may look at a program when they like */
		session->windows.list.whole_begin_ns = session->start_ns;
	return result < 0 ? errmsg_set(err, result, "cannot begin to record: %s", strerror(-result))
			  : 0;
}

int session_windows_start(struct session *session, struct errmsg *err)
{
	struct session_windows *windows = &session->windows;
	char gate_path[PATH_MAX];
	int result;

	if (windows->list.is_whole)
		return start_whole(session, err);
	get_gate_path(session, gate_path);
	result = session_samples(session->options)
			 ? window_switch_start(&windows->sampler, switch_sources, session,
				   gate_of(session), gate_path)
			 : 0;
	if (result < 0)
		return errmsg_set(err, result,
			"cannot watch for windows: %s; raise `ulimit -u`, or "
			"fs.inotify.max_user_instances",
			strerror(-result));
	window_trigger_start(&windows->trigger, session->start_ns);
	windows->list.known_ns = session->start_ns; /* nothing is of an earlier moment */
	windows->phase = WIRE_PHASE_CLOSED;
	if (window_spec_is_scheduled(session_window_spec(session)))
		windows->phase = target_gate_start_schedule(gate_of(session), session->start_ns);
	if (windows->phase == WIRE_PHASE_ACTIVE) {
		begin_window(session, session->start_ns, session_window_spec(session)->trigger);
		windows_last(&windows->list)->first_step = 0;
	}
	if (windows->flag)
		look_at_flag(session);
	result = session_windows_run(session);
	return result < 0 ? errmsg_set(err, result, "cannot begin with the windows: %s",
				    strerror(-result))
			  : 0;
}

static void set_clock(struct session_windows *windows)
{
	uint64_t due_ns = window_trigger_due_ns(&windows->trigger);
	struct itimerspec timer = {.it_value = {.tv_sec = (time_t)(due_ns / NS_PER_S),
					   .tv_nsec = (long)(due_ns % NS_PER_S)}};

	if (due_ns == windows->timer_ns)
		return;
	windows->timer_ns = due_ns;
	if (due_ns == UINT64_MAX)
		timer = (struct itimerspec){{0}};
	timerfd_settime(windows->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

static void read_polls(struct session_windows *windows)
{
	char events[4096];

	while (read(windows->poke_fd, events, sizeof(events)) > 0)
		;
	if (read(windows->timer_fd, events, sizeof(uint64_t)) > 0)
		windows->timer_ns = 0;
}

/* What was begun in a window is reported after it, in bounded time. */
static void end_draining(struct session *session)
{
	struct session_windows *windows = &session->windows;
	bool is_holding;

	if (!windows->drain_until_ns || windows->phase != WIRE_PHASE_CLOSED)
		return;
	target_rings_lock(session->device.rings);
	is_holding = target_rings_holding(session->device.rings) > 0;
	target_rings_unlock(session->device.rings);
	if (is_holding && monotonic_now_ns() < windows->drain_until_ns)
		return;
	target_gate_end_draining(gate_of(session));
	windows->drain_until_ns = 0;
}

int session_windows_run(struct session *session)
{
	struct session_windows *windows = &session->windows;
	enum capture_window_reason reason = CAPTURE_REASON_TRIGGER;
	enum window_action action;
	int result;

	if (windows->poll_fd < 0)
		return 0;
	windows->run_ns = monotonic_now_ns();
	read_polls(windows);
	if (windows->control)
		control_run(windows->control);
	if (windows->list.is_whole)
		return 0;
	look_at_gate(session);
	if (windows->flag)
		look_at_flag(session);
	action = window_trigger_tick(&windows->trigger, monotonic_now_ns(), &reason);
	act(session, action, reason);
	result = set_sources(session);
	look_after_leader(session);
	set_clock(windows);
	end_draining(session);
	return result < 0 ? result : session_windows_write(session);
}

void session_windows_run_soon(void *context)
{
	struct session *session = context;

	if (monotonic_now_ns() - session->windows.run_ns >= NS_PER_MS && !session->sampling_ended)
		session_keep_failure(session, session_windows_run(session));
}

void session_windows_end(struct session *session)
{
	struct session_windows *windows = &session->windows;

	if (windows->list.is_whole && windows->list.whole_begin_ns)
		windows->list.whole_end_ns = session->end_ns;
	if (windows->poll_fd < 0 || windows->list.is_whole)
		return;
	look_at_gate(session);
	windows->leader_seen_ns = 0;
	look_after_leader(session);
	end_window(session, session->end_ns, CAPTURE_REASON_RECORDING_ENDED);
	windows->phase = WIRE_PHASE_CLOSED;
	windows->sampler = window_switch_free(windows->sampler);
}

void session_windows_close(struct session *session)
{
	struct session_windows *windows = &session->windows;

	windows->sampler = window_switch_free(windows->sampler);
	windows->control = control_free(windows->control);
	windows->flag = window_flag_free(windows->flag);
	closep(&windows->poke_fd);
	closep(&windows->timer_fd);
	closep(&windows->poll_fd);
	windows->manifest = manifest_free(windows->manifest);
	map_u64_done(&windows->known_processes);
	array_done(&windows->step_sources);
	windows_done(&windows->list);
}
