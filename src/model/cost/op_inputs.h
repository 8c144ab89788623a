/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs of one operator, out of the JSON texts that a trace keeps of them (struct trace_op,
 * struct execution_node): "Input Dims" and their fellows of Kineto, "shapes", "types" and "values"
 * of execution traces. The texts are foreign: what is not understood is not known, never a guess.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json_reader.h"

/* Element types, by what devices compute with and how many bytes one takes. */
enum op_dtype {
	OP_DTYPE_UNKNOWN,
	OP_FP64,
	OP_FP32,
	OP_TF32, /* never of a tensor: what some kernels compute with for FP32 */
	OP_FP16,
	OP_BF16,
	OP_FP8,
	OP_FP4, /* elements of one byte, two numbers in each */
	OP_INT64,
	OP_INT32,
	OP_INT16,
	OP_INT8,
	OP_BOOL,
	OP_COMPLEX64,
	OP_COMPLEX128,
	OP_DTYPE_MAX,
};

/* "fp32", "bf16" …, for JSON and people; "" for OP_DTYPE_UNKNOWN. */
const char *op_dtype_name(enum op_dtype dtype);
/* NaN where it is not known. */
double op_dtype_bytes(enum op_dtype dtype);
/* Of PyTorch's names: "float", "c10::BFloat16", "Tensor(c10::Half)". */
enum op_dtype op_dtype_of(const char *text, size_t length);
/* Of the number of a torch.dtype, as concrete inputs have it (c10/core/ScalarType.h). */
enum op_dtype op_dtype_of_number(int64_t number);
static inline bool op_dtype_is_float(enum op_dtype dtype)
{
	return dtype >= OP_FP64 && dtype <= OP_FP4;
}

#define OP_DIMENSIONS 8
#define OP_ARGUMENTS  48

struct op_tensor {
	enum op_dtype dtype;
	unsigned rank; /* 0: one element */
	int64_t sizes[OP_DIMENSIONS];
	bool has_strides;
	int64_t strides[OP_DIMENSIONS];
};

enum op_argument_kind {
	OP_NOTHING, /* None, or not known */
	OP_TENSOR,
	OP_TENSORS, /* a list */
	OP_VALUE,
};

struct op_argument {
	enum op_argument_kind kind;
	struct op_tensor tensor;
	/* Of a list: its tensors, elements of all of them, and their type where all have one. */
	unsigned tensors;
	double elements;
	enum op_dtype dtype;
	struct json_text
		value; /* concrete, without quotes; empty: not known. In the texts given. */
};

/*
 * What a serving engine computes at once, as its annotation around operators says (op_batch.h): of
 * all sequences together the tokens whose queries are computed, the tokens that they look at, and
 * the pairs of both.
 */
struct op_batch {
	double queries, keys, pairs;
	bool is_least; /* keys and pairs: it is as many at least */
	enum op_dtype cache_dtype;
};

struct op_inputs {
	struct op_argument arguments[OP_ARGUMENTS]; /* those behind `count` are OP_NOTHING */
	unsigned count;
	const struct op_batch *batch; /* NULL: it is not known */
	unsigned list_bytes;          /* of an element of a list without a type; 0: not known */
};

/* JSON arrays, one item for each argument; an empty text where the trace has none. */
struct op_texts {
	struct json_text dims, types, strides, values;
	const struct op_batch *batch; /* of formulas that need it; may be NULL */
	unsigned list_bytes;          /* of elements of lists, as a kernel's name has it, or 0 */
};

/* False: no sizes, or not understood. Without types all that has sizes is a tensor. */
bool op_inputs_read(struct op_inputs *inputs, const struct op_texts *texts);

/* The tensor at `index`; NULL: it is none, or there is none. */
const struct op_tensor *op_tensor_at(const struct op_inputs *inputs, unsigned index);
/* Elements, and the bytes of those that differ: a stride of 0 repeats what is there once. NaN: not
 * known. */
double op_tensor_elements(const struct op_tensor *tensor);
double op_tensor_bytes(const struct op_tensor *tensor);

/* Concrete values. False: not known. */
bool op_flag_at(const struct op_inputs *inputs, unsigned index, bool *ret_value);
bool op_number_at(const struct op_inputs *inputs, unsigned index, int64_t *ret_value);
/* Of a list, "[2, 2]" or "[True, False]" (as 1 and 0): at most `size`. Returns how many; 0: not
 * known. */
unsigned op_list_at(
	const struct op_inputs *inputs, unsigned index, int64_t *ret_values, unsigned size);

/* Appends the sizes of tensors, and their types where they change: "8944×1024 bf16, 1024×2816". */
void op_inputs_describe(struct strbuf *out, const struct op_inputs *inputs);
