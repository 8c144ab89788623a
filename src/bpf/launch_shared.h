/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What launch.bpf.c and launch_source.c both know. */
#pragma once

/* Beside one for each CPU: for programs that were preempted. */
#define LAUNCH_SPARE_SCRATCHES 8

enum launch_counter {
	LAUNCH_COUNT_TAKEN,
	LAUNCH_COUNT_LOST, /* the ring was full */
	LAUNCH_COUNT_BUSY, /* no scratch was free */
	LAUNCH_COUNT_MAX
};
