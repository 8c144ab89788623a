/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory over time as an SVG: for each device of each rank a picture with what was in use and what
 * the allocator had reserved, and the peak. A column of the picture has the most of its time.
 */
#include <errno.h>
#include <stdlib.h>

#include "analyses/memory/memory.h"
#include "base/escape.h"
#include "exporters/exporters.h"
#include "report/rows.h"

#define COLUMNS 1000
#define LEFT    90
#define HEIGHT  180 /* of a picture, without its title and axis */
#define GAP     64
#define WIDTH   (LEFT + COLUMNS + 30)

struct column {
	double allocated, reserved; /* bytes */
};

/* One device's picture, whose top is at `top`. */
struct picture {
	const struct trace_memory_device *device;
	struct strbuf *out;
	int top;
	double most;
	int64_t first_ns, last_ns;
	struct column columns[COLUMNS + 1];
};

static int column_of(const struct picture *picture, int64_t time_ns)
{
	double span = (double)picture->last_ns - (double)picture->first_ns;

	return span > 0 ? (int)(COLUMNS * ((double)time_ns - (double)picture->first_ns) / span) : 0;
}

static void raise_column(struct column *column, double allocated, double reserved)
{
	column->allocated = MAX(column->allocated, allocated);
	column->reserved = MAX(column->reserved, reserved);
}

/* What holds at a point holds up to the next one. */
static void fill_columns(struct picture *picture)
{
	struct column last = {0};
	int at = 0;

	array_foreach (&picture->device->points, point) {
		int column = column_of(picture, point->time_ns);

		for (; at < column; at++)
			raise_column(&picture->columns[at], last.allocated, last.reserved);
		last.allocated = (double)MAX(point->allocated, (int64_t)0);
		last.reserved = (double)MAX(point->reserved, (int64_t)0);
		raise_column(&picture->columns[at], last.allocated, last.reserved);
	}
	for (int i = 0; i <= COLUMNS; i++) {
		picture->most = MAX(picture->most, picture->columns[i].allocated);
		picture->most = MAX(picture->most, picture->columns[i].reserved);
	}
}

static double y_of(const struct picture *picture, double bytes)
{
	return picture->top + HEIGHT * (1 - bytes / picture->most);
}

/* From one corner to the next: columns of equal height are one step. */
static void add_area(const struct picture *picture, bool reserved, const char *color)
{
	double before = -1;

	strbuf_addf(
		picture->out, "<path fill=\"%s\" d=\"M%d %d", color, LEFT, picture->top + HEIGHT);
	for (int i = 0; i <= COLUMNS; i++) {
		double bytes =
			reserved ? picture->columns[i].reserved : picture->columns[i].allocated;

		if (bytes == before)
			continue;
		strbuf_addf(picture->out, "H%dV%.1f", LEFT + i, y_of(picture, bytes));
		before = bytes;
	}
	strbuf_addf(picture->out, "H%dV%dZ\"/>\n", LEFT + COLUMNS, picture->top + HEIGHT);
}

static void add_axes(const struct picture *picture)
{
	for (int i = 0; i <= 4; i++) {
		double bytes = picture->most * i / 4;

		strbuf_addf(picture->out,
			"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g MiB</text>\n", LEFT - 6,
			y_of(picture, bytes) + 4, bytes / 1048576);
	}
	strbuf_addf(picture->out,
		"<text x=\"%d\" y=\"%d\">%.6g ms</text>\n<text x=\"%d\" y=\"%d\" "
		"text-anchor=\"end\">%.6g ms</text>\n",
		LEFT, picture->top + HEIGHT + 16, (double)picture->first_ns / 1e6, LEFT + COLUMNS,
		picture->top + HEIGHT + 16, (double)picture->last_ns / 1e6);
}

static void add_peak(const struct picture *picture)
{
	const struct trace_memory_device *device = picture->device;
	int x = LEFT + column_of(picture, device->peak_ns);

	strbuf_addf(picture->out,
		"<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#b3261e\"><title>peak: %.4g "
		"MiB at %.6g ms</title></line>\n",
		x, x, picture->top, picture->top + HEIGHT, (double)device->peak / 1048576,
		(double)device->peak_ns / 1e6);
}

static void draw(struct picture *picture, uint32_t rank)
{
	const struct trace_memory_device *device = picture->device;
	char name[64];

	trace_memory_device_name(device, name, sizeof(name));
	picture->first_ns = device->points.items[0].time_ns;
	picture->last_ns = device->points.items[device->points.count - 1].time_ns;
	fill_columns(picture);
	picture->most = MAX(picture->most, 1.0);
	strbuf_addf(picture->out, "<text x=\"%d\" y=\"%d\" font-size=\"14\">rank %u, ", LEFT,
		picture->top - 10, rank);
	escape_xml(picture->out, name);
	strbuf_addf(picture->out, ": at most %.4g MiB in use", (double)device->peak / 1048576);
	if (device->peak_reserved != TRACE_NO_NUMBER)
		strbuf_addf(picture->out, " (dark), %.4g MiB reserved (light)",
			(double)device->peak_reserved / 1048576);
	strbuf_add(picture->out, "</text>\n");
	add_area(picture, true, "#cfe0f5");
	add_area(picture, false, "#3b6fb5");
	add_axes(picture);
	add_peak(picture);
}

/* Appends the pictures of one rank; *top goes down by each. */
static int add_rank(struct strbuf *out, const struct trace_view *view, int *top)
{
	_cleanup_trace_memory_ struct trace_memory_use use = {0};
	_cleanup_free_ struct picture *picture = malloc(sizeof(*picture));
	int r = picture ? trace_memory_init(&use, view->trace) : -ENOMEM;

	if (r < 0)
		return r;
	array_foreach (&use.devices, device) {
		*picture = (struct picture){.device = device, .out = out, .top = *top};
		draw(picture, view->rank);
		*top += HEIGHT + GAP;
	}
	return 0;
}

static int write_pictures(const struct trace_report *trace,
	const struct export_options *options _unused_, struct strbuf *out, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf pictures = {0};
	int top = 40, r = 0;

	for (size_t i = 0; r == 0 && i < trace->count; i++)
		r = add_rank(&pictures, &trace->views[i], &top);
	if (r < 0)
		return r;
	if (!pictures.length)
		return errmsg_set(err, -ENODATA,
			"there are no memory events, so there is nothing to draw: profile with "
			"profile_memory=True, or give a snapshot of PyTorch's memory");
	strbuf_addf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" font-size=\"12\" fill=\"#333a44\">\n"
		"<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
		WIDTH, top, WIDTH, top, WIDTH, top);
	strbuf_add_bytes(out, pictures.data, pictures.length);
	strbuf_inherit_status(out, &pictures);
	strbuf_add(out, "</svg>\n");
	return 0;
}

static int memory_export(const struct model *model, const struct selection *selection _unused_,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	return export_rows(model, options, out, "memory", write_pictures, err);
}

const struct exporter memory_exporter = {
	.name = "memory",
	.description = "memory of devices over time, as an SVG",
	.extension = ".memory.svg",
	.takes_traces = true,
	.needs_rows = true,
	.shows = SELECTION_TRACES,
	.export = memory_export,
};
