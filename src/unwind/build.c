/* SPDX-License-Identifier: Apache-2.0 */
/* One file's unwind table: FDEs in address order, with what lies between them made explicit. */
#include "unwind/build.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "arch/code.h"
#include ARCH_HEADER(files)
#include "unwind/cfi.h"
#include "unwind/infer.h"
#include "unwind/ranges.h"
#include "unwind/table_writer.h"

/*
 * Up to here what lies between two FDEs is padding after the last instruction. Anything longer may
 * be code that nothing is known of: with the neighbour's rule it would give plausible nonsense.
 */
#define MAX_PADDING_BYTES 15
/* An entry point without FDE is this short at most. */
#define MAX_START_BYTES 64
/* Of .eh_frame_hdr, up to where it points to .eh_frame. */
#define EH_FRAME_HEADER_BYTES 16
/* What switches stacks in Go's runtime is hand-written and short. */
#define MAX_SWITCH_BYTES 1024
/* FDEs and gaps between two looks at the file's limits. */
#define RANGES_AT_A_TIME 1024

struct code {
	uint64_t begin, end;
};

struct builder {
	struct elf_file *file;
	struct cfi *cfi;
	struct unwind_ranges ranges;
	struct unwind_rows rows;
	ARRAY_OF(struct code) code; /* ascending */
	struct inferrer *inferrer;  /* made when the first code without FDE is met */
	uint64_t start;             /* the entry point, when it is a program's _start; else 0 */
	bool is_go, gaps_have_frame_pointers;
	uint64_t unsupported_rows, corrupt_fdes;
};

static const struct unwind_rule frame_pointer_rule = UNWIND_FRAME_POINTER_RULE;
static const struct unwind_rule go_rule = {.cfa = UNWIND_CFA_FRAME_POINTER,
	.fp = UNWIND_SAVED_AT_CFA,
	.cfa_offset = UNWIND_FRAMES_ON_STACKS,
	.fp_offset = -16,
	.ra_offset = -8};

static int compare_code(const void *left, const void *right)
{
	const struct code *a = left, *b = right;

	return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Segments that a table cannot hold, and ones that overlap (only in damaged files), are left out.
 */
static void drop_impossible_code(struct builder *builder)
{
	struct code *code = builder->code.items;
	size_t kept = 0;

	for (size_t i = 0; i < builder->code.count; i++) {
		uint64_t first_page = code[0].begin >> UNWIND_PAGE_SHIFT;
		uint64_t last_page = (code[i].end - 1) >> UNWIND_PAGE_SHIFT;

		if (code[i].end > UNWIND_ROWS_MAX_VADDR ||
			last_page - first_page >= UNWIND_MAX_PAGES ||
			(kept && code[i].begin < code[kept - 1].end))
			continue;
		code[kept++] = code[i];
	}
	builder->code.count = kept;
}

static int collect_code(struct builder *builder)
{
	uint64_t vaddr, length;
	size_t position = 0;

	while (elf_file_next_code(builder->file, &position, &vaddr, &length))
		if (array_append(&builder->code, (struct code){vaddr, vaddr + length}) < 0)
			return -ENOMEM;
	if (builder->code.count == 0)
		return 0;
	qsort(builder->code.items, builder->code.count, sizeof(*builder->code.items), compare_code);
	drop_impossible_code(builder);
	return 0;
}

/* Without section headers: .eh_frame_hdr says where .eh_frame starts; it ends at its terminator. */
static bool find_eh_frame_by_header(struct elf_file *file, struct cfi_section *ret_section)
{
	uint8_t head[EH_FRAME_HEADER_BYTES], encoding;
	struct cfi_section header = {.bytes = head};
	struct elf_segment segment;
	struct elf_bytes bytes;
	struct cursor cursor;
	uint64_t vaddr;

	if (!elf_file_eh_frame_header(file, &segment))
		return false;
	header.length = MIN(segment.file_size, sizeof(head));
	header.vaddr = segment.vaddr;
	if (!elf_file_read(file, segment.file_offset, head, header.length))
		return false;
	cursor = (struct cursor){.at = head, .end = head + header.length};
	if (cursor_u8(&cursor) != 1)
		return false;
	encoding = cursor_u8(&cursor);
	cursor_skip(&cursor, 2); /* encodings of the search table */
	if (cfi_read_pointer(&cursor, &header, encoding, &vaddr) < 0 || cursor.failed ||
		!elf_file_loaded_rest(file, vaddr, &bytes))
		return false;
	*ret_section = (struct cfi_section){.bytes = bytes.bytes,
		.length = bytes.length,
		.vaddr = vaddr,
		.ends_at_terminator = true};
	return true;
}

static bool find_section(struct elf_file *file, const char *name, struct cfi_section *ret_section)
{
	struct elf_bytes bytes;

	if (!elf_file_section(file, name, &bytes))
		return false;
	*ret_section = (struct cfi_section){
		.bytes = bytes.bytes, .length = bytes.length, .vaddr = bytes.vaddr};
	return true;
}

static int use_cfi(struct builder *builder, struct cfi_section section)
{
	memset(builder->cfi, 0, sizeof(*builder->cfi));
	builder->cfi->section = section;
	return unwind_ranges_add_cfi(&builder->ranges, builder->cfi);
}

static int collect_ranges(struct builder *builder)
{
	struct cfi_section section;
	int result = 0;

	if (find_section(builder->file, ".eh_frame", &section) ||
		find_eh_frame_by_header(builder->file, &section))
		result = use_cfi(builder, section);
	if (result == 0 && builder->ranges.items.count == 0 &&
		find_section(builder->file, ".debug_frame", &section)) {
		section.is_debug_frame = true;
		result = use_cfi(builder, section);
	}
	builder->gaps_have_frame_pointers = builder->ranges.items.count == 0;
	if (result == 0)
		result = unwind_ranges_add_plt(&builder->ranges, builder->file);
	unwind_ranges_sort(&builder->ranges);
	return result;
}

/* Go keeps frame pointers and writes no CFI; a Go program with C code in it has CFI for that code
 * only. */
static bool is_go_program(struct elf_file *file)
{
	return elf_file_find_section(file, ".gopclntab") ||
	       elf_file_find_section(file, ".note.go.buildid");
}

/*
 * The entry point counts as the end of the stack when it begins as every _start does, or as the
 * dynamic linker's: old linkers gave shared libraries the start of .text for an entry point.
 */
static void find_start(struct builder *builder)
{
	uint64_t entry = elf_file_entry(builder->file);
	uint8_t code[ARCH_START_BYTES];

	if (entry && elf_file_read_loaded(builder->file, entry, code, sizeof(code)) &&
		arch_begins_program(code))
		builder->start = entry;
}

static const struct unwind_rule *gap_rule(const struct builder *builder)
{
	static const struct unwind_rule none = {.cfa = UNWIND_CFA_NONE};

	if (builder->is_go)
		return &go_rule;
	return builder->gaps_have_frame_pointers ? &frame_pointer_rule : &none;
}

/* Rows for code without FDE from its instructions; the gap's rule where they tell nothing. */
static int infer(struct builder *builder, uint64_t begin, uint64_t end)
{
	if (unwind_rows_add(&builder->rows, begin, gap_rule(builder)) < 0)
		return -ENOMEM;
	if (!builder->inferrer && inferrer_new(&builder->inferrer, builder->file) < 0)
		return -ENOMEM;
	return inferrer_add_rows(builder->inferrer, &builder->rows, begin, end, gap_rule(builder));
}

/* Where the instructions lie in the range; 0 when they do not. */
static uint64_t find_code(const struct builder *builder, uint64_t begin, uint64_t end,
	const uint8_t *wanted, size_t length)
{
	struct elf_bytes code;
	const uint8_t *found;

	while (end - begin >= length && elf_file_window(builder->file, begin, end - begin, &code)) {
		found = memmem(code.bytes, code.length, wanted, length);
		if (found)
			return begin + (uint64_t)(found - code.bytes);
		if (code.length < length)
			break;
		begin += code.length - (length - 1); /* it may lie across two windows */
	}
	return 0;
}

/* Code without FDE that holds neither the program's start nor a signal's end. */
static int add_common_gap(struct builder *builder, uint64_t begin, uint64_t end)
{
	uint64_t at = find_code(builder, begin, end, arch_thread_start, sizeof(arch_thread_start));
	int result = 0;

	if (!at)
		return infer(builder, begin, end);
	if (at > begin)
		result = infer(builder, begin, at);
	if (result == 0)
		result = unwind_rows_add_fixed(&builder->rows, at, UNWIND_RULE_END);
	at += ARCH_THREAD_START_BYTES;
	return result == 0 && at < end ? infer(builder, at, end) : result;
}

/* Code without FDE that does not hold the program's start. */
static int add_plain_gap(struct builder *builder, uint64_t begin, uint64_t end)
{
	uint64_t at =
		find_code(builder, begin, end, arch_signal_return, sizeof(arch_signal_return));
	uint64_t row = at > begin ? at - 1 : at;
	int result = 0;

	if (!at)
		return add_common_gap(builder, begin, end);
	/* One byte early: return addresses are looked up at the byte before. */
	if (row > begin)
		result = add_common_gap(builder, begin, row);
	if (result == 0)
		result = unwind_rows_add(
			&builder->rows, row, &(struct unwind_rule){.cfa = UNWIND_CFA_SIGNAL});
	if (result < 0)
		return result;
	at += sizeof(arch_signal_return);
	return at < end ? add_common_gap(builder, at, end) : 0;
}

/* Code without FDE. */
static int add_gap(struct builder *builder, uint64_t begin, uint64_t end)
{
	uint64_t start = builder->start, start_end = MIN(end, start + MAX_START_BYTES);

	int result = 0;

	if (start < begin || start >= end)
		return add_plain_gap(builder, begin, end);
	if (start > begin)
		result = add_plain_gap(builder, begin, start);
	if (result == 0)
		result = unwind_rows_add_fixed(&builder->rows, start, UNWIND_RULE_END);
	if (result < 0)
		return result;
	return start_end < end ? add_plain_gap(builder, start_end, end) : 0;
}

/* The instruction that gives the stack pointer a value from anywhere but this stack. */
static bool switches_stack(const struct arch_instruction *instruction)
{
	if (instruction->reg != ARCH_SP || instruction->base == ARCH_SP ||
		instruction->base == ARCH_FP)
		return false;
	return instruction->effect == ARCH_LOAD || instruction->effect == ARCH_MOVE;
}

/* Where a function goes on with another stack; 0 when it does not. */
static uint64_t find_stack_switch(struct builder *builder, uint64_t begin, uint64_t end)
{
	struct arch_instruction instruction;
	struct elf_bytes code;
	size_t at = 0;

	if (end - begin > MAX_SWITCH_BYTES ||
		!elf_file_window(builder->file, begin, end - begin, &code))
		return 0;
	while (at < code.length &&
		arch_decode(code.bytes + at, code.length - at, begin + at, &instruction)) {
		at += instruction.length;
		if (switches_stack(&instruction))
			return begin + at < end ? begin + at : 0;
	}
	return 0;
}

/*
 * Go's linker describes functions such as runtime.systemstack as if they stayed on one stack: they
 * go over to the thread's own and call there, where what stands for a return address is a word that
 * was left behind.
 */
static int add_stack_switch(struct builder *builder, uint64_t begin, uint64_t end)
{
	static const struct unwind_rule rule = {
		.cfa = UNWIND_CFA_OTHER_STACK, .ra_offset = ARCH_RETURN_OFFSET};
	uint64_t at = find_stack_switch(builder, begin, end);
	size_t *count = &builder->rows.packed.count;

	if (!at)
		return 0;
	while (*count && unwind_row_vaddr(builder->rows.packed.items[*count - 1]) >= at)
		--*count;
	return unwind_rows_add(&builder->rows, at, &rule);
}

static int add_fde(struct builder *builder, const struct unwind_range *range, uint64_t end)
{
	size_t row_count = builder->rows.packed.count;
	struct cfi_entry entry;
	int result;

	if (builder->start >= range->begin && builder->start < end)
		return unwind_rows_add_fixed(&builder->rows, range->begin, UNWIND_RULE_END);
	result = cfi_read_entry(builder->cfi, range->cfi_offset, &entry);
	if (result > 0)
		result = cfi_add_rows(&entry, &builder->cfi->section, end, &builder->rows,
			&builder->unsupported_rows);
	if (result == 0 && builder->is_go && builder->cfi->section.is_debug_frame)
		result = add_stack_switch(builder, range->begin, end);
	if (result != -EINVAL)
		return result;
	builder->corrupt_fdes++;
	builder->rows.packed.count = MIN(row_count, builder->rows.packed.count);
	return unwind_rows_add_fixed(&builder->rows, range->begin, UNWIND_RULE_NONE);
}

static int add_range(struct builder *builder, const struct unwind_range *range, uint64_t end)
{
	struct unwind_rule rule = unwind_entry_rule();

	switch (range->kind) {
	case UNWIND_RANGE_PLT_HEADER:
		rule.cfa_offset = ARCH_PLT_HEADER_CFA;
		if (unwind_rows_add(&builder->rows, range->begin, &rule) < 0)
			return -ENOMEM;
		rule.cfa_offset += ARCH_PLT_HEADER_PUSHES;
		rule.ra = UNWIND_RA_AT_CFA;
		rule.ra_offset = -8;
		return unwind_rows_add(
			&builder->rows, range->begin + ARCH_PLT_HEADER_PUSHED_AT, &rule);
	case UNWIND_RANGE_PLT_PUSH:
		rule.cfa = UNWIND_CFA_PLT;
		rule.cfa_offset = range->pushed_at;
		return unwind_rows_add(&builder->rows, range->begin, &rule);
	case UNWIND_RANGE_PLT_JUMP:
		return unwind_rows_add(&builder->rows, range->begin, &rule);
	default:
		return add_fde(builder, range, end);
	}
}

/* Adds the rows of one range of code, from the ranges at *index on, and moves *index behind its
 * ranges.
 */
static int add_code(struct builder *builder, const struct code *code, size_t *index)
{
	uint64_t at = code->begin;
	bool at_begin = true;
	int result = 0;

	for (; *index < builder->ranges.items.count; ++*index) {
		const struct unwind_range *range = &builder->ranges.items.items[*index];
		uint64_t end = MIN(range->end, code->end);

		if (*index % RANGES_AT_A_TIME == 0)
			result = elf_file_status(builder->file);
		if (result < 0)
			return result;
		if (range->begin >= code->end)
			break;
		if (range->begin < at || range->begin >= end)
			continue;
		if (range->begin - at > (at_begin ? 0 : MAX_PADDING_BYTES))
			result = add_gap(builder, at, range->begin);
		if (result == 0)
			result = add_range(builder, range, end);
		if (result < 0)
			return result;
		at = end;
		at_begin = false;
	}
	if (at < code->end)
		result = add_gap(builder, at, code->end);
	if (result < 0)
		return result;
	return unwind_rows_add_fixed(&builder->rows, code->end, UNWIND_RULE_NONE);
}

static int build(struct builder *builder, struct unwind_table *ret_table)
{
	uint64_t begin = 0, end = 0;
	size_t index = 0;
	int result;

	builder->cfi = calloc(1, sizeof(*builder->cfi));
	if (!builder->cfi || unwind_rows_init(&builder->rows) < 0 || collect_code(builder) < 0 ||
		collect_ranges(builder) < 0)
		return -ENOMEM;
	builder->is_go = is_go_program(builder->file);
	builder->gaps_have_frame_pointers |= builder->is_go;
	find_start(builder);
	array_foreach (&builder->code, code) {
		result = add_code(builder, code, &index);
		if (result < 0)
			return result;
		end = code->end;
	}
	result = elf_file_status(builder->file);
	if (result < 0)
		return result;
	if (builder->code.count)
		begin = builder->code.items[0].begin;
	return unwind_table_write(
		ret_table, &builder->rows, begin, end, elf_file_identity(builder->file));
}

static void builder_done(struct builder *builder)
{
	free(builder->cfi);
	inferrer_free(builder->inferrer);
	unwind_ranges_done(&builder->ranges);
	unwind_rows_done(&builder->rows);
	array_done(&builder->code);
}

int unwind_table_build(struct unwind_table *ret_table, struct elf_file *file,
	struct unwind_build_stats *ret_stats, struct errmsg *err)
{
	_cleanup_(builder_done) struct builder builder = {.file = file};
	int result;

	if (elf_file_machine(file) != ARCH_ELF_MACHINE)
		return errmsg_set(err, -EINVAL,
			"cannot make an unwind table: the file is for another processor "
			"than " ARCH_NAME "; profile on the machine that runs it");
	result = build(&builder, ret_table);
	if (result < 0)
		return errmsg_set(err, result, "cannot make an unwind table of the file: %s",
			elf_file_explain(result));
	if (ret_stats)
		*ret_stats = (struct unwind_build_stats){
			.inferred_functions =
				builder.inferrer ? inferrer_believed(builder.inferrer) : 0,
			.refused_functions =
				builder.inferrer ? inferrer_refused(builder.inferrer) : 0,
			.fde_count = builder.ranges.fde_count,
			.row_count = builder.rows.packed.count,
			.rule_count = builder.rows.rules.count,
			.unsupported_rows =
				builder.unsupported_rows + builder.rows.rules_overflowed,
			.corrupt_fdes = builder.corrupt_fdes + builder.ranges.corrupt_fdes};
	return 0;
}
