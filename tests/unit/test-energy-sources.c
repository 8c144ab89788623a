/* SPDX-License-Identifier: Apache-2.0 */
/* What sources find and read in made-up trees of /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <sys/fsuid.h>

#include "sources/energy/source.h"
#include "sysfs-tree.h"

#define INTEL_UJ 262143328850ULL
#define AMD_UJ   65532610987ULL
#define CPUS     "sys/devices/system/cpu"

struct opened {
	struct tree tree;
	struct energy_place place;
	const struct energy_source *source;
	struct energy_found found;
	struct energy_reading readings[ENERGY_MAX_RAILS];
	void *state;
};

static void begin(struct opened *opened)
{
	*opened = (struct opened){0};
	tree_make(&opened->tree);
	opened->place.root = opened->tree.root;
}

static int open_source(struct opened *opened, const struct energy_source *source)
{
	opened->source = source;
	return source->open(&opened->state, &opened->place, &opened->found);
}

static void end(struct opened *opened)
{
	if (opened->state)
		opened->source->close(opened->state);
	tree_remove(&opened->tree);
}

static const struct energy_rail *rail(const struct opened *opened, const char *name)
{
	for (unsigned i = 0; i < opened->found.count; i++) {
		if (strcmp(opened->found.rails[i].name, name) == 0)
			return &opened->found.rails[i];
	}
	fail_msg("there is no rail %s", name);
	return NULL;
}

static const struct energy_reading *reading(struct opened *opened, const char *name)
{
	memset(opened->readings, 0, sizeof(opened->readings));
	opened->source->read(opened->state, opened->readings);
	return &opened->readings[rail(opened, name) - opened->found.rails];
}

static void assert_parent(const struct opened *opened, const char *name, const char *parent)
{
	assert_int_equal(rail(opened, name)->parent,
		parent ? rail(opened, parent) - opened->found.rails : -1);
}

static void assert_says(const struct opened *opened, const char *text)
{
	if (!strstr(opened->found.absence.text, text))
		fail_msg("\"%s\" is not in \"%s\"", text, opened->found.absence.text);
}

/* ---- powercap ---- */

/* The numbers of zones say nothing: here socket 1 is zone 0. */
static void test_powercap_goes_by_names(void **state _unused_)
{
	struct opened opened;

	begin(&opened);
	tree_zone(&opened.tree, "intel-rapl:0", "package-1", INTEL_UJ, 1000);
	tree_zone(&opened.tree, "intel-rapl:0:0", "core", INTEL_UJ, 10);
	tree_zone(&opened.tree, "intel-rapl:0:1", "dram", 65712999613ULL, 20);
	tree_zone(&opened.tree, "intel-rapl:1", "package-0", INTEL_UJ, 2000);
	tree_zone(&opened.tree, "intel-rapl:1:0", "uncore", INTEL_UJ, 30);
	tree_zone(&opened.tree, "intel-rapl:2", "psys", INTEL_UJ, 40);
	tree_write(&opened.tree, POWERCAP "intel-rapl/enabled", "1");
	assert_int_equal(open_source(&opened, &powercap_energy), 0);
	assert_int_equal(opened.found.count, 6);
	assert_string_equal(opened.found.absence.text, "");
	assert_int_equal(reading(&opened, "package-1")->value, 1000);
	assert_int_equal(reading(&opened, "package-0")->value, 2000);
	assert_int_equal(reading(&opened, "core-1")->value, 10);
	assert_int_equal(rail(&opened, "package-0")->part, WIRE_ENERGY_CPU);
	assert_int_equal(rail(&opened, "package-0")->range, INTEL_UJ);
	assert_int_equal(rail(&opened, "dram-1")->range, 65712999613ULL);
	assert_string_equal(rail(&opened, "package-1")->device, "socket 1");
	assert_parent(&opened, "core-1", "package-1");
	assert_parent(&opened, "uncore-0", "package-0");
	assert_parent(&opened, "dram-1", NULL); /* beside the package, not in it */
	assert_parent(&opened, "package-0", NULL);
	assert_true(rail(&opened, "psys")->encloses & ENERGY_PART(WIRE_ENERGY_CPU));
	assert_true(rail(&opened, "psys")->encloses & ENERGY_PART(WIRE_ENERGY_DRAM));
	end(&opened);
}

static void make_limit(const struct tree *tree, const char *zone, unsigned number, const char *name,
	const char *uw)
{
	char path[256];

	snprintf(path, sizeof(path), POWERCAP "%s/constraint_%u_name", zone, number);
	tree_write(tree, path, name);
	snprintf(path, sizeof(path), POWERCAP "%s/constraint_%u_power_limit_uw", zone, number);
	tree_write(tree, path, uw);
}

/* The limit over seconds; of a rail with two zones the lower one; not of a zone that is switched
 * off. */
static void test_power_limits(void **state _unused_)
{
	struct opened opened;
	const struct tree *tree = &opened.tree;

	begin(&opened);
	tree_zone(tree, "intel-rapl:0", "package-0", INTEL_UJ, 1);
	make_limit(tree, "intel-rapl:0", 0, "short_term", "250000000");
	make_limit(tree, "intel-rapl:0", 1, "long_term", "125000000");
	tree_zone(tree, "intel-rapl-mmio:0", "package-0", INTEL_UJ, 1);
	make_limit(tree, "intel-rapl-mmio:0", 0, "long_term", "65500000");
	tree_zone(tree, "intel-rapl:0:0", "dram", INTEL_UJ, 1);
	make_limit(tree, "intel-rapl:0:0", 0, "long_term", "40000000");
	tree_write(tree, POWERCAP "intel-rapl:0:0/enabled", "0");
	tree_zone(tree, "intel-rapl:1", "package-1", INTEL_UJ, 1);
	make_limit(tree, "intel-rapl:1", 0, "long_term", "unknown");
	assert_int_equal(open_source(&opened, &powercap_energy), 0);
	assert_true(rail(&opened, "package-0")->limit_w == 65.5);
	assert_true(rail(&opened, "dram-0")->limit_w == 0);
	assert_true(rail(&opened, "package-1")->limit_w == 0);
	end(&opened);
}

static void make_processor(
	const struct tree *tree, unsigned cpu, const char *package, const char *die)
{
	char path[128];

	snprintf(path, sizeof(path), CPUS "/cpu%u/topology/physical_package_id", cpu);
	tree_write(tree, path, package);
	snprintf(path, sizeof(path), CPUS "/cpu%u/topology/die_id", cpu);
	tree_write(tree, path, die);
}

/* Processors are in sockets in any order; one that is offline is in none. */
static void test_processors_of_a_socket(void **state _unused_)
{
	struct opened opened;
	const struct tree *tree = &opened.tree;

	begin(&opened);
	tree_zone(tree, "intel-rapl:0", "package-0", INTEL_UJ, 1);
	tree_zone(tree, "intel-rapl:0:0", "dram", INTEL_UJ, 1);
	tree_zone(tree, "intel-rapl:1", "package-1-die-1", INTEL_UJ, 1);
	tree_zone(tree, "intel-rapl:2", "psys", INTEL_UJ, 1);
	tree_zone(tree, "intel-rapl:3", "package-7", INTEL_UJ, 1);
	tree_write(tree, CPUS "/possible", "0-7");
	for (unsigned cpu = 0; cpu < 6; cpu++)
		make_processor(tree, cpu, cpu % 2 ? "1" : "0", cpu == 3 ? "0" : "1");
	make_processor(tree, 6, "-1", "0");
	assert_int_equal(open_source(&opened, &powercap_energy), 0);
	assert_string_equal(rail(&opened, "package-0")->cpus, "0,2,4");
	assert_string_equal(rail(&opened, "dram-0")->cpus, "0,2,4");
	assert_string_equal(rail(&opened, "package-1-die-1")->cpus, "1,5");
	assert_string_equal(rail(&opened, "psys")->cpus, "");      /* all */
	assert_string_equal(rail(&opened, "package-7")->cpus, ""); /* not known */
	end(&opened);
}

/* With one socket, rails feed all processors. */
static void test_processors_of_one_socket(void **state _unused_)
{
	struct opened opened;

	begin(&opened);
	tree_zone(&opened.tree, "intel-rapl:0", "package-0", INTEL_UJ, 1);
	tree_write(&opened.tree, CPUS "/possible", "0-1");
	make_processor(&opened.tree, 0, "0", "0");
	make_processor(&opened.tree, 1, "0", "0");
	assert_int_equal(open_source(&opened, &powercap_energy), 0);
	assert_string_equal(rail(&opened, "package-0")->cpus, "");
	end(&opened);
}

static void test_powercap_dies_and_amd(void **state _unused_)
{
	struct opened opened;

	begin(&opened);
	opened.place.is_amd = true;
	tree_zone(&opened.tree, "intel-rapl:0", "package-0-die-0", AMD_UJ, 1);
	tree_zone(&opened.tree, "intel-rapl:0:0", "core", AMD_UJ, 2);
	tree_zone(&opened.tree, "intel-rapl:1", "package-0-die-1", AMD_UJ, 3);
	tree_zone(&opened.tree, "intel-rapl:1:0", "core", AMD_UJ, 4);
	assert_int_equal(open_source(&opened, &powercap_energy), 0);
	assert_int_equal(opened.found.count, 4);
	assert_parent(&opened, "core-0-die-1", "package-0-die-1");
	assert_parent(&opened, "core-0-die-0", "package-0-die-0");
	assert_int_equal(rail(&opened, "package-0-die-1")->quality, WIRE_ENERGY_MODELLED);
	assert_int_equal(rail(&opened, "package-0-die-1")->range, AMD_UJ);
	end(&opened);
}

static void test_powercap_twins_of_mmio_count_once(void **state _unused_)
{
	struct opened opened;

	begin(&opened);
	tree_zone(&opened.tree, "intel-rapl:0", "package-0", INTEL_UJ, 1);
	tree_zone(&opened.tree, "intel-rapl-mmio:0", "package-0", INTEL_UJ, 2);
	tree_zone(&opened.tree, "intel-rapl-mmio:0:0", "dram", INTEL_UJ, 3);
	assert_int_equal(open_source(&opened, &powercap_energy), 0);
	assert_int_equal(opened.found.count, 2);
	assert_int_equal(reading(&opened, "package-0")->value, 1);
	assert_int_equal(reading(&opened, "dram-0")->value, 3);
	end(&opened);
}

/* /proc/self/mem gives EIO at its beginning, as a package does whose processors are offline. */
static void test_powercap_that_fails_is_named(void **state _unused_)
{
	struct opened opened;

	begin(&opened);
	tree_zone(&opened.tree, "intel-rapl:0", "package-0", INTEL_UJ, 1);
	tree_write(&opened.tree, POWERCAP "intel-rapl:1/name", "package-1");
	tree_link(&opened.tree, POWERCAP "intel-rapl:1/energy_uj", "/proc/self/mem");
	tree_zone(&opened.tree, "intel-rapl:2", "package-2", INTEL_UJ, 1);
	tree_write(&opened.tree, POWERCAP "intel-rapl:2/energy_uj", "n/a");
	assert_int_equal(open_source(&opened, &powercap_energy), 0);
	assert_int_equal(opened.found.count, 1);
	assert_says(&opened, "intel-rapl:1/energy_uj: Input/output error");
	assert_says(&opened, "intel-rapl:2/energy_uj: Invalid argument");
	end(&opened);
}

static void test_powercap_without_permission_says_the_fix(void **state _unused_)
{
	struct opened opened;
	char path[256];
	int r;

	if (geteuid() != 0)
		skip(); /* the files would be one's own */
	begin(&opened);
	tree_zone(&opened.tree, "intel-rapl:0", "package-0", INTEL_UJ, 1);
	tree_path(&opened.tree, POWERCAP "intel-rapl:0/energy_uj", path, sizeof(path));
	assert_int_equal(chmod(path, 0400), 0);
	setfsuid(65534);
	r = open_source(&opened, &powercap_energy);
	setfsuid(0);
	assert_true(r < 0);
	assert_says(&opened, "intel-rapl:0/energy_uj: Permission denied");
	assert_says(&opened, "chmod a+r");
	end(&opened);
}

static void test_powercap_absent(void **state _unused_)
{
	struct opened opened;

	begin(&opened);
	assert_int_equal(open_source(&opened, &powercap_energy), -ENOENT);
	assert_says(&opened, "virtual machine");
	end(&opened);
}

static void test_text_in_place_of_a_number_is_an_error(void **state _unused_)
{
	static const char *const texts[] = {
		"", "abc", "12 J", "0x10", "-5", "99999999999999999999999999"};
	struct opened opened;

	begin(&opened);
	tree_zone(&opened.tree, "intel-rapl:0", "package-0", INTEL_UJ, 1);
	assert_int_equal(open_source(&opened, &powercap_energy), 0);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		tree_write(&opened.tree, POWERCAP "intel-rapl:0/energy_uj", texts[i]);
		assert_true(reading(&opened, "package-0")->error < 0);
	}
	tree_write(&opened.tree, POWERCAP "intel-rapl:0/energy_uj", "17");
	assert_int_equal(reading(&opened, "package-0")->error, 0);
	assert_int_equal(reading(&opened, "package-0")->value, 17);
	end(&opened);
}

static void look(struct opened *opened, struct wire_energy_state *ret_states)
{
	for (unsigned i = 0; i < opened->found.count; i++)
		ret_states[i] = (struct wire_energy_state){.temperature_mc = INT32_MIN};
	opened->source->look(opened->state, ret_states);
}

static void test_temperature_and_clock_of_a_package(void **state _unused_)
{
	struct wire_energy_state states[ENERGY_MAX_RAILS];
	struct opened opened;

	begin(&opened);
	tree_zone(&opened.tree, "intel-rapl:0", "package-0", INTEL_UJ, 1);
	tree_zone(&opened.tree, "intel-rapl:0:0", "core", INTEL_UJ, 1);
	tree_write(&opened.tree, "sys/class/hwmon/hwmon2/name", "coretemp");
	tree_write(&opened.tree, "sys/class/hwmon/hwmon2/temp1_label", "Package id 0");
	tree_write(&opened.tree, "sys/class/hwmon/hwmon2/temp1_input", "61000");
	tree_write(&opened.tree, "sys/devices/system/cpu/cpu0/topology/physical_package_id", "0");
	tree_write(&opened.tree, "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3400123");
	assert_int_equal(open_source(&opened, &powercap_energy), 0);
	look(&opened, states);
	assert_int_equal(states[0].temperature_mc, 61000);
	assert_int_equal(states[0].clock_mhz, 3400);
	assert_int_equal(states[1].temperature_mc, INT32_MIN);
	end(&opened);
}

/* ---- perf ---- */

static void make_pmu(const struct tree *tree)
{
	tree_power_event(tree, "energy-pkg", "event=0x00", "2.0e-8");
	tree_power_event(tree, "energy-cores", "event=0x1", "1.0e-8");
	tree_power_event(tree, "energy-psys", "event=0x00", "3.0e-8");
}

static void test_perf_reads_groups(void **state _unused_)
{
	struct opened opened;
	uint64_t before, after;
	int r;

	begin(&opened);
	tree_zone(&opened.tree, "intel-rapl:0", "package-0", INTEL_UJ, 1);
	make_limit(&opened.tree, "intel-rapl:0", 0, "long_term", "125000000");
	make_pmu(&opened.tree);
	r = open_source(&opened, &perf_energy);
	if (r == -EACCES || r == -EPERM) {
		assert_says(&opened, "perf_event_paranoid");
		end(&opened);
		skip(); /* events of the whole machine are refused here */
	}
	assert_int_equal(r, 0);
	assert_int_equal(opened.found.count, 3);
	assert_parent(&opened, "core-0", "package-0");
	assert_int_equal(rail(&opened, "psys")->part, WIRE_ENERGY_PLATFORM);
	assert_int_equal(rail(&opened, "package-0")->range, 0);  /* never wraps */
	assert_true(rail(&opened, "package-0")->limit_w == 125); /* as powercap says it */
	assert_true(fabs(rail(&opened, "package-0")->nj_per_unit - 20) < 1e-9);
	before = reading(&opened, "package-0")->value;
	do {
		after = reading(&opened, "package-0")->value;
	} while (after == before);
	assert_true(after > before);
	assert_int_equal(reading(&opened, "psys")->error, 0);
	end(&opened);
}

/* As in a virtual machine: the dummy of the software events, which counts nothing. */
static void test_perf_counts_nothing(void **state _unused_)
{
	struct opened opened;
	int r;

	begin(&opened);
	tree_power_event(&opened.tree, "energy-psys", "event=0x09", "3.0e-8");
	r = open_source(&opened, &perf_energy);
	if (r == -EACCES || r == -EPERM) {
		end(&opened);
		skip(); /* events of the whole machine are refused here */
	}
	assert_int_equal(r, -ENODATA);
	assert_says(&opened, "do not count");
	end(&opened);
}

static void test_perf_absent_and_refused(void **state _unused_)
{
	struct opened opened;

	begin(&opened);
	assert_int_equal(open_source(&opened, &perf_energy), -ENOENT);
	assert_says(&opened, "devices/power does not exist");
	opened.found = (struct energy_found){0};
	make_pmu(&opened.tree);
	tree_write(&opened.tree, PMU "type", "what");
	assert_int_equal(open_source(&opened, &perf_energy), -EINVAL);
	end(&opened);
}

/* ---- hwmon and battery ---- */

static void test_amdgpu_card_and_apu(void **state _unused_)
{
	struct wire_energy_state states[ENERGY_MAX_RAILS];
	struct opened opened;

	begin(&opened);
	tree_write(&opened.tree, HWMON "hwmon0/name", "acpitz");
	tree_write(&opened.tree, HWMON "hwmon1/name", "amdgpu");
	tree_write(&opened.tree, HWMON "hwmon1/power1_average", "31000000");
	tree_write(&opened.tree, HWMON "hwmon1/power1_input", "35000000");
	tree_write(&opened.tree, HWMON "hwmon1/temp1_input", "48000");
	tree_write(&opened.tree, HWMON "hwmon1/power1_cap", "303000000");
	tree_write(&opened.tree, HWMON "hwmon1/freq1_input", "2400000000");
	tree_link(&opened.tree, HWMON "hwmon1/device", "../../../0000:03:00.0");
	tree_write(&opened.tree, HWMON "hwmon2/name", "amdgpu");
	tree_write(&opened.tree, HWMON "hwmon2/power1_average", "9000000");
	tree_write(&opened.tree, HWMON "hwmon2/in1_label", "vddnb");
	assert_int_equal(open_source(&opened, &hwmon_energy), 0);
	assert_int_equal(opened.found.count, 2);
	assert_int_equal(reading(&opened, "amdgpu-0")->value, 35000000);
	assert_int_equal(rail(&opened, "amdgpu-0")->quality, WIRE_ENERGY_INTEGRATED);
	assert_true(rail(&opened, "amdgpu-0")->limit_w == 303);
	assert_string_equal(rail(&opened, "amdgpu-0")->device, "0000:03:00.0");
	assert_int_equal(rail(&opened, "amdgpu-0")->part, WIRE_ENERGY_GPU);
	/* An APU's figure holds the processor: it is never added to the package. */
	assert_int_equal(rail(&opened, "apu-1")->part, WIRE_ENERGY_PLATFORM);
	assert_int_equal(rail(&opened, "apu-1")->quality, WIRE_ENERGY_AVERAGED);
	assert_true(rail(&opened, "apu-1")->encloses & ENERGY_PART(WIRE_ENERGY_CPU));
	look(&opened, states);
	assert_int_equal(states[0].temperature_mc, 48000);
	assert_int_equal(states[0].clock_mhz, 2400);
	assert_int_equal(states[1].temperature_mc, INT32_MIN);
	end(&opened);
}

static void test_intel_gpu_counts_energy(void **state _unused_)
{
	struct opened opened;

	begin(&opened);
	tree_write(&opened.tree, HWMON "hwmon0/name", "xe");
	tree_write(&opened.tree, HWMON "hwmon0/energy1_input", "5000000");
	tree_write(&opened.tree, HWMON "hwmon0/energy1_label", "card");
	tree_write(&opened.tree, HWMON "hwmon0/energy2_input", "4000000");
	tree_write(&opened.tree, HWMON "hwmon0/energy2_label", "pkg");
	assert_int_equal(open_source(&opened, &hwmon_energy), 0);
	assert_int_equal(rail(&opened, "intelgpu-0-card")->kind, ENERGY_COUNTER);
	assert_parent(&opened, "intelgpu-0-pkg", "intelgpu-0-card");
	assert_int_equal(reading(&opened, "intelgpu-0-pkg")->value, 4000000);
	end(&opened);
}

/* i915's counter has no label. A card that is switched off says the same for long, which is no
 * fault; each kind of chip is numbered by itself. */
static void test_i915_has_one_counter(void **state _unused_)
{
	struct opened opened;

	begin(&opened);
	tree_write(&opened.tree, HWMON "hwmon0/name", "amdgpu");
	tree_write(&opened.tree, HWMON "hwmon0/power1_input", "35000000");
	tree_write(&opened.tree, HWMON "hwmon1/name", "i915");
	tree_write(&opened.tree, HWMON "hwmon1/energy1_input", "7000000");
	tree_link(&opened.tree, HWMON "hwmon1/device", "../../../0000:00:02.0");
	assert_int_equal(open_source(&opened, &hwmon_energy), 0);
	assert_int_equal(opened.found.count, 2);
	assert_int_equal(rail(&opened, "intelgpu-0")->part, WIRE_ENERGY_GPU);
	assert_int_equal(rail(&opened, "intelgpu-0")->kind, ENERGY_COUNTER);
	assert_true(rail(&opened, "intelgpu-0")->nj_per_unit == 1000);
	assert_true(rail(&opened, "intelgpu-0")->may_rest);
	assert_string_equal(rail(&opened, "intelgpu-0")->device, "0000:00:02.0");
	assert_parent(&opened, "intelgpu-0", NULL);
	assert_int_equal(reading(&opened, "intelgpu-0")->value, 7000000);
	assert_int_equal(reading(&opened, "amdgpu-0")->value, 35000000);
	end(&opened);
}

static void make_ina3221(const struct tree *tree)
{
	static const struct {
		const char *label, *millivolts, *milliamperes;
	} channels[] = {{"VDD_IN", "5000", "2000"}, {"VDD_CPU_GPU_CV", "5000", "800"},
		{"VDD_SOC", "5000", "300"}, {"shunt 1", "3", "1"}, {"shunt 2", "3", "1"},
		{"shunt 3", "3", "1"}, {"sum of shunt voltages", "9", "1"}};

	for (unsigned i = 0; i < ARRAY_SIZE(channels); i++)
		tree_ina3221(tree, 3, i + 1, channels[i].label, channels[i].millivolts,
			channels[i].milliamperes);
}

static void test_ina3221_rails_are_in_its_input(void **state _unused_)
{
	struct opened opened;

	begin(&opened);
	make_ina3221(&opened.tree);
	assert_int_equal(open_source(&opened, &hwmon_energy), 0);
	assert_int_equal(opened.found.count, 3); /* no shunt */
	assert_int_equal(reading(&opened, "VDD_IN")->value, 10000000);
	assert_int_equal(reading(&opened, "VDD_SOC")->value, 1500000);
	assert_int_equal(rail(&opened, "VDD_IN")->part, WIRE_ENERGY_PLATFORM);
	assert_parent(&opened, "VDD_SOC", "VDD_IN");
	assert_parent(&opened, "VDD_CPU_GPU_CV", "VDD_IN");
	tree_write(&opened.tree, HWMON "hwmon3/curr1_input", "9223372036854775807");
	assert_int_equal(reading(&opened, "VDD_IN")->error, -EINVAL);
	end(&opened);
}

static void test_battery_while_it_discharges(void **state _unused_)
{
	struct opened opened;

	begin(&opened);
	tree_write(&opened.tree, BATTERY "AC/type", "Mains");
	tree_battery(&opened.tree, "BAT0", "Discharging", "power_now", "12000000");
	tree_battery(&opened.tree, "BAT1", "Discharging", "voltage_now", "10000000");
	tree_write(&opened.tree, BATTERY "BAT1/current_now", "-500000");
	tree_write(&opened.tree, BATTERY "mouse/type", "Battery");
	tree_write(&opened.tree, BATTERY "mouse/scope", "Device");
	tree_write(&opened.tree, BATTERY "mouse/status", "Discharging");
	assert_int_equal(open_source(&opened, &battery_energy), 0);
	assert_int_equal(opened.found.count, 1);
	assert_int_equal(reading(&opened, "battery")->value, 17000000);
	tree_write(&opened.tree, BATTERY "BAT0/status", "Charging");
	assert_int_equal(reading(&opened, "battery")->value, 5000000);
	tree_write(&opened.tree, BATTERY "BAT1/status", "Full");
	assert_int_equal(reading(&opened, "battery")->error, -ENODATA);
	end(&opened);
}

static void test_battery_on_mains_says_so(void **state _unused_)
{
	struct opened opened;

	begin(&opened);
	tree_battery(&opened.tree, "BAT0", "Charging", "power_now", "12000000");
	assert_int_equal(open_source(&opened, &battery_energy), -ENODATA);
	assert_says(&opened, "unplug the charger");
	end(&opened);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_powercap_goes_by_names),
		cmocka_unit_test(test_power_limits),
		cmocka_unit_test(test_processors_of_a_socket),
		cmocka_unit_test(test_processors_of_one_socket),
		cmocka_unit_test(test_powercap_dies_and_amd),
		cmocka_unit_test(test_powercap_twins_of_mmio_count_once),
		cmocka_unit_test(test_powercap_that_fails_is_named),
		cmocka_unit_test(test_powercap_without_permission_says_the_fix),
		cmocka_unit_test(test_powercap_absent),
		cmocka_unit_test(test_text_in_place_of_a_number_is_an_error),
		cmocka_unit_test(test_temperature_and_clock_of_a_package),
		cmocka_unit_test(test_perf_reads_groups),
		cmocka_unit_test(test_perf_counts_nothing),
		cmocka_unit_test(test_perf_absent_and_refused),
		cmocka_unit_test(test_amdgpu_card_and_apu),
		cmocka_unit_test(test_intel_gpu_counts_energy),
		cmocka_unit_test(test_i915_has_one_counter),
		cmocka_unit_test(test_ina3221_rails_are_in_its_input),
		cmocka_unit_test(test_battery_while_it_discharges),
		cmocka_unit_test(test_battery_on_mains_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
