/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/hta/internal.h"

#include <string.h>

/* get_memory_kernel_type(): "Memcpy HtoD", "Memset", "Memcpy Unknown". */
static const char *row_name(const char *name, size_t *ret_length)
{
	static const char unknown[] = "Memcpy Unknown";
	bool is_fill = strncmp(name, "Memset", strlen("Memset")) == 0;

	if (!is_fill && strncmp(name, "Memcpy", strlen("Memcpy")) != 0) {
		*ret_length = strlen(unknown);
		return unknown;
	}
	*ret_length = is_fill ? strlen("Memset") : strnlen(name, strlen("Memcpy DtoH"));
	return name;
}

int hta_copies_init(struct copies *copies, const struct trace_view *view)
{
	static const struct copies_definition definition = {
		.row_name = row_name, .shortest_ns = (int64_t)NS_PER_US, .order = hta_order};

	return copies_init_as(copies, view, &definition);
}
