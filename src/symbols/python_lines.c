/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line tables of code objects, as CPython documents them: Objects/lnotab_notes.txt (3.8, 3.9),
 * PEP 626 (3.10), Objects/locations.md (3.11 and later). An instruction has 2 bytes.
 */
#include "symbols/python_code.h"

#define INSTRUCTION_BYTES 2

/* Pairs: bytes on, lines on (signed). */
static int64_t line_by_lnotab(
	const uint8_t *table, size_t length, uint32_t first_line, int32_t offset)
{
	int64_t line = first_line, at = 0;

	for (size_t i = 0; i + 1 < length; i += 2) {
		at += table[i];
		if (at > offset)
			return line;
		line += (int8_t)table[i + 1];
	}
	return line;
}

/* Pairs: bytes that the line covers, lines on before them (signed); -128: no line. */
static int64_t line_by_linetable(
	const uint8_t *table, size_t length, uint32_t first_line, int32_t offset)
{
	int64_t line = first_line, end = 0;

	for (size_t i = 0; i + 1 < length; i += 2) {
		int8_t delta = (int8_t)table[i + 1];

		end += table[i];
		if (delta != -128)
			line += delta;
		if (offset < end)
			return delta == -128 ? 0 : line;
	}
	return 0;
}

/* ---- 3.11: location table ---- */

enum location_code {
	LOCATION_SHORT_LAST = 9, /* 0–9: columns only, the line stays */
	LOCATION_ONE_LINE_FIRST = 10,
	LOCATION_ONE_LINE_LAST = 12,
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

struct location_reader {
	const uint8_t *bytes;
	size_t length, at;
};

/* Six bits a byte, least significant first; bit 6: more follow. */
static uint64_t read_varint(struct location_reader *reader)
{
	uint64_t value = 0;
	unsigned shift = 0;

	while (reader->at < reader->length) {
		uint8_t byte = reader->bytes[reader->at++];

		if (shift < 64)
			value |= (uint64_t)(byte & 63) << shift;
		shift += 6;
		if (!(byte & 64))
			break;
	}
	return value;
}

/* The sign is the lowest bit. */
static int64_t read_signed_varint(struct location_reader *reader)
{
	uint64_t value = read_varint(reader);
	int64_t magnitude = (int64_t)((value >> 1) & INT32_MAX);

	return value & 1 ? -magnitude : magnitude;
}

/* How many lines the entry moves on; reads what it needs of it. */
static int64_t line_delta(struct location_reader *reader, uint8_t code)
{
	if (code >= LOCATION_ONE_LINE_FIRST && code <= LOCATION_ONE_LINE_LAST)
		return code - LOCATION_ONE_LINE_FIRST;
	if (code == LOCATION_NO_COLUMNS || code == LOCATION_LONG)
		return read_signed_varint(reader);
	return 0;
}

static int64_t line_by_locations(
	const uint8_t *table, size_t length, uint32_t first_line, int32_t offset)
{
	struct location_reader reader = {table, length, 0};
	int64_t line = first_line, end = 0;

	while (reader.at < reader.length) {
		uint8_t head = reader.bytes[reader.at++];
		uint8_t code = head >> 3 & 15;

		if (!(head & 128))
			return 0; /* not the first byte of an entry */
		end += ((head & 7) + 1) * INSTRUCTION_BYTES;
		line += line_delta(&reader, code);
		if (offset < end)
			return code == LOCATION_NONE ? 0 : line;
		while (reader.at < reader.length && !(reader.bytes[reader.at] & 128))
			reader.at++;
	}
	return -1;
}

int64_t python_line(const struct python_layout *layout, const void *table, size_t length,
	uint32_t first_line, int32_t offset)
{
	int64_t line;

	if (offset < 0)
		return first_line;
	if (layout->version >= 0x030b)
		line = line_by_locations(table, length, first_line, offset);
	else if (layout->version == 0x030a)
		line = line_by_linetable(table, length, first_line, offset);
	else
		line = line_by_lnotab(table, length, first_line, offset);
	return line > UINT32_MAX ? 0 : line < -1 ? 0 : line;
}
