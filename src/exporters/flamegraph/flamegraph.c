/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/flamegraph/flamegraph.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/escape.h"
#include "exporters/exporters.h"
#include "exporters/flamegraph/assets.h"
#include "exporters/flamegraph/layout.h"
#include "exporters/flamegraph/palette.h"
#include "model/format.h"
#include "model/shorten.h"
#include "model/weigh.h"
#include "report/view.h"

/* Pixels of the still picture; the script reads them from the root element. */
#define WIDTH            1200
#define MARGIN           12
#define ROW              18
#define TOP              108
#define BOTTOM           34
#define CHARACTER_PX     7.0 /* of the frames' font, a little on the wide side */
#define MINIMUM_WIDTH_PX 0.1
#define TITLE_COLUMNS    80
#define LEGEND_MODULES   8
#define SMALLEST_CHANGE  0.0005 /* of the samples; less has no colour */

struct graph {
	const struct call_tree *tree;
	const struct export_options *options;
	const char *title, *subtitle;
	uint64_t weight_ns; /* of a sample; 0: unknown */
	bool time_only;     /* waiting is in it: samples are no measure */
	bool is_energy;     /* they are microjoules */
	bool is_bytes;
	const struct model *model; /* of one side */
	double largest_change;     /* of a frame's share, for shades of red and blue */
	struct flamegraph_layout layout;
	struct palette palette;
	struct strbuf *out;
};

static double minimum_width_px(const struct graph *graph)
{
	return graph->options->minimum_width_px > 0 ? graph->options->minimum_width_px
						    : MINIMUM_WIDTH_PX;
}

static double share_change(const struct graph *graph, uint32_t node)
{
	return flamegraph_share(graph->tree, node, 1) - flamegraph_share(graph->tree, node, 0);
}

static double self_share(const struct graph *graph, uint32_t node, unsigned side)
{
	uint64_t all = graph->tree->nodes.items[0].total[side];

	return all ? (double)graph->tree->nodes.items[node].self[side] / (double)all : 0;
}

/* Shades from no change to the largest; the square root keeps small changes visible. */
static const char *change_class(const struct graph *graph, uint32_t node)
{
	static const char *const more[] = {"n", "r1", "r2", "r3", "r4", "r5", "r6"};
	static const char *const less[] = {"n", "b1", "b2", "b3", "b4", "b5", "b6"};
	const size_t last_step = ARRAY_SIZE(more) - 1;
	const double steps = (double)last_step;
	double change = share_change(graph, node);
	size_t step;

	if (fabs(change) < SMALLEST_CHANGE || graph->largest_change <= 0)
		return more[0];
	step = (size_t)fmin(ceil(steps * sqrt(fabs(change) / graph->largest_change)), steps);
	return change > 0 ? more[step] : less[step];
}

static void add_samples(struct strbuf *out, const struct graph *graph, uint64_t samples)
{
	if (graph->is_energy) {
		format_energy(out, (double)samples / 1e6);
		return;
	}
	if (graph->is_bytes) {
		format_bytes(out, samples);
		return;
	}
	if (graph->weight_ns) {
		format_duration(out, samples * graph->weight_ns);
		if (graph->time_only)
			return;
		strbuf_add(out, " \xc2\xb7 ");
	}
	format_count(out, samples);
	strbuf_add(out, samples == 1 ? " sample" : " samples");
}

static void add_uncertainty(const struct graph *graph, uint32_t node)
{
	struct energy_uncertainty of;

	if (node >= graph->tree->sums.count)
		return;
	of = energy_uncertainty_of(graph->model, &graph->tree->sums.items[node]);
	if (!isnan(of.energy_j)) {
		strbuf_add(graph->out, " \xc2\xb1 ");
		format_energy(graph->out, of.energy_j);
	} else if (of.doubt) {
		strbuf_addf(graph->out, " (\xc2\xb1 not known: %s)", energy_doubt_name(of.doubt));
	}
}

/* The tooltip's last line. */
static void add_figures(const struct graph *graph, uint32_t node)
{
	struct strbuf *out = graph->out;

	if (graph->layout.is_diff) {
		strbuf_addf(out,
			"before %.2f %% \xe2\x86\x92 after %.2f %% (%+.2f points) \xc2\xb7 self "
			"%.2f %% \xe2\x86\x92 %.2f %%",
			100 * flamegraph_share(graph->tree, node, 0),
			100 * flamegraph_share(graph->tree, node, 1),
			100 * share_change(graph, node), 100 * self_share(graph, node, 0),
			100 * self_share(graph, node, 1));
		return;
	}
	strbuf_addf(out, "%.2f %% \xc2\xb7 ", 100 * flamegraph_share(graph->tree, node, 0));
	add_samples(out, graph, graph->tree->nodes.items[node].total[0]);
	add_uncertainty(graph, node);
	strbuf_addf(out, " \xc2\xb7 self %.2f %%", 100 * self_share(graph, node, 0));
}

/* Three lines that the script reads again: name, module, figures. */
static void add_tooltip(const struct graph *graph, uint32_t node)
{
	const struct call_tree_label *label = call_tree_label(graph->tree, node);

	strbuf_add(graph->out, "<title>");
	escape_xml(graph->out, label->name);
	strbuf_add_char(graph->out, '\n');
	escape_xml(graph->out, *label->module ? label->module
			       : node         ? "process or thread"
					      : "all samples");
	if (label->inlined)
		strbuf_add(graph->out, ", inlined");
	strbuf_add_char(graph->out, '\n');
	add_figures(graph, node);
	strbuf_add(graph->out, "</title>");
}

static void add_text(const struct graph *graph, const char *name, double x, double y, double width)
{
	_cleanup_strbuf_ struct strbuf plain = {0};
	_cleanup_strbuf_ struct strbuf shortened = {0};
	double columns = floor((width - 6) / CHARACTER_PX);

	if (columns < 3)
		return;
	escape_plain(&plain, name);
	shorten_name(&shortened, strbuf_cstr(&plain), (size_t)columns);
	strbuf_addf(graph->out, "<text x=\"%.1f\" y=\"%.0f\">", x + 4, y + ROW - 5);
	escape_xml(graph->out, strbuf_cstr(&shortened));
	strbuf_add(graph->out, "</text>");
	strbuf_inherit_status(graph->out, &plain);
	strbuf_inherit_status(graph->out, &shortened);
}

static void add_frame(const struct graph *graph, uint32_t node)
{
	const struct call_tree_label *label = call_tree_label(graph->tree, node);
	const struct flamegraph_box *box = &graph->layout.boxes[node];
	uint32_t depth = graph->tree->nodes.items[node].depth;
	double x = MARGIN + box->start * (WIDTH - 2 * MARGIN), y = TOP + (double)depth * ROW;
	double width = box->width * (WIDTH - 2 * MARGIN);
	unsigned shade = graph->layout.is_diff ? 1 : palette_shade(label->name);
	const char *class_name = palette_class(&graph->palette, label);
	char fill[8];

	if (graph->layout.is_diff)
		class_name = change_class(graph, node);
	strbuf_addf(graph->out,
		"<g class=\"f %s%s s%u%s\" data-x=\"%.9g\" data-w=\"%.9g\" data-d=\"%u\">",
		graph->layout.is_diff ? "df " : "", class_name, shade, label->inlined ? " i" : "",
		box->start, box->width, depth);
	add_tooltip(graph, node);
	strbuf_addf(graph->out,
		"<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" rx=\"2\" fill=\"%s\"/>",
		x, y, width, ROW - 1, palette_fill(class_name, shade, fill));
	add_text(graph, label->name, x, y, width);
	strbuf_add(graph->out, "</g>\n");
}

static double height_of(const struct graph *graph)
{
	return TOP + ((double)graph->layout.max_depth + 1) * ROW + BOTTOM;
}

static void add_root_element(const struct graph *graph)
{
	double height = height_of(graph);

	strbuf_addf(graph->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
		"viewBox=\"0 0 %d %.0f\" tabindex=\"-1\" role=\"img\" data-width=\"%d\" "
		"data-margin=\"%d\" data-row=\"%d\" data-top=\"%d\" data-depth=\"%u\" "
		"data-samples=\"%llu\" aria-label=\"",
		WIDTH, height, WIDTH, height, WIDTH, MARGIN, ROW, TOP, graph->layout.max_depth,
		(unsigned long long)call_tree_weight(&graph->tree->nodes.items[0]));
	escape_xml(graph->out, graph->title);
	strbuf_add(graph->out, "\">\n<style>\n");
	palette_add_css(graph->out);
	strbuf_add(graph->out, flamegraph_css);
	strbuf_addf(graph->out,
		"</style>\n<rect class=\"paper wide\" width=\"%d\" height=\"%.0f\" "
		"fill=\"#ffffff\"/>\n",
		WIDTH, height);
}

/* A line of text that the script cuts to the window's width; here to a number of columns. */
static void add_head_text(const struct graph *graph, const char *class_name, double y,
	const char *text, bool beside_tools)
{
	_cleanup_strbuf_ struct strbuf plain = {0};
	_cleanup_strbuf_ struct strbuf shortened = {0};

	escape_plain(&plain, text);
	shorten_name(
		&shortened, strbuf_cstr(&plain), beside_tools ? TITLE_COLUMNS : TITLE_COLUMNS * 2);
	strbuf_addf(graph->out, "<text class=\"%s\" x=\"%d\" y=\"%.0f\" data-full=\"", class_name,
		MARGIN, y);
	escape_xml(graph->out, strbuf_cstr(&plain));
	strbuf_add(graph->out, beside_tools ? "\" data-beside=\"1\">" : "\">");
	escape_xml(graph->out, strbuf_cstr(&shortened));
	strbuf_add(graph->out, "</text>\n");
	strbuf_inherit_status(graph->out, &plain);
	strbuf_inherit_status(graph->out, &shortened);
}

/* One module of the legend at `x`; returns where the next one goes. */
static double add_chip(const struct graph *graph, const struct palette_module *module,
	uint64_t all_samples, double x)
{
	_cleanup_strbuf_ struct strbuf plain = {0};
	_cleanup_strbuf_ struct strbuf shortened = {0};
	_cleanup_strbuf_ struct strbuf text = {0};
	char fill[8];
	double width;

	escape_plain(&plain, module->name);
	shorten_text(&shortened, strbuf_cstr(&plain), 24);
	strbuf_addf(&text, "%s %.1f %%", strbuf_cstr(&shortened),
		100.0 * (double)module->self_samples / (double)all_samples);
	strbuf_inherit_status(graph->out, &plain);
	strbuf_inherit_status(graph->out, &shortened);
	strbuf_inherit_status(graph->out, &text);
	width = 20 + (double)shorten_columns(strbuf_cstr(&text)) * 6.6;
	if (x + width > WIDTH - MARGIN)
		return x;
	strbuf_addf(graph->out, "<g class=\"chip %s\" data-module=\"", module->class_name);
	escape_xml(graph->out, strbuf_cstr(&plain));
	strbuf_addf(graph->out,
		"\"><rect x=\"%.1f\" y=\"60\" width=\"12\" height=\"12\" rx=\"3\" "
		"fill=\"%s\"/><text class=\"faint\" x=\"%.1f\" y=\"70\">",
		x, palette_fill(module->class_name, 1, fill), x + 17);
	escape_xml(graph->out, strbuf_cstr(&text));
	strbuf_add(graph->out, "</text></g>\n");
	return x + width + 10;
}

/* The busiest modules and the samples whose innermost frame is theirs. */
static void add_legend(const struct graph *graph)
{
	uint64_t all = call_tree_weight(&graph->tree->nodes.items[0]);
	double x = MARGIN;

	for (size_t i = 0; i < MIN(graph->palette.ranking.count, (size_t)LEGEND_MODULES); i++) {
		const struct palette_module *module =
			&graph->palette.entries.items[graph->palette.ranking.items[i]];

		if (module->self_samples)
			x = add_chip(graph, module, all, x);
	}
}

static void add_diff_legend(const struct graph *graph)
{
	static const char *const steps[] = {"b6", "b4", "b2", "n", "r2", "r4", "r6"};
	char fill[8];
	double x = MARGIN + 60;

	strbuf_addf(
		graph->out, "<text class=\"faint\" x=\"%d\" y=\"70\">less after</text>\n", MARGIN);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		strbuf_addf(graph->out,
			"<g class=\"f df %s\" data-legend=\"1\"><rect x=\"%.0f\" y=\"60\" "
			"width=\"17\" height=\"12\" fill=\"%s\"/></g>",
			steps[i], x, palette_fill(steps[i], 1, fill));
		x += 18;
	}
	strbuf_addf(graph->out,
		"<text class=\"faint\" x=\"%.0f\" y=\"70\">more after; strongest colour: %.2f "
		"points of share</text>\n",
		x + 6, 100 * graph->largest_change);
}

/* Lies over the frames, so that a scrolled graph passes below it. */
static void add_head(const struct graph *graph)
{
	strbuf_addf(graph->out,
		"<g id=\"head\">\n<rect class=\"paper wide\" width=\"%d\" height=\"%d\" "
		"fill=\"#ffffff\"/>\n",
		WIDTH, TOP - 6);
	add_head_text(graph, "title", 27, graph->title, true);
	add_head_text(graph, "faint", 46, graph->subtitle, true);
	if (graph->layout.is_diff)
		add_diff_legend(graph);
	else
		add_legend(graph);
	strbuf_addf(graph->out,
		"<text id=\"details\" class=\"faint\" x=\"%d\" y=\"93\">click zooms \xc2\xb7 / "
		"searches \xc2\xb7 arrows and Enter walk and zoom \xc2\xb7 Escape goes back "
		"\xc2\xb7 i flips</text>\n"
		"<text id=\"found\" data-right=\"1\" x=\"%d\" y=\"93\" text-anchor=\"end\"/>\n"
		"<line class=\"rule\" x1=\"0\" x2=\"%d\" y1=\"%d\" y2=\"%d\" "
		"stroke=\"#d9dee5\"/>\n</g>\n",
		MARGIN, WIDTH - MARGIN, WIDTH, TOP - 6, TOP - 6);
}

static const char *what_width_is(const struct graph *graph)
{
	if (graph->is_energy)
		return "energy";
	if (graph->is_bytes)
		return "memory";
	return graph->time_only ? "time" : "samples";
}

static void add_footer(const struct graph *graph)
{
	const char *width = what_width_is(graph);
	double y = height_of(graph) - 12;

	strbuf_addf(graph->out, "<text class=\"faint\" x=\"%d\" y=\"%.0f\">", MARGIN, y);
	if (graph->layout.pruned) {
		format_count(graph->out, graph->layout.pruned);
		strbuf_addf(graph->out,
			" frames narrower than %g px, %.2f %% of the %s, are not drawn",
			minimum_width_px(graph), 100 * graph->layout.pruned_width, width);
	} else {
		strbuf_add(graph->out, "every frame is drawn");
	}
	strbuf_addf(graph->out,
		"; width: share of %s%s; italic: inlined</text>\n"
		"<text class=\"faint\" data-right=\"1\" x=\"%d\" y=\"%.0f\" "
		"text-anchor=\"end\">sonde " SONDE_VERSION "</text>\n",
		width, graph->layout.is_diff ? ", mean of before and after" : "", WIDTH - MARGIN,
		y);
}

static void write_document(const struct graph *graph)
{
	add_root_element(graph);
	strbuf_add(graph->out, "<g id=\"frames\">\n");
	for (uint32_t i = 0; i < graph->tree->nodes.count; i++) {
		if (graph->layout.boxes[i].drawn)
			add_frame(graph, i);
	}
	strbuf_add(graph->out, "</g>\n");
	add_footer(graph);
	add_head(graph);
	strbuf_add(graph->out,
		"<g class=\"f\" visibility=\"hidden\" data-legend=\"1\"><text id=\"probe\" x=\"0\" "
		"y=\"0\">mmmmmmmmmmmmmmmmmmmm</text></g>\n"
		"<script><![CDATA[\n");
	strbuf_add(graph->out, flamegraph_js);
	strbuf_add(graph->out, "]]></script>\n</svg>\n");
}

static double largest_change(const struct graph *graph)
{
	double largest = 0;

	for (uint32_t i = 0; i < graph->tree->nodes.count; i++) {
		if (graph->layout.boxes[i].drawn)
			largest = fmax(largest, fabs(share_change(graph, i)));
	}
	return largest;
}

static int draw(struct graph *graph, bool is_diff)
{
	double minimum = minimum_width_px(graph) / (WIDTH - 2 * MARGIN);
	int r = flamegraph_layout_init(&graph->layout, graph->tree, is_diff, minimum);

	r = r ?: palette_init(&graph->palette, graph->tree);
	if (r == 0) {
		if (is_diff)
			graph->largest_change = largest_change(graph);
		write_document(graph);
	}
	flamegraph_layout_done(&graph->layout);
	palette_done(&graph->palette);
	return r ?: strbuf_status(graph->out);
}

static void add_side_total(
	struct strbuf *out, const struct graph *graph, unsigned side, const char *when)
{
	add_samples(out, graph, graph->tree->nodes.items[0].total[side]);
	strbuf_addf(out, " %s", when);
}

int flamegraph_write_diff(const struct call_tree *tree, enum model_weight weight,
	const char *before_name, const char *after_name, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf title = {0};
	_cleanup_strbuf_ struct strbuf subtitle = {0};
	struct graph graph = {
		.tree = tree,
		.options = export_options_or_default(NULL),
		.weight_ns = weight == MODEL_WEIGHT_CPU ? 0 : MODEL_UNIT_NS,
		.time_only = weight != MODEL_WEIGHT_CPU,
		.is_energy = weight == MODEL_WEIGHT_ENERGY,
		.out = out,
	};

	strbuf_addf(&title, "%s \xe2\x86\x92 %s", before_name, after_name);
	strbuf_addf(&subtitle, "change in share of %s \xc2\xb7 ",
		weight == MODEL_WEIGHT_CPU ? "CPU samples" : model_weight_noun(weight));
	add_side_total(&subtitle, &graph, 0, "before, ");
	add_side_total(&subtitle, &graph, 1, "after");
	if (strbuf_status(&title) < 0 || strbuf_status(&subtitle) < 0)
		return -ENOMEM;
	graph.title = strbuf_cstr(&title);
	graph.subtitle = strbuf_cstr(&subtitle);
	return draw(&graph, true);
}

/* The filters as they were typed: a picture of a part says so. */
static void describe_filters(struct strbuf *out, const struct selection *selection)
{
	const char *const filters[][2] = {
		{"process", selection->process},
		{"thread", selection->thread},
		{"time", selection->time},
		{"step", selection->step},
		{"symbol", selection->symbol},
		{"range", selection->range},
		{"window", selection->window},
	};

	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		if (filters[i][1])
			strbuf_addf(out, " \xc2\xb7 --%s %s", filters[i][0], filters[i][1]);
	}
}

/* "12.3 s of CPU time · 1,234 samples · 14.0 s recorded on host · --time 5..". */
static void describe(struct strbuf *out, const struct graph *graph, const struct model *model,
	const struct selection *selection)
{
	static const char *const times[MODEL_WEIGHT_MAX] = {
		[MODEL_WEIGHT_CPU] = "CPU time",
		[MODEL_WEIGHT_WAIT] = "waiting, all threads together",
		[MODEL_WEIGHT_WALL] = "running and waiting, all threads together",
		[MODEL_WEIGHT_GPU] = "device work",
		[MODEL_WEIGHT_GPU_IDLE] = "idle time of devices",
		[MODEL_WEIGHT_CPU_GPU] = "CPU time and device work",
	};
	enum model_weight weight = selection ? selection->weight : MODEL_WEIGHT_CPU;
	uint64_t samples = graph->tree->nodes.items[0].total[0];

	if (graph->is_energy) {
		format_energy(out, (double)samples / 1e6);
		strbuf_add(out, " \xc2\xb7 ");
	}
	if (graph->is_bytes) {
		format_bytes(out, samples);
		strbuf_add(out, " in use at the device's peak (of several devices the sum of "
				"their peaks) \xc2\xb7 ");
	}
	if (graph->weight_ns) {
		format_duration(out, samples * graph->weight_ns);
		strbuf_addf(out, " of %s%s \xc2\xb7 ",
			weight == MODEL_WEIGHT_CPU && report_is_user_time(model) ? "user " : "",
			times[weight]);
	}
	if (!graph->time_only) {
		format_count(out, samples);
		strbuf_add(out, " samples");
	}
	if (model_has_duration(model)) {
		strbuf_add(out, graph->time_only ? "" : " \xc2\xb7 ");
		format_duration(out, model_duration_ns(model));
		strbuf_add(out, " recorded");
	}
	if (*model->session.host)
		strbuf_addf(out, " on %s", model->session.host);
	if (selection)
		describe_filters(out, selection);
}

static int flamegraph_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_call_tree_ struct call_tree tree = {0};
	_cleanup_strbuf_ struct strbuf title = {0}, subtitle = {0};
	struct graph graph = {
		.tree = &tree,
		.options = export_options_or_default(options),
		.weight_ns = model_has_time(model) ? model_sample_weight_ns(model) : 0,
		.time_only = selection && selection->weight != MODEL_WEIGHT_CPU,
		.is_energy = model->counts_energy,
		.is_bytes = model->counts_bytes,
		.model = model,
		.out = out,
	};
	int r = selection_apply(selection, model, &selected, err);

	r = r ?: call_tree_init(&tree);
	r = r ?: call_tree_add(&tree, 0, model, &selected, graph.options->roots);
	r = r ?: call_tree_finish(&tree);
	if (r == 0) {
		describe(&subtitle, &graph, model, selection);
		format_command(&title, export_title(model, graph.options));
		strbuf_inherit_status(&subtitle, &title);
		graph.title = strbuf_cstr(&title);
		graph.subtitle = strbuf_cstr(&subtitle);
		r = strbuf_status(&subtitle) ?: draw(&graph, false);
	}
	return export_result(r, out, "flamegraph", err);
}

const struct exporter flamegraph_exporter = {
	.name = "flamegraph",
	.description = "one self-contained SVG to open in a browser: search, zoom, keyboard",
	.extension = ".svg",
	.is_weighed = true,
	.export = flamegraph_export,
};
