/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/importer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
		if ((*importer)->knows(head, length))
			return *importer;
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

bool import_is_json(const char *head, size_t length)
{
	size_t at = length >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	while (at < length && memchr(" \t\n\r", head[at], 4))
		at++;
	if (at == length || (head[at] != '{' && head[at] != '['))
		return false;
	return ++at == length || memchr(" \t\n\r", head[at], 4) || strchr("\"{[]}", head[at]);
}
