/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in every shape that is hard to unwind, compiled without frame pointers: test-unwind-stack
 * steps through them. */
#pragma once

/* Runs all of them once. Returns a number that depends on all their results. */
int unwind_workload_run(void);

/* unwind_assembly.S */
int unwind_assembly_in_rbx(int seed);
int unwind_assembly_in_memory(int seed);
int unwind_assembly_pushes(int seed);
int unwind_assembly_frame_pointer(int seed);
int unwind_assembly_tail(int seed);
int unwind_assembly_leaf(int seed);
/* What they call. */
int unwind_workload_inner(int seed);
