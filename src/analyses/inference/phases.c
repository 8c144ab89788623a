/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/inference/phases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/program/range_fields.h"

static const char *const names[INFERENCE_PHASE_MAX] = {
	[INFERENCE_PHASE_PRE] = "pre_inference",
	[INFERENCE_PHASE_PREFILL] = "prefill",
	[INFERENCE_PHASE_MIXED] = "mixed",
	[INFERENCE_PHASE_DECODE] = "decode",
	[INFERENCE_PHASE_POST] = "post_inference",
};

const char *inference_phase_name(enum inference_phase phase)
{
	return names[phase];
}

struct work {
	const struct model *model;
	struct phase_use *use;
	bool *has_ranges, *has_forwards; /* of each process */
};

static enum inference_phase phase_from_string(const char *name)
{
	for (int i = 0; i < INFERENCE_PHASE_MAX; i++) {
		if (strcmp(names[i], name) == 0)
			return (enum inference_phase)i;
	}
	return INFERENCE_PHASE_MAX;
}

static bool is_forward(const struct model_range *range)
{
	return range_is(range, "vllm", "forward");
}

/* INFERENCE_PHASE_MAX: it is none. */
static enum inference_phase phase_of(const struct model *model, const struct model_range *range)
{
	if (range->is_mark)
		return INFERENCE_PHASE_MAX;
	if (is_forward(range))
		return phase_from_string(range_text(model, range, "phase"));
	if (strcmp(range->domain, "transformers") != 0 && strcmp(range->domain, "sonde") != 0)
		return INFERENCE_PHASE_MAX;
	return phase_from_string(range->name);
}

/* vLLM says what a pass computed; of others it is known of the requests. */
static void add_forward_tokens(
	struct work *work, const struct model_range *range, enum inference_phase phase)
{
	struct phase_row *row = &work->use->rows[phase];
	const char *field = phase == INFERENCE_PHASE_PREFILL  ? "prefill_tokens"
			    : phase == INFERENCE_PHASE_DECODE ? "decode_tokens"
							      : "tokens";
	uint64_t tokens;

	if (!is_forward(range) || !range_u64(work->model, range, field, &tokens))
		return;
	row->tokens += tokens;
	row->tokens_known = true;
}

static int add_ranges(struct work *work)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < work->model->ranges.count; i++) {
		const struct model_range *range = &work->model->ranges.items[i];
		enum inference_phase phase = phase_of(work->model, range);

		if (phase == INFERENCE_PHASE_MAX)
			continue;
		work->has_ranges[range->process] = true;
		work->has_forwards[range->process] |= is_forward(range);
		add_forward_tokens(work, range, phase);
		r = span_set_add(&work->use->spans, range->start_ns, range->end_ns, range->process,
			range->thread, phase);
	}
	return r;
}

static int add_request(struct work *work, const struct inference_request *request)
{
	uint64_t begin_ns = request->prefill_ns ? request->prefill_ns : request->arrival_ns;
	struct span_set *spans = &work->use->spans;
	int r = 0;

	if (begin_ns && request->first_ns > begin_ns)
		r = span_set_add(spans, begin_ns, request->first_ns, request->process, MODEL_NONE,
			INFERENCE_PHASE_PREFILL);
	if (r == 0 && request->first_ns && request->last_ns > request->first_ns)
		r = span_set_add(spans, request->first_ns, request->last_ns, request->process,
			MODEL_NONE, INFERENCE_PHASE_DECODE);
	return r;
}

static int add_requests(struct work *work, const struct inference *inference)
{
	struct phase_row *prefill = &work->use->rows[INFERENCE_PHASE_PREFILL];
	struct phase_row *decode = &work->use->rows[INFERENCE_PHASE_DECODE];
	int r = 0;

	for (size_t i = 0; r == 0 && i < inference->requests.count; i++) {
		const struct inference_request *request = &inference->requests.items[i];

		if (!work->has_ranges[request->process])
			r = add_request(work, request);
		if (work->has_forwards[request->process])
			continue;
		if (request->prompt_known && request->first_ns) {
			prefill->tokens += request->prompt_tokens - request->cached_tokens;
			prefill->tokens_known = true;
		}
		if (*request->id && request->tokens_known) {
			decode->tokens += request->output_tokens;
			decode->tokens_known = true;
		}
	}
	return r;
}

static int sum_up(struct work *work, const struct selected *selected)
{
	struct phase_use *use = work->use;
	struct span_cost costs[INFERENCE_PHASE_MAX] = {0};
	uint64_t total_ns = 0, covered_ns = span_set_covered_ns(&use->spans, MODEL_NONE);
	int r = covered_ns == UINT64_MAX ? -ENOMEM : 0;

	r = r ?: span_costs(&use->spans, work->model, selected, costs);
	if (r < 0)
		return r;

	for (size_t i = 0; i < use->spans.spans.count; i++) {
		const struct range_span *span = &use->spans.spans.items[i];
		struct phase_row *row = &use->rows[use->spans.rows.items[i]];

		row->count++;
		row->total_ns += span->end_ns - span->start_ns;
		total_ns += span->end_ns - span->start_ns;
	}
	for (uint32_t i = 0; i < INFERENCE_PHASE_MAX; i++) {
		use->rows[i].cost = costs[i];
		use->rows[i].covered_ns = span_set_covered_ns(&use->spans, i);
		if (use->rows[i].covered_ns == UINT64_MAX)
			return -ENOMEM;
	}
	use->has_any = use->spans.spans.count > 0;
	use->overlaps = total_ns > covered_ns;
	return 0;
}

int phase_use_init(struct phase_use *use, const struct model *model,
	const struct selected *selected, const struct inference *inference)
{
	_cleanup_free_ bool *has_ranges = calloc(model->processes.count + 1, sizeof(bool));
	_cleanup_free_ bool *has_forwards = calloc(model->processes.count + 1, sizeof(bool));
	struct work work = {model, use, has_ranges, has_forwards};
	int r;

	*use = (struct phase_use){0};
	if (!has_ranges || !has_forwards)
		return -ENOMEM;
	r = add_ranges(&work);
	r = r ?: add_requests(&work, inference);
	r = r ?: sum_up(&work, selected);
	if (r < 0)
		phase_use_done(use);
	return r;
}

void phase_use_done(struct phase_use *use)
{
	span_set_done(&use->spans);
}
