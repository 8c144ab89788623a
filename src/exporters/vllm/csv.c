/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What vLLM did as a folder of tables and summaries, with the names that ProfileMate gave them.
 * docs/vllm.md lists which columns differ, and why.
 */
#include "exporters/vllm/csv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyses/program/range_fields.h"
#include "analyses/statistics.h"

/* ---- times and numbers ---- */

void vllm_csv_seconds(struct strbuf *out, uint64_t duration_ns)
{
	strbuf_addf(out, "%llu.%09llu", (unsigned long long)(duration_ns / NS_PER_S),
		(unsigned long long)(duration_ns % NS_PER_S));
}

void vllm_csv_time(struct strbuf *out, const struct vllm_csv *csv, uint64_t time_ns)
{
	uint64_t start_ns = model_start_ns(csv->model);

	if (time_ns)
		vllm_csv_seconds(out, time_ns > start_ns ? time_ns - start_ns : 0);
}

void vllm_csv_number(struct strbuf *out, double value)
{
	if (isfinite(value))
		strbuf_addf(out, "%.9g", value);
}

void vllm_csv_end(struct strbuf *out, const struct vllm_csv *csv, uint32_t process)
{
	strbuf_addf(out, ",%u\r\n", csv->model->processes.items[process].pid);
}

void vllm_csv_field(struct strbuf *out, const struct vllm_csv *csv, const struct model_range *range,
	const char *name)
{
	uint64_t value;

	if (range_u64(csv->model, range, name, &value))
		strbuf_addf(out, "%llu", (unsigned long long)value);
}

bool vllm_csv_is(const struct model_range *range, const char *name)
{
	return range_is(range, VLLM_DOMAIN, name);
}

double vllm_values_mean(const struct vllm_values *values)
{
	double sum = 0;

	array_foreach (&values->of, value)
		sum += *value;
	return values->of.count ? sum / (double)values->of.count : 0;
}

static int compare_doubles(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

void vllm_values_write(
	struct json_writer *json, struct vllm_values *values, const unsigned *percentiles)
{
	size_t count = values->of.count;
	double mean = vllm_values_mean(values), squares = 0;
	char key[16];

	json_member_u64(json, "count", count);
	if (!count)
		return;
	qsort(values->of.items, count, sizeof(*values->of.items), compare_doubles);
	array_foreach (&values->of, value)
		squares += (*value - mean) * (*value - mean);
	json_member_double(json, "mean_ms", mean);
	json_member_double(json, "std_ms", sqrt(squares / (double)count));
	json_member_double(json, "min_ms", values->of.items[0]);
	json_member_double(json, "max_ms", values->of.items[count - 1]);
	for (; *percentiles; percentiles++) {
		snprintf(key, sizeof(key), "p%u_ms", *percentiles);
		json_member_double(json, key,
			*percentiles == 50
				? statistics_median(values->of.items, count)
				: values->of.items[statistics_rank(count, *percentiles)]);
	}
}

/* ---- files ---- */

int vllm_csv_add_file(struct vllm_csv *csv, const char *name, struct strbuf *take_content)
{
	int r = strbuf_status(take_content);

	if (r == 0)
		r = array_append(&csv->files->items,
			(struct export_file){.name = name, .content = *take_content});
	if (r < 0)
		strbuf_done(take_content);
	*take_content = (struct strbuf){0};
	return r;
}

/* ---- forward passes ---- */

uint64_t vllm_pass_time_ns(const struct vllm_pass *pass)
{
	if (pass->device_end_ns)
		return pass->device_end_ns - pass->device_start_ns;
	return pass->range->end_ns - pass->range->start_ns;
}

/* Threads run one pass at a time, and few threads do. */
struct vllm_pass *vllm_csv_pass_at(const struct vllm_csv *csv, uint32_t thread, uint64_t time_ns)
{
	size_t low = 0, high = csv->passes.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (csv->passes.items[middle].range->start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i > 0 && low - i < 64; i--) {
		struct vllm_pass *pass = &csv->passes.items[i - 1];

		if (pass->range->thread == thread)
			return time_ns <= pass->range->end_ns ? pass : NULL;
	}
	return NULL;
}

static int find_passes(struct vllm_csv *csv)
{
	const struct model *model = csv->model;
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->ranges.count; i++) {
		const struct model_range *range = &model->ranges.items[i];

		if (!range->is_mark && vllm_csv_is(range, "forward"))
			r = array_append(&csv->passes, (struct vllm_pass){.range = range});
	}
	for (size_t i = 0; r == 0 && csv->passes.count && i < model->device_works.count; i++) {
		const struct model_device_work *work = &model->device_works.items[i];
		struct vllm_pass *pass = vllm_csv_pass_at(csv, work->thread, work->launch_ns);

		if (!work->launch_ns || !pass)
			continue;
		if (!pass->device_end_ns)
			pass->device_start_ns = work->start_ns;
		pass->device_end_ns = MAX(pass->device_end_ns, work->end_ns);
	}
	return r;
}

/* ---- the session ---- */

static bool has(const struct vllm_csv *csv, const char *prefix)
{
	array_foreach (&csv->model->ranges, range) {
		if (strcmp(range->domain, VLLM_DOMAIN) == 0 &&
			strncmp(range->name, prefix, strlen(prefix)) == 0)
			return true;
	}
	return false;
}

static void write_start(struct json_writer *json, const struct model *model)
{
	time_t seconds = (time_t)(model->session.start_realtime_ns / NS_PER_S);
	char text[32];
	struct tm utc;

	if (model->session.start_realtime_ns && gmtime_r(&seconds, &utc) &&
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc))
		json_member_text(json, "start_time", text);
	else
		json_member_text(json, "start_time", NULL);
}

static int add_metadata(struct vllm_csv *csv, const struct export_options *options)
{
	static const struct {
		const char *member, *prefix;
	} kinds[] = {
		{"cuda_graph_tracking", "graph."},
		{"kv_cache_tracking", "kv"},
		{"moe_expert_tracking", "moe."},
		{"forward_pass_timing", "forward"},
		{"cpu_timing", "schedule"},
		{"batch_utilization_tracking", "batch"},
		{"preemption_tracking", "request."},
		{"encoder_decoder_timing", "encoder"},
	};
	const struct model *model = csv->model;
	_cleanup_strbuf_ struct strbuf out = {0}, id = {0};
	struct json_writer json = {.out = &out, .pretty = true};

	strbuf_addf(&id, "%s-%llu", model->session.present ? model->session.host : "",
		(unsigned long long)model->session.start_realtime_ns);
	json_begin_object(&json);
	json_member_text(&json, "session_id", strbuf_cstr(&id));
	write_start(&json, model);
	json_member_text(&json, "output_dir", options->output);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		json_key(&json, kinds[i].member);
		json_bool(&json, has(csv, kinds[i].prefix));
	}
	json_key(&json, "cuda_events_enabled");
	json_bool(&json, false);
	json_member_text(&json, "sonde_version", model->session.sonde_version);
	json_member_text(&json, "capture", options->capture);
	json_end_object(&json);
	strbuf_add_char(&out, '\n');
	strbuf_inherit_status(&out, &id);
	return vllm_csv_add_file(csv, "metadata.json", &out);
}

static int add_all(struct vllm_csv *csv, const struct export_options *options)
{
	int r = inference_init(&csv->inference, csv->model);

	r = r ?: experts_init(&csv->experts, csv->model);
	r = r ?: find_passes(csv);
	r = r ?: add_metadata(csv, options);
	r = r ?: vllm_csv_add_graphs(csv);
	r = r ?: vllm_csv_add_cache(csv);
	r = r ?: vllm_csv_add_experts(csv);
	r = r ?: vllm_csv_add_passes(csv);
	r = r ?: vllm_csv_add_operations(csv);
	r = r ?: vllm_csv_add_batches(csv);
	r = r ?: vllm_csv_add_requests(csv);
	return r ?: vllm_csv_add_encoders(csv);
}

static int vllm_csv_export(const struct model *model, const struct selection *selection _unused_,
	const struct export_options *options, struct export_files *files, struct errmsg *err)
{
	struct vllm_csv csv = {.model = model, .files = files};
	int r;

	if (!has(&csv, ""))
		return errmsg_set(err, -ENODATA,
			"the capture has no events of vLLM's hooks: record with --hooks vllm, and "
			"look at the table of hooks that sonde record prints");
	r = add_all(&csv, export_options_or_default(options));
	inference_done(&csv.inference);
	array_done(&csv.requests);
	intern_done(&csv.request_keys);
	experts_done(&csv.experts);
	array_done(&csv.passes);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while writing the tables");
	return 0;
}

const struct exporter vllm_csv_exporter = {
	.name = "vllm-csv",
	.description = "a folder of tables of what vLLM did",
	.extension = ".vllm",
	.shows = SELECTION_VLLM_TABLES,
	.export_files = vllm_csv_export,
};
