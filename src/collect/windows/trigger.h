/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the collector opens and closes windows: what the flag, the clock, signals and `sonde ctl`
 * say becomes "open" and "close". No I/O; the caller does it, and says when a window was closed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collect/windows/spec.h"

/* A flag that comes and goes quicker opens this long after the window before at the earliest. */
#define WINDOW_FLAG_GAP_NS 20000000ULL

enum window_action {
	WINDOW_STAY,
	WINDOW_OPEN,
	WINDOW_CLOSE,
};

struct window_trigger {
	const struct window_spec *spec;
	uint64_t start_ns; /* of the recording */
	bool is_open, is_flag_up;
	bool needs_rest; /* a limit closed the window: the flag must go first */
	bool is_past;    /* of `time`: it was open */
	uint64_t begin_ns, closed_ns;
	uint64_t held_back; /* times that the flag was too quick */
};

/* The recording starts. */
void window_trigger_start(struct window_trigger *trigger, uint64_t now_ns);
/* What is to be done now. Each is to be followed by window_trigger_opened() or _closed(). */
enum window_action window_trigger_flag(struct window_trigger *trigger, bool is_up, uint64_t now_ns);
enum window_action window_trigger_signal(const struct window_trigger *trigger);
/* The clock: to be asked at window_trigger_due_ns(). *ret_reason: of closing. */
enum window_action window_trigger_tick(
	struct window_trigger *trigger, uint64_t now_ns, enum capture_window_reason *ret_reason);
/* UINT64_MAX: nothing is due. */
uint64_t window_trigger_due_ns(const struct window_trigger *trigger);
/* The moment at which the open window will be closed by the clock; 0: it will not. */
uint64_t window_trigger_planned_end_ns(const struct window_trigger *trigger);

void window_trigger_opened(struct window_trigger *trigger, uint64_t now_ns);
void window_trigger_closed(
	struct window_trigger *trigger, enum capture_window_reason reason, uint64_t now_ns);
