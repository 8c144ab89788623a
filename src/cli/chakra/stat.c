/* SPDX-License-Identifier: Apache-2.0 */
/* sonde chakra stat: what is in a Chakra trace, in numbers. */
#include <stdio.h>

#include "chakra/et/stat.h"
#include "cli/chakra/chakra.h"
#include "model/format.h"
#include "report/render.h"

static struct {
	bool json;
} arguments;

static const struct report_column type_columns[] = {
	{.key = "type", .kind = REPORT_TEXT},
	{.key = "nodes", .kind = REPORT_COUNT},
};
static const struct report_shape type_shape = REPORT_SHAPE(type_columns);

static const struct report_column collective_columns[] = {
	{.key = "kind", .title = "Collective", .kind = REPORT_TEXT},
	{.key = "group", .title = "Group", .kind = REPORT_TEXT},
	{.key = "count", .title = "Count", .kind = REPORT_COUNT},
	{.key = "bytes", .title = "Bytes", .kind = REPORT_BYTES},
	{.key = "duration_us", .kind = REPORT_COUNT},
	{.title = "Time", .kind = REPORT_NS},
};
static const struct report_shape collective_shape = REPORT_SHAPE(collective_columns);

static const struct report_column columns[] = {
	{.key = "bytes", .kind = REPORT_BYTES},
	{.key = "nodes", .kind = REPORT_COUNT},
	{.key = "control_deps", .kind = REPORT_COUNT},
	{.key = "data_deps", .kind = REPORT_COUNT},
	{.key = "span_us", .kind = REPORT_COUNT},
	{.key = "host_us", .kind = REPORT_COUNT},
	{.key = "device_us", .kind = REPORT_COUNT},
	{.key = "critical_path_us", .kind = REPORT_COUNT},
	{.key = "depth", .kind = REPORT_COUNT},
	{.key = "types", .kind = REPORT_MAP, .shape = &type_shape},
	{.key = "collectives", .kind = REPORT_ROWS, .shape = &collective_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);
static const struct report_column document = {.kind = REPORT_OBJECT, .shape = &shape};

/* Returns the table of collectives. */
static uint32_t add_figures(struct result *result, const struct et_stat *stat)
{
	const uint64_t numbers[] = {stat->table->bytes, stat->table->rows.count, stat->ctrl_deps,
		stat->data_deps, stat->span_us, stat->host_us, stat->device_us};
	uint32_t table;

	result_open(result);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		result_u64(result, numbers[i]);
	result_known(result, !stat->has_cycle, stat->critical_us);
	result_known(result, !stat->has_cycle, stat->depth);
	result_open(result);
	for (int type = 0; type < ET_TYPES; type++) {
		result_text(result, et_node_type_to_string(type) ?: "other");
		result_u64(result, stat->types[type]);
	}
	result_close(result);
	table = result_open(result);
	array_foreach (&stat->collectives, row) {
		result_text(result, et_stat_kind(row));
		result_text(result, et_table_text(stat->table, row->group));
		result_u64(result, row->count);
		result_u64(result, row->bytes);
		result_u64(result, row->duration_us);
		result_u64(result, row->duration_us * NS_PER_US);
	}
	result_close(result);
	result_close(result);
	return table;
}

/* "6,119 nodes: 6,035 COMP_NODE, 84 COMM_COLL_NODE; 6,118 control and 5,220 data dependencies." */
static void say_nodes(struct result *result, const struct et_stat *stat)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	const char *separator = ": ";

	format_plural(&text, stat->table->rows.count, "node", "nodes");
	for (int type = 0; type < ET_TYPES; type++) {
		if (!stat->types[type])
			continue;
		strbuf_add(&text, separator);
		format_count(&text, stat->types[type]);
		strbuf_addf(&text, " %s", et_node_type_to_string(type) ?: "of other types");
		separator = ", ";
	}
	strbuf_add(&text, "; ");
	format_count(&text, stat->ctrl_deps);
	strbuf_add(&text, " control and ");
	format_count(&text, stat->data_deps);
	strbuf_add(&text, " data dependencies.");
	result_say(result, 2, &text);
}

static void say_times(struct result *result, const struct et_stat *stat)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "Host work ");
	format_duration(&text, stat->host_us * NS_PER_US);
	strbuf_add(&text, ", device work ");
	format_duration(&text, stat->device_us * NS_PER_US);
	if (stat->span_us) {
		strbuf_add(&text, ", span ");
		format_duration(&text, stat->span_us * NS_PER_US);
	}
	if (stat->has_cycle) {
		strbuf_add(&text, "; no critical path, since nodes wait for themselves: see sonde "
				  "chakra check");
	} else {
		strbuf_add(&text, "; critical path ");
		format_duration(&text, stat->critical_us * NS_PER_US);
		strbuf_add(&text, ", depth ");
		format_plural(&text, stat->depth, "node", "nodes");
	}
	strbuf_add_char(&text, '.');
	result_say(result, 2, &text);
}

static int run_stat(int count _unused_, char **positional)
{
	const struct terminal terminal = terminal_of(stdout);
	_cleanup_et_stat_ struct et_stat *stat = NULL;
	_cleanup_result_ struct result result = {.column = &document};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;
	uint32_t collectives;
	int r = et_stat_read(&stat, positional[0], &err);

	if (r < 0)
		return fail(&err);
	collectives = add_figures(&result, stat);
	result_title(&result, stat->table->path);
	say_nodes(&result, stat);
	say_times(&result, stat);
	if (stat->collectives.count)
		result_lines(&result, "\n");
	result_show(&result, collectives, &(struct result_show){0});
	r = report_render(
		&result, arguments.json ? REPORT_FORM_JSON : REPORT_FORM_TERMINAL, &terminal, &out);
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
