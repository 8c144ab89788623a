/* SPDX-License-Identifier: Apache-2.0 */
/* What the device's peaks make of operators and steps. For roofline.c. */
#pragma once

#include "analyses/roofline/roofline.h"

/* Of the device that all views have, and of what was given. */
void roof_choose_peaks(struct roofline *roofline, const struct trace_view *views, size_t count,
	const struct peaks *given);
/* The row's figures that rest on peaks. */
void roof_of_row(struct roofline_row *row, const struct peaks *peaks, bool is_cpu);
/* A call of the row: `mfu` and `mbu` are times, in ns, until roof_finish_steps(). */
void roof_add_to_step(
	struct roofline_step *step, const struct roofline_row *row, const struct peaks *peaks);
/* The steps of the view, which are those from `first` on. */
void roof_finish_steps(struct roofline *roofline, const struct trace_view *view, size_t first);
