/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/importers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct importer *const importers[] = {
	&vllm_log_importer,
	NULL,
};

const struct importer *importer_find(const char *name)
{
	for (const struct importer *const *importer = importers; *importer; importer++) {
		if (strcmp((*importer)->name, name) == 0)
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
