/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/convert/tensors.h"

#include <string.h>

#include "chakra/json_piece.h"

enum { ELEMENTS = 3, ELEMENT_BYTES = 4 }; /* places in a tensor's list */

static uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t result;

	return __builtin_mul_overflow(a, b, &result) ? 0 : result;
}

static void add(uint64_t *total, uint64_t amount)
{
	if (__builtin_add_overflow(*total, amount, total))
		*total = 0;
}

/* Adds the tensor; its elements to *elements. */
static void add_tensor(struct execution_text tensor, struct tensor_sum *sum, uint64_t *elements)
{
	struct json_piece piece = json_piece_list(tensor);
	struct execution_text element;
	int64_t numbers[2] = {0, 0};

	for (unsigned i = 0; i <= ELEMENT_BYTES && json_piece_next(&piece, &element); i++) {
		if (i >= ELEMENTS && !json_piece_i64(element, &numbers[i - ELEMENTS]))
			return;
	}
	if (numbers[0] <= 0 || numbers[1] <= 0)
		return;
	sum->tensors++;
	add(&sum->bytes, product((uint64_t)numbers[0], (uint64_t)numbers[1]));
	add(elements, (uint64_t)numbers[0]);
}

/*
 * Kineto's operators have no values of tensors: "Input Dims" [[4, 2048], []] and "Input type"
 * ["float", "Scalar"].
 */
static void add_shapes(const struct execution_values *values, struct tensor_sum *sum)
{
	struct json_piece shapes = json_piece_list(values->shapes);
	struct json_piece types = json_piece_list(values->types);
	struct execution_text shape, type, size;

	while (json_piece_next(&shapes, &shape) && json_piece_next(&types, &type)) {
		struct json_piece sizes = json_piece_list(shape);
		uint64_t elements = 0;
		int64_t number;

		if (!json_piece_is_string(type))
			continue;
		type = (struct execution_text){type.bytes + 1, type.length - 2};
		for (unsigned i = 0; json_piece_next(&sizes, &size); i++) {
			bool good = json_piece_i64(size, &number) && number > 0;

			elements = product(i == 0 ? 1 : elements, good ? (uint64_t)number : 0);
		}
		if (elements == 0 || tensor_type_bytes(type) == 0)
			continue;
		sum->tensors++;
		add(&sum->bytes, product(elements, tensor_type_bytes(type)));
		sum->largest = MAX(sum->largest, elements);
	}
}

struct tensor_sum tensor_sum(const struct execution_values *values)
{
	struct json_piece value_piece = json_piece_list(values->values);
	struct json_piece type_piece = json_piece_list(values->types);
	struct execution_text value, type, inner;
	struct tensor_sum sum = {0};

	while (json_piece_next(&value_piece, &value) && json_piece_next(&type_piece, &type)) {
		uint64_t elements = 0;

		if (execution_text_begins(type, "\"GenericList[Tensor")) {
			struct json_piece list = json_piece_list(value);

			while (json_piece_next(&list, &inner))
				add_tensor(inner, &sum, &elements);
		} else if (execution_text_contains(type, "Tensor")) {
			add_tensor(value, &sum, &elements);
		}
		sum.largest = MAX(sum.largest, elements);
	}
	if (sum.tensors == 0)
		add_shapes(values, &sum);
	return sum;
}

struct execution_text tensor_value(const struct execution_values *values, unsigned index)
{
	struct json_piece piece = json_piece_list(values->values);
	struct execution_text element;

	for (unsigned i = 0; json_piece_next(&piece, &element); i++) {
		if (i == index)
			return element;
	}
	return (struct execution_text){0};
}

uint32_t tensor_type_bytes(struct execution_text type)
{
	static const struct {
		const char *name;
		uint32_t bytes;
	} types[] = {{"float", 4}, {"float32", 4}, {"float64", 8}, {"float16", 2}, {"double", 8},
		{"half", 2}, {"bfloat16", 2}, {"byte", 1}, {"char", 1}, {"uint8", 1}, {"int8", 1},
		{"short", 2}, {"int16", 2}, {"uint16", 2}, {"int", 4}, {"int32", 4}, {"uint32", 4},
		{"long", 8}, {"int64", 8}, {"uint64", 8}, {"longint", 8}, {"bool", 1},
		{"unsignedchar", 1}, {"complex64", 8}, {"complexfloat", 8}, {"complex128", 16},
		{"complexdouble", 16}, {"float8_e4m3fn", 1}, {"float8_e5m2", 1},
		{"float8_e4m3fnuz", 1}, {"float8_e5m2fnuz", 1}};
	char plain[24];
	size_t length = 0, begin = 0;

	if (execution_text_begins(type, "c10::"))
		begin = strlen("c10::");
	for (size_t i = begin; i < type.length && length < sizeof(plain); i++) {
		char letter = type.bytes[i];

		if (letter != ' ')
			plain[length++] =
				letter >= 'A' && letter <= 'Z' ? (char)(letter | 0x20) : letter;
	}
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strlen(types[i].name) == length && memcmp(types[i].name, plain, length) == 0)
			return types[i].bytes;
	}
	return 0;
}
