/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Switches the CPU sampler on as soon as a producer opens the gate, from a thread of its own: the
 * collector's loop may be busy for longer than the first steps of a window take. Only the loop
 * switches it off.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sources/target/target_gate.h"

struct window_switch;

/* Switches whatever takes samples. Returns 0 or a negative errno. */
typedef int window_switch_function(void *context, bool active);

/* The sampler runs. `gate_path` is touched at each edge. Returns 0 or a negative errno. */
int window_switch_start(struct window_switch **ret_window_switch,
	window_switch_function *set_active, void *context, struct target_gate *gate,
	const char *gate_path);
/*
 * What the loop knows of the gate; one that was opened again meanwhile stays on. Returns 0 or the
 * sampler's negative errno, also of the thread.
 */
int window_switch_set(struct window_switch *window_switch, bool on);
/* How much of the window, which ends now and is the last, passed before the sampler ran. */
uint64_t window_switch_late_ns(
	struct window_switch *window_switch, uint64_t begin_ns, uint64_t end_ns);
/* The thread has ended after this; NULL is accepted. */
struct window_switch *window_switch_free(struct window_switch *window_switch);
