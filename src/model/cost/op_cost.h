/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator costs: the floating-point operations that it must do, and the bytes that it must
 * move from and to memory at least, each input read once and each output written once. From its
 * name and its inputs (op_inputs.h), by the formulas of the families below; each names its source.
 *
 * To add an operator: its line in the table of its family (NAME.c beside this file), a row in
 * tests/unit/test-op-cost.c, and docs/roofline.md where it has a new formula.
 */
#pragma once

#include "model/cost/op_inputs.h"

enum op_family {
	OP_FAMILY_OTHER, /* no formula */
	OP_FAMILY_GEMM,
	OP_FAMILY_CONVOLUTION,
	OP_FAMILY_ATTENTION,
	OP_FAMILY_NORM, /* and softmax: over rows */
	OP_FAMILY_ELEMENTWISE,
	OP_FAMILY_REDUCTION,
	OP_FAMILY_EMBEDDING, /* and other gathers */
	OP_FAMILY_COPY,
	OP_FAMILY_TRITON,
	OP_FAMILY_MOE,  /* products of a mixture of experts */
	OP_FAMILY_SCAN, /* state-space models: scans, and the convolutions before them */
	OP_FAMILY_MAX,
};

/* "GEMM", "convolution" …, as analyses/device/category.h has them: for JSON and people. */
const char *op_family_name(enum op_family family);
/* Its operations are products of matrices, which devices have units for. */
bool op_family_is_of_matrices(enum op_family family);

/* What operators that it calls are. */
enum op_reach {
	OP_OPEN,      /* operators of their own; what it launches itself is its own work */
	OP_CLOSED,    /* parts of it: they are not counted beside it */
	OP_COMPOSITE, /* it is closed where none of them is */
};

/* What a figure is. Bounds are from what the inputs say, and hold whatever they do not say: how
 * long sequences in a paged cache are, which experts tokens went to. */
enum op_bound {
	OP_EXACT,
	OP_AT_LEAST,
	OP_AT_MOST,
	OP_BOUND_MAX,
};

/* "exact", "at_least", "at_most": for JSON. */
const char *op_bound_name(enum op_bound bound);

struct op_cost {
	enum op_dtype dtype; /* that it computes with */
	double flop, bytes;  /* NaN: not known */
	enum op_bound flop_is, bytes_is;
};

#define OP_POSITIONS 7
#define OP_NOWHERE   OP_ARGUMENTS /* it has no such argument */

struct op_formula {
	const char *name; /* "aten::mm"; NULL ends a table */
	enum op_reach reach;
	uint8_t at[OP_POSITIONS]; /* where its arguments are, as its family has them */
	void (*cost)(const struct op_inputs *inputs, const struct op_formula *formula,
		struct op_cost *cost);
	bool needs_batch; /* its inputs alone say too little: op_texts.batch helps */
};

/* The formula of an operator of this name; NULL: there is none. */
const struct op_formula *op_formula_find(const char *name, enum op_family *ret_family);

/* What it costs. Unknown where the inputs are not known, or are none of this operator. */
struct op_cost op_cost_of(const struct op_formula *formula, const struct op_texts *texts);
