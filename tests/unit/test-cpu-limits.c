/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas of cgroups of both versions, and heat, in a tree of files like the kernel's. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/macros.h"
#include "sources/process/cpu_limits.h"

static char root[64];

/* Makes the folders on the way. */
static void put(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(full, 0700);
		*at = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/sonde-limits-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static struct cpu_limits_place find(const char *cgroup)
{
	struct cpu_limits_place place;
	char path[PATH_MAX];

	put("/cgroup", cgroup);
	snprintf(path, sizeof(path), "%s/cgroup", root);
	cpu_limits_find(&place, root, path);
	return place;
}

static void version_2(void **state)
{
	struct cpu_limits_place place;
	struct cpu_limits limits;

	(void)state;
	put("/fs/cgroup/pod/cpu.max", "150000 100000\n");
	put("/fs/cgroup/pod/cpu.stat", "usage_usec 9\nnr_throttled 3\nthrottled_usec 2500000\n");
	put("/fs/cgroup/pod/container/cpu.max", "max 100000\n");
	place = find("0::/pod/container\n");
	assert_float_equal(place.quota_cpus, 1.5, 1e-9);
	cpu_limits_read(&place, &limits);
	assert_true(limits.has_quota);
	assert_int_equal(limits.throttled_ns, 2500 * NS_PER_MS);
	assert_false(limits.has_heat);
}

static void version_1(void **state)
{
	struct cpu_limits_place place;
	struct cpu_limits limits;

	(void)state;
	put("/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
	put("/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
	put("/fs/cgroup/cpu,cpuacct/a/cpu.stat",
		"nr_periods 9\nnr_throttled 4\nthrottled_time 77\n");
	place = find("9:cpuset:/a\n4:cpu,cpuacct:/a\n0::/\n");
	assert_float_equal(place.quota_cpus, 0.5, 1e-9);
	cpu_limits_read(&place, &limits);
	assert_int_equal(limits.throttled_ns, 77);
}

static void no_quota(void **state)
{
	static const char *const files[] = {"0::/none\n", "0::/../other\n", "", "nonsense",
		"1:cpu\n", "0::/loose\n", "3:cpuacct:/a\n"};
	struct cpu_limits limits;

	(void)state;
	put("/fs/cgroup/loose/cpu.max", "max 100000\n");
	put("/fs/cgroup/cpuacct/a/cpu.cfs_quota_us", "50000\n");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct cpu_limits_place place = find(files[i]);

		assert_string_equal(place.cgroup, "");
		cpu_limits_read(&place, &limits);
		assert_false(limits.has_quota);
	}
}

static void heat(void **state)
{
	struct cpu_limits_place place;
	struct cpu_limits limits;

	(void)state;
	put("/devices/system/cpu/cpu0/thermal_throttle/core_throttle_total_time_ms", "30\n");
	put("/devices/system/cpu/cpu11/thermal_throttle/core_throttle_total_time_ms", "12\n");
	put("/devices/system/cpu/cpufreq/thermal_throttle/core_throttle_total_time_ms", "99\n");
	place = find("0::/\n");
	cpu_limits_read(&place, &limits);
	assert_true(limits.has_heat);
	assert_int_equal(limits.heat_ns, 42 * NS_PER_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(version_2, make_root, remove_root),
		cmocka_unit_test_setup_teardown(version_1, make_root, remove_root),
		cmocka_unit_test_setup_teardown(no_quota, make_root, remove_root),
		cmocka_unit_test_setup_teardown(heat, make_root, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
