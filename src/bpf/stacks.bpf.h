/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * One sample of a thread: its registers, its user, Python and kernel stacks, a copy of what cannot
 * be unwound yet, and the record. Part of unwinder.bpf.h.
 */
#pragma once

/*
 * The user registers as they were when the task last entered the kernel: by the timer interrupt
 * itself, or by the system call it is in. Returns WIRE_STOP_COMPLETE and fills `registers`, or why
 * there are none.
 */
static __always_inline int read_user_registers(struct scratch *scratch, struct task_struct *task)
{
	struct registers *regs = &scratch->kernel_registers;

	if (!task->mm || task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return WIRE_STOP_NO_USER_STACK;
	if (bpf_probe_read_kernel(regs, sizeof(*regs), (void *)bpf_task_pt_regs(task)))
		return WIRE_STOP_NO_USER_STACK;
	if (arch_is_compat(regs))
		return WIRE_STOP_COMPAT;
	if (!arch_is_user(regs))
		return WIRE_STOP_NO_USER_STACK;
	scratch->system_call = arch_system_call(regs);
	arch_copy_registers(regs, &scratch->registers);
	return WIRE_STOP_COMPLETE;
}

static __always_inline void start_walk(struct scratch *scratch)
{
	struct unwind_state *state = &scratch->state;
	const struct wire_stack_copy *registers = &scratch->registers;

	state->pc = registers->pc;
	state->sp = registers->sp;
	state->fp.value = registers->fp;
	state->fp.saved_at = state->fp.lost = 0;
	state->second.value = registers->second;
	state->second.saved_at = state->second.lost = 0;
	state->exact_pc = state->is_leaf = 1;
	__builtin_memcpy(state->leaf, registers->leaf, sizeof(state->leaf));
	if (ARCH_HAS_LINK_REGISTER)
		state->sp_is_bound = 0;
	scratch->return_instances_read = 0;
	scratch->return_instance = NULL;
	scratch->window_at = NO_WINDOW;
	scratch->stop = WIRE_STOP_DEPTH; /* unless the walk says otherwise */
}

/* Is the piece that the walk lacks on its way? A mapping is, when it is new. */
static __always_inline bool is_awaited(struct walk *walk)
{
	struct scratch *scratch = walk->scratch;

	if (scratch->stop == WIRE_STOP_NO_TABLE || !scratch->owner_known)
		return true;
	return walk->process && walk->process->unmapped_copies < SAMPLER_UNMAPPED_COPIES;
}

/* May this stack be copied out for user space to unwind? While its piece is on the way, as long as
 * the ring has room for others' samples; budgeted else. */
static __always_inline bool may_copy_stack(struct walk *walk, __u64 now_ns, __u64 waiting_bytes)
{
	struct scratch *scratch = walk->scratch;
	bool is_coming = is_awaited(walk);
	__u32 budget = is_coming ? AWAITED_COPY_BUDGET : SAMPLER_COPY_BUDGET;

	if (waiting_bytes >= wakeup_bytes * COPIES_UNTIL_WAKEUPS) {
		count(SAMPLER_COUNT_COPIES_DENIED, 1);
		return false;
	}
	if (scratch->stop == WIRE_STOP_NO_MAPPING && is_coming && walk->process)
		walk->process->unmapped_copies++;
	if (is_coming && !AWAITED_COPY_BUDGET)
		return true;
	if (now_ns - scratch->copy_window_ns > 1000000000ULL) {
		scratch->copy_window_ns = now_ns;
		scratch->copies_in_window = 0;
	}
	if (scratch->copies_in_window++ < budget)
		return true;
	count(SAMPLER_COUNT_COPIES_DENIED, 1);
	return false;
}

/*
 * Appends registers and stack at byte `at` of the record; returns the record's new length. Pages of
 * the stack that were never touched are not there: those of a function that has just made room for
 * its variables, or of a large array. They read as zeros, which is what they hold, and the stack
 * goes on above.
 */
static __always_inline __u64 copy_stack(struct walk *walk, __u64 at)
{
	struct scratch *scratch = walk->scratch;
	__u64 sp = scratch->registers.sp, looked = 0, chunk;
	struct wire_stack_copy *out;

	at &= 0x7fff;
	scratch->copied = 0;
	for (int page = 0; page < COPY_PAGES; page++) {
		__u64 to = at + sizeof(struct wire_stack_copy) + looked;

		chunk = 4096 - ((sp + looked) & 4095);
		if (chunk > 4096 || to > RECORD_BYTES - 4096)
			break;
		/* What it cannot read the helper fills with zeros. */
		looked += chunk;
		if (!READ_USER(walk->task, scratch->record + to, chunk, sp + looked - chunk))
			scratch->copied = looked;
	}
	out = (struct wire_stack_copy *)(scratch->record + at);
	*out = scratch->registers;
	out->stack_bytes = scratch->copied;
	return at + sizeof(*out) + scratch->copied;
}

static __always_inline void fill_record(
	struct scratch *scratch, struct task_struct *task, __u32 pid, bool in_kernel)
{
	struct wire_sample *sample = (struct wire_sample *)scratch->record;

	sample->record.type = WIRE_RECORD_SAMPLE;
	sample->record.reserved = 0;
	sample->cgroup_id = bpf_get_current_cgroup_id();
	sample->pid = pid;
	sample->tid = pid_namespace_level ? visible_pid(task) : (__u32)task->pid;
	sample->cpu = bpf_get_smp_processor_id();
	sample->python_frame_count = kept_frames(scratch->python_frames, WIRE_MAX_PYTHON_FRAMES);
	sample->python_left_out = scratch->python_frames - sample->python_frame_count;
	sample->entries_left_out = scratch->entries_left_out;
	sample->kernel_frame_count = scratch->kernel_frames;
	sample->user_frame_count = kept_frames(scratch->user_frames, WIRE_MAX_USER_FRAMES);
	sample->user_left_out = scratch->user_frames - sample->user_frame_count;
	sample->evaluations_left_out = scratch->evaluations_left_out;
	sample->stop = scratch->stop;
	sample->flags = in_kernel ? WIRE_SAMPLE_KERNEL_MODE : 0;
	sample->wait = WIRE_WAIT_NONE;
	sample->reserved = 0;
	sample->waited_ns = sample->runnable_ns = 0;
	sample->exec_id = task->self_exec_id;
	fill_python(scratch, sample);
	bpf_core_read(sample->thread_name, sizeof(sample->thread_name), &task->comm);
	BPF_CORE_READ_INTO(&sample->process_name, task, group_leader, comm);
}

static __always_inline bool is_executing(struct task_struct *task)
{
	return bpf_core_field_exists(task->in_execve) &&
	       BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

/* Half-way through execve the registers are the old program's and the memory is the new one's. */
static __always_inline bool is_between_programs(struct walk *walk)
{
	__u64 word;

	return is_executing(walk->task) &&
	       READ_USER(walk->task, &word, sizeof(word), walk->scratch->registers.sp);
}

/* The sample has the address at hand and nothing else; when it has executed a program, not even
 * that. */
static __always_inline void walk_without_owner(struct walk *walk)
{
	struct scratch *scratch = walk->scratch;
	__u64 *frames = (__u64 *)(scratch->record + sizeof(struct wire_sample));

	scratch->owner_known = 0;
	scratch->stop = WIRE_STOP_NO_USER_STACK;
	if (is_executing(walk->task))
		return;
	frames[frame_words(scratch) & (MAX_FRAME_WORDS - 1)] = scratch->registers.pc;
	scratch->user_frames = 1;
	scratch->stop = WIRE_STOP_NO_MAPPING;
}

static __always_inline void walk_user_stack(struct walk *walk)
{
	const struct sampler_process *owner = walk->process;
	struct scratch *scratch = walk->scratch;

	/* The pointer itself is tested: of a flag the verifier does not know what it means. */
	if (!owner || !owner->space) {
		walk_without_owner(walk);
		return;
	}
	scratch->owner = *owner;
	start_walk(scratch);
	bpf_loop(WIRE_MAX_USER_DEPTH, walk_frame, walk, 0);
	if (scratch->stop != WIRE_STOP_COMPLETE && is_between_programs(walk)) {
		scratch->stop = WIRE_STOP_NO_USER_STACK;
		scratch->user_frames = 0;
	}
}

/*
 * Takes both stacks of the walk's task, kernel frames being in the record already. Returns the
 * length of the record without a stack copy.
 */
static __always_inline __u64 take_stacks(
	struct walk *walk, struct sampler_process *process, __u32 pid, bool in_kernel)
{
	struct scratch *scratch = walk->scratch;
	__u32 python = process ? process->python : 0;

	walk->process = process;
	scratch->user_frames = scratch->python_frames = 0;
	scratch->evaluations_left_out = scratch->entries_left_out = 0;
	scratch->owner_known = 1;
	scratch->python.reason = WIRE_PYTHON_NONE;
	scratch->stop = read_user_registers(scratch, walk->task);
	walk->python = NULL;
	if (python)
		walk->python = bpf_map_lookup_elem(&interpreters, &python);
	if (scratch->stop == WIRE_STOP_COMPLETE) {
		walk_python(walk);
		walk_user_stack(walk);
	}
	fill_record(scratch, walk->task, pid, in_kernel);
	((struct wire_sample *)scratch->record)->python_interpreter =
		walk->python ? walk->python->interpreter : 0;
	return sizeof(struct wire_sample) +
	       (frame_words(scratch) + kept_frames(scratch->user_frames, WIRE_MAX_USER_FRAMES)) * 8;
}

/*
 * What is new in a process is in the side-band rings already: the sooner the collector looks, the
 * fewer stacks have to be copied. CPUs that ask at once may wake it twice.
 */
static __always_inline bool must_wake(const struct scratch *scratch, __u64 now_ns)
{
	if (scratch->owner_known && scratch->stop != WIRE_STOP_NO_MAPPING)
		return false;
	if (now_ns - woken_ns < SAMPLER_WAKE_NS)
		return false;
	woken_ns = now_ns;
	return true;
}

/* Adds a stack copy where user space has to unwind, and hands the record over. */
static __always_inline int send_sample(struct walk *walk, __u64 length, __u64 now_ns)
{
	struct scratch *scratch = walk->scratch;
	struct wire_sample *sample = (struct wire_sample *)scratch->record;
	__u64 waiting_bytes, flags;
	bool is_woken = false;

	sample->time_ns = now_ns;
	waiting_bytes = bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA);
	if ((scratch->stop == WIRE_STOP_NO_TABLE || scratch->stop == WIRE_STOP_NO_MAPPING) &&
		may_copy_stack(walk, now_ns, waiting_bytes)) {
		length = copy_stack(walk, length);
		sample->flags |= WIRE_SAMPLE_STACK_COPY;
		count(SAMPLER_COUNT_COPIES, 1);
		is_woken = must_wake(scratch, now_ns);
	}
	if (length > RECORD_BYTES)
		return 0;
	sample->record.length_bytes = length;
	flags = is_woken || waiting_bytes >= wakeup_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
	if (bpf_ringbuf_output(&samples, scratch->record, length, flags)) {
		count(SAMPLER_COUNT_LOST, 1);
		return 0;
	}
	count(SAMPLER_COUNT_SAMPLES, 1);
	count(SAMPLER_COUNT_FRAMES, scratch->user_frames);
	count(SAMPLER_COUNT_PYTHON_FRAMES, scratch->python_frames);
	return 1;
}
