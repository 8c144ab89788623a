/* SPDX-License-Identifier: Apache-2.0 */
/* The device work of `sonde diff` on a terminal: for diff.c alone. */
#pragma once

#include "analyses/device/device_diff.h"
#include "base/strbuf.h"

/* The total and the table; at most `limit` rows, with `all` those that did not change significantly
 * too. 0 or -ENOMEM. */
int diff_device_print(const struct device_diff *diff, size_t limit, bool all, struct strbuf *out);

/* Says on standard error what device work got slower by more than `percent`. Returns whether some
 * did. */
bool diff_device_check(const struct device_diff *diff, double percent);
