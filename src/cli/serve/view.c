/* SPDX-License-Identifier: Apache-2.0 */
/* sonde view: a capture in the browser. */
#include "cli/commands.h"
#include "cli/serve/serve.h"
#include "page/page.h"

static struct {
	const char *listen, *perfetto;
	bool no_browser;
} arguments = {.listen = VIEW_LISTEN, .perfetto = SERVER_PERFETTO};

static int view_run(int count, char **positional)
{
	struct server_options options = {
		.path = positional[0],
		.more = (const char *const *)positional + 1,
		.more_count = (size_t)count - 1,
		.is_view = true,
		.listen = arguments.listen,
		.read_only = true,
		.perfetto = arguments.perfetto,
		.limits = ANSWERS_LIMITS_DEFAULT,
	};
	struct errmsg err;

	if (serve_check_perfetto(arguments.perfetto, &err) < 0)
		return fail_usage(&err);
	if (page_check(&err) < 0)
		return fail(&err);
	return serve_run(&options, !arguments.no_browser);
}

static const struct option view_options[] = {
	{.long_name = "no-browser",
		.type = OPTION_FLAG,
		.help = "Print the address and open no browser.",
		.value = &arguments.no_browser},
	{.long_name = "listen",
		.type = OPTION_STRING,
		.argument = "ADDRESS:PORT",
		.help = "Listen here; port 0 is a free one.",
		.value = (void *)&arguments.listen},
	PERFETTO_OPTION(arguments.perfetto),
	{0},
};

const struct command view_command = {
	.name = "view",
	.summary = "open a capture in the browser",
	.usage = "[options] [CAPTURE | TRACE | FOLDER]…",
	.description =
		"Opens a page with the report, flame graphs and the timeline of a capture, or of a "
		"trace of PyTorch's profiler. Several of them, named or in a folder, are one run: "
		"its ranks, or recordings on several hosts. The page comes from this program, through an address of this machine with a token in "
		"it: nothing is sent elsewhere, and no other user can open it. sonde ends when the "
		"page is closed.\n\nOn another machine, forward the port that --no-browser prints: "
		"ssh -L 7077:127.0.0.1:7077 HOST, then open the address here. Give the port with "
		"--listen 127.0.0.1:7077.",
	.examples = "sonde view\n    " DEFAULT_CAPTURE " in the browser.\n"
		    "sonde view run/\n    All recordings of a run, or all ranks' traces.\n"
		    "sonde view --no-browser --listen 127.0.0.1:7077 sonde.pftrace\n    On a "
		    "cluster, to be opened through ssh -L.",
	.options = view_options,
	.minimum_arguments = 1,
	.maximum_arguments = -1,
	.default_argument = DEFAULT_CAPTURE,
	.run = view_run,
};
