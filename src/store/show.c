/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "model/format.h"
#include "report/render.h"
#include "store/documents.h"

#define VERSION 1

static const struct report_column kept_columns[] = {
	{.key = "table", .kind = REPORT_TEXT},
	{.key = "rows", .kind = REPORT_COUNT},
};
static const struct report_shape kept_shape = REPORT_SHAPE(kept_columns);

static const struct report_column section_columns[] = {
	{.key = "values", .title = "Values", .kind = REPORT_COUNT},
	{.key = "section", .title = "Section", .kind = REPORT_TEXT},
};
static const struct report_shape section_shape = REPORT_SHAPE(section_columns);

static const struct report_column figure_columns[] = {
	{.key = "table", .title = "Table", .kind = REPORT_TEXT},
	{.key = "row", .title = "Row", .kind = REPORT_INTEGER},
	{.key = "column", .title = "Column", .kind = REPORT_TEXT},
	{.key = "kind", .kind = REPORT_TEXT, .help = "what the value is: ns, bytes, share …"},
	{.key = "integer", .kind = REPORT_INTEGER},
	{.key = "number", .kind = REPORT_NUMBER},
	{.key = "text", .kind = REPORT_TEXT},
	{.title = "Value", .kind = REPORT_TEXT, .shrinks_to = 20},
};
static const struct report_shape figure_shape = REPORT_SHAPE(figure_columns);

/* The run in a terminal. */
static const struct report_column line_columns[] = {
	{.title = "Figure", .kind = REPORT_TEXT},
	{.title = "Value", .kind = REPORT_TEXT, .shrinks_to = 20},
};
static const struct report_shape line_shape = REPORT_SHAPE(line_columns);

static const struct report_column columns[] = {
	{.key = "format", .kind = REPORT_TEXT},
	{.key = "version", .kind = REPORT_INTEGER},
	{.key = "run", .kind = REPORT_OBJECT, .shape = &store_run_shape},
	{.key = "kept",
		.kind = REPORT_MAP,
		.shape = &kept_shape,
		.help = "rows of the run in each table"},
	{.key = "sections", .kind = REPORT_ROWS, .shape = &section_shape},
	{.key = "figures",
		.kind = REPORT_ROWS,
		.shape = &figure_shape,
		.help = "of --section; else none"},
	{.kind = REPORT_ROWS, .shape = &line_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);
static const struct report_column document = {.kind = REPORT_OBJECT, .shape = &shape};

/* ---- values in words ---- */

static void add_words(struct strbuf *out, enum report_kind kind, const struct store_value *value)
{
	double number = store_as_number(value);

	if (value->type == STORE_TEXT)
		strbuf_add(out, value->text);
	else if (kind == REPORT_NS && value->type == STORE_INTEGER && value->integer >= 0)
		format_duration(out, (uint64_t)value->integer);
	else if (kind == REPORT_BYTES && value->type == STORE_INTEGER && value->integer >= 0)
		format_bytes(out, (uint64_t)value->integer);
	else if (kind == REPORT_COUNT && value->type == STORE_INTEGER && value->integer >= 0)
		format_count(out, (uint64_t)value->integer);
	else if (kind == REPORT_JOULES)
		format_energy(out, number);
	else if (kind == REPORT_SHARE)
		strbuf_addf(out, "%.2f %%", 100 * number);
	else if (value->type == STORE_INTEGER)
		strbuf_addf(out, "%lld", (long long)value->integer);
	else
		strbuf_addf(out, "%.6g%s", number, kind == REPORT_WATTS ? " W" : "");
}

static bool is_unix_time(int column)
{
	return column == STORE_RUN_TIME || column == STORE_RUN_ADDED;
}

static uint32_t add_lines(struct result *result, const struct run_row *row)
{
	uint32_t table = result_open(result);

	for (int i = 0; i < STORE_RUN_COLUMN_MAX; i++) {
		const struct store_column *column = &store_tables[STORE_RUNS].columns[i];
		_cleanup_strbuf_ struct strbuf text = {0};

		if (row->values[i].type == STORE_NULL || i == STORE_RUN_NUMBER)
			continue;
		if (is_unix_time(i))
			store_add_time(&text, &row->values[i]);
		else
			add_words(&text, column->kind, &row->values[i]);
		result_text(result, column->name);
		strbuf_inherit_status(&result->texts, &text);
		result_text(result, strbuf_cstr(&text));
	}
	result_close(result);
	return table;
}

/* ---- what is kept ---- */

static int add_kept(
	struct store *store, const struct run_row *row, struct result *result, struct errmsg *err)
{
	int r = 0;

	result_open(result);
	for (int i = 0; r == 0 && i < STORE_TABLE_MAX; i++) {
		_cleanup_strbuf_ struct strbuf sql = {0};
		int64_t count = 0;

		if (i == STORE_RUNS || i == STORE_FIGURE_NAMES)
			continue;
		strbuf_addf(&sql, "SELECT count(*) FROM %s WHERE run = ?1", store_tables[i].name);
		r = store_count(store, strbuf_cstr(&sql),
			STORE_PARAMETERS(store_integer(run_key(row))), 1, &count, err);
		result_text(result, store_tables[i].name);
		result_i64(result, count);
	}
	result_close(result);
	return r;
}

static int take_section(void *context, const struct store_value *values, size_t count)
{
	result_i64(context, values[1].integer);
	result_text(context, store_as_text(&values[0]));
	return 0;
}

static int add_sections(struct store *store, const struct run_row *row, struct result *result,
	uint32_t *ret_table, struct errmsg *err)
{
	int r;

	*ret_table = result_open(result);
	r = store_run(store,
		"SELECT section, count(*) FROM figures JOIN figure_names USING (name) "
		"WHERE run = ?1 GROUP BY section ORDER BY section",
		take_section, result, err, store_integer(run_key(row)));
	result_close(result);
	return r;
}

static enum report_kind kind_of(const char *name)
{
	static const struct {
		const char *name;
		enum report_kind kind;
	} kinds[] = {{"ns", REPORT_NS}, {"bytes", REPORT_BYTES}, {"count", REPORT_COUNT},
		{"joules", REPORT_JOULES}, {"share", REPORT_SHARE}, {"watts", REPORT_WATTS}};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return kinds[i].kind;
	}
	return REPORT_NUMBER;
}

/* table, row, column, kind, integer, number, text */
static int take_figure(void *context, const struct store_value *values, size_t count)
{
	const struct store_value *value = &values[values[4].type != STORE_NULL   ? 4
						  : values[5].type != STORE_NULL ? 5
										 : 6];
	struct result *result = context;
	_cleanup_strbuf_ struct strbuf words = {0};

	result_text(result, store_as_text(&values[0]));
	result_i64(result, values[1].integer);
	result_text(result, store_as_text(&values[2]));
	result_text(result, store_as_text(&values[3]));
	if (values[4].type == STORE_INTEGER)
		result_i64(result, values[4].integer);
	else
		result_null(result);
	result_number(result, store_as_number(&values[5]));
	result_text(result, store_as_text(&values[6]));
	add_words(&words, kind_of(store_as_text(&values[3])), value);
	strbuf_inherit_status(&result->texts, &words);
	result_text(result, strbuf_cstr(&words));
	return 0;
}

static int add_figures(struct store *store, const struct run_row *row, const char *section,
	struct result *result, uint32_t *ret_table, struct errmsg *err)
{
	int r = 0;

	*ret_table = result_open(result);
	if (section)
		r = store_run(store,
			"SELECT table_name, row_number, column_name, kind, integer_value, "
			"number_value, text_value FROM figures JOIN figure_names USING (name) "
			"WHERE run = ?1 AND section = ?2 ORDER BY table_name, row_number, "
			"column_name",
			take_figure, result, err, store_integer(run_key(row)), store_text(section));
	result_close(result);
	if (r == 0 && section && !result_count(result, *ret_table))
		return errmsg_set(err, -ENOENT,
			"the run %.8s has no section '%.60s': 'sonde runs show' lists those that "
			"it has",
			run_text(row, STORE_RUN_ID), section);
	return r;
}

/* ---- the document ---- */

static int make(struct store *store, const struct run_rows *rows, const char *section,
	struct result *result, struct errmsg *err)
{
	const struct run_row *row = &rows->items.items[0];
	uint32_t sections = 0, figures = 0, lines;
	int r;

	result->column = &document;
	result_open(result);
	result_text(result, "sonde-run");
	result_u64(result, VERSION);
	result_open(result);
	store_add_run(result, rows, row);
	result_close(result);
	r = add_kept(store, row, result, err);
	if (r == 0)
		r = add_sections(store, row, result, &sections, err);
	if (r == 0)
		r = add_figures(store, row, section, result, &figures, err);
	if (r < 0)
		return r;
	lines = add_lines(result, row);
	result_close(result);
	result_show(result, section ? figures : lines, &(struct result_show){0});
	if (!section) {
		result_heading(result, "Sections of its report");
		result_show(result, sections, &(struct result_show){0});
	}
	r = result_status(result);
	return r < 0 ? errmsg_set(err, r, "memory ran out while showing a run") : 0;
}

int store_show(struct store *store, const char *name, const char *section, struct result *result,
	struct errmsg *err)
{
	_cleanup_run_rows_ struct run_rows rows = {0};
	int r = store_find_run(store, name, &rows, err);

	return r < 0 ? r : make(store, &rows, section, result, err);
}

int store_show_schema(struct strbuf *out)
{
	return report_render_schema_document(&shape, "sonde runs show --json", out);
}
