/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP and WebSocket for the page and for programs: `sonde view` and `sonde serve`.
 *
 * One thread answers all clients (http.c, socket.c) and opens no capture: each is loaded, and each
 * question answered, in a process of its own (answers.h). What may be asked stands in
 * schema/api.json (api.h), who may ask in guard.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "server/answers.h"
#include "server/loop.h"

struct bus;
struct job_commands;

/* Where live messages come from. `start` adds to the loop what it waits for. */
struct server_source {
	int (*start)(void *context, struct loop *loop, struct bus *bus);
	void *context;
};

struct server_options {
	const char *path; /* of the capture, or of the folder; NULL: none */
	/* Files that are one capture with `path`: more ranks of a run. */
	const char *const *more;
	size_t more_count;
	bool lists_folder;        /* the folder has captures; else it is one, of several ranks */
	bool is_view;             /* ends when its page is closed */
	bool is_recorded;         /* the capture is being recorded: it is followed at once */
	const char *listen;       /* "127.0.0.1:7077", "[::1]:0"; port 0: a free one */
	const char *token;        /* NULL: a new one */
	bool without_token;       /* only on loopback */
	const char *const *hosts; /* names that it answers to */
	size_t host_count;
	const char *tls_certificate, *tls_key; /* both or none */
	const char *store;                     /* the runs database (store/store.h); NULL: none */
	bool read_only;                        /* nothing can be changed or started */
	const struct job_commands *commands; /* that may be started (jobs/commands.h); NULL: none */
	const char *
		perfetto; /* the page that captures are handed to; NULL: Perfetto's own; "": none */
	struct answers_limits limits;
	const struct server_source *source; /* NULL: none */
	/* When clients can connect: `address` has the token. */
	void (*listening)(void *context, const char *address);
	void *context;
};

#define SERVER_PERFETTO "https://ui.perfetto.dev"

/*
 * Serves until SIGINT or SIGTERM comes, or the page of a view is closed. Returns 0 or a negative
 * errno with a sentence.
 */
int server_run(const struct server_options *options, struct errmsg *err);
