/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/energy/uncertainty.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/macros.h"

#define LONG_PERIODS  10 /* of a sensor: as of spans, see span_energy.c */
#define LEAST_SAMPLES 10
#define WORST_ERROR   10.0 /* relative: more says nothing */
#define WORST_J       1e12 /* a damaged file's */
#define LEAST_DOUBT   0.05 /* of a row's energy: more of it in doubt, and nothing is known */

enum { HOST, DEVICE };

const char *energy_doubt_name(enum energy_doubt doubt)
{
	static const char *const names[ENERGY_DOUBT_MAX] = {
		[ENERGY_DOUBT_NONE] = NULL,
		[ENERGY_DOUBT_SHORT] = "shorter_than_sensor",
		[ENERGY_DOUBT_SHARED] = "time_share",
		[ENERGY_DOUBT_SENSOR] = "sensor_error_not_known",
	};

	return names[doubt];
}

/* ---- pieces ---- */

static const struct model_energy_error *error_of(const struct model *model, uint16_t index)
{
	static const struct model_energy_error unknown = {.sensor = NAN};

	return index < model->energy_errors.count ? &model->energy_errors.items[index] : &unknown;
}

static double joules_of(const struct model *model, const struct model_sample *sample)
{
	return model->counts_energy ? (double)sample->count / 1e6 : sample->energy_j;
}

static uint64_t period_of(const struct model *model, const struct model_sample *sample)
{
	uint64_t period_ns = model->session.period_ns;

	return 1 + sample->time_ns / (period_ns ? period_ns : 1);
}

/* What was sampled in the period that begins with the sample of this index. */
static double sampled_in_period(const struct model *model, size_t index)
{
	uint64_t period = period_of(model, &model->samples.items[index]);
	double sum = 0;

	for (size_t i = index; i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];

		if (period_of(model, sample) != period)
			break;
		if (error_of(model, sample->energy_error)->split == MODEL_ENERGY_SAMPLED)
			sum += joules_of(model, sample);
	}
	return sum;
}

struct energy_piece energy_piece_of(
	struct energy_periods *periods, const struct model *model, size_t index)
{
	const struct model_sample *sample = &model->samples.items[index];
	uint64_t period = period_of(model, sample);

	if (periods->period != period) {
		periods->period = period;
		periods->all_j = sampled_in_period(model, index);
	}
	return (struct energy_piece){
		.energy_j = joules_of(model, sample),
		.duration_ns = sample->duration_ns,
		.period = period,
		.all_j = periods->all_j,
		.error = sample->energy_error,
	};
}

/* ---- sums ---- */

static void close_period(struct energy_sums *sums)
{
	sums->squares_j2 += sums->in_period_j * sums->in_period_j;
	sums->products_j2 += sums->in_period_j * sums->all_in_period_j;
	sums->in_period_j = sums->all_in_period_j = 0;
}

static void add_sampled(struct energy_sums *sums, const struct energy_piece *piece, double error)
{
	if (sums->period != piece->period)
		close_period(sums);
	sums->period = piece->period;
	sums->in_period_j += piece->energy_j;
	sums->all_in_period_j = piece->all_j;
	sums->sampled_j += piece->energy_j;
	sums->split_j += piece->energy_j * error;
	sums->samples++;
}

void energy_sums_add(
	struct energy_sums *sums, const struct model *model, const struct energy_piece *piece)
{
	const struct model_energy_error *error = error_of(model, piece->error);
	unsigned side = HOST;

	sums->all_j += piece->energy_j;
	switch (error->split) {
	case MODEL_ENERGY_SAMPLED:
		add_sampled(sums, piece, error->power);
		break;
	case MODEL_ENERGY_UNSAMPLED:
		sums->unsampled_j += piece->energy_j;
		break;
	case MODEL_ENERGY_REGRESSED:
		sums->regressed_j += piece->energy_j;
		sums->power_j += piece->energy_j * error->power;
		sums->device_ns += piece->duration_ns;
		side = DEVICE;
		break;
	case MODEL_ENERGY_SHARED:
		sums->shared_j += piece->energy_j;
		sums->device_ns += piece->duration_ns;
		side = DEVICE;
		break;
	default:
		break;
	}
	/* Files may say anything. */
	if (!(error->sensor >= 0 && error->sensor <= WORST_ERROR))
		sums->unknown_j += piece->energy_j;
	else
		sums->sensor_j[side] += piece->energy_j * error->sensor;
}

void energy_sums_join(struct energy_sums *sums, const struct energy_sums *other)
{
	struct energy_sums closed = *other;

	close_period(&closed);
	sums->all_j += closed.all_j;
	sums->sampled_j += closed.sampled_j;
	sums->split_j += closed.split_j;
	sums->unsampled_j += closed.unsampled_j;
	sums->squares_j2 += closed.squares_j2;
	sums->products_j2 += closed.products_j2;
	sums->samples += closed.samples;
	sums->sensor_j[HOST] += closed.sensor_j[HOST];
	sums->sensor_j[DEVICE] += closed.sensor_j[DEVICE];
	sums->unknown_j += closed.unknown_j;
	sums->regressed_j += closed.regressed_j;
	sums->power_j += closed.power_j;
	sums->shared_j += closed.shared_j;
	sums->device_ns += closed.device_ns;
}

/* ---- the uncertainty ---- */

/* Σ(R − pA)². Other programs have as many samples of the mean size as their energy has. */
static double sampling_variance(
	const struct model_energy_pool *pool, const struct energy_sums *sums)
{
	double all_j = pool->sampled_j + pool->unsampled_j;
	double row_j = sums->sampled_j + sums->unsampled_j;
	double size_j = pool->sampled_j > 0 ? pool->squares_j2 / pool->sampled_j : 0;
	double squares = sums->squares_j2 + sums->unsampled_j * size_j;
	double products = sums->products_j2 + sums->unsampled_j * size_j;
	double share = all_j > 0 ? fmin(row_j / all_j, 1) : 0;
	double variance = squares - 2 * share * products +
			  share * share * (pool->squares_j2 + pool->unsampled_j * size_j);

	return fmax(variance, 0);
}

/* Of samples that were split by counts: all of them together have what was measured. */
static double split_error(const struct model_energy_pool *pool, const struct energy_sums *sums)
{
	return pool->sampled_j > 0 ? sums->split_j * fmax(1 - sums->sampled_j / pool->sampled_j, 0)
				   : 0;
}

static bool is_short_on_host(const struct model *model, const struct energy_sums *sums)
{
	uint64_t time_ns = sums->samples * model->session.period_ns;

	return sums->samples && (sums->samples < LEAST_SAMPLES ||
					time_ns < LONG_PERIODS * model->energy_pool.host_period_ns);
}

static bool is_short_on_device(const struct model *model, const struct energy_sums *sums)
{
	return sums->device_ns < LONG_PERIODS * model->energy_pool.device_period_ns;
}

/* What is in doubt of the row, in joules, by why. */
static void find_doubts(
	const struct model *model, const struct energy_sums *sums, double doubts[ENERGY_DOUBT_MAX])
{
	double pool_j = model->energy_pool.shared_j;

	if (is_short_on_host(model, sums))
		doubts[ENERGY_DOUBT_SHORT] += sums->sampled_j;
	if (is_short_on_device(model, sums))
		doubts[ENERGY_DOUBT_SHORT] += sums->regressed_j + sums->shared_j;
	/* All that was split by time together is as sure as what was measured. */
	else if (pool_j > 0)
		doubts[ENERGY_DOUBT_SHARED] = sums->shared_j * fmax(1 - sums->shared_j / pool_j, 0);
	doubts[ENERGY_DOUBT_SENSOR] = sums->unknown_j;
}

struct energy_uncertainty energy_uncertainty_of(
	const struct model *model, const struct energy_sums *sums)
{
	struct energy_sums closed = *sums;
	double doubts[ENERGY_DOUBT_MAX] = {0}, in_doubt = 0, energy_j, split_j;
	unsigned worst = ENERGY_DOUBT_NONE;

	if (!(closed.all_j > 0))
		return ENERGY_NO_UNCERTAINTY;
	close_period(&closed);
	find_doubts(model, &closed, doubts);
	for (unsigned i = 0; i < ENERGY_DOUBT_MAX; i++) {
		in_doubt += doubts[i];
		if (doubts[i] > doubts[worst])
			worst = i;
	}
	if (in_doubt > LEAST_DOUBT * closed.all_j)
		return (struct energy_uncertainty){NAN, worst};
	split_j = split_error(&model->energy_pool, &closed);
	energy_j = sqrt(closed.sensor_j[HOST] * closed.sensor_j[HOST] +
			closed.sensor_j[DEVICE] * closed.sensor_j[DEVICE] +
			sampling_variance(&model->energy_pool, &closed) +
			closed.power_j * closed.power_j + split_j * split_j + in_doubt * in_doubt);
	if (!(energy_j < WORST_J))
		return (struct energy_uncertainty){NAN, ENERGY_DOUBT_SENSOR};
	return (struct energy_uncertainty){.energy_j = energy_j};
}

/* ---- all that was charged ---- */

void energy_pool_fill(struct model *model, const struct energy_use *use)
{
	struct model_energy_pool *pool = &model->energy_pool;
	struct energy_periods periods = {0};
	struct energy_sums sums = {0};

	if (!use->domains.count)
		return;
	for (uint32_t i = 0; i < use->domains.count; i++) {
		const struct energy_domain_use *domain = &use->domains.items[i];
		bool is_device = model->energy_domains.items[i].part == WIRE_ENERGY_GPU;
		uint64_t *period_ns = is_device ? &pool->device_period_ns : &pool->host_period_ns;

		if (domain->is_counted)
			*period_ns = MAX(*period_ns, domain->period_ns);
	}
	for (size_t i = 0; i < model->samples.count; i++) {
		struct energy_piece piece = energy_piece_of(&periods, model, i);

		if (error_of(model, piece.error)->split == MODEL_ENERGY_SAMPLED)
			energy_sums_add(&sums, model, &piece);
	}
	close_period(&sums);
	pool->sampled_j = sums.sampled_j;
	pool->squares_j2 = sums.squares_j2;
	array_foreach (&model->device_works, work) {
		if (error_of(model, work->energy_error)->split == MODEL_ENERGY_SHARED)
			pool->shared_j += work->energy_j;
	}
	array_foreach (&use->rests, rest) {
		unsigned split = error_of(model, rest->error)->split;

		if (split == MODEL_ENERGY_SHARED)
			pool->shared_j += rest->energy_j;
		else if (split == MODEL_ENERGY_UNSAMPLED)
			pool->unsampled_j += rest->energy_j;
	}
}

/* ---- by key ---- */

/* Each key of the stack once, and the innermost frame's. */
static void add_to_frames(struct energy_key_sums *sums, const struct model *model,
	const struct model_stack *stack, const struct energy_piece *piece, const uint32_t *keys,
	size_t *last_seen, size_t sample)
{
	const uint32_t *frames = model->stack_frames.items + stack->first;

	for (uint32_t i = 0; i < stack->count; i++) {
		uint32_t key = keys[frames[i]];

		if (last_seen[key] == sample + 1)
			continue;
		last_seen[key] = sample + 1;
		energy_sums_add(&sums->total[key], model, piece);
	}
	energy_sums_add(&sums->self[keys[frames[stack->count - 1]]], model, piece);
}

int energy_sums_of_frames(struct energy_key_sums *ret_sums, const struct model *model,
	const struct selected *selected, const uint32_t *keys, size_t key_count)
{
	_cleanup_energy_key_sums_ struct energy_key_sums sums = {
		.self = calloc(key_count + 1, sizeof(*sums.self)),
		.total = calloc(key_count + 1, sizeof(*sums.total)),
	};
	_cleanup_free_ size_t *last_seen = calloc(key_count + 1, sizeof(*last_seen));
	struct energy_periods periods = {0};

	if (!sums.self || !sums.total || !last_seen)
		return -ENOMEM;
	for (size_t i = 0; i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];
		struct energy_piece piece = energy_piece_of(&periods, model, i);

		if (!selected->samples[i])
			continue;
		if (sample->stack == MODEL_NONE || !model->stacks.items[sample->stack].count) {
			energy_sums_add(&sums.self[key_count], model, &piece);
			energy_sums_add(&sums.total[key_count], model, &piece);
			continue;
		}
		add_to_frames(&sums, model, &model->stacks.items[sample->stack], &piece, keys,
			last_seen, i);
	}
	*ret_sums = sums;
	sums = (struct energy_key_sums){0};
	return 0;
}

int energy_sums_of_samples(struct energy_key_sums *ret_sums, const struct model *model,
	const struct selected *selected, const uint32_t *keys, size_t key_count)
{
	struct energy_key_sums sums = {.self = calloc(key_count + 1, sizeof(*sums.self))};
	struct energy_periods periods = {0};

	if (!sums.self)
		return -ENOMEM;
	for (size_t i = 0; i < model->samples.count; i++) {
		struct energy_piece piece = energy_piece_of(&periods, model, i);

		if (selected->samples[i])
			energy_sums_add(&sums.self[MIN((size_t)keys[i], key_count)], model, &piece);
	}
	*ret_sums = sums;
	return 0;
}

void energy_key_sums_done(struct energy_key_sums *sums)
{
	free(sums->self);
	free(sums->total);
	*sums = (struct energy_key_sums){0};
}
