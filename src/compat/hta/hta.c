/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/hta/hta.h"

#include "compat/hta/internal.h"

const struct trace_definitions hta_definitions = {
	.kind_names = hta_kind_names,
	.between_kinds = " overlapping ",
	.view = hta_view_init,
	.idle = hta_idle_init,
	.launches = hta_launches_init,
	.queue = hta_queue_init,
	.copies = hta_copies_init,
	.operators = hta_operators_init,
	.paths = hta_paths_init,
	.ranks = {.stragglers = hta_stragglers, .candidates = 2},
};
