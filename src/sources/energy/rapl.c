/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/energy/rapl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

/* Two kilowatts are more than any socket takes, and less than a counter that jumped. */
#define SOCKET_LIMIT_W   2000
#define PLATFORM_LIMIT_W 10000
/* Of RAPL against the plug, uncalibrated: docs/energy.md. */
#define RELATIVE_ERROR 0.05

static const struct {
	const char *prefix;
	enum wire_energy_part part;
	double limit_w;
	bool may_rest;
} rapl_parts[] = {
	{"package", WIRE_ENERGY_CPU, SOCKET_LIMIT_W, false},
	{"core", WIRE_ENERGY_CORES, SOCKET_LIMIT_W, true},
	{"uncore", WIRE_ENERGY_UNCORE, SOCKET_LIMIT_W, true},
	{"dram", WIRE_ENERGY_DRAM, SOCKET_LIMIT_W, true},
	{"psys", WIRE_ENERGY_PLATFORM, PLATFORM_LIMIT_W, false},
};

int rapl_package(const char *rail_name)
{
	const char *dash = strchr(rail_name, '-');
	char *end;
	unsigned long number = dash ? strtoul(dash + 1, &end, 10) : 0;

	return dash && end != dash + 1 && number <= INT16_MAX ? (int)number : -1;
}

struct energy_rail *rapl_add_rail(
	struct energy_found *found, const struct energy_place *place, const char *name)
{
	size_t kind = 0, length = strcspn(name, "-");
	int package = rapl_package(name);
	char device[32] = "";
	struct energy_rail *rail;
	bool is_known;

	while (kind < ARRAY_SIZE(rapl_parts) &&
		(strlen(rapl_parts[kind].prefix) != length ||
			memcmp(rapl_parts[kind].prefix, name, length) != 0))
		kind++;
	if (package >= 0)
		snprintf(device, sizeof(device), "socket %d", package);
	is_known = kind < ARRAY_SIZE(rapl_parts);
	rail = energy_found_add(
		found, is_known ? rapl_parts[kind].part : WIRE_ENERGY_OTHER, device, "%s", name);
	if (!rail)
		return NULL;
	rail->kind = ENERGY_COUNTER;
	/* AMD's counters are a model's, of what the cores do. */
	rail->quality = place->is_amd ? WIRE_ENERGY_MODELLED : WIRE_ENERGY_COUNTER;
	rail->relative_error = RELATIVE_ERROR;
	rail->limit_w = is_known ? rapl_parts[kind].limit_w : SOCKET_LIMIT_W;
	rail->may_rest = !is_known || rapl_parts[kind].may_rest;
	if (rail->part == WIRE_ENERGY_PLATFORM)
		rail->encloses = ENERGY_CPU_PARTS | ENERGY_PART(WIRE_ENERGY_DRAM);
	return rail;
}

void rapl_place_rails(struct energy_found *found)
{
	for (unsigned i = 0; i < found->count; i++) {
		struct energy_rail *rail = &found->rails[i];

		if (rail->part != WIRE_ENERGY_CORES && rail->part != WIRE_ENERGY_UNCORE)
			continue;
		for (unsigned k = 0; k < found->count; k++) {
			const char *dash = strchr(rail->name, '-');
			const char *package = strchr(found->rails[k].name, '-');

			if (found->rails[k].part == WIRE_ENERGY_CPU && dash && package &&
				strcmp(dash, package) == 0)
				rail->parent = (int)k;
		}
	}
}
