/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/escape.h"
#include "base/text.h"
#include "model/format.h"
#include "model/shorten.h"
#include "report/render.h"
#include "report/shown.h"
#include "report/table.h"

/* ---- values ---- */

static void add_duration(struct strbuf *out, const struct result_value *value)
{
	bool is_negative = (value->state == REPORT_I64 && value->i64 < 0) ||
			   (value->state == REPORT_DOUBLE && value->number < 0);

	if (is_negative)
		strbuf_add_char(out, '-');
	if (value->state == REPORT_DOUBLE)
		format_duration(out, (uint64_t)(fabs(value->number) + 0.5));
	else
		format_duration(out, is_negative ? -value->u64 : value->u64);
}

static double number_of(const struct result_value *value)
{
	switch (value->state) {
	case REPORT_U64:
		return (double)value->u64;
	case REPORT_I64:
		return (double)value->i64;
	default:
		return value->number;
	}
}

static void add_count(struct strbuf *out, const struct result_value *value)
{
	if (value->state == REPORT_I64 && value->i64 < 0)
		strbuf_add_char(out, '-');
	format_count(out, value->state == REPORT_I64 && value->i64 < 0 ? -value->u64 : value->u64);
}

static void add_watts(struct strbuf *out, double watts)
{
	double size = fabs(watts);

	strbuf_addf(out, "%.*f W", size < 9.95 ? 2 : size < 99.5 ? 1 : 0, watts);
}

static void add_known(struct strbuf *out, const struct result *result,
	const struct report_column *column, const struct result_value *value)
{
	if (column->is_change && number_of(value) >= 0)
		strbuf_add_char(out, '+');
	switch (column->kind) {
	case REPORT_TEXT:
		strbuf_add(out, result_string(result, value->text));
		return;
	case REPORT_INTEGER:
		strbuf_addf(out, "%lld", (long long)value->i64);
		return;
	case REPORT_COUNT:
		add_count(out, value);
		return;
	case REPORT_NS:
		add_duration(out, value);
		return;
	case REPORT_BYTES:
		format_bytes(out, value->u64);
		return;
	case REPORT_SHARE:
		strbuf_addf(out, "%.*f %%", column->decimals ? column->decimals : 2,
			100 * number_of(value));
		return;
	case REPORT_JOULES:
		format_energy(out, number_of(value));
		return;
	case REPORT_WATTS:
		add_watts(out, number_of(value));
		return;
	case REPORT_NUMBER:
		if (column->decimals)
			strbuf_addf(out, "%.*f", column->decimals, number_of(value));
		else
			strbuf_addf(
				out, "%.*g", column->digits ? column->digits : 6, number_of(value));
		return;
	case REPORT_FLAG:
		strbuf_add(out, value->flag ? "yes" : "");
		return;
	default: /* made of rows: not in a cell */
		return;
	}
}

void report_render_cell(const struct result *result, const struct report_column *column,
	const struct result_value *value, struct strbuf *out)
{
	if (value->state != REPORT_UNKNOWN)
		add_known(out, result, column, value);
	else if (column->unknown)
		strbuf_add(out, column->unknown);
}

/* ---- tables ---- */

static struct table_column layout_of(const struct report_column *column)
{
	bool is_text = column->kind == REPORT_TEXT;

	return (struct table_column){
		.title = column->title,
		.right = !is_text || column->is_right,
		.dim = column->is_dim,
		.is_text = is_text && !column->is_name,
		.is_path = column->is_path,
		.is_source = column->is_source,
		.shrinks_to = column->shrinks_to,
		.largest = column->largest,
		.yields = column->yields,
	};
}

static void add_cell(struct table *table, const struct result *result,
	const struct report_column *column, const struct result_value *value)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	report_render_cell(result, column, value, &text);
	table_cell(table, strbuf_cstr(&text));
	strbuf_inherit_status(&table->text, &text);
}

static void add_rest(struct strbuf *out, const struct terminal *terminal, size_t rest,
	const struct result_show *show)
{
	if (!rest || !show->noun)
		return;
	strbuf_addf(out, "%s\xe2\x80\xa6 ", terminal_dim(terminal));
	format_count(out, rest);
	strbuf_addf(out, " more %s", show->noun);
	if (show->rest_share > 0)
		strbuf_addf(out, " with %.2f %%", 100 * show->rest_share);
	strbuf_addf(out, " (--limit shows more)%s\n", terminal_plain(terminal));
}

static int add_table(const struct result *result, const struct result_block *block,
	const struct terminal *terminal, struct strbuf *out)
{
	const struct result_table *rows = &result->tables.items[block->table];
	const struct report_shape *shape = rows->column->shape;
	size_t count = result_rows(rows);
	size_t shown = block->show.limit ? MIN(block->show.limit, count) : count;
	const struct shown_columns places = shown_columns(result, rows, block->show.view);
	struct table_column columns[REPORT_SHOWN_MAX];
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = places.count, .indent = block->show.indent};
	int r;

	for (size_t i = 0; i < places.count; i++)
		columns[i] = layout_of(&shape->columns[places.items[i]]);
	for (size_t row = 0; row < shown; row++) {
		for (size_t i = 0; i < places.count; i++)
			add_cell(&table, result, &shape->columns[places.items[i]],
				&rows->values.items[row * shape->count + places.items[i]]);
	}
	r = table_print(&table, terminal, out);
	add_rest(
		out, terminal, count - shown + rows->left_out + block->show.left_out, &block->show);
	return r;
}

/* ---- bars ---- */

#define BARS_MIN 10
#define BARS_MAX 50

static double mean_of(const struct result_table *list, size_t first, size_t end)
{
	double sum = 0;

	for (size_t i = first; i < end; i++)
		sum += number_of(&list->values.items[i]);
	return sum / (double)(end - first);
}

/* "CPU use over time: ▕▁▃▇█▆▁▏ peak 3.90 CPUs": as many numbers a bar as the width needs. */
static void add_bars(const struct result *result, const struct result_block *block,
	const struct terminal *terminal, struct strbuf *out)
{
	static const char *const levels[] = {" ", "\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83",
		"\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88"};
	const struct result_table *list = &result->tables.items[block->table];
	size_t count = list->values.count, top = ARRAY_SIZE(levels) - 1;
	size_t beside = strlen(block->bars.title) + strlen(block->bars.unit) + 17;
	size_t most = MIN(MAX(terminal->width, beside + BARS_MIN) - beside, (size_t)BARS_MAX);
	size_t each = (count + most - 1) / most;
	double peak = 0;

	for (size_t i = 0; i < count; i += each)
		peak = fmax(peak, mean_of(list, i, MIN(i + each, count)));
	if (peak <= 0)
		return;
	strbuf_addf(out, "%s: \xe2\x96\x95", block->bars.title);
	for (size_t i = 0; i < count; i += each)
		strbuf_add(out, levels[(size_t)ceil(mean_of(list, i, MIN(i + each, count)) / peak *
						    (double)top)]);
	strbuf_addf(out, "\xe2\x96\x8f peak %.2f %s\n", peak * block->bars.scale, block->bars.unit);
}

/* ---- blocks ---- */

static void add_paragraph(struct strbuf *out, const char *text, size_t column, size_t indent,
	const struct terminal *terminal)
{
	_cleanup_strbuf_ struct strbuf plain = {0};

	escape_plain(&plain, text);
	text_wrap(out, strbuf_cstr(&plain), column, indent, terminal->width);
	strbuf_inherit_status(out, &plain);
}

static void add_title(struct strbuf *out, const char *text, const struct terminal *terminal)
{
	_cleanup_strbuf_ struct strbuf plain = {0};

	escape_plain(&plain, text);
	strbuf_add(out, terminal_bold(terminal));
	if (terminal->is_whole)
		strbuf_add(out, strbuf_cstr(&plain));
	else
		shorten_text(out, strbuf_cstr(&plain), terminal->width);
	strbuf_addf(out, "%s\n", terminal_plain(terminal));
	strbuf_inherit_status(out, &plain);
}

static int add_block(const struct result *result, const struct result_block *block,
	const struct terminal *terminal, struct strbuf *out)
{
	const char *text = result_string(result, block->text);

	switch (block->kind) {
	case REPORT_BLOCK_TITLE:
		add_title(out, text, terminal);
		return 0;
	case REPORT_BLOCK_HEADING:
		strbuf_addf(
			out, "\n%s%s%s\n", terminal_bold(terminal), text, terminal_plain(terminal));
		return 0;
	case REPORT_BLOCK_SENTENCE:
		add_paragraph(out, text, 0, block->indent, terminal);
		return 0;
	case REPORT_BLOCK_ADVICE:
		strbuf_addf(out, "%s\xe2\x86\x92%s ", terminal_bold(terminal),
			terminal_plain(terminal));
		add_paragraph(out, text, 0, block->indent, terminal);
		return 0;
	case REPORT_BLOCK_LINES:
		escape_lines(out, text);
		return 0;
	case REPORT_BLOCK_TABLE:
		return add_table(result, block, terminal, out);
	case REPORT_BLOCK_BARS:
		add_bars(result, block, terminal, out);
		return 0;
	}
	return 0;
}

int report_render_blocks(const struct result *result, bool is_account,
	const struct terminal *terminal, struct strbuf *out)
{
	int r = result_status(result);

	for (size_t i = 0; r == 0 && i < result->blocks.count; i++) {
		if (result->blocks.items[i].is_account == is_account)
			r = add_block(result, &result->blocks.items[i], terminal, out);
	}
	return r < 0 ? r : strbuf_status(out);
}

int report_render_terminal(
	const struct result *result, const struct terminal *terminal, struct strbuf *out)
{
	int r = report_render_blocks(result, false, terminal, out);

	return r < 0 ? r : report_render_blocks(result, true, terminal, out);
}
