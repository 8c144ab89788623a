/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/token_use.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

#define TOKEN_DOMAIN  "sonde.token"
#define BEGIN_PHASE   "prefill"
#define REQUEST_FIELD "request"
#define PHASE_FIELD   "phase"

/* A mark, with the row that it belongs to. */
struct token {
	uint64_t time_ns;
	uint32_t row;
	bool is_begin;
};

struct times {
	ARRAY_OF(uint64_t) items;
};

struct work {
	const struct model *model;
	struct token_use *use;
	struct intern keys; /* process and request → row */
	ARRAY_OF(struct token) tokens;
	struct times gaps, all_gaps;
};

static const struct model_range_field *find_field(
	const struct model *model, const struct model_range *mark, const char *name)
{
	for (uint32_t i = 0; i < mark->field_count; i++) {
		const struct model_range_field *field =
			&model->range_fields.items[mark->first_field + i];

		if (strcmp(field->name, name) == 0)
			return field;
	}
	return NULL;
}

/* A name, or a number as text. */
static void request_text(const struct model_range_field *field, char *out, size_t size)
{
	double real;

	out[0] = '\0';
	if (!field)
		return;
	switch (field->type) {
	case WIRE_RANGE_TEXT:
		snprintf(out, size, "%s", field->text);
		break;
	case WIRE_RANGE_DOUBLE:
		memcpy(&real, &field->value, sizeof(real));
		snprintf(out, size, "%g", real);
		break;
	case WIRE_RANGE_I64:
		snprintf(out, size, "%" PRId64, (int64_t)field->value);
		break;
	default:
		snprintf(out, size, "%" PRIu64, field->value);
	}
}

static int find_row(struct work *work, const struct model_range *mark, uint32_t *ret_row)
{
	struct {
		uint32_t process;
		char request[WIRE_RANGE_TEXT_BYTES + 1];
	} key = {.process = mark->process};
	size_t length;
	char *text;
	int r;

	request_text(
		find_field(work->model, mark, REQUEST_FIELD), key.request, sizeof(key.request));
	length = strlen(key.request);
	r = intern_add(&work->keys, &key, offsetof(__typeof__(key), request) + length, ret_row);
	if (r <= 0)
		return r;
	text = strdup(key.request);
	if (!text)
		return -ENOMEM;
	r = array_append(&work->use->texts, text);
	if (r < 0) {
		free(text);
		return r;
	}
	return array_append(&work->use->rows,
		(struct token_row){
			.request = text, .process = mark->process, .begin_ns = mark->start_ns});
}

static int add_mark(struct work *work, const struct model_range *mark)
{
	const struct model_range_field *phase = find_field(work->model, mark, PHASE_FIELD);
	struct token token = {
		.time_ns = mark->start_ns,
		.is_begin = phase && phase->type == WIRE_RANGE_TEXT &&
			    strcmp(phase->text, BEGIN_PHASE) == 0,
	};
	int r = find_row(work, mark, &token.row);

	return r < 0 ? r : array_append(&work->tokens, token);
}

/* Marks lie in the order of time: those of each row stay so. */
static int compare_tokens(const void *left, const void *right)
{
	const struct token *a = left, *b = right;

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static int compare_times(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* By nearest rank. */
static uint64_t percentile(const struct times *sorted, unsigned percent)
{
	return sorted->items.items[(sorted->items.count * percent + 99) / 100 - 1];
}

static void fill_gaps(struct times *times, struct token_gaps *gaps)
{
	uint64_t total_ns = 0;

	if (!times->items.count)
		return;
	qsort(times->items.items, times->items.count, sizeof(*times->items.items), compare_times);
	array_foreach (&times->items, time_ns)
		total_ns += *time_ns;
	gaps->count = times->items.count;
	gaps->mean_ns = total_ns / gaps->count;
	gaps->p50_ns = percentile(times, 50);
	gaps->p95_ns = percentile(times, 95);
	gaps->maximum_ns = times->items.items[gaps->count - 1];
}

/* The tokens of one row, of which there is one at least. */
static int fill_row(struct work *work, const struct token *tokens, size_t count)
{
	struct token_row *row = &work->use->rows.items[tokens->row];
	const struct token *begin = NULL, *last = NULL;
	int r = 0;

	array_clear(&work->gaps.items);
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (tokens[i].is_begin) {
			begin = begin ? begin : &tokens[i];
			continue;
		}
		if (!last && begin) {
			row->has_first = true;
			row->first_ns = tokens[i].time_ns - begin->time_ns;
		}
		/* What names no request is of many at once: its gaps mean nothing. */
		if (last && *row->request) {
			uint64_t gap_ns = tokens[i].time_ns - last->time_ns;

			r = array_append(&work->gaps.items, gap_ns);
			r = r ?: array_append(&work->all_gaps.items, gap_ns);
		}
		last = &tokens[i];
		row->tokens++;
	}
	work->use->tokens += row->tokens;
	fill_gaps(&work->gaps, &row->gaps);
	return r;
}

static int fill(struct work *work)
{
	size_t count;
	int r = 0;

	for (size_t i = 0; r == 0 && i < work->model->ranges.count; i++) {
		const struct model_range *mark = &work->model->ranges.items[i];

		if (mark->is_mark && strcmp(mark->domain, TOKEN_DOMAIN) == 0)
			r = add_mark(work, mark);
	}
	if (r == 0 && work->tokens.count)
		qsort(work->tokens.items, work->tokens.count, sizeof(*work->tokens.items),
			compare_tokens);
	for (size_t i = 0; r == 0 && i < work->tokens.count; i += count) {
		for (count = 1; i + count < work->tokens.count &&
				work->tokens.items[i + count].row == work->tokens.items[i].row;)
			count++;
		r = fill_row(work, &work->tokens.items[i], count);
	}
	fill_gaps(&work->all_gaps, &work->use->gaps);
	return r;
}

int token_use_init(struct token_use *use, const struct model *model)
{
	struct work work = {.model = model, .use = use};
	int r;

	*use = (struct token_use){0};
	r = fill(&work);
	intern_done(&work.keys);
	array_done(&work.tokens);
	array_done(&work.gaps.items);
	array_done(&work.all_gaps.items);
	if (r < 0)
		token_use_done(use);
	return r;
}

void token_use_done(struct token_use *use)
{
	array_foreach (&use->texts, text)
		free(*text);
	array_done(&use->texts);
	array_done(&use->rows);
}
