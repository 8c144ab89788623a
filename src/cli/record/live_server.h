/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sonde record --serve`: a process beside the recorder that serves the capture while it grows, and
 * afterwards. It shares nothing with the recorder but the file.
 */
#pragma once

#include <stdbool.h>

#include "base/errmsg.h"
#include "cli/command.h"
#include "collect/session/session.h"

struct live_server_options {
	bool is_wanted;
	const char *listen; /* NULL: not given */
};

#define LIVE_SERVER_OPTIONS(target)                                                                \
	{.long_name = "serve",                                                                     \
		.type = OPTION_FLAG,                                                               \
		.help = "Serve the recording while it runs, with live figures, and afterwards "    \
			"until Ctrl-C. The address goes to standard error.",                       \
		.value = &(target).is_wanted},                                                     \
	{                                                                                          \
		.long_name = "listen", .type = OPTION_STRING, .argument = "ADDRESS:PORT",          \
		.help = "With --serve: listen here; port 0 is a free one. Default: 127.0.0.1:0.",  \
		.value = (void *)&(target).listen                                                  \
	}

struct live_server;

/* Do they go together? Returns 0, or -EINVAL with a sentence. */
int live_server_check(const struct live_server_options *options,
	const struct session_options *session, bool writes_several, bool views, struct errmsg *err);
/*
 * Before the session, which has threads: forks. Sets what of the session is for it: `on_started`,
 * and how often the capture is written. Returns 0 or a negative errno with a sentence.
 */
int live_server_start(struct live_server **ret_server, const struct live_server_options *options,
	struct session_options *session, struct errmsg *err);
/* After the recording: until Ctrl-C, or its end. `failed`: it ends at once. Frees it; takes NULL.
 */
void live_server_finish(struct live_server *server, bool failed);
