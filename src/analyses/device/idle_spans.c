/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/idle_spans.h"

#include "analyses/device/idle.h"
#include "model/trace_capture.h"

static int add_spans(struct weight_spans *spans, const struct trace_view *view)
{
	const struct trace *trace = view->trace;
	_cleanup_device_idle_ struct device_idle idle = {0};
	int r = device_idle_init(&idle, view);

	for (size_t i = 0; r == 0 && i < idle.gaps.count; i++) {
		const struct device_idle_gap *gap = &idle.gaps.items[i];
		const struct trace_event *next =
			&trace->events.items[view->works.items[gap->next].row];
		const struct model_device_work *work =
			&trace->recorded->device_works.items[trace_work(trace, next)->recorded - 1];

		if (idle.places.items[gap->place].stream != MODEL_NONE)
			continue;
		r = array_append(&spans->items,
			(struct model_span){
				.start_ns = trace->recorded_from_ns + (uint64_t)gap->start_ns,
				.end_ns = trace->recorded_from_ns + (uint64_t)gap->end_ns,
				.process = work->process,
				.stack = gap->stack,
				.thread = work->thread,
				.leaf = device_idle_cause_leaf(gap->cause),
			});
	}
	return r;
}

int idle_spans_init(struct weight_spans *spans, const struct model *model)
{
	const struct trace_view_options options = {0};
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_trace_ struct trace *trace = NULL;
	int r;

	*spans = (struct weight_spans){0};
	if (!model->device_works.count || model_is_foreign(model))
		return 0;
	r = trace_of_recording(&trace, model);
	if (r < 0)
		return r;
	r = trace_view_init(&view, trace, 0, &options);
	if (r == 0)
		r = add_spans(spans, &view);
	if (r < 0)
		weight_spans_done(spans);
	return r;
}
