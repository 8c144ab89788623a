/* SPDX-License-Identifier: Apache-2.0 */
/* Several runs of inference side by side: the best ones, series of one label, laws, predictions. */
#include "inference-example.h"

#include <errno.h>
#include <math.h>

#include "analyses/inference/runs.h"

static struct run a_run(double tokens_per_s, double joules_per_token)
{
	struct run run = {.capture = "a", .model = "m", .precision = ""};

	for (int i = 0; i < RUN_LABEL_MAX; i++)
		run.labels[i] = NAN;
	for (int i = 0; i < RUN_FIGURE_MAX; i++)
		run.figures[i] = NAN;
	for (int i = 0; i < SPAN_ENERGY_SIDES; i++)
		run.states[i] = SPAN_STATE_UNKNOWN("not_read");
	run.figures[RUN_TOKENS_PER_S] = tokens_per_s;
	run.figures[RUN_JOULES_PER_TOKEN] = joules_per_token;
	run.figures[RUN_TPOT_NS] = 1e9 / tokens_per_s;
	return run;
}

static void add(struct runs *runs, struct run run)
{
	assert_int_equal(array_append(&runs->items, run), 0);
}

/*
 * The knee of the profiler before this one was the point farthest from the origin: the fastest run
 * or the most expensive, whatever the curve is.
 */
static void test_optimal_runs_and_knee(void **state _unused_)
{
	static const struct {
		double tokens_per_s, joules_per_token;
		bool is_optimal, is_knee;
	} cases[] = {
		{100, 1.0, true, false},
		{180, 1.1, true, true}, /* most of the speed for little */
		{200, 5.0, true, false},
		{150, 2.0, false, false}, /* 180 is faster and takes less */
		{100, 1.5, false, false},
	};
	struct runs runs = {0};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		add(&runs, a_run(cases[i].tokens_per_s, cases[i].joules_per_token));
	assert_int_equal(runs_find_optimal(&runs), 3);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(runs.items.items[i].is_optimal, cases[i].is_optimal);
		assert_int_equal(runs.items.items[i].is_knee, cases[i].is_knee);
	}
	assert_int_equal(runs_best(&runs, RUN_TOKENS_PER_S), 2);
	assert_int_equal(runs_best(&runs, RUN_JOULES_PER_TOKEN), 0);
	assert_int_equal(runs_best(&runs, RUN_WATTS), MODEL_NONE);
	array_done(&runs.items);
}

static void test_no_knee_of_two_or_of_a_line(void **state _unused_)
{
	struct runs runs = {0};

	assert_int_equal(runs_find_optimal(&runs), 0);
	add(&runs, a_run(100, 1));
	add(&runs, a_run(200, 2));
	assert_int_equal(runs_find_optimal(&runs), 2);
	assert_false(runs.items.items[0].is_knee || runs.items.items[1].is_knee);
	add(&runs, a_run(150, 1.5));
	assert_int_equal(runs_find_optimal(&runs), 3);
	assert_false(runs.items.items[2].is_knee);
	/* What is not known is neither good nor bad. */
	add(&runs, a_run(NAN, 0.1));
	assert_int_equal(runs_find_optimal(&runs), 3);
	array_done(&runs.items);
}

static void test_series_of_batches_contexts_and_precisions(void **state _unused_)
{
	struct runs runs = {0};
	_cleanup_run_comparison_ struct run_comparison comparison = {0};
	const struct run_series *series;

	for (int i = 0; i < 3; i++) { /* contexts 4096, 1024, 2048 */
		static const double contexts[] = {4096, 1024, 2048}, joules[] = {1.3, 1, 1.19};
		struct run run = a_run(100, joules[i]);

		run.labels[RUN_BATCH] = 1;
		run.labels[RUN_CONTEXT] = contexts[i];
		add(&runs, run);
	}
	for (int i = 0; i < 2; i++) {
		struct run run = a_run(300, i ? 0.4 : 0.6);

		run.labels[RUN_BATCH] = 8;
		run.labels[RUN_CONTEXT] = 1024;
		run.precision = i ? "int8" : "";
		add(&runs, run);
	}
	assert_int_equal(run_comparison_init(&comparison, &runs), 0);
	assert_int_equal(comparison.series.count, 3);
	series = &comparison.series.items[0];
	assert_int_equal(series->by, RUN_BATCH);
	assert_int_equal(series->runs.count, 2);
	assert_int_equal(series->runs.items[0], 1);
	assert_int_equal(series->best, 3);
	assert_int_equal(series->saturated, MODEL_NONE);
	series = &comparison.series.items[1];
	assert_int_equal(series->by, RUN_CONTEXT);
	assert_int_equal(series->runs.count, 3);
	assert_int_equal(series->runs.items[0], 1); /* the shortest first */
	assert_int_equal(series->best, 1);
	assert_int_equal(series->saturated, 0); /* 1.19 is not yet 20 % more, 1.3 is */
	series = &comparison.series.items[2];
	assert_int_equal(series->by, RUN_LABEL_MAX);
	assert_int_equal(series->best, 4);
	array_done(&runs.items);
}

static void test_scaling_law(void **state _unused_)
{
	static const double sizes[] = {1e9, 3e9, 7e9, 70e9};
	struct runs runs = {0};
	struct run_power_law law;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct run run = a_run(100, 2e-9 * pow(sizes[i], 0.9));

		run.labels[RUN_PARAMETERS] = sizes[i];
		add(&runs, run);
		law = runs_scaling(&runs, RUN_JOULES_PER_TOKEN);
		assert_int_equal(law.count, i + 1);
		assert_int_equal(isnan(law.power), i < 2);
	}
	assert_true(fabs(law.power - 0.9) < 1e-9);
	assert_true(fabs(law.scale / 2e-9 - 1) < 1e-6);
	assert_true(fabs(law.r_squared - 1) < 1e-9);
	/* Of a mixture of experts what is active counts. */
	runs.items.items[3].labels[RUN_PARAMETERS] = 500e9;
	runs.items.items[3].labels[RUN_ACTIVE] = 70e9;
	law = runs_scaling(&runs, RUN_JOULES_PER_TOKEN);
	assert_true(fabs(law.power - 0.9) < 1e-9);
	array_done(&runs.items);
}

static void test_prediction(void **state _unused_)
{
	static const double batches[] = {1, 2, 4, 8, 16, 32};
	double labels[RUN_LABEL_MAX];
	struct run_prediction prediction;
	struct runs runs = {0};
	struct errmsg err;

	for (int i = 0; i < RUN_LABEL_MAX; i++)
		labels[i] = NAN;
	labels[RUN_BATCH] = 12;
	for (size_t i = 0; i < ARRAY_SIZE(batches); i++) {
		struct run run = a_run(100 * batches[i], 4 * pow(batches[i], -0.5));

		run.labels[RUN_BATCH] = batches[i];
		run.labels[RUN_CONTEXT] = 1024;
		if (i == RUN_PREDICTION_MIN - 1) {
			assert_int_equal(runs_predict(&runs, RUN_JOULES_PER_TOKEN, labels,
						 &prediction, &err),
				-EINVAL);
			assert_non_null(strstr(err.text, "5 runs"));
		}
		add(&runs, run);
	}
	assert_int_equal(runs_predict(&runs, RUN_JOULES_PER_TOKEN, labels, &prediction, &err), 0);
	assert_true(fabs(prediction.value / (4 * pow(12, -0.5)) - 1) < 0.05);
	assert_true(prediction.low < prediction.value && prediction.value < prediction.high);
	assert_true(prediction.r_squared > 0.98 && prediction.mean_error < 0.2);
	assert_int_equal(prediction.count, 6);
	assert_int_equal(prediction.labels, 1U << RUN_BATCH);
	assert_false(prediction.is_extrapolation);
	labels[RUN_BATCH] = 64;
	assert_int_equal(runs_predict(&runs, RUN_JOULES_PER_TOKEN, labels, &prediction, &err), 0);
	assert_true(prediction.is_extrapolation);
	/* Nothing follows from a label that all share, or that none has; nor of what is not known.
	 */
	labels[RUN_CONTEXT] = 2048;
	assert_int_equal(
		runs_predict(&runs, RUN_JOULES_PER_TOKEN, labels, &prediction, &err), -EINVAL);
	assert_non_null(strstr(err.text, "context_length"));
	assert_int_equal(runs_predict(&runs, RUN_WATTS, labels, &prediction, &err), -EINVAL);
	assert_non_null(strstr(err.text, "average_w"));
	array_done(&runs.items);
}

/* Llama 2 7B: 32 layers, 32 heads of 128, two bytes: 0.5 MiB a token. */
static void test_cache_of_keys_and_values(void **state _unused_)
{
	assert_true(kv_cache_bytes(32, 1, 32, 128, 2, 1) == 524288);
	assert_true(kv_cache_bytes(32, 4096, 8, 128, 2, 4) == 2147483648.0);
	assert_true(isnan(kv_cache_bytes(32, 4096, NAN, 128, 2, 1)));
}

/* What the program says counts more than what hooks found. */
static void test_labels_of_marks(void **state _unused_)
{
	struct example example;
	_cleanup_model_ struct model *model = NULL;
	_cleanup_inference_ struct inference inference = {0};
	struct run run = {0};

	example_inference_begin(&example);
	example_ranged(&example, CAPTURE_RANGE_MARK, 1 * MS, "sonde.run", "run",
		FIELDS(TEXT("precision", "bf16"), NUMBER("parameters", 7000000000),
			TEXT("model", "mine"), NUMBER("kv_heads", 8), NUMBER("head_dim", 128),
			NUMBER("kv_number_bytes", 2)));
	example_ranged(&example, CAPTURE_RANGE_MARK, 2 * MS, "sonde.model", "structure",
		FIELDS(TEXT("model", "LlamaForCausalLM"), NUMBER("layers", 32)));
	example_ranged(&example, CAPTURE_RANGE_MARK, 2 * MS, "sonde.model", "configuration",
		FIELDS(TEXT("precision", "fp32"), NUMBER("parameters", 6900000000),
			NUMBER("experts", 8), NUMBER("active_parameters", 2000000000)));
	example_ranged(&example, CAPTURE_RANGE_MARK, 3 * MS, "sonde.model", "configuration",
		FIELDS(NUMBER("parameters", 1000000), NUMBER("experts", 2)));
	example_begin_range(&example, 10 * MS, "transformers", "generate",
		FIELDS(TEXT("request", "1"), NUMBER("batch", 4), NUMBER("prompt_tokens", 50)));
	example_token(&example, 10 * MS, "1", 0, "prefill");
	example_token(&example, 110 * MS, "1", 0, "decode");
	example_token(&example, 210 * MS, "1", 1, "decode");
	example_end_range(&example, 210 * MS, "transformers");
	model = example_infer(&example, &inference);
	assert_int_equal(run_describe(&run, model, &inference), 0);
	assert_string_equal(run.model, "mine");
	assert_string_equal(run.precision, "bf16");
	assert_true(run.labels[RUN_BATCH] == 4 && run.labels[RUN_CONTEXT] == 52);
	assert_true(run.labels[RUN_PARAMETERS] == 7e9 && run.labels[RUN_EXPERTS] == 8);
	assert_true(run.labels[RUN_ACTIVE] == 2e9); /* not of the smaller model beside it */
	assert_true(run.figures[RUN_TTFT_NS] == 100e6 && run.figures[RUN_TPOT_NS] == 100e6);
	assert_true(isnan(run.figures[RUN_JOULES_PER_TOKEN]));
	assert_true(run.kv_cache_bytes == 2.0 * 32 * 52 * 8 * 128 * 2 * 4);
	assert_true(isnan(run.expert_balance));
}

static struct run a_sized_run(double joules_per_token, double parameters)
{
	struct run run = a_run(100, joules_per_token);

	run.labels[RUN_PARAMETERS] = parameters;
	run.labels[RUN_BATCH] = 8;
	run.precision = "bf16";
	return run;
}

/* A mixture is compared with the dense model of about the size that is active in it, under the same
 * conditions. */
static void test_mixtures_beside_dense_models(void **state _unused_)
{
	_cleanup_run_comparison_ struct run_comparison comparison = {0};
	struct run mixture = a_sized_run(1.2, 47e9);
	const struct run_pair *found;
	struct runs runs = {0};

	mixture.labels[RUN_EXPERTS] = 8;
	mixture.labels[RUN_ACTIVE] = 13e9;
	add(&runs, mixture);
	assert_int_equal(runs_find_mixtures(&comparison, &runs), 0);
	assert_int_equal(comparison.mixtures.count, 0); /* nothing beside it */
	add(&runs, a_sized_run(4.8, 70e9));
	add(&runs, a_sized_run(1.5, 14e9));
	add(&runs, a_sized_run(0.7, 13e9));
	runs.items.items[3].labels[RUN_BATCH] = 16; /* another batch */
	runs.items.items[2].figures[RUN_TOKENS_PER_S] = 200;
	assert_int_equal(runs_find_mixtures(&comparison, &runs), 0);
	assert_int_equal(comparison.mixtures.count, 1);
	found = &comparison.mixtures.items[0];
	assert_int_equal(found->run, 0);
	assert_int_equal(found->beside, 2);
	assert_true(fabs(found->ratios[RUN_JOULES_PER_TOKEN] - 0.8) < 1e-9);
	assert_true(fabs(found->ratios[RUN_TOKENS_PER_S] - 0.5) < 1e-9);
	assert_true(isnan(found->ratios[RUN_WATTS]));
	array_done(&runs.items);
}

static struct run a_run_in(const char *precision, double joules_per_token)
{
	struct run run = a_sized_run(joules_per_token, 8e9);

	run.precision = precision;
	return run;
}

/* The widest is the baseline, wherever it stands; one whose width is not known is compared, too. */
static void test_precisions_beside_the_widest(void **state _unused_)
{
	_cleanup_run_comparison_ struct run_comparison comparison = {0};
	struct runs runs = {0};

	assert_int_equal(run_precision_bits("q4_k_m"), 4);
	assert_int_equal(run_precision_bits("bfloat16"), 16);
	assert_int_equal(run_precision_bits("awq"), 0);
	assert_int_equal(run_precision_bits("99999999999999999999"), 0);
	add(&runs, a_run_in("int8", 2));
	add(&runs, a_run_in("bf16", 4));
	add(&runs, a_run_in("awq", 1));
	assert_int_equal(run_comparison_init(&comparison, &runs), 0);
	assert_int_equal(comparison.precisions.count, 2);
	assert_int_equal(comparison.precisions.items[0].run, 0);
	assert_int_equal(comparison.precisions.items[0].beside, 1);
	assert_true(comparison.precisions.items[0].ratios[RUN_JOULES_PER_TOKEN] == 0.5);
	assert_int_equal(comparison.precisions.items[1].run, 2);
	assert_true(comparison.precisions.items[1].ratios[RUN_JOULES_PER_TOKEN] == 0.25);
	run_comparison_done(&comparison);
	/* Without a width there is no baseline. */
	runs.items.items[0].precision = "gptq";
	runs.items.items[1].precision = "auto";
	assert_int_equal(run_comparison_init(&comparison, &runs), 0);
	assert_int_equal(comparison.precisions.count, 0);
	array_done(&runs.items);
}

static void test_balance_of_experts(void **state _unused_)
{
	struct example example;
	_cleanup_model_ struct model *model = NULL;
	_cleanup_inference_ struct inference inference = {0};
	struct run run = {0};

	example_inference_begin(&example);
	for (uint64_t layer = 0; layer < 2; layer++) {
		example_ranged(&example, CAPTURE_RANGE_MARK, (1 + layer) * MS, "vllm", "moe.routed",
			FIELDS(NUMBER("layer", layer), NUMBER("experts", 4), NUMBER("top_k", 1),
				NUMBER("calls", 1), NUMBER("tokens", 8)));
		example_ranged(&example, CAPTURE_RANGE_MARK, (1 + layer) * MS, "vllm",
			"moe.experts",
			FIELDS(NUMBER("layer", layer), NUMBER("0", layer ? 2 : 4),
				NUMBER("1", layer ? 2 : 4), NUMBER("2", layer ? 2 : 0),
				NUMBER("3", layer ? 2 : 0)));
	}
	model = example_infer(&example, &inference);
	assert_int_equal(run_describe(&run, model, &inference), 0);
	/* Of one layer half of the experts do all, of the other all do the same: 0.5 and 1. */
	assert_true(run.labels[RUN_EXPERTS] == 4 && fabs(run.expert_balance - 0.75) < 1e-9);
	/* 1 of 2 bits, and 2 of 2; 4 experts x 2 x 0.5^2 is 2, and 4 x 4 x 0.25^2 is 1. */
	assert_true(fabs(run.expert_entropy - 0.75) < 1e-9 && fabs(run.expert_load - 1.5) < 1e-9);
}

/* Runs at other temperatures or clocks are said to be: their joules differ by that alone. */
static void test_states_that_differ(void **state _unused_)
{
	static const struct {
		double c[3], mhz[3];
		uint32_t coolest, warmest, slowest, fastest;
	} cases[] = {
		{{50, 61, 54}, {1500, 1510, 1495}, 0, 1, MODEL_NONE, MODEL_NONE},
		{{50, 54, 52}, {1500, 1200, NAN}, MODEL_NONE, MODEL_NONE, 1, 0},
		{{NAN, 61, NAN}, {NAN, NAN, NAN}, MODEL_NONE, MODEL_NONE, MODEL_NONE, MODEL_NONE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct runs runs = {0};
		struct run_states states;

		for (unsigned k = 0; k < 3; k++) {
			struct run run = a_run(100, 1);

			run.states[SPAN_ENERGY_DEVICE].mean_c = cases[i].c[k];
			run.states[SPAN_ENERGY_DEVICE].mean_mhz = cases[i].mhz[k];
			add(&runs, run);
		}
		states = runs_states(&runs, SPAN_ENERGY_DEVICE);
		assert_int_equal(states.coolest, cases[i].coolest);
		assert_int_equal(states.warmest, cases[i].warmest);
		assert_int_equal(states.slowest, cases[i].slowest);
		assert_int_equal(states.fastest, cases[i].fastest);
		states = runs_states(&runs, SPAN_ENERGY_HOST);
		assert_int_equal(states.warmest, MODEL_NONE);
		assert_int_equal(states.fastest, MODEL_NONE);
		array_done(&runs.items);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_optimal_runs_and_knee),
		cmocka_unit_test(test_no_knee_of_two_or_of_a_line),
		cmocka_unit_test(test_series_of_batches_contexts_and_precisions),
		cmocka_unit_test(test_scaling_law),
		cmocka_unit_test(test_prediction),
		cmocka_unit_test(test_cache_of_keys_and_values),
		cmocka_unit_test(test_labels_of_marks),
		cmocka_unit_test(test_mixtures_beside_dense_models),
		cmocka_unit_test(test_precisions_beside_the_widest),
		cmocka_unit_test(test_balance_of_experts),
		cmocka_unit_test(test_states_that_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
