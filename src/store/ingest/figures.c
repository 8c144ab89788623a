/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every value that a section says becomes a row, whatever the section: which table, which column,
 * which row of it. A table inside of a row is a table of its own, "kernels.ranks", whose rows say
 * in the column "^" which row they are in.
 */
#include <string.h>

#include "base/map.h"
#include "report/document.h"
#include "store/ingest/capture.h"

#define INSIDE "^"

/* Rows of tables of one path are numbered through. */
struct path {
	const char *name; /* interned */
	int64_t rows;
};

struct figures {
	struct capture_writer *writer;
	const char *section;
	struct intern paths;
	ARRAY_OF(int64_t) rows; /* by path */
	struct map_u64 names;   /* of columns: that were written */
};

static void figures_done(struct figures *figures)
{
	intern_done(&figures->paths);
	array_done(&figures->rows);
	map_u64_done(&figures->names);
}

/* The same in every store: of the names' bytes. 48 bits, which every reader of JSON keeps. */
int64_t store_figure_name_of(const char *section, const char *path, const char *column)
{
	uint64_t hash = hash_bytes(section, strlen(section), 1);

	hash = hash_bytes(path, strlen(path), hash);
	return (int64_t)(hash_bytes(column, strlen(column), hash) >> 16);
}

static int write_name(struct figures *figures, const char *path, const char *column,
	const char *kind, int64_t *ret_name)
{
	int64_t name = store_figure_name_of(figures->section, path, column);
	const struct store_value values[] = {
		store_integer(name),
		{.type = STORE_TEXT, .text = figures->section},
		{.type = STORE_TEXT, .text = path},
		{.type = STORE_TEXT, .text = column},
		{.type = STORE_TEXT, .text = kind},
	};
	int r = 0;

	*ret_name = name;
	if (map_u64_get(&figures->names, (uint64_t)name, NULL))
		return 0;
	r = figures->writer->store->ops->insert(
		figures->writer->store, STORE_FIGURE_NAMES, values, figures->writer->err);
	return r < 0 ? r : map_u64_set(&figures->names, (uint64_t)name, 1);
}

static int write_value(struct figures *figures, int64_t name, int64_t row, struct store_value value)
{
	const struct store_value values[] = {
		store_integer(figures->writer->run),
		store_integer(name),
		store_integer(row),
		value.type == STORE_INTEGER ? value : store_null(),
		value.type == STORE_NUMBER ? value : store_null(),
		value.type == STORE_TEXT ? value : store_null(),
	};

	return value.type == STORE_NULL ? 0 : capture_write(figures->writer, STORE_FIGURES, values);
}

static struct store_value value_of(const struct result *result, const struct result_value *value)
{
	switch (value->state) {
	case REPORT_U64:
		return value->u64 > INT64_MAX ? store_number((double)value->u64)
					      : store_integer((int64_t)value->u64);
	case REPORT_I64:
		return store_integer(value->i64);
	case REPORT_DOUBLE:
		return store_number(value->number);
	case REPORT_BOOL:
		return store_integer(value->flag);
	case REPORT_STRING:
		return store_text(result_string(result, value->text));
	default:
		return store_null();
	}
}

/* ---- tables ---- */

static int find_path(struct figures *figures, const char *path, uint32_t *ret_path)
{
	int r = intern_add(&figures->paths, path, strlen(path), ret_path);

	return r > 0 ? array_append(&figures->rows, 0) : r;
}

/* What a column is called; NULL: it is the terminal's alone. Lists have columns without names. */
static const char *column_name(const struct report_column *table, size_t column)
{
	static const char *const places[] = {"item", "item2", "item3", "item4"};
	const char *key = table->shape->columns[column].key;

	if (key || table->kind != REPORT_LIST || column >= ARRAY_SIZE(places))
		return key;
	return places[column];
}

static int write_column(struct figures *figures, const struct result *result,
	const struct result_table *table, size_t column, const char *path, int64_t first)
{
	const struct report_shape *shape = table->column->shape;
	const char *key = column_name(table->column, column);
	int64_t name = 0, row = first;
	int r = 0;

	if (!key || report_kind_has_rows(shape->columns[column].kind))
		return 0;
	r = write_name(figures, path, key, report_kind_name(shape->columns[column].kind), &name);
	for (size_t i = column; r == 0 && i < table->values.count; i += shape->count)
		r = write_value(figures, name, row++, value_of(result, &table->values.items[i]));
	return r;
}

/* Which row of the table outside it is in, and how many rows it has that are not here. */
static int write_place(struct figures *figures, const struct result_table *table, const char *path,
	int64_t first, int64_t outside)
{
	int64_t name = 0;
	int r = 0;

	if (outside >= 0)
		r = write_name(figures, path, INSIDE, "integer", &name);
	for (size_t i = 0; r == 0 && outside >= 0 && i < result_rows(table); i++)
		r = write_value(figures, name, first + (int64_t)i, store_integer(outside));
	if (r < 0 || !table->left_out)
		return r;
	r = write_name(figures, path, "rows_total", "count", &name);
	return r < 0 ? r
		     : write_value(figures, name, first,
			       store_u64(result_rows(table) + table->left_out));
}

struct opened {
	uint32_t table;
	uint32_t path;
	int64_t outside; /* a row; -1: it is in none */
};

struct opened_tables {
	ARRAY_OF(struct opened) items;
};

/* The tables that are in this one's rows. */
static int open_inside(struct figures *figures, struct opened_tables *opened,
	const struct result_table *table, const char *path, int64_t first)
{
	const struct report_shape *shape = table->column->shape;
	bool is_object = table->column->kind == REPORT_OBJECT;
	int r = 0;

	for (size_t i = 0; r == 0 && i < table->values.count; i++) {
		const struct report_column *column = &shape->columns[i % shape->count];
		_cleanup_strbuf_ struct strbuf name = {0};
		struct opened inside = {.outside = -1};

		if (table->values.items[i].state != REPORT_TABLE)
			continue;
		strbuf_addf(&name, "%s%s%s", path, *path ? "." : "",
			column->key ? column->key : "rows");
		r = strbuf_status(&name);
		if (r == 0)
			r = find_path(figures, name.data, &inside.path);
		inside.table = table->values.items[i].table;
		if (!is_object)
			inside.outside = first + (int64_t)(i / shape->count);
		if (r == 0)
			r = array_append(&opened->items, inside);
	}
	return r;
}

static int write_table(struct figures *figures, const struct result *result,
	struct opened_tables *opened, struct opened at)
{
	const struct result_table *table = &result->tables.items[at.table];
	const char *path = intern_get(&figures->paths, at.path);
	int64_t first = figures->rows.items[at.path];
	int r = write_place(figures, table, path, first, at.outside);

	figures->rows.items[at.path] += (int64_t)result_rows(table);
	for (size_t i = 0; r == 0 && i < table->column->shape->count; i++)
		r = write_column(figures, result, table, i, path, first);
	return r < 0 ? r : open_inside(figures, opened, table, path, first);
}

/* Some have no key of their own, since their members are the document's. */
static const char *name_of_section(const struct report_section *section)
{
	if (section->value.key)
		return section->value.key;
	if (section->value.title)
		return section->value.title;
	return section->by ? section->by : "report";
}

static int take_section(
	void *context, const struct report_section *section, const struct result *result)
{
	struct figures *figures = context;
	struct opened_tables opened = {0};
	struct opened whole = {.outside = -1};
	int r = 0;

	if (result->value.state != REPORT_TABLE)
		return 0;
	figures->section = name_of_section(section);
	intern_done(&figures->paths);
	figures->paths = (struct intern){0};
	array_clear(&figures->rows);
	whole.table = result->value.table;
	r = find_path(figures, "", &whole.path);
	if (r == 0)
		r = array_append(&opened.items, whole);
	for (size_t i = 0; r == 0 && i < opened.items.count; i++)
		r = write_table(figures, result, &opened, opened.items.items[i]);
	array_done(&opened.items);
	return r;
}

int capture_write_figures(struct capture_writer *writer, const struct capture *capture, size_t rows)
{
	const struct report_document document = {
		.input = {.view = &capture->view,
			.trace = capture->rows.count ? &capture->rows : NULL,
			.limit = rows,
			.is_json = true},
		.is_complete = true,
	};
	_cleanup_(figures_done) struct figures figures = {.writer = writer};

	return report_document_visit(&document, take_section, &figures, writer->err);
}
