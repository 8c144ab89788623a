/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of a program did: operators, calls and annotations, by the time in them alone
 * and in all. It is the answer for traces without device work.
 *
 * Time belongs to the innermost row that is open: rows of one thread that overlap without lying in
 * one another share it by the last begin. ProfilerStep#N is no row here, for it is all that
 * happened. Times are the file's, whatever those of the view are.
 */
#pragma once

#include "analyses/trace_view.h"
#include "base/map.h"

/* Rows of one name and thread. */
struct trace_cpu_op {
	uint32_t name;
	uint32_t thread; /* index in `threads` */
	enum trace_category category;
	bool is_operator; /* not an annotation of the program */
	uint64_t count;
	int64_t self_ns;
	int64_t total_ns; /* recursion counts once */
	int64_t until_ns; /* end of what `total_ns` holds */
};

struct trace_cpu_thread {
	uint32_t track;
	uint64_t operators;       /* rows of them */
	int64_t in_operators_ns;  /* while at least one is open */
	int64_t start_ns, end_ns; /* of its rows, those that are not counted included */
};

struct trace_cpu_ops {
	ARRAY_OF(struct trace_cpu_op) rows;        /* most time in them alone first */
	ARRAY_OF(struct trace_cpu_thread) threads; /* that have rows, in the trace's order */
	int64_t start_ns, end_ns;                  /* of all threads */
	int64_t in_operators_ns;                   /* while at least one thread is in an operator */
};

/* Returns 0 or -ENOMEM. */
int trace_cpu_ops_init(struct trace_cpu_ops *ops, const struct trace_view *view);
void trace_cpu_ops_done(struct trace_cpu_ops *ops);
#define _cleanup_trace_cpu_ops_ _cleanup_(trace_cpu_ops_done)

/* "operator", "call" or "annotation". */
const char *trace_cpu_op_kind(const struct trace_cpu_op *row);

/* "thread 4711", or "thread 4711 (pt_autograd_0)". */
void trace_cpu_thread_name(
	const struct trace *trace, const struct trace_cpu_thread *thread, struct strbuf *out);

/* ---- all ranks together ---- */

/* What would help, where the figures say so clearly; bits. */
enum trace_cpu_advice {
	TRACE_CPU_ADVICE_OUTSIDE = 1 << 0,       /* most of the time no operator runs */
	TRACE_CPU_ADVICE_SHORT = 1 << 1,         /* operators are so short that calls cost most */
	TRACE_CPU_ADVICE_COMMUNICATION = 1 << 2, /* threads communicate, or wait for others */
	TRACE_CPU_ADVICE_HEAVY = 1 << 3,         /* few operators take the time */
	TRACE_CPU_ADVICE_END = 1 << 4,
};

/* The stable name of one of them, for JSON: "outside_of_operators" … */
const char *trace_cpu_advice_name(enum trace_cpu_advice advice);

#define TRACE_CPU_HEAVIEST 3

struct trace_cpu_summary {
	uint32_t threads;                 /* with operators */
	uint64_t operators;               /* rows */
	int64_t span_ns, in_operators_ns; /* sums over ranks */
	int64_t self_ns;                  /* of operators, of all threads */
	int64_t communication_ns;         /* a part of it */
	/* Operators with most time of their own; NULL: there are no more. */
	struct {
		const char *name; /* the trace's */
		int64_t self_ns;
	} heaviest[TRACE_CPU_HEAVIEST];
	unsigned advice; /* enum trace_cpu_advice */
};

/* Returns 0 or -ENOMEM. */
int trace_cpu_summary_init(
	struct trace_cpu_summary *summary, const struct trace_view *views, size_t count);
