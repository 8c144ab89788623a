/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what two processes say of their Python hooks. */
#include <stdlib.h>

#include "collect/hooks/hook_table.h"
#include "target.h"

/* No process has a hook in two states. */
static void check(const struct hook_table *table)
{
	array_foreach (&table->hooks, hook) {
		uint64_t processes = 0;

		for (enum hook_state state = 0; state < HOOK_STATE_MAX; state++)
			processes += hook->processes[state];
		if (processes == 0 || processes > table->processes)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct hook_table table = {0};
	size_t first = length ? bytes[0] * length / 256 : 0;

	if (hook_table_add(&table, (const char *)bytes, first) == 0 &&
		hook_table_add(&table, (const char *)bytes + first, length - first) == 0)
		check(&table);
	hook_table_done(&table);
	return 0;
}
