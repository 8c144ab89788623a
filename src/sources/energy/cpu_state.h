/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temperature and clock of processors, for the rails of RAPL: the package's sensor (coretemp,
 * k10temp), and the frequency of the first processor of the package.
 */
#pragma once

#include "sources/energy/source.h"

struct cpu_state;

/* NULL: out of memory. What cannot be found is not known then. */
struct cpu_state *cpu_state_open(
	const struct energy_place *place, const struct energy_found *found);
void cpu_state_look(struct cpu_state *state, struct wire_energy_state *states);
struct cpu_state *cpu_state_close(struct cpu_state *state);
