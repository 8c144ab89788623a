/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a row's ± as wide as its error? Simulated programs, of which every joule is known, are sampled
 * and measured by a sensor that errs, over and over: the stated intervals must hold the truth as
 * often as they claim. Half of them must not, or this would prove nothing.
 */
#include "model-example.h"

#include <math.h>
#include <stdio.h>

#include "analyses/cpu/breakdown.h"
#include "analyses/cpu/call_tree.h"
#include "analyses/energy/uncertainty.h"
#include "analyses/energy/use.h"
#include "base/map.h"
#include "model/weigh.h"

#define MS        NS_PER_MS
#define FUNCTIONS 6
#define THREADS   6

static uint64_t random_state;

static double random_share(void)
{
	random_state = hash_u64(random_state + 0x9e3779b97f4a7c15);
	return (double)(random_state >> 11) / (double)(1ULL << 53);
}

static uint64_t random_below(uint64_t limit)
{
	return (uint64_t)(random_share() * (double)limit);
}

static double random_normal(void)
{
	return sqrt(-2 * log(1 - random_share())) * cos(6.283185307179586 * random_share());
}

static double random_exponential(double mean)
{
	return -mean * log(1 - random_share());
}

/* ---- what is counted ---- */

struct coverage {
	unsigned rows, within_half, within, within_twice, unknown;
};

static void count_row(struct coverage *coverage, double found_j, double true_j, double error_j)
{
	double off = fabs(found_j - true_j);

	coverage->rows++;
	coverage->within_half += off <= error_j / 2;
	coverage->within += off <= error_j;
	coverage->within_twice += off <= 2 * error_j;
}

static double share_of(unsigned part, unsigned all)
{
	return (double)part / (double)all;
}

/* Of normal errors 68 % lie within one standard uncertainty, 95 % within two, 38 % within half. */
static void assert_covers(const char *what, const struct coverage *coverage)
{
	double half = share_of(coverage->within_half, coverage->rows);
	double once = share_of(coverage->within, coverage->rows);
	double twice = share_of(coverage->within_twice, coverage->rows);

	print_message("%-12s %u rows, %u unknown: %.1f %% within half, %.1f %% within one, "
		      "%.1f %% within two\n",
		what, coverage->rows, coverage->unknown, 100 * half, 100 * once, 100 * twice);
	assert_true(coverage->rows > 200);
	assert_true(once >= 0.64 && twice >= 0.93);
	assert_true(half < 0.6); /* not so wide that it says nothing */
}

/* ---- programs on processors ---- */

struct program {
	struct example example;
	unsigned threads, functions;
	bool is_lockstep;           /* all threads do the same at the same time */
	double burst_ms, length_ms; /* mean of one function's run; of the program */
	double weights[FUNCTIONS];
	double other_share; /* of a processor: programs that are not sampled */
	double power_w, gain;
	uint64_t period_ns, reading_ns;
	capture_id stacks[FUNCTIONS];
	double truth_j[FUNCTIONS];
};

static struct program random_program(bool is_lockstep, unsigned round)
{
	struct program program = {
		.is_lockstep = is_lockstep,
		.period_ns = 10 * MS,
	};

	random_state = round * 2654435761U + is_lockstep;
	program.threads = 1 + (unsigned)random_below(THREADS);
	program.functions = 2 + (unsigned)random_below(FUNCTIONS - 1);
	program.burst_ms = 1 + 6 * random_share();
	program.length_ms = 2000 + 4000 * random_share();
	program.other_share = random_below(2) ? random_share() : 0;
	program.power_w = 5 + 20 * random_share();
	program.gain = 1 + 0.05 * random_normal();
	program.reading_ns = (10 + random_below(3) * 20) * MS;
	for (unsigned i = 0; i < program.functions; i++)
		program.weights[i] = 0.05 + random_share();
	return program;
}

static unsigned random_function(const struct program *program)
{
	double sum = 0, at;

	for (unsigned i = 0; i < program->functions; i++)
		sum += program->weights[i];
	at = random_share() * sum;
	for (unsigned i = 0; i + 1 < program->functions; i++) {
		at -= program->weights[i];
		if (at < 0)
			return i;
	}
	return program->functions - 1;
}

static void begin_program(struct program *program)
{
	struct example *example = &program->example;
	capture_id file;

	example_begin(example, program->period_ns);
	example_process(example, 7, "app", 1);
	file = example_mapping(example, "/usr/bin/app");
	for (unsigned i = 0; i < program->functions; i++) {
		char name[16];
		capture_id frames[1];

		snprintf(name, sizeof(name), "f%u", i);
		frames[0] = example_frame(example, name, file, 16 * (i + 1));
		program->stacks[i] = example_stack(example, WIRE_STOP_COMPLETE, 1, frames);
	}
	for (uint32_t i = 0; i < program->threads; i++)
		example_thread(example, 7, 7 + i, "app");
}

/* One thread on a processor of its own, which is sampled at its own phase, or with the others. */
static void run_thread(struct program *program, uint32_t thread, uint64_t bursts_of)
{
	uint64_t sampled_at, now_ns = 0, length_ns = (uint64_t)(program->length_ms * 1e6);

	random_state = program->is_lockstep ? bursts_of : bursts_of + 7919 * (thread + 1);
	sampled_at = (1 + (hash_u64(bursts_of + (program->is_lockstep ? 0 : thread)) & 1023)) *
		     program->period_ns / 1025;
	sampled_at += program->period_ns;
	while (now_ns < length_ns) {
		unsigned function = random_function(program);
		uint64_t end_ns =
			now_ns + 1 + (uint64_t)(random_exponential(program->burst_ms) * 1e6);

		end_ns = end_ns < length_ns ? end_ns : length_ns;
		program->truth_j[function] += program->power_w * (double)(end_ns - now_ns) / 1e9;
		for (; sampled_at < end_ns; sampled_at += program->period_ns) {
			struct capture_sample sample = {.time_ns = sampled_at,
				.pid = 7,
				.tid = 7 + thread,
				.cpu = thread,
				.mode = CAPTURE_MODE_USER,
				.callstack = program->stacks[function]};

			assert_int_equal(
				model_builder_visitor.sample(program->example.builder, &sample), 0);
		}
		now_ns = end_ns;
	}
}

static void measure(struct program *program, double relative_error)
{
	const struct wire_energy_domain domain = {
		.id = 1,
		.part = WIRE_ENERGY_CPU,
		.quality = WIRE_ENERGY_COUNTER,
		.name = "package-0",
		.source = "test",
		.device = "",
		.period_ns = program->reading_ns,
		.relative_error = relative_error,
		.idle_w = NAN,
	};
	uint64_t length_ns = (uint64_t)(program->length_ms * 1e6);
	double busy = program->threads + program->other_share;
	const struct model_builder *builder = program->example.builder;

	assert_int_equal(model_builder_visitor.energy_domain((void *)builder, &domain), 0);
	for (uint64_t at = 0; at + program->reading_ns <= length_ns; at += program->reading_ns) {
		const struct wire_energy_interval interval = {
			.start_ns = at,
			.end_ns = at + program->reading_ns,
			.domain = 1,
			.energy_nj = (uint64_t)(program->gain * program->power_w * busy *
						(double)program->reading_ns),
			.busy_ns = (uint64_t)(busy * (double)program->reading_ns),
		};

		assert_int_equal(
			model_builder_visitor.energy_interval((void *)builder, &interval), 0);
	}
}

/* The model of what was made, with its samples in joules. */
static struct model *weigh(struct example *example, struct energy_use *use)
{
	struct model *model = example_end(example);

	assert_int_equal(energy_use_init(use, model), 0);
	assert_int_equal(model_weigh_energy(model, use->rests.items, use->rests.count), 0);
	return model;
}

static void by_function(
	const struct model *model, struct selected *selected, struct breakdown *breakdown)
{
	struct errmsg err = {0};

	assert_int_equal(selection_apply(NULL, model, selected, &err), 0);
	assert_int_equal(
		breakdown_init(breakdown, model, selected, BREAKDOWN_FUNCTION, BREAKDOWN_SORT_SELF),
		0);
}

static struct model *simulate(
	struct program *program, double relative_error, struct energy_use *use)
{
	uint64_t bursts_of = hash_u64(random_state);

	begin_program(program);
	for (uint32_t i = 0; i < program->threads; i++)
		run_thread(program, i, bursts_of);
	measure(program, relative_error);
	return weigh(&program->example, use);
}

static void check_functions(
	const struct program *program, const struct model *model, struct coverage *coverage)
{
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_breakdown_ struct breakdown breakdown = {0};

	by_function(model, &selected, &breakdown);
	array_foreach (&breakdown.rows, row) {
		const char *name = model_function_name(model, row->key);
		struct energy_uncertainty error =
			breakdown_uncertainty(&breakdown, model, row, false);

		if (name[0] != 'f')
			continue;
		if (isnan(error.energy_j)) {
			assert_int_equal(error.doubt, ENERGY_DOUBT_SHORT);
			coverage->unknown++;
			continue;
		}
		count_row(coverage, (double)row->self_samples / 1e6,
			program->truth_j[name[1] - '0'], error.energy_j);
	}
}

static void check_programs(bool is_lockstep)
{
	struct coverage coverage = {0};

	for (unsigned round = 0; round < 250; round++) {
		struct program program = random_program(is_lockstep, round);
		_cleanup_energy_use_ struct energy_use use = {0};
		_cleanup_model_ struct model *model = simulate(&program, 0.05, &use);

		check_functions(&program, model, &coverage);
	}
	assert_covers(is_lockstep ? "in step" : "independent", &coverage);
}

static void test_threads(void **state)
{
	check_programs(false);
}

/* All threads do the same: a thousand samples say no more than those of one thread. */
static void test_threads_in_step(void **state)
{
	check_programs(true);
}

/* Of all together nothing is shared: what is left is the sensor. */
static void test_all_together(void **state)
{
	struct program program = random_program(false, 5);
	_cleanup_energy_use_ struct energy_use use = {0};
	_cleanup_model_ struct model *model = simulate(&program, 0.05, &use);
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_call_tree_ struct call_tree tree = {0};
	struct errmsg err = {0};
	double error_j, deepest_j;

	assert_int_equal(selection_apply(NULL, model, &selected, &err), 0);
	assert_int_equal(call_tree_init(&tree), 0);
	assert_int_equal(call_tree_add(&tree, 0, model, &selected, CALL_TREE_ROOTS_NONE), 0);
	assert_int_equal(call_tree_finish(&tree), 0);
	error_j = energy_uncertainty_of(model, &tree.sums.items[0]).energy_j;
	assert_true(fabs(error_j / (0.05 * use.measured_j) - 1) < 1e-3);
	deepest_j = energy_uncertainty_of(model, &tree.sums.items[1]).energy_j;
	assert_true(deepest_j > 0.05 * (double)tree.nodes.items[1].total[0] / 1e6);
}

/* ---- what is not known ---- */

static struct energy_uncertainty first_function(const struct model *model)
{
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_breakdown_ struct breakdown breakdown = {0};

	by_function(model, &selected, &breakdown);
	array_foreach (&breakdown.rows, row) {
		const char *name = model_function_name(model, row->key);

		if (name[0] == 'f')
			return breakdown_uncertainty(&breakdown, model, row, true);
	}
	fail();
	return ENERGY_NO_UNCERTAINTY;
}

static void test_not_known(void **state)
{
	static const struct {
		double length_ms, relative_error;
		enum energy_doubt doubt;
	} cases[] = {
		{3000, 0.05, ENERGY_DOUBT_NONE},
		{3000, NAN, ENERGY_DOUBT_SENSOR},
		{3000, INFINITY, ENERGY_DOUBT_SENSOR},
		{3000, -0.5, ENERGY_DOUBT_SENSOR},
		{60, 0.05, ENERGY_DOUBT_SHORT},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct program program = random_program(false, 1);
		_cleanup_energy_use_ struct energy_use use = {0};
		_cleanup_model_ struct model *model = NULL;
		struct energy_uncertainty error;

		program.length_ms = cases[i].length_ms;
		program.reading_ns = 10 * MS;
		program.threads = 1;
		model = simulate(&program, cases[i].relative_error, &use);
		error = first_function(model);
		assert_int_equal(error.doubt, cases[i].doubt);
		assert_int_equal(isnan(error.energy_j), cases[i].doubt != ENERGY_DOUBT_NONE);
	}
	assert_null(energy_doubt_name(ENERGY_DOUBT_NONE));
	for (unsigned i = 1; i < ENERGY_DOUBT_MAX; i++)
		assert_non_null(energy_doubt_name((enum energy_doubt)i));
}

/* ---- device work ---- */

#define KERNELS 4
#define GAP_W   60.0

struct device_run {
	struct example example;
	double powers_w[KERNELS], truth_j[KERNELS];
	double gain, reading_j;
	uint64_t now_ns, next_ns;
};

static void take_reading(struct device_run *run)
{
	const struct wire_energy_interval interval = {
		.start_ns = run->next_ns - 100 * MS,
		.end_ns = run->next_ns,
		.domain = 1,
		.energy_nj =
			(uint64_t)(run->gain * run->reading_j * 1e9 * (1 + 0.01 * random_normal())),
		.busy_ns = UINT64_MAX,
	};

	assert_int_equal(model_builder_visitor.energy_interval(run->example.builder, &interval), 0);
	run->next_ns += 100 * MS;
	run->reading_j = 0;
}

static void pass(struct device_run *run, uint64_t length_ns, double power_w)
{
	while (length_ns) {
		uint64_t part = MIN(length_ns, run->next_ns - run->now_ns);

		run->reading_j += power_w * (double)part / 1e9;
		run->now_ns += part;
		length_ns -= part;
		if (run->now_ns == run->next_ns)
			take_reading(run);
	}
}

/* The mix changes from batch to batch, as in serving. */
static void run_batch(struct device_run *run)
{
	uint64_t lengths[KERNELS];

	for (unsigned i = 0; i < KERNELS; i++)
		lengths[i] = (100 + random_below(4000)) * 1000;
	for (unsigned token = 0; token < 10; token++) {
		for (unsigned i = 0; i < KERNELS; i++) {
			char name[8];
			struct capture_device_work work = {.kind = WIRE_DEVICE_KERNEL,
				.name = name,
				.device = "gpu",
				.pid = 7,
				.tid = 7,
				.queue = 1,
				.start_ns = run->now_ns,
				.end_ns = run->now_ns + lengths[i],
				.launch_ns = run->now_ns,
				.launch_duration_ns = 1};

			snprintf(name, sizeof(name), "k%u", i);
			assert_int_equal(
				model_builder_visitor.device_work(run->example.builder, &work), 0);
			run->truth_j[i] += run->powers_w[i] * (double)lengths[i] / 1e9;
			pass(run, lengths[i], run->powers_w[i]);
			pass(run, 20000 + random_below(200000), GAP_W);
		}
	}
}

static struct model *simulate_device(
	struct device_run *run, unsigned round, uint32_t quality, struct energy_use *use)
{
	const struct wire_energy_domain domain = {
		.id = 1,
		.part = WIRE_ENERGY_GPU,
		.quality = quality,
		.name = "gpu0",
		.source = "test",
		.device = "",
		.period_ns = 100 * MS,
		.relative_error = 0.05,
		.idle_w = NAN,
	};

	random_state = round;
	*run = (struct device_run){.next_ns = 100 * MS, .gain = 1 + 0.05 * random_normal()};
	for (unsigned i = 0; i < KERNELS; i++)
		run->powers_w[i] = 100 + 500 * random_share();
	example_begin(&run->example, EXAMPLE_PERIOD_NS);
	example_process(&run->example, 7, "app", 1);
	example_thread(&run->example, 7, 7, "app");
	assert_int_equal(model_builder_visitor.energy_domain(run->example.builder, &domain), 0);
	while (run->now_ns < 30 * NS_PER_S)
		run_batch(run);
	return weigh(&run->example, use);
}

static void check_kernels(
	const struct device_run *run, const struct model *model, struct coverage *coverage)
{
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_breakdown_ struct breakdown breakdown = {0};

	by_function(model, &selected, &breakdown);
	array_foreach (&breakdown.rows, row) {
		const char *name = model_function_name(model, row->key);
		size_t prefix = strlen(MODEL_GPU_LEAF);
		struct energy_uncertainty error =
			breakdown_uncertainty(&breakdown, model, row, false);

		if (strncmp(name, MODEL_GPU_LEAF, prefix) != 0)
			continue;
		if (isnan(error.energy_j)) {
			assert_int_equal(error.doubt, ENERGY_DOUBT_SHARED);
			coverage->unknown++;
			continue;
		}
		count_row(coverage, (double)row->self_samples / 1e6,
			run->truth_j[name[prefix + 1] - '0'], error.energy_j);
	}
}

static void test_kernels(void **state)
{
	struct coverage coverage = {0};

	for (unsigned round = 0; round < 300; round++) {
		struct device_run run;
		_cleanup_energy_use_ struct energy_use use = {0};
		_cleanup_model_ struct model *model =
			simulate_device(&run, round, WIRE_ENERGY_COUNTER, &use);

		check_kernels(&run, model, &coverage);
	}
	assert_covers("kernels", &coverage);
}

/* Split by time, kernels may be wrong by factors: nothing is said. */
static void test_kernels_by_time(void **state)
{
	struct coverage coverage = {0};
	struct device_run run;
	_cleanup_energy_use_ struct energy_use use = {0};
	_cleanup_model_ struct model *model = simulate_device(&run, 1, WIRE_ENERGY_AVERAGED, &use);

	check_kernels(&run, model, &coverage);
	assert_int_equal(coverage.rows, 0);
	assert_int_equal(coverage.unknown, KERNELS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_threads_in_step),
		cmocka_unit_test(test_all_together),
		cmocka_unit_test(test_not_known),
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_kernels_by_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
