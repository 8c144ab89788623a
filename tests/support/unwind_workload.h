/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in every shape that is hard to unwind, compiled without frame pointers: test-unwind-stack
 * steps through them. */
#pragma once

/* Runs all of them once. Returns a number that depends on all their results. */
int unwind_workload_run(void);
