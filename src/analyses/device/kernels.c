/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/kernels.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One view, while its rows are added. */
struct adding {
	struct kernels *kernels;
	const struct trace_view *view;
	uint32_t devices; /* that are distinguished */
	/* By name, kind and device: the row, + 1; 0: not asked for yet. */
	uint32_t *known;
};

static int find_row(const struct adding *adding, uint32_t name, enum trace_kind kind,
	uint32_t device, uint32_t *ret_row)
{
	struct kernels *kernels = adding->kernels;
	const char *text = trace_text(adding->view->trace, name);
	uint32_t *known =
		&adding->known[((size_t)name * TRACE_KIND_MAX + kind) * adding->devices + device];
	_cleanup_strbuf_ struct strbuf key = {0};
	int r;

	*ret_row = *known - 1;
	if (*known)
		return 0;
	strbuf_addf(&key, "%d %u %s", kind, device, text);
	r = strbuf_status(&key);
	if (r == 0)
		r = intern_add(&kernels->keys, key.data, key.length, ret_row);
	if (r > 0)
		r = array_append(&kernels->rows, (struct kernel_row){
							 .name = text,
							 .kind = kind,
							 .device = device,
							 .least_ns = INT64_MAX,
							 .most_ns = INT64_MIN,
							 .least_total_ns = INT64_MAX,
							 .most_total_ns = INT64_MIN,
						 });
	*known = *ret_row + 1;
	return r;
}

/* A running mean and, until the end, the sum of squares of what is apart from it (Welford). */
static int add_duration(struct kernels *kernels, uint32_t index, int64_t duration_ns)
{
	struct kernel_row *row = &kernels->rows.items[index];
	double apart = (double)duration_ns - row->mean_ns;

	row->count++;
	row->total_ns += duration_ns;
	row->least_ns = MIN(row->least_ns, duration_ns);
	row->most_ns = MAX(row->most_ns, duration_ns);
	row->mean_ns += apart / (double)row->count;
	row->deviation_ns += apart * ((double)duration_ns - row->mean_ns);
	row->rank_count++;
	row->rank_total_ns += duration_ns;
	kernels->total_ns += duration_ns;
	return medians_add(&kernels->durations, index, duration_ns);
}

static bool is_same_configuration(const struct trace_work *a, const struct trace_work *b)
{
	return memcmp(a->block, b->block, sizeof(a->block)) == 0 && a->registers == b->registers &&
	       a->shared_bytes == b->shared_bytes;
}

/* Runs of one kernel may differ: the longest stands for them. */
static void take_configuration(
	struct kernel_row *row, const struct trace_work *work, int64_t duration_ns)
{
	if (row->configuration && !is_same_configuration(row->configuration, work))
		row->configurations_differ = true;
	if (row->configuration && duration_ns <= row->configuration_ns)
		return;
	row->configuration = work;
	row->configuration_ns = duration_ns;
}

static void take_launch(
	struct kernel_row *row, const struct model_device_work *recorded, int64_t duration_ns)
{
	if (!recorded)
		return;
	if (recorded->submit_ns) {
		row->queue_count++;
		row->queue_total_ns += (int64_t)(recorded->start_ns -
						 MIN(recorded->submit_ns, recorded->start_ns));
	}
	if (!recorded->has_priority)
		return;
	row->priorities_differ = row->priorities_differ ||
				 (row->has_priority && row->priority != recorded->priority);
	if (row->has_priority && duration_ns <= row->priority_ns)
		return;
	row->has_priority = true;
	row->priority = recorded->priority;
	row->priority_ns = duration_ns;
}

static int add_work(const struct adding *adding, const struct trace_view_work *work)
{
	const struct trace_event *event = &adding->view->trace->events.items[work->row];
	const struct trace_work *detail = trace_work(adding->view->trace, event);
	uint32_t device = adding->view->streams.items[work->stream].device, index;
	int r = find_row(adding, event->name, (enum trace_kind)work->kind,
		adding->devices > 1 ? device : 0, &index);
	struct kernel_row *row;

	if (r < 0)
		return r;
	row = &adding->kernels->rows.items[index];
	if (!row->count)
		row->evidence = (enum communication_evidence)work->communication;
	if (event->category == TRACE_KERNEL && detail && detail->block[0] &&
		detail->context != TRACE_NO_NUMBER)
		take_configuration(row, detail, work->end_ns - work->start_ns);
	if (detail)
		take_launch(row, trace_recorded_work(adding->view->trace, detail),
			work->end_ns - work->start_ns);
	return add_duration(adding->kernels, index, work->end_ns - work->start_ns);
}

static int add_works(const struct adding *adding)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < adding->view->works.count; i++) {
		if (adding->view->works.items[i].kind != TRACE_OTHER_KIND)
			r = add_work(adding, &adding->view->works.items[i]);
	}
	return r;
}

static int add_annotations(const struct adding *adding)
{
	const struct trace_view *view = adding->view;
	uint32_t index;
	int r = 0;

	for (size_t i = 0; r == 0 && i < view->trace->events.count; i++) {
		const struct trace_event *event = &view->trace->events.items[i];

		if (event->category != TRACE_GPU_ANNOTATION ||
			event->duration_ns == TRACE_NO_DURATION || !trace_view_has(view, event))
			continue;
		r = find_row(adding, event->name, TRACE_OTHER_KIND, 0, &index);
		if (r == 0)
			r = add_duration(adding->kernels, index,
				trace_view_end_ns(view, event) - trace_view_start_ns(view, event));
	}
	return r;
}

static void end_rank(struct kernels *kernels, uint32_t rank)
{
	array_foreach (&kernels->rows, row) {
		if (!row->rank_count)
			continue;
		row->ranks++;
		if (row->rank_total_ns < row->least_total_ns) {
			row->least_total_ns = row->rank_total_ns;
			row->least_rank = rank;
		}
		if (row->rank_total_ns > row->most_total_ns) {
			row->most_total_ns = row->rank_total_ns;
			row->most_rank = rank;
		}
		row->rank_total_ns = 0;
		row->rank_count = 0;
	}
}

static int compare_rows(const void *left, const void *right)
{
	const struct kernel_row *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return order ? order : a->device < b->device ? -1 : a->device > b->device;
}

static int finish(struct kernels *kernels, size_t count)
{
	int r = medians_finish(&kernels->durations);

	for (uint32_t i = 0; i < kernels->rows.count; i++) {
		struct kernel_row *row = &kernels->rows.items[i];

		row->median_ns = medians_of(&kernels->durations, i);
		row->mean_ns = (double)row->total_ns / (double)row->count;
		row->deviation_ns =
			row->count > 1 ? sqrt(row->deviation_ns / (double)(row->count - 1)) : 0;
		if (row->ranks < count)
			row->least_total_ns = 0;
	}
	if (kernels->rows.count)
		qsort(kernels->rows.items, kernels->rows.count, sizeof(*kernels->rows.items),
			compare_rows);
	return r;
}

static int add_views(struct kernels *kernels, const struct trace_view *views, size_t count,
	int (*add)(const struct adding *adding))
{
	int r = 0;

	*kernels = (struct kernels){0};
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct adding adding = {
			.kernels = kernels,
			.view = &views[i],
			.devices = count > 1 ? 1 : MAX(1U, (uint32_t)views[i].devices.count),
		};
		size_t names = views[i].trace->strings.entries.count + 1;

		adding.known =
			calloc(names * TRACE_KIND_MAX * adding.devices, sizeof(*adding.known));
		r = adding.known ? add(&adding) : -ENOMEM;
		free(adding.known);
		end_rank(kernels, views[i].rank);
	}
	if (r == 0)
		r = finish(kernels, count);
	if (r < 0)
		kernels_done(kernels);
	return r;
}

int kernels_init(struct kernels *kernels, const struct trace_view *views, size_t count)
{
	return add_views(kernels, views, count, add_works);
}

int kernels_of_annotations(struct kernels *kernels, const struct trace_view *views, size_t count)
{
	return add_views(kernels, views, count, add_annotations);
}

void kernels_done(struct kernels *kernels)
{
	array_done(&kernels->rows);
	intern_done(&kernels->keys);
	medians_done(&kernels->durations);
}
