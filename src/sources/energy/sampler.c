/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/energy/sampler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "sources/energy/sampler_internal.h"

#define REPLAY "replay:"
/* Slow counters are waited for so long at the end, and sources that may hang. */
#define LAST_STEP_NS (300 * NS_PER_MS)
#define STOP_NS      (500 * NS_PER_MS)
#define LOOK_NS      (5 * NS_PER_MS)

/* ---- opening ---- */

static int start_worker(
	struct energy_sampler *sampler, const struct energy_source *const *sources, unsigned count)
{
	struct worker *worker = &sampler->workers[sampler->worker_count];
	int r;

	if (!count)
		return 0;
	r = energy_worker_start(&worker->worker, sources, count, &sampler->place, sampler->tick_ns);
	if (r < 0)
		return r;
	sampler->worker_count++;
	for (unsigned i = 0; i < count; i++)
		sampler->channels[sampler->channel_count++] = (struct channel){
			.worker = worker->worker, .channel = &worker->worker->channels[i]};
	return 0;
}

/* Those that may hang work by themselves, the others together: waking up costs more than reading.
 */
static int start_workers(struct energy_sampler *sampler, const bool *wanted)
{
	const struct energy_source *together[CHANNELS_MAX];
	unsigned count = 0;
	int r;

	for (unsigned i = 0; energy_sources[i]; i++) {
		if (wanted[i] && !energy_sources[i]->may_hang)
			together[count++] = energy_sources[i];
	}
	r = start_worker(sampler, together, count);
	for (unsigned i = 0; energy_sources[i] && r == 0; i++) {
		if (wanted[i] && energy_sources[i]->may_hang)
			r = start_worker(sampler, &energy_sources[i], 1);
	}
	return r;
}

static int find_source(const char *name, size_t length)
{
	for (int i = 0; energy_sources[i]; i++) {
		if (strlen(energy_sources[i]->name) == length &&
			memcmp(energy_sources[i]->name, name, length) == 0)
			return i;
	}
	return -1;
}

static int unknown_source(const char *name, size_t length, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf names = {0};

	for (const struct energy_source *const *source = energy_sources; *source; source++)
		strbuf_addf(&names, "%s, ", (*source)->name);
	return errmsg_set(err, -EINVAL,
		"there is no source of energy %.*s: give auto, off, or some of %s" REPLAY
		"FILE, separated by commas",
		(int)MIN(length, (size_t)64), name, strbuf_cstr(&names));
}

static int start_sources(struct energy_sampler *sampler, const char *list, struct errmsg *err)
{
	bool wanted[CHANNELS_MAX] = {false};
	bool is_replay = false;
	int r = 0;

	sampler->is_auto = list && strcmp(list, "auto") == 0;
	for (unsigned i = 0; energy_sources[i]; i++)
		wanted[i] = sampler->is_auto;
	while (!sampler->is_auto && list) {
		size_t length = strcspn(list, ",");
		int index = find_source(list, length);

		is_replay = strncmp(list, REPLAY, strlen(REPLAY)) == 0;
		if (!is_replay && index < 0)
			return unknown_source(list, length, err);
		if (!is_replay)
			wanted[index] = true;
		if (is_replay || !list[length])
			break;
		list += length + 1;
	}
	if (is_replay)
		r = energy_replay_open(&sampler->replay, list + strlen(REPLAY), err);
	return r < 0 ? r : start_workers(sampler, wanted);
}

int energy_sampler_open(struct energy_sampler **ret_sampler,
	const struct energy_sampler_options *options, struct errmsg *err)
{
	_cleanup_energy_sampler_ struct energy_sampler *sampler = calloc(1, sizeof(*sampler));
	char path[512];
	int r;

	if (!sampler)
		return -ENOMEM;
	sampler->place = options->place ? *options->place : energy_place_machine();
	snprintf(path, sizeof(path), "%s/proc/stat", sampler->place.root);
	busy_clock_open(&sampler->busy, path);
	sampler->tick_ns = options->tick_ns;
	sampler->opened_ns = monotonic_now_ns();
	sampler->end_ns = UINT64_MAX;
	r = start_sources(sampler, options->sources, err);
	if (r < 0)
		return r;
	if (options->model)
		r = energy_model_open(&sampler->model, options->model, err);
	if (r < 0)
		return r;
	if (sampler->replay)
		sampler_adopt_replay(sampler);
	if (sampler->model)
		sampler_adopt_model(sampler);
	sampler_adopt_sources(sampler, sampler->opened_ns + options->wait_ns);
	*ret_sampler = TAKE_PTR(sampler);
	return 0;
}

struct energy_sampler *energy_sampler_free(struct energy_sampler *sampler)
{
	if (!sampler)
		return NULL;
	for (unsigned i = 0; i < sampler->worker_count; i++) {
		struct worker *worker = &sampler->workers[i];

		if (!worker->is_stopped)
			energy_worker_stop(worker->worker, monotonic_now_ns() + STOP_NS);
		energy_worker_free(worker->worker);
	}
	energy_replay_free(sampler->replay);
	energy_replay_free(sampler->model);
	busy_clock_close(&sampler->busy);
	free(sampler);
	return NULL;
}

void energy_sampler_freep(struct energy_sampler **sampler)
{
	energy_sampler_free(*sampler);
}

unsigned energy_sampler_count(const struct energy_sampler *sampler)
{
	return sampler->placed_count;
}

const struct energy_sampled *energy_sampler_at(const struct energy_sampler *sampler, unsigned index)
{
	return &sampler->rails[sampler->order[index]].sampled;
}

const char *energy_sampler_absence(const struct energy_sampler *sampler, unsigned index,
	const struct energy_source **ret_source)
{
	const struct energy_channel *channel;

	if (index >= sampler->channel_count)
		return NULL;
	channel = sampler->channels[index].channel;
	*ret_source = channel->source;
	if (atomic_load(&channel->stage) == CHANNEL_OPENING)
		return "it does not answer: look at the kernel's log (sudo dmesg)";
	return channel->found.absence.text;
}

/* ---- from the start to the end ---- */

static void forget_sums(struct energy_sampler *sampler)
{
	for (unsigned i = 0; i < sampler->rail_count; i++) {
		struct rail *rail = &sampler->rails[i];

		rail->sampled.energy_nj = rail->sampled.measured_ns = rail->sampled.gap_ns = 0;
		rail->gaps = 0;
		rail->until_ns = sampler->start_ns;
	}
}

void energy_sampler_take_baseline(struct energy_sampler *sampler)
{
	for (unsigned i = 0; i < sampler->rail_count; i++) {
		struct rail *rail = &sampler->rails[i];

		if (!rail->channel || !rail->sampled.measured_ns)
			continue;
		rail->sampled.domain.idle_w = sampled_mean_w(&rail->sampled);
		rail->is_sent = false;
	}
	forget_sums(sampler);
}

void energy_sampler_start(struct energy_sampler *sampler, uint64_t start_ns)
{
	sampler->start_ns = start_ns;
	forget_sums(sampler);
	busy_clock_read(&sampler->busy, start_ns, true);
}

static bool waits_for_step(const struct energy_sampler *sampler)
{
	for (unsigned i = 0; i < sampler->placed_count; i++) {
		const struct rail *rail = &sampler->rails[sampler->order[i]];

		if (rail->channel && found_rail(rail)->kind == ENERGY_COUNTER &&
			!rail->channel->meters[rail->index].is_fast && rail->sampled.measured_ns &&
			rail->until_ns < sampler->end_ns &&
			sampler->end_ns - rail->until_ns < EDGE_NS)
			return true;
	}
	return false;
}

int energy_sampler_finish(
	struct energy_sampler *sampler, uint64_t end_ns, const struct energy_sink *sink)
{
	uint64_t deadline_ns = monotonic_now_ns() + LAST_STEP_NS;
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	int r;

	sampler->end_ns = end_ns;
	r = energy_sampler_drain(sampler, sink);
	while (r == 0 && waits_for_step(sampler) && monotonic_now_ns() < deadline_ns) {
		nanosleep(&pause, NULL);
		r = energy_sampler_drain(sampler, sink);
	}
	deadline_ns = monotonic_now_ns() + STOP_NS;
	for (unsigned i = 0; i < sampler->worker_count; i++) {
		struct worker *worker = &sampler->workers[i];

		worker->has_ended = energy_worker_stop(worker->worker, deadline_ns);
		worker->is_stopped = true;
	}
	busy_clock_read(&sampler->busy, monotonic_now_ns(), true);
	if (r == 0)
		r = sampler_drain_until(sampler, UINT64_MAX, sink);
	return r < 0 ? r : sampler_drain_last_gaps(sampler, sink);
}
