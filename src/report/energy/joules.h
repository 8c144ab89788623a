/* SPDX-License-Identifier: Apache-2.0 */
/* Energy in sections that are about something else: phases, layers, requests, steps, ranges. */
#pragma once

#include "analyses/inference/joules.h"
#include "report/result.h"
#include "report/view.h"

/*
 * Columns of what a row took. `per` is the title of the column that has it for each piece ("Per
 * step"), NULL: there is none; `in_views` are the tables that have them.
 */
#define REPORT_JOULES_COLUMNS(per, in_views)                                                       \
	{.title = "Energy",                                                                        \
		.kind = REPORT_JOULES,                                                             \
		.views = (in_views),                                                               \
		.hide = REPORT_HIDE_EMPTY},                                                        \
		{.title = "\xc2\xb1",                                                              \
			.kind = REPORT_JOULES,                                                     \
			.views = (in_views),                                                       \
			.hide = REPORT_HIDE_EMPTY},                                                \
		{.title = "Shared",                                                                \
			.kind = REPORT_FLAG,                                                       \
			.views = (in_views),                                                       \
			.hide = REPORT_HIDE_EMPTY},                                                \
		{.title = (per),                                                                   \
			.kind = REPORT_JOULES,                                                     \
			.views = (in_views),                                                       \
			.hide = REPORT_HIDE_EMPTY},                                                \
		REPORT_JOULES_MEMBER

/* The same in JSON alone. */
#define REPORT_JOULES_MEMBER                                                                       \
	{                                                                                          \
		.key = "energy", .kind = REPORT_OBJECT, .shape = &report_joules_shape,             \
		.help = "null: no energy was measured"                                             \
	}

extern const struct report_shape report_joules_shape;

/* Temperature and clock, an object. */
extern const struct report_shape report_state_shape;
void report_add_state(struct result *result, const struct span_state *state);

/* Fills in REPORT_JOULES_COLUMNS. `joules` NULL: nothing is known; `count` pieces. */
void report_add_joules(struct result *result, const struct report_view *view,
	const struct joules *joules, double count);
/* Fills in REPORT_JOULES_MEMBER. */
void report_add_joules_member(
	struct result *result, const struct report_view *view, const struct joules *joules);

/* Why some of the rows have no energy; zero-initialise. */
struct energy_reasons {
	const char *texts[8];
	size_t counts[8];
	bool is_aggregated, is_allocated;
};

void energy_reasons_add(struct energy_reasons *reasons, const struct joules *joules);
/* One paragraph, where energy was measured: what the figures are, and why some are not known. */
void energy_reasons_say(const struct energy_reasons *reasons, const struct report_view *view,
	struct result *result);

/* Appends what joules cost and what carbon dioxide they stand for, as far as the rates are given.
 */
void report_describe_cost(struct strbuf *out, const struct energy_rates *rates, double joules);
