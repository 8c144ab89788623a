/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate of a session: the file in its folder that says whether the window is open. The collector
 * makes it; every process of the session maps it. Producers look at `state` alone.
 *
 * Who changes it holds its lock: the collector, or the leader, the one process whose steps open and
 * close windows where the session has a schedule. Nobody waits for the lock: who does not get it
 * comes again. What the leader did, and when, stands in `edges` for the collector.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include <linux/types.h>

#define WIRE_GATE_MAGIC   0x65746167646e6f73ULL /* "sondgate" */
#define WIRE_RING_VERSION 5                     /* of the gate and the ring files */
#define WIRE_GATE_NAME    "gate"
/* A Unix socket beside the gate: see collect/session/control.h. */
#define WIRE_CONTROL_NAME "control"
/* A collector that did not write its heartbeat for so long is gone. */
#define WIRE_HEARTBEAT_NS 5000000000ULL

#define WIRE_SCHEDULE_INTERVALS 16
#define WIRE_STEP_PATTERN_BYTES 64
#define WIRE_WINDOW_EDGES       64 /* a power of two */
#define WIRE_STEP_NEVER         (~0ULL)
/* Who holds the lock, and who leads: a process is known by its ring file's start time. */
#define WIRE_GATE_NOBODY    0ULL
#define WIRE_GATE_COLLECTOR 1ULL

enum wire_gate_state {
	WIRE_GATE_CLOSED = 0,
	WIRE_GATE_OPEN = 1,
	/* Nothing new is recorded; what was is still sent. The collector waits for it, but not
	   long. */
	WIRE_GATE_DRAINING = 2,
};

enum wire_schedule_kind {
	WIRE_SCHEDULE_NONE = 0,  /* the collector opens windows */
	WIRE_SCHEDULE_STEPS = 1, /* wait, warm up, record; again and again */
	WIRE_SCHEDULE_CALLS = 2, /* from one call of step() to another */
};

/* Why the leader made an edge. */
enum wire_window_reason {
	WIRE_WINDOW_SCHEDULE = 1,
	WIRE_WINDOW_MAX_STEPS = 2,
	WIRE_WINDOW_REASON_MAX
};

/* Calls of step(), counted from 1, both included. */
struct wire_calls {
	__u64 first, last;
};

/* Each number is below 2^32, and so is wait + warmup + active. */
struct wire_schedule {
	__u32 kind; /* enum wire_schedule_kind */
	__u32 interval_count;
	__u64 wait, warmup, active;
	__u64 repeat;                                         /* 0: until the end */
	struct wire_calls intervals[WIRE_SCHEDULE_INTERVALS]; /* ascending, apart */
	__u64 max_steps;                                      /* of a window; 0: no limit */
};

enum wire_phase {
	WIRE_PHASE_CLOSED = 0,
	WIRE_PHASE_WARMUP = 1, /* the gate is open, and the collector discards */
	WIRE_PHASE_ACTIVE = 2,
};

/* Where a schedule stands after so many steps. */
struct wire_schedule_place {
	enum wire_phase phase;
	__u64 cycle; /* from 0: of an interval its index */
	__u64 next;  /* at this count the phase is another; WIRE_STEP_NEVER: never */
};

struct wire_window_edge {
	__u64 time_ns;
	__u64 step;   /* that begins here: the leader's count */
	__u32 window; /* its number, which a warm-up's will be */
	__u16 phase;  /* enum wire_phase: from here on */
	__u16 reason; /* enum wire_window_reason */
};

_Static_assert(sizeof(struct wire_window_edge) == 24, "wire_window_edge is part of the format");

/* Of what takes the stacks of launches, which is loaded when a program first needs it. */
enum wire_launch_probe {
	WIRE_LAUNCH_PROBE_UNASKED = 0,
	WIRE_LAUNCH_PROBE_LOADS = 1,
	WIRE_LAUNCH_PROBE_DECIDED = 2, /* it is there, or will not be */
};

/* What is off otherwise. */
enum wire_also {
	WIRE_ALSO_PCS = 1,            /* instructions of devices are sampled */
	WIRE_ALSO_UNIFIED = 2,        /* faults and migrations of unified memory are recorded */
	WIRE_ALSO_PMS = 16,           /* counters of devices are sampled */
	WIRE_ALSO_LATENCY = 32,       /* when launches of kernels were queued and submitted */
	WIRE_ALSO_DEVICE_GRAPHS = 64, /* graphs that devices launch; with WIRE_GRAPH_WHOLE */
};

struct wire_gate {
	__u64 magic; /* WIRE_GATE_MAGIC */
	__u32 version;
	_Atomic __u32 state; /* enum wire_gate_state */
	__u32 collector_pid;
	_Atomic __u32 is_ready;     /* launch stacks are taken, or will not be */
	_Atomic __u64 heartbeat_ns; /* CLOCK_MONOTONIC */
	_Atomic __u32 stacks;       /* enum wire_launch_stacks */
	_Atomic __u8 memo_is_off;   /* every launch's stack is taken */
	__u8 tracer_mode;           /* enum wire_tracer_mode; written before the gate opens */
	__u8 call_mode;             /* enum wire_call_mode; written before the gate opens */
	__u8 also_recorded;         /* enum wire_also: bits; written before the gate opens */
	_Atomic __u32 is_untimed;   /* devices are not asked when the work ran */
	__u8 graph_mode;            /* enum wire_graph_mode; written before the gate opens */
	_Atomic __u8 is_launching;  /* a process waits for is_ready, or has waited */
	_Atomic __u8 launch_probe;  /* enum wire_launch_probe */
	_Atomic __u8 went_unprobed; /* a process waited in vain: its first launches lack stacks */
	/* Of windows. A step whose count has come to next_edge has something to do. */
	_Atomic __u64 next_edge;
	_Atomic __u32 window; /* number of the current or the last one, from 1 */
	/* Of the gate, so far: what a program had open at the last one is not known. */
	_Atomic __u32 openings;
	_Atomic __u64 begin_ns; /* of the current one; 0 with an open gate: it warms up */
	_Atomic __u64 leader, locked_by;
	_Atomic __u64 cycle;         /* that the schedule opened last, + 1 */
	_Atomic __u64 window_step;   /* steps that the leader had made when it saw the window */
	_Atomic __u32 window_seen;   /* by the leader */
	_Atomic __u32 cycles_missed; /* the collector was too late to take their edges */
	_Atomic __u64 edges_written, edges_read;
	struct wire_window_edge edges[WIRE_WINDOW_EDGES];
	struct wire_schedule schedule; /* from here on: written before the gate has its name */
	char step_pattern[WIRE_STEP_PATTERN_BYTES]; /* a POSIX extended expression; "": any */
	__u32 pm_interval_us;                       /* between two samples of WIRE_ALSO_PMS */
	__u32 reserved;
};

_Static_assert(sizeof(struct wire_gate) == 128 + WIRE_WINDOW_EDGES * 24 + 304 + 64 + 8,
	"wire_gate is part of the wire format");

/* ---- the schedule ---- */

static inline struct wire_schedule_place wire_schedule_steps_at(
	const struct wire_schedule *schedule, __u64 count)
{
	__u64 length = schedule->wait + schedule->warmup + schedule->active;
	__u64 cycle = length ? count / length : 0, at = length ? count % length : 0;
	struct wire_schedule_place place = {.cycle = cycle, .next = WIRE_STEP_NEVER};
	__u64 end = schedule->wait;

	if (!length || (schedule->repeat && cycle >= schedule->repeat))
		return place;
	if (at >= end) {
		place.phase = WIRE_PHASE_WARMUP;
		end += schedule->warmup;
	}
	if (at >= end) {
		place.phase = WIRE_PHASE_ACTIVE;
		end = length;
	}
	/* What follows has the same phase where this part is empty: one more look, no harm. */
	place.next = count - at + end;
	return place;
}

static inline struct wire_schedule_place wire_schedule_calls_at(
	const struct wire_schedule *schedule, __u64 count)
{
	struct wire_schedule_place place = {.next = WIRE_STEP_NEVER};

	for (__u32 i = 0; i < schedule->interval_count && i < WIRE_SCHEDULE_INTERVALS; i++) {
		const struct wire_calls *calls = &schedule->intervals[i];

		if (count > calls->last)
			continue;
		place.cycle = i;
		place.phase = count < calls->first ? WIRE_PHASE_CLOSED : WIRE_PHASE_ACTIVE;
		place.next = count < calls->first ? calls->first : calls->last + 1;
		break;
	}
	return place;
}

static inline struct wire_schedule_place wire_schedule_at(
	const struct wire_schedule *schedule, __u64 count)
{
	if (schedule->kind == WIRE_SCHEDULE_STEPS)
		return wire_schedule_steps_at(schedule, count);
	return wire_schedule_calls_at(schedule, count);
}

/* ---- the lock ---- */

static inline bool wire_gate_try_lock(struct wire_gate *gate, __u64 self)
{
	__u64 nobody = WIRE_GATE_NOBODY;

	return atomic_compare_exchange_strong(&gate->locked_by, &nobody, self);
}

static inline void wire_gate_unlock(struct wire_gate *gate)
{
	atomic_store(&gate->locked_by, WIRE_GATE_NOBODY);
}

/* ---- with the lock held ---- */

static inline enum wire_phase wire_gate_phase(const struct wire_gate *gate)
{
	if (atomic_load_explicit(&gate->state, memory_order_relaxed) != WIRE_GATE_OPEN)
		return WIRE_PHASE_CLOSED;
	return atomic_load_explicit(&gate->begin_ns, memory_order_relaxed) ? WIRE_PHASE_ACTIVE
									   : WIRE_PHASE_WARMUP;
}

/* Producers see the change from here on; what a window recorded is still sent. */
static inline void wire_gate_set_phase(struct wire_gate *gate, enum wire_phase phase, __u64 now_ns)
{
	enum wire_phase before = wire_gate_phase(gate);

	if (phase == WIRE_PHASE_ACTIVE)
		atomic_store_explicit(&gate->window,
			atomic_load_explicit(&gate->window, memory_order_relaxed) + 1,
			memory_order_relaxed);
	atomic_store_explicit(
		&gate->begin_ns, phase == WIRE_PHASE_ACTIVE ? now_ns : 0, memory_order_relaxed);
	if (phase != WIRE_PHASE_CLOSED && before == WIRE_PHASE_CLOSED)
		atomic_store_explicit(&gate->openings,
			atomic_load_explicit(&gate->openings, memory_order_relaxed) + 1,
			memory_order_relaxed);
	if (phase != WIRE_PHASE_CLOSED)
		atomic_store_explicit(&gate->state, WIRE_GATE_OPEN, memory_order_release);
	else if (before != WIRE_PHASE_CLOSED)
		atomic_store_explicit(&gate->state, WIRE_GATE_DRAINING, memory_order_release);
}

/* The leader's: with a line for the collector. */
static inline void wire_gate_make_edge(struct wire_gate *gate, enum wire_phase phase,
	enum wire_window_reason reason, __u64 step, __u64 now_ns)
{
	__u64 at = atomic_load_explicit(&gate->edges_written, memory_order_relaxed);
	struct wire_window_edge *edge = &gate->edges[at % WIRE_WINDOW_EDGES];

	wire_gate_set_phase(gate, phase, now_ns);
	edge->time_ns = now_ns;
	edge->step = step;
	edge->window = atomic_load_explicit(&gate->window, memory_order_relaxed);
	edge->window += phase == WIRE_PHASE_WARMUP;
	edge->phase = (__u16)phase;
	edge->reason = (__u16)reason;
	atomic_store_explicit(&gate->edges_written, at + 1, memory_order_release);
}

/* A cycle is begun only where all of its edges have room. */
static inline bool wire_gate_has_room(const struct wire_gate *gate)
{
	__u64 waiting = atomic_load_explicit(&gate->edges_written, memory_order_relaxed) -
			atomic_load_explicit(&gate->edges_read, memory_order_acquire);

	return waiting + 4 <= WIRE_WINDOW_EDGES;
}

/* Ends what is over after so many steps of the leader; true when that was something. */
static inline bool wire_gate_end_by_step(struct wire_gate *gate, __u64 count, __u64 now_ns)
{
	__u32 window = atomic_load_explicit(&gate->window, memory_order_relaxed);
	__u64 limit = gate->schedule.max_steps;

	if (!limit || wire_gate_phase(gate) != WIRE_PHASE_ACTIVE)
		return false;
	if (atomic_load_explicit(&gate->window_seen, memory_order_relaxed) != window) {
		atomic_store_explicit(&gate->window_seen, window, memory_order_relaxed);
		atomic_store_explicit(&gate->window_step, count - 1, memory_order_relaxed);
	}
	if (count - atomic_load_explicit(&gate->window_step, memory_order_relaxed) < limit)
		return false;
	wire_gate_make_edge(gate, WIRE_PHASE_CLOSED, WIRE_WINDOW_MAX_STEPS, count, now_ns);
	return true;
}

/*
 * What the schedule says after so many steps of the leader: makes the edges that lead there, and
 * says when to look again. Returns whether there were any.
 */
static inline bool wire_gate_follow_schedule(struct wire_gate *gate, __u64 count, __u64 now_ns)
{
	struct wire_schedule_place place = wire_schedule_at(&gate->schedule, count);
	__u64 cycle = atomic_load_explicit(&gate->cycle, memory_order_relaxed);
	enum wire_phase phase = wire_gate_phase(gate);
	bool is_new = place.phase != WIRE_PHASE_CLOSED && place.cycle + 1 != cycle;
	bool made = false;

	atomic_store_explicit(&gate->next_edge, place.next, memory_order_relaxed);
	if (phase != WIRE_PHASE_CLOSED && (is_new || place.phase == WIRE_PHASE_CLOSED)) {
		wire_gate_make_edge(gate, WIRE_PHASE_CLOSED, WIRE_WINDOW_SCHEDULE, count, now_ns);
		phase = WIRE_PHASE_CLOSED;
		made = true;
	}
	if (is_new && !wire_gate_has_room(gate)) {
		atomic_fetch_add_explicit(&gate->cycles_missed, 1, memory_order_relaxed);
		is_new = false;
		atomic_store_explicit(&gate->cycle, place.cycle + 1, memory_order_relaxed);
	}
	/* A cycle that was ended early, or missed, is not begun again. */
	if (is_new || (phase == WIRE_PHASE_WARMUP && place.phase == WIRE_PHASE_ACTIVE)) {
		atomic_store_explicit(&gate->cycle, place.cycle + 1, memory_order_relaxed);
		wire_gate_make_edge(gate, place.phase, WIRE_WINDOW_SCHEDULE, count, now_ns);
		atomic_store_explicit(&gate->window_seen,
			atomic_load_explicit(&gate->window, memory_order_relaxed),
			memory_order_relaxed);
		atomic_store_explicit(&gate->window_step, count, memory_order_relaxed);
		made = true;
	}
	return made;
}
