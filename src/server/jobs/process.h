/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process of the server, in a session of its own, so that signals reach all of it. What it
 * prints is read, so that it never waits, and its end is kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/loop.h"

#define PROCESS_OUTPUT_BYTES 4096

struct process {
	struct loop_watch exit;   /* of a pidfd */
	struct loop_watch output; /* fd -1: closed */
	struct loop *loop;
	pid_t pid; /* 0: none */
	int status;
	bool ends_all;                   /* with it, those that it started and left */
	char text[PROCESS_OUTPUT_BYTES]; /* the end of what it printed */
	size_t length;
	/* It has ended, with `status` of waitpid(); it may be started again. */
	void (*ended)(struct process *process);
};

struct process_setup {
	char *const *argv;        /* of this very program: argv[0] is a name */
	const char *cwd;          /* NULL: the server's */
	char *const *environment; /* NAME=VALUE, added; NULL-ended */
	uint64_t descriptors;     /* its limit */
};

/* Embedded, zero-initialised, with `ended` set. Returns 0 or a negative errno. */
int process_start(struct process *process, struct loop *loop, const struct process_setup *setup);
bool process_runs(const struct process *process);
/* To it and all that it started, except what has a session of its own. */
void process_signal(const struct process *process, int signal);
/* Kills it, if it runs. */
void process_done(struct process *process);
/* The last line that it printed, "" if none. Changes `text`. */
const char *process_last_line(struct process *process);
