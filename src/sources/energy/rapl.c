/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/energy/rapl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cpu_list.h"
#include "base/macros.h"
#include "sources/energy/sysfs.h"

/* Two kilowatts are more than any socket takes, and less than a counter that jumped. */
#define SOCKET_LIMIT_W   2000
#define PLATFORM_LIMIT_W 10000
/* Of RAPL against the plug, uncalibrated: docs/energy.md. */
#define RELATIVE_ERROR 0.05

#define CPUS "/sys/devices/system/cpu"
/* Of a zone of powercap: over seconds, over less, and at once. */
#define CONSTRAINTS_MAX 3

static const struct {
	const char *prefix;
	enum wire_energy_part part;
	double implausible_w;
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
	rail->implausible_w = is_known ? rapl_parts[kind].implausible_w : SOCKET_LIMIT_W;
	rail->may_rest = !is_known || rapl_parts[kind].may_rest;
	if (rail->part == WIRE_ENERGY_PLATFORM)
		rail->encloses = ENERGY_CPU_PARTS | ENERGY_PART(WIRE_ENERGY_DRAM);
	return rail;
}

static void place_rails(struct energy_found *found)
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

int rapl_zone_name(const char *root, const char *zone, char *ret_name, size_t size)
{
	const char *parent_end = strrchr(zone, ':'), *suffix;
	char path[SYSFS_PATH_MAX], parent[64], own[32];
	int r;

	r = sysfs_path(path, root, RAPL_ZONES "/%s/name", zone);
	if (r == 0)
		r = sysfs_read_text(path, own, sizeof(own));
	if (r < 0)
		return r;
	if (strchr(zone, ':') == parent_end) {
		snprintf(ret_name, size, "%s", own);
		return 0;
	}
	r = sysfs_path(path, root, RAPL_ZONES "/%.*s/name", (int)(parent_end - zone), zone);
	if (r == 0)
		r = sysfs_read_text(path, parent, sizeof(parent));
	if (r < 0)
		return r;
	suffix = strchr(parent, '-');
	snprintf(ret_name, size, "%s%s", own, suffix ? suffix : "");
	return 0;
}

/* ---- what rails are set to take at most ---- */

/* Of a zone, over seconds; 0: it has none, or it is switched off. */
static double read_limit_w(const char *root, const char *zone)
{
	char path[SYSFS_PATH_MAX], text[32];
	uint64_t number;

	if (sysfs_path(path, root, RAPL_ZONES "/%s/enabled", zone) < 0 ||
		(sysfs_read_u64(path, &number) == 0 && !number))
		return 0;
	for (unsigned i = 0; i < CONSTRAINTS_MAX; i++) {
		if (sysfs_path(path, root, RAPL_ZONES "/%s/constraint_%u_name", zone, i) < 0 ||
			sysfs_read_text(path, text, sizeof(text)) < 0 ||
			strcmp(text, "long_term") != 0)
			continue;
		sysfs_path(path, root, RAPL_ZONES "/%s/constraint_%u_power_limit_uw", zone, i);
		return sysfs_read_u64(path, &number) == 0 ? (double)number / 1e6 : 0;
	}
	return 0;
}

static void find_limits(struct energy_found *found, const struct energy_place *place)
{
	_cleanup_sysfs_names_ struct sysfs_names zones = {0};
	char path[SYSFS_PATH_MAX], name[64];

	if (sysfs_path(path, place->root, RAPL_ZONES) < 0 ||
		sysfs_list(path, "intel-rapl", &zones) < 0)
		return;
	for (unsigned i = 0; i < zones.count; i++) {
		double limit_w;

		if (!strchr(zones.items[i], ':') ||
			rapl_zone_name(place->root, zones.items[i], name, sizeof(name)) < 0)
			continue;
		limit_w = read_limit_w(place->root, zones.items[i]);
		for (unsigned k = 0; k < found->count; k++) {
			struct energy_rail *rail = &found->rails[k];

			/* Zones of MMIO are the same rails again: the lower limit is in force. */
			if (limit_w > 0 && strcmp(rail->name, name) == 0 &&
				(limit_w < rail->limit_w || !(rail->limit_w > 0)))
				rail->limit_w = limit_w;
		}
	}
}

/* ---- whose rails they are ---- */

int rapl_find_package(const char *root, unsigned cpu, unsigned *ret_package, unsigned *ret_die)
{
	char path[SYSFS_PATH_MAX];
	uint64_t package = 0, die = 0;
	int r;

	r = sysfs_path(path, root, CPUS "/cpu%u/topology/physical_package_id", cpu);
	if (r == 0)
		r = sysfs_read_u64(path, &package);
	if (r < 0)
		return r;
	if (sysfs_path(path, root, CPUS "/cpu%u/topology/die_id", cpu) < 0 ||
		sysfs_read_u64(path, &die) < 0)
		die = 0;
	*ret_package = (unsigned)MIN(package, (uint64_t)UINT16_MAX);
	*ret_die = (unsigned)MIN(die, (uint64_t)UINT16_MAX);
	return 0;
}

struct place_of_cpu {
	unsigned cpu, package, die;
};

struct topology {
	ARRAY_OF(struct place_of_cpu) cpus; /* those that are online */
};

static int read_topology(struct topology *topology, const struct energy_place *place)
{
	char path[SYSFS_PATH_MAX], text[1024];
	const char *list = text;
	unsigned first, last;
	int r;

	r = sysfs_path(path, place->root, CPUS "/possible");
	if (r == 0)
		r = sysfs_read_text(path, text, sizeof(text));
	while (r == 0 && cpu_list_next(&list, &first, &last)) {
		for (struct place_of_cpu of = {.cpu = first}; r == 0 && of.cpu <= last; of.cpu++) {
			if (rapl_find_package(place->root, of.cpu, &of.package, &of.die) == 0)
				r = array_append(&topology->cpus, of);
		}
	}
	return r;
}

/* Is the processor in the package, or the die, of the rail's name? */
static bool is_fed(const struct energy_rail *rail, const struct place_of_cpu *of)
{
	const char *die = strstr(rail->name, "-die-");

	return rapl_package(rail->name) == (int)of->package &&
	       (!die || strtoul(die + strlen("-die-"), NULL, 10) == of->die);
}

/* Left empty where the rail feeds all processors, or none that are known. */
static void list_cpus(struct energy_rail *rail, const struct topology *topology)
{
	_cleanup_free_ struct cpu_set *cpus = calloc(1, sizeof(*cpus));
	_cleanup_strbuf_ struct strbuf text = {0};
	bool has_others = false;

	array_foreach (&topology->cpus, of) {
		if (cpus && is_fed(rail, of))
			cpu_set_add(cpus, of->cpu);
		else
			has_others = true;
	}
	if (cpus && has_others)
		cpu_set_format(cpus, &text);
	if (text.length < sizeof(rail->cpus))
		snprintf(rail->cpus, sizeof(rail->cpus), "%s", strbuf_cstr(&text));
}

static void find_cpus(struct energy_found *found, const struct energy_place *place)
{
	struct topology topology = {0};

	if (read_topology(&topology, place) == 0) {
		for (unsigned i = 0; i < found->count; i++) {
			if (rapl_package(found->rails[i].name) >= 0)
				list_cpus(&found->rails[i], &topology);
		}
	}
	array_done(&topology.cpus);
}

void rapl_describe_rails(struct energy_found *found, const struct energy_place *place)
{
	place_rails(found);
	find_limits(found, place);
	find_cpus(found, place);
}
