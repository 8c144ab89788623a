/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The times of a vLLM log, which are local and have no year: the last line was written when the
 * file was changed last, at the latest, and a month that falls begins a year.
 */
#pragma once

#include <stdint.h>

#include "importers/vllm_log/line.h"

struct vllm_log_clock {
	int year; /* of the line before */
	int month;
};

/*
 * Begins before the first line. `last` is the time of the last one and `new_years` how often the
 * month fell by more than six on the way to it.
 */
void vllm_log_clock_begin(struct vllm_log_clock *clock, const struct vllm_log_time *last,
	unsigned new_years, int64_t modified_s);
/* CLOCK_REALTIME, for one line after the other. */
uint64_t vllm_log_clock_ns(struct vllm_log_clock *clock, const struct vllm_log_time *time);
