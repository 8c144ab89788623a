/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills a trace (model/trace.h) a record at a time: what importers of files that are tables or
 * messages have in common. Texts may hold any bytes; what is not UTF-8 becomes U+FFFD.
 *
 *   1. import_rows_init();
 *   2. import_rows_track() for each thread and stream, import_rows_add() and those beside it;
 *   3. import_rows_finish(), which gives the trace away; import_rows_done() in any case.
 */
#pragma once

#include "importers/importer.h"

struct import_rows {
	struct trace *trace;
	const char *path; /* the caller's */
	uint64_t max_bytes, text_bytes;
	struct intern tracks;                    /* keys → track */
	struct intern correlations;              /* of processes → number */
	uint32_t categories[TRACE_CATEGORY_MAX]; /* strings */
};

/* Of these functions each returns 0 or -ENOMEM, where nothing else is stated. `options` may be
 * NULL.
 */
int import_rows_init(
	struct import_rows *rows, const char *path, const struct trace_read_options *options);
void import_rows_done(struct import_rows *rows);
#define _cleanup_import_rows_ _cleanup_(import_rows_done)

int import_rows_text(
	struct import_rows *rows, const char *text, size_t length, uint32_t *ret_string);

/* With nothing known but these: neither names nor an order. */
struct trace_track import_rows_thread(int64_t pid, int64_t tid);
/* The track of those numbers and texts, which is `track` where it was not known. `also`: one more
 * number that tells it from others; 0: nothing more does. */
int import_rows_track(struct import_rows *rows, const struct trace_track *track, uint64_t also,
	uint32_t *ret_track);

/* One number for each correlation of each process. */
int import_rows_correlation(
	struct import_rows *rows, uint64_t process, uint64_t correlation, uint64_t *ret_number);

/* A row of that kind, with the name that Kineto has for its category, and without a detail. */
struct trace_event import_rows_event(const struct import_rows *rows, enum trace_category category);

/* One more row, in the file's order. A negative duration counts as 0, and is counted.
 * -EFBIG: it needs more memory than is allowed. */
int import_rows_add(struct import_rows *rows, struct trace_event *event);
/* The same with a detail. */
int import_rows_add_work(
	struct import_rows *rows, struct trace_event *event, const struct trace_work *work);
int import_rows_add_op(
	struct import_rows *rows, struct trace_event *event, const struct trace_op *op);
int import_rows_add_memory(
	struct import_rows *rows, struct trace_event *event, const struct trace_memory *memory);
/* An annotation in a domain of its own; NULL or "": in none. */
int import_rows_add_range(struct import_rows *rows, struct trace_event *event, const char *domain);

/* A sentence on what is in the file and not in the rows, without the file's name. */
int import_rows_note(struct import_rows *rows, const char *format, ...) _printf_(2, 3);

/* `r` is what filling it came to: finishes the trace, or says with a sentence what went wrong.
 * -ENODATA: `r` is 0, and there are no rows: `what` would have been there. */
int import_rows_finish(struct import_rows *rows, int r, const char *what, struct trace **ret_trace,
	struct errmsg *err);

/* All of a file, unpacked. `err` may be NULL. Returns 0, -EFBIG beyond max_bytes, or another
 * negative errno, with a sentence. What is cut off is marked in *ret_truncated. */
int import_read_file(const char *path, const struct trace_read_options *options,
	struct strbuf *ret_bytes, bool *ret_truncated, struct errmsg *err);
/* For trace_read_options.max_bytes. */
uint64_t import_max_bytes(const struct trace_read_options *options);
