/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/stopped/python_frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "arch/arch.h"
#include "base/macros.h"
#include "unwind/frame_place.h"

#include ARCH_HEADER(calls)

/* ---- what the walk needs of its includer ---- */

#define PYTHON_WINDOW_BYTES 128
#define PYTHON_FRAME_WORDS  (sizeof(struct wire_python_frame) / 8)
/* A power of two above the words of all frames. */
#define MAX_FRAME_WORDS 4096
_Static_assert(MAX_FRAME_WORDS > WIRE_MAX_PYTHON_FRAMES * PYTHON_FRAME_WORDS, "frames fit");

struct task_struct {
	pid_t pid;
	uint64_t thread_pointer;
};

/* As in bpf/unwinder.bpf.h, but for the code objects that it sends. */
struct python_scratch {
	__u64 at, thread, interpreter, thread_pointer, gil_holder;
	__u32 reason, gil, holder_is_pointer, last_at;
	__u64 checked_code;
	__u32 check;
	__u8 frame[PYTHON_WINDOW_BYTES + 8] __attribute__((aligned(8)));
	__u8 code[PYTHON_CODE_BYTES + 8] __attribute__((aligned(8)));
};

struct scratch {
	__u32 kernel_frames, python_frames, entries_left_out;
	struct wire_stack_copy registers;
	__u64 system_call;
	struct python_scratch python;
	__u8 record[sizeof(struct wire_sample) + MAX_FRAME_WORDS * 8] __attribute__((aligned(8)));
};

struct walk {
	struct scratch *scratch;
	struct task_struct *task;
	const struct python_target *python;
};

static int read_user(const struct task_struct *task, void *to, size_t size, uint64_t address)
{
	struct iovec local = {.iov_base = to, .iov_len = size};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};

	return process_vm_readv(task->pid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

#ifndef __always_inline /* glibc has it */
#define __always_inline inline __attribute__((always_inline))
#endif
#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif
#define READ_USER(task, to, size, address) read_user(task, to, size, address)
#define PYTHON_LOOP(count, function, context)                                                      \
	for (__u32 _i = 0; _i < (count) && !function(_i, context); _i++)
#define PYTHON_THREAD_POINTER(task) ((task)->thread_pointer)
/* The collector reads code objects that nobody sent. */
#define PYTHON_SEEN_CODE(walk, code, check)                                                        \
	do {                                                                                       \
	} while (0)

#include "unwind/python_walk.h"

/* ---- frames ---- */

static void keep_frames(const struct scratch *scratch, struct wire_sample *sample)
{
	uint16_t kept = (uint16_t)kept_frames(scratch->python_frames, WIRE_MAX_PYTHON_FRAMES);

	fill_python(scratch, sample);
	sample->python_frame_count = kept;
	sample->python_left_out = (uint16_t)(scratch->python_frames - kept);
	sample->entries_left_out = (uint16_t)scratch->entries_left_out;
	memcpy(sample->frames, scratch->record + sizeof(*sample),
		kept * sizeof(struct wire_python_frame));
}

int python_frames_take(const struct python_image_facts *facts, const struct python_thread *thread,
	struct wire_sample *sample)
{
	struct task_struct task = {
		.pid = (pid_t)thread->pid, .thread_pointer = thread->thread_pointer};
	struct scratch *scratch = calloc(1, sizeof(*scratch));
	struct walk walk = {.scratch = scratch, .task = &task, .python = &facts->target};

	if (!scratch)
		return -ENOMEM;
	scratch->system_call = thread->system_call;
	scratch->registers.leaf[ARCH_FIRST_ARGUMENT] = thread->first_argument;
	walk_python(&walk);
	keep_frames(scratch, sample);
	sample->python_interpreter = facts->target.interpreter;
	free(scratch);
	return 0;
}

/* ---- threads by their id ---- */

bool python_frames_has_ids(const struct python_image_facts *facts)
{
	return facts->target.layout.thread_native_id != PYTHON_ABSENT;
}

/* In one interpreter. */
static uint64_t find_ident(const struct python_layout *layout, const struct task_struct *task,
	uint64_t interpreter, uint32_t tid)
{
	uint64_t at = 0, id = 0, ident = 0;

	if (read_user(task, &at, sizeof(at), interpreter + layout->interpreter_threads_head) < 0)
		return 0;
	for (int i = 0; i < MAX_PYTHON_THREADS && at; i++) {
		if (read_user(task, &id, sizeof(id), at + layout->thread_native_id) < 0)
			return 0;
		if (id == tid &&
			read_user(task, &ident, sizeof(ident), at + layout->thread_ident) == 0)
			return ident;
		if (read_user(task, &at, sizeof(at), at + layout->thread_next) < 0)
			return 0;
	}
	return 0;
}

uint64_t python_frames_thread_pointer(
	const struct python_image_facts *facts, uint32_t pid, uint32_t tid)
{
	const struct python_layout *layout = &facts->target.layout;
	const struct task_struct task = {.pid = (pid_t)pid};
	uint64_t at = facts->target.runtime + layout->runtime_interpreters_head, ident = 0;

	if (!python_frames_has_ids(facts))
		return 0;
	for (int i = 0; i < MAX_INTERPRETERS && !ident; i++) {
		if (read_user(&task, &at, sizeof(at), at) < 0 || !at)
			return 0;
		ident = find_ident(layout, &task, at, tid);
		at += layout->interpreter_next;
	}
	return ident ? ident - ARCH_PTHREAD_FROM_THREAD_POINTER : 0;
}
