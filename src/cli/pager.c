/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/command.h"

/* -F: ends where the text fits, R: colours, X: the text stays on the screen. */
#define DEFAULT_PAGER "less -FRX"

static bool is_off;

void pager_turn_off(void)
{
	is_off = true;
}

/* NULL: none is wanted. */
static const char *pager_command(void)
{
	const char *command = getenv("SONDE_PAGER"), *terminal = getenv("TERM");

	if (!command)
		command = getenv("PAGER");
	if (!command)
		command = DEFAULT_PAGER;
	if (is_off || !*command || strcmp(command, "cat") == 0)
		return NULL;
	return terminal && strcmp(terminal, "dumb") == 0 ? NULL : command;
}

/* Does it need more lines than the terminal has? Control sequences count as columns. */
static bool is_long(const char *text)
{
	struct winsize size;
	size_t lines = 1;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row ||
		!size.ws_col)
		return false;
	while (*text) {
		size_t length = strcspn(text, "\n");
		size_t columns = text_columns(text, length);

		lines += columns ? (columns + size.ws_col - 1) / size.ws_col : 1;
		text += length + (text[length] == '\n');
	}
	return lines > size.ws_row;
}

static void become_pager(const char *command, int input)
{
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	setenv("LESS", "FRX", false);
	if (dup2(input, STDIN_FILENO) >= 0)
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(EXIT_NOT_FOUND);
}

/* It may end before it has read everything. */
static void write_all(int fd, const struct strbuf *text)
{
	for (size_t done = 0; done < text->length;) {
		ssize_t written = write(fd, text->data + done, text->length - done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return;
		done += (size_t)written;
	}
}

static bool feed_pager(const char *command, const struct strbuf *text)
{
	int ends[2], status;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0)
		become_pager(command, ends[0]);
	close(ends[0]);
	if (pid > 0)
		write_all(ends[1], text);
	close(ends[1]);
	if (pid < 0)
		return false;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return true;
	}
	return !(WIFEXITED(status) && (WEXITSTATUS(status) == EXIT_NOT_EXECUTABLE ||
					      WEXITSTATUS(status) == EXIT_NOT_FOUND));
}

/* Returns whether the pager could be run. Ctrl-C is for it alone. */
static bool run_pager(const char *command, const struct strbuf *text)
{
	void (*interrupt)(int) = signal(SIGINT, SIG_IGN);
	void (*broken_pipe)(int) = signal(SIGPIPE, SIG_IGN);
	bool ran = feed_pager(command, text);

	signal(SIGINT, interrupt);
	signal(SIGPIPE, broken_pipe);
	return ran;
}

void pager_print(const struct strbuf *text)
{
	const char *command = is_long(strbuf_cstr(text)) ? pager_command() : NULL;

	fflush(stdout);
	if (!command || !run_pager(command, text))
		fwrite(strbuf_cstr(text), 1, text->length, stdout);
}
