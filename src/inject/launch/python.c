/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/launch/python.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "wire/launch.h"

static uint64_t word_at(uint64_t address)
{
	uint64_t word;

	memcpy(&word, (const void *)(uintptr_t)address, sizeof(word));
	return word;
}

static bool read_safely(uint64_t address, uint64_t *ret_word)
{
	struct iovec local = {.iov_base = ret_word, .iov_len = sizeof(*ret_word)};
	struct iovec remote = {
		.iov_base = (void *)(uintptr_t)address, .iov_len = sizeof(*ret_word)};

	return syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0) ==
	       (long)sizeof(*ret_word);
}

bool launch_python_is_there(const struct python_target *target)
{
	const struct python_layout *layout = &target->layout;
	uint64_t interpreter = 0, thread = 0, owner = 0;

	return target->tss_key && layout->runtime_finalizing != PYTHON_ABSENT &&
	       read_safely(target->runtime + layout->runtime_interpreters_head, &interpreter) &&
	       interpreter &&
	       read_safely(interpreter + layout->interpreter_threads_head, &thread) && thread &&
	       read_safely(thread + layout->thread_interpreter, &owner) && owner == interpreter;
}

enum wire_python launch_python_first_frame(const struct python_target *target, uint64_t *ret_frame)
{
	const struct python_layout *layout = &target->layout;
	uint64_t interpreter = word_at(target->runtime + layout->runtime_interpreters_head);
	uint64_t thread, frame;

	*ret_frame = 0;
	/* Whoever ends the interpreter frees the states of other threads. */
	if (word_at(target->runtime + layout->runtime_finalizing) || !interpreter ||
		word_at(interpreter + layout->interpreter_next))
		return WIRE_PYTHON_UNKNOWN;
	thread = (uint64_t)(uintptr_t)pthread_getspecific(target->tss_key - 1);
	if (!thread || word_at(thread + layout->thread_ident) != (uint64_t)pthread_self())
		return WIRE_PYTHON_NO_STATE;
	if (word_at(thread + layout->thread_interpreter) != interpreter)
		return WIRE_PYTHON_UNKNOWN;
	frame = word_at(thread + layout->thread_frame);
	if (layout->cframe_frame != PYTHON_ABSENT && frame)
		frame = word_at(frame + layout->cframe_frame);
	*ret_frame = frame;
	return frame ? WIRE_PYTHON_FRAMES : WIRE_PYTHON_NO_FRAMES;
}

/* ---- one frame ---- */

static bool is_shim(const struct python_layout *layout, uint64_t frame)
{
	return layout->frame_style == PYTHON_FRAME_SHIM &&
	       (uint8_t)word_at(frame + layout->frame_owner) == layout->shim_owner;
}

static uint64_t code_of(const struct python_layout *layout, uint64_t frame)
{
	uint64_t code = word_at(frame + layout->frame_code);

	return layout->code_is_tagged ? code & ~7ULL : code;
}

/* What code objects and texts are read from: members lie at the same offsets in all builds then. */
static uint64_t members_of(const struct python_layout *layout, uint64_t object)
{
	return object + layout->object_shift_bytes;
}

/* A pointer to the instruction, or its number. */
static uint64_t instruction_of(const struct python_layout *layout, uint64_t frame)
{
	uint64_t instruction = word_at(frame + layout->frame_instruction);

	return layout->frame_style == PYTHON_FRAME_OBJECTS ? (uint32_t)instruction : instruction;
}

/* Where the instructions that the frame runs begin: the code's own, or a copy for some threads. */
static uint64_t first_instruction(const struct python_layout *layout, uint64_t frame, uint64_t code)
{
	int32_t index = layout->frame_bytecode_index == PYTHON_ABSENT
				? 0
				: (int32_t)word_at(frame + layout->frame_bytecode_index);

	return index > 0 ? word_at(word_at(code + layout->code_bytecodes) + PYTHON_BYTECODES_START +
				   8 * (uint64_t)index)
			 : code + layout->code_instructions;
}

static int32_t offset_of(const struct python_layout *layout, uint64_t frame, uint64_t code)
{
	uint64_t instruction = instruction_of(layout, frame);
	int64_t offset = layout->frame_style == PYTHON_FRAME_OBJECTS
				 ? (int64_t)(int32_t)instruction * layout->lasti_unit
				 : (int64_t)(instruction - first_instruction(layout, frame, code));

	return offset < 0 || offset > INT32_MAX ? -1 : (int32_t)offset;
}

/* ---- what a code object is ---- */

#define OBJECT_LENGTH_AT 16 /* of str and bytes objects */
#define BYTES_DATA_AT    32
#define HASHED_BYTES     256 /* the last ones of longer texts */

static uint64_t hash_words(uint64_t hash, uint64_t address, uint64_t bytes)
{
	if (bytes > HASHED_BYTES) {
		address += bytes - HASHED_BYTES;
		bytes = HASHED_BYTES;
	}
	for (; bytes >= sizeof(uint64_t); address += sizeof(uint64_t), bytes -= sizeof(uint64_t))
		hash = python_mix(hash, word_at(address));
	for (; bytes; address++, bytes--)
		hash = python_mix(hash, *(const uint8_t *)(uintptr_t)address);
	return hash;
}

/* A text's characters where they are ASCII; else what lies there is of the same object, too. */
static uint64_t hash_object(
	const struct python_layout *layout, uint64_t hash, uint64_t object, uint64_t data_at)
{
	uint64_t members = members_of(layout, object);
	uint64_t length = object ? word_at(members + OBJECT_LENGTH_AT) : 0;

	return object ? hash_words(python_mix(hash, length), members + data_at, length) : hash;
}

static uint64_t hash_code(const struct python_layout *layout, const struct launch_python_code *code)
{
	uint64_t text_at = layout->text_is_short ? 40 : 48;
	uint64_t hash = hash_object(layout, code->first_line, code->name, text_at);
	uint64_t lines = word_at(members_of(layout, code->code) + layout->code_line_table);

	hash = hash_object(layout, hash, code->file_name, text_at);
	return hash_object(layout, hash, lines, BYTES_DATA_AT);
}

static uint64_t content_of(
	const struct python_layout *layout, struct launch_python_codes *codes, uint64_t address)
{
	struct launch_python_code *known =
		&codes->known[address * 0x9e3779b97f4a7c15ULL >> 56 & (LAUNCH_PYTHON_CODES - 1)];
	uint32_t name_at = layout->code_qualified_name == PYTHON_ABSENT
				   ? layout->code_name
				   : layout->code_qualified_name;
	uint64_t members = members_of(layout, address);
	struct launch_python_code code = {
		.code = address,
		.name = word_at(members + name_at),
		.file_name = word_at(members + layout->code_file_name),
		.first_line = (uint32_t)word_at(members + layout->code_first_line),
	};

	if (known->code != address || known->name != code.name ||
		known->file_name != code.file_name || known->first_line != code.first_line) {
		code.hash = hash_code(layout, &code);
		*known = code;
	}
	return known->hash;
}

/* ---- all of them ---- */

bool launch_python_hash(const struct python_target *target, struct launch_python_codes *codes,
	uint64_t frame, uint64_t *ret_hash)
{
	const struct python_layout *layout = &target->layout;
	uint64_t hash = 0, code;
	uint32_t count = 0;

	for (; frame && count < WIRE_LAUNCH_PYTHON_FRAMES;
		frame = word_at(frame + layout->frame_previous)) {
		if (is_shim(layout, frame))
			continue;
		code = code_of(layout, frame);
		hash = python_mix(hash ^ content_of(layout, codes, code),
			(uint32_t)offset_of(layout, frame, code));
		count++;
	}
	*ret_hash = hash;
	return !frame;
}

static void fill_frame(const struct python_layout *layout, uint64_t frame, uint64_t code,
	struct wire_python_frame *out)
{
	uint64_t members = members_of(layout, code);
	uint64_t name = word_at(members + layout->code_name);
	bool is_entry = layout->frame_style == PYTHON_FRAME_OBJECTS ||
			(layout->frame_style == PYTHON_FRAME_ENTRY_FLAG &&
				(uint8_t)word_at(frame + layout->frame_owner));

	*out = (struct wire_python_frame){
		.code = code,
		.check = python_code_check(layout,
			(const uint8_t *)(uintptr_t)(members + PYTHON_CODE_START),
			word_at(members_of(layout, name) + PYTHON_TEXT_HASH)),
		.offset = offset_of(layout, frame, code),
		.flags = is_entry ? WIRE_PYTHON_ENTRY : 0,
	};
}

uint16_t launch_python_frames(const struct python_target *target, uint64_t frame,
	struct wire_python_frame *ret_frames, enum wire_python *ret_reason)
{
	const struct python_layout *layout = &target->layout;
	uint16_t count = 0;

	for (; frame && count < WIRE_LAUNCH_PYTHON_FRAMES;
		frame = word_at(frame + layout->frame_previous)) {
		if (!is_shim(layout, frame))
			fill_frame(layout, frame, code_of(layout, frame), &ret_frames[count++]);
		else if (count)
			ret_frames[count - 1].flags |= WIRE_PYTHON_ENTRY;
	}
	if (count && !frame)
		ret_frames[count - 1].flags |= WIRE_PYTHON_ENTRY;
	*ret_reason = frame ? WIRE_PYTHON_DEPTH : WIRE_PYTHON_FRAMES;
	return count;
}

/* ---- names and lines ---- */

/* The longest header of a str object, and the widest of its characters. */
#define TEXT_HEADER_BYTES 72
#define TEXT_CHARACTER    4

/* What can be read of it, up to `bytes`: where an object ends its memory may end. */
static uint32_t copy_piece(struct wire_python_code *record, uint64_t address, uint64_t bytes)
{
	unsigned char *to = (unsigned char *)record + record->record.length_bytes;
	struct iovec local = {.iov_base = to, .iov_len = bytes};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
	long got = syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0);
	uint32_t length = got > 0 ? (uint32_t)got : 0;

	memset(to + length, 0, -length & 7);
	record->record.length_bytes += (length + 7) & ~7U;
	return length;
}

static uint32_t copy_text(
	const struct python_layout *layout, struct wire_python_code *record, uint64_t object)
{
	uint64_t text = members_of(layout, object);
	uint64_t bytes = TEXT_HEADER_BYTES + TEXT_CHARACTER * word_at(text + OBJECT_LENGTH_AT);

	return copy_piece(
		record, text, bytes < WIRE_PYTHON_TEXT_BYTES ? bytes : WIRE_PYTHON_TEXT_BYTES);
}

void launch_python_code(const struct python_target *target, const struct wire_python_frame *frame,
	uint64_t time_ns, struct wire_python_code *ret_record)
{
	const struct python_layout *layout = &target->layout;
	uint64_t members = members_of(layout, frame->code);
	uint64_t table = members_of(layout, word_at(members + layout->code_line_table));
	uint64_t bytes = BYTES_DATA_AT + word_at(table + OBJECT_LENGTH_AT);

	*ret_record = (struct wire_python_code){
		.record = {.type = WIRE_RECORD_PYTHON_CODE, .length_bytes = sizeof(*ret_record)},
		.time_ns = time_ns,
		.code = frame->code,
		.check = frame->check,
		.interpreter = target->interpreter,
		.first_line = (uint32_t)word_at(members + layout->code_first_line),
	};
	ret_record->piece_bytes[0] =
		copy_text(layout, ret_record, word_at(members + layout->code_file_name));
	ret_record->piece_bytes[1] =
		copy_text(layout, ret_record, word_at(members + layout->code_name));
	if (layout->code_qualified_name != PYTHON_ABSENT)
		ret_record->piece_bytes[2] = copy_text(
			layout, ret_record, word_at(members + layout->code_qualified_name));
	ret_record->piece_bytes[3] = copy_piece(ret_record, table,
		bytes < WIRE_PYTHON_LINES_BYTES ? bytes : WIRE_PYTHON_LINES_BYTES);
}
