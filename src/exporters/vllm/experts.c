/* SPDX-License-Identifier: Apache-2.0 */
/* Experts of mixture-of-experts models. */
#include "exporters/vllm/csv.h"

#include <stdio.h>

#define FOLDER "moe_expert_tracking/"

static void add_activations(
	struct strbuf *out, const struct vllm_csv *csv, const struct expert_layer *layer)
{
	const struct experts *experts = &csv->experts;

	for (uint32_t i = 0; i < layer->experts; i++) {
		uint64_t count = experts->counts.items[layer->first_count + i];

		strbuf_addf(out, "%llu,%u,%llu,", (unsigned long long)layer->number, i,
			(unsigned long long)count);
		if (layer->spread.chosen)
			vllm_csv_number(out, 100.0 * (double)count / (double)layer->spread.chosen);
		vllm_csv_end(out, csv, layer->process);
	}
}

static void add_weights(
	struct strbuf *out, const struct vllm_csv *csv, const struct expert_layer *layer)
{
	for (unsigned i = 0; i < EXPERT_WEIGHT_BINS; i++) {
		strbuf_addf(out, "%llu,%.1f,%.1f,%llu", (unsigned long long)layer->number,
			(double)i / EXPERT_WEIGHT_BINS, (double)(i + 1) / EXPERT_WEIGHT_BINS,
			(unsigned long long)layer->weights[i]);
		vllm_csv_end(out, csv, layer->process);
	}
}

/* The most to the fewest; nothing where an expert was never chosen: the ratio has no value. */
static void add_ratio(struct strbuf *out, const struct expert_spread *spread)
{
	if (spread->minimum)
		vllm_csv_number(out, (double)spread->maximum / (double)spread->minimum);
}

static int add_pairs(struct vllm_csv *csv)
{
	_cleanup_strbuf_ struct strbuf out = {0};

	strbuf_add(&out, "layer_idx,expert_id_1,expert_id_2,coselection_count,pid\r\n");
	array_foreach (&csv->experts.pairs, pair) {
		const struct expert_layer *layer = &csv->experts.layers.items[pair->layer];

		strbuf_addf(&out, "%llu,%u,%u,%llu", (unsigned long long)layer->number, pair->first,
			pair->second, (unsigned long long)pair->count);
		vllm_csv_end(&out, csv, layer->process);
	}
	return vllm_csv_add_file(csv, FOLDER "moe_expert_coselection.csv", &out);
}

static int add_imbalance(struct vllm_csv *csv)
{
	_cleanup_strbuf_ struct strbuf out = {0};

	strbuf_add(&out, "layer_idx,timestamp_sec,std_dev,max_min_ratio,max_mean_ratio,pid\r\n");
	array_foreach (&csv->experts.readings, reading) {
		const struct expert_layer *layer = &csv->experts.layers.items[reading->layer];

		strbuf_addf(&out, "%llu,", (unsigned long long)layer->number);
		vllm_csv_time(&out, csv, reading->time_ns);
		strbuf_add_char(&out, ',');
		vllm_csv_number(&out, reading->spread.deviation);
		strbuf_add_char(&out, ',');
		add_ratio(&out, &reading->spread);
		strbuf_add_char(&out, ',');
		if (reading->spread.chosen)
			vllm_csv_number(
				&out, (double)reading->spread.maximum / reading->spread.mean);
		vllm_csv_end(&out, csv, layer->process);
	}
	return vllm_csv_add_file(csv, FOLDER "moe_load_imbalance.csv", &out);
}

static void write_layer(struct json_writer *json, const struct expert_layer *layer)
{
	const struct expert_spread *spread = &layer->spread;

	json_begin_object(json);
	json_member_u64(json, "num_experts", layer->experts);
	json_member_u64(json, "top_k", layer->top_k);
	json_member_u64(json, "total_activations", spread->chosen);
	json_member_u64(json, "unique_experts_activated", spread->used);
	json_member_double(json, "activation_coverage_pct",
		layer->experts ? 100.0 * spread->used / (double)layer->experts : 0);
	json_member_double(json, "mean_activations_per_expert", spread->mean);
	json_member_double(json, "std_dev_activations", spread->deviation);
	json_member_u64(json, "min_activations", spread->minimum);
	json_member_u64(json, "max_activations", spread->maximum);
	json_key(json, "load_balance_ratio");
	if (spread->minimum)
		json_double(json, (double)spread->maximum / (double)spread->minimum, 9);
	else
		json_null(json);
	json_member_double(json, "balancedness", spread->balance);
	json_member_u64(json, "lost_calls", layer->lost_calls);
	json_key(json, "in_cuda_graph");
	json_bool(json, layer->captured);
	json_end_object(json);
}

/* "layer_3"; with the process, where several counted layers. */
static int add_summary(struct vllm_csv *csv)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_writer json = {.out = &out, .pretty = true};
	uint32_t first = csv->experts.layers.count ? csv->experts.layers.items[0].process : 0;
	bool several = false;
	char key[64];

	array_foreach (&csv->experts.layers, layer)
		several |= layer->process != first;
	json_begin_object(&json);
	array_foreach (&csv->experts.layers, layer) {
		int length =
			snprintf(key, sizeof(key), "layer_%llu", (unsigned long long)layer->number);

		if (several)
			snprintf(key + length, sizeof(key) - (size_t)length, "_pid_%u",
				csv->model->processes.items[layer->process].pid);
		json_key(&json, key);
		write_layer(&json, layer);
	}
	json_end_object(&json);
	strbuf_add_char(&out, '\n');
	return vllm_csv_add_file(csv, FOLDER "moe_summary.json", &out);
}

int vllm_csv_add_experts(struct vllm_csv *csv)
{
	_cleanup_strbuf_ struct strbuf activations = {0}, weights = {0};
	int r;

	strbuf_add(&activations, "layer_idx,expert_id,activation_count,percentage,pid\r\n");
	strbuf_add(&weights, "layer_idx,weight_from,weight_to,count,pid\r\n");
	array_foreach (&csv->experts.layers, layer) {
		add_activations(&activations, csv, layer);
		add_weights(&weights, csv, layer);
	}
	r = vllm_csv_add_file(csv, FOLDER "moe_expert_activations.csv", &activations);
	r = r ?: add_pairs(csv);
	r = r ?: vllm_csv_add_file(csv, FOLDER "moe_routing_weights_hist.csv", &weights);
	r = r ?: add_imbalance(csv);
	return r ?: add_summary(csv);
}
