/* SPDX-License-Identifier: Apache-2.0 */
/* Which columns a table that is shown has: the same in the terminal and on the page. */
#pragma once

#include "report/result.h"

#define REPORT_SHOWN_MAX 24

/* As places in the table's shape. */
struct shown_columns {
	size_t items[REPORT_SHOWN_MAX], count;
};

/* Those with a title that the view has, without those that say nothing (enum report_hide). */
struct shown_columns shown_columns(
	const struct result *result, const struct result_table *rows, unsigned view);
