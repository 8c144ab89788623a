/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/escape.h"
#include "base/text.h"
#include "model/format.h"
#include "model/trace_capture.h"
#include "report/view.h"

void report_heading(const struct report_view *view, const char *text)
{
	strbuf_addf(view->out, "\n%s%s%s\n", terminal_bold(&view->terminal), text,
		terminal_plain(&view->terminal));
}

void report_paragraph(const struct report_view *view, const char *text, size_t indent)
{
	_cleanup_strbuf_ struct strbuf plain = {0};

	escape_plain(&plain, text);
	text_wrap(view->out, strbuf_cstr(&plain), 0, indent, view->terminal.width);
}

/* ---- why there is nothing ---- */

/* It is recorded of programs that sonde starts: their launches are what libraries in them see. */
const char *report_why_no_device_work(const struct model *model)
{
	const struct model_session *session = &model->session;

	if (model_is_foreign(model))
		return "There is no device work: no kernel, copy or fill of a GPU is in the trace.";
	if (session->present && session->cpu_count && !*session->command_line)
		return "Device work was not recorded: sonde attached to what ran already, and "
		       "records device work of programs that it starts (sonde record -- COMMAND).";
	if (session->present && strcmp(session->launch_stacks, "off") == 0)
		return "Device work was not recorded: the recording was made with --cpu-only, or "
		       "no "
		       "process used CUDA or OpenCL.";
	return "Device work was not recorded: no process that was recorded used CUDA, or an OpenCL "
	       "loader with layers; set-user-ID programs do not let themselves be recorded.";
}

bool report_has_device_work(const struct model *model)
{
	return model->device_works.count || model->launches.launches;
}

bool report_has_waiting(const struct model *model)
{
	array_foreach (&model->samples, sample) {
		if (sample->wait != WIRE_WAIT_NONE)
			return true;
	}
	return false;
}

const char *report_why_no_samples(const struct report_view *view)
{
	const struct model *model = view->model;

	if ((view->weight == MODEL_WEIGHT_GPU || view->weight == MODEL_WEIGHT_GPU_IDLE) &&
		!model->device_works.count)
		return report_why_no_device_work(model);
	if (view->weight == MODEL_WEIGHT_WAIT && !report_has_waiting(model))
		return "Waiting was not recorded: record with --wait sample.";
	array_foreach (&model->samples, sample) {
		if (model_sample_counts(sample, MODEL_WEIGHT_CPU))
			return "No samples are left: widen the filters.";
	}
	return "There are no samples: nothing ran on a CPU while it was recorded, or the recording "
	       "was cut off before its first flush.";
}

int report_none(const struct report_view *view, const char *why)
{
	report_paragraph(view,
		view->model->is_narrowed ? "Nothing of this is left: widen the filters." : why, 0);
	return 0;
}
