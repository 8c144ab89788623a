/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path: the chain of operators, launches, device work and waits that decided how long
 * a step took. docs/critical-path.md has the definitions for readers.
 */
#pragma once

#include "analyses/path/graph.h"
#include "analyses/trace_view.h"
#include "base/array.h"

/* What the path was bound by. */
enum trace_path_bound {
	TRACE_PATH_CPU,
	TRACE_PATH_DATA_LOADING,
	TRACE_PATH_GPU_COMPUTE,
	TRACE_PATH_GPU_COMMUNICATION,
	TRACE_PATH_GPU_MEMORY, /* copies and fills */
	TRACE_PATH_KERNEL_OVERHEAD,
	TRACE_PATH_LAUNCH_OVERHEAD,
	TRACE_PATH_EARLIER, /* the device was at work that was launched before the window */
	TRACE_PATH_ORDER,   /* dependencies, which take no time */
	TRACE_PATH_BOUND_MAX,
};

/* As in HTA (f4d0062): "cpu_bound" …; "" for TRACE_PATH_ORDER. */
const char *trace_path_bound_name(enum trace_path_bound bound);
/* "critical_path_operator" … */
const char *trace_path_kind_name(enum trace_path_kind kind);

/* One edge of the path. */
struct critical_path_step {
	uint32_t from, to; /* rows that its nodes belong to */
	bool from_is_start, to_is_start;
	int64_t start_ns;    /* of its first node */
	int64_t duration_ns; /* below 0: from another tool's edges */
	uint32_t event;      /* row whose time it is; MODEL_NONE: nobody's */
	enum trace_path_kind kind;
	enum trace_path_bound bound;
};

/* The path's time that one name has. */
struct critical_path_name {
	uint32_t name;
	enum trace_path_bound bound;
	int64_t time_ns;
	uint64_t steps;
};

/* Of one window: a step, or another annotation, or the whole trace. */
struct critical_path {
	uint32_t name;            /* string; 0: the whole trace */
	int64_t start_ns, end_ns; /* of the window; the work launched in it may end later */
	int64_t last_ns;          /* when the path ends */
	uint64_t nodes, edges;    /* of the graph */
	uint64_t cyclic_nodes;    /* left out: they would have to come before themselves */
	int64_t total_ns;         /* the path's length: what its steps add up to */
	int64_t by_bound[TRACE_PATH_BOUND_MAX];
	ARRAY_OF(struct critical_path_step) steps; /* first to last */
	ARRAY_OF(struct critical_path_name) names; /* most time first */
};

struct critical_paths {
	ARRAY_OF(struct critical_path) windows;
	uint64_t sync_rows;        /* waits that the trace tells of */
	uint64_t inferred_waits;   /* calls that wait by their name: for what was worked out */
	bool infers_waits;         /* it is tried where the trace tells of none */
	uint64_t clipped_rows;     /* rows that end after the one they lie in: cut there */
	uint64_t backward_edges;   /* dependencies that point back in time: left out */
	uint64_t unexplained_gaps; /* work that began long after all that it is known to wait for */
	int64_t unexplained_ns;
};

struct critical_path_options {
	/*
	 * Windows are the outermost annotations of the program whose names begin with it. NULL:
	 * ProfilerStep, or the whole trace where there is none. "": the whole trace.
	 */
	const char *annotation;
	/* The window of instances first … last as one. first > last: a window each. */
	uint32_t first, last;
};

/* Returns 0, -ENOENT when no annotation has that name or number, or -ENOMEM. */
int critical_paths_init(struct critical_paths *paths, const struct trace_view *view,
	const struct critical_path_options *options);
void critical_paths_done(struct critical_paths *paths);
#define _cleanup_critical_paths_ _cleanup_(critical_paths_done)

/* ---- for those who make the graph otherwise ---- */

/* By process and thread number, the place of each track. The caller frees it; NULL: no memory. */
uint32_t *trace_path_places(const struct trace *trace);

/* What the time of a row is bound by. */
typedef enum trace_path_bound trace_path_bound_of_row(const void *context, uint32_t row);

/* The path through the graph, for a window whose name, start and end are set. Returns 0 or -ENOMEM.
 */
int critical_path_finish(struct critical_path *path, const struct trace *trace,
	const struct trace_path_graph *graph, trace_path_bound_of_row *bound, const void *context);
void critical_path_done(struct critical_path *path);
