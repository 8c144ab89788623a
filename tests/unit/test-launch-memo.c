/* SPDX-License-Identifier: Apache-2.0 */
/* Which launches the injected library takes for having the stack of an earlier one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "inject/launch/memo.h"

#define CODE 0x7f0000001000ULL
#define OWN  0x7f0000009000ULL
#define KEY  77

static const struct wire_code_range ranges[] = {
	{0x400000, 0x500000},
	{CODE, CODE + 0x1000},
	{OWN, OWN + 0x1000},
};

/* A stack of four callers; the words between are what functions keep there. */
struct fixture {
	struct launch_memo memo;
	uint64_t words[32];
	struct launch_stack_view view;
};

enum { OWN_AT = 1, FIRST_AT = 4, SECOND_AT = 10, STALE_AT = 13, THIRD_AT = 20, FOURTH_AT = 30 };

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	for (size_t i = 0; i < 32; i++)
		fixture->words[i] = i;
	fixture->words[OWN_AT] = OWN + 8;
	fixture->words[FIRST_AT] = CODE + 1;
	fixture->words[SECOND_AT] = CODE + 2;
	fixture->words[STALE_AT] = CODE + 0x99;
	fixture->words[THIRD_AT] = 0x400003;
	fixture->words[FOURTH_AT] = CODE + 4;
	fixture->view = (struct launch_stack_view){
		.words = fixture->words,
		.count = 32,
		.ranges = ranges,
		.range_count = 3,
		.own = ranges[2],
	};
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static uint64_t find(struct fixture *fixture)
{
	const uint64_t *found = launch_memo_find(&fixture->memo, KEY, &fixture->view);

	return found ? *found : 0;
}

static void learn(struct fixture *fixture, uint64_t same_as)
{
	const uint64_t frames[] = {OWN + 100, CODE, CODE + 1, 0x400002, CODE + 3};

	launch_memo_learn(&fixture->memo, same_as, frames, 5, &ranges[2]);
}

static void test_same_callers(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(find(fixture), 0);
	launch_memo_add(&fixture->memo, KEY, &fixture->view, 5);
	assert_int_equal(find(fixture), 5);
	fixture->words[7] = 123456; /* a local variable */
	assert_int_equal(find(fixture), 5);
	assert_null(launch_memo_find(&fixture->memo, KEY + 1, &fixture->view));
}

static void test_other_callers(void **state)
{
	static const int places[] = {OWN_AT, FIRST_AT, SECOND_AT, THIRD_AT, FOURTH_AT};
	struct fixture *fixture = *state;

	launch_memo_add(&fixture->memo, KEY, &fixture->view, 5);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		uint64_t before = fixture->words[places[i]]++;

		assert_int_equal(find(fixture), 0);
		fixture->words[places[i]] = before;
	}
	fixture->words[FIRST_AT]++;
	launch_memo_add(&fixture->memo, KEY, &fixture->view, 6);
	assert_int_equal(find(fixture), 6);
	fixture->words[FIRST_AT]--;
	assert_int_equal(find(fixture), 5);
}

/* What functions left behind counts until the collector has said what the callers are. */
static void test_learns_what_is_stale(void **state)
{
	struct fixture *fixture = *state;

	launch_memo_add(&fixture->memo, KEY, &fixture->view, 5);
	fixture->words[STALE_AT] = 0;
	assert_int_equal(find(fixture), 0);
	launch_memo_add(&fixture->memo, KEY, &fixture->view, 6);
	learn(fixture, 6);
	assert_int_equal(find(fixture), 6);
	fixture->words[STALE_AT] = CODE + 0x55;
	assert_int_equal(find(fixture), 6);
	fixture->words[STALE_AT] = CODE + 0x99;
	assert_int_equal(find(fixture), 6); /* the other one was the same, and is forgotten */
	fixture->words[THIRD_AT]++;
	assert_int_equal(find(fixture), 0);
}

/* Callers that are not on the stack are another's: nothing is unmarked. */
static void test_does_not_learn_what_does_not_fit(void **state)
{
	const uint64_t frames[] = {CODE + 0x100, CODE + 0x200, CODE + 0x300, CODE, CODE + 0x400};
	struct fixture *fixture = *state;

	launch_memo_add(&fixture->memo, KEY, &fixture->view, 5);
	launch_memo_learn(&fixture->memo, 5, frames, 5, &ranges[2]);
	fixture->words[STALE_AT] = 0;
	assert_int_equal(find(fixture), 0);
	learn(fixture, 99); /* nobody's */
	assert_int_equal(find(fixture), 0);
}

/* A function of which the collector said nothing: a saved frame pointer tells where it was. */
static void test_frame_pointers(void **state)
{
	struct fixture *fixture = *state;

	fixture->words[6] = (uint64_t)(uintptr_t)&fixture->words[THIRD_AT - 1];
	launch_memo_add(&fixture->memo, KEY, &fixture->view, 5);
	learn(fixture, 5);
	assert_int_equal(find(fixture), 5);
	fixture->words[6] = (uint64_t)(uintptr_t)&fixture->words[FOURTH_AT - 1];
	assert_int_equal(find(fixture), 0);
}

static void test_our_own_traces_do_not_count(void **state)
{
	struct fixture *fixture = *state;

	fixture->words[16] = OWN + 0x10;
	launch_memo_add(&fixture->memo, KEY, &fixture->view, 5);
	fixture->words[16] = OWN + 0x20;
	assert_int_equal(find(fixture), 5);
}

/* Full, it begins anew; it never writes beyond itself. */
static void test_many_stacks(void **state)
{
	struct fixture *fixture = *state;
	uint32_t found = 0;

	for (uint64_t i = 1; i < 100000; i++) {
		fixture->words[FIRST_AT] = CODE + i % 4096;
		launch_memo_add(&fixture->memo, i / 8, &fixture->view, i);
		found += launch_memo_find(&fixture->memo, i / 8, &fixture->view) != NULL;
		assert_true(fixture->memo.used <= LAUNCH_MEMO_WORDS);
	}
	assert_true(found > 99000);
	launch_memo_clear(&fixture->memo);
	assert_null(launch_memo_find(&fixture->memo, 99999 / 8, &fixture->view));
	for (uint64_t i = 0; i < 100; i++) { /* a chain has an end, too */
		fixture->words[FIRST_AT] = CODE + i;
		launch_memo_add(&fixture->memo, KEY, &fixture->view, i + 1);
	}
	assert_int_equal(find(fixture), 0);
	fixture->words[FIRST_AT] = CODE;
	assert_int_equal(find(fixture), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_same_callers),
		TEST(test_other_callers),
		TEST(test_learns_what_is_stale),
		TEST(test_does_not_learn_what_does_not_fit),
		TEST(test_frame_pointers),
		TEST(test_our_own_traces_do_not_count),
		TEST(test_many_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
