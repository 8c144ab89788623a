/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Energy of inference: of phases, of requests alone and in batches, and what follows from it. What
 * spans took is said by a double in this file: 10 W on the host and 40 W on the device while any of
 * them lasts, 2 W of each idle; nothing of less than 10 ms in all.
 */
#include "inference-example.h"

#include <math.h>

#include "analyses/inference/joules.h"

struct span_energy {
	bool has_device, has_gap;
};

#define HOST_W   10.0
#define DEVICE_W 40.0
#define IDLE_W   2.0

const char *span_energy_kind_name(enum span_energy_kind kind)
{
	static const char *const names[SPAN_ENERGY_KIND_MAX] = {"no_source", "not_measured",
		"shorter_than_sensor", "nothing_ran", "single", "aggregated"};

	return names[kind];
}

static struct span_energy_part part_of(double seconds, size_t count, double watts)
{
	struct span_energy_part part = {
		.kind = count > 1 ? SPAN_ENERGY_AGGREGATED : SPAN_ENERGY_SINGLE,
		.net_j = (watts - IDLE_W) * seconds,
		.full_j = watts * seconds,
		.uncertainty_j = 0.05 * watts * seconds,
		.average_w = watts,
		.peak_w = 2 * watts,
	};

	if (seconds < 0.010)
		part = (struct span_energy_part){.kind = SPAN_ENERGY_SHORTER_THAN_SENSOR};
	return part;
}

void span_energy_ask(const struct span_energy *energy, const struct energy_span *spans,
	size_t count, struct span_energy_answer *ret_answer)
{
	double seconds = 0;

	for (size_t i = 0; i < count; i++)
		seconds += (double)(spans[i].end_ns - spans[i].start_ns) / NS_PER_S;
	*ret_answer = (struct span_energy_answer){.count = (uint32_t)count};
	ret_answer->sides[SPAN_ENERGY_HOST] = part_of(seconds, count, HOST_W);
	if (energy->has_gap)
		ret_answer->sides[SPAN_ENERGY_HOST].kind = SPAN_ENERGY_NOT_MEASURED;
	if (energy->has_device)
		ret_answer->sides[SPAN_ENERGY_DEVICE] = part_of(seconds, count, DEVICE_W);
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

static void generate(struct example *example, const char *request, uint64_t begin_ms,
	uint64_t first_ms, uint64_t tokens, uint64_t gap_ms)
{
	example_token(example, begin_ms * MS, request, 0, "prefill");
	for (uint64_t i = 0; i < tokens; i++)
		example_token(example, (first_ms + i * gap_ms) * MS, request, i, "decode");
}

struct fixture {
	struct model *model;
	struct inference inference;
	struct phase_use phases;
	struct inference_joules joules;
};

static void make(struct fixture *fixture, struct example *example, const struct span_energy *energy)
{
	fixture->model = example_infer(example, &fixture->inference);
	assert_int_equal(
		phase_use_init(&fixture->phases, fixture->model, NULL, &fixture->inference), 0);
	assert_int_equal(inference_joules_init(
				 &fixture->joules, energy, &fixture->inference, &fixture->phases),
		0);
}

static void done(struct fixture *fixture)
{
	inference_joules_done(&fixture->joules);
	phase_use_done(&fixture->phases);
	inference_done(&fixture->inference);
	model_free(fixture->model);
}

static void test_requests_that_are_alone(void **state)
{
	const struct span_energy energy = {.has_device = true};
	struct fixture fixture = {0};
	struct example example;
	const struct joules *first;

	(void)state;
	example_inference_begin(&example);
	generate(&example, "one", 100, 200, 11, 10); /* to 300 ms */
	generate(&example, "two", 400, 500, 11, 10);
	make(&fixture, &example, &energy);
	/* From 100 to 600 ms, 50 W, of 22 tokens. */
	assert_true(is_near(fixture.joules.all.full_j, 25));
	assert_true(is_near(fixture.joules.all.net_j, 0.5 * (50 - 2 * IDLE_W)));
	assert_true(is_near(fixture.joules.all.uncertainty_j, 0.05 * hypot(5, 20)));
	assert_true(is_near(fixture.joules.per_output_token_j, 25.0 / 22));
	assert_true(is_near(fixture.joules.tokens_per_j, 22.0 / 25));
	assert_true(is_near(fixture.joules.edp_per_token_js, 25.0 / 22 * 0.010));
	assert_true(is_near(fixture.joules.edp_js, 25 * 0.5));
	assert_true(is_near(fixture.joules.phase_edp_js[INFERENCE_PHASE_DECODE], 10 * 0.2));
	assert_true(is_near(fixture.joules.phases[INFERENCE_PHASE_PREFILL].full_j, 10));
	assert_true(is_near(fixture.joules.phases[INFERENCE_PHASE_DECODE].full_j, 10));
	assert_true(is_near(fixture.joules.decode_per_output_token_j, 10.0 / 22));
	assert_true(isnan(fixture.joules.prefill_per_prompt_token_j)); /* prompts are not known */
	assert_true(is_near(fixture.joules.phases[INFERENCE_PHASE_DECODE].average_w, 50));
	assert_true(is_near(fixture.joules.phases[INFERENCE_PHASE_DECODE].peak_w, 100));
	first = &fixture.joules.requests.items[0];
	assert_true(is_near(first->full_j, 10)); /* 100 to 300 ms */
	assert_false(first->is_allocated);
	assert_null(first->reason);
	done(&fixture);
}

/* Board energy belongs to the batch: what each request has of it is a share by its tokens. */
static void test_requests_of_a_batch(void **state)
{
	const struct span_energy energy = {0};
	struct fixture fixture = {0};
	struct example example;
	const struct joules *long_one, *short_one;

	(void)state;
	example_inference_begin(&example);
	generate(&example, "long", 100, 200, 31, 10); /* to 500 ms */
	generate(&example, "short", 100, 200, 10, 10);
	make(&fixture, &example, &energy);
	long_one = &fixture.joules.requests.items[0];
	short_one = &fixture.joules.requests.items[1];
	assert_true(long_one->is_allocated && short_one->is_allocated);
	/* All of it, and by 100 ms of prefill each and 10 ms for each token. */
	assert_true(is_near(long_one->full_j + short_one->full_j, fixture.joules.all.full_j));
	assert_true(is_near(long_one->full_j, fixture.joules.all.full_j * 410 / 610));
	assert_true(long_one->net_j < long_one->full_j && long_one->uncertainty_j > 0);
	/* Prefills at once, and decodes, have the energy of their time once. */
	assert_true(is_near(fixture.joules.phases[INFERENCE_PHASE_PREFILL].full_j, 1));
	assert_true(is_near(fixture.joules.phases[INFERENCE_PHASE_DECODE].full_j, 3));
	done(&fixture);
}

/* The profiler before this one gave energy to times that no sensor had seen. */
static void test_no_energy_of_what_was_not_measured(void **state)
{
	const struct span_energy with_gap = {.has_device = true, .has_gap = true}, energy = {0};
	struct fixture fixture = {0};
	struct example example;

	(void)state;
	example_inference_begin(&example);
	generate(&example, "short", 100, 101, 3, 1);
	make(&fixture, &example, &energy);
	assert_true(isnan(fixture.joules.all.full_j) && isnan(fixture.joules.per_output_token_j));
	assert_string_equal(fixture.joules.all.reason, "shorter_than_sensor");
	assert_string_equal(fixture.joules.requests.items[0].reason, "shorter_than_sensor");
	done(&fixture);

	fixture = (struct fixture){0};
	example_inference_begin(&example);
	generate(&example, "gap", 100, 200, 11, 10);
	make(&fixture, &example, &with_gap);
	assert_true(isnan(fixture.joules.all.full_j)); /* the device alone would be too little */
	assert_string_equal(fixture.joules.all.reason, "not_measured");
	done(&fixture);

	fixture = (struct fixture){0};
	example_inference_begin(&example);
	generate(&example, "nothing", 100, 200, 11, 10);
	make(&fixture, &example, NULL);
	assert_true(isnan(fixture.joules.all.full_j));
	assert_string_equal(fixture.joules.all.reason, "no_source");
	assert_string_equal(fixture.joules.phases[INFERENCE_PHASE_DECODE].reason, "no_source");
	done(&fixture);

	/* Of a duration of zero, and of no tokens. */
	fixture = (struct fixture){0};
	example_inference_begin(&example);
	example_token(&example, 100 * MS, "zero", 0, "prefill");
	example_token(&example, 100 * MS, "zero", 0, "decode");
	make(&fixture, &example, &energy);
	assert_true(isnan(fixture.joules.all.full_j) && isnan(fixture.joules.per_output_token_j));
	assert_string_equal(fixture.joules.requests.items[0].reason, "begin_or_end_not_seen");
	done(&fixture);
}

/* Rows of layers are added up by role: what the spans of a group take, and at once, once. */
static void test_rows_and_groups_of_rows(void **state)
{
	static const uint32_t groups[] = {1, 0, 1};
	const struct span_energy energy = {0};
	struct joules rows[4], sums[2];
	struct span_set set = {0};

	(void)state;
	/* Row 2 runs in two threads at once; row 3 has no spans. */
	assert_int_equal(span_set_add(&set, 0, 100 * MS, 0, 1, 0), 0);
	assert_int_equal(span_set_add(&set, 300 * MS, 400 * MS, 0, 2, 2), 0);
	assert_int_equal(span_set_add(&set, 200 * MS, 250 * MS, 0, 1, 1), 0);
	assert_int_equal(span_set_add(&set, 350 * MS, 450 * MS, 0, 1, 2), 0);
	assert_int_equal(span_set_add(&set, 500 * MS, 501 * MS, 0, 1, 1), 0);
	assert_int_equal(joules_of_rows(&energy, &set, NULL, ARRAY_SIZE(rows), rows), 0);
	assert_true(is_near(rows[0].full_j, 0.100 * HOST_W));
	assert_true(is_near(rows[1].full_j, 0.051 * HOST_W) && rows[1].is_aggregated);
	assert_true(is_near(rows[2].full_j, 0.150 * HOST_W) && !rows[2].is_aggregated);
	assert_string_equal(rows[3].reason, "no_source");
	assert_int_equal(joules_of_rows(&energy, &set, groups, ARRAY_SIZE(sums), sums), 0);
	assert_true(is_near(sums[0].full_j, 0.051 * HOST_W));
	assert_true(is_near(sums[1].full_j, 0.250 * HOST_W));
	assert_int_equal(joules_of_rows(NULL, &set, NULL, ARRAY_SIZE(rows), rows), 0);
	assert_true(isnan(rows[0].full_j));
	assert_string_equal(rows[0].reason, "no_source");
	span_set_done(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_that_are_alone),
		cmocka_unit_test(test_requests_of_a_batch),
		cmocka_unit_test(test_no_energy_of_what_was_not_measured),
		cmocka_unit_test(test_rows_and_groups_of_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
