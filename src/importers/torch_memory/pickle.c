/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opcodes of Python's pickle that dicts, lists, tuples, texts and numbers are written with. A
 * stack of values, marks on it, and a memo, all bounded by the file's own bytes.
 */
#include <errno.h>
#include <string.h>

#include "importers/torch_memory/value.h"

struct pickle {
	struct value_document *document;
	const unsigned char *at, *end;
	ARRAY_OF(struct value) stack;
	ARRAY_OF(size_t) marks; /* heights of the stack */
	ARRAY_OF(struct value) memo;
	size_t most; /* values of the stack and places of the memo */
};

/* ---- bytes ---- */

static int read_size(struct pickle *pickle, unsigned count, uint64_t *ret_size)
{
	*ret_size = 0;
	if ((size_t)(pickle->end - pickle->at) < count)
		return -EBADMSG;
	for (unsigned i = 0; i < count; i++)
		*ret_size |= (uint64_t)*pickle->at++ << 8 * i;
	return 0;
}

static int skip_bytes(struct pickle *pickle, uint64_t count, const char **ret_bytes)
{
	if ((uint64_t)(pickle->end - pickle->at) < count)
		return -EBADMSG;
	*ret_bytes = (const char *)pickle->at;
	pickle->at += count;
	return 0;
}

/* ---- the stack ---- */

static int push(struct pickle *pickle, struct value value)
{
	if (pickle->stack.count >= pickle->most)
		return -EBADMSG;
	return array_append(&pickle->stack, value);
}

static size_t floor_of(const struct pickle *pickle)
{
	return pickle->marks.count ? pickle->marks.items[pickle->marks.count - 1] : 0;
}

static int pop(struct pickle *pickle, struct value *ret_value)
{
	if (pickle->stack.count <= floor_of(pickle))
		return -EBADMSG;
	*ret_value = pickle->stack.items[--pickle->stack.count];
	return 0;
}

static int pop_mark(struct pickle *pickle, size_t *ret_height)
{
	if (!pickle->marks.count)
		return -EBADMSG;
	*ret_height = pickle->marks.items[--pickle->marks.count];
	return 0;
}

static int push_number(struct pickle *pickle, int64_t number)
{
	return push(pickle, (struct value){.type = VALUE_NUMBER, .number = number});
}

static int push_container(struct pickle *pickle, enum value_type type)
{
	struct value value;
	int r = value_add_container(pickle->document, type, &value);

	return r < 0 ? r : push(pickle, value);
}

/* ---- containers ---- */

/* What stands on the stack from `first` on goes into the container below it. */
static int extend(struct pickle *pickle, size_t first, enum value_type type)
{
	const struct value *target;
	int r = 0;

	if (first <= floor_of(pickle) || first > pickle->stack.count)
		return -EBADMSG;
	target = &pickle->stack.items[first - 1];
	if (target->type != type || (type == VALUE_DICT && (pickle->stack.count - first) % 2 != 0))
		return -EBADMSG;
	for (size_t i = first; r == 0 && i < pickle->stack.count; i++)
		r = value_append(pickle->document, target->container, &pickle->stack.items[i]);
	pickle->stack.count = first;
	return r;
}

static int extend_to_mark(struct pickle *pickle, enum value_type type)
{
	size_t first;
	int r = pop_mark(pickle, &first);

	return r < 0 ? r : extend(pickle, first, type);
}

/* Tuples, and lists and dicts that are made at once, of what stands from `first` on. */
static int collect(struct pickle *pickle, size_t first, enum value_type type)
{
	struct value value;
	int r;

	if (first < floor_of(pickle) || first > pickle->stack.count ||
		(type == VALUE_DICT && (pickle->stack.count - first) % 2 != 0))
		return -EBADMSG;
	r = value_add_container(pickle->document, type, &value);
	for (size_t i = first; r == 0 && i < pickle->stack.count; i++)
		r = value_append(pickle->document, value.container, &pickle->stack.items[i]);
	pickle->stack.count = first;
	return r < 0 ? r : push(pickle, value);
}

static int collect_to_mark(struct pickle *pickle, enum value_type type)
{
	size_t first;
	int r = pop_mark(pickle, &first);

	return r < 0 ? r : collect(pickle, first, type);
}

static int collect_last(struct pickle *pickle, size_t count)
{
	if (pickle->stack.count < count)
		return -EBADMSG;
	return collect(pickle, pickle->stack.count - count, VALUE_LIST);
}

/* ---- the memo ---- */

static int remember(struct pickle *pickle, uint64_t place)
{
	int r = 0;

	if (pickle->stack.count <= floor_of(pickle) || place >= pickle->most)
		return -EBADMSG;
	while (r == 0 && pickle->memo.count <= place)
		r = array_append(&pickle->memo, (struct value){0});
	if (r == 0)
		pickle->memo.items[place] = pickle->stack.items[pickle->stack.count - 1];
	return r;
}

static int recall(struct pickle *pickle, uint64_t place)
{
	return place < pickle->memo.count ? push(pickle, pickle->memo.items[place]) : -EBADMSG;
}

/* ---- scalars ---- */

static int read_text(struct pickle *pickle, unsigned size_bytes)
{
	struct value value = {.type = VALUE_TEXT};
	uint64_t length;
	int r = read_size(pickle, size_bytes, &length);

	if (r == 0)
		r = skip_bytes(pickle, length, &value.text.bytes);
	value.text.length = length;
	return r < 0 ? r : push(pickle, value);
}

/* Two's complement of any length; what needs more than 64 bits keeps the lower ones. */
static int read_long(struct pickle *pickle, unsigned size_bytes)
{
	uint64_t length, number = 0;
	const char *bytes = NULL;
	int r = read_size(pickle, size_bytes, &length);

	if (r == 0)
		r = skip_bytes(pickle, length, &bytes);
	if (r < 0 || !bytes)
		return r;
	if (length && (unsigned char)bytes[length - 1] >= 0x80)
		number = UINT64_MAX;
	for (uint64_t i = 0; i < MIN(length, (uint64_t)8); i++) {
		number &= ~(0xffULL << 8 * i);
		number |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
	}
	return push_number(pickle, (int64_t)number);
}

static int read_integer(struct pickle *pickle, unsigned count)
{
	uint64_t number;
	int r = read_size(pickle, count, &number);

	return r < 0 ? r : push_number(pickle, count == 4 ? (int32_t)number : (int64_t)number);
}

/* Big-endian. */
static int read_double(struct pickle *pickle)
{
	uint64_t bits;
	double real;
	int r = read_size(pickle, 8, &bits);

	if (r < 0)
		return r;
	bits = __builtin_bswap64(bits);
	memcpy(&real, &bits, sizeof(real));
	if (!(real > -9e18 && real < 9e18))
		real = 0;
	return push_number(pickle, (int64_t)real);
}

static int read_place(struct pickle *pickle, unsigned count, bool is_put)
{
	uint64_t place;
	int r = read_size(pickle, count, &place);

	if (r < 0)
		return r;
	return is_put ? remember(pickle, place) : recall(pickle, place);
}

/* ---- opcodes ---- */

static int skip_header(struct pickle *pickle, unsigned count)
{
	uint64_t unused;

	return read_size(pickle, count, &unused);
}

static int read_scalar(struct pickle *pickle, unsigned char opcode)
{
	switch (opcode) {
	case 'K':
		return read_integer(pickle, 1);
	case 'M':
		return read_integer(pickle, 2);
	case 'J':
		return read_integer(pickle, 4);
	case 0x8a:
		return read_long(pickle, 1);
	case 0x8b:
		return read_long(pickle, 4);
	case 'G':
		return read_double(pickle);
	case 0x8c:
	case 'C': /* bytes, of which snapshots have none */
	case 'U':
		return read_text(pickle, 1);
	case 'X':
	case 'B':
	case 'T':
		return read_text(pickle, 4);
	case 0x8d:
	case 0x8e:
		return read_text(pickle, 8);
	case 0x88:
	case 0x89:
		return push_number(pickle, opcode == 0x88);
	case 'N':
		return push(pickle, (struct value){0});
	default:
		return -EPERM; /* imports and calls, and what no snapshot has */
	}
}

static int read_memo(struct pickle *pickle, unsigned char opcode)
{
	switch (opcode) {
	case 0x94:
		return remember(pickle, pickle->memo.count);
	case 'q':
		return read_place(pickle, 1, true);
	case 'r':
		return read_place(pickle, 4, true);
	case 'h':
		return read_place(pickle, 1, false);
	case 'j':
		return read_place(pickle, 4, false);
	case 0x80:
		return skip_header(pickle, 1);
	case 0x95:
		return skip_header(pickle, 8);
	default:
		return read_scalar(pickle, opcode);
	}
}

static int read_opcode(struct pickle *pickle, unsigned char opcode)
{
	struct value value;

	switch (opcode) {
	case '}':
		return push_container(pickle, VALUE_DICT);
	case ']':
	case ')':
		return push_container(pickle, VALUE_LIST);
	case '(':
		return array_append(&pickle->marks, pickle->stack.count);
	case 'u':
		return extend_to_mark(pickle, VALUE_DICT);
	case 'e':
		return extend_to_mark(pickle, VALUE_LIST);
	case 's':
		return pickle->stack.count < 3
			       ? -EBADMSG
			       : extend(pickle, pickle->stack.count - 2, VALUE_DICT);
	case 'a':
		return pickle->stack.count < 2
			       ? -EBADMSG
			       : extend(pickle, pickle->stack.count - 1, VALUE_LIST);
	case 't':
	case 'l':
		return collect_to_mark(pickle, VALUE_LIST);
	case 'd':
		return collect_to_mark(pickle, VALUE_DICT);
	case 0x85:
	case 0x86:
	case 0x87:
		return collect_last(pickle, opcode - 0x84U);
	case '0':
		return pop(pickle, &value);
	default:
		return read_memo(pickle, opcode);
	}
}

int value_read_pickle(struct value_document *document, const char *bytes, size_t length)
{
	struct pickle pickle = {
		.document = document,
		.at = (const unsigned char *)bytes,
		.end = (const unsigned char *)bytes + length,
		.most = length,
	};
	int r = -EBADMSG;

	while (pickle.at < pickle.end) {
		unsigned char opcode = *pickle.at++;

		r = opcode == '.' ? 0 : read_opcode(&pickle, opcode);
		if (r < 0 || opcode == '.')
			break;
		r = -EBADMSG; /* it has to end with a stop */
	}
	if (r == 0)
		r = pop(&pickle, &document->root);
	array_done(&pickle.stack);
	array_done(&pickle.marks);
	array_done(&pickle.memo);
	return r;
}
