/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/infer.h"

#include <assert.h>
#include <errno.h>

#include "unwind/code_function.h"
#include "unwind/frame_state.h"
#include "unwind/function_starts.h"

/* Facts are only ever taken away, so a loop nest settles in a few rounds. */
#define MAX_ROUNDS 16
/*
 * Instructions to look at per byte of code, all rounds together; real code takes about ten. Only
 * code made to keep us busy needs more.
 */
#define WORK_PER_BYTE 64
/* Functions between two looks at the file's limits. */
#define FUNCTIONS_AT_A_TIME 64

struct inferrer {
	struct elf_file *file;
	struct function_starts starts;
	uint64_t believed, refused, looked_at;
	const struct unwind_rule *unknown;
	uint64_t work_left;

	struct code_function function;      /* the one at hand; its joins are index + 1 of these: */
	ARRAY_OF(struct frame_state) joins; /* where branches meet */
};

struct sweep {
	struct inferrer *inferrer;
	struct frame_state state;
	bool is_reached;     /* `state` holds */
	bool changed;        /* another round is needed */
	bool has_proof;      /* the stack was found balanced at an exit, or aligned at a call */
	bool callees_pop;    /* called functions may take their arguments off the stack */
	bool guesses;        /* code that nothing is seen to reach gets a state too */
	bool believes_calls; /* one with an aligned stack is a proof */
	struct frame_state at_table_jump; /* the latest indirect jump's */
	bool has_table_jump;
	struct unwind_rows *rows; /* NULL: only follow */
};

int inferrer_new(struct inferrer **ret_inferrer, struct elf_file *file)
{
	struct inferrer *inferrer = calloc(1, sizeof(*inferrer));

	if (!inferrer)
		return -ENOMEM;
	inferrer->file = file;
	if (function_starts_read(&inferrer->starts, file) < 0) {
		inferrer_free(inferrer);
		return -ENOMEM;
	}
	*ret_inferrer = inferrer;
	return 0;
}

struct inferrer *inferrer_free(struct inferrer *inferrer)
{
	if (!inferrer)
		return NULL;
	function_starts_done(&inferrer->starts);
	code_function_done(&inferrer->function);
	array_done(&inferrer->joins);
	free(inferrer);
	return NULL;
}

uint64_t inferrer_believed(const struct inferrer *inferrer)
{
	return inferrer->believed;
}

uint64_t inferrer_refused(const struct inferrer *inferrer)
{
	return inferrer->refused;
}

/* Brings `state` to the instruction. Returns 0, -ENOMEM, or -EINVAL for a contradiction. */
static int join(
	struct sweep *sweep, struct code_instruction *instruction, const struct frame_state *state)
{
	struct inferrer *inferrer = sweep->inferrer;
	int result;

	if (!instruction->join) {
		if (array_append(&inferrer->joins, *state) < 0)
			return -ENOMEM;
		instruction->join = (uint32_t)inferrer->joins.count;
		sweep->changed = true;
		return 0;
	}
	result = frame_state_merge(&inferrer->joins.items[instruction->join - 1], state);
	sweep->changed |= result > 0;
	return result < 0 ? result : 0;
}

/* True when a function is known to start there, or may by its alignment. */
static bool may_be_start(const struct inferrer *inferrer, uint64_t vaddr)
{
	return vaddr % ARCH_FUNCTION_ALIGNMENT == 0 ||
	       function_starts_has(&inferrer->starts, vaddr);
}

/*
 * A branch out of the function must be a call in tail position, of another function and with
 * nothing on the stack: else this is a piece that was moved out of a function, and begins in the
 * middle of its frame.
 */
static int branch(struct sweep *sweep, uint64_t target)
{
	struct inferrer *inferrer = sweep->inferrer;
	struct code_instruction *instruction = code_function_at(&inferrer->function, target);

	if (instruction)
		return join(sweep, instruction, &sweep->state);
	if (target >= inferrer->function.begin && target < inferrer->function.end)
		return -EINVAL; /* into the middle of an instruction */
	sweep->has_proof |= frame_state_can_return(&sweep->state) &&
			    function_starts_has(&inferrer->starts, target);
	return frame_state_cannot_return(&sweep->state) || !may_be_start(inferrer, target) ? -EINVAL
											   : 0;
}

/*
 * Nothing was seen to reach this instruction: it is a case of the latest jump through a table, or,
 * when aligned as functions are, the start of a function that has no symbol. The function at hand
 * is cut there.
 */
static int guess(struct sweep *sweep, struct code_instruction *instruction)
{
	uint64_t vaddr = sweep->inferrer->function.begin + instruction->offset;

	if (!sweep->guesses || instruction->decoded.effect == ARCH_PADDING)
		return 0;
	if (sweep->has_table_jump)
		return join(sweep, instruction, &sweep->at_table_jump);
	return vaddr % ARCH_FUNCTION_ALIGNMENT == 0 && !sweep->inferrer->function.has_symbol
		       ? -ERANGE
		       : 0;
}

static int add_row(struct sweep *sweep, const struct code_instruction *instruction)
{
	struct inferrer *inferrer = sweep->inferrer;
	uint64_t vaddr = inferrer->function.begin + instruction->offset;
	struct unwind_rule rule = *inferrer->unknown;

	if (!sweep->is_reached && instruction->decoded.effect == ARCH_PADDING)
		return 0;
	if (sweep->is_reached && !frame_state_to_rule(&sweep->state, &rule))
		rule = *inferrer->unknown;
	return unwind_rows_add(sweep->rows, vaddr, &rule);
}

/* What follows the instruction: branches, and whether the next one is reached. */
static int leave_instruction(struct sweep *sweep, const struct arch_instruction *instruction)
{
	switch (instruction->effect) {
	case ARCH_JUMP:
	case ARCH_JUMP_IF:
		sweep->is_reached = instruction->effect == ARCH_JUMP_IF;
		return branch(sweep, (uint64_t)instruction->value);
	case ARCH_JUMP_INDIRECT:
		sweep->at_table_jump = sweep->state;
		/* With an empty stack it is a call in tail position as a rule. */
		sweep->has_table_jump = frame_state_cannot_return(&sweep->state);
		sweep->is_reached = false;
		return 0;
	case ARCH_RETURN:
		sweep->is_reached = false;
		sweep->has_proof |= frame_state_can_return(&sweep->state);
		return frame_state_cannot_return(&sweep->state) ? -EINVAL : 0;
	case ARCH_LOAD:
		if (!instruction->has_pair)
			return 0;
		/* fall through */
	case ARCH_POP:
	case ARCH_LEAVE:
		/* The caller's frame pointer is back, and the return address is next. */
		sweep->has_proof |=
			instruction->reg == ARCH_FP && frame_state_can_return(&sweep->state);
		return 0;
	case ARCH_TRAP:
		sweep->is_reached = false;
		return 0;
	default:
		return 0;
	}
}

/*
 * A function that never returns, as a thread's first one: that it calls a known function, with the
 * stack aligned as the ABI has it at a call, is what there is to go by.
 */
static bool is_sound_call(const struct sweep *sweep, const struct arch_instruction *instruction)
{
	int32_t depth = sweep->state.to_cfa[ARCH_SP];

	return instruction->effect == ARCH_CALL && depth != FRAME_UNKNOWN &&
	       depth > ARCH_ENTRY_CFA && depth % 16 == 0 &&
	       function_starts_has(&sweep->inferrer->starts, (uint64_t)instruction->value);
}

static int visit(struct sweep *sweep, struct code_instruction *instruction)
{
	int result = 0;

	if (instruction->join && sweep->is_reached)
		result = join(sweep, instruction, &sweep->state);
	else if (!sweep->is_reached && !instruction->join)
		result = guess(sweep, instruction);
	if (result < 0)
		return result;
	if (instruction->join) {
		sweep->state = sweep->inferrer->joins.items[instruction->join - 1];
		sweep->is_reached = true;
	}
	if (sweep->rows)
		result = add_row(sweep, instruction);
	if (result < 0 || !sweep->is_reached)
		return result;
	sweep->has_proof |= sweep->believes_calls && is_sound_call(sweep, &instruction->decoded);
	frame_state_apply(&sweep->state, &instruction->decoded);
	if (sweep->callees_pop && instruction->decoded.effect == ARCH_CALL)
		frame_state_after_popping_call(&sweep->state);
	return leave_instruction(sweep, &instruction->decoded);
}

/* One round over the function, in the order of addresses. */
static int run_sweep(struct sweep *sweep)
{
	struct inferrer *inferrer = sweep->inferrer;
	struct code_function *function = &inferrer->function;
	int result = 0;

	sweep->state = frame_state_at_entry();
	sweep->is_reached = true;
	sweep->has_table_jump = false;
	sweep->changed = sweep->has_proof = false;
	if (inferrer->work_left < function->instructions.count)
		return -EINVAL;
	inferrer->work_left -= function->instructions.count;
	for (size_t i = 0; result == 0 && i < function->instructions.count; i++)
		result = visit(sweep, &function->instructions.items[i]);
	return result;
}

/*
 * Follows the function until nothing changes any more. Returns 0, -ENOMEM, -EINVAL when it makes no
 * sense, or -ERANGE when another function starts in it.
 */
static int settle(struct sweep *sweep)
{
	for (int round = 0; round < MAX_ROUNDS; round++) {
		int result = run_sweep(sweep);

		if (result < 0)
			return result;
		if (!sweep->changed && sweep->guesses)
			return sweep->has_proof ? 0 : -EINVAL;
		sweep->guesses |= !sweep->changed;
	}
	return -EINVAL;
}

static void forget_joins(struct inferrer *inferrer)
{
	array_clear(&inferrer->joins);
	array_foreach (&inferrer->function.instructions, instruction)
		instruction->join = 0;
}

/* Ends the function before the first aligned instruction that nothing reaches; there is one. */
static void cut(struct inferrer *inferrer)
{
	struct code_function *function = &inferrer->function;
	bool is_reached = true;
	size_t kept = 0;

	for (; kept < function->instructions.count; kept++) {
		const struct code_instruction *instruction = &function->instructions.items[kept];

		is_reached |= instruction->join != 0;
		if (!is_reached && instruction->decoded.effect != ARCH_PADDING &&
			(function->begin + instruction->offset) % ARCH_FUNCTION_ALIGNMENT == 0)
			break;
		is_reached &= !code_ends_flow(&instruction->decoded);
	}
	assert(kept < function->instructions.count);
	code_function_cut(function, kept);
	forget_joins(inferrer);
}

/* True when the last instruction goes on into bytes that are none. */
static bool runs_off(const struct code_function *function, uint64_t limit)
{
	const struct code_instruction *last =
		&function->instructions.items[function->instructions.count - 1];

	return function->end < limit && !code_ends_flow(&last->decoded);
}

/* Settles the function, or its first part when another one starts in it. */
static int try_to_settle(struct sweep *sweep, bool callees_pop)
{
	struct inferrer *inferrer = sweep->inferrer;
	int result;

	*sweep = (struct sweep){.inferrer = inferrer, .callees_pop = callees_pop};
	forget_joins(inferrer);
	result = settle(sweep);
	if (result != -ERANGE)
		return result;
	cut(inferrer);
	*sweep = (struct sweep){.inferrer = inferrer, .callees_pop = callees_pop};
	result = settle(sweep);
	return result == -ERANGE ? -EINVAL : result;
}

static bool has_branch_to(const struct code_function *function, uint64_t vaddr)
{
	array_foreach (&function->instructions, instruction) {
		if ((instruction->decoded.effect == ARCH_JUMP ||
			    instruction->decoded.effect == ARCH_JUMP_IF) &&
			(uint64_t)instruction->decoded.value == vaddr)
			return true;
	}
	return false;
}

/*
 * A call that does not return may be a function's end: what is padded to the next aligned
 * instruction, to which no branch leads, is another function. True when one was cut off.
 */
static bool cut_behind_call(struct inferrer *inferrer)
{
	struct code_function *function = &inferrer->function;
	const struct code_instruction *items = function->instructions.items;
	unsigned tries = MAX_ROUNDS;

	for (size_t i = 1; i < function->instructions.count && tries; i++) {
		uint64_t start;
		size_t next;

		if (items[i - 1].decoded.effect != ARCH_CALL ||
			items[i].decoded.effect != ARCH_PADDING)
			continue;
		/* Long spaces are filled by several nops. */
		next = i + 1;
		while (next < function->instructions.count &&
			items[next].decoded.effect == ARCH_PADDING)
			next++;
		if (next == function->instructions.count)
			return false;
		start = function->begin + items[next].offset;
		if (start % ARCH_FUNCTION_ALIGNMENT)
			continue;
		tries--;
		if (has_branch_to(function, start))
			continue;
		code_function_cut(function, i);
		return true;
	}
	return false;
}

/* A function that never returns, or one that another was taken for a part of. */
static int settle_without_return(struct sweep *sweep)
{
	struct inferrer *inferrer = sweep->inferrer;
	int result = -EINVAL;

	if (cut_behind_call(inferrer))
		result = try_to_settle(sweep, false);
	if (result != -EINVAL)
		return result;
	*sweep = (struct sweep){.inferrer = inferrer, .believes_calls = true};
	forget_joins(inferrer);
	result = settle(sweep);
	return result == -ERANGE ? -EINVAL : result;
}

static int infer_function(struct inferrer *inferrer, struct unwind_rows *rows, uint64_t limit)
{
	struct sweep sweep = {.inferrer = inferrer};
	size_t row_count = rows->packed.count;
	int result = -EINVAL;

	if (!runs_off(&inferrer->function, limit)) {
		result = try_to_settle(&sweep, false);
		if (result == -EINVAL)
			result = try_to_settle(&sweep, true);
		if (result == -EINVAL)
			result = settle_without_return(&sweep);
	}
	if (result == 0) {
		sweep.rows = rows;
		result = run_sweep(&sweep);
	}
	if (result == 0)
		inferrer->believed++;
	if (result != -EINVAL)
		return result;
	inferrer->refused++;
	rows->packed.count = MIN(row_count, rows->packed.count);
	return unwind_rows_add(rows, inferrer->function.begin, inferrer->unknown);
}

/* The function at `at`, or what lies there instead, up to `limit` at most. Moves *at behind it. */
static int infer_at(struct inferrer *inferrer, struct unwind_rows *rows, const uint8_t *code,
	uint64_t *at, uint64_t limit, bool has_symbol)
{
	struct code_function *function = &inferrer->function;

	if (code_function_read(function, code, *at, limit, has_symbol) < 0)
		return -ENOMEM;
	if (function->instructions.count) {
		int result = infer_function(inferrer, rows, limit);

		*at = function->end;
		return result;
	}
	/* No code at all, constants perhaps: go on where a function may start. */
	if (unwind_rows_add(rows, *at, inferrer->unknown) < 0)
		return -ENOMEM;
	*at = MIN(limit, (*at | (ARCH_FUNCTION_ALIGNMENT - 1)) + 1);
	return 0;
}

/*
 * Makes `code` cover the function at `at`, however long it is. False when the file has no more
 * bytes there.
 */
static bool cover(struct inferrer *inferrer, uint64_t at, uint64_t end, struct elf_bytes *code)
{
	uint64_t code_end = code->vaddr + code->length;

	if (code->length && (code_end >= end || at + CODE_FUNCTION_MAX_BYTES <= code_end))
		return at < code_end;
	return elf_file_window(inferrer->file, at, end - at, code);
}

int inferrer_add_rows(struct inferrer *inferrer, struct unwind_rows *rows, uint64_t begin,
	uint64_t end, const struct unwind_rule *unknown)
{
	uint64_t present = elf_file_loaded_length(inferrer->file, begin), at = begin;
	struct elf_bytes code = {0};

	inferrer->unknown = unknown;
	end = MIN(end, begin + present);
	inferrer->work_left = (end - begin) * WORK_PER_BYTE;
	while (at < end && cover(inferrer, at, end, &code)) {
		uint64_t code_end = MIN(end, code.vaddr + code.length), limit;
		bool has_symbol;
		int result;

		at = code_skip_padding(code.bytes + (at - code.vaddr), at, code_end);
		if (at == code_end)
			continue;
		limit = function_starts_next(&inferrer->starts, at, code_end);
		has_symbol = limit < code_end || function_starts_has(&inferrer->starts, at);
		result = infer_at(
			inferrer, rows, code.bytes + (at - code.vaddr), &at, limit, has_symbol);
		if (result == 0 && ++inferrer->looked_at % FUNCTIONS_AT_A_TIME == 0)
			result = elf_file_status(inferrer->file);
		if (result < 0)
			return result;
	}
	return 0;
}
