/* SPDX-License-Identifier: Apache-2.0 */
/* What `sonde view` and `sonde serve` share. */
#pragma once

#include "server/server.h"

/*
 * server_run(), with the sentences about where it is: the address on standard output. `browser`
 * opens it. Returns the exit status.
 */
int serve_run(struct server_options *options, bool browser);
/* The default of --listen, of both. */
#define SERVE_LISTEN "127.0.0.1:7077"
#define VIEW_LISTEN  "127.0.0.1:0"

/* Of --perfetto: returns 0, or -EINVAL with a sentence: it is no address of a page. "" is none. */
int serve_check_perfetto(const char *address, struct errmsg *err);

#define PERFETTO_OPTION(variable)                                                                  \
	{                                                                                          \
		.long_name = "perfetto", .type = OPTION_STRING, .argument = "ADDRESS",             \
		.help = "The page that \"Open in Perfetto\" hands captures to, in the browser; "   \
			"empty: none. Default: https://ui.perfetto.dev.",                          \
		.value = (void *)&(variable)                                                       \
	}
