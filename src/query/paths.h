/* SPDX-License-Identifier: Apache-2.0 */
/* Short answers as text, for who reads them one at a time: the heaviest paths, and functions. */
#pragma once

#include "query/query.h"

/*
 * Appends the call tree as indented lines, heaviest first: the share of all, the time or energy,
 * that of the function itself, its name and module. At most `options->limit` lines (0: 60), none
 * of less than `options->minimum_share_percent`. Uses the model up. Returns 0 or a negative errno
 * with a sentence.
 */
int query_paths(
	struct query *query, struct query_options *options, struct strbuf *out, struct errmsg *err);
/*
 * Appends the functions whose names contain `text`, whatever the case, one on a line: share and
 * time in the function itself, in total, name and module. At most `options->limit` (0: 40). The
 * same otherwise.
 */
int query_functions(struct query *query, struct query_options *options, const char *text,
	struct strbuf *out, struct errmsg *err);
