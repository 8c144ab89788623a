/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of samples, one for each dimension: their columns and rows. */
#pragma once

#include "report/cpu/samples.h"

/*
 * Of one table, an object: "rows", and what the dimension has besides, in the order
 * of its columns. report_breakdown_column() is that of its rows.
 */
extern const struct report_shape report_table_shapes[BREAKDOWN_MAX];

/*
 * In the terminal, the source around the hottest lines: a table for each file. Fills in
 * REPORT_SOURCE_FILES columns, null in JSON. Returns 0 or -ENOMEM.
 */
#define REPORT_SOURCE_FILES 3
extern const struct report_shape report_source_shape;
int report_add_source(
	struct result *result, const struct report_input *input, const struct breakdown *breakdown);

/*
 * In the terminal, the heaviest way from the root down, and `shown` stacks with one frame a row.
 * Fills in two columns, null in JSON. Returns 0 or -ENOMEM.
 */
extern const struct report_shape report_path_shape, report_listing_shape;
int report_add_stacks(struct result *result, const struct report_input *input,
	const struct breakdown *breakdown, size_t shown);
