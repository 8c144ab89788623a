/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of this very process, with the registers that launches are captured with: functions of
 * many shapes note their callers, and the unwinder must find the same ones by the tables of the
 * program and of libc. Runs on every processor, also under an emulator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "../support/elf_path.h"
#include "arch/launch.h"
#include "base/array.h"
#include "own_stack.h"
#include "unwind/build.h"
#include "unwind/stack.h"

struct mapped_code {
	uint64_t start, end, bias;
	struct unwind_table table;
};

static ARRAY_OF(struct mapped_code) mapped;
static uint64_t frames[WIRE_MAX_USER_FRAMES];
static size_t frame_count;
static enum wire_stop stop;

static int read_u64(void *context, uint64_t address, uint64_t *ret_value)
{
	*ret_value = *(const uint64_t *)(uintptr_t)address;
	return 0;
}

static bool locate(void *context, uint64_t address, struct unwind_location *ret_location)
{
	array_foreach (&mapped, code) {
		if (address < code->start || address >= code->end)
			continue;
		*ret_location = (struct unwind_location){.table = code->table.words,
			.table_word_count = code->table.word_count,
			.bias = code->bias};
		return true;
	}
	return false;
}

static __attribute__((noinline)) void capture(void)
{
	static const struct unwind_target target = {NULL, read_u64, locate};
	struct wire_stack_copy registers = {0};

	registers.pc = arch_launch_registers((uint64_t *)registers.leaf);
	registers.sp = registers.leaf[ARCH_DWARF_SP];
	registers.fp = registers.leaf[ARCH_DWARF_FP];
	registers.second = registers.leaf[ARCH_DWARF_SECOND];
	stop = unwind_user_stack(&target, &registers, frames, WIRE_MAX_USER_FRAMES, &frame_count);
}

static void add_mapping(uint64_t start, uint64_t end, uint64_t file_offset, const char *path)
{
	_cleanup_elf_file_ struct elf_file *file = NULL;
	struct mapped_code code = {.start = start, .end = end};
	struct errmsg err;

	if (open_elf(&file, path, path, &err) < 0)
		return; /* not a file: the vDSO */
	for (size_t i = 0; i < elf_file_segment_count(file); i++) {
		const struct elf_segment *segment = elf_file_segment(file, i);

		if (segment->executable)
			code.bias = start - file_offset - (segment->vaddr - segment->file_offset);
	}
	assert_int_equal(unwind_table_build(&code.table, file, NULL, &err), 0);
	assert_int_equal(array_append(&mapped, code), 0);
}

static int read_mappings(void **state)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end, offset;
		char rights[8], path[3072] = "";

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %3071s", &start,
			    &end, rights, &offset, path) == 5 &&
			strchr(rights, 'x') && path[0] == '/')
			add_mapping(start, end, offset, path);
	}
	fclose(maps);
	return 0;
}

static int drop_mappings(void **state)
{
	array_foreach (&mapped, code)
		unwind_table_done(&code->table);
	array_done(&mapped);
	return 0;
}

/* The noted callers are all there, in their order; `between` frames are not ours. */
static void check(size_t between)
{
	size_t at = 1, strange = 0;

	if (stop != WIRE_STOP_COMPLETE)
		fail_msg("the stack ends early: %s, after %zu frames", wire_stop_name(stop),
			frame_count);
	for (size_t i = own_stack.count; i-- > 0;) {
		while (at < frame_count && frames[at] != own_stack.callers[i] - 1) {
			at++;
			strange++;
		}
		for (size_t j = 0; at == frame_count && j < frame_count; j++)
			print_message("frame %zu: %#" PRIx64 "\n", j, frames[j]);
		if (at == frame_count)
			fail_msg("caller %zu, %#" PRIx64 ", is not in the stack", i,
				own_stack.callers[i]);
		at++;
	}
	/* capture() is called by a function that notes only its own caller. */
	assert_in_range(strange, 1, 1 + between);
}

static void test_shapes_of_frames(void **state)
{
	own_stack.count = 0;
	own_stack_plain(capture);
	assert_true(own_stack.count >= 9);
	check(0);
}

static void test_frames_of_libc_between(void **state)
{
	own_stack.count = 0;
	own_stack_called_back(capture);
	assert_int_equal(own_stack.count, 3);
	check(4);
}

/* ThreadSanitizer calls handlers from one of its own. */
#ifdef __SANITIZE_THREAD__
#define OF_THE_SANITIZER 2
#else
#define OF_THE_SANITIZER 0
#endif

static void test_signal_in_a_leaf(void **state)
{
	own_stack.count = 0;
	own_stack_interrupted(capture);
	assert_int_equal(own_stack.count, 3);
	check(3 + OF_THE_SANITIZER);
}

/* The kernel's frame of a signal, by libc's headers: siginfo, then the context, on aarch64. */
static void test_layout_of_signal_frames(void **state)
{
#if defined(__aarch64__)
	const size_t context = 128;

	assert_int_equal(ARCH_UCONTEXT_PC, context + offsetof(ucontext_t, uc_mcontext.pc));
	assert_int_equal(ARCH_UCONTEXT_SP, context + offsetof(ucontext_t, uc_mcontext.sp));
	assert_int_equal(ARCH_UCONTEXT_FP, context + offsetof(ucontext_t, uc_mcontext.regs[29]));
	assert_int_equal(
		ARCH_UCONTEXT_SECOND, context + offsetof(ucontext_t, uc_mcontext.regs[30]));
#else
	assert_int_equal(ARCH_UCONTEXT_PC, offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]));
	assert_int_equal(ARCH_UCONTEXT_SP, offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]));
	assert_int_equal(ARCH_UCONTEXT_FP, offsetof(ucontext_t, uc_mcontext.gregs[REG_RBP]));
	assert_int_equal(ARCH_UCONTEXT_SECOND, offsetof(ucontext_t, uc_mcontext.gregs[REG_RBX]));
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes_of_frames),
		cmocka_unit_test(test_frames_of_libc_between),
		cmocka_unit_test(test_signal_in_a_leaf),
		cmocka_unit_test(test_layout_of_signal_frames),
	};

	return cmocka_run_group_tests(tests, read_mappings, drop_mappings);
}
