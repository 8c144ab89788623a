/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal as a screen of lines, by ncurses. There is one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/errmsg.h"

/*
 * Takes over the terminal. Standard input and output of this process, and of what it starts, are
 * then /dev/null and `output_path` until screen_close(): a command must not write into the screen.
 */
int screen_open(const char *output_path, struct errmsg *err);
/* Gives the terminal back; nothing when it is not taken. */
void screen_close(void);

void screen_size(size_t *ret_width, size_t *ret_height);
/* Lines, each ended by a newline; SIZE_MAX for no header or no selected line. */
void screen_draw(const char *lines, size_t header, size_t selected);
/* The next key that was pressed, as in cli/top/view.h; -1: none. */
int screen_key(void);
/* Where keys come from, for poll(). */
int screen_input_fd(void);
