/* SPDX-License-Identifier: Apache-2.0 */
/* How the energy of one domain is charged: shared by the files of the accounting. */
#pragma once

#include "analyses/energy/use.h"

/* Of one interval, in joules: what becomes of it. */
struct energy_split {
	double idle_j, attributed_j, gaps_j, unattributed_j;
};

/* What of an interval is idle; the rest is to be split. */
double energy_idle_share(
	const struct model_energy_domain *domain, const struct model_energy_interval *interval);
/*
 * Adds the split of the interval of this index to its domain's, with the rests. Asserts that
 * nothing was lost. Returns 0 or -ENOMEM.
 */
int energy_add_split(struct energy_use *use, const struct model *model, uint32_t index,
	const struct energy_split *split);

/*
 * How energy was split that is charged next; returns its index in energy_errors, 0 (not known) when
 * there are too many, or -ENOMEM.
 */
int energy_add_error(struct model *model, const struct model_energy_error *error);

/* Charge the intervals of the domain of this index, each once. Return 0 or -ENOMEM. */
int energy_charge_samples(struct energy_use *use, struct model *model, uint32_t index);
int energy_charge_works(struct energy_use *use, struct model *model, uint32_t index);

static inline const struct model_energy_interval *energy_intervals_of(
	const struct model *model, uint32_t domain)
{
	return model->energy_intervals.items + model->energy_domains.items[domain].first_interval;
}
