/* SPDX-License-Identifier: Apache-2.0 */
#include "load/trace_file.h"

#include <sys/stat.h>

#include "base/json_scan.h"
#include "base/text_input.h"
#include "importers/importer.h"
#include "load/standard_input.h"
#include "model/trace_capture.h"

/* A packet has a length, and then a field, neither of which is text, or one byte is not. */
static bool is_capture(const char *head, size_t length)
{
	if (!length || head[0] != '\n')
		return false;
	for (size_t i = 1; i < MIN(length, (size_t)16); i++) {
		if ((unsigned char)head[i] >= 0x80 ||
			((unsigned char)head[i] < ' ' && !json_is_space(head[i])))
			return true;
	}
	return false;
}

/* Any text may be a log: only what is nothing else is one. */
static enum trace_file file_of_text(const char *path, const struct importer **ret_importer)
{
	_cleanup_text_input_ struct text_input *input = NULL;
	struct text_window window = {0};
	const struct importer *importer;
	struct errmsg err;
	size_t length;

	if (text_input_open(&input, path, &err) < 0 || text_input_move(input, 0, &window, &err) < 0)
		return TRACE_FILE_OTHER;
	length = MIN(window.length, (size_t)IMPORT_HEAD_BYTES);
	importer = importer_of_name(path) ?: importer_of(window.bytes, length);
	if ((!importer || importer->knows_any_text) && is_capture(window.bytes, length))
		return TRACE_FILE_CAPTURE;
	*ret_importer = importer;
	if (!importer)
		return TRACE_FILE_OTHER;
	return importer->import ? TRACE_FILE_LOG : TRACE_FILE_FOREIGN;
}

enum trace_file trace_file_identify(const char *path, const struct importer **ret_importer)
{
	enum trace_file file;
	struct stat status;

	path = load_path(path);
	*ret_importer = NULL;
	if (stat(path, &status) < 0)
		return TRACE_FILE_OTHER;
	if (S_ISDIR(status.st_mode))
		return TRACE_FILE_FOLDER;
	if (!S_ISREG(status.st_mode))
		return TRACE_FILE_OTHER;
	file = file_of_text(path, ret_importer);
	if (file == TRACE_FILE_CAPTURE && capture_holds_traces(path))
		return TRACE_FILE_IMPORTED;
	return file;
}
