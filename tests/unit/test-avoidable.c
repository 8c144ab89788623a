/* SPDX-License-Identifier: Apache-2.0 */
/* Advice of what no program of a test can have, or has each time: cores that were slowed down since
 * they were hot, and a helper that is sampled first. */
#include "model-example.h"

#include "base/macros.h"
#include "report/cpu/avoidable_rules.h"

#define PID 7

/* A program that runs for 4 s, while cores are slowed down for `hot_s`, added. */
static struct model *make(double hot_s)
{
	struct example example;
	capture_id frame, stack;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_process(&example, PID, "work", 1);
	example_thread(&example, PID, PID, "work");
	frame = example_frame(&example, "compute", example_mapping(&example, "/bin/work"), 16);
	stack = example_frames(&example, WIRE_STOP_COMPLETE, frame);
	example_samples(&example, PID, PID, stack, 2000, 4000);
	for (int i = 0; i <= 4; i++) {
		const struct capture_counter counter = {.time_ns = 2000 + i * NS_PER_S,
			.pid = PID,
			.name = CAPTURE_COUNTER_HEAT,
			.value = hot_s * i / 4};

		assert_int_equal(model_builder_visitor.counter(example.builder, &counter), 0);
	}
	return example_end(&example);
}

static bool is_advised(double hot_s, struct strbuf *text)
{
	static const struct selection all;
	struct model *model = make(hot_s);
	struct avoidable_finding found;
	struct avoidable_uses uses;
	bool is_large;

	assert_int_equal(avoidable_uses_init(&uses, model, &all, NULL), 0);
	found = avoidable_find(model, &uses, AVOIDABLE_HEAT);
	is_large = avoidable_is_large(&found);
	avoidable_say(&found, text);
	model_free(model);
	return is_large;
}

static void hot_cores_are_found_where_they_cost(void **state)
{
	_cleanup_strbuf_ struct strbuf hot = {0}, warm = {0};

	assert_true(is_advised(1.5, &hot));
	assert_non_null(strstr(strbuf_cstr(&hot), "Cores were slowed down for 1.5"));
	assert_false(is_advised(0.9, &warm));
	assert_false(is_advised(0, &warm));
}

/* main() calls dgemm_(), which asks lsame_() first. */
static void the_function_that_took_most_is_named(void **state)
{
	static const struct selection all;
	_cleanup_strbuf_ struct strbuf text = {0};
	capture_id entry, multiply, ask, library, in_ask, in_multiply;
	struct avoidable_finding found;
	struct avoidable_uses uses;
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_process(&example, PID, "work", 1);
	example_thread(&example, PID, PID, "work");
	entry = example_frame(&example, "main", example_mapping(&example, "/home/me/work"), 16);
	library = example_mapping(&example, "/usr/lib/blas/libblas.so.3");
	multiply = example_frame(&example, "dgemm_", library, 32);
	ask = example_frame(&example, "lsame_", library, 64);
	in_ask = example_frames(&example, WIRE_STOP_COMPLETE, entry, ask);
	in_multiply = example_frames(&example, WIRE_STOP_COMPLETE, entry, multiply);
	example_samples(&example, PID, PID, in_ask, 2000, 10);
	example_samples(&example, PID, PID, in_multiply, 2000 + 10 * EXAMPLE_PERIOD_NS, 4000);
	model = example_end(&example);
	assert_int_equal(avoidable_uses_init(&uses, model, &all, NULL), 0);
	found = avoidable_find(model, &uses, AVOIDABLE_REFERENCE_BLAS);
	avoidable_say(&found, &text);
	assert_non_null(strstr(strbuf_cstr(&text), "dgemm_ of libblas.so.3"));
	model_free(model);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(hot_cores_are_found_where_they_cost),
		cmocka_unit_test(the_function_that_took_most_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
