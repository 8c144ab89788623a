/* SPDX-License-Identifier: Apache-2.0 */
#include "report/recording/energy_json.h"

#include <math.h>

#include "model/energy.h"
#include "report/tables_json.h"

static void write_bool(struct json_writer *json, const char *key, bool value)
{
	json_key(json, key);
	json_bool(json, value);
}

/* What a model that somebody gave says is told by a name of its own: it was not measured. */
static void write_figures(struct json_writer *json, const struct model_energy_domain *domain,
	const struct energy_domain_use *use)
{
	bool is_estimate = domain->quality == WIRE_ENERGY_ESTIMATED;

	json_member_double(json, "measured_j", is_estimate ? NAN : use->measured_j);
	json_member_double(json, "uncertainty_j", is_estimate ? NAN : use->uncertainty_j);
	if (is_estimate) {
		json_member_double(json, "est_energy_j", use->measured_j);
		json_member_double(json, "est_uncertainty_j", use->uncertainty_j);
	}
	json_member_double(json, "idle_j", use->idle_j);
	json_member_double(json, "attributed_j", use->attributed_j);
	json_member_double(json, "gaps_j", use->gaps_j);
	json_member_double(json, "unattributed_j", use->unattributed_j);
	json_member_double(json, "average_w", is_estimate ? NAN : use->average_w);
	json_member_double(json, "peak_w", is_estimate ? NAN : use->peak_w);
	if (is_estimate) {
		json_member_double(json, "est_average_w", use->average_w);
		json_member_double(json, "est_peak_w", use->peak_w);
	}
	json_member_text(json, "method", energy_method_name((enum energy_method)use->method));
	json_member_double(json, "conservation_error", use->is_counted ? use->residual : NAN);
}

static void write_state(struct json_writer *json, const struct energy_domain_use *use)
{
	bool has_temperature = use->lowest_mc != INT32_MIN;

	json_member_double(json, "lowest_c", has_temperature ? use->lowest_mc / 1000.0 : NAN);
	json_member_double(json, "highest_c", has_temperature ? use->highest_mc / 1000.0 : NAN);
	json_member_known(json, "lowest_mhz", use->lowest_mhz != 0, use->lowest_mhz);
	json_member_known(json, "highest_mhz", use->highest_mhz != 0, use->highest_mhz);
}

static void write_gaps(struct json_writer *json, const struct energy_domain_use *use)
{
	json_key(json, "not_measured");
	json_begin_array(json);
	for (unsigned gap = WIRE_ENERGY_NO_GAP + 1; gap < WIRE_ENERGY_GAP_MAX; gap++) {
		if (!use->gap_ns[gap])
			continue;
		json_begin_object(json);
		json_member_text(json, "reason", model_energy_gap_name(gap));
		json_member_u64(json, "time_ns", use->gap_ns[gap]);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_domain(struct json_writer *json, const struct model *model,
	const struct energy_use *energy, uint32_t index)
{
	const struct model_energy_domain *domain = &model->energy_domains.items[index];
	const struct energy_domain_use *use = &energy->domains.items[index];

	json_begin_object(json);
	json_member_text(json, "name", domain->name);
	json_member_text(json, "part", model_energy_part_name(domain->part));
	json_member_text(json, "host", domain->host);
	json_member_text(json, "device", domain->device);
	json_member_text(json, "part_of",
		domain->parent == MODEL_NONE ? NULL
					     : model->energy_domains.items[domain->parent].name);
	json_member_text(json, "source", domain->source);
	json_member_text(json, "quality", model_energy_quality_name(domain->quality));
	write_bool(json, "is_replayed", domain->is_replayed);
	write_bool(json, "is_counted", use->is_counted);
	json_member_text(json, "why_not_counted", use->why_not);
	write_figures(json, domain, use);
	json_member_known(json, "period_ns", use->period_ns != 0, use->period_ns);
	json_member_known(json, "read_cost_ns", domain->cost_ns != 0, domain->cost_ns);
	json_member_double(json, "relative_error", domain->relative_error);
	json_member_double(json, "idle_w", domain->idle_w);
	json_member_u64(json, "measured_ns", use->measured_ns);
	json_member_u64(json, "intervals", use->interval_count);
	json_member_u64(json, "cut_intervals", use->cut_count);
	json_member_u64(json, "overlap_ns", use->overlap_ns);
	write_gaps(json, use);
	write_state(json, use);
	json_end_object(json);
}

static void write_class(
	struct json_writer *json, const struct model *model, const struct energy_class *class)
{
	json_begin_object(json);
	json_member_text(json, "name", class->name);
	json_member_text(json, "domain", model->energy_domains.items[class->domain].name);
	json_member_u64(json, "threads_log2", class->size);
	json_member_u64(json, "count", class->count);
	json_member_u64(json, "time_ns", class->time_ns);
	json_member_double(json, "energy_j", class->energy_j);
	json_member_double(json, "power_w", class->power_w);
	json_member_double(json, "relative_standard_error",
		isfinite(class->standard_error) ? class->standard_error : NAN);
	json_member_text(json, "method", energy_method_name((enum energy_method) class->method));
	json_member_u64(json, "merged_with", class->merged);
	json_end_object(json);
}

static void write_sums(struct json_writer *json, const struct model *model,
	const struct energy_use *use, const struct energy_rates *rates)
{
	json_member_double(json, "measured_j", use->measured_j);
	json_member_double(json, "uncertainty_j", use->uncertainty_j);
	json_member_double(json, "idle_j", use->idle_j);
	json_member_double(json, "attributed_j", use->attributed_j);
	json_member_double(json, "gaps_j", use->gaps_j);
	json_member_double(json, "unattributed_j", use->unattributed_j);
	if (rates) {
		json_member_double(json, "cost", energy_cost(rates, use->measured_j));
		json_member_double(json, "co2_g", energy_co2_g(rates, use->measured_j));
	}
	json_key(json, "counted");
	json_begin_array(json);
	for (uint32_t i = 0; i < use->domains.count; i++) {
		if (use->domains.items[i].is_counted)
			json_string(json, model->energy_domains.items[i].name);
	}
	json_end_array(json);
}

static void write_absences(struct json_writer *json, const struct model *model)
{
	json_key(json, "absences");
	json_begin_array(json);
	array_foreach (&model->energy_absences, absence) {
		json_begin_object(json);
		json_member_text(json, "source", absence->source);
		json_member_text(json, "reason", absence->reason);
		json_end_object(json);
	}
	json_end_array(json);
}

void report_energy_json(struct json_writer *json, const struct model *model,
	const struct energy_use *use, const struct energy_rates *rates, size_t limit)
{
	json_key(json, "energy");
	if (!use || (!use->domains.count && !model->energy_absences.count)) {
		json_null(json);
		return;
	}
	json_begin_object(json);
	write_sums(json, model, use, rates);
	json_key(json, "domains");
	json_begin_array(json);
	for (uint32_t i = 0; i < use->domains.count; i++)
		write_domain(json, model, use, i);
	json_end_array(json);
	json_member_u64(json, "classes_total", use->classes.count);
	json_key(json, "classes");
	json_begin_array(json);
	for (size_t i = 0; i < use->classes.count && (!limit || i < limit); i++)
		write_class(json, model, &use->classes.items[i]);
	json_end_array(json);
	write_absences(json, model);
	json_end_object(json);
}
