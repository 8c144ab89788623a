/* SPDX-License-Identifier: Apache-2.0 */
#include "load/trace_file.h"

#include <string.h>
#include <sys/stat.h>

#include "base/text_input.h"
#include "model/trace_capture.h"

/* How much of a text tells what it is. */
#define HEAD_BYTES ((size_t)4096)

static bool is_space(char character)
{
	return character == ' ' || character == '\n' || character == '\r' || character == '\t';
}

/* The first byte that counts is a bracket, and what follows it can follow one in JSON. */
static bool is_json(const char *head, size_t length)
{
	size_t at = length >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	while (at < length && is_space(head[at]))
		at++;
	if (at == length || (head[at] != '{' && head[at] != '['))
		return false;
	return ++at == length || is_space(head[at]) || strchr("\"{[]}", head[at]);
}

/* An execution trace says "schema" before its nodes; Kineto "schemaVersion", or nothing. */
static bool is_execution_trace(const char *head, size_t length)
{
	static const char key[] = "\"schema\"";

	return memmem(head, length, key, sizeof(key) - 1) &&
	       !memmem(head, length, "\"traceEvents\"", strlen("\"traceEvents\""));
}

/* A packet has a length, and then a field, neither of which is text, or one byte is not. */
static bool is_capture(const char *head, size_t length)
{
	if (!length || head[0] != '\n')
		return false;
	for (size_t i = 1; i < MIN(length, (size_t)16); i++) {
		if ((unsigned char)head[i] >= 0x80 ||
			((unsigned char)head[i] < ' ' && !is_space(head[i])))
			return true;
	}
	return false;
}

static enum trace_file file_of_text(const char *path)
{
	_cleanup_text_input_ struct text_input *input = NULL;
	struct text_window window = {0};
	struct errmsg err;
	size_t length;

	if (text_input_open(&input, path, &err) < 0 || text_input_move(input, 0, &window, &err) < 0)
		return TRACE_FILE_OTHER;
	length = MIN(window.length, HEAD_BYTES);
	if (!is_json(window.bytes, length))
		return is_capture(window.bytes, length) ? TRACE_FILE_CAPTURE : TRACE_FILE_TEXT;
	return is_execution_trace(window.bytes, length) ? TRACE_FILE_EXECUTION : TRACE_FILE_KINETO;
}

enum trace_file trace_file_of(const char *path)
{
	enum trace_file file;
	struct stat status;

	if (stat(path, &status) < 0)
		return TRACE_FILE_OTHER;
	if (S_ISDIR(status.st_mode))
		return TRACE_FILE_FOLDER;
	if (!S_ISREG(status.st_mode))
		return TRACE_FILE_OTHER;
	file = file_of_text(path);
	if (file == TRACE_FILE_CAPTURE && capture_holds_traces(path))
		return TRACE_FILE_IMPORTED;
	return file;
}
