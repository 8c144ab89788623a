/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pipeline.h"

#include <string.h>
#include <sys/uio.h>

#include "base/array.h"
#include "base/map.h"
#include "collect/merge.h"
#include "symbols/python_code.h"
#include "unwind/stack.h"

/* Samples that wait for tables may hold this much; beyond it they are written with what there is.
 */
#define WAITING_LIMIT_BYTES ((size_t)64 << 20)

/* An address space as it was when a sample was taken, shared by the samples that wait. */
struct snapshot {
	uint32_t users;
	uint32_t pid;
	uint64_t first_seen_ns, generation; /* pids are given again, with generations from 0 */
	size_t count;
	struct mapping mappings[];
};

struct queued_event {
	struct sideband_event event; /* .name is owned */
	uint64_t order;
};

struct waiting_sample {
	struct wire_sample *sample;
	struct snapshot *snapshot;
};

/* What every queued record begins with. */
struct timed_record {
	struct wire_record record;
	uint64_t time_ns;
};

struct pipeline {
	struct pipeline_parts parts;
	struct pipeline_account account;
	ARRAY_OF(struct timed_record *) records;
	ARRAY_OF(struct queued_event) events;
	uint64_t next_order;
	ARRAY_OF(struct waiting_sample) waiting;
	size_t waiting_bytes;
	struct snapshot *latest_snapshot;
	struct map_u64 told_processes, told_threads; /* → hash of what the capture was told */
	struct map_u64 last_waits;                   /* pid << 32 | tid → index in waits */
	/* The last stack that a thread was seen waiting with: more time may be charged to it. */
	ARRAY_OF(struct capture_sample) waits;
	struct map_u64 thread_pointers; /* hash of pid and thread pointer → tid */
	uint64_t frames[WIRE_MAX_USER_FRAMES];
	struct merged_frame merged[WIRE_MAX_USER_FRAMES + WIRE_MAX_PYTHON_FRAMES];
	capture_id stack[WIRE_MAX_USER_FRAMES + WIRE_MAX_PYTHON_FRAMES + WIRE_MAX_KERNEL_FRAMES];
};

/* The mappings that a sample's addresses are looked up in. */
struct space_view {
	const struct mapping *mappings;
	size_t count;
};

#define PYTHON_FRAME_WORDS (sizeof(struct wire_python_frame) / sizeof(uint64_t))

static const struct wire_python_frame *python_frames(const struct wire_sample *sample)
{
	return (const void *)(sample->frames + sample->kernel_frame_count);
}

static const uint64_t *user_frames(const struct wire_sample *sample)
{
	return (const uint64_t *)sample->frames + sample->kernel_frame_count +
	       sample->python_frame_count * PYTHON_FRAME_WORDS;
}

static const struct wire_stack_copy *stack_copy(const struct wire_sample *sample)
{
	return (const void *)(user_frames(sample) + sample->user_frame_count);
}

int pipeline_new(struct pipeline **ret_pipeline, const struct pipeline_parts *parts)
{
	struct pipeline *pipeline = calloc(1, sizeof(*pipeline));

	if (!pipeline)
		return -ENOMEM;
	pipeline->parts = *parts;
	*ret_pipeline = pipeline;
	return 0;
}

/* ---- snapshots ---- */

static size_t snapshot_bytes(size_t mapping_count)
{
	return sizeof(struct snapshot) + mapping_count * sizeof(struct mapping);
}

static void snapshot_unref(struct pipeline *pipeline, struct snapshot *snapshot)
{
	if (!snapshot || --snapshot->users)
		return;
	pipeline->waiting_bytes -= snapshot_bytes(snapshot->count);
	free(snapshot);
}

static struct snapshot *snapshot_of(struct pipeline *pipeline, const struct process *process)
{
	struct snapshot *latest = pipeline->latest_snapshot;
	size_t count = process ? process->mapping_count : 0;

	if (latest && process && latest->pid == process->pid &&
		latest->first_seen_ns == process->first_seen_ns &&
		latest->generation == process->generation) {
		latest->users++;
		return latest;
	}
	snapshot_unref(pipeline, latest);
	latest = pipeline->latest_snapshot = calloc(1, snapshot_bytes(count));
	if (!latest)
		return NULL;
	pipeline->waiting_bytes += snapshot_bytes(count);
	latest->users = 2; /* the pipeline's and the caller's */
	latest->pid = process ? process->pid : 0;
	latest->first_seen_ns = process ? process->first_seen_ns : 0;
	latest->generation = process ? process->generation : 0;
	latest->count = count;
	if (count)
		memcpy(latest->mappings, process->mappings, count * sizeof(struct mapping));
	return latest;
}

static const struct mapping *find_mapping(const struct space_view *view, uint64_t address)
{
	size_t low = 0, high = view->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct mapping *mapping = &view->mappings[middle];

		if (address < mapping->start)
			high = middle;
		else if (address >= mapping->end)
			low = middle + 1;
		else
			return mapping;
	}
	return NULL;
}

/* ---- unwinding copied stacks ---- */

struct copied_target {
	struct pipeline *pipeline;
	uint32_t pid;
	const struct space_view *view;
	const struct wire_stack_copy *copy;
	const unsigned char *bytes;
	bool beyond_copy; /* a read went past the copied part */
};

/*
 * Instructions around a return address, asked for where there is no rule. Code does not change like
 * a stack does: the process is read as it is now.
 */
static int read_code(const struct copied_target *target, uint64_t address, uint64_t *ret_value)
{
	struct iovec local = {.iov_base = ret_value, .iov_len = sizeof(*ret_value)};
	struct iovec remote = {
		.iov_base = (void *)(uintptr_t)address, .iov_len = sizeof(*ret_value)};

	if (process_vm_readv((pid_t)target->pid, &local, 1, &remote, 1, 0) != sizeof(*ret_value))
		return -EFAULT;
	return 0;
}

static int read_copied(void *context, uint64_t address, uint64_t *ret_value)
{
	struct copied_target *target = context;
	uint64_t offset = address - target->copy->sp, length = target->copy->stack_bytes;

	if (find_mapping(target->view, address))
		return read_code(target, address, ret_value);
	if (address < target->copy->sp)
		return -EFAULT;
	if (length < sizeof(*ret_value) || offset > length - sizeof(*ret_value)) {
		target->beyond_copy = true;
		return -EFAULT;
	}
	memcpy(ret_value, target->bytes + offset, sizeof(*ret_value));
	return 0;
}

static bool locate_copied(void *context, uint64_t address, struct unwind_location *ret_location)
{
	struct copied_target *target = context;
	const struct mapping *mapping = find_mapping(target->view, address);
	struct file_store *files = target->pipeline->parts.files;

	if (!mapping)
		return false;
	*ret_location = (struct unwind_location){0};
	if (!file_store_bias(files, mapping, &ret_location->bias)) {
		ret_location->frame_pointer = true;
		return true;
	}
	if (file_store_table(files, mapping->file, &ret_location->table,
		    &ret_location->table_word_count) == FILE_ABSENT)
		ret_location->frame_pointer = true;
	return true;
}

/* Frames go to pipeline->frames. Returns 0, or -EAGAIN while a table is on its way. */
static int unwind_copy(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct space_view *view, bool give_up, size_t *ret_count, enum wire_stop *ret_stop)
{
	const struct wire_stack_copy *copy = stack_copy(sample);
	struct copied_target context = {
		.pipeline = pipeline,
		.pid = sample->pid,
		.view = view,
		.copy = copy,
		.bytes = (const unsigned char *)(copy + 1),
	};
	const struct unwind_target target = {
		.context = &context,
		.read_u64 = read_copied,
		.locate = locate_copied,
	};

	*ret_stop =
		unwind_user_stack(&target, copy, pipeline->frames, WIRE_MAX_USER_FRAMES, ret_count);
	if (*ret_stop == WIRE_STOP_NO_TABLE && !give_up)
		return -EAGAIN;
	if (*ret_stop == WIRE_STOP_READ_FAULT && context.beyond_copy)
		*ret_stop = WIRE_STOP_STACK_COPY;
	return 0;
}

/* ---- who ---- */

/* True when the capture has not been told this yet; remembers that it is now. */
static bool is_news(struct map_u64 *told, uint64_t key, uint64_t hash)
{
	uint64_t before;

	if (map_u64_get(told, key, &before) && before == hash)
		return false;
	return map_u64_set(told, key, hash) == 0;
}

static int tell_process(
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
		/* A sample that waited knows its process by an older name. */
		if (process->name[0])
			out.name = process->name;
	}
	hash = hash_bytes(out.name, strlen(out.name), process ? process->exec_count + 1 : 0);
	/* A sample that waited longer than its process was remembered has nothing to add. */
	if (!process && map_u64_get(&pipeline->told_processes, pid, NULL))
		return 0;
	if (!is_news(&pipeline->told_processes, pid, hash))
		return 0;
	return capture_writer_process(pipeline->parts.writer, &out);
}

static int tell_thread(struct pipeline *pipeline, const struct wire_sample *sample)
{
	struct capture_thread out = {
		.pid = sample->pid, .tid = sample->tid, .name = sample->thread_name};
	uint64_t hash = hash_bytes(sample->thread_name, strlen(sample->thread_name), 1);

	if (sample->flags & WIRE_SAMPLE_LAUNCH && !sample->thread_name[0])
		return 0; /* it has ended: others may have told its name */
	if (!is_news(&pipeline->told_threads, (uint64_t)sample->pid << 32 | sample->tid, hash))
		return 0;
	return capture_writer_thread(pipeline->parts.writer, &out);
}

/* ---- waiting threads ---- */

static uint64_t thread_key(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

static struct capture_sample *last_wait_of(struct pipeline *pipeline, uint32_t pid, uint32_t tid)
{
	uint64_t index;

	return map_u64_get(&pipeline->last_waits, thread_key(pid, tid), &index)
		       ? &pipeline->waits.items[index]
		       : NULL;
}

static int write_wait(struct pipeline *pipeline, const struct capture_sample *sample)
{
	if (!sample->duration_ns)
		return 0;
	pipeline->account.wait_samples++;
	pipeline->account.waited_ns += sample->duration_ns;
	return capture_writer_sample(pipeline->parts.writer, sample);
}

/* A wait from begin to end: first for what it was for, then, when it was over, for a CPU. */
static int write_exact_wait(struct pipeline *pipeline, const struct capture_sample *wait,
	uint64_t runnable_ns, uint32_t flags)
{
	struct capture_sample part = *wait;
	int result;

	runnable_ns = MIN(runnable_ns, wait->duration_ns);
	part.time_ns -= runnable_ns;
	part.duration_ns -= runnable_ns;
	part.wait_is_open = flags & WIRE_SAMPLE_OPEN && !runnable_ns;
	result = write_wait(pipeline, &part);
	if (result < 0 || !(flags & WIRE_SAMPLE_FOR_CPU))
		return result;
	part = *wait;
	part.wait = WIRE_WAIT_CPU;
	part.duration_ns = runnable_ns;
	part.wait_is_open = flags & WIRE_SAMPLE_OPEN;
	return write_wait(pipeline, &part);
}

/* More time may come for it. */
static int keep_wait(struct pipeline *pipeline, const struct capture_sample *wait)
{
	struct capture_sample *known = last_wait_of(pipeline, wait->pid, wait->tid);
	int result;

	if (known) {
		/* A sample that waited for tables may be older than what came meanwhile. */
		if (known->time_ns <= wait->time_ns)
			*known = *wait;
		return 0;
	}
	result = array_append(&pipeline->waits, *wait);
	return result < 0 ? result
			  : map_u64_set(&pipeline->last_waits, thread_key(wait->pid, wait->tid),
				    pipeline->waits.count - 1);
}

/* The wait's sample is itself waiting for tables: the time is added to it. */
static bool add_to_unresolved(
	struct pipeline *pipeline, const struct wire_wake *wake, uint64_t not_before_ns)
{
	for (size_t i = pipeline->waiting.count; i-- > 0;) {
		struct wire_sample *sample = pipeline->waiting.items[i].sample;

		if (sample->tid != wake->tid || sample->pid != wake->pid || !sample->wait ||
			sample->time_ns < not_before_ns)
			continue;
		sample->waited_ns += wake->waited_ns;
		sample->runnable_ns = wake->runnable_ns;
		sample->flags |= wake->flags;
		sample->time_ns = wake->time_ns;
		return true;
	}
	return false;
}

static int handle_wake(struct pipeline *pipeline, const struct wire_wake *wake)
{
	struct capture_sample *wait = last_wait_of(pipeline, wake->pid, wake->tid);

	/* Where it waited in an earlier window says nothing of this one. */
	if (wait && pipeline->parts.windows && !pipeline->parts.windows->is_whole &&
		windows_find(pipeline->parts.windows, wait->time_ns) !=
			windows_find(pipeline->parts.windows, wake->time_ns))
		wait = NULL;
	if (add_to_unresolved(pipeline, wake, wait ? wait->time_ns : 0))
		return 0;
	if (!wait) {
		const struct capture_sample unseen = {
			.time_ns = wake->time_ns,
			.pid = wake->pid,
			.tid = wake->tid,
			.mode = CAPTURE_MODE_KERNEL,
			.wait = WIRE_WAIT_UNSEEN,
			.duration_ns = wake->waited_ns,
		};

		return write_wait(pipeline, &unseen);
	}
	wait->time_ns = wake->time_ns;
	wait->duration_ns = wake->waited_ns;
	if (!(wake->flags & WIRE_SAMPLE_EXACT))
		return write_wait(pipeline, wait);
	return write_exact_wait(pipeline, wait, wake->runnable_ns, wake->flags);
}

/*
 * Cuts a wait, of which `time_ns` is the end, to its window. Of what is cut off at its end the part
 * in which the thread could run again was the last. False: it lies in none.
 */
static bool cut_wait(struct windows *windows, __u64 *time_ns, __u64 *waited_ns, __u64 *runnable_ns)
{
	uint64_t end_ns = *time_ns, begin_ns = end_ns - MIN(*waited_ns, *time_ns), after_ns;

	if (!windows || windows->is_whole)
		return true;
	if (!*waited_ns)
		return windows_has(windows, end_ns);
	if (!windows_cut(windows, &begin_ns, &end_ns))
		return false;
	after_ns = *time_ns - end_ns;
	*runnable_ns -= MIN(*runnable_ns, after_ns);
	*time_ns = end_ns;
	*waited_ns = end_ns - begin_ns;
	return true;
}

/* Waits without a stack. */
static int handle_wait_count(struct pipeline *pipeline, const struct wire_wait_count *counted)
{
	const struct capture_sample sample = {
		.time_ns = counted->time_ns,
		.pid = counted->pid,
		.tid = counted->tid,
		.mode = CAPTURE_MODE_KERNEL,
		.wait = counted->wait,
		.wait_count = (uint32_t)MIN(counted->count, (uint64_t)UINT32_MAX),
		.duration_ns = counted->waited_ns,
	};

	return write_wait(pipeline, &sample);
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

struct eval_lookup {
	const struct python_registry *python;
	uint32_t interpreter;
};

static bool is_eval(void *context, uint64_t address)
{
	const struct eval_lookup *lookup = context;

	return python_registry_is_eval(lookup->python, lookup->interpreter, address);
}

/* The user frames of a sample, wherever they were unwound. */
struct user_stack {
	const uint64_t *frames; /* innermost first */
	size_t count;
	enum wire_stop stop;
};

/* Fills pipeline->merged, outermost first. Returns how that went. */
static enum wire_python merge_user_stack(
	struct pipeline *pipeline, const struct wire_sample *sample, const struct user_stack *user)
{
	struct eval_lookup lookup = {pipeline->parts.python, sample->python_interpreter};
	const struct merge_input input = {
		.native = user->frames,
		.native_count = user->count,
		.python = python_frames(sample),
		.python_count = sample->python_frame_count,
		.native_complete = user->stop == WIRE_STOP_COMPLETE,
		.python_complete = sample->python == WIRE_PYTHON_FRAMES,
		.is_eval = is_eval,
		.context = &lookup,
	};
	enum wire_python merged = merge_stacks(&input, pipeline->merged);

	if (sample->python == WIRE_PYTHON_FRAMES)
		return merged;
	return sample->python != WIRE_PYTHON_NONE
		       ? sample->python
		       : python_registry_reason(pipeline->parts.python, sample->pid);
}

/* Fills pipeline->stack, outermost first, from user, Python and kernel frames. */
static int resolve_stack(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct space_view *view, const struct user_stack *user, bool give_up,
	size_t *ret_count, enum wire_python *ret_python)
{
	size_t count = 0, user_count = user->count + sample->python_frame_count;
	size_t first_kernel = 0;
	int result = 0;

	*ret_python = merge_user_stack(pipeline, sample, user);
	for (size_t i = 0; i < user_count && result == 0; i++) {
		const struct merged_frame *frame = &pipeline->merged[i];
		capture_id *out = &pipeline->stack[count++];

		if (frame->is_python)
			result = python_registry_frame(pipeline->parts.python, sample->pid,
				sample->python_interpreter, &python_frames(sample)[frame->index],
				out);
		else
			result = resolver_user_frame(pipeline->parts.resolver, sample->pid,
				find_mapping(view, user->frames[frame->index]),
				user->frames[frame->index], give_up, out);
	}
	if (sample->wait)
		first_kernel = resolver_above_scheduler(pipeline->parts.resolver,
			(const uint64_t *)sample->frames, sample->kernel_frame_count);
	for (size_t i = sample->kernel_frame_count; i-- > first_kernel && result == 0;) {
		/* All but the innermost are return addresses: the call lies before. */
		result = resolver_kernel_frame(pipeline->parts.resolver,
			sample->frames[i] - (i > 0), &pipeline->stack[count++]);
	}
	*ret_count = count;
	return result;
}

static void count_sample(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct user_stack *user, enum wire_python python)
{
	struct pipeline_account *account = &pipeline->account;

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
		return write_exact_wait(pipeline, out, sample->runnable_ns, sample->flags);
	result = keep_wait(pipeline, out);
	return result < 0 ? result : write_wait(pipeline, out);
}

/* The stack of a launch: its correlation id is in place of the time waited. */
static int write_launch_stack(
	struct pipeline *pipeline, const struct wire_sample *sample, capture_id callstack)
{
	const struct capture_launch_stack out = {
		.time_ns = sample->time_ns,
		.pid = sample->pid,
		.tid = sample->tid,
		.correlation = sample->waited_ns,
		.callstack = callstack,
	};

	pipeline->account.launch_stacks++;
	return capture_writer_launch_stack(pipeline->parts.writer, &out);
}

/* Is the frame in a file whose name begins like this? */
static bool lies_in(const struct pipeline *pipeline, const struct space_view *view,
	uint64_t address, const char *library)
{
	const struct mapping *mapping = find_mapping(view, address);
	const char *path =
		mapping ? address_spaces_file(pipeline->parts.spaces, mapping->file)->path : NULL;
	const char *name = path ? strrchr(path, '/') : NULL;

	return name && strncmp(name + 1, library, strlen(library)) == 0;
}

static bool lies_in_cuda(
	const struct pipeline *pipeline, const struct space_view *view, uint64_t address)
{
	static const char *const libraries[] = {"libcupti", "libcuda.so", "libcudart.so"};

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		if (lies_in(pipeline, view, address, libraries[i]))
			return true;
	}
	return false;
}

/*
 * Of the injected library's frames one is left, the function that stands for the launch call and
 * has its name; none when the loader's own function is in the stack. CUDA's libraries call us from
 * within: of their frames the outermost is left, which is the call.
 */
static void skip_injected(
	const struct pipeline *pipeline, const struct space_view *view, struct user_stack *user)
{
	static const char library[] = "libsonde-inject.so";
	size_t own = 0;

	while (own < user->count && lies_in(pipeline, view, user->frames[own], library))
		own++;
	if (own && own < user->count && lies_in_cuda(pipeline, view, user->frames[own])) {
		while (own + 1 < user->count && lies_in_cuda(pipeline, view, user->frames[own + 1]))
			own++;
	} else if (own && !(own < user->count &&
				  lies_in(pipeline, view, user->frames[own], "libOpenCL.so"))) {
		own--;
	}
	user->frames += own;
	user->count -= own;
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
		.duration_ns = sample->waited_ns,
	};
	int result = tell_process(pipeline, sample->pid, sample->process_name, process);

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
	mapping = find_mapping(view, user_frames(sample)[sample->user_frame_count - 1]);
	if (mapping)
		file_store_table(pipeline->parts.files, mapping->file, &words, &word_count);
}

/* Returns 0, -EAGAIN when tables or names are on their way, or another negative errno. */
static int try_sample(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct process *process, const struct space_view *view, bool give_up)
{
	struct user_stack user = {user_frames(sample), sample->user_frame_count, sample->stop};
	struct user_stack copied = {.frames = pipeline->frames};
	bool is_copied = sample->flags & WIRE_SAMPLE_STACK_COPY;
	enum wire_python python;
	size_t total;
	int result = 0;

	if (is_copied) {
		request_missing_table(pipeline, sample, view);
		result = unwind_copy(pipeline, sample, view, give_up, &copied.count, &copied.stop);
	}
	/* The sampler may have come further: it can pass the trampolines of return probes. */
	if (is_copied && result == 0 &&
		(copied.stop == WIRE_STOP_COMPLETE || copied.count >= user.count))
		user = copied;
	if (result == 0 && sample->flags & WIRE_SAMPLE_LAUNCH)
		skip_injected(pipeline, view, &user);
	if (result == 0)
		result = resolve_stack(pipeline, sample, view, &user, give_up, &total, &python);
	if (result == 0)
		result = write_sample(pipeline, sample, process, &user, total, python);
	if (result == 0 && sample->flags & WIRE_SAMPLE_LAUNCH && pipeline->parts.on_launch_stack &&
		user.stop == WIRE_STOP_COMPLETE)
		pipeline->parts.on_launch_stack(
			pipeline->parts.context, sample, user.frames, user.count);
	pipeline->account.unwound_in_user_space += is_copied && result == 0;
	return result;
}

static int keep_waiting(
	struct pipeline *pipeline, struct wire_sample *sample, const struct process *process)
{
	struct waiting_sample waiting = {
		.sample = sample,
		.snapshot = snapshot_of(pipeline, process),
	};

	if (!waiting.snapshot || array_append(&pipeline->waiting, waiting) < 0) {
		snapshot_unref(pipeline, waiting.snapshot);
		return -ENOMEM;
	}
	pipeline->waiting_bytes += sample->record.length_bytes;
	return 0;
}

/* Writes it with what there is. */
static int give_up_waiting(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct process *process, const struct space_view *view)
{
	pipeline->account.gave_up_waiting++;
	return try_sample(pipeline, sample, process, view, true);
}

/* Takes the sample. */
static int handle_sample(struct pipeline *pipeline, struct wire_sample *sample)
{
	struct process *process = address_spaces_find(pipeline->parts.spaces, sample->pid);
	struct space_view view = {0};
	int result;

	if (!process && address_spaces_add_process(pipeline->parts.spaces, sample->pid, NULL) == 0)
		process = address_spaces_find(pipeline->parts.spaces, sample->pid);
	if (process)
		view = (struct space_view){process->mappings, process->mapping_count};
	result = try_sample(pipeline, sample, process, &view, false);
	if (result == -EAGAIN && pipeline->waiting_bytes <= WAITING_LIMIT_BYTES) {
		result = keep_waiting(pipeline, sample, process);
		if (result == 0)
			return 0;
	}
	if (result == -EAGAIN)
		result = give_up_waiting(pipeline, sample, process, &view);
	free(sample);
	return result;
}

int pipeline_retry(struct pipeline *pipeline, bool give_up)
{
	size_t kept = 0;
	int failed = 0;

	for (size_t i = 0; i < pipeline->waiting.count; i++) {
		struct waiting_sample *waiting = &pipeline->waiting.items[i];
		struct space_view view = {waiting->snapshot->mappings, waiting->snapshot->count};
		const struct process *process =
			address_spaces_find(pipeline->parts.spaces, waiting->sample->pid);
		int result = try_sample(pipeline, waiting->sample, process, &view, false);

		if (result == -EAGAIN && (give_up || failed))
			result = give_up_waiting(pipeline, waiting->sample, process, &view);
		if (result == -EAGAIN) {
			pipeline->waiting.items[kept++] = *waiting;
			continue;
		}
		pipeline->waiting_bytes -= waiting->sample->record.length_bytes;
		snapshot_unref(pipeline, waiting->snapshot);
		free(waiting->sample);
		failed = failed ? failed : result;
	}
	pipeline->waiting.count = kept;
	return failed;
}

size_t pipeline_waiting(const struct pipeline *pipeline)
{
	return pipeline->waiting.count;
}

/* ---- order ---- */

/* Is the sample whole? Every count in it is checked against its length. */
static bool is_whole_sample(const struct wire_record *record)
{
	const struct wire_sample *sample = (const void *)record;
	const struct wire_stack_copy *copy;
	uint64_t length = sizeof(*sample);

	if (record->length_bytes < length || sample->kernel_frame_count > WIRE_MAX_KERNEL_FRAMES ||
		sample->python_frame_count > WIRE_MAX_PYTHON_FRAMES ||
		sample->user_frame_count > WIRE_MAX_USER_FRAMES || sample->stop >= WIRE_STOP_MAX ||
		sample->python >= WIRE_PYTHON_MAX || sample->gil >= WIRE_GIL_MAX ||
		sample->wait >= WIRE_WAIT_MAX)
		return false;
	length += ((uint64_t)sample->kernel_frame_count + sample->user_frame_count) * 8 +
		  (uint64_t)sample->python_frame_count * sizeof(struct wire_python_frame);
	if (!(sample->flags & WIRE_SAMPLE_STACK_COPY))
		return record->length_bytes >= length;
	copy = (const void *)((const char *)record + length);
	length += sizeof(*copy);
	return record->length_bytes >= length && copy->stack_bytes <= record->length_bytes - length;
}

static bool is_whole(const struct wire_record *record)
{
	switch (record->type) {
	case WIRE_RECORD_SAMPLE:
		return is_whole_sample(record);
	case WIRE_RECORD_WAKE:
		return record->length_bytes >= sizeof(struct wire_wake);
	case WIRE_RECORD_WAIT_COUNT:
		return record->length_bytes >= sizeof(struct wire_wait_count) &&
		       ((const struct wire_wait_count *)record)->wait > WIRE_WAIT_NONE &&
		       ((const struct wire_wait_count *)record)->wait < WIRE_WAIT_MAX;
	case WIRE_RECORD_PYTHON_CODE:
		return python_code_is_whole((const void *)record);
	default:
		return false;
	}
}

int pipeline_add_record(struct pipeline *pipeline, const struct wire_record *record)
{
	struct timed_record *copy;

	if (!is_whole(record)) {
		pipeline->account.malformed++;
		return 0;
	}
	/* Sent before the first sample with it: not put in order, so that it is there. */
	if (record->type == WIRE_RECORD_PYTHON_CODE)
		return python_registry_add_code(pipeline->parts.python, (const void *)record);
	copy = malloc(record->length_bytes);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, record, record->length_bytes);
	if (record->type == WIRE_RECORD_SAMPLE) {
		struct wire_sample *sample = (struct wire_sample *)copy;

		sample->thread_name[sizeof(sample->thread_name) - 1] = '\0';
		sample->process_name[sizeof(sample->process_name) - 1] = '\0';
	}
	if (array_append(&pipeline->records, copy) < 0) {
		free(copy);
		return -ENOMEM;
	}
	return 0;
}

int pipeline_add_event(struct pipeline *pipeline, const struct sideband_event *event)
{
	struct queued_event queued = {.event = *event, .order = pipeline->next_order++};
	char *name = strdup(event->name ? event->name : "");

	queued.event.name = name;
	if (!name || array_append(&pipeline->events, queued) < 0) {
		free(name);
		return -ENOMEM;
	}
	return 0;
}

static int compare_records(const void *left, const void *right)
{
	const struct timed_record *a = *(struct timed_record *const *)left;
	const struct timed_record *b = *(struct timed_record *const *)right;

	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static int compare_events(const void *left, const void *right)
{
	const struct queued_event *a = left, *b = right;

	if (a->event.time_ns != b->event.time_ns)
		return a->event.time_ns < b->event.time_ns ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* A process that runs another program now may never be sampled again: its last name counts. */
static int retell_process(struct pipeline *pipeline, const struct sideband_event *event)
{
	const struct process *process = address_spaces_find(pipeline->parts.spaces, event->pid);

	if (!process || event->tid != event->pid ||
		!map_u64_get(&pipeline->told_processes, event->pid, NULL))
		return 0;
	return tell_process(pipeline, event->pid, "", process);
}

/* Takes the event's name. */
static int handle_event(struct pipeline *pipeline, struct queued_event *queued)
{
	int result = 0;

	if (queued->event.type == SIDEBAND_KSYMBOL)
		resolver_kernel_symbol(pipeline->parts.resolver, &queued->event);
	else
		result = address_spaces_apply(
			pipeline->parts.spaces, &queued->event, pipeline->parts.only_descendants);
	if (result == 0 && queued->event.type == SIDEBAND_COMM)
		result = retell_process(pipeline, &queued->event);
	if (queued->event.type == SIDEBAND_LOST)
		pipeline->account.side_band_lost += queued->event.lost;
	free((char *)queued->event.name);
	return result;
}

/* Cuts a record to its window; false: it lies in none. */
static bool is_recorded(struct windows *windows, struct timed_record *record)
{
	struct wire_wait_count *counted = (struct wire_wait_count *)record;
	struct wire_sample *sample = (struct wire_sample *)record;
	struct wire_wake *wake = (struct wire_wake *)record;
	__u64 none = 0;

	switch (record->record.type) {
	case WIRE_RECORD_WAKE:
		return cut_wait(windows, &wake->time_ns, &wake->waited_ns, &wake->runnable_ns);
	case WIRE_RECORD_WAIT_COUNT:
		return cut_wait(windows, &counted->time_ns, &counted->waited_ns, &none);
	default:
		if (sample->wait)
			return cut_wait(windows, &sample->time_ns, &sample->waited_ns,
				&sample->runnable_ns);
		return !windows || windows_has(windows, sample->time_ns);
	}
}

/* Takes the record. */
static int handle_record(struct pipeline *pipeline, struct timed_record *record)
{
	int result;

	if (!is_recorded(pipeline->parts.windows, record)) {
		pipeline->account.outside++;
		free(record);
		return 0;
	}
	if (record->record.type == WIRE_RECORD_SAMPLE)
		return handle_sample(pipeline, (struct wire_sample *)record);
	result = record->record.type == WIRE_RECORD_WAKE
			 ? handle_wake(pipeline, (const struct wire_wake *)record)
			 : handle_wait_count(pipeline, (const struct wire_wait_count *)record);
	free(record);
	return result;
}

int pipeline_process(struct pipeline *pipeline, uint64_t until_ns)
{
	size_t record_at = 0, event_at = 0;
	int result = 0;

	if (pipeline->records.count)
		qsort(pipeline->records.items, pipeline->records.count,
			sizeof(*pipeline->records.items), compare_records);
	if (pipeline->events.count)
		qsort(pipeline->events.items, pipeline->events.count,
			sizeof(*pipeline->events.items), compare_events);
	while (result == 0) {
		uint64_t record_ns = record_at < pipeline->records.count
					     ? pipeline->records.items[record_at]->time_ns
					     : UINT64_MAX;
		uint64_t event_ns = event_at < pipeline->events.count
					    ? pipeline->events.items[event_at].event.time_ns
					    : UINT64_MAX;

		if (MIN(record_ns, event_ns) >= until_ns)
			break;
		if (event_ns <= record_ns)
			result = handle_event(pipeline, &pipeline->events.items[event_at++]);
		else
			result = handle_record(pipeline, pipeline->records.items[record_at++]);
	}
	pipeline->records.count -= record_at;
	pipeline->events.count -= event_at;
	if (record_at)
		memmove(pipeline->records.items, pipeline->records.items + record_at,
			pipeline->records.count * sizeof(*pipeline->records.items));
	if (event_at)
		memmove(pipeline->events.items, pipeline->events.items + event_at,
			pipeline->events.count * sizeof(*pipeline->events.items));
	return result;
}

const struct pipeline_account *pipeline_account(const struct pipeline *pipeline)
{
	return &pipeline->account;
}

struct pipeline *pipeline_free(struct pipeline *pipeline)
{
	if (!pipeline)
		return NULL;
	array_foreach (&pipeline->records, record)
		free(*record);
	array_foreach (&pipeline->events, queued)
		free((char *)queued->event.name);
	array_foreach (&pipeline->waiting, waiting) {
		snapshot_unref(pipeline, waiting->snapshot);
		free(waiting->sample);
	}
	snapshot_unref(pipeline, pipeline->latest_snapshot);
	array_done(&pipeline->records);
	array_done(&pipeline->events);
	array_done(&pipeline->waiting);
	map_u64_done(&pipeline->told_processes);
	map_u64_done(&pipeline->told_threads);
	map_u64_done(&pipeline->last_waits);
	array_done(&pipeline->waits);
	map_u64_done(&pipeline->thread_pointers);
	free(pipeline);
	return NULL;
}
