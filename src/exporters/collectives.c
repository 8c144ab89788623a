/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives by size, as an SVG: their bus bandwidth and algorithm bandwidth, as NCCL's tests
 * define them, over the bytes of a rank, both by powers of ten. A point is a kind: those of one
 * name, group and size.
 */
#include "analyses/collectives/collectives.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "exporters/exporters.h"
#include "exporters/log_plot.h"
#include "model/format.h"
#include "report/rows.h"

#define RADIUS 5

static const char *const colours[] = {
	"#3b6fd4", "#d1495b", "#2a9d8f", "#e08e2b", "#7a4fc9", "#5c9e31", "#8d6e3f", "#c2459b"};

/* Those whose size is known, by series, then size. */
struct plot {
	const struct collective_kind **kinds;
	size_t count, unknown;
	struct log_plot log;
};

static bool is_drawn(const struct collective_kind *kind)
{
	return kind->bytes > 0 && kind->transfer_ns > 0;
}

/* Of one series a line is drawn: all but the size is the same. */
static int compare_series(const struct collective_kind *a, const struct collective_kind *b)
{
	const char *const pairs[][2] = {{a->name, b->name}, {a->group, b->group},
		{a->kernel, b->kernel}, {a->algorithm, b->algorithm}, {a->protocol, b->protocol}};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		int order = strcmp(pairs[i][0], pairs[i][1]);

		if (order)
			return order;
	}
	return a->ranks < b->ranks ? -1 : a->ranks > b->ranks;
}

static int compare_kinds(const void *left, const void *right)
{
	const struct collective_kind *const *a = left, *const *b = right;
	int order = compare_series(*a, *b);

	return order ? order : (*a)->bytes < (*b)->bytes ? -1 : (*a)->bytes > (*b)->bytes;
}

/* A line's bandwidth: of the bus, where the collective has one, else the algorithm's. */
static double main_bandwidth(const struct collective_kind *kind)
{
	double bus = collective_bus_bandwidth(kind);

	return isnan(bus) ? collective_algorithm_bandwidth(kind) : bus;
}

/* The same if each had taken this time. */
static double bandwidth_at(const struct collective_kind *kind, uint64_t transfer_ns)
{
	double mean_ns = (double)kind->transfer_ns / (double)kind->count;

	return main_bandwidth(kind) * mean_ns / (double)MAX(transfer_ns, (uint64_t)1);
}

static void set_edges(struct plot *plot)
{
	double x0 = INFINITY, x1 = 0, y0 = INFINITY, y1 = 0;

	for (size_t i = 0; i < plot->count; i++) {
		const struct collective_kind *kind = plot->kinds[i];

		log_plot_widen(&x0, &x1, (double)kind->bytes);
		log_plot_widen(&y0, &y1, collective_algorithm_bandwidth(kind));
		log_plot_widen(&y0, &y1, bandwidth_at(kind, kind->least_transfer_ns));
		log_plot_widen(&y0, &y1, bandwidth_at(kind, kind->most_transfer_ns));
	}
	plot->log.x0 = (int)floor(log10(x0));
	plot->log.x1 = MAX((int)ceil(log10(x1)), plot->log.x0 + 1);
	plot->log.y0 = (int)floor(log10(y0));
	plot->log.y1 = MAX((int)ceil(log10(y1)), plot->log.y0 + 1);
}

/* ---- points ---- */

static void add_tooltip(struct strbuf *out, const struct collective_kind *kind)
{
	strbuf_add(out, "<title>");
	escape_xml(out, kind->name);
	if (*kind->group) {
		strbuf_add(out, ", group ");
		escape_xml(out, kind->group);
	}
	strbuf_addf(out, "\n%lld bytes, %u ranks, %llu times, ", (long long)kind->bytes,
		kind->ranks, (unsigned long long)kind->count);
	format_duration(out, kind->transfer_ns / kind->count);
	strbuf_addf(out, " each\nalgorithm %.4g GB/s", collective_algorithm_bandwidth(kind) / 1e9);
	if (!isnan(collective_bus_bandwidth(kind)))
		strbuf_addf(out, ", bus %.4g GB/s", collective_bus_bandwidth(kind) / 1e9);
	if (*kind->algorithm || *kind->protocol) {
		strbuf_add_char(out, '\n');
		escape_xml(out, kind->algorithm);
		strbuf_add(out, *kind->algorithm && *kind->protocol ? ", " : "");
		escape_xml(out, kind->protocol);
	}
	strbuf_add(out, "</title>");
}

static void add_point(const struct plot *plot, const struct collective_kind *kind, double bandwidth,
	const char *class_name, const char *colour)
{
	struct strbuf *out = plot->log.out;

	strbuf_addf(out,
		"<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\" stroke=\"%s\">",
		class_name, log_plot_x(&plot->log, (double)kind->bytes),
		log_plot_y(&plot->log, bandwidth), RADIUS, colour, colour);
	add_tooltip(out, kind);
	strbuf_add(out, "</circle>\n");
}

/* From the slowest to the fastest, then both means. */
static void add_kind(
	const struct plot *plot, const struct collective_kind *kind, const char *colour)
{
	double x = log_plot_x(&plot->log, (double)kind->bytes);

	log_plot_line(plot->log.out, "range", x,
		log_plot_y(&plot->log, bandwidth_at(kind, kind->most_transfer_ns)), x,
		log_plot_y(&plot->log, bandwidth_at(kind, kind->least_transfer_ns)));
	add_point(plot, kind, collective_algorithm_bandwidth(kind), "algorithm", colour);
	if (!isnan(collective_bus_bandwidth(kind)))
		add_point(plot, kind, collective_bus_bandwidth(kind), "bus", colour);
}

static void join_points(const struct plot *plot, const struct collective_kind *from,
	const struct collective_kind *to)
{
	log_plot_line(plot->log.out, "series", log_plot_x(&plot->log, (double)from->bytes),
		log_plot_y(&plot->log, main_bandwidth(from)),
		log_plot_x(&plot->log, (double)to->bytes),
		log_plot_y(&plot->log, main_bandwidth(to)));
}

/* Kinds are by name first: a name has a colour, and an entry of the legend. */
static void add_kinds(const struct plot *plot)
{
	int x = LOG_PLOT_LEFT;
	size_t names = 0;

	for (size_t i = 0; i < plot->count; i++) {
		const struct collective_kind *kind = plot->kinds[i];
		const struct collective_kind *before = i ? plot->kinds[i - 1] : NULL;

		if (!before || strcmp(before->name, kind->name) != 0) {
			x = log_plot_legend(
				plot->log.out, x, colours[names % ARRAY_SIZE(colours)], kind->name);
			names++;
		} else if (compare_series(before, kind) == 0) {
			join_points(plot, before, kind);
		}
		add_kind(plot, kind, colours[(names - 1) % ARRAY_SIZE(colours)]);
	}
}

/* ---- the document ---- */

static void draw(struct plot *plot, const char *title)
{
	struct strbuf *out = plot->log.out;

	set_edges(plot);
	log_plot_head(out, title);
	strbuf_add(out,
		"Bandwidth of collectives without waiting. Filled: bus, hollow: algorithm; bars "
		"from the slowest to the fastest</text>\n"
		"<style>.series { stroke: #8a8f98; } .range { stroke: #b6bdc6; stroke-width: 3; } "
		".algorithm { fill: #ffffff; }</style>\n");
	log_plot_axes(&plot->log, "bytes of a rank", "byte/s", true);
	add_kinds(plot);
	strbuf_addf(out, "<text x=\"%d\" y=\"%d\">%zu kinds of collectives", LOG_PLOT_LEFT,
		LOG_PLOT_HEIGHT - 8, plot->count);
	if (plot->unknown)
		strbuf_addf(out, "; the sizes of %zu others are not known", plot->unknown);
	strbuf_add(out, "</text>\n</svg>\n");
}

static int choose(struct plot *plot, const struct collectives *collectives, struct errmsg *err)
{
	plot->kinds = calloc(collectives->kinds.count + 1, sizeof(*plot->kinds));
	if (!plot->kinds)
		return -ENOMEM;
	array_foreach (&collectives->kinds, kind) {
		if (is_drawn(kind))
			plot->kinds[plot->count++] = kind;
		else
			plot->unknown++;
	}
	if (plot->count) {
		qsort(plot->kinds, plot->count, sizeof(*plot->kinds), compare_kinds);
		return 0;
	}
	return errmsg_set(err, -ENODATA,
		collectives->matched
			? "no collective here says its size (\"In msg nelems\" and \"dtype\" in "
			  "a trace; of a recording sonde report --by stragglers says why), so "
			  "there is no bandwidth to draw"
			: "no collective of two ranks or more is here, so there is no bandwidth to "
			  "draw: give the files of all ranks");
}

static int write_plot(const struct trace_report *trace, const struct export_options *options,
	struct strbuf *out, struct errmsg *err)
{
	_cleanup_collectives_ struct collectives collectives = {0};
	struct plot plot = {.log = {.out = out}};
	int r = collectives_init(&collectives, trace->views, trace->count);

	if (r == 0)
		r = choose(&plot, &collectives, err);
	if (r == 0)
		draw(&plot, options->title ?: options->capture ?: "collectives");
	free(plot.kinds);
	return r;
}

static int collectives_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	(void)selection;
	return export_rows(model, options, out, "collectives", write_plot, err);
}

const struct exporter collectives_exporter = {
	.name = "collectives",
	.description = "bus and algorithm bandwidth of collectives by size, as an SVG",
	.extension = ".collectives.svg",
	.takes_traces = true,
	.needs_rows = true,
	.shows = SELECTION_TRACES,
	.export = collectives_export,
};
