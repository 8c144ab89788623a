/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The windows of a session at work: what opens and closes them, and the sources that run while one
 * is open. window.c does it, window_output.c tells the capture and the manifest,
 * window_answer.c answers on the control socket, window_notes.c says what did not
 * go as it was asked for. A part of internal.h.
 */
#pragma once

#include "base/map.h"
#include "collect/session/control.h"
#include "collect/session/manifest.h"
#include "collect/windows/flag.h"
#include "collect/windows/switch.h"
#include "collect/windows/trigger.h"
#include "collect/windows/windows.h"
#include "sources/target/target_rings.h"

struct session;

/* Steps of a name that a process, as one of the programs that it was, has reported. */
struct step_source {
	uint64_t key;
	char name[WIRE_STEP_NAME_BYTES];
};

struct session_windows {
	struct windows list;
	struct window_trigger trigger;
	struct window_flag *flag;
	struct control *control;
	struct window_switch *sampler; /* NULL: all the time, or no threads are sampled */
	struct manifest *manifest;     /* NULL: there are no windows */
	struct errmsg note;            /* why `sonde ctl` cannot reach this session */
	int poll_fd;                   /* readable when session_windows_run() has something to do */
	int poke_fd, timer_fd;         /* inotify on the gate; the clock */
	enum wire_phase phase;         /* of the gate, as we know it */
	enum wire_phase sources;       /* what the sources are set to */
	uint32_t sources_window;       /* and for which window */
	size_t written;                /* windows that the capture knows whole */
	bool is_written_open;          /* and that the next one is open */
	bool is_too_many;
	bool is_leader_ended;
	uint64_t drain_until_ns; /* 0: the gate does not drain */
	uint64_t run_ns;         /* when it was last seen to */
	uint64_t leader_seen_ns; /* when it was last looked at */
	uint64_t timer_ns;       /* what the clock is set to */
	uint64_t own_steps;      /* made by `sonde ctl step` */
	uint32_t late;           /* windows that began before the sampler ran */
	uint32_t first_late;     /* the first one's number */
	uint64_t first_late_ns;  /* and how long it was not sampled */
	uint64_t steps_lost;     /* reported by no process of ours */
	ARRAY_OF(struct step_source) step_sources;
	struct map_u64 known_processes; /* pids → programs so far, as the manifest knows them */
	struct errmsg manifest_note;    /* why it could not be written */
};

/* Before the command is started; the folder is there. Returns 0 or an errno with a sentence. */
int session_windows_open(struct session *session, struct errmsg *err);
/* The capture's session as it was written: for the manifest. Returns 0 or -ENOMEM. */
int session_windows_describe(struct session *session, const struct capture_session *described);
/* The capture has got another name than it was to have. Returns 0 or -ENOMEM. */
int session_windows_rename(struct session *session);
/* Recording starts now: the sources run, and are stopped unless a window opens at once. */
int session_windows_start(struct session *session, struct errmsg *err);
/* Each time round the loop: does what is due. Returns 0 or a negative errno. */
int session_windows_run(struct session *session);
/* The same, at most once a millisecond; in between of other work. The context is the session. */
void session_windows_run_soon(void *context);
/* The signal that --window names came. */
void session_windows_signal(struct session *session);
/* WIRE_RECORD_STEP of a process. Returns 0 or a negative errno. */
int session_windows_step(struct session *session, uint32_t pid, const struct wire_step *step);
/* Nothing is recorded from now on: ends the open window. */
void session_windows_end(struct session *session);
/* Tells the capture of all windows. Returns 0 or a negative errno. */
int session_windows_write(struct session *session);
/* The capture is whole, or in parts: the manifest's last word. */
void session_windows_finish(struct session *session);
void session_windows_close(struct session *session);

/* ---- between the files ---- */

/* A sentence to the user, while it is recorded; none when it is empty. */
void session_say(struct session *session, const struct errmsg *sentence);

/* Returns 0, or a negative errno with a sentence. */
int session_windows_begin_now(struct session *session, const char *label, struct errmsg *err);
int session_windows_end_now(
	struct session *session, enum capture_window_reason reason, struct errmsg *err);
int session_windows_own_step(struct session *session, const char *name, struct errmsg *err);
/* control_answer_function; the context is the session. */
void session_windows_answer(void *context, char *line, struct strbuf *out);
/* Adds sentences on windows, by `add`. */
void session_windows_notes(
	struct session *session, void (*add)(struct session *session, const char *sentence));
