/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Python frames: from the thread's state through the interpreter's frames, by the offsets of
 * unwind/python_layout.h. Native and Python frames are put in one order by the collector, which
 * knows where the interpreter's evaluation function lies. Part of unwinder.bpf.h.
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

struct thread_search {
	struct walk *walk;
	__u64 at;
	__u64 found;
};

static long compare_thread(__u32 index, struct thread_search *search)
{
	const struct python_layout *layout = &search->walk->python->layout;
	__u64 ident = 0, next = 0;

	if (!search->at || read_user_u64(search->walk, search->at + layout->thread_ident, &ident))
		return 1;
	if (ident == search->walk->scratch->python.thread_pointer) {
		search->found = search->at;
		return 1;
	}
	if (read_user_u64(search->walk, search->at + layout->thread_next, &next))
		return 1;
	search->at = next;
	return 0;
}

/* This thread's state in an interpreter, by its list; 0 when it has none. */
static __noinline __u64 find_thread(struct walk *walk, __u64 interpreter)
{
	struct thread_search search = {.walk = walk};

	if (read_user_u64(
		    walk, interpreter + walk->python->layout.interpreter_threads_head, &search.at))
		return 0;
	bpf_loop(MAX_PYTHON_THREADS, compare_thread, &search, 0);
	return search.found;
}

static __always_inline __u64 main_interpreter(struct walk *walk)
{
	const struct python_target *python = walk->python;
	__u32 at = python->layout.runtime_main_interpreter;
	__u64 interpreter = 0;

	if (at == PYTHON_ABSENT)
		at = python->layout.runtime_interpreters_head;
	read_user_u64(walk, python->runtime + at, &interpreter);
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
		python->thread = find_thread(walk, main_interpreter(walk));
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
	__u32 locked = 0;

	if (layout->gil_locked == PYTHON_ABSENT)
		return 0;
	if (layout->runtime_gil == PYTHON_ABSENT &&
		(layout->interpreter_gil == PYTHON_ABSENT ||
			read_user_u64(walk, python->interpreter + layout->interpreter_gil, &gil) ||
			!gil))
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

/* ---- code objects ---- */

/* True when the names of this code object were sent; from now on they were. */
static __noinline int sent_before(struct walk *walk, __u64 code, __u32 check)
{
	__u64 hash =
		(code ^ (__u64)check << 32 ^ walk->python->interpreter) * 0x9e3779b97f4a7c15ULL;
	struct sampler_sent_codes *set;
	__u32 slot;

	hash = (hash ^ hash >> 32) * 0xc4ceb9fe1a85ec53ULL;
	slot = hash >> 40 & (SAMPLER_SENT_CODES - 1);
	set = bpf_map_lookup_elem(&sent_codes, &slot);
	if (!set)
		return 1;
	if (set->hash[0] == hash || set->hash[1] == hash)
		return 1;
	set->hash[1] = set->hash[0];
	set->hash[0] = hash;
	return 0;
}

static __always_inline void forget_sent(struct walk *walk, __u64 code, __u32 check)
{
	__u64 hash =
		(code ^ (__u64)check << 32 ^ walk->python->interpreter) * 0x9e3779b97f4a7c15ULL;
	struct sampler_sent_codes *set;
	__u32 slot;

	hash = (hash ^ hash >> 32) * 0xc4ceb9fe1a85ec53ULL;
	slot = hash >> 40 & (SAMPLER_SENT_CODES - 1);
	set = bpf_map_lookup_elem(&sent_codes, &slot);
	if (set && set->hash[0] == hash)
		set->hash[0] = 0;
}

/* Appends up to `bytes` (≤ 0x1fff) from `address`, or what lies on its page. Returns the length. */
static __noinline __u32 append_piece(struct walk *walk, __u32 at, __u64 address, __u32 bytes)
{
	__u8 *to = walk->scratch->python.record + (at & 0x7ff);
	__u32 on_page = 4096 - (address & 4095);

	if (!address)
		return 0;
	bytes &= 0x3fff;
	if (bytes > WIRE_PYTHON_LINES_BYTES)
		return 0;
	if (!READ_USER(walk->task, to, bytes, address))
		return bytes;
	if (on_page >= bytes || on_page > 4096)
		return 0;
	return READ_USER(walk->task, to, on_page, address) ? 0 : on_page;
}

#define TEXT_LENGTH_AT     16 /* PyASCIIObject.length */
#define TEXT_HEADER_BYTES  72 /* the longest: PyCompactUnicodeObject up to 3.11 */
#define BYTES_SIZE_AT      16 /* PyBytesObject.ob_size */
#define BYTES_HEADER_BYTES 32

static __always_inline __u32 append_text(struct walk *walk, __u32 at, __u64 text)
{
	__u64 length = 0;

	if (!text || read_user_u64(walk, text + TEXT_LENGTH_AT, &length))
		return 0;
	if (length > WIRE_PYTHON_TEXT_BYTES)
		length = WIRE_PYTHON_TEXT_BYTES;
	length = TEXT_HEADER_BYTES + 4 * length;
	return append_piece(
		walk, at, text, length < WIRE_PYTHON_TEXT_BYTES ? length : WIRE_PYTHON_TEXT_BYTES);
}

static __always_inline __u32 append_lines(struct walk *walk, __u32 at, __u64 table)
{
	__u64 size = 0;

	if (!table || read_user_u64(walk, table + BYTES_SIZE_AT, &size))
		return 0;
	if (size > WIRE_PYTHON_LINES_BYTES - BYTES_HEADER_BYTES)
		size = WIRE_PYTHON_LINES_BYTES - BYTES_HEADER_BYTES;
	return append_piece(walk, at, table, BYTES_HEADER_BYTES + size);
}

#define PADDED(bytes) (((bytes) + 7) & ~7U)

/* Sends names and lines of the code object whose window is in scratch->python.code. */
static __noinline int send_code(struct walk *walk, __u64 code, __u32 check)
{
	const struct python_layout *layout = &walk->python->layout;
	struct python_scratch *python = &walk->scratch->python;
	struct wire_python_code *record = (struct wire_python_code *)python->record;
	const __u8 *window = python->code;
	__u32 at = sizeof(*record), length;

	record->piece_bytes[0] = length =
		append_text(walk, at, python_code_word(window, layout->code_file_name));
	at += PADDED(length);
	record->piece_bytes[1] = length =
		append_text(walk, at, python_code_word(window, layout->code_name));
	at += PADDED(length);
	record->piece_bytes[2] = length =
		layout->code_qualified_name == PYTHON_ABSENT
			? 0
			: append_text(
				  walk, at, python_code_word(window, layout->code_qualified_name));
	at += PADDED(length);
	record->piece_bytes[3] = length =
		append_lines(walk, at, python_code_word(window, layout->code_line_table));
	at += PADDED(length);
	record->record.type = WIRE_RECORD_PYTHON_CODE;
	record->record.reserved = 0;
	record->record.length_bytes = at;
	record->time_ns = bpf_ktime_get_ns();
	record->code = code;
	record->check = check;
	record->interpreter = walk->python->interpreter;
	record->pid = visible_tgid(walk->task);
	record->first_line = python_code_word(window, layout->code_first_line);
	if (at > CODE_RECORD_BYTES)
		return 0;
	if (bpf_ringbuf_output(&samples, python->record, at, BPF_RB_NO_WAKEUP)) {
		forget_sent(walk, code, check);
		count(SAMPLER_COUNT_CODES_LOST, 1);
		return 0;
	}
	count(SAMPLER_COUNT_CODES, 1);
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

	if (READ_USER(walk->task, window, PYTHON_CODE_BYTES, code + PYTHON_CODE_START) ||
		read_user_u64(walk, python_code_word(window, layout->code_name) + PYTHON_TEXT_HASH,
			&name_hash))
		return 0;
	check = python_code_check(layout, window, name_hash);
	if (!sent_before(walk, code, check))
		send_code(walk, code, check);
	return check;
}

static __always_inline __s32 instruction_offset(
	const struct python_layout *layout, const __u8 *frame, __u64 code)
{
	__u64 instruction = word_at(frame, layout->frame_instruction);
	__s64 offset;

	if (layout->frame_style == PYTHON_FRAME_OBJECTS)
		offset = (__s64)(__s32)instruction * layout->lasti_unit;
	else
		offset = (__s64)(instruction - code - layout->code_instructions);
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
	out->offset = instruction_offset(layout, python->frame, code);
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
	bpf_loop(MAX_PYTHON_STEPS, walk_python_frame, walk, 0);
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
	python->thread_pointer = arch_thread_pointer(task) + ARCH_PTHREAD_FROM_THREAD_POINTER;
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
