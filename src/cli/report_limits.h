/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde report --fail-if: does a figure of the report go beyond a limit? Figures are named as in
 * the JSON of the report: members with dots between them. Where rows are on the way each of them
 * counts, or those that a selector names: "kernel.kernels[name=gemm].sum_ns>5ms".
 */
#pragma once

#include <stddef.h>

#include "base/errmsg.h"

/* What is asked for is well formed. Returns 0 or -EINVAL with a sentence. */
int report_limits_check(const char *const *conditions, size_t count, struct errmsg *err);
/* Says what is beyond its limit, and which figure is not there. Returns the exit status. */
int report_limits(const char *json, size_t length, const char *const *conditions, size_t count);
