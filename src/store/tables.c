/* SPDX-License-Identifier: Apache-2.0 */
#include "store/tables.h"

#include <string.h>

static const struct store_column run_columns[] = {
#define RUN_COLUMN(id, of_name, of_type, of_kind, of_title)                                        \
	{.name = (of_name), .type = STORE_##of_type, .kind = REPORT_##of_kind, .title = (of_title)},
	STORE_RUN_COLUMNS(RUN_COLUMN)
#undef RUN_COLUMN
};

#define INTEGER(of_name, of_kind)                                                                  \
	{                                                                                          \
		.name = (of_name), .type = STORE_INTEGER, .kind = (of_kind)                        \
	}
#define NUMBER(of_name, of_kind)                                                                   \
	{                                                                                          \
		.name = (of_name), .type = STORE_NUMBER, .kind = (of_kind)                         \
	}
#define TEXT(of_name)                                                                              \
	{                                                                                          \
		.name = (of_name), .type = STORE_TEXT, .kind = REPORT_TEXT                         \
	}
#define OF_RUN INTEGER("run", REPORT_INTEGER)

static const struct store_column tag_columns[] = {OF_RUN, TEXT("tag")};

static const struct store_column figure_name_columns[] = {
	INTEGER("name", REPORT_INTEGER),
	TEXT("section"),
	TEXT("table_name"),
	TEXT("column_name"),
	TEXT("kind"),
};

static const struct store_column figure_columns[] = {
	OF_RUN,
	INTEGER("name", REPORT_INTEGER),
	INTEGER("row_number", REPORT_INTEGER),
	INTEGER("integer_value", REPORT_INTEGER),
	NUMBER("number_value", REPORT_NUMBER),
	TEXT("text_value"),
};

static const struct store_column rail_columns[] = {
	OF_RUN,
	INTEGER("rail", REPORT_INTEGER),
	TEXT("name"),
	TEXT("part"),
	TEXT("device"),
	TEXT("host"),
	TEXT("source"),
	TEXT("quality"),
	INTEGER("parent", REPORT_INTEGER),
	NUMBER("idle_w", REPORT_WATTS),
	NUMBER("limit_w", REPORT_WATTS),
	NUMBER("measured_j", REPORT_JOULES),
	NUMBER("uncertainty_j", REPORT_JOULES),
};

static const struct store_column power_columns[] = {
	OF_RUN,
	INTEGER("rail", REPORT_INTEGER),
	INTEGER("begin_ns", REPORT_NS),
	INTEGER("end_ns", REPORT_NS),
	NUMBER("energy_j", REPORT_JOULES),
	TEXT("gap"),
};

static const struct store_column request_columns[] = {
	OF_RUN,
	INTEGER("request", REPORT_INTEGER),
	TEXT("name"),
	INTEGER("pid", REPORT_INTEGER),
	INTEGER("arrival_ns", REPORT_NS),
	INTEGER("prefill_ns", REPORT_NS),
	INTEGER("first_ns", REPORT_NS),
	INTEGER("last_ns", REPORT_NS),
	INTEGER("prompt_tokens", REPORT_COUNT),
	INTEGER("cached_tokens", REPORT_COUNT),
	INTEGER("output_tokens", REPORT_COUNT),
	INTEGER("batch_size", REPORT_COUNT),
	INTEGER("preemptions", REPORT_COUNT),
	TEXT("end_reason"),
	NUMBER("energy_j", REPORT_JOULES),
	NUMBER("uncertainty_j", REPORT_JOULES),
	INTEGER("is_allocated", REPORT_INTEGER),
};

static const struct store_column token_columns[] = {
	OF_RUN,
	INTEGER("request", REPORT_INTEGER),
	INTEGER("chunk", REPORT_INTEGER),
	INTEGER("time_ns", REPORT_NS),
	INTEGER("gap_ns", REPORT_NS),
};

static const struct store_column layer_columns[] = {
	OF_RUN,
	INTEGER("row_number", REPORT_INTEGER),
	INTEGER("layer", REPORT_INTEGER),
	TEXT("role"),
	INTEGER("pid", REPORT_INTEGER),
	INTEGER("is_rest", REPORT_INTEGER),
	INTEGER("calls", REPORT_COUNT),
	INTEGER("total_ns", REPORT_NS),
	INTEGER("own_ns", REPORT_NS),
	INTEGER("samples", REPORT_COUNT),
	INTEGER("device_busy_ns", REPORT_NS),
	NUMBER("energy_j", REPORT_JOULES),
	NUMBER("uncertainty_j", REPORT_JOULES),
};

#define TABLE(of_name, of_columns, of_key_count)                                                   \
	{                                                                                          \
		.name = (of_name), .columns = (of_columns), .count = ARRAY_SIZE(of_columns),       \
		.key_count = (of_key_count)                                                        \
	}

const struct store_table store_tables[STORE_TABLE_MAX] = {
	[STORE_RUNS] = TABLE("runs", run_columns, 1),
	[STORE_TAGS] = TABLE("tags", tag_columns, 2),
	[STORE_FIGURE_NAMES] = TABLE("figure_names", figure_name_columns, 1),
	[STORE_FIGURES] = TABLE("figures", figure_columns, 3),
	[STORE_RAILS] = TABLE("rails", rail_columns, 2),
	[STORE_POWER] = TABLE("power", power_columns, 3),
	[STORE_REQUESTS] = TABLE("requests", request_columns, 2),
	[STORE_TOKENS] = TABLE("tokens", token_columns, 3),
	[STORE_LAYERS] = TABLE("layers", layer_columns, 2),
};

const struct store_column *store_column_find(const struct store_table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++) {
		if (strcmp(table->columns[i].name, name) == 0)
			return &table->columns[i];
	}
	return NULL;
}
