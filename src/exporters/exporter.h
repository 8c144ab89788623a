/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file per export format. To add one:
 *   1. src/exporters/NAME.c with `const struct exporter NAME_exporter` at its bottom,
 *   2. its declaration in exporters.h, and a line in the table in exporters.c,
 *   3. the file in src/exporters/meson.build,
 *   4. a test in tests/unit/test-exporters.c and a check in tests/e2e/check_exports.py,
 *   5. a section in docs/export.md.
 * Nothing else names it: the commands and the server find it in the table.
 *
 * Every format holds the same samples: the selected ones, those without a stack as one frame "[no
 * stack]". The same model, selection and options give the same bytes.
 */
#pragma once

#include "analyses/cpu/call_tree.h"
#include "analyses/energy/use.h"
#include "analyses/roofline/peaks.h"
#include "analyses/selection.h"
#include "base/errmsg.h"
#include "base/strbuf.h"
#include "model/model.h"

/* One of the files that a format writes into a folder. */
struct export_file {
	const char *name; /* below the folder, may have one of its own before it; lives on */
	char *own_name;   /* the same, where it is made: freed with the files; NULL: it is not */
	struct strbuf content;
};

struct export_files {
	ARRAY_OF(struct export_file) items;
};

void export_files_done(struct export_files *files);
#define _cleanup_export_files_ _cleanup_(export_files_done)

/* Options of formats; zero means the default, NULL in place of the struct means all defaults.
 */
struct export_options {
	size_t size;         /* sizeof(struct export_options) */
	const char *title;   /* NULL: the recorded command's */
	const char *capture; /* path of the capture, for documents that name it; NULL: unknown */
	const char *output;  /* where the files go, likewise */
	enum call_tree_roots roots; /* folded, flamegraph */
	double minimum_width_px; /* flamegraph: narrower frames are left out, at 1200 px; 0: 0.1 */
	const struct peaks *peaks; /* roofline: what the device can do at most; NULL: by its name */
	const struct energy_use *energy; /* of the model; NULL: none is known */
	struct strbuf *notes; /* gets sentences on what is left out, a line each; or NULL */
};

struct exporter {
	const char *name;          /* for -f */
	const char *description;   /* one line for --help */
	const char *extension;     /* of the default file name, or folder's, with the dot */
	bool takes_traces;         /* also another tool's: see model_is_foreign() */
	bool needs_rows;           /* of recordings, too: model_make_rows() comes before */
	bool is_weighed;           /* stacks, by --weight: of other tools' traces, too */
	enum selection_kind shows; /* which filters it honours; zero: those of samples */
	bool has_events;           /* beside samples: device work, ranges, steps … */
	bool is_binary;            /* not for a terminal */
	/* One of the two. Both return 0 or a negative errno with a sentence. */
	/* Appends the whole file to `out`. */
	int (*export)(const struct model *model, const struct selection *selection,
		const struct export_options *options, struct strbuf *out, struct errmsg *err);
	/* Adds the files of a folder. */
	int (*export_files)(const struct model *model, const struct selection *selection,
		const struct export_options *options, struct export_files *out, struct errmsg *err);
};

/* All exporters, ended by NULL. */
extern const struct exporter *const exporters[];
/* NULL when there is none of that name. */
const struct exporter *exporter_find(const char *name);
