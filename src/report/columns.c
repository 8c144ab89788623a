/* SPDX-License-Identifier: Apache-2.0 */
#include "report/columns.h"

static const struct report_column describe_columns[] = {
	{.key = "count", .kind = REPORT_COUNT},
	{.key = "mean", .kind = REPORT_NUMBER},
	{.key = "std", .kind = REPORT_NUMBER, .help = "of the sample; null of one value"},
	{.key = "min", .kind = REPORT_NUMBER},
	{.key = "p25", .kind = REPORT_NUMBER, .help = "quantiles are interpolated linearly"},
	{.key = "p50", .kind = REPORT_NUMBER},
	{.key = "p75", .kind = REPORT_NUMBER},
	{.key = "p90", .kind = REPORT_NUMBER},
	{.key = "p99", .kind = REPORT_NUMBER},
	{.key = "max", .kind = REPORT_NUMBER},
};
const struct report_shape columns_describe_shape = REPORT_SHAPE(describe_columns);

static const struct report_column communication_columns[] = {
	{.key = "known_by", .kind = REPORT_TEXT},
	{.key = "kernels", .kind = REPORT_COUNT},
};
const struct report_shape columns_communication_shape = REPORT_SHAPE(communication_columns);

void columns_add_number(struct result *result, int64_t number)
{
	if (number == TRACE_NO_NUMBER)
		result_null(result);
	else
		result_i64(result, number);
}

static void add_text(struct result *result, const struct strbuf *text)
{
	strbuf_inherit_status(&result->texts, text);
	result_text(result, strbuf_cstr(text));
}

void columns_name_device(const struct trace_report *report, const struct trace_view *view,
	uint32_t device, struct strbuf *out)
{
	bool is_known = report->count > 1 || view->trace->rank != MODEL_NONE;

	if (report->count > 1 || (view->devices.items[device].is_all && is_known)) {
		strbuf_addf(out, "rank %u", view->rank);
		if (view->devices.count < 2)
			return;
		strbuf_add_char(out, ' ');
	}
	trace_view_device_name(view, device, out);
}

void columns_add_device(struct result *result, const struct trace_report *report,
	const struct trace_view *view, uint32_t device)
{
	_cleanup_strbuf_ struct strbuf place = {0};

	columns_name_device(report, view, device, &place);
	add_text(result, &place);
	result_u64(result, view->rank);
	columns_add_number(result, view->devices.items[device].number);
	result_text(result, trace_device_name(view->trace, view->devices.items[device].number));
}

void columns_add_stream(struct result *result, const struct trace_report *report,
	const struct trace_view *view, uint32_t stream)
{
	_cleanup_strbuf_ struct strbuf name = {0};

	columns_add_device(result, report, view, view->streams.items[stream].device);
	trace_view_stream_name(view, stream, &name);
	add_text(result, &name);
	columns_add_number(result, view->streams.items[stream].number);
}

void columns_add_line(struct result *result, const struct model *model, uint32_t index)
{
	const struct model_frame *frame = index == MODEL_NONE ? NULL : &model->frames.items[index];

	if (frame && frame->line)
		result_textf(result, "%s:%u", frame->source_file, frame->line);
	else
		result_text(result, frame ? model_function_module(model, frame->function) : NULL);
}

void columns_add_frame(
	struct result *result, const struct model *model, uint32_t index, const char *why)
{
	_cleanup_strbuf_ struct strbuf name = {0};
	const struct model_frame *frame;

	if (index == MODEL_NONE) {
		result_text(result, why);
		for (int i = 0; i < 5; i++)
			result_null(result);
		return;
	}
	frame = &model->frames.items[index];
	columns_add_line(result, model, index);
	model_frame_name(model, index, &name);
	add_text(result, &name);
	result_text(result, model_function_name(model, frame->function));
	result_text(result, model_function_module(model, frame->function));
	result_text(result, frame->source_file);
	result_known(result, frame->line != 0, frame->line);
}

void columns_add_stack(struct result *result, const struct model *model, uint32_t index)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	const struct model_stack *stack;

	if (index == MODEL_NONE) {
		result_null(result);
		return;
	}
	stack = &model->stacks.items[index];
	for (uint32_t i = 0; i < stack->whole_count; i++) {
		if (i > 0)
			strbuf_add_char(&text, TRACE_STACK_SEPARATOR);
		model_frame_place(model, model->stack_frames.items[stack->first + i], &text);
	}
	add_text(result, &text);
}

void columns_add_describe(struct result *result, const struct trace_describe *describe)
{
	const double values[] = {describe->mean, describe->deviation, describe->least,
		describe->quarter, describe->median, describe->three_quarters, describe->p90,
		describe->p99, describe->most};

	result_open(result);
	result_u64(result, describe->count);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		result_number(result, values[i]);
	result_close(result);
}

void columns_add_communication(
	struct result *result, const uint64_t counts[COMMUNICATION_EVIDENCE_MAX])
{
	result_open(result);
	for (int i = COMMUNICATION_NOT + 1; i < COMMUNICATION_EVIDENCE_MAX; i++) {
		result_text(result, communication_evidence_name((enum communication_evidence)i));
		result_u64(result, counts[i]);
	}
	result_close(result);
}

bool columns_has_works(struct result *result, const struct report_input *input)
{
	if (trace_report_has_works(input->trace))
		return true;
	report_nothing(result, input, report_why_no_device_work(input->view->model));
	return false;
}

void columns_add_samples(struct result *result, const struct model *model, uint64_t samples)
{
	result_known(result, model->session.present || model->samples.count, samples);
}

void columns_add_cpu_time(struct result *result, const struct model *model, uint64_t samples)
{
	result_known(result, model_has_time(model), samples * model_sample_weight_ns(model));
}

void columns_add_rank(struct result *result, const struct model_process *process)
{
	result_known(result, process->rank != MODEL_NONE, process->rank);
}
