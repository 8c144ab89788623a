/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the samples went, by one dimension: the tables of report, its JSON and CSV.
 *
 * To add a dimension: a value and a name below and in breakdown.c's tables, its keys in
 * dimensions.c, its columns in report/cpu/dimensions.c and its member in report/cpu/tables.c,
 * docs/json.md.
 */
#pragma once

#include "analyses/energy/uncertainty.h"
#include "analyses/selection.h"
#include "base/array.h"
#include "model/model.h"

enum breakdown_by {
	BREAKDOWN_FUNCTION,
	BREAKDOWN_MODULE,
	BREAKDOWN_LINE,
	BREAKDOWN_PROCESS,
	BREAKDOWN_THREAD,
	BREAKDOWN_CPU,
	BREAKDOWN_CGROUP,
	BREAKDOWN_STACK,
	BREAKDOWN_CLASS,
	BREAKDOWN_GIL,
	BREAKDOWN_RANK,
	BREAKDOWN_MAX,
	BREAKDOWN_INVALID = -EINVAL,
};

/* "function", "module" … */
const char *breakdown_by_to_string(enum breakdown_by by);
enum breakdown_by breakdown_by_from_string(const char *name);

enum breakdown_sort {
	BREAKDOWN_SORT_SELF,
	BREAKDOWN_SORT_TOTAL,
};

#define BREAKDOWN_NO_MODULE (UINT32_MAX - 1)

/*
 * One row. `key` is an index in the model's functions, modules, processes, threads or stacks, in
 * the breakdown's lines, cgroups or ranks, the CPU's number, an enum
 * model_class or an enum wire_gil. MODEL_NONE: samples without a stack.
 * BREAKDOWN_NO_MODULE: code that lies in no known module. Self: samples whose innermost frame is
 * the row's; total: samples with the row anywhere in the stack, once each. Both are equal where a
 * sample has one key only (process, thread, CPU, cgroup, stack, rank).
 */
struct breakdown_row {
	uint32_t key;
	uint32_t merged; /* by breakdown_merge_processes(): further processes of this row */
	uint64_t self_samples, total_samples;
	uint32_t sums; /* index in the breakdown's, where samples count energy */
};

struct breakdown_line {
	const char *source_file; /* "" when unknown: then all of the function's addresses without a
				    line */
	uint32_t line;
	uint32_t function; /* the first seen with this line */
};

struct breakdown {
	enum breakdown_by by;
	uint64_t samples;                      /* selected in all; what shares are of */
	ARRAY_OF(struct breakdown_row) rows;   /* by samples falling, then by name */
	ARRAY_OF(struct breakdown_line) lines; /* of BREAKDOWN_LINE */
	ARRAY_OF(const char *) cgroups;        /* of BREAKDOWN_CGROUP; "" is unknown */
	ARRAY_OF(uint32_t) ranks;              /* of BREAKDOWN_RANK; MODEL_NONE: not known */
	struct energy_key_sums sums;           /* where samples count energy; else NULL */
};

/* Of a row's self_samples or total_samples. */
struct energy_uncertainty breakdown_uncertainty(const struct breakdown *breakdown,
	const struct model *model, const struct breakdown_row *row, bool is_total);

/* Returns 0 or -ENOMEM. The breakdown points into the model. */
int breakdown_init(struct breakdown *breakdown, const struct model *model,
	const struct selected *selected, enum breakdown_by by, enum breakdown_sort sort);
/*
 * Of BREAKDOWN_PROCESS: makes one row of processes with one name that were short, as a build's
 * compilers are: they lived for less than half of the recording, and there are at least
 * BREAKDOWN_MERGED_PROCESSES of them. Its key is the one with most samples. Returns 0 or -ENOMEM.
 */
#define BREAKDOWN_MERGED_PROCESSES 3
int breakdown_merge_processes(struct breakdown *breakdown, const struct model *model);
void breakdown_done(struct breakdown *breakdown);
#define _cleanup_breakdown_ _cleanup_(breakdown_done)
