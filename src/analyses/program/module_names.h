/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of threads are modules of a model, and what they are called: for modules.c. */
#pragma once

#include "base/map.h"
#include "model/trace.h"

/* Zero-initialise. */
struct module_names {
	const struct trace *trace;
	const char **by_row;     /* of a recording, of its ranges; NULL: of no recording */
	struct intern texts;     /* of those */
	uint32_t *stack_entries; /* of a recording, by stack: index in `firsts`, + 1; 0: not looked
				    for */
	ARRAY_OF(const char *) found;
	ARRAY_OF(size_t) firsts; /* where a stack's begin in `found`; they end where the next do */
};

int module_names_init(struct module_names *names, const struct trace *trace);
void module_names_done(struct module_names *names);

/* "Linear_3"; NULL: the row is no module. */
const char *module_names_get(const struct module_names *names, uint32_t row);
/* The classes of a recorded piece of work's Python stack, the outermost first. 0 or -ENOMEM. */
int module_names_of_stack(struct module_names *names, uint32_t work_row,
	const char *const **ret_names, size_t *ret_count);
