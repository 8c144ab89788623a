/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde record --continuous`: windows without end, into a folder of bounded size. */
#pragma once

#include "cli/command.h"
#include "collect/session/session.h"

#define CONTINUOUS_OUTPUT "sonde-windows"

struct continuous_options {
	bool is_continuous;
	const char *every, *keep;
	const char *output; /* -o; NULL */
};

#define CONTINUOUS_DEFAULTS                                                                        \
	{                                                                                          \
		.every = "60s", .keep = "1G"                                                       \
	}

#define CONTINUOUS_OPTIONS(target)                                                                 \
	{.long_name = "continuous",                                                                \
		.type = OPTION_FLAG,                                                               \
		.help = "Record without end, a capture for each window of time, into the folder "  \
			"-o. Each can be read by itself. Default folder: " CONTINUOUS_OUTPUT ".",  \
		.value = &(target).is_continuous,                                                  \
		.group = "Continuous recording"},                                                  \
		{.long_name = "every",                                                             \
			.type = OPTION_STRING,                                                     \
			.argument = "TIME",                                                        \
			.help = "The length of a window: 30s, 5min, 1h.",                          \
			.value = (void *)&(target).every,                                          \
			.group = "Continuous recording"},                                          \
	{                                                                                          \
		.long_name = "keep", .type = OPTION_STRING, .argument = "SIZE|N",                  \
		.help = "Keep so many windows in the folder, or so many bytes (500M, 20G); the "   \
			"oldest are removed.",                                                     \
		.value = (void *)&(target).keep, .group = "Continuous recording"                   \
	}

struct continuous;

/*
 * Opens the folder, and fills in what makes `session` a continuous recording. Returns 0 or an errno
 * with a sentence. Not called without is_continuous.
 */
int continuous_open(struct continuous **ret_continuous, const struct continuous_options *options,
	struct session_options *session, struct errmsg *err);
/* After session_run(): the last windows. Returns `result` or the first error. */
int continuous_finish(struct continuous *continuous, int result, struct errmsg *err);
/* For the account at the end, to standard error. */
void continuous_print(const struct continuous *continuous);
struct continuous *continuous_free(struct continuous *continuous);
