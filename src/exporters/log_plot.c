/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/log_plot.h"

#include <math.h>
#include <string.h>

#include "base/escape.h"
#include "base/macros.h"

#define WIDTH  LOG_PLOT_WIDTH
#define HEIGHT LOG_PLOT_HEIGHT
#define LEFT   LOG_PLOT_LEFT
#define RIGHT  LOG_PLOT_RIGHT
#define TOP    LOG_PLOT_TOP
#define BOTTOM LOG_PLOT_BOTTOM

double log_plot_x(const struct log_plot *plot, double value)
{
	double part = (log10(value) - plot->x0) / (plot->x1 - plot->x0);

	return LEFT + part * (WIDTH - LEFT - RIGHT);
}

double log_plot_y(const struct log_plot *plot, double value)
{
	double part = (log10(value) - plot->y0) / (plot->y1 - plot->y0);

	return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
}

void log_plot_widen(double *least, double *most, double value)
{
	*least = fmin(*least, value);
	*most = fmax(*most, value);
}

void log_plot_line(
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

void log_plot_axes(
	const struct log_plot *plot, const char *x_title, const char *y_title, bool has_prefixes)
{
	struct strbuf *out = plot->out;

	for (int power = plot->x0; power <= plot->x1; power++) {
		double x = log_plot_x(plot, pow(10, power));

		log_plot_line(out, "grid", x, TOP, x, HEIGHT - BOTTOM);
		strbuf_addf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x,
			HEIGHT - BOTTOM + 18);
		if (has_prefixes)
			add_tick(out, power);
		else
			strbuf_addf(out, "%g", pow(10, power));
		strbuf_add(out, "</text>\n");
	}
	for (int power = plot->y0; power <= plot->y1; power++) {
		double y = log_plot_y(plot, pow(10, power));

		log_plot_line(out, "grid", LEFT, y, WIDTH - RIGHT, y);
		strbuf_addf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, y + 4);
		add_tick(out, power);
		strbuf_add(out, "</text>\n");
	}
	strbuf_addf(out,
		"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n"
		"<text x=\"%d\" y=\"%d\">%s</text>\n",
		(LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 40, x_title, 24, TOP - 12, y_title);
}

int log_plot_legend(struct strbuf *out, int x, const char *colour, const char *name)
{
	strbuf_addf(out,
		"<circle cx=\"%d\" cy=\"60\" r=\"6\" fill=\"%s\"/><text x=\"%d\" y=\"64\">", x + 6,
		colour, x + 18);
	escape_xml(out, name);
	strbuf_add(out, "</text>\n");
	return x + 36 + 8 * (int)MIN(strlen(name), (size_t)WIDTH);
}

void log_plot_head(struct strbuf *out, const char *title)
{
	strbuf_addf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<style>text { fill: #333a44; } .grid { stroke: #e3e7ec; } .roof { stroke: "
		"#333a44; stroke-width: 1.5; } circle { fill-opacity: 0.75; }</style>\n"
		"<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n<text x=\"%d\" y=\"26\" "
		"font-size=\"17\">",
		WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
	escape_xml(out, title);
	strbuf_addf(out, "</text>\n<text x=\"%d\" y=\"44\">", LEFT);
}
