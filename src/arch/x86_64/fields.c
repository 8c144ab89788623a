/* SPDX-License-Identifier: Apache-2.0 */
/* Prefixes, opcode maps, ModRM, SIB, displacement and immediate of x86-64 instructions. */
#include "arch/x86_64/fields.h"

#include "base/cursor.h"

#define LONGEST_INSTRUCTION ARCH_LONGEST_INSTRUCTION

/* What follows an opcode. */
enum {
	M = 1,       /* ModRM */
	B = 2,       /* immediate of 1 byte */
	W = 4,       /* immediate of 2 bytes */
	Z = 8,       /* immediate of 4 bytes, 2 with the operand-size prefix */
	REL = 16,    /* branch displacement of 4 bytes whatever the prefixes say */
	OFFSET = 32, /* address of 8 bytes, 4 with the address-size prefix */
	BAD = 64,    /* no instruction in 64-bit mode */
	MB = M | B,
	MZ = M | Z,
};

static const uint8_t primary_forms[256] = {
	[0x00 ... 0x03] = M,
	[0x04] = B,
	[0x05] = Z,
	[0x06 ... 0x07] = BAD,
	[0x08 ... 0x0b] = M,
	[0x0c] = B,
	[0x0d] = Z,
	[0x0e] = BAD,
	[0x10 ... 0x13] = M,
	[0x14] = B,
	[0x15] = Z,
	[0x16 ... 0x17] = BAD,
	[0x18 ... 0x1b] = M,
	[0x1c] = B,
	[0x1d] = Z,
	[0x1e ... 0x1f] = BAD,
	[0x20 ... 0x23] = M,
	[0x24] = B,
	[0x25] = Z,
	[0x27] = BAD,
	[0x28 ... 0x2b] = M,
	[0x2c] = B,
	[0x2d] = Z,
	[0x2f] = BAD,
	[0x30 ... 0x33] = M,
	[0x34] = B,
	[0x35] = Z,
	[0x37] = BAD,
	[0x38 ... 0x3b] = M,
	[0x3c] = B,
	[0x3d] = Z,
	[0x3f] = BAD,
	[0x60 ... 0x62] = BAD,
	[0x63] = M,
	[0x68] = Z,
	[0x69] = MZ,
	[0x6a] = B,
	[0x6b] = MB,
	[0x70 ... 0x7f] = B,
	[0x80] = MB,
	[0x81] = MZ,
	[0x82] = BAD,
	[0x83] = MB,
	[0x84 ... 0x8f] = M,
	[0x9a] = BAD,
	[0xa0 ... 0xa3] = OFFSET,
	[0xa8] = B,
	[0xa9] = Z,
	[0xb0 ... 0xb7] = B,
	[0xb8 ... 0xbf] = Z,
	[0xc0 ... 0xc1] = MB,
	[0xc2] = W,
	[0xc6] = MB,
	[0xc7] = MZ,
	[0xc8] = W | B,
	[0xca] = W,
	[0xcd] = B,
	[0xce] = BAD,
	[0xd0 ... 0xd3] = M,
	[0xd4 ... 0xd6] = BAD,
	[0xd8 ... 0xdf] = M,
	[0xe0 ... 0xe7] = B,
	[0xe8 ... 0xe9] = REL,
	[0xea] = BAD,
	[0xeb] = B,
	[0xf6 ... 0xf7] = M,
	[0xfe ... 0xff] = M,
};

static const uint8_t forms_0f[256] = {
	[0x00 ... 0x03] = M,
	[0x04] = BAD,
	[0x0a] = BAD,
	[0x0c] = BAD,
	[0x0d] = M,
	[0x0f] = MB,
	[0x10 ... 0x23] = M,
	[0x24 ... 0x27] = BAD,
	[0x28 ... 0x2f] = M,
	[0x36] = BAD,
	[0x39] = BAD,
	[0x3b ... 0x3f] = BAD,
	[0x40 ... 0x6f] = M,
	[0x70 ... 0x73] = MB,
	[0x74 ... 0x76] = M,
	[0x78 ... 0x7f] = M,
	[0x80 ... 0x8f] = REL,
	[0x90 ... 0x9f] = M,
	[0xa3] = M,
	[0xa4] = MB,
	[0xa5 ... 0xa7] = M,
	[0xab] = M,
	[0xac] = MB,
	[0xad ... 0xb9] = M,
	[0xba] = MB,
	[0xbb ... 0xc1] = M,
	[0xc2] = MB,
	[0xc3] = M,
	[0xc4 ... 0xc6] = MB,
	[0xc7] = M,
	[0xd0 ... 0xff] = M,
};

struct reader {
	struct cursor cursor;
	struct x86_fields *fields;
	uint8_t extend_reg, extend_index, extend_base; /* 0 or 8 */
	bool address_32;
};

static uint8_t peek(const struct reader *reader)
{
	return cursor_left(&reader->cursor) ? *reader->cursor.at : 0;
}

static void set_rex(struct reader *reader, uint8_t rex)
{
	reader->fields->has_rex = true;
	reader->fields->wide = rex & 8;
	reader->extend_reg = (rex & 4) << 1;
	reader->extend_index = (rex & 2) << 2;
	reader->extend_base = (rex & 1) << 3;
}

static void read_prefixes(struct reader *reader)
{
	struct x86_fields *fields = reader->fields;

	for (;; cursor_u8(&reader->cursor)) {
		switch (peek(reader)) {
		case 0x66:
			fields->operand_16 = true;
			break;
		case 0x67:
			reader->address_32 = true;
			break;
		case 0xf2:
			fields->repeat_f2 = true;
			break;
		case 0xf3:
			fields->repeat_f3 = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0xf0:
			break;
		default:
			if ((peek(reader) & 0xf0) == 0x40)
				set_rex(reader, cursor_u8(&reader->cursor));
			return;
		}
	}
}

static void set_implied_prefix(struct x86_fields *fields, uint8_t pp)
{
	fields->operand_16 = pp == 1;
	fields->repeat_f3 = pp == 2;
	fields->repeat_f2 = pp == 3;
}

static bool set_map(struct x86_fields *fields, uint8_t number)
{
	static const uint8_t maps[] = {[1] = X86_MAP_0F,
		[2] = X86_MAP_0F38,
		[3] = X86_MAP_0F3A,
		[5] = X86_MAP_OTHER,
		[6] = X86_MAP_OTHER};

	fields->map = number < sizeof(maps) ? (enum x86_map)maps[number] : X86_MAP_PRIMARY;
	return fields->map != X86_MAP_PRIMARY;
}

/* Stored inverted: a clear bit extends the register number by 8. */
static uint8_t extension(uint8_t byte, unsigned bit)
{
	return byte >> bit & 1 ? 0 : 8;
}

static bool read_vex(struct reader *reader, bool is_long)
{
	struct x86_fields *fields = reader->fields;
	uint8_t map = 1, first = cursor_u8(&reader->cursor), last = first;

	fields->is_vector = true;
	reader->extend_reg = extension(first, 7);
	if (is_long) {
		reader->extend_index = extension(first, 6);
		reader->extend_base = extension(first, 5);
		map = first & 0x1f;
		last = cursor_u8(&reader->cursor);
		fields->wide = last & 0x80;
	}
	fields->extra_register = ~(last >> 3) & 15;
	set_implied_prefix(fields, last & 3);
	return set_map(fields, map) && map <= 3;
}

static bool read_evex(struct reader *reader)
{
	struct x86_fields *fields = reader->fields;
	uint8_t first = cursor_u8(&reader->cursor), second = cursor_u8(&reader->cursor);

	cursor_u8(&reader->cursor);
	fields->is_vector = true;
	reader->extend_reg = extension(first, 7);
	reader->extend_index = extension(first, 6);
	reader->extend_base = extension(first, 5);
	fields->wide = second & 0x80;
	fields->extra_register = ~(second >> 3) & 15;
	set_implied_prefix(fields, second & 3);
	return (second & 4) && set_map(fields, first & 7);
}

/* AMD's XOP: maps 8 (one immediate byte), 9 (none) and 10 (four). Returns the form, or BAD. */
static unsigned read_xop(struct reader *reader)
{
	struct x86_fields *fields = reader->fields;
	uint8_t first = cursor_u8(&reader->cursor), second = cursor_u8(&reader->cursor);
	uint8_t map = first & 0x1f;

	fields->is_vector = true;
	fields->map = X86_MAP_OTHER;
	reader->extend_reg = extension(first, 7);
	reader->extend_index = extension(first, 6);
	reader->extend_base = extension(first, 5);
	fields->extra_register = ~(second >> 3) & 15;
	fields->opcode = cursor_u8(&reader->cursor);
	return map == 8 ? MB : map == 9 ? M : map == 10 ? MZ : BAD;
}

static unsigned form_of(const struct x86_fields *fields)
{
	switch (fields->map) {
	case X86_MAP_PRIMARY:
		return primary_forms[fields->opcode];
	case X86_MAP_0F:
		/* As vector instructions 41 to 4b, 90 to 99 are mask operations: ModRM alone, as
		 * here. */
		return forms_0f[fields->opcode];
	case X86_MAP_0F3A:
		return MB;
	default:
		return M;
	}
}

/* Reads up to the opcode, and returns what follows it. */
static unsigned read_opcode(struct reader *reader)
{
	struct x86_fields *fields = reader->fields;
	uint8_t opcode = cursor_u8(&reader->cursor);

	if (opcode == 0xc4 || opcode == 0xc5 || opcode == 0x62) {
		if (!(opcode == 0x62 ? read_evex(reader) : read_vex(reader, opcode == 0xc4)))
			return BAD;
		opcode = cursor_u8(&reader->cursor);
		fields->opcode = opcode;
		/* Jumps and the like have no vector form; vzeroupper alone has no ModRM. */
		return form_of(fields) & (REL | BAD) ? BAD : form_of(fields);
	}
	if (opcode == 0x8f && (peek(reader) & 0x1f) >= 8)
		return read_xop(reader);
	if (opcode == 0x0f) {
		fields->map = X86_MAP_0F;
		opcode = cursor_u8(&reader->cursor);
		if (opcode == 0x38 || opcode == 0x3a) {
			fields->map = opcode == 0x38 ? X86_MAP_0F38 : X86_MAP_0F3A;
			opcode = cursor_u8(&reader->cursor);
		}
	}
	fields->opcode = opcode;
	return form_of(fields);
}

static void read_memory_operand(struct reader *reader, uint8_t mod, uint8_t rm)
{
	struct x86_fields *fields = reader->fields;
	bool has_long_displacement = mod == 2;

	fields->base = rm | reader->extend_base;
	if (rm == 4) {
		uint8_t sib = cursor_u8(&reader->cursor);

		fields->base = (sib & 7) | reader->extend_base;
		fields->has_index = ((sib >> 3 & 7) | reader->extend_index) != X86_RSP;
		rm = sib & 7;
	}
	if (mod == 0 && rm == 5) {
		fields->base = ARCH_NO_REGISTER; /* rip, or none */
		has_long_displacement = true;
	}
	if (mod == 1)
		fields->displacement = cursor_signed(&reader->cursor, 1);
	else if (has_long_displacement)
		fields->displacement = cursor_signed(&reader->cursor, 4);
}

static void read_modrm(struct reader *reader)
{
	struct x86_fields *fields = reader->fields;
	uint8_t modrm = cursor_u8(&reader->cursor), mod = modrm >> 6;

	fields->has_modrm = true;
	fields->reg = (modrm >> 3 & 7) | reader->extend_reg;
	fields->rm = (modrm & 7) | reader->extend_base;
	fields->is_memory = mod != 3;
	if (fields->is_memory)
		read_memory_operand(reader, mod, modrm & 7);
}

/* test is the only one of its group with an immediate. */
static unsigned group_form(const struct x86_fields *fields)
{
	if (fields->map != X86_MAP_PRIMARY || (fields->reg & 7) > 1)
		return 0;
	return fields->opcode == 0xf6 ? B : fields->opcode == 0xf7 ? Z : 0;
}

static void read_immediate(struct reader *reader, unsigned form)
{
	struct x86_fields *fields = reader->fields;
	bool is_move = fields->map == X86_MAP_PRIMARY && (fields->opcode & 0xf8) == 0xb8;

	if (form & W)
		fields->immediate = cursor_signed(&reader->cursor, 2);
	if (form & B)
		fields->immediate = cursor_signed(&reader->cursor, 1);
	if (form & Z)
		fields->immediate =
			cursor_signed(&reader->cursor, is_move && fields->wide               ? 8
						       : fields->operand_16 && !fields->wide ? 2
											     : 4);
	if (form & REL)
		fields->immediate = cursor_signed(&reader->cursor, 4);
	if (form & OFFSET)
		cursor_skip(&reader->cursor, reader->address_32 ? 4 : 8);
}

bool x86_read_fields(const uint8_t *code, size_t length, struct x86_fields *ret_fields)
{
	struct reader reader = {
		.cursor = {.at = code,
			.end = code +
			       (length < LONGEST_INSTRUCTION ? length : LONGEST_INSTRUCTION)},
		.fields = ret_fields};
	unsigned form;

	*ret_fields = (struct x86_fields){.base = ARCH_NO_REGISTER};
	read_prefixes(&reader);
	form = read_opcode(&reader);
	if (form & BAD)
		return false;
	ret_fields->low_register = (ret_fields->opcode & 7) | reader.extend_base;
	if (form & M)
		read_modrm(&reader);
	read_immediate(&reader, form | (form & M ? group_form(ret_fields) : 0));
	ret_fields->length = (uint8_t)(reader.cursor.at - code);
	return !reader.cursor.failed;
}
