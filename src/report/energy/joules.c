/* SPDX-License-Identifier: Apache-2.0 */
#include "report/energy/joules.h"

#include <math.h>
#include <string.h>

static const struct report_column state_columns[] = {
	{.key = "mean_c", .kind = REPORT_NUMBER, .help = "degrees Celsius"},
	{.key = "highest_c", .kind = REPORT_NUMBER},
	{.key = "temperature_reason", .kind = REPORT_TEXT, .help = "why these two are null"},
	{.key = "mean_mhz", .kind = REPORT_NUMBER},
	{.key = "lowest_mhz", .kind = REPORT_NUMBER},
	{.key = "highest_mhz", .kind = REPORT_NUMBER},
	{.key = "clock_reason", .kind = REPORT_TEXT, .help = "why these three are null"},
};
const struct report_shape report_state_shape = REPORT_SHAPE(state_columns);

static const struct report_column side_columns[] = {
	{.key = "kind", .kind = REPORT_TEXT, .help = "what the figures are, or why there are none"},
	{.key = "net_j", .kind = REPORT_JOULES},
	{.key = "full_j", .kind = REPORT_JOULES, .help = "with the idle share"},
	{.key = "uncertainty_j", .kind = REPORT_JOULES},
	{.key = "rail_j",
		.kind = REPORT_JOULES,
		.help = "everything that the rails took meanwhile"},
	{.key = "average_w", .kind = REPORT_WATTS},
	{.key = "peak_w", .kind = REPORT_WATTS},
	{.key = "period_ns", .kind = REPORT_NS, .help = "of the slowest sensor"},
	{.key = "state",
		.kind = REPORT_OBJECT,
		.shape = &report_state_shape,
		.help = "temperature and clock of the rails meanwhile"},
};
static const struct report_shape side_shape = REPORT_SHAPE(side_columns);

static const struct report_column columns[] = {
	{.key = "net_j", .kind = REPORT_JOULES},
	{.key = "full_j", .kind = REPORT_JOULES, .help = "with the idle share"},
	{.key = "uncertainty_j", .kind = REPORT_JOULES},
	{.key = "average_w", .kind = REPORT_WATTS},
	{.key = "peak_w", .kind = REPORT_WATTS},
	{.key = "reason", .kind = REPORT_TEXT, .help = "why it is not known"},
	{.key = "aggregated",
		.kind = REPORT_FLAG,
		.help = "for all spans together, because each is too short"},
	{.key = "allocated", .kind = REPORT_FLAG, .help = "a share of a batch, by tokens"},
	{.key = "cost", .kind = REPORT_NUMBER, .help = "null without --price"},
	{.key = "co2_g", .kind = REPORT_NUMBER, .help = "null without --co2"},
	{.key = "host", .kind = REPORT_OBJECT, .shape = &side_shape},
	{.key = "device", .kind = REPORT_OBJECT, .shape = &side_shape},
};
const struct report_shape report_joules_shape = REPORT_SHAPE(columns);

void report_add_state(struct result *result, const struct span_state *state)
{
	result_open(result);
	result_number(result, state->mean_c);
	result_number(result, state->highest_c);
	result_text(result, state->temperature_reason);
	result_number(result, state->mean_mhz);
	result_number(result, state->lowest_mhz);
	result_number(result, state->highest_mhz);
	result_text(result, state->clock_reason);
	result_close(result);
}

static void add_side(struct result *result, const struct span_energy_part *side)
{
	const double figures[] = {side->net_j, side->full_j, side->uncertainty_j, side->rail_j,
		side->average_w, side->peak_w};

	result_open(result);
	result_text(result, span_energy_kind_name(side->kind));
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		result_number(result, span_energy_is_known(side->kind) ? figures[i] : NAN);
	result_known(result, side->period_ns != 0, side->period_ns);
	report_add_state(result, &side->state);
	result_close(result);
}

void report_add_joules_member(
	struct result *result, const struct report_view *view, const struct joules *joules)
{
	if (!joules) {
		result_null(result);
		return;
	}
	result_open(result);
	result_number(result, joules->net_j);
	result_number(result, joules->full_j);
	result_number(result, joules->uncertainty_j);
	result_number(result, joules->average_w);
	result_number(result, joules->peak_w);
	result_text(result, joules->reason);
	result_flag(result, joules->is_aggregated);
	result_flag(result, joules->is_allocated);
	result_number(result, energy_cost(&view->rates, joules->full_j));
	result_number(result, energy_co2_g(&view->rates, joules->full_j));
	for (int i = 0; i < SPAN_ENERGY_SIDES; i++) {
		if (joules->is_allocated)
			result_null(result);
		else
			add_side(result, &joules->sides[i]);
	}
	result_close(result);
}

void report_add_joules(struct result *result, const struct report_view *view,
	const struct joules *joules, double count)
{
	bool is_known = joules && !isnan(joules->full_j);

	result_number(result, is_known ? joules->full_j : NAN);
	result_number(result, is_known ? joules->uncertainty_j : NAN);
	result_flag(result, is_known && joules->is_allocated);
	result_share(result, is_known ? joules->full_j : NAN, count);
	report_add_joules_member(result, view, joules);
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

static const char *sentence_of(const char *reason)
{
	static const struct {
		const char *reason, *text;
	} sentences[] = {
		{"no_source", "nothing was measured"},
		{"not_measured", "the source had a gap meanwhile"},
		{"shorter_than_sensor", "too short for the sensor, and too few to add up"},
		{"begin_or_end_not_seen", "begin or end was not seen"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(sentences); i++) {
		if (strcmp(sentences[i].reason, reason) == 0)
			return sentences[i].text;
	}
	return reason;
}

void energy_reasons_say(
	const struct energy_reasons *reasons, const struct report_view *view, struct result *result)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!view->span_energy)
		return;
	strbuf_add(&text, "Energy is that of the process, with a share of the idle power by time.");
	if (reasons->is_aggregated)
		strbuf_add(&text, " For times too short to be measured one by one it is the energy "
				  "of all together.");
	if (reasons->is_allocated)
		strbuf_add(
			&text, " Shared: a share of the energy of a batch, by tokens (allocated).");
	for (size_t i = 0; i < ARRAY_SIZE(reasons->texts) && reasons->texts[i]; i++)
		strbuf_addf(&text, " Not known in %zu rows: %s (%s).", reasons->counts[i],
			sentence_of(reasons->texts[i]), reasons->texts[i]);
	result_say(result, 0, &text);
}
