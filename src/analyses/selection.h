/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples count: the filters that report, export and diff share. */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/strbuf.h"
#include "model/model.h"

struct selection {
	const char *process; /* pid, or a pattern (extended regular expression) on process names */
	const char *thread;  /* tid, or a pattern on thread names */
	const char
		*symbol; /* pattern: only samples with a matching function anywhere in the stack */
	const char *range;        /* pattern: only what happened in ranges of a matching name */
	enum model_weight weight; /* running samples, waiting ones, or both */
	const char *time;   /* "START..END" or "START-END", each seconds since the session's start,
			       either may be empty */
	const char *step;   /* "N[-M]": steps of these numbers */
	const char *window; /* "N[,M|A-B]": chosen when the model is loaded, which has no others */
};

/* What views show. Each says here, in one table, which filters it honours. */
enum selection_kind {
	SELECTION_SAMPLES,
	SELECTION_DEVICE_WORK,
	SELECTION_RANGES, /* and marks, with what is made of them: requests, tokens, experts */
	SELECTION_STEPS,
	SELECTION_COUNTERS,
	SELECTION_ENERGY, /* of domains: what is charged to samples and device work is theirs */
	SELECTION_WINDOWS,
	SELECTION_GRAPHS,
	SELECTION_DEVICE_MEMORY,
	SELECTION_DEVICE_IDLE,
	SELECTION_PCS, /* counted over many seconds, and of no stream */
	SELECTION_VLLM_TABLES,
	SELECTION_TRACES,       /* as other tools have them */
	SELECTION_FOREIGN_ROWS, /* of other tools' traces: trace_narrow.h */
	SELECTION_KIND_MAX,
};

/* "steps", "device work" … */
const char *selection_kind_name(enum selection_kind kind);
/* The first filter that was given, "--process"; NULL: none. */
const char *selection_first_filter(const struct selection *selection);
/* The first filter that was given and does not apply to this kind, "--symbol"; NULL: all do. */
const char *selection_refused(const struct selection *selection, enum selection_kind kind);
/* Is any filter given but --window, of which the model has nothing else? */
bool selection_narrows(const struct selection *selection);
/* Returns 0, or -EINVAL with a sentence that names the filter that does not apply. */
int selection_check(
	const struct selection *selection, enum selection_kind kind, struct errmsg *err);

/* Numbers of steps, both inclusive. */
struct selection_steps {
	uint64_t first, last;
};

/* Of --step and --time. Times are since the start, both inclusive; the end may be UINT64_MAX.
 * Return 0, or -EINVAL with a sentence. */
int selection_parse_steps(const char *text, struct selection_steps *ret_steps, struct errmsg *err);
int selection_parse_time(
	const char *text, uint64_t *ret_start_ns, uint64_t *ret_end_ns, struct errmsg *err);
/* Returns -ENODATA with a sentence: of the steps that there are none has these numbers. `lowest` >
 * `highest`: there are no steps at all. */
int selection_no_step(const char *text, uint64_t lowest, uint64_t highest, struct errmsg *err);

/* The selection applied to one model: one bool per sample. */
struct selected {
	bool *samples;  /* model->samples.count of them */
	uint64_t count; /* sum of the samples' counts */
};

/* Returns 0, or -EINVAL with a sentence that names the bad filter and its proper form. */
int selection_apply(const struct selection *selection, const struct model *model,
	struct selected *ret_selected, struct errmsg *err);
void selected_done(struct selected *selected);

/*
 * Leaves in the model, of everything but samples, what the filters select. An event has its own
 * process, thread and time, and lies in the ranges that are open when it starts, or is launched;
 * ranges and steps count where they overlap --time. Of kinds that a filter does not apply to
 * nothing is left. Idle time of devices is between pieces of work of all programs: find it before.
 * Returns 0 or a negative errno with a sentence.
 */
int selection_narrow(const struct selection *selection, struct model *model, struct errmsg *err);
/*
 * Leaves of the energy what lies in --time: before energy_use_init(), which charges the rest.
 * Returns 0, or -EINVAL with a sentence.
 */
int selection_narrow_energy(
	const struct selection *selection, struct model *model, struct errmsg *err);
/* Did selection_narrow() drop all that the model had of this kind, as a filter does not apply? */
bool selection_left_out(const struct model *model, enum selection_kind kind);
/* Appends "Left out, because …: steps (--symbol), ranges (--symbol)."; or nothing. */
void selection_describe_left_out(
	const struct selection *selection, const struct model *model, struct strbuf *out);
