/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of processors by cycles and instructions: right where they say more than time, else by
 * time. */
#include "model-example.h"

#include <errno.h>
#include <math.h>

#include "analyses/energy/uncertainty.h"
#include "analyses/energy/use.h"
#include "base/map.h"

#define MS          NS_PER_MS
#define LENGTH_NS   (30 * NS_PER_S)
#define READING_NS  (10 * MS)
#define NJ_CYCLE    2.0
#define NJ_INSTRUCT 1.2

/* Code of one kind: what a millisecond of it does. */
struct code {
	uint32_t tid;
	double cycles, instructions;
	double extra_w; /* that counts do not show */
};

static double power_of(const struct code *code)
{
	return 1e-9 * (NJ_CYCLE * code->cycles + NJ_INSTRUCT * code->instructions) / 1e-3 +
	       code->extra_w;
}

static uint64_t random_state;

static double random_share(void)
{
	random_state = hash_u64(random_state + 0x9e3779b97f4a7c15);
	return (double)(random_state >> 11) / (double)(1ULL << 53);
}

struct simulation {
	struct code codes[2];
	uint64_t shortest_ns, longest_ns; /* that one of them runs */
	unsigned counted_in_100;
	uint32_t quality;
	bool never_rests;
	double true_j[2];
};

static void add_sample(struct example *example, const struct simulation *simulation,
	const struct code *code, uint64_t time_ns)
{
	bool is_counted = random_share() * 100 < simulation->counted_in_100;
	const struct capture_sample sample = {
		.time_ns = time_ns,
		.pid = 7,
		.tid = code->tid,
		.mode = CAPTURE_MODE_USER,
		.cycles = is_counted ? (uint64_t)code->cycles : 0,
		.instructions = is_counted ? (uint64_t)code->instructions : 0,
	};

	assert_int_equal(model_builder_visitor.sample(example->builder, &sample), 0);
}

static void add_reading(struct example *example, uint64_t end_ns, double energy_j, uint64_t busy_ns)
{
	const struct wire_energy_interval interval = {
		.start_ns = end_ns - READING_NS,
		.end_ns = end_ns,
		.domain = 1,
		.energy_nj = (uint64_t)(energy_j * 1e9 * (0.99 + 0.02 * random_share())),
		.busy_ns = busy_ns,
	};

	assert_int_equal(model_builder_visitor.energy_interval(example->builder, &interval), 0);
}

/* When the thread begins or ends to run next. */
static uint64_t next_turn(const struct simulation *simulation, uint64_t time_ns)
{
	double most_ns = (double)(simulation->longest_ns - simulation->shortest_ns);

	return time_ns + simulation->shortest_ns + (uint64_t)(random_share() * most_ns);
}

/* Both threads, each on a CPU of its own, that run and rest for a while each. */
static void simulate_load(struct example *example, struct simulation *simulation)
{
	uint64_t turn_ns[2] = {0}, busy_ns = 0;
	bool runs[2] = {false, false};
	double energy_j = 0;

	for (uint64_t time_ns = MS; time_ns <= LENGTH_NS; time_ns += MS) {
		for (unsigned i = 0; i < 2; i++) {
			const struct code *code = &simulation->codes[i];

			if (time_ns > turn_ns[i]) {
				runs[i] = !runs[i] || simulation->never_rests;
				turn_ns[i] = next_turn(simulation, time_ns);
			}
			if (!runs[i])
				continue;
			add_sample(example, simulation, code, time_ns);
			simulation->true_j[i] += power_of(code) * 1e-3;
			energy_j += power_of(code) * 1e-3;
			busy_ns += MS;
		}
		if (time_ns % READING_NS == 0) {
			add_reading(example, time_ns, energy_j, busy_ns);
			energy_j = 0;
			busy_ns = 0;
		}
	}
}

static struct model *simulate(struct simulation *simulation)
{
	const struct wire_energy_domain domain = {
		.id = 1,
		.part = WIRE_ENERGY_CPU,
		.quality = simulation->quality,
		.name = "package-0",
		.source = "test",
		.device = "",
		.period_ns = READING_NS,
		.relative_error = 0.05,
		.idle_w = NAN,
	};
	struct example example;

	random_state = 1;
	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_process(&example, 7, "app", 1);
	example_thread(&example, 7, 7, "app");
	example_thread(&example, 7, 8, "worker");
	assert_int_equal(model_builder_visitor.energy_domain(example.builder, &domain), 0);
	simulate_load(&example, simulation);
	return example_end(&example);
}

static double charged_to(const struct model *model, uint32_t thread)
{
	double sum = 0;

	array_foreach (&model->samples, sample) {
		if (sample->thread == thread)
			sum += sample->energy_j;
	}
	return sum;
}

static double relative_error(
	const struct model *model, const struct simulation *simulation, unsigned code)
{
	return charged_to(model, code) / simulation->true_j[code] - 1;
}

static const struct simulation varied = {
	.codes = {{7, 3e6, 12e6, 0}, {8, 3e6, 1.5e6, 0}},
	.shortest_ns = 5 * MS,
	.longest_ns = 300 * MS,
	.counted_in_100 = 100,
	.quality = WIRE_ENERGY_COUNTER,
};

static void assert_by_time(const struct simulation *like, const char *why)
{
	_cleanup_energy_use_ struct energy_use use = {0};
	_cleanup_model_ struct model *model = NULL;
	struct simulation simulation = *like;
	const struct energy_domain_use *domain;

	model = simulate(&simulation);
	assert_int_equal(energy_use_init(&use, model), 0);
	domain = &use.domains.items[0];
	assert_int_equal(domain->method, ENERGY_METHOD_CPU_TIME);
	assert_string_equal(domain->fit.why_not, why);
	assert_true(domain->residual <= 1e-9);
	assert_true(fabs(charged_to(model, 0) + charged_to(model, 1) - use.measured_j) < 1e-6);
}

/* Time alone gives the code that waits for memory what the other takes. */
static void test_two_kinds_of_code(void **state _unused_)
{
	_cleanup_energy_use_ struct energy_use use = {0}, by_time = {0};
	_cleanup_model_ struct model *model = NULL, *uncounted = NULL;
	struct simulation simulation = varied, without = varied;
	const struct energy_domain_use *domain;

	model = simulate(&simulation);
	assert_int_equal(energy_use_init(&use, model), 0);
	domain = &use.domains.items[0];
	assert_int_equal(domain->method, ENERGY_METHOD_COUNTERS);
	assert_null(domain->fit.why_not);
	assert_true(fabs(domain->fit.j_per_cycle * 1e9 - NJ_CYCLE) < 0.03 * NJ_CYCLE);
	assert_true(fabs(domain->fit.j_per_instruction * 1e9 - NJ_INSTRUCT) < 0.03 * NJ_INSTRUCT);
	assert_true(domain->fit.error < 0.03);
	assert_true(fabs(relative_error(model, &simulation, 0)) < 0.02);
	assert_true(fabs(relative_error(model, &simulation, 1)) < 0.02);
	assert_true(domain->residual <= 1e-9);
	assert_true(fabs(charged_to(model, 0) + charged_to(model, 1) - use.measured_j) < 1e-6);

	without.counted_in_100 = 0;
	uncounted = simulate(&without);
	assert_int_equal(energy_use_init(&by_time, uncounted), 0);
	print_message("by counters %+.1f %% and %+.1f %%, by time %+.1f %% and %+.1f %%\n",
		100 * relative_error(model, &simulation, 0),
		100 * relative_error(model, &simulation, 1),
		100 * relative_error(uncounted, &without, 0),
		100 * relative_error(uncounted, &without, 1));
	assert_true(relative_error(uncounted, &without, 1) > 0.2);
}

/* A few samples without counts, such as the first ones, have the mean power. */
static void test_some_without_counts(void **state _unused_)
{
	_cleanup_energy_use_ struct energy_use use = {0};
	_cleanup_model_ struct model *model = NULL;
	struct simulation simulation = varied;

	simulation.counted_in_100 = 97;
	model = simulate(&simulation);
	assert_int_equal(energy_use_init(&use, model), 0);
	assert_int_equal(use.domains.items[0].method, ENERGY_METHOD_COUNTERS);
	assert_true(fabs(relative_error(model, &simulation, 0)) < 0.04);
	assert_true(fabs(relative_error(model, &simulation, 1)) < 0.06);
}

static void test_what_counts_do_not_tell(void **state _unused_)
{
	struct simulation simulation = varied;

	simulation.counted_in_100 = 80;
	assert_by_time(&simulation, "samples have no counts of cycles and instructions");
	simulation = varied;
	simulation.quality = WIRE_ENERGY_AVERAGED;
	assert_by_time(&simulation, "the sensor's readings are means over more than their time");
	/* The same mix in every stretch: nothing says which of the two costs more. */
	simulation = varied;
	simulation.never_rests = true;
	assert_by_time(&simulation,
		"counts of cycles and instructions explain the readings no better than time");
	/* Vector code: other power, the same counts. */
	simulation = varied;
	simulation.codes[1] = simulation.codes[0];
	simulation.codes[1].tid = 8;
	simulation.codes[1].extra_w = 20;
	assert_by_time(&simulation,
		"counts of cycles and instructions explain the readings no better than time");
}

static void test_readings_that_say_nothing(void **state _unused_)
{
	struct sample_fit_row rows[40];
	struct sample_fit fit;

	random_state = 3;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i] = (struct sample_fit_row){
			random_share(), random_share(), 1e9 * random_share(), 1e9 * random_share()};
	assert_int_equal(sample_fit_make(&fit, rows, ARRAY_SIZE(rows), 1, false), 0);
	assert_string_equal(
		fit.why_not, "readings do not tell what a cycle and what an instruction costs");
}

/* Squared, of the thread's samples; MODEL_NONE: of all. */
static double variance_of(const struct model *model, uint32_t thread)
{
	struct energy_periods periods = {0};
	struct energy_sums sums = {0};
	double uncertainty_j;

	for (size_t i = 0; i < model->samples.count; i++) {
		struct energy_piece piece = energy_piece_of(&periods, model, i);

		if (thread == MODEL_NONE || model->samples.items[i].thread == thread)
			energy_sums_add(&sums, model, &piece);
	}
	uncertainty_j = energy_uncertainty_of(model, &sums).energy_j;
	return uncertainty_j * uncertainty_j;
}

/* What the fit is unsure of moves energy between threads: of both together it is no error. */
static void test_uncertainty_of_the_split(void **state _unused_)
{
	_cleanup_energy_use_ struct energy_use use = {0};
	_cleanup_model_ struct model *model = NULL;
	struct simulation simulation = varied;
	double before, all, first_j, all_j, expected;

	model = simulate(&simulation);
	assert_int_equal(energy_use_init(&use, model), 0);
	array_foreach (&model->energy_errors, error)
		error->power = 0;
	before = variance_of(model, 0);
	all = variance_of(model, MODEL_NONE);
	array_foreach (&model->energy_errors, error)
		error->power = 0.1;
	first_j = charged_to(model, 0);
	all_j = first_j + charged_to(model, 1);
	expected = 0.1 * first_j * (1 - first_j / all_j);
	assert_true(fabs(sqrt(variance_of(model, 0) - before) - expected) < 1e-3 * expected);
	assert_true(fabs(variance_of(model, MODEL_NONE) - all) < 1e-6 * all);
}

static void test_damaged_counts(void **state _unused_)
{
	struct sample_fit_row rows[30];
	struct sample_fit fit;

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i] = (struct sample_fit_row){1e300 * (i % 3), 1e-300, 1 + i % 5, i % 7};
	assert_int_equal(sample_fit_make(&fit, rows, ARRAY_SIZE(rows), 1, false), 0);
	assert_non_null(fit.why_not);
	assert_true(fit.error == 0 && fit.j_per_cycle == 0);
	assert_int_equal(sample_fit_make(&fit, rows, 19, 1, false), 0);
	assert_string_equal(fit.why_not, "the recording is too short to learn what a cycle costs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_kinds_of_code),
		cmocka_unit_test(test_some_without_counts),
		cmocka_unit_test(test_what_counts_do_not_tell),
		cmocka_unit_test(test_readings_that_say_nothing),
		cmocka_unit_test(test_uncertainty_of_the_split),
		cmocka_unit_test(test_damaged_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
