/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-made call frame information → rows, form by form. Real files: test-unwind-reference.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frame_image.h"
#include "table_rules.h"
#include "unwind/stack.h"

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})
#define CODE       FRAME_IMAGE_CODE_VADDR

/* The initial program of every compiler: CFA = rsp + 8, return address at CFA - 8. */
#define INITIAL DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1

static void add_u32(struct strbuf *cfi, uint32_t value)
{
	strbuf_add_bytes(cfi, &value, sizeof(value));
}

static void add_u64(struct strbuf *cfi, uint64_t value)
{
	strbuf_add_bytes(cfi, &value, sizeof(value));
}

/* A CIE at the section's start with this augmentation, its data and program. */
static void add_cie(struct strbuf *cfi, const char *letters, const void *data, size_t data_length,
	const void *program, size_t length)
{
	size_t letters_length = strlen(letters) + 1;

	add_u32(cfi, (uint32_t)(4 + 1 + letters_length + 3 + data_length + length));
	add_u32(cfi, 0);
	strbuf_add_char(cfi, 1);
	strbuf_add_bytes(cfi, letters, letters_length);
	strbuf_add_bytes(cfi, BYTES(1, 0x78, 16)); /* code * 1, data * -8, return address */
	strbuf_add_bytes(cfi, data, data_length);
	strbuf_add_bytes(cfi, program, length);
}

/* An FDE of the CIE at 0, with 8-byte addresses and no augmentation data. */
static void add_fde(struct strbuf *cfi, uint64_t begin, uint64_t length, const void *program,
	size_t program_length)
{
	add_u32(cfi, (uint32_t)(4 + 16 + program_length));
	add_u32(cfi, (uint32_t)cfi->length);
	add_u64(cfi, begin);
	add_u64(cfi, length);
	strbuf_add_bytes(cfi, program, program_length);
}

static struct unwind_table build_image(
	const struct frame_image *image, struct unwind_build_stats *ret_stats)
{
	_cleanup_elf_file_ struct elf_file *file = NULL;
	_cleanup_strbuf_ struct strbuf bytes = {0};
	struct unwind_table table;
	struct errmsg err;

	assert_int_equal(frame_image_write(image, &bytes), 0);
	assert_int_equal(elf_file_open_memory(&file, bytes.data, bytes.length, "image", &err), 0);
	assert_int_equal(unwind_table_build(&table, file, ret_stats, &err), 0);
	assert_true(unwind_table_is_valid(table.words, table.word_count));
	return table;
}

static struct unwind_table build(const struct strbuf *cfi, struct unwind_build_stats *ret_stats)
{
	return build_image(
		&(struct frame_image){.cfi = cfi->data, .cfi_length = cfi->length}, ret_stats);
}

/* The table of one function of 64 bytes with this program. */
static struct unwind_table build_function(
	const void *program, size_t length, struct unwind_build_stats *ret_stats)
{
	_cleanup_strbuf_ struct strbuf cfi = {0};

	add_cie(&cfi, "", NULL, 0, BYTES(INITIAL));
	add_fde(&cfi, CODE, 64, program, length);
	return build(&cfi, ret_stats);
}

static void assert_rule(
	const struct unwind_table *table, uint64_t vaddr, struct unwind_rule expected)
{
	struct unwind_rule rule = table_rule(table, vaddr);

	assert_memory_equal(&rule, &expected, sizeof(rule));
}

static struct unwind_rule rsp_rule(int offset)
{
	return (struct unwind_rule){.cfa = UNWIND_CFA_SP, .cfa_offset = offset, .ra_offset = -8};
}

static const struct unwind_rule no_rule = {.cfa = UNWIND_CFA_NONE};
static const struct unwind_rule end_rule = {.cfa = UNWIND_CFA_END};

static void test_pushes_and_state(void **state)
{
	struct unwind_table table = build_function(
		BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2,
			DW_CFA_advance_loc1, 3, DW_CFA_def_cfa_register, 6, DW_CFA_advance_loc2, 10,
			0, DW_CFA_remember_state, DW_CFA_def_cfa, 7, 8, DW_CFA_restore | 6,
			DW_CFA_advance_loc4, 1, 0, 0, 0, DW_CFA_restore_state, DW_CFA_offset | 3, 3,
			DW_CFA_offset | 12, 4),
		NULL);
	struct unwind_rule pushed = rsp_rule(16), frame;

	pushed.fp = UNWIND_SAVED_AT_CFA;
	pushed.fp_offset = -16;
	frame = pushed;
	frame.cfa = UNWIND_CFA_FP;
	assert_rule(&table, CODE, rsp_rule(8));
	assert_rule(&table, CODE + 1, pushed);
	assert_rule(&table, CODE + 3, pushed);
	assert_rule(&table, CODE + 4, frame);
	assert_rule(&table, CODE + 14, rsp_rule(8));
	frame.second = UNWIND_SAVED_AT_CFA;
	frame.second_offset = -24;
	assert_rule(&table, CODE + 15, frame);
	assert_rule(&table, CODE + 63, frame);
	assert_rule(&table, CODE + 64, no_rule);
	assert_rule(&table, CODE + FRAME_IMAGE_CODE_BYTES + 5, no_rule);
	assert_rule(&table, CODE - 1, no_rule);
	unwind_table_done(&table);
}

static void test_realigned_frame(void **state)
{
	struct unwind_table table = build_function(
		BYTES(DW_CFA_advance_loc | 5, DW_CFA_def_cfa, 10, 0, DW_CFA_advance_loc | 9,
			DW_CFA_expression, 6, 2, DW_OP_breg6, 0, DW_CFA_advance_loc | 5,
			DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref),
		NULL);
	struct unwind_rule leaf = {
		.cfa = UNWIND_CFA_LEAF_REGISTER, .cfa_addend = 10, .ra_offset = -8};
	struct unwind_rule deref = {.cfa = UNWIND_CFA_FP_DEREF,
		.cfa_offset = -8,
		.ra_offset = -8,
		.fp = UNWIND_SAVED_AT_FP};

	assert_rule(&table, CODE + 5, leaf);
	leaf.fp = UNWIND_SAVED_AT_FP;
	assert_rule(&table, CODE + 14, leaf);
	assert_rule(&table, CODE + 19, deref);
	unwind_table_done(&table);
}

static void test_expressions(void **state)
{
	struct unwind_build_stats stats;
	struct unwind_table table = build_function(
		BYTES(DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 0x98, 1, DW_OP_deref,
			DW_OP_plus_uconst, 8, DW_CFA_advance_loc | 8, DW_CFA_def_cfa_expression, 11,
			DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11,
			DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus, DW_CFA_advance_loc | 8,
			DW_CFA_def_cfa_expression, 2, DW_OP_breg0 + 12, 0, DW_CFA_advance_loc | 8,
			DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 8, DW_OP_abs,
			DW_CFA_advance_loc | 8, DW_CFA_def_cfa, 7, 8, DW_CFA_val_expression, 6, 2,
			DW_OP_breg7, 0, DW_CFA_advance_loc | 8, DW_CFA_def_cfa_offset, 24,
			DW_CFA_expression, 6, 2, DW_OP_breg7, 8),
		&stats);
	struct unwind_rule lost = rsp_rule(8), saved = rsp_rule(24);

	assert_rule(&table, CODE,
		(struct unwind_rule){.cfa = UNWIND_CFA_SP_DEREF,
			.cfa_offset = 152,
			.cfa_addend = 8,
			.ra_offset = -8});
	assert_rule(&table, CODE + 8,
		(struct unwind_rule){.cfa = UNWIND_CFA_PLT, .cfa_offset = 11, .ra_offset = -8});
	assert_rule(&table, CODE + 16,
		(struct unwind_rule){
			.cfa = UNWIND_CFA_LEAF_REGISTER, .cfa_addend = 12, .ra_offset = -8});
	assert_rule(&table, CODE + 24, no_rule);
	lost.fp = UNWIND_SAVED_LOST;
	assert_rule(&table, CODE + 32, lost);
	/* At rsp + 8, and the CFA is rsp + 24. */
	saved.fp = UNWIND_SAVED_AT_CFA;
	saved.fp_offset = -16;
	assert_rule(&table, CODE + 40, saved);
	assert_int_equal(stats.unsupported_rows, 1);
	assert_int_equal(stats.corrupt_fdes, 0);
	unwind_table_done(&table);
}

static void test_return_address(void **state)
{
	struct unwind_build_stats stats;
	struct unwind_table table = build_function(
		BYTES(DW_CFA_def_cfa_offset, 0, DW_CFA_register, 16, 5, DW_CFA_advance_loc | 4,
			DW_CFA_restore | 16, DW_CFA_def_cfa_offset, 8, DW_CFA_advance_loc | 4,
			DW_CFA_undefined, 16, DW_CFA_advance_loc | 4, DW_CFA_restore_extended, 16,
			DW_CFA_register, 7, 2, DW_CFA_advance_loc | 4, DW_CFA_val_offset, 7, 0,
			DW_CFA_offset_extended_sf, 16, 0x7f),
		&stats);
	struct unwind_rule above = rsp_rule(8);

	assert_rule(&table, CODE,
		(struct unwind_rule){
			.cfa = UNWIND_CFA_SP, .ra = UNWIND_RA_LEAF_REGISTER, .ra_offset = 5});
	assert_rule(&table, CODE + 4, rsp_rule(8));
	assert_rule(&table, CODE + 8, end_rule);
	assert_rule(&table, CODE + 12, no_rule); /* rsp is not the CFA */
	above.ra_offset = 8;
	assert_rule(&table, CODE + 16, above);
	assert_int_equal(stats.unsupported_rows, 1);
	unwind_table_done(&table);
}

/* A damaged program takes only its own function with it. */
static void test_corrupt_programs(void **state)
{
	static const struct {
		uint8_t bytes[8];
		size_t length;
	} programs[] = {
		{{DW_CFA_advance_loc | 1, DW_CFA_restore_state}, 2},
		{{DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset}, 2},
		{{DW_CFA_advance_loc | 1, DW_CFA_def_cfa_expression, 100}, 3},
		{{DW_CFA_advance_loc | 1, 0x3f, 0}, 3},
		{{DW_CFA_advance_loc | 2, DW_CFA_set_loc, 0, 0, 0, 0, 0, 0}, 8},
	};

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		_cleanup_strbuf_ struct strbuf cfi = {0};
		struct unwind_build_stats stats;
		struct unwind_table table;

		add_cie(&cfi, "", NULL, 0, BYTES(INITIAL));
		add_fde(&cfi, CODE, 32, BYTES(DW_CFA_nop));
		add_fde(&cfi, CODE + 32, 32, programs[i].bytes, programs[i].length);
		add_fde(&cfi, CODE + 64, 32, BYTES(DW_CFA_nop));
		table = build(&cfi, &stats);
		assert_int_equal(stats.fde_count, 3);
		assert_int_equal(stats.corrupt_fdes, 1);
		assert_rule(&table, CODE + 31, rsp_rule(8));
		assert_rule(&table, CODE + 32, no_rule);
		assert_rule(&table, CODE + 63, no_rule);
		assert_rule(&table, CODE + 64, rsp_rule(8));
		unwind_table_done(&table);
	}
}

/* Augmentations and the encodings of addresses, as different compilers write them. */
static void test_augmentations(void **state)
{
	_cleanup_strbuf_ struct strbuf cfi = {0};
	struct unwind_table table;
	uint64_t field;

	/* Personality (indirect, pc-relative, 4 bytes), language data, encoding pc-relative 4
	 * bytes. */
	add_cie(&cfi, "zPLR",
		BYTES(7, DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4, 1, 2, 3, 4,
			DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_pcrel | DW_EH_PE_sdata4),
		BYTES(INITIAL));
	add_u32(&cfi, 4 + 8 + 5 + 4);
	add_u32(&cfi, (uint32_t)cfi.length);
	field = FRAME_IMAGE_CFI_VADDR + cfi.length;
	add_u32(&cfi, (uint32_t)(CODE + 128 - field));
	add_u32(&cfi, 16);
	strbuf_add_bytes(&cfi, BYTES(4, 9, 9, 9, 9)); /* language data */
	strbuf_add_bytes(
		&cfi, BYTES(DW_CFA_advance_loc | 2, DW_CFA_def_cfa_offset, 32, DW_CFA_nop));
	table = build(&cfi, NULL);
	assert_rule(&table, CODE + 129, rsp_rule(8));
	assert_rule(&table, CODE + 130, rsp_rule(32));
	assert_rule(&table, CODE + 144, no_rule);
	unwind_table_done(&table);
}

static void test_signal_frame(void **state)
{
	_cleanup_strbuf_ struct strbuf cfi = {0};
	struct unwind_table table;

	add_cie(&cfi, "S", NULL, 0, BYTES(INITIAL));
	add_fde(&cfi, CODE + 15, 10, BYTES(DW_CFA_def_cfa_expression, 2, DW_OP_breg7, 0));
	table = build(&cfi, NULL);
	assert_rule(&table, CODE + 15, (struct unwind_rule){.cfa = UNWIND_CFA_SIGNAL});
	assert_rule(&table, CODE + 25, no_rule);
	unwind_table_done(&table);
}

static void test_gaps_and_order(void **state)
{
	_cleanup_strbuf_ struct strbuf cfi = {0};
	struct unwind_build_stats stats;
	struct unwind_table table;

	add_cie(&cfi, "", NULL, 0, BYTES(INITIAL));
	add_fde(&cfi, CODE + 256, 16, BYTES(DW_CFA_def_cfa_offset, 48));
	add_fde(&cfi, CODE + 32, 16, BYTES(DW_CFA_def_cfa_offset, 16));
	add_u32(&cfi, 0); /* a terminator that a linker left in the middle */
	add_fde(&cfi, CODE + 63, 16, BYTES(DW_CFA_def_cfa_offset, 24));
	add_fde(&cfi, CODE + 95, 100, BYTES(DW_CFA_def_cfa_offset, 32)); /* overlaps the next */
	add_fde(&cfi, CODE + 128, 16, BYTES(DW_CFA_def_cfa_offset, 40));
	add_fde(&cfi, 64, 16, BYTES(DW_CFA_nop)); /* not in the code */
	add_fde(&cfi, CODE + 300, 0, BYTES(DW_CFA_nop));
	table = build(&cfi, &stats);
	assert_int_equal(stats.fde_count, 7);
	assert_rule(&table, CODE + 31, no_rule);
	assert_rule(&table, CODE + 32, rsp_rule(16));
	assert_rule(&table, CODE + 48, rsp_rule(16)); /* 15 bytes: padding */
	assert_rule(&table, CODE + 63, rsp_rule(24));
	assert_rule(&table, CODE + 79, no_rule); /* 16 bytes: code perhaps */
	assert_rule(&table, CODE + 127, rsp_rule(32));
	assert_rule(&table, CODE + 128, rsp_rule(40));
	assert_rule(&table, CODE + 144, no_rule);
	assert_rule(&table, CODE + 256, rsp_rule(48));
	assert_rule(&table, CODE + 272, no_rule);
	unwind_table_done(&table);
}

/* Rules reach over page borders, and pages without any row of their own. */
static void test_pages(void **state)
{
	_cleanup_strbuf_ struct strbuf cfi = {0};
	struct unwind_table table;

	add_cie(&cfi, "", NULL, 0, BYTES(INITIAL));
	add_fde(&cfi, CODE + 0xfff0, 0x20100,
		BYTES(DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc4, 0x20, 0, 2, 0,
			DW_CFA_def_cfa_offset, 32));
	table = build(&cfi, NULL);
	assert_rule(&table, CODE + 0xffef, no_rule);
	for (uint64_t at = 0xfff0; at < 0x30010; at += 0x800)
		assert_rule(&table, CODE + at, rsp_rule(16));
	assert_rule(&table, CODE + 0x3000f, rsp_rule(16));
	assert_rule(&table, CODE + 0x30010, rsp_rule(32));
	assert_rule(&table, CODE + 0x300f0, no_rule);
	unwind_table_done(&table);
}

static void test_debug_frame(void **state)
{
	_cleanup_strbuf_ struct strbuf cfi = {0};
	struct unwind_table table;
	size_t fde;

	add_cie(&cfi, "", NULL, 0, BYTES(INITIAL));
	memset(cfi.data + 4, 0xff, 4);
	fde = cfi.length;
	add_fde(&cfi, CODE, 64, BYTES(DW_CFA_def_cfa_offset, 24));
	memset(cfi.data + fde + 4, 0, 4); /* here the CIE's offset in the section */
	table = build_image(
		&(struct frame_image){
			.cfi = cfi.data, .cfi_length = cfi.length, .is_debug_frame = true},
		NULL);
	assert_rule(&table, CODE, rsp_rule(24));
	assert_rule(&table, CODE + 64, no_rule);
	unwind_table_done(&table);
}

/* As runtime.systemstack: Go's linker does not say that rsp is another stack's from there on. */
static void test_stack_switch_of_go(void **state)
{
	static const uint8_t code[] = {
		0x48,
		0x8b,
		0x5a,
		0x38, /* mov 0x38(%rdx), %rbx */
		0x48,
		0x89,
		0xdc, /* mov %rbx, %rsp */
		0xff,
		0xd7, /* call *%rdi */
		0x48,
		0x8b,
		0x60,
		0x38, /* mov 0x38(%rax), %rsp */
		0xc3,
		0xcc,
		0xcc, /* a function that stays: */
		0x48,
		0x83,
		0xec,
		0x10, /* sub $16, %rsp */
		0xff,
		0xd7, /* call *%rdi */
		0x48,
		0x83,
		0xc4,
		0x10, /* add $16, %rsp */
		0xc3,
	};
	const struct unwind_rule other = {.cfa = UNWIND_CFA_OTHER_STACK, .ra_offset = -8};
	struct frame_image image = {
		.code = code, .code_length = sizeof(code), .is_debug_frame = true, .is_go = true};
	_cleanup_strbuf_ struct strbuf cfi = {0};
	struct unwind_table table;
	size_t fde;

	add_cie(&cfi, "", NULL, 0, BYTES(INITIAL));
	memset(cfi.data + 4, 0xff, 4);
	for (uint64_t at = 0; at < 32; at += 16) {
		fde = cfi.length;
		add_fde(&cfi, CODE + at, 16,
			BYTES(DW_CFA_advance_loc + 12, DW_CFA_def_cfa_offset, 24));
		memset(cfi.data + fde + 4, 0, 4);
	}
	image.cfi = cfi.data;
	image.cfi_length = cfi.length;
	table = build_image(&image, NULL);
	assert_rule(&table, CODE + 6, rsp_rule(8));
	assert_rule(&table, CODE + 7, other);
	assert_rule(&table, CODE + 15, other);
	assert_rule(&table, CODE + 16, rsp_rule(8));
	assert_rule(&table, CODE + 28, rsp_rule(24));
	unwind_table_done(&table);
	image.is_go = false;
	table = build_image(&image, NULL);
	assert_rule(&table, CODE + 7, rsp_rule(8));
	unwind_table_done(&table);
}

static int read_nothing(void *context, uint64_t address, uint64_t *ret_value)
{
	return -1;
}

static bool locate_in_table(void *context, uint64_t address, struct unwind_location *ret_location)
{
	const struct unwind_table *table = context;

	ret_location->table = table->words;
	ret_location->table_word_count = table->word_count;
	return true;
}

/* Where a goroutine called onto the thread's own stack, its frame may lie below. */
static void test_frame_pointers_of_go(void **state)
{
	static const uint8_t code[128] = {0};
	const struct wire_stack_copy registers = {.pc = CODE + 64, .sp = 0x10000, .fp = 0x200};
	struct frame_image image = {.code = code, .code_length = sizeof(code)};

	for (int is_go = 0; is_go < 2; is_go++) {
		struct unwind_table table;
		uint64_t frames[4];
		size_t count;

		image.is_go = is_go;
		table = build_image(&image, NULL);
		assert_int_equal(unwind_user_stack(&(struct unwind_target){&table, read_nothing,
							   locate_in_table},
					 &registers, frames, ARRAY_SIZE(frames), &count),
			is_go ? WIRE_STOP_OTHER_STACK : WIRE_STOP_NO_PROGRESS);
		assert_int_equal(count, 1);
		unwind_table_done(&table);
	}
}

/* Code without FDE: the program's start, the signal return, and no information at all. */
static void test_code_without_fde(void **state)
{
	static const uint8_t code[128] = {[32] = 0xf3,
		0x0f,
		0x1e,
		0xfa,
		0x31,
		0xed,
		0x49,
		0x89,
		0xd1, /* _start */
		[112] = 0x48,
		0xc7,
		0xc0,
		0x0f,
		0,
		0,
		0,
		0x0f,
		0x05}; /* __restore_rt */
	struct frame_image image = {.code = code, .code_length = sizeof(code), .entry = CODE + 32};
	_cleanup_strbuf_ struct strbuf cfi = {0};
	const struct unwind_rule frame_pointer = {.cfa = UNWIND_CFA_FRAME_POINTER,
		.fp = UNWIND_SAVED_AT_CFA,
		.fp_offset = -16,
		.ra_offset = -8};
	struct unwind_table table = build_image(&image, NULL);

	assert_rule(&table, CODE + 31, frame_pointer);
	assert_rule(&table, CODE + 32, end_rule);
	assert_rule(&table, CODE + 111, (struct unwind_rule){.cfa = UNWIND_CFA_SIGNAL});
	assert_rule(&table, CODE + 121, frame_pointer);
	unwind_table_done(&table);

	add_cie(&cfi, "", NULL, 0, BYTES(INITIAL));
	add_fde(&cfi, CODE + 0x1000, 64, BYTES(DW_CFA_nop));
	image.cfi = cfi.data;
	image.cfi_length = cfi.length;
	table = build_image(&image, NULL);
	assert_rule(&table, CODE + 31, no_rule);
	assert_rule(&table, CODE + 32, end_rule);
	assert_rule(&table, CODE + 96, no_rule);
	assert_rule(&table, CODE + 111, (struct unwind_rule){.cfa = UNWIND_CFA_SIGNAL});
	assert_rule(&table, CODE + 0x1000, rsp_rule(8));
	unwind_table_done(&table);
}

/* As .fini, which is shorter than padding may be, and has no FDE: sub, add, return. */
static void test_short_code_without_fde(void **state)
{
	static const uint8_t code[] = {0x48, 0x83, 0xec, 8, 0x48, 0x83, 0xc4, 8, 0xc3};
	_cleanup_strbuf_ struct strbuf cfi = {0};
	struct unwind_table table;

	add_cie(&cfi, "", NULL, 0, BYTES(INITIAL));
	add_fde(&cfi, CODE + sizeof(code), 64, BYTES(DW_CFA_def_cfa_offset, 32));
	table = build_image(&(struct frame_image){.cfi = cfi.data,
				    .cfi_length = cfi.length,
				    .code = code,
				    .code_length = sizeof(code)},
		NULL);
	assert_rule(&table, CODE, rsp_rule(8));
	assert_rule(&table, CODE + 4, rsp_rule(16));
	assert_rule(&table, CODE + 8, rsp_rule(8));
	assert_rule(&table, CODE + 9, rsp_rule(32));
	unwind_table_done(&table);
}

/* An entry point that has an FDE without an undefined return address ends the stack too. */
static void test_start_with_fde(void **state)
{
	static const uint8_t code[64] = {[0] = 0x48, 0x31, 0xed};
	_cleanup_strbuf_ struct strbuf cfi = {0};
	struct unwind_table table;

	add_cie(&cfi, "", NULL, 0, BYTES(INITIAL));
	add_fde(&cfi, CODE, 40, BYTES(DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16));
	table = build_image(&(struct frame_image){.cfi = cfi.data,
				    .cfi_length = cfi.length,
				    .code = code,
				    .code_length = sizeof(code),
				    .entry = CODE},
		NULL);
	assert_rule(&table, CODE, end_rule);
	assert_rule(&table, CODE + 39, end_rule);
	unwind_table_done(&table);
}

static void test_other_processors_are_rejected(void **state)
{
	_cleanup_elf_file_ struct elf_file *file = NULL;
	_cleanup_strbuf_ struct strbuf bytes = {0};
	struct unwind_table table;
	struct errmsg err;

	assert_int_equal(frame_image_write(&(struct frame_image){0}, &bytes), 0);
	bytes.data[18] = (char)183; /* e_machine: AArch64 */
	assert_int_equal(elf_file_open_memory(&file, bytes.data, bytes.length, "image", &err), 0);
	assert_int_equal(unwind_table_build(&table, file, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "x86-64"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pushes_and_state),
		cmocka_unit_test(test_realigned_frame),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_return_address),
		cmocka_unit_test(test_corrupt_programs),
		cmocka_unit_test(test_augmentations),
		cmocka_unit_test(test_signal_frame),
		cmocka_unit_test(test_gaps_and_order),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_stack_switch_of_go),
		cmocka_unit_test(test_frame_pointers_of_go),
		cmocka_unit_test(test_code_without_fde),
		cmocka_unit_test(test_short_code_without_fde),
		cmocka_unit_test(test_start_with_fde),
		cmocka_unit_test(test_other_processors_are_rejected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
