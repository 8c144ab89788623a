/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a machine takes from its batteries, while it runs on them: the sum of those that discharge.
 * All other rails are in it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "sources/energy/source.h"
#include "sources/energy/sysfs.h"

#define FOLDER       "/sys/class/power_supply"
#define BATTERIES    4
#define TICK_NS      NS_PER_S
#define MOST_WATTS   1000
#define STATUS_WORKS "Discharging"

struct batteries {
	unsigned count;
	struct {
		int status_fd;
		int power_fd;                  /* microwatts; -1: of voltage and current */
		int microvolts_fd, current_fd; /* microamperes */
	} items[BATTERIES];
};

static int open_file(const char *root, const char *name, const char *file)
{
	char path[SYSFS_PATH_MAX];
	int r = sysfs_path(path, root, FOLDER "/%s/%s", name, file);

	return r < 0 ? r : sysfs_open(path);
}

static void battery_close(void *state)
{
	struct batteries *batteries = state;

	for (unsigned i = 0; batteries && i < batteries->count; i++) {
		closep(&batteries->items[i].status_fd);
		closep(&batteries->items[i].power_fd);
		closep(&batteries->items[i].microvolts_fd);
		closep(&batteries->items[i].current_fd);
	}
	free(batteries);
}

static void open_battery(struct batteries *batteries, const char *root, const char *name)
{
	typeof(*batteries->items) *battery = &batteries->items[batteries->count];
	char path[SYSFS_PATH_MAX], type[32], scope[32] = "";

	if (batteries->count == BATTERIES || sysfs_path(path, root, FOLDER "/%s/type", name) < 0 ||
		sysfs_read_text(path, type, sizeof(type)) < 0 || strcmp(type, "Battery") != 0)
		return;
	/* A mouse has a battery too: its scope is its own. */
	if (sysfs_path(path, root, FOLDER "/%s/scope", name) == 0 &&
		sysfs_read_text(path, scope, sizeof(scope)) == 0 && strcmp(scope, "Device") == 0)
		return;
	battery->status_fd = open_file(root, name, "status");
	battery->power_fd = open_file(root, name, "power_now");
	battery->microvolts_fd = open_file(root, name, "voltage_now");
	battery->current_fd = open_file(root, name, "current_now");
	batteries->count++;
}

/* Some drivers give the current that leaves a negative sign. */
static int read_power(const struct batteries *batteries, unsigned index, uint64_t *ret_uw)
{
	int64_t power, microvolts = 0, microamperes = 0;
	int r;

	if (batteries->items[index].power_fd >= 0) {
		r = sysfs_reread(batteries->items[index].power_fd, &power);
		if (r < 0)
			return r;
		*ret_uw = (uint64_t)(power < 0 ? -power : power);
		return 0;
	}
	r = sysfs_reread(batteries->items[index].microvolts_fd, &microvolts);
	if (r == 0)
		r = sysfs_reread(batteries->items[index].current_fd, &microamperes);
	if (r < 0)
		return r;
	if (__builtin_mul_overflow(microvolts, microamperes, &power))
		return -EINVAL;
	*ret_uw = (uint64_t)(power < 0 ? -power : power) / 1000000;
	return 0;
}

/* -ENODATA: none of them discharges. */
static int read_all(const struct batteries *batteries, uint64_t *ret_uw)
{
	unsigned discharging = 0;

	*ret_uw = 0;
	for (unsigned i = 0; i < batteries->count; i++) {
		char status[32];
		uint64_t power = 0;
		int r = sysfs_reread_text(batteries->items[i].status_fd, status, sizeof(status));

		if (r == 0 && strcmp(status, STATUS_WORKS) != 0)
			continue;
		if (r == 0)
			r = read_power(batteries, i, &power);
		if (r < 0)
			return r;
		*ret_uw += power;
		discharging++;
	}
	return discharging ? 0 : -ENODATA;
}

static int battery_open(
	void **ret_state, const struct energy_place *place, struct energy_found *ret_found)
{
	_cleanup_sysfs_names_ struct sysfs_names names = {0};
	struct batteries *batteries = calloc(1, sizeof(*batteries));
	struct energy_rail *rail;
	char path[SYSFS_PATH_MAX];
	uint64_t power;
	int r;

	if (!batteries)
		return -ENOMEM;
	r = sysfs_path(path, place->root, FOLDER);
	if (r == 0)
		r = sysfs_list(path, "", &names);
	for (unsigned i = 0; i < names.count; i++)
		open_battery(batteries, place->root, names.items[i]);
	if (r == 0)
		r = batteries->count ? read_all(batteries, &power) : -ENOENT;
	if (r < 0) {
		errmsg_set(&ret_found->absence, r, "%s %s%s", path,
			r == -ENODATA  ? "has a battery, but the machine does not run on it: "
					 "unplug the charger to measure what the whole machine "
					 "takes"
			: r == -ENOENT ? "has no battery"
				       : "cannot be read: ",
			r == -ENODATA || r == -ENOENT ? "" : strerror(-r));
		battery_close(batteries);
		return r;
	}
	rail = energy_found_add(ret_found, WIRE_ENERGY_PLATFORM, "", "battery");
	rail->kind = ENERGY_POWER;
	rail->quality = WIRE_ENERGY_AVERAGED;
	rail->implausible_w = MOST_WATTS;
	rail->encloses = ENERGY_ALL_PARTS;
	ret_found->tick_ns = TICK_NS;
	*ret_state = batteries;
	return 0;
}

static void battery_read(void *state, struct energy_reading *readings)
{
	readings[0].error = read_all(state, &readings[0].value);
}

const struct energy_source battery_energy = {
	.name = "battery",
	.title = "the whole machine, from its batteries",
	.parts = ENERGY_PART(WIRE_ENERGY_PLATFORM),
	.open = battery_open,
	.read = battery_read,
	.close = battery_close,
};
