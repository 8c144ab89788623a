/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings that a server starts for its clients, of the commands that the operator allows
 * (commands.h): each is `sonde record` as a child, whose capture lies in the served folder. Clients
 * learn each change by the message `job`. The server's thread alone; nothing here waits.
 */
#pragma once

#include "server/api.h"
#include "server/bus.h"
#include "server/captures.h"
#include "server/jobs/commands.h"
#include "server/loop.h"

struct jobs;
struct job;

struct jobs_setup {
	struct loop *loop;
	struct bus *bus;
	struct captures *captures;
	const char *folder; /* where captures are written; NULL: nothing can be started */
	const struct job_commands *commands; /* outlives it; NULL: none */
	uint64_t descriptors;                /* the limit of what it starts */
};

/* Returns 0 or a negative errno. */
int jobs_open(struct jobs **ret_jobs, const struct jobs_setup *setup);
/* Kills what runs. */
struct jobs *jobs_close(struct jobs *jobs);
/* Ends what has run too long, or does not end. Now and then. */
void jobs_tick(struct jobs *jobs, uint64_t now_ns);
/* The server ends: all are asked to end. */
void jobs_cancel_all(struct jobs *jobs, uint64_t now_ns);
bool jobs_run(const struct jobs *jobs);

/*
 * Starts a command. Returns 0 or a negative errno with a sentence: -EINVAL: a parameter is wrong;
 * -EBUSY: as many run as may.
 */
int jobs_start(struct jobs *jobs, const struct job_command *command, const struct json_text *values,
	const struct job **ret_job, struct errmsg *err);
/* NULL: there is none, or no longer. */
struct job *jobs_find(const struct jobs *jobs, const char *id);
/* -EALREADY with a sentence: it has ended. */
int job_cancel(struct jobs *jobs, struct job *job, struct errmsg *err);
/*
 * Asks the recording to open or close a window; the message `job` says when it has. Returns 0, or
 * -EALREADY with a sentence: it has ended, has no windows, or is being asked now.
 */
int job_set_window(struct jobs *jobs, struct job *job, bool is_open, struct errmsg *err);

/* Job and JobList of schema/api.json. */
void job_write(const struct job *job, struct json_writer *json);
void jobs_write(const struct jobs *jobs, struct json_writer *json);
