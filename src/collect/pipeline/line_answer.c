/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pipeline/line_answer.h"

#include <string.h>

#include "base/file.h"

#define ANSWER_MAX_BYTES                                                                           \
	(LINE_PROCESS_DEPTH * (2 * LINE_TEXT_MAX_BYTES + sizeof(struct line_answer_line)))

/* Each file may take half of the time that is left, the last one all of it. */
void line_reading_begin_file(struct line_reading *reading, size_t file)
{
	const struct line_request *request = reading->request;
	uint64_t now_ns = monotonic_now_ns(), left_ns = 0;

	if (request->deadline_ns > now_ns)
		left_ns = request->deadline_ns - now_ns;
	reading->file = file;
	reading->answered = 0;
	reading->has_failed = false;
	reading->file_end_ns = now_ns + (file + 1 < request->file_count ? left_ns / 2 : left_ns);
}

static bool is_done(const struct line_reading *reading)
{
	return reading->answered == reading->request->files[reading->file].count;
}

static const char *take_text(const char **texts, const char *end, uint32_t length)
{
	const char *text = *texts;

	if (length == 0 || length > (size_t)(end - text) || text[length - 1] != '\0')
		return NULL;
	*texts += length;
	return text;
}

/* Answers come in the order of the addresses, one each. */
static bool take_lines(
	struct line_reading *reading, const struct line_answer *answer, const char *body)
{
	const struct line_request *request = reading->request;
	const struct line_file *file = &request->files[reading->file];
	const char *texts = body + answer->count * sizeof(struct line_answer_line);
	struct source_line lines[LINE_PROCESS_DEPTH];

	if (is_done(reading) || answer->index != file->first + reading->answered)
		return false;
	for (uint32_t i = 0; i < answer->count; i++) {
		struct line_answer_line head;

		memcpy(&head, body + i * sizeof(head), sizeof(head));
		lines[i].line = head.line;
		lines[i].function = take_text(&texts, body + answer->length, head.function_length);
		lines[i].file = take_text(&texts, body + answer->length, head.file_length);
	}
	reading->answered++;
	if (answer->count)
		request->found(request->context, answer->index, lines, answer->count);
	return true;
}

bool line_reading_is_complete(const struct line_reading *reading)
{
	return reading->file + 1 == reading->request->file_count && is_done(reading);
}

/* The file that the child was started with, or the next one. */
static bool take_file(struct line_reading *reading, uint32_t index)
{
	bool is_begun = reading->answered || reading->has_failed;

	if (index >= reading->request->file_count ||
		(index == reading->file ? is_begun
					: index != reading->file + 1 || !is_done(reading)))
		return false;
	line_reading_begin_file(reading, index);
	return true;
}

static bool take_answer(
	struct line_reading *reading, const struct line_answer *answer, const char *body)
{
	switch (answer->kind) {
	case LINE_ANSWER_FILE:
		return answer->length == 0 && take_file(reading, answer->index);
	case LINE_ANSWER_LINES:
		return answer->count <= LINE_PROCESS_DEPTH &&
		       answer->length >= answer->count * sizeof(struct line_answer_line) &&
		       take_lines(reading, answer, body);
	case LINE_ANSWER_FAILED:
		if (reading->has_failed || answer->length == 0 || body[answer->length - 1] != '\0')
			return false;
		reading->has_failed = true;
		line_reading_leave_out(reading, body);
		return true;
	default:
		return false;
	}
}

bool line_reading_add(struct line_reading *reading, const char *bytes, size_t length)
{
	struct strbuf *input = &reading->input;
	struct line_answer answer;
	size_t at = 0;

	strbuf_add_bytes(input, bytes, length);
	if (strbuf_status(input) < 0)
		return false;
	while (input->length - at >= sizeof(answer)) {
		memcpy(&answer, input->data + at, sizeof(answer));
		if (answer.length > ANSWER_MAX_BYTES)
			return false;
		if (input->length - at - sizeof(answer) < answer.length)
			break;
		at += sizeof(answer);
		if (!take_answer(reading, &answer, input->data + at))
			return false;
		at += answer.length;
	}
	if (at) {
		memmove(input->data, input->data + at, input->length - at);
		input->length -= at;
	}
	return true;
}

void line_reading_leave_out(struct line_reading *reading, const char *why)
{
	const struct line_request *request = reading->request;
	const struct line_file *file = &request->files[reading->file];
	struct line_account *account = reading->account;

	account->addresses_left_out += file->count - reading->answered;
	reading->answered = file->count;
	if (account->files_left_out++ == 0)
		errmsg_set(&account->example, 0, "source lines of %s were left out: %.160s",
			request->name(request->context, file->file), why);
}

void line_reading_leave_out_rest(struct line_reading *reading)
{
	for (size_t i = reading->file; i < reading->request->file_count; i++) {
		reading->account->addresses_left_out +=
			reading->request->files[i].count - reading->answered;
		reading->answered = 0;
	}
}

void line_reading_done(struct line_reading *reading)
{
	strbuf_done(&reading->input);
}
