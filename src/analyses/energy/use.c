/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/energy/use.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/energy/internal.h"
#include "analyses/energy/uncertainty.h"
#include "base/macros.h"

#define CONSERVED 1e-9 /* relative, of each interval */
/* The rests of this time are one, as far as they fit. */
#define REST_NS (100 * NS_PER_MS)
#define REST_J  1000.0

const char *energy_method_name(enum energy_method method)
{
	static const char *const names[ENERGY_METHOD_MAX] = {
		[ENERGY_METHOD_NONE] = "none",
		[ENERGY_METHOD_CPU_TIME] = "cpu_time",
		[ENERGY_METHOD_COUNTERS] = "counters",
		[ENERGY_METHOD_TIME_SHARE] = "time_share",
		[ENERGY_METHOD_REGRESSION] = "regression",
	};

	return names[method];
}

static const char *energy_rest_name(enum energy_rest_kind kind)
{
	static const char *const names[ENERGY_REST_MAX] = {
		[ENERGY_REST_IDLE] = "[idle]",
		[ENERGY_REST_GAP] = "[gap between kernels]",
		[ENERGY_REST_UNATTRIBUTED] = "[unattributed]",
	};

	return names[kind];
}

/* ---- which domains are added up ---- */

static bool is_measured(const struct model *model, uint32_t domain)
{
	const struct model_energy_interval *interval = energy_intervals_of(model, domain);

	if (model->energy_domains.items[domain].quality == WIRE_ENERGY_ESTIMATED)
		return false;
	for (uint32_t i = 0; i < model->energy_domains.items[domain].interval_count; i++) {
		if (!interval[i].gap)
			return true;
	}
	return false;
}

/* The same rail, as two sources read it. */
static bool is_same_rail(const struct model_energy_domain *a, const struct model_energy_domain *b)
{
	return a->host == b->host && a->part == b->part &&
	       (*a->device && *b->device ? strcmp(a->device, b->device) == 0 : a->name == b->name);
}

/* A better reading of the same rail; MODEL_NONE: this is the best, or the first of the best. */
static uint32_t find_better(const struct model *model, const bool *measured, uint32_t domain)
{
	const struct model_energy_domain *own = &model->energy_domains.items[domain];

	for (uint32_t i = 0; i < model->energy_domains.count; i++) {
		const struct model_energy_domain *other = &model->energy_domains.items[i];

		if (i != domain && measured[i] && is_same_rail(own, other) &&
			(other->quality < own->quality ||
				(other->quality == own->quality && i < domain)))
			return i;
	}
	return MODEL_NONE;
}

/* Does a rail that is finer than the machine say something of this host? */
static bool has_parts(const struct model *model, const bool *measured, const char *host)
{
	for (uint32_t i = 0; i < model->energy_domains.count; i++) {
		const struct model_energy_domain *domain = &model->energy_domains.items[i];

		if (measured[i] && domain->host == host &&
			(domain->part == WIRE_ENERGY_CPU || domain->part == WIRE_ENERGY_GPU))
			return true;
	}
	return false;
}

/* The nearest measured rail that this one is a part of, but for a machine's; MODEL_NONE: none. */
static uint32_t find_container(const struct model *model, const bool *measured, uint32_t domain)
{
	uint32_t parent = model->energy_domains.items[domain].parent;

	/* Files may say that they go round in a circle. */
	for (size_t steps = 0; parent != MODEL_NONE && steps < model->energy_domains.count;
		steps++) {
		const struct model_energy_domain *found = &model->energy_domains.items[parent];

		if (measured[parent] && (found->part != WIRE_ENERGY_PLATFORM ||
						!has_parts(model, measured, found->host)))
			return parent;
		parent = found->parent;
	}
	return MODEL_NONE;
}

/* Why this domain is not added up; NULL: it is. `ret_other`: the domain that the reason names. */
static const char *why_not_counted(
	const struct model *model, const bool *measured, uint32_t domain, uint32_t *ret_other)
{
	const struct model_energy_domain *own = &model->energy_domains.items[domain];

	*ret_other = MODEL_NONE;
	if (own->quality == WIRE_ENERGY_ESTIMATED)
		return "an estimate";
	if (!measured[domain])
		return "nothing was measured";
	*ret_other = find_container(model, measured, domain);
	if (*ret_other != MODEL_NONE)
		return "a part of ";
	*ret_other = find_better(model, measured, domain);
	if (*ret_other != MODEL_NONE)
		return "another reading of ";
	if (own->part == WIRE_ENERGY_PLATFORM && has_parts(model, measured, own->host))
		return "it contains the others";
	return NULL;
}

static int choose_counted(struct energy_use *use, struct model *model)
{
	_cleanup_free_ bool *measured = calloc(model->energy_domains.count + 1, sizeof(*measured));
	int r = measured ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < model->energy_domains.count; i++)
		measured[i] = is_measured(model, i);
	for (uint32_t i = 0; r == 0 && i < model->energy_domains.count; i++) {
		struct energy_domain_use *domain = &use->domains.items[i];
		_cleanup_strbuf_ struct strbuf text = {0};
		uint32_t other, id;
		const char *why = why_not_counted(model, measured, i, &other);

		domain->is_counted = !why;
		if (!why)
			continue;
		strbuf_add(&text, why);
		if (other != MODEL_NONE)
			strbuf_add(&text, model->energy_domains.items[other].name);
		r = strbuf_status(&text);
		if (r == 0)
			r = MIN(intern_add(&model->strings, text.data, text.length, &id), 0);
		if (r == 0)
			domain->why_not = intern_get(&model->strings, id);
	}
	return r;
}

/* ---- the account ---- */

double energy_idle_share(
	const struct model_energy_domain *domain, const struct model_energy_interval *interval)
{
	double seconds = (double)(interval->end_ns - interval->start_ns) / 1e9;

	return isnan(domain->idle_w) ? 0 : MIN(domain->idle_w * seconds, interval->energy_j);
}

/* Adds to the last rest of the kind, or begins another one. */
static int add_rest(struct energy_use *use, size_t *last, uint32_t domain,
	const struct model_energy_interval *interval, enum energy_rest_kind kind, double energy_j)
{
	const struct model_energy_rest rest = {
		.time_ns = interval->start_ns,
		.duration_ns = interval->end_ns - interval->start_ns,
		.domain = domain,
		.error = use->domains.items[domain].rest_errors[kind],
		.leaf = energy_rest_name(kind),
		.energy_j = energy_j,
	};

	if (energy_j <= 0)
		return 0;
	if (*last < use->rests.count) {
		struct model_energy_rest *known = &use->rests.items[*last];

		if (known->domain == domain && known->energy_j + energy_j < REST_J &&
			interval->start_ns - known->time_ns < REST_NS) {
			known->energy_j += energy_j;
			known->duration_ns += rest.duration_ns;
			return 0;
		}
	}
	*last = use->rests.count;
	return array_append(&use->rests, rest);
}

int energy_add_split(struct energy_use *use, const struct model *model, uint32_t index,
	const struct energy_split *split)
{
	const struct model_energy_interval *interval = &model->energy_intervals.items[index];
	struct energy_domain_use *domain = &use->domains.items[interval->domain];
	double sum = split->idle_j + split->attributed_j + split->gaps_j + split->unattributed_j;
	double residual = interval->energy_j > 0
				  ? fabs(sum - interval->energy_j) / interval->energy_j
				  : fabs(sum);
	int r = 0;

	assert(residual <= CONSERVED);
	domain->residual = MAX(domain->residual, residual);
	domain->idle_j += split->idle_j;
	domain->attributed_j += split->attributed_j;
	domain->gaps_j += split->gaps_j;
	domain->unattributed_j += split->unattributed_j;
	r = add_rest(use, &use->last_rest[ENERGY_REST_IDLE], interval->domain, interval,
		ENERGY_REST_IDLE, split->idle_j);
	if (r == 0)
		r = add_rest(use, &use->last_rest[ENERGY_REST_GAP], interval->domain, interval,
			ENERGY_REST_GAP, split->gaps_j);
	if (r == 0)
		r = add_rest(use, &use->last_rest[ENERGY_REST_UNATTRIBUTED], interval->domain,
			interval, ENERGY_REST_UNATTRIBUTED, split->unattributed_j);
	return r;
}

/* Of rails that nothing is known to share: all but the idle share is not attributed. */
static int leave_unattributed(struct energy_use *use, struct model *model, uint32_t index)
{
	const struct model_energy_domain *domain = &model->energy_domains.items[index];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < domain->interval_count; i++) {
		uint32_t at = domain->first_interval + i;
		const struct model_energy_interval *interval = &model->energy_intervals.items[at];
		struct energy_split split = {.idle_j = energy_idle_share(domain, interval)};

		split.unattributed_j = interval->energy_j - split.idle_j;
		if (!interval->gap)
			r = energy_add_split(use, model, at, &split);
	}
	return r;
}

int energy_add_error(struct model *model, const struct model_energy_error *error)
{
	size_t index = model->energy_errors.count;

	if (index > UINT16_MAX)
		return 0;
	return array_append(&model->energy_errors, *error) ?: (int)index;
}

static int charge(struct energy_use *use, struct model *model, uint32_t index)
{
	const struct model_energy_error measured = {
		.sensor = model->energy_domains.items[index].relative_error,
		.split = MODEL_ENERGY_MEASURED,
	};
	int error;

	if (!use->domains.items[index].is_counted)
		return 0;
	error = energy_add_error(model, &measured);
	if (error < 0)
		return error;
	for (unsigned i = 0; i < ENERGY_REST_MAX; i++)
		use->domains.items[index].rest_errors[i] = (uint16_t)error;
	switch (model->energy_domains.items[index].part) {
	case WIRE_ENERGY_CPU:
	case WIRE_ENERGY_CORES:
		return energy_charge_samples(use, model, index);
	case WIRE_ENERGY_GPU:
		return energy_charge_works(use, model, index);
	default:
		return leave_unattributed(use, model, index);
	}
}

static int compare_lengths(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* The median of what was seen, where the source does not say. */
static int find_period(struct energy_domain_use *use, const struct model *model, uint32_t index)
{
	const struct model_energy_domain *domain = &model->energy_domains.items[index];
	const struct model_energy_interval *interval = energy_intervals_of(model, index);
	_cleanup_free_ uint64_t *lengths = NULL;
	size_t count = 0;

	use->period_ns = domain->period_ns;
	if (use->period_ns)
		return 0;
	lengths = calloc(domain->interval_count + 1, sizeof(*lengths));
	if (!lengths)
		return -ENOMEM;
	for (uint32_t i = 0; i < domain->interval_count; i++) {
		if (!interval[i].gap && !interval[i].is_cut)
			lengths[count++] = interval[i].end_ns - interval[i].start_ns;
	}
	if (count) {
		qsort(lengths, count, sizeof(*lengths), compare_lengths);
		use->period_ns = lengths[count / 2];
	}
	return 0;
}

static void measure(struct energy_domain_use *use, const struct model *model, uint32_t index)
{
	const struct model_energy_domain *domain = &model->energy_domains.items[index];
	const struct model_energy_interval *interval = energy_intervals_of(model, index);

	use->measured_j = use->average_w = use->peak_w = use->uncertainty_j = NAN;
	for (uint32_t i = 0; i < domain->interval_count; i++) {
		uint64_t length_ns = interval[i].end_ns - interval[i].start_ns;
		double power_w = interval[i].energy_j / ((double)length_ns / 1e9);

		use->interval_count++;
		use->cut_count += interval[i].is_cut;
		if (interval[i].gap) {
			use->gap_ns[interval[i].gap] += length_ns;
			continue;
		}
		use->measured_ns += length_ns;
		use->measured_j =
			(isnan(use->measured_j) ? 0 : use->measured_j) + interval[i].energy_j;
		/* Two readings close together say nothing of the power between them. */
		if (2 * length_ns >= use->period_ns &&
			(isnan(use->peak_w) || power_w > use->peak_w))
			use->peak_w = power_w;
	}
	if (use->measured_ns) {
		use->average_w = use->measured_j / ((double)use->measured_ns / 1e9);
		use->uncertainty_j = use->measured_j * domain->relative_error;
	}
}

/* While it was measured, gaps and all. */
static struct span_state state_of(const struct model *model, uint32_t index)
{
	const struct model_energy_domain *domain = &model->energy_domains.items[index];
	const struct model_energy_interval *intervals = energy_intervals_of(model, index);
	struct span_state_sums sums;

	span_state_begin(&sums);
	if (domain->interval_count)
		span_state_add(&sums, model, index, intervals[0].start_ns,
			intervals[domain->interval_count - 1].end_ns);
	return span_state_end(&sums);
}

static void note_states(struct energy_use *use, const struct model *model)
{
	for (uint32_t i = 0; i < use->domains.count; i++)
		use->domains.items[i].state = state_of(model, i);
	array_foreach (&model->energy_states, state) {
		struct energy_domain_use *domain = &use->domains.items[state->domain];

		if (state->temperature_mc != INT32_MIN) {
			bool is_first = domain->lowest_mc == INT32_MIN;

			domain->lowest_mc = is_first
						    ? state->temperature_mc
						    : MIN(domain->lowest_mc, state->temperature_mc);
			domain->highest_mc = MAX(domain->highest_mc, state->temperature_mc);
		}
		if (state->clock_mhz) {
			domain->lowest_mhz =
				MIN(domain->lowest_mhz ?: UINT32_MAX, state->clock_mhz);
			domain->highest_mhz = MAX(domain->highest_mhz, state->clock_mhz);
		}
	}
}

static void add_up(struct energy_use *use, const struct model *model)
{
	double variance = 0;
	bool has_any = false;

	for (uint32_t i = 0; i < use->domains.count; i++) {
		struct energy_domain_use *domain = &use->domains.items[i];

		if (isnan(model->energy_domains.items[i].idle_w) || !domain->is_counted)
			domain->idle_j = NAN;
		if (!domain->is_counted) {
			domain->attributed_j = domain->gaps_j = domain->unattributed_j = NAN;
			continue;
		}
		has_any = true;
		use->measured_j += domain->measured_j;
		use->idle_j += domain->idle_j; /* NaN as soon as one is not known */
		use->attributed_j += domain->attributed_j;
		use->gaps_j += domain->gaps_j;
		use->unattributed_j += domain->unattributed_j;
		variance += domain->uncertainty_j * domain->uncertainty_j;
	}
	use->uncertainty_j = sqrt(variance);
	if (!has_any)
		use->measured_j = use->uncertainty_j = use->idle_j = use->attributed_j =
			use->gaps_j = use->unattributed_j = NAN;
}

static int compare_classes(const void *left, const void *right)
{
	const struct energy_class *a = left, *b = right;

	if (a->energy_j != b->energy_j)
		return a->energy_j > b->energy_j ? -1 : 1;
	return strcmp(a->name, b->name) ?: (a->domain < b->domain ? -1 : 1);
}

static int forget_charges(struct model *model)
{
	const struct model_energy_error unknown = {.sensor = NAN};

	array_foreach (&model->samples, sample) {
		sample->energy_j = 0;
		sample->energy_error = 0;
	}
	array_foreach (&model->device_works, work) {
		work->energy_j = 0;
		work->energy_error = 0;
	}
	model->energy_pool = (struct model_energy_pool){0};
	model->energy_errors.count = 0;
	return energy_add_error(model, &unknown);
}

int energy_use_init(struct energy_use *use, struct model *model)
{
	static const struct energy_domain_use nothing = {
		.lowest_mc = INT32_MIN, .highest_mc = INT32_MIN};
	int r;

	*use = (struct energy_use){0};
	for (unsigned i = 0; i < ENERGY_REST_MAX; i++)
		use->last_rest[i] = SIZE_MAX;
	r = forget_charges(model);
	for (uint32_t i = 0; r == 0 && i < model->energy_domains.count; i++) {
		r = array_append(&use->domains, nothing);
		r = r ?: find_period(&use->domains.items[i], model, i);
		if (r == 0)
			measure(&use->domains.items[i], model, i);
	}
	r = r ?: choose_counted(use, model);
	for (uint32_t i = 0; r == 0 && i < model->energy_domains.count; i++)
		r = charge(use, model, i);
	if (r < 0) {
		energy_use_done(use);
		return r;
	}
	energy_pool_fill(model, use);
	note_states(use, model);
	add_up(use, model);
	if (use->classes.count)
		qsort(use->classes.items, use->classes.count, sizeof(*use->classes.items),
			compare_classes);
	return 0;
}

void energy_use_done(struct energy_use *use)
{
	array_done(&use->domains);
	array_done(&use->classes);
	array_done(&use->rests);
	*use = (struct energy_use){0};
}

bool energy_use_has_any(const struct energy_use *use)
{
	array_foreach (&use->domains, domain) {
		if (domain->measured_ns)
			return true;
	}
	return false;
}

void energy_use_name_sum(
	const struct energy_use *use, const struct model *model, struct strbuf *out)
{
	bool is_first = true;

	for (uint32_t i = 0; i < use->domains.count; i++) {
		if (!use->domains.items[i].is_counted)
			continue;
		strbuf_addf(out, "%s%s%s", is_first ? "" : " + ",
			model->energy_domains.items[i].name,
			model->energy_domains.items[i].is_replayed ? " (replayed)" : "");
		is_first = false;
	}
}
