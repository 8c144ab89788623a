/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cost/op_inputs.h"

#include <math.h>
#include <string.h>

#include "base/macros.h"

/* ---- element types ---- */

static const struct {
	const char *name;
	double bytes;
} dtypes[OP_DTYPE_MAX] = {
	[OP_DTYPE_UNKNOWN] = {"", 0},
	[OP_FP64] = {"fp64", 8},
	[OP_FP32] = {"fp32", 4},
	[OP_TF32] = {"tf32", 4},
	[OP_FP16] = {"fp16", 2},
	[OP_BF16] = {"bf16", 2},
	[OP_FP8] = {"fp8", 1},
	[OP_FP4] = {"fp4", 1},
	[OP_INT64] = {"int64", 8},
	[OP_INT32] = {"int32", 4},
	[OP_INT16] = {"int16", 2},
	[OP_INT8] = {"int8", 1},
	[OP_BOOL] = {"bool", 1},
	[OP_COMPLEX64] = {"complex64", 8},
	[OP_COMPLEX128] = {"complex128", 16},
};

const char *op_dtype_name(enum op_dtype dtype)
{
	return dtypes[dtype].name;
}

double op_dtype_bytes(enum op_dtype dtype)
{
	return dtype == OP_DTYPE_UNKNOWN ? (double)NAN : dtypes[dtype].bytes;
}

enum op_dtype op_dtype_of(const char *text, size_t length)
{
	static const char tensor[] = "Tensor(";
	static const struct {
		const char *name;
		enum op_dtype dtype;
		bool is_beginning; /* variants follow */
	} names[] = {
		{"float", OP_FP32, false},
		{"double", OP_FP64, false},
		{"c10::Half", OP_FP16, false},
		{"c10::BFloat16", OP_BF16, false},
		{"c10::Float8_", OP_FP8, true},
		{"c10::Float4_", OP_FP4, true},
		{"long int", OP_INT64, false},
		{"long", OP_INT64, false},
		{"int", OP_INT32, false},
		{"short int", OP_INT16, false},
		{"short", OP_INT16, false},
		{"signed char", OP_INT8, false},
		{"unsigned char", OP_INT8, false},
		{"bool", OP_BOOL, false},
		{"c10::complex<float>", OP_COMPLEX64, false},
		{"c10::complex<double>", OP_COMPLEX128, false},
	};

	if (length > sizeof(tensor) && memcmp(text, tensor, sizeof(tensor) - 1) == 0) {
		text += sizeof(tensor) - 1;
		length -= sizeof(tensor);
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t known = strlen(names[i].name);

		if (length < known || memcmp(text, names[i].name, known) != 0)
			continue;
		if (length == known || names[i].is_beginning)
			return names[i].dtype;
	}
	return OP_DTYPE_UNKNOWN;
}

enum op_dtype op_dtype_of_number(int64_t number)
{
	static const enum op_dtype by_number[] = {
		[0] = OP_INT8,
		[1] = OP_INT8,
		[2] = OP_INT16,
		[3] = OP_INT32,
		[4] = OP_INT64,
		[5] = OP_FP16,
		[6] = OP_FP32,
		[7] = OP_FP64,
		[9] = OP_COMPLEX64,
		[10] = OP_COMPLEX128,
		[11] = OP_BOOL,
		[15] = OP_BF16,
		[23] = OP_FP8,
		[24] = OP_FP8,
		[25] = OP_FP8,
		[26] = OP_FP8,
	};

	return number >= 0 && (size_t)number < ARRAY_SIZE(by_number) ? by_number[number]
								     : OP_DTYPE_UNKNOWN;
}

/* ---- the texts ---- */

static struct json_reader reader_of(const struct json_text *text)
{
	return (struct json_reader){
		.at = text->bytes, .end = text->bytes + text->length, .is_last = true};
}

/* Numbers of "[2, 3]". -1: it is no such list, or a longer one. */
static int read_numbers(const struct json_text *text, int64_t *ret_numbers, unsigned size)
{
	struct json_reader reader = reader_of(text);
	enum json_status status = json_reader_enter(&reader, '[');
	struct json_text item;
	unsigned count = 0;

	while (status == JSON_OK && (status = json_reader_item(&reader)) == JSON_OK) {
		status = json_reader_value(&reader, &item);
		if (status != JSON_OK || count == size ||
			json_text_i64(&item, &ret_numbers[count]) < 0)
			return -1;
		count++;
	}
	return status == JSON_DONE ? (int)count : -1;
}

static bool read_sizes(const struct json_text *text, struct op_tensor *tensor)
{
	int count = read_numbers(text, tensor->sizes, OP_DIMENSIONS);

	tensor->rank = count > 0 ? (unsigned)count : 0;
	for (unsigned i = 0; i < tensor->rank; i++) {
		if (tensor->sizes[i] < 0)
			return false;
	}
	return count >= 0;
}

/* "[[2, 3], [4]]": tensors of a list. False: it is none. */
static bool read_tensors(const struct json_text *text, struct op_argument *argument)
{
	struct json_reader reader = reader_of(text);
	enum json_status status = json_reader_enter(&reader, '[');
	struct op_tensor tensor;
	struct json_text item;

	argument->elements = 0;
	while (status == JSON_OK && (status = json_reader_item(&reader)) == JSON_OK) {
		status = json_reader_value(&reader, &item);
		if (status != JSON_OK || !read_sizes(&item, &tensor))
			return false;
		argument->elements += op_tensor_elements(&tensor);
		argument->tensors++;
	}
	return status == JSON_DONE;
}

/* Of "GenericList[Tensor(float),Tensor(float)]" the one type that all have. */
static enum op_dtype read_list_dtype(const struct json_text *text)
{
	static const char tensor[] = "Tensor(";
	enum op_dtype dtype = OP_DTYPE_UNKNOWN, next;
	const char *at = text->bytes, *end = at + text->length, *close;

	while ((at = memmem(at, (size_t)(end - at), tensor, strlen(tensor))) != NULL) {
		close = memchr(at, ')', (size_t)(end - at));
		if (!close)
			return OP_DTYPE_UNKNOWN;
		next = op_dtype_of(at, (size_t)(close - at) + 1);
		if (dtype != OP_DTYPE_UNKNOWN && next != dtype)
			return OP_DTYPE_UNKNOWN;
		dtype = next;
		at = close;
	}
	return dtype;
}

/* One argument; its type decides what empty dimensions mean: a value, or a tensor of one element.
 */
static void read_argument(
	struct op_argument *argument, const struct json_text *dims, const struct json_text *type)
{
	enum op_dtype dtype = op_dtype_of(type->bytes, type->length);

	if (dims->length > 1 && memchr(dims->bytes + 1, '[', dims->length - 1)) {
		argument->kind = OP_VALUE;
		if (!memmem(type->bytes, type->length, "Tensor", strlen("Tensor")))
			return; /* a list of numbers */
		argument->kind = read_tensors(dims, argument) ? OP_TENSORS : OP_NOTHING;
		argument->dtype = read_list_dtype(type);
		return;
	}
	if (!read_sizes(dims, &argument->tensor)) {
		argument->tensor = (struct op_tensor){0};
		return;
	}
	if (dtype == OP_DTYPE_UNKNOWN && !argument->tensor.rank) {
		argument->kind = type->length ? OP_VALUE : OP_NOTHING;
		return;
	}
	argument->kind = OP_TENSOR;
	argument->tensor.dtype = dtype;
}

/* The next item of an array that may have ended, or never begun. */
static struct json_text next_item(struct json_reader *reader, enum json_status *status)
{
	struct json_text item = {.bytes = ""};

	if (*status == JSON_OK)
		*status = json_reader_item(reader);
	if (*status == JSON_OK)
		*status = json_reader_value(reader, &item);
	if (*status != JSON_OK)
		item = (struct json_text){.bytes = ""};
	return json_text_inside(&item);
}

bool op_inputs_read(struct op_inputs *inputs, const struct op_texts *texts)
{
	const struct json_text *const all[] = {
		&texts->dims, &texts->types, &texts->strides, &texts->values};
	struct json_reader readers[ARRAY_SIZE(all)];
	enum json_status status[ARRAY_SIZE(all)];

	memset(inputs, 0, sizeof(*inputs));
	inputs->batch = texts->batch;
	inputs->list_bytes = texts->list_bytes;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		readers[i] = reader_of(all[i]);
		status[i] = all[i]->length ? json_reader_enter(&readers[i], '[') : JSON_BAD;
	}
	if (status[0] != JSON_OK)
		return false;
	while (inputs->count < OP_ARGUMENTS) {
		struct op_argument *argument = &inputs->arguments[inputs->count];
		struct json_text dims = next_item(&readers[0], &status[0]);
		struct json_text type = next_item(&readers[1], &status[1]);
		struct json_text strides = next_item(&readers[2], &status[2]);
		struct op_tensor *tensor = &argument->tensor;

		if (status[0] != JSON_OK && status[3] != JSON_OK)
			break;
		read_argument(argument, &dims, &type);
		argument->value = next_item(&readers[3], &status[3]);
		tensor->has_strides =
			argument->kind == OP_TENSOR && strides.length &&
			read_numbers(&strides, tensor->strides, OP_DIMENSIONS) == (int)tensor->rank;
		inputs->count++;
	}
	return status[0] == JSON_DONE || inputs->count == OP_ARGUMENTS;
}

/* ---- what is asked of them ---- */

const struct op_tensor *op_tensor_at(const struct op_inputs *inputs, unsigned index)
{
	if (index >= inputs->count || inputs->arguments[index].kind != OP_TENSOR)
		return NULL;
	return &inputs->arguments[index].tensor;
}

double op_tensor_elements(const struct op_tensor *tensor)
{
	double elements = 1;

	for (unsigned i = 0; i < tensor->rank; i++)
		elements *= (double)tensor->sizes[i];
	return elements;
}

double op_tensor_bytes(const struct op_tensor *tensor)
{
	double elements = 1;

	for (unsigned i = 0; i < tensor->rank; i++) {
		bool is_repeated =
			tensor->has_strides && tensor->strides[i] == 0 && tensor->sizes[i];

		elements *= is_repeated ? 1 : (double)tensor->sizes[i];
	}
	return elements * op_dtype_bytes(tensor->dtype);
}

/* Python's words and JSON's. */
static bool read_flag(const struct json_text *text, bool *ret_value)
{
	bool is_true = json_text_equals(text, "True") || json_text_equals(text, "true");

	if (!is_true && !json_text_equals(text, "False") && !json_text_equals(text, "false"))
		return false;
	*ret_value = is_true;
	return true;
}

static const struct json_text *value_at(const struct op_inputs *inputs, unsigned index)
{
	static const struct json_text none = {.bytes = ""};

	return index < inputs->count ? &inputs->arguments[index].value : &none;
}

bool op_flag_at(const struct op_inputs *inputs, unsigned index, bool *ret_value)
{
	return read_flag(value_at(inputs, index), ret_value);
}

bool op_number_at(const struct op_inputs *inputs, unsigned index, int64_t *ret_value)
{
	const struct json_text *value = value_at(inputs, index);

	return value->length && json_text_i64(value, ret_value) == 0;
}

unsigned op_list_at(
	const struct op_inputs *inputs, unsigned index, int64_t *ret_values, unsigned size)
{
	const struct json_text *value = value_at(inputs, index);
	struct json_reader reader = reader_of(value);
	enum json_status status = value->length ? json_reader_enter(&reader, '[') : JSON_BAD;
	unsigned count = 0;
	bool flag = false;

	while (status == JSON_OK && count < size) {
		struct json_text item = next_item(&reader, &status);

		if (status != JSON_OK)
			break;
		if (read_flag(&item, &flag))
			ret_values[count++] = flag;
		else if (json_text_i64(&item, &ret_values[count]) == 0)
			count++;
		else
			return 0;
	}
	return status == JSON_OK || status == JSON_DONE ? count : 0;
}

/* ---- for people ---- */

static void describe_tensor(
	struct strbuf *out, const struct op_tensor *tensor, enum op_dtype *last_dtype)
{
	for (unsigned i = 0; i < tensor->rank; i++)
		strbuf_addf(out, "%s%lld", i ? "\xc3\x97" : "", (long long)tensor->sizes[i]);
	if (!tensor->rank)
		strbuf_add_char(out, '1');
	if (tensor->dtype != *last_dtype && *op_dtype_name(tensor->dtype))
		strbuf_addf(out, " %s", op_dtype_name(tensor->dtype));
	*last_dtype = tensor->dtype;
}

void op_inputs_describe(struct strbuf *out, const struct op_inputs *inputs)
{
	enum op_dtype last_dtype = OP_DTYPE_UNKNOWN;
	size_t begin = out->length;

	for (unsigned i = 0; i < inputs->count; i++) {
		const struct op_argument *argument = &inputs->arguments[i];

		if (argument->kind != OP_TENSOR && argument->kind != OP_TENSORS)
			continue;
		strbuf_add(out, out->length > begin ? ", " : "");
		if (argument->kind == OP_TENSOR)
			describe_tensor(out, &argument->tensor, &last_dtype);
		else
			strbuf_addf(out, "list of %.0f", argument->elements);
	}
}
