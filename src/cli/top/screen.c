/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/screen.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/output_place.h"
#include "cli/top/view.h"

#define ESCAPE_DELAY_MS 25

static struct {
	SCREEN *screen; /* NULL: not taken */
	FILE *input, *output;
	int kept[3]; /* standard input, output and error as they were */
} terminal = {.kept = {-1, -1, -1}};

static void restore_standard_files(void)
{
	fflush(stdout);
	for (int fd = 0; fd < 3; fd++) {
		if (terminal.kept[fd] < 0)
			continue;
		dup2(terminal.kept[fd], fd);
		closep(&terminal.kept[fd]);
	}
}

static int replace_standard_files(const char *output_path, struct errmsg *err)
{
	_cleanup_close_ int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
	_cleanup_output_place_ struct output_place output = OUTPUT_PLACE_NONE;
	static const struct output_how how = {.access = OUTPUT_BY_UMASK};
	struct errmsg reason = {""};
	int r = input < 0 ? errmsg_set(&reason, -errno, "%s", strerror(errno)) : 0;

	r = r ?: output_place_open(&output, output_path, &how, &reason);
	r = r ?: output_place_name(&output);
	if (r < 0)
		return errmsg_set(err, r,
			"cannot write the command's output to %s: %s; name another file with "
			"--output",
			output_path, reason.text);
	fflush(stdout);
	for (int fd = 0; fd < 3; fd++) {
		terminal.kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		dup2(fd == 0 ? input : output.fd, fd);
	}
	return 0;
}

static int open_terminal(struct errmsg *err)
{
	const char *name = ctermid(NULL);

	terminal.input = fopen(name, "re");
	terminal.output = fopen(name, "we");
	if (terminal.input && terminal.output && isatty(STDOUT_FILENO))
		return 0;
	return errmsg_set(err, -ENOTTY, "there is no terminal; print tables with --batch");
}

static void close_terminal(void)
{
	if (terminal.input)
		fclose(terminal.input);
	if (terminal.output)
		fclose(terminal.output);
	terminal.input = terminal.output = NULL;
}

int screen_open(const char *output_path, struct errmsg *err)
{
	int result = open_terminal(err);

	setlocale(LC_CTYPE, "");
	if (result == 0)
		result = replace_standard_files(output_path, err);
	if (result == 0) {
		terminal.screen = newterm(NULL, terminal.output, terminal.input);
		if (!terminal.screen)
			result = errmsg_set(err, -ENOTTY,
				"the terminal's type (TERM) is not known; try TERM=xterm, or print "
				"tables with --batch");
	}
	if (result < 0) {
		restore_standard_files();
		close_terminal();
		return result;
	}
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, true);
	nodelay(stdscr, true);
	set_escdelay(ESCAPE_DELAY_MS);
	return 0;
}

void screen_close(void)
{
	if (!terminal.screen)
		return;
	endwin();
	delscreen(terminal.screen);
	terminal.screen = NULL;
	restore_standard_files();
	close_terminal();
}

void screen_size(size_t *ret_width, size_t *ret_height)
{
	*ret_width = (size_t)MAX(COLS, 20);
	*ret_height = (size_t)MAX(LINES, 8);
}

void screen_draw(const char *lines, size_t header, size_t selected)
{
	erase();
	for (size_t y = 0; *lines && y < (size_t)LINES; y++) {
		size_t length = strcspn(lines, "\n");
		attr_t style = y == selected            ? A_REVERSE
			       : y == header            ? A_BOLD
			       : y == 0                 ? A_BOLD
			       : y + 1 == (size_t)LINES ? A_DIM
							: A_NORMAL;

		attrset(style);
		/* No newline, which would clear the rest; nothing beyond the last column. */
		mvaddnstr((int)y, 0, lines, (int)length);
		lines += length + (lines[length] == '\n');
	}
	attrset(A_NORMAL);
	refresh();
}

int screen_key(void)
{
	int key = terminal.screen ? getch() : ERR;

	switch (key) {
	case ERR:
		return -1;
	case KEY_UP:
		return TOP_KEY_UP;
	case KEY_DOWN:
		return TOP_KEY_DOWN;
	case KEY_PPAGE:
		return TOP_KEY_PAGE_UP;
	case KEY_NPAGE:
		return TOP_KEY_PAGE_DOWN;
	case KEY_HOME:
		return TOP_KEY_HOME;
	case KEY_BACKSPACE:
	case 127:
	case '\b':
		return TOP_KEY_BACKSPACE;
	case KEY_ENTER:
	case '\r':
		return TOP_KEY_ENTER;
	default:
		return key < 0x100 ? key : TOP_KEY_OTHER;
	}
}

int screen_input_fd(void)
{
	return terminal.input ? fileno(terminal.input) : -1;
}
