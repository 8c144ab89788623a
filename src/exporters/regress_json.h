/* SPDX-License-Identifier: Apache-2.0 */
/* What `sonde report --regress --json` prints. */
#pragma once

#include "analyses/regress.h"
#include "base/strbuf.h"

#define REGRESS_JSON_VERSION 1

/* At most `limit` rows, 0: all. Returns 0 or -ENOMEM. */
int regress_json_write(const struct regress *regress, double threshold_percent,
	const char *baseline, const char *capture, size_t limit, struct strbuf *out);
