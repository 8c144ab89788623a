/* SPDX-License-Identifier: Apache-2.0 */
#include "model/energy.h"

bool model_energy_cut(struct model_energy_interval *interval, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t start = MAX(interval->start_ns, begin_ns), end = MIN(interval->end_ns, end_ns);
	double share;

	if (start >= end)
		return false;
	if (start == interval->start_ns && end == interval->end_ns)
		return true;
	share = (double)(end - start) / (double)(interval->end_ns - interval->start_ns);
	interval->start_ns = start;
	interval->end_ns = end;
	interval->energy_j *= share;
	interval->busy_ns *= share;
	interval->is_cut = true;
	return true;
}

void model_energy_index(struct model *model)
{
	array_foreach (&model->energy_domains, domain)
		domain->first_interval = domain->interval_count = 0;
	for (uint32_t i = 0; i < model->energy_intervals.count; i++) {
		struct model_energy_domain *domain =
			&model->energy_domains.items[model->energy_intervals.items[i].domain];

		if (!domain->interval_count++)
			domain->first_interval = i;
	}
}

/* ---- names ---- */

const char *model_energy_part_name(unsigned part)
{
	return wire_energy_part_name(part);
}

const char *model_energy_quality_name(unsigned quality)
{
	return wire_energy_quality_name(quality);
}

const char *model_energy_gap_name(unsigned gap)
{
	static const char *const names[WIRE_ENERGY_GAP_MAX] = {
		[WIRE_ENERGY_NO_GAP] = "none",
		[WIRE_ENERGY_READ_FAILED] = "read failed",
		[WIRE_ENERGY_IMPLAUSIBLE] = "implausible",
		[WIRE_ENERGY_WENT_BACK] = "counter went back",
		[WIRE_ENERGY_SUSPENDED] = "machine slept",
		[WIRE_ENERGY_STALLED] = "source stalled",
		[WIRE_ENERGY_SOURCE_ENDED] = "source ended",
	};

	return gap < WIRE_ENERGY_GAP_MAX ? names[gap] : NULL;
}
