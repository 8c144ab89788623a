/* SPDX-License-Identifier: Apache-2.0 */
/* Of the section of ranks: which rank the others waited for in collectives. */
#pragma once

#include "analyses/collectives/collectives.h"
#include "report/section.h"

extern const struct report_shape report_collectives_shape;

/* One object of the shape above, or null where none were matched. */
void report_add_collectives(struct result *result, const struct report_input *input,
	const struct collectives *collectives);
