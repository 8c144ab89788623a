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
#include "exporters/log_plot.h"
#include "model/format.h"
#include "report/rows.h"

#define LARGEST 26.0 /* radius of all the time, in pixels */
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
	[OP_FAMILY_MOE] = "#1f8a9e",
	[OP_FAMILY_SCAN] = "#a0762c",
};

struct plot {
	const struct roofline *roofline;
	struct log_plot log;
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
		log_plot_widen(&x0, &x1, row->flop / row->bytes);
		log_plot_widen(&y0, &y1, rate_of(row));
	}
	for (int i = 0; i < OP_DTYPE_MAX; i++) {
		if (peaks->flops[i] > 0 && is_used(plot, (enum op_dtype)i))
			y1 = fmax(y1, peaks->flops[i]);
	}
	plot->log.x0 = (int)floor(log10(x0));
	plot->log.x1 = (int)ceil(log10(x1));
	plot->log.y0 = (int)floor(log10(fmin(y0, y1)));
	plot->log.y1 = MAX((int)ceil(log10(y1)), plot->log.y0 + 1);
}

/* ---- the roofs ---- */

/* Of one type: the bandwidth's slope up to its peak, then the peak. */
static void add_roof(const struct plot *plot, enum op_dtype dtype)
{
	const struct peaks *peaks = &plot->roofline->peaks;
	double peak = peaks->flops[dtype], right = pow(10, plot->log.x1);
	double ridge = peaks->bytes_per_s > 0 ? peak / peaks->bytes_per_s : pow(10, plot->log.x0);
	double start =
		fmax(pow(10, plot->log.x0), pow(10, plot->log.y0) / fmax(peaks->bytes_per_s, 1));

	if (ridge > start && peaks->bytes_per_s > 0)
		log_plot_line(plot->log.out, "roof", log_plot_x(&plot->log, start),
			log_plot_y(&plot->log, start * peaks->bytes_per_s),
			log_plot_x(&plot->log, ridge), log_plot_y(&plot->log, peak));
	log_plot_line(plot->log.out, "roof", log_plot_x(&plot->log, fmin(ridge, right)),
		log_plot_y(&plot->log, peak), log_plot_x(&plot->log, right),
		log_plot_y(&plot->log, peak));
	strbuf_addf(plot->log.out,
		"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s: %g TFLOP/s</text>\n",
		LOG_PLOT_WIDTH - LOG_PLOT_RIGHT - 4, log_plot_y(&plot->log, peak) - 6,
		op_dtype_name(dtype), peak / 1e12);
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
	struct strbuf *out = plot->log.out;

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
		strbuf_addf(plot->log.out,
			"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\">",
			log_plot_x(&plot->log, row->flop / row->bytes),
			log_plot_y(&plot->log, rate_of(row)), fmax(radius, LEAST),
			colours[row->family]);
		add_tooltip(plot, row);
		strbuf_add(plot->log.out, "</circle>\n");
		drawn++;
	}
	return drawn;
}

static void add_legend(const struct plot *plot)
{
	int x = LOG_PLOT_LEFT;

	for (int family = 0; family < OP_FAMILY_MAX; family++) {
		bool is_there = false;

		array_foreach (&plot->roofline->rows, row)
			is_there |= is_drawn(row) && (int)row->family == family;
		if (is_there)
			x = log_plot_legend(plot->log.out, x, colours[family],
				op_family_name((enum op_family)family));
	}
}

/* ---- the document ---- */

static void add_head(const struct plot *plot, const char *title)
{
	const struct roofline *roofline = plot->roofline;

	log_plot_head(plot->log.out, title);
	if (roofline->has_peaks) {
		escape_xml(plot->log.out, roofline->peaks.device ?: "peaks of --peak");
		strbuf_addf(plot->log.out, ", %g TB/s", roofline->peaks.bytes_per_s / 1e12);
	} else {
		strbuf_add(plot->log.out, "the device's peaks are not known: --peak gives them");
	}
	strbuf_add(plot->log.out, "</text>\n");
}

static void draw(struct plot *plot, const char *title)
{
	size_t drawn;

	set_edges(plot);
	add_head(plot, title);
	log_plot_axes(&plot->log, "operations for each byte", "FLOP/s", false);
	add_roofs(plot);
	drawn = add_points(plot);
	add_legend(plot);
	strbuf_addf(plot->log.out,
		"<text x=\"%d\" y=\"%d\">%zu of %zu shapes; the others have no operations, or "
		"costs that are not known. Areas: time.</text>\n</svg>\n",
		LOG_PLOT_LEFT, LOG_PLOT_HEIGHT - 8, drawn, plot->roofline->rows.count);
}

static int write_plot(const struct trace_report *trace, const struct export_options *options,
	struct strbuf *out, struct errmsg *err)
{
	_cleanup_roofline_ struct roofline roofline = {0};
	struct plot plot = {.roofline = &roofline, .log = {.out = out}};
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
	(void)selection;
	return export_rows(model, options, out, "roofline", write_plot, err);
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
