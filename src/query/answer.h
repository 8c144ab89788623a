/* SPDX-License-Identifier: Apache-2.0 */
/* What answers of this layer share. */
#pragma once

#include "query/query.h"

/*
 * Before the answer that uses the model up: reads the files again where the options need it, and
 * shows frames as asked for. Returns 0 or a negative errno with a sentence.
 */
int query_begin(struct query *query, const struct query_options *options, struct errmsg *err);
