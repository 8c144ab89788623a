/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file per format of foreign traces. To add one:
 *   1. src/importers/NAME.c with `const struct importer NAME_importer` at its bottom,
 *   2. a line in the table in importers.c, and its name in the choices of src/cli/import.c,
 *   3. the file in src/importers/meson.build,
 *   4. a unit test, a fuzz target (the bytes are foreign) and a test in tests/e2e/test_import.py,
 *   5. a section in docs/import.md.
 *
 * An importer tells a capture's writer what is in the file, in any order that the writer takes.
 * What it cannot tell exactly, and what it leaves out, it says in a note: the notes are kept in the
 * capture.
 */
#pragma once

#include <stdint.h>

#include "base/array.h"
#include "base/errmsg.h"
#include "capture/writer/writer.h"

struct import_input {
	const char *path; /* for sentences */
	const char *bytes;
	size_t length;
	int64_t modified_s; /* when the file was changed last, CLOCK_REALTIME */
};

#define IMPORT_NOTES_MAX 16

struct import_result {
	uint64_t ranges, marks; /* told to the writer */
	uint64_t begin_ns, end_ns;
	struct errmsg notes[IMPORT_NOTES_MAX];
	uint32_t note_count;
};

struct importer {
	const char *name;        /* for -f */
	const char *description; /* one line */
	/* Returns 0 or a negative errno with a sentence, -ENODATA when nothing was understood. */
	int (*import)(const struct import_input *input, struct capture_writer *writer,
		struct import_result *ret_result, struct errmsg *err);
};

/* All importers, ended by NULL. */
extern const struct importer *const importers[];
/* NULL when there is none of that name. */
const struct importer *importer_find(const char *name);

/* One more note, as printf; more than fit are left out. */
void import_note(struct import_result *result, const char *format, ...) _printf_(2, 3);
