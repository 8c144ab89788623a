/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_capture_state.h"

#include <errno.h>
#include <stdlib.h>

#include "model/nvtx_operator.h"
#include "model/trace_calls.h"

static int fill_annotation(struct capture_rows *rows, uint32_t process, uint32_t thread,
	uint64_t start_ns, uint64_t end_ns, struct trace_event *out)
{
	*out = (struct trace_event){
		.start_ns = (int64_t)(start_ns - rows->origin_ns),
		.duration_ns = (int64_t)(end_ns - start_ns),
		.external_id = TRACE_NO_ID,
		.category = TRACE_USER_ANNOTATION,
		.category_name = rows->annotation,
		.detail = MODEL_NONE,
	};
	return capture_rows_thread(rows, process, thread, &out->track);
}

int capture_rows_add_annotation(struct capture_rows *rows, uint32_t process, uint32_t thread,
	const char *name, uint64_t start_ns, uint64_t end_ns)
{
	struct trace_event event;
	int r = fill_annotation(rows, process, thread, start_ns, end_ns, &event);

	r = r ?: capture_rows_text(rows->trace, name, &event.name);
	return r ?: capture_rows_add(rows, &event);
}

/* ---- ranges ---- */

static int add_range(struct capture_rows *rows, const struct model_range *range, bool is_shown)
{
	struct nvtx_operator marked;
	struct trace_event event;
	int r = fill_annotation(
		rows, range->process, range->thread, range->start_ns, range->end_ns, &event);

	event.is_capture = !is_shown;
	rows->trace->capture_rows += !is_shown;
	if (range->is_mark)
		event.duration_ns = TRACE_NO_DURATION;
	if (!range->is_mark && nvtx_operator_read(range->name, &marked)) {
		event.category_name = rows->operator;
		r = r ?: nvtx_operator_set(rows->trace, range->name, &marked, &event);
	} else {
		r = r ?: capture_rows_text(rows->trace, range->name, &event.name);
	}
	return r ?: capture_rows_add(rows, &event);
}

int capture_rows_add_ranges(struct capture_rows *rows)
{
	const struct model *model = rows->model;
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->ranges.count; i++)
		r = add_range(rows, &model->ranges.items[i], true);
	for (size_t i = 0; r == 0 && i < model->capture_ranges.count; i++) {
		if (model->capture_ranges.items[i].is_elsewhere)
			r = add_range(rows, &model->capture_ranges.items[i], false);
	}
	return r;
}

/* ---- calls that captured ---- */

/* `work`: one of its nodes. */
static int add_captured(struct capture_rows *rows, const struct model_device_work *work)
{
	const struct model_captured_call *call =
		&rows->model->captured_calls.items[work->captured_call];
	struct trace *trace = rows->trace;
	struct capture_row_call row = {
		.process = call->process,
		.thread = call->thread,
		.stack = work->capture_known ? work->stack : MODEL_NONE,
		.name = trace_captured_call(work, call->kind),
		.start_ns = call->start_ns,
		.end_ns = call->end_ns,
	};
	int r = capture_rows_correlation(rows, call->process, call->correlation, &row.correlation);

	r = r ?: capture_rows_add_call(rows, &row);
	if (r < 0)
		return r;
	trace->events.items[trace->events.count - 1].is_capture = call->is_elsewhere;
	trace->capture_rows += call->is_elsewhere;
	rows->captured[work->captured_call] = (uint32_t)trace->events.count;
	return 0;
}

int capture_rows_add_captured(struct capture_rows *rows)
{
	const struct model *model = rows->model;
	int r = 0;

	rows->captured = calloc(model->captured_calls.count + 1, sizeof(*rows->captured));
	if (!rows->captured)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < model->device_works.count; i++) {
		const struct model_device_work *work = &model->device_works.items[i];

		if (work->capture == MODEL_CAPTURE_KNOWN && !rows->captured[work->captured_call])
			r = add_captured(rows, work);
	}
	return r;
}
