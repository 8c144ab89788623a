/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One look at all threads of a process, for those who may not load BPF programs: ptrace stops them
 * for a moment. Registers and stacks are copied and unwound by the collector, like those of the
 * perf sampler; Python frames are read while the threads stand still.
 *
 * A thread of ours does the stopping. When it ends the kernel lets go of whatever it still traces,
 * and so it does when sonde is killed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/file.h"
#include "sources/process/proc_info.h"
#include "sources/source.h"
#include "sources/stopped/python_frames.h"
#include "sources/stopped/refusal.h"
#include "sources/stopped/tracees.h"

/* A thread that does not stop is in an uninterruptible call: it is not waited for. */
#define STOP_FOR_NS (300 * NS_PER_MS)
/* After that the threads go on, with whatever was read. */
#define LOOK_FOR_NS (NS_PER_S)
/* The session has looked at the process, and at its Python, in the drain before. */
#define FIRST_DRAINS   1
#define PAGE_BYTES     4096
#define MAX_COPY_PAGES 128
#define MAX_COPY_BYTES ((size_t)MAX_COPY_PAGES * PAGE_BYTES)
#define MAX_SAMPLE_BYTES                                                                           \
	(sizeof(struct wire_sample) + PYTHON_FRAMES_MAX_BYTES + sizeof(struct wire_stack_copy) +   \
		MAX_COPY_BYTES)
/* A thread that is not stopped may go on between two reads. */
#define MAX_TRIES 8

struct stopped_state {
	uint32_t pid;
	struct python_image_facts python;
	bool has_python, is_started, is_over, is_taken;
	bool same_namespace; /* the process numbers its threads like sonde */
	uint32_t drains;
	char process_name[16];
	struct wire_sample *sample; /* MAX_SAMPLE_BYTES, reused */
	ARRAY_OF(struct wire_sample *) samples;
	uint64_t stopped_ns;
	size_t not_stopped;
	int error;
};

/* ---- one thread ---- */

/* From sp to the first page that cannot be read: how much of the stack there is. */
static size_t copy_stack(uint32_t pid, uint64_t sp, unsigned char *ret_bytes)
{
	struct iovec local = {.iov_base = ret_bytes, .iov_len = MAX_COPY_BYTES};
	struct iovec pages[MAX_COPY_PAGES];
	uint64_t at = sp;
	ssize_t got;

	for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
		pages[i].iov_base = (void *)(uintptr_t)at;
		pages[i].iov_len = PAGE_BYTES - (at & (PAGE_BYTES - 1));
		at += pages[i].iov_len;
	}
	got = process_vm_readv((pid_t)pid, &local, 1, pages, ARRAY_SIZE(pages), 0);
	return got < 0 ? 0 : (size_t)got & ~(size_t)7;
}

static int add_python(struct stopped_state *state, const struct waiting *waiting,
	uint64_t thread_pointer, struct wire_sample *sample)
{
	const struct python_thread thread = {
		.pid = state->pid,
		.thread_pointer = thread_pointer,
		.system_call = sample->wait ? waiting->system_call : UINT64_MAX,
		.first_argument = waiting->first_argument,
	};
	int r;

	if (!state->has_python)
		return 0;
	sample->python = WIRE_PYTHON_NO_STATE;
	if (!thread_pointer)
		return 0;
	r = python_frames_take(&state->python, &thread, sample);
	if (sample->gil == WIRE_GIL_WAITING && sample->wait)
		sample->wait = WIRE_WAIT_GIL;
	return r;
}

/* Behind the Python frames. */
static void add_stack(const struct stopped_state *state, const struct wire_stack_copy *registers,
	struct wire_sample *sample)
{
	size_t length =
		sizeof(*sample) + sample->python_frame_count * sizeof(struct wire_python_frame);
	struct wire_stack_copy *copy = (void *)((char *)sample + length);

	*copy = *registers;
	copy->stack_bytes = copy_stack(state->pid, copy->sp, (unsigned char *)(copy + 1));
	sample->flags |= WIRE_SAMPLE_STACK_COPY;
	sample->stop = WIRE_STOP_NO_TABLE; /* until the collector has unwound the copy */
	sample->record.length_bytes = (uint32_t)(length + sizeof(*copy) + copy->stack_bytes);
}

static void begin_sample(const struct stopped_state *state, const struct tracee *tracee)
{
	struct wire_sample *sample = state->sample;

	*sample = (struct wire_sample){
		.record = {.type = WIRE_RECORD_SAMPLE, .length_bytes = sizeof(*sample)},
		.time_ns = monotonic_now_ns(),
		.pid = state->pid,
		.tid = tracee->tid,
		.stop = WIRE_STOP_NO_USER_STACK,
	};
	memcpy(sample->process_name, state->process_name, sizeof(sample->process_name));
	proc_read_thread_name(state->pid, tracee->tid, sample->thread_name);
}

/* A wait has a time, which nobody measured. */
static void set_wait(struct wire_sample *sample, enum wire_wait wait)
{
	sample->wait = (uint8_t)wait;
	sample->waited_ns = wait ? 1 : 0;
}

static bool is_same_place(const struct waiting *waiting, const struct waiting *later)
{
	return later->is_known && later->sp == waiting->sp && later->pc == waiting->pc &&
	       later->system_call == waiting->system_call;
}

/* One that stands still. */
static int take_stopped(struct stopped_state *state, const struct tracee *tracee)
{
	struct wire_stack_copy registers = {0};
	struct wire_sample *sample = state->sample;
	uint64_t thread_pointer = 0;
	bool waits;
	int r;

	begin_sample(state, tracee);
	sample->stop = (uint8_t)tracee_registers(tracee, &registers, &thread_pointer);
	if (sample->stop != WIRE_STOP_COMPLETE)
		return 0;
	/* Has it gone on since it was looked at? */
	waits = tracee->waiting.state == 'T' ||
		(tracee->waiting.is_known && registers.sp == tracee->waiting.sp &&
			registers.pc == tracee->waiting.pc);
	set_wait(sample, waits ? waiting_reason(&tracee->waiting, state->pid) : WIRE_WAIT_NONE);
	r = add_python(state, &tracee->waiting, thread_pointer, sample);
	add_stack(state, &registers, sample);
	return r;
}

/* One that waits and was not stopped: the other registers are not known. */
static int take_waiting(struct stopped_state *state, const struct tracee *tracee)
{
	struct wire_sample *sample = state->sample;

	for (int try = 0; try < MAX_TRIES; try++) {
		const struct waiting before = waiting_read(state->pid, tracee->tid);
		const struct wire_stack_copy registers = {.pc = before.pc, .sp = before.sp};
		struct waiting after;
		int r;

		begin_sample(state, tracee);
		if (!before.is_known)
			continue;
		set_wait(sample, waiting_reason(&before, state->pid));
		r = add_python(state, &before,
			python_frames_thread_pointer(&state->python, state->pid, tracee->tid),
			sample);
		if (r < 0)
			return r;
		add_stack(state, &registers, sample);
		after = waiting_read(state->pid, tracee->tid);
		if (is_same_place(&before, &after))
			return 0;
	}
	begin_sample(state, tracee);
	return 0;
}

static int take(struct stopped_state *state, const struct tracee *tracee)
{
	struct wire_sample *kept;
	int r;

	if (tracee->is_stopped)
		r = take_stopped(state, tracee);
	else if (tracee->is_left_alone || tracee->is_traced)
		r = take_waiting(state, tracee);
	else
		return 0;
	if (r < 0)
		return r;
	state->not_stopped += !tracee->is_stopped && !tracee->is_left_alone;
	kept = malloc(state->sample->record.length_bytes);
	if (!kept)
		return -ENOMEM;
	memcpy(kept, state->sample, state->sample->record.length_bytes);
	r = array_append(&state->samples, kept);
	if (r < 0)
		free(kept);
	return r;
}

/* ---- the look ---- */

/* Some calls would fail if they were interrupted: their threads sleep on. */
static bool leave_alone(void *context, const struct tracee *tracee)
{
	const struct stopped_state *state = context;

	if (!waiting_is_not_restarted(&tracee->waiting, state->pid))
		return false;
	return !state->has_python ||
	       (state->same_namespace && python_frames_has_ids(&state->python));
}

static void *look(void *context)
{
	struct stopped_state *state = context;
	struct tracees tracees = {.pid = state->pid, .leave_alone = leave_alone, .context = state};
	uint64_t start_ns = monotonic_now_ns();

	state->error = tracees_stop(&tracees, start_ns + STOP_FOR_NS);
	for (size_t i = 0; i < tracees.threads.count && state->error == 0 &&
			   monotonic_now_ns() < start_ns + LOOK_FOR_NS;
		i++)
		state->error = take(state, &tracees.threads.items[i]);
	tracees_release(&tracees);
	state->stopped_ns = monotonic_now_ns() - start_ns;
	tracees_done(&tracees);
	return NULL;
}

static int run_thread(void *(*function)(void *), struct stopped_state *state)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, function, state);

	if (r == 0)
		pthread_join(thread, NULL);
	return -r;
}

static void *probe_thread(void *context)
{
	struct stopped_state *state = context;

	state->error = tracees_probe(state->pid);
	return NULL;
}

/* ---- the source ---- */

/* May it be stopped? */
static int probe(struct stopped_state *state, struct errmsg *err)
{
	struct refusal refusal;
	int r = run_thread(probe_thread, state);

	if (r == 0)
		r = state->error;
	if (r == 0)
		return 0;
	refusal = refusal_read(state->pid);
	return refusal_explain(&refusal, r, err);
}

static void free_state(struct stopped_state *state)
{
	array_foreach (&state->samples, sample)
		free(*sample);
	array_done(&state->samples);
	free(state->sample);
	free(state);
}

static int stopped_open(void **ret_state, const struct source_settings *settings,
	const struct source_capabilities *offered, struct errmsg *err)
{
	struct stopped_state *state = calloc(1, sizeof(*state));
	int r;

	(void)offered;
	if (!state)
		return -ENOMEM;
	state->pid = settings->pid;
	state->sample = malloc(MAX_SAMPLE_BYTES);
	r = state->sample ? probe(state, err) : -ENOMEM;
	if (r < 0) {
		free_state(state);
		return r;
	}
	*ret_state = state;
	return 0;
}

/* Another program has another interpreter; of children nothing is asked. */
static int stopped_set_python(void *pointer, uint32_t pid, const struct python_image_facts *facts)
{
	struct stopped_state *state = pointer;

	if (pid != state->pid)
		return 0;
	state->has_python = facts;
	if (facts)
		state->python = *facts;
	return 0;
}

static void stopped_capabilities(void *pointer, struct source_capabilities *offered)
{
	offered->unwind_mode = "ptrace";
	offered->unwind_mode_reason = "asked for";
	offered->unwinder.state = pointer;
	offered->unwinder.set_python = stopped_set_python;
}

static bool shares_pid_namespace(uint32_t pid)
{
	struct stat own, other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
	return stat("/proc/self/ns/pid", &own) == 0 && stat(path, &other) == 0 &&
	       own.st_ino == other.st_ino;
}

static int stopped_follow(void *pointer, uint32_t pid, struct errmsg *err)
{
	struct stopped_state *state = pointer;

	(void)err;
	if (pid != state->pid)
		return 0;
	state->same_namespace = shares_pid_namespace(pid);
	proc_read_thread_name(pid, pid, state->process_name);
	return 0;
}

static int stopped_start(void *pointer, struct errmsg *err)
{
	struct stopped_state *state = pointer;

	(void)err;
	state->is_started = true;
	return 0;
}

static int stopped_timeout_ms(void *pointer)
{
	const struct stopped_state *state = pointer;

	return state->is_taken ? -1 : 0;
}

static int stopped_drain(void *pointer, const struct source_sink *sink)
{
	struct stopped_state *state = pointer;
	int r;

	if (!state->is_started || state->is_taken)
		return 0;
	if (!state->is_over && state->drains++ < FIRST_DRAINS)
		return 0;
	state->is_taken = true;
	r = run_thread(look, state);
	array_foreach (&state->samples, sample) {
		sink->record(sink->context, &(*sample)->record);
		free(*sample);
	}
	array_clear(&state->samples);
	return r < 0 ? r : state->error;
}

static void stopped_stop(void *pointer)
{
	struct stopped_state *state = pointer;

	state->is_over = true;
}

static void stopped_notes(void *pointer, source_note_function *add, void *context)
{
	const struct stopped_state *state = pointer;
	double stopped_ms = (double)state->stopped_ns / NS_PER_MS;
	struct errmsg note;

	if (state->not_stopped)
		errmsg_set(&note, 0,
			STOPPED_NOTE " for %.1f ms, to read its stacks by ptrace; %zu threads did "
				     "not stop, because they wait in the kernel for a device or a "
				     "file: their stacks may end early",
			stopped_ms, state->not_stopped);
	else
		errmsg_set(&note, 0, STOPPED_NOTE " for %.1f ms, to read its stacks by ptrace",
			stopped_ms);
	add(context, note.text);
}

static void stopped_close(void *pointer)
{
	free_state(pointer);
}

const struct source stopped_source = {
	.name = "stopped",
	.moment = SOURCE_WITH_COMMAND,
	.open = stopped_open,
	.capabilities = stopped_capabilities,
	.follow = stopped_follow,
	.start = stopped_start,
	.timeout_ms = stopped_timeout_ms,
	.drain = stopped_drain,
	.stop = stopped_stop,
	.notes = stopped_notes,
	.close = stopped_close,
};
