/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps are warm-up, and which are odd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyses/program/step_use.h"

#define MS 1000000ULL

static struct model *model_of(const uint64_t *durations_ms, size_t count)
{
	struct model *model = model_new();
	uint64_t at_ns = MS;

	assert_non_null(model);
	assert_int_equal(array_append(&model->processes, (struct model_process){.name = "p"}), 0);
	for (size_t i = 0; i < count; i++) {
		const struct model_step step = {
			.name = "step",
			.number = i,
			.start_ns = at_ns,
			.end_ns = at_ns + durations_ms[i] * MS,
			.window = MODEL_NONE,
		};

		assert_int_equal(array_append(&model->steps, step), 0);
		at_ns = step.end_ns;
	}
	return model;
}

static void expect_marks(const uint64_t *durations_ms, size_t count, const char *marks)
{
	static const char letters[] = {'.', 'w', 's', 'f'};
	struct model *model = model_of(durations_ms, count);
	_cleanup_step_use_ struct step_use use = {0};

	assert_int_equal(step_use_init(&use, model, NULL), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(letters[use.costs.items[i].mark], marks[i]);
	model_free(model);
}

#define EXPECT(marks, ...)                                                                         \
	do {                                                                                       \
		const uint64_t _ms[] = {__VA_ARGS__};                                              \
                                                                                                   \
		expect_marks(_ms, ARRAY_SIZE(_ms), marks);                                         \
	} while (0)

static void odd_steps_are_marked(void **state)
{
	(void)state;
	EXPECT("......s..f", 100, 101, 99, 100, 102, 100, 180, 99, 100, 40);
	/* Within 5 % nothing is odd, however equal the others are; nor within the noise. */
	EXPECT("......", 100, 100, 100, 104, 100, 96);
	EXPECT("........", 80, 120, 95, 130, 70, 100, 110, 90);
	/* One outlier does not hide another. */
	EXPECT("..s..s..", 100, 100, 900, 100, 101, 5000, 99, 100);
}

static void first_slow_steps_are_warm_up(void **state)
{
	(void)state;
	EXPECT("ww........", 900, 300, 100, 101, 99, 100, 102, 100, 99, 100);
	EXPECT("ww....s...", 900, 300, 100, 101, 99, 100, 300, 100, 99, 100);
	/* Half of all at most, and a fast one is none. */
	EXPECT("f.......", 10, 100, 100, 100, 100, 100, 100, 100);
}

static void of_few_steps_nothing_is_said(void **state)
{
	(void)state;
	EXPECT("...", 900, 100, 100);
}

static void the_rest_is_compared_with_steady_steps(void **state)
{
	const uint64_t durations_ms[] = {500, 100, 100, 100, 100, 200};
	struct model *model = model_of(durations_ms, ARRAY_SIZE(durations_ms));
	_cleanup_step_use_ struct step_use use = {0};

	(void)state;
	assert_int_equal(step_use_init(&use, model, NULL), 0);
	assert_int_equal(use.rows.items[0].warm_up_count, 1);
	assert_int_equal(use.rows.items[0].odd_count, 1);
	assert_int_equal(use.rows.items[0].steady_p50_ns, 100 * MS);
	assert_true(use.costs.items[5].of_steady == 2);
	assert_true(use.costs.items[5].more_rest_ns == 100.0 * MS);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(odd_steps_are_marked),
		cmocka_unit_test(first_slow_steps_are_warm_up),
		cmocka_unit_test(of_few_steps_nothing_is_said),
		cmocka_unit_test(the_rest_is_compared_with_steady_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
