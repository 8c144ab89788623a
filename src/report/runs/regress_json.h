/* SPDX-License-Identifier: Apache-2.0 */
/* What `sonde report --regress --json` prints. */
#pragma once

#include "analyses/cpu/regress.h"
#include "base/strbuf.h"

#define REGRESS_JSON_VERSION 2

struct regress_json_options {
	double threshold_percent;
	const char *const *baselines;
	size_t baseline_count;
	const char *const *captures;
	size_t capture_count;
	size_t limit; /* rows; 0: all */
};

/* Returns 0 or -ENOMEM. */
int regress_json_write(const struct regress *regress, const struct regress_json_options *options,
	struct strbuf *out);
