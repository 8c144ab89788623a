/* SPDX-License-Identifier: Apache-2.0 */
/* Options as keys and values, and call trees as JSON. tests/e2e/test_mcp.py asks whole files. */
#include "model-example.h"

#include <errno.h>

#include "query/query.h"

static const char *const paths[] = {"before.pftrace", "after.pftrace"};

/* ---- options ---- */

static void check_refused(const char *key, const char *value, const char *word)
{
	_cleanup_query_options_ struct query_options options = QUERY_OPTIONS_DEFAULT;
	struct errmsg err;

	assert_int_equal(query_options_set(&options, key, value, &err), -EINVAL);
	assert_non_null(strstr(err.text, word));
}

static void test_options(void **state)
{
	_cleanup_query_options_ struct query_options options = QUERY_OPTIONS_DEFAULT;
	char process[] = "python";
	struct errmsg err;

	assert_int_equal(query_options_set(&options, "process", process, &err), 0);
	process[0] = 'X';
	assert_string_equal(options.selection.process, "python");
	assert_int_equal(query_options_set(&options, "weight", "gpu-idle", &err), 0);
	assert_string_equal(options.shown.weight, "gpu-idle");
	assert_int_equal(query_options_set(&options, "limit", "12", &err), 0);
	assert_int_equal(options.limit, 12);
	assert_int_equal(query_options_set(&options, "show-interpreter", "true", &err), 0);
	assert_true(options.shown.interpreter);
	assert_int_equal(query_options_set(&options, "show-interpreter", "no", &err), 0);
	assert_false(options.shown.interpreter);
	assert_int_equal(query_options_set(&options, "by", "idle", &err), 0);
	assert_int_equal(query_options_set(&options, "price", "0.25/kWh", &err), 0);
	assert_int_equal(query_options_set(&options, "min-share", "2.5", &err), 0);
	assert_true(options.minimum_share_percent == 2.5);
	assert_int_equal(query_options_parse(&options, &err), 0);
	assert_true(options.rates.price_per_kwh == 0.25);
}

static void test_refused_options(void **state)
{
	char longest[QUERY_VALUE_MAX + 2];

	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	check_refused("proces", "python", "what can is by, sort");
	check_refused("weight", "gold", "one of cpu, wait");
	check_refused("by", "../../etc", "one of recording, avoidable, ");
	check_refused("limit", "0", "number from 1");
	check_refused("limit", "-1", "number from 1");
	check_refused("limit", "12x", "number from 1");
	check_refused("min-share", "nan", "number from 0");
	check_refused("min-share", "101", "number from 0");
	check_refused("show-interpreter", "perhaps", "true or false");
	check_refused("symbol", longest, "longer than 512");
}

/* ---- call trees ---- */

/* main → work → inner, `counts` times: in main, in work, in inner. */
static void open_example(
	struct query *query, const char *const *path, const char *inner, const unsigned counts[3])
{
	struct example example;
	capture_id frames[3];

	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_process(&example, 7, "work", 1000);
	example_thread(&example, 7, 7, "work");
	example_mapping(&example, "/bin/work");
	frames[0] = example_frame(&example, "main", 1, 0x10);
	frames[1] = example_frame(&example, "work", 1, 0x20);
	frames[2] = example_frame(&example, inner, 1, 0x30);
	for (unsigned depth = 0; depth < 3; depth++)
		example_samples(&example, 7, 7,
			example_stack(&example, WIRE_STOP_COMPLETE, depth + 1, frames),
			1000 + depth * NS_PER_S, counts[depth]);
	*query = (struct query){
		.paths = path, .count = 1, .model = example_end(&example), .has_samples = true};
	assert_non_null(query->model);
}

static void test_call_tree(void **state)
{
	static const unsigned counts[] = {2, 5, 93};
	struct query_options options = QUERY_OPTIONS_DEFAULT;
	_cleanup_query_ struct query query = {0};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;

	open_example(&query, &paths[0], "inner", counts);
	assert_int_equal(query_call_tree(&query, &options, &out, &err), 0);
	assert_string_equal(strbuf_cstr(&out),
		"{\"unit\":\"ns\",\"paths\":[\"before.pftrace\"],\"totals\":[100000000],"
		"\"pruned\":{\"nodes\":0,\"total\":[0]},\"notes\":[],"
		"\"names\":[\"all\",\"work\",\"main\",\"work\",\"inner\"],"
		"\"modules\":[\"\",\"\",\"work\",\"work\",\"work\"],"
		"\"kinds\":[\"task\",\"task\",\"native\",\"native\",\"native\"],"
		"\"label\":[0,1,2,3,4],\"parent\":[-1,0,1,2,3],"
		"\"self\":[[0,0,2000000,5000000,93000000]],"
		"\"total\":[[100000000,100000000,100000000,98000000,93000000]]}");
}

static void test_pruned(void **state)
{
	static const unsigned counts[] = {90, 5, 5};
	struct query_options options = QUERY_OPTIONS_DEFAULT;
	_cleanup_query_ struct query query = {0};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;

	options.minimum_share_percent = 20;
	options.roots = "none";
	open_example(&query, &paths[0], "inner", counts);
	assert_int_equal(query_call_tree(&query, &options, &out, &err), 0);
	assert_non_null(strstr(strbuf_cstr(&out), "\"pruned\":{\"nodes\":2,\"total\":[10000000]}"));
	assert_non_null(strstr(strbuf_cstr(&out), "\"label\":[0,1],\"parent\":[-1,0]"));
}

static void test_diff(void **state)
{
	static const unsigned counts[2][3] = {{0, 10, 20}, {0, 10, 40}};
	struct query_options options = QUERY_OPTIONS_DEFAULT;
	_cleanup_query_ struct query before = {0};
	_cleanup_query_ struct query after = {0};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;

	options.roots = "none";
	open_example(&before, &paths[0], "inner", counts[0]);
	open_example(&after, &paths[1], "other", counts[1]);
	assert_int_equal(query_call_tree_diff(&before, &after, &options, &out, &err), 0);
	assert_non_null(strstr(strbuf_cstr(&out), "\"totals\":[30000000,50000000]"));
	assert_non_null(strstr(strbuf_cstr(&out),
		"\"self\":[[0,0,10000000,20000000,0],[0,0,10000000,0,40000000]]"));
}

/* ---- reports ---- */

static void test_report(void **state)
{
	static const unsigned counts[] = {2, 5, 93};
	struct query_options options = QUERY_OPTIONS_DEFAULT;
	_cleanup_query_ struct query query = {0};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;

	open_example(&query, &paths[0], "inner", counts);
	options.by = "function";
	assert_int_equal(query_report(&query, &options, REPORT_FORM_CSV, NULL, &out, &err), 0);
	assert_non_null(strstr(strbuf_cstr(&out), "inner"));
}

static void test_sections(void **state)
{
	static const unsigned counts[] = {1, 1, 1};
	_cleanup_query_ struct query query = {0};
	_cleanup_strbuf_ struct strbuf out = {0};

	open_example(&query, &paths[0], "inner", counts);
	assert_int_equal(query_sections(&query, &out), 0);
	assert_non_null(strstr(strbuf_cstr(&out), "{\"name\":\"function\",\"summary\":"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_refused_options),
		cmocka_unit_test(test_call_tree),
		cmocka_unit_test(test_pruned),
		cmocka_unit_test(test_diff),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_sections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
