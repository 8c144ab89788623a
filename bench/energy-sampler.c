/* SPDX-License-Identifier: Apache-2.0 */
/*
 * energy-sampler SECONDS HZ NVML [SOURCES]: what sampling power costs, as JSON: all sources, over a
 * made-up /sys with two packages of four rails each, a graphics card, a board's three rails, a
 * battery, and two GPUs of the stand-in for NVIDIA's library named. A process beside it has the
 * counters run. perf's counter is the kernel's CPU clock. CPU time is that of this process: the
 * threads that read, and the drain ten times a second.
 *
 * energy-sampler SECONDS HZ wake: what a thread costs that wakes up so often and does nothing.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "sources/energy/sampler.h"
#include "tests/unit/sysfs-tree.h"

#define RANGE_UJ 262143328850ULL

static atomic_ulong allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	atomic_fetch_add(&allocations, 1);
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	atomic_fetch_add(&allocations, 1);
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	atomic_fetch_add(&allocations, 1);
	return __real_realloc(old, size);
}

/* perf counts one package; powercap has both, so that it is read on for the second one. */
static void make_tree(const struct tree *tree)
{
	static const char *const children[] = {"core", "uncore", "dram"};
	char zone[64];

	for (unsigned package = 0; package < 2; package++) {
		char name[32];

		snprintf(zone, sizeof(zone), "intel-rapl:%u", package);
		snprintf(name, sizeof(name), "package-%u", package);
		tree_zone(tree, zone, name, RANGE_UJ, 1);
		for (unsigned child = 0; child < ARRAY_SIZE(children); child++) {
			snprintf(zone, sizeof(zone), "intel-rapl:%u:%u", package, child);
			tree_zone(tree, zone, children[child], RANGE_UJ, 1);
		}
	}
	tree_power_event(tree, "energy-pkg", "event=0x00", "2.0e-8");
	tree_write(tree, HWMON "hwmon0/name", "amdgpu");
	tree_write(tree, HWMON "hwmon0/power1_input", "35000000");
	tree_write(tree, HWMON "hwmon0/temp1_input", "48000");
	tree_ina3221(tree, 1, 1, "VDD_IN", "5000", "2000");
	tree_ina3221(tree, 1, 2, "VDD_CPU", "5000", "2000");
	tree_ina3221(tree, 1, 3, "VDD_SOC", "5000", "2000");
	tree_battery(tree, "BAT0", "Discharging", "power_now", "12000000");
}

static void __attribute__((noreturn)) run_counters(const struct tree *tree)
{
	const struct timespec pause = {.tv_nsec = NS_PER_MS};
	int fds[8];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < 8; i++) {
		char zone[128];

		snprintf(zone, sizeof(zone),
			i % 4 ? POWERCAP "intel-rapl:%u:%u/energy_uj"
			      : POWERCAP "intel-rapl:%u/energy_uj",
			i / 4, i % 4 - 1);
		fds[i] = tree_open_counter(tree, zone);
	}
	for (;;) {
		unsigned long long value = monotonic_now_ns() / 1000 * 50 % RANGE_UJ;

		for (unsigned i = 0; i < 8; i++) {
			if (!tree_write_counter(fds[i], value))
				_exit(1);
		}
		nanosleep(&pause, NULL);
	}
}

static unsigned long told;

static int take_domain(void *context _unused_, const struct wire_energy_domain *domain _unused_)
{
	return 0;
}

static int take_interval(
	void *context _unused_, const struct wire_energy_interval *interval _unused_)
{
	told++;
	return 0;
}

static int take_state(void *context _unused_, const struct wire_energy_state *state _unused_)
{
	return 0;
}

static int take_absence(void *context _unused_, const struct wire_energy_absence *absence)
{
	fprintf(stderr, "%s: %s\n", absence->source, absence->reason);
	return 0;
}

static double cpu_s(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void print_domains(const struct energy_sampler *sampler)
{
	for (unsigned i = 0; i < energy_sampler_count(sampler); i++) {
		const struct energy_sampled *sampled = energy_sampler_at(sampler, i);

		printf("%s{\"name\": \"%s\", \"source\": \"%s\", \"tick_ms\": %g, \"cost_us\": %g}",
			i ? ", " : "", sampled->domain.name, sampled->domain.source,
			(double)sampled->tick_ns / 1e6, (double)sampled->domain.cost_ns / 1e3);
	}
}

static int measure_waking(unsigned long seconds, unsigned long hz)
{
	uint64_t begin_ns = monotonic_now_ns(), tick_ns = NS_PER_S / hz;
	double used_s = cpu_s();

	for (uint64_t i = 1; i <= seconds * hz; i++) {
		uint64_t time_ns = begin_ns + i * tick_ns;
		const struct timespec until = {.tv_sec = (time_t)(time_ns / NS_PER_S),
			.tv_nsec = (long)(time_ns % NS_PER_S)};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	printf("{\"cpu_share\": %g}\n", (cpu_s() - used_s) / (double)seconds);
	return 0;
}

int main(int count, char **arguments)
{
	const struct energy_sink sink = {
		NULL, take_domain, take_interval, take_state, take_absence};
	const struct timespec pause = {.tv_nsec = 100 * NS_PER_MS};
	struct tree tree;
	struct energy_place place = {.root = tree.root, .nvml = count > 3 ? arguments[3] : ""};
	struct energy_sampler_options options = {.sources = count > 4 ? arguments[4] : "auto",
		.place = &place,
		.wait_ns = 10 * NS_PER_S};
	struct energy_sampler *sampler;
	unsigned long allocated, hz;
	uint64_t begin_ns, end_ns;
	struct errmsg err;
	double used_s;
	pid_t child;

	if (count < 4 || setenv("NVML_DOUBLE", "gpus=2 watts=300", 1) < 0 ||
		setenv("TMPDIR", "/dev/shm", 1) < 0) /* no disk's file system */
		return 2;
	hz = strtoul(arguments[2], NULL, 10);
	if (hz && strcmp(arguments[3], "wake") == 0)
		return measure_waking(strtoul(arguments[1], NULL, 10), hz);
	options.tick_ns = hz ? NS_PER_S / hz : 0;
	tree_make(&tree);
	make_tree(&tree);
	child = fork();
	if (child == 0)
		run_counters(&tree);
	if (energy_sampler_open(&sampler, &options, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	energy_sampler_start(sampler, monotonic_now_ns());
	energy_sampler_drain(sampler, &sink);
	allocated = atomic_load(&allocations);
	used_s = cpu_s();
	begin_ns = monotonic_now_ns();
	end_ns = begin_ns + strtoul(arguments[1], NULL, 10) * NS_PER_S;
	while (monotonic_now_ns() < end_ns) {
		nanosleep(&pause, NULL);
		energy_sampler_drain(sampler, &sink);
	}
	used_s = cpu_s() - used_s;
	allocated = atomic_load(&allocations) - allocated;
	printf("{\"seconds\": %g, \"cpu_share\": %g, \"intervals\": %lu, \"allocations\": %lu, "
	       "\"domains\": [",
		(double)(monotonic_now_ns() - begin_ns) / 1e9,
		used_s / ((double)(monotonic_now_ns() - begin_ns) / 1e9), told, allocated);
	print_domains(sampler);
	printf("]}\n");
	energy_sampler_free(sampler);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	tree_remove(&tree);
	return 0;
}
