/* SPDX-License-Identifier: Apache-2.0 */
/* What the sections of inference have in common. */
#pragma once

#include "report/energy/joules.h"
#include "report/result.h"
#include "report/view.h"

#define REPORT_NO_REQUEST "[no request]"

/* A column of kind REPORT_OBJECT: a spread. Null: of nothing. */
extern const struct report_shape report_spread_shape;
void report_add_spread(struct result *result, const struct spread *spread);

/* A column of kind REPORT_ROWS for the terminal: the times of all requests, by what they are. */
extern const struct report_shape report_metrics_shape;
/* Returns the table. */
uint32_t report_add_metrics(struct result *result, const struct inference *inference);
/* "metric": null where it is not known. */
void report_add_metric(struct result *result, const struct inference_request *request,
	enum inference_metric metric);

/* Sentences: how many requests and tokens, how fast, within limits, for what energy. */
void report_say_rates(struct result *result, const struct report_view *view);

/* Columns of what ran in a row's time. */
#define REPORT_COST_COLUMNS                                                                        \
	{.key = "samples", .kind = REPORT_COUNT},                                                  \
		{.key = "cpu_time_ns", .title = "CPU time", .kind = REPORT_NS},                    \
		{.key = "device_work_count", .kind = REPORT_COUNT},                                \
	{                                                                                          \
		.key = "device_busy_ns", .title = "Device", .kind = REPORT_NS,                     \
		.hide = REPORT_HIDE_EMPTY                                                          \
	}
void report_add_span_cost(
	struct result *result, const struct model *model, const struct span_cost *cost);
