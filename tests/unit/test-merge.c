/* SPDX-License-Identifier: Apache-2.0 */
/* Native and Python frames in one order: each case is a small stack, drawn from the outermost on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "collect/pipeline/merge.h"

#define MAXIMUM 16
#define EVAL    'E' /* native frames are letters; this one is the interpreter's */
/* Where frames are left out: '-' native ones, '=' evaluations; Python frames '-', or '=' for one
 * that begins a group. */

static bool is_eval(void *context, uint64_t address)
{
	return address == EVAL;
}

struct drawing {
	uint64_t native[MAXIMUM];
	struct wire_python_frame python[MAXIMUM];
	struct merge_input input;
};

/* Takes a frame that is left out; false: the frame is there. */
static bool is_left_out(char frame, size_t index, struct stack_gap *gap)
{
	if (frame != '-' && frame != '=')
		return false;
	gap->at = index;
	gap->left_out++;
	gap->groups += frame == '=';
	return true;
}

static void draw_native(struct drawing *drawing, const char *native)
{
	for (size_t i = strlen(native); i-- > 0;) {
		size_t *count = &drawing->input.native_count;

		if (!is_left_out(native[i], *count, &drawing->input.native_gap))
			drawing->native[(*count)++] = (unsigned char)native[i];
	}
}

static void draw_python(struct drawing *drawing, const char *python)
{
	for (size_t i = strlen(python); i-- > 0;) {
		size_t *count = &drawing->input.python_count;

		if (python[i] == ' ' || is_left_out(python[i], *count, &drawing->input.python_gap))
			continue;
		drawing->python[(*count)++] =
			(struct wire_python_frame){.code = (unsigned char)python[i],
				.flags = i && python[i - 1] == ' ' ? WIRE_PYTHON_ENTRY : 0};
	}
}

/*
 * `native` and `python` from the outermost on; python frames are lower-case letters, and a group
 * (one evaluation) begins after a space. Returns the merged stack as text, with the number of
 * frames left out as a digit, 0 where it is not known.
 */
static const char *merge(const char *native, const char *python, bool native_complete,
	bool python_complete, enum wire_python *ret_result)
{
	static char text[MERGE_MAX_FRAMES(MAXIMUM, MAXIMUM) + 1];
	struct merged_frame merged[MERGE_MAX_FRAMES(MAXIMUM, MAXIMUM)];
	struct drawing drawing = {
		.input = {.native_complete = native_complete,
			.python_complete = python_complete,
			.is_eval = is_eval},
	};
	size_t count;

	drawing.input.native = drawing.native;
	drawing.input.python = drawing.python;
	draw_native(&drawing, native);
	draw_python(&drawing, python);
	*ret_result = merge_stacks(&drawing.input, merged, &count);
	for (size_t i = 0; i < count; i++) {
		uint32_t index = merged[i].index;

		text[i] = (char)(merged[i].kind == MERGED_PYTHON   ? drawing.python[index].code
				 : merged[i].kind == MERGED_NATIVE ? drawing.native[index]
								   : '0' + index);
	}
	text[count] = '\0';
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

/*
 * What is missing is missing outside: the inner ends belong together. A Python frame whose
 * evaluation was not reached is never shown as the direct caller of the next one.
 */
static void test_stacks_that_are_cut(void **state)
{
	enum wire_python got;

	assert_string_equal(merge("MEL", " ab c", false, true, &got), "ab0MEcL");
	assert_int_equal(got, WIRE_PYTHON_FRAMES);
	assert_string_equal(merge("EMEL", "bc d", true, false, &got), "EbcMEdL");
	assert_string_equal(merge("EMEL", " d", true, false, &got), "EMEdL");
	assert_string_equal(merge("L", " a b", false, true, &got), "a0b0L");
	assert_string_equal(merge("", " a b", false, true, &got), "a0b0");
	assert_string_equal(merge("EL", " a b- d", false, true, &got), "a0b1EdL");
	assert_string_equal(merge("EL", " a b=- e", false, true, &got), "a0b2EeL");
	assert_int_equal(got, WIRE_PYTHON_FRAMES);
}

/* Recursion in one evaluation (3.11 on): the Python frames have a gap, the native ones have none.
 */
static void test_deep_python_stacks(void **state)
{
	expect("SEML", " ab---c", "SEab3cML", WIRE_PYTHON_FRAMES);
	expect("SEMEL", " ab--c d", "SEab2cMEdL", WIRE_PYTHON_FRAMES);
	/* The evaluation that begins in the gap ends beyond it. */
	expect("SEMENL", " ab-=c", "SEab2MEcNL", WIRE_PYTHON_FRAMES);
	/* All of its frames are in the gap. */
	expect("SEMENEL", " ab-=- d", "SEab3MENEdL", WIRE_PYTHON_FRAMES);
	expect("SEMENEL", " ab==d", "SEab2MENEdL", WIRE_PYTHON_FRAMES);
}

static void test_deep_native_stacks(void **state)
{
	expect("SM---L", "", "SM3L", WIRE_PYTHON_FRAMES);
	expect("SEM--EL", " ab c", "SEabM2EcL", WIRE_PYTHON_FRAMES);
	/* The Python frames of an evaluation that is left out are there. */
	expect("SEM-=-EL", " ab c d", "SEabM3cEdL", WIRE_PYTHON_FRAMES);
	/* Both have a gap, which is one. */
	expect("SEM-=-==-EL", " ab c=- e f", "SEabMc8eEfL", WIRE_PYTHON_FRAMES);
}

static void test_deep_stacks_that_are_cut(void **state)
{
	enum wire_python got;

	assert_string_equal(merge("EM=-EL", "d", false, true, &got), "EM2EdL");
	assert_string_equal(merge("EM=-EL", " c d", false, true, &got), "EM2cEdL");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups_follow_their_evaluation),
		cmocka_unit_test(test_evaluation_without_a_frame),
		cmocka_unit_test(test_deep_python_stacks),
		cmocka_unit_test(test_deep_native_stacks),
		cmocka_unit_test(test_deep_stacks_that_are_cut),
		cmocka_unit_test(test_frame_without_an_evaluation),
		cmocka_unit_test(test_stacks_that_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
