/* SPDX-License-Identifier: Apache-2.0 */
/* The whole report: which sections, in what order, in which form. */
#pragma once

#include "base/errmsg.h"
#include "report/section.h"

#define REPORT_VERSION 2 /* of the JSON document: see docs/json.md */

struct report_document {
	struct report_input input;
	const char *by;   /* --by: what it names, with the head; NULL: all */
	bool is_complete; /* without --by: those, too, that stand in a report only by their names */
	/*
	 * Weighs the samples as was asked for, once, after all sections that are not weighed were
	 * made; may change what input.view points to. NULL: nothing is to be done.
	 */
	int (*weigh)(void *context);
	void *context;
};

/*
 * Appends to `out`; CSV of the first section that `by` names. Returns 0 or a negative errno with a
 * sentence; -ENODATA is of weigh(), which has set one.
 */
int report_document_write(const struct report_document *document, enum report_form form,
	const struct terminal *terminal, struct strbuf *out, struct errmsg *err);
/*
 * Makes the sections and gives what each says to `take`, in the report's order; one that is not 0
 * ends it and is returned. Else 0 or a negative errno, as above.
 */
typedef int report_take_function(
	void *context, const struct report_section *section, const struct result *result);
int report_document_visit(const struct report_document *document, report_take_function *take,
	void *context, struct errmsg *err);
/* The JSON Schema of all sections. */
int report_document_schema(struct strbuf *out);
