/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `sonde record` that say which part of the time is recorded. */
#pragma once

#include "cli/command.h"
#include "collect/session/session.h"

struct window_options {
	const char *window, *step_on, *session_file;
	uint64_t max_steps;
	double max_duration_s;
};

#define WINDOW_OPTIONS(target)                                                                     \
	{.long_name = "window",                                                                    \
		.type = OPTION_STRING,                                                             \
		.argument = "WHEN",                                                                \
		.help = "Record only while a window is open. flag:PATH: while that file is "       \
			"there; steps:wait=1,warmup=1,active=3,repeat=1: those steps of the "      \
			"program (repeat=0: to the end); calls:A-B[,C-D]: from the A-th step to "  \
			"the end of the B-th; time:START..[END]: seconds since the start; "        \
			"signal:USR2: that signal to sonde opens and closes; manual: sonde ctl. "  \
			"Default: all the time.",                                                  \
		.value = &(target).window,                                                         \
		.group = "Windows"},                                                               \
		{.long_name = "step-on",                                                           \
			.type = OPTION_STRING,                                                     \
			.argument = "PATTERN",                                                     \
			.help = "Windows count the steps whose names match this extended regular " \
				"expression. Default: those of the first name that a process "     \
				"makes.",                                                          \
			.value = &(target).step_on,                                                \
			.group = "Windows"},                                                       \
		{.long_name = "max-steps",                                                         \
			.type = OPTION_U64,                                                        \
			.argument = "N",                                                           \
			.help = "Close a window at its N-th step. Default: no limit.",             \
			.value = &(target).max_steps,                                              \
			.minimum = 1,                                                              \
			.maximum = 1e9,                                                            \
			.group = "Windows"},                                                       \
		{.long_name = "max-duration",                                                      \
			.type = OPTION_DOUBLE,                                                     \
			.argument = "SECONDS",                                                     \
			.help = "Close a window after this time. Default: no limit.",              \
			.value = &(target).max_duration_s,                                         \
			.minimum = 0.001,                                                          \
			.maximum = 1e6,                                                            \
			.group = "Windows"},                                                       \
	{                                                                                          \
		.long_name = "session-file", .type = OPTION_STRING, .argument = "FILE",            \
		.help = "Write the path of the session's folder here when recording begins: for "  \
			"sonde ctl --session, and programs that are attached to.",                 \
		.value = &(target).session_file, .group = "Windows"                                \
	}

/* Fills the windows' part of `options`. Returns 0 or -EINVAL with a sentence. */
int window_options_parse(
	const struct window_options *windows, struct session_options *options, struct errmsg *err);
