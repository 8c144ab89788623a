/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that all analyses of idle time share: of recordings and of traces. */
#pragma once

/*
 * "Kernel wait": the next work had been launched before the device became idle, and the gap is
 * shorter than this: what a device takes from one kernel to the next. HTA's limit, the default 30
 * of `consecutive_kernel_delay` in get_idle_time_breakdown() (hta/trace_analysis.py, f4d0062). Its
 * documentation says nanoseconds; it compares with times of Kineto's files, which are microseconds.
 */
#define IDLE_KERNEL_WAIT_NS 30000

/* A call that copies or fills and takes so long did not only hand the work over: it blocked. */
#define IDLE_BLOCKING_COPY_NS 100000

/* From this share of the time on, idle time always gets advice. */
#define IDLE_ADVICE_PERCENT 30
