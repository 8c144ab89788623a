/* SPDX-License-Identifier: Apache-2.0 */
/* sonde chakra stat: what is in a Chakra trace, in numbers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/json.h"
#include "chakra/et/stat.h"
#include "cli/chakra/chakra.h"
#include "model/format.h"
#include "report/table.h"

static struct {
	bool json;
} arguments;

static void add_line(struct strbuf *out, const char *title, const struct strbuf *value)
{
	strbuf_addf(out, "  %-14s %s\n", title, strbuf_cstr(value));
}

static void add_count(struct strbuf *out, const char *title, uint64_t count)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	format_count(&text, count);
	add_line(out, title, &text);
}

static void add_time(struct strbuf *out, const char *title, uint64_t us)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	format_duration(&text, us * NS_PER_US);
	add_line(out, title, &text);
}

static void add_types(struct strbuf *out, const struct et_stat *stat)
{
	for (int type = 0; type < ET_TYPES; type++) {
		if (stat->types[type] > 0)
			add_count(out, et_node_type_to_string(type) ?: "other types",
				stat->types[type]);
	}
}

static int add_collectives(struct strbuf *out, const struct et_stat *stat)
{
	static const struct table_column columns[] = {{.title = "COLLECTIVE", .is_text = true},
		{.title = "GROUP", .is_text = true}, {.title = "COUNT", .right = true},
		{.title = "BYTES", .right = true}, {.title = "TIME", .right = true}};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns), .indent = 2};
	struct terminal terminal = terminal_of(stdout);

	if (stat->collectives.count == 0)
		return 0;
	strbuf_add_char(out, '\n');
	array_foreach (&stat->collectives, row) {
		table_cell(&table, et_stat_kind(row));
		table_cell(&table, et_table_text(stat->table, row->group));
		table_count(&table, row->count);
		table_bytes(&table, row->bytes);
		table_duration(&table, row->duration_us * NS_PER_US);
	}
	return table_print(&table, &terminal, out);
}

static int add_text(struct strbuf *out, const struct et_stat *stat)
{
	strbuf_add(out, stat->table->path);
	strbuf_add_char(out, '\n');
	add_count(out, "nodes", stat->table->rows.count);
	add_types(out, stat);
	add_count(out, "control deps", stat->ctrl_deps);
	add_count(out, "data deps", stat->data_deps);
	if (stat->span_us > 0)
		add_time(out, "span", stat->span_us);
	add_time(out, "host work", stat->host_us);
	add_time(out, "device work", stat->device_us);
	if (stat->has_cycle) {
		strbuf_add(out,
			"  critical path  none: nodes wait for themselves, see sonde chakra "
			"check\n");
	} else {
		add_time(out, "critical path", stat->critical_us);
		add_count(out, "depth", stat->depth);
	}
	return add_collectives(out, stat);
}

static void add_json(struct strbuf *out, const struct et_stat *stat)
{
	struct json_writer json = {.out = out, .pretty = true};
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {{"bytes", stat->table->bytes}, {"nodes", stat->table->rows.count},
		{"control_deps", stat->ctrl_deps}, {"data_deps", stat->data_deps},
		{"span_us", stat->span_us}, {"host_us", stat->host_us},
		{"device_us", stat->device_us}};

	json_begin_object(&json);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		json_key(&json, numbers[i].name);
		json_u64(&json, numbers[i].value);
	}
	json_key(&json, "critical_path_us");
	stat->has_cycle ? json_null(&json) : json_u64(&json, stat->critical_us);
	json_key(&json, "depth");
	stat->has_cycle ? json_null(&json) : json_u64(&json, stat->depth);
	json_key(&json, "types");
	json_begin_object(&json);
	for (int type = 0; type < ET_TYPES; type++) {
		json_key(&json, et_node_type_to_string(type) ?: "other");
		json_u64(&json, stat->types[type]);
	}
	json_end_object(&json);
	json_key(&json, "collectives");
	json_begin_array(&json);
	array_foreach (&stat->collectives, row) {
		json_begin_object(&json);
		json_key(&json, "kind");
		json_string(&json, et_stat_kind(row));
		json_key(&json, "group");
		json_string(&json, et_table_text(stat->table, row->group));
		json_key(&json, "count");
		json_u64(&json, row->count);
		json_key(&json, "bytes");
		json_u64(&json, row->bytes);
		json_key(&json, "duration_us");
		json_u64(&json, row->duration_us);
		json_end_object(&json);
	}
	json_end_array(&json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
}

static int run_stat(int count _unused_, char **positional)
{
	_cleanup_et_stat_ struct et_stat *stat = NULL;
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;
	int r = et_stat_read(&stat, positional[0], &err);

	if (r < 0)
		return fail(&err);
	if (arguments.json)
		add_json(&out, stat);
	else
		r = add_text(&out, stat);
	r = r ?: strbuf_status(&out);
	if (r < 0) {
		errmsg_set(&err, r, "memory ran out");
		return fail(&err);
	}
	fwrite(out.data, 1, out.length, stdout);
	return EXIT_OK;
}

static const struct option stat_options[] = {
	{.long_name = "json",
		.type = OPTION_FLAG,
		.help = "Print one JSON document instead.",
		.value = &arguments.json},
	{0},
};

const struct command chakra_stat_command = {
	.name = "chakra stat",
	.summary = "show what is in a Chakra execution trace, in numbers",
	.usage = "[--json] TRACE.et",
	.description =
		"Counts of nodes by type and of dependencies, times, and the collectives by kind "
		"and process group.\n\n"
		"The critical path is the longest chain of dependencies by duration, which no "
		"simulator with these durations can beat; depth is the most nodes in a chain.",
	.examples = "sonde chakra stat model.0.et",
	.options = stat_options,
	.minimum_arguments = 1,
	.maximum_arguments = 1,
	.run = run_stat,
};
