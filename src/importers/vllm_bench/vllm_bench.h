/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of `vllm bench serve --save-result --save-detailed`, as JSON: lists of equal length
 * with an item for each request. Times there are seconds.
 */
#pragma once

#include <stddef.h>

#include "base/errmsg.h"
#include "model/client_results.h"

/* `path` is for sentences. Returns 0, or a negative errno with a sentence: -ENODATA without lists.
 */
int vllm_bench_parse(struct client_results *ret_results, const char *path, const char *bytes,
	size_t length, struct errmsg *err);
