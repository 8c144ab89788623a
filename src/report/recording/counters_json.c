/* SPDX-License-Identifier: Apache-2.0 */
#include "report/recording/counters_json.h"

#include "analyses/program/counter_use.h"
#include "report/tables_json.h"

static void write_counter(
	struct json_writer *json, const struct model *model, const struct counter_row *row)
{
	const struct {
		const char *key;
		double value;
	} members[] = {{"minimum", row->minimum}, {"mean", row->mean}, {"maximum", row->maximum},
		{"last", row->last}};

	json_begin_object(json);
	json_member_text(json, "name", row->name);
	json_member_u64(json, "pid", model->processes.items[row->process].pid);
	json_member_u64(json, "count", row->count);
	json_member_u64(json, "not_numbers", row->not_numbers);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		json_key(json, members[i].key);
		if (row->count > row->not_numbers)
			json_double(json, members[i].value, 9);
		else
			json_null(json);
	}
	json_end_object(json);
}

int report_counters_json(struct json_writer *json, const struct model *model)
{
	_cleanup_counter_use_ struct counter_use use = {0};
	int r = counter_use_init(&use, model);

	if (r < 0)
		return r;
	json_key(json, "counters");
	if (!use.rows.count) {
		json_null(json);
		return 0;
	}
	json_begin_array(json);
	array_foreach (&use.rows, row)
		write_counter(json, model, row);
	json_end_array(json);
	return 0;
}
