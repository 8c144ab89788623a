/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where one build of CPython keeps what a Python stack is made of: offsets in its structs, in
 * bytes. Compiled into the BPF programs and into user space.
 */
#pragma once

#include <linux/types.h>

#define PYTHON_ABSENT          0xffff /* this version has no such member */
#define PYTHON_BYTECODES_START 8      /* _PyCodeArray: a count, then pointers */

enum python_frame_style {
	PYTHON_FRAME_OBJECTS = 1, /* 3.8–3.10: PyFrameObject by f_back, one per native evaluation */
	PYTHON_FRAME_ENTRY_FLAG, /* 3.11: _PyInterpreterFrame with is_entry on the outermost one */
	/* 3.12+: a frame whose owner is `shim_owner` stands before each native evaluation's first.
	 */
	PYTHON_FRAME_SHIM,
};

struct python_layout {
	__u32 version; /* PY_VERSION_HEX >> 16: 0x030b */
	__u8 frame_style;
	__u8 shim_owner;
	__u8 code_is_tagged; /* frame's code pointer has tag bits in its low bits (3.14) */
	__u8 text_is_short;  /* str data at 40 instead of 48 (3.12+) */

	/* _PyRuntimeState; those of Py_tss_t's two ints */
	__u16 runtime_interpreters_head;
	__u16 runtime_main_interpreter; /* PYTHON_ABSENT: the list's last */
	__u16 runtime_tss_initialized, runtime_tss_key;
	__u16 runtime_current_thread; /* gilstate.tstate_current: 3.8–3.11 */
	__u16 runtime_gil;            /* ceval.gil inside the runtime: 3.8–3.11 */
	/* PyInterpreterState */
	__u16 interpreter_next, interpreter_threads_head;
	__u16 interpreter_gil; /* pointer to the GIL: 3.12+ */
	/* struct _gil_runtime_state */
	__u16 gil_last_holder, gil_locked, gil_bytes;
	__u16 gil_enabled; /* free-threaded builds: an int, 0 when threads run without the GIL */
	/* PyThreadState */
	__u16 thread_next, thread_interpreter;
	__u16 thread_ident;     /* thread_id: pthread_self() */
	__u16 thread_native_id; /* 3.11+ */
	__u16 thread_frame;     /* frame, cframe (see below) or current_frame */
	__u16 cframe_frame;     /* 3.11, 3.12: current_frame in the _PyCFrame that thread_frame
				   points to */
	/* the frame */
	__u16 frame_code, frame_previous;
	/* PYTHON_FRAME_OBJECTS: f_lasti, an int. Else the pointer to an instruction. */
	__u16 frame_instruction;
	__u16 frame_owner; /* is_entry (3.11) or owner (3.12+), one byte */
	/* 3.14 without the GIL: which of the code's copies for threads instr_ptr points into */
	__u16 frame_bytecode_index;
	/* PyCodeObject; all but the last two without object_shift_bytes */
	__u16 code_first_line, code_file_name, code_name, code_qualified_name, code_line_table;
	__u16 code_instructions; /* co_code_adaptive: 3.11+ */
	__u16 code_bytecodes;    /* co_tlbc: copies of the instructions, 3.14 without the GIL */
	/* f_lasti counts instructions of 2 bytes (3.10), else bytes. */
	__u16 lasti_unit;
	/* _PyRuntimeState, again: a pointer that is set while the interpreter ends. */
	__u16 runtime_finalizing;
	/* How much longer than 16 bytes the head of an object is: 16 in free-threaded builds. */
	__u16 object_shift_bytes;
	__u16 text_kind_bit; /* of PyASCIIObject.state, where kind begins */
	__u16 reserved;
};

_Static_assert(sizeof(struct python_layout) == 80, "python_layout has no hidden padding");

#define PYTHON_MAX_EVAL_RANGES 8

struct python_range {
	__u64 start, end;
};

/* Of one process image: addresses in the target. */
struct python_target {
	struct python_layout layout;
	__u64 runtime; /* _PyRuntime */
	__u32 tss_key; /* once found out by looking (see python_find_key()): key + 1; 0: unknown */
	__u32 interpreter; /* number of this image: names code objects in records */
};

/* The same with the code that evaluates Python: unused ranges are empty. */
struct python_image_facts {
	struct python_target target;
	struct python_range eval[PYTHON_MAX_EVAL_RANGES];
};

/* The part of a code object that tells it from others: from this offset on, PYTHON_CODE_BYTES. */
#define PYTHON_CODE_START 16 /* and object_shift_bytes */
#define PYTHON_CODE_BYTES 128
/* PyASCIIObject.hash, of all versions; and object_shift_bytes */
#define PYTHON_TEXT_HASH 24

static inline __attribute__((always_inline)) __u64 python_code_word(
	const __u8 *window, __u32 code_offset)
{
	const __u8 *at = window + ((code_offset - PYTHON_CODE_START) & (PYTHON_CODE_BYTES - 1));

#ifdef __bpf__ /* one load; clang would make eight of a memcpy */
	return *(const __u64 *)at;
#else
	__u64 word;

	__builtin_memcpy(&word, at, sizeof(word));
	return word;
#endif
}

static inline __attribute__((always_inline)) __u64 python_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/*
 * What a code object's address stands for may change; this tells, also when all of the new one's
 * parts lie where the old one's did: it takes in the name's hash, the sizes and counts at the
 * object's start, the first line, and the pointers to file name, name and line table. `window` has
 * 8 bytes more than PYTHON_CODE_BYTES. Never 0.
 */
static inline __attribute__((always_inline)) __u32 python_code_check(
	const struct python_layout *layout, const __u8 *window, __u64 name_hash)
{
	__u64 hash = python_mix(name_hash, python_code_word(window, PYTHON_CODE_START));

	hash = python_mix(hash, python_code_word(window, PYTHON_CODE_START + 8));
	hash = python_mix(hash, python_code_word(window, PYTHON_CODE_START + 16));
	hash = python_mix(hash, python_code_word(window, layout->code_file_name));
	hash = python_mix(hash, python_code_word(window, layout->code_name));
	hash = python_mix(hash, python_code_word(window, layout->code_line_table));
	hash = python_mix(hash, (__u32)python_code_word(window, layout->code_first_line));
	hash ^= hash >> 32;
	return (__u32)hash ? (__u32)hash : 1;
}
