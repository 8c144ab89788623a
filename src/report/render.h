/* SPDX-License-Identifier: Apache-2.0 */
/* Writing what sections say. Renderers know kinds of values, not subjects. */
#pragma once

#include "base/json.h"
#include "report/result.h"
#include "report/table.h"

/* All return 0 or -ENOMEM. */

/* The section's blocks, in their order, those of result_account() last. */
int report_render_terminal(
	const struct result *result, const struct terminal *terminal, struct strbuf *out);
/* Only those of result_account(), or only the others. */
int report_render_blocks(const struct result *result, bool is_account,
	const struct terminal *terminal, struct strbuf *out);

enum report_form {
	REPORT_FORM_TERMINAL,
	REPORT_FORM_JSON,
	REPORT_FORM_CSV,
	REPORT_FORM_PAGE, /* of a whole report: JSON of blocks and tables, for the page */
};

/* A document by itself: its blocks, its value as JSON and a newline, or its rows. */
int report_render(const struct result *result, enum report_form form,
	const struct terminal *terminal, struct strbuf *out);

/* Appends a value as a cell of a terminal's table; not of one that is made of rows. */
void report_render_cell(const struct result *result, const struct report_column *column,
	const struct result_value *value, struct strbuf *out);
/* The section's value by itself: null when it has none. */
int report_render_json(const struct result *result, struct json_writer *json);
/* One value of a table: null when it is not known. */
void report_render_value(
	const struct result *result, const struct result_value *value, struct json_writer *json);
/* The section as a member of the object that is open; without a key its members are. */
int report_render_member(const struct result *result, struct json_writer *json);
/* For the page: members of the object that is open, which are the section's blocks, the tables that
 * they show and what would help. */
int report_render_page(const struct result *result, struct json_writer *json);
/* What would help, as objects of an array that the caller begins and ends. */
void report_render_advice_json(const struct result *result, struct json_writer *json);

/* The JSON Schema of a column's values; null is always one of them. */
void report_render_schema(const struct report_column *column, struct json_writer *json);
/* Of members, for the object "properties" that is open: of the columns, or of a section. */
void report_render_schema_members(const struct report_shape *shape, struct json_writer *json);
void report_render_schema_section(const struct report_column *section, struct json_writer *json);
/* That these members are always there, and no others than those in "properties". */
void report_render_schema_closed(const struct report_shape *shape, struct json_writer *json);
/* Begins the schema of a document, an object that stays open. */
void report_render_schema_head(const char *title, struct json_writer *json);
/* Of a document with these members, all of it. */
int report_render_schema_document(
	const struct report_shape *shape, const char *title, struct strbuf *out);

/*
 * Rows of the section as RFC 4180's CSV, with a header: of the section's own when it is made of
 * rows, else the first that were opened in it. Columns made of rows are left out. -ENODATA: the
 * section has no rows.
 */
int report_render_csv(const struct result *result, struct strbuf *out);

/*
 * All tables of the section that have rows: table `*at` and those with the same columns, such as
 * one of each rank, as one CSV. Where there are several its first column, "table", numbers them.
 * Moves
 * `*at` on; returns the column that they are the value of, NULL when there are no more. Starts at
 * 0.
 */
const struct report_column *report_render_next_table(
	const struct result *result, size_t *at, struct strbuf *out);
