/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector's side of the session's gate (wire/gate.h): a part of target_rings.h. Every process
 * of the session may write to it, so that nothing in it is believed.
 *
 * Calls may come from two threads; those that change the window, from one.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sources/target/map_guard.h"
#include "wire/gate.h"

struct target_gate {
	int fd; /* locked as long as we live */
	struct wire_gate *memory;
	struct map_guard guard;
	_Atomic bool wants_open; /* by what we know */
	uint32_t stacks;         /* enum wire_launch_stacks, as it was set last */
};

/* What the gate is made with. */
struct target_gate_options {
	__u8 graph_mode;               /* enum wire_graph_mode */
	__u8 tracer_mode;              /* enum wire_tracer_mode */
	__u8 call_mode;                /* enum wire_call_mode */
	bool samples_pcs;              /* instructions of devices */
	bool unified_memory;           /* its faults and migrations are recorded */
	bool launch_times;             /* and when launches were queued and submitted */
	bool device_graphs;            /* those that devices launch; with WIRE_GRAPH_WHOLE */
	__u32 pm_interval_us;          /* of counters of devices; 0: they are not sampled */
	struct wire_schedule schedule; /* with max_steps */
	const char *step_pattern;      /* NULL: none */
	bool is_closed;                /* at first */
};

/* In this folder, under its name only when it is whole. Returns 0 or a negative errno. */
int target_gate_make(
	struct target_gate *ret_gate, int folder_fd, const struct target_gate_options *options);
void target_gate_done(struct target_gate *gate);

void target_gate_set_stacks(struct target_gate *gate, uint32_t how, bool memo);
void target_gate_set_untimed(struct target_gate *gate);
void target_gate_set_launch_probe(struct target_gate *gate, enum wire_launch_probe probe);
void target_gate_set_ready(struct target_gate *gate);
/* Does any process launch device work? */
bool target_gate_is_launching(struct target_gate *gate);
/* Did one of them go on before its launches were probed? */
bool target_gate_went_unprobed(struct target_gate *gate);
/* We live; a gate that a process closed, taking us for dead, is opened again. */
void target_gate_beat(struct target_gate *gate);

/* ---- windows ---- */

/*
 * Changes the phase, and says from when on: 0 when the leader is changing it just now, after which
 * its edges are to be read first.
 */
uint64_t target_gate_set_phase(struct target_gate *gate, enum wire_phase phase);
/* Do producers record? From any thread. */
bool target_gate_is_open(struct target_gate *gate);
/* As it is without a step, at the start: returns the phase. */
enum wire_phase target_gate_start_schedule(struct target_gate *gate, uint64_t now_ns);
/*
 * The leader's edges, which ret_edges has room for, and the moment up to which there are no others.
 * Waits for a leader that is at it, at most some milliseconds.
 */
size_t target_gate_read_edges(struct target_gate *gate,
	struct wire_window_edge ret_edges[WIRE_WINDOW_EDGES], uint64_t *ret_known_ns);
/* After a window: nothing is reported any more, if it is not open again. */
void target_gate_end_draining(struct target_gate *gate);
/* For good: no step opens it any more. */
void target_gate_close(struct target_gate *gate);
void target_gate_drain(struct target_gate *gate);
/* The start time of the leader's ring file, or WIRE_GATE_NOBODY, or WIRE_GATE_COLLECTOR. */
uint64_t target_gate_leader(struct target_gate *gate);
/* The leader has ended, with whatever it held: the next process that makes a step leads. */
void target_gate_free_leader(struct target_gate *gate);
/* No window is opened by steps from now on. */
void target_gate_stop_schedule(struct target_gate *gate);
uint32_t target_gate_cycles_missed(struct target_gate *gate);
/*
 * A step that is made by hand: -EBUSY when a process leads. The edges are to be read afterwards.
 */
int target_gate_step(struct target_gate *gate, uint64_t count);
