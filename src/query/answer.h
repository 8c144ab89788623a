/* SPDX-License-Identifier: Apache-2.0 */
/* What answers of this layer share. */
#pragma once

#include "query/query.h"

/*
 * Before the answer that uses the model up: reads the files again where the options need it, and
 * shows frames as asked for. Returns 0 or a negative errno with a sentence.
 */
int query_begin(struct query *query, const struct query_options *options, struct errmsg *err);

/*
 * The same for answers about stacks: weighs them as asked for, and says which count. `notes` gets
 * sentences.
 */
int query_begin_weighed(struct query *query, const struct query_options *options,
	struct selected *ret_selected, struct strbuf *notes, struct errmsg *err);
