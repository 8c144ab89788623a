/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace as the analyses see it: which rows count, at what times, and what kind of work each row
 * of a device is. This is the one place that knows how Holistic Trace Analysis (HTA) differs: with
 * `hta_compatible` a view has the rows, times and kinds of HTA f4d0062, faults included.
 */
#pragma once

#include "base/array.h"
#include "base/strbuf.h"
#include "model/trace.h"

enum trace_kind {
	TRACE_COMPUTE,
	TRACE_COMMUNICATION,
	TRACE_MEMORY,     /* copies and fills */
	TRACE_OTHER_KIND, /* HTA knows kernels that are none of these, and waits of streams */
	TRACE_KIND_MAX,
};

/* "compute" …, for JSON and people. */
const char *trace_kind_name(enum trace_kind kind);
/* HTA's "COMPUTATION" … */
const char *trace_kind_hta_name(enum trace_kind kind);
/* Of kinds that ran at the same time (bits), `between` them: "COMPUTATION overlapping MEMORY". */
void trace_kinds_name(unsigned set, bool hta, const char *between, struct strbuf *out);

struct trace_view_options {
	/*
	 * HTA's rows: all of a device that have a stream, waits included. Times in whole
	 * microseconds, begins rounded up and ends down. Kinds by HTA's patterns. Where there are
	 * two profiler steps or more, the last one is dropped, and so is device work whose launch
	 * is not there.
	 */
	bool hta_compatible;
	bool keep_last_step; /* with hta_compatible */
	bool drop_last_step; /* without it */
};

/* Work of a device that counts. */
struct trace_view_work {
	int64_t start_ns, end_ns; /* HTA's end may lie before its start */
	uint32_t row;             /* in trace.events */
	uint32_t launch;       /* row of the call that launched it; MODEL_NONE: not in the file */
	uint32_t stream;       /* index in `streams` */
	uint8_t kind;          /* enum trace_kind */
	uint8_t communication; /* how that is known: enum communication_evidence; not HTA's */
	bool is_wait;          /* a row of "cuda_sync": with hta_compatible alone */
};

/* A queue of a device. HTA's are numbers of streams, whatever their device. */
struct trace_view_stream {
	int64_t number;  /* TRACE_NO_NUMBER: not known */
	uint32_t track;  /* index in trace.tracks; MODEL_NONE with hta_compatible */
	uint32_t device; /* index in `devices` */
	uint32_t works;
};

/* HTA looks at all devices of a trace as one. */
struct trace_view_device {
	int64_t number; /* TRACE_NO_NUMBER: not known, or all */
	uint32_t works;
};

struct trace_view {
	const struct trace *trace; /* outlives the view */
	struct trace_view_options options;
	uint32_t rank;
	/* By start, of equal ones in the file's order; HTA's: in the file's order. */
	ARRAY_OF(struct trace_view_work) works;
	ARRAY_OF(struct trace_view_stream) streams; /* in order of their first work in the file */
	ARRAY_OF(struct trace_view_device) devices; /* likewise */
	uint8_t *kinds;          /* HTA's, by name: enum trace_kind + 1; 0: not asked */
	uint8_t *communication;  /* ours, by row: enum communication_evidence */
	uint32_t steps;          /* ProfilerStep#N: different names */
	int64_t dropped_from_ns; /* the last step's start, where it is dropped; else INT64_MAX */
	uint64_t dropped_works;  /* of the last step, or for want of a launch in HTA */
	uint64_t works_without_launch;     /* of `works` */
	uint64_t negative_durations;       /* of work, counted as none */
	uint32_t event_sync, context_sync; /* names: HTA knows these rows by them */
	uint32_t mtia;                     /* category: of all that an MTIA device does */
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

/* What kind of work a device's row is: by its category and arguments, and by its name. */
enum trace_kind trace_view_kind(const struct trace_view *view, const struct trace_event *event);

/* The name of a kind: HTA's with hta_compatible. */
const char *trace_view_kind_name(const struct trace_view *view, enum trace_kind kind);
/* What the device is called, or "GPU 0"; "stream 7", or another name of the queue. */
void trace_view_device_name(const struct trace_view *view, uint32_t device, struct strbuf *out);
void trace_view_stream_name(const struct trace_view *view, uint32_t stream, struct strbuf *out);

/*
 * Sorts indices by their times: `order` holds 0 … count - 1 afterwards. Equal times keep their
 * order, except with hta_compatible: then as numpy's argsort() has them, on which HTA's queue
 * lengths depend. Returns 0 or -ENOMEM.
 */
int trace_view_sort(
	const struct trace_view *view, const int64_t *times_ns, uint32_t *order, size_t count);
