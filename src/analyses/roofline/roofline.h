/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators by what they cost and how near they come to what the device can do: the roofline model
 * (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009). An operator's time is that of the
 * device work launched in it; of traces without device work, its time on the CPU.
 *
 * Each work belongs to one operator: the outermost around its launch whose formula covers what it
 * calls (OP_CLOSED), else the innermost. So an operator that calls others is counted once.
 *
 *   roof time  the longer of flop / peak and bytes / bandwidth
 *   bound      what that is of, compute or memory; "latency" where the roof time of a kernel is
 *              shorter than a kernel's own shortest time, ROOFLINE_KERNEL_NS
 *   saves      time less roof time, which is at least ROOFLINE_KERNEL_NS for each kernel
 *   MFU, MBU   of a step: the time that its operations take at the peak, its bytes at the
 *              bandwidth, by the step's time (Chowdhery et al.: PaLM, arxiv.org/abs/2204.02311,
 *              section 4.1; what is computed again counts here, too: their "hardware FLOPs")
 */
#pragma once

#include "analyses/roofline/peaks.h"
#include "analyses/trace_view.h"
#include "model/cost/op_cost.h"

/* The shortest kernels, which do nothing, take 1 to 2 µs on all of the devices in the table. */
#define ROOFLINE_KERNEL_NS 2000
/* So much above the roof is no error of measurement: the input is wrong, or the data in a cache. */
#define ROOFLINE_ABOVE 1.05

enum roofline_bound {
	ROOFLINE_UNKNOWN,
	ROOFLINE_COMPUTE,
	ROOFLINE_MEMORY,
	ROOFLINE_LATENCY,
	ROOFLINE_BOUND_MAX,
};

/* "compute", "memory", "latency"; NULL for ROOFLINE_UNKNOWN. */
const char *roofline_bound_name(enum roofline_bound bound);

/* Calls of one operator with inputs of the same sizes and types, on all ranks. */
struct roofline_row {
	uint32_t name, dims, types; /* in `strings`; dims and types: JSON, as in the trace */
	enum op_family family;
	enum op_dtype dtype; /* that it computes with */
	double flop, bytes;  /* of a call; NaN: not known */
	enum op_bound flop_is, bytes_is;
	uint64_t count, works;
	int64_t time_ns;
	/* Of the ranks that have it: */
	int64_t least_ns, most_ns;
	uint32_t ranks;
	/* At the device's peaks; NaN: they are not known, or the cost is not. Of costs that are
	 * bounds the roof is one, too. What is saved is not known where they are at least as much;
	 * where they are at most as much, it is saved at least. */
	double roof_ns, saves_ns;
	enum roofline_bound bound;
	bool is_above; /* it is faster than the roof */
};

/* All shapes of an operator. */
struct roofline_operator {
	uint32_t name;
	enum op_family family;
	uint64_t count;
	int64_t time_ns;
	double flop, bytes, roof_ns, saves_ns; /* sums of what is known; roofs NaN: none is */
};

/* A profiler step of a rank; or where there is none, all of it: number is ROOFLINE_NO_STEP. */
struct roofline_step {
	uint32_t view; /* index */
	uint64_t number;
	int64_t start_ns, end_ns;
	double flop, bytes; /* of operators that began in it */
	bool has_bounds;    /* of some of which they are bounds */
	double mfu, mbu;    /* NaN: not known */
};
#define ROOFLINE_NO_STEP UINT64_MAX

struct roofline {
	ARRAY_OF(struct roofline_row) rows;           /* most time first */
	ARRAY_OF(struct roofline_operator) operators; /* most to save first, then most time */
	ARRAY_OF(struct roofline_step) steps;         /* by view and time */
	struct intern strings;
	bool is_cpu;        /* there is no device work: times are those of threads */
	bool has_shapes;    /* some operator has inputs */
	const char *device; /* its name; "": none is known; NULL: there are several */
	struct peaks peaks;
	bool has_peaks;          /* any */
	int64_t work_ns;         /* of all device work, or all operators of threads */
	int64_t in_operators_ns; /* of which operators have, */
	int64_t known_ns;        /* whose cost is known */
	double saves_ns;
};

/* `given`: --peak; NULL: nothing. Returns 0 or -ENOMEM. */
int roofline_init(struct roofline *roofline, const struct trace_view *views, size_t count,
	const struct peaks *given);
void roofline_done(struct roofline *roofline);
#define _cleanup_roofline_ _cleanup_(roofline_done)
