/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, experts and the tables of vLLM, from marks: also from some that are not as they should
 * be. */
#include "vllm-example.h"

#include <errno.h>
#include <math.h>

#include "analyses/inference/inference.h"
#include "analyses/program/experts.h"
#include "analyses/program/range_fields.h"
#include "exporters/exporter.h"

static uint64_t duration(const struct inference_request *request, enum inference_metric metric)
{
	uint64_t time_ns = 0;

	assert_true(inference_duration(request, metric, &time_ns));
	return time_ns;
}

static void test_requests(void **state)
{
	struct model *model = example_vllm();
	_cleanup_inference_ struct inference inference = {0};
	const struct inference_request *one, *other;
	uint64_t time_ns;

	assert_int_equal(inference_init(&inference, model), 0);
	assert_int_equal(inference.requests.count, 2);
	one = &inference.requests.items[1];
	assert_true(one->of_engine && one->is_named);
	assert_string_equal(one->id, "a,b");
	assert_string_equal(one->end_reason, "stop");
	/* With what it waited before it was added. */
	assert_int_equal(duration(one, INFERENCE_QUEUE), 2 * VLLM_MS + VLLM_MS / 2);
	assert_int_equal(duration(one, INFERENCE_PREFILL), 4 * VLLM_MS);
	assert_int_equal(duration(one, INFERENCE_TTFT), 6 * VLLM_MS + VLLM_MS / 2);
	assert_int_equal(duration(one, INFERENCE_TPOT), 2 * VLLM_MS);
	assert_int_equal(duration(one, INFERENCE_E2E), 16 * VLLM_MS + VLLM_MS / 2);
	assert_int_equal(one->preempted_ns, 4 * VLLM_MS);
	assert_int_equal(one->preemptions, 1);

	/* Its begin and its end are not in the capture: nothing of them is known. */
	other = &inference.requests.items[0];
	assert_string_equal(other->id, "[2]");
	assert_false(other->is_named);
	for (int i = 0; i < INFERENCE_METRIC_MAX; i++)
		assert_false(inference_duration(other, (enum inference_metric)i, &time_ns));
	assert_false(other->tokens_known);
	assert_int_equal(other->preempted_at_ns, 14 * VLLM_MS);
	model_free(model);
}

static void test_experts(void **state)
{
	static const uint64_t counts[] = {4, 0, 3, 1, 0, 2};
	struct model *model = example_vllm();
	struct experts experts;
	const struct expert_layer *huge, *layer;
	uint32_t top[3];

	assert_int_equal(experts_init(&experts, model), 0);
	assert_int_equal(experts.layers.count, 2);
	huge = &experts.layers.items[0];
	assert_int_equal(huge->number, 2);
	assert_int_equal(huge->experts, 65536); /* not 2^40 */
	assert_int_equal(huge->spread.used, 0);
	layer = &experts.layers.items[1];
	assert_int_equal(layer->number, 9);
	assert_int_equal(layer->experts, 6);
	assert_memory_equal(&experts.counts.items[layer->first_count], counts, sizeof(counts));
	assert_int_equal(layer->calls, 2);
	assert_int_equal(layer->tokens, 5);
	assert_int_equal(layer->lost_calls, 6);
	assert_true(layer->captured);
	assert_int_equal(layer->weights[9], 5);
	assert_int_equal(layer->spread.chosen, 10);
	assert_int_equal(layer->spread.used, 4);
	assert_int_equal(layer->spread.minimum, 0);
	assert_int_equal(layer->spread.maximum, 4);
	assert_true(layer->spread.balance > 0.4166 && layer->spread.balance < 0.4167);
	assert_true(fabs(layer->spread.entropy_bits - 1.846439) < 1e-6);
	/* 6 x (0.4^2 + 0.3^2 + 0.1^2 + 0.2^2): shares of choices stand for probabilities. */
	assert_true(fabs(layer->load_balance - 1.8) < 1e-12);
	assert_true(layer->routed_tokens == 0 && isnan(layer->router_entropy_bits));
	assert_true(isnan(huge->load_balance));
	assert_int_equal(experts_top(&experts, layer, 3, top), 3);
	assert_int_equal(top[0], 0);
	assert_int_equal(top[1], 2);
	assert_int_equal(top[2], 5);
	assert_int_equal(experts_top(&experts, huge, 3, top), 0);

	assert_int_equal(experts.pairs.count, 2);
	assert_int_equal(experts.pairs.items[0].layer, 1);
	assert_int_equal(experts.pairs.items[0].second, 2);
	assert_int_equal(experts.pairs.items[0].count, 3);

	assert_int_equal(experts.readings.count, 3);
	assert_int_equal(experts.readings.items[0].layer, 1);
	assert_int_equal(experts.readings.items[0].spread.chosen, 8);
	assert_int_equal(experts.readings.items[2].spread.chosen, 2);
	experts_done(&experts);
	model_free(model);
}

/* With the probabilities of the router: Switch Transformers, equations 4 to 6. */
static void test_load_balance(void **state)
{
	static const double entropy = 6, shares[] = {2.5, 1, 0.5, NAN};
	struct capture_range_field routed[] = {NUMBER("layer", 1), NUMBER("experts", 4),
		NUMBER("top_k", 1), NUMBER("tokens", 4), NUMBER("routed_tokens", 4),
		{.name = "router_entropy_bits", .type = WIRE_RANGE_DOUBLE, .text = ""}};
	struct capture_range_field sums[] = {NUMBER("layer", 1),
		{.name = "0", .type = WIRE_RANGE_DOUBLE, .text = ""},
		{.name = "2", .type = WIRE_RANGE_DOUBLE, .text = ""},
		{.name = "3", .type = WIRE_RANGE_DOUBLE, .text = ""},
		{.name = "1", .type = WIRE_RANGE_DOUBLE, .text = ""}};
	const struct expert_layer *layer;
	struct experts experts;
	struct example example;
	struct model *model;

	memcpy(&routed[5].value, &entropy, sizeof(entropy));
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
		memcpy(&sums[1 + i].value, &shares[i], sizeof(shares[i]));
	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_process(&example, VLLM_PID, "vllm", 1);
	example_thread(&example, VLLM_PID, VLLM_PID, "engine");
	example_event(&example, CAPTURE_RANGE_MARK, VLLM_MS, "moe.routed", routed, 6);
	example_mark(&example, VLLM_MS, "moe.experts", NUMBER("layer", 1), NUMBER("0", 3),
		NUMBER("2", 1));
	example_event(&example, CAPTURE_RANGE_MARK, VLLM_MS, "moe.probabilities", sums, 5);
	model = example_end(&example);
	assert_int_equal(experts_init(&experts, model), 0);
	layer = &experts.layers.items[0];
	/* 4 experts x (3/4 x 2.5/4 + 1/4 x 1/4) */
	assert_true(fabs(layer->load_balance - 2.125) < 1e-12);
	assert_true(layer->router_entropy_bits == 1.5);
	assert_true(fabs(layer->spread.entropy_bits - 0.811278) < 1e-6);
	experts_done(&experts);
	model_free(model);
}

static void test_fields(void **state)
{
	static const double half = 2.5, minus = -1, huge = 1e300;
	struct capture_range_field fields[] = {
		{.name = "minus", .type = WIRE_RANGE_I64, .value = (uint64_t)-5, .text = ""},
		{.name = "half", .type = WIRE_RANGE_DOUBLE, .text = ""},
		{.name = "below", .type = WIRE_RANGE_DOUBLE, .text = ""},
		{.name = "huge", .type = WIRE_RANGE_DOUBLE, .text = ""},
		{.name = "text", .type = WIRE_RANGE_TEXT, .text = "12"},
	};
	const struct model_range *mark;
	struct example example;
	struct model *model;
	uint64_t number = 77;
	double value;

	memcpy(&fields[1].value, &half, sizeof(half));
	memcpy(&fields[2].value, &minus, sizeof(minus));
	memcpy(&fields[3].value, &huge, sizeof(huge));
	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_event(&example, CAPTURE_RANGE_MARK, 1, "x", fields, 5);
	model = example_end(&example);
	mark = &model->ranges.items[0];
	assert_true(range_u64(model, mark, "minus", &number) && number == 0);
	assert_true(range_double(model, mark, "minus", &value) && value == -5);
	assert_true(range_u64(model, mark, "half", &number) && number == 2);
	assert_true(range_u64(model, mark, "below", &number) && number == 0);
	assert_true(range_u64(model, mark, "huge", &number) && number == 0);
	number = 77;
	assert_false(range_u64(model, mark, "text", &number));
	assert_false(range_u64(model, mark, "none", &number));
	assert_int_equal(number, 77);
	assert_string_equal(range_text(model, mark, "text"), "12");
	assert_string_equal(range_text(model, mark, "minus"), "");
	model_free(model);
}

static const char *file_of(const struct export_files *files, const char *name)
{
	array_foreach (&files->items, file) {
		if (strcmp(file->name, name) == 0)
			return strbuf_cstr(&file->content);
	}
	fail_msg("there is no %s", name);
	return NULL;
}

static void test_tables(void **state)
{
	struct model *model = example_vllm();
	_cleanup_export_files_ struct export_files files = {0};
	const struct model_device_work works[] = {
		{.start_ns = 7 * VLLM_MS, .end_ns = 9 * VLLM_MS, .launch_ns = 5200000},
		{.start_ns = 8 * VLLM_MS, .end_ns = 12 * VLLM_MS, .launch_ns = 5400000},
		{.start_ns = 20 * VLLM_MS, .end_ns = 30 * VLLM_MS, .launch_ns = 6200000},
	};
	const struct model_graph_call call = {
		.time_ns = 17500000,
		.call = {.event = WIRE_GRAPH_CAPTURE_END, .nodes = 21},
	};
	struct errmsg err = {0};

	for (size_t i = 0; i < 3; i++) /* the last one was launched after the pass */
		assert_int_equal(array_append(&model->device_works, works[i]), 0);
	assert_int_equal(array_append(&model->graph_calls, call), 0);
	assert_int_equal(
		exporter_find("vllm-csv")->export_files(model, NULL, NULL, &files, &err), 0);
	assert_int_equal(files.items.count, 23);
	assert_string_equal(file_of(&files, "forward_pass_timing.csv"),
		"timestamp_sec,phase,batch_size,num_tokens,forward_time_ms,"
		"throughput_tokens_per_sec,clock,pid\r\n"
		"0.004999000,prefill,1,10,5,2000,device,7\r\n");
	assert_string_equal(file_of(&files, "cuda_graph_captures.csv"),
		"runtime_mode,num_tokens,num_reqs,uniform,has_lora,capture_time_sec,pieces,nodes,"
		"memory_bytes,pid\r\n"
		"FULL,16,,,,0.001000000,1,21,,7\r\n");
	assert_string_equal(file_of(&files, "cuda_graph_timeline.csv"),
		"timestamp_sec,descriptor,duration_ms,pid\r\n0.005499000,FULL/16///,5,7\r\n");
	assert_string_equal(file_of(&files, "request_lifecycle.csv"),
		"request_id,started_sec,preempted_sec,resumed_sec,finished_sec,total_time_sec,"
		"preemption_delay_sec,pid\r\n"
		"2,,0.013999000,,,,,7\r\n"
		"\"a,b\",0.002999000,0.007999000,0.011999000,0.016999000,0.016500000,0.004000000,"
		"7\r\n");
	assert_string_equal(file_of(&files, "kv_cache_evictions.csv"),
		"timestamp_sec,lifetime_sec,idle_sec,pid\r\n0.003999000,0.002000000,,7\r\n");
	assert_non_null(strstr(file_of(&files, "kv_cache_summary.txt"), "Average idle: unknown"));
	model_free(model);
}

static void test_captures_without_vllm(void **state)
{
	_cleanup_export_files_ struct export_files files = {0};
	struct selection selection = {.process = "x"};
	struct errmsg err = {0};
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	model = example_end(&example);
	assert_int_equal(
		exporter_find("vllm-csv")->export_files(model, NULL, NULL, &files, &err), -ENODATA);
	assert_non_null(strstr(err.text, "--hooks vllm"));
	assert_int_equal(selection_check(&selection, SELECTION_VLLM_TABLES, &err), -EINVAL);
	assert_int_equal(files.items.count, 0);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_experts),
		cmocka_unit_test(test_load_balance),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_captures_without_vllm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
