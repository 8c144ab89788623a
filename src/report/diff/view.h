/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde diff` on a terminal: for diff.c alone. */
#pragma once

#include "analyses/cpu/diff.h"
#include "base/strbuf.h"

/* Totals, cautions and the table; at most `limit` rows, with `all` those that are not significant
 * too. 0 or -ENOMEM. */
int diff_view_print(const struct diff *diff, const char *before_path, const char *after_path,
	size_t limit, bool all, struct strbuf *out);
