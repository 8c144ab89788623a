/* SPDX-License-Identifier: Apache-2.0 */
/* An SVG with two axes by powers of ten: what the plots of roofline and collectives share. */
#pragma once

#include "base/strbuf.h"

/* Pixels. */
#define LOG_PLOT_WIDTH  1200
#define LOG_PLOT_HEIGHT 760
#define LOG_PLOT_LEFT   84
#define LOG_PLOT_RIGHT  24
#define LOG_PLOT_TOP    92
#define LOG_PLOT_BOTTOM 64

struct log_plot {
	struct strbuf *out;
	int x0, x1, y0, y1; /* powers of ten at the edges: x0 < x1, y0 < y1 */
};

/* Opens the document: a title, and a line below it, which the caller writes and ends by
 * "</text>\n". */
void log_plot_head(struct strbuf *out, const char *title);
/* "1", "100 k", "1 T" at a grid; with `has_prefixes` on the x axis, too. */
void log_plot_axes(
	const struct log_plot *plot, const char *x_title, const char *y_title, bool has_prefixes);
double log_plot_x(const struct log_plot *plot, double value);
double log_plot_y(const struct log_plot *plot, double value);
/* Between pixels; the class is "grid" or "roof", or the caller's. */
void log_plot_line(
	struct strbuf *out, const char *class_name, double x0, double y0, double x1, double y1);
/* One entry of the legend below the title. Returns where the next one stands. */
int log_plot_legend(struct strbuf *out, int x, const char *colour, const char *name);
/* Widens a range of values by one of them. */
void log_plot_widen(double *least, double *most, double value);
