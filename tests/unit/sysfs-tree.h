/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up /sys in a folder of its own, below TMPDIR. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

struct tree {
	char root[64];
};

static inline void tree_make(struct tree *tree)
{
	const char *folder = getenv("TMPDIR");

	snprintf(tree->root, sizeof(tree->root), "%s/sonde-tree-XXXXXX", folder ? folder : "/tmp");
	if (!mkdtemp(tree->root) || chmod(tree->root, 0755) < 0)
		abort();
}

static inline void tree_path(const struct tree *tree, const char *path, char *ret_path, size_t size)
{
	char *slash;

	snprintf(ret_path, size, "%s/%s", tree->root, path);
	slash = strrchr(ret_path, '/');
	*slash = '\0';
	if (make_directories(ret_path, 0755) < 0)
		abort();
	*slash = '/';
}

/* The file as it is then, in place: who has it open sees it. */
static inline void tree_write(const struct tree *tree, const char *path, const char *text)
{
	char full[512];
	FILE *file;

	tree_path(tree, path, full, sizeof(full));
	file = fopen(full, "w");
	if (!file || fprintf(file, "%s\n", text) < 0 || fclose(file) != 0)
		abort();
}

static inline void tree_write_number(
	const struct tree *tree, const char *path, unsigned long long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", value);
	tree_write(tree, path, text);
}

/* A counter that runs while it is read: in place and of one length, so that no reader finds half a
 * number, or none. */
static inline int tree_open_counter(const struct tree *tree, const char *path)
{
	char full[512];

	tree_path(tree, path, full, sizeof(full));
	return open(full, O_WRONLY | O_CLOEXEC);
}

static inline bool tree_write_counter(int fd, unsigned long long value)
{
	char text[32];
	int length = snprintf(text, sizeof(text), "%014llu\n", value);

	return pwrite(fd, text, (size_t)length, 0) == length;
}

static inline void tree_link(const struct tree *tree, const char *path, const char *target)
{
	char full[512];

	tree_path(tree, path, full, sizeof(full));
	if (symlink(target, full) < 0)
		abort();
}

static inline void tree_remove(const struct tree *tree)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", tree->root);
	if (system(command) != 0)
		abort();
}

#define POWERCAP "sys/class/powercap/"

/* A zone of powercap. */
static inline void tree_zone(const struct tree *tree, const char *zone, const char *name,
	unsigned long long range, unsigned long long energy)
{
	char path[256];

	snprintf(path, sizeof(path), POWERCAP "%s/name", zone);
	tree_write(tree, path, name);
	snprintf(path, sizeof(path), POWERCAP "%s/max_energy_range_uj", zone);
	tree_write_number(tree, path, range);
	snprintf(path, sizeof(path), POWERCAP "%s/energy_uj", zone);
	tree_write_number(tree, path, energy);
}

#define PMU "sys/bus/event_source/devices/power/"

/* An event of the PMU `power`. The kernel's software events stand in for RAPL: 0 is the CPU clock
 * in nanoseconds, of which each is so many joules. */
static inline void tree_power_event(
	const struct tree *tree, const char *name, const char *config, const char *joules)
{
	char path[256];

	tree_write(tree, PMU "type", "1");
	tree_write(tree, PMU "cpumask", "0");
	snprintf(path, sizeof(path), PMU "events/%s", name);
	tree_write(tree, path, config);
	snprintf(path, sizeof(path), PMU "events/%s.scale", name);
	tree_write(tree, path, joules);
}

#define HWMON "sys/class/hwmon/"

/* A channel of a Jetson's INA3221. */
static inline void tree_ina3221(const struct tree *tree, unsigned hwmon, unsigned channel,
	const char *label, const char *millivolts, const char *milliamperes)
{
	char path[128];

	snprintf(path, sizeof(path), HWMON "hwmon%u/name", hwmon);
	tree_write(tree, path, "ina3221");
	snprintf(path, sizeof(path), HWMON "hwmon%u/in%u_label", hwmon, channel);
	tree_write(tree, path, label);
	snprintf(path, sizeof(path), HWMON "hwmon%u/in%u_input", hwmon, channel);
	tree_write(tree, path, millivolts);
	snprintf(path, sizeof(path), HWMON "hwmon%u/curr%u_input", hwmon, channel);
	tree_write(tree, path, milliamperes);
}

#define BATTERY "sys/class/power_supply/"

static inline void tree_battery(const struct tree *tree, const char *name, const char *status,
	const char *figure, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), BATTERY "%s/type", name);
	tree_write(tree, path, "Battery");
	snprintf(path, sizeof(path), BATTERY "%s/status", name);
	tree_write(tree, path, status);
	snprintf(path, sizeof(path), BATTERY "%s/%s", name, figure);
	tree_write(tree, path, value);
}
