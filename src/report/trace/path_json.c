/* SPDX-License-Identifier: Apache-2.0 */
#include "report/trace/path_json.h"

#include "report/tables_json.h"
#include "report/trace/report_json.h"

static size_t shown(size_t count, size_t limit)
{
	return limit ? MIN(limit, count) : count;
}

/* ---- critical paths ---- */

/* Rows are told by their place in the file's traceEvents. */
static void write_row(
	struct json_writer *json, const char *key, const struct trace *trace, uint32_t row)
{
	json_key(json, key);
	if (row == MODEL_NONE)
		json_null(json);
	else
		json_u64(json, trace->events.items[row].file_index);
}

static void write_steps(
	struct json_writer *json, const struct trace_view *view, const struct critical_path *path)
{
	json_key(json, "edges_of_path");
	json_begin_array(json);
	array_foreach (&path->steps, step) {
		json_begin_object(json);
		json_member_text(json, "type", trace_path_kind_name(step->kind));
		json_member_text(json, "bound_by", trace_path_bound_name(step->bound));
		trace_json_ns(json, "start_ns", step->start_ns);
		trace_json_ns(json, "duration_ns", step->duration_ns);
		write_row(json, "from_event", view->trace, step->from);
		write_row(json, "to_event", view->trace, step->to);
		write_row(json, "event", view->trace, step->event);
		if (step->event != MODEL_NONE)
			trace_json_name(json, view, view->trace->events.items[step->event].name);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_names(struct json_writer *json, const struct trace_view *view,
	const struct critical_path *path, size_t limit)
{
	json_member_u64(json, "rows_total", path->names.count);
	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; i < shown(path->names.count, limit); i++) {
		const struct critical_path_name *name = &path->names.items[i];

		json_begin_object(json);
		trace_json_name(json, view, name->name);
		json_member_text(json, "bound_by", trace_path_bound_name(name->bound));
		trace_json_ns(json, "time_ns", name->time_ns);
		json_member_u64(json, "edges", name->steps);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_path(struct json_writer *json, const struct trace_view *view,
	const struct critical_path *path, size_t limit, bool details)
{
	json_begin_object(json);
	trace_json_name(json, view, path->name);
	trace_json_ns(json, "start_ns", path->start_ns);
	trace_json_ns(json, "window_ns", path->end_ns - path->start_ns);
	trace_json_ns(json, "until_ns", path->last_ns - path->start_ns);
	trace_json_ns(json, "path_ns", path->total_ns);
	json_key(json, "by_bound_ns");
	json_begin_object(json);
	for (int bound = 0; bound < TRACE_PATH_ORDER; bound++)
		trace_json_ns(json, trace_path_bound_name((enum trace_path_bound)bound),
			path->by_bound[bound]);
	json_end_object(json);
	json_member_u64(json, "nodes", path->nodes);
	json_member_u64(json, "edges", path->edges);
	json_member_u64(json, "cyclic_nodes", path->cyclic_nodes);
	json_member_u64(json, "path_edges", path->steps.count);
	write_names(json, view, path, limit);
	if (details)
		write_steps(json, view, path);
	json_end_object(json);
}

void trace_json_critical_paths(struct json_writer *json, const struct trace_view *view,
	const struct critical_paths *paths, size_t limit, bool details)
{
	json_begin_object(json);
	json_member_u64(json, "rank", view->rank);
	json_member_u64(json, "sync_events", paths->sync_rows);
	json_member_u64(json, "inferred_waits", paths->inferred_waits);
	json_member_u64(json, "clipped_events", paths->clipped_rows);
	json_member_u64(json, "backward_dependencies", paths->backward_edges);
	json_member_u64(json, "unexplained_gaps", paths->unexplained_gaps);
	trace_json_ns(json, "unexplained_ns", paths->unexplained_ns);
	json_key(json, "windows");
	json_begin_array(json);
	array_foreach (&paths->windows, path)
		write_path(json, view, path, limit, details);
	json_end_array(json);
	json_end_object(json);
}

/* ---- stragglers ---- */

void trace_json_stragglers(struct json_writer *json, const struct trace_stragglers *stragglers)
{
	json_begin_object(json);
	json_member_text(json, "name", stragglers->name);
	trace_json_number(json, "stream", stragglers->stream);
	json_member_u64(json, "steps", stragglers->steps);
	json_key(json, "ranks");
	json_begin_array(json);
	array_foreach (&stragglers->ranks, rank) {
		json_begin_object(json);
		json_member_u64(json, "rank", rank->rank);
		json_member_u64(json, "steps", rank->steps);
		json_member_u64(json, "late_steps", rank->late_steps);
		trace_json_ns(json, "mean_lateness_ns", rank->lateness_ns);
		trace_json_ns(json, "mean_duration_ns", rank->duration_ns);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
}

/* ---- sequences ---- */

void trace_json_sequences(struct json_writer *json, const struct trace_view *view,
	const struct trace_sequences *sequences, size_t limit)
{
	json_begin_object(json);
	json_member_u64(json, "rank", view->rank);
	json_member_u64(json, "operators", sequences->operators);
	json_member_u64(json, "rows_total", sequences->items.count);
	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; i < shown(sequences->items.count, limit); i++) {
		const struct trace_sequence *sequence = &sequences->items.items[i];

		json_begin_object(json);
		trace_json_name(json, view, sequence->op);
		json_member_u64(json, "count", sequence->count);
		trace_json_ns(json, "operator_ns", sequence->op_ns);
		trace_json_ns(json, "gpu_ns", sequence->kernel_ns);
		json_key(json, "kernels");
		json_begin_array(json);
		for (size_t k = 0; k < sequence->kernel_count; k++)
			json_string(json, trace_text(view->trace, sequence->kernels[k]));
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
}

/* ---- memory ---- */

static void write_points(struct json_writer *json, const struct trace_memory_device *device)
{
	json_key(json, "timeline");
	json_begin_array(json);
	array_foreach (&device->points, point) {
		json_begin_object(json);
		trace_json_ns(json, "time_ns", point->time_ns);
		trace_json_number(json, "allocated_bytes", point->allocated);
		trace_json_number(json, "reserved_bytes", point->reserved);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_device(struct json_writer *json, const struct trace_view *view,
	const struct trace_memory_device *device, size_t limit)
{
	char name[64];

	trace_memory_device_name(device, name, sizeof(name));
	json_member_u64(json, "rank", view->rank);
	json_member_text(json, "device", name);
	json_member_u64(json, "allocations", device->allocations);
	json_member_u64(json, "allocated_bytes", device->allocated_bytes);
	json_member_u64(json, "releases", device->releases);
	json_member_u64(json, "released_bytes", device->released_bytes);
	json_member_u64(json, "unreleased", device->unreleased);
	json_member_u64(json, "unreleased_bytes", device->unreleased_bytes);
	trace_json_number(json, "peak_bytes", device->peak);
	trace_json_ns(json, "peak_ns", device->peak_ns);
	trace_json_number(json, "peak_reserved_bytes", device->peak_reserved);
	json_key(json, "operators");
	json_begin_array(json);
	for (size_t i = 0; i < shown(device->ops.count, limit); i++) {
		const struct trace_memory_op *op = &device->ops.items[i];

		json_begin_object(json);
		trace_json_name(json, view, op->name);
		json_member_u64(json, "allocations", op->allocations);
		json_member_u64(json, "bytes", op->bytes);
		json_key(json, "kept_bytes");
		json_i64(json, op->kept);
		json_end_object(json);
	}
	json_end_array(json);
}

void trace_json_memory(struct json_writer *json, const struct trace_view *view,
	const struct trace_memory_use *use, size_t limit, bool details)
{
	array_foreach (&use->devices, device) {
		json_begin_object(json);
		write_device(json, view, device, limit);
		if (details)
			write_points(json, device);
		json_end_object(json);
	}
}
