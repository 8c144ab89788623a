/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Python frames: from the thread's state through the interpreter's frames, by the offsets of
 * unwind/python_layout.h. Native and Python frames are put in one order by the collector, which
 * knows where the interpreter's evaluation function lies. Compiled into the BPF programs
 * (bpf/python.bpf.h) and into user space (sources/stopped/python_frames.c). The includer defines,
 * before including this file:
 *
 *   struct walk, struct scratch, struct python_scratch, frame_place()   as in bpf/unwinder.bpf.h
 *   READ_USER(task, to, size, address)       reads memory of the task's process; 0 on success
 *   PYTHON_LOOP(count, function, context)    calls it with 0, 1, … until it returns other than 0
 *   PYTHON_THREAD_POINTER(task)              the register that thread-local storage is found by
 *   PYTHON_SEEN_CODE(walk, code, check)      a frame runs this code object
 */
#pragma once

/*
 * The includer may say that its stacks are taken when the wait is over: who had the lock last then
 * had it meanwhile, though it has let go of it.
 */
#ifndef PYTHON_WAIT_IS_OVER
#define PYTHON_WAIT_IS_OVER 0
#endif

/* glibc's struct pthread has two words per key, sequence number and value. */
#define PTHREAD_KEYS_IN_TABLE 32
#define PTHREAD_MAX_KEYS      1024

#define MAX_PYTHON_THREADS 512
#define MAX_INTERPRETERS   64
/* At most one shim stands before each frame. */
#define MAX_PYTHON_STEPS (2 * WIRE_MAX_PYTHON_DEPTH)

static __noinline int read_user_u64(struct walk *walk, __u64 address, __u64 *ret_value)
{
	return READ_USER(walk->task, ret_value, sizeof(*ret_value), address);
}

static __always_inline __u64 word_at(const __u8 *window, __u32 offset)
{
	return *(const __u64 *)(window + (offset & (PYTHON_WINDOW_BYTES - 1)));
}

/* ---- the thread's state ---- */

/* Looks through the threads of one interpreter, or from one on of all that were made before. */
struct thread_search {
	struct walk *walk;
	__u64 interpreter_at; /* where the next one is named; 0: no more */
	__u64 at;
	__u64 found;
};

/* More than the frame at the thread's base, which is there from 3.15 on when nothing runs, too. */
static __noinline int runs_python(struct walk *walk, __u64 thread)
{
	const struct python_layout *layout = &walk->python->layout;
	__u64 frame = 0, previous = 0;

	return !read_user_u64(walk, thread + layout->thread_frame, &frame) && frame &&
	       !read_user_u64(walk, frame + layout->frame_previous, &previous) && previous;
}

static long compare_thread(__u32 index, struct thread_search *search)
{
	const struct python_layout *layout = &search->walk->python->layout;
	__u64 at = search->at, next = 0;

	if (!at) {
		if (!search->interpreter_at ||
			read_user_u64(search->walk, search->interpreter_at, &next) || !next)
			return 1;
		search->interpreter_at = next + layout->interpreter_next;
		return read_user_u64(search->walk, next + layout->interpreter_threads_head,
			       &search->at) != 0;
	}
	if (read_user_u64(search->walk, at + layout->thread_ident, &next))
		return 1;
	if (next == search->walk->scratch->python.thread_pointer) {
		search->found = at;
		if (!search->interpreter_at || runs_python(search->walk, at))
			return 1;
		search->at = 0;
		return 0;
	}
	return read_user_u64(search->walk, at + layout->thread_next, &search->at) != 0;
}

/* This thread's state in an interpreter, by its list; 0 when it has none. */
static __noinline __u64 find_thread(struct walk *walk, __u64 interpreter)
{
	struct thread_search search = {.walk = walk};

	if (read_user_u64(
		    walk, interpreter + walk->python->layout.interpreter_threads_head, &search.at))
		return 0;
	PYTHON_LOOP(MAX_PYTHON_THREADS, compare_thread, &search);
	return search.found;
}

/* In the newest interpreter that the thread runs code of; else in the main one. */
static __noinline __u64 find_running_thread(struct walk *walk)
{
	const struct python_target *python = walk->python;
	struct thread_search search = {
		.walk = walk,
		.interpreter_at = python->runtime + python->layout.runtime_interpreters_head,
	};

	PYTHON_LOOP(MAX_PYTHON_THREADS, compare_thread, &search);
	return search.found;
}

/* The main interpreter is the first that was made: the list's last. */
static __noinline __u64 main_interpreter(struct walk *walk)
{
	const struct python_target *python = walk->python;
	__u32 at = python->layout.runtime_main_interpreter;
	__u64 interpreter = 0, next = 0;

	if (at != PYTHON_ABSENT) {
		read_user_u64(walk, python->runtime + at, &interpreter);
		return interpreter;
	}
	next = python->runtime + python->layout.runtime_interpreters_head;
	for (int i = 0; i < MAX_INTERPRETERS && !read_user_u64(walk, next, &next) && next; i++) {
		interpreter = next;
		next += python->layout.interpreter_next;
	}
	return interpreter;
}

/* The key under which the interpreter keeps thread states: key + 1, or 0 when there is none yet. */
static __always_inline __u32 state_key(struct walk *walk)
{
	const struct python_layout *layout = &walk->python->layout;
	__u32 initialized = 0, key = 0;

	if (walk->python->tss_key)
		return walk->python->tss_key;
	if (layout->runtime_tss_key == PYTHON_ABSENT)
		return 0;
	READ_USER(walk->task, &initialized, sizeof(initialized),
		walk->python->runtime + layout->runtime_tss_initialized);
	READ_USER(walk->task, &key, sizeof(key), walk->python->runtime + layout->runtime_tss_key);
	return initialized == 1 && key < PTHREAD_MAX_KEYS ? key + 1 : 0;
}

static __always_inline __u64 value_of_key(struct walk *walk, __u32 key)
{
	__u64 at = walk->scratch->python.thread_pointer, value = 0;

	if (key < PTHREAD_KEYS_IN_TABLE)
		at += ARCH_PTHREAD_FIRST_KEYS;
	else if (read_user_u64(walk, at + ARCH_PTHREAD_KEY_TABLES + key / PTHREAD_KEYS_IN_TABLE * 8,
			 &at) ||
		 !at)
		return 0;
	read_user_u64(walk, at + 16 * (key % PTHREAD_KEYS_IN_TABLE) + 8, &value);
	return value;
}

static __always_inline bool is_own_thread(struct walk *walk, __u64 thread)
{
	__u64 ident = 0;

	return thread && !read_user_u64(walk, thread + walk->python->layout.thread_ident, &ident) &&
	       ident == walk->scratch->python.thread_pointer;
}

/*
 * Finds the state of the thread, also while it does not hold the GIL: the key's value stays. Where
 * a sub-interpreter runs (up to 3.11 the key has the first interpreter's), the runtime knows the
 * current one. Returns WIRE_PYTHON_FRAMES, or why there is none.
 */
static __noinline int find_thread_state(struct walk *walk)
{
	const struct python_layout *layout = &walk->python->layout;
	struct python_scratch *python = &walk->scratch->python;
	__u32 key = state_key(walk);
	__u64 current = 0;

	if (key)
		python->thread = value_of_key(walk, key - 1);
	else if (layout->runtime_tss_key == PYTHON_ABSENT)
		python->thread = find_running_thread(walk);
	else
		return WIRE_PYTHON_STARTING;
	if (!python->thread)
		return WIRE_PYTHON_NO_STATE;
	if (!is_own_thread(walk, python->thread))
		return WIRE_PYTHON_NO_STATE;
	if (layout->runtime_current_thread != PYTHON_ABSENT &&
		!read_user_u64(
			walk, walk->python->runtime + layout->runtime_current_thread, &current) &&
		current != python->thread && is_own_thread(walk, current))
		python->thread = current;
	if (read_user_u64(walk, python->thread + layout->thread_interpreter, &python->interpreter))
		return WIRE_PYTHON_READ_FAULT;
	return WIRE_PYTHON_FRAMES;
}

/* ---- the global interpreter lock ---- */

static __noinline int find_gil_state(struct walk *walk)
{
	const struct python_layout *layout = &walk->python->layout;
	struct scratch *scratch = walk->scratch;
	struct python_scratch *python = &scratch->python;
	__u64 gil = walk->python->runtime + layout->runtime_gil, holder = 0, futex;
	__u32 enabled = 0, locked = 0;

	if (layout->runtime_gil == PYTHON_ABSENT &&
		(layout->interpreter_gil == PYTHON_ABSENT ||
			read_user_u64(walk, python->interpreter + layout->interpreter_gil, &gil) ||
			!gil))
		return 0;
	if (layout->gil_enabled != PYTHON_ABSENT &&
		(READ_USER(walk->task, &enabled, sizeof(enabled), gil + layout->gil_enabled) ||
			!enabled))
		return 0;
	if (READ_USER(walk->task, &locked, sizeof(locked), gil + layout->gil_locked) ||
		read_user_u64(walk, gil + layout->gil_last_holder, &holder))
		return 0;
	if (locked == 1 && holder == python->thread) {
		python->gil = WIRE_GIL_HELD;
		return 0;
	}
	python->gil = WIRE_GIL_RELEASED;
	futex = scratch->registers.leaf[ARCH_FIRST_ARGUMENT];
	if (scratch->system_call != ARCH_CALL_FUTEX || futex < gil ||
		futex >= gil + layout->gil_bytes)
		return 0;
	python->gil = WIRE_GIL_WAITING;
	if (!holder || (locked != 1 && (!PYTHON_WAIT_IS_OVER || holder == python->thread)))
		return 0;
	if (layout->thread_native_id != PYTHON_ABSENT) {
		read_user_u64(walk, holder + layout->thread_native_id, &python->gil_holder);
	} else {
		read_user_u64(walk, holder + layout->thread_ident, &python->gil_holder);
		python->holder_is_pointer = 1;
	}
	return 0;
}

/* ---- frames ---- */

/* Reads the code object's window; its check, or 0 when it cannot be read. */
static __noinline __u32 check_code(struct walk *walk, __u64 code)
{
	const struct python_layout *layout = &walk->python->layout;
	__u8 *window = walk->scratch->python.code;
	__u64 name_hash;
	__u32 check;

	if (READ_USER(walk->task, window, PYTHON_CODE_BYTES,
		    code + layout->object_shift_bytes + PYTHON_CODE_START) ||
		read_user_u64(walk,
			python_code_word(window, layout->code_name) + layout->object_shift_bytes +
				PYTHON_TEXT_HASH,
			&name_hash))
		return 0;
	check = python_code_check(layout, window, name_hash);
	PYTHON_SEEN_CODE(walk, code, check);
	return check;
}

/* Where the instructions that the frame runs begin: the code's own, or a copy for some threads. */
static __always_inline __u64 first_instruction(
	struct walk *walk, const struct python_layout *layout, const __u8 *frame, __u64 code)
{
	__u64 copies = 0, at = 0;
	__s32 index;

	if (layout->frame_bytecode_index == PYTHON_ABSENT)
		return code + layout->code_instructions;
	index = (__s32)word_at(frame, layout->frame_bytecode_index);
	if (!index)
		return code + layout->code_instructions;
	if (read_user_u64(walk, code + layout->code_bytecodes, &copies) ||
		read_user_u64(walk, copies + PYTHON_BYTECODES_START + 8 * (__s64)index, &at))
		return ~0ULL;
	return at;
}

static __always_inline __s32 instruction_offset(
	struct walk *walk, const struct python_layout *layout, const __u8 *frame, __u64 code)
{
	__u64 instruction = word_at(frame, layout->frame_instruction);
	__s64 offset;

	if (layout->frame_style == PYTHON_FRAME_OBJECTS)
		offset = (__s64)(__s32)instruction * layout->lasti_unit;
	else
		offset = (__s64)(instruction - first_instruction(walk, layout, frame, code));
	return offset < 0 || offset > 0x7fffffff ? -1 : (__s32)offset;
}

static __always_inline struct wire_python_frame *frame_slot(struct scratch *scratch, __u32 word)
{
	__u64 *words = (__u64 *)(scratch->record + sizeof(struct wire_sample));

	return (struct wire_python_frame *)&words[word & (MAX_FRAME_WORDS - 1)];
}

/* The frame before was the outermost of its native evaluation. */
static __always_inline void mark_entry(struct scratch *scratch)
{
	if (scratch->python_frames)
		frame_slot(scratch, scratch->python.last_at)->flags |= WIRE_PYTHON_ENTRY;
}

/* Frames lie side by side in blocks of memory: the last of a block may end at the block's end. */
static __noinline int read_frame(struct walk *walk, __u64 address)
{
	__u8 *window = walk->scratch->python.frame;
	__u32 on_page = 4096 - (address & 4095);

	if (!READ_USER(walk->task, window, PYTHON_WINDOW_BYTES, address))
		return 0;
	return on_page >= PYTHON_WINDOW_BYTES ||
	       READ_USER(walk->task, window, on_page & (PYTHON_WINDOW_BYTES - 1), address);
}

static long walk_python_frame(__u32 index, struct walk *walk)
{
	const struct python_layout *layout = &walk->python->layout;
	struct scratch *scratch = walk->scratch;
	struct python_scratch *python = &scratch->python;
	struct wire_python_frame *out;
	__u64 code;
	__u8 owner;

	if (!python->at) {
		mark_entry(scratch);
		python->reason = WIRE_PYTHON_FRAMES;
		return 1;
	}
	if (read_frame(walk, python->at)) {
		python->reason = WIRE_PYTHON_READ_FAULT;
		return 1;
	}
	python->at = word_at(python->frame, layout->frame_previous);
	owner = word_at(python->frame, layout->frame_owner);
	if (layout->frame_style == PYTHON_FRAME_SHIM && owner == layout->shim_owner) {
		mark_entry(scratch);
		return 0;
	}
	if (scratch->python_frames >= WIRE_MAX_PYTHON_DEPTH)
		return 1;
	code = word_at(python->frame, layout->frame_code);
	if (layout->code_is_tagged)
		code &= ~7ULL;
	python->last_at =
		scratch->kernel_frames + frame_place(scratch->python_frames, WIRE_MAX_PYTHON_FRAMES,
						 WIRE_OUTER_PYTHON_FRAMES) *
						 PYTHON_FRAME_WORDS;
	out = frame_slot(scratch, python->last_at);
	if (scratch->python_frames >= WIRE_MAX_PYTHON_FRAMES)
		scratch->entries_left_out += out->flags & WIRE_PYTHON_ENTRY;
	out->code = code;
	out->offset = instruction_offset(walk, layout, python->frame, code);
	out->flags = layout->frame_style == PYTHON_FRAME_OBJECTS ||
				     (layout->frame_style == PYTHON_FRAME_ENTRY_FLAG && owner)
			     ? WIRE_PYTHON_ENTRY
			     : 0;
	out->reserved = 0;
	/* Recursion: the frame before was of the same code, whose window is still there. */
	if (code != python->checked_code)
		python->check = check_code(walk, code);
	python->checked_code = code;
	out->check = python->check;
	if (!out->check)
		out->flags |= WIRE_PYTHON_FAULTED;
	scratch->python_frames++;
	return 0;
}

/* The innermost frame of a thread state, 0 when it has none; or WIRE_PYTHON_READ_FAULT. */
static __always_inline int first_frame(struct walk *walk, __u64 thread)
{
	const struct python_layout *layout = &walk->python->layout;
	__u64 at = 0;

	if (read_user_u64(walk, thread + layout->thread_frame, &at))
		return WIRE_PYTHON_READ_FAULT;
	if (layout->cframe_frame != PYTHON_ABSENT && at &&
		read_user_u64(walk, at + layout->cframe_frame, &at))
		return WIRE_PYTHON_READ_FAULT;
	walk->scratch->python.at = at;
	return WIRE_PYTHON_FRAMES;
}

/* All frames of one thread state, appended. */
static __noinline int walk_thread_state(struct walk *walk, __u64 thread)
{
	struct python_scratch *python = &walk->scratch->python;

	python->reason = first_frame(walk, thread);
	if (python->reason != WIRE_PYTHON_FRAMES)
		return 0;
	python->reason = WIRE_PYTHON_DEPTH; /* unless the walk says otherwise */
	python->checked_code = python->check = 0;
	PYTHON_LOOP(MAX_PYTHON_STEPS, walk_python_frame, walk);
	return 0;
}

/* The thread's state and what it does with the GIL. */
static __noinline int look_at_python(struct walk *walk)
{
	struct python_scratch *python = &walk->scratch->python;
	struct task_struct *task = walk->task;

	python->thread = python->interpreter = python->gil_holder = 0;
	python->gil = WIRE_GIL_NONE;
	python->holder_is_pointer = 0;
	python->thread_pointer = PYTHON_THREAD_POINTER(task) + ARCH_PTHREAD_FROM_THREAD_POINTER;
	if (!walk->python)
		return 0;
	python->reason = find_thread_state(walk);
	if (python->reason != WIRE_PYTHON_FRAMES)
		return 0;
	find_gil_state(walk);
	return 0;
}

/* Python frames and GIL of the sample. */
static __noinline int walk_python(struct walk *walk)
{
	struct scratch *scratch = walk->scratch;
	struct python_scratch *python = &scratch->python;
	__u64 outer;

	look_at_python(walk);
	if (!walk->python || python->reason != WIRE_PYTHON_FRAMES)
		return 0;
	walk_thread_state(walk, python->thread);
	if (python->reason != WIRE_PYTHON_FRAMES)
		return 0;
	/* A sub-interpreter was called by Python code of the main one. */
	outer = main_interpreter(walk);
	if (outer && outer != python->interpreter) {
		outer = find_thread(walk, outer);
		if (outer && outer != python->thread)
			walk_thread_state(walk, outer);
	}
	if (!scratch->python_frames)
		python->reason = WIRE_PYTHON_NO_FRAMES;
	return 0;
}

static __always_inline void fill_python(const struct scratch *scratch, struct wire_sample *sample)
{
	const struct python_scratch *python = &scratch->python;

	sample->python = python->reason;
	sample->gil = python->gil;
	sample->thread_pointer = python->thread_pointer;
	sample->gil_holder = python->gil_holder;
	if (python->holder_is_pointer)
		sample->flags |= WIRE_SAMPLE_HOLDER_IS_POINTER;
}
