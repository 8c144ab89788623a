/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other tools write. To add a format:
 *   1. src/importers/NAME/NAME.c with `const struct importer NAME_importer` at its bottom,
 *   2. its declaration in importers.h, and a line in the table in importers.c,
 *   3. the file in src/importers/meson.build,
 *   4. a unit test, a fuzz target (the bytes are foreign) and a test in tests/e2e/test_import.py,
 *   5. a section in docs/import.md.
 * Nothing else names it: load/ finds it in the table, and so do the commands; but those of
 * `sonde chakra`, which work on two formats alone. tests/unit/toy-importer.c is one.
 *
 * Traces of threads and streams become rows (model/trace.h), those of records by rows.h. What is
 * not of that form, such as a log, becomes events of a capture, of which the report is that of a
 * recording.
 */
#pragma once

#include <stdint.h>

#include "base/array.h"
#include "base/errmsg.h"
#include "capture/writer/writer.h"
#include "model/trace.h"

#define IMPORT_HEAD_BYTES 4096 /* that `knows` sees, or all of a shorter file */

/* How rows are read. */
struct trace_read_options {
	/* Everything in the file is kept, as text where analyses have no use for it. */
	bool keep_arguments;
	/* Stops with a sentence when the rows need more; 0: three quarters of the machine's memory.
	 */
	uint64_t max_bytes;
	/* That parse it, beside the one that reads ahead; 0: as many as there are processors. */
	unsigned threads;
	/* Told now and then how much of the file was read; total is 0 where that is not known. */
	void (*progress)(void *context, uint64_t done, uint64_t total);
	void *progress_context;
};

/* A file for events. */
struct import_input {
	const char *path; /* for sentences */
	const char *bytes;
	size_t length;
	int64_t modified_s; /* when the file was changed last, CLOCK_REALTIME */
};

#define IMPORT_NOTES_MAX 64

struct import_result {
	uint64_t ranges, marks, samples; /* reported to the writer */
	uint64_t begin_ns, end_ns;
	struct errmsg notes[IMPORT_NOTES_MAX];
	uint32_t note_count;
};

/* Takes the trace, whatever it returns: 0 or -ENOMEM. */
typedef int import_take_trace(void *context, struct trace *take_trace);

struct importer {
	const char *name;        /* for -f */
	const char *description; /* one line */
	/* Of names, ended by NULL: a folder's other files are not looked at. NULL: those of others.
	 */
	const char *const *endings;
	/* Of kinds that only a name shows, ended by NULL: how names of its files end. NULL: by
	 * how they begin. */
	const char *const *names;
	/* Is a file that begins so of this format? `head` is unpacked. NULL: see names. */
	bool (*knows)(const char *head, size_t length);
	bool knows_any_text; /* what is anything else is not its */
	/*
	 * Rows: reads the file, packed or not (import_read_file() of rows.h, or base/text_input.h
	 * for one that is larger than memory), and finishes the trace (trace_finish()). What could
	 * be read of a damaged one is in the trace, what could not is counted in trace.damage.
	 * `options` may be NULL. Several threads may each read one. Returns 0 or a negative errno
	 * with a sentence: -ENODATA when the file is of another kind.
	 */
	int (*read)(struct trace **ret_trace, const char *path,
		const struct trace_read_options *options, struct errmsg *err);
	/* In place of read, for files of several ranks: gives a trace of each to `take`. */
	int (*read_ranks)(const char *path, const struct trace_read_options *options,
		import_take_trace *take, void *context, struct errmsg *err);
	/* With read: the rank that the file says, without reading all of it. False: none, or it
	 * cannot be read. NULL: nobody knows without reading it. */
	bool (*rank)(const char *path, uint32_t *ret_rank);
	/*
	 * Events: gives a capture's writer what is in the file, in any order that the writer takes.
	 * What is not exact, and what is left out, it says in a note: the notes are
	 * kept in the capture. Returns 0 or a negative errno with a sentence, -ENODATA when nothing
	 * was understood.
	 */
	int (*import)(const struct import_input *input, struct capture_writer *writer,
		struct import_result *ret_result, struct errmsg *err);
	/* With none of these: why, behind the file's name ("is …"), and what to do. */
	const char *refusal, *instead;
};

/* All importers, ended by NULL. The first that knows a file has it. */
extern const struct importer *const importers[];
/* NULL when there is none of that name. */
const struct importer *importer_find(const char *name);
/* Are there rows, and no events, in its files? False of one that reads nothing, too. */
static inline bool importer_has_rows(const struct importer *importer)
{
	return importer->read || importer->read_ranks;
}
/* NULL when none knows what begins so; in importer.c, as are the functions below. */
const struct importer *importer_of(const char *head, size_t length);

/* The same of a name: only what its bytes do not tell has one. */
const struct importer *importer_of_name(const char *path);

/* One more note, as printf; more than fit are left out. */
void import_note(struct import_result *result, const char *format, ...) _printf_(2, 3);
/* How complete it is, at the end of the capture: what `sonde report` says of it. */
int import_write_account(
	struct capture_writer *writer, const struct import_result *result, struct errmsg *err);
/* For `knows`: the first byte that counts is a bracket, and what follows it can do so in JSON. */
bool import_is_json(const char *head, size_t length);
