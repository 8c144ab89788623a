/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators under the roof of the device, as an SVG: operations a second over operations a byte,
 * both by powers of ten. A point is an operator with inputs of one shape, as large as its time.
 */
#include "analyses/roofline/roofline.h"

#include <errno.h>
#include <math.h>

#include "base/escape.h"
#include "exporters/exporters.h"
#include "model/format.h"
#include "report/rows.h"

/* Pixels. */
#define WIDTH   1200
#define HEIGHT  760
#define LEFT    84
#define RIGHT   24
#define TOP     92
#define BOTTOM  64
#define LARGEST 26.0 /* radius of all the time */
#define LEAST   2.5

/* Decades that are always there: around what devices reach. */
#define LEAST_X 0.1
#define MOST_X  1e4
#define LEAST_Y 1e10
#define MOST_Y  1e15

static const char *const colours[OP_FAMILY_MAX] = {
	[OP_FAMILY_OTHER] = "#8a8f98",
	[OP_FAMILY_GEMM] = "#3b6fd4",
	[OP_FAMILY_CONVOLUTION] = "#7a4fc9",
	[OP_FAMILY_ATTENTION] = "#d1495b",
	[OP_FAMILY_NORM] = "#2a9d8f",
	[OP_FAMILY_ELEMENTWISE] = "#e08e2b",
	[OP_FAMILY_REDUCTION] = "#8d6e3f",
	[OP_FAMILY_EMBEDDING] = "#5c9e31",
	[OP_FAMILY_COPY] = "#66717f",
	[OP_FAMILY_TRITON] = "#c2459b",
};

struct plot {
	const struct roofline *roofline;
	struct strbuf *out;
	int x0, x1, y0, y1; /* powers of ten at the edges */
};

/* ---- where things are ---- */

static bool is_drawn(const struct roofline_row *row)
{
	return row->flop > 0 && row->bytes > 0 && row->time_ns > 0;
}

static double rate_of(const struct roofline_row *row)
{
	return row->flop * (double)row->count / (double)row->time_ns * 1e9;
}

static double x_of(const struct plot *plot, double intensity)
{
	double part = (log10(intensity) - plot->x0) / (plot->x1 - plot->x0);

	return LEFT + part * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct plot *plot, double rate)
{
	double part = (log10(rate) - plot->y0) / (plot->y1 - plot->y0);

	return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
}

static void widen(double *least, double *most, double value)
{
	*least = fmin(*least, value);
	*most = fmax(*most, value);
}

static bool is_used(const struct plot *plot, enum op_dtype dtype)
{
	array_foreach (&plot->roofline->rows, row) {
		if (is_drawn(row) && row->dtype == dtype)
			return true;
	}
	return false;
}

/* Whole decades around all points and roofs. */
static void set_edges(struct plot *plot)
{
	const struct peaks *peaks = &plot->roofline->peaks;
	double x0 = LEAST_X, x1 = MOST_X, y0 = MOST_Y, y1 = LEAST_Y;

	array_foreach (&plot->roofline->rows, row) {
		if (!is_drawn(row))
			continue;
		widen(&x0, &x1, row->flop / row->bytes);
		widen(&y0, &y1, rate_of(row));
	}
	for (int i = 0; i < OP_DTYPE_MAX; i++) {
		if (peaks->flops[i] > 0 && is_used(plot, (enum op_dtype)i))
			y1 = fmax(y1, peaks->flops[i]);
	}
	plot->x0 = (int)floor(log10(x0));
	plot->x1 = (int)ceil(log10(x1));
	plot->y0 = (int)floor(log10(fmin(y0, y1)));
	plot->y1 = MAX((int)ceil(log10(y1)), plot->y0 + 1);
}

/* ---- the axes ---- */

static void add_line(
	struct strbuf *out, const char *class_name, double x0, double y0, double x1, double y1)
{
	strbuf_addf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
		class_name, x0, y0, x1, y1);
}

/* "1", "100", "1 T": what a power of ten is in the axis' own unit. */
static void add_tick(struct strbuf *out, int power)
{
	static const char *const names[] = {"", "k", "M", "G", "T", "P", "E"};
	int steps = power < 0 ? -1 : power / 3;

	if (steps < 0 || steps >= (int)ARRAY_SIZE(names))
		strbuf_addf(out, "%g", pow(10, power));
	else
		strbuf_addf(
			out, "%g%s%s", pow(10, power - 3 * steps), steps ? " " : "", names[steps]);
}

static void add_axes(const struct plot *plot)
{
	struct strbuf *out = plot->out;

	for (int power = plot->x0; power <= plot->x1; power++) {
		double x = x_of(plot, pow(10, power));

		add_line(out, "grid", x, TOP, x, HEIGHT - BOTTOM);
		strbuf_addf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x,
			HEIGHT - BOTTOM + 18, pow(10, power));
	}
	for (int power = plot->y0; power <= plot->y1; power++) {
		double y = y_of(plot, pow(10, power));

		add_line(out, "grid", LEFT, y, WIDTH - RIGHT, y);
		strbuf_addf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, y + 4);
		add_tick(out, power);
		strbuf_add(out, "</text>\n");
	}
	strbuf_addf(out,
		"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">operations for each byte</text>\n"
		"<text x=\"%d\" y=\"%d\">FLOP/s</text>\n",
		(LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 40, 24, TOP - 12);
}

/* ---- the roofs ---- */

/* Of one type: the bandwidth's slope up to its peak, then the peak. */
static void add_roof(const struct plot *plot, enum op_dtype dtype)
{
	const struct peaks *peaks = &plot->roofline->peaks;
	double peak = peaks->flops[dtype], right = pow(10, plot->x1);
	double ridge = peaks->bytes_per_s > 0 ? peak / peaks->bytes_per_s : pow(10, plot->x0);
	double start = fmax(pow(10, plot->x0), pow(10, plot->y0) / fmax(peaks->bytes_per_s, 1));

	if (ridge > start && peaks->bytes_per_s > 0)
		add_line(plot->out, "roof", x_of(plot, start),
			y_of(plot, start * peaks->bytes_per_s), x_of(plot, ridge),
			y_of(plot, peak));
	add_line(plot->out, "roof", x_of(plot, fmin(ridge, right)), y_of(plot, peak),
		x_of(plot, right), y_of(plot, peak));
	strbuf_addf(plot->out,
		"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s: %g TFLOP/s</text>\n",
		WIDTH - RIGHT - 4, y_of(plot, peak) - 6, op_dtype_name(dtype), peak / 1e12);
}

static void add_roofs(const struct plot *plot)
{
	for (int dtype = 0; dtype < OP_DTYPE_MAX; dtype++) {
		if (plot->roofline->peaks.flops[dtype] > 0 && is_used(plot, (enum op_dtype)dtype))
			add_roof(plot, (enum op_dtype)dtype);
	}
}

/* ---- the points ---- */

static void add_tooltip(const struct plot *plot, const struct roofline_row *row)
{
	const struct intern *strings = &plot->roofline->strings;
	struct strbuf *out = plot->out;

	strbuf_add(out, "<title>");
	escape_xml(out, intern_get(strings, row->name));
	strbuf_add(out, "\n");
	escape_xml(out, intern_get(strings, row->dims));
	strbuf_add(out, "\n");
	format_duration(out, (uint64_t)row->time_ns);
	strbuf_addf(out, " in %llu calls \xc2\xb7 %.3g TFLOP/s \xc2\xb7 %.3g FLOP/B",
		(unsigned long long)row->count, rate_of(row) / 1e12, row->flop / row->bytes);
	if (row->bound)
		strbuf_addf(out, " \xc2\xb7 bound by %s, %.1f %% of the roof",
			roofline_bound_name(row->bound), 100 * row->roof_ns / (double)row->time_ns);
	strbuf_add(out, "</title>");
}

/* Returns how many are drawn. Rows are by time: small ones lie over large ones. */
static size_t add_points(const struct plot *plot)
{
	double all_ns = (double)MAX(plot->roofline->work_ns, (int64_t)1);
	size_t drawn = 0;

	array_foreach (&plot->roofline->rows, row) {
		double radius = LARGEST * sqrt((double)row->time_ns / all_ns);

		if (!is_drawn(row))
			continue;
		strbuf_addf(plot->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\">",
			x_of(plot, row->flop / row->bytes), y_of(plot, rate_of(row)),
			fmax(radius, LEAST), colours[row->family]);
		add_tooltip(plot, row);
		strbuf_add(plot->out, "</circle>\n");
		drawn++;
	}
	return drawn;
}

static void add_legend(const struct plot *plot)
{
	int x = LEFT;

	for (int family = 0; family < OP_FAMILY_MAX; family++) {
		const char *name = op_family_name((enum op_family)family);
		bool is_there = false;

		array_foreach (&plot->roofline->rows, row)
			is_there |= is_drawn(row) && (int)row->family == family;
		if (!is_there)
			continue;
		strbuf_addf(plot->out,
			"<circle cx=\"%d\" cy=\"60\" r=\"6\" fill=\"%s\"/><text x=\"%d\" "
			"y=\"64\">%s</text>\n",
			x + 6, colours[family], x + 18, name);
		x += 36 + 8 * (int)strlen(name);
	}
}

/* ---- the document ---- */

static void add_head(const struct plot *plot, const char *title)
{
	const struct roofline *roofline = plot->roofline;

	strbuf_addf(plot->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<style>text { fill: #333a44; } .grid { stroke: #e3e7ec; } .roof { stroke: "
		"#333a44; stroke-width: 1.5; } circle { fill-opacity: 0.75; }</style>\n"
		"<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n<text x=\"%d\" y=\"26\" "
		"font-size=\"17\">",
		WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
	escape_xml(plot->out, title);
	strbuf_addf(plot->out, "</text>\n<text x=\"%d\" y=\"44\">", LEFT);
	if (roofline->has_peaks) {
		escape_xml(plot->out, roofline->peaks.device ?: "peaks of --peak");
		strbuf_addf(plot->out, ", %g TB/s", roofline->peaks.bytes_per_s / 1e12);
	} else {
		strbuf_add(plot->out, "the device's peaks are not known: --peak gives them");
	}
	strbuf_add(plot->out, "</text>\n");
}

static void draw(struct plot *plot, const char *title)
{
	size_t drawn;

	set_edges(plot);
	add_head(plot, title);
	add_axes(plot);
	add_roofs(plot);
	drawn = add_points(plot);
	add_legend(plot);
	strbuf_addf(plot->out,
		"<text x=\"%d\" y=\"%d\">%zu of %zu shapes; the others have no operations, or "
		"costs that are not known. Areas: time.</text>\n</svg>\n",
		LEFT, HEIGHT - 8, drawn, plot->roofline->rows.count);
}

static int write_plot(const struct trace_report *trace, const struct export_options *options,
	struct strbuf *out, struct errmsg *err)
{
	_cleanup_roofline_ struct roofline roofline = {0};
	struct plot plot = {.roofline = &roofline, .out = out};
	int r = roofline_init(&roofline, trace->views, trace->count, options->peaks);

	if (r < 0)
		return r;
	if (!roofline.has_shapes)
		return errmsg_set(err, -ENODATA,
			"the trace has no sizes of operators' inputs, so there is nothing to draw: "
			"record it with torch.profiler.profile(record_shapes=True)");
	draw(&plot, options->title ?: options->capture ?: "operators");
	return 0;
}

static int roofline_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	static const struct trace_view_options rows = {0};
	_cleanup_trace_report_ struct trace_report trace = {0};
	int r = trace_report_init(&trace, model, &rows, UINT64_MAX, err);

	(void)selection;
	if (r == 0)
		r = write_plot(&trace, export_options_or_default(options), out, err);
	return export_result(r, out, "roofline", err);
}

const struct exporter roofline_exporter = {
	.name = "roofline",
	.description = "operators under the roof of the device, as an SVG",
	.extension = ".roofline.svg",
	.takes_traces = true,
	.needs_rows = true,
	.shows = SELECTION_TRACES,
	.export = roofline_export,
};
