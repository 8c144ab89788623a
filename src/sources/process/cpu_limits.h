/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What keeps a process from CPUs that are free: the quota of its cgroup (Kubernetes' "limits.cpu",
 * docker's --cpus, systemd's CPUQuota), and processors that slow down since they are hot. Both are
 * counts that only grow, read from cgroupfs (version 1 or 2) and sysfs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPU_LIMITS_PATH_BYTES 4608

/* Where to look, found once: the process may end while it is looked at. */
struct cpu_limits_place {
	char cgroup[CPU_LIMITS_PATH_BYTES]; /* the folder with the tightest quota; "": none has one
					     */
	const char *sysfs;                  /* "/sys", or a test's */
	double quota_cpus;                  /* so many CPUs' time */
};

struct cpu_limits {
	bool has_quota, has_heat; /* are the next ones known? */
	uint64_t throttled_ns; /* that the cgroup's tasks were not let run, of all its CPUs together
				*/
	uint64_t heat_ns;      /* that the cores were slowed down, added */
};

/* Never fails: what cannot be read is not known. `sysfs` lives on. */
void cpu_limits_find(struct cpu_limits_place *place, const char *sysfs, const char *cgroup_file);
void cpu_limits_read(const struct cpu_limits_place *place, struct cpu_limits *ret_limits);
