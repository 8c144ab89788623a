/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record/account_json.h"

#include <string.h>
#include <sys/stat.h>

#include "base/json.h"

/* After an error the file may be an earlier one. */
static void write_capture(struct json_writer *json, const char *output, bool is_whole)
{
	struct stat file;
	bool is_file = is_whole && output && stat(output, &file) == 0 && S_ISREG(file.st_mode);

	json_member_text(json, "capture", output);
	json_member_known(json, "capture_bytes", is_file, is_file ? (uint64_t)file.st_size : 0);
}

static void write_time(struct json_writer *json, const struct session_result *result,
	const struct session_options *options)
{
	json_member_u64(json, "duration_ns", result->duration_ns);
	json_member_u64(json, "period_ns", options->period_ns);
	json_member_u64(json, "windows", result->window_count);
	json_member_u64(json, "windows_ns", result->windows_ns);
	json_member_u64(json, "captures_of_windows", result->part_count);
}

static void write_losses(struct json_writer *json, const struct capture_stats *stats)
{
	json_member_u64(json, "samples_lost", stats->samples_lost);
	json_key(json, "losses");
	json_begin_array(json);
	for (uint32_t i = 0; i < stats->loss_count; i++) {
		json_begin_object(json);
		json_member_text(json, "where", stats->losses[i].where);
		json_member_u64(json, "cpu", stats->losses[i].cpu);
		json_member_u64(json, "count", stats->losses[i].count);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_stacks(struct json_writer *json, const struct capture_stats *stats)
{
	json_key(json, "stacks_by_end");
	json_begin_object(json);
	for (unsigned stop = 0; stop < WIRE_STOP_MAX; stop++)
		json_member_u64(json, wire_stop_name(stop), stats->stacks_by_stop[stop]);
	json_end_object(json);
	json_key(json, "stacks_by_python");
	json_begin_object(json);
	for (unsigned python = 0; python < WIRE_PYTHON_MAX; python++)
		json_member_u64(json, wire_python_name(python), stats->stacks_by_python[python]);
	json_end_object(json);
}

static void write_work(struct json_writer *json, const struct session_result *result)
{
	const struct capture_stats *stats = &result->stats;

	json_member_u64(json, "wait_samples", stats->wait_samples);
	json_member_u64(json, "waited_ns", stats->waited_ns);
	json_key(json, "waits_are_exact");
	json_bool(json, result->waits_are_exact);
	json_member_u64(json, "device_works", stats->device.works);
	json_member_u64(json, "launches", stats->device.launches);
	json_member_u64(json, "launch_stacks", stats->device.stacks);
	json_member_u64(json, "device_records_lost", stats->device.records_lost);
	json_member_u64(json, "ranges", stats->ranges.ranges);
	json_member_u64(json, "marks", stats->ranges.marks);
	json_member_text(json, "energy", result->energy.text);
}

static void write_cost(struct json_writer *json, const struct capture_stats *stats)
{
	bool is_measured = stats->bpf_run_count != 0;

	json_member_u64(json, "collector_cpu_ns", stats->collector_cpu_ns);
	json_member_u64(json, "collector_start_cpu_ns", stats->collector_start_cpu_ns);
	json_member_u64(json, "collector_end_cpu_ns", stats->collector_end_cpu_ns);
	json_member_u64(json, "collector_peak_rss_bytes", stats->collector_peak_rss_bytes);
	json_member_known(json, "bpf_run_count", is_measured, stats->bpf_run_count);
	json_member_known(json, "bpf_run_time_ns", is_measured, stats->bpf_run_time_ns);
	json_member_u64(json, "tables_built", stats->tables_built);
	json_member_u64(json, "tables_from_cache", stats->tables_from_cache);
	json_member_u64(json, "table_build_ns", stats->table_build_ns);
}

static void write_hooks(struct json_writer *json, const struct hook_table *table)
{
	json_key(json, "hooks");
	json_begin_array(json);
	array_foreach (&table->hooks, hook) {
		json_begin_object(json);
		json_member_text(json, "group", hook->group);
		json_member_text(json, "module", hook->module);
		json_member_text(json, "attribute", hook->attribute);
		json_member_text(json, "state", hook_state_to_string(hook_status_state(hook)));
		json_member_text(json, "detail", hook->detail);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_notes(struct json_writer *json, const struct capture_stats *stats)
{
	json_key(json, "notes");
	json_begin_array(json);
	for (uint32_t i = 0; i < stats->note_count; i++)
		json_string(json, stats->notes[i]);
	json_end_array(json);
}

int record_account_json(const struct session_result *result, const struct session_options *options,
	const char *error, struct strbuf *out)
{
	const struct capture_stats *stats = &result->stats;
	struct json_writer json = {.out = out, .pretty = true};
	bool has_status = options->command && result->command_status >= 0;

	json_begin_object(&json);
	json_member_text(&json, "format", "sonde-record");
	json_member_u64(&json, "version", 1);
	json_member_text(&json, "sonde_version", SONDE_VERSION);
	json_member_text(&json, "error", error);
	json_member_known(&json, "exit_status", has_status,
		has_status ? (uint64_t)result->command_status : 0);
	write_capture(
		&json, options->live.visitor ? NULL : session_output(options, result), !error);
	write_time(&json, result, options);
	json_member_text(&json, "mode",
		error                         ? NULL
		: result->mode_reason.text[0] ? "user"
					      : "bpf");
	json_member_text(&json, "mode_reason", result->mode_reason.text);
	json_member_u64(&json, "samples", stats->samples);
	write_losses(&json, stats);
	write_stacks(&json, stats);
	write_work(&json, result);
	write_cost(&json, stats);
	write_hooks(&json, &result->hooks);
	write_notes(&json, stats);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return strbuf_status(out);
}
