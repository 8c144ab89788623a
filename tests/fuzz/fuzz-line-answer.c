/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what the child says that reads source lines, in pieces. The child runs libdw on
 * foreign files; when a file takes it over, this is what it can do to its parent. The first byte
 * says how large the pieces are.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "collect/pipeline/line_answer.h"
#include "target.h"

static const struct line_file files[] = {
	{.file = 3, .first = 0, .count = 2},
	{.file = 5, .first = 2, .count = 1},
	{.file = 9, .first = 3, .count = 3},
};

#define ADDRESSES 6

static void check(bool is_right)
{
	if (!is_right)
		abort();
}

/* Reads all of each text, so that one without its end is found out. */
static void on_found(void *context, size_t index, const struct source_line *lines, size_t count)
{
	bool *found = context;
	size_t text_bytes = 0;

	check(index < ADDRESSES && !found[index] && count >= 1 && count <= LINE_PROCESS_DEPTH);
	found[index] = true;
	for (size_t i = 0; i < count; i++) {
		text_bytes += lines[i].function ? strlen(lines[i].function) : 0;
		text_bytes += lines[i].file ? strlen(lines[i].file) : 0;
	}
	check(text_bytes <= (LINE_PROCESS_DEPTH + 1) * 2 * LINE_TEXT_MAX_BYTES);
}

static const char *name_of(void *context, uint32_t file)
{
	check(file == 3 || file == 5 || file == 9);
	return "file";
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	bool found[ADDRESSES] = {false}, is_sound = true;
	const struct line_request request = {
		.files = files,
		.file_count = ARRAY_SIZE(files),
		.found = on_found,
		.name = name_of,
		.context = found,
	};
	struct line_account account = {0};
	struct line_reading reading = {.request = &request, .account = &account};
	size_t piece, answers = 0;

	if (!length--)
		return 0;
	piece = (size_t)*bytes++ + 1;
	line_reading_begin_file(&reading, 0);
	for (size_t at = 0; at < length && is_sound; at += piece)
		is_sound = line_reading_add(
			&reading, (const char *)bytes + at, MIN(piece, length - at));
	if (!line_reading_is_complete(&reading))
		line_reading_leave_out_rest(&reading);
	for (size_t i = 0; i < ADDRESSES; i++)
		answers += found[i];
	check(reading.file < ARRAY_SIZE(files));
	check(account.addresses_left_out + answers <= ADDRESSES);
	check(account.files_left_out <= ARRAY_SIZE(files));
	line_reading_done(&reading);
	return 0;
}
