/* SPDX-License-Identifier: Apache-2.0 */
#include "report/join.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "report/render.h"

/* A row of a table, and the joined one that it belongs to. */
struct source {
	uint32_t table;
	size_t row;
	uint32_t group;
};

struct joining {
	struct result *result;
	const struct report_shape *shape;
	size_t rank_column, lead_column; /* SIZE_MAX: there is none */
	uint32_t into;                   /* the table */
	ARRAY_OF(struct source) sources; /* by group, when all are there */
	size_t group_count;
	struct intern groups;
};

static void joining_done(struct joining *joining)
{
	array_done(&joining->sources);
	intern_done(&joining->groups);
}

static const struct result_value *value_of(
	const struct joining *joining, const struct source *source, size_t column)
{
	const struct result_table *table = &joining->result->tables.items[source->table];

	return &table->values.items[source->row * joining->shape->count + column];
}

static bool is_number(const struct result_value *value)
{
	return value->state == REPORT_U64 || value->state == REPORT_I64 ||
	       value->state == REPORT_DOUBLE;
}

static double number_of(const struct result_value *value)
{
	return value->state == REPORT_U64   ? (double)value->u64
	       : value->state == REPORT_I64 ? (double)value->i64
					    : value->number;
}

/* ---- which rows are one ---- */

static size_t find_column(
	const struct report_shape *shape, bool (*fits)(const struct report_column *column))
{
	for (size_t i = 0; i < shape->count; i++) {
		if (fits(&shape->columns[i]))
			return i;
	}
	return SIZE_MAX;
}

static bool is_rank(const struct report_column *column)
{
	return column->join == REPORT_JOIN_RANK;
}

static bool is_lead(const struct report_column *column)
{
	return column->is_lead;
}

/* Without a rank a row stays by itself. */
static void make_key(
	const struct joining *joining, const struct source *source, struct strbuf *ret_key)
{
	if (value_of(joining, source, joining->rank_column)->state == REPORT_UNKNOWN)
		strbuf_addf(ret_key, "%u %zu ", source->table, source->row);
	for (size_t i = 0; i < joining->shape->count; i++) {
		const struct result_value *value = value_of(joining, source, i);

		if (joining->shape->columns[i].join != REPORT_JOIN_KEY)
			continue;
		if (value->state == REPORT_STRING)
			strbuf_add(ret_key, result_string(joining->result, value->text));
		else if (is_number(value))
			strbuf_addf(ret_key, "%.17g", number_of(value));
		strbuf_add_char(ret_key, '\n');
	}
}

static int add_table(struct joining *joining, uint32_t table)
{
	_cleanup_strbuf_ struct strbuf key = {0};
	size_t rows = result_rows(&joining->result->tables.items[table]);
	int r = 0;

	for (size_t row = 0; r >= 0 && row < rows; row++) {
		struct source source = {.table = table, .row = row};

		strbuf_clear(&key);
		strbuf_add_char(&key, ' ');
		make_key(joining, &source, &key);
		r = strbuf_status(&key);
		if (r == 0)
			r = intern_add(&joining->groups, key.data, key.length, &source.group);
		joining->group_count += r > 0;
		if (r >= 0)
			r = array_append(&joining->sources, source);
	}
	return MIN(r, 0);
}

static bool has_one_rank(const struct joining *joining)
{
	array_foreach (&joining->sources, source) {
		if (!result_is_same(joining->result,
			    value_of(joining, source, joining->rank_column),
			    value_of(joining, joining->sources.items, joining->rank_column)))
			return false;
	}
	return true;
}

static int compare_sources(const void *left, const void *right)
{
	const struct source *a = left, *b = right;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->table != b->table)
		return a->table < b->table ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

/* ---- what a row of all has ---- */

/* Rows of one group. */
struct group {
	const struct source *first;
	size_t count;
	double order; /* most first */
};

static struct result_value same_of(
	const struct joining *joining, const struct group *group, size_t column)
{
	const struct result_value *first = value_of(joining, group->first, column);

	for (size_t i = 1; i < group->count; i++) {
		if (!result_is_same(
			    joining->result, first, value_of(joining, group->first + i, column)))
			return (struct result_value){.state = REPORT_UNKNOWN};
	}
	return first->state == REPORT_TABLE ? (struct result_value){.state = REPORT_UNKNOWN}
					    : *first;
}

/* The row with the least or most of a column; NULL: none has a number. */
static const struct source *extreme_of(
	const struct joining *joining, const struct group *group, size_t column, bool is_most)
{
	const struct source *found = NULL;
	double best = 0;

	for (size_t i = 0; i < group->count; i++) {
		const struct result_value *value = value_of(joining, group->first + i, column);
		double number = is_number(value) ? number_of(value) : 0;

		if (!is_number(value) || (found && (is_most ? number <= best : number >= best)))
			continue;
		found = group->first + i;
		best = number;
	}
	return found;
}

/* The part of all in the whole of all; a share without a whole (result_number()) has none. */
static bool share_of_sums(
	const struct joining *joining, const struct group *group, size_t column, double *ret_share)
{
	double parts = 0, wholes = 0;

	for (size_t i = 0; i < group->count; i++) {
		const struct result_value *value = value_of(joining, group->first + i, column);

		if (value->state != REPORT_DOUBLE)
			continue;
		parts += value->number * (double)value->whole;
		wholes += (double)value->whole;
	}
	*ret_share = parts / wholes;
	return wholes > 0;
}

/* Integers stay integers; what no row knows is not known. */
static struct result_value sum_of(
	const struct joining *joining, const struct group *group, size_t column, bool is_mean)
{
	bool are_integers = true;
	size_t count = 0;
	double sum = 0;

	if (is_mean && joining->shape->columns[column].kind == REPORT_SHARE &&
		share_of_sums(joining, group, column, &sum))
		return (struct result_value){.state = REPORT_DOUBLE, .number = sum};
	for (size_t i = 0; i < group->count; i++) {
		const struct result_value *value = value_of(joining, group->first + i, column);

		if (!is_number(value))
			continue;
		are_integers &= value->state != REPORT_DOUBLE;
		sum += number_of(value);
		count++;
	}
	if (!count)
		return (struct result_value){.state = REPORT_UNKNOWN};
	if (is_mean)
		sum /= (double)count;
	if (!are_integers || fabs(sum) >= 0x1p62)
		return (struct result_value){.state = REPORT_DOUBLE, .number = sum};
	return (struct result_value){.state = REPORT_I64, .i64 = llround(sum)};
}

static size_t count_ranks(const struct joining *joining, const struct group *group)
{
	size_t ranks = 0;

	for (size_t i = 0; i < group->count; i++) {
		const struct result_value *rank =
			value_of(joining, group->first + i, joining->rank_column);
		bool is_known = rank->state == REPORT_UNKNOWN;

		for (size_t k = 0; !is_known && k < i; k++)
			is_known = result_is_same(joining->result, rank,
				value_of(joining, group->first + k, joining->rank_column));
		ranks += !is_known;
	}
	return ranks;
}

/* "61.5 µs (3)", of the lead before this column. */
static void add_rank_of(
	const struct joining *joining, const struct group *group, size_t column, bool is_most)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	const struct source *source;
	size_t lead = column;

	while (lead && !joining->shape->columns[lead].is_lead)
		lead--;
	source = extreme_of(joining, group, lead, is_most);
	if (!source) {
		result_null(joining->result);
		return;
	}
	report_render_cell(joining->result, &joining->shape->columns[lead],
		value_of(joining, source, lead), &text);
	strbuf_addf(&text, " (%.0f)", number_of(value_of(joining, source, joining->rank_column)));
	strbuf_inherit_status(&joining->result->texts, &text);
	result_text(joining->result, strbuf_cstr(&text));
}

static struct result_value value_of_source(
	const struct joining *joining, const struct source *source, size_t column)
{
	return source ? *value_of(joining, source, column)
		      : (struct result_value){.state = REPORT_UNKNOWN};
}

static void add_value(const struct joining *joining, const struct group *group, size_t column)
{
	struct result *result = joining->result;
	enum report_join join = joining->shape->columns[column].join;
	size_t lead = joining->lead_column == SIZE_MAX ? column : joining->lead_column;

	switch (join) {
	case REPORT_JOIN_SUM:
	case REPORT_JOIN_MEAN:
		result_value(result, sum_of(joining, group, column, join == REPORT_JOIN_MEAN));
		return;
	case REPORT_JOIN_LEAST:
	case REPORT_JOIN_MOST:
		result_value(result,
			value_of_source(joining,
				extreme_of(joining, group, column, join == REPORT_JOIN_MOST),
				column));
		return;
	case REPORT_JOIN_OF_MOST:
		result_value(result,
			value_of_source(joining, extreme_of(joining, group, lead, true), column));
		return;
	case REPORT_JOIN_LEAST_RANK:
	case REPORT_JOIN_MOST_RANK:
		add_rank_of(joining, group, column, join == REPORT_JOIN_MOST_RANK);
		return;
	case REPORT_JOIN_RANKS:
		result_u64(result, count_ranks(joining, group));
		return;
	case REPORT_JOIN_NUMBER_OF_RANKS:
		result_textf(result, "%zu ranks", count_ranks(joining, group));
		return;
	case REPORT_JOIN_RANK:
		result_null(result);
		return;
	default:
		result_value(result, same_of(joining, group, column));
		return;
	}
}

/* ---- all of it ---- */

static int compare_groups(const void *left, const void *right)
{
	const struct group *a = left, *b = right;

	if (a->order != b->order)
		return a->order > b->order ? -1 : 1;
	return a->first->group < b->first->group ? -1 : a->first->group > b->first->group;
}

static double order_of(const struct joining *joining, const struct group *group)
{
	size_t lead = joining->lead_column;
	struct result_value sum;

	if (lead == SIZE_MAX || joining->shape->columns[lead].join != REPORT_JOIN_SUM)
		return 0;
	sum = sum_of(joining, group, lead, false);
	return is_number(&sum) ? number_of(&sum) : 0;
}

static int add_groups(struct joining *joining)
{
	struct group *groups = calloc(joining->group_count + 1, sizeof(*groups));
	size_t count = 0;

	if (!groups)
		return -ENOMEM;
	array_foreach (&joining->sources, source) {
		if (!count || source->group != groups[count - 1].first->group)
			groups[count++].first = source;
		groups[count - 1].count++;
	}
	for (size_t i = 0; i < count; i++)
		groups[i].order = order_of(joining, &groups[i]);
	qsort(groups, count, sizeof(*groups), compare_groups);
	for (size_t i = 0; i < count; i++) {
		for (size_t column = 0; column < joining->shape->count; column++)
			add_value(joining, &groups[i], column);
	}
	free(groups);
	return 0;
}

static int join(struct joining *joining, const uint32_t *tables, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_table(joining, tables[i]);
	if (r < 0 || !joining->sources.count || (count == 1 && has_one_rank(joining)))
		return r;
	qsort(joining->sources.items, joining->sources.count, sizeof(*joining->sources.items),
		compare_sources);
	joining->into = result_open_apart(joining->result, tables[0]);
	r = add_groups(joining);
	result_close(joining->result);
	return r;
}

uint32_t report_join_tables(struct result *result, const struct report_input *input,
	const uint32_t *tables, size_t count)
{
	_cleanup_(joining_done) struct joining joining = {.result = result, .into = tables[0]};
	int r;

	if (!report_is_own(input) || result_status(result) < 0)
		return tables[0];
	joining.shape = result->tables.items[tables[0]].column->shape;
	joining.rank_column = find_column(joining.shape, is_rank);
	joining.lead_column = find_column(joining.shape, is_lead);
	if (joining.rank_column == SIZE_MAX)
		return tables[0];
	r = join(&joining, tables, count);
	if (r < 0)
		result->status = r;
	return joining.into;
}

uint32_t report_join_ranks(struct result *result, const struct report_input *input, uint32_t table)
{
	return report_join_tables(result, input, &table, 1);
}

void report_add_rank_spread(struct result *result)
{
	for (int i = 0; i < 3; i++)
		result_null(result);
}
