/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/process/cpu_limits.h"

#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"

#define TEXT_BYTES 4096

/* The head of a small file; false when it cannot be read. */
static bool read_text(const char *path, char ret_text[TEXT_BYTES])
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, ret_text, TEXT_BYTES - 1);

	if (length < 0)
		return false;
	ret_text[length] = '\0';
	return true;
}

static bool read_file_of(const char *folder, const char *name, char ret_text[TEXT_BYTES])
{
	char path[CPU_LIMITS_PATH_BYTES + 32];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return read_text(path, ret_text);
}

/* CPUs that a cgroup may use; 0: as many as there are. */
static double quota_of(const char *folder)
{
	char text[TEXT_BYTES];
	double quota = 0, period = 0;

	if (read_file_of(folder, "cpu.max", text)) /* "max 100000" where there is none */
		return sscanf(text, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0
			       ? quota / period
			       : 0;
	if (!read_file_of(folder, "cpu.cfs_quota_us", text) || sscanf(text, "%lf", &quota) != 1 ||
		quota <= 0)
		return 0;
	if (!read_file_of(folder, "cpu.cfs_period_us", text) || sscanf(text, "%lf", &period) != 1 ||
		period <= 0)
		return 0;
	return quota / period;
}

/* This cgroup and those that it is in, up to the mount: the tightest quota is the one that counts.
 */
static void look_upwards(struct cpu_limits_place *place, const char *mount, const char *path)
{
	char folder[CPU_LIMITS_PATH_BYTES];
	size_t mount_length = strlen(mount);

	if (strstr(path, "/..") || /* outside of the namespace whose cgroups we see */
		snprintf(folder, sizeof(folder), "%s%s", mount, path) >= (int)sizeof(folder))
		return;
	for (;;) {
		double quota = quota_of(folder);
		char *end;

		if (quota > 0 && (!place->cgroup[0] || quota < place->quota_cpus)) {
			place->quota_cpus = quota;
			memcpy(place->cgroup, folder, sizeof(folder));
		}
		end = strrchr(folder, '/');
		if (!end || (size_t)(end - folder) < mount_length)
			return;
		*end = '\0';
	}
}

static bool has_controller(const char *controllers, const char *wanted)
{
	size_t length = strlen(wanted);

	for (const char *at = controllers; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, wanted, length) == 0 && (at[length] == ',' || !at[length]))
			return true;
	}
	return false;
}

/* Lines are "ID:CONTROLLERS:PATH"; that of version 2 is "0::PATH". */
static void take_line(struct cpu_limits_place *place, const char *sysfs, char *line)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;
	char mount[256];

	if (!path)
		return;
	*path++ = '\0';
	controllers++;
	if (!*controllers) {
		static const char *const mounts[] = {"/fs/cgroup", "/fs/cgroup/unified"};

		for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
			snprintf(mount, sizeof(mount), "%s%s", sysfs, mounts[i]);
			look_upwards(place, mount, path);
		}
	} else if (has_controller(controllers, "cpu")) {
		snprintf(mount, sizeof(mount), "%s/fs/cgroup/%s", sysfs, controllers);
		look_upwards(place, mount, path);
	}
}

void cpu_limits_find(struct cpu_limits_place *place, const char *sysfs, const char *cgroup_file)
{
	char text[TEXT_BYTES], *line, *rest = text;

	*place = (struct cpu_limits_place){.sysfs = sysfs};
	if (!read_text(cgroup_file, text))
		return;
	while ((line = strsep(&rest, "\n")))
		take_line(place, sysfs, line);
}

static bool number_after(const char *text, const char *name, uint64_t *ret_value)
{
	const char *at = strstr(text, name);

	return at && sscanf(at + strlen(name), " %" SCNu64, ret_value) == 1;
}

/* The kernel has it on Intel's processors; elsewhere it is not known. */
static void read_heat(const char *sysfs, struct cpu_limits *limits)
{
	char pattern[300], text[TEXT_BYTES];
	glob_t found;

	snprintf(pattern, sizeof(pattern),
		"%s/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_total_time_ms",
		sysfs);
	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		uint64_t ms;

		if (!read_text(found.gl_pathv[i], text) || sscanf(text, "%" SCNu64, &ms) != 1)
			continue;
		limits->has_heat = true;
		limits->heat_ns += ms * NS_PER_MS;
	}
	globfree(&found);
}

void cpu_limits_read(const struct cpu_limits_place *place, struct cpu_limits *ret_limits)
{
	char text[TEXT_BYTES];
	uint64_t value;

	*ret_limits = (struct cpu_limits){0};
	if (place->cgroup[0] && read_file_of(place->cgroup, "cpu.stat", text)) {
		if (number_after(text, "throttled_usec", &value)) {
			ret_limits->has_quota = true;
			ret_limits->throttled_ns = value * NS_PER_US;
		} else if (number_after(text, "throttled_time", &value)) {
			ret_limits->has_quota = true;
			ret_limits->throttled_ns = value;
		}
	}
	if (place->sysfs)
		read_heat(place->sysfs, ret_limits);
}
