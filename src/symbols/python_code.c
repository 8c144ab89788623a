/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/python_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/macros.h"

/* ---- str objects ---- */

#define TEXT_LENGTH_AT 16
#define TEXT_STATE_AT  32
/* Where the characters are: after PyASCIIObject, after PyCompactUnicodeObject. */
#define ASCII_DATA_AT         48
#define COMPACT_DATA_AT       72
#define ASCII_DATA_AT_SHORT   40 /* 3.12 and later */
#define COMPACT_DATA_AT_SHORT 56
#define REPLACEMENT           0xfffd

struct text_state {
	unsigned kind; /* bytes per character: 1, 2, 4 */
	bool compact, ascii;
};

/* PyASCIIObject.state: interned, kind 3 bits, compact 1, ascii 1. */
static struct text_state text_state(const struct python_layout *layout, uint32_t state)
{
	state >>= layout->text_kind_bit;
	return (struct text_state){
		.kind = state & 7, .compact = state >> 3 & 1, .ascii = state >> 4 & 1};
}

static int add_character(struct strbuf *out, uint32_t character)
{
	char utf8[4];
	size_t length;

	if ((character >= 0xd800 && character <= 0xdfff) || character > 0x10ffff)
		character = REPLACEMENT;
	if (character < 0x80) {
		utf8[0] = (char)character;
		length = 1;
	} else if (character < 0x800) {
		utf8[0] = (char)(0xc0 | character >> 6);
		utf8[1] = (char)(0x80 | (character & 63));
		length = 2;
	} else if (character < 0x10000) {
		utf8[0] = (char)(0xe0 | character >> 12);
		utf8[1] = (char)(0x80 | (character >> 6 & 63));
		utf8[2] = (char)(0x80 | (character & 63));
		length = 3;
	} else {
		utf8[0] = (char)(0xf0 | character >> 18);
		utf8[1] = (char)(0x80 | (character >> 12 & 63));
		utf8[2] = (char)(0x80 | (character >> 6 & 63));
		utf8[3] = (char)(0x80 | (character & 63));
		length = 4;
	}
	strbuf_add_bytes(out, utf8, length);
	return strbuf_status(out);
}

static uint32_t character_at(const uint8_t *data, unsigned kind, size_t index)
{
	uint32_t wide;
	uint16_t half;

	switch (kind) {
	case 1:
		return data[index];
	case 2:
		memcpy(&half, data + 2 * index, sizeof(half));
		return half;
	default:
		memcpy(&wide, data + 4 * index, sizeof(wide));
		return wide;
	}
}

/* Bytes that the whole object takes; 0 when it is no str that names have. */
static size_t text_bytes(const struct python_layout *layout, const uint8_t *bytes, size_t length,
	struct text_state *ret_state, uint64_t *ret_count, size_t *ret_data_at)
{
	uint32_t state_word;

	if (length < TEXT_STATE_AT + sizeof(state_word))
		return 0;
	memcpy(ret_count, bytes + TEXT_LENGTH_AT, sizeof(*ret_count));
	memcpy(&state_word, bytes + TEXT_STATE_AT, sizeof(state_word));
	*ret_state = text_state(layout, state_word);
	if (!ret_state->compact || *ret_count > UINT32_MAX ||
		(ret_state->kind != 1 && ret_state->kind != 2 && ret_state->kind != 4))
		return 0;
	if (layout->text_is_short)
		*ret_data_at = ret_state->ascii ? ASCII_DATA_AT_SHORT : COMPACT_DATA_AT_SHORT;
	else
		*ret_data_at = ret_state->ascii ? ASCII_DATA_AT : COMPACT_DATA_AT;
	return *ret_data_at + (size_t)*ret_count * ret_state->kind;
}

int python_text(const struct python_layout *layout, const void *bytes, size_t length,
	struct strbuf *out, bool *ret_cut)
{
	struct text_state state;
	uint64_t count;
	size_t data_at, whole = text_bytes(layout, bytes, length, &state, &count, &data_at);
	bool cut = whole > length;
	int result = 0;

	if (!whole)
		return -EINVAL;
	if (cut)
		count = length > data_at ? (length - data_at) / state.kind : 0;
	for (uint64_t i = 0; i < count && result == 0; i++)
		result = add_character(
			out, character_at((const uint8_t *)bytes + data_at, state.kind, i));
	if (ret_cut)
		*ret_cut = cut;
	return result;
}

/* ---- records ---- */

#define BYTES_SIZE_AT      16
#define BYTES_HEADER_BYTES 32

static size_t padded(uint32_t bytes)
{
	return ((size_t)bytes + 7) & ~(size_t)7;
}

bool python_code_is_whole(const struct wire_python_code *record)
{
	size_t length = sizeof(*record);

	if (record->record.length_bytes < length)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(record->piece_bytes); i++) {
		if (record->piece_bytes[i] > WIRE_PYTHON_LINES_BYTES)
			return false;
		length += padded(record->piece_bytes[i]);
	}
	return length <= record->record.length_bytes;
}

/* Takes over a text; NULL stays for one that is none. Returns 0 or -ENOMEM. */
static int take_text(const struct python_layout *layout, const uint8_t *bytes, size_t length,
	char **ret_text, bool *cut)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	bool is_cut = false;
	int result;

	if (!length)
		return 0;
	result = python_text(layout, bytes, length, &text, &is_cut);
	if (result == -EINVAL)
		return 0;
	*cut |= is_cut;
	if (result == 0 && !(*ret_text = strdup(strbuf_cstr(&text))))
		result = -ENOMEM;
	return result;
}

static int take_lines(const uint8_t *bytes, size_t length, struct python_code *code)
{
	uint64_t size;

	if (length < BYTES_HEADER_BYTES)
		return 0;
	memcpy(&size, bytes + BYTES_SIZE_AT, sizeof(size));
	code->cut |= size > length - BYTES_HEADER_BYTES;
	code->line_table_length = MIN(size, (uint64_t)(length - BYTES_HEADER_BYTES));
	code->line_table = malloc(code->line_table_length + 1);
	if (!code->line_table)
		return -ENOMEM;
	memcpy(code->line_table, bytes + BYTES_HEADER_BYTES, code->line_table_length);
	return 0;
}

/* The qualified name replaces the name. */
static void prefer_qualified(struct python_code *code, char *qualified)
{
	if (!qualified)
		return;
	free(code->name);
	code->name = qualified;
}

int python_code_from_record(const struct python_layout *layout,
	const struct wire_python_code *record, struct python_code *ret_code)
{
	const uint8_t *piece = (const uint8_t *)(record + 1);
	char *texts[3] = {0};
	int result = 0;

	*ret_code = (struct python_code){.first_line = record->first_line};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (result == 0)
			result = take_text(
				layout, piece, record->piece_bytes[i], &texts[i], &ret_code->cut);
		piece += padded(record->piece_bytes[i]);
	}
	ret_code->file_name = texts[0];
	ret_code->name = texts[1];
	prefer_qualified(ret_code, texts[2]);
	if (result == 0)
		result = take_lines(piece, record->piece_bytes[3], ret_code);
	if (result < 0)
		python_code_done(ret_code);
	return result;
}

/* ---- living processes ---- */

#define MAXIMUM_TEXT_BYTES  (64U * 1024)
#define MAXIMUM_TABLE_BYTES (4U * 1024 * 1024)

static int read_memory(uint32_t pid, uint64_t address, void *buffer, size_t length)
{
	struct iovec local = {.iov_base = buffer, .iov_len = length};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = length};
	ssize_t got = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);

	if (got < 0)
		return -errno;
	return got == (ssize_t)length ? 0 : -EFAULT;
}

static int read_text(const struct python_layout *layout, uint32_t pid, uint64_t address,
	char **ret_text, bool *cut)
{
	uint8_t header[COMPACT_DATA_AT];
	_cleanup_free_ uint8_t *bytes = NULL;
	struct text_state state;
	uint64_t count;
	size_t data_at, whole;
	int result;

	if (!address)
		return 0;
	address += layout->object_shift_bytes;
	result = read_memory(pid, address, header, TEXT_STATE_AT + 8);
	if (result < 0)
		return result;
	whole = text_bytes(layout, header, TEXT_STATE_AT + 8, &state, &count, &data_at);
	if (!whole)
		return -EINVAL;
	whole = MIN(whole, (size_t)MAXIMUM_TEXT_BYTES);
	bytes = malloc(whole);
	if (!bytes)
		return -ENOMEM;
	result = read_memory(pid, address, bytes, whole);
	return result < 0 ? result : take_text(layout, bytes, whole, ret_text, cut);
}

static int read_lines(const struct python_layout *layout, uint32_t pid, uint64_t address,
	struct python_code *code)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	uint64_t size;
	int result;

	address += layout->object_shift_bytes;
	result = read_memory(pid, address + BYTES_SIZE_AT, &size, sizeof(size));
	if (result < 0)
		return result;
	size = MIN(size, (uint64_t)MAXIMUM_TABLE_BYTES) + BYTES_HEADER_BYTES;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	result = read_memory(pid, address, bytes, size);
	return result < 0 ? result : take_lines(bytes, size, code);
}

/* The window that tells code objects apart, as the sampler reads it. */
struct code_window {
	uint8_t bytes[PYTHON_CODE_BYTES + 8];
	uint32_t check;
};

static int read_window(const struct python_layout *layout, uint32_t pid, uint64_t address,
	struct code_window *ret_window)
{
	uint64_t name_hash;
	int result = read_memory(pid, address + layout->object_shift_bytes + PYTHON_CODE_START,
		ret_window->bytes, PYTHON_CODE_BYTES);

	if (result == 0)
		result = read_memory(pid,
			python_code_word(ret_window->bytes, layout->code_name) +
				layout->object_shift_bytes + PYTHON_TEXT_HASH,
			&name_hash, sizeof(name_hash));
	if (result == 0)
		ret_window->check = python_code_check(layout, ret_window->bytes, name_hash);
	return result;
}

static int read_parts(const struct python_layout *layout, uint32_t pid, const uint8_t *window,
	struct python_code *code)
{
	char *qualified = NULL;
	int result = read_text(layout, pid, python_code_word(window, layout->code_file_name),
		&code->file_name, &code->cut);

	if (result == 0)
		result = read_text(layout, pid, python_code_word(window, layout->code_name),
			&code->name, &code->cut);
	if (result == 0 && layout->code_qualified_name != PYTHON_ABSENT) {
		result = read_text(layout, pid,
			python_code_word(window, layout->code_qualified_name), &qualified,
			&code->cut);
		prefer_qualified(code, qualified);
	}
	return result < 0 ? result
			  : read_lines(layout, pid,
				    python_code_word(window, layout->code_line_table), code);
}

int python_code_read(const struct python_layout *layout, uint32_t pid, uint64_t address,
	uint32_t check, struct python_code *ret_code)
{
	struct code_window window = {0}, after = {0};
	int result = read_window(layout, pid, address, &window);

	*ret_code = (struct python_code){0};
	if (result < 0)
		return result;
	if (check && window.check != check)
		return -ESTALE;
	ret_code->first_line = (uint32_t)python_code_word(window.bytes, layout->code_first_line);
	result = read_parts(layout, pid, window.bytes, ret_code);
	/* Freed and used again while it was read? */
	if (result == 0)
		result = read_window(layout, pid, address, &after);
	if (result == 0 && after.check != window.check)
		result = -ESTALE;
	if (result < 0)
		python_code_done(ret_code);
	return result;
}

/* ---- use ---- */

uint32_t python_code_line(
	const struct python_layout *layout, const struct python_code *code, int32_t offset)
{
	int64_t line = code->line_table ? python_line(layout, code->line_table,
						  code->line_table_length, code->first_line, offset)
					: 0;

	return line > 0 ? (uint32_t)line : code->first_line;
}

void python_code_done(struct python_code *code)
{
	free(TAKE_PTR(code->file_name));
	free(TAKE_PTR(code->name));
	free(TAKE_PTR(code->line_table));
	code->line_table_length = 0;
}
