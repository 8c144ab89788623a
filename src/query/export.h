/* SPDX-License-Identifier: Apache-2.0 */
/* A file in another tool's format: `sonde export`, and the server's /export. */
#pragma once

#include "exporters/exporter.h"
#include "load/capture.h"
#include "query/options.h"
#include "query/query.h"

struct query_export {
	const struct exporter *exporter;
	struct selection selection; /* its weight is set when samples are weighed */
	struct shown_options shown; /* of another tool's trace, the weight cpu becomes wall */
	const char *roots;          /* of roots_choices */
	/* As in struct export_options. */
	const char *title, *output;
	const char *peak_text; /* NULL: not given */
	double minimum_width_px;
};

/*
 * Loads what `path` names, and appends the file to `out`, or, of a format that writes a folder,
 * adds to `files`. `notes` gets sentences on what is left out. Returns 0 or a negative errno with a
 * sentence; -EINVAL: this format is not for this file, or these options not for this format.
 */
int query_export(const char *const *paths, size_t count, struct query_export *asked,
	struct strbuf *out, struct strbuf *notes, struct export_files *files, struct errmsg *err);

/*
 * Appends a picture of rows, as roofline and memory are, of what is open; the query is used up.
 * Returns 0 or a negative errno with a sentence; -ENODATA: there is nothing to draw; -EINVAL: these
 * filters are not for it.
 */
int query_plot(struct query *query, const struct query_options *asked,
	const struct exporter *exporter, struct strbuf *out, struct errmsg *err);

/* The same check of the weight alone: before a file is opened. */
int query_export_check(const struct query_export *asked, struct errmsg *err);
