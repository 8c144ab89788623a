/* SPDX-License-Identifier: Apache-2.0 */
/* The layers and components of models, as the report shows them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "model/format.h"
#include "report/inference/energy_cells.h"
#include "report/view.h"

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

/* Columns that are there where some row has a value. */
struct layer_columns {
	bool device, cpu, energy;
};

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

static void add_row(struct sum *sum, const struct layer_row *row)
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
		r = r ?: array_append(&sums->of_rows, id);
		if (r == 0 && id < sums->items.count)
			add_row(&sums->items.items[id], row);
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

static void add_figures(struct table *table, const struct report_view *view,
	const struct layer_use *use, const struct sum *sum, const struct layer_columns *shown)
{
	table_duration(table, sum->own_ns);
	table_cellf(table, "%.2f %%",
		use->step_ns ? 100.0 * (double)sum->own_ns / (double)use->step_ns : 0.0);
	table_duration(table, use->steps ? sum->own_ns / use->steps : 0);
	table_duration(table,
		shown->cpu ? sum->cpu_ns : sum->samples * model_sample_weight_ns(view->model));
	if (shown->device)
		table_duration(table, sum->device_busy_ns);
}

static size_t make_columns(const struct layer_columns *shown, struct table_column *columns)
{
	static const char *const titles[] = {"Time", "Share", "Per step", "CPU time", "Device"};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(titles) - !shown->device; i++)
		columns[count++] = (struct table_column){.title = titles[i], .right = true};
	if (shown->energy)
		columns[count++] = (struct table_column){.title = "Energy", .right = true};
	return count;
}

static void say_more(const struct report_view *view, size_t all, size_t limit)
{
	if (limit && all > limit)
		strbuf_addf(
			view->out, "\xe2\x80\xa6 and %zu more (--limit shows more)\n", all - limit);
}

static void add_component(struct table *table, const struct sum *sum)
{
	table_count(table, sum->calls);
	table_cellf(table, "%s%s", sum->first->role,
		sum->first->layer == LAYER_NONE ? " (outside of layers)" : "");
}

static void add_layer(struct table *table, const struct sum *sum)
{
	table_cellf(table, "%s %.1f %%", sum->hottest->role,
		sum->own_ns ? 100.0 * (double)sum->hottest->own_ns / (double)sum->own_ns : 0.0);
	if (sum->first->layer == LAYER_NONE)
		table_cell(table, "none");
	else
		table_cellf(table, "%" PRIu64, sum->first->layer);
}

/* The two tables: rows added up by role, and by layer. */
struct grouping {
	const char *heading;
	key_function *key;
	int (*compare)(const void *left, const void *right);
	struct table_column columns[2]; /* behind the figures */
	void (*add_cells)(struct table *table, const struct sum *sum);
};

static const struct grouping components = {
	.heading = "Components, of all layers",
	.key = key_of_role,
	.compare = compare_times,
	.columns = {{.title = "Calls", .right = true}, {.title = "Component", .is_text = true}},
	.add_cells = add_component,
};

static const struct grouping layers = {
	.heading = "Layers",
	.key = key_of_layer,
	.compare = compare_layers,
	.columns = {{.title = "Most in", .is_text = true}, {.title = "Layer", .right = true}},
	.add_cells = add_layer,
};

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

static int print_sums(const struct report_view *view, const struct grouping *grouping,
	const struct layer_columns *shown, struct sums *sums, size_t limit)
{
	struct table_column columns[9];
	_cleanup_table_ struct table table = {.columns = columns};
	_cleanup_free_ struct joules *joules = NULL;
	struct energy_reasons reasons = {0};
	int r = shown->energy ? find_joules(view, sums, &joules) : 0;

	if (r < 0)
		return r;
	table.column_count = make_columns(shown, columns);
	for (size_t i = 0; i < ARRAY_SIZE(grouping->columns); i++)
		columns[table.column_count++] = grouping->columns[i];
	if (sums->items.count)
		qsort(sums->items.items, sums->items.count, sizeof(*sums->items.items),
			grouping->compare);
	report_heading(view, grouping->heading);
	for (size_t i = 0; i < sums->items.count && (!limit || i < limit); i++) {
		const struct sum *sum = &sums->items.items[i];

		add_figures(&table, view, view->layers, sum, shown);
		if (joules) {
			table_joules(&table, &joules[sum->index]);
			energy_reasons_add(&reasons, &joules[sum->index]);
		}
		grouping->add_cells(&table, sum);
	}
	r = table_print(&table, &view->terminal, view->out);
	say_more(view, sums->items.count, limit);
	if (shown->energy)
		energy_reasons_print(&reasons, view);
	return r;
}

static int print_grouped(const struct report_view *view, const struct grouping *grouping,
	const struct layer_columns *shown, size_t limit)
{
	struct sums sums = {0};
	int r = add_up(view->layers, grouping->key, &sums);

	r = r ?: print_sums(view, grouping, shown, &sums, limit);
	sums_done(&sums);
	return r;
}

/* The sum of all rows against the time of the steps. */
static void say_sum(const struct report_view *view, const struct layer_use *use)
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
		strbuf_add(&text, " other passes were not looked into.");
	}
	report_paragraph(view, strbuf_cstr(&text), 0);
}

/* What the hooks of layers and components cost, where there are passes with and without. */
static void say_overhead(const struct report_view *view, const struct layer_use *use)
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
	report_paragraph(view, strbuf_cstr(&text), 0);
}

int report_layers(const struct report_view *view, size_t limit)
{
	const struct layer_use *use = view->layers;
	struct layer_columns shown;
	int r;

	if (!use->rows.count) {
		report_paragraph(view,
			use->unwatched_steps
				? "There are no layers: forward passes were recorded as a whole; "
				  "sonde record --hooks transformers:component has what is in them."
				: "There are no layers: no model was watched; sonde.watch(model) "
				  "and sonde record --hooks transformers:component do.",
			0);
		return 0;
	}
	shown = (struct layer_columns){
		.device = use->all.works > 0,
		.cpu = use->has_cpu,
		.energy = report_has_energy(view),
	};
	r = print_grouped(view, &components, &shown, limit);
	r = r ?: print_grouped(view, &layers, &shown, limit);
	if (r == 0) {
		say_sum(view, use);
		say_overhead(view, use);
	}
	return r;
}
