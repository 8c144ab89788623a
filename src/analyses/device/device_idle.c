/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/device_idle.h"

#include <errno.h>
#include <stdlib.h>

#include "analyses/cpu/charge.h"
#include "analyses/device/idle_limits.h"
#include "base/map.h"
#include "model/windows.h"

/* Its name, and the name as a frame. */
#define NAME(name)                                                                                 \
	{                                                                                          \
		name, "[idle: " name "]"                                                           \
	}

static const char *const cause_names[DEVICE_IDLE_MAX][2] = {
	[DEVICE_IDLE_RUNNING] = NAME("running"),
	[DEVICE_IDLE_GIL] = NAME("gil"),
	[DEVICE_IDLE_LOCK] = NAME("lock"),
	[DEVICE_IDLE_SLEEP] = NAME("sleep"),
	[DEVICE_IDLE_DISK] = NAME("disk"),
	[DEVICE_IDLE_CHANNEL] = NAME("pipe_socket_poll"),
	[DEVICE_IDLE_CPU] = NAME("cpu"),
	[DEVICE_IDLE_OTHER] = NAME("other"),
	[DEVICE_IDLE_DEVICE] = NAME("device"),
	[DEVICE_IDLE_COPY] = NAME("blocking_copy"),
	[DEVICE_IDLE_QUEUED] = NAME("queued"),
	[DEVICE_IDLE_BETWEEN] = NAME("between_kernels"),
	[DEVICE_IDLE_UNKNOWN] = NAME("unknown"),
};

const char *device_idle_cause_name(enum device_idle_cause cause)
{
	return cause < DEVICE_IDLE_MAX ? cause_names[cause][0] : NULL;
}

const char *device_idle_cause_leaf(enum device_idle_cause cause)
{
	return cause < DEVICE_IDLE_MAX ? cause_names[cause][1] : NULL;
}

const char *device_idle_cause_meaning(enum device_idle_cause cause)
{
	static const char *const meanings[DEVICE_IDLE_MAX] = {
		[DEVICE_IDLE_RUNNING] = "running code",
		[DEVICE_IDLE_GIL] = "Python's interpreter lock",
		[DEVICE_IDLE_LOCK] = "a lock or condition",
		[DEVICE_IDLE_SLEEP] = "sleep",
		[DEVICE_IDLE_DISK] = "a file or disk",
		[DEVICE_IDLE_CHANNEL] = "a pipe, socket or poll",
		[DEVICE_IDLE_CPU] = "a CPU: another thread ran",
		[DEVICE_IDLE_OTHER] = "another wait",
		[DEVICE_IDLE_DEVICE] = "waiting for the device",
		[DEVICE_IDLE_COPY] = "a copy that blocks",
		[DEVICE_IDLE_QUEUED] = "queued, not started",
		[DEVICE_IDLE_BETWEEN] = "between kernels",
		[DEVICE_IDLE_UNKNOWN] = "[unknown: no sample]",
	};

	return cause < DEVICE_IDLE_MAX ? meanings[cause] : NULL;
}

static enum device_idle_cause cause_of_wait(enum wire_wait wait)
{
	static const enum device_idle_cause causes[WIRE_WAIT_MAX] = {
		[WIRE_WAIT_NONE] = DEVICE_IDLE_RUNNING,
		[WIRE_WAIT_CPU] = DEVICE_IDLE_CPU,
		[WIRE_WAIT_LOCK] = DEVICE_IDLE_LOCK,
		[WIRE_WAIT_GIL] = DEVICE_IDLE_GIL,
		[WIRE_WAIT_POLL] = DEVICE_IDLE_CHANNEL,
		[WIRE_WAIT_SLEEP] = DEVICE_IDLE_SLEEP,
		[WIRE_WAIT_PIPE] = DEVICE_IDLE_CHANNEL,
		[WIRE_WAIT_SOCKET] = DEVICE_IDLE_CHANNEL,
		[WIRE_WAIT_DISK] = DEVICE_IDLE_DISK,
		[WIRE_WAIT_FAULT] = DEVICE_IDLE_OTHER,
		[WIRE_WAIT_CHILD] = DEVICE_IDLE_OTHER,
		[WIRE_WAIT_STOPPED] = DEVICE_IDLE_OTHER,
		[WIRE_WAIT_OTHER] = DEVICE_IDLE_OTHER,
		[WIRE_WAIT_UNSEEN] = DEVICE_IDLE_OTHER,
		[WIRE_WAIT_FILE_LOCK] = DEVICE_IDLE_LOCK,
		[WIRE_WAIT_UNKNOWN] = DEVICE_IDLE_OTHER,
	};

	return wait < WIRE_WAIT_MAX ? causes[wait] : DEVICE_IDLE_OTHER;
}

/* ---- what threads did, and when ---- */

/* What covers a moment, first come first: a wait is measured or looked at, a running sample stands
 * for its surroundings. Calls that wait for devices lie over both. */
enum layer {
	LAYER_WAITING,
	LAYER_RUNNING,
	LAYER_SAMPLES_MAX,
	LAYER_CALLS = LAYER_SAMPLES_MAX,
	LAYER_MAX,
};

struct interval {
	uint64_t start_ns, end_ns;
	uint32_t thread;
	uint32_t sample; /* MODEL_NONE: a call */
};

/* Of all threads; sorted by thread and time, those of one thread disjoint. */
struct history {
	ARRAY_OF(struct interval) layers[LAYER_MAX];
};

static int compare_intervals(const void *left, const void *right)
{
	const struct interval *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static int add_sample(struct history *history, const struct model *model, uint32_t index)
{
	const struct model_sample *sample = &model->samples.items[index];
	bool waits = sample->wait != WIRE_WAIT_NONE;
	uint64_t length_ns = model_sample_time_ns(model, sample);
	uint64_t before_ns = MIN(waits ? length_ns : length_ns / 2, sample->time_ns);
	struct interval interval = {
		.start_ns = sample->time_ns - before_ns,
		.end_ns = waits ? sample->time_ns : sample->time_ns - before_ns + length_ns,
		.thread = sample->thread,
		.sample = index,
	};

	if (sample->wait_count) /* a sum of many: when they were is not known */
		return 0;
	return array_append(&history->layers[waits ? LAYER_WAITING : LAYER_RUNNING], interval);
}

static void make_disjoint(struct interval *intervals, size_t count)
{
	if (count)
		qsort(intervals, count, sizeof(*intervals), compare_intervals);
	for (size_t i = 1; i < count; i++) {
		if (intervals[i].thread != intervals[i - 1].thread)
			continue;
		intervals[i].start_ns = MAX(intervals[i].start_ns, intervals[i - 1].end_ns);
		intervals[i].end_ns = MAX(intervals[i].end_ns, intervals[i].start_ns);
	}
}

static int history_init(struct history *history, const struct model *model)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < model->samples.count; i++)
		r = add_sample(history, model, i);
	for (size_t i = 0; r == 0 && i < model->device_waits.count; i++) {
		const struct model_device_wait *wait = &model->device_waits.items[i];

		r = array_append(&history->layers[LAYER_CALLS], (struct interval){
									.start_ns = wait->start_ns,
									.end_ns = wait->end_ns,
									.thread = wait->thread,
									.sample = MODEL_NONE,
								});
	}
	for (int i = 0; i < LAYER_MAX; i++)
		make_disjoint(history->layers[i].items, history->layers[i].count);
	return r;
}

static void history_done(struct history *history)
{
	for (int i = 0; i < LAYER_MAX; i++)
		array_done(&history->layers[i]);
}

/* The interval of the thread that covers `at_ns`, or NULL; *until_ns is lowered to where that
 * changes. */
static const struct interval *find_interval(const struct history *history, enum layer layer,
	uint32_t thread, uint64_t at_ns, uint64_t *until_ns)
{
	const struct interval *items = history->layers[layer].items;
	size_t first = 0, last = history->layers[layer].count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (items[middle].thread < thread ||
			(items[middle].thread == thread && items[middle].end_ns <= at_ns))
			first = middle + 1;
		else
			last = middle;
	}
	if (first == history->layers[layer].count || items[first].thread != thread)
		return NULL;
	if (items[first].start_ns > at_ns) {
		*until_ns = MIN(*until_ns, items[first].start_ns);
		return NULL;
	}
	*until_ns = MIN(*until_ns, items[first].end_ns);
	return &items[first];
}

/* ---- gaps ---- */

static int append_span(struct device_idle *idle, const struct device_idle_span *span)
{
	struct device_idle_span *last =
		idle->spans.count ? &idle->spans.items[idle->spans.count - 1] : NULL;

	if (last && last->next == span->next && last->cause == span->cause &&
		last->sample == span->sample && last->end_ns == span->start_ns) {
		last->end_ns = span->end_ns;
		return 0;
	}
	return array_append(&idle->spans, *span);
}

/* A sample that was looked at outside of a call cannot tell where the call is. */
static bool was_taken_in(const struct model_sample *sample, const struct interval *call)
{
	return sample->time_ns >= call->start_ns && sample->time_ns <= call->end_ns;
}

/* What the thread did from the span's start on, up to a change: sets the span's end and cause. */
static void look_at_thread(const struct history *history, const struct model *model,
	uint64_t end_ns, struct device_idle_span *span)
{
	const struct interval *found = NULL, *call;

	span->end_ns = end_ns;
	span->sample = span->stack = MODEL_NONE;
	span->cause = DEVICE_IDLE_UNKNOWN;
	call = find_interval(history, LAYER_CALLS, span->thread, span->start_ns, &span->end_ns);
	for (int i = 0; !found && i < LAYER_SAMPLES_MAX; i++)
		found = find_interval(
			history, (enum layer)i, span->thread, span->start_ns, &span->end_ns);
	if (call)
		span->cause = DEVICE_IDLE_DEVICE;
	if (found && (!call || was_taken_in(&model->samples.items[found->sample], call))) {
		const struct model_sample *sample = &model->samples.items[found->sample];

		span->sample = found->sample;
		span->stack = sample->stack;
		span->cause = call ? DEVICE_IDLE_DEVICE : cause_of_wait(sample->wait);
	}
}

static bool was_launched_before(const struct model_device_work *work, uint64_t time_ns)
{
	uint64_t launch_ns = work->launch_ns ? work->launch_ns : work->queued_ns;

	return launch_ns && launch_ns <= time_ns;
}

/* When the call returned, of a copy or fill whose call took so long that it blocked; else 0. */
static uint64_t end_of_blocking_copy(const struct model_device_work *work)
{
	bool blocks = work->kind != WIRE_DEVICE_KERNEL && work->kind != WIRE_DEVICE_GRAPH &&
		      work->launch_ns && work->launch_duration_ns >= IDLE_BLOCKING_COPY_NS;

	return blocks ? work->launch_ns + work->launch_duration_ns : 0;
}

/* Up to `end_ns`, with a cause that rests on no sample. */
static int add_launched(struct device_idle *idle, const struct model_device_work *next,
	enum device_idle_cause cause, uint64_t end_ns, struct device_idle_span *span)
{
	int r;

	if (span->start_ns >= end_ns)
		return 0;
	span->end_ns = end_ns;
	span->sample = MODEL_NONE;
	span->stack = next->launch_stack;
	span->cause = cause;
	r = append_span(idle, span);
	span->start_ns = end_ns;
	return r;
}

/* The gap before `next`, which its start ends. */
static int add_gap(struct device_idle *idle, const struct history *history,
	const struct model *model, const struct model_device_work *next,
	struct device_idle_span *span)
{
	uint64_t end_ns = next->start_ns, queued_ns = end_ns;
	uint64_t returned_ns = end_of_blocking_copy(next);
	int r = 0;

	if (end_ns - span->start_ns < IDLE_KERNEL_WAIT_NS &&
		was_launched_before(next, span->start_ns))
		return add_launched(idle, next, DEVICE_IDLE_BETWEEN, end_ns, span);
	if (next->queued_ns)
		queued_ns = MIN(MAX(next->queued_ns, span->start_ns), end_ns);
	if (returned_ns)
		queued_ns = MIN(queued_ns, MAX(next->launch_ns, span->start_ns));
	while (r == 0 && span->start_ns < queued_ns) {
		look_at_thread(history, model, queued_ns, span);
		r = append_span(idle, span);
		span->start_ns = span->end_ns;
	}
	r = r ?: add_launched(idle, next, DEVICE_IDLE_COPY, MIN(returned_ns, end_ns), span);
	return r ?: add_launched(idle, next, DEVICE_IDLE_QUEUED, end_ns, span);
}

static int find_device(struct device_idle *idle, struct intern *names,
	const struct model_device_work *work, uint32_t *ret_device)
{
	struct device_idle_device device = {.name = work->device, .end_ns = work->start_ns};
	int r = intern_add(names, &work->device, sizeof(work->device), ret_device);

	return r > 0 ? array_append(&idle->devices, device) : r;
}

/* In order of start: work that starts after all before it has ended ends a gap. */
static int add_work(struct device_idle *idle, const struct history *history,
	const struct model *model, uint32_t index, struct device_idle_span span)
{
	const struct model_device_work *work = &model->device_works.items[index];
	struct device_idle_device *device = &idle->devices.items[span.device];
	uint64_t busy_until_ns = device->end_ns;

	/* In another window it begins anew: what it did between them nobody knows. */
	if (work->start_ns > busy_until_ns &&
		!model_is_continuous(model, busy_until_ns, work->start_ns))
		busy_until_ns = work->start_ns;
	device->end_ns = MAX(work->end_ns, busy_until_ns);
	device->span_ns += device->end_ns - busy_until_ns;
	if (work->start_ns <= busy_until_ns)
		return 0;
	device->gaps++;
	span.start_ns = busy_until_ns;
	return add_gap(idle, history, model, work, &span);
}

static int find_gaps(
	struct device_idle *idle, const struct history *history, const struct model *model)
{
	struct intern names = {0};
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < model->device_works.count; i++) {
		const struct model_device_work *work = &model->device_works.items[i];
		struct device_idle_span span = {.next = i,
			.process = work->process,
			.thread = work->thread,
			.sample = MODEL_NONE};

		r = find_device(idle, &names, work, &span.device);
		r = r ?: add_work(idle, history, model, i, span);
	}
	intern_done(&names);
	return r;
}

/* ---- sums ---- */

struct sums {
	struct intern keys;        /* of rows */
	ARRAY_OF(uint32_t) in_gap; /* by row: the gap that it was seen in last, + 1 */
	struct map_u64 row_samples, device_samples; /* row or device << 32 | sample */
};

/* 1 when this pair is new, 0 when it was seen, -ENOMEM. */
static int see_pair(struct map_u64 *seen, uint32_t what, uint32_t sample)
{
	uint64_t key = (uint64_t)what << 32 | sample;

	if (sample == MODEL_NONE || map_u64_get(seen, key, NULL))
		return 0;
	return map_u64_set(seen, key, 1) < 0 ? -ENOMEM : 1;
}

static int find_row(struct device_idle *idle, struct sums *sums, const struct model *model,
	const struct device_idle_span *span, uint32_t *ret_row)
{
	struct device_idle_row row = {
		.device = span->device,
		.frame = charge_frame(model, span->stack),
		.cause = span->cause,
	};
	const struct charge_key key =
		charge_key(model, row.frame, (uint64_t)span->device << 32 | (uint64_t)span->cause);
	int r = intern_add(&sums->keys, &key, sizeof(key), ret_row);

	if (r > 0) {
		r = array_append(&idle->rows, row);
		r = r ?: array_append(&sums->in_gap, 0U);
	}
	return r;
}

static int add_span(struct device_idle *idle, struct sums *sums, const struct model *model,
	const struct device_idle_span *span)
{
	struct device_idle_device *device = &idle->devices.items[span->device];
	uint64_t time_ns = span->end_ns - span->start_ns;
	struct device_idle_row *row;
	uint32_t index = 0;
	int r = find_row(idle, sums, model, span, &index), of_row, of_device;

	if (r < 0)
		return r;
	of_row = see_pair(&sums->row_samples, index, span->sample);
	of_device = see_pair(&sums->device_samples, span->device, span->sample);
	if (of_row < 0 || of_device < 0)
		return -ENOMEM;
	row = &idle->rows.items[index];
	row->time_ns += time_ns;
	row->gaps += sums->in_gap.items[index] != span->next + 1;
	row->samples += (uint64_t)of_row;
	sums->in_gap.items[index] = span->next + 1;
	device->by_cause[span->cause] += time_ns;
	device->idle_ns += time_ns;
	device->samples += (uint64_t)of_device;
	return 0;
}

static int compare_rows(const void *left, const void *right)
{
	const struct device_idle_row *a = left, *b = right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	if (a->cause != b->cause)
		return a->cause < b->cause ? -1 : 1;
	return a->frame < b->frame ? -1 : a->frame > b->frame;
}

static bool is_blocked(const struct device_idle_span *span)
{
	return span->cause == DEVICE_IDLE_DEVICE || span->cause == DEVICE_IDLE_COPY;
}

/* Spans of one call follow one another; those of different gaps are different calls. */
static void find_longest_blocks(struct device_idle *idle)
{
	const struct device_idle_span *last = NULL;
	uint64_t block_ns = 0;

	array_foreach (&idle->devices, device)
		device->longest_block_stack = MODEL_NONE;
	array_foreach (&idle->spans, span) {
		struct device_idle_device *device = &idle->devices.items[span->device];

		if (!is_blocked(span)) {
			last = NULL;
			continue;
		}
		if (!last || last->next != span->next || last->cause != span->cause)
			block_ns = 0;
		last = span;
		block_ns += span->end_ns - span->start_ns;
		if (block_ns <= device->longest_block_ns)
			continue;
		device->longest_block_ns = block_ns;
		device->longest_block_stack = span->stack;
	}
}

static int sum_up(struct device_idle *idle, const struct model *model)
{
	struct sums sums = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < idle->spans.count; i++)
		r = add_span(idle, &sums, model, &idle->spans.items[i]);
	if (idle->rows.count)
		qsort(idle->rows.items, idle->rows.count, sizeof(*idle->rows.items), compare_rows);
	intern_done(&sums.keys);
	array_done(&sums.in_gap);
	map_u64_done(&sums.row_samples);
	map_u64_done(&sums.device_samples);
	return r;
}

int device_idle_init(struct device_idle *idle, const struct model *model)
{
	struct history history = {0};
	int r = 0;

	*idle = (struct device_idle){0};
	if (model->device_works.count)
		r = history_init(&history, model);
	r = r ?: find_gaps(idle, &history, model);
	r = r ?: sum_up(idle, model);
	find_longest_blocks(idle);
	history_done(&history);
	if (r < 0)
		device_idle_done(idle);
	return r;
}

void device_idle_done(struct device_idle *idle)
{
	array_done(&idle->devices);
	array_done(&idle->spans);
	array_done(&idle->rows);
}
