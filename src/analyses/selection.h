/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples count: the filters that report, export and diff share. */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "model/model.h"

struct selection {
	const char *process; /* pid, or a pattern (extended regular expression) on process names */
	const char *thread;  /* tid, or a pattern on thread names */
	const char
		*symbol; /* pattern: only samples with a matching function anywhere in the stack */
	const char *range;        /* pattern: only what happened in ranges of a matching name */
	enum model_weight weight; /* running samples, waiting ones, or both */
	const char *time;   /* "START..END", each seconds since the session's start, either may be
			       empty */
	const char *window; /* "N[,M|A-B]": told when the model is loaded, which has no others */
};

/* The selection applied to one model: one bool per sample. */
struct selected {
	bool *samples;  /* model->samples.count of them */
	uint64_t count; /* sum of the samples' counts */
};

/* Returns 0, or -EINVAL with a sentence that names the bad filter and its proper form. */
int selection_apply(const struct selection *selection, const struct model *model,
	struct selected *ret_selected, struct errmsg *err);
void selected_done(struct selected *selected);
