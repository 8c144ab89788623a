/* SPDX-License-Identifier: Apache-2.0 */
/* sonde report --regress: has the program become slower than in a baseline? */
#pragma once

#include "load/capture.h"
#include "report/render.h"

#define REGRESS_THRESHOLD_PERCENT 10 /* the default */

struct regress_arguments {
	const char *const *baselines;
	size_t baseline_count;
	double threshold_percent;
	size_t limit; /* rows; 0: the default */
	enum report_form form;
};

/*
 * Compares recordings of one program with those of its baseline, and prints the table. Returns the
 * exit status: 1 when something got slower, as `sonde diff` has it.
 */
int report_regress(const struct regress_arguments *arguments, const struct shown_options *shown,
	const struct selection *selection, const char *const *paths, size_t count);
