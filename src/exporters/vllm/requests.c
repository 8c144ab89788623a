/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: what became of each, and pre-emption. */
#include "exporters/vllm/csv.h"

#include <string.h>

#include "analyses/program/range_fields.h"
#include "base/escape.h"
#include "base/macros.h"
#include "base/map.h"

/* The id, or the number where the capture began after the id was known. */
static void add_id(struct strbuf *out, const struct inference_request *request)
{
	if (request->is_named)
		escape_csv(out, request->id);
	else
		strbuf_addf(out, "%llu", (unsigned long long)request->number);
}

/* ---- events ---- */

static const struct {
	const char *mark, *event;
} events[] = {
	{"request.scheduled", "started"},
	{"request.preempted", "preempted"},
	{"request.resumed", "resumed"},
	{"request.finished", "finished"},
};

struct request_key {
	uint64_t process, number;
};

static int find_requests(struct vllm_csv *csv)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < csv->inference.requests.count; i++) {
		const struct inference_request *request = &csv->inference.requests.items[i];
		const struct request_key key = {
			.process = request->process, .number = request->number};
		uint32_t id;

		if (!request->of_engine)
			continue;
		r = intern_add(&csv->request_keys, &key, sizeof(key), &id);
		if (r > 0)
			r = array_append(&csv->requests, request);
	}
	return MIN(r, 0);
}

static const struct inference_request *find_request(
	const struct vllm_csv *csv, const struct model_range *mark)
{
	struct request_key key = {.process = mark->process};
	uint32_t id;

	if (!range_u64(csv->model, mark, "request", &key.number) ||
		!intern_find(&csv->request_keys, &key, sizeof(key), &id))
		return NULL;
	return csv->requests.items[id];
}

static const char *event_of(const struct model_range *mark)
{
	for (size_t i = 0; mark->is_mark && i < ARRAY_SIZE(events); i++) {
		if (vllm_csv_is(mark, events[i].mark))
			return events[i].event;
	}
	return NULL;
}

static void add_event(struct strbuf *out, const struct vllm_csv *csv,
	const struct model_range *mark, const char *event, const struct inference_request *request)
{
	const struct model *model = csv->model;
	uint64_t value;

	vllm_csv_time(out, csv, mark->start_ns);
	strbuf_add_char(out, ',');
	add_id(out, request);
	strbuf_addf(out, ",%s,", event);
	escape_csv(out, range_text(model, mark, "reason"));
	strbuf_add_char(out, ',');
	if (request->prefill_ns && request->prefill_ns <= mark->start_ns)
		vllm_csv_seconds(out, mark->start_ns - request->prefill_ns);
	strbuf_add_char(out, ',');
	if (range_u64(model, mark, "computed_tokens", &value))
		strbuf_addf(out, "computed_tokens=%llu", (unsigned long long)value);
	else if (range_u64(model, mark, "output_tokens", &value))
		strbuf_addf(out, "output_tokens=%llu", (unsigned long long)value);
	vllm_csv_end(out, csv, mark->process);
}

static int add_events(struct vllm_csv *csv)
{
	_cleanup_strbuf_ struct strbuf out = {0};

	strbuf_add(
		&out, "timestamp_sec,request_id,event,reason,running_time_sec,extra_info,pid\r\n");
	array_foreach (&csv->model->ranges, mark) {
		const char *event = event_of(mark);
		const struct inference_request *request = event ? find_request(csv, mark) : NULL;

		if (request)
			add_event(&out, csv, mark, event, request);
	}
	return vllm_csv_add_file(csv, "preemption_events.csv", &out);
}

/* ---- the life of each ---- */

static void add_life(
	struct strbuf *out, const struct vllm_csv *csv, const struct inference_request *request)
{
	add_id(out, request);
	strbuf_add_char(out, ',');
	vllm_csv_time(out, csv, request->prefill_ns);
	strbuf_add_char(out, ',');
	vllm_csv_time(out, csv, request->first_preempted_ns);
	strbuf_add_char(out, ',');
	vllm_csv_time(out, csv, request->last_resumed_ns);
	strbuf_add_char(out, ',');
	vllm_csv_time(out, csv, request->finished_ns);
	strbuf_add_char(out, ',');
	if (request->arrival_ns && request->finished_ns)
		vllm_csv_seconds(out, request->finished_ns - request->arrival_ns);
	strbuf_add_char(out, ',');
	if (request->preemptions && !request->preempted_at_ns)
		vllm_csv_seconds(out, request->preempted_ns);
	vllm_csv_end(out, csv, request->process);
}

/* ---- pre-emption in sum ---- */

struct preemption_totals {
	ARRAY_OF(uint64_t) reasons; /* by id of reason_names */
	struct intern reason_names;
	uint64_t preemptions, running_ns, running, delay_ns, delays, longest_ns;
};

static int add_preemption(struct preemption_totals *totals, const struct vllm_csv *csv,
	const struct model_range *mark, const struct inference_request *request)
{
	const char *reason = range_text(csv->model, mark, "reason");
	uint32_t id;
	int r = intern_add(&totals->reason_names, reason, strlen(reason), &id);

	if (r > 0)
		r = array_append(&totals->reasons, 0);
	if (r < 0)
		return r;
	totals->reasons.items[id]++;
	if (request->prefill_ns && request->prefill_ns <= mark->start_ns) {
		totals->running_ns += mark->start_ns - request->prefill_ns;
		totals->running++;
	}
	return 0;
}

static int sum_preemptions(struct preemption_totals *totals, const struct vllm_csv *csv)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < csv->model->ranges.count; i++) {
		const struct model_range *mark = &csv->model->ranges.items[i];
		bool is_one = mark->is_mark && vllm_csv_is(mark, "request.preempted");
		const struct inference_request *request = is_one ? find_request(csv, mark) : NULL;

		if (request)
			r = add_preemption(totals, csv, mark, request);
	}
	array_foreach (&csv->requests, each) {
		const struct inference_request *request = *each;

		totals->preemptions += request->preemptions;
		if (!request->preemptions || !request->last_resumed_ns)
			continue;
		totals->delays++;
		totals->delay_ns += request->preempted_ns;
		totals->longest_ns = MAX(totals->longest_ns, request->preempted_ns);
	}
	return r;
}

static void write_seconds(
	struct json_writer *json, const char *key, uint64_t sum_ns, uint64_t count)
{
	json_key(json, key);
	if (count)
		json_double(json, (double)sum_ns / (double)count / (double)NS_PER_S, 9);
	else
		json_null(json);
}

static void write_totals(
	struct json_writer *json, const struct preemption_totals *totals, size_t request_count)
{
	json_begin_object(json);
	json_member_u64(json, "total_preemptions", totals->preemptions);
	json_member_u64(json, "total_requests", request_count);
	json_key(json, "preemption_reasons");
	json_begin_object(json);
	for (uint32_t i = 0; i < totals->reasons.count; i++)
		json_member_u64(
			json, intern_get(&totals->reason_names, i), totals->reasons.items[i]);
	json_end_object(json);
	write_seconds(
		json, "mean_running_time_before_preempt", totals->running_ns, totals->running);
	write_seconds(json, "mean_resume_delay", totals->delay_ns, totals->delays);
	write_seconds(json, "max_resume_delay", totals->longest_ns, totals->delays ? 1 : 0);
	json_end_object(json);
}

static int add_summary(struct vllm_csv *csv)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_writer json = {.out = &out, .pretty = true};
	struct preemption_totals totals = {0};
	int r = sum_preemptions(&totals, csv);

	write_totals(&json, &totals, csv->requests.count);
	strbuf_add_char(&out, '\n');
	intern_done(&totals.reason_names);
	array_done(&totals.reasons);
	return r ?: vllm_csv_add_file(csv, "preemption_summary.json", &out);
}

int vllm_csv_add_requests(struct vllm_csv *csv)
{
	_cleanup_strbuf_ struct strbuf lives = {0};
	int r = find_requests(csv);

	strbuf_add(&lives, "request_id,started_sec,preempted_sec,resumed_sec,finished_sec,"
			   "total_time_sec,preemption_delay_sec,pid\r\n");
	array_foreach (&csv->requests, request)
		add_life(&lives, csv, *request);
	r = r ?: add_events(csv);
	r = r ?: vllm_csv_add_file(csv, "request_lifecycle.csv", &lives);
	return r ?: add_summary(csv);
}
