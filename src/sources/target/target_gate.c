/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/target/target_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

/* A leader holds the lock for less than a microsecond, if it is on a CPU. */
#define LOCK_TRIES    40
#define LOCK_PAUSE_NS 50000

/* ---- the file ---- */

static void fill(struct wire_gate *memory, const struct target_gate_options *options)
{
	const struct wire_schedule *schedule = &options->schedule;

	memory->version = WIRE_RING_VERSION;
	memory->collector_pid = (uint32_t)getpid();
	memory->graph_mode = options->graph_mode;
	memory->tracer_mode = options->tracer_mode;
	memory->call_mode = options->call_mode;
	memory->also_recorded = (options->samples_pcs ? WIRE_ALSO_PCS : 0) |
				(options->unified_memory ? WIRE_ALSO_UNIFIED : 0) |
				(options->launch_times ? WIRE_ALSO_LATENCY : 0) |
				(options->device_graphs ? WIRE_ALSO_DEVICE_GRAPHS : 0) |
				(options->pm_interval_us ? WIRE_ALSO_PMS : 0);
	memory->pm_interval_us = options->pm_interval_us;
	memory->schedule = *schedule;
	snprintf(memory->step_pattern, sizeof(memory->step_pattern), "%s",
		options->step_pattern ? options->step_pattern : "");
	atomic_store(&memory->heartbeat_ns, monotonic_now_ns());
	/* The first step of all elects the leader, where there is something to lead. */
	atomic_store(
		&memory->next_edge, schedule->kind == WIRE_SCHEDULE_NONE ? WIRE_STEP_NEVER : 0);
	memory->magic = WIRE_GATE_MAGIC;
	if (!options->is_closed) {
		atomic_store(&memory->begin_ns, monotonic_now_ns());
		atomic_store(&memory->state, WIRE_GATE_OPEN);
	}
}

/* It has its name only when it is locked, since others remove what is left of a dead session. */
int target_gate_make(
	struct target_gate *ret_gate, int folder_fd, const struct target_gate_options *options)
{
	static const char unfinished[] = WIRE_GATE_NAME ".new";
	int fd = openat(folder_fd, unfinished, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	void *memory;

	ret_gate->fd = fd;
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ||
		ftruncate(fd, sizeof(struct wire_gate)) < 0)
		return -errno;
	memory = mmap(NULL, sizeof(struct wire_gate), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	ret_gate->memory = memory;
	ret_gate->guard = (struct map_guard){.memory = memory, .bytes = sizeof(struct wire_gate)};
	atomic_store(&ret_gate->wants_open, !options->is_closed);
	fill(memory, options);
	return renameat(folder_fd, unfinished, folder_fd, WIRE_GATE_NAME) < 0 ? -errno : 0;
}

void target_gate_done(struct target_gate *gate)
{
	closep(&gate->fd);
	if (gate->memory)
		munmap(TAKE_PTR(gate->memory), sizeof(*gate->memory));
}

/* ---- what all processes read ---- */

void target_gate_set_stacks(struct target_gate *gate, uint32_t how, bool memo)
{
	gate->stacks = how;
	map_guard_enter(&gate->guard);
	atomic_store_explicit(&gate->memory->memo_is_off, !memo, memory_order_relaxed);
	atomic_store_explicit(&gate->memory->stacks, how, memory_order_relaxed);
	map_guard_leave();
}

void target_gate_set_untimed(struct target_gate *gate)
{
	map_guard_enter(&gate->guard);
	atomic_store_explicit(&gate->memory->is_untimed, 1, memory_order_relaxed);
	map_guard_leave();
}

void target_gate_set_launch_probe(struct target_gate *gate, enum wire_launch_probe probe)
{
	map_guard_enter(&gate->guard);
	atomic_store_explicit(&gate->memory->launch_probe, (uint8_t)probe, memory_order_relaxed);
	map_guard_leave();
}

void target_gate_set_ready(struct target_gate *gate)
{
	map_guard_enter(&gate->guard);
	atomic_store_explicit(&gate->memory->is_ready, 1, memory_order_release);
	map_guard_leave();
}

bool target_gate_is_launching(struct target_gate *gate)
{
	bool is_launching;

	map_guard_enter(&gate->guard);
	is_launching = atomic_load_explicit(&gate->memory->is_launching, memory_order_relaxed);
	map_guard_leave();
	return is_launching;
}

bool target_gate_went_unprobed(struct target_gate *gate)
{
	bool went_unprobed;

	map_guard_enter(&gate->guard);
	went_unprobed = atomic_load_explicit(&gate->memory->went_unprobed, memory_order_relaxed);
	map_guard_leave();
	return went_unprobed;
}

/* A process with a full ring may have taken a slow flush for our death. */
void target_gate_beat(struct target_gate *gate)
{
	uint32_t closed = WIRE_GATE_CLOSED;

	map_guard_enter(&gate->guard);
	if (atomic_load(&gate->wants_open))
		atomic_compare_exchange_strong(&gate->memory->state, &closed, WIRE_GATE_OPEN);
	atomic_store_explicit(
		&gate->memory->heartbeat_ns, monotonic_now_ns(), memory_order_relaxed);
	map_guard_leave();
}

/* ---- windows ---- */

uint64_t target_gate_set_phase(struct target_gate *gate, enum wire_phase phase)
{
	uint64_t now_ns = 0;

	map_guard_enter(&gate->guard);
	if (wire_gate_try_lock(gate->memory, WIRE_GATE_COLLECTOR)) {
		now_ns = monotonic_now_ns();
		wire_gate_set_phase(gate->memory, phase, now_ns);
		wire_gate_unlock(gate->memory);
		atomic_store(&gate->wants_open, phase != WIRE_PHASE_CLOSED);
	}
	map_guard_leave();
	return now_ns;
}

bool target_gate_is_open(struct target_gate *gate)
{
	bool is_open;

	map_guard_enter(&gate->guard);
	is_open = atomic_load(&gate->memory->state) == WIRE_GATE_OPEN;
	map_guard_leave();
	return is_open;
}

enum wire_phase target_gate_start_schedule(struct target_gate *gate, uint64_t now_ns)
{
	struct wire_gate *memory = gate->memory;
	struct wire_schedule_place place;

	map_guard_enter(&gate->guard);
	place = wire_schedule_at(&memory->schedule, 0);
	if (place.phase != WIRE_PHASE_CLOSED) {
		atomic_store(&memory->cycle, place.cycle + 1);
		wire_gate_set_phase(memory, place.phase, now_ns);
		atomic_store(&memory->window_seen, atomic_load(&memory->window));
		atomic_store(&gate->wants_open, true);
	}
	map_guard_leave();
	return place.phase;
}

/* A leader that was taken off its CPU with the lock comes back soon, or never. */
static void wait_for_leader(const struct wire_gate *memory)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

	for (int tries = 0; atomic_load(&memory->locked_by) && tries < LOCK_TRIES; tries++)
		nanosleep(&pause, NULL);
}

/* No leader of ours writes of what is to come, or of a phase that there is not. */
static size_t keep_sound(struct wire_window_edge *edges, size_t count)
{
	uint64_t now_ns = monotonic_now_ns();
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (edges[i].phase > WIRE_PHASE_ACTIVE)
			continue;
		edges[kept] = edges[i];
		edges[kept].time_ns = MIN(edges[kept].time_ns, now_ns);
		kept++;
	}
	return kept;
}

/*
 * The clock before the lock, and the lock before the count: who takes the lock later also takes its
 * time later, and what was made before stands in the log.
 */
size_t target_gate_read_edges(struct target_gate *gate,
	struct wire_window_edge ret_edges[WIRE_WINDOW_EDGES], uint64_t *ret_known_ns)
{
	struct wire_gate *memory = gate->memory;
	uint64_t written, read;
	size_t count = 0;

	map_guard_enter(&gate->guard);
	*ret_known_ns = monotonic_now_ns();
	wait_for_leader(memory);
	written = atomic_load(&memory->edges_written);
	read = atomic_load(&memory->edges_read);
	if (written - read > WIRE_WINDOW_EDGES) /* no leader of ours wrote that */
		read = written;
	for (; read != written; read++)
		ret_edges[count++] = memory->edges[read % WIRE_WINDOW_EDGES];
	atomic_store_explicit(&memory->edges_read, read, memory_order_release);
	count = keep_sound(ret_edges, count);
	if (count)
		atomic_store(&gate->wants_open, ret_edges[count - 1].phase != WIRE_PHASE_CLOSED);
	map_guard_leave();
	return count;
}

void target_gate_end_draining(struct target_gate *gate)
{
	uint32_t draining = WIRE_GATE_DRAINING;

	map_guard_enter(&gate->guard);
	atomic_compare_exchange_strong(&gate->memory->state, &draining, WIRE_GATE_CLOSED);
	map_guard_leave();
}

void target_gate_stop_schedule(struct target_gate *gate)
{
	map_guard_enter(&gate->guard);
	gate->memory->schedule.kind = WIRE_SCHEDULE_NONE;
	atomic_store(&gate->memory->next_edge, WIRE_STEP_NEVER);
	map_guard_leave();
}

static void set_state(struct target_gate *gate, uint32_t state)
{
	atomic_store(&gate->wants_open, false);
	target_gate_stop_schedule(gate);
	map_guard_enter(&gate->guard);
	atomic_store(&gate->memory->state, state);
	map_guard_leave();
}

void target_gate_close(struct target_gate *gate)
{
	if (gate->memory)
		set_state(gate, WIRE_GATE_CLOSED);
}

void target_gate_drain(struct target_gate *gate)
{
	set_state(gate, WIRE_GATE_DRAINING);
}

uint64_t target_gate_leader(struct target_gate *gate)
{
	uint64_t leader;

	map_guard_enter(&gate->guard);
	leader = atomic_load(&gate->memory->leader);
	map_guard_leave();
	return leader;
}

void target_gate_free_leader(struct target_gate *gate)
{
	struct wire_gate *memory = gate->memory;
	uint64_t leader;

	map_guard_enter(&gate->guard);
	leader = atomic_load(&memory->leader);
	atomic_compare_exchange_strong(&memory->locked_by, &leader, WIRE_GATE_NOBODY);
	atomic_store(&memory->cycle, 0);
	atomic_store(&memory->window_seen, 0);
	if (memory->schedule.kind != WIRE_SCHEDULE_NONE)
		atomic_store(&memory->next_edge, 0);
	atomic_store(&memory->leader, WIRE_GATE_NOBODY);
	map_guard_leave();
}

uint32_t target_gate_cycles_missed(struct target_gate *gate)
{
	uint32_t missed;

	map_guard_enter(&gate->guard);
	missed = atomic_load(&gate->memory->cycles_missed);
	map_guard_leave();
	return missed;
}

int target_gate_step(struct target_gate *gate, uint64_t count)
{
	struct wire_gate *memory = gate->memory;
	uint64_t leader = WIRE_GATE_NOBODY;
	int result = 0;

	map_guard_enter(&gate->guard);
	if (!atomic_compare_exchange_strong(&memory->leader, &leader, WIRE_GATE_COLLECTOR) &&
		leader != WIRE_GATE_COLLECTOR) {
		result = -EBUSY;
	} else if (wire_gate_try_lock(memory, WIRE_GATE_COLLECTOR)) {
		uint64_t now_ns = monotonic_now_ns();

		wire_gate_end_by_step(memory, count, now_ns);
		if (memory->schedule.kind != WIRE_SCHEDULE_NONE)
			wire_gate_follow_schedule(memory, count, now_ns);
		wire_gate_unlock(memory);
	}
	map_guard_leave();
	return result;
}
