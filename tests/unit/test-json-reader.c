/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_reader.h"

static struct json_reader reader_of(const char *text)
{
	return (struct json_reader){.at = text, .end = text + strlen(text), .is_last = true};
}

static struct json_text text_of(const char *text)
{
	return (struct json_text){
		.bytes = text, .length = strlen(text), .escaped = strchr(text, '\\') != NULL};
}

static void assert_text(const struct json_text *text, const char *expected)
{
	assert_int_equal(text->length, strlen(expected));
	assert_memory_equal(text->bytes, expected, text->length);
}

/* Members as "key=value;", nested ones by their bytes. */
static enum json_status walk(struct json_reader *reader, struct strbuf *out)
{
	struct json_text key, value;
	enum json_status status = json_reader_enter(reader, '{');

	while (status == JSON_OK) {
		status = json_reader_member(reader, &key);
		if (status == JSON_OK)
			status = json_reader_value(reader, &value);
		if (status != JSON_OK)
			break;
		strbuf_addf(out, "%.*s=%.*s;", (int)key.length, key.bytes, (int)value.length,
			value.bytes);
	}
	return status;
}

static void assert_walk(const char *text, bool lenient, const char *expected, uint64_t mended)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_reader reader = reader_of(text);

	reader.lenient = lenient;
	assert_int_equal(walk(&reader, &out), JSON_DONE);
	assert_string_equal(strbuf_cstr(&out), expected);
	assert_int_equal(reader.mended, mended);
	assert_ptr_equal(reader.at, reader.end);
}

static void assert_bad(const char *text)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_reader reader = reader_of(text);

	assert_int_equal(walk(&reader, &out), JSON_BAD);
}

static void test_members(void **state)
{
	assert_walk("{}", false, "", 0);
	assert_walk(" \n{ \"a\" : 1 ,\r\n\t\"bc\":\"d e\"}", false, "a=1;bc=\"d e\";", 0);
	assert_walk("{\"a\":[1,{\"x\":\"]}\\\"\"}],\"b\":{\"c\":[[]]},\"d\":null}", false,
		"a=[1,{\"x\":\"]}\\\"\"}];b={\"c\":[[]]};d=null;", 0);
	assert_walk("{\"a long key of thirty characters\"                     :\n                  "
		    "\"and a value that is longer than one vector\"}",
		false,
		"a long key of thirty characters=\"and a value that is longer than one vector\";",
		0);
	assert_walk("{\"n\":NaN,\"i\":-Infinity,\"e\":-1.5E+3}", false,
		"n=NaN;i=-Infinity;e=-1.5E+3;", 0);
}

static void test_bytes_that_json_forbids(void **state)
{
	assert_walk("{\"a\x01\":\"\n\t\xff\xc3\"}", false, "a\x01=\"\n\t\xff\xc3\";", 0);
}

static void test_commas(void **state)
{
	assert_walk("{\"a\":1 \"b\":2}", false, "a=1;b=2;", 1);
	assert_walk("{\"a\":1,,\"b\":2,}", false, "a=1;b=2;", 2);
	assert_walk("{,\"a\":1}", false, "a=1;", 1);
	assert_walk("{\"a\":{}\"b\":[]}", false, "a={};b=[];", 1);
	assert_walk("{\"a\":{\"x\":1},\"b\":[]}", false, "a={\"x\":1};b=[];", 0);
}

static void test_bad(void **state)
{
	assert_bad("[");
	assert_bad("{1:2}");
	assert_bad("{\"a\" 1}");
	assert_bad("{\"a\":}");
	assert_bad("{\"a\":1]");
	assert_bad("{\"a\":\"x\"y\"}");
	assert_bad("{\"a\":1,{\"b\":2}}");
}

static void test_quotes_inside_strings(void **state)
{
	assert_walk(
		"{\"a\":\"say \"hi\" twice\", \"b\":1}", true, "a=\"say \"hi\" twice\";b=1;", 2);
	assert_walk("{\"a\":\"\"hi\"\",\"b\":1}", true, "a=\"\"hi\"\";b=1;", 2);
	assert_walk("{\"a\":\"x\" \"b\":1}", true, "a=\"x\";b=1;", 1);
	assert_walk("{\"a\":[\"\",\"x\"],\"b\":\"\"}", true, "a=[\"\",\"x\"];b=\"\";", 0);
}

static void test_items(void **state)
{
	struct json_reader reader = reader_of("[1, [2, 3], {\"a\": 4}, \"x\"] ");
	struct json_text text;

	assert_int_equal(json_reader_enter(&reader, '['), JSON_OK);
	assert_int_equal(json_reader_item(&reader), JSON_OK);
	assert_int_equal(json_reader_value(&reader, &text), JSON_OK);
	assert_text(&text, "1");
	assert_int_equal(json_reader_item(&reader), JSON_OK);
	assert_int_equal(json_reader_peek(&reader), '[');
	assert_int_equal(json_reader_enter(&reader, '['), JSON_OK);
	assert_int_equal(json_reader_item(&reader), JSON_OK);
	assert_int_equal(json_reader_value(&reader, &text), JSON_OK);
	assert_int_equal(json_reader_item(&reader), JSON_OK);
	assert_int_equal(json_reader_value(&reader, &text), JSON_OK);
	assert_text(&text, "3");
	assert_int_equal(json_reader_item(&reader), JSON_DONE);
	assert_int_equal(json_reader_item(&reader), JSON_OK);
	assert_int_equal(json_reader_value(&reader, &text), JSON_OK);
	assert_text(&text, "{\"a\": 4}");
	assert_int_equal(json_reader_item(&reader), JSON_OK);
	assert_int_equal(json_reader_string(&reader, &text), JSON_OK);
	assert_text(&text, "x");
	assert_int_equal(json_reader_item(&reader), JSON_DONE);
	assert_int_equal(json_reader_peek(&reader), 0);
	assert_int_equal(reader.mended, 0);
}

/* Wherever the bytes end, that is said; and no byte behind the end is looked at. */
static void test_every_cut(void **state)
{
	static const char text[] =
		"{\"key\" : \"a \\\"long\\\" string of more than sixteen bytes\",\n"
		"                     \"b\":[1,{\"c\":[true]}],\"number\":-12.5e1}";

	for (size_t cut = 0; cut < sizeof(text) - 1; cut++) {
		_cleanup_strbuf_ struct strbuf out = {0};
		_cleanup_free_ char *copy = malloc(cut ? cut : 1);
		struct json_reader reader = {.at = copy, .end = copy + cut};

		assert_non_null(copy);
		memcpy(copy, text, cut);
		assert_int_equal(walk(&reader, &out), JSON_MORE);
	}
}

static void test_number_at_the_end(void **state)
{
	struct json_reader reader = reader_of("12");
	struct json_text text;

	reader.is_last = false;
	assert_int_equal(json_reader_value(&reader, &text), JSON_MORE);
	reader = reader_of("12");
	assert_int_equal(json_reader_value(&reader, &text), JSON_OK);
	assert_text(&text, "12");
}

static void test_depth(void **state)
{
	const size_t depth = 1000000;
	char *bytes = malloc(depth * 2);
	struct json_reader reader = {.at = bytes, .end = bytes + depth * 2, .is_last = true};
	struct json_text text;

	assert_non_null(bytes);
	memset(bytes, '[', depth);
	memset(bytes + depth, ']', depth);
	assert_int_equal(json_reader_value(&reader, &text), JSON_OK);
	assert_int_equal(text.length, depth * 2);
	free(bytes);
}

static void assert_unescaped(const char *escaped, const char *expected)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_text text = text_of(escaped);

	json_text_unescape(&out, &text);
	assert_string_equal(strbuf_cstr(&out), expected);
}

static void test_unescape(void **state)
{
	assert_unescaped("plain", "plain");
	assert_unescaped("a\\\"b\\\\c\\/d\\n\\t\\b\\f\\r", "a\"b\\c/d\n\t\b\f\r");
	assert_unescaped("\\u0041\\u00e9\\u20aC", "A\xc3\xa9\xe2\x82\xac");
	assert_unescaped("\\ud83d\\ude00!", "\xf0\x9f\x98\x80!");
	assert_unescaped("\\ud83d x", "\xef\xbf\xbd x");
	assert_unescaped("\\ud83d\\u0041", "\xef\xbf\xbd"
					   "A");
	assert_unescaped("\\ude00", "\xef\xbf\xbd");
	assert_unescaped("C:\\x \\u12", "C:\\x \\u12");
	assert_unescaped("end\\", "end\\");
}

static void assert_fixed(const char *number, int64_t expected)
{
	struct json_text text = text_of(number);
	int64_t value = -77;

	assert_int_equal(json_text_fixed(&text, 3, &value), 0);
	assert_int_equal(value, expected);
}

static void assert_no_fixed(const char *number, int error)
{
	struct json_text text = text_of(number);
	int64_t value = -77;

	assert_int_equal(json_text_fixed(&text, 3, &value), error);
	assert_int_equal(value, -77);
}

static void test_fixed_point(void **state)
{
	assert_fixed("0", 0);
	assert_fixed("-0.0", 0);
	assert_fixed("123", 123000);
	assert_fixed("123.4", 123400);
	assert_fixed("1712195495519689.047", 1712195495519689047);
	assert_fixed("63.8129999999999", 63813);
	assert_fixed("0.0004", 0);
	assert_fixed("0.0005", 1);
	assert_fixed("-0.0015", -2);
	assert_fixed("1.5e3", 1500000);
	assert_fixed("1.7121954955196890E+15", 1712195495519689000);
	assert_fixed("125E-3", 125);
	assert_fixed("1e-400", 0);
	assert_fixed("0e999999999999", 0);
	assert_fixed("0.00000000000000000000000000000000000000000000001", 0);
	assert_fixed("9223372036854775.807", INT64_MAX);
	assert_fixed("-9223372036854775.808", INT64_MIN);
	assert_fixed("1.000000000000000000000000000000000000000000001", 1000);
	assert_no_fixed("9223372036854775.808", -ERANGE);
	assert_no_fixed("1e30", -ERANGE);
	assert_no_fixed("99999999999999999999999999", -ERANGE);
	assert_no_fixed("", -EINVAL);
	assert_no_fixed("-", -EINVAL);
	assert_no_fixed(".", -EINVAL);
	assert_no_fixed("NaN", -EINVAL);
	assert_no_fixed("1.2.3", -EINVAL);
	assert_no_fixed("1e", -EINVAL);
	assert_no_fixed("12x", -EINVAL);
	assert_no_fixed("1e5x", -EINVAL);
}

static void test_integers(void **state)
{
	struct json_text text = text_of("18446744073709551615");
	uint64_t value = 0;
	int64_t number = 0;

	assert_int_equal(json_text_u64(&text, &value), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(json_text_i64(&text, &number), -ERANGE);
	text = text_of("18446744073709551616");
	assert_int_equal(json_text_u64(&text, &value), -ERANGE);
	text = text_of("-1");
	assert_int_equal(json_text_u64(&text, &value), -ERANGE);
	assert_int_equal(json_text_i64(&text, &number), 0);
	assert_int_equal(number, -1);
	text = text_of("1102.0");
	assert_int_equal(json_text_u64(&text, &value), 0);
	assert_int_equal(value, 1102);
	text = text_of("true");
	assert_int_equal(json_text_u64(&text, &value), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_bytes_that_json_forbids),
		cmocka_unit_test(test_commas),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_quotes_inside_strings),
		cmocka_unit_test(test_items),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_number_at_the_end),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_unescape),
		cmocka_unit_test(test_fixed_point),
		cmocka_unit_test(test_integers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
