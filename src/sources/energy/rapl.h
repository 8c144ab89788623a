/* SPDX-License-Identifier: Apache-2.0 */
/* What the two doors to RAPL share: its rails have one name each, whichever of them reads them. */
#pragma once

#include "sources/energy/source.h"

/* A rail of this name: "package-0", "core-0-die-1", "dram-0", "uncore-0", "psys"; NULL: no room. */
struct energy_rail *rapl_add_rail(
	struct energy_found *found, const struct energy_place *place, const char *name);
/* Cores and uncore into their package, once all rails are there. */
void rapl_place_rails(struct energy_found *found);
/* The number of the package in a rail's name; -1: it has none. */
int rapl_package(const char *rail_name);
