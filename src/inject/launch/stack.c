/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/launch/stack.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch/launch.h"
#include "inject/launch/copy.h"
#include "inject/launch/memo.h"
#include "inject/launch/python.h"

/* One in so many launches whose stack is known has it taken all the same. A power of two. */
#define CHECK_ONE_IN 64
/* Of so many launches at least half must be known, or so many go without being looked up. */
#define LOOKED_UP_AT_ONCE 256
#define GIVE_UP_FOR       1024
/* Below the main thread's stack nothing else is mapped for so long. */
#define MAIN_STACK_BYTES (64ULL << 20)

_Static_assert(sizeof(struct python_target) == WIRE_LAUNCH_TARGET_WORDS * sizeof(uint64_t),
	"the facts have room for it");

/* What a thread knows; the next owner of its ring gets the memory. */
struct launch_thread {
	uint32_t owner; /* tid */
	uint32_t sequence;
	bool is_busy, is_trusted, has_python;
	struct python_target python;
	uint64_t stack_start, stack_end;
	struct wire_code_range own_code;
	uint32_t random;
	uint32_t looked_up, found, passes; /* launches that are not looked up */
	bool was_passed;                   /* after the time before, too */
	uint64_t hints;                    /* that were read */
	uint64_t frames[WIRE_LAUNCH_HINT_FRAMES];
	struct launch_python_codes codes;
	struct launch_memo memo;
	struct launch_copy_memory copies;
};

/* One launch. */
struct launch {
	uint64_t correlation, time_ns;
	uint64_t key, python_frame;
	enum wire_python python;
	struct launch_stack_view stack;
};

extern void *__libc_stack_end;

static struct launch_thread *threads[WIRE_RING_COUNT];

/* ---- the thread ---- */

static void find_stack(struct launch_thread *thread)
{
	pthread_attr_t attributes;
	void *start;
	size_t bytes;

	thread->stack_start = thread->stack_end = 0;
	if (thread->owner == (uint32_t)getpid()) {
		thread->stack_end = (uint64_t)(uintptr_t)__libc_stack_end;
		thread->stack_start = thread->stack_end - MAIN_STACK_BYTES;
	} else if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
		if (pthread_attr_getstack(&attributes, &start, &bytes) == 0) {
			thread->stack_start = (uint64_t)(uintptr_t)start;
			thread->stack_end = thread->stack_start + bytes;
		}
		pthread_attr_destroy(&attributes);
	}
}

static struct launch_thread *make_thread(void)
{
	void *memory = mmap(NULL, sizeof(struct launch_thread), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* The calling thread's; NULL: it has no ring, or there is no memory. */
static struct launch_thread *own_thread(void)
{
	int ring = inject_ring_number();
	struct launch_thread *thread;
	int saved_errno;

	if (ring < 0)
		return NULL;
	thread = threads[ring];
	if (thread && thread->owner == inject_tid())
		return thread;
	saved_errno = errno;
	if (!thread)
		thread = threads[ring] = make_thread();
	if (thread) {
		thread->owner = thread->random = inject_tid();
		thread->sequence = 0;
		thread->is_busy = thread->is_trusted = false;
		thread->looked_up = thread->found = thread->passes = 0;
		thread->was_passed = false;
		memset(&thread->codes, 0, sizeof(thread->codes));
		memset(thread->copies.sent_codes, 0, sizeof(thread->copies.sent_codes));
		find_stack(thread);
	}
	errno = saved_errno;
	return thread;
}

static struct wire_code_range find_own_code(const struct wire_launch_facts *facts)
{
	uint64_t address = (uint64_t)(uintptr_t)inject_launch_stack;

	for (uint32_t i = 0; i < facts->code_range_count && i < WIRE_LAUNCH_CODE_RANGES; i++) {
		if (address >= facts->code_ranges[i].start && address < facts->code_ranges[i].end)
			return facts->code_ranges[i];
	}
	return (struct wire_code_range){0};
}

/* Takes over what the collector has reported since: what was known by older words is forgotten. */
static void adopt_facts(struct launch_thread *thread, const struct wire_launch_facts *facts)
{
	uint32_t sequence = atomic_load_explicit(&facts->sequence, memory_order_acquire);
	uint32_t python, range_count;
	int saved_errno = errno;

	if (sequence == thread->sequence)
		return;
	thread->is_trusted = false;
	launch_memo_clear(&thread->memo);
	python = facts->python;
	range_count = facts->code_range_count;
	memcpy(&thread->python, facts->python_target, sizeof(thread->python));
	thread->own_code = find_own_code(facts);
	atomic_thread_fence(memory_order_acquire);
	if (sequence % 2 ||
		atomic_load_explicit(&facts->sequence, memory_order_relaxed) != sequence)
		return;
	thread->sequence = sequence;
	thread->has_python = python == WIRE_LAUNCH_PYTHON_TARGET;
	thread->is_trusted =
		thread->own_code.end && range_count <= WIRE_LAUNCH_CODE_RANGES &&
		(python == WIRE_LAUNCH_PYTHON_NONE ||
			(thread->has_python && launch_python_is_there(&thread->python)));
	thread->has_python = thread->has_python && thread->is_trusted;
	errno = saved_errno;
}

static void read_hint(
	struct launch_thread *thread, const struct wire_launch_hint *hint, uint64_t number)
{
	uint64_t correlation, count;

	if (atomic_load_explicit(&hint->number, memory_order_acquire) != number)
		return;
	correlation = hint->correlation;
	count = hint->frame_count;
	if (count > WIRE_LAUNCH_HINT_FRAMES)
		return;
	memcpy(thread->frames, hint->frames, count * sizeof(*thread->frames));
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&hint->number, memory_order_relaxed) == number)
		launch_memo_learn(
			&thread->memo, correlation, thread->frames, count, &thread->own_code);
}

/* Stacks that the collector has unwound, this thread's among them. */
static void read_hints(struct launch_thread *thread, const struct wire_launch_facts *facts)
{
	uint64_t count = atomic_load_explicit(&facts->hint_count, memory_order_acquire);

	if (count == thread->hints)
		return;
	if (count - thread->hints > WIRE_LAUNCH_HINTS)
		thread->hints = count - WIRE_LAUNCH_HINTS;
	for (; thread->hints < count; thread->hints++)
		read_hint(thread, &facts->hints[thread->hints % WIRE_LAUNCH_HINTS],
			thread->hints + 1);
}

static uint32_t next_random(struct launch_thread *thread)
{
	thread->random ^= thread->random << 13;
	thread->random ^= thread->random >> 17;
	thread->random ^= thread->random << 5;
	return thread->random;
}

/* ---- the launch ---- */

/*
 * Whether the launch can be identified by its key, which is made. The frame pointer of the caller
 * may be any number, where it is not used as one.
 */
static bool make_key(struct launch_thread *thread, const struct wire_launch_facts *facts,
	const uint64_t *frame, struct launch *launch)
{
	uint64_t address = (uint64_t)(uintptr_t)frame, python_hash = 0;
	uint64_t words = (thread->stack_end - address) / sizeof(uint64_t);

	if (!thread->is_trusted || words > LAUNCH_MEMO_MAX_STACK ||
		launch->python == WIRE_PYTHON_UNKNOWN)
		return false;
	if (launch->python_frame && !launch_python_hash(&thread->python, &thread->codes,
					    launch->python_frame, &python_hash))
		return false;
	launch->key = (address ^ python_hash) * 0x9e3779b97f4a7c15ULL;
	if (frame[0] > address && frame[0] < thread->stack_end)
		launch->key ^= frame[0] * 0xc4ceb9fe1a85ec53ULL;
	launch->stack = (struct launch_stack_view){
		.words = frame + 1,
		.count = words - 1,
		.ranges = facts->code_ranges,
		.range_count = facts->code_range_count,
		.own = thread->own_code,
	};
	return true;
}

/* False when there is none of it. */
static bool take_stack(
	struct launch_thread *thread, enum wire_launch_stacks how, const struct launch *launch)
{
	const struct launch_copy copy = {
		.correlation = launch->correlation,
		.time_ns = launch->time_ns,
		.stack_end = thread->stack_end,
		.python = thread->has_python ? &thread->python : NULL,
		.python_frame = launch->python_frame,
		.python_reason = launch->python,
	};

	if (how == WIRE_LAUNCH_STACKS_MARKER) {
		sonde_launch_marker(launch->correlation);
		return true;
	}
	if (launch_copy_write(&copy, &thread->copies))
		return true;
	inject_count_no_copy();
	return false;
}

static void tell_same(const struct launch *launch, uint64_t same_as, bool is_checked)
{
	struct wire_launch_same same = {
		.record = {.type = is_checked ? WIRE_RECORD_LAUNCH_CHECK : WIRE_RECORD_LAUNCH_SAME,
			.length_bytes = sizeof(same)},
		.correlation = launch->correlation,
		.same_as = same_as,
		.time_ns = launch->time_ns,
	};

	inject_write(&same.record);
}

/* Looking up, and storing what was not found, costs more than it gives where stacks differ. */
static void judge(struct launch_thread *thread)
{
	if (++thread->looked_up < LOOKED_UP_AT_ONCE)
		return;
	if (thread->found < LOOKED_UP_AT_ONCE / 2) {
		thread->passes = GIVE_UP_FOR;
		if (thread->was_passed)
			launch_memo_clear(&thread->memo);
	}
	thread->was_passed = thread->passes;
	thread->looked_up = thread->found = 0;
}

/* True when the stack was taken. */
static bool look_up(struct launch_thread *thread, enum wire_launch_stacks how,
	const struct wire_launch_facts *facts, const struct launch *launch)
{
	bool is_taken = false;
	uint64_t *same_as;

	read_hints(thread, facts);
	same_as = launch_memo_find(&thread->memo, launch->key, &launch->stack);
	thread->found += same_as != NULL;
	if (same_as && next_random(thread) % CHECK_ONE_IN) {
		tell_same(launch, *same_as, false);
	} else if (take_stack(thread, how, launch)) {
		is_taken = true;
		if (same_as) {
			tell_same(launch, *same_as, true);
			*same_as = launch->correlation;
		} else if (atomic_load_explicit(&facts->sequence, memory_order_acquire) ==
			   thread->sequence) {
			launch_memo_add(
				&thread->memo, launch->key, &launch->stack, launch->correlation);
		}
	}
	judge(thread);
	return is_taken;
}

/* Kept out of its callers, for its frame is where the stack begins. */
__attribute__((noinline)) bool inject_launch_stack(uint64_t correlation, uint64_t time_ns)
{
	const struct wire_gate *gate = atomic_load_explicit(&inject_gate, memory_order_relaxed);
	enum wire_launch_stacks how = atomic_load_explicit(&gate->stacks, memory_order_relaxed);
	const uint64_t *frame = __builtin_frame_address(0);
	uint64_t address = (uint64_t)(uintptr_t)frame;
	struct launch launch = {.correlation = correlation, .time_ns = time_ns};
	const struct wire_launch_facts *facts;
	struct launch_thread *thread;
	bool is_taken;

	if (how == WIRE_LAUNCH_STACKS_OFF)
		return false;
	thread = own_thread();
	/* A signal handler's launch within one, a stack that is not the thread's: nothing is known.
	 */
	if (!thread || thread->is_busy || address < thread->stack_start ||
		address >= thread->stack_end) {
		if (how == WIRE_LAUNCH_STACKS_MARKER)
			sonde_launch_marker(correlation);
		else
			inject_count_no_copy();
		return true;
	}
	thread->is_busy = true;
	facts = inject_facts();
	adopt_facts(thread, facts);
	if (thread->has_python)
		launch.python = launch_python_first_frame(&thread->python, &launch.python_frame);
	if (thread->passes) {
		thread->passes--;
		is_taken = take_stack(thread, how, &launch);
	} else if (atomic_load_explicit(&gate->memo_is_off, memory_order_relaxed) ||
		   !make_key(thread, facts, frame, &launch)) {
		is_taken = take_stack(thread, how, &launch);
	} else {
		is_taken = look_up(thread, how, facts, &launch);
	}
	thread->is_busy = false;
	return is_taken;
}
