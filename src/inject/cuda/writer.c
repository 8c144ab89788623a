/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that calls CUPTI: it flushes ten times a second, notes pairs of clocks, switches
 * tracing with the gate, and sees when another tool took the device activity.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inject/cuda/cuda.h"

#define MS              WORKER_MS
#define SECOND          WORKER_SECOND
#define LOOK_NS         (20 * MS) /* at the gate */
#define CLOCK_TRIES     50
#define CLOCK_STEP_NS   50000
#define CLOCK_DRIFT_PPM 500 /* as fast as the kernel adjusts CLOCK_REALTIME */
/*
 * No activity, and no buffer asked for, for so long after the host waited for all work of the
 * device, or for so many launches, which fill a buffer many times over: it goes elsewhere.
 */
#define SILENT_AFTER_WAIT_NS (2 * SECOND)
#define SILENT_LAUNCHES      65536
/* When the gate drains or the process ends: work that runs is waited for so long, and looked for so
 * often. */
#define DRAIN_NS      (300 * MS)
#define DRAIN_LOOK_NS (5 * MS)

/* SONDE_CUDA_FLUSH_MS, SONDE_CUDA_RECLAIM_MS, SONDE_CUDA_END_MS. */
static uint64_t flush_ns = 100 * MS, reclaim_ns = 30 * SECOND, end_ns = INJECT_ROOM_END_NS;

static _Atomic bool profiler_runs;
static bool is_given_away; /* CUPTI, to the program's profiler */
static bool kinds_are_on;

/* ---- clocks ---- */

static uint64_t now_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* The narrowest of some pairs; false: CUPTI tells no time. */
static bool read_clocks(struct wire_device_clock *ret_clock)
{
	uint64_t device, before_ns, after_ns;

	ret_clock->width_ns = UINT32_MAX;
	for (unsigned i = 0; i < CLOCK_TRIES; i++) {
		before_ns = inject_now_ns();
		if (!cuda.cupti.call.get_timestamp ||
			cuda.cupti.call.get_timestamp(&device) != CUPTI_OK || !device)
			return false;
		after_ns = inject_now_ns();
		if (after_ns - before_ns >= ret_clock->width_ns)
			continue;
		ret_clock->width_ns = (uint32_t)(after_ns - before_ns);
		ret_clock->monotonic_ns = before_ns + (after_ns - before_ns) / 2;
		ret_clock->device = device;
	}
	return true;
}

static void tell_clocks(void)
{
	static uint64_t last_ns;
	static int64_t last_offset;
	struct wire_device_clock clock = {
		.record = {.type = WIRE_RECORD_DEVICE_CLOCK, .length_bytes = sizeof(clock)}};
	int64_t offset, moved;

	if (!read_clocks(&clock))
		return;
	clock.boottime_ns = now_of(CLOCK_BOOTTIME);
	offset = (int64_t)(clock.device - clock.monotonic_ns);
	moved = offset - last_offset;
	if (last_ns && (uint64_t)llabs(moved) >
			       CLOCK_STEP_NS + clock.width_ns +
				       (clock.monotonic_ns - last_ns) / 1000000 * CLOCK_DRIFT_PPM)
		inject_note(WIRE_NOTE_CLOCK_STEP,
			"The clock of the device's times jumped by %lld µs: kernels of the second "
			"before may be shown at a wrong time.",
			(long long)moved / 1000);
	last_ns = clock.monotonic_ns;
	last_offset = offset;
	cuda_write(&clock.record);
}

/* ---- tracing ---- */

static const int kinds[] = {CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_KIND_MEMCPY, CUPTI_KIND_MEMCPY2,
	CUPTI_KIND_MEMSET, CUPTI_KIND_MEMORY2, CUPTI_KIND_OVERHEAD, CUPTI_KIND_SYNCHRONIZATION,
	CUPTI_KIND_CUDA_EVENT};

/*
 * On from the start, whatever the gate is: nodes of graphs that were captured before have no
 * records else, and releases before 13.1 update 1 err in every session of tracing but the first.
 * Between windows the records are thrown away.
 */
static void enable_kinds(bool on)
{
	cupti_result result, first = CUPTI_OK;

	if (!inject_is_timed())
		return;
	kinds_are_on = on;
	/* Before kernels, whose nodes it takes the place of. */
	if (cuda.graph_level)
		cupti_enable(&cuda.cupti, CUPTI_KIND_GRAPH_TRACE, on);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		/* It can deadlock in this. */
		if (!on && cuda.cupti.version == CUPTI_VERSION_13_0 &&
			kinds[i] == CUPTI_KIND_CONCURRENT_KERNEL)
			continue;
		result = cupti_enable(&cuda.cupti, kinds[i], on);
		if (kinds[i] == CUPTI_KIND_CONCURRENT_KERNEL)
			first = result;
	}
	if (cuda.cupti.version >= CUPTI_VERSION_13_1) {
		cupti_enable(&cuda.cupti, CUPTI_KIND_HOST_LAUNCH, on);
		cupti_enable(&cuda.cupti, CUPTI_KIND_GRAPH_HOST_NODE, on);
	}
	cuda_unified_enable(on);
	if (on && first != CUPTI_OK)
		cuda_note_refusal(first, "");
}

/* ---- another tool ---- */

static struct {
	uint64_t activities; /* when last looked at, as the next */
	uint64_t requests;   /* of buffers */
	uint64_t launches;   /* when the last activity came */
	uint64_t since_ns;   /* the first launch that nothing followed; 0: none */
	uint64_t taken_ns;   /* a note reported that another tool has the activity; 0: not so */
} watch;

static void take_back(uint64_t now_ns, uint64_t launches)
{
	cupti_register(&cuda.cupti, &cuda_buffer_callbacks);
	enable_kinds(true);
	cuda_note_faults(CUPTI_AGAIN);
	inject_note(WIRE_NOTE_TAKEN_BACK,
		"sonde receives the device activity again; %llu launches of %llu s before have no "
		"device time.",
		(unsigned long long)(launches - watch.launches),
		(unsigned long long)((now_ns - watch.since_ns) / SECOND));
	watch.launches = launches;
	watch.since_ns = 0;
	watch.taken_ns = 0;
}

/*
 * Work has ended of which no record came to us. Silence alone shows nothing: one kernel may run for
 * minutes, and a wait for one stream says nothing of others.
 */
static bool is_elsewhere(uint64_t now_ns, uint64_t launches)
{
	uint64_t waited_ns = atomic_load_explicit(&cuda.last_wait_ns, memory_order_relaxed);
	uint64_t waited_for = atomic_load_explicit(&cuda.last_wait_launches, memory_order_relaxed);

	return launches - watch.launches > SILENT_LAUNCHES ||
	       (waited_for > watch.launches &&
		       now_ns - waited_ns >= SILENT_AFTER_WAIT_NS + 2 * flush_ns);
}

/* Launches are called back, but CUPTI asks us for no buffer: another tool's callbacks are used. */
static void watch_activity(uint64_t now_ns)
{
	uint64_t launches = atomic_load_explicit(&cuda.launches, memory_order_relaxed);

	uint64_t requests = atomic_load_explicit(&cuda.buffer_requests, memory_order_relaxed);

	if (cuda_activities() != watch.activities || requests != watch.requests) {
		watch.activities = cuda_activities();
		watch.requests = requests;
		watch.launches = launches;
		watch.since_ns = 0;
		watch.taken_ns = 0;
	}
	if (!cuda.is_tracing || launches == watch.launches)
		return;
	if (!watch.since_ns)
		watch.since_ns = now_ns;
	if (watch.taken_ns) {
		if (reclaim_ns && inject_tracer_mode() != WIRE_TRACER_YIELD &&
			now_ns - watch.taken_ns >= reclaim_ns)
			take_back(now_ns, launches);
	} else if (is_elsewhere(now_ns, launches)) {
		watch.taken_ns = now_ns;
		inject_note(WIRE_NOTE_TAKEN_OVER,
			"Another tool in the program (torch.profiler?) took over the device "
			"activity: kernels from now on have no device time. sonde takes it back "
			"when that lasts %llu s.",
			(unsigned long long)(reclaim_ns / SECOND));
	}
}

/* ---- flushing ---- */

/* Records end before the pair of clocks that follows them. */
static void drain(void)
{
	cuda_graph_drain();
	if (cuda_buffers_drain(cuda_take_records))
		tell_clocks();
}

static void flush(uint32_t flag)
{
	if (!cuda.subscribed)
		return;
	if (is_given_away) {
		inject_send_notes(&cuda.room);
		return;
	}
	tell_clocks();
	drain();
	if (cuda.cupti.call.flush_all)
		cuda.cupti.call.flush_all(flag);
	drain();
	cuda_graph_sweep();
	inject_send_notes(&cuda.room);
	cuda_send_counts(); /* which count the tries of those before */
}

static bool is_stopping(void)
{
	return inject_worker_is_stopping(&cuda.writer);
}

static bool is_all_served(void)
{
	return cuda_served_launches() + cuda_dropped() >=
	       atomic_load_explicit(&cuda.launches, memory_order_relaxed);
}

/* What was launched is sent, as far as it ends soon, and while `goes_on`. */
static void await_work(bool (*goes_on)(void))
{
	const struct timespec pause = {.tv_nsec = DRAIN_LOOK_NS};
	uint64_t until_ns = inject_now_ns() + DRAIN_NS, before;

	do {
		before = cuda_activities();
		flush(0);
		if (cuda_activities() == before && is_all_served())
			break;
		nanosleep(&pause, NULL);
	} while (goes_on() && inject_now_ns() < until_ns);
}

static bool drains(void)
{
	return inject_is_draining() && !is_stopping();
}

/*
 * The window has ended. Work that begins meanwhile is recorded, too, which the collector leaves
 * out.
 */
static void hand_over(void)
{
	await_work(drains);
	inject_send_notes(&cuda.room);
	inject_set_held(WIRE_HELD_SENT);
}

static uint32_t session_image; /* of the session that records are sent to; 0: none yet */

/* The process has moved to another session, which knows nothing of what the last one was sent. */
static bool is_other_session(void)
{
	return session_image && session_image != inject_image();
}

static void meet_session(void)
{
	if (is_other_session()) {
		inject_repeat_notes();
		cuda_reset_counts();
	}
	session_image = inject_image();
}

static void begin_window(void)
{
	meet_session();
	if (!kinds_are_on) { /* after the end of another session */
		enable_kinds(true);
		cuda_note_faults(CUPTI_AGAIN);
	}
	cuda_forget_launches();
	cuda_level_forget();
	cuda.is_tracing = true;
	cuda_enable_calls(true);
	cuda_enable_others(true);
	cuda_pc_begin();
	cuda_pm_begin();
	inject_set_held(WIRE_HELD_SOME);
	tell_clocks();
	cuda_send_gpus();
}

static void end_window(void)
{
	cuda_enable_calls(false);
	cuda_pc_end();
	cuda_pm_end();
	if (inject_is_draining())
		hand_over();
	else
		drain();
	cuda_enable_others(false); /* those that ended meanwhile are recorded */
	cuda_level_rest();
	cuda.is_tracing = false;
}

/* Nobody will open another window. */
static bool is_session_over(void)
{
	uint64_t heartbeat_ns =
		atomic_load_explicit(&inject_session_gate()->heartbeat_ns, memory_order_relaxed);
	uint64_t now_ns = inject_now_ns();

	return now_ns > heartbeat_ns && now_ns - heartbeat_ns > WIRE_HEARTBEAT_NS;
}

/* Closed, a launch has no callbacks, and after the session no records. */
static void follow_gate(void)
{
	bool open = inject_is_open();

	if (!cuda.subscribed || is_given_away)
		return;
	if (open && !cuda.is_tracing) {
		/* What ended before the window goes while it is not recorded. */
		flush(0);
		begin_window();
	} else if (open && is_other_session()) {
		begin_window();
	} else if (!open && cuda.is_tracing) {
		end_window();
	} else if (!open && kinds_are_on && is_session_over()) {
		enable_kinds(false);
	}
}

/* ---- a profiler of the program's ---- */

static uint64_t given_away_ns;

/* Kineto keeps the subscription that it gets: whoever has it when it starts has the launches. */
static void give_away(void)
{
	bool for_good = inject_tracer_mode() == WIRE_TRACER_YIELD;

	if (cuda.is_tracing)
		await_work(inject_is_writable);
	flush(0);
	if (cuda.is_tracing) {
		cuda_enable_calls(false);
		cuda_enable_others(false);
		cuda_level_rest();
		cuda_pc_end();
		cuda_pm_end();
	}
	enable_kinds(false);
	cupti_unsubscribe(&cuda.cupti);
	cuda.is_tracing = false;
	is_given_away = true;
	given_away_ns = inject_now_ns();
	inject_set_held(WIRE_HELD_SENT);
	if (for_good)
		inject_note(WIRE_NOTE_PROFILER,
			"torch.profiler started, and CUPTI is left to it (--cuda yield): device "
			"work from then on is in its trace, and not recorded here.");
}

static void take_again(void)
{
	static bool is_kept;
	double seconds = (double)(inject_now_ns() - given_away_ns) / SECOND;

	if (is_kept || cuda_subscribe() != CUPTI_OK) {
		if (!is_kept)
			inject_note(WIRE_NOTE_PROFILER,
				"torch.profiler has kept CUPTI after its end (--cuda share), as "
				"older releases do: device work from its start on is not recorded "
				"here.");
		is_kept = true;
		return;
	}
	is_given_away = false;
	enable_kinds(true);
	cuda_note_faults(CUPTI_AGAIN);
	inject_note(WIRE_NOTE_PROFILER,
		"torch.profiler had CUPTI for %.1f s (--cuda share): device work of that time is "
		"in its trace, and not recorded here.",
		seconds);
}

static void follow_profiler(void)
{
	static bool ran;
	bool runs = atomic_load_explicit(&profiler_runs, memory_order_relaxed);
	unsigned mode = inject_tracer_mode();

	if (mode == WIRE_TRACER_OWN && runs && !ran)
		inject_note(WIRE_NOTE_PROFILER,
			"torch.profiler runs in the program while sonde has CUPTI: its trace lacks "
			"the GPU's work, or this recording up to %llu s of it. Record with --cuda "
			"share to give CUPTI to it while it runs, with --cuda yield from then on.",
			(unsigned long long)(reclaim_ns / SECOND));
	ran = ran || runs;
	if (mode == WIRE_TRACER_OWN || !cuda.subscribed)
		return;
	if (runs && !is_given_away)
		give_away();
	else if (!runs && is_given_away && mode == WIRE_TRACER_SHARE)
		take_again();
}

/* ---- the thread ---- */

static void serve_requests(void)
{
	uint32_t asked;

	if (!inject_worker_is_asked(&cuda.writer, &asked))
		return;
	follow_profiler();
	follow_gate(); /* it has CUPTI again */
	if (cuda.is_tracing && !watch.taken_ns)
		await_work(inject_is_writable);
	inject_worker_answer(&cuda.writer, asked);
}

static void *run(void *context)
{
	uint64_t next_ns = inject_now_ns() + flush_ns, now_ns;

	if (cuda.subscribed)
		cuda_buffers_prepare();
	while (!is_stopping()) {
		bool are_sent = inject_send_notes(&cuda.room);

		if (!cuda.subscribed && are_sent)
			return NULL;
		follow_gate();
		drain();
		cuda_pm_follow();
		if (cuda.is_tracing)
			cuda_level_follow();
		serve_requests();
		now_ns = inject_now_ns();
		if (now_ns >= next_ns) {
			flush(0);
			cuda_pc_read(now_ns);
			cuda_pm_read();
			watch_activity(now_ns);
			next_ns = now_ns + flush_ns;
		}
		inject_worker_wait(
			&cuda.writer, now_ns + LOOK_NS < next_ns ? now_ns + LOOK_NS : next_ns);
	}
	if (cuda.subscribed && cuda.is_tracing && !watch.taken_ns)
		await_work(inject_is_writable);
	cuda_pc_end();
	cuda_pm_end();
	if (cuda.subscribed)
		cuda_unified_check();
	flush(CUPTI_FLUSH_FORCED);
	if (cuda.subscribed)
		cuda_latency_check();
	inject_send_notes(&cuda.room);
	if (cuda.subscribed && !is_given_away)
		cuda_send_last_counts();
	inject_set_held(WIRE_HELD_SENT);
	return NULL;
}

static uint64_t setting_ns(const char *name, uint64_t otherwise_ns)
{
	const char *text = secure_getenv(name);
	char *end;
	unsigned long milliseconds;

	if (!text)
		return otherwise_ns;
	milliseconds = strtoul(text, &end, 10);
	return *text && !*end && milliseconds < 86400000 ? milliseconds * MS : otherwise_ns;
}

bool cuda_writer_start(void)
{
	flush_ns = setting_ns("SONDE_CUDA_FLUSH_MS", flush_ns);
	if (flush_ns < MS)
		flush_ns = MS;
	reclaim_ns = setting_ns("SONDE_CUDA_RECLAIM_MS", reclaim_ns);
	end_ns = setting_ns("SONDE_CUDA_END_MS", end_ns);
	/* CUPTI says what the GPUs are once, when CUDA starts, whatever the gate is. */
	if (cuda.subscribed) {
		cupti_enable(&cuda.cupti, CUPTI_KIND_DEVICE, true);
		enable_kinds(true);
		cuda_unified_start();
	}
	/* From the first launch on. */
	if (cuda.subscribed && inject_is_open())
		begin_window();
	return inject_worker_start(&cuda.writer, "sonde-cuda", run);
}

void cuda_writer_stop(void)
{
	inject_room_end(&cuda.room, end_ns);
	inject_worker_stop(&cuda.writer);
}

void cuda_writer_flush(void)
{
	if (cuda.subscribed && !is_stopping())
		inject_worker_ask(&cuda.writer);
}

void cuda_writer_meet_profiler(bool runs)
{
	atomic_store_explicit(&profiler_runs, runs, memory_order_relaxed);
	cuda_writer_flush();
}
