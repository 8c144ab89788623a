/* SPDX-License-Identifier: Apache-2.0 */
/* What ranges and marks carry, by name; and those of one domain in the order of time. */
#pragma once

#include "model/model.h"

/* NULL: it has no such field. */
const struct model_range_field *range_field(
	const struct model *model, const struct model_range *range, const char *name);
/* False where there is none, or it is no number; negative numbers are 0, doubles are rounded down.
 */
bool range_u64(const struct model *model, const struct model_range *range, const char *name,
	uint64_t *ret_value);
/* The same, 0 where there is none. */
uint64_t range_u64_or_0(
	const struct model *model, const struct model_range *range, const char *name);
bool range_double(const struct model *model, const struct model_range *range, const char *name,
	double *ret_value);
/* "" where there is none. */
const char *range_text(
	const struct model *model, const struct model_range *range, const char *name);
/* Of the domain and the name. */
bool range_is(const struct model_range *range, const char *domain, const char *name);
