/* SPDX-License-Identifier: Apache-2.0 */
/* The layers and components of models: each row, and added up by component and by layer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "model/format.h"
#include "report/columns.h"
#include "report/inference/figures.h"
#include "report/sections.h"

static const struct report_column row_columns[] = {
	{.key = "layer", .kind = REPORT_INTEGER, .help = "null: of none"},
	{.key = "role", .kind = REPORT_TEXT},
	{.key = "rest",
		.kind = REPORT_FLAG,
		.help = "the remainder of a range that contains others"},
	{.key = "pid", .kind = REPORT_INTEGER},
	{.key = "calls", .kind = REPORT_COUNT},
	{.key = "total_ns", .kind = REPORT_NS},
	{.key = "own_ns", .kind = REPORT_NS, .help = "without nested ranges"},
	{.key = "share", .kind = REPORT_SHARE, .help = "of steps_ns"},
	{.key = "own_thread_cpu_ns", .kind = REPORT_NS, .help = "where ranges carry it"},
	REPORT_COST_COLUMNS,
	REPORT_JOULES_MEMBER,
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

/* Tables of sums. */
enum { COMPONENTS, LAYERS };
#define OF_COMPONENTS (1U << COMPONENTS)
#define OF_LAYERS     (1U << LAYERS)
#define OF_BOTH       (OF_COMPONENTS | OF_LAYERS)

static const struct report_column sum_columns[] = {
	{.title = "Time", .kind = REPORT_NS, .views = OF_BOTH},
	{.title = "Share", .kind = REPORT_SHARE, .views = OF_BOTH},
	{.title = "Per step", .kind = REPORT_NS, .views = OF_BOTH},
	{.title = "CPU time", .kind = REPORT_NS, .views = OF_BOTH},
	{.title = "Device", .kind = REPORT_NS, .views = OF_BOTH, .hide = REPORT_HIDE_EMPTY},
	REPORT_JOULES_COLUMNS(NULL, OF_BOTH),
	{.title = "Calls", .kind = REPORT_COUNT, .views = OF_COMPONENTS},
	{.title = "Component", .kind = REPORT_TEXT, .views = OF_COMPONENTS},
	{.title = "Most in", .kind = REPORT_TEXT, .views = OF_LAYERS},
	{.title = "", .kind = REPORT_SHARE, .decimals = 1, .views = OF_LAYERS},
	{.title = "Layer", .kind = REPORT_INTEGER, .views = OF_LAYERS, .unknown = "none"},
};
static const struct report_shape sum_shape = REPORT_SHAPE(sum_columns);

static const struct report_column columns[] = {
	{.key = "steps", .kind = REPORT_COUNT, .help = "forward passes with ranges inside"},
	{.key = "steps_ns", .kind = REPORT_NS, .help = "what they took"},
	{.key = "unwatched_steps", .kind = REPORT_COUNT},
	{.key = "watched_mean_ns", .kind = REPORT_NS, .help = "of passes of one token"},
	{.key = "unwatched_mean_ns", .kind = REPORT_NS},
	{.key = "in_layers_ns", .kind = REPORT_NS, .help = "of steps_ns"},
	{.key = "in_other_components_ns", .kind = REPORT_NS},
	{.key = "in_no_component_ns", .kind = REPORT_NS},
	{.key = "rows", .kind = REPORT_ROWS, .shape = &row_shape},
	{.kind = REPORT_ROWS, .shape = &sum_shape}, /* of components */
	{.kind = REPORT_ROWS, .shape = &sum_shape}, /* of layers */
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* Rows of one layer, or of one role in all layers, added up. */
struct sum {
	const struct layer_row *first; /* whose layer, or role, it is */
	const struct layer_row *hottest;
	uint32_t index; /* while the sums are not sorted; see sums.of_rows */
	uint64_t calls, own_ns, cpu_ns, samples, device_busy_ns;
};

struct sums {
	ARRAY_OF(struct sum) items;
	ARRAY_OF(uint32_t) of_rows; /* of layer_use: which sum they are in */
};

static void sums_done(struct sums *sums)
{
	array_done(&sums->items);
	array_done(&sums->of_rows);
}

/* What the rows of one sum have in common, as bytes; returns how many. */
typedef size_t key_function(const struct layer_row *row, char *out, size_t size);

static size_t key_of_layer(const struct layer_row *row, char *out, size_t size)
{
	(void)snprintf(out, size, "%u %" PRIu64, row->process, row->layer);
	return strlen(out);
}

static size_t key_of_role(const struct layer_row *row, char *out, size_t size)
{
	(void)snprintf(out, size, "%d %s", row->layer == LAYER_NONE, row->role);
	return strlen(out);
}

static void add_to_sum(struct sum *sum, const struct layer_row *row)
{
	if (row->own_ns > sum->hottest->own_ns)
		sum->hottest = row;
	sum->calls += row->calls;
	sum->own_ns += row->own_ns;
	sum->cpu_ns += row->own_cpu_ns;
	sum->samples += row->own.samples;
	sum->device_busy_ns += row->own.device_busy_ns;
}

static int add_up(const struct layer_use *use, key_function *key, struct sums *sums)
{
	char bytes[WIRE_RANGE_TEXT_BYTES + 32];
	struct intern keys = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < use->rows.count; i++) {
		const struct layer_row *row = &use->rows.items[i];
		uint32_t id;

		r = intern_add(&keys, bytes, key(row, bytes, sizeof(bytes)), &id);
		if (r > 0)
			r = array_append(&sums->items,
				(struct sum){.first = row, .hottest = row, .index = id});
		if (r >= 0)
			r = array_append(&sums->of_rows, id);
		if (r == 0 && id < sums->items.count)
			add_to_sum(&sums->items.items[id], row);
	}
	intern_done(&keys);
	return r;
}

static int compare_times(const void *left, const void *right)
{
	const struct sum *a = left, *b = right;

	if (a->own_ns != b->own_ns)
		return a->own_ns > b->own_ns ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

static int compare_layers(const void *left, const void *right)
{
	const struct sum *a = left, *b = right;

	if (a->first->process != b->first->process)
		return a->first->process < b->first->process ? -1 : 1;
	/* LAYER_NONE comes last. */
	return a->first->layer < b->first->layer ? -1 : a->first->layer > b->first->layer;
}

/* Of all rows of a sum together: more of them are long enough to be measured. */
static int find_joules(
	const struct report_view *view, const struct sums *sums, struct joules **ret_joules)
{
	_cleanup_free_ struct joules *joules = calloc(sums->items.count + 1, sizeof(*joules));
	int r = joules ? joules_of_rows(view->span_energy, &view->layers->spans,
				 sums->of_rows.items, sums->items.count, joules)
		       : -ENOMEM;

	if (r == 0)
		*ret_joules = TAKE_PTR(joules);
	return r;
}

static void add_sum(struct result *result, const struct report_view *view, const struct sum *sum,
	const struct joules *joules)
{
	const struct layer_use *use = view->layers;
	bool has_layer = sum->first->layer != LAYER_NONE;

	result_u64(result, sum->own_ns);
	result_share(result, (double)sum->own_ns, (double)use->step_ns);
	result_known(result, use->steps != 0, use->steps ? sum->own_ns / use->steps : 0);
	if (use->has_cpu)
		result_u64(result, sum->cpu_ns);
	else
		columns_add_cpu_time(result, view->model, sum->samples);
	result_u64(result, sum->device_busy_ns);
	report_add_joules(result, view, joules, 0);
	result_u64(result, sum->calls);
	result_textf(result, "%s%s", sum->first->role, has_layer ? "" : " (outside of layers)");
	result_text(result, sum->hottest->role);
	result_share(result, (double)sum->hottest->own_ns, (double)sum->own_ns);
	result_known(result, has_layer, sum->first->layer);
}

static int add_sums(struct result *result, const struct report_view *view, struct sums *sums,
	int (*compare)(const void *left, const void *right), struct energy_reasons *reasons)
{
	_cleanup_free_ struct joules *joules = NULL;
	int r = view->span_energy ? find_joules(view, sums, &joules) : 0;

	if (r < 0)
		return r;
	if (sums->items.count)
		qsort(sums->items.items, sums->items.count, sizeof(*sums->items.items), compare);
	array_foreach (&sums->items, sum) {
		if (joules)
			energy_reasons_add(reasons, &joules[sum->index]);
		add_sum(result, view, sum, joules ? &joules[sum->index] : NULL);
	}
	return 0;
}

/* Rows added up by what `key` finds. Returns the table in ret_table. */
static int add_grouped(struct result *result, const struct report_view *view, key_function *key,
	int (*compare)(const void *left, const void *right), struct energy_reasons *reasons,
	uint32_t *ret_table)
{
	struct sums sums = {0};
	int r = add_up(view->layers, key, &sums);

	*ret_table = result_open(result);
	if (r == 0)
		r = add_sums(result, view, &sums, compare, reasons);
	if (r == 0)
		result_close(result);
	sums_done(&sums);
	return r;
}

/* The sum of all rows against the time of the steps. */
static void say_sum(struct result *result, const struct layer_use *use)
{
	const struct {
		uint64_t ns;
		const char *text;
	} parts[] = {{use->layers_ns, " in layers, "}, {use->model_ns, " in other components, "},
		{use->rest_ns, " in neither"}};
	_cleanup_strbuf_ struct strbuf text = {0};

	format_count(&text, use->steps);
	strbuf_add(&text, use->steps == 1 ? " forward pass took " : " forward passes took ");
	format_duration(&text, use->step_ns);
	strbuf_add(&text, ": ");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		format_duration(&text, parts[i].ns);
		strbuf_add(&text, parts[i].text);
	}
	strbuf_addf(&text, " (together %.2f %%).",
		use->step_ns ? 100.0 * (double)(use->layers_ns + use->model_ns + use->rest_ns) /
				       (double)use->step_ns
			     : 0.0);
	if (use->unwatched_steps) {
		strbuf_add_char(&text, ' ');
		format_count(&text, use->unwatched_steps);
		strbuf_add(&text, " other passes were not instrumented.");
	}
	result_say(result, 0, &text);
}

/* What the hooks of layers and components cost, where there are passes with and without. */
static void say_overhead(struct result *result, const struct layer_use *use)
{
	const struct layer_passes *with = &use->watched, *without = &use->unwatched;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!with->count || !without->count || !without->total_ns)
		return;
	strbuf_add(&text, "Passes of one token took ");
	format_duration(&text, with->total_ns / with->count);
	strbuf_add(&text, " with hooks inside and ");
	format_duration(&text, without->total_ns / without->count);
	strbuf_addf(&text, " without (%+.1f %%, means of %llu and %llu).",
		100.0 * ((double)with->total_ns / (double)with->count /
					((double)without->total_ns / (double)without->count) -
				1),
		(unsigned long long)with->count, (unsigned long long)without->count);
	result_say(result, 0, &text);
}

static void add_row(struct result *result, const struct report_view *view,
	const struct layer_row *row, const struct joules *joules)
{
	const struct layer_use *use = view->layers;

	result_known(result, row->layer != LAYER_NONE, row->layer);
	result_text(result, row->role);
	result_flag(result, row->is_rest);
	result_u64(result, view->model->processes.items[row->process].pid);
	result_u64(result, row->calls);
	result_u64(result, row->total_ns);
	result_u64(result, row->own_ns);
	result_share(result, (double)row->own_ns, (double)use->step_ns);
	result_known(result, use->has_cpu, row->own_cpu_ns);
	report_add_span_cost(result, view->model, &row->own);
	report_add_joules_member(result, view, joules);
}

static int add_rows(struct result *result, const struct report_view *view)
{
	const struct layer_use *use = view->layers;
	_cleanup_free_ struct joules *joules = NULL;
	int r = 0;

	if (view->span_energy) {
		joules = calloc(use->rows.count, sizeof(*joules));
		r = joules ? joules_of_rows(
				     view->span_energy, &use->spans, NULL, use->rows.count, joules)
			   : -ENOMEM;
	}
	if (r < 0)
		return r;
	result_open(result);
	for (size_t i = 0; i < use->rows.count; i++)
		add_row(result, view, &use->rows.items[i], joules ? &joules[i] : NULL);
	result_close(result);
	return 0;
}

static void add_mean(struct result *result, const struct layer_passes *passes)
{
	result_known(
		result, passes->count != 0, passes->count ? passes->total_ns / passes->count : 0);
}

static void add_all(struct result *result, const struct layer_use *use)
{
	result_u64(result, use->steps);
	result_u64(result, use->step_ns);
	result_u64(result, use->unwatched_steps);
	add_mean(result, &use->watched);
	add_mean(result, &use->unwatched);
	result_u64(result, use->layers_ns);
	result_u64(result, use->model_ns);
	result_u64(result, use->rest_ns);
}

static const char *why_none(const struct layer_use *use)
{
	return use->unwatched_steps
		       ? "There are no layers: only forward passes were recorded; sonde record "
			 "--hooks transformers:component records their layers and components."
		       : "There are no layers: no model was watched; use sonde.watch(model) or "
			 "sonde record --hooks transformers:component.";
}

static void show(struct result *result, const struct report_input *input, const uint32_t tables[2],
	const struct energy_reasons *reasons)
{
	const struct layer_use *use = input->view->layers;
	static const char *const headings[] = {
		[COMPONENTS] = "Components, of all layers", [LAYERS] = "Layers"};
	static const char *const nouns[] = {[COMPONENTS] = "components", [LAYERS] = "layers"};

	for (unsigned i = 0; i < ARRAY_SIZE(headings); i++) {
		result_heading(result, headings[i]);
		result_show(result, tables[i],
			&(struct result_show){.limit = report_rows_shown(input, 20, 8),
				.noun = nouns[i],
				.view = i});
	}
	energy_reasons_say(reasons, input->view, result);
	say_sum(result, use);
	say_overhead(result, use);
}

/* The whole report has them in JSON alone. */
static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	struct energy_reasons reasons = {0};
	uint32_t tables[2] = {0};
	int r;

	if (!view->layers->rows.count)
		return report_nothing(result, input, why_none(view->layers));
	if (!input->is_alone && !input->is_json)
		return 0;
	result_open(result);
	add_all(result, view->layers);
	r = add_rows(result, view);
	if (r == 0)
		r = add_grouped(
			result, view, key_of_role, compare_times, &reasons, &tables[COMPONENTS]);
	if (r == 0)
		r = add_grouped(
			result, view, key_of_layer, compare_layers, &reasons, &tables[LAYERS]);
	if (r < 0)
		return r;
	result_close(result);
	if (input->is_alone)
		show(result, input, tables, &reasons);
	return 0;
}

const struct report_section layers_section = {
	.value = {.key = "layers", .kind = REPORT_OBJECT, .shape = &shape},
	.by = "layer",
	.summary = "layers and components of models",
	.needs = REPORT_NEEDS_RECORDING,
	.shows = SELECTION_RANGES,
	.make = make,
};
