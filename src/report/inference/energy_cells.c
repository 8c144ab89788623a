/* SPDX-License-Identifier: Apache-2.0 */
#include "report/inference/energy_cells.h"

#include <math.h>
#include <string.h>

#include "model/format.h"

void table_joules(struct table *table, const struct joules *joules)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!isnan(joules->full_j)) {
		strbuf_add(&text, joules->is_allocated ? "~" : "");
		format_energy(&text, joules->full_j);
		if (!isnan(joules->uncertainty_j)) {
			strbuf_add(&text, " \xc2\xb1");
			format_energy(&text, joules->uncertainty_j);
		}
	}
	table_cell(table, strbuf_cstr(&text));
}

void table_joules_per(struct table *table, const struct joules *joules, double count)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!isnan(joules->full_j) && count > 0)
		format_energy(&text, joules->full_j / count);
	table_cell(table, strbuf_cstr(&text));
}

void table_watts(struct table *table, double watts)
{
	if (isnan(watts))
		table_cell(table, "");
	else
		table_cellf(table, "%.3g W", watts);
}

void energy_reasons_add(struct energy_reasons *reasons, const struct joules *joules)
{
	reasons->is_aggregated |= joules->is_aggregated;
	reasons->is_allocated |= joules->is_allocated;
	for (size_t i = 0; joules->reason && i < ARRAY_SIZE(reasons->texts); i++) {
		if (reasons->texts[i] && strcmp(reasons->texts[i], joules->reason) != 0)
			continue;
		reasons->texts[i] = joules->reason;
		reasons->counts[i]++;
		return;
	}
}

void energy_reasons_print(const struct energy_reasons *reasons, const struct report_view *view)
{
	static const struct {
		const char *reason, *text;
	} sentences[] = {
		{"no_source", "nothing was measured"},
		{"not_measured", "the source had a gap meanwhile"},
		{"shorter_than_sensor", "too short for the sensor, and too few"},
		{"begin_or_end_not_seen", "begin or end was not seen"},
	};
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "Energy is of what the process did, with its time's share of the idle "
			  "power.");
	if (reasons->is_aggregated)
		strbuf_add(
			&text, " Of times too short to be measured singly it is of all together.");
	if (reasons->is_allocated)
		strbuf_add(&text, " With ~ it is a share of a batch, by tokens (allocated).");
	for (size_t i = 0; i < ARRAY_SIZE(reasons->texts) && reasons->texts[i]; i++) {
		const char *reason = reasons->texts[i];

		for (size_t j = 0; j < ARRAY_SIZE(sentences); j++) {
			if (strcmp(sentences[j].reason, reasons->texts[i]) == 0)
				reason = sentences[j].text;
		}
		strbuf_addf(&text, " Empty in %zu rows: %s (%s).", reasons->counts[i], reason,
			reasons->texts[i]);
	}
	report_paragraph(view, strbuf_cstr(&text), 0);
}
