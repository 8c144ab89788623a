/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a text file, plain, gzip or zstd, seen through its window and read behind it. What
 * comes out must not depend on how it is taken; the first byte says how.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "base/text_input.h"
#include "target.h"

/* A few bytes unpack to gigabytes; readers stop where they like, too. */
#define ENOUGH_BYTES ((uint64_t)8 << 20)

struct seen {
	uint64_t length, hash, trailing;
	enum text_damage damage;
	bool is_all;
};

static void check(bool is_right)
{
	if (!is_right)
		abort();
}

static void see(struct seen *seen, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		seen->hash = (seen->hash ^ (unsigned char)bytes[i]) * 0x100000001b3;
	seen->length += length;
}

static void see_end(struct seen *seen, const struct text_input *input)
{
	uint64_t size;

	seen->is_all = true;
	seen->damage = text_input_damage(input);
	seen->trailing = text_input_trailing(input);
	check(text_input_position(input, &size) <= size && seen->trailing <= size);
}

/* Of each window a part is left for the next one. */
static struct seen read_windows(const char *path, unsigned part)
{
	_cleanup_text_input_ struct text_input *input = NULL;
	struct text_window window = {0};
	struct seen seen = {0};
	size_t used = 0;

	check(text_input_open(&input, path, NULL) == 0);
	do {
		check(text_input_move(input, used, &window, NULL) == 0);
		used = window.is_last ? window.length : window.length - window.length * part / 512;
		see(&seen, window.bytes, used);
	} while (!window.is_last && seen.length < ENOUGH_BYTES);
	if (window.is_last)
		see_end(&seen, input);
	return seen;
}

/* The first window, and the rest in pieces. */
static struct seen read_behind(const char *path, size_t piece)
{
	_cleanup_text_input_ struct text_input *input = NULL;
	struct text_window window = {0};
	struct seen seen = {0};
	ssize_t got = 1;
	char room[1024];

	check(text_input_open(&input, path, NULL) == 0);
	check(text_input_move(input, 0, &window, NULL) == 0);
	see(&seen, window.bytes, window.length);
	while (got > 0 && seen.length < ENOUGH_BYTES) {
		got = text_input_read(input, room, piece, NULL);
		check(got >= 0 && (size_t)got <= piece);
		see(&seen, room, (size_t)got);
	}
	if (got == 0)
		see_end(&seen, input);
	return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	struct seen windows, behind;
	char path[64];

	if (fd < 0 || !length)
		return closep(&fd), 0;
	check(write_all(fd, bytes + 1, length - 1) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	windows = read_windows(path, bytes[0]);
	behind = read_behind(path, (size_t)bytes[0] * 4 + 1);
	if (windows.is_all && behind.is_all) {
		check(windows.length == behind.length && windows.hash == behind.hash);
		check(windows.damage == behind.damage && windows.trailing == behind.trailing);
	}
	closep(&fd);
	return 0;
}
