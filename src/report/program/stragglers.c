/* SPDX-License-Identifier: Apache-2.0 */
/* Section: ranks that the others wait for. */
#include <inttypes.h>

#include "analyses/program/trace_stragglers.h"
#include "report/columns.h"
#include "report/sections.h"

static const struct report_column rank_columns[] = {
	{.key = "rank", .title = "Rank", .kind = REPORT_INTEGER},
	{.key = "late_steps", .title = "Late in", .kind = REPORT_COUNT},
	{.key = "steps", .title = "Of steps", .kind = REPORT_COUNT},
	{.key = "mean_lateness_ns", .title = "Begins after the first", .kind = REPORT_NS},
	{.key = "mean_duration_ns", .title = "Takes", .kind = REPORT_NS},
};
static const struct report_shape rank_shape = REPORT_SHAPE(rank_columns);

static const struct report_column columns[] = {
	{.key = "name", .kind = REPORT_TEXT, .help = "the collective that ranks are compared by"},
	{.key = "stream", .kind = REPORT_INTEGER},
	{.key = "steps", .kind = REPORT_COUNT},
	{.key = "ranks", .kind = REPORT_ROWS, .shape = &rank_shape, .help = "the latest first"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static int make(struct result *result, const struct report_input *input)
{
	const struct result_show show = {
		.limit = report_rows_shown(input, 20, 10), .noun = "ranks"};
	_cleanup_trace_stragglers_ struct trace_stragglers stragglers = {0};
	int r = trace_stragglers_init(&stragglers, input->trace->views, input->trace->count,
		&(struct trace_straggler_options){0});
	uint32_t table;

	if (r < 0)
		return r;
	if (!stragglers.ranks.count)
		return report_nothing(result, input,
			"There is nothing to tell stragglers by: that takes two ranks or more, "
			"profiler steps, and collectives that take 1 % of a step.");
	result_open(result);
	result_text(result, stragglers.name);
	columns_add_number(result, stragglers.stream);
	result_u64(result, stragglers.steps);
	table = result_open(result);
	array_foreach (&stragglers.ranks, rank) {
		result_u64(result, rank->rank);
		result_u64(result, rank->late_steps);
		result_u64(result, rank->steps);
		result_i64(result, rank->lateness_ns);
		result_i64(result, rank->duration_ns);
	}
	result_close(result);
	result_close(result);
	result_heading(result, "Stragglers");
	result_sentencef(result, 2,
		"The rank that begins a collective last makes the others wait. Looked at is the "
		"last %s of each step on stream %" PRId64 ", whose duration differs most between "
		"ranks.",
		stragglers.name, stragglers.stream);
	result_show(result, table, &show);
	return 0;
}

const struct report_section stragglers_section = {
	.value = {.key = "stragglers",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "null where there is nothing to tell by"},
	.by = "stragglers",
	.summary = "ranks that the others wait for",
	.needs = REPORT_NEEDS_TRACE,
	.make = make,
};
