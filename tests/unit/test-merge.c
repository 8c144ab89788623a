/* SPDX-License-Identifier: Apache-2.0 */
/* Native and Python frames in one order: each case is a small stack, drawn from the outermost on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "collect/merge.h"

#define MAXIMUM 16
#define EVAL    'E' /* native frames are letters; this one is the interpreter's */

static bool is_eval(void *context, uint64_t address)
{
	return address == EVAL;
}

/*
 * `native` and `python` from the outermost on; python frames are lower-case letters, and a group
 * (one evaluation) begins after a space. Returns the merged stack as text.
 */
static const char *merge(const char *native, const char *python, bool native_complete,
	bool python_complete, enum wire_python *ret_result)
{
	static char text[2 * MAXIMUM + 1];
	struct wire_python_frame frames[MAXIMUM] = {0};
	uint64_t addresses[MAXIMUM];
	struct merged_frame merged[2 * MAXIMUM];
	struct merge_input input = {.native = addresses,
		.native_count = strlen(native),
		.python = frames,
		.native_complete = native_complete,
		.python_complete = python_complete,
		.is_eval = is_eval};
	size_t count = 0;

	for (size_t i = 0; i < input.native_count; i++)
		addresses[input.native_count - 1 - i] = (unsigned char)native[i];
	for (const char *at = python; *at; at++)
		count += *at != ' ';
	for (const char *at = python; *at; at++) {
		bool entry = at > python && at[-1] == ' ';

		if (*at == ' ')
			continue;
		frames[count - 1 - input.python_count].code = (unsigned char)*at;
		frames[count - 1 - input.python_count].flags = entry ? WIRE_PYTHON_ENTRY : 0;
		input.python_count++;
	}
	*ret_result = merge_stacks(&input, merged);
	for (size_t i = 0; i < input.native_count + count; i++)
		text[i] = (char)(merged[i].is_python ? frames[merged[i].index].code
						     : addresses[merged[i].index]);
	text[input.native_count + count] = '\0';
	return text;
}

static void expect(
	const char *native, const char *python, const char *wanted, enum wire_python result)
{
	enum wire_python got;

	assert_string_equal(merge(native, python, true, true, &got), wanted);
	assert_int_equal(got, result);
}

static void test_groups_follow_their_evaluation(void **state)
{
	expect("SEMEL", " ab c", "SEabMEcL", WIRE_PYTHON_FRAMES);
	expect("SEEE", " a b c", "SEaEbEc", WIRE_PYTHON_FRAMES);
	expect("SE", " abc", "SEabc", WIRE_PYTHON_FRAMES);
	expect("SML", "", "SML", WIRE_PYTHON_FRAMES);
}

/* The innermost evaluation has just begun: its frame is not there yet. */
static void test_evaluation_without_a_frame(void **state)
{
	expect("SEMEL", " ab", "SEabMEL", WIRE_PYTHON_FRAMES);
	expect("SE", "", "SE", WIRE_PYTHON_FRAMES);
}

/* The innermost frame is in code that is not known to be the interpreter's. */
static void test_frame_without_an_evaluation(void **state)
{
	expect("SEML", " ab c", "SEabMLc", WIRE_PYTHON_NOT_MERGED);
	expect("SL", " a", "SLa", WIRE_PYTHON_NOT_MERGED);
	expect("SEEEL", " a", "SEaEEL", WIRE_PYTHON_NOT_MERGED);
}

/* What is missing is missing outside: the inner ends belong together. */
static void test_stacks_that_are_cut(void **state)
{
	enum wire_python got;

	assert_string_equal(merge("MEL", " ab c", false, true, &got), "abMEcL");
	assert_int_equal(got, WIRE_PYTHON_FRAMES);
	assert_string_equal(merge("EMEL", "bc d", true, false, &got), "EbcMEdL");
	assert_string_equal(merge("EMEL", " d", true, false, &got), "EMEdL");
	assert_string_equal(merge("L", " a b", false, true, &got), "abL");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups_follow_their_evaluation),
		cmocka_unit_test(test_evaluation_without_a_frame),
		cmocka_unit_test(test_frame_without_an_evaluation),
		cmocka_unit_test(test_stacks_that_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
