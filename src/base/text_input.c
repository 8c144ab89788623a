/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/input_file.h"
#include "base/text_decoder.h"

#define HEAD_BYTES 4 /* what tells a format */

struct text_input {
	char *path;
	int fd;
	uint64_t size, position;
	struct text_decoder *decoder; /* NULL: a plain file that is small, or no regular one */
	char *window;                 /* our own memory */
	size_t capacity;
	const char *bytes; /* what the reader sees: there, or where it was decoded */
	size_t length;
	bool at_end;
};

static int open_file(struct text_input *input, const char *path, struct errmsg *err)
{
	struct stat status;

	input->fd = input_open(path, 0);
	if (input->fd < 0)
		return errmsg_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	if (fstat(input->fd, &status) < 0)
		return errmsg_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	if (S_ISDIR(status.st_mode))
		return errmsg_set(
			err, -EISDIR, "cannot read %s: it is a directory; name a file", path);
	if (S_ISREG(status.st_mode))
		input->size = (uint64_t)status.st_size;
	return 0;
}

/* Bytes of the plain file; 0 at its end, or a negative errno. */
static ssize_t read_some(struct text_input *input, char *room, size_t length)
{
	ssize_t got;

	do
		got = read(input->fd, room, length);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	input->position += (uint64_t)got;
	return got;
}

static int look_at_head(struct text_input *input)
{
	ssize_t got;

	while (input->length < HEAD_BYTES) {
		got = read_some(input, input->window + input->length, HEAD_BYTES - input->length);
		if (got < 0)
			return (int)got;
		if (got == 0)
			break;
		input->length += (size_t)got;
	}
	if (!text_decoder_knows((const unsigned char *)input->window, input->length) &&
		input->size <= input->capacity)
		return 0;
	got = text_decoder_start(
		&input->decoder, input->fd, (const unsigned char *)input->window, input->length);
	input->length = 0;
	return (int)got;
}

int text_input_open(struct text_input **ret_input, const char *path, struct errmsg *err)
{
	_cleanup_text_input_ struct text_input *input = calloc(1, sizeof(*input));
	int r;

	if (!input)
		return errmsg_set(err, -ENOMEM, "cannot read %s: out of memory", path);
	input->fd = -1;
	input->path = strdup(path);
	input->capacity = TEXT_WINDOW_FIRST;
	input->window = malloc(input->capacity);
	input->bytes = input->window;
	if (!input->path || !input->window)
		return errmsg_set(err, -ENOMEM, "cannot read %s: out of memory", path);
	r = open_file(input, path, err);
	if (r < 0)
		return r;
	r = look_at_head(input);
	if (r < 0)
		return errmsg_set(err, r, "cannot read %s: %s", path, strerror(-r));
	*ret_input = TAKE_PTR(input);
	return 0;
}

struct text_input *text_input_close(struct text_input *input)
{
	if (!input)
		return NULL;
	text_decoder_stop(input->decoder);
	closep(&input->fd);
	free(input->window);
	free(input->path);
	free(input);
	return NULL;
}

void text_input_closep(struct text_input **input)
{
	*input = text_input_close(*input);
}

/* What the reader has not used goes to our own memory, with room behind it. */
static int keep(struct text_input *input, size_t used)
{
	size_t left = input->length - used, capacity = input->capacity;
	const char *bytes = input->bytes + used;
	char *window;

	while (capacity < TEXT_WINDOW_MAX && left >= capacity)
		capacity *= 2;
	if (capacity == input->capacity) {
		memmove(input->window, bytes, left);
	} else {
		window = malloc(capacity);
		if (!window)
			return -ENOMEM;
		memcpy(window, bytes, left);
		free(input->window);
		input->window = window;
		input->capacity = capacity;
	}
	input->bytes = input->window;
	input->length = left;
	return 0;
}

/* The little that is kept goes in front of what was decoded, where that is. */
static ssize_t take_decoded(struct text_input *input)
{
	char *bytes;
	ssize_t got = text_decoder_take(input->decoder, &bytes);

	if (got <= 0)
		return got;
	bytes -= input->length;
	memcpy(bytes, input->window, input->length);
	input->bytes = bytes;
	input->length += (size_t)got;
	return got;
}

static ssize_t read_text(struct text_input *input, char *room, size_t length)
{
	return input->decoder ? text_decoder_read(input->decoder, room, length)
			      : read_some(input, room, length);
}

static ssize_t fill(struct text_input *input)
{
	ssize_t got = 1;

	while (got > 0 && input->length < input->capacity) {
		char *room = input->window + input->length;
		size_t length = input->capacity - input->length;

		got = read_text(input, room, length);
		if (got > 0)
			input->length += (size_t)got;
	}
	return got;
}

static int cannot_read(const struct text_input *input, int error, struct errmsg *err)
{
	return errmsg_set(err, error, "cannot read %s: %s", input->path, strerror(-error));
}

int text_input_move(
	struct text_input *input, size_t used, struct text_window *ret_window, struct errmsg *err)
{
	ssize_t got = 0;

	if (keep(input, used) < 0)
		return errmsg_set(err, -ENOMEM, "cannot read %s: out of memory", input->path);
	if (!input->at_end)
		got = input->decoder && input->length <= TEXT_BEFORE ? take_decoded(input)
								     : fill(input);
	if (got < 0)
		return cannot_read(input, (int)got, err);
	input->at_end = got == 0;
	*ret_window = (struct text_window){
		.bytes = input->bytes,
		.length = input->length,
		.is_last = input->at_end,
		.is_full = input->length == TEXT_WINDOW_MAX,
	};
	return 0;
}

ssize_t text_input_read(struct text_input *input, char *room, size_t length, struct errmsg *err)
{
	ssize_t got = input->decoder ? text_decoder_read_rest(input->decoder, room, length)
				     : read_some(input, room, length);

	return got < 0 ? cannot_read(input, (int)got, err) : got;
}

uint64_t text_input_position(const struct text_input *input, uint64_t *ret_size)
{
	*ret_size = input->size;
	return input->decoder ? text_decoder_position(input->decoder) : input->position;
}

enum text_damage text_input_damage(const struct text_input *input)
{
	return input->decoder ? text_decoder_damage(input->decoder) : TEXT_WHOLE;
}

uint64_t text_input_trailing(const struct text_input *input)
{
	uint64_t position;

	if (!input->decoder || text_decoder_damage(input->decoder) != TEXT_WHOLE)
		return 0;
	position = text_decoder_position(input->decoder);
	return text_decoder_trailing(input->decoder) +
	       (input->size > position ? input->size - position : 0);
}
