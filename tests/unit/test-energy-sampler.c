/* SPDX-License-Identifier: Apache-2.0 */
/* All sources together: one tree of rails, twins once, figures of the recording alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <time.h>

#include "sources/energy/busy_clock.h"
#include "sources/energy/channel.h"
#include "sources/energy/sampler.h"
#include "sysfs-tree.h"
#include "tests/doubles/nvml/double.h"

#define INTEL_UJ 262143328850ULL
#define LONG_NS  (60 * NS_PER_S)

struct seen {
	unsigned domains, intervals, gaps, states, absences;
	struct wire_energy_domain last[32]; /* by id */
	uint64_t energy_nj[32], until_ns[32], first_ns[32], busy_ns[32];
	uint32_t gap_reasons;
	char absent[32][32], reasons[32][1024];
};

static int see_domain(void *context, const struct wire_energy_domain *domain)
{
	struct seen *seen = context;

	assert_true(domain->id > 0 && domain->id < 32);
	assert_true(domain->parent < domain->id); /* a parent comes before its children */
	seen->last[domain->id] = *domain;
	seen->domains = MAX(seen->domains, domain->id);
	return 0;
}

static int see_interval(void *context, const struct wire_energy_interval *interval)
{
	struct seen *seen = context;

	assert_true(interval->domain > 0 && interval->domain <= seen->domains);
	assert_true(interval->start_ns < interval->end_ns);
	assert_true(interval->start_ns >= seen->until_ns[interval->domain]);
	if (!seen->first_ns[interval->domain])
		seen->first_ns[interval->domain] = interval->start_ns;
	seen->until_ns[interval->domain] = interval->end_ns;
	seen->energy_nj[interval->domain] += interval->energy_nj;
	if (!interval->gap)
		seen->busy_ns[interval->domain] = interval->busy_ns;
	seen->intervals += !interval->gap;
	seen->gaps += interval->gap != 0;
	seen->gap_reasons |= interval->gap ? 1U << interval->gap : 0;
	return 0;
}

static int see_state(void *context, const struct wire_energy_state *state)
{
	struct seen *seen = context;

	assert_true(state->domain > 0 && state->domain <= seen->domains);
	seen->states++;
	return 0;
}

static int see_absence(void *context, const struct wire_energy_absence *absence)
{
	struct seen *seen = context;

	snprintf(seen->absent[seen->absences], 32, "%s", absence->source);
	snprintf(seen->reasons[seen->absences++], 1024, "%s", absence->reason);
	return 0;
}

/* A sampler over a made-up /sys, and what it hands over. */
struct fixture {
	struct tree tree;
	struct energy_place place;
	struct seen seen;
	struct energy_sink sink;
	struct energy_sampler *sampler;
	uint64_t start_ns;
};

static void begin(struct fixture *fixture, const char *nvml)
{
	*fixture = (struct fixture){0};
	tree_make(&fixture->tree);
	fixture->place = (struct energy_place){.root = fixture->tree.root, .nvml = nvml};
	fixture->sink = (struct energy_sink){
		&fixture->seen, see_domain, see_interval, see_state, see_absence};
}

static void open_sampler(struct fixture *fixture, const char *sources)
{
	struct energy_sampler_options options = {
		.sources = sources, .place = &fixture->place, .wait_ns = LONG_NS};
	struct errmsg err = {{0}};

	if (energy_sampler_open(&fixture->sampler, &options, &err) < 0)
		fail_msg("%s", err.text);
}

static void drain(struct fixture *fixture)
{
	assert_int_equal(energy_sampler_drain(fixture->sampler, &fixture->sink), 0);
}

static void start(struct fixture *fixture)
{
	fixture->start_ns = monotonic_now_ns();
	energy_sampler_start(fixture->sampler, fixture->start_ns);
	drain(fixture);
}

static void end(struct fixture *fixture)
{
	energy_sampler_free(fixture->sampler);
	tree_remove(&fixture->tree);
}

/* The threads of the sources work meanwhile. */
static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
}

static uint32_t id_of(const struct seen *seen, const char *name)
{
	for (uint32_t id = 1; id <= seen->domains; id++) {
		if (strcmp(seen->last[id].name, name) == 0)
			return id;
	}
	fail_msg("there is no domain %s", name);
	return 0;
}

static void test_rails_of_sources_are_one_tree(void **state _unused_)
{
	struct fixture fixture;
	const struct seen *seen = &fixture.seen;
	const struct tree *tree = &fixture.tree;

	begin(&fixture, "libnot-there.so.1");
	tree_zone(tree, "intel-rapl:0", "package-0", INTEL_UJ, 1);
	tree_zone(tree, "intel-rapl:0:0", "core", INTEL_UJ, 1);
	tree_zone(tree, "intel-rapl:0:1", "dram", INTEL_UJ, 1);
	tree_zone(tree, "intel-rapl:1", "psys", INTEL_UJ, 1);
	tree_write(tree, HWMON "hwmon0/name", "amdgpu");
	tree_write(tree, HWMON "hwmon0/power1_average", "9000000");
	tree_write(tree, HWMON "hwmon0/in1_label", "vddnb");
	tree_write(tree, HWMON "hwmon1/name", "amdgpu");
	tree_write(tree, HWMON "hwmon1/power1_average", "9000000");
	tree_battery(tree, "BAT0", "Discharging", "power_now", "12000000");
	open_sampler(&fixture, "auto");
	start(&fixture);
	assert_int_equal(seen->domains, 7);
	assert_int_equal(seen->last[id_of(seen, "battery")].parent, 0);
	assert_int_equal(seen->last[id_of(seen, "psys")].parent, id_of(seen, "battery"));
	assert_int_equal(seen->last[id_of(seen, "apu-0")].parent, id_of(seen, "battery"));
	assert_int_equal(seen->last[id_of(seen, "package-0")].parent, id_of(seen, "apu-0"));
	assert_int_equal(seen->last[id_of(seen, "core-0")].parent, id_of(seen, "package-0"));
	assert_int_equal(seen->last[id_of(seen, "dram-0")].parent, id_of(seen, "psys"));
	assert_int_equal(seen->last[id_of(seen, "amdgpu-1")].parent, id_of(seen, "battery"));
	assert_string_equal(seen->last[id_of(seen, "package-0")].source, "powercap");
	assert_true(seen->last[id_of(seen, "package-0")].cost_ns > 0);
	assert_int_equal(seen->absences, 2); /* perf and nvml */
	assert_string_equal(seen->absent[0], "perf");
	assert_string_equal(seen->absent[1], "nvml");
	end(&fixture);
}

/* perf's package takes 20 W, by the CPU clock; powercap has it too, with what is in it. False where
 * events of the whole machine are refused. */
static bool open_twins(struct fixture *fixture)
{
	begin(fixture, "libnot-there.so.1");
	tree_power_event(&fixture->tree, "energy-pkg", "event=0x00", "2.0e-8");
	tree_zone(&fixture->tree, "intel-rapl:0", "package-0", INTEL_UJ, 1);
	tree_zone(&fixture->tree, "intel-rapl:0:0", "core", INTEL_UJ, 1);
	open_sampler(fixture, "perf,powercap");
	start(fixture);
	if (fixture->seen.absences)
		end(fixture);
	return !fixture->seen.absences;
}

/* A rail that perf and powercap both read is handed over once, by perf. */
static void test_twins_count_once(void **state _unused_)
{
	struct fixture fixture;
	const struct seen *seen = &fixture.seen;

	if (!open_twins(&fixture))
		skip();
	assert_int_equal(seen->domains, 2);
	assert_string_equal(seen->last[id_of(seen, "package-0")].source, "perf");
	assert_int_equal(seen->last[id_of(seen, "core-0")].parent, id_of(seen, "package-0"));
	end(&fixture);
}

struct notes {
	unsigned count;
	char last[1024];
};

static void take_note(void *context, const char *sentence)
{
	struct notes *notes = context;

	if (!strstr(sentence, "the counter's unit may be wrong"))
		return;
	notes->count++;
	snprintf(notes->last, sizeof(notes->last), "%s", sentence);
}

/* AMD's core counters were wrong by a factor on some processors: two readers of one rail that
 * disagree for two seconds are a note, and the better one counts. */
static void test_twins_that_disagree_are_a_note(void **state _unused_)
{
	struct fixture fixture;
	const struct seen *seen = &fixture.seen;
	struct notes notes = {0};
	int counter;

	if (!open_twins(&fixture))
		skip();
	counter = tree_open_counter(&fixture.tree, POWERCAP "intel-rapl:0/energy_uj");
	while (!notes.count && monotonic_now_ns() - fixture.start_ns < LONG_NS) {
		uint64_t past_ns = monotonic_now_ns() - fixture.start_ns;

		assert_true(tree_write_counter(counter, past_ns / 10000)); /* 100 W */
		nap();
		drain(&fixture);
		energy_sampler_notes(fixture.sampler, take_note, &notes);
	}
	close(counter);
	assert_int_equal(notes.count, 1);
	assert_non_null(strstr(notes.last, "perf says that package-0 took "));
	assert_non_null(strstr(notes.last, "and powercap "));
	assert_true(
		fabs((double)seen->energy_nj[1] / (double)(seen->until_ns[1] - seen->first_ns[1]) -
			20) < 2);
	end(&fixture);
}

static void write_replay(struct fixture *fixture, const char *readings, char *ret_list)
{
	char path[256], text[1024];

	snprintf(text, sizeof(text),
		"{\"sonde_energy\":1,\"domains\":[{\"name\":\"gpu0\",\"part\":\"gpu\","
		"\"quality\":\"integrated\"}]}\n%s",
		readings);
	tree_write(&fixture->tree, "run.jsonl", text);
	tree_path(&fixture->tree, "run.jsonl", path, sizeof(path));
	sprintf(ret_list, "replay:%s", path);
}

/* Cut at both ends of the recording, with the share of energy that is the share of time. */
static void test_replay_is_cut_at_the_end(void **state _unused_)
{
	struct fixture fixture;
	const struct seen *seen = &fixture.seen;
	char list[300];
	uint64_t end_ns;

	begin(&fixture, "");
	write_replay(&fixture,
		"{\"t_ms\":0,\"domain\":\"gpu0\",\"power_w\":100}\n"
		"{\"t_ms\":0.001,\"domain\":\"gpu0\",\"power_w\":100}\n"
		"{\"t_ms\":3600000,\"domain\":\"gpu0\",\"power_w\":100}\n"
		"{\"t_ms\":3600001,\"domain\":\"gpu0\",\"power_w\":100}",
		list);
	open_sampler(&fixture, list);
	start(&fixture);
	end_ns = fixture.start_ns + NS_PER_S;
	assert_int_equal(energy_sampler_finish(fixture.sampler, end_ns, &fixture.sink), 0);
	assert_int_equal(seen->intervals, 2);
	assert_int_equal(seen->gaps, 0);
	assert_true(seen->last[1].is_replayed);
	assert_true(seen->until_ns[1] == end_ns);
	assert_true(llabs((long long)seen->energy_nj[1] - 100000000000LL) < 100);
	end(&fixture);
}

static void test_replay_that_ends_before(void **state _unused_)
{
	struct fixture fixture;
	const struct seen *seen = &fixture.seen;
	char list[300];

	begin(&fixture, "");
	write_replay(&fixture,
		"{\"t_ms\":0,\"domain\":\"gpu0\",\"power_w\":100}\n"
		"{\"t_ms\":500,\"domain\":\"gpu0\",\"power_w\":100}",
		list);
	open_sampler(&fixture, list);
	start(&fixture);
	assert_int_equal(
		energy_sampler_finish(fixture.sampler, fixture.start_ns + NS_PER_S, &fixture.sink),
		0);
	assert_int_equal(seen->intervals, 1);
	assert_int_equal(seen->gaps, 1);
	assert_int_equal(seen->gap_reasons, 1U << WIRE_ENERGY_SOURCE_ENDED);
	assert_true(energy_sampler_at(fixture.sampler, 0)->gap_ns == 500 * NS_PER_MS);
	end(&fixture);
}

/* A rail of one socket is told with the processors of that socket, and with how busy those were. */
static void test_rails_of_sockets(void **state _unused_)
{
	struct fixture fixture;
	const struct seen *seen = &fixture.seen;
	char path[256], list[300];

	begin(&fixture, "");
	tree_write(&fixture.tree, "run.jsonl",
		"{\"sonde_energy\":1,\"domains\":["
		"{\"name\":\"package-0\",\"part\":\"cpu\",\"quality\":\"counter\",\"cpus\":\"0\"},"
		"{\"name\":\"package-1\",\"part\":\"cpu\",\"quality\":\"counter\",\"cpus\":\"1-2\"}"
		"]}\n"
		"{\"t_ms\":0,\"domain\":\"package-0\",\"power_w\":1}\n"
		"{\"t_ms\":0,\"domain\":\"package-1\",\"power_w\":1}\n"
		"{\"t_ms\":0.1,\"domain\":\"package-0\",\"power_w\":1}\n"
		"{\"t_ms\":0.1,\"domain\":\"package-1\",\"power_w\":1}\n");
	tree_path(&fixture.tree, "run.jsonl", path, sizeof(path));
	snprintf(list, sizeof(list), "replay:%s", path);
	tree_write(&fixture.tree, "proc/stat",
		"cpu  0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\n"
		"cpu2 0 0 0 0 0 0 0 0\n");
	open_sampler(&fixture, list);
	start(&fixture);
	nap();
	tree_write(&fixture.tree, "proc/stat",
		"cpu  6000 0 0 0 0 0 0 0\ncpu0 1000 0 0 0 0 0 0 0\ncpu1 3000 0 0 0 0 0 0 0\n"
		"cpu2 2000 0 0 0 0 0 0 0\n");
	assert_int_equal(
		energy_sampler_finish(fixture.sampler, monotonic_now_ns(), &fixture.sink), 0);
	assert_string_equal(seen->last[1].cpus, "0");
	assert_string_equal(seen->last[2].cpus, "1-2");
	assert_int_equal(seen->intervals, 2);
	assert_true(seen->busy_ns[1] > 0 && seen->busy_ns[1] != UINT64_MAX);
	assert_true(llabs((long long)(seen->busy_ns[2] - 5 * seen->busy_ns[1])) <= 5);
	end(&fixture);
}

static void test_unknown_source(void **state _unused_)
{
	static const char *const lists[] = {"ipmi", "perf,ipmi", "", "perf,", ",", "replay:/none"};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		struct energy_sampler_options options = {.sources = lists[i]};
		struct energy_sampler *sampler = NULL;
		struct errmsg err = {{0}};

		assert_true(energy_sampler_open(&sampler, &options, &err) < 0);
		assert_null(sampler);
		assert_true(err.text[0] != '\0');
	}
}

/* A GPU of the stand-in, of 300 W by the clock, in steps of 100 ms. */
static struct nvml_double *open_gpu(struct fixture *fixture)
{
	struct nvml_double *gpus = dlsym(dlopen(NVML_LIBRARY, RTLD_NOW), "nvml_double");

	gpus->is_live = true;
	gpus->gpu[0].milliwatts = 300000;
	begin(fixture, NVML_LIBRARY);
	open_sampler(fixture, "nvml");
	return gpus;
}

static void test_gpu_is_measured_to_the_end(void **state _unused_)
{
	struct fixture fixture;
	const struct seen *seen = &fixture.seen;
	const struct energy_sampled *sampled;
	double idle_w, power_w;

	open_gpu(&fixture);
	sampled = energy_sampler_at(fixture.sampler, 0);
	while (!sampled->measured_ns) {
		nap();
		energy_sampler_drain(fixture.sampler, NULL);
	}
	/* The baseline is the mean of what was measured before the start, and that is all of it. */
	idle_w = (double)sampled->energy_nj / (double)sampled->measured_ns;
	energy_sampler_take_baseline(fixture.sampler);
	assert_true(sampled->energy_nj == 0 && sampled->measured_ns == 0);
	start(&fixture);
	while (seen->intervals < 3) {
		nap();
		drain(&fixture);
	}
	assert_int_equal(
		energy_sampler_finish(fixture.sampler, monotonic_now_ns(), &fixture.sink), 0);
	/* The stand-in's power, whatever the machine did meanwhile: within a tick of each end. */
	power_w = (double)seen->energy_nj[1] / (double)(seen->until_ns[1] - seen->first_ns[1]);
	assert_true(fabs(power_w - 300) < 150);
	assert_true(seen->last[1].idle_w == idle_w && fabs(idle_w - 300) < 150);
	assert_int_equal(seen->first_ns[1], fixture.start_ns);
	assert_true(seen->states > 0);
	end(&fixture);
}

/* The source hangs, and the recording ends: what is missing is a gap. */
static void test_source_that_hangs_ends_in_a_gap(void **state _unused_)
{
	struct fixture fixture;
	const struct seen *seen = &fixture.seen;
	struct nvml_double *gpus = open_gpu(&fixture);
	uint64_t end_ns;

	start(&fixture);
	while (!seen->intervals) {
		nap();
		drain(&fixture);
	}
	atomic_store(&gpus->hangs, true);
	atomic_store(&gpus->calls, 0);
	while (!atomic_load(&gpus->calls))
		nap();
	end_ns = monotonic_now_ns() + 2 * NS_PER_S; /* as if it had taken so long */
	assert_int_equal(energy_sampler_finish(fixture.sampler, end_ns, &fixture.sink), 0);
	assert_int_equal(seen->gap_reasons, 1U << WIRE_ENERGY_STALLED);
	assert_true(seen->until_ns[1] == end_ns);
	end(&fixture);
	atomic_store(&gpus->hangs, false);
}

static int open_costly(void **ret_state _unused_, const struct energy_place *place _unused_,
	struct energy_found *found)
{
	struct energy_rail *rail = energy_found_add(found, WIRE_ENERGY_CPU, "", "costly");

	rail->kind = ENERGY_POWER;
	found->tick_ns = 10 * NS_PER_MS;
	return 0;
}

static void read_for_a_millisecond(void *state _unused_, struct energy_reading *readings _unused_)
{
	uint64_t begin_ns = monotonic_now_ns();

	while (monotonic_now_ns() - begin_ns < NS_PER_MS)
		;
}

/* A source that takes a millisecond to read would take a tenth of a core 100 times a second. */
static void test_a_costly_source_is_read_less_often(void **state _unused_)
{
	static const struct energy_source costly = {
		.name = "costly", .open = open_costly, .read = read_for_a_millisecond};
	struct energy_channel *channel = calloc(1, sizeof(*channel));

	channel->source = &costly;
	energy_channel_open(channel);
	assert_int_equal(atomic_load(&channel->stage), CHANNEL_READS);
	assert_true(channel->cost_ns >= NS_PER_MS);
	assert_true((double)channel->cost_ns / (double)channel->tick_ns <= ENERGY_SHARE ||
		    channel->tick_ns == 10 * NS_PER_S);
	assert_int_equal(channel->tick_ns % (10 * NS_PER_MS), 0); /* so that wakings are shared */
	free(channel);
}

static void test_busy_time(void **state _unused_)
{
	struct busy_clock clock;
	struct tree tree;
	char path[256];

	tree_make(&tree);
	tree_write(&tree, "proc/stat", "cpu  100 0 50 1000 20 0 0 5 7 0\ncpu0 1 2 3");
	tree_path(&tree, "proc/stat", path, sizeof(path));
	busy_clock_open(&clock, path);
	busy_clock_read(&clock, 1 * NS_PER_S, false);
	assert_true(busy_clock_between(&clock, 0, NS_PER_S, NS_PER_S) == UINT64_MAX);
	tree_write(&tree, "proc/stat", "cpu  150 0 100 1200 20 0 0 5 7 0\ncpu0 1 2 3");
	busy_clock_read(&clock, 2 * NS_PER_S, false);
	assert_true(busy_clock_between(&clock, 0, NS_PER_S, 2 * NS_PER_S) == NS_PER_S);
	assert_true(busy_clock_between(&clock, 0, 3 * NS_PER_S / 2, 2 * NS_PER_S) == NS_PER_S / 2);
	assert_true(busy_clock_between(&clock, 0, NS_PER_S / 2, 2 * NS_PER_S) == UINT64_MAX);
	assert_true(busy_clock_between(&clock, 0, NS_PER_S, 3 * NS_PER_S) == UINT64_MAX);
	assert_true(busy_clock_until_ns(&clock) == 2 * NS_PER_S);
	assert_int_equal(busy_clock_group(&clock, ""), 0);
	tree_write(&tree, "proc/stat", "no such thing");
	busy_clock_read(&clock, 3 * NS_PER_S, false);
	assert_true(busy_clock_until_ns(&clock) == UINT64_MAX);
	busy_clock_close(&clock);
	tree_remove(&tree);
}

/* Of the processors of each socket; a group is known from the first reading on that has it. */
static void test_busy_time_of_sockets(void **state _unused_)
{
	struct busy_clock clock;
	struct tree tree;
	char path[256];

	tree_make(&tree);
	tree_write(&tree, "proc/stat",
		"cpu  60 0 0 0 0 0 0 0\ncpu0 10 0 0 0 0 0 0 0\ncpu2 20 0 0 0 0 0 0 0\n"
		"cpu10 30 0 0 0 0 0 0 0\nintr 9 9");
	tree_path(&tree, "proc/stat", path, sizeof(path));
	busy_clock_open(&clock, path);
	assert_int_equal(busy_clock_group(&clock, "0,10"), 1);
	assert_int_equal(busy_clock_group(&clock, "2"), 2);
	assert_int_equal(busy_clock_group(&clock, "0,10"), 1);
	busy_clock_read(&clock, 1 * NS_PER_S, false);
	assert_int_equal(busy_clock_group(&clock, "0"), 3);
	assert_true(busy_clock_between(&clock, 3, NS_PER_S, NS_PER_S) == UINT64_MAX);
	tree_write(&tree, "proc/stat",
		"cpu  260 0 0 0 0 0 0 0\ncpu0 60 0 0 99 99 0 0 0\ncpu2 90 0 0 0 0 0 0 0\n"
		"cpu10 30 0 0 0 0 0 80 0\nintr 9 9");
	busy_clock_read(&clock, 2 * NS_PER_S, false);
	assert_true(busy_clock_between(&clock, 0, NS_PER_S, 2 * NS_PER_S) == 2 * NS_PER_S);
	assert_true(busy_clock_between(&clock, 1, NS_PER_S, 2 * NS_PER_S) == 1300 * NS_PER_MS);
	assert_true(busy_clock_between(&clock, 2, NS_PER_S, 2 * NS_PER_S) == 700 * NS_PER_MS);
	assert_true(busy_clock_between(&clock, 3, NS_PER_S, 2 * NS_PER_S) == UINT64_MAX);
	assert_true(busy_clock_between(&clock, -E2BIG, NS_PER_S, 2 * NS_PER_S) == UINT64_MAX);
	busy_clock_read(&clock, 3 * NS_PER_S, false);
	assert_true(busy_clock_between(&clock, 3, 2 * NS_PER_S, 3 * NS_PER_S) == 0);
	busy_clock_close(&clock);
	tree_remove(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rails_of_sources_are_one_tree),
		cmocka_unit_test(test_twins_count_once),
		cmocka_unit_test(test_twins_that_disagree_are_a_note),
		cmocka_unit_test(test_replay_is_cut_at_the_end),
		cmocka_unit_test(test_replay_that_ends_before),
		cmocka_unit_test(test_rails_of_sockets),
		cmocka_unit_test(test_unknown_source),
		cmocka_unit_test(test_gpu_is_measured_to_the_end),
		cmocka_unit_test(test_source_that_hangs_ends_in_a_gap),
		cmocka_unit_test(test_a_costly_source_is_read_less_often),
		cmocka_unit_test(test_busy_time),
		cmocka_unit_test(test_busy_time_of_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
