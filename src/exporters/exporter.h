/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file per export format. To add one:
 *   1. src/exporters/NAME.c with `const struct exporter NAME_exporter` at its bottom,
 *   2. a line in the table in exporters.c,
 *   3. the file in src/exporters/meson.build,
 *   4. a test in tests/unit and the format in tests/e2e/test_export.py,
 *   5. a line in docs/export.md.
 */
#pragma once

#include "analyses/selection.h"
#include "base/errmsg.h"
#include "base/strbuf.h"
#include "model/model.h"

struct exporter {
	const char *name;        /* for -f */
	const char *description; /* one line for --help */
	const char *extension;   /* of the default file name, with the dot */
	/* Appends the whole file to `out`. Returns 0 or a negative errno with a sentence. */
	int (*export)(const struct model *model, const struct selection *selection,
		struct strbuf *out, struct errmsg *err);
};

/* All exporters, ended by NULL. */
extern const struct exporter *const exporters[];
const struct exporter *exporter_find(const char *name);
