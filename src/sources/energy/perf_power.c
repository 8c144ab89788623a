/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RAPL as the kernel's PMU `power` counts it, in 64 bits that never wrap. One group of events for
 * each processor in its cpumask, which is one a package (or die), read with one system call.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu_list.h"
#include "base/file.h"
#include "sources/energy/cpu_state.h"
#include "sources/energy/rapl.h"
#include "sources/energy/sysfs.h"

#define FOLDER      "/sys/bus/event_source/devices/power"
#define GROUPS_MAX  16
#define MEMBERS_MAX 5
#define TICK_NS     (10 * NS_PER_MS)
/* For the first step, 2 ms apart. */
#define FIRST_STEP_LOOKS 25

static const struct {
	const char *event, *rail;
	bool is_of_machine; /* once, not once a package */
} events[MEMBERS_MAX] = {
	{"energy-pkg", "package", false},
	{"energy-cores", "core", false},
	{"energy-ram", "dram", false},
	{"energy-gpu", "uncore", false}, /* the graphics unit in the package */
	{"energy-psys", "psys", true},
};

struct perf_power {
	struct cpu_state *states;
	unsigned group_count;
	struct {
		int fds[MEMBERS_MAX]; /* the first one leads */
		unsigned count, first_rail;
	} groups[GROUPS_MAX];
};

struct power_event {
	uint64_t config;
	double joules_per_count;
};

/* "event=0x02" and "2.3283064365386962890625e-10"; -ENOENT: the machine does not count this. */
static int read_event(const char *root, const char *name, struct power_event *ret_event)
{
	char path[SYSFS_PATH_MAX], text[64], *end;
	int r;

	r = sysfs_path(path, root, FOLDER "/events/%s", name);
	if (r == 0)
		r = sysfs_read_text(path, text, sizeof(text));
	if (r < 0)
		return r;
	if (strncmp(text, "event=", strlen("event=")) != 0)
		return -EINVAL;
	ret_event->config = strtoull(text + strlen("event="), &end, 0);
	if (*end)
		return -EINVAL;
	r = sysfs_path(path, root, FOLDER "/events/%s.scale", name);
	if (r == 0)
		r = sysfs_read_text(path, text, sizeof(text));
	if (r < 0)
		return r;
	ret_event->joules_per_count = strtod(text, &end);
	return end == text || !(ret_event->joules_per_count > 0) ? -EINVAL : 0;
}

/* "-0", or "-0-die-1" where a package has several: as powercap names them. */
static void name_package(
	const char *root, unsigned cpu, bool has_dies, char *ret_suffix, size_t size)
{
	unsigned package, die;

	if (rapl_find_package(root, cpu, &package, &die) < 0)
		package = die = 0;
	if (has_dies)
		snprintf(ret_suffix, size, "-%u-die-%u", package, die);
	else
		snprintf(ret_suffix, size, "-%u", package);
}

/* "0,28" or "0-1" → processors. Returns their number. */
static unsigned parse_cpus(const char *text, unsigned cpus[GROUPS_MAX])
{
	unsigned count = 0, first, last;

	while (cpu_list_next(&text, &first, &last)) {
		for (; first <= last && count < GROUPS_MAX; first++)
			cpus[count++] = first;
	}
	return count;
}

static bool has_dies(const char *root, const unsigned *cpus, unsigned count)
{
	char first[64], other[64];

	for (unsigned i = 1; i < count; i++) {
		for (unsigned k = 0; k < i; k++) {
			name_package(root, cpus[i], false, first, sizeof(first));
			name_package(root, cpus[k], false, other, sizeof(other));
			if (strcmp(first, other) == 0)
				return true;
		}
	}
	return false;
}

static int open_counter(uint32_t type, uint64_t config, unsigned cpu, int leader)
{
	struct perf_event_attr attributes = {
		.type = type,
		.size = sizeof(attributes),
		.config = config,
		.read_format = PERF_FORMAT_GROUP,
	};
	int fd = (int)syscall(
		SYS_perf_event_open, &attributes, -1, (int)cpu, leader, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_group(struct perf_power *power, const struct energy_place *place, uint32_t type,
	unsigned cpu, const char *suffix, struct energy_found *found)
{
	typeof(*power->groups) *group = &power->groups[power->group_count];
	bool is_first = power->group_count == 0;

	group->first_rail = found->count;
	for (size_t i = 0; i < MEMBERS_MAX; i++) {
		struct power_event event;
		char name[64];
		struct energy_rail *rail;
		int fd;

		if (read_event(place->root, events[i].event, &event) < 0 ||
			(events[i].is_of_machine && !is_first))
			continue;
		fd = open_counter(type, event.config, cpu, group->count ? group->fds[0] : -1);
		if (fd < 0 && !group->count)
			return fd;
		if (fd < 0) /* a processor may offer what it does not count */
			continue;
		snprintf(name, sizeof(name), "%s%s", events[i].rail,
			events[i].is_of_machine ? "" : suffix);
		rail = rapl_add_rail(found, place, name);
		if (!rail) {
			close(fd);
			return -E2BIG;
		}
		rail->nj_per_unit = event.joules_per_count * 1e9;
		group->fds[group->count++] = fd;
	}
	power->group_count += group->count > 0;
	return group->count ? 0 : -ENOENT;
}

static void explain(const struct energy_place *place, struct energy_found *found, int error)
{
	char paranoid[16] = "unknown";

	sysfs_read_text("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
	if (error == -EACCES || error == -EPERM)
		errmsg_set(&found->absence, error,
			"opening the events of %s" FOLDER " is refused: %s "
			"(kernel.perf_event_paranoid is %s); sudo sysctl "
			"kernel.perf_event_paranoid=0, or the capability cap_perfmon for sonde "
			"(`sonde doctor` gives the command), or sudo",
			place->root, strerror(-error), paranoid);
	else if (error == -ENODATA)
		errmsg_set(&found->absence, error,
			"the events of %s" FOLDER
			" do not count: a virtual machine shows them, and its host gives them no "
			"values; measure on the host",
			place->root);
	else if (error == -ENOENT)
		errmsg_set(&found->absence, error,
			"%s" FOLDER
			" does not exist: the processor has no energy counters, this is a virtual "
			"machine, or the module is missing (sudo modprobe rapl)",
			place->root);
	else
		errmsg_set(&found->absence, error,
			"the events of %s" FOLDER " cannot be opened: %s", place->root,
			strerror(-error));
}

static void perf_power_close(void *state)
{
	struct perf_power *power = state;

	if (!power)
		return;
	for (unsigned i = 0; i <= power->group_count && i < GROUPS_MAX; i++) {
		for (unsigned k = 0; k < power->groups[i].count; k++)
			close(power->groups[i].fds[k]);
	}
	cpu_state_close(power->states);
	free(power);
}

static int open_groups(
	struct perf_power *power, const struct energy_place *place, struct energy_found *found)
{
	char path[SYSFS_PATH_MAX], cpumask[256], suffix[64];
	unsigned cpus[GROUPS_MAX], count;
	uint64_t type;
	bool dies;
	int r;

	r = sysfs_path(path, place->root, FOLDER "/type");
	if (r == 0)
		r = sysfs_read_u64(path, &type);
	if (r == 0)
		r = sysfs_path(path, place->root, FOLDER "/cpumask");
	if (r == 0)
		r = sysfs_read_text(path, cpumask, sizeof(cpumask));
	if (r < 0)
		return r;
	count = parse_cpus(cpumask, cpus);
	dies = has_dies(place->root, cpus, count);
	for (unsigned i = 0; i < count && r == 0; i++) {
		name_package(place->root, cpus[i], dies, suffix, sizeof(suffix));
		r = open_group(power, place, (uint32_t)type, cpus[i], suffix, found);
	}
	return r < 0 ? r : found->count ? 0 : -ENOENT;
}

static void perf_power_read(void *state, struct energy_reading *readings)
{
	struct perf_power *power = state;

	for (unsigned i = 0; i < power->group_count; i++) {
		unsigned count = power->groups[i].count;
		uint64_t values[1 + MEMBERS_MAX];
		ssize_t got = read(power->groups[i].fds[0], values, sizeof(values));
		int error = got < 0                                       ? -errno
			    : (size_t)got < (1 + count) * sizeof(*values) ? -ENODATA
									  : 0;

		for (unsigned k = 0; k < count; k++) {
			struct energy_reading *reading = &readings[power->groups[i].first_rail + k];

			reading->error = error;
			reading->value = error ? 0 : values[1 + k];
		}
	}
}

/* Counters begin at 0 and step a thousand times a second; those of a virtual machine may never. */
static bool has_counted(struct perf_power *power, unsigned rail_count)
{
	const struct timespec pause = {.tv_nsec = 2 * NS_PER_MS};
	struct energy_reading readings[ENERGY_MAX_RAILS] = {0};

	for (unsigned looks = 0; looks < FIRST_STEP_LOOKS; looks++) {
		perf_power_read(power, readings);
		for (unsigned i = 0; i < rail_count; i++) {
			if (readings[i].error || readings[i].value)
				return true;
		}
		nanosleep(&pause, NULL);
	}
	return false;
}

static int perf_power_open(
	void **ret_state, const struct energy_place *place, struct energy_found *ret_found)
{
	struct perf_power *power = calloc(1, sizeof(*power));
	int r;

	if (!power)
		return -ENOMEM;
	r = open_groups(power, place, ret_found);
	if (r == 0 && !has_counted(power, ret_found->count))
		r = -ENODATA;
	if (r < 0) {
		ret_found->count = 0;
		explain(place, ret_found, r);
		perf_power_close(power);
		return r;
	}
	rapl_describe_rails(ret_found, place);
	power->states = cpu_state_open(place, ret_found);
	ret_found->tick_ns = TICK_NS;
	*ret_state = power;
	return 0;
}

static void perf_power_look(void *state, struct wire_energy_state *states)
{
	struct perf_power *power = state;

	cpu_state_look(power->states, states);
}

const struct energy_source perf_energy = {
	.name = "perf",
	.title = "RAPL counters of processors, from perf",
	.parts = ENERGY_RAPL_PARTS,
	.open = perf_power_open,
	.read = perf_power_read,
	.look = perf_power_look,
	.close = perf_power_close,
};
