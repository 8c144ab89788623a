/* SPDX-License-Identifier: Apache-2.0 */
#include "report/shown.h"

#include <assert.h>
#include <string.h>

static bool is_empty(const struct result_value *value)
{
	switch (value->state) {
	case REPORT_UNKNOWN:
		return true;
	case REPORT_STRING:
		return false;
	case REPORT_BOOL:
		return !value->flag;
	case REPORT_DOUBLE:
		return value->number == 0;
	default:
		return !value->u64;
	}
}

static bool is_hidden(const struct result *result, const struct result_table *rows, size_t column)
{
	const struct report_shape *shape = rows->column->shape;
	const struct result_value *first = &rows->values.items[column];
	bool same = true, empty = true, unknown = true;

	for (size_t i = column; i < rows->values.count; i += shape->count) {
		same &= result_is_same(result, first, &rows->values.items[i]);
		empty &= is_empty(&rows->values.items[i]);
		unknown &= rows->values.items[i].state == REPORT_UNKNOWN;
	}
	switch (shape->columns[column].hide) {
	case REPORT_HIDE_SAME:
		return same;
	case REPORT_HIDE_EMPTY:
		return empty;
	case REPORT_HIDE_UNKNOWN:
		return unknown;
	default:
		return false;
	}
}

struct shown_columns shown_columns(
	const struct result *result, const struct result_table *rows, unsigned view)
{
	const struct report_shape *shape = rows->column->shape;
	struct shown_columns shown = {.count = 0};

	for (size_t i = 0; i < shape->count; i++) {
		const struct report_column *column = &shape->columns[i];
		unsigned views = column->views ? column->views : 1;

		if (!column->title || !(views & (1U << view)) || is_hidden(result, rows, i))
			continue;
		assert(shown.count < REPORT_SHOWN_MAX);
		shown.items[shown.count++] = i;
	}
	return shown;
}
