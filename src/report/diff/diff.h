/* SPDX-License-Identifier: Apache-2.0 */
/* Two recordings, and what changed between them, as a document of its own: `sonde diff`. */
#pragma once

#include "analyses/cpu/diff.h"
#include "analyses/device/device_diff.h"
#include "report/result.h"

struct diff_report {
	const struct diff *diff;
	const struct device_diff *device; /* NULL: it is not compared … */
	const char *why_no_device;        /* … for this reason; NULL: there is none */
	const char *before_path, *after_path;
	size_t limit; /* rows; 0: all in JSON, 20 in the terminal */
	bool is_json; /* has all rows */
	bool all;     /* in the terminal, too: those that did not change significantly */
};

/* Fills in the result, which is zero-initialised. Returns 0 or -ENOMEM. */
int diff_report_make(struct result *result, const struct diff_report *report);

/* Why the time of a row of device work changed: "each longer", "more often". */
const char *diff_report_reason(const struct device_diff_row *row);
