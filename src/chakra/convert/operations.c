/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/convert/operations.h"

#include <string.h>

#include "model/cost/op_cost.h"

#define LONGEST_NAME    127  /* of operators with a formula */
#define MOST_OPERATIONS 9e18 /* that an attribute holds */

static struct json_text text_of(struct execution_text text)
{
	return (struct json_text){.bytes = text.bytes, .length = text.length};
}

uint64_t operations_of(struct execution_text name, const struct execution_values *inputs)
{
	char copy[LONGEST_NAME + 1];
	const struct op_texts texts = {
		.dims = text_of(inputs->shapes),
		.types = text_of(inputs->types),
		.strides = text_of(inputs->strides),
		.values = text_of(inputs->values),
	};
	const struct op_formula *formula;
	enum op_family family;
	double flop = 0;

	if (!name.length || name.length > LONGEST_NAME)
		return 0;
	memcpy(copy, name.bytes, name.length);
	copy[name.length] = '\0';
	formula = op_formula_find(copy, &family);
	/* Only products count: of other operators the bytes do. */
	if (formula && op_family_is_of_matrices(family))
		flop = op_cost_of(formula, &texts).flop;
	return flop > 0 && flop < MOST_OPERATIONS ? (uint64_t)flop : 0;
}
