/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals of energy: which part of one lies in a span of time. */
#pragma once

#include "model/model.h"

/*
 * Leaves of an interval what lies in [begin_ns, end_ns), with the same share of its energy as of
 * its time. False: nothing does, and it is left as it was.
 */
bool model_energy_cut(struct model_energy_interval *interval, uint64_t begin_ns, uint64_t end_ns);
/* Says again which intervals are whose, after some were dropped. */
void model_energy_index(struct model *model);

/* "cpu", "dram" …; "counter", "averaged" …; "read failed" …; NULL: no such value. */
const char *model_energy_part_name(unsigned part);
const char *model_energy_quality_name(unsigned quality);
const char *model_energy_gap_name(unsigned gap);
