/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child runs the workload one instruction at a time; after each the whole stack is unwound and
 * compared with a shadow stack, which grows when the instruction pushed its own successor's address
 * and shrinks when that address is jumped to. So every row of every function on the way is tried,
 * prologues, PLT, signal and vfork included.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"
#include "stopped_process.h"
#include "unwind_workload.h"

#define MAX_SHADOW       128
#define MAX_INSTRUCTIONS 200000
#define LONGEST_CALL     7

struct shadow_frame {
	uint64_t lookup;               /* what the unwinder must say for this caller */
	uint64_t resumes_at, sp_after; /* where it goes on, and with which stack pointer */
};

struct stepper {
	pid_t pid;
	struct stopped_process *process;
	struct wire_stack_copy registers;
	struct shadow_frame shadow[MAX_SHADOW];
	size_t depth, deepest;
	unsigned steps, calls, signals;
	int pending_signal;
};

/* Shared by both processes. */
struct gate {
	volatile bool has_arrived, may_start;
};

static struct gate *gate;

static void child_main(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	gate->has_arrived = true;
	while (!gate->may_start)
		sched_yield();
	_exit(unwind_workload_run() != 0 ? 0 : 1);
}

static uint64_t word_at(const struct stepper *stepper, uint64_t address)
{
	const struct unwind_target *target = stopped_process_target(stepper->process);
	uint64_t word = 0;

	assert_int_equal(target->read_u64(target->context, address, &word), 0);
	return word;
}

static void push_shadow(struct stepper *stepper, struct shadow_frame frame)
{
	assert_true(stepper->depth < MAX_SHADOW);
	stepper->shadow[stepper->depth++] = frame;
	stepper->deepest = MAX(stepper->deepest, stepper->depth);
}

static void push_call(struct stepper *stepper)
{
	uint64_t sp = stepper->registers.sp, return_address = word_at(stepper, sp);

	push_shadow(stepper, (struct shadow_frame){return_address - 1, return_address, sp + 8});
	stepper->calls++;
}

/* Keeps the shadow stack in step with what the instruction did. */
static void follow(struct stepper *stepper, const struct wire_stack_copy *before)
{
	const struct wire_stack_copy *now = &stepper->registers;
	const struct shadow_frame *caller;

	assert_true(stepper->depth > 0);
	caller = &stepper->shadow[stepper->depth - 1];
	if (now->pc == caller->resumes_at && now->sp == caller->sp_after) {
		stepper->depth--;
		return;
	}
	if (now->sp == before->sp - 8 && word_at(stepper, now->sp) - before->pc <= LONGEST_CALL &&
		word_at(stepper, now->sp) > before->pc + 1)
		push_call(stepper);
}

/* The kernel made two frames: the signal's, in which the interrupted code waits, and the handler's.
 */
static void follow_signal(struct stepper *stepper, const struct wire_stack_copy *before)
{
	push_shadow(stepper, (struct shadow_frame){before->pc, before->pc, before->sp});
	push_call(stepper);
	stepper->signals++;
}

static void check_stack(const struct stepper *stepper)
{
	uint64_t frames[WIRE_MAX_USER_FRAMES];
	size_t count;
	enum wire_stop stop = unwind_user_stack(stopped_process_target(stepper->process),
		&stepper->registers, frames, WIRE_MAX_USER_FRAMES, &count);
	const char *path = "?";
	uint64_t vaddr = 0;

	stopped_process_describe(stepper->process, frames[0], &path, &vaddr);
	if (stop != WIRE_STOP_COMPLETE)
		fail_msg("stop %s after %zu frames at %s+%#" PRIx64, wire_stop_name(stop), count,
			path, vaddr);
	assert_true(frames[0] == stepper->registers.pc);
	assert_true(count > stepper->depth);
	for (size_t i = 0; i < stepper->depth; i++) {
		const struct shadow_frame *expected = &stepper->shadow[stepper->depth - 1 - i];

		if (frames[i + 1] != expected->lookup)
			fail_msg("frame %zu is %#" PRIx64 " instead of %#" PRIx64
				 " at %s+%#" PRIx64,
				i + 1, frames[i + 1], expected->lookup, path, vaddr);
	}
}

/* One instruction. Returns false when the child ended. */
static bool step(struct stepper *stepper)
{
	int status, signal_number = stepper->pending_signal;
	pid_t changed;

	stepper->pending_signal = 0;
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, stepper->pid, NULL, (long)signal_number), 0);
	/* ThreadSanitizer's own thread is traced as well, and the child's end waits for that one's.
	 */
	do
		changed = waitpid(-1, &status, __WALL);
	while (changed > 0 && changed != stepper->pid);
	assert_int_equal(changed, stepper->pid);
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), 0);
		return false;
	}
	assert_true(WIFSTOPPED(status));
	/* SIGCHLD is vfork's child, and ignored. */
	if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGCHLD)
		stepper->pending_signal = WSTOPSIG(status);
	assert_int_equal(stopped_process_registers(stepper->pid, &stepper->registers), 0);
	return true;
}

static void step_and_check(struct stepper *stepper)
{
	struct wire_stack_copy before = stepper->registers;
	bool delivers = stepper->pending_signal != 0;

	assert_true(step(stepper));
	if (delivers)
		follow_signal(stepper, &before);
	else
		follow(stepper, &before);
	check_stack(stepper);
	assert_true(stepper->steps++ < MAX_INSTRUCTIONS);
}

static void start_child(struct stepper *stepper)
{
	struct errmsg err;

	gate = mmap(NULL, sizeof(*gate), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(gate != MAP_FAILED);
	stepper->pid = fork();
	assert_true(stepper->pid >= 0);
	if (stepper->pid == 0)
		child_main();
	/* Stopped earlier, it would be stepped through all that fork() does in the child. */
	while (!gate->has_arrived)
		sched_yield();
	assert_int_equal(stopped_process_open(&stepper->process, stepper->pid, &err), 0);
	assert_int_equal(stopped_process_stop(stepper->process, &err), 0);
	gate->may_start = true;
}

static void test_every_instruction(void **state)
{
	struct stepper stepper = {0};

	start_child(&stepper);
	while (stepper.registers.pc != (uint64_t)(uintptr_t)unwind_workload_run)
		assert_true(step(&stepper));
	push_call(&stepper);
	check_stack(&stepper);
	while (stepper.depth)
		step_and_check(&stepper);
	while (step(&stepper))
		;
	print_message("%u instructions, %u calls, %u signals, %zu deep\n", stepper.steps,
		stepper.calls, stepper.signals, stepper.deepest);
	assert_true(stepper.calls > 20);
	assert_int_equal(stepper.signals, 1);
	assert_true(stepper.deepest >= 8);
	stopped_process_free(stepper.process);
}

/* A target whose every answer is made up, to see each reason of an end. */
struct fake {
	struct unwind_location location;
	int reads;
};

static int fake_read(void *context, uint64_t address, uint64_t *ret_value)
{
	struct fake *fake = context;

	if (fake->reads-- <= 0)
		return -EFAULT;
	*ret_value = address + 16;
	return 0;
}

static bool fake_locate(void *context, uint64_t address, struct unwind_location *ret_location)
{
	*ret_location = ((struct fake *)context)->location;
	return address != 0xdead;
}

static void test_stop_reasons(void **state)
{
	static const uint64_t damaged_table[UNWIND_HEADER_WORDS] = {
		UNWIND_TABLE_MAGIC, 0, 1ULL << 63, UINT64_MAX, UINT64_MAX};
	struct fake fake = {.location = {.frame_pointer = true}, .reads = 1 << 20};
	const struct unwind_target target = {&fake, fake_read, fake_locate};
	struct wire_stack_copy registers = {.pc = 0x1000, .sp = 0x100, .fp = 0x200};
	uint64_t frames[8];
	size_t count;

#define UNWIND() unwind_user_stack(&target, &registers, frames, ARRAY_SIZE(frames), &count)
	assert_int_equal(UNWIND(), WIRE_STOP_DEPTH);
	assert_int_equal(count, ARRAY_SIZE(frames));
	assert_true(frames[0] == 0x1000 && frames[1] == 0x208 + 16 - 1);
	fake.reads = 2;
	assert_int_equal(UNWIND(), WIRE_STOP_READ_FAULT);
	assert_int_equal(count, 2);
	registers.sp = 0x10000;
	assert_int_equal(UNWIND(), WIRE_STOP_NO_PROGRESS);
	assert_int_equal(count, 1);
	fake.location = (struct unwind_location){0};
	assert_int_equal(UNWIND(), WIRE_STOP_NO_TABLE);
	fake.location = (struct unwind_location){
		.table = damaged_table, .table_word_count = UNWIND_HEADER_WORDS};
	assert_int_equal(UNWIND(), WIRE_STOP_NO_RULE);
	registers.pc = 0xdead;
	assert_int_equal(UNWIND(), WIRE_STOP_NO_MAPPING);
	assert_int_equal(count, 1);
#undef UNWIND
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_instruction),
		cmocka_unit_test(test_stop_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
