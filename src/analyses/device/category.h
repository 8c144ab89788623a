/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operators and kernels do, in the words of people who tune models: matrix products,
 * attention, norms … One definition for all tables and pictures.
 *
 * Of device work the first of these that says something counts:
 *   1. its kind: copies and fills; what communicates (device/communication.h);
 *   2. an operator around its launch, at any distance, that is attention or a mixture of experts:
 *      they are made of other operators' kernels;
 *   3. its name;
 *   4. the operators around its launch, the innermost first.
 * A norm that is fused with what precedes it is a norm. Kernels that a compiler fused are what
 * their names list, or else what their loops are: pointwise or reducing.
 */
#pragma once

#include "analyses/trace_view.h"

enum op_category {
	OP_GEMM,
	OP_CONVOLUTION,
	OP_ATTENTION,
	OP_NORM,
	OP_MOE,
	OP_ELEMENTWISE,
	OP_REDUCE, /* softmax, losses, sorting and searching, too */
	OP_COPY, /* copies and fills, and kernels that only move data: casts, gathers, embeddings */
	OP_COMMUNICATION,
	OP_OTHER,
	OP_CATEGORY_MAX,
};

/* "GEMM", "attention" … */
const char *op_category_name(enum op_category category);

/* By the name alone; OP_OTHER: it says nothing. Mangled names are read, too. */
enum op_category op_category_of_kernel(const char *name);
/* Of an operator ("aten::mm", "vllm::unified_attention"), or a function of autograd. */
enum op_category op_category_of_operator(const char *name);

/*
 * One for each of view->works. `parents` is trace_parents() of the view's trace. Returns 0 or
 * -ENOMEM; free *ret_categories.
 */
int op_categories_of_works(
	const struct trace_view *view, const uint32_t *parents, uint8_t **ret_categories);
