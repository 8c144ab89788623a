/* SPDX-License-Identifier: Apache-2.0 */
/* What goes to a ClickHouse server and what comes from it: SQL, literals and rows. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/clickhouse/internal.h"

/* ---- SQL ---- */

static void check_sql(const char *sql, const struct store_value *values, size_t count, bool is_old,
	const char *wanted, const char *wanted_url)
{
	_cleanup_strbuf_ struct strbuf out = {0}, url = {0};

	assert_int_equal(clickhouse_translate(sql, values, count, is_old, &out, &url), 0);
	assert_string_equal(strbuf_cstr(&out), wanted);
	assert_string_equal(strbuf_cstr(&url), wanted_url);
}

static void test_parameters(void **state)
{
	const struct store_value values[] = {
		store_integer(-5), store_text("a'b\\c\n&\t%"), store_number(-0.1), store_null()};

	check_sql("a = ?1 AND b = ?2 AND c = ?3 AND d = ?4", values, 4, false,
		"a = {p1:Int64} AND b = {p2:String} AND c = {p3:Float64} AND d = NULL",
		"&param_p1=-5&param_p2=a%5C%27b%5C%5Cc%5Cn%26%5Ct%25&param_p3=-0.10000000000000001");
	check_sql("a = ?1 AND b = ?2 AND c = ?3 AND d = ?4", values, 4, true,
		"a = (-5) AND b = 'a\\'b\\\\c\\n&\\t%' AND c = (-0.10000000000000001) AND d = NULL",
		"");
	/* One that is not there, and no number. */
	check_sql("a = ?9 AND b = ?", values, 4, true, "a = NULL AND b = ?", "");
	/* Used twice, it goes with the request once. */
	check_sql("?1 + ?1", values, 1, false, "{p1:Int64} + {p1:Int64}", "&param_p1=-5");
}

static void test_a_long_text_goes_with_the_sql(void **state)
{
	_cleanup_strbuf_ struct strbuf out = {0}, url = {0};
	char text[4096];
	struct store_value value;

	memset(text, '\'', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	value = store_text(text);
	assert_int_equal(clickhouse_translate("?1", &value, 1, false, &out, &url), 0);
	assert_int_equal(url.length, 0);
	assert_int_equal(out.length, 2 + 2 * (sizeof(text) - 1));
}

static void test_what_is_of_one_backend(void **state)
{
	const struct store_value value = store_text("x");

	check_sql("WHERE lower(a) LIKE lower(?1) ESCAPE '\\' ORDER BY +a, b + 1", &value, 1, true,
		"WHERE lower(a) LIKE lower('x') ORDER BY a, b + 1", "");
	check_sql("SELECT '?1 +a' || '''?1'", &value, 1, true, "SELECT '?1 +a' || '''?1'", "");
	check_sql("SELECT id FROM runs WHERE number = ?1", &value, 1, true,
		"SELECT id FROM runs_rows FINAL WHERE is_deleted = 0 AND number = 'x'", "");
}

/* ---- rows ---- */

struct taken {
	struct strbuf text;
	int result;
};

static int take(void *context, const struct store_value *values, size_t count)
{
	struct taken *taken = context;

	for (size_t i = 0; i < count; i++) {
		if (values[i].type == STORE_INTEGER)
			strbuf_addf(&taken->text, "%lld;", (long long)values[i].integer);
		else if (values[i].type == STORE_NUMBER)
			strbuf_addf(&taken->text, "%g;", values[i].number);
		else if (values[i].type == STORE_TEXT)
			strbuf_addf(&taken->text, "<%s>;", values[i].text);
		else
			strbuf_add(&taken->text, "null;");
	}
	strbuf_add_char(&taken->text, '\n');
	return taken->result;
}

/* In parts of every length: where bytes are cut changes nothing. */
static void check_rows(const char *bytes, int wanted, const char *rows)
{
	size_t length = strlen(bytes);

	for (size_t part = 1; part <= length + 1; part++) {
		struct taken taken = {{0}};
		_cleanup_clickhouse_answer_ struct clickhouse_answer answer = {
			.take = take, .context = &taken};
		int r = 0;

		for (size_t at = 0; r == 0 && at < length; at += part)
			r = clickhouse_answer_read(&answer, bytes + at, MIN(part, length - at));
		if (r == 0)
			r = clickhouse_answer_end(&answer);
		assert_int_equal(r, wanted);
		if (rows)
			assert_string_equal(strbuf_cstr(&taken.text), rows);
		strbuf_done(&taken.text);
	}
}

#define HEAD "a\tb\tc\nInt64\tNullable(Float64)\tNullable(String)\n"

static void test_rows_and_their_types(void **state)
{
	check_rows(HEAD, 0, "");
	check_rows(HEAD "1\t0.5\tx\n-9223372036854775808\t\\N\t\\N\n", 0,
		"1;0.5;<x>;\n-9223372036854775808;null;null;\n");
	check_rows(HEAD "1\tnan\t\n2\t-inf\ta\\tb\\nc\\\\d\\'e\n", 0,
		"1;null;<>;\n2;null;<a\tb\nc\\d'e>;\n");
	/* A text that says \N is none that is missing. */
	check_rows(HEAD "1\t1\t\\\\N\n", 0, "1;1;<\\N>;\n");
	check_rows("count()\nUInt64\n18446744073709551615\n", -EPROTO, NULL);
	check_rows("NULL\nNullable(Nothing)\n\\N\n", 0, "null;\n");
}

static void test_answers_that_are_none(void **state)
{
	check_rows("", -EPROTO, NULL);
	check_rows("<html>", -EPROTO, NULL);
	check_rows("a\tb\n", -EPROTO, NULL);
	check_rows("a\tb\nInt64\n", -EPROTO, NULL);
	check_rows(HEAD "1\t0.5\n", -EPROTO, NULL);
	check_rows(HEAD "1\t0.5\tx\ty\n", -EPROTO, NULL);
	check_rows(HEAD "one\t0.5\tx\n", -EPROTO, NULL);
	check_rows(HEAD "1\t0,5\tx\n", -EPROTO, NULL);
	check_rows(HEAD "1\t0.5\tx", -EPROTO, NULL); /* cut */
	check_rows(HEAD "1\t0.5\tx\nCode: 241, e.displayText() = DB::Exception", -EPROTO, NULL);
}

static void test_bounds(void **state)
{
	_cleanup_clickhouse_answer_ struct clickhouse_answer answer = {0}, zero = {0}, wide = {0};
	_cleanup_strbuf_ struct strbuf head = {0};
	char bytes[65536];
	int r = 0;

	memset(bytes, 'x', sizeof(bytes));
	for (int i = 0; r == 0 && i < 1024; i++)
		r = clickhouse_answer_read(&answer, bytes, sizeof(bytes));
	assert_int_equal(r, -EPROTO);
	assert_true(answer.line.capacity <= 32 << 20);
	assert_int_equal(clickhouse_answer_read(&zero, "a\0b\n", 4), -EPROTO);
	for (int i = 0; i < CLICKHOUSE_COLUMNS_MOST; i++)
		strbuf_add(&head, "a\t");
	strbuf_add(&head, "a\n");
	assert_int_equal(clickhouse_answer_read(&wide, head.data, head.length), -EPROTO);
}

static void test_a_taker_may_end_it(void **state)
{
	struct taken taken = {.result = -ENOMEM};
	_cleanup_clickhouse_answer_ struct clickhouse_answer answer = {
		.take = take, .context = &taken};
	const char *bytes = HEAD "1\t1\tx\n2\t1\tx\n";

	assert_int_equal(clickhouse_answer_read(&answer, bytes, strlen(bytes)), -ECANCELED);
	assert_int_equal(answer.taken, -ENOMEM);
	assert_int_equal(answer.rows, 1);
	strbuf_done(&taken.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_a_long_text_goes_with_the_sql),
		cmocka_unit_test(test_what_is_of_one_backend),
		cmocka_unit_test(test_rows_and_their_types),
		cmocka_unit_test(test_answers_that_are_none),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_a_taker_may_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
