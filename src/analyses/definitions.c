/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/definitions.h"

const struct trace_definitions own_definitions = {
	.kind_names = trace_kind_names,
	.between_kinds = "+",
	.view = trace_view_init,
	.idle = device_idle_init,
	.launches = launches_init,
	.queue = queue_init,
	.copies = copies_init,
	.operators = trace_ops_init,
	.paths = critical_paths_init,
};
