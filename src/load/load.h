/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the paths of a command line to one model. A path is a recording, a trace that an importer
 * reads (importers/importer.h), a capture that traces were imported into, or a folder with one file
 * for each rank.
 */
#pragma once

#include "analyses/selection.h"
#include "base/errmsg.h"
#include "capture/writer/writer.h"
#include "load/capture.h"
#include "load/trace_file.h"
#include "model/trace_capture.h"

struct load_options {
	/* Of one recording: load/capture.h says what is done with them. NULL: the defaults. */
	const struct shown_options *shown;
	const struct selection *selection;
	bool keep_arguments; /* of rows, also those that no analysis needs: to write them again */
	/* Only the rows of recordings, as if another tool had made them: each is one rank. */
	bool rows_only;
};

/*
 * Will load_model() make a model of rows alone of these? Not of recordings, named or in a folder,
 * which are one run, with samples.
 */
bool load_is_foreign(const char *const *paths, size_t count);

/*
 * Writes recordings, named or in a folder, into one capture, on one clock: capture/split/merge.h.
 * -EINVAL with a sentence where they are not recordings. Returns how many there were.
 */
int load_merge(const char *const *paths, size_t count, const char *output,
	const struct capture_writer_options *options, size_t *ret_count, uint64_t *ret_bytes,
	struct errmsg *err);

/*
 * One recording, and several that are a run, become a model without rows: model_make_rows() makes
 * them. Recordings beside traces are ranks by their rows. All else becomes a model of rows alone
 * (model_is_foreign()), ordered by rank where all of them say theirs, else by path;
 * analyses/program/trace_programs.h has more of them filled in.
 *
 * With a bar on a terminal. Warns of what is damaged, of ranks that come twice and of ranks that
 * are missing. `options` may be NULL. Returns 0 or a negative errno with a sentence.
 */
int load_model(struct model **ret_model, const char *const *paths, size_t count,
	const struct load_options *options, struct errmsg *err);
