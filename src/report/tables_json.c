/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables_json.h"

#include <string.h>

#include "analyses/cpu/thread_names.h"
#include "model/kinds.h"

void json_member_range_field(struct json_writer *json, const struct model_range_field *field)
{
	double real;

	json_key(json, *field->name ? field->name : "value");
	switch (field->type) {
	case WIRE_RANGE_U64:
		json_u64(json, field->value);
		break;
	case WIRE_RANGE_I64:
		json_i64(json, (int64_t)field->value);
		break;
	case WIRE_RANGE_DOUBLE:
		memcpy(&real, &field->value, sizeof(real));
		json_double(json, real, 9);
		break;
	default:
		json_string(json, field->text);
	}
}

void json_member_text(struct json_writer *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text && *text)
		json_string(json, text);
	else
		json_null(json);
}

void json_member_u64(struct json_writer *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_u64(json, value);
}

void json_member_known(struct json_writer *json, const char *key, bool known, uint64_t value)
{
	json_key(json, key);
	if (known)
		json_u64(json, value);
	else
		json_null(json);
}

void json_member_double(struct json_writer *json, const char *key, double value)
{
	json_key(json, key);
	json_double(json, value, 9);
}

void json_communication(struct json_writer *json, const uint64_t counts[COMMUNICATION_EVIDENCE_MAX])
{
	json_begin_object(json);
	for (int i = COMMUNICATION_NOT + 1; i < COMMUNICATION_EVIDENCE_MAX; i++) {
		if (counts[i])
			json_member_u64(json,
				communication_evidence_name((enum communication_evidence)i),
				counts[i]);
	}
	json_end_object(json);
}

void json_member_rank(struct json_writer *json, const struct model_process *process)
{
	json_member_known(json, "rank", process->rank != MODEL_NONE, process->rank);
}

static void write_process(struct json_writer *json, const struct model *model, uint32_t index)
{
	const struct model_process *process = &model->processes.items[index];

	json_member_u64(json, "pid", process->pid);
	json_member_known(json, "parent_pid", process->parent_pid != 0, process->parent_pid);
	json_member_text(json, "name", process->name);
	json_member_text(json, "command_line", process->command_line);
	json_member_text(json, "cgroup", process->cgroup);
	json_member_rank(json, process);
}

static void write_module(struct json_writer *json, const struct model *model, uint32_t index)
{
	const struct model_module *module =
		index < model->modules.count ? &model->modules.items[index] : NULL;
	char hex[BUILD_ID_HEX_SIZE];

	json_member_text(json, "name", module ? module->name : NULL);
	json_member_text(json, "path", module ? module->path : NULL);
	json_member_text(json, "build_id", module ? build_id_hex(module, hex) : NULL);
}

static void write_function(struct json_writer *json, const struct model *model, uint32_t index)
{
	const struct model_function *function =
		index == MODEL_NONE ? NULL : &model->functions.items[index];
	bool has_module = function && function->module != MODEL_NONE;

	json_member_text(json, "name", model_function_name(model, index));
	json_key(json, "named");
	json_bool(json, function && !function->unnamed);
	json_member_text(
		json, "module", has_module ? model->modules.items[function->module].name : NULL);
	json_member_text(json, "module_path",
		has_module ? model->modules.items[function->module].path : NULL);
	json_member_text(json, "kind", function ? kind_name(function->kind) : NULL);
	json_member_text(json, "source_file", function ? function->source_file : NULL);
	json_member_text(json, "class", function ? model_class_to_string(function->class) : NULL);
}

static void write_line(struct json_writer *json, const struct model *model,
	const struct breakdown *breakdown, uint32_t key)
{
	const struct breakdown_line *line = key == MODEL_NONE ? NULL : &breakdown->lines.items[key];

	json_member_text(json, "source_file", line ? line->source_file : NULL);
	json_member_known(json, "line", line && line->line, line ? line->line : 0);
	json_member_text(
		json, "function", model_function_name(model, line ? line->function : MODEL_NONE));
	json_member_text(
		json, "module", model_function_module(model, line ? line->function : MODEL_NONE));
}

static void write_thread(struct json_writer *json, const struct model *model, uint32_t index)
{
	const struct model_thread *thread = &model->threads.items[index];

	json_member_u64(json, "tid", thread->tid);
	json_member_text(json, "name", thread->name);
	json_member_u64(json, "pid", model->processes.items[thread->process].pid);
	json_member_text(json, "process", model->processes.items[thread->process].name);
	json_member_rank(json, &model->processes.items[thread->process]);
}

static void write_stack(struct json_writer *json, const struct model *model, uint32_t key)
{
	const struct model_stack *stack = key == MODEL_NONE ? NULL : &model->stacks.items[key];

	json_member_text(json, "stop", stack ? wire_stop_name(stack->stop) : NULL);
	json_member_text(json, "python", stack ? wire_python_name(stack->python) : NULL);
	json_key(json, "frames");
	json_begin_array(json);
	for (uint32_t i = 0; stack && i < stack->count; i++) {
		const struct model_frame *frame =
			&model->frames.items[model->stack_frames.items[stack->first + i]];

		json_begin_object(json);
		json_member_text(json, "function", model_function_name(model, frame->function));
		json_member_text(json, "module", model_function_module(model, frame->function));
		json_member_u64(json, "address", frame->rel_pc);
		json_member_text(json, "source_file", frame->source_file);
		json_member_known(json, "line", frame->line != 0, frame->line);
		json_key(json, "inlined");
		json_bool(json, frame->inlined);
		json_member_text(
			json, "kind", kind_name(model->functions.items[frame->function].kind));
		json_member_text(json, "class",
			model_class_to_string(model->functions.items[frame->function].class));
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_key(struct json_writer *json, const struct model *model,
	const struct breakdown *breakdown, uint32_t key)
{
	switch (breakdown->by) {
	case BREAKDOWN_FUNCTION:
		write_function(json, model, key);
		break;
	case BREAKDOWN_MODULE:
		write_module(json, model, key);
		break;
	case BREAKDOWN_LINE:
		write_line(json, model, breakdown, key);
		break;
	case BREAKDOWN_PROCESS:
		write_process(json, model, key);
		break;
	case BREAKDOWN_THREAD:
		write_thread(json, model, key);
		break;
	case BREAKDOWN_CPU:
		json_member_u64(json, "cpu", key);
		break;
	case BREAKDOWN_CGROUP:
		json_member_text(json, "cgroup", breakdown->cgroups.items[key]);
		break;
	case BREAKDOWN_CLASS:
		json_member_text(
			json, "class", key == MODEL_NONE ? NULL : model_class_to_string(key));
		break;
	case BREAKDOWN_RANK:
		json_member_known(json, "rank", breakdown->ranks.items[key] != MODEL_NONE,
			breakdown->ranks.items[key]);
		break;
	case BREAKDOWN_GIL:
		json_member_text(json, "gil", wire_gil_name(key));
		break;
	default:
		write_stack(json, model, key);
	}
}

void report_json_counts(struct json_writer *json, const struct model *model, uint64_t all,
	bool total, uint64_t samples)
{
	static const char *const names[2][3] = {
		{"self_samples", "self_time_ns", "self_share"},
		{"total_samples", "total_time_ns", "total_share"},
	};
	const char *const *name = names[total];

	json_member_known(json, name[0], !model->unit_ns, samples);
	json_member_known(
		json, name[1], model_has_time(model), samples * model_sample_weight_ns(model));
	if (model->counts_energy)
		json_member_u64(json, total ? "total_energy_uj" : "self_energy_uj", samples);
	json_member_double(json, name[2], (double)samples / (double)all);
}

void report_json_table(struct json_writer *json, const struct model *model,
	const struct breakdown *breakdown, size_t limit)
{
	size_t count = breakdown->rows.count;

	json_begin_object(json);
	json_member_u64(json, "rows_total", count);
	if (breakdown->by == BREAKDOWN_THREAD)
		json_member_text(json, "names_missing", thread_names_missing(model));
	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; i < (limit ? MIN(limit, count) : count); i++) {
		const struct breakdown_row *row = &breakdown->rows.items[i];

		json_begin_object(json);
		report_json_counts(json, model, breakdown->samples, false, row->self_samples);
		report_json_counts(json, model, breakdown->samples, true, row->total_samples);
		write_key(json, model, breakdown, row->key);
		if (breakdown->by == BREAKDOWN_PROCESS)
			json_member_u64(json, "processes", 1 + (uint64_t)row->merged);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
}
