/* SPDX-License-Identifier: Apache-2.0 */
/* The whole report: which sections, in what order, in which form. */
#pragma once

#include "base/errmsg.h"
#include "report/section.h"

#define REPORT_VERSION 2 /* of the JSON document: see docs/json.md */

struct report_document {
	struct report_input input;
	const char *by; /* --by: what it names, with the head; NULL: all */
	/*
	 * Weighs the samples as was asked for, once, after all sections that are not weighed were
	 * made; may change what input.recording points to. NULL: nothing is to be done.
	 */
	int (*weigh)(void *context);
	void *context;
};

/* Each appends to `out`. Returns 0, -ENOMEM, or an error of weigh(). */
int report_document_print(const struct report_document *document, const struct terminal *terminal,
	struct strbuf *out);
int report_document_json(const struct report_document *document, struct strbuf *out);
/* Of the first section that `by` names. -ENOMSG: it has no rows. */
int report_document_csv(const struct report_document *document, struct strbuf *out);

/*
 * One of them. Returns 0 or a negative errno with a sentence; -ENODATA is of weigh(), which has set
 * one.
 */
int report_document_write(const struct report_document *document, enum report_form form,
	const struct terminal *terminal, struct strbuf *out, struct errmsg *err);
/* The JSON Schema of all sections. */
int report_document_schema(struct strbuf *out);
