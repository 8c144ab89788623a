/* SPDX-License-Identifier: Apache-2.0 */
/* What the report says of CUDA beside the device work itself: its cost, and what ran in graphs. */
#include <errno.h>

#include "analyses/device/device_work.h"
#include "model/format.h"
#include "report/view.h"

static void add_launch_calls(const struct report_view *view, const struct device_work *work)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "Calls that launched it took ");
	format_duration(&text, work->launch_call_ns);
	strbuf_add(&text, " in ");
	format_count(&text, work->launch_calls);
	strbuf_add(&text, work->launch_calls == 1 ? " call" : " calls");
	if (work->overhead.count) {
		strbuf_add(&text, "; CUPTI's and the driver's overhead, as CUPTI tells it: ");
		format_duration(&text, work->overhead.total_ns);
	}
	strbuf_add_char(&text, '.');
	report_paragraph(view, strbuf_cstr(&text), 2);
}

static void add_graphs(const struct report_view *view, const struct device_work *work)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!work->replayed)
		return;
	format_count(&text, work->replayed);
	strbuf_add(&text, " of it ran in CUDA graphs, charged to where they were captured");
	if (work->replayed_without_capture) {
		strbuf_add(&text, ", but ");
		format_count(&text, work->replayed_without_capture);
		strbuf_add(&text, ", whose capture has no stack, to where they were launched");
	}
	strbuf_add(&text, ": sonde report --by graph.");
	report_paragraph(view, strbuf_cstr(&text), 2);
}

void report_cuda(const struct report_view *view, const struct device_work *work)
{
	if (!view->model->gpus.count && !view->model->device_notes.count)
		return;
	if (work->launch_calls)
		add_launch_calls(view, work);
	add_graphs(view, work);
}
