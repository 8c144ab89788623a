/* SPDX-License-Identifier: Apache-2.0 */
/* One sample into the capture, with its process and thread where they are new. */
#include <errno.h>
#include <string.h>

#include "collect/pipeline/state.h"

/* ---- who ---- */

/* True when the capture does not have this yet; remembers that it has now. */
static bool is_news(struct map_u64 *known, uint64_t key, uint64_t hash)
{
	uint64_t before;

	if (map_u64_get(known, key, &before) && before == hash)
		return false;
	return map_u64_set(known, key, hash) == 0;
}

int pipeline_write_process(
	struct pipeline *pipeline, uint32_t pid, const char *name, const struct process *process)
{
	struct capture_process out = {.pid = pid, .name = name};
	uint64_t hash;

	if (process) {
		out.parent_pid = process->parent_pid;
		out.start_time_ns = process->first_seen_ns;
		out.cmdline = (const char *const *)process->cmdline;
		out.cmdline_count = process->cmdline_count;
		out.cgroup = process->cgroup;
		out.has_rank = process->ranks.rank >= 0;
		out.rank = out.has_rank ? (uint32_t)process->ranks.rank : 0;
		out.world_size =
			process->ranks.world_size > 0 ? (uint32_t)process->ranks.world_size : 0;
		/* A sample that waited knows its process by an older name. */
		if (process->name[0])
			out.name = process->name;
	}
	hash = hash_bytes(out.name, strlen(out.name), process ? process->exec_count + 1 : 0);
	/* A sample that waited longer than its process was remembered has nothing to add. */
	if (!process && map_u64_get(&pipeline->known_processes, pid, NULL))
		return 0;
	if (!is_news(&pipeline->known_processes, pid, hash))
		return 0;
	return capture_writer_process(pipeline->parts.writer, &out);
}

int pipeline_see_process(struct pipeline *pipeline, uint32_t pid)
{
	if (map_u64_get(&pipeline->known_processes, pid, NULL))
		return 0;
	array_foreach (&pipeline->unnamed, unnamed) {
		if (*unnamed == pid)
			return 0;
	}
	return array_append(&pipeline->unnamed, pid);
}

int pipeline_write_unnamed(struct pipeline *pipeline)
{
	size_t kept = 0;
	int result = 0;

	for (size_t i = 0; i < pipeline->unnamed.count; i++) {
		uint32_t pid = pipeline->unnamed.items[i];
		const struct process *process = address_spaces_find(pipeline->parts.spaces, pid);

		if (result == 0 && process && process->name[0])
			result = pipeline_write_process(pipeline, pid, "", process);
		else
			pipeline->unnamed.items[kept++] = pid;
	}
	pipeline->unnamed.count = kept;
	return result;
}

static int tell_thread(struct pipeline *pipeline, const struct wire_sample *sample)
{
	struct capture_thread out = {
		.pid = sample->pid, .tid = sample->tid, .name = sample->thread_name};
	uint64_t hash = hash_bytes(sample->thread_name, strlen(sample->thread_name), 1);

	if (sample->flags & WIRE_SAMPLE_LAUNCH && !sample->thread_name[0])
		return 0; /* it has ended: others may have its name */
	if (!is_news(&pipeline->known_threads, (uint64_t)sample->pid << 32 | sample->tid, hash))
		return 0;
	return capture_writer_thread(pipeline->parts.writer, &out);
}

/* ---- the global interpreter lock ---- */

static uint64_t pointer_key(uint32_t pid, uint64_t thread_pointer)
{
	return hash_u64(thread_pointer ^ hash_u64(pid));
}

/* The tid of who held the lock, which older interpreters know by its thread pointer. */
static uint32_t gil_holder(struct pipeline *pipeline, const struct wire_sample *sample)
{
	uint64_t tid;

	if (sample->thread_pointer)
		map_u64_set(&pipeline->thread_pointers,
			pointer_key(sample->pid, sample->thread_pointer), sample->tid);
	if (!(sample->flags & WIRE_SAMPLE_HOLDER_IS_POINTER))
		return (uint32_t)sample->gil_holder;
	return map_u64_get(&pipeline->thread_pointers, pointer_key(sample->pid, sample->gil_holder),
		       &tid)
		       ? (uint32_t)tid
		       : 0;
}

/* ---- one sample ---- */

static void count_sample(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct user_stack *user, enum wire_python python)
{
	uint64_t left_out = user->gap.left_out + sample->python_left_out;
	struct pipeline_account *account = &pipeline->account;

	account->deep_stacks += left_out > 0;
	account->frames_left_out += left_out;
	account->most_left_out = MAX(account->most_left_out, left_out);
	if (!sample->wait) {
		account->samples++;
		account->stacks_by_stop[user->stop]++;
		account->stacks_by_python[python]++;
	}
	account->kernel_frames += sample->kernel_frame_count;
	account->python_frames += sample->python_frame_count;
	account->user_frames += user->count;
}

static int write_by_kind(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct capture_sample *out)
{
	int result;

	if (!sample->wait)
		return capture_writer_sample(pipeline->parts.writer, out);
	if (sample->flags & WIRE_SAMPLE_EXACT)
		return pipeline_write_exact_wait(pipeline, out, sample->runnable_ns, sample->flags);
	result = pipeline_keep_wait(pipeline, out);
	return result < 0 ? result : pipeline_write_wait(pipeline, out);
}

static int write_launch_stack(
	struct pipeline *pipeline, const struct wire_sample *sample, capture_id callstack)
{
	const struct capture_launch_stack out = {
		.time_ns = sample->time_ns,
		.pid = sample->pid,
		.tid = sample->tid,
		.correlation = sample->correlation,
		.callstack = callstack,
	};

	pipeline->account.launch_stacks++;
	return capture_writer_launch_stack(pipeline->parts.writer, &out);
}

static int write_sample(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct process *process, const struct user_stack *user, size_t frame_count,
	enum wire_python python)
{
	struct capture_sample out = {
		.time_ns = sample->time_ns,
		.pid = sample->pid,
		.tid = sample->tid,
		.cpu = sample->cpu,
		.mode = sample->flags & WIRE_SAMPLE_KERNEL_MODE ? CAPTURE_MODE_KERNEL
								: CAPTURE_MODE_USER,
		.gil = sample->gil,
		.wait = sample->wait,
		.duration_ns = sample->wait ? sample->waited_ns : 0,
	};
	int result = pipeline_write_process(pipeline, sample->pid, sample->process_name, process);

	if (sample->flags & WIRE_SAMPLE_COUNTED) {
		out.cycles = sample->cycles;
		out.instructions = sample->instructions;
	}
	out.gil_holder_tid = gil_holder(pipeline, sample);
	if (result == 0)
		result = tell_thread(pipeline, sample);
	if (result == 0)
		result = capture_writer_callstack(pipeline->parts.writer, pipeline->stack,
			frame_count, user->stop, python, &out.callstack);
	if (result == 0 && sample->flags & WIRE_SAMPLE_LAUNCH)
		return write_launch_stack(pipeline, sample, out.callstack);
	if (result == 0)
		result = write_by_kind(pipeline, sample, &out);
	if (result == 0)
		count_sample(pipeline, sample, user, python);
	return result;
}

/* The table that the sampler missed, for the samples to come: our own walk may end before it gets
 * there. */
static void request_missing_table(
	struct pipeline *pipeline, const struct wire_sample *sample, const struct space_view *view)
{
	const struct mapping *mapping;
	uint64_t word_count;
	const uint64_t *words;

	if (sample->stop != WIRE_STOP_NO_TABLE || !sample->user_frame_count)
		return;
	mapping = pipeline_find_mapping(view, user_frames(sample)[sample->user_frame_count - 1]);
	if (mapping)
		file_store_table(pipeline->parts.files, mapping->file, &words, &word_count);
}

/*
 * The sampler met an address in no mapping that it knew, which is the last frame. There may have
 * been one, which it did not know yet; else the stack ran off into data.
 */
static void judge_unmapped(const struct space_view *view, struct user_stack *user)
{
	if (user->stop != WIRE_STOP_NO_MAPPING || !user->count)
		return;
	if (!view->count || pipeline_find_mapping(view, user->frames[user->count - 1]))
		user->stop = WIRE_STOP_NEW_MAPPING;
	else if (user->count > 1)
		user->count--;
}

int pipeline_try_sample(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct process *process, const struct space_view *view, bool give_up)
{
	struct user_stack user = {
		.frames = user_frames(sample),
		.count = sample->user_frame_count,
		.gap = {.at = WIRE_MAX_USER_FRAMES - WIRE_OUTER_USER_FRAMES,
			.left_out = sample->user_left_out,
			.groups = sample->evaluations_left_out},
		.stop = sample->stop,
	};
	struct user_stack copied = {0};
	bool is_copied = sample->flags & WIRE_SAMPLE_STACK_COPY;
	enum wire_python python;
	size_t total;
	int result = 0;

	judge_unmapped(view, &user);
	if (is_copied) {
		request_missing_table(pipeline, sample, view);
		result = pipeline_unwind_copy(pipeline, sample, view, give_up, &copied);
	}
	/* The sampler may have come further: it can pass the trampolines of return probes. */
	if (is_copied && result == 0 &&
		(copied.stop == WIRE_STOP_COMPLETE ||
			copied.count + copied.gap.left_out >= user.count + user.gap.left_out))
		user = copied;
	if (result == 0 && sample->flags & WIRE_SAMPLE_LAUNCH)
		pipeline_skip_injected(pipeline, view, &user);
	if (result == 0)
		result = pipeline_resolve_stack(
			pipeline, sample, view, &user, give_up, &total, &python);
	if (result == 0)
		result = write_sample(pipeline, sample, process, &user, total, python);
	if (result == 0 && sample->flags & WIRE_SAMPLE_LAUNCH && pipeline->parts.on_launch_stack &&
		user.stop == WIRE_STOP_COMPLETE && !user.gap.left_out)
		pipeline->parts.on_launch_stack(
			pipeline->parts.context, sample, user.frames, user.count);
	pipeline->account.unwound_in_user_space += is_copied && result == 0;
	return result;
}
