/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file per export format. To add one:
 *   1. src/exporters/NAME.c with `const struct exporter NAME_exporter` at its bottom,
 *   2. a line in the table in exporters.c,
 *   3. the file in src/exporters/meson.build,
 *   4. a test in tests/unit/test-exporters.c and a check in tests/e2e/check_exports.py,
 *   5. a section in docs/export.md.
 *
 * Every format holds the same samples: the selected ones, those without a stack as one frame "[no
 * stack]". The same model, selection and options give the same bytes.
 */
#pragma once

#include "analyses/call_tree.h"
#include "analyses/selection.h"
#include "base/errmsg.h"
#include "base/strbuf.h"
#include "model/model.h"

/* What formats may be told; zero means the default, NULL in place of the struct means all defaults.
 */
struct export_options {
	size_t size;         /* sizeof(struct export_options) */
	const char *title;   /* NULL: the recorded command's */
	const char *capture; /* path of the capture, for documents that name it; NULL: unknown */
	enum call_tree_roots roots; /* folded, flamegraph */
	double minimum_width_px; /* flamegraph: narrower frames are left out, at 1200 px; 0: 0.1 */
};

struct exporter {
	const char *name;        /* for -f */
	const char *description; /* one line for --help */
	const char *extension;   /* of the default file name, with the dot */
	/* Appends the whole file to `out`. Returns 0 or a negative errno with a sentence. */
	int (*export)(const struct model *model, const struct selection *selection,
		const struct export_options *options, struct strbuf *out, struct errmsg *err);
};

/* All exporters, ended by NULL. */
extern const struct exporter *const exporters[];
/* NULL when there is none of that name. */
const struct exporter *exporter_find(const char *name);
