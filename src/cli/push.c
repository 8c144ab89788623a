/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde push`: hands finished captures over to other systems. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/warn.h"
#include "cli/commands.h"
#include "push/receiver.h"

static struct {
	const char *to, *token_file;
	uint64_t attempts;
	bool is_quiet;
} arguments = {.attempts = 3};

static void wait_before(uint64_t attempt, uint64_t asked_s)
{
	struct timespec pause = {
		.tv_sec = (time_t)(asked_s ? asked_s : 1ULL << MIN(attempt, (uint64_t)6))};

	nanosleep(&pause, NULL);
}

static int push_one(const struct receiver *receiver, const char *path, struct errmsg *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t asked_s = 0;

	if (fd < 0)
		return errmsg_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	for (uint64_t attempt = 1;; attempt++) {
		enum delivery delivery =
			receiver_deliver(receiver, path_base_name(path), fd, &asked_s, err);

		if (delivery == DELIVERY_DONE)
			return 0;
		if (delivery == DELIVERY_REJECTED || attempt >= arguments.attempts)
			return -EIO;
		if (!arguments.is_quiet)
			warn("%s; it is tried again", err->text);
		wait_before(attempt - 1, asked_s);
	}
}

static int run_push(int count, char **paths)
{
	_cleanup_free_ char *token = NULL;
	struct receiver receiver = {0};
	struct errmsg err = {""};
	int r;

	if (!arguments.to) {
		errmsg_set(&err, -EINVAL,
			"nothing says where to: give --to otlp=URL, --to pprof=URL, --to URL or "
			"--to FOLDER");
		return fail_usage(&err);
	}
	r = receiver_token(arguments.token_file, &token, &err);
	if (r == 0)
		r = receiver_parse(&receiver, arguments.to, &err);
	if (r < 0)
		return fail_usage(&err);
	receiver.token = token;
	for (int i = 0; i < count; i++) {
		if (push_one(&receiver, paths[i], &err) < 0)
			return fail(&err);
		if (!arguments.is_quiet)
			warn("%s has %s", receiver.address, paths[i]);
	}
	return EXIT_OK;
}

static const struct option push_options[] = {
	{.long_name = "to",
		.type = OPTION_STRING,
		.argument = "RECEIVER",
		.help = "otlp=URL: profiles by OTLP over HTTP, to URL/v1development/profiles; "
			"pprof=URL: to URL/ingest, as Pyroscope takes it; URL: the capture by PUT "
			"to URL/NAME; a folder: a copy of the capture.",
		.value = (void *)&arguments.to},
	{.long_name = "token-file",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Send the token in this file with each request, as a Bearer token. "
			"Default: that of $SONDE_TOKEN, if it is set.",
		.value = (void *)&arguments.token_file},
	{.long_name = "attempts",
		.type = OPTION_U64,
		.argument = "N",
		.help = "Give up after so many, with 1 s, 2 s, 4 s … between them.",
		.value = &arguments.attempts,
		.minimum = 1,
		.maximum = 100},
	{.short_name = 'q',
		.long_name = "quiet",
		.type = OPTION_FLAG,
		.help = "Say only what went wrong.",
		.value = &arguments.is_quiet},
	{0},
};

const struct command push_command = {
	.name = "push",
	.summary = "hand captures over to other systems",
	.usage = "--to RECEIVER CAPTURE…",
	.description =
		"Hands finished captures over, one after another, and stops at the first that is "
		"not taken. `sonde record --continuous --push` does it for each window.",
	.examples = "sonde push --to otlp=http://127.0.0.1:4318 run.pftrace\n    CPU time to an "
		    "OpenTelemetry collector.\n"
		    "sonde push --to pprof=http://127.0.0.1:4040 run.pftrace\n    To Pyroscope.",
	.options = push_options,
	.minimum_arguments = 1,
	.maximum_arguments = -1,
	.run = run_push,
};
