/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of hta_definitions (hta.h). Each is as the function of sonde's own analysis with the
 * same arguments, and works on a view of hta_view_init(). All return 0 or -ENOMEM.
 */
#pragma once

#include "compat/hta/hta.h"

/*
 * Rows, times and kinds. Device rows are all that have a stream, waits included; all devices are
 * one, and streams are known by their number. Times are whole microseconds, begins rounded up and
 * ends down, where a file has fractions. Kinds go by patterns of names. Where there are two
 * profiler steps or more, the last one is dropped unless it is to be kept; device work whose launch
 * is not there is dropped then in any case.
 */
int hta_view_init(struct trace_view *view, const struct trace *trace, uint32_t rank,
	const struct trace_view_options *options);
/* "COMPUTATION" … */
extern const char *const hta_kind_names[TRACE_KIND_MAX];
enum trace_kind hta_kind_of_name(const char *name);

/* Of streams alone, not of devices. A gap lasts from the end of the work that started last, not
 * from the last end, so that it may be negative, and is charged as a whole. */
int hta_idle_init(struct device_idle *idle, const struct trace_view *view);

/* A row for each piece of work, of four calls that are known by name. No graphs, no driver.
 * Latencies of idle streams are not known. */
int hta_launches_init(struct launches *launches, const struct trace_view *view);

/* A launch waits from its call's begin until its work begins. Calls are known by name; sorted as
 * numpy does, lengths may fall below 0. */
int hta_queue_init(struct queue *queue, const struct trace_view *view);
bool hta_queue_is_launch(const char *name);

/* By the first eleven letters of the name; only of copies whose bandwidth the trace says. */
int hta_copies_init(struct copies *copies, const struct trace_view *view);

/* Operators named aten::…, of any thread, and launches of kernels alone; most frequent first. */
int hta_operators_init(struct trace_ops *ops, const struct trace_view *view);

/* get_potential_stragglers(): stragglers.c has its definition. */
int hta_stragglers(struct ranks *ranks, const struct rank_input *input);

/*
 * critical_path_analysis: one window, the instance options.first of the annotation, which may stand
 * anywhere in a name, or first … last as one; the first instance where first > last. An end closes
 * what was opened last, whoever's end it is; two nodes have one edge; waits come from rows of
 * "cuda_sync" alone; calls that lock take turns. -ENOENT: there is no such annotation.
 */
int hta_paths_init(struct critical_paths *paths, const struct trace_view *view,
	const struct critical_path_options *options);

/*
 * Equal keys come as from numpy.argsort() of int64 up to 1.24, which pandas sorts by: a quicksort
 * that is not stable. HTA's queue lengths depend on it.
 */
trace_order hta_order;

/* MODEL_NONE: the trace has no such string. */
uint32_t hta_find_name(const struct trace *trace, const char *name);

/* Is the row on a stream, other than -1? */
static inline bool hta_is_of_stream(const struct trace *trace, const struct trace_event *event)
{
	const struct trace_work *work = trace_work(trace, event);

	return work && work->stream != TRACE_NO_NUMBER && work->stream != -1;
}
