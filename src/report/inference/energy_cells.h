/* SPDX-License-Identifier: Apache-2.0 */
/* Energy in tables that are about something else: phases, layers, requests, steps, ranges. */
#pragma once

#include "analyses/inference/joules.h"
#include "report/view.h"

/* Was any energy measured? Then tables have columns for it. */
static inline bool report_has_energy(const struct report_view *view)
{
	return view->span_energy != NULL;
}

/* "12.3 J ±0.6 J"; empty where it is not known, with "~" before a share of a batch. */
void table_joules(struct table *table, const struct joules *joules);
/* Joules divided by a count; empty where one is not known, or there is none. */
void table_joules_per(struct table *table, const struct joules *joules, double count);
void table_watts(struct table *table, double watts);

/* Why some of the rows have no energy; zero-initialise. */
struct energy_reasons {
	const char *texts[8];
	size_t counts[8];
	bool is_aggregated, is_allocated;
};

void energy_reasons_add(struct energy_reasons *reasons, const struct joules *joules);
/* One paragraph: what the column is, and why it is empty where it is. */
void energy_reasons_print(const struct energy_reasons *reasons, const struct report_view *view);
