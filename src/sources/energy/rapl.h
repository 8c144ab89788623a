/* SPDX-License-Identifier: Apache-2.0 */
/* What the two doors to RAPL share: its rails have one name each, whichever of them reads them. */
#pragma once

#include "sources/energy/source.h"

#define RAPL_ZONES "/sys/class/powercap"

/* A rail of this name: "package-0", "core-0-die-1", "dram-0", "uncore-0", "psys"; NULL: no room. */
struct energy_rail *rapl_add_rail(
	struct energy_found *found, const struct energy_place *place, const char *name);
/*
 * Once all rails are there: cores and uncore into their package; the power limit of each, as
 * powercap says it, and its processors where other rails feed the others.
 */
void rapl_describe_rails(struct energy_found *found, const struct energy_place *place);
/* The number of the package in a rail's name; -1: it has none. */
int rapl_package(const char *rail_name);
/* The name of a zone's rail: "intel-rapl:0:1" is "core-0". Returns 0 or a negative errno. */
int rapl_zone_name(const char *root, const char *zone, char *ret_name, size_t size);
/* The socket of a processor and the die on it. Returns 0 or a negative errno: it is offline. */
int rapl_find_package(const char *root, unsigned cpu, unsigned *ret_package, unsigned *ret_die);
