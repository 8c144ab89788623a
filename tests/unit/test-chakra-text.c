/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of JSON, and lists as Python prints them: the wanted texts are Python's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/json.h"
#include "chakra/json_piece.h"
#include "chakra/python_text.h"

static struct execution_text text_of(const char *bytes)
{
	return (struct execution_text){bytes, (uint32_t)strlen(bytes)};
}

static void assert_text(struct execution_text text, const char *wanted)
{
	assert_int_equal(text.length, strlen(wanted));
	assert_memory_equal(text.bytes, wanted, text.length);
}

static void test_lists_as_python_prints_them(void **state _unused_)
{
	static const struct {
		const char *json, *python;
	} cases[] = {
		{"", "[]"},
		{"[]", "[]"},
		{"[ [1,2] ,\n [ ]]", "[[1, 2], []]"},
		{"[true,false,null]", "[True, False, None]"},
		{"[\"Tensor(float)\",\"\"]", "['Tensor(float)', '']"},
		{"[\"it's\"]", "[\"it's\"]"},
		{"[\"it's \\\"so\\\"\"]", "['it\\'s \"so\"']"},
		{"[\"[{\\\"pg_name\\\":\\\"0\\\"}]\"]", "['[{\"pg_name\":\"0\"}]']"},
		{"[\"a\\\\b\\n\\t\\r\\b\"]", "['a\\\\b\\n\\t\\r\\x08']"},
		{"[\"\\u00e9\xc3\xa9\\u2028\\ud83d\\ude00\\ud800\"]",
			"['\xc3\xa9\xc3\xa9\\u2028\xf0\x9f\x98\x80\\ud800']"},
		{"[\"\\u0000\\u00a0\\u200b\"]", "['\\x00\\xa0\\u200b']"},
		{"[1.0,0.1,1e-05,1E5,1e16,1e15,123456789.5,-0.0,-0]",
			"[1.0, 0.1, 1e-05, 100000.0, 1e+16, 1000000000000000.0, 123456789.5, -0.0, "
			"0]"},
		{"[0.0001,0.00001234,0.30000000000000004,5e-324,1.7976931348623157e308]",
			"[0.0001, 1.234e-05, 0.30000000000000004, 5e-324, "
			"1.7976931348623157e+308]"},
		{"[0.1000000000000000055,1e400,-1e400,2.5e-1]", "[0.1, inf, -inf, 0.25]"},
		{"[5.896816288783659e+166,6.310887241768095e-30]",
			"[5.896816288783659e+166, 6.310887241768095e-30]"},
		{"[NaN,Infinity,-Infinity]", "[nan, inf, -inf]"},
		{"[18446744073709551616123,-7]", "[18446744073709551616123, -7]"},
		{"{\"a\":[1],\"b\":{}}", "{'a': [1], 'b': {}}"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_strbuf_ struct strbuf out = {0};

		python_text_add(&out, text_of(cases[i].json));
		assert_string_equal(strbuf_cstr(&out), cases[i].python);
	}
}

/* Whatever comes, protobuf's readers get the UTF-8 that they ask for. */
static void test_damaged_lists_stay_utf8(void **state _unused_)
{
	static const char *const damaged[] = {"[\"\xff\xfe\"]", "[\"abc", "[\"\\", "[\"\\u12",
		"[\"\\ud800\\u12\"", "\xc3", "[1e5x,\x80]", "]]{\"", "[\"a\\"};

	for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
		_cleanup_strbuf_ struct strbuf out = {0};

		python_text_add(&out, text_of(damaged[i]));
		for (size_t at = 0; at < out.length;) {
			size_t length = utf8_sequence_length(out.data + at, out.length - at);

			assert_int_not_equal(length, 0);
			at += length;
		}
	}
}

static void test_elements_of_lists(void **state _unused_)
{
	struct json_piece list = json_piece_list(text_of(" [ [1, \"],\"], {\"a\":[]} , 3 ] "));
	struct execution_text element;

	assert_true(json_piece_next(&list, &element));
	assert_text(element, "[1, \"],\"]");
	assert_true(json_piece_next(&list, &element));
	assert_text(element, "{\"a\":[]}");
	assert_true(json_piece_next(&list, &element));
	assert_text(element, "3");
	assert_false(json_piece_next(&list, &element));
	list = json_piece_list(text_of("\"[1]\""));
	assert_false(json_piece_next(&list, &element));
	list = json_piece_list((struct execution_text){0});
	assert_false(json_piece_next(&list, &element));
	list = json_piece_elements(text_of("{\"a\":1}, {\"b\":2}"));
	assert_true(json_piece_next(&list, &element) && json_piece_next(&list, &element));
	assert_text(element, "{\"b\":2}");
}

static void test_members_of_objects(void **state _unused_)
{
	struct execution_text object =
		text_of("{\"name\": \"pg_name\", \"value\" : {\"value\": 1}, \"x\": 1e9}");
	struct execution_text value;
	int64_t number;

	assert_true(json_piece_find(object, "name", &value));
	assert_text(value, "\"pg_name\"");
	assert_true(json_piece_find(object, "value", &value));
	assert_text(value, "{\"value\": 1}");
	assert_true(json_piece_find(object, "x", &value));
	assert_true(json_piece_i64(value, &number));
	assert_int_equal(number, 1000000000);
	assert_false(json_piece_find(object, "y", &value));
}

static void test_numbers_and_strings(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	int64_t number;

	assert_true(json_piece_i64(text_of("-9223372036854775808"), &number));
	assert_true(number == INT64_MIN);
	assert_true(json_piece_i64(text_of("9223372036854775807"), &number));
	assert_true(number == INT64_MAX);
	assert_false(json_piece_i64(text_of("9223372036854775808"), &number));
	assert_false(json_piece_i64(text_of("-"), &number));
	json_piece_add_text(&out, text_of("\"a\\\"b\\u0000\\u0041\\/\""));
	assert_string_equal(strbuf_cstr(&out), "a\"b\xef\xbf\xbd"
					       "A/");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_as_python_prints_them),
		cmocka_unit_test(test_damaged_lists_stay_utf8),
		cmocka_unit_test(test_elements_of_lists),
		cmocka_unit_test(test_members_of_objects),
		cmocka_unit_test(test_numbers_and_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
