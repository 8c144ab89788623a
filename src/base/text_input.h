/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text file of any size, plain or compressed (gzip, zstd: recognised by its first bytes), seen
 * through a window that its reader moves on. A thread reads ahead and decodes meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errmsg.h"
#include "base/macros.h"

/* A window becomes larger only for a reader that uses nothing of it. */
#define TEXT_WINDOW_FIRST ((size_t)256 * 1024)
#define TEXT_WINDOW_MAX   ((size_t)64 * 1024 * 1024)

struct text_window {
	const char *bytes;
	size_t length;
	bool is_last; /* nothing follows */
	bool is_full; /* TEXT_WINDOW_MAX: the reader must use some of it to see more */
};

enum text_damage {
	TEXT_WHOLE,
	TEXT_CUT,     /* compressed data end too early */
	TEXT_DAMAGED, /* they do not decode, or their checksum is wrong */
};

struct text_input;

int text_input_open(struct text_input **ret_input, const char *path, struct errmsg *err);
struct text_input *text_input_close(struct text_input *input);
void text_input_closep(struct text_input **input);
#define _cleanup_text_input_ _cleanup_(text_input_closep)

/*
 * Drops the first `used` bytes of the window and adds what follows it: at least a byte, unless it
 * is the last or full. The first call uses none. Returns 0 or a negative errno.
 */
int text_input_move(
	struct text_input *input, size_t used, struct text_window *ret_window, struct errmsg *err);

/*
 * Some of the text behind the window, which is the last that was seen: into the caller's memory,
 * where it may stay. Returns how many bytes, 0 at the end, or a negative errno.
 */
ssize_t text_input_read(struct text_input *input, char *room, size_t length, struct errmsg *err);

/* Bytes of the file read so far, and its size: 0 when that is not known. */
uint64_t text_input_position(const struct text_input *input, uint64_t *ret_size);
/* At the end of the text: was it all? */
enum text_damage text_input_damage(const struct text_input *input);
/* At the end of the text: bytes of the file behind what is compressed, which are no part of it. */
uint64_t text_input_trailing(const struct text_input *input);
