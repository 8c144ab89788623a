/* SPDX-License-Identifier: Apache-2.0 */
#include "report/runs/regress_json.h"

#include <math.h>

#include "report/tables_json.h"

static void write_side(struct json_writer *json, const char *key, enum regress_kind kind,
	const struct regress_side *side, bool is_energy)
{
	json_key(json, key);
	json_begin_object(json);
	json_member_u64(json, "count", side->count);
	if (is_energy) {
		json_member_double(json, kind == REGRESS_CPU ? "mean_j" : "median_j",
			(double)side->median_ns / 1e9);
		json_member_double(json, "low_j", (double)side->low_ns / 1e9);
		json_member_double(json, "high_j", (double)side->high_ns / 1e9);
	} else {
		json_member_u64(
			json, kind == REGRESS_CPU ? "mean_ns" : "median_ns", side->median_ns);
		json_member_u64(json, "low_ns", side->low_ns);
		json_member_u64(json, "high_ns", side->high_ns);
	}
	json_end_object(json);
}

static void write_row(
	struct json_writer *json, const struct regress *regress, const struct regress_row *row)
{
	json_begin_object(json);
	json_member_text(json, "kind",
		regress->is_energy && row->kind == REGRESS_CPU ? "energy"
							       : regress_kind_to_string(row->kind));
	json_member_text(json, "name", row->name);
	json_member_text(json, "domain", row->domain);
	json_member_text(json, "verdict", regress_verdict_name(regress, row->verdict));
	json_member_double(
		json, "change_percent", isfinite(row->change_percent) ? row->change_percent : NAN);
	write_side(json, "before", row->kind, &row->before, regress->is_energy);
	write_side(json, "after", row->kind, &row->after, regress->is_energy);
	json_end_object(json);
}

static void write_paths(
	struct json_writer *json, const char *key, const char *const *paths, size_t count)
{
	json_key(json, key);
	json_begin_array(json);
	for (size_t i = 0; i < count; i++)
		json_string(json, paths[i]);
	json_end_array(json);
}

int regress_json_write(const struct regress *regress, const struct regress_json_options *options,
	struct strbuf *out)
{
	struct json_writer json = {.out = out, .pretty = true};
	size_t count = regress->rows.count, limit = options->limit ?: count;

	json_begin_object(&json);
	json_member_text(&json, "format", "sonde-regress");
	json_member_u64(&json, "version", REGRESS_JSON_VERSION);
	json_member_text(&json, "sonde_version", SONDE_VERSION);
	write_paths(&json, "baselines", options->baselines, options->baseline_count);
	write_paths(&json, "captures", options->captures, options->capture_count);
	json_member_double(&json, "threshold_percent", options->threshold_percent);
	json_member_double(&json, "noise_false_alarm_rate", REGRESS_FALSE_ALARM);
	json_member_double(&json, "run_false_alarm_rate", regress->run_chance);
	json_member_text(&json, "compared", regress->is_energy ? "energy" : "time");
	if (regress->is_energy)
		json_member_u64(&json, "shorter_than_sensor", regress->too_short);
	json_member_u64(&json, "judged", regress->judged);
	json_member_u64(&json, "blocks", regress->blocks);
	json_member_u64(&json, "slower", regress->slower);
	json_member_u64(&json, "only_in_baseline", regress->only_before);
	json_member_u64(&json, "only_in_capture", regress->only_after);
	json_member_u64(&json, "rows_total", count);
	json_key(&json, "rows");
	json_begin_array(&json);
	for (size_t i = 0; i < MIN(limit, count); i++)
		write_row(&json, regress, &regress->rows.items[i]);
	json_end_array(&json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return strbuf_status(out);
}
