/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as JSON: `sonde diff --json`. Described in docs/json.md. */
#pragma once

#include "analyses/cpu/diff.h"
#include "analyses/device/device_diff.h"
#include "base/strbuf.h"

#define DIFF_JSON_VERSION 1

/* Appends the document and a newline; at most `limit` rows, 0: all. `device` may be NULL. Returns 0
 * or -ENOMEM. */
int diff_json_write(const struct diff *diff, const struct device_diff *device,
	const char *before_path, const char *after_path, size_t limit, struct strbuf *out);
