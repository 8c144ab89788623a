/* SPDX-License-Identifier: Apache-2.0 */
/* What to change: costs that a program can often do without, where they are large. */
#include <stdlib.h>

#include "report/columns.h"
#include "report/cpu/avoidable_rules.h"
#include "report/sections.h"

#define ADVICE_MAX 5

static const struct report_column row_columns[] = {
	{.key = "id", .title = "Cost", .kind = REPORT_TEXT},
	{.key = "time_ns",
		.title = "Time",
		.kind = REPORT_NS,
		.help = "on CPUs, or waiting, of all threads together"},
	{.key = "share",
		.title = "Share",
		.kind = REPORT_SHARE,
		.help = "of `of`: null where that took no time"},
	{.key = "of", .title = "Of", .kind = REPORT_TEXT},
	{.key = "threads", .title = "Threads", .kind = REPORT_COUNT},
	{.key = "line_time_ns",
		.title = "In a line",
		.kind = REPORT_NS,
		.help = "of the line that has most of it"},
	REPORT_FRAME_COLUMNS("Line"),
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column columns[] = {
	{.key = "rows", .kind = REPORT_ROWS, .shape = &row_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_row(
	struct result *result, const struct model *model, const struct avoidable_finding *finding)
{
	result_text(result, finding->rule->id);
	result_u64(result, finding->time_ns);
	result_number(result, finding->share);
	result_text(result, avoidable_base_name(finding->rule->base));
	result_u64(result, finding->use->threads);
	result_u64(result, finding->use->frame_ns);
	columns_add_frame(result, model, finding->use->frame, NULL);
}

static int advise(struct result *result, const struct avoidable_finding *finding)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	avoidable_say(finding, &text);
	strbuf_inherit_status(&result->texts, &text);
	result_advise(result,
		&(struct result_advice){.id = finding->rule->id,
			.saves_ns = avoidable_saves_ns(finding),
			.docs = finding->rule->docs,
			.evidence = {{"time_ns", (double)finding->time_ns},
				{"share", finding->share},
				{"threads", (double)finding->use->threads}}},
		strbuf_cstr(&text));
	return strbuf_status(&text);
}

/* ---- the section ---- */

static int compare_findings(const void *left, const void *right)
{
	const struct avoidable_finding *a = left, *b = right;
	uint64_t a_ns = avoidable_saves_ns(a), b_ns = avoidable_saves_ns(b);

	if (a_ns != b_ns)
		return a_ns > b_ns ? -1 : 1;
	return a->rule < b->rule ? -1 : a->rule > b->rule;
}

static int show(struct result *result, const struct report_input *input,
	const struct avoidable_finding findings[AVOIDABLE_MAX], uint32_t table)
{
	bool has_heading = input->is_alone;
	unsigned count = 0;
	int r = 0;

	if (input->is_alone) {
		result_heading(result, "Costs that can often be avoided");
		result_show(result, table, &(struct result_show){0});
	}
	for (unsigned i = 0; r == 0 && i < AVOIDABLE_MAX && count < ADVICE_MAX; i++) {
		if (!avoidable_is_large(&findings[i]))
			continue;
		if (!has_heading)
			result_heading(result, "What to change");
		has_heading = true;
		count++;
		r = advise(result, &findings[i]);
	}
	if (count && !input->is_alone)
		result_sentence(
			result, 2, "docs/record.md#what-to-change says how each is recognised.");
	return r;
}

static int make(struct result *result, const struct report_input *input)
{
	const struct model *model = input->view->model;
	struct avoidable_finding findings[AVOIDABLE_MAX];
	struct avoidable_uses uses;
	struct errmsg err = {{0}};
	uint32_t table;
	int r;

	if (!model_has_time(model))
		return report_nothing(result, input, "The samples have no known duration.");
	r = avoidable_uses_init(&uses, model, input->view->selection, &err);
	if (r < 0)
		return r;
	if (!uses.samples)
		return report_nothing(result, input, "There are no samples of running threads.");
	for (unsigned cost = 0; cost < AVOIDABLE_MAX; cost++)
		findings[cost] = avoidable_find(model, &uses, (enum avoidable)cost);
	qsort(findings, AVOIDABLE_MAX, sizeof(*findings), compare_findings);
	result_open(result);
	table = result_open(result);
	for (unsigned i = 0; i < AVOIDABLE_MAX; i++) {
		if (findings[i].time_ns)
			add_row(result, model, &findings[i]);
	}
	result_close(result);
	result_close(result);
	return show(result, input, findings, table);
}

const struct report_section avoidable_section = {
	.value = {.key = "avoidable",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "costs that a program can often do without; null without samples"},
	.by = "avoidable",
	.summary = "costs that can often be avoided: slow libraries, spinning, waiting for data",
	.needs = REPORT_NEEDS_RECORDING,
	.make = make,
};
