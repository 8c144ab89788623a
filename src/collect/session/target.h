/* SPDX-License-Identifier: Apache-2.0 */
/* The command to record: started held back, released when sampling is on, waited for. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/errmsg.h"

struct target {
	pid_t pid;    /* 0: none */
	int go_fd;    /* write end: a byte lets it run, closing ends it */
	int error_fd; /* read end: errno of a failed exec */
	int pid_fd;
	bool ended;
	int exit_status; /* as a shell gives it: 128 + signal when killed by one */
	uint64_t cpu_ns; /* of the command and the children that it waited for, once it has ended */
};

/* What sonde changes for itself; the command finds it as sonde did. */
struct target_surroundings {
	sigset_t signal_mask;
	struct sigaction on_child_signal;
	struct rlimit descriptors;
	char *const *environment; /* "NAME=value" to set for it, NULL-ended; NULL: none */
};

/*
 * Forks; the child waits until target_release() and then runs `command` by execvp in
 * `surroundings`. Returns 0 or a negative errno with a sentence.
 */
int target_start(struct target *ret_target, char *const *command,
	const struct target_surroundings *surroundings, struct errmsg *err);
/*
 * Lets it run. When the command cannot be executed returns -ENOENT (not found) or another negative
 * errno (found, but not executable), with a sentence; the child is gone then.
 */
int target_release(struct target *target, const char *name, struct errmsg *err);
/* Notes the exit status if it ended; waits for the end with `block`. True when it has ended. */
bool target_reap(struct target *target, bool block);
/* Ends a target that was not released and frees its descriptors. A running target is left alone. */
void target_done(struct target *target);
