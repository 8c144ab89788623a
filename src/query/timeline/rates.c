/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks of rates, counted in spans of equal length: CPUs that samples ran on, the share of time in
 * which a device worked, tokens per second.
 */
#include <errno.h>
#include <stdlib.h>

#include "analyses/inference/inference.h"
#include "model/trace_capture.h"
#include "query/timeline/tracks.h"

#define BINS_MAX        1000
#define BIN_SHORTEST_NS 1000
/* Fewer samples of a CPU in a bin would look like a program that stops and goes. */
#define BIN_PERIODS 10
#define BIN_TOKENS  5

/* Sums over spans of time, from 0 on. */
struct bins {
	int64_t width_ns;
	size_t count;
	double *sums; /* one more than bins */
};

static int bins_init(struct bins *bins, int64_t end_ns, int64_t shortest_ns)
{
	bins->width_ns = MAX(end_ns / BINS_MAX, shortest_ns);
	bins->width_ns = MAX(bins->width_ns, BIN_SHORTEST_NS);
	bins->count = (size_t)(end_ns / bins->width_ns) + 1;
	bins->sums = calloc(bins->count + 1, sizeof(*bins->sums));
	return bins->sums ? 0 : -ENOMEM;
}

static void bins_done(struct bins *bins)
{
	free(bins->sums);
	bins->sums = NULL;
}

/* The length of the span, to each bin its part. */
static void bins_add_span(struct bins *bins, int64_t start_ns, int64_t end_ns)
{
	while (start_ns < end_ns) {
		size_t bin = MIN((size_t)(start_ns / bins->width_ns), bins->count);
		int64_t until_ns = bin == bins->count
					   ? end_ns
					   : MIN(end_ns, (int64_t)(bin + 1) * bins->width_ns);

		bins->sums[bin] += (double)(until_ns - start_ns);
		start_ns = until_ns;
	}
}

static void bins_add(struct bins *bins, int64_t time_ns, double amount)
{
	bins->sums[MIN((size_t)(time_ns / bins->width_ns), bins->count)] += amount;
}

/* As a counter that has a value from the start of each bin on. After all other tracks. */
static int add_rate(struct timeline *timeline, const struct bins *bins, uint32_t source,
	const char *name, double scale)
{
	struct timeline_track *track = timeline_add_counter(timeline, "rates", name, source);
	int r = track ? 0 : -ENOMEM;

	if (track) {
		track->process_sort = INT64_MAX;
		track->is_rate = true;
	}
	for (size_t i = 0; r == 0 && i < bins->count; i++)
		r = timeline_add_point(track, (int64_t)i * bins->width_ns,
			bins->sums[i] / (double)bins->width_ns * scale);
	return r < 0 ? r : timeline_add_point(track, (int64_t)bins->count * bins->width_ns, 0);
}

/* ---- CPUs ---- */

static int64_t end_of_samples(const struct timeline *timeline)
{
	int64_t end_ns = 0;

	array_foreach (&timeline->model->samples, sample)
		end_ns = MAX(end_ns, timeline_model_time(timeline, sample->time_ns));
	return end_ns;
}

/* A sample stands for the time before it, as in the tracks of samples. */
static int add_cpus(struct timeline *timeline)
{
	const struct model *model = timeline->model;
	_cleanup_(bins_done) struct bins bins = {0};
	bool is_found = false;
	int r;

	if (model_is_foreign(model) || !model_has_time(model))
		return 0;
	r = bins_init(&bins, end_of_samples(timeline),
		timeline_time((int64_t)MIN(model->session.period_ns, (uint64_t)INT64_MAX / 8), 0) *
			BIN_PERIODS);
	if (r < 0)
		return r;
	array_foreach (&model->samples, sample) {
		int64_t end_ns = timeline_model_time(timeline, sample->time_ns);
		int64_t length_ns = timeline_time(
			(int64_t)MIN(model_sample_time_ns(model, sample), (uint64_t)INT64_MAX), 0);

		if (sample->wait != WIRE_WAIT_NONE)
			continue;
		is_found = true;
		bins_add_span(&bins, MAX(0, end_ns - length_ns), end_ns);
	}
	return is_found ? add_rate(timeline, &bins, 0, "CPUs busy", 1) : 0;
}

/* ---- devices ---- */

/* A stream, while the streams of its device are gone through side by side. */
struct cursor {
	const struct trace_track *track;
	uint32_t next;
};

struct device {
	const struct timeline_source *source;
	ARRAY_OF(struct cursor) streams;
	int64_t end_ns;
};

/* The next work of a stream; NULL: it has no more. */
static const struct trace_event *next_work(const struct device *device, struct cursor *cursor)
{
	const struct trace *trace = device->source->trace;

	for (; cursor->next < cursor->track->count; cursor->next++) {
		const struct trace_event *event =
			&trace->events
				 .items[trace->rows.items[cursor->track->first + cursor->next]];

		if (trace_is_work(event))
			return event;
	}
	return NULL;
}

/* Of the work that begins first on any stream; NULL: there is no more. */
static const struct trace_event *take_work(struct device *device)
{
	const struct trace_event *first = NULL;
	struct cursor *from = NULL;

	array_foreach (&device->streams, cursor) {
		const struct trace_event *event = next_work(device, cursor);

		if (event && (!first || event->start_ns < first->start_ns)) {
			first = event;
			from = cursor;
		}
	}
	if (from)
		from->next++;
	return first;
}

static void span_of(const struct device *device, const struct trace_event *event,
	int64_t *ret_start_ns, int64_t *ret_end_ns)
{
	*ret_start_ns = timeline_time(event->start_ns, device->source->offset_ns);
	*ret_end_ns = timeline_time(trace_end_ns(event), device->source->offset_ns);
}

/* Work that runs side by side counts once. */
static void add_busy(struct device *device, struct bins *bins)
{
	const struct trace_event *event;
	int64_t busy_until_ns = 0;

	while ((event = take_work(device))) {
		int64_t start_ns, end_ns;

		span_of(device, event, &start_ns, &end_ns);
		bins_add_span(bins, MAX(start_ns, busy_until_ns), end_ns);
		busy_until_ns = MAX(busy_until_ns, end_ns);
	}
}

/* Streams of the same device and rank as the first one's. */
static int find_streams(
	const struct timeline *timeline, const struct timeline_track *first, struct device *device)
{
	int r = 0;

	device->source = &timeline->sources.items[first->source];
	array_foreach (&timeline->tracks, track) {
		const struct trace_track *stream;

		if (r < 0 || track->kind != TIMELINE_STREAM || track->source != first->source ||
			track->pid != first->pid || strcmp(track->process, first->process) != 0)
			continue;
		stream = &device->source->trace->tracks.items[track->trace_track];
		r = array_append(&device->streams, (struct cursor){.track = stream});
		for (uint32_t i = 0; i < stream->count; i++) {
			int64_t start_ns, end_ns;

			span_of(device,
				&device->source->trace->events.items
					 [device->source->trace->rows.items[stream->first + i]],
				&start_ns, &end_ns);
			device->end_ns = MAX(device->end_ns, end_ns);
		}
	}
	return r;
}

static int add_device(struct timeline *timeline, const struct timeline_track *first)
{
	_cleanup_(bins_done) struct bins bins = {0};
	struct device device = {0};
	int r = find_streams(timeline, first, &device);

	if (r == 0)
		r = bins_init(&bins, device.end_ns, 0);
	if (r == 0) {
		add_busy(&device, &bins);
		r = add_rate(timeline, &bins, first->source,
			timeline_text(timeline, "%s busy (%%)", first->process), 100);
	}
	array_done(&device.streams);
	return r;
}

static bool is_first_of_device(const struct timeline *timeline, size_t index)
{
	const struct timeline_track *self = &timeline->tracks.items[index];

	if (self->kind != TIMELINE_STREAM)
		return false;
	for (size_t i = 0; i < index; i++) {
		const struct timeline_track *track = &timeline->tracks.items[i];

		if (track->kind == TIMELINE_STREAM && track->source == self->source &&
			track->pid == self->pid && strcmp(track->process, self->process) == 0)
			return false;
	}
	return true;
}

/* ---- tokens ---- */

static int64_t end_of_tokens(const struct timeline *timeline, const struct inference *inference)
{
	int64_t end_ns = 0;

	array_foreach (&inference->requests, request)
		end_ns = MAX(end_ns, timeline_model_time(timeline, request->last_ns));
	return end_ns;
}

/* So long that some tokens come in each bin. */
static int64_t token_bin_ns(int64_t end_ns, const struct inference *inference)
{
	return MAX(100 * (int64_t)NS_PER_MS,
		end_ns / (int64_t)MIN(inference->output_tokens, (uint64_t)INT64_MAX) * BIN_TOKENS);
}

/* The tokens of a request that came together count as many as its chunks have on average. */
static void add_tokens_of(const struct timeline *timeline, const struct inference *inference,
	const struct inference_request *request, struct bins *bins)
{
	double each = (double)request->output_tokens / (double)(request->gap_count + 1);
	uint64_t at_ns = request->first_ns;

	if (!request->first_ns)
		return;
	bins_add(bins, timeline_model_time(timeline, at_ns), each);
	for (size_t i = 0; i < request->gap_count; i++) {
		at_ns += inference->gaps.items[request->first_gap + i];
		bins_add(bins, timeline_model_time(timeline, at_ns), each);
	}
}

static int add_tokens(struct timeline *timeline)
{
	_cleanup_inference_ struct inference inference = {0};
	_cleanup_(bins_done) struct bins bins = {0};
	int r = inference_init(&inference, timeline->model);
	int64_t end_ns;

	if (r < 0 || !inference.output_tokens)
		return r;
	end_ns = end_of_tokens(timeline, &inference);
	r = bins_init(&bins, end_ns, token_bin_ns(end_ns, &inference));
	if (r < 0)
		return r;
	array_foreach (&inference.requests, request)
		add_tokens_of(timeline, &inference, request, &bins);
	return add_rate(timeline, &bins, 0, "tokens per s", (double)NS_PER_S);
}

int timeline_add_rates(struct timeline *timeline)
{
	size_t count = timeline->tracks.count;
	int r = add_cpus(timeline);

	for (size_t i = 0; r == 0 && i < count; i++) {
		/* A copy: tracks are added. */
		struct timeline_track track = timeline->tracks.items[i];

		if (is_first_of_device(timeline, i))
			r = add_device(timeline, &track);
	}
	return r < 0 || model_is_foreign(timeline->model) ? r : add_tokens(timeline);
}
