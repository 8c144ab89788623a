/* SPDX-License-Identifier: Apache-2.0 */
/* Forward passes, the engine's own work, batches, encoders and decoders. */
#include "exporters/vllm/csv.h"

#include <string.h>

#include "analyses/program/range_fields.h"
#include "base/escape.h"
#include "base/macros.h"

#define MS_PER_NS        1e-6
#define UNDERUTILIZATION 50.0 /* % of the batch that may be used */

static const unsigned all_percentiles[] = {50, 95, 99, 0}, one_percentile[] = {95, 0},
		      no_percentiles[] = {0};

static double ms(uint64_t time_ns)
{
	return (double)time_ns * MS_PER_NS;
}

static uint64_t length_ns(const struct model_range *range)
{
	return range->end_ns - range->start_ns;
}

/* ---- forward passes ---- */

static void add_pass(struct strbuf *out, const struct vllm_csv *csv, const struct vllm_pass *pass)
{
	uint64_t time_ns = vllm_pass_time_ns(pass);
	uint64_t tokens = range_u64_or_0(csv->model, pass->range, "tokens");

	vllm_csv_time(out, csv, pass->range->start_ns);
	strbuf_add_char(out, ',');
	escape_csv(out, range_text(csv->model, pass->range, "phase"));
	strbuf_add_char(out, ',');
	vllm_csv_field(out, csv, pass->range, "requests");
	strbuf_addf(out, ",%llu,", (unsigned long long)tokens);
	vllm_csv_number(out, ms(time_ns));
	strbuf_add_char(out, ',');
	if (time_ns)
		vllm_csv_number(out, (double)tokens * (double)NS_PER_S / (double)time_ns);
	strbuf_addf(out, ",%s", pass->device_end_ns ? "device" : "host");
	vllm_csv_end(out, csv, pass->range->process);
}

static int add_pass_summary(struct vllm_csv *csv)
{
	static const char *const phases[] = {"prefill", "decode", "mixed"};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_writer json = {.out = &out, .pretty = true};
	int r = 0;

	json_begin_object(&json);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(phases); i++) {
		struct vllm_values times = {0};

		array_foreach (&csv->passes, pass) {
			if (strcmp(range_text(csv->model, pass->range, "phase"), phases[i]) == 0)
				r = r ?: array_append(&times.of, ms(vllm_pass_time_ns(pass)));
		}
		json_key(&json, phases[i]);
		json_begin_object(&json);
		vllm_values_write(&json, &times, all_percentiles);
		json_end_object(&json);
		array_done(&times.of);
	}
	json_end_object(&json);
	strbuf_add_char(&out, '\n');
	return r ?: vllm_csv_add_file(csv, "forward_pass_summary.json", &out);
}

int vllm_csv_add_passes(struct vllm_csv *csv)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	int r;

	strbuf_add(&out, "timestamp_sec,phase,batch_size,num_tokens,forward_time_ms,"
			 "throughput_tokens_per_sec,clock,pid\r\n");
	array_foreach (&csv->passes, pass)
		add_pass(&out, csv, pass);
	r = vllm_csv_add_file(csv, "forward_pass_timing.csv", &out);
	return r ?: add_pass_summary(csv);
}

/* ---- what the engine does on the CPU ---- */

static const struct {
	const char *range, *operation;
} operations[] = {
	{"schedule", "scheduling"},
	{"forward", "model_execution"},
	{"sample", "sampling"},
	{"update", "update_from_output"},
};

static int add_operation(struct strbuf *out, const struct vllm_csv *csv,
	const struct model_range *range, struct vllm_values *times)
{
	for (size_t i = 0; !range->is_mark && i < ARRAY_SIZE(operations); i++) {
		if (!vllm_csv_is(range, operations[i].range))
			continue;
		vllm_csv_time(out, csv, range->start_ns);
		strbuf_addf(out, ",%s,", operations[i].operation);
		vllm_csv_number(out, ms(length_ns(range)));
		strbuf_add_char(out, ',');
		escape_csv(out, range_text(csv->model, range, "phase"));
		vllm_csv_end(out, csv, range->process);
		return array_append(&times[i].of, ms(length_ns(range)));
	}
	return 0;
}

int vllm_csv_add_operations(struct vllm_csv *csv)
{
	_cleanup_strbuf_ struct strbuf out = {0}, summary = {0};
	struct json_writer json = {.out = &summary, .pretty = true};
	struct vllm_values times[ARRAY_SIZE(operations)] = {0};
	int r = 0;

	strbuf_add(&out, "timestamp_sec,operation,duration_ms,context,pid\r\n");
	array_foreach (&csv->model->ranges, range)
		r = r ?: add_operation(&out, csv, range, times);
	json_begin_object(&json);
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		json_key(&json, operations[i].operation);
		json_begin_object(&json);
		vllm_values_write(&json, &times[i], one_percentile);
		json_end_object(&json);
		array_done(&times[i].of);
	}
	json_end_object(&json);
	strbuf_add_char(&summary, '\n');
	r = r ?: vllm_csv_add_file(csv, "cpu_operations_timing.csv", &out);
	return r ?: vllm_csv_add_file(csv, "cpu_timing_summary.json", &summary);
}

/* ---- batches ---- */

struct batch_totals {
	uint64_t samples, under, prefills, decodes;
	uint64_t max_requests, max_tokens;
	double requests, tokens, prefill, decode; /* sums of shares */
};

static double share(uint64_t used, uint64_t most)
{
	return most ? 100.0 * (double)used / (double)most : 0;
}

static void add_batch(struct strbuf *out, const struct vllm_csv *csv,
	const struct model_range *mark, struct batch_totals *totals)
{
	const struct model *model = csv->model;
	uint64_t requests = range_u64_or_0(model, mark, "requests");
	uint64_t max_requests = range_u64_or_0(model, mark, "max_requests");
	uint64_t tokens = range_u64_or_0(model, mark, "tokens");
	uint64_t max_tokens = range_u64_or_0(model, mark, "max_tokens");
	const char *phase = range_text(model, mark, "phase");

	vllm_csv_time(out, csv, mark->start_ns);
	strbuf_addf(out, ",%llu,%llu,%.9g,%llu,%llu,%.9g,", (unsigned long long)requests,
		(unsigned long long)max_requests, share(requests, max_requests),
		(unsigned long long)tokens, (unsigned long long)max_tokens,
		share(tokens, max_tokens));
	escape_csv(out, phase);
	strbuf_add_char(out, ',');
	vllm_csv_field(out, csv, mark, "running");
	strbuf_add_char(out, ',');
	vllm_csv_field(out, csv, mark, "waiting");
	vllm_csv_end(out, csv, mark->process);
	totals->samples++;
	totals->under += share(requests, max_requests) < UNDERUTILIZATION;
	totals->requests += share(requests, max_requests);
	totals->tokens += share(tokens, max_tokens);
	totals->max_requests = MAX(totals->max_requests, max_requests);
	totals->max_tokens = MAX(totals->max_tokens, max_tokens);
	if (strcmp(phase, "prefill") == 0) {
		totals->prefills++;
		totals->prefill += share(tokens, max_tokens);
	} else if (strcmp(phase, "decode") == 0) {
		totals->decodes++;
		totals->decode += share(requests, max_requests);
	}
}

static void write_mean(struct json_writer *json, const char *key, double sum, uint64_t count)
{
	json_key(json, key);
	if (count)
		json_double(json, sum / (double)count, 9);
	else
		json_null(json);
}

int vllm_csv_add_batches(struct vllm_csv *csv)
{
	_cleanup_strbuf_ struct strbuf out = {0}, summary = {0};
	struct json_writer json = {.out = &summary, .pretty = true};
	struct batch_totals totals = {0};
	int r;

	strbuf_add(&out,
		"timestamp_sec,num_seqs,max_num_seqs,seq_utilization_pct,num_tokens,max_tokens,"
		"token_utilization_pct,phase,running_queue_len,waiting_queue_len,pid\r\n");
	array_foreach (&csv->model->ranges, mark) {
		if (mark->is_mark && vllm_csv_is(mark, "batch"))
			add_batch(&out, csv, mark, &totals);
	}
	json_begin_object(&json);
	json_member_u64(&json, "total_samples", totals.samples);
	write_mean(&json, "mean_seq_utilization_pct", totals.requests, totals.samples);
	write_mean(&json, "mean_token_utilization_pct", totals.tokens, totals.samples);
	json_member_u64(&json, "underutilization_events", totals.under);
	write_mean(&json, "prefill_avg_utilization", totals.prefill, totals.prefills);
	write_mean(&json, "decode_avg_utilization", totals.decode, totals.decodes);
	json_member_known(&json, "max_num_seqs", totals.samples, totals.max_requests);
	json_member_known(&json, "max_tokens", totals.samples, totals.max_tokens);
	json_end_object(&json);
	strbuf_add_char(&summary, '\n');
	r = vllm_csv_add_file(csv, "batch_utilization.csv", &out);
	return r ?: vllm_csv_add_file(csv, "batch_utilization_summary.json", &summary);
}

/* ---- encoders and decoders ---- */

static const char *const components[] = {"encoder", "decoder"};

static int add_component(struct strbuf *out, const struct vllm_csv *csv,
	const struct model_range *range, struct vllm_values *times)
{
	for (size_t i = 0; !range->is_mark && i < ARRAY_SIZE(components); i++) {
		if (!vllm_csv_is(range, components[i]))
			continue;
		vllm_csv_time(out, csv, range->start_ns);
		strbuf_addf(out, ",%s,", components[i]);
		vllm_csv_number(out, ms(length_ns(range)));
		strbuf_add_char(out, ',');
		vllm_csv_end(out, csv, range->process);
		return array_append(&times[i].of, ms(length_ns(range)));
	}
	return 0;
}

static void write_components(struct json_writer *json, struct vllm_values *times)
{
	double totals[ARRAY_SIZE(components)], all = 0;
	char key[32];

	for (size_t i = 0; i < ARRAY_SIZE(components); i++) {
		totals[i] = vllm_values_mean(&times[i]) * (double)times[i].of.count;
		all += totals[i];
		json_key(json, components[i]);
		json_begin_object(json);
		vllm_values_write(json, &times[i], no_percentiles);
		json_member_double(json, "total_ms", totals[i]);
		json_end_object(json);
	}
	for (size_t i = 0; i < ARRAY_SIZE(components); i++) {
		snprintf(key, sizeof(key), "%s_pct", components[i]);
		json_key(json, key);
		if (all > 0)
			json_double(json, 100.0 * totals[i] / all, 9);
		else
			json_null(json);
	}
	json_key(json, "cross_attention_pct");
	json_null(json);
}

int vllm_csv_add_encoders(struct vllm_csv *csv)
{
	_cleanup_strbuf_ struct strbuf out = {0}, summary = {0};
	struct json_writer json = {.out = &summary, .pretty = true};
	struct vllm_values times[ARRAY_SIZE(components)] = {0};
	int r = 0;

	strbuf_add(&out, "timestamp_sec,component,duration_ms,context,pid\r\n");
	array_foreach (&csv->model->ranges, range)
		r = r ?: add_component(&out, csv, range, times);
	json_begin_object(&json);
	json_member_text(&json, "model_type", NULL);
	write_components(&json, times);
	json_end_object(&json);
	strbuf_add_char(&summary, '\n');
	for (size_t i = 0; i < ARRAY_SIZE(components); i++)
		array_done(&times[i].of);
	r = r ?: vllm_csv_add_file(csv, "encoder_decoder_timing.csv", &out);
	return r ?: vllm_csv_add_file(csv, "encoder_decoder_summary.json", &summary);
}
