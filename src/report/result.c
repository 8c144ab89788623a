/* SPDX-License-Identifier: Apache-2.0 */
#include "report/result.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/demangle.h"

static const char *const kind_names[REPORT_KIND_MAX] = {
	[REPORT_TEXT] = "text",
	[REPORT_INTEGER] = "integer",
	[REPORT_COUNT] = "count",
	[REPORT_NS] = "ns",
	[REPORT_BYTES] = "bytes",
	[REPORT_SHARE] = "share",
	[REPORT_JOULES] = "joules",
	[REPORT_WATTS] = "watts",
	[REPORT_NUMBER] = "number",
	[REPORT_FLAG] = "flag",
	[REPORT_ROWS] = "rows",
	[REPORT_OBJECT] = "object",
	[REPORT_MAP] = "map",
	[REPORT_LIST] = "list",
};

const char *report_kind_name(enum report_kind kind)
{
	return kind_names[kind];
}

void result_done(struct result *result)
{
	array_foreach (&result->tables, table)
		array_done(&table->values);
	array_done(&result->tables);
	array_done(&result->open);
	array_done(&result->blocks);
	array_done(&result->advice);
	strbuf_done(&result->texts);
}

int result_status(const struct result *result)
{
	return result->status < 0 ? result->status : strbuf_status(&result->texts);
}

/* ---- values ---- */

/* The rows that are being filled; NULL: the section's own value comes next. */
static struct result_table *open_table(struct result *result)
{
	if (!result->open.count)
		return NULL;
	return &result->tables.items[result->open.items[result->open.count - 1]];
}

static const struct report_column *next_column(struct result *result)
{
	const struct result_table *table = open_table(result);
	const struct report_shape *shape;

	if (!table)
		return result->column;
	shape = table->column->shape;
	return &shape->columns[table->values.count % shape->count];
}

static void add_value(struct result *result, struct result_value value)
{
	struct result_table *table = open_table(result);

	if (result->status < 0)
		return;
	if (!table)
		result->value = value;
	else if (array_append(&table->values, value) < 0)
		result->status = -ENOMEM;
}

void result_value(struct result *result, struct result_value value)
{
	add_value(result, value);
}

uint32_t result_open(struct result *result)
{
	struct result_table table = {.column = next_column(result)};
	uint32_t index = (uint32_t)result->tables.count;

	if (result->status < 0)
		return 0;
	assert(report_kind_has_rows(table.column->kind) && table.column->shape);
	if (array_append(&result->tables, table) < 0)
		result->status = -ENOMEM;
	add_value(result, (struct result_value){.state = REPORT_TABLE, .table = index});
	if (result->status == 0 && array_append(&result->open, index) < 0)
		result->status = -ENOMEM;
	return index;
}

uint32_t result_open_apart(struct result *result, uint32_t like)
{
	uint32_t index = (uint32_t)result->tables.count;
	struct result_table table;

	if (result->status < 0)
		return 0;
	table = (struct result_table){
		.column = result->tables.items[like].column, .is_apart = true, .like = like};
	if (array_append(&result->tables, table) < 0 || array_append(&result->open, index) < 0)
		result->status = -ENOMEM;
	return index;
}

void result_close(struct result *result)
{
	const struct result_table *table;

	if (result->status < 0)
		return;
	table = open_table(result);
	assert(table && table->values.count % table->column->shape->count == 0);
	assert(table->column->kind != REPORT_OBJECT || result_rows(table) == 1);
	result->open.count--;
}

void result_null(struct result *result)
{
	add_value(result, (struct result_value){.state = REPORT_UNKNOWN});
}

/* Texts end in NUL. */
static size_t keep_text(struct result *result, const char *text)
{
	size_t offset = result->texts.length;

	strbuf_add_bytes(&result->texts, text, strlen(text) + 1);
	return offset;
}

/* Kernels of ROCm have mangled names in traces; those of samples were demangled before. */
static void add_demangled(struct result *result, const char *name)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	demangle_symbol(name, &text);
	strbuf_inherit_status(&result->texts, &text);
	add_value(result, (struct result_value){.state = REPORT_STRING,
				  .text = keep_text(result, strbuf_cstr(&text))});
}

void result_text(struct result *result, const char *text)
{
	assert(result->status < 0 || next_column(result)->kind == REPORT_TEXT);
	if (!text || !*text)
		result_null(result);
	else if (strncmp(text, "_Z", 2) == 0)
		add_demangled(result, text);
	else
		add_value(result, (struct result_value){
					  .state = REPORT_STRING, .text = keep_text(result, text)});
}

void result_textf(struct result *result, const char *format, ...)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	va_list arguments;

	va_start(arguments, format);
	strbuf_vaddf(&text, format, arguments);
	va_end(arguments);
	strbuf_inherit_status(&result->texts, &text);
	result_text(result, strbuf_cstr(&text));
}

static bool takes_integers(const struct report_column *column)
{
	return column->kind >= REPORT_INTEGER && column->kind <= REPORT_BYTES;
}

void result_u64(struct result *result, uint64_t value)
{
	assert(result->status < 0 || takes_integers(next_column(result)));
	add_value(result, (struct result_value){.state = REPORT_U64, .u64 = value});
}

void result_i64(struct result *result, int64_t value)
{
	assert(result->status < 0 || takes_integers(next_column(result)));
	add_value(result, (struct result_value){.state = REPORT_I64, .i64 = value});
}

void result_number(struct result *result, double value)
{
	assert(result->status < 0 || (next_column(result)->kind >= REPORT_NS &&
					     next_column(result)->kind <= REPORT_NUMBER));
	if (!isfinite(value))
		result_null(result);
	else
		add_value(result, (struct result_value){.state = REPORT_DOUBLE, .number = value});
}

void result_flag(struct result *result, bool value)
{
	assert(result->status < 0 || next_column(result)->kind == REPORT_FLAG);
	add_value(result, (struct result_value){.state = REPORT_BOOL, .flag = value});
}

void result_known(struct result *result, bool known, uint64_t value)
{
	if (known)
		result_u64(result, value);
	else
		result_null(result);
}

void result_share(struct result *result, double part, double whole)
{
	struct result_value value = {.state = REPORT_DOUBLE, .whole = (float)whole};

	assert(result->status < 0 || (next_column(result)->kind >= REPORT_NS &&
					     next_column(result)->kind <= REPORT_NUMBER));
	value.number = whole != 0 ? part / whole : NAN;
	if (!isfinite(value.number))
		result_null(result);
	else
		add_value(result, value);
}

void result_leave_out(struct result *result, size_t rows)
{
	struct result_table *table = open_table(result);

	if (result->status == 0)
		table->left_out += rows;
}

size_t result_count(const struct result *result, uint32_t table)
{
	return result->status < 0 ? 0 : result_rows(&result->tables.items[table]);
}

/* ---- what a terminal shows ---- */

static void add_block(struct result *result, const struct result_block *block)
{
	if (array_append(&result->blocks, *block) < 0)
		result->status = -ENOMEM;
	else
		result->blocks.items[result->blocks.count - 1].is_account = result->is_account;
}

void result_account(struct result *result, bool is_account)
{
	result->is_account = is_account;
}

void result_title(struct result *result, const char *text)
{
	add_block(result, &(struct result_block){
				  .kind = REPORT_BLOCK_TITLE, .text = keep_text(result, text)});
}

void result_heading(struct result *result, const char *text)
{
	add_block(result, &(struct result_block){
				  .kind = REPORT_BLOCK_HEADING, .text = keep_text(result, text)});
}

void result_sentence(struct result *result, size_t indent, const char *text)
{
	add_block(result, &(struct result_block){.kind = REPORT_BLOCK_SENTENCE,
				  .text = keep_text(result, text),
				  .indent = indent});
}

void result_sentencef(struct result *result, size_t indent, const char *format, ...)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	va_list arguments;

	va_start(arguments, format);
	strbuf_vaddf(&text, format, arguments);
	va_end(arguments);
	strbuf_inherit_status(&result->texts, &text);
	result_sentence(result, indent, strbuf_cstr(&text));
}

void result_say(struct result *result, size_t indent, const struct strbuf *text)
{
	strbuf_inherit_status(&result->texts, text);
	result_sentence(result, indent, strbuf_cstr(text));
}

void result_lines(struct result *result, const char *text)
{
	add_block(result, &(struct result_block){
				  .kind = REPORT_BLOCK_LINES, .text = keep_text(result, text)});
}

void result_show(struct result *result, uint32_t table, const struct result_show *show)
{
	add_block(result,
		&(struct result_block){.kind = REPORT_BLOCK_TABLE, .table = table, .show = *show});
}

void result_draw(struct result *result, uint32_t list, const struct result_bars *bars)
{
	add_block(result,
		&(struct result_block){.kind = REPORT_BLOCK_BARS, .table = list, .bars = *bars});
}

void result_advise(struct result *result, const struct result_advice *advice, const char *sentence)
{
	struct result_advice kept = *advice;

	kept.sentence = keep_text(result, sentence);
	if (array_append(&result->advice, kept) < 0)
		result->status = -ENOMEM;
	add_block(result, &(struct result_block){
				  .kind = REPORT_BLOCK_ADVICE, .text = kept.sentence, .indent = 2});
}

void result_drop_advice(struct result *result, size_t index)
{
	size_t sentence = result->advice.items[index].sentence, kept = 0;

	for (size_t i = 0; i < result->blocks.count; i++) {
		const struct result_block *block = &result->blocks.items[i];

		if (block->kind != REPORT_BLOCK_ADVICE || block->text != sentence)
			result->blocks.items[kept++] = *block;
	}
	result->blocks.count = kept;
	result->advice.count--;
	memmove(&result->advice.items[index], &result->advice.items[index + 1],
		(result->advice.count - index) * sizeof(*result->advice.items));
}

bool result_is_same(
	const struct result *result, const struct result_value *a, const struct result_value *b)
{
	if (a->state != b->state)
		return false;
	switch (a->state) {
	case REPORT_UNKNOWN:
		return true;
	case REPORT_STRING:
		return strcmp(result_string(result, a->text), result_string(result, b->text)) == 0;
	case REPORT_DOUBLE:
		return a->number == b->number;
	case REPORT_BOOL:
		return a->flag == b->flag;
	default:
		return a->u64 == b->u64;
	}
}
