/* SPDX-License-Identifier: Apache-2.0 */
/* Section: which rank of a distributed job is slow, where, and which one the others wait for. */
#include "analyses/program/ranks.h"

#include <inttypes.h>

#include "report/columns.h"
#include "report/program/collectives.h"
#include "report/sections.h"

static const struct report_column time_columns[] = {
	{.key = "rank", .kind = REPORT_INTEGER},
	{.key = "count", .kind = REPORT_COUNT},
	{.key = "total_ns", .kind = REPORT_NS},
	{.key = "mean_ns", .kind = REPORT_NS},
	{.key = "cpu_time_ns", .kind = REPORT_NS, .help = "null without samples, as is the next"},
	{.key = "wait_time_ns",
		.kind = REPORT_NS,
		.help = "of the threads that have them: waits that ended there"},
	{.key = "device_busy_ns", .kind = REPORT_NS, .help = "of work that was launched in them"},
};
static const struct report_shape time_shape = REPORT_SHAPE(time_columns);

static const struct report_column row_columns[] = {
	{.key = "slowest_rank", .title = "Slowest rank", .kind = REPORT_INTEGER},
	{.title = "Mean", .kind = REPORT_NS},
	{.key = "fastest_rank", .title = "Fastest", .kind = REPORT_INTEGER},
	{.title = "Mean", .kind = REPORT_NS},
	{.title = "Spread", .kind = REPORT_SHARE, .decimals = 1},
	{.key = "spread_ns", .kind = REPORT_NS, .help = "between the two means"},
	{.key = "difference",
		.title = "More",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.help = "what the slowest rank has more of on average, CPU time, waiting, device "
			"work; null: none of them is about as large as the spread"},
	{.key = "difference_ns", .title = "", .kind = REPORT_NS, .hide = REPORT_HIDE_EMPTY},
	{.title = "Ranks", .kind = REPORT_COUNT},
	{.key = "kind", .title = "Kind", .kind = REPORT_TEXT, .help = "step, range"},
	{.key = "domain", .title = "Domain", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY},
	{.key = "name",
		.title = "Name",
		.kind = REPORT_TEXT,
		.shrinks_to = 12,
		.unknown = "[no name]"},
	{.key = "ranks", .kind = REPORT_ROWS, .shape = &time_shape},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column late_columns[] = {
	{.key = "rank", .title = "Rank", .kind = REPORT_INTEGER},
	{.key = "late_steps", .title = "Late in", .kind = REPORT_COUNT},
	{.key = "steps", .title = "Of steps", .kind = REPORT_COUNT},
	{.key = "mean_lateness_ns", .title = "Begins after the first", .kind = REPORT_NS},
	{.key = "mean_duration_ns", .title = "Takes", .kind = REPORT_NS},
};
static const struct report_shape late_shape = REPORT_SHAPE(late_columns);

static const struct report_column collective_columns[] = {
	{.key = "name", .kind = REPORT_TEXT},
	{.key = "stream", .kind = REPORT_INTEGER},
	{.key = "steps", .kind = REPORT_COUNT},
	{.key = "ranks", .kind = REPORT_ROWS, .shape = &late_shape, .help = "the latest first"},
};
static const struct report_shape collective_shape = REPORT_SHAPE(collective_columns);

static const struct report_column columns[] = {
	{.key = "rows",
		.kind = REPORT_ROWS,
		.shape = &row_shape,
		.help = "steps and ranges of several ranks"},
	{.key = "collectives",
		.kind = REPORT_OBJECT,
		.shape = &report_collectives_shape,
		.help = "who waited for whom; null where none were matched, and with "
			"--hta-compatible"},
	{.key = "collective",
		.kind = REPORT_OBJECT,
		.shape = &collective_shape,
		.help = "with --hta-compatible: the one that ranks are compared by"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* ---- steps and ranges ---- */

/* What is made of ranks, of this model. */
struct source {
	const struct model *model;
	const struct ranks *ranks;
	bool has_waiting;
};

static void add_time(
	struct result *result, const struct source *source, const struct rank_time *time)
{
	result_u64(result, time->rank);
	result_u64(result, time->count);
	result_u64(result, time->total_ns);
	result_u64(result, rank_time_mean_ns(time));
	columns_add_cpu_time(result, source->model, time->cost.samples);
	result_known(result, source->has_waiting, time->wait_ns);
	result_u64(result, time->cost.device_busy_ns);
}

static void add_row(struct result *result, const struct source *source, const struct rank_row *row)
{
	const struct ranks *ranks = source->ranks;
	const struct rank_time *slowest = &ranks->times.items[row->slowest];
	const struct rank_time *fastest = &ranks->times.items[row->fastest];
	uint64_t spread_ns = rank_row_spread_ns(ranks, row);

	result_u64(result, slowest->rank);
	result_u64(result, rank_time_mean_ns(slowest));
	result_u64(result, fastest->rank);
	result_u64(result, rank_time_mean_ns(fastest));
	result_share(result, (double)spread_ns, (double)rank_time_mean_ns(fastest));
	result_u64(result, spread_ns);
	result_text(result, rank_difference_name(row->difference));
	result_known(result, row->difference != RANK_DIFFERENCE_UNKNOWN, row->difference_ns);
	result_u64(result, row->rank_count);
	result_text(result, row->is_step ? "step" : "range");
	result_text(result, row->domain);
	result_text(result, row->name);
	result_open(result);
	for (uint32_t i = 0; i < row->rank_count; i++)
		add_time(result, source, &ranks->times.items[row->first_rank + i]);
	result_close(result);
}

static void add_rows(
	struct result *result, const struct report_input *input, const struct ranks *ranks)
{
	struct source source = {.model = input->view->model, .ranks = ranks};
	uint32_t table;

	if (!ranks->rows.count) {
		result_null(result);
		return;
	}
	source.has_waiting = report_has_waiting(source.model);
	table = result_open(result);
	array_foreach (&ranks->rows, row)
		add_row(result, &source, row);
	result_close(result);
	result_heading(result, "Ranks: the slowest and the fastest");
	result_show(result, table,
		&(struct result_show){
			.limit = report_rows_shown(input, 20, 8), .noun = "ranges and steps"});
}

/* ---- the collective of HTA ---- */

static void add_collective(
	struct result *result, const struct report_input *input, const struct ranks *ranks)
{
	uint32_t table;

	if (!ranks->lateness.count) {
		result_null(result);
		return;
	}
	result_open(result);
	result_text(result, ranks->collective);
	columns_add_number(result, ranks->stream);
	result_u64(result, ranks->steps);
	table = result_open(result);
	array_foreach (&ranks->lateness, rank) {
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
		"The rank that begins a collective last makes the others wait. The table is about "
		"the last %s of each step on stream %" PRId64
		", whose duration differs most between ranks.",
		ranks->collective, ranks->stream);
	result_show(result, table,
		&(struct result_show){.limit = report_rows_shown(input, 20, 10), .noun = "ranks"});
}

static int make(struct result *result, const struct report_input *input)
{
	const struct trace_report *trace = input->trace;
	struct rank_input from = {
		.model = input->view->model,
		.selected = input->view->selected,
		.views = trace ? trace->views : NULL,
		.view_count = trace ? trace->count : 0,
	};
	_cleanup_ranks_ struct ranks ranks = {0};
	int r;

	if (trace)
		from.definition = trace->definitions->ranks;
	r = ranks_init(&ranks, &from);
	if (r < 0)
		return r;
	if (!ranks.rows.count && !ranks.lateness.count && !ranks.collectives.matched)
		return report_nothing(result, input,
			"There is nothing to compare ranks by: that takes two ranks or more with "
			"steps or ranges of one name, or with collectives that belong together.");
	result_open(result);
	add_rows(result, input, &ranks);
	report_add_collectives(result, input, &ranks.collectives);
	add_collective(result, input, &ranks);
	result_close(result);
	return 0;
}

static const struct report_name also[] = {
	{"stragglers", "ranks that the others wait for"},
	{0},
};

/* Behind the table of samples by rank. */
const struct report_section ranks_section = {
	.value = {.key = "ranks",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "null where there is nothing to compare"},
	.by = "rank",
	.also = also,
	.summary = "the ranks of a job, and which is slowest",
	.needs = REPORT_NEEDS_PROGRAMS | REPORT_NEEDS_ROWS,
	.comes_along = true,
	.shows = SELECTION_RANGES,
	.make = make,
};
