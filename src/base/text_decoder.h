/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a file ahead, and decoding it, in a thread of its own; of text_input.h only. */
#pragma once

#include <sys/types.h>

#include "base/text_input.h"

#define TEXT_BEFORE ((size_t)16 * 1024)

struct text_decoder;

/* Is this the beginning of a compressed file? */
bool text_decoder_knows(const unsigned char *bytes, size_t length);
/*
 * Starts to read what `fd` holds from its beginning, and to decode it when it is compressed; `head`
 * was read from it already. The caller keeps the descriptor open until text_decoder_stop().
 */
int text_decoder_start(
	struct text_decoder **ret_decoder, int fd, const unsigned char *head, size_t head_length);
struct text_decoder *text_decoder_stop(struct text_decoder *decoder);
/* Some bytes of text; 0 at the end, or a negative errno of reading the file or -ENOMEM. */
ssize_t text_decoder_read(struct text_decoder *decoder, char *room, size_t length);
/*
 * The same for all that follows, after which nothing but this is called: of a plain file the
 * thread is stopped, and the kernel writes where the bytes are wanted.
 */
ssize_t text_decoder_read_rest(struct text_decoder *decoder, char *room, size_t length);
/*
 * The same without a copy: they stay where they are until the next call, and TEXT_BEFORE bytes in
 * front of them are the caller's.
 */
ssize_t text_decoder_take(struct text_decoder *decoder, char **ret_bytes);
enum text_damage text_decoder_damage(const struct text_decoder *decoder);
/* At the end: bytes that were read and are behind the compressed data. */
size_t text_decoder_trailing(const struct text_decoder *decoder);
/* Bytes of the file read so far. */
uint64_t text_decoder_position(struct text_decoder *decoder);
