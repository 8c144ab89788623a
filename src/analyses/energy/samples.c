/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charging a processor's energy to samples. A sample of a running thread stands for the sampling
 * period before it: what each has of an interval's dynamic energy is as its time in the interval to
 * all time that its processors were busy in it. The time that no sample stands for is other
 * programs'. A rail of one socket is charged to samples on the processors of that socket alone.
 *
 * Where samples have counts, and these explain the readings better than time does (sample_fit.h),
 * an interval's samples share by their counts what is theirs by time.
 */
#include <math.h>

#include "analyses/energy/internal.h"
#include "analyses/energy/sample_fit.h"
#include "base/cpu_list.h"
#include "base/macros.h"

/*
 * The kernel counts busy time in steps of 10 ms for each processor: over less than this they would
 * be most of it.
 */
#define BUSY_NS (250 * NS_PER_MS)

/* Of an interval, in nanoseconds. */
struct busy {
	double sampled_ns; /* that samples stand for */
	double other_ns;   /* that they do not */
	double cycles, instructions;
	double weight; /* of all samples, where counts are used */
};

struct charging {
	struct model *model;
	const struct model_energy_domain *domain;
	const struct model_energy_interval *intervals;
	struct busy *busy;   /* of each interval */
	struct cpu_set cpus; /* that the domain feeds, where it does not feed all */
	uint16_t error;      /* index in energy_errors */
	double counted_ns;   /* of sampled_ns: that have counts */
	struct sample_fit fit;
};

/* Calls for each interval that a sample's time lies in, with how much of it. */
typedef void overlap_function(struct charging *charging, struct model_sample *sample,
	uint32_t interval, double overlap_ns);

static bool is_charged(const struct charging *charging, const struct model_sample *sample)
{
	const struct model *model = charging->model;
	const struct model_thread *thread = &model->threads.items[sample->thread];

	return sample->wait == WIRE_WAIT_NONE &&
	       model->processes.items[thread->process].host == charging->domain->host &&
	       (!*charging->domain->cpus || cpu_set_has(&charging->cpus, sample->cpu));
}

static void for_overlaps(struct charging *charging, overlap_function *function)
{
	const struct model_energy_domain *domain = charging->domain;
	const struct model_energy_interval *intervals = charging->intervals;
	uint64_t period_ns = charging->model->session.period_ns;
	uint32_t first = 0;

	array_foreach (&charging->model->samples, sample) {
		uint64_t start_ns = sample->time_ns - MIN(period_ns, sample->time_ns);

		if (!is_charged(charging, sample))
			continue;
		while (first < domain->interval_count && intervals[first].end_ns <= start_ns)
			first++;
		for (uint32_t i = first;
			i < domain->interval_count && intervals[i].start_ns < sample->time_ns;
			i++) {
			uint64_t begin = MAX(start_ns, intervals[i].start_ns);
			uint64_t end = MIN(sample->time_ns, intervals[i].end_ns);

			function(charging, sample, i, (double)(end - begin));
		}
	}
}

static void add_sampled(struct charging *charging, struct model_sample *sample, uint32_t interval,
	double overlap_ns)
{
	struct busy *busy = &charging->busy[interval];
	double share;

	if (!(overlap_ns > 0))
		return;
	share = overlap_ns / (double)charging->model->session.period_ns;
	busy->sampled_ns += overlap_ns;
	busy->cycles += sample->cycles * share;
	busy->instructions += sample->instructions * share;
	if (sample->cycles)
		charging->counted_ns += overlap_ns;
}

/* Spreads over some intervals what their busy time has beyond the samples'. */
static void spread_other(
	const struct model_energy_interval *intervals, struct busy *busy, uint32_t count)
{
	double sampled_ns = 0, busy_ns = 0, length_ns = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (isnan(intervals[i].busy_ns) || intervals[i].gap)
			continue;
		sampled_ns += busy[i].sampled_ns;
		busy_ns += intervals[i].busy_ns;
		length_ns += (double)(intervals[i].end_ns - intervals[i].start_ns);
	}
	for (uint32_t i = 0; i < count && busy_ns > sampled_ns; i++) {
		if (!isnan(intervals[i].busy_ns) && !intervals[i].gap)
			busy[i].other_ns = (busy_ns - sampled_ns) *
					   (double)(intervals[i].end_ns - intervals[i].start_ns) /
					   length_ns;
	}
}

/* How many intervals from this one on are a stretch over which busy time is known. */
static uint32_t stretch_at(const struct charging *charging, uint32_t begin)
{
	const struct model_energy_interval *intervals = charging->intervals;
	uint32_t i = begin;

	while (i + 1 < charging->domain->interval_count &&
		intervals[i].end_ns - intervals[begin].start_ns < BUSY_NS)
		i++;
	return i + 1 - begin;
}

/* Where the whole machine was sampled, all that ran has samples. */
static void find_other(const struct charging *charging)
{
	uint32_t count;

	if (charging->model->session.whole_machine)
		return;
	for (uint32_t i = 0; i < charging->domain->interval_count; i += count) {
		count = stretch_at(charging, i);
		spread_other(charging->intervals + i, charging->busy + i, count);
	}
}

static double dynamic_j(const struct charging *charging, uint32_t interval)
{
	const struct model_energy_interval *of = &charging->intervals[interval];

	return of->gap ? 0 : of->energy_j - energy_idle_share(charging->domain, of);
}

/* Of several rails the error of the worst. */
static void note_error(const struct charging *charging, struct model_sample *sample)
{
	const struct model_energy_error *errors = charging->model->energy_errors.items;

	if (!sample->energy_error ||
		!(errors[charging->error].sensor <= errors[sample->energy_error].sensor))
		sample->energy_error = charging->error;
}

/* ---- counts ---- */

/* What samples have by time of the intervals, and what was counted in them. */
static struct sample_fit_row row_of(const struct charging *charging, uint32_t begin, uint32_t count)
{
	struct sample_fit_row row = {0};

	for (uint32_t i = begin; i < begin + count; i++) {
		const struct busy *busy = &charging->busy[i];

		if (charging->intervals[i].gap || !(busy->sampled_ns > 0))
			continue;
		row.energy_j += dynamic_j(charging, i) * busy->sampled_ns /
				(busy->sampled_ns + busy->other_ns);
		row.time_s += busy->sampled_ns / 1e9;
		row.cycles += busy->cycles;
		row.instructions += busy->instructions;
	}
	return row;
}

static int fit_counts(struct charging *charging)
{
	_cleanup_free_ struct sample_fit_row *rows =
		calloc(charging->domain->interval_count + 1, sizeof(*rows));
	double sampled_ns = 0;
	size_t row_count = 0;
	uint32_t count;

	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < charging->domain->interval_count; i += count) {
		count = stretch_at(charging, i);
		rows[row_count] = row_of(charging, i, count);
		sampled_ns += rows[row_count].time_s * 1e9;
		row_count += rows[row_count].time_s > 0;
	}
	return sample_fit_make(&charging->fit, rows, row_count,
		sampled_ns > 0 ? charging->counted_ns / sampled_ns : 0,
		charging->domain->quality == WIRE_ENERGY_AVERAGED);
}

static void add_weight(struct charging *charging, struct model_sample *sample, uint32_t interval,
	double overlap_ns)
{
	charging->busy[interval].weight +=
		sample_fit_weight(&charging->fit, sample, charging->model->session.period_ns) *
		overlap_ns;
}

/* Of what samples have of the interval: by counts, unless they say that nothing ran there. */
static double share_of(const struct charging *charging, const struct model_sample *sample,
	const struct busy *busy, double overlap_ns)
{
	if (!(busy->weight > 0))
		return overlap_ns / busy->sampled_ns;
	return sample_fit_weight(&charging->fit, sample, charging->model->session.period_ns) *
	       overlap_ns / busy->weight;
}

static void charge_sample(struct charging *charging, struct model_sample *sample, uint32_t interval,
	double overlap_ns)
{
	const struct busy *busy = &charging->busy[interval];

	if (!(overlap_ns > 0))
		return;
	sample->energy_j += dynamic_j(charging, interval) * busy->sampled_ns /
			    (busy->sampled_ns + busy->other_ns) *
			    share_of(charging, sample, busy, overlap_ns);
	note_error(charging, sample);
}

static int add_splits(struct energy_use *use, const struct charging *charging)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < charging->domain->interval_count; i++) {
		const struct busy *busy = &charging->busy[i];
		double all_ns = busy->sampled_ns + busy->other_ns;
		double dynamic = dynamic_j(charging, i);
		struct energy_split split = {
			.idle_j = energy_idle_share(charging->domain, &charging->intervals[i]),
			.attributed_j = all_ns > 0 ? dynamic * busy->sampled_ns / all_ns : 0,
			.unattributed_j = all_ns > 0 ? dynamic * busy->other_ns / all_ns : dynamic,
		};

		if (!charging->intervals[i].gap)
			r = energy_add_split(
				use, charging->model, charging->domain->first_interval + i, &split);
	}
	return r;
}

static int add_errors(struct energy_domain_use *use, struct charging *charging)
{
	const struct model_energy_error sampled = {.sensor = charging->domain->relative_error,
		.power = charging->fit.error,
		.split = MODEL_ENERGY_SAMPLED};
	const struct model_energy_error unsampled = {
		.sensor = charging->domain->relative_error, .split = MODEL_ENERGY_UNSAMPLED};
	int of_samples = energy_add_error(charging->model, &sampled);
	int of_others = energy_add_error(charging->model, &unsampled);

	if (of_samples < 0 || of_others < 0)
		return -ENOMEM;
	charging->error = (uint16_t)of_samples;
	use->rest_errors[ENERGY_REST_UNATTRIBUTED] = (uint16_t)of_others;
	return 0;
}

int energy_charge_samples(struct energy_use *use, struct model *model, uint32_t index)
{
	const struct model_energy_domain *domain = &model->energy_domains.items[index];
	_cleanup_free_ struct busy *busy = calloc(domain->interval_count + 1, sizeof(*busy));
	struct charging charging = {.model = model,
		.domain = domain,
		.intervals = energy_intervals_of(model, index),
		.busy = busy};

	struct energy_domain_use *of = &use->domains.items[index];
	int r;

	if (!busy)
		return -ENOMEM;
	cpu_set_parse(&charging.cpus, domain->cpus);
	for_overlaps(&charging, add_sampled);
	find_other(&charging);
	r = fit_counts(&charging);
	if (r == 0)
		r = add_errors(of, &charging);
	if (r < 0)
		return r;
	of->fit = charging.fit;
	of->method = charging.fit.why_not ? ENERGY_METHOD_CPU_TIME : ENERGY_METHOD_COUNTERS;
	if (!charging.fit.why_not)
		for_overlaps(&charging, add_weight);
	for_overlaps(&charging, charge_sample);
	return add_splits(use, &charging);
}
