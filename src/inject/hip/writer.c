/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that flushes rocprofiler-sdk's buffer ten times a second, notes pairs of clocks and
 * has tracing follow the gate.
 */
#include <time.h>

#include "inject/hip/hip.h"

#define LOOK_NS  (20 * WORKER_MS) /* at the gate */
#define FLUSH_NS (100 * WORKER_MS)
/* When the gate drains or the process ends: work that runs is waited for so long, and looked for so
 * often. */
#define DRAIN_NS      (300 * WORKER_MS)
#define DRAIN_LOOK_NS (5 * WORKER_MS)

static bool is_tracing;
static uint32_t session_image;           /* of the session that records are sent to; 0: none yet */
static struct wire_device_counts before; /* of the sessions before this one */

static uint64_t load(const _Atomic uint64_t *count)
{
	return atomic_load_explicit(count, memory_order_relaxed);
}

static uint64_t boottime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * WORKER_SECOND + (uint64_t)now.tv_nsec;
}

/* The times of work are CLOCK_BOOTTIME, which goes on while the machine sleeps. */
static void send_clocks(void)
{
	struct wire_device_clock clock = {
		.record = {.type = WIRE_RECORD_DEVICE_CLOCK, .length_bytes = sizeof(clock)},
		.monotonic_ns = inject_now_ns(),
	};
	uint64_t width_ns;

	clock.device = clock.boottime_ns = boottime_ns();
	width_ns = inject_now_ns() - clock.monotonic_ns;
	clock.monotonic_ns += width_ns / 2;
	clock.width_ns = width_ns < UINT32_MAX ? (uint32_t)width_ns : UINT32_MAX;
	inject_room_write(&hip.room, &clock.record);
}

static struct wire_device_counts count(void)
{
	return (struct wire_device_counts){
		.record = {.type = WIRE_RECORD_DEVICE_COUNTS, .length_bytes = sizeof(before)},
		.time_ns = inject_now_ns(),
		.launches = load(&hip.launches) - before.launches,
		.captured = load(&hip.captured) - before.captured,
		.activities = load(&hip.arrived) - before.activities,
		.untimed = load(&hip.untimed) - before.untimed,
		.dropped = load(&hip.dropped) - before.dropped,
	};
}

/* A pair of clocks on either side of the records that are flushed. */
static void flush(void)
{
	struct wire_device_counts counts;

	if (!is_tracing)
		return;
	if (inject_is_timed()) {
		pthread_mutex_lock(&hip.sending);
		send_clocks();
		pthread_mutex_unlock(&hip.sending);
		hip.call.flush_buffer(hip.buffer);
	}
	pthread_mutex_lock(&hip.sending);
	send_clocks();
	counts = count();
	inject_room_write_counts(&hip.room, &counts);
	pthread_mutex_unlock(&hip.sending);
}

static bool send_notes(void)
{
	bool are_sent;

	pthread_mutex_lock(&hip.sending);
	are_sent = inject_send_notes(&hip.room);
	pthread_mutex_unlock(&hip.sending);
	return are_sent;
}

static void send_last_counts(void)
{
	struct wire_device_counts counts = count();

	pthread_mutex_lock(&hip.sending);
	inject_room_write_last_counts(&hip.room, &counts);
	pthread_mutex_unlock(&hip.sending);
}

/* Work of which the calls were seen is sent, as far as it ends soon, and while `goes_on`. */
static void await_work(bool (*goes_on)(void))
{
	const struct timespec pause = {.tv_nsec = DRAIN_LOOK_NS};
	uint64_t until_ns = inject_now_ns() + DRAIN_NS;

	for (;;) {
		flush();
		if (load(&hip.arrived) + load(&hip.dropped) >= load(&hip.expected) || !goes_on() ||
			inject_now_ns() >= until_ns)
			return;
		nanosleep(&pause, NULL);
	}
}

static bool drains(void)
{
	return inject_is_draining() && !inject_worker_is_stopping(&hip.writer);
}

/* ---- the gate ---- */

static void meet_session(void)
{
	if (session_image && session_image != inject_image()) {
		inject_repeat_notes();
		before = (struct wire_device_counts){0};
		before = count();
		hip.room.repeated = hip.room.waited_out = 0;
	}
	session_image = inject_image();
}

static void begin_window(void)
{
	meet_session();
	if (!is_tracing) {
		/* What was never reported, of windows before, is not waited for. */
		atomic_store_explicit(&hip.expected, load(&hip.arrived) + load(&hip.dropped),
			memory_order_relaxed);
		atomic_store_explicit(&hip.captures, 0, memory_order_relaxed);
		is_tracing = hip.call.start_context(hip.work) == ROCPROFILER_OK;
	}
	inject_set_held(WIRE_HELD_SOME);
	pthread_mutex_lock(&hip.sending);
	send_clocks();
	hip_send_gpus();
	pthread_mutex_unlock(&hip.sending);
}

static void end_window(void)
{
	if (inject_is_draining())
		await_work(drains);
	hip.call.stop_context(hip.work);
	is_tracing = false;
	inject_set_held(WIRE_HELD_SENT);
}

static bool is_callable(void)
{
	return hip.is_traced && !atomic_load_explicit(&hip.is_over, memory_order_relaxed);
}

static void follow_gate(void)
{
	bool is_open = inject_is_open();

	if (!is_callable())
		return;
	if (is_open && (!is_tracing || session_image != inject_image()))
		begin_window();
	else if (!is_open && is_tracing)
		end_window();
}

/* ---- the thread ---- */

static void answer(void)
{
	uint32_t asked;

	if (!inject_worker_is_asked(&hip.writer, &asked))
		return;
	follow_gate();
	if (is_tracing)
		await_work(inject_is_writable);
	inject_worker_answer(&hip.writer, asked);
}

static void *run(void *context)
{
	uint64_t next_ns = inject_now_ns() + FLUSH_NS, now_ns;

	while (!inject_worker_is_stopping(&hip.writer)) {
		if (send_notes() && !hip.is_traced)
			return NULL;
		follow_gate();
		answer();
		now_ns = inject_now_ns();
		if (now_ns >= next_ns) {
			flush();
			next_ns = now_ns + FLUSH_NS;
		}
		inject_worker_wait(
			&hip.writer, now_ns + LOOK_NS < next_ns ? now_ns + LOOK_NS : next_ns);
	}
	if (is_callable() && is_tracing) {
		await_work(inject_is_writable);
		send_last_counts();
	}
	send_notes();
	inject_set_held(WIRE_HELD_SENT);
	return NULL;
}

bool hip_writer_start(void)
{
	if (inject_is_open())
		follow_gate();
	hip.has_writer = inject_worker_start(&hip.writer, "sonde-hip", run);
	return hip.has_writer;
}

void hip_writer_flush(void)
{
	if (hip.has_writer && !inject_worker_is_stopping(&hip.writer))
		inject_worker_ask(&hip.writer);
}

void hip_writer_stop(void)
{
	if (!hip.has_writer || inject_worker_is_stopping(&hip.writer))
		return;
	inject_room_end(&hip.room, INJECT_ROOM_END_NS);
	inject_worker_stop(&hip.writer);
}
