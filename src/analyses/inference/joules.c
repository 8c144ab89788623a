/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/inference/joules.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct spans {
	ARRAY_OF(struct energy_span) items;
};

static struct joules unknown(const char *reason)
{
	return (struct joules){
		.net_j = NAN,
		.full_j = NAN,
		.uncertainty_j = NAN,
		.average_w = NAN,
		.peak_w = NAN,
		.reason = reason,
		.sides = {{.state = SPAN_STATE_UNKNOWN("not_read")},
			{.state = SPAN_STATE_UNKNOWN("not_read")}},
	};
}

/* Peaks of two sides need not be at one time: their sum is the most that it can have been. */
static void add_side(struct joules *joules, const struct span_energy_part *side)
{
	if (!span_energy_is_known(side->kind)) {
		joules->reason = span_energy_kind_name(side->kind);
		return;
	}
	joules->is_aggregated |= side->kind == SPAN_ENERGY_AGGREGATED;
	joules->net_j += side->net_j;
	joules->full_j += side->full_j;
	joules->uncertainty_j = sqrt(joules->uncertainty_j * joules->uncertainty_j +
				     side->uncertainty_j * side->uncertainty_j);
	joules->average_w += side->average_w;
	joules->peak_w += side->peak_w;
}

struct joules joules_of_spans(
	const struct span_energy *energy, const struct energy_span *spans, size_t count)
{
	struct joules joules = {0};
	struct span_energy_answer answer;
	size_t sides = 0;

	if (!energy || !count)
		return unknown(span_energy_kind_name(SPAN_ENERGY_NO_SOURCE));
	span_energy_ask(energy, spans, count, &answer);
	for (size_t i = 0; i < SPAN_ENERGY_SIDES; i++) {
		if (answer.sides[i].kind == SPAN_ENERGY_NO_SOURCE)
			continue;
		add_side(&joules, &answer.sides[i]);
		sides++;
	}
	if (!sides)
		joules.reason = span_energy_kind_name(SPAN_ENERGY_NO_SOURCE);
	if (joules.reason)
		joules = unknown(joules.reason);
	for (size_t i = 0; i < SPAN_ENERGY_SIDES; i++)
		joules.sides[i] = answer.sides[i];
	return joules;
}

/* Spans by group, and in a group by process and time. */
struct grouped_span {
	struct energy_span span;
	uint32_t group;
};

struct grouped_spans {
	ARRAY_OF(struct grouped_span) items;
};

static int gather(struct grouped_spans *spans, const struct span_set *set, const uint32_t *groups)
{
	int r = array_reserve(&spans->items, set->spans.count);

	for (size_t i = 0; r == 0 && i < set->spans.count; i++) {
		const struct range_span *span = &set->spans.items[i];
		uint32_t row = set->rows.items[i];

		r = array_append(&spans->items, (struct grouped_span){
							.span = {.start_ns = span->start_ns,
								.end_ns = span->end_ns,
								.process = span->process,
								.thread = MODEL_NONE},
							.group = groups ? groups[row] : row,
						});
	}
	return r;
}

static int compare_spans(const void *left, const void *right)
{
	const struct grouped_span *a = left, *b = right;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->span.process != b->span.process)
		return a->span.process < b->span.process ? -1 : 1;
	return a->span.start_ns < b->span.start_ns ? -1 : a->span.start_ns > b->span.start_ns;
}

/* What a process took while several spans of a group lasted it took once. */
static int add_merged(struct spans *merged, const struct energy_span *span)
{
	size_t count = merged->items.count;
	struct energy_span *last = count ? &merged->items.items[count - 1] : NULL;

	if (!last || last->process != span->process || span->start_ns >= last->end_ns)
		return array_append(&merged->items, *span);
	last->end_ns = MAX(last->end_ns, span->end_ns);
	return 0;
}

int joules_of_rows(const struct span_energy *energy, const struct span_set *set,
	const uint32_t *groups, size_t count, struct joules *ret_joules)
{
	struct grouped_spans spans = {0};
	struct spans merged = {0};
	size_t next = 0;
	int r = energy ? gather(&spans, set, groups) : 0;

	if (r == 0 && spans.items.count)
		qsort(spans.items.items, spans.items.count, sizeof(*spans.items.items),
			compare_spans);
	for (size_t group = 0; r == 0 && group < count; group++) {
		array_clear(&merged.items);
		while (r == 0 && next < spans.items.count && spans.items.items[next].group == group)
			r = add_merged(&merged, &spans.items.items[next++].span);
		if (r == 0)
			ret_joules[group] =
				joules_of_spans(energy, merged.items.items, merged.items.count);
	}
	array_done(&spans.items);
	array_done(&merged.items);
	return r;
}

/* ---- of inference ---- */

static uint64_t end_of(const struct inference_request *request)
{
	return request->last_ns ? request->last_ns : request->first_ns;
}

static bool is_whole(const struct inference_request *request)
{
	uint64_t begin_ns = inference_begin_ns(request);

	return begin_ns && end_of(request) > begin_ns;
}

/* From the first begin of each process's requests to its last token. */
static int add_all(struct spans *spans, const struct inference *inference)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < inference->requests.count; i++) {
		const struct inference_request *request = &inference->requests.items[i];
		struct energy_span span = {
			.start_ns = inference_begin_ns(request),
			.end_ns = end_of(request),
			.process = request->process,
			.thread = MODEL_NONE,
		};
		bool found = false;

		if (!is_whole(request))
			continue;
		array_foreach (&spans->items, known) {
			if (known->process != span.process)
				continue;
			known->start_ns = MIN(known->start_ns, span.start_ns);
			known->end_ns = MAX(known->end_ns, span.end_ns);
			found = true;
		}
		if (!found)
			r = array_append(&spans->items, span);
	}
	return r;
}

static bool overlap(const struct inference *inference)
{
	for (size_t i = 0; i < inference->requests.count; i++) {
		const struct inference_request *one = &inference->requests.items[i];

		for (size_t j = i + 1; is_whole(one) && j < inference->requests.count; j++) {
			const struct inference_request *other = &inference->requests.items[j];

			/* They lie in the order of their begins. */
			if (inference_begin_ns(other) >= end_of(one))
				break;
			if (other->process == one->process && is_whole(other))
				return true;
		}
	}
	return false;
}

/* How much of the work was for a request: the time of its prefill, and that of a token, as the
 * median of all has it, for each of its own. */
static double work_of(const struct inference *inference, const struct inference_request *request)
{
	double per_token_ns = inference->metrics[INFERENCE_TPOT].p50;
	uint64_t prefill_ns = 0;

	if (!is_whole(request))
		return 0;
	inference_duration(request, INFERENCE_PREFILL, &prefill_ns);
	return (double)prefill_ns +
	       (isnan(per_token_ns) ? 0 : per_token_ns * (double)request->output_tokens);
}

static struct joules share_of(const struct joules *all, double share)
{
	struct joules one = unknown(all->reason);

	if (one.reason)
		return one;
	one.net_j = all->net_j * share;
	one.full_j = all->full_j * share;
	one.uncertainty_j = all->uncertainty_j * share;
	one.is_allocated = true;
	return one;
}

static struct joules measure(
	const struct span_energy *energy, const struct inference_request *request)
{
	const struct energy_span span = {
		.start_ns = inference_begin_ns(request),
		.end_ns = end_of(request),
		.process = request->process,
		.thread = MODEL_NONE,
	};

	return joules_of_spans(energy, &span, 1);
}

static int add_requests(struct inference_joules *joules, const struct span_energy *energy,
	const struct inference *inference)
{
	bool is_batch = overlap(inference);
	double work = 0;
	int r = 0;

	array_foreach (&inference->requests, request)
		work += work_of(inference, request);
	for (size_t i = 0; r == 0 && i < inference->requests.count; i++) {
		const struct inference_request *request = &inference->requests.items[i];
		struct joules one;

		if (energy && !is_whole(request))
			one = unknown("begin_or_end_not_seen");
		else if (energy && is_batch && work > 0)
			one = share_of(&joules->all, work_of(inference, request) / work);
		else
			one = measure(energy, request);
		r = array_append(&joules->requests, one);
	}
	return r;
}

/* Per nothing is not known, rather than infinite. */
static double per(double joules, double count)
{
	return count > 0 ? joules / count : NAN;
}

static void fill_ratios(struct inference_joules *joules, const struct inference *inference,
	const struct phase_use *phases)
{
	const struct phase_row *prefill = &phases->rows[INFERENCE_PHASE_PREFILL];
	double tokens = 0;

	array_foreach (&inference->requests, request)
		tokens += is_whole(request) ? (double)request->output_tokens : 0;
	joules->per_output_token_j = per(joules->all.full_j, tokens);
	joules->decode_per_output_token_j = per(joules->phases[INFERENCE_PHASE_DECODE].full_j,
		(double)phases->rows[INFERENCE_PHASE_DECODE].tokens);
	joules->prefill_per_prompt_token_j = per(joules->phases[INFERENCE_PHASE_PREFILL].full_j,
		prefill->tokens_known ? (double)prefill->tokens : 0);
	joules->tokens_per_j = joules->all.full_j > 0 ? tokens / joules->all.full_j : NAN;
	joules->edp_per_token_js =
		joules->per_output_token_j * inference->metrics[INFERENCE_TPOT].p50 / NS_PER_S;
	joules->edp_js = joules->all.full_j *
			 (inference->span_ns ? (double)inference->span_ns / NS_PER_S : NAN);
	for (int i = 0; i < INFERENCE_PHASE_MAX; i++)
		joules->phase_edp_js[i] =
			joules->phases[i].full_j * (double)phases->rows[i].covered_ns / NS_PER_S;
}

int inference_joules_init(struct inference_joules *joules, const struct span_energy *energy,
	const struct inference *inference, const struct phase_use *phases)
{
	struct spans spans = {0};
	int r = add_all(&spans, inference);

	*joules = (struct inference_joules){0};
	if (r == 0)
		joules->all = joules_of_spans(energy, spans.items.items, spans.items.count);
	array_done(&spans.items);
	r = r ?: joules_of_rows(energy, &phases->spans, NULL, INFERENCE_PHASE_MAX, joules->phases);
	r = r ?: add_requests(joules, energy, inference);
	if (r < 0) {
		inference_joules_done(joules);
		return r;
	}
	fill_ratios(joules, inference, phases);
	return 0;
}

void inference_joules_done(struct inference_joules *joules)
{
	array_done(&joules->requests);
}
