/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/python_tables.h"

#include <string.h>

#include "base/macros.h"

/* What all versions share. */
#define COMMON                                                                                     \
	.gil_last_holder = 8, .gil_locked = 16, .gil_bytes = 208, .gil_enabled = PYTHON_ABSENT,    \
	.thread_next = 8, .thread_interpreter = 16, .frame_bytecode_index = PYTHON_ABSENT,         \
	.code_bytecodes = PYTHON_ABSENT, .text_kind_bit = 2
#define CODE_OF_3_11                                                                               \
	.code_file_name = 112, .code_name = 120, .code_qualified_name = 128, .code_line_table = 136
/* All but the shim's owner and the tag comes from _Py_DebugOffsets. */
#define FROM_3_14                                                                                  \
	.frame_style = PYTHON_FRAME_SHIM, .shim_owner = 3, .code_is_tagged = 1,                    \
	.text_is_short = 1, .runtime_finalizing = PYTHON_ABSENT,                                   \
	.runtime_main_interpreter = PYTHON_ABSENT, .runtime_tss_initialized = PYTHON_ABSENT,       \
	.runtime_tss_key = PYTHON_ABSENT, .runtime_current_thread = PYTHON_ABSENT,                 \
	.runtime_gil = PYTHON_ABSENT, .cframe_frame = PYTHON_ABSENT, .code_first_line = 68

/*
 * Printed with offsetof from the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1 and 3.13.0,
 * on x86-64, not debug builds; other 64-bit processors align members alike. What may move between
 * micro versions is checked: names of members by python_find.c in the file, the thread state's key
 * by looking, the rest in the living process.
 */
static const struct python_layout tables[] = {
	{
		COMMON,
		.version = 0x0308,
		.frame_style = PYTHON_FRAME_OBJECTS,
		.runtime_interpreters_head = 32,
		.runtime_finalizing = 16,
		.runtime_main_interpreter = 40,
		.runtime_tss_initialized = 1392,
		.runtime_tss_key = 1396,
		.runtime_current_thread = 1368,
		.runtime_gil = 1152,
		.interpreter_next = 0,
		.interpreter_threads_head = 8,
		.interpreter_gil = PYTHON_ABSENT,
		.thread_ident = 176,
		.thread_native_id = PYTHON_ABSENT,
		.thread_frame = 24,
		.cframe_frame = PYTHON_ABSENT,
		.frame_code = 32,
		.frame_previous = 24,
		.frame_instruction = 104,
		.code_first_line = 40,
		.code_file_name = 104,
		.code_name = 112,
		.code_qualified_name = PYTHON_ABSENT,
		.code_line_table = 120,
		.lasti_unit = 1,
	},
	{
		COMMON,
		.version = 0x0309,
		.frame_style = PYTHON_FRAME_OBJECTS,
		.runtime_interpreters_head = 32,
		.runtime_finalizing = 16,
		.runtime_main_interpreter = 40,
		.runtime_tss_initialized = 584,
		.runtime_tss_key = 588,
		.runtime_current_thread = 568,
		.runtime_gil = 352,
		.interpreter_next = 0,
		.interpreter_threads_head = 8,
		.interpreter_gil = PYTHON_ABSENT,
		.thread_ident = 176,
		.thread_native_id = PYTHON_ABSENT,
		.thread_frame = 24,
		.cframe_frame = PYTHON_ABSENT,
		.frame_code = 32,
		.frame_previous = 24,
		.frame_instruction = 104,
		.code_first_line = 40,
		.code_file_name = 104,
		.code_name = 112,
		.code_qualified_name = PYTHON_ABSENT,
		.code_line_table = 120,
		.lasti_unit = 1,
	},
	{
		COMMON,
		.version = 0x030a,
		.frame_style = PYTHON_FRAME_OBJECTS,
		.runtime_interpreters_head = 32,
		.runtime_finalizing = 16,
		.runtime_main_interpreter = 40,
		.runtime_tss_initialized = 584,
		.runtime_tss_key = 588,
		.runtime_current_thread = 568,
		.runtime_gil = 352,
		.interpreter_next = 0,
		.interpreter_threads_head = 8,
		.interpreter_gil = PYTHON_ABSENT,
		.thread_ident = 176,
		.thread_native_id = PYTHON_ABSENT,
		.thread_frame = 24,
		.cframe_frame = PYTHON_ABSENT,
		.frame_code = 32,
		.frame_previous = 24,
		.frame_instruction = 96,
		.code_first_line = 40,
		.code_file_name = 104,
		.code_name = 112,
		.code_qualified_name = PYTHON_ABSENT,
		.code_line_table = 120,
		.lasti_unit = 2,
	},
	{
		COMMON,
		CODE_OF_3_11,
		.version = 0x030b,
		.frame_style = PYTHON_FRAME_ENTRY_FLAG,
		.runtime_interpreters_head = 40,
		.runtime_finalizing = 24,
		.runtime_main_interpreter = 48,
		.runtime_tss_initialized = 592,
		.runtime_tss_key = 596,
		.runtime_current_thread = 576,
		.runtime_gil = 360,
		.interpreter_next = 0,
		.interpreter_threads_head = 16,
		.interpreter_gil = PYTHON_ABSENT,
		.thread_ident = 152,
		.thread_native_id = 160,
		.thread_frame = 56,
		.cframe_frame = 8,
		.frame_code = 32,
		.frame_previous = 48,
		.frame_instruction = 56,
		.frame_owner = 68,
		.code_first_line = 72,
		.code_instructions = 184,
	},
	{
		COMMON,
		CODE_OF_3_11,
		.version = 0x030c,
		.frame_style = PYTHON_FRAME_SHIM,
		.shim_owner = 3,
		.text_is_short = 1,
		.runtime_interpreters_head = 40,
		.runtime_finalizing = 24,
		.runtime_main_interpreter = 48,
		.runtime_tss_initialized = 1544,
		.runtime_tss_key = 1548,
		.runtime_current_thread = PYTHON_ABSENT,
		.runtime_gil = PYTHON_ABSENT,
		.interpreter_next = 0,
		.interpreter_threads_head = 72,
		.interpreter_gil = 384,
		.thread_ident = 136,
		.thread_native_id = 144,
		.thread_frame = 56,
		.cframe_frame = 0,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_instruction = 56,
		.frame_owner = 70,
		.code_first_line = 68,
		.code_instructions = 192,
	},
	{
		COMMON,
		CODE_OF_3_11,
		.version = 0x030d,
		.frame_style = PYTHON_FRAME_SHIM,
		.shim_owner = 3,
		.text_is_short = 1,
		.runtime_interpreters_head = 632,
		.runtime_finalizing = 608,
		.runtime_main_interpreter = 640,
		.runtime_tss_initialized = 2160,
		.runtime_tss_key = 2164,
		.runtime_current_thread = PYTHON_ABSENT,
		.runtime_gil = PYTHON_ABSENT,
		.interpreter_next = 7264,
		.interpreter_threads_head = 7344,
		.interpreter_gil = 16,
		.thread_ident = 152,
		.thread_native_id = 160,
		.thread_frame = 72,
		.cframe_frame = PYTHON_ABSENT,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_instruction = 56,
		.frame_owner = 70,
		.code_first_line = 68,
		.code_instructions = 200,
	},
	{
		COMMON,
		CODE_OF_3_11,
		FROM_3_14,
		.version = 0x030e,
	},
	{
		COMMON,
		CODE_OF_3_11,
		FROM_3_14,
		.version = 0x030f,
	},
};

const struct python_layout *python_table(uint32_t version)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		if (tables[i].version == version)
			return &tables[i];
	}
	return NULL;
}

/* ---- _Py_DebugOffsets ---- */

#define COOKIE "xdebugpy"

/* Words of the structs that make it up. Interpreter and frame have more from 3.14 on. */
enum { HEADER_WORDS = 3, RUNTIME_WORDS = 3 };

struct offsets_reader {
	const uint8_t *bytes;
	size_t length, at; /* words */
	const char *wrong;
};

static uint64_t word(const struct offsets_reader *reader, size_t index)
{
	uint64_t value = 0;

	if ((reader->at + index + 1) * sizeof(value) <= reader->length)
		memcpy(&value, reader->bytes + (reader->at + index) * sizeof(value), sizeof(value));
	return value;
}

/* Member `index` of the struct at the reader, whose first word is its size. */
static uint16_t member(struct offsets_reader *reader, size_t index, const char *name)
{
	uint64_t offset = word(reader, index), size = word(reader, 0);

	if (size > UINT32_MAX || offset + 4 > size || offset >= PYTHON_ABSENT) {
		reader->wrong = name;
		return PYTHON_ABSENT;
	}
	return (uint16_t)offset;
}

static void read_interpreter(struct offsets_reader *reader, struct python_layout *layout,
	bool has_main_thread, bool is_free_threaded)
{
	size_t skip = has_main_thread ? 1 : 0;
	uint64_t own_gil = word(reader, 9 + skip);

	layout->interpreter_next = member(reader, 2, "interpreter_state.next");
	layout->interpreter_threads_head = member(reader, 3, "interpreter_state.threads_head");
	layout->interpreter_gil = member(reader, 8 + skip, "interpreter_state.ceval_gil");
	layout->gil_locked = (uint16_t)(word(reader, 11 + skip) - own_gil);
	layout->gil_last_holder = (uint16_t)(word(reader, 12 + skip) - own_gil);
	if (is_free_threaded) /* unlike the others from the lock's own begin */
		layout->gil_enabled = (uint16_t)word(reader, 10 + skip);
	if (layout->gil_locked > layout->gil_bytes || layout->gil_last_holder > layout->gil_bytes ||
		(layout->gil_enabled != PYTHON_ABSENT && layout->gil_enabled > layout->gil_bytes))
		reader->wrong = "interpreter_state.gil_runtime_state";
}

/*
 * Py_GIL_DISABLED: each object has an owner, a lock and two counts before its type, and what lies
 * in _PyRuntime beyond its offsets is elsewhere.
 */
static void take_free_threaded(struct python_layout *layout)
{
	layout->object_shift_bytes = 16;
	if (layout->version >= 0x030e)
		layout->text_kind_bit = 8;
	layout->runtime_main_interpreter = PYTHON_ABSENT;
	layout->runtime_tss_initialized = layout->runtime_tss_key = PYTHON_ABSENT;
}

/* A member of code objects without what their heads have more. */
static uint16_t code_member(struct offsets_reader *reader, const struct python_layout *layout,
	size_t index, const char *name)
{
	uint16_t offset = member(reader, index, name);

	if (offset != PYTHON_ABSENT && offset < layout->object_shift_bytes)
		reader->wrong = name;
	return offset == PYTHON_ABSENT ? offset : (uint16_t)(offset - layout->object_shift_bytes);
}

static void read_thread(struct offsets_reader *reader, struct python_layout *layout)
{
	/* 3.15: three words of profilers, four on the lock and exceptions, an item of exceptions.
	 */
	bool is_3_15 = layout->version >= 0x030f;
	size_t id_at = is_3_15 ? 8 : 5;

	layout->thread_next = member(reader, 2, "thread_state.next");
	layout->thread_interpreter = member(reader, 3, "thread_state.interp");
	layout->thread_frame = member(reader, 4, "thread_state.current_frame");
	layout->thread_ident = member(reader, id_at, "thread_state.thread_id");
	layout->thread_native_id = member(reader, id_at + 1, "thread_state.native_thread_id");
	reader->at += is_3_15 ? 17 : 9;
}

const char *python_debug_offsets(
	struct python_layout *layout, uint32_t full_version, const uint8_t *bytes, size_t length)
{
	struct offsets_reader reader = {.bytes = bytes, .length = length};
	bool has_3_14 = layout->version >= 0x030e, is_free_threaded;

	if (length < 8 || memcmp(bytes, COOKIE, 8) != 0)
		return "cookie";
	if (word(&reader, 1) != full_version)
		return "version";
	is_free_threaded = word(&reader, 2) != 0;
	if (is_free_threaded)
		take_free_threaded(layout);
	reader.at = HEADER_WORDS;
	layout->runtime_finalizing = member(&reader, 1, "runtime_state.finalizing");
	layout->runtime_interpreters_head = member(&reader, 2, "runtime_state.interpreters_head");
	reader.at += RUNTIME_WORDS;
	read_interpreter(&reader, layout, has_3_14, is_free_threaded);
	reader.at += has_3_14 ? 16 : 13;
	read_thread(&reader, layout);
	layout->frame_previous = member(&reader, 1, "interpreter_frame.previous");
	layout->frame_code = member(&reader, 2, "interpreter_frame.executable");
	layout->frame_instruction = member(&reader, 3, "interpreter_frame.instr_ptr");
	layout->frame_owner = member(&reader, 5, "interpreter_frame.owner");
	if (is_free_threaded && has_3_14)
		layout->frame_bytecode_index = member(&reader, 7, "interpreter_frame.tlbc_index");
	reader.at += has_3_14 ? 8 : 6;
	layout->code_file_name = code_member(&reader, layout, 1, "code_object.filename");
	layout->code_name = code_member(&reader, layout, 2, "code_object.name");
	layout->code_qualified_name = code_member(&reader, layout, 3, "code_object.qualname");
	layout->code_line_table = code_member(&reader, layout, 4, "code_object.linetable");
	layout->code_first_line = code_member(&reader, layout, 5, "code_object.firstlineno");
	/* co_code_adaptive is the last member, of one byte in some versions. */
	layout->code_instructions = (uint16_t)word(&reader, 9);
	if (is_free_threaded && has_3_14)
		layout->code_bytecodes = member(&reader, 10, "code_object.co_tlbc");
	if (layout->thread_native_id != layout->thread_ident + 8)
		reader.wrong = "thread_state.native_thread_id";
	if (layout->code_name <= layout->code_file_name ||
		layout->code_line_table <= layout->code_name || layout->code_line_table > 144 ||
		layout->code_first_line >= layout->code_file_name)
		reader.wrong = "code_object";
	return reader.wrong;
}
