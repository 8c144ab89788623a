/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the critical path's analysis, see critical_path.h: the rows of a trace in the
 * order that windows need, and what adds the edges of threads and of devices.
 */
#pragma once

#include "analyses/path/critical_path.h"
#include "analyses/path/graph.h"
#include "analyses/trace_view.h"

/* What a row's name says; flags. */
enum {
	TRACE_PATH_BLOCKING = 1 << 0, /* a call that waits for a device */
	TRACE_PATH_LOADING = 1 << 1,  /* data */
};

/* A row of a thread, its times as the view has them, cut to those of the row it lies in. */
struct trace_path_row {
	int64_t start_ns, end_ns;
	uint32_t event;
};

/* Work by its launch. */
struct trace_path_launched {
	int64_t time_ns; /* the call's start; the work's own where the call is not known */
	uint32_t call;   /* row; MODEL_NONE: not known */
	uint32_t work;   /* index in view.works */
};

struct trace_path_source {
	const struct trace_view *view;
	const struct trace *trace;
	struct critical_paths *paths;                  /* where losses are counted */
	uint8_t *names;                                /* flags of each string */
	ARRAY_OF(struct trace_path_row) rows;          /* by start */
	ARRAY_OF(struct trace_path_launched) launched; /* by time */
	uint32_t *places;                              /* of tracks, by process and thread */
	uint32_t *groups; /* of tracks: threads whose operators follow each other as one */
	uint8_t *blocked; /* of rows, in the window at hand: the call ended when work did */
	struct trace_path_waits *waits; /* see waits.c */
};

/* Prepares the view's rows once for all windows. */
int trace_path_source_init(struct trace_path_source *source, const struct trace_view *view,
	struct critical_paths *paths);
void trace_path_source_done(struct trace_path_source *source);

/* What belongs to one window. */
struct trace_path_window {
	struct trace_path_source *source;
	struct trace_path_graph *graph;
	const struct trace_path_row *rows; /* of threads, by start */
	size_t row_count;
	ARRAY_OF(uint32_t) works; /* indices in view.works, smallest first */
};

static inline bool trace_path_name_is(
	const struct trace_path_source *source, uint32_t event, unsigned flag)
{
	return source->names[source->trace->events.items[event].name] & flag;
}

/* Adds what threads did one after the other. */
int trace_path_add_threads(struct trace_path_window *window);

/* What waits for what on devices, for all windows; needs source.rows. */
int trace_path_waits_init(struct trace_path_source *source);
void trace_path_waits_done(struct trace_path_source *source);
/* The work that the call, or other work, waited for: index in view.works; MODEL_NONE: none. */
uint32_t trace_path_waited_by_call(const struct trace_path_source *source, uint32_t call);
uint32_t trace_path_waited_by_work(const struct trace_path_source *source, uint32_t work);
/* The work before it on its stream, of this window or an earlier one; MODEL_NONE: none. */
uint32_t trace_path_before(const struct trace_path_source *source, uint32_t work);

/* Adds what devices did, and before the threads the calls that waited for them. */
int trace_path_add_waits(struct trace_path_window *window);
int trace_path_add_works(struct trace_path_window *window);
