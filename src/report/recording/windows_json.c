/* SPDX-License-Identifier: Apache-2.0 */
#include "report/recording/windows_json.h"

#include "analyses/inference/table_joules.h"
#include "analyses/program/step_use.h"
#include "analyses/program/window_use.h"
#include "report/inference/joules_json.h"
#include "report/tables_json.h"

#define SLOWEST_STEPS 100

static uint64_t since_start_ns(const struct model *model, uint64_t time_ns)
{
	uint64_t start_ns = model_start_ns(model);

	return time_ns > start_ns ? time_ns - start_ns : 0;
}

static void write_window(struct json_writer *json, const struct model *model,
	const struct model_window *window, const struct window_row *row)
{
	uint64_t begin_ns = since_start_ns(model, window->begin_ns);
	bool has_steps = window->last_step >= window->first_step;

	json_begin_object(json);
	json_member_u64(json, "number", window->number);
	json_member_text(json, "label", *window->label ? window->label : NULL);
	json_member_u64(json, "begin_ns", begin_ns);
	json_member_known(json, "begin_unix_time_ns", model->session.start_realtime_ns != 0,
		model->session.start_realtime_ns + begin_ns);
	json_member_u64(json, "duration_ns", window->end_ns - window->begin_ns);
	json_member_text(json, "opened_by", capture_window_trigger_name(window->opened_by));
	json_member_text(json, "closed_by", capture_window_reason_name(window->closed_by));
	json_member_known(json, "leader_pid", window->leader_pid != 0, window->leader_pid);
	json_member_known(json, "first_step", has_steps, window->first_step);
	json_member_known(json, "last_step", has_steps, window->last_step);
	json_member_u64(json, "steps_begun", row->steps);
	json_member_u64(json, "samples", row->samples);
	json_member_known(json, "cpu_time_ns", model_has_time(model),
		row->samples * model_sample_weight_ns(model));
	json_member_u64(json, "device_work_count", row->works);
	json_member_u64(json, "device_busy_ns", row->device_busy_ns);
	json_end_object(json);
}

static int write_windows(
	struct json_writer *json, const struct model *model, const struct selected *selected)
{
	_cleanup_window_use_ struct window_use use = {0};
	int r = window_use_init(&use, model, selected);

	if (r < 0)
		return r;
	json_key(json, "windows");
	if (!model->windows.count || selection_left_out(model, SELECTION_WINDOWS)) {
		json_null(json);
		return 0;
	}
	json_begin_object(json);
	json_member_u64(json, "windows_in_capture", model->whole_window_count);
	json_member_u64(json, "duration_ns", model_duration_ns(model));
	json_member_u64(json, "recording_duration_ns", model_elapsed_ns(model));
	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; i < model->windows.count; i++)
		write_window(json, model, &model->windows.items[i], &use.rows.items[i]);
	json_end_array(json);
	json_end_object(json);
	return 0;
}

static int write_step_row(struct json_writer *json, const struct model *model,
	const struct step_row *row, const struct span_energy *energy)
{
	const struct model_process *process = &model->processes.items[row->process];
	bool has_whole = row->count != 0;
	struct joules joules;
	int r = joules_of_steps(energy, model, row, &joules);

	if (r < 0)
		return r;
	json_begin_object(json);
	json_member_text(json, "name", row->name);
	json_member_u64(json, "pid", process->pid);
	json_member_text(json, "process", process->name);
	json_member_rank(json, process);
	json_member_u64(json, "count", row->count);
	json_member_u64(json, "cut_count", row->cut_count);
	json_member_u64(json, "total_ns", row->total_ns);
	json_member_known(json, "mean_ns", has_whole, has_whole ? row->total_ns / row->count : 0);
	json_member_known(json, "minimum_ns", has_whole, row->minimum_ns);
	json_member_known(json, "maximum_ns", has_whole, row->maximum_ns);
	json_member_known(json, "p50_ns", has_whole, row->p50_ns);
	json_member_known(json, "p95_ns", has_whole, row->p95_ns);
	json_member_u64(json, "samples", row->samples);
	json_member_known(json, "cpu_time_ns", model_has_time(model),
		row->samples * model_sample_weight_ns(model));
	json_member_u64(json, "device_busy_ns", row->device_busy_ns);
	if (energy)
		json_member_joules(json, &joules, NULL);
	json_end_object(json);
	return 0;
}

static void write_slow_step(struct json_writer *json, const struct model *model,
	const struct step_use *use, uint32_t index, const struct span_energy *energy)
{
	const struct model_step *step = &model->steps.items[index];
	const struct step_cost *cost = &use->costs.items[index];
	bool has_window = step->window != MODEL_NONE;

	json_begin_object(json);
	json_member_text(json, "name", step->name);
	json_member_u64(json, "pid", model->processes.items[step->process].pid);
	json_member_rank(json, &model->processes.items[step->process]);
	json_member_u64(json, "number", step->number);
	json_member_known(json, "window", has_window,
		has_window ? model->windows.items[step->window].number : 0);
	json_member_u64(json, "begin_ns", since_start_ns(model, step->start_ns));
	json_member_u64(json, "duration_ns", step->end_ns - step->start_ns);
	json_member_u64(json, "samples", cost->samples);
	json_member_u64(json, "device_busy_ns", cost->device_busy_ns);
	if (energy) {
		struct joules joules = joules_of_step(energy, step);

		json_member_joules(json, &joules, NULL);
	}
	json_end_object(json);
}

static int write_steps(struct json_writer *json, const struct model *model,
	const struct selected *selected, const struct span_energy *energy, size_t limit)
{
	_cleanup_step_use_ struct step_use use = {0};
	int r = step_use_init(&use, model, selected);

	if (r < 0)
		return r;
	json_key(json, "steps");
	if (!use.rows.count) {
		json_null(json);
		return 0;
	}
	json_begin_object(json);
	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; r == 0 && i < use.rows.count; i++)
		r = write_step_row(json, model, &use.rows.items[i], energy);
	json_end_array(json);
	json_key(json, "slowest");
	json_begin_array(json);
	for (size_t i = 0; i < MIN(use.slowest.count, limit ? limit : SLOWEST_STEPS); i++)
		write_slow_step(json, model, &use, use.slowest.items[i], energy);
	json_end_array(json);
	json_end_object(json);
	return r;
}

int report_windows_json(struct json_writer *json, const struct model *model,
	const struct selected *selected, const struct span_energy *energy, size_t limit)
{
	int r = write_windows(json, model, selected);

	return r ?: write_steps(json, model, selected, energy, limit);
}
