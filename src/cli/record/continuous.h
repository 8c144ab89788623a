/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde record --continuous`: windows without end, into a folder of bounded size. */
#pragma once

#include "cli/command.h"
#include "collect/session/session.h"

#define CONTINUOUS_OUTPUT          "sonde-windows"
#define CONTINUOUS_OUTPUT_OF_RANKS CONTINUOUS_OUTPUT "-%h-%r"

struct continuous_options {
	bool is_continuous;
	const char *every, *keep;
	const char *output; /* the folder */
	struct option_strings uploads, pushes;
	const char *token_file, *metrics, *metrics_file;
	bool is_quiet;
};

#define CONTINUOUS_DEFAULTS                                                                        \
	{                                                                                          \
		.every = "60s", .keep = "1G"                                                       \
	}

#define CONTINUOUS_OPTIONS(target)                                                                        \
	{.long_name = "continuous",                                                                       \
		.type = OPTION_FLAG,                                                                      \
		.help = "Record without end, a capture for each window of time, into the folder "         \
			"-o. Each can be read by itself. Default folder: " CONTINUOUS_OUTPUT ".",         \
		.value = &(target).is_continuous,                                                         \
		.group = "Continuous recording"},                                                         \
		{.long_name = "every",                                                                    \
			.type = OPTION_STRING,                                                            \
			.argument = "TIME",                                                               \
			.help = "The length of a window: 30s, 5min, 1h.",                                 \
			.value = (void *)&(target).every,                                                 \
			.group = "Continuous recording"},                                                 \
		{.long_name = "upload",                                                                   \
			.type = OPTION_STRINGS,                                                           \
			.argument = "URL|DIR",                                                            \
			.help = "Deliver each window: to a folder, or by PUT to URL/NAME. What "          \
				"cannot be delivered waits in the folder -o, and is tried again. "        \
				"May be repeated.",                                                       \
			.value = &(target).uploads,                                                       \
			.group = "Continuous recording"},                                                 \
		{.long_name = "push",                                                                     \
			.type = OPTION_STRINGS,                                                           \
			.argument = "FORMAT=URL",                                                         \
			.help = "Send each window's CPU time: otlp=URL, profiles by OTLP; pprof=URL, to " \
				"URL/ingest, as Pyroscope takes it. otlp-metrics=URL: the metrics of "    \
				"--metrics by OTLP, when a window ends. As with --upload. May be "        \
				"repeated.",                                                              \
			.value = &(target).pushes,                                                        \
			.group = "Continuous recording"},                                                 \
		{.long_name = "token-file",                                                               \
			.type = OPTION_STRING,                                                            \
			.argument = "FILE",                                                               \
			.help = "Send the token in this file with each request, as a Bearer "             \
				"token. Default: that of $SONDE_TOKEN, if it is set.",                    \
			.value = (void *)&(target).token_file,                                            \
			.group = "Continuous recording"},                                                 \
		{.long_name = "metrics",                                                                  \
			.type = OPTION_STRING,                                                            \
			.argument = "HOST:PORT",                                                          \
			.help = "Answer GET /metrics for Prometheus on this address of loopback.",        \
			.value = (void *)&(target).metrics,                                               \
			.group = "Continuous recording"},                                                 \
		{.long_name = "metrics-file",                                                             \
			.type = OPTION_STRING,                                                            \
			.argument = "FILE",                                                               \
			.help = "Write the metrics to this file every five seconds, for node_exporter: "  \
				"NAME.prom in its folder of text files.",                                 \
			.value = (void *)&(target).metrics_file,                                          \
			.group = "Continuous recording"},                                                 \
	{                                                                                                 \
		.long_name = "keep", .type = OPTION_STRING, .argument = "SIZE|N",                         \
		.help = "Keep so many windows in the folder, or so many bytes (500M, 20G); the "          \
			"oldest are removed.",                                                            \
		.value = (void *)&(target).keep, .group = "Continuous recording"                          \
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
