/* SPDX-License-Identifier: Apache-2.0 */
#include "report/diff/diff_json.h"

#include "report/tables_json.h"

static void write_side(struct json_writer *json, const char *key, const char *path,
	const struct diff *diff, const struct diff_side *side)
{
	json_key(json, key);
	json_begin_object(json);
	json_member_text(json, "path", path);
	json_member_known(json, "samples", !diff->is_energy, side->samples);
	json_member_u64(json, "duration_ns", side->duration_ns);
	json_member_known(
		json, "cpu_time_ns", diff->has_time && !diff->is_energy, side->cpu_time_ns);
	if (diff->is_energy)
		json_member_double(json, "energy_j", side->energy_j);
	json_member_double(json, "lost_share", side->lost_share);
	json_end_object(json);
}

/* Times are seconds, or with --per-second seconds of CPU time per second; energy likewise. */
static const char *time_change_key(const struct diff *diff)
{
	if (diff->is_energy)
		return diff->options.per_second ? "energy_change_w" : "energy_change_j";
	return diff->options.per_second ? "time_change_s_per_s" : "time_change_s";
}

static void write_counts(
	struct json_writer *json, const struct diff *diff, const struct diff_row *row)
{
	const struct {
		const char *samples, *energy;
		uint64_t value;
	} counts[] = {
		{"self_samples_before", "self_energy_uj_before", row->self_before},
		{"self_samples_after", "self_energy_uj_after", row->self_after},
		{"total_samples_before", "total_energy_uj_before", row->total_before},
		{"total_samples_after", "total_energy_uj_after", row->total_after},
	};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		json_member_u64(json, diff->is_energy ? counts[i].energy : counts[i].samples,
			counts[i].value);
}

static void write_row(struct json_writer *json, const struct diff *diff, const struct diff_row *row)
{
	json_begin_object(json);
	json_member_text(json, "name", row->name);
	if (diff->options.by == BREAKDOWN_FUNCTION)
		json_member_text(json, "module", row->module);
	write_counts(json, diff, row);
	json_member_double(json, time_change_key(diff), row->time_change);
	json_member_double(json, diff->is_energy ? "energy_q" : "time_q", row->time_q);
	json_member_double(json, "share_change", row->share_change);
	json_member_double(json, "share_q", row->share_q);
	json_key(json, "significant");
	json_bool(json, diff_row_is_significant(diff, row));
	json_end_object(json);
}

static void write_total(struct json_writer *json, const struct diff *diff)
{
	json_key(json, "total");
	json_begin_object(json);
	json_member_double(json, time_change_key(diff), diff->total_time_change);
	json_member_double(json, diff->is_energy ? "energy_p" : "time_p", diff->total_time_p);
	json_end_object(json);
}

/* ---- device work ---- */

static void write_figures(
	struct json_writer *json, const char *key, const struct device_diff_figures *figures)
{
	json_key(json, key);
	json_begin_object(json);
	json_member_u64(json, "count", figures->count);
	json_member_u64(json, "total_ns", figures->total_ns);
	json_member_double(json, "mean_ns", figures->mean_ns);
	json_member_double(json, "share", figures->share);
	json_end_object(json);
}

static void write_device_row(
	struct json_writer *json, const struct device_diff *diff, const struct device_diff_row *row)
{
	bool per_second = diff->per_second;

	json_begin_object(json);
	json_member_text(json, "name", row->name);
	json_member_text(json, "kind", wire_device_kind_name(row->kind));
	write_figures(json, "before", &row->before);
	write_figures(json, "after", &row->after);
	json_member_double(
		json, per_second ? "time_change_ns_per_s" : "time_change_ns", row->change_ns);
	json_member_double(
		json, per_second ? "by_count_ns_per_s" : "by_count_ns", row->by_count_ns);
	json_member_double(
		json, per_second ? "by_duration_ns_per_s" : "by_duration_ns", row->by_duration_ns);
	json_member_double(json, "duration_q", row->duration_q);
	json_end_object(json);
}

static void write_device_side(
	struct json_writer *json, const char *key, const struct device_diff_side *side)
{
	json_key(json, key);
	json_begin_object(json);
	json_member_u64(json, "count", side->count);
	json_member_u64(json, "total_ns", side->total_ns);
	json_end_object(json);
}

static void write_device(struct json_writer *json, const struct device_diff *diff, size_t limit)
{
	size_t count = diff ? diff->rows.count : 0;

	json_key(json, "device_work");
	if (!diff) {
		json_null(json);
		return;
	}
	json_begin_object(json);
	write_device_side(json, "before", &diff->before);
	write_device_side(json, "after", &diff->after);
	json_member_u64(json, "rows_total", count);
	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; i < (limit ? MIN(limit, count) : count); i++)
		write_device_row(json, diff, &diff->rows.items[i]);
	json_end_array(json);
	json_end_object(json);
}

int diff_json_write(const struct diff *diff, const struct device_diff *device,
	const char *before_path, const char *after_path, size_t limit, struct strbuf *out)
{
	struct json_writer json = {.out = out, .pretty = true};
	size_t count = diff->rows.count;

	json_begin_object(&json);
	json_member_text(&json, "format", "sonde-diff");
	json_member_u64(&json, "version", DIFF_JSON_VERSION);
	json_member_text(&json, "sonde_version", SONDE_VERSION);
	json_member_text(&json, "by", breakdown_by_to_string(diff->options.by));
	json_member_text(
		&json, "compared", diff->options.sort == BREAKDOWN_SORT_SELF ? "self" : "total");
	write_side(&json, "before", before_path, diff, &diff->before);
	write_side(&json, "after", after_path, diff, &diff->after);
	write_total(&json, diff);
	json_member_u64(&json, "rows_total", count);
	json_key(&json, "rows");
	json_begin_array(&json);
	for (size_t i = 0; i < (limit ? MIN(limit, count) : count); i++)
		write_row(&json, diff, &diff->rows.items[i]);
	json_end_array(&json);
	write_device(&json, device, limit);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return strbuf_status(out);
}
