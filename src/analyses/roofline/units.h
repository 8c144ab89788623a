/* SPDX-License-Identifier: Apache-2.0 */
/* Which operator has the work: of each row of a trace, and what it took. For roofline.c. */
#pragma once

#include "analyses/trace_view.h"
#include "model/cost/op_cost.h"

/* An operator with work of its own. */
struct roofline_unit {
	uint32_t row;                     /* in trace.events */
	const struct op_formula *formula; /* NULL: there is none */
	enum op_family family;
	uint64_t works;
	int64_t time_ns; /* of its device work; without any device work, its own */
	/* What kernels' names say: */
	bool is_tf32;        /* that it computes so */
	uint32_t list_bytes; /* how large what it moves is; 0: nothing, or they differ */
};

struct roofline_units {
	ARRAY_OF(struct roofline_unit) items; /* in the order of threads and of their starts */
	int64_t work_ns; /* of all device work but communication, that of no operator included */
};

/* `is_cpu`: by the time of threads. Returns 0 or -ENOMEM. */
int roofline_units_init(struct roofline_units *units, const struct trace_view *view, bool is_cpu);
void roofline_units_done(struct roofline_units *units);
#define _cleanup_roofline_units_ _cleanup_(roofline_units_done)
