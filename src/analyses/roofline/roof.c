/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/roofline/roof.h"

#include <math.h>
#include <string.h>

/* ---- the device ---- */

/* The one name that all devices of a trace's list have; "": there is none. Of ROCm, devices have
 * other numbers in the list than their work has. */
static const char *only_name(const struct trace *trace)
{
	const char *only = "";

	array_foreach (&trace->devices, device) {
		const char *name = trace_text(trace, device->name);

		if (*only && strcmp(only, name) != 0)
			return "";
		only = name;
	}
	return only;
}

/* The name that all devices have; NULL: there are several; "": none has one. */
static const char *common_device(const struct trace_view *views, size_t count)
{
	const char *common = "", *name;

	for (size_t i = 0; i < count; i++) {
		array_foreach (&views[i].devices, device) {
			name = trace_device_name(views[i].trace, device->number);
			name = *name ? name : only_name(views[i].trace);
			if (*common && *name && strcmp(common, name) != 0)
				return NULL;
			common = *name ? name : common;
		}
	}
	return common;
}

void roof_choose_peaks(struct roofline *roofline, const struct trace_view *views, size_t count,
	const struct peaks *given)
{
	roofline->device = common_device(views, count);
	roofline->has_peaks =
		roofline->device && peaks_of_device(&roofline->peaks, roofline->device);
	if (!given)
		return;
	peaks_override(&roofline->peaks, given);
	roofline->has_peaks = true;
}

/* ---- operators ---- */

/* NaN: not known. */
static double compute_ns(const struct roofline_row *row, const struct peaks *peaks)
{
	return peaks->flops[row->dtype] > 0 ? row->flop / peaks->flops[row->dtype] * 1e9
					    : (double)NAN;
}

static double memory_ns(const struct roofline_row *row, const struct peaks *peaks)
{
	return peaks->bytes_per_s > 0 ? row->bytes / peaks->bytes_per_s * 1e9 : (double)NAN;
}

static bool has_least(const struct roofline_row *row)
{
	return row->flop_is == OP_AT_LEAST || row->bytes_is == OP_AT_LEAST;
}

static bool has_most(const struct roofline_row *row)
{
	return row->flop_is == OP_AT_MOST || row->bytes_is == OP_AT_MOST;
}

/* The longer one, if it is whatever the bounds leave open. */
static enum roofline_bound bound_of(const struct roofline_row *row, double compute, double memory)
{
	bool is_compute = isnan(memory) || compute > memory;
	enum op_bound longer = is_compute ? row->flop_is : row->bytes_is;
	enum op_bound shorter = is_compute ? row->bytes_is : row->flop_is;

	if (longer == OP_AT_MOST || shorter == OP_AT_LEAST)
		return ROOFLINE_UNKNOWN;
	return is_compute ? ROOFLINE_COMPUTE : ROOFLINE_MEMORY;
}

void roof_of_row(struct roofline_row *row, const struct peaks *peaks, bool is_cpu)
{
	double compute = compute_ns(row, peaks), memory = memory_ns(row, peaks);
	double time_ns = (double)row->time_ns, shortest_ns;

	/* Of matrices the operations are what counts: with the bytes alone all would seem slow. */
	if (isnan(compute) && op_family_is_of_matrices(row->family))
		return;
	row->roof_ns = fmax(compute, memory) * (double)row->count;
	if (isnan(row->roof_ns))
		return;
	row->bound = bound_of(row, compute, memory);
	shortest_ns = is_cpu ? 0 : (double)row->works * ROOFLINE_KERNEL_NS;
	if (row->roof_ns < shortest_ns && !has_least(row))
		row->bound = ROOFLINE_LATENCY;
	if (!has_least(row))
		row->saves_ns = fmax(time_ns - fmax(row->roof_ns, shortest_ns), 0);
	row->is_above = time_ns > 0 && time_ns * ROOFLINE_ABOVE < row->roof_ns && !has_most(row);
}

/* ---- steps ---- */

static void add_known(double *sum, double value)
{
	*sum += isnan(value) ? 0 : value;
}

void roof_add_to_step(
	struct roofline_step *step, const struct roofline_row *row, const struct peaks *peaks)
{
	add_known(&step->flop, row->flop);
	add_known(&step->bytes, row->bytes);
	step->has_bounds |= row->flop_is != OP_EXACT || row->bytes_is != OP_EXACT;
	if (op_family_is_of_matrices(row->family))
		add_known(&step->mfu, compute_ns(row, peaks));
	add_known(&step->mbu, memory_ns(row, peaks));
}

/* From the first device work to the end of the last; of threads, their rows. */
static void set_span(struct roofline_step *step, const struct trace_view *view)
{
	array_foreach (&view->works, work) {
		step->start_ns = MIN(step->start_ns, work->start_ns);
		step->end_ns = MAX(step->end_ns, work->end_ns);
	}
	if (view->works.count)
		return;
	array_foreach (&view->trace->events, event) {
		if (event->category != TRACE_CPU_OP || !trace_view_has(view, event))
			continue;
		step->start_ns = MIN(step->start_ns, trace_view_start_ns(view, event));
		step->end_ns = MAX(step->end_ns, trace_view_end_ns(view, event));
	}
}

void roof_finish_steps(struct roofline *roofline, const struct trace_view *view, size_t first)
{
	bool has_rates = false;

	for (int i = 0; i < OP_DTYPE_MAX; i++)
		has_rates |= roofline->peaks.flops[i] > 0;
	for (size_t i = first; i < roofline->steps.count; i++) {
		struct roofline_step *step = &roofline->steps.items[i];
		double time_ns;

		if (step->number == ROOFLINE_NO_STEP)
			set_span(step, view);
		time_ns = step->end_ns > step->start_ns ? (double)(step->end_ns - step->start_ns)
							: (double)NAN;
		step->mfu = has_rates ? step->mfu / time_ns : (double)NAN;
		step->mbu = roofline->peaks.bytes_per_s > 0 ? step->mbu / time_ns : (double)NAN;
	}
}
