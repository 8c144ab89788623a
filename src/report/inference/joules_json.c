/* SPDX-License-Identifier: Apache-2.0 */
#include "report/inference/joules_json.h"

#include "report/tables_json.h"

static void write_side(
	struct json_writer *json, const char *key, const struct span_energy_part *side)
{
	bool is_known = span_energy_is_known(side->kind);

	json_key(json, key);
	json_begin_object(json);
	json_member_text(json, "kind", span_energy_kind_name(side->kind));
	if (is_known) {
		json_member_double(json, "net_j", side->net_j);
		json_member_double(json, "full_j", side->full_j);
		json_member_double(json, "uncertainty_j", side->uncertainty_j);
		json_member_double(json, "rail_j", side->rail_j);
		json_member_double(json, "average_w", side->average_w);
		json_member_double(json, "peak_w", side->peak_w);
	}
	json_member_known(json, "period_ns", side->period_ns != 0, side->period_ns);
	json_end_object(json);
}

void json_member_joules(
	struct json_writer *json, const struct joules *joules, const struct energy_rates *rates)
{
	json_key(json, "energy");
	json_begin_object(json);
	json_member_double(json, "net_j", joules->net_j);
	json_member_double(json, "full_j", joules->full_j);
	json_member_double(json, "uncertainty_j", joules->uncertainty_j);
	json_member_double(json, "average_w", joules->average_w);
	json_member_double(json, "peak_w", joules->peak_w);
	json_member_text(json, "reason", joules->reason);
	json_key(json, "aggregated");
	json_bool(json, joules->is_aggregated);
	json_key(json, "allocated");
	json_bool(json, joules->is_allocated);
	if (rates) {
		json_member_double(json, "cost", energy_cost(rates, joules->full_j));
		json_member_double(json, "co2_g", energy_co2_g(rates, joules->full_j));
	}
	if (!joules->is_allocated) {
		write_side(json, "host", &joules->sides[SPAN_ENERGY_HOST]);
		write_side(json, "device", &joules->sides[SPAN_ENERGY_DEVICE]);
	}
	json_end_object(json);
}
