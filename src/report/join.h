/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of ranks as one row for all of them, for the terminal and the page: JSON and CSV have those
 * of each rank. A column says what the row has in place of theirs (enum report_join in shape.h). A
 * section opens, fills and closes its table as for one rank, and shows report_join_ranks() of it.
 */
#pragma once

#include "report/result.h"
#include "report/section.h"

/*
 * Beside the column with `is_lead` before them: where it is least and most, and how many ranks have
 * such rows, where not all have. Empty where rows are of one rank each.
 */
#define REPORT_RANK_SPREAD(in_views)                                                               \
	{.title = "Least (rank)",                                                                  \
		.kind = REPORT_TEXT,                                                               \
		.views = (in_views),                                                               \
		.hide = REPORT_HIDE_UNKNOWN,                                                       \
		.join = REPORT_JOIN_LEAST_RANK},                                                   \
		{.title = "Most (rank)",                                                           \
			.kind = REPORT_TEXT,                                                       \
			.views = (in_views),                                                       \
			.hide = REPORT_HIDE_UNKNOWN,                                               \
			.join = REPORT_JOIN_MOST_RANK},                                            \
	{                                                                                          \
		.title = "Ranks", .kind = REPORT_COUNT, .views = (in_views),                       \
		.hide = REPORT_HIDE_SAME, .join = REPORT_JOIN_RANKS                                \
	}
/* Their values, of a rank. */
void report_add_rank_spread(struct result *result);

/*
 * A table, of no value, with the rows of all ranks joined, those with most of a sum first; the
 * table itself where its rows are of one rank, or figures are by another tool's definitions.
 */
uint32_t report_join_ranks(struct result *result, const struct report_input *input, uint32_t table);
/* Of tables with the same columns. `count` > 0. */
uint32_t report_join_tables(struct result *result, const struct report_input *input,
	const uint32_t *tables, size_t count);
