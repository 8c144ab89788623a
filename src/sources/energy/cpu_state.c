/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/energy/cpu_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "sources/energy/rapl.h"
#include "sources/energy/sysfs.h"

#define HWMON      "/sys/class/hwmon"
#define CPUS       "/sys/devices/system/cpu"
#define SENSOR_MAX 32

struct cpu_state {
	unsigned count;
	struct {
		int temperature, clock; /* descriptors; -1 */
	} rails[ENERGY_MAX_RAILS];
};

/* intel: the input whose label is "Package id N"; AMD's k10temp has one chip per package, in order.
 */
static int open_temperature(const struct energy_place *place, int package)
{
	_cleanup_sysfs_names_ struct sysfs_names chips = {0};
	char path[SYSFS_PATH_MAX], text[64], wanted[32];
	int k10temps = 0;

	snprintf(wanted, sizeof(wanted), "Package id %d", package);
	if (sysfs_path(path, place->root, HWMON) < 0 || sysfs_list(path, "hwmon", &chips) < 0)
		return -1;
	for (unsigned i = 0; i < chips.count; i++) {
		const char *chip = chips.items[i];

		if (sysfs_path(path, place->root, HWMON "/%s/name", chip) < 0 ||
			sysfs_read_text(path, text, sizeof(text)) < 0)
			continue;
		if (strcmp(text, "k10temp") == 0 && k10temps++ == package) {
			sysfs_path(path, place->root, HWMON "/%s/temp1_input", chip);
			return sysfs_open(path);
		}
		for (unsigned k = 1; strcmp(text, "coretemp") == 0 && k <= SENSOR_MAX; k++) {
			char label[64] = "";

			sysfs_path(path, place->root, HWMON "/%s/temp%u_label", chip, k);
			if (sysfs_read_text(path, label, sizeof(label)) < 0 ||
				strcmp(label, wanted) != 0)
				continue;
			sysfs_path(path, place->root, HWMON "/%s/temp%u_input", chip, k);
			return sysfs_open(path);
		}
	}
	return -1;
}

static int open_clock(const struct energy_place *place, int package)
{
	_cleanup_sysfs_names_ struct sysfs_names cpus = {0};
	char path[SYSFS_PATH_MAX];
	uint64_t of;

	if (sysfs_path(path, place->root, CPUS) < 0 || sysfs_list(path, "cpu", &cpus) < 0)
		return -1;
	for (unsigned i = 0; i < cpus.count; i++) {
		const char *cpu = cpus.items[i];

		if (sysfs_path(path, place->root, CPUS "/%s/topology/physical_package_id", cpu) <
				0 ||
			sysfs_read_u64(path, &of) < 0 || of != (uint64_t)package)
			continue;
		sysfs_path(path, place->root, CPUS "/%s/cpufreq/scaling_cur_freq", cpu);
		return sysfs_open(path);
	}
	return -1;
}

struct cpu_state *cpu_state_open(const struct energy_place *place, const struct energy_found *found)
{
	struct cpu_state *state = calloc(1, sizeof(*state));

	if (!state)
		return NULL;
	state->count = found->count;
	for (unsigned i = 0; i < found->count; i++) {
		const struct energy_rail *rail = &found->rails[i];
		int package = rapl_package(rail->name);

		state->rails[i].temperature = state->rails[i].clock = -1;
		if (rail->part != WIRE_ENERGY_CPU || package < 0)
			continue;
		state->rails[i].temperature = open_temperature(place, package);
		state->rails[i].clock = open_clock(place, package);
	}
	return state;
}

void cpu_state_look(struct cpu_state *state, struct wire_energy_state *states)
{
	for (unsigned i = 0; state && i < state->count; i++) {
		int64_t value;

		if (state->rails[i].temperature >= 0 &&
			sysfs_reread(state->rails[i].temperature, &value) == 0 &&
			value > INT32_MIN && value < INT32_MAX)
			states[i].temperature_mc = (int32_t)value;
		if (state->rails[i].clock >= 0 &&
			sysfs_reread(state->rails[i].clock, &value) == 0 && value > 0 &&
			value / 1000 < UINT32_MAX)
			states[i].clock_mhz = (uint32_t)(value / 1000);
	}
}

struct cpu_state *cpu_state_close(struct cpu_state *state)
{
	for (unsigned i = 0; state && i < state->count; i++) {
		closep(&state->rails[i].temperature);
		closep(&state->rails[i].clock);
	}
	free(state);
	return NULL;
}
