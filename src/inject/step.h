/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps: what the program says of itself, by the C API, Python, a hook or an NVTX mark. Each call
 * counts; with a schedule the process that leads the session opens and closes windows by them.
 *
 * Never waits, prints or fails; any number of threads at once. With a closed gate a call counts,
 * reads the gate's next edge and returns.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/api.h"

/*
 * A step of this name ends and the next one begins. Returns how many of the name the process has
 * made, this one counted; 0 without a session, after a fork, and for a name too many. NULL: "step".
 * Names are distinguished by their text, and those seen again at the same address the quickest.
 */
uint64_t inject_step(const char *name);
/* Right after it: see wire_api. */
bool inject_steps_of(const char *name, struct wire_api_steps *ret_steps);
/*
 * The same for what is a step only where --step-on names it, such as an NVTX mark: other names are
 * not counted, nor kept.
 */
void inject_step_if_chosen(const char *name);
