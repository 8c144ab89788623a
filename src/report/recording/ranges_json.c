/* SPDX-License-Identifier: Apache-2.0 */
#include "report/recording/ranges_json.h"

#include "analyses/inference/table_joules.h"
#include "analyses/program/range_use.h"
#include "report/inference/joules_json.h"
#include "report/tables_json.h"

static void write_range_row(
	struct json_writer *json, const struct range_row *row, const struct joules *joules)
{
	json_begin_object(json);
	json_member_text(json, "name", row->name);
	json_member_text(json, "domain", row->domain);
	json_member_text(json, "kind",
		row->is_mark      ? "mark"
		: row->of_process ? "process"
				  : "thread");
	json_member_u64(json, "count", row->count);
	json_member_u64(json, "open_count", row->open_count);
	json_member_known(json, "total_ns", !row->is_mark, row->total_ns);
	json_member_known(json, "minimum_ns", !row->is_mark, row->minimum_ns);
	json_member_known(json, "maximum_ns", !row->is_mark, row->maximum_ns);
	json_member_known(json, "samples", !row->is_mark, row->samples);
	json_member_known(json, "device_work_count", !row->is_mark, row->works);
	json_member_known(json, "device_span_ns", !row->is_mark, row->device_span_ns);
	json_member_known(json, "device_busy_ns", !row->is_mark, row->device_busy_ns);
	json_member_known(json, "bytes", row->with_bytes, row->bytes);
	if (joules)
		json_member_joules(json, joules, NULL);
	json_end_object(json);
}

static void write_range_account(struct json_writer *json, const struct model *model)
{
	const struct capture_range_stats *stats = &model->stats.values.ranges;
	const struct {
		const char *name;
		uint64_t value;
	} members[] = {
		{"unbalanced_ends", stats->unbalanced_ends},
		{"ends_lost", stats->ends_lost},
		{"open_at_thread_end", stats->open_at_thread_end},
		{"open_at_end", stats->open_at_end},
		{"too_many_at_once", stats->too_many},
		{"names_lost", stats->names_lost},
		{"names_cut", stats->names_cut},
		{"records_damaged", stats->records_damaged},
		{"calls_dropped", stats->calls_dropped},
	};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		json_member_known(json, members[i].name, stats->events, members[i].value);
}

/* With energy where any was measured; marks last no time. */
static int write_rows(struct json_writer *json, const struct model *model,
	const struct range_use *use, const struct span_energy *energy)
{
	_cleanup_range_index_ struct range_index index = {0};
	int r = energy ? range_index_init(&index, model) : 0;

	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; r == 0 && i < use->rows.count; i++) {
		const struct range_row *row = &use->rows.items[i];
		bool has_energy = energy && !row->is_mark;
		struct joules joules;

		if (has_energy)
			r = joules_of_ranges(energy, model, &index, row, &joules);
		if (r == 0)
			write_range_row(json, row, has_energy ? &joules : NULL);
	}
	json_end_array(json);
	return r;
}

int report_ranges_json(struct json_writer *json, const struct model *model,
	const struct selected *selected, const struct span_energy *energy)
{
	_cleanup_range_use_ struct range_use use = {0};
	int r = range_use_init(&use, model, selected);

	if (r < 0)
		return r;
	json_key(json, "ranges");
	if ((!use.rows.count && !model->stats.values.ranges.events) ||
		selection_left_out(model, SELECTION_RANGES)) {
		json_null(json);
		return 0;
	}
	json_begin_object(json);
	json_member_u64(json, "ranges", use.ranges);
	json_member_u64(json, "marks", use.marks);
	json_member_u64(json, "samples", use.samples);
	write_range_account(json, model);
	r = write_rows(json, model, &use, energy);
	json_end_object(json);
	return r;
}
