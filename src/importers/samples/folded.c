/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, for flame graphs: a line for each stack, frames from the outermost on with
 * semicolons between, and its count. sonde's own first frame, and what stackcollapse writes, is the
 * process.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "importers/importers.h"
#include "importers/samples/samples.h"

static const char what[] = "there is no line of frames with semicolons between and a count, which "
			   "folded stacks have";

/* The count behind the last space. False: there is none. */
static bool read_count(const char *line, size_t length, size_t *ret_frames, uint64_t *ret_count)
{
	size_t at = length;

	*ret_count = 0;
	while (at && isdigit((unsigned char)line[at - 1]))
		at--;
	if (at == length || length - at > 18 || at < 2 || line[at - 1] != ' ')
		return false;
	for (size_t i = at; i < length; i++)
		*ret_count = *ret_count * 10 + (uint64_t)(line[i] - '0');
	*ret_frames = at - 1;
	return true;
}

static size_t line_length(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));
	size_t length = (size_t)((newline ? newline : end) - at);

	return length && at[length - 1] == '\r' ? length - 1 : length;
}

/* "_[k]" is a kernel's function, "_[j]" and "_[i]" are made by a JIT, and inlined. */
static void read_suffix(struct samples_frame *frame)
{
	static const char kernel[] = "[kernel.kallsyms]";
	const char *end = frame->name + frame->name_length;

	if (frame->name_length < 5 || end[-1] != ']' || memcmp(end - 4, "_[", 2) != 0 ||
		!strchr("kji", end[-2]))
		return;
	frame->name_length -= 4;
	if (end[-2] == 'k') {
		frame->module = kernel;
		frame->module_length = strlen(kernel);
	}
}

/* Frames from the innermost on: the line is read from its end. */
static int add_line(struct samples *samples, const char *line, size_t length, uint64_t count)
{
	int r = 0;

	while (r == 0) {
		const char *separator = memrchr(line, ';', length);
		size_t begin = separator ? (size_t)(separator + 1 - line) : 0;
		struct samples_frame frame = {.name = line + begin, .name_length = length - begin};

		read_suffix(&frame);
		r = samples_add_frame(samples, &frame);
		if (!separator)
			break;
		length = begin - 1;
	}
	if (r == 0)
		r = samples_end_stack(samples);
	return r < 0 ? r : samples_add(samples, (struct capture_sample){.pid = 1, .tid = 1}, count);
}

/* Calls nothing with `unit` 0: adds up the counts. */
static int read_lines(struct samples *samples, uint64_t unit, uint64_t *ret_total)
{
	const char *at = samples->input->bytes, *end = at + samples->input->length;
	int r = 0;

	*ret_total = 0;
	for (size_t length; r == 0 && at < end; at += length + 1) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t frames, shown = line_length(at, end);
		uint64_t count;

		length = (size_t)((newline ? newline : end) - at);
		if (!shown || *at == '#')
			continue;
		if (!read_count(at, shown, &frames, &count)) {
			samples->lines_left_out += unit != 0;
			continue;
		}
		if (__builtin_add_overflow(*ret_total, count, ret_total))
			*ret_total = UINT64_MAX;
		if (unit)
			r = add_line(samples, at, frames, (count + unit / 2) / unit);
	}
	return r;
}

static int folded_import(const struct import_input *input, struct capture_writer *writer,
	struct import_result *ret_result, struct errmsg *err)
{
	struct samples samples = {.input = input, .writer = writer, .result = ret_result};
	uint64_t total;
	int r;

	*ret_result = (struct import_result){0};
	read_lines(&samples, 0, &total);
	r = samples_begin(&samples, 0, 0);
	if (r == 0)
		r = samples_add_task(&samples, 1, 1, path_base_name(input->path));
	if (r == 0)
		r = read_lines(&samples, samples_unit(&samples, total), &total);
	return samples_end(&samples, r, what, err);
}

/* Every line that is complete in it has a count, and some have more than one frame. */
static bool folded_knows(const char *head, size_t length)
{
	const char *end = head + length, *newline;
	bool has_stacks = false;
	size_t frames;
	uint64_t count;

	if (memchr(head, '\0', length))
		return false;
	for (; (newline = memchr(head, '\n', (size_t)(end - head))); head = newline + 1) {
		size_t shown = line_length(head, end);

		if (!shown || *head == '#')
			continue;
		if (!read_count(head, shown, &frames, &count))
			return false;
		has_stacks |= memchr(head, ';', frames) != NULL;
	}
	return has_stacks;
}

const struct importer folded_importer = {
	.name = "folded",
	.description = "folded stacks with counts, as flame graphs are made of",
	.knows = folded_knows,
	.import = folded_import,
};
