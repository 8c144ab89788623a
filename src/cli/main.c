/* SPDX-License-Identifier: Apache-2.0 */
/* The sonde program: finds the command, reads its options, runs it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/options.h"

const struct command *const commands[] = {
	&record_command,
	&top_command,
	&dump_command,
	&report_command,
	&view_command,
	&serve_command,
	&export_command,
	&push_command,
	&diff_command,
	&mcp_command,
	&import_command,
	&merge_command,
	&runs_command,
	&chakra_command,
	&ctl_command,
	&doctor_command,
	&version_command,
	&help_command,
	&completion_command,
	&man_command,
	NULL,
};

/* A full disk or a closed pipe must not look like success. */
static int check_output(int status)
{
	struct errmsg err;

	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (status != EXIT_OK)
		return status;
	errmsg_set(&err, 0, "cannot write to standard output: %s",
		errno ? strerror(errno) : "an earlier write failed");
	return fail(&err);
}

static int run_command(const struct command *command, char **words)
{
	struct parsed_arguments arguments;
	struct errmsg err;

	if (options_parse(command, words, &arguments, &err) < 0)
		return fail_usage(&err);
	if (arguments.wants_brief_help)
		return help_print_brief(command);
	if (arguments.wants_help)
		return help_print_command(command);
	return command->run(arguments.count, arguments.values);
}

/* The first word says which one is meant. */
static int run_subcommand(const struct command *command, char **words)
{
	const struct command *meant = words[0] ? subcommand_find(command, words[0]) : NULL;
	struct errmsg err;

	if (meant)
		return run_command(meant, words + 1);
	if (words[0] && (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0))
		return help_print_command(command);
	if (command->otherwise && (!words[0] || words[0][0] == '-'))
		return run_command(command->otherwise, words);
	if (!words[0]) {
		help_print_command(command);
		return EXIT_USAGE;
	}
	subcommand_unknown(command, words[0], &err);
	return fail_usage(&err);
}

static int run(char **words)
{
	const struct command *command;
	const char *name = words[0];
	struct errmsg err;

	if (!name) {
		help_print_start();
		return EXIT_USAGE;
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return help_print_overview();
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		return run_command(&version_command, words + 1);
	command = command_find(name);
	if (command && command->subcommands)
		return run_subcommand(command, words + 1);
	if (command)
		return run_command(command, words + 1);
	if (name[0] == '-')
		errmsg_set(&err, 0,
			"'%.60s' must come after a command; 'sonde --help' lists the commands",
			name);
	else
		command_unknown(name, &err);
	return fail_usage(&err);
}

/*
 * A standard stream that was closed would become the first file that is opened, and what is meant
 * for the terminal would go into it. Its place is taken in the wrong direction, so that using it
 * still fails; a recorded command finds it closed as before.
 */
static void occupy_closed_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 &&
			open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) <
				0)
			return;
	}
}

int main(int argc, char **argv)
{
	occupy_closed_streams();
	return check_output(run(argc > 0 ? argv + 1 : argv));
}
