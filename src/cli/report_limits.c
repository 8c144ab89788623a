/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_limits.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "importers/json_parts.h"

#define NAME_MAX_LENGTH 64

/* A condition in its parts: "a.b[c=d].e >= 5ms". */
struct limit {
	const char *text;
	const char *path;
	size_t path_length;
	char order; /* '<' or '>' */
	bool or_equal;
	double value;
};

/* What a figure's name says that it counts in, and what may stand behind a limit for it. */
static const struct {
	const char *suffix, *ending;
	double factor;
} units[] = {
	{"ns", "_ns", 1},
	{"us", "_ns", 1e3},
	{"ms", "_ns", 1e6},
	{"s", "_ns", 1e9},
	{"KiB", "_bytes", 1024},
	{"MiB", "_bytes", 1024.0 * 1024},
	{"GiB", "_bytes", 1024.0 * 1024 * 1024},
	{"%", "_share", 0.01},
};

/* ---- the condition ---- */

/* Outside of selectors, whose names may have any characters. */
static const char *find_order(const char *text)
{
	int depth = 0;

	for (; *text; text++) {
		depth += (*text == '[') - (*text == ']' && depth > 0);
		if (!depth && (*text == '<' || *text == '>'))
			return text;
	}
	return NULL;
}

static bool path_ends_in(const struct limit *limit, const char *ending)
{
	size_t length = strlen(ending);

	return limit->path_length > length &&
	       memcmp(limit->path + limit->path_length - length, ending, length) == 0;
}

static int take_unit(struct limit *limit, const char *unit, struct errmsg *err)
{
	if (!*unit)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(unit, units[i].suffix) != 0)
			continue;
		if (!path_ends_in(limit, units[i].ending))
			return errmsg_set(err, -EINVAL,
				"--fail-if %s: %s is for figures whose names end in %s",
				limit->text, unit, units[i].ending);
		limit->value *= units[i].factor;
		return 0;
	}
	return errmsg_set(err, -EINVAL,
		"--fail-if %s: %s is no unit; give ns, us, ms, s, KiB, MiB, GiB or %%, or none",
		limit->text, unit);
}

static int parse(const char *text, struct limit *ret_limit, struct errmsg *err)
{
	struct limit limit = {.text = text, .path = text};
	const char *order = find_order(text), *number;
	char *end;

	if (!order || order == text)
		return errmsg_set(err, -EINVAL,
			"--fail-if %s is no condition: give a figure of the report's JSON, < or >, "
			"and a number, such as temporal.idle_share>0.3",
			text);
	limit.path_length = (size_t)(order - text);
	while (limit.path_length && text[limit.path_length - 1] == ' ')
		limit.path_length--;
	limit.order = *order;
	limit.or_equal = order[1] == '=';
	number = order + 1 + limit.or_equal;
	limit.value = strtod(number, &end);
	if (end == number || !isfinite(limit.value))
		return errmsg_set(
			err, -EINVAL, "--fail-if %s: there is no number behind %c", text, *order);
	*ret_limit = limit;
	return take_unit(ret_limit, end + strspn(end, " "), err);
}

int report_limits_check(const char *const *conditions, size_t count, struct errmsg *err)
{
	struct limit limit;
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = parse(conditions[i], &limit, err);
	return r;
}

/* ---- the document ---- */

/* What is left of a path. */
struct path {
	const char *at, *end;
};

struct search {
	const struct limit *limit;
	size_t compared, beyond;
	double worst;
	struct json_text row, worst_row; /* the innermost row on the way; NULL bytes: none */
};

static bool text_is(const struct json_text *value, const char *word, size_t length)
{
	const struct json_text inside = json_text_inside(value);
	const struct json_text *compared = inside.bytes ? &inside : value;
	_cleanup_strbuf_ struct strbuf plain = {0};

	if (!compared->bytes)
		return false;
	if (!compared->escaped)
		return compared->length == length && memcmp(compared->bytes, word, length) == 0;
	json_text_unescape(&plain, compared);
	return strbuf_status(&plain) == 0 && plain.length == length &&
	       memcmp(strbuf_cstr(&plain), word, length) == 0;
}

static bool is_beyond(const struct limit *limit, double value)
{
	if (value == limit->value)
		return limit->or_equal;
	return limit->order == '<' ? value < limit->value : value > limit->value;
}

static void compare(struct search *search, const struct json_text *value)
{
	bool falls = search->limit->order == '<';
	char text[NAME_MAX_LENGTH];
	double number;
	char *end;

	if (!value->length || value->length >= sizeof(text))
		return;
	memcpy(text, value->bytes, value->length);
	text[value->length] = '\0';
	number = strtod(text, &end);
	if (*end) /* null, and what is no number */
		return;
	search->compared++;
	if (!is_beyond(search->limit, number))
		return;
	if (!search->beyond++ || (falls ? number < search->worst : number > search->worst)) {
		search->worst = number;
		search->worst_row = search->row;
	}
}

/* "[name=gemm]" at the begin of the path: is it of this row? Moves behind it. */
static bool take_selector(struct path *path, const struct json_text *row)
{
	const char *at = path->at, *equals;
	char name[NAME_MAX_LENGTH];
	struct json_text member;
	int depth = 0;

	if (at == path->end || *at != '[')
		return true;
	do
		depth += (*at == '[') - (*at == ']');
	while (depth && ++at < path->end);
	equals = memchr(path->at, '=', (size_t)(at - path->at));
	if (!equals || (size_t)(equals - path->at) > sizeof(name))
		return false;
	memcpy(name, path->at + 1, (size_t)(equals - path->at - 1));
	name[equals - path->at - 1] = '\0';
	member = json_part_member(row, name);
	path->at = at + (at < path->end);
	return text_is(&member, equals + 1, (size_t)(at - equals - 1));
}

/* Of any depth that a path can have: each call takes a part of it, or an array's items. */
static void look(struct search *search, const struct json_text *value, struct path path, int depth)
{
	const struct json_text row_before = search->row;
	char name[NAME_MAX_LENGTH];
	struct json_text item;
	size_t length;

	if (!value->bytes || !value->length || depth > 32)
		return;
	if (*value->bytes == '[') {
		struct json_reader items = json_part_begin(value);

		while (json_part_next(&items, &item)) {
			struct path rest = path;

			search->row = item;
			if (take_selector(&rest, &item))
				look(search, &item, rest, depth + 1);
		}
		search->row = row_before;
		return;
	}
	if (path.at < path.end && *path.at == '.')
		path.at++;
	if (path.at == path.end) {
		compare(search, value);
		return;
	}
	for (length = 0; path.at + length < path.end && !strchr(".[", path.at[length]);)
		length++;
	if (!length || length >= sizeof(name))
		return;
	memcpy(name, path.at, length);
	name[length] = '\0';
	item = json_part_member(value, name);
	path.at += length;
	look(search, &item, path, depth + 1);
}

/* ---- sentences ---- */

/* " of rank 0, gemm": what a row is called. */
static void add_row(struct strbuf *out, const struct json_text *row)
{
	static const char *const members[] = {"rank", "device", "number", "name", NULL};
	struct json_text values[4];
	const char *before = " of ";

	if (!row->bytes)
		return;
	json_part_members(row, members, values);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		const struct json_text inside = json_text_inside(&values[i]);

		if (!values[i].bytes || json_text_equals(&values[i], "null"))
			continue;
		strbuf_add(out, before);
		if (!json_text_is_string(&values[i]))
			strbuf_addf(out, "%s ", members[i]);
		strbuf_addf(out, "%.*s", (int)MIN(inside.length, (size_t)200), inside.bytes);
		before = ", ";
	}
}

static void say(const struct search *search)
{
	const struct limit *limit = search->limit;
	_cleanup_strbuf_ struct strbuf row = {0};
	struct errmsg err;

	add_row(&row, &search->worst_row);
	if (search->compared == 0)
		errmsg_set(&err, 0,
			"--fail-if %.300s: the report has no number of this name: sonde report "
			"--json shows what it has, --schema what it may have",
			limit->text);
	else if (search->compared > 1)
		errmsg_set(&err, 0,
			"--fail-if %.300s: %zu of %zu rows are beyond it, most %.6g%.300s",
			limit->text, search->beyond, search->compared, search->worst,
			strbuf_cstr(&row));
	else
		errmsg_set(&err, 0, "--fail-if %.300s: it is %.6g%.300s", limit->text,
			search->worst, strbuf_cstr(&row));
	fail(&err);
}

int report_limits(const char *json, size_t length, const char *const *conditions, size_t count)
{
	const struct json_text document = {.bytes = json, .length = length};
	int status = EXIT_OK;
	struct errmsg err;

	for (size_t i = 0; i < count; i++) {
		struct limit limit = {0};
		struct search search = {.limit = &limit};

		if (parse(conditions[i], &limit, &err) < 0)
			return fail_usage(&err);
		look(&search, &document, (struct path){limit.path, limit.path + limit.path_length},
			0);
		if (search.compared && !search.beyond)
			continue;
		say(&search);
		status = EXIT_ERROR;
	}
	return status;
}
