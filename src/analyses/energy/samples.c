/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charging a processor's energy to samples. A sample of a running thread stands for the sampling
 * period before it: what each has of an interval's dynamic energy is as its time in the interval to
 * all time that its processors were busy in it. The time that no sample stands for is other
 * programs'. A rail of one socket is charged to samples on the processors of that socket alone.
 */
#include <math.h>

#include "analyses/energy/internal.h"
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
};

struct charging {
	struct model *model;
	const struct model_energy_domain *domain;
	const struct model_energy_interval *intervals;
	struct busy *busy;   /* of each interval */
	struct cpu_set cpus; /* that the domain feeds, where it does not feed all */
	uint16_t error;      /* index in energy_errors */
};

/* Calls for each interval that a sample's time lies in, with how much of it. */
typedef void overlap_function(const struct charging *charging, struct model_sample *sample,
	uint32_t interval, double overlap_ns);

static bool is_charged(const struct charging *charging, const struct model_sample *sample)
{
	const struct model *model = charging->model;
	const struct model_thread *thread = &model->threads.items[sample->thread];

	return sample->wait == WIRE_WAIT_NONE &&
	       model->processes.items[thread->process].host == charging->domain->host &&
	       (!*charging->domain->cpus || cpu_set_has(&charging->cpus, sample->cpu));
}

static void for_overlaps(const struct charging *charging, overlap_function *function)
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

static void add_sampled(const struct charging *charging, struct model_sample *sample,
	uint32_t interval, double overlap_ns)
{
	charging->busy[interval].sampled_ns += overlap_ns;
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

/* Where the whole machine was sampled, all that ran has samples. */
static void find_other(const struct charging *charging)
{
	const struct model_energy_interval *intervals = charging->intervals;
	uint32_t count = charging->domain->interval_count, begin = 0;

	if (charging->model->session.whole_machine)
		return;
	for (uint32_t i = 0; i < count; i++) {
		if (intervals[i].end_ns - intervals[begin].start_ns < BUSY_NS && i + 1 < count)
			continue;
		spread_other(intervals + begin, charging->busy + begin, i + 1 - begin);
		begin = i + 1;
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

static void charge_sample(const struct charging *charging, struct model_sample *sample,
	uint32_t interval, double overlap_ns)
{
	const struct busy *busy = &charging->busy[interval];

	if (!(overlap_ns > 0))
		return;
	sample->energy_j +=
		dynamic_j(charging, interval) * overlap_ns / (busy->sampled_ns + busy->other_ns);
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
	const struct model_energy_error sampled = {
		.sensor = charging->domain->relative_error, .split = MODEL_ENERGY_SAMPLED};
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

	if (!busy || add_errors(&use->domains.items[index], &charging) < 0)
		return -ENOMEM;
	use->domains.items[index].method = ENERGY_METHOD_CPU_TIME;
	cpu_set_parse(&charging.cpus, domain->cpus);
	for_overlaps(&charging, add_sampled);
	find_other(&charging);
	for_overlaps(&charging, charge_sample);
	return add_splits(use, &charging);
}
