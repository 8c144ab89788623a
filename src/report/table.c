/* SPDX-License-Identifier: Apache-2.0 */
#include "report/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/escape.h"
#include "model/shorten.h"

#define DEFAULT_WIDTH 100
#define MIN_WIDTH     50
#define MAX_WIDTH     400
#define COLUMN_GAP    2
#define MAX_COLUMNS   24
#define NAME_COLUMNS  28 /* that a name should have */
#define WHOLE_COLUMNS                                                                              \
	60 /* of a column that may be longer in some rows, where nothing is shortened */
#define LONGEST_WHOLE 2000 /* a longer cell is shortened there, too: files may have any names */

static size_t width_of(FILE *file, bool *ret_is_known)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	long wanted = 0;

	if (isatty(fileno(file)) && ioctl(fileno(file), TIOCGWINSZ, &size) == 0)
		wanted = size.ws_col;
	if (wanted <= 0 && columns)
		wanted = strtol(columns, NULL, 10);
	*ret_is_known = wanted > 0;
	if (wanted <= 0)
		wanted = DEFAULT_WIDTH;
	return (size_t)MIN(MAX(wanted, (long)MIN_WIDTH), (long)MAX_WIDTH);
}

const char *terminal_colour = "auto";
const char *const terminal_colours[] = {"auto", "always", "never", NULL};

static bool has_colour(bool is_terminal)
{
	const char *no_colour = getenv("NO_COLOR"), *name = getenv("TERM");

	if (strcmp(terminal_colour, "auto") != 0)
		return strcmp(terminal_colour, "always") == 0;
	return is_terminal && !(no_colour && *no_colour) && !(name && strcmp(name, "dumb") == 0);
}

struct terminal terminal_of(FILE *file)
{
	bool is_terminal = isatty(fileno(file)), is_known;
	size_t width = width_of(file, &is_known);

	return (struct terminal){
		.width = width,
		.colour = has_colour(is_terminal),
		.is_whole = !is_terminal && !is_known,
	};
}

const char *terminal_bold(const struct terminal *terminal)
{
	return terminal->colour ? "\033[1m" : "";
}

const char *terminal_dim(const struct terminal *terminal)
{
	return terminal->colour ? "\033[2m" : "";
}

const char *terminal_plain(const struct terminal *terminal)
{
	return terminal->colour ? "\033[0m" : "";
}

void table_cell(struct table *table, const char *text)
{
	if (array_append(&table->cells, table->text.length) < 0)
		table->text.status = -ENOMEM;
	escape_plain(&table->text, text);
	strbuf_add_char(&table->text, '\0');
}

static const char *cell_at(const struct table *table, size_t index)
{
	return table->text.data + table->cells.items[index];
}

static void natural_widths(const struct table *table, size_t *widths)
{
	for (size_t i = 0; i < table->column_count; i++)
		widths[i] = shorten_columns(table->columns[i].title);
	for (size_t i = 0; i < table->cells.count; i++) {
		size_t column = i % table->column_count;

		widths[column] = MAX(widths[column], shorten_columns(cell_at(table, i)));
	}
}

static size_t sum_widths(const struct table *table, const size_t *widths)
{
	size_t sum = table->indent;

	for (size_t i = 0; i < table->column_count; i++)
		sum += widths[i] ? widths[i] + (i ? COLUMN_GAP : 0) : 0;
	return sum;
}

/* Columns that yield have no width then, the last ones first. */
static void leave_out_columns(const struct table *table, size_t *widths, size_t width)
{
	size_t sum = sum_widths(table, widths);

	for (size_t i = 0; i < table->column_count; i++) {
		if (table->columns[i].shrinks_to)
			sum -= widths[i] - MIN(widths[i], MAX((size_t)NAME_COLUMNS,
								  table->columns[i].shrinks_to));
	}
	for (size_t i = table->column_count; i-- > 0 && sum > width;) {
		if (!table->columns[i].yields)
			continue;
		sum -= widths[i] + COLUMN_GAP;
		widths[i] = 0;
	}
}

/* The column with most to give above its smallest width; column_count when none has any. */
static size_t widest(const struct table *table, const size_t *widths)
{
	size_t found = table->column_count, most = 0;

	for (size_t i = 0; i < table->column_count; i++) {
		size_t smallest = table->columns[i].shrinks_to;

		if (!smallest || widths[i] <= smallest || widths[i] - smallest <= most)
			continue;
		most = widths[i] - smallest;
		found = i;
	}
	return found;
}

/* First the columns that are wider than they like give, then always the one with most to give. */
static void fit_widths(const struct table *table, size_t *widths, size_t width)
{
	size_t sum;

	leave_out_columns(table, widths, width);
	sum = sum_widths(table, widths);
	for (size_t i = table->column_count; i-- > 0 && sum > width;) {
		size_t largest = table->columns[i].largest, excess;

		if (!largest || widths[i] <= largest)
			continue;
		excess = MIN(sum - width, widths[i] - largest);
		widths[i] -= excess;
		sum -= excess;
	}
	for (; sum > width; sum--) {
		size_t column = widest(table, widths);

		if (column == table->column_count)
			break;
		widths[column]--;
	}
}

/* Where nothing is shortened: one long name does not push all other rows apart. */
static void bound_widths(const struct table *table, size_t *widths)
{
	for (size_t i = 0; i < table->column_count; i++) {
		size_t title = shorten_columns(table->columns[i].title);

		if (table->columns[i].shrinks_to)
			widths[i] = MIN(widths[i], MAX((size_t)WHOLE_COLUMNS, title));
	}
}

static void pad(struct strbuf *out, size_t count)
{
	strbuf_addf(out, "%*s", (int)count, "");
}

/* Of a path or source; texts and names of a column are shortened together, before. */
static void shorten_cell(
	struct strbuf *out, const struct table_column *column, const char *text, size_t width)
{
	if (column->is_path)
		shorten_path(out, text, width);
	else if (column->is_source)
		shorten_end(out, text, width);
	else
		shorten_text(out, text, width);
}

/* The last column is not padded: no line ends in spaces. */
static void add_cell(struct strbuf *out, const struct table *table, size_t column, const char *text,
	size_t width, bool is_whole)
{
	_cleanup_strbuf_ struct strbuf shortened = {0};
	size_t columns;

	if (!width)
		return;
	if (!is_whole)
		shorten_cell(&shortened, &table->columns[column], text, width);
	else if (strlen(text) <= LONGEST_WHOLE)
		strbuf_add(&shortened, text);
	else
		shorten_cell(&shortened, &table->columns[column], text, LONGEST_WHOLE);
	columns = MIN(shorten_columns(strbuf_cstr(&shortened)), width);
	if (table->columns[column].right)
		pad(out, width - columns);
	strbuf_add(out, strbuf_cstr(&shortened));
	if (column + 1 < table->column_count)
		pad(out, COLUMN_GAP + (table->columns[column].right ? 0 : width - columns));
}

static void add_header(struct strbuf *out, const struct table *table,
	const struct terminal *terminal, const size_t *widths)
{
	strbuf_add(out, terminal_bold(terminal));
	pad(out, table->indent);
	for (size_t i = 0; i < table->column_count; i++)
		add_cell(out, table, i, table->columns[i].title, widths[i], terminal->is_whole);
	strbuf_addf(out, "%s\n", terminal_plain(terminal));
}

static void add_row(struct strbuf *out, const struct table *table, const struct terminal *terminal,
	const size_t *widths, size_t first)
{
	pad(out, table->indent);
	for (size_t i = 0; i < table->column_count; i++) {
		if (table->columns[i].dim)
			strbuf_add(out, terminal_dim(terminal));
		add_cell(out, table, i, cell_at(table, first + i), widths[i], terminal->is_whole);
		if (table->columns[i].dim)
			strbuf_add(out, terminal_plain(terminal));
	}
	while (!terminal->colour && out->length && out->data[out->length - 1] == ' ')
		out->data[--out->length] = '\0';
	strbuf_add_char(out, '\n');
}

/* Those of one column. */
static int shorten_column(struct table *table, size_t column, size_t width)
{
	size_t rows = table->cells.count / table->column_count;
	const char **texts = calloc(rows + 1, sizeof(*texts));
	char **shortened = calloc(rows + 1, sizeof(*shortened));
	int r = texts && shortened ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < rows; i++)
		texts[i] = cell_at(table, i * table->column_count + column);
	if (r == 0)
		r = shorten_all(shortened, texts, rows, width, !table->columns[column].is_text);
	for (size_t i = 0; shortened && i < rows; i++) {
		if (r == 0) {
			table->cells.items[i * table->column_count + column] = table->text.length;
			strbuf_add(&table->text, shortened[i]);
			strbuf_add_char(&table->text, '\0');
		}
		free(shortened[i]);
	}
	free(shortened);
	free(texts);
	return r < 0 ? r : strbuf_status(&table->text);
}

/* Names and texts that are wider than their columns. */
static int shorten_columns_of(struct table *table, const size_t *widths)
{
	size_t natural[MAX_COLUMNS] = {0};
	int r = 0;

	natural_widths(table, natural);
	for (size_t i = 0; r == 0 && i < table->column_count; i++) {
		const struct table_column *column = &table->columns[i];

		if (widths[i] && widths[i] < natural[i] && !column->is_path && !column->is_source)
			r = shorten_column(table, i, widths[i]);
	}
	return r;
}

int table_print(struct table *table, const struct terminal *terminal, struct strbuf *out)
{
	size_t widths[MAX_COLUMNS] = {0};
	int r;

	assert(table->column_count <= MAX_COLUMNS);
	if (strbuf_status(&table->text) < 0)
		return -ENOMEM;
	if (!table->cells.count)
		return 0;
	assert(table->cells.count % table->column_count == 0);
	natural_widths(table, widths);
	if (terminal->is_whole)
		bound_widths(table, widths);
	else
		fit_widths(table, widths, terminal->width);
	r = terminal->is_whole ? 0 : shorten_columns_of(table, widths);
	if (r < 0)
		return r;
	add_header(out, table, terminal, widths);
	for (size_t i = 0; i < table->cells.count; i += table->column_count)
		add_row(out, table, terminal, widths, i);
	return strbuf_status(out);
}

void table_done(struct table *table)
{
	strbuf_done(&table->text);
	array_done(&table->cells);
}
