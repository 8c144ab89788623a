/* SPDX-License-Identifier: Apache-2.0 */
/* The member "device_work": for diff.c. */
#pragma once

#include "report/diff/diff.h"

#define DIFF_DEFAULT_LIMIT 20

/* How many rows to fill in, of those that fit. */
size_t diff_report_wanted(const struct diff_report *report, size_t count);
/* What a time changed by, as the report compares: per second, or in all. */
void diff_add_time_change(struct strbuf *out, bool per_second, double seconds);

extern const struct report_shape diff_device_shape;
/* Fills in the object. Returns its table of rows. */
uint32_t diff_add_device(struct result *result, const struct diff_report *report);
void diff_show_device(struct result *result, const struct diff_report *report, uint32_t rows);
