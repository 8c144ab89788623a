/* SPDX-License-Identifier: Apache-2.0 */
/* Which operation a request means, and its parameters, by the table of schema/api.json. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "query/options.h"
#include "server/api.h"
#include "server/question.h"

#define ID "0123456789abcdef"

static union {
	struct api_get_report_parameters report;
	struct api_get_call_tree_parameters call_tree;
	struct api_start_job_parameters start_job;
	struct api_edit_run_parameters edit_run;
	struct api_compare_runs_parameters compare_runs;
	struct api_list_runs_parameters list_runs;
	char bytes[API_PARAMETERS_BYTES];
} parameters;
static struct errmsg err;

static int find(const char *method, const char *path, enum api_operation *ret_operation)
{
	const struct api_request request = {.method = method, .path = path};
	struct api_path_values values;

	return api_find(&request, ret_operation, &values, &err);
}

/* Of the operation at the path, with one parameter. */
static int parse(const char *path, const char *name, const char *value)
{
	const struct api_argument argument = {name, value};
	const struct api_request request = {.method = "GET",
		.path = path,
		.arguments = &argument,
		.argument_count = name != NULL};
	/* The parameters point into it. */
	static struct api_path_values values;
	enum api_operation operation;
	int r = api_find(&request, &operation, &values, &err);

	return r < 0 ? r : api_parse(operation, &request, &values, &parameters, &err);
}

#define REPORT "/api/captures/" ID "/report"

static void test_paths(void **state)
{
	static const char *const unknown[] = {"/", "", "/api", "/api/", "/api/status/",
		"/api//status", (REPORT "/x"), "/api/captures//report", "/API/status",
		"/api/captures/" ID ID ID ID "/report", "/wsx"};
	enum api_operation operation;

	for (int i = 0; i < API_OPERATION_MAX; i++)
		assert_non_null(api_routes[i].path);
	assert_int_equal(find("GET", "/api/status", &operation), 0);
	assert_int_equal(operation, API_GET_STATUS);
	assert_int_equal(find("HEAD", "/api/status", &operation), 0);
	assert_int_equal(find("POST", "/api/status", &operation), -EOPNOTSUPP);
	assert_int_equal(find("GET", REPORT, &operation), 0);
	assert_int_equal(operation, API_GET_REPORT);
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		assert_int_equal(find("GET", unknown[i], &operation), -ENOENT);
}

static void test_parameters(void **state)
{
	assert_int_equal(parse(REPORT, NULL, NULL), 0);
	assert_string_equal(parameters.report.capture, ID);
	assert_int_equal(parameters.report.wait, 60);
	assert_int_equal(parameters.report.format, API_FORMAT_JSON);
	assert_false(parameters.report.has_limit);
	assert_int_equal(parse(REPORT, "limit", "17"), 0);
	assert_true(parameters.report.has_limit && parameters.report.limit == 17);
	assert_int_equal(parse(REPORT, "format", "csv"), 0);
	assert_int_equal(parameters.report.format, API_FORMAT_CSV);
	assert_int_equal(parse(REPORT, "hta-compatible", "true"), 0);
	assert_true(parameters.report.hta_compatible);
	assert_int_equal(parse("/api/captures/" ID "/call-tree", "min-share", "1.5"), 0);
	assert_true(parameters.call_tree.min_share == 1.5);
}

static void test_what_is_refused(void **state)
{
	static const char *const wrong[][2] = {{"limit", "0"}, {"limit", "-1"}, {"limit", "1e3"},
		{"limit", ""}, {"limit", " 1"}, {"limit", "99999999999999999999"}, {"wait", "61"},
		{"format", "xml"}, {"format", ""}, {"hta-compatible", "1"}, {"nothing", "1"},
		{"capture", ID}, {"sort", "self "}};
	char longest[600];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		*err.text = '\0';
		assert_int_equal(parse(REPORT, wrong[i][0], wrong[i][1]), -EINVAL);
		assert_true(*err.text);
	}
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(parse(REPORT, "process", longest), -EINVAL);
	longest[511] = '\0';
	assert_int_equal(parse(REPORT, "process", longest), 0);
	assert_int_equal(parse("/api/captures/0123456789ABCDEF/report", NULL, NULL), -EINVAL);
	assert_int_equal(parse("/api/captures/../report", NULL, NULL), -EINVAL);
	assert_int_equal(parse("/api/captures/" ID "/call-tree", "min-share", "nan"), -EINVAL);
	assert_int_equal(parse("/api/captures/" ID "/call-tree", "min-share", "0x1"), -EINVAL);
}

static void test_no_parameter_comes_twice(void **state)
{
	const struct api_argument twice[] = {{"limit", "1"}, {"limit", "2"}};
	const struct api_request request = {
		.method = "GET", .path = REPORT, .arguments = twice, .argument_count = 2};
	struct api_path_values values;
	enum api_operation operation;

	assert_int_equal(api_find(&request, &operation, &values, &err), 0);
	assert_int_equal(api_parse(operation, &request, &values, &parameters, &err), -EINVAL);
}

/* runs/compare with "run" so often, of ids that begin with it. */
static int parse_runs(const char *id, size_t count)
{
	struct api_argument runs[API_ARGUMENTS_MAX];
	const struct api_request request = {.method = "GET",
		.path = "/api/runs/compare",
		.arguments = runs,
		.argument_count = count};
	struct api_path_values values;
	enum api_operation operation;

	for (size_t i = 0; i < count; i++)
		runs[i] = (struct api_argument){"run", id};
	assert_int_equal(api_find(&request, &operation, &values, &err), 0);
	assert_int_equal(operation, API_COMPARE_RUNS);
	return api_parse(operation, &request, &values, &parameters, &err);
}

static void test_a_parameter_that_comes_several_times(void **state)
{
	assert_int_equal(parse_runs("0123", 2), 0);
	assert_int_equal(parameters.compare_runs.run.count, 2);
	assert_string_equal(parameters.compare_runs.run.values[1], "0123");
	assert_int_equal(parse_runs("0123", 10), 0);
	assert_int_equal(parse_runs("0123", 0), -EINVAL);
	assert_int_equal(parse_runs("0123", 1), -EINVAL);
	assert_int_equal(parse_runs("0123", 11), -EINVAL);
	assert_int_equal(parse_runs("012", 2), -EINVAL);
	assert_int_equal(parse_runs("01234567890123456789012345678901", 2), 0);
	assert_int_equal(parse_runs("012345678901234567890123456789012", 2), -EINVAL);
	assert_int_equal(parse_runs("../x", 2), -EINVAL);
	assert_int_equal(parse("/api/runs", NULL, NULL), 0);
	assert_int_equal(parameters.list_runs.tag.count, 0);
	assert_false(parameters.list_runs.reverse);
}

static void test_arrays_in_bodies(void **state)
{
	static const char *const wrong[] = {"{\"tags\":\"a\"}", "{\"tags\":[1]}",
		"{\"tags\":[\"\"]}", "{\"tags\":[\"a\",,\"b\"]}", "{\"tags\":[\"a\" \"b\"]}",
		"{\"tags\":[[\"a\"]]}", "{\"tags\":[\"\\u0000\"]}", "{\"notes\":[\"a\"]}",
		"{\"tags\":[null]}"};
	char body[400];

	snprintf(body, sizeof(body), "{\"tags\": [ \"a\", \"\\u00fc\\n\" ], \"notes\":\"\"}");
	memset(&parameters, 0, sizeof(parameters));
	assert_int_equal(api_parse_body(API_EDIT_RUN, body, strlen(body), &parameters, &err), 0);
	assert_true(parameters.edit_run.has_tags && parameters.edit_run.has_notes);
	assert_false(parameters.edit_run.has_experiment);
	assert_int_equal(parameters.edit_run.tags.count, 2);
	assert_string_equal(parameters.edit_run.tags.values[0], "a");
	assert_string_equal(parameters.edit_run.tags.values[1], "\xc3\xbc\n");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(body, sizeof(body), "%s", wrong[i]);
		memset(&parameters, 0, sizeof(parameters));
		assert_int_equal(
			api_parse_body(API_EDIT_RUN, body, strlen(body), &parameters, &err),
			-EINVAL);
	}
}

/* Of start_job, with this body; the parameters point into it. */
static int parse_body(const char *text)
{
	static char body[400];

	snprintf(body, sizeof(body), "%s", text);
	memset(&parameters, 0, sizeof(parameters));
	*err.text = '\0';
	return api_parse_body(API_START_JOB, body, strlen(body), &parameters, &err);
}

static void test_bodies(void **state)
{
	const struct api_start_job_parameters *job = &parameters.start_job;

	assert_true(api_takes_json(API_START_JOB) && !api_takes_json(API_GET_STATUS));
	assert_int_equal(parse_body(" {\"command\": \"a\"}\n"), 0);
	assert_string_equal(job->command, "a");
	assert_false(job->has_parameters);
	assert_int_equal(
		parse_body("{\"parameters\":{\"x\":[1,{}]},\"command\":\"\\u00fc\\n\\\"\"}"), 0);
	assert_string_equal(job->command, "\xc3\xbc\n\"");
	assert_true(job->has_parameters);
	assert_memory_equal(job->parameters.bytes, "{\"x\":[1,{}]}", job->parameters.length);
}

static void test_bodies_that_are_refused(void **state)
{
	static const char *const wrong[] = {"", "{", "[]", "null", "{}", "{} {}", "{\"command\":1}",
		"{\"command\":\"\"}", "{\"command\":\"a\",\"command\":\"a\"}",
		"{\"command\":\"a\",\"x\":1}", "{\"command\":\"a\",}", "{\"command\":\"\\u0000\"}",
		"{\"command\":\"\xff\"}", "{\"command\":\"a\",\"parameters\":\"{}\"}",
		"{\"command\":\"0123456789012345678901234567890123456789012345678901234567890123\"}"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(parse_body(wrong[i]), -EINVAL);
		assert_true(*err.text);
	}
}

static void test_methods(void **state)
{
	char methods[40];

	api_methods("/api/jobs", methods, sizeof(methods));
	assert_string_equal(methods, "GET, POST");
	api_methods("/api/nothing", methods, sizeof(methods));
	assert_string_equal(methods, "");
	api_methods("/api/jobs", methods, 6);
	assert_int_equal(strlen(methods), 5);
}

static const struct api_parameter *find_parameter(enum api_operation operation, const char *name)
{
	const struct api_parameter *parameter = api_routes[operation].parameters;

	while (parameter->name && strcmp(parameter->name, name) != 0)
		parameter++;
	return parameter->name ? parameter : NULL;
}

/* What can be asked of files stands in query/options.c: the schema has the same, with its bounds.
 */
static void check_key(enum api_operation operation, const struct query_key *key)
{
	const struct api_parameter *parameter = find_parameter(operation, key->name);

	if (!parameter) {
		fail_msg("%s lacks the parameter %s", api_routes[operation].name, key->name);
		return;
	}
	if (key->type == QUERY_KEY_NUMBER || key->type == QUERY_KEY_REAL) {
		assert_true(parameter->minimum == key->minimum);
		assert_true(parameter->maximum == key->maximum);
	}
	assert_int_equal(parameter->type == API_CHOICE, key->type == QUERY_KEY_CHOICE);
	for (size_t i = 0; key->type == QUERY_KEY_CHOICE && key->choices[i]; i++)
		assert_string_equal(key->choices[i], parameter->choices[i]);
	if (key->type == QUERY_KEY_TEXT)
		assert_true(parameter->maximum < QUERY_VALUE_MAX);
}

static void test_schema_has_what_can_be_asked(void **state)
{
	for (const struct query_key *key = query_keys; key->name; key++) {
		if (key->use != QUERY_KEY_CALL_TREE)
			check_key(API_GET_REPORT, key);
		if (key->use != QUERY_KEY_REPORT && key->use != QUERY_KEY_LIMIT)
			check_key(API_GET_CALL_TREE, key);
	}
}

static void test_questions(void **state)
{
	const struct question question = {.what = QUESTION_REPORT, .form = 2, .path = "/a b"};
	_cleanup_strbuf_ struct strbuf text = {0};
	struct question read;
	const char *at, *key, *value;

	question_write(&text, &question);
	question_add(&text, "by", "function");
	question_add(&text, "process", "");
	at = text.data;
	assert_int_equal(question_read(&at, text.data + text.length, &read), 0);
	assert_int_equal(read.what, QUESTION_REPORT);
	assert_int_equal(read.form, 2);
	assert_string_equal(read.path, "/a b");
	assert_true(question_next(&at, text.data + text.length, &key, &value));
	assert_string_equal(key, "by");
	assert_string_equal(value, "function");
	assert_true(question_next(&at, text.data + text.length, &key, &value));
	assert_string_equal(value, "");
	assert_false(question_next(&at, text.data + text.length, &key, &value));
	for (size_t i = 0; i < 4; i++) {
		at = text.data;
		assert_true(question_read(&at, text.data + i, &read) < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_no_parameter_comes_twice),
		cmocka_unit_test(test_schema_has_what_can_be_asked),
		cmocka_unit_test(test_questions),
		cmocka_unit_test(test_a_parameter_that_comes_several_times),
		cmocka_unit_test(test_arrays_in_bodies),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_bodies_that_are_refused),
		cmocka_unit_test(test_methods),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
