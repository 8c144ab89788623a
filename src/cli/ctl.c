/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde ctl`: opens and closes the windows of a recording that runs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/strbuf.h"
#include "cli/commands.h"
#include "cli/session_client.h"

static const char *ctl_session;
static bool ctl_json;

/* "start my label" as the session reads it; one line. */
static int make_line(int count, char **words, struct strbuf *line, struct errmsg *err)
{
	static const char *const verbs[] = {"start", "stop", "step", "status"};
	bool is_known = false;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		is_known = is_known || strcmp(words[0], verbs[i]) == 0;
	if (!is_known)
		return errmsg_set(err, -EINVAL,
			"sonde ctl takes start, stop, step or status, not '%.60s'; try sonde ctl "
			"status",
			words[0]);
	if (count > 1 && strcmp(words[0], "start") != 0 && strcmp(words[0], "step") != 0)
		return errmsg_set(err, -EINVAL, "sonde ctl %s takes no argument, not '%.60s'",
			words[0], words[1]);
	strbuf_add(line, ctl_json ? "" : "text ");
	for (int i = 0; i < count; i++)
		strbuf_addf(line, "%s%s", i ? " " : "", words[i]);
	for (size_t i = 0; i < line->length; i++) {
		if (line->data[i] == '\n' || line->data[i] == '\r')
			line->data[i] = ' ';
	}
	strbuf_add_char(line, '\n');
	return line->length < SESSION_LINE_BYTES
		       ? strbuf_status(line)
		       : errmsg_set(err, -EINVAL,
				 "what follows sonde ctl %s is too long; give less than %d "
				 "characters",
				 words[0], SESSION_LINE_BYTES - 16);
}

/* In JSON the session's answer is passed on; in words an error is one of ours. */
static int print_answer(const char *answer)
{
	struct errmsg err;

	if (ctl_json) {
		puts(answer);
		return strncmp(answer, "{\"ok\":true", 10) == 0 ? EXIT_OK : EXIT_ERROR;
	}
	if (strncmp(answer, "ok ", 3) == 0) {
		_cleanup_strbuf_ struct strbuf plain = {0};

		escape_plain(&plain, answer + 3);
		puts(strbuf_cstr(&plain));
		return EXIT_OK;
	}
	errmsg_set(&err, 0, "%s", strncmp(answer, "error ", 6) == 0 ? answer + 6 : answer);
	return fail(&err);
}

static int run_ctl(int count, char **arguments)
{
	_cleanup_strbuf_ struct strbuf line = {0}, answer = {0};
	struct errmsg err = {{0}};
	char folder[SESSION_FOLDER_BYTES];

	if (make_line(count, arguments, &line, &err) < 0)
		return fail_usage(&err);
	if (session_client_find(ctl_session, folder, &err) < 0 ||
		session_client_ask(folder, strbuf_cstr(&line), &answer, &err) < 0)
		return fail(&err);
	return print_answer(strbuf_cstr(&answer));
}

static const struct option ctl_options[] = {
	{.long_name = "session",
		.type = OPTION_STRING,
		.argument = "DIR|PID",
		.help = "The recording: its folder, the process id of its sonde, or that of a "
			"process that it records. Default: this user's running recording.",
		.value = &ctl_session},
	{.long_name = "json",
		.type = OPTION_FLAG,
		.help = "Print the session's answer as JSON.",
		.value = &ctl_json},
	{0},
};

const struct command ctl_command = {
	.name = "ctl",
	.summary = "open and close the windows of a running recording",
	.usage = "[options] start [LABEL] | stop | step [NAME] | status",
	.description =
		"Talks to a `sonde record` of this user. start opens a window, which LABEL names "
		"in the capture; stop closes it. Both work with --window manual, and together with "
		"a flag, a signal or times. step makes a step by hand, for programs that make "
		"none. status shows what is recorded, and which steps were made.\n\nWith --json "
		"the answer is one object with \"ok\", and \"error\" if that is false.",
	.examples = "sonde record --window manual -- python3 serve.py &\n"
		    "sonde ctl start 'under load'\nsonde ctl stop\n    Record a part of a server's "
		    "life.\n"
		    "sonde ctl status --json --session 4711\n    Where the session of process 4711 "
		    "is, for scripts.",
	.options = ctl_options,
	.minimum_arguments = 1,
	.maximum_arguments = 64,
	.run = run_ctl,
};
