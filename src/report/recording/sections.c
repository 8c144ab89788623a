/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of recordings whose text and JSON are still made apart. */
#include <errno.h>
#include <string.h>

#include "analyses/device/device_work.h"
#include "base/json.h"
#include "report/recording/cuda_json.h"
#include "report/sections.h"
#include "report/view.h"

static void write_device_use(struct json_writer *json, const struct device_use *device)
{
	json_begin_object(json);
	json_member_text(json, "name", device->name);
	json_member_u64(json, "busy_ns", device->busy_ns);
	json_member_u64(json, "work_ns", device->work_ns);
	json_member_u64(json, "count", device->count);
	json_end_object(json);
}

static void write_device_line(
	struct json_writer *json, const struct model *model, const struct device_line *row)
{
	const struct model_frame *frame =
		row->frame == MODEL_NONE ? NULL : &model->frames.items[row->frame];

	json_begin_object(json);
	json_member_u64(json, "count", row->count);
	json_member_u64(json, "total_ns", row->total_ns);
	json_member_text(
		json, "function", frame ? model_function_name(model, frame->function) : NULL);
	json_member_text(
		json, "module", frame ? model_function_module(model, frame->function) : NULL);
	json_member_text(json, "source_file", frame ? frame->source_file : NULL);
	json_member_known(json, "line", frame && frame->line, frame ? frame->line : 0);
	json_member_text(json, "unattributed",
		frame ? NULL : model_unattributed_to_string(row->unattributed));
	json_end_object(json);
}

static void write_launches(struct json_writer *json, const struct model *model)
{
	const struct model_launches *launches = &model->launches;

	json_key(json, "launches");
	if (model->is_narrowed) { /* they were counted before */
		json_null(json);
		return;
	}
	json_begin_object(json);
	json_member_u64(json, "count", launches->launches);
	json_member_u64(json, "stacks", launches->stacks);
	json_member_u64(json, "complete_stacks", launches->complete_stacks);
	json_member_u64(json, "known_stacks", launches->known_stacks);
	json_member_u64(json, "checked_stacks", launches->checked_stacks);
	json_member_u64(json, "wrong_stacks", launches->wrong_stacks);
	json_key(json, "without_work");
	json_begin_object(json);
	for (unsigned i = 0; i < WIRE_DEVICE_UNTIMED_MAX; i++)
		json_member_u64(json, i == WIRE_DEVICE_TIMED ? "lost" : wire_device_untimed_name(i),
			launches->without_work[i]);
	json_end_object(json);
	json_end_object(json);
}

static void write_attribution(struct json_writer *json, const struct device_work *work)
{
	static const char *const names[MODEL_UNATTRIBUTED_MAX] = {
		[MODEL_ATTRIBUTED] = "matched",
		[MODEL_NO_STACK] = "no_stack",
		[MODEL_STACKS_OFF] = "stacks_off",
	};

	json_key(json, "attribution");
	json_begin_object(json);
	for (unsigned i = 0; i < MODEL_UNATTRIBUTED_MAX; i++)
		json_member_u64(json, names[i], work->by_attribution[i]);
	json_end_object(json);
}

static void write_device_members(
	struct json_writer *json, const struct model *model, const struct device_work *work)
{
	const struct capture_device_stats *stats = &model->stats.values.device;
	bool known = model->stats.present;

	json_member_u64(json, "count", work->count);
	json_member_u64(json, "total_ns", work->total_ns);
	write_attribution(json, work);
	write_launches(json, model);
	json_member_known(json, "host_wait_count", !model->is_narrowed, model->launches.wait_count);
	json_member_known(json, "host_wait_ns", !model->is_narrowed, model->launches.wait_ns);
	json_member_u64(json, "started_before_launch", work->started_before_launch);
	json_member_known(json, "clock_error_ns", known, stats->clock_error_ns);
	json_member_known(json, "records_lost", known,
		stats->records_lost + stats->records_without_ring + stats->records_damaged);
	json_member_known(json, "stacks_lost", known, stats->stacks_lost);
	json_member_known(
		json, "stack_run_count", stats->stack_run_count != 0, stats->stack_run_count);
	json_member_known(
		json, "stack_run_time_ns", stats->stack_run_count != 0, stats->stack_run_time_ns);
}

/* Null where no process used a device. */
static int write_device_work(struct json_writer *json, const struct model *model)
{
	_cleanup_device_work_ struct device_work work = {0};
	int r;

	json_key(json, "device_work");
	if (!model->device_works.count && !model->launches.launches && !model->device_notes.count) {
		json_null(json);
		return 0;
	}
	r = device_work_init(&work, model);
	if (r < 0)
		return r;
	json_begin_object(json);
	write_device_members(json, model, &work);
	json_key(json, "devices");
	json_begin_array(json);
	array_foreach (&work.devices, device)
		write_device_use(json, device);
	json_end_array(json);
	json_key(json, "lines");
	json_begin_array(json);
	array_foreach (&work.lines, line)
		write_device_line(json, model, line);
	json_end_array(json);
	r = report_json_cuda(json, model, &work);
	json_end_object(json);
	return r;
}

static int write_device(const struct report_input *input, struct json_writer *json)
{
	return write_device_work(json, input->view->model);
}

static int print_device(const struct report_input *input)
{
	const struct report_view *view = input->view;

	if (!input->is_alone || report_has_device_work(view->model))
		return report_device(view, report_rows_shown(input, 20, 8));
	return report_none(view, report_why_no_device_work(view->model));
}

const struct report_section device_work_section = {
	.by = "kernel",
	.comes_along = true,
	.needs = REPORT_NEEDS_RECORDING,
	.shows = SELECTION_DEVICE_WORK,
	.print = print_device,
	.write = write_device,
};
