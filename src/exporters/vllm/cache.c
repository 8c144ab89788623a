/* SPDX-License-Identifier: Apache-2.0 */
/* The KV cache, and CUDA graphs. */
#include "exporters/vllm/csv.h"

#include <errno.h>
#include <string.h>

#include "analyses/program/range_fields.h"
#include "base/escape.h"
#include "base/macros.h"
#include "base/map.h"

/* ---- the KV cache ---- */

struct cache_totals {
	uint64_t blocks, allocated, freed, peak, evicted, lived, idled;
	double peak_share;
	uint64_t lifetime_ns, idle_ns;
};

static void add_use(struct strbuf *out, const struct vllm_csv *csv, const struct model_range *mark,
	struct cache_totals *totals)
{
	uint64_t used = range_u64_or_0(csv->model, mark, "used");
	uint64_t total = range_u64_or_0(csv->model, mark, "total");
	double share = total ? 100.0 * (double)used / (double)total : 0;

	vllm_csv_time(out, csv, mark->start_ns);
	strbuf_addf(
		out, ",%.9g,%llu,%llu", share, (unsigned long long)used, (unsigned long long)total);
	vllm_csv_end(out, csv, mark->process);
	totals->blocks = MAX(totals->blocks, total);
	totals->peak = MAX(totals->peak, used);
	totals->peak_share = MAX(totals->peak_share, share);
	totals->allocated += range_u64_or_0(csv->model, mark, "allocated");
	totals->freed += range_u64_or_0(csv->model, mark, "freed");
}

static void add_eviction(struct strbuf *out, const struct vllm_csv *csv,
	const struct model_range *mark, struct cache_totals *totals)
{
	uint64_t lifetime_ns, idle_ns;

	vllm_csv_time(out, csv, mark->start_ns);
	strbuf_add_char(out, ',');
	if (range_u64(csv->model, mark, "lifetime_ns", &lifetime_ns)) {
		vllm_csv_seconds(out, lifetime_ns);
		totals->lived++;
		totals->lifetime_ns += lifetime_ns;
	}
	strbuf_add_char(out, ',');
	if (range_u64(csv->model, mark, "idle_ns", &idle_ns)) {
		vllm_csv_seconds(out, idle_ns);
		totals->idled++;
		totals->idle_ns += idle_ns;
	}
	vllm_csv_end(out, csv, mark->process);
	totals->evicted++;
}

static void add_mean(struct strbuf *out, const char *label, uint64_t sum_ns, uint64_t count)
{
	strbuf_addf(out, "%s: ", label);
	if (count) {
		vllm_csv_seconds(out, sum_ns / count);
		strbuf_add(out, " s\n");
	} else {
		strbuf_add(out, "unknown\n");
	}
}

static void write_summary(struct strbuf *out, const struct cache_totals *totals)
{
	strbuf_addf(out, "Total blocks: %llu\n", (unsigned long long)totals->blocks);
	strbuf_addf(out, "Allocations: %llu\n", (unsigned long long)totals->allocated);
	strbuf_addf(out, "Deallocations: %llu\n", (unsigned long long)totals->freed);
	strbuf_addf(out, "Peak blocks: %llu\n", (unsigned long long)totals->peak);
	strbuf_addf(out, "Peak usage: %.2f %%\n", totals->peak_share);
	strbuf_addf(out, "Evictions: %llu\n", (unsigned long long)totals->evicted);
	add_mean(out, "Average lifetime", totals->lifetime_ns, totals->lived);
	add_mean(out, "Average idle", totals->idle_ns, totals->idled);
}

int vllm_csv_add_cache(struct vllm_csv *csv)
{
	_cleanup_strbuf_ struct strbuf use = {0}, evictions = {0}, summary = {0};
	struct cache_totals totals = {0};
	int r;

	strbuf_add(&use, "timestamp_sec,usage_pct,num_blocks,total_blocks,pid\r\n");
	strbuf_add(&evictions, "timestamp_sec,lifetime_sec,idle_sec,pid\r\n");
	array_foreach (&csv->model->ranges, mark) {
		if (mark->is_mark && vllm_csv_is(mark, "kv"))
			add_use(&use, csv, mark, &totals);
		else if (mark->is_mark && vllm_csv_is(mark, "kv.eviction"))
			add_eviction(&evictions, csv, mark, &totals);
	}
	write_summary(&summary, &totals);
	r = vllm_csv_add_file(csv, "kv_cache_usage.csv", &use);
	r = r ?: vllm_csv_add_file(csv, "kv_cache_evictions.csv", &evictions);
	return r ?: vllm_csv_add_file(csv, "kv_cache_summary.txt", &summary);
}

/* ---- CUDA graphs ---- */

/* All graphs of one batch descriptor, of one process. */
struct graph_row {
	const struct model_range *mark; /* that tells the descriptor */
	uint64_t pieces, capture_ns, memory_bytes, nodes, replays;
	bool capture_known, memory_known, nodes_known;
};

struct graphs {
	struct intern keys;
	ARRAY_OF(struct graph_row) rows;
};

static void add_flag(struct strbuf *out, const struct vllm_csv *csv, const struct model_range *mark,
	const char *name)
{
	uint64_t value;

	if (range_u64(csv->model, mark, name, &value))
		strbuf_add(out, value ? "True" : "False");
}

/* The descriptor, with a character between its parts. */
static void add_descriptor(struct strbuf *out, const struct vllm_csv *csv,
	const struct model_range *mark, char between)
{
	escape_csv(out, range_text(csv->model, mark, "mode"));
	strbuf_add_char(out, between);
	vllm_csv_field(out, csv, mark, "tokens");
	strbuf_add_char(out, between);
	vllm_csv_field(out, csv, mark, "requests");
	strbuf_add_char(out, between);
	add_flag(out, csv, mark, "uniform");
	strbuf_add_char(out, between);
	add_flag(out, csv, mark, "lora");
}

static int find_row(struct graphs *graphs, const struct vllm_csv *csv,
	const struct model_range *mark, struct graph_row **ret_row)
{
	_cleanup_strbuf_ struct strbuf key = {0};
	uint32_t id;
	int r;

	add_descriptor(&key, csv, mark, ',');
	strbuf_addf(&key, ",%u", mark->process);
	r = strbuf_status(&key);
	if (r < 0)
		return r;
	r = intern_add(&graphs->keys, strbuf_cstr(&key), key.length, &id);
	if (r > 0)
		r = array_append(&graphs->rows, (struct graph_row){.mark = mark});
	if (r < 0)
		return r;
	*ret_row = &graphs->rows.items[id];
	return 0;
}

/* Nodes that CUDA reported: those of captures that ended while the wrapper captured. */
static void add_nodes(struct graph_row *row, const struct vllm_csv *csv,
	const struct model_range *mark, uint64_t duration_ns)
{
	array_foreach (&csv->model->graph_calls, call) {
		if (call->process != mark->process || call->time_ns > mark->start_ns ||
			call->time_ns + duration_ns < mark->start_ns ||
			call->call.event != WIRE_GRAPH_CAPTURE_END)
			continue;
		row->nodes += call->call.nodes;
		row->nodes_known = true;
	}
}

static int add_capture(
	struct graphs *graphs, const struct vllm_csv *csv, const struct model_range *mark)
{
	struct graph_row *row;
	uint64_t value;
	int r = find_row(graphs, csv, mark, &row);

	if (r < 0)
		return r;
	row->pieces++;
	if (range_u64(csv->model, mark, "duration_ns", &value)) {
		row->capture_ns += value;
		row->capture_known = true;
		add_nodes(row, csv, mark, value);
	}
	if (range_u64(csv->model, mark, "memory_bytes", &value)) {
		row->memory_bytes += value;
		row->memory_known = true;
	}
	return 0;
}

static int add_replay(struct graphs *graphs, const struct vllm_csv *csv,
	const struct model_range *mark, struct strbuf *timeline)
{
	const struct vllm_pass *pass = vllm_csv_pass_at(csv, mark->thread, mark->start_ns);
	struct graph_row *row;
	int r = find_row(graphs, csv, mark, &row);

	if (r < 0)
		return r;
	row->replays++;
	vllm_csv_time(timeline, csv, mark->start_ns);
	strbuf_add_char(timeline, ',');
	add_descriptor(timeline, csv, mark, '/');
	strbuf_add_char(timeline, ',');
	if (pass)
		vllm_csv_number(timeline, (double)vllm_pass_time_ns(pass) * 1e-6);
	vllm_csv_end(timeline, csv, mark->process);
	return 0;
}

static void add_known(struct strbuf *out, bool known, uint64_t value)
{
	strbuf_add_char(out, ',');
	if (known)
		strbuf_addf(out, "%llu", (unsigned long long)value);
}

static void add_captured(
	struct strbuf *out, const struct vllm_csv *csv, const struct graph_row *row)
{
	add_descriptor(out, csv, row->mark, ',');
	strbuf_add_char(out, ',');
	if (row->capture_known)
		vllm_csv_seconds(out, row->capture_ns);
	add_known(out, true, row->pieces);
	add_known(out, row->nodes_known, row->nodes);
	add_known(out, row->memory_known, row->memory_bytes);
	vllm_csv_end(out, csv, row->mark->process);
}

int vllm_csv_add_graphs(struct vllm_csv *csv)
{
	_cleanup_strbuf_ struct strbuf captures = {0}, use = {0}, timeline = {0};
	struct graphs graphs = {0};
	int r = 0;

	strbuf_add(&captures, "runtime_mode,num_tokens,num_reqs,uniform,has_lora,capture_time_sec,"
			      "pieces,nodes,memory_bytes,pid\r\n");
	strbuf_add(&use, "runtime_mode,num_tokens,num_reqs,uniform,has_lora,replay_count,pid\r\n");
	strbuf_add(&timeline, "timestamp_sec,descriptor,duration_ms,pid\r\n");
	array_foreach (&csv->model->ranges, mark) {
		if (mark->is_mark && vllm_csv_is(mark, "graph.capture"))
			r = r ?: add_capture(&graphs, csv, mark);
		else if (mark->is_mark && vllm_csv_is(mark, "graph.replay"))
			r = r ?: add_replay(&graphs, csv, mark, &timeline);
	}
	array_foreach (&graphs.rows, row) {
		if (row->pieces)
			add_captured(&captures, csv, row);
		if (!row->replays)
			continue;
		add_descriptor(&use, csv, row->mark, ',');
		add_known(&use, true, row->replays);
		vllm_csv_end(&use, csv, row->mark->process);
	}
	intern_done(&graphs.keys);
	array_done(&graphs.rows);
	r = r ?: vllm_csv_add_file(csv, "cuda_graph_captures.csv", &captures);
	r = r ?: vllm_csv_add_file(csv, "cuda_graph_usage.csv", &use);
	return r ?: vllm_csv_add_file(csv, "cuda_graph_timeline.csv", &timeline);
}
