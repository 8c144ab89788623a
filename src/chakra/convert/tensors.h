/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the inputs and outputs of an operator say about tensors. A tensor's value is the list
 * [id, storage id, offset, elements, bytes of one, device]; a value may be a list of tensors.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/execution_trace.h"

struct tensor_sum {
	uint64_t bytes;
	uint64_t largest; /* elements of the value that has most; a list of tensors is one value */
	uint32_t tensors;
};

/* A saturated product counts as 0: no tensor is that large. */
struct tensor_sum tensor_sum(const struct execution_values *values);

/* The value at that place; an empty text when there is none. */
struct execution_text tensor_value(const struct execution_values *values, unsigned index);
/* Bytes of one element by names such as "Half", "c10::BFloat16", "float32"; 0: not known. */
uint32_t tensor_type_bytes(struct execution_text type);
