/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pipeline/range_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/map.h"

/* What no honest program has more of: open at once in one stack, and of one process. */
#define MAX_LEVELS 512
#define MAX_LANES  1024
#define MAX_STACKS (1U << 18)
/* Pids have 22 bits. */
#define MAX_RANGE_ID (1ULL << 42)

struct stack_key {
	uint32_t pid, tid;
	const char *domain; /* interned: equal texts are one pointer */
};

/* The depths of the open ranges, as the program counts them. */
struct level_stack {
	struct stack_key key;
	ARRAY_OF(uint16_t) levels;
};

struct process_ranges {
	uint32_t image;
	uint64_t lanes[MAX_LANES / 64]; /* taken ones */
};

struct range_stacks {
	struct intern keys;
	ARRAY_OF(struct level_stack) stacks; /* by id of `keys` */
	struct map_u64 started;              /* started_key() → lane */
	struct map_u64 process_index;
	ARRAY_OF(struct process_ranges) processes;
	uint64_t open;
};

struct range_stacks *range_stacks_new(void)
{
	return calloc(1, sizeof(struct range_stacks));
}

struct range_stacks *range_stacks_free(struct range_stacks *stacks)
{
	if (!stacks)
		return NULL;
	array_foreach (&stacks->stacks, stack)
		array_done(&stack->levels);
	array_done(&stacks->stacks);
	map_u64_done(&stacks->started);
	array_done(&stacks->processes);
	map_u64_done(&stacks->process_index);
	intern_done(&stacks->keys);
	free(stacks);
	return NULL;
}

static uint64_t started_key(uint32_t pid, uint64_t id)
{
	return (uint64_t)pid << 42 | id;
}

bool range_stacks_is_started(const struct range_stacks *stacks, uint32_t pid, uint64_t id)
{
	return id < MAX_RANGE_ID && map_u64_get(&stacks->started, started_key(pid, id), NULL);
}

uint64_t range_stacks_open_count(const struct range_stacks *stacks)
{
	return stacks->open;
}

/* ---- the stacks of threads ---- */

/* -E2BIG: there are too many. */
static int find_stack(
	struct range_stacks *stacks, const struct stack_key *key, struct level_stack **ret_stack)
{
	uint32_t id;
	int result;

	if (stacks->stacks.count >= MAX_STACKS &&
		!intern_find(&stacks->keys, key, sizeof(*key), &id))
		return -E2BIG;
	result = intern_add(&stacks->keys, key, sizeof(*key), &id);
	if (result > 0)
		result = array_append(&stacks->stacks, (struct level_stack){.key = *key});
	if (result < 0)
		return result;
	*ret_stack = &stacks->stacks.items[id];
	return 0;
}

/* Ends the innermost range; `out` is the event that shows that it has ended. */
static int end_top(struct range_stacks *stacks, struct capture_writer *writer,
	struct level_stack *stack, const struct capture_range_event *out)
{
	const struct capture_range_event end = {
		.time_ns = out->time_ns,
		.pid = stack->key.pid,
		.tid = stack->key.tid,
		.kind = CAPTURE_RANGE_END,
		.domain = stack->key.domain,
		.name = "",
		.category = "",
	};

	stack->levels.count--;
	stacks->open--;
	return capture_writer_range(writer, &end);
}

/* Those above a level have ended, though their ends were lost. */
static int unwind(struct range_stacks *stacks, struct capture_writer *writer,
	struct level_stack *stack, uint32_t level, const struct capture_range_event *out,
	uint64_t *count)
{
	int result = 0;

	while (result == 0 && stack->levels.count &&
		stack->levels.items[stack->levels.count - 1] >= level) {
		(*count)++;
		result = end_top(stacks, writer, stack, out);
	}
	return result;
}

static int push(struct range_stacks *stacks, struct capture_writer *writer,
	struct level_stack *stack, uint16_t depth, struct capture_range_event *out,
	struct capture_range_stats *account)
{
	size_t count = stack->levels.count;
	int result = 0;

	if (depth == WIRE_RANGE_NO_DEPTH)
		depth = count ? (uint16_t)(stack->levels.items[count - 1] + 1) : 0;
	else
		result = unwind(stacks, writer, stack, depth, out, &account->ends_lost);
	if (result < 0)
		return result;
	if (stack->levels.count >= MAX_LEVELS) {
		account->too_many++;
		return 0;
	}
	result = array_append(&stack->levels, depth);
	if (result < 0)
		return result;
	stacks->open++;
	account->ranges++;
	out->kind = CAPTURE_RANGE_BEGIN;
	return capture_writer_range(writer, out);
}

static int pop(struct range_stacks *stacks, struct capture_writer *writer,
	struct level_stack *stack, uint16_t depth, struct capture_range_event *out,
	struct capture_range_stats *account)
{
	int result = 0;

	if (depth == WIRE_RANGE_NO_DEPTH && stack->levels.count)
		depth = stack->levels.items[stack->levels.count - 1];
	if (depth < WIRE_RANGE_NO_RANGE)
		result = unwind(stacks, writer, stack, depth + 1U, out, &account->ends_lost);
	if (result < 0)
		return result;
	if (!stack->levels.count || stack->levels.items[stack->levels.count - 1] != depth) {
		/* Beyond the levels that are kept, its push was counted. */
		account->unbalanced_ends += stack->levels.count < MAX_LEVELS;
		return 0;
	}
	stack->levels.count--;
	stacks->open--;
	out->kind = CAPTURE_RANGE_END;
	return capture_writer_range(writer, out);
}

/* All stacks of a thread, or with tid 0 of a process. */
static int close_stacks(struct range_stacks *stacks, struct capture_writer *writer, uint32_t pid,
	uint32_t tid, const struct capture_range_event *out, uint64_t *count)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < stacks->stacks.count; i++) {
		struct level_stack *stack = &stacks->stacks.items[i];

		if (stack->key.pid == pid && (!tid || stack->key.tid == tid))
			result = unwind(stacks, writer, stack, 0, out, count);
	}
	return result;
}

/* ---- ranges of processes ---- */

/* 0: all are taken. */
static uint32_t take_lane(struct process_ranges *process)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(process->lanes); i++) {
		uint64_t free_lanes = ~process->lanes[i];

		if (free_lanes) {
			uint32_t bit = (uint32_t)__builtin_ctzll(free_lanes);

			process->lanes[i] |= 1ULL << bit;
			return i * 64 + bit + 1;
		}
	}
	return 0;
}

static void return_lane(struct process_ranges *process, uint64_t lane)
{
	process->lanes[(lane - 1) / 64] &= ~(1ULL << (lane - 1) % 64);
}

static int start(struct range_stacks *stacks, struct capture_writer *writer,
	struct process_ranges *process, uint64_t id, struct capture_range_event *out,
	struct capture_range_stats *account)
{
	int result;

	if (id >= MAX_RANGE_ID || range_stacks_is_started(stacks, out->pid, id)) {
		account->records_damaged++;
		return 0;
	}
	out->lane = take_lane(process);
	if (!out->lane) {
		account->too_many++;
		return 0;
	}
	result = map_u64_set(&stacks->started, started_key(out->pid, id), out->lane);
	if (result < 0)
		return result;
	stacks->open++;
	account->ranges++;
	out->kind = CAPTURE_RANGE_BEGIN;
	return capture_writer_range(writer, out);
}

static int end(struct range_stacks *stacks, struct capture_writer *writer,
	struct process_ranges *process, uint64_t id, struct capture_range_event *out,
	struct capture_range_stats *account)
{
	uint64_t lane;

	if (id >= MAX_RANGE_ID ||
		!map_u64_get(&stacks->started, started_key(out->pid, id), &lane)) {
		account->unbalanced_ends++;
		return 0;
	}
	map_u64_remove(&stacks->started, started_key(out->pid, id));
	return_lane(process, lane);
	stacks->open--;
	out->lane = (uint32_t)lane;
	out->kind = CAPTURE_RANGE_END;
	return capture_writer_range(writer, out);
}

/* ---- processes ---- */

/* The program is another one: what the last one had open is over. */
static int close_process(struct range_stacks *stacks, struct capture_writer *writer, uint32_t pid,
	struct process_ranges *process, const struct capture_range_event *out,
	struct capture_range_stats *account)
{
	struct capture_range_event ending = {.time_ns = out->time_ns,
		.pid = pid,
		.kind = CAPTURE_RANGE_END,
		.domain = "",
		.name = "",
		.category = ""};
	ARRAY_OF(uint64_t) keys = {0};
	size_t position = 0;
	uint64_t key, lane;
	int result = close_stacks(stacks, writer, pid, 0, out, &account->open_at_end);

	while (result == 0 && map_u64_next(&stacks->started, &position, &key, &lane)) {
		if (key >> 42 == pid)
			result = array_append(&keys, key);
	}
	for (size_t i = 0; result == 0 && i < keys.count; i++) {
		map_u64_get(&stacks->started, keys.items[i], &lane);
		map_u64_remove(&stacks->started, keys.items[i]);
		stacks->open--;
		account->open_at_end++;
		ending.lane = (uint32_t)lane;
		result = capture_writer_range(writer, &ending);
	}
	array_done(&keys);
	memset(process->lanes, 0, sizeof(process->lanes));
	return result;
}

/* What is counted as open at the end of a program is a matter of the program's, not of a window's.
 */
int range_stacks_cut(struct range_stacks *stacks, struct capture_writer *writer, uint64_t time_ns,
	struct capture_range_stats *account)
{
	const struct capture_range_event out = {.time_ns = time_ns};
	uint64_t open_at_end = account->open_at_end, key, index;
	size_t position = 0;
	int result = 0;

	while (result == 0 && stacks->open &&
		map_u64_next(&stacks->process_index, &position, &key, &index))
		result = close_process(stacks, writer, (uint32_t)key,
			&stacks->processes.items[index], &out, account);
	account->open_at_end = open_at_end;
	return result;
}

static int find_process(struct range_stacks *stacks, struct capture_writer *writer, uint32_t image,
	const struct capture_range_event *out, struct capture_range_stats *account,
	struct process_ranges **ret_process)
{
	uint64_t index;
	int result;

	if (!map_u64_get(&stacks->process_index, out->pid, &index)) {
		index = stacks->processes.count;
		result = array_append(&stacks->processes, (struct process_ranges){.image = image});
		if (result == 0)
			result = map_u64_set(&stacks->process_index, out->pid, index);
		*ret_process = &stacks->processes.items[index];
		return result;
	}
	*ret_process = &stacks->processes.items[index];
	if ((*ret_process)->image == image)
		return 0;
	(*ret_process)->image = image;
	return close_process(stacks, writer, out->pid, *ret_process, out, account);
}

static int write_push_or_pop(struct range_stacks *stacks, struct capture_writer *writer,
	const struct wire_range_event *event, struct capture_range_event *out,
	struct capture_range_stats *account)
{
	const struct stack_key key = {.pid = out->pid, .tid = out->tid, .domain = out->domain};
	struct level_stack *stack;
	int result = find_stack(stacks, &key, &stack);

	if (result == -E2BIG) {
		account->too_many++;
		return 0;
	}
	if (result < 0)
		return result;
	if (event->record.type == WIRE_RECORD_RANGE_PUSH)
		return push(stacks, writer, stack, event->depth, out, account);
	return pop(stacks, writer, stack, event->depth, out, account);
}

int range_stacks_write(struct range_stacks *stacks, struct capture_writer *writer,
	const struct wire_range_event *event, struct capture_range_event *out,
	struct capture_range_stats *account)
{
	struct process_ranges *process;
	int result = find_process(stacks, writer, event->image, out, account, &process);

	if (result < 0)
		return result;
	switch (event->record.type) {
	case WIRE_RECORD_RANGE_MARK:
		account->marks++;
		out->kind = CAPTURE_RANGE_MARK;
		return capture_writer_range(writer, out);
	case WIRE_RECORD_RANGE_START:
		return start(stacks, writer, process, event->id, out, account);
	case WIRE_RECORD_RANGE_END:
		return end(stacks, writer, process, event->id, out, account);
	case WIRE_RECORD_RANGE_THREAD_END:
		return close_stacks(
			stacks, writer, out->pid, out->tid, out, &account->open_at_thread_end);
	default:
		return write_push_or_pop(stacks, writer, event, out, account);
	}
}
