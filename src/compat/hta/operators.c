/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/hta/internal.h"

#include <string.h>

#include "base/text.h"

static bool is_operator(const char *name)
{
	return begins_with(name, "aten::");
}

/* The pattern KERNEL_LAUNCH_CATEGORY_PATTERN. */
static bool is_launch(const char *name)
{
	if (begins_with(name, "cuda") && strstr(name, "LaunchKernel"))
		return true;
	return begins_with(name, "cuLaunchKernel") || begins_with(name, "runFunction");
}

static int compare(const struct trace_ops_row *a, const struct trace_ops_row *b)
{
	return a->count != b->count ? (a->count > b->count ? -1 : 1) : 0;
}

int hta_operators_init(struct trace_ops *ops, const struct trace_view *view)
{
	static const struct trace_ops_definition definition = {
		.is_operator = is_operator, .is_launch = is_launch, .compare = compare};

	return trace_ops_init_as(ops, view, &definition);
}
