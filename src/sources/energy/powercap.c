/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RAPL as powercap shows it: /sys/class/powercap/intel-rapl:N[:M]/energy_uj, of AMD's processors
 * too. The number of a zone says nothing; its `name` does. The zones of intel-rapl-mmio are the
 * same rails again, read in another way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "sources/energy/cpu_state.h"
#include "sources/energy/rapl.h"
#include "sources/energy/sysfs.h"

#define TICK_NS (10 * NS_PER_MS)

struct powercap {
	int fds[ENERGY_MAX_RAILS];
	unsigned count;
	struct cpu_state *states;
};

static bool is_known(const struct energy_found *found, const char *name)
{
	for (unsigned i = 0; i < found->count; i++) {
		if (strcmp(found->rails[i].name, name) == 0)
			return true;
	}
	return false;
}

static void open_zone(struct powercap *powercap, const struct energy_place *place, const char *zone,
	struct energy_found *found)
{
	char path[SYSFS_PATH_MAX], name[64];
	struct energy_rail *rail;
	_cleanup_close_ int fd = -1;
	uint64_t range;
	int64_t value;
	int r;

	if (rapl_zone_name(place->root, zone, name, sizeof(name)) < 0 || is_known(found, name))
		return;
	if (sysfs_path(path, place->root, RAPL_ZONES "/%s/max_energy_range_uj", zone) < 0 ||
		sysfs_read_u64(path, &range) < 0)
		range = 0;
	if (sysfs_path(path, place->root, RAPL_ZONES "/%s/energy_uj", zone) < 0)
		return;
	fd = sysfs_open(path);
	r = fd < 0 ? fd : sysfs_reread(fd, &value);
	if (r < 0) {
		energy_found_tried(found, path, r);
		return;
	}
	rail = rapl_add_rail(found, place, name);
	if (!rail)
		return;
	rail->range = range;
	rail->nj_per_unit = 1000;
	powercap->fds[powercap->count++] = TAKE_FD(fd);
}

/* Why there are no rails, or fewer than the machine has, and what would give them. */
static void explain(const struct energy_place *place, struct energy_found *found, int list_error)
{
	struct errmsg tried = found->absence;

	if (tried.text[0])
		errmsg_set(&found->absence, 0,
			"%s of RAPL cannot be read: %s; to let everybody read them: sudo chmod "
			"a+r " RAPL_ZONES
			"/intel-rapl*/energy_uj (a udev rule keeps it so), or run sonde with sudo",
			found->count ? "some counters" : "the counters", tried.text);
	else if (!found->count)
		errmsg_set(&found->absence, 0,
			"%s" RAPL_ZONES
			"/intel-rapl*: %s; a virtual machine has none unless its host gives it "
			"any, and Linux needs the module intel_rapl_msr (sudo modprobe "
			"intel_rapl_msr)",
			place->root, list_error ? strerror(-list_error) : "there is none");
}

static void powercap_close(void *state)
{
	struct powercap *powercap = state;

	if (!powercap)
		return;
	for (unsigned i = 0; i < powercap->count; i++)
		close(powercap->fds[i]);
	cpu_state_close(powercap->states);
	free(powercap);
}

static int powercap_open(
	void **ret_state, const struct energy_place *place, struct energy_found *ret_found)
{
	static const char *const kinds[] = {"intel-rapl:", "intel-rapl-mmio:"};
	struct powercap *powercap = calloc(1, sizeof(*powercap));
	char folder[SYSFS_PATH_MAX];
	int r;

	if (!powercap)
		return -ENOMEM;
	r = sysfs_path(folder, place->root, RAPL_ZONES);
	for (size_t kind = 0; kind < ARRAY_SIZE(kinds) && r == 0; kind++) {
		_cleanup_sysfs_names_ struct sysfs_names zones = {0};

		r = sysfs_list(folder, kinds[kind], &zones);
		for (unsigned i = 0; r == 0 && i < zones.count; i++)
			open_zone(powercap, place, zones.items[i], ret_found);
	}
	explain(place, ret_found, r);
	if (!ret_found->count) {
		powercap_close(powercap);
		return r < 0 ? r : -ENOENT;
	}
	rapl_describe_rails(ret_found, place);
	powercap->states = cpu_state_open(place, ret_found);
	ret_found->tick_ns = TICK_NS;
	*ret_state = powercap;
	return 0;
}

static void powercap_read(void *state, struct energy_reading *readings)
{
	struct powercap *powercap = state;

	for (unsigned i = 0; i < powercap->count; i++) {
		int64_t value = 0;

		readings[i].error = sysfs_reread(powercap->fds[i], &value);
		if (!readings[i].error && value < 0)
			readings[i].error = -EINVAL;
		readings[i].value = (uint64_t)value;
	}
}

static void powercap_look(void *state, struct wire_energy_state *states)
{
	struct powercap *powercap = state;

	cpu_state_look(powercap->states, states);
}

const struct energy_source powercap_energy = {
	.name = "powercap",
	.title = "RAPL counters of processors, from powercap",
	.parts = ENERGY_RAPL_PARTS,
	.open = powercap_open,
	.read = powercap_read,
	.look = powercap_look,
	.close = powercap_close,
};
