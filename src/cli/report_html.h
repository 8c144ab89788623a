/* SPDX-License-Identifier: Apache-2.0 */
/* sonde report --html: the page with a report and its flame graphs, as one file. */
#pragma once

#include "query/query.h"

/* Writes the file, "-" is standard output. Returns the exit status. */
int report_html(struct query *query, const struct query_options *options, const char *output);
