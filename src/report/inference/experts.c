/* SPDX-License-Identifier: Apache-2.0 */
/* The experts of models in an inference engine, as the report shows them. */
#include "analyses/program/experts.h"
#include "report/view.h"

#define TOP_EXPERTS 5
/* vLLM's documents take a layer as balanced while the most chosen expert has less than twice the
 * mean. */
#define UNEVEN_BALANCE 0.5

static void add_top(
	struct table *table, const struct experts *experts, const struct expert_layer *layer)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint32_t top[TOP_EXPERTS];
	size_t count = experts_top(experts, layer, ARRAY_SIZE(top), top);

	for (size_t i = 0; i < count; i++)
		strbuf_addf(&text, "%s%u %.1f %%", i ? ", " : "", top[i],
			100.0 * (double)experts->counts.items[layer->first_count + top[i]] /
				(double)layer->spread.chosen);
	table_cell(table, strbuf_cstr(&text));
}

static void add_layer(const struct report_view *view, struct table *table,
	const struct experts *experts, const struct expert_layer *layer)
{
	const struct expert_spread *spread = &layer->spread;

	table_cellf(table, "%llu", (unsigned long long)layer->number);
	table_cellf(table, "%u", view->model->processes.items[layer->process].pid);
	table_count(table, layer->tokens);
	table_cellf(table, "%u of %u", spread->used, layer->experts);
	table_cellf(table, "%.1f %%",
		layer->experts ? 100.0 * spread->used / (double)layer->experts : 0.0);
	if (spread->chosen) {
		table_cellf(table, "%.2f", (double)spread->maximum / spread->mean);
		table_cellf(table, "%.2f", spread->balance);
	} else {
		table_cell(table, "");
		table_cell(table, "");
	}
	add_top(table, experts, layer);
}

static void add_expert_notes(const struct report_view *view, const struct experts *experts)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t lost = 0;
	size_t captured = 0, uneven = 0;

	array_foreach (&experts->layers, layer) {
		lost += layer->lost_calls;
		captured += layer->captured;
		uneven += layer->spread.chosen && layer->spread.balance < UNEVEN_BALANCE;
	}
	if (uneven)
		strbuf_addf(&text,
			"In %zu layers an expert was chosen more than twice as often as the "
			"mean. ",
			uneven);
	if (captured)
		strbuf_addf(&text,
			"%zu layers are part of CUDA graphs, whose replays are not counted: with "
			"vLLM's --enforce-eager all are. ",
			captured);
	if (lost)
		strbuf_addf(&text,
			"%llu calls were counted, and not read before the window or the program "
			"ended. ",
			(unsigned long long)lost);
	if (text.length)
		report_paragraph(view, strbuf_cstr(&text), 0);
}

int report_experts(const struct report_view *view, size_t limit)
{
	static const struct table_column columns[] = {
		{.title = "Layer", .right = true},
		{.title = "PID", .right = true},
		{.title = "Tokens", .right = true},
		{.title = "Used", .right = true},
		{.title = "Coverage", .right = true},
		{.title = "Max/mean", .right = true},
		{.title = "Balance", .right = true},
		{.title = "Most chosen", .is_text = true, .shrinks_to = 16},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	_cleanup_experts_ struct experts experts = {0};
	int r = experts_init(&experts, view->model);

	if (r < 0)
		return r;
	if (!experts.layers.count) {
		report_paragraph(view,
			"There are no experts: no process that was recorded ran a "
			"mixture-of-experts model in vLLM with hooks.",
			0);
		return 0;
	}
	report_heading(view, "Experts");
	for (size_t i = 0; i < experts.layers.count && (!limit || i < limit); i++)
		add_layer(view, &table, &experts, &experts.layers.items[i]);
	r = table_print(&table, &view->terminal, view->out);
	if (limit && experts.layers.count > limit)
		strbuf_addf(view->out, "… and %zu more\n", experts.layers.count - limit);
	add_expert_notes(view, &experts);
	return r;
}
