/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of recordings whose text and JSON are still made apart. */
#include <errno.h>
#include <string.h>

#include "analyses/cpu/own_code.h"
#include "analyses/device/device_idle.h"
#include "analyses/device/device_work.h"
#include "base/source_text.h"
#include "report/recording/cuda_json.h"
#include "report/recording/device_json.h"
#include "report/sections.h"
#include "report/tables_json.h"
#include "report/view.h"

#define STACKS_LIMIT 100 /* rows of the table of stacks without a limit given */

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
static int write_device_work(
	struct json_writer *json, const struct model *model, const struct device_idle *idle)
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
	r = report_json_device_flow(json, model, idle);
	r = r ?: report_json_cuda(json, model, &work);
	json_end_object(json);
	return r;
}

static void write_idle_device(struct json_writer *json, const struct device_idle_device *device)
{
	json_begin_object(json);
	json_member_text(json, "name", device->name);
	json_member_u64(json, "span_ns", device->span_ns);
	json_member_u64(json, "idle_ns", device->idle_ns);
	json_member_u64(json, "gaps", device->gaps);
	json_member_u64(json, "samples", device->samples);
	json_key(json, "time_by_cause_ns");
	json_begin_object(json);
	for (int cause = 0; cause < DEVICE_IDLE_MAX; cause++)
		json_member_u64(json, device_idle_cause_name((enum device_idle_cause)cause),
			device->by_cause[cause]);
	json_end_object(json);
	json_end_object(json);
}

static void write_idle_row(struct json_writer *json, const struct model *model,
	const struct device_idle *idle, const struct device_idle_row *row)
{
	const struct model_frame *frame =
		row->frame == MODEL_NONE ? NULL : &model->frames.items[row->frame];

	json_begin_object(json);
	json_member_text(json, "device", idle->devices.items[row->device].name);
	json_member_text(json, "cause", device_idle_cause_name(row->cause));
	json_member_u64(json, "time_ns", row->time_ns);
	json_member_u64(json, "gaps", row->gaps);
	json_member_u64(json, "samples", row->samples);
	json_member_text(
		json, "function", frame ? model_function_name(model, frame->function) : NULL);
	json_member_text(
		json, "module", frame ? model_function_module(model, frame->function) : NULL);
	json_member_text(json, "source_file", frame ? frame->source_file : NULL);
	json_member_known(json, "line", frame && frame->line, frame ? frame->line : 0);
	json_end_object(json);
}

/* Null where no device worked. */
static void write_device_idle(
	struct json_writer *json, const struct model *model, const struct device_idle *idle)
{
	json_key(json, "device_idle");
	if (!idle->devices.count) {
		json_null(json);
		return;
	}
	json_begin_object(json);
	json_key(json, "devices");
	json_begin_array(json);
	array_foreach (&idle->devices, device)
		write_idle_device(json, device);
	json_end_array(json);
	json_key(json, "rows");
	json_begin_array(json);
	array_foreach (&idle->rows, row)
		write_idle_row(json, model, idle, row);
	json_end_array(json);
	json_end_object(json);
}

static int write_table(struct json_writer *json, const struct model *model,
	const struct selected *selected, const struct report_input *input, enum breakdown_by by)
{
	_cleanup_breakdown_ struct breakdown breakdown = {0};
	int r = breakdown_init(&breakdown, model, selected, by, input->recording->sort);
	size_t limit = input->limit;

	if (r < 0)
		return r;
	if (!limit && by == BREAKDOWN_STACK)
		limit = STACKS_LIMIT;
	json_key(json, breakdown_by_to_string(by));
	report_json_table(json, model, &breakdown, limit);
	return 0;
}

static int write_process_groups(struct json_writer *json, const struct model *model,
	const struct selected *selected, const struct report_input *input)
{
	_cleanup_breakdown_ struct breakdown breakdown = {0};
	int r = breakdown_init(
		&breakdown, model, selected, BREAKDOWN_PROCESS, input->recording->sort);

	r = r ?: breakdown_merge_processes(&breakdown, model);
	if (r < 0)
		return r;
	json_key(json, "process_groups");
	report_json_table(json, model, &breakdown, input->limit);
	return 0;
}

static int write_tables(struct json_writer *json, const struct model *model,
	const struct selected *selected, const struct report_input *input)
{
	int r = 0;

	json_key(json, "tables");
	json_begin_object(json);
	for (int by = 0; r == 0 && by < BREAKDOWN_MAX; by++) {
		if (!input->is_alone || input->recording->by == (enum breakdown_by)by)
			r = write_table(json, model, selected, input, (enum breakdown_by)by);
	}
	json_end_object(json);
	return r;
}

static int write_own_row(struct json_writer *json, const struct model *model,
	const struct own_code *own, const struct own_code_row *row, struct source_text *source)
{
	const struct model_frame *frame = &model->frames.items[row->frame];
	const struct model_function *function = &model->functions.items[frame->function];
	_cleanup_strbuf_ struct strbuf text = {0};
	bool has_energy = model->energy_intervals.count;
	int r = 0;

	json_begin_object(json);
	report_json_counts(json, model, own->samples, false, row->self_samples);
	report_json_counts(json, model, own->samples, true, row->total_samples);
	if (has_energy && !model->counts_energy) {
		json_member_double(json, "self_energy_j", row->self_energy_j);
		json_member_double(json, "total_energy_j", row->total_energy_j);
	}
	json_member_text(json, "source_file", source ? frame->source_file : function->source_file);
	if (source) {
		r = source_text_line(source, frame->source_file, frame->line, &text);
		json_member_known(json, "line", frame->line != 0, frame->line);
		json_member_text(json, "source", strbuf_cstr(&text));
	}
	json_member_text(json, "function", function->name);
	json_member_text(json, "module", model_function_module(model, frame->function));
	json_end_object(json);
	return r;
}

/* With `source` the rows are lines, else functions. */
static int write_own_rows(struct json_writer *json, const struct model *model,
	const struct own_code *own, size_t limit, struct source_text *source)
{
	enum own_code_by by = source ? OWN_CODE_LINE : OWN_CODE_FUNCTION;
	size_t count = own->rows[by].count;
	int r = 0;

	json_begin_object(json);
	json_member_u64(json, "rows_total", count);
	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; r == 0 && i < (limit ? MIN(limit, count) : count); i++)
		r = write_own_row(json, model, own, &own->rows[by].items[i], source);
	json_end_array(json);
	json_end_object(json);
	return r;
}

static int write_own_code(struct json_writer *json, const struct model *model,
	const struct selected *selected, size_t limit)
{
	_cleanup_own_code_ struct own_code own = {0};
	_cleanup_source_text_ struct source_text *source = NULL;
	int r = own_code_init(&own, model, selected);

	r = r ?: source_text_new(&source, model->session.start_realtime_ns);
	if (r < 0)
		return r;
	json_key(json, "own_code");
	json_begin_object(json);
	json_member_known(json, "other_samples", !model->unit_ns, own.others);
	json_member_known(json, "other_time_ns", model_has_time(model),
		own.others * model_sample_weight_ns(model));
	if (model->counts_energy)
		json_member_u64(json, "other_energy_uj", own.others);
	json_key(json, "lines");
	r = write_own_rows(json, model, &own, limit, source);
	json_key(json, "functions");
	r = r ?: write_own_rows(json, model, &own, limit, NULL);
	json_end_object(json);
	return r;
}

/* ---- members of the document, as parts of sections ---- */

static int write_device(const struct report_input *input, struct json_writer *json)
{
	static const struct device_idle none = {0};
	const struct report_view *view = input->recording;
	const struct device_idle *idle = view->idle ? view->idle : &none;
	int r = write_device_work(json, view->model, view->idle);

	if (r == 0)
		write_device_idle(json, view->model, idle);
	return r;
}

static int print_device(const struct report_input *input)
{
	const struct report_view *view = input->recording;

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

static int write_own(const struct report_input *input, struct json_writer *json)
{
	const struct report_view *view = input->recording;

	json_member_text(json, "tables_weight", model_weight_to_string(view->weight));
	return write_own_code(json, view->model, view->selected, input->limit);
}

static int print_own(const struct report_input *input)
{
	const struct report_view *view = input->recording;

	if (!view->selected->count || view->folds_libraries)
		return 0;
	return report_own_code(view, report_rows_shown(input, 20, 8));
}

const struct report_section own_code_section = {
	.needs = REPORT_NEEDS_RECORDING,
	.is_weighed = true,
	.print = print_own,
	.write = write_own,
};

static int write_all_tables(const struct report_input *input, struct json_writer *json)
{
	const struct report_view *view = input->recording;
	int r = 0;

	if (input->is_alone)
		json_member_text(json, "tables_weight", model_weight_to_string(view->weight));
	if (!input->is_alone || view->by == BREAKDOWN_PROCESS)
		r = write_process_groups(json, view->model, view->selected, input);
	return r ?: write_tables(json, view->model, view->selected, input);
}

static int print_table(const struct report_input *input)
{
	const struct report_view *view = input->recording;

	if (!view->selected->count) {
		report_paragraph(view, report_why_no_samples(view), 0);
		return 0;
	}
	return report_table(view, view->by, view->sort, report_rows_shown(input, 20, 20));
}

static bool is_dimension(const char *by)
{
	return breakdown_by_from_string(by) >= 0;
}

const struct report_section tables_section = {
	.is_by = is_dimension,
	.summary = "samples by function, line, process …",
	.needs = REPORT_NEEDS_RECORDING,
	.shows = SELECTION_SAMPLES,
	.is_weighed = true,
	.print = print_table,
	.write = write_all_tables,
};

static int print_programs(const struct report_input *input)
{
	const struct report_view *view = input->recording;
	size_t side = report_rows_shown(input, 8, 8);
	int r;

	if (!view->selected->count)
		return 0;
	r = report_table(view, BREAKDOWN_PROCESS, view->sort, side);
	if (r == 0 && view->model->threads.count > view->model->processes.count)
		r = report_table(view, BREAKDOWN_THREAD, view->sort, side);
	return r;
}

/* JSON has them with the other tables. */
const struct report_section programs_section = {
	.needs = REPORT_NEEDS_RECORDING,
	.is_weighed = true,
	.print = print_programs,
};

static int print_graphs(const struct report_input *input)
{
	return report_graphs(input->recording, report_rows_shown(input, 20, 8));
}

const struct report_section graphs_section = {
	.by = "graph",
	.summary = "captures and replays of CUDA graphs, and their nodes",
	.needs = REPORT_NEEDS_RECORDING,
	.is_extra = true,
	.shows = SELECTION_GRAPHS,
	.print = print_graphs,
	.write = write_device,
};
