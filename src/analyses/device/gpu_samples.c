/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/gpu_samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "model/gpu_counters.h"

/* Percent and GB/s: what is more comes of a damaged file, and would drown the others in a sum. */
#define MOST_VALUE 1e9

struct value {
	int64_t time_ns;
	uint32_t device; /* index in view.devices */
	uint32_t counter;
	double value;
};

struct gathering {
	struct gpu_samples *samples;
	const struct trace_view *view;
	ARRAY_OF(struct value) values;
	struct intern samplers;
	struct map_u64 devices; /* number → index in view.devices */
};

/* How long from one time to a later one; what files say may be further apart than that. */
static int64_t between_ns(int64_t from_ns, int64_t to_ns)
{
	int64_t between = trace_difference_ns(to_ns, from_ns);

	return to_ns <= from_ns ? 0 : between < 0 ? INT64_MAX : between;
}

/* ---- values ---- */

static int add_sampler(struct gathering *gathering, int64_t pid, uint32_t device)
{
	const struct {
		int64_t pid;
		uint64_t device;
	} key = {pid, device};
	uint32_t id;
	int r = intern_add(&gathering->samplers, &key, sizeof(key), &id);

	return r <= 0 ? r
		      : array_append(&gathering->samples->samplers,
				(struct gpu_sampler){.pid = pid, .device = device});
}

/* `device`: its number + 1; 0: not known. */
static int add_value(struct gathering *gathering, uint32_t device, int64_t pid, struct value value)
{
	uint64_t index;
	int r;

	if (!isfinite(value.value) || fabs(value.value) > MOST_VALUE)
		return 0;
	if (!device || !map_u64_get(&gathering->devices, device - 1, &index)) {
		gathering->samples->unplaced++;
		return 0;
	}
	value.device = (uint32_t)index;
	r = add_sampler(gathering, pid, value.device);
	return r < 0 ? r : array_append(&gathering->values, value);
}

/* Values of one counter lie together. */
static int add_recorded(struct gathering *gathering, const struct model *model)
{
	const struct trace *rows = gathering->view->trace;
	struct gpu_counter of = {0};
	uint32_t device = 0;
	bool is_known = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->counters.count; i++) {
		const struct model_counter *counter = &model->counters.items[i];

		if (!i || counter->name != counter[-1].name ||
			counter->process != counter[-1].process) {
			is_known = gpu_counter_of_name(counter->name, &of);
			device = is_known ? gpu_counter_device(model, counter, rows) : 0;
		}
		if (is_known)
			r = add_value(gathering, device,
				model->processes.items[counter->process].pid,
				(struct value){.time_ns = (int64_t)(counter->time_ns -
								    rows->recorded_from_ns),
					.counter = of.counter,
					.value = counter->value});
	}
	return r;
}

static int add_of_trace(struct gathering *gathering, const struct trace *trace)
{
	struct gpu_counter of;
	int r = 0;

	for (size_t i = 0; r == 0 && i < trace->counters.count; i++) {
		const struct trace_counter *counter = &trace->counters.items[i];

		if (gpu_counter_of_name(trace_text(trace, counter->name), &of))
			r = add_value(gathering, counter->device,
				trace->tracks.items[counter->track].pid,
				(struct value){.time_ns = counter->time_ns,
					.counter = of.counter,
					.value = counter->value});
	}
	return r;
}

static int gather(struct gathering *gathering)
{
	const struct trace_view *view = gathering->view;
	int r = 0;

	for (size_t i = 0; r == 0 && i < view->devices.count; i++) {
		if (view->devices.items[i].number >= 0)
			r = map_u64_set(
				&gathering->devices, (uint64_t)view->devices.items[i].number, i);
	}
	if (r < 0)
		return r;
	return view->trace->recorded ? add_recorded(gathering, view->trace->recorded)
				     : add_of_trace(gathering, view->trace);
}

/* ---- samples ---- */

static int compare_values(const void *left, const void *right)
{
	const struct value *a = left, *b = right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if (a->counter != b->counter)
		return a->counter < b->counter ? -1 : 1;
	return a->value < b->value ? -1 : a->value > b->value;
}

static int add_sample(struct gpu_samples *samples, const struct value *value)
{
	struct gpu_samples_place *place = &samples->devices.items[value->device];
	struct gpu_sample sample = {.start_ns = value->time_ns, .end_ns = value->time_ns};

	for (unsigned i = 0; i < WIRE_PM_MAX; i++)
		sample.values[i] = (double)NAN;
	if (!place->count++)
		place->first = samples->items.count;
	return array_append(&samples->items, sample);
}

/* Values of one moment are one sample; of several of one counter the most counts. */
static int make_samples(struct gathering *gathering)
{
	struct gpu_samples *samples = gathering->samples;
	int r = array_reserve(&samples->devices, gathering->view->devices.count);

	if (r < 0)
		return r;
	for (size_t i = 0; i < gathering->view->devices.count; i++)
		samples->devices.items[samples->devices.count++] = (struct gpu_samples_place){0};
	for (size_t i = 0; i < gathering->values.count; i++) {
		const struct value *value = &gathering->values.items[i];

		if (!i || value->device != value[-1].device || value->time_ns != value[-1].time_ns)
			r = add_sample(samples, value);
		if (r < 0)
			return r;
		samples->items.items[samples->items.count - 1].values[value->counter] =
			value->value;
	}
	return 0;
}

static int compare_samplers(const void *left, const void *right)
{
	const struct gpu_sampler *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}

static int compare_times(const void *left, const void *right)
{
	const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return a < b ? -1 : a > b;
}

/* From one sample to the next. */
static int find_median(const struct gpu_sample *items, size_t count, int64_t *ret_median_ns)
{
	ARRAY_OF(int64_t) distances = {0};
	int r = 0;

	for (size_t i = 1; r == 0 && i < count; i++)
		r = array_append(&distances, between_ns(items[i - 1].start_ns, items[i].start_ns));
	if (r == 0) {
		sort_unless_sorted(
			distances.items, distances.count, sizeof(*distances.items), compare_times);
		*ret_median_ns = distances.items[(distances.count - 1) / 2];
	}
	array_done(&distances);
	return r;
}

static int end_samples(struct gpu_samples *samples, struct gpu_samples_place *place)
{
	struct gpu_sample *items;
	int64_t median_ns, before_ns = 0;
	int r;

	if (place->count < 2) {
		place->count = 0;
		return 0;
	}
	items = &samples->items.items[place->first];
	r = find_median(items, place->count, &median_ns);
	for (size_t i = 0; r == 0 && i < place->count; i++) {
		int64_t held_ns = median_ns;

		if (i + 1 < place->count) {
			held_ns = between_ns(items[i].start_ns, items[i + 1].start_ns);
			if (held_ns > median_ns && held_ns - median_ns > median_ns)
				held_ns = median_ns;
		}
		items[i].end_ns = MAX(trace_add_ns(items[i].start_ns, held_ns), items[i].start_ns);
		items[i].before_ns = before_ns;
		before_ns = trace_add_ns(before_ns, between_ns(items[i].start_ns, items[i].end_ns));
	}
	return r;
}

int gpu_samples_init(struct gpu_samples *samples, const struct trace_view *view)
{
	struct gathering gathering = {.samples = samples, .view = view};
	int r;

	*samples = (struct gpu_samples){0};
	r = gather(&gathering);
	if (r == 0 && gathering.values.count) {
		sort_unless_sorted(gathering.values.items, gathering.values.count,
			sizeof(*gathering.values.items), compare_values);
		sort_unless_sorted(samples->samplers.items, samples->samplers.count,
			sizeof(*samples->samplers.items), compare_samplers);
		r = make_samples(&gathering);
		array_foreach (&samples->devices, place)
			r = r < 0 ? r : end_samples(samples, place);
		array_foreach (&samples->devices, place)
			samples->count += place->count;
	}
	array_done(&gathering.values);
	intern_done(&gathering.samplers);
	map_u64_done(&gathering.devices);
	if (r < 0)
		gpu_samples_done(samples);
	return r;
}

void gpu_samples_done(struct gpu_samples *samples)
{
	array_done(&samples->items);
	array_done(&samples->devices);
	array_done(&samples->samplers);
}

/* ---- sums ---- */

static int64_t held_ns(const struct gpu_sample *sample)
{
	return between_ns(sample->start_ns, sample->end_ns);
}

void gpu_cursor_init(struct gpu_cursor *cursor, const struct gpu_samples *samples, uint32_t device)
{
	*cursor = (struct gpu_cursor){0};
	if (device >= samples->devices.count || !samples->devices.items[device].count)
		return;
	cursor->count = samples->devices.items[device].count;
	cursor->items = &samples->items.items[samples->devices.items[device].first];
	cursor->total_ns = trace_add_ns(cursor->items[cursor->count - 1].before_ns,
		held_ns(&cursor->items[cursor->count - 1]));
}

static void add_held(
	const struct gpu_sample *sample, int64_t time_ns, double *sums, int64_t *weights)
{
	for (unsigned i = 0; i < WIRE_PM_MAX; i++) {
		if (isnan(sample->values[i]))
			continue;
		sums[i] += sample->values[i] * (double)time_ns;
		weights[i] = trace_add_ns(weights[i], time_ns);
	}
}

void gpu_cursor_move(struct gpu_cursor *cursor, int64_t time_ns)
{
	for (; cursor->at < cursor->count && cursor->items[cursor->at].end_ns <= time_ns;
		cursor->at++)
		add_held(&cursor->items[cursor->at], held_ns(&cursor->items[cursor->at]),
			cursor->sums, cursor->weights_ns);
}

/* Of the sample that has not ended. */
static int64_t begun_ns(const struct gpu_cursor *cursor, int64_t time_ns)
{
	return cursor->at < cursor->count ? between_ns(cursor->items[cursor->at].start_ns, time_ns)
					  : 0;
}

int64_t gpu_cursor_before_ns(const struct gpu_cursor *cursor, size_t sample)
{
	return sample < cursor->count ? cursor->items[sample].before_ns : cursor->total_ns;
}

int64_t gpu_cursor_covered_ns(const struct gpu_cursor *cursor, int64_t time_ns)
{
	return trace_add_ns(gpu_cursor_before_ns(cursor, cursor->at), begun_ns(cursor, time_ns));
}

struct gpu_sums gpu_cursor_sums(const struct gpu_cursor *cursor, int64_t time_ns)
{
	int64_t begun = begun_ns(cursor, time_ns);
	struct gpu_sums sums = {
		.covered_ns = gpu_cursor_covered_ns(cursor, time_ns),
		.first = cursor->at,
		.past = cursor->at + (begun > 0),
	};

	memcpy(sums.sums, cursor->sums, sizeof(sums.sums));
	memcpy(sums.weights_ns, cursor->weights_ns, sizeof(sums.weights_ns));
	if (begun)
		add_held(&cursor->items[cursor->at], begun, sums.sums, sums.weights_ns);
	return sums;
}
