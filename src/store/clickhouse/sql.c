/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "store/clickhouse/internal.h"

/* A longer text goes with the SQL, which is the body: servers bound the length of a URL. */
#define LONGEST_BOUND_TEXT 1024

/* ---- texts ---- */

/* As ClickHouse's literals and its tab-separated values have them. */
static void add_escaped(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '\\':
			strbuf_add(out, "\\\\");
			break;
		case '\'':
			strbuf_add(out, "\\'");
			break;
		case '\n':
			strbuf_add(out, "\\n");
			break;
		case '\t':
			strbuf_add(out, "\\t");
			break;
		case '\r':
			strbuf_add(out, "\\r");
			break;
		default:
			strbuf_add_char(out, *text);
		}
	}
}

void clickhouse_add_quoted(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		if (isalnum((unsigned char)*text) || strchr("-_.", *text))
			strbuf_add_char(out, *text);
		else
			strbuf_addf(out, "%%%02X", (unsigned char)*text);
	}
}

void clickhouse_add_literal(struct strbuf *out, const struct store_value *value)
{
	switch (value->type) {
	case STORE_INTEGER:
		strbuf_addf(out, value->integer < 0 ? "(%lld)" : "%lld", (long long)value->integer);
		break;
	case STORE_NUMBER:
		strbuf_addf(out, value->number < 0 ? "(%.17g)" : "%.17g", value->number);
		break;
	case STORE_TEXT:
		strbuf_add_char(out, '\'');
		add_escaped(out, value->text);
		strbuf_add_char(out, '\'');
		break;
	default:
		strbuf_add(out, "NULL");
	}
}

/* ---- parameters ---- */

static bool is_bound(const struct store_value *value, bool is_old)
{
	return !is_old && value->type != STORE_NULL &&
	       !(value->type == STORE_TEXT &&
		       strnlen(value->text, LONGEST_BOUND_TEXT + 1) > LONGEST_BOUND_TEXT);
}

static void add_bound(struct strbuf *out, size_t number, const struct store_value *value)
{
	static const char *const types[] = {
		[STORE_INTEGER] = "Int64", [STORE_NUMBER] = "Float64", [STORE_TEXT] = "String"};

	strbuf_addf(out, "{p%zu:%s}", number, types[value->type]);
}

static void add_to_url(struct strbuf *url, size_t number, const struct store_value *value)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (value->type == STORE_INTEGER)
		strbuf_addf(&text, "%lld", (long long)value->integer);
	else if (value->type == STORE_NUMBER)
		strbuf_addf(&text, "%.17g", value->number);
	else
		add_escaped(&text, value->text);
	strbuf_inherit_status(url, &text);
	strbuf_addf(url, "&param_p%zu=", number);
	clickhouse_add_quoted(url, strbuf_cstr(&text));
}

/* ---- statements ---- */

/* What only SQLite needs: an escape character, which is ClickHouse's anyway, and a plus that keeps
 * an index from being used. */
static size_t length_of_hint(const char *sql)
{
	static const char escape[] = " ESCAPE '\\'";

	if (strncmp(sql, escape, sizeof(escape) - 1) == 0)
		return sizeof(escape) - 1;
	return *sql == '+' && isalpha((unsigned char)sql[1]) ? 1 : 0;
}

/*
 * Runs by their numbers: the view's condition is put beside the query's, since old servers do not
 * look for the rows by the key of the table that is behind a view. No "OR" may stand outside
 * parentheses (store.h).
 */
static size_t add_condition_of_view(struct strbuf *out, const char *sql)
{
	static const char by_number[] = "FROM runs WHERE number ";

	if (strncmp(sql, by_number, sizeof(by_number) - 1) != 0)
		return 0;
	strbuf_add(out, "FROM runs_rows FINAL WHERE is_deleted = 0 AND number ");
	return sizeof(by_number) - 1;
}

/* Through the quote that ends it; two of them stand for one. */
static const char *copy_literal(struct strbuf *out, const char *sql)
{
	const char *end = strchr(sql + 1, '\'');

	end = end ? end + 1 : sql + strlen(sql);
	strbuf_add_bytes(out, sql, (size_t)(end - sql));
	return end;
}

int clickhouse_translate(const char *sql, const struct store_value *parameters, size_t count,
	bool is_old, struct strbuf *out, struct strbuf *url)
{
	while (*sql) {
		size_t passed = length_of_hint(sql);
		unsigned long number = 0;
		char *end = NULL;

		if (!passed)
			passed = add_condition_of_view(out, sql);
		if (passed) {
			sql += passed;
		} else if (*sql == '\'') {
			sql = copy_literal(out, sql);
		} else if (*sql != '?' || (number = strtoul(sql + 1, &end, 10), end == sql + 1)) {
			strbuf_add_char(out, *sql++);
		} else {
			static const struct store_value none = {0};
			const struct store_value *value =
				number && number <= count ? &parameters[number - 1] : &none;

			if (is_bound(value, is_old))
				add_bound(out, number, value);
			else
				clickhouse_add_literal(out, value);
			sql = end;
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (is_bound(&parameters[i], is_old))
			add_to_url(url, i + 1, &parameters[i]);
	}
	return strbuf_status(out) < 0 ? strbuf_status(out) : strbuf_status(url);
}
