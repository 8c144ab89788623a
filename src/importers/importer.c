/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/importer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json_scan.h"

const struct importer *importer_find(const char *name)
{
	for (const struct importer *const *importer = importers; *importer; importer++) {
		if (strcmp((*importer)->name, name) == 0)
			return *importer;
	}
	return NULL;
}

const struct importer *importer_of(const char *head, size_t length)
{
	for (const struct importer *const *importer = importers; *importer; importer++) {
		if ((*importer)->knows && (*importer)->knows(head, length))
			return *importer;
	}
	return NULL;
}

const struct importer *importer_of_name(const char *path)
{
	for (const struct importer *const *importer = importers; *importer; importer++) {
		const char *const *name = (*importer)->names;

		for (; name && *name; name++) {
			if (text_ends_in(path, *name))
				return *importer;
		}
	}
	return NULL;
}

void import_note(struct import_result *result, const char *format, ...)
{
	struct errmsg *note = &result->notes[result->note_count];
	va_list arguments;

	if (result->note_count >= IMPORT_NOTES_MAX)
		return;
	result->note_count++;
	va_start(arguments, format);
	vsnprintf(note->text, sizeof(note->text), format, arguments);
	va_end(arguments);
}

int import_write_account(
	struct capture_writer *writer, const struct import_result *result, struct errmsg *err)
{
	const char *notes[IMPORT_NOTES_MAX];
	const struct capture_stats stats = {
		.end_time_ns = result->end_ns,
		.ranges = {.ranges = result->ranges, .marks = result->marks},
		.notes = notes,
		.note_count = result->note_count,
		.exit_status = -1,
		.complete = true,
	};

	for (uint32_t i = 0; i < result->note_count; i++)
		notes[i] = result->notes[i].text;
	if (capture_writer_stats(writer, &stats) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while writing the capture");
	return 0;
}

bool import_is_json(const char *head, size_t length)
{
	size_t at = length >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	while (at < length && json_is_space(head[at]))
		at++;
	if (at == length || (head[at] != '{' && head[at] != '['))
		return false;
	return ++at == length || json_is_space(head[at]) || strchr("\"{[]}", head[at]);
}
