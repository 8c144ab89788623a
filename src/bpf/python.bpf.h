/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Python frames (unwind/python_walk.h), and the code objects that they run: each is sent once. Part
 * of unwinder.bpf.h. */
#pragma once

#define PYTHON_LOOP(count, function, context) bpf_loop(count, function, context, 0)
#define PYTHON_THREAD_POINTER(task)           arch_thread_pointer(task)
#define PYTHON_SEEN_CODE(walk, code, check)                                                        \
	do {                                                                                       \
		if (!sent_before(walk, code, check))                                               \
			send_code(walk, code, check);                                              \
	} while (0)

static int sent_before(struct walk *walk, __u64 code, __u32 check);
static int send_code(struct walk *walk, __u64 code, __u32 check);

#include "unwind/python_walk.h"

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

	if (!text)
		return 0;
	text += walk->python->layout.object_shift_bytes;
	if (read_user_u64(walk, text + TEXT_LENGTH_AT, &length))
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

	if (!table)
		return 0;
	table += walk->python->layout.object_shift_bytes;
	if (read_user_u64(walk, table + BYTES_SIZE_AT, &size))
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
