/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace as the analyses see it: which rows count, at what times, and what kind of work each row
 * of a device is. A view is data: trace_view_init() fills it with what sonde has for right, and
 * compat/ with what another tool has. Analyses do not ask which.
 *
 * `works` has the rows of devices that count: kernels, copies and fills that have a duration, and
 * of another tool's views what that tool has among them. Other rows of devices and all of threads
 * are in trace->events.
 *
 * To add an analysis of rows:
 *   1. FOLDER/NAME.h: its result, a struct that starts as zeros, NAME_init(result, view), which
 *      returns 0 or -ENOMEM, and NAME_done(); the head comment defines its figures;
 *   2. FOLDER/NAME.c: it goes over the rows that count (trace_view_has()), at the view's times, or
 *      over `works`; what only a recording knows is behind trace->recorded. No I/O;
 *   3. the file in src/analyses/meson.build, and a unit test over rows of
 *      tests/unit/trace-example.h;
 *   4. a section that shows it (report/section.h). A result that two sections need is made once by
 *      trace_results.h; one that another tool defines otherwise is chosen in definitions.h.
 * tests/unit/toy-analysis.c is one. An analysis of samples takes the model (model/model.h) and
 * which of its samples count (struct selected of selection.h) in place of the view: see
 * cpu/breakdown.h.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "model/trace.h"

enum trace_kind {
	TRACE_COMPUTE,
	TRACE_COMMUNICATION,
	TRACE_MEMORY,     /* copies and fills */
	TRACE_OTHER_KIND, /* none of these: in views of other tools */
	TRACE_KIND_MAX,
};

/* "compute" …, for JSON and people. */
extern const char *const trace_kind_names[TRACE_KIND_MAX];

struct trace_definitions;

struct trace_view_options {
	const struct trace_definitions *definitions; /* of whoever makes views; NULL: sonde's */
	/* Where there are two profiler steps or more. Nothing given: as the definitions have it. */
	bool keep_last_step, drop_last_step;
};

/* Work of a device that counts. */
struct trace_view_work {
	int64_t start_ns,
		end_ns;  /* with another tool's rounding the end may lie before the start */
	uint32_t row;    /* in trace.events */
	uint32_t launch; /* row of the call that launched it; MODEL_NONE: not in the file */
	uint32_t origin; /* the call whose operator it is: the one that captured it, or the launch;
			    see trace_origin() */
	uint32_t stream; /* index in `streams` */
	uint8_t kind;    /* enum trace_kind */
	uint8_t communication; /* how that is known: enum communication_evidence */
	bool is_wait;          /* a row of "cuda_sync", which other tools have among the work */
};

/* A queue of a device. */
struct trace_view_stream {
	int64_t number;  /* TRACE_NO_NUMBER: not known */
	uint32_t track;  /* index in trace.tracks; MODEL_NONE: of several */
	uint32_t device; /* index in `devices` */
	uint32_t works;
};

struct trace_view_device {
	int64_t number; /* TRACE_NO_NUMBER: not known, or all */
	bool is_all;    /* all devices of the trace are taken for one */
	uint32_t works;
};

struct trace_view_times {
	int64_t start_ns, end_ns;
};

struct trace_view {
	const struct trace *trace; /* outlives the view */
	struct trace_view_options options;
	uint32_t rank;
	/* By start, of equal ones in the file's order; another tool's may be in the file's order.
	 */
	ARRAY_OF(struct trace_view_work) works;
	ARRAY_OF(struct trace_view_stream) streams; /* in order of their first work in the file */
	ARRAY_OF(struct trace_view_device) devices; /* likewise */
	struct trace_view_times *times;             /* by row; NULL: the file's */
	bool *left_out;                             /* by row; NULL: none is */
	uint8_t *communication; /* by row: enum communication_evidence; NULL: not asked for */
	uint32_t steps;         /* ProfilerStep#N: different names */
	uint64_t dropped_works; /* that are left out */
	uint64_t works_without_launch; /* of `works` */
	uint64_t negative_durations;   /* of work, counted as none */
	uint32_t mtia;                 /* category: of all that an MTIA device does */
	struct map_u64 stream_of_key, device_of_number; /* indices, until all work is there */
};

/*
 * `rank` is for traces that do not say theirs. Returns 0 or -ENOMEM. The trace is finished
 * (trace_finish()).
 */
int trace_view_init(struct trace_view *view, const struct trace *trace, uint32_t rank,
	const struct trace_view_options *options);
void trace_view_done(struct trace_view *view);
#define _cleanup_trace_view_ _cleanup_(trace_view_done)

/* Of any row: its times as the view has them. The end of a moment is its start. */
int64_t trace_view_start_ns(const struct trace_view *view, const struct trace_event *event);
int64_t trace_view_end_ns(const struct trace_view *view, const struct trace_event *event);

/* Of a profiler step's name, "ProfilerStep#12". False: it is none. */
bool trace_step_number(const char *name, uint64_t *ret_number);

/* Does the row count? For rows of devices and of threads alike. */
bool trace_view_has(const struct trace_view *view, const struct trace_event *event);

/*
 * A row of a thread that lasts and counts: an operator, annotation, Python function or call. Files
 * without categories have nothing but operators: PyTorch 1 without Kineto wrote them.
 */
bool trace_view_is_of_thread(const struct trace_view *view, const struct trace_event *event);

/* What kind of work a device's row is, by its category and arguments: for trace_view_init(). */
enum trace_kind trace_view_kind(const struct trace_view *view, const struct trace_event *event);

/* Files may say any time: sums and differences of times wrap. */
static inline int64_t trace_add_ns(int64_t a_ns, int64_t b_ns)
{
	return (int64_t)((uint64_t)a_ns + (uint64_t)b_ns);
}

static inline int64_t trace_difference_ns(int64_t a_ns, int64_t b_ns)
{
	return (int64_t)((uint64_t)a_ns - (uint64_t)b_ns);
}

/* How long it took; 0 with another tool's rounding. */
static inline int64_t trace_view_work_ns(const struct trace_view_work *work)
{
	return MAX(trace_difference_ns(work->end_ns, work->start_ns), (int64_t)0);
}

/* What the device is called, or "GPU 0"; "stream 7", or another name of the queue. */
void trace_view_device_name(const struct trace_view *view, uint32_t device, struct strbuf *out);
void trace_view_stream_name(const struct trace_view *view, uint32_t stream, struct strbuf *out);

/* ---- for what fills a view ---- */

/* An empty one. */
struct trace_view trace_view_of(const struct trace *trace, uint32_t rank);

/* Counts the profiler steps among the rows of these categories (bits of enum trace_category), by
 * the view's times. Returns 0, with the times of the last one, or -ENOMEM. */
int trace_view_find_steps(
	struct trace_view *view, unsigned categories, struct trace_view_times *ret_last);

/* Leaves out the rows that are there for their work only. Returns 0 or -ENOMEM. */
int trace_view_leave_out_captures(struct trace_view *view);

/* The queue that work was put on, by what tells it from others. */
struct trace_view_queue {
	uint64_t key;
	int64_t number, device;
	uint32_t track;
};

/* Work that counts, unless its row is left out. Returns 0 or -ENOMEM. */
int trace_view_add_work(struct trace_view *view, uint32_t row, const struct trace_view_queue *queue,
	enum trace_kind kind);
