/* SPDX-License-Identifier: Apache-2.0 */
#include "report/recording/ranks_json.h"

#include "analyses/program/rank_use.h"
#include "report/tables_json.h"

static void write_time(struct json_writer *json, const struct rank_time *time)
{
	json_begin_object(json);
	json_member_u64(json, "rank", time->rank);
	json_member_u64(json, "count", time->count);
	json_member_u64(json, "total_ns", time->total_ns);
	json_member_u64(json, "mean_ns", rank_time_mean_ns(time));
	json_end_object(json);
}

static void write_row(
	struct json_writer *json, const struct rank_use *use, const struct rank_row *row)
{
	json_begin_object(json);
	json_member_text(json, "kind", row->is_step ? "step" : "range");
	json_member_text(json, "name", row->name);
	json_member_text(json, "domain", row->domain);
	json_member_u64(json, "slowest_rank", use->times.items[row->slowest].rank);
	json_member_u64(json, "fastest_rank", use->times.items[row->fastest].rank);
	json_member_u64(json, "spread_ns", rank_row_spread_ns(use, row));
	json_key(json, "ranks");
	json_begin_array(json);
	for (uint32_t i = 0; i < row->rank_count; i++)
		write_time(json, &use->times.items[row->first_rank + i]);
	json_end_array(json);
	json_end_object(json);
}

int report_ranks_json(struct json_writer *json, const struct model *model)
{
	_cleanup_rank_use_ struct rank_use use = {0};
	int r = rank_use_init(&use, model);

	if (r < 0)
		return r;
	json_key(json, "ranks");
	if (!use.rows.count) {
		json_null(json);
		return 0;
	}
	json_begin_array(json);
	array_foreach (&use.rows, row)
		write_row(json, &use, row);
	json_end_array(json);
	return 0;
}
