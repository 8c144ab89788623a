/* SPDX-License-Identifier: Apache-2.0 */
/* What injected libraries say of the stacks of launches, and what they are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "collect/device/launch_records.h"

#define PID 4711

struct fixture {
	struct capture_writer *writer;
	struct launch_records *records;
	struct python_registry *python;
	struct wire_launch_facts facts;
	struct capture_launch_stack seen[8];
	unsigned seen_count;
};

static int see_launch_stack(void *context, const struct capture_launch_stack *stack)
{
	struct fixture *fixture = context;

	assert_true(fixture->seen_count < 8);
	fixture->seen[fixture->seen_count++] = *stack;
	return 0;
}

static int set_up(void **state)
{
	static const struct capture_visitor visitor = {.launch_stack = see_launch_stack};
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_int_equal(capture_writer_open_live(&fixture->writer, &visitor, fixture, NULL), 0);
	assert_int_equal(launch_records_new(&fixture->records, fixture->writer), 0);
	assert_int_equal(python_registry_new(&fixture->python, NULL, NULL, fixture->writer), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	launch_records_free(fixture->records);
	python_registry_free(fixture->python);
	capture_writer_free(fixture->writer);
	free(fixture);
	return 0;
}

/* Records that reach the pipeline are not of these tests: there is none. */
static void add(struct fixture *fixture, const struct wire_record *record)
{
	assert_true(launch_records_is_one(record));
	assert_int_equal(
		launch_records_add(fixture->records, NULL, fixture->python, PID, record), 0);
}

static void test_same(void **state)
{
	struct fixture *fixture = *state;
	struct wire_launch_same same = {
		.record = {.type = WIRE_RECORD_LAUNCH_SAME, .length_bytes = sizeof(same)},
		.correlation = 8,
		.same_as = 5,
		.time_ns = 1000,
	};

	add(fixture, &same.record);
	same.record.type = WIRE_RECORD_LAUNCH_CHECK;
	add(fixture, &same.record);
	assert_int_equal(fixture->seen_count, 2);
	assert_int_equal(fixture->seen[0].pid, PID);
	assert_int_equal(fixture->seen[0].correlation, 8);
	assert_int_equal(fixture->seen[0].same_as, 5);
	assert_false(fixture->seen[0].is_check);
	assert_true(fixture->seen[1].is_check);
	assert_int_equal(launch_records_account(fixture->records)->same, 1);
	assert_int_equal(launch_records_account(fixture->records)->checked, 1);
}

static void test_malformed(void **state)
{
	struct fixture *fixture = *state;
	union {
		struct wire_record record;
		struct wire_launch_same same;
		struct wire_sample sample;
		struct wire_python_code code;
		uint64_t words[64];
	} in = {.same = {.record = {WIRE_RECORD_LAUNCH_SAME, 0, 16}}};
	struct wire_stack_copy *copy = (struct wire_stack_copy *)(&in.sample + 1);

	add(fixture, &in.record); /* short */
	in.record.length_bytes = sizeof(in.same);
	add(fixture, &in.record); /* the same as none */
	in.same.correlation = in.same.same_as = 7;
	add(fixture, &in.record); /* the same as itself */
	memset(&in, 0, sizeof(in));
	in.record = (struct wire_record){WIRE_RECORD_SAMPLE, 0, sizeof(in.sample)};
	add(fixture, &in.record); /* without a stack */
	in.record.length_bytes = sizeof(in);
	in.sample.python_frame_count = WIRE_LAUNCH_PYTHON_FRAMES + 1;
	add(fixture, &in.record); /* too many frames */
	in.sample.python_frame_count = 100;
	add(fixture, &in.record); /* beyond its end */
	in.sample.python_frame_count = 0;
	copy->stack_bytes = sizeof(in);
	add(fixture, &in.record); /* more stack than there is */
	copy->stack_bytes = 8;
	in.sample.python_interpreter = 1;
	add(fixture, &in.record); /* an interpreter that it does not run */
	in.sample.python_interpreter = 0;
	in.sample.python = WIRE_PYTHON_MAX;
	add(fixture, &in.record); /* no such reason */
	memset(&in, 0, sizeof(in));
	in.record = (struct wire_record){WIRE_RECORD_PYTHON_CODE, 0, sizeof(in.code)};
	in.code.interpreter = 3;
	add(fixture, &in.record); /* the same */
	in.record.length_bytes = 16;
	add(fixture, &in.record); /* short */
	assert_int_equal(launch_records_account(fixture->records)->malformed, 11);
	assert_int_equal(launch_records_account(fixture->records)->copies, 0);
	assert_int_equal(fixture->seen_count, 0);
}

static void tell(struct fixture *fixture, const struct process *process)
{
	assert_int_equal(launch_records_send_facts(
				 fixture->records, &fixture->facts, 99, process, fixture->python),
		0);
}

static void test_facts(void **state)
{
	struct mapping mappings[WIRE_LAUNCH_CODE_RANGES * 2 + 2] = {
		{.start = 0x1000, .end = 0x3000},
		{.start = 0x3000, .end = 0x4000}, /* touches it */
		{.start = 0x8000, .end = 0x9000},
	};
	struct process process = {.pid = PID, .mappings = mappings, .mapping_count = 3};
	struct fixture *fixture = *state;

	tell(fixture, &process);
	assert_int_equal(fixture->facts.sequence, 2);
	assert_int_equal(fixture->facts.python, WIRE_LAUNCH_PYTHON_NONE);
	assert_int_equal(fixture->facts.code_range_count, 2);
	assert_int_equal(fixture->facts.code_ranges[0].start, 0x1000);
	assert_int_equal(fixture->facts.code_ranges[0].end, 0x4000);
	assert_int_equal(fixture->facts.code_ranges[1].start, 0x8000);
	tell(fixture, &process); /* no news */
	assert_int_equal(fixture->facts.sequence, 2);
	for (size_t i = 0; i < WIRE_LAUNCH_CODE_RANGES * 2 + 2; i++)
		mappings[i] = (struct mapping){.start = 0x2000 * i, .end = 0x2000 * i + 0x1000};
	process.mapping_count = WIRE_LAUNCH_CODE_RANGES;
	process.generation++;
	tell(fixture, &process);
	assert_int_equal(fixture->facts.sequence, 4);
	assert_int_equal(fixture->facts.code_range_count, WIRE_LAUNCH_CODE_RANGES);
	process.mapping_count++;
	process.generation++;
	tell(fixture, &process);
	assert_true(fixture->facts.code_range_count > WIRE_LAUNCH_CODE_RANGES);
}

static void test_hints(void **state)
{
	uint64_t frames[WIRE_LAUNCH_HINT_FRAMES + 1] = {0x1000, 0x2000};
	struct fixture *fixture = *state;
	const struct wire_launch_hint *hint = &fixture->facts.hints[4];

	for (uint64_t i = 1; i <= WIRE_LAUNCH_HINTS + 5; i++)
		launch_records_add_hint(&fixture->facts, 100 + i, frames, 2);
	assert_int_equal(fixture->facts.hint_count, WIRE_LAUNCH_HINTS + 5);
	assert_int_equal(hint->number, WIRE_LAUNCH_HINTS + 5);
	assert_int_equal(hint->correlation, 100 + WIRE_LAUNCH_HINTS + 5);
	assert_int_equal(hint->frame_count, 2);
	assert_int_equal(hint->frames[1], 0x2000);
	launch_records_add_hint(&fixture->facts, 1, frames, WIRE_LAUNCH_HINT_FRAMES + 1);
	assert_int_equal(fixture->facts.hint_count, WIRE_LAUNCH_HINTS + 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_same),
		TEST(test_malformed),
		TEST(test_facts),
		TEST(test_hints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
