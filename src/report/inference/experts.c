/* SPDX-License-Identifier: Apache-2.0 */
/* The experts of models in an inference engine. */
#include "analyses/program/experts.h"

#include <math.h>

#include "report/sections.h"
#include "report/view.h"

#define DEFAULT_PAIRS 100
#define TOP_EXPERTS   5
/* vLLM's documents take a layer as balanced while the most chosen expert has less than twice the
 * mean. */
#define UNEVEN_BALANCE 0.5

static const struct report_column number_columns[] = {{.kind = REPORT_COUNT}};
static const struct report_shape number_shape = REPORT_SHAPE(number_columns);

static const struct report_column pair_columns[] = {
	{.key = "first", .kind = REPORT_INTEGER},
	{.key = "second", .kind = REPORT_INTEGER},
	{.key = "count", .kind = REPORT_COUNT},
};
static const struct report_shape pair_shape = REPORT_SHAPE(pair_columns);

static const struct report_column layer_columns[] = {
	{.key = "layer", .title = "Layer", .kind = REPORT_INTEGER},
	{.key = "name", .kind = REPORT_TEXT},
	{.key = "pid", .title = "PID", .kind = REPORT_INTEGER},
	{.key = "top_k", .kind = REPORT_COUNT},
	{.key = "calls", .kind = REPORT_COUNT},
	{.key = "tokens", .title = "Tokens", .kind = REPORT_COUNT},
	{.key = "chosen", .kind = REPORT_COUNT, .help = "sum of counts"},
	{.key = "outside", .kind = REPORT_COUNT, .help = "ids that are of no expert"},
	{.key = "lost_calls", .kind = REPORT_COUNT, .help = "counted, but not read"},
	{.key = "in_cuda_graph", .kind = REPORT_FLAG, .help = "its replays are not counted"},
	{.key = "used", .title = "Used", .kind = REPORT_COUNT},
	{.key = "experts", .title = "Experts", .kind = REPORT_COUNT},
	{.title = "Coverage", .kind = REPORT_SHARE, .decimals = 1},
	{.key = "minimum", .kind = REPORT_COUNT},
	{.key = "maximum", .kind = REPORT_COUNT},
	{.key = "mean", .kind = REPORT_NUMBER},
	{.key = "deviation", .kind = REPORT_NUMBER},
	{.title = "Max/mean", .kind = REPORT_NUMBER, .decimals = 2},
	{.key = "balance",
		.title = "Balance",
		.kind = REPORT_NUMBER,
		.decimals = 2,
		.help = "mean / maximum: 1 when all are chosen equally often"},
	{.key = "entropy_bits", .kind = REPORT_NUMBER, .help = "of the shares of choices"},
	{.key = "entropy_share",
		.title = "Entropy",
		.kind = REPORT_SHARE,
		.decimals = 1,
		.help = "entropy_bits / log2(experts): 1 when all are chosen equally often"},
	{.key = "router_entropy_bits",
		.kind = REPORT_NUMBER,
		.help = "of the probabilities of a token, the mean; null: not known"},
	{.key = "load_balance",
		.title = "Load",
		.kind = REPORT_NUMBER,
		.decimals = 2,
		.help = "experts x sum of (share of choices x mean probability): 1 when both are "
			"even"},
	{.key = "load_balance_by",
		.kind = REPORT_TEXT,
		.help = "\"probabilities\", or \"counts\", where shares of choices stand for them"},
	{.key = "counts", .kind = REPORT_LIST, .shape = &number_shape, .help = "by expert"},
	{.key = "weights_by_tenth", .kind = REPORT_LIST, .shape = &number_shape},
	{.key = "pairs_left_out", .kind = REPORT_FLAG, .help = "not all pairs were recorded"},
	{.key = "pairs",
		.kind = REPORT_ROWS,
		.shape = &pair_shape,
		.help = "of experts that one token chose, the most frequent first"},
	{.title = "Most chosen", .kind = REPORT_TEXT, .shrinks_to = 16},
};
static const struct report_shape layer_shape = REPORT_SHAPE(layer_columns);

static const struct report_column columns[] = {
	{.key = "layers",
		.kind = REPORT_ROWS,
		.shape = &layer_shape,
		.help = "by process and number"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_numbers(struct result *result, const uint64_t *numbers, size_t count)
{
	result_open(result);
	for (size_t i = 0; i < count; i++)
		result_u64(result, numbers[i]);
	result_close(result);
}

static void add_pairs(
	struct result *result, const struct experts *experts, uint32_t layer, size_t limit)
{
	size_t count = 0;

	result_open(result);
	array_foreach (&experts->pairs, pair) {
		if (pair->layer != layer || count++ >= limit)
			continue;
		result_u64(result, pair->first);
		result_u64(result, pair->second);
		result_u64(result, pair->count);
	}
	result_close(result);
}

static void add_top(
	struct result *result, const struct experts *experts, const struct expert_layer *layer)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint32_t top[TOP_EXPERTS];
	size_t count = experts_top(experts, layer, ARRAY_SIZE(top), top);

	for (size_t i = 0; i < count; i++)
		strbuf_addf(&text, "%s%u %.1f %%", i ? ", " : "", top[i],
			100.0 * (double)experts->counts.items[layer->first_count + top[i]] /
				(double)layer->spread.chosen);
	strbuf_inherit_status(&result->texts, &text);
	result_text(result, strbuf_cstr(&text));
}

static void add_layer(struct result *result, const struct model *model,
	const struct experts *experts, uint32_t index, size_t pairs)
{
	const struct expert_layer *layer = &experts->layers.items[index];
	const struct expert_spread *spread = &layer->spread;

	result_u64(result, layer->number);
	result_text(result, layer->name);
	result_u64(result, model->processes.items[layer->process].pid);
	result_u64(result, layer->top_k);
	result_u64(result, layer->calls);
	result_u64(result, layer->tokens);
	result_u64(result, spread->chosen);
	result_u64(result, layer->outside);
	result_u64(result, layer->lost_calls);
	result_flag(result, layer->captured);
	result_u64(result, spread->used);
	result_u64(result, layer->experts);
	result_share(result, spread->used, layer->experts);
	result_u64(result, spread->minimum);
	result_u64(result, spread->maximum);
	result_number(result, spread->mean);
	result_number(result, spread->deviation);
	result_share(result, (double)spread->maximum, spread->mean);
	result_number(result, spread->balance);
	result_number(result, spread->chosen ? spread->entropy_bits : NAN);
	result_share(result, spread->chosen ? spread->entropy_bits : NAN, log2(layer->experts));
	result_number(result, layer->router_entropy_bits);
	result_number(result, layer->load_balance);
	result_text(result, !spread->chosen        ? NULL
			    : layer->routed_tokens ? "probabilities"
						   : "counts");
	add_numbers(result, layer->experts ? &experts->counts.items[layer->first_count] : NULL,
		layer->experts);
	add_numbers(result, layer->weights, EXPERT_WEIGHT_BINS);
	result_flag(result, layer->pairs_left_out);
	add_pairs(result, experts, index, pairs);
	add_top(result, experts, layer);
}

static void say_notes(struct result *result, const struct experts *experts)
{
	uint64_t lost = 0;
	size_t captured = 0, uneven = 0, without = 0;

	array_foreach (&experts->layers, layer) {
		lost += layer->lost_calls;
		captured += layer->captured;
		uneven += layer->spread.chosen && layer->spread.balance < UNEVEN_BALANCE;
		without += layer->spread.chosen && !layer->routed_tokens;
	}
	if (uneven)
		result_sentencef(result, 0,
			"In %zu layers an expert was chosen more than twice as often as the mean.",
			uneven);
	if (without)
		result_sentence(result, 0,
			"Load is from counts alone: the probabilities of routers are recorded by "
			"sonde.watch(model, level=\"stats\"), and not in vLLM.");
	if (captured)
		result_sentencef(result, 0,
			"%zu layers are part of CUDA graphs, whose replays are not counted: with "
			"vLLM's --enforce-eager all are.",
			captured);
	if (lost)
		result_sentencef(result, 0,
			"%llu calls were counted, but not read before the window or the program "
			"ended.",
			(unsigned long long)lost);
}

static int make(struct result *result, const struct report_input *input)
{
	const struct model *model = input->view->model;
	_cleanup_experts_ struct experts experts = {0};
	int r = input->is_json || input->is_alone ? experts_init(&experts, model) : 0;
	uint32_t layers;

	if (r < 0)
		return r;
	if (!experts.layers.count)
		return report_nothing(result, input,
			"There are no experts: no process that was recorded ran a "
			"mixture-of-experts model in vLLM with hooks.");
	result_open(result);
	layers = result_open(result);
	for (uint32_t i = 0; i < experts.layers.count; i++)
		add_layer(result, model, &experts, i, input->limit ? input->limit : DEFAULT_PAIRS);
	result_close(result);
	result_close(result);
	if (!input->is_alone)
		return 0;
	result_heading(result, "Experts");
	result_show(result, layers, &(struct result_show){.limit = input->limit, .noun = "layers"});
	say_notes(result, &experts);
	return 0;
}

const struct report_section experts_section = {
	.value = {.key = "experts", .kind = REPORT_OBJECT, .shape = &shape, .help = "of vLLM"},
	.by = "expert",
	.summary = "which experts a model chose",
	.needs = REPORT_NEEDS_RECORDING,
	.shows = SELECTION_RANGES,
	.make = make,
};
