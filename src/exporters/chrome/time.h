/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of a trace in Chrome's format: microseconds, which readers hold as doubles and add. What
 * follows something, or ends with it, must do so for them too: a difference in the last bit is an
 * overlap, on which speedscope draws stairs and TensorBoard's plug-in gives up.
 *
 * So all times lie between a power of two and the next one, where doubles are equally far apart:
 * then the difference of any two is a double, and adding it gives the second one exactly, even
 * where a reader subtracts the first time from all of them before. "ts" is the time in nanoseconds,
 * three decimals behind the microseconds; "dur" is that difference, with more decimals where three
 * are another double.
 */
#pragma once

#include "base/strbuf.h"
#include "model/model.h"

struct chrome_clock {
	uint64_t origin_ns; /* where the recording begins: nothing is before it */
	uint64_t first_ns;  /* what the trace calls that: 2^N microseconds, longer than it lasts */
};

struct chrome_clock chrome_clock_of(const struct model *model);

/* 4194304.000 */
void chrome_add_moment(struct strbuf *out, const struct chrome_clock *clock, uint64_t time_ns);
/* ,"ts":4194304.000 */
void chrome_add_time(struct strbuf *out, const struct chrome_clock *clock, uint64_t time_ns);
/* ,"ts":4194304.000,"dur":1.234 */
void chrome_add_span(
	struct strbuf *out, const struct chrome_clock *clock, uint64_t start_ns, uint64_t end_ns);
