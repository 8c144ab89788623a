/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/launch/memo.h"

#include <string.h>

/* In words of the memo; its marks' values follow, and then their places, four in a word. */
struct entry {
	uint64_t key;
	uint64_t same_as;
	uint32_t next;                     /* 0: the last */
	uint16_t mark_count, stored_count; /* now, and at first: it has room for as many */
	bool is_learnt;
	uint16_t word_count; /* of the stack */
	uint64_t first;      /* the address of its first word */
};

#define ENTRY_WORDS (sizeof(struct entry) / sizeof(uint64_t))

static uint64_t *values_of(struct entry *entry)
{
	return (uint64_t *)(entry + 1);
}

static uint16_t *places_of(struct entry *entry)
{
	return (uint16_t *)(values_of(entry) + entry->mark_count);
}

static size_t words_of(uint32_t mark_count)
{
	return ENTRY_WORDS + mark_count + (mark_count + 3) / 4;
}

static struct entry *entry_at(struct launch_memo *memo, uint32_t at)
{
	return (struct entry *)&memo->words[at];
}

static uint32_t *head_of(struct launch_memo *memo, uint64_t key)
{
	return &memo->heads[(key * 0x9e3779b97f4a7c15ULL) >> 54 & (LAUNCH_MEMO_HEADS - 1)];
}

static bool is_same(struct entry *entry, const struct launch_stack_view *stack)
{
	const uint64_t *values = values_of(entry);
	const uint16_t *places = places_of(entry);

	if (entry->word_count != stack->count)
		return false;
	for (uint32_t i = 0; i < entry->mark_count; i++) {
		if (stack->words[places[i]] != values[i])
			return false;
	}
	return true;
}

uint64_t *launch_memo_find(
	struct launch_memo *memo, uint64_t key, const struct launch_stack_view *stack)
{
	for (uint32_t at = *head_of(memo, key); at;) {
		struct entry *entry = entry_at(memo, at);

		if (entry->key == key && is_same(entry, stack))
			return &entry->same_as;
		at = entry->next;
	}
	return NULL;
}

/* ---- marks ---- */

static bool is_code(const struct launch_stack_view *stack, uint64_t address)
{
	uint32_t low = 0, high = stack->range_count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (address < stack->ranges[middle].start)
			high = middle;
		else if (address >= stack->ranges[middle].end)
			low = middle + 1;
		else
			return true;
	}
	return false;
}

/* A frame pointer points at the one that it was saved over, below a return address. */
static bool is_frame_pointer(const struct launch_stack_view *stack, size_t at)
{
	uint64_t first = (uint64_t)(uintptr_t)stack->words, value = stack->words[at];
	uint64_t place = (value - first) / sizeof(uint64_t);

	return value % sizeof(uint64_t) == 0 && value > first && place > at &&
	       place + 1 < stack->count && is_code(stack, stack->words[place + 1]);
}

/*
 * Puts the stack's marks behind an entry; false when there are too many. Our own frames come first:
 * further up our addresses are left from launches before.
 */
static bool find_marks(const struct launch_stack_view *stack, uint64_t *values, uint16_t *places,
	uint32_t *ret_count)
{
	uint64_t lowest = stack->range_count ? stack->ranges[0].start : UINT64_MAX;
	bool is_beyond_own = false;
	uint32_t count = 0;

	for (size_t i = 0; i < stack->count; i++) {
		uint64_t value = stack->words[i];
		bool is_own = value >= stack->own.start && value < stack->own.end;

		if (value < lowest || (is_own && is_beyond_own))
			continue;
		if (!is_own && is_code(stack, value))
			is_beyond_own = true;
		else if (!is_own && !is_frame_pointer(stack, i))
			continue;
		if (count == LAUNCH_MEMO_MAX_MARKS)
			return false;
		values[count] = value;
		places[count++] = (uint16_t)i;
	}
	*ret_count = count;
	return true;
}

static uint32_t chain_length(struct launch_memo *memo, uint64_t key)
{
	uint32_t length = 0;

	for (uint32_t at = *head_of(memo, key); at; at = entry_at(memo, at)->next)
		length += entry_at(memo, at)->key == key;
	return length;
}

void launch_memo_add(struct launch_memo *memo, uint64_t key, const struct launch_stack_view *stack,
	uint64_t same_as)
{
	const uint32_t longest = ENTRY_WORDS + LAUNCH_MEMO_MAX_MARKS + LAUNCH_MEMO_MAX_MARKS / 4;
	struct entry *entry;
	uint64_t *values;
	uint32_t count;

	if (!memo->used)
		memo->used = ENTRY_WORDS; /* a place of 0 is none */
	if (memo->used + longest > LAUNCH_MEMO_WORDS) {
		launch_memo_clear(memo);
		return;
	}
	if (chain_length(memo, key) >= LAUNCH_MEMO_CHAIN)
		return;
	entry = entry_at(memo, memo->used);
	values = (uint64_t *)(entry + 1);
	if (!find_marks(stack, values, memo->places, &count))
		return;
	memcpy(values + count, memo->places, count * sizeof(*memo->places));
	*entry = (struct entry){
		.key = key,
		.same_as = same_as,
		.next = *head_of(memo, key),
		.mark_count = (uint16_t)count,
		.stored_count = (uint16_t)count,
		.word_count = (uint16_t)stack->count,
		.first = (uint64_t)(uintptr_t)stack->words,
	};
	*head_of(memo, key) = memo->used;
	memo->used += (uint32_t)words_of(count);
}

/* ---- learning ---- */

static struct entry *find_entry(struct launch_memo *memo, uint64_t same_as)
{
	for (uint32_t at = ENTRY_WORDS; at + ENTRY_WORDS <= memo->used;) {
		struct entry *entry = entry_at(memo, at);

		if (entry->same_as == same_as)
			return entry->is_learnt ? NULL : entry;
		at += (uint32_t)words_of(entry->stored_count);
	}
	return NULL;
}

static bool is_among(uint64_t address, const uint64_t *frames, size_t frame_count)
{
	for (size_t i = 0; i < frame_count; i++) {
		if (frames[i] == address)
			return true;
	}
	return false;
}

/* Is the marked word a frame pointer that was saved below one of the callers' return addresses? */
static bool points_below(const struct entry *entry, uint64_t value, const uint16_t *places,
	const uint64_t *values, const uint64_t *frames, size_t frame_count)
{
	uint64_t place = (value - entry->first) / sizeof(uint64_t) + 1;

	for (uint32_t i = 0; i < entry->mark_count; i++) {
		if (places[i] == place)
			return is_among(values[i] - 1, frames, frame_count);
	}
	return false;
}

/* Every mark of `known` is a mark of `other`, with the same value. */
static bool has_marks_of(struct entry *other, struct entry *known)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < known->mark_count; i++) {
		while (at < other->mark_count && places_of(other)[at] < places_of(known)[i])
			at++;
		if (at == other->mark_count || places_of(other)[at] != places_of(known)[i] ||
			values_of(other)[at] != values_of(known)[i])
			return false;
	}
	return other->word_count == known->word_count;
}

static void forget_same(struct launch_memo *memo, struct entry *known)
{
	for (uint32_t *link = head_of(memo, known->key); *link;) {
		struct entry *other = entry_at(memo, *link);

		if (other != known && other->key == known->key && has_marks_of(other, known))
			*link = other->next;
		else
			link = &other->next;
	}
}

void launch_memo_learn(struct launch_memo *memo, uint64_t same_as, const uint64_t *frames,
	size_t frame_count, const struct wire_code_range *own)
{
	struct entry *entry = find_entry(memo, same_as);
	uint32_t kept = 0, callers = 0;
	uint64_t *values;

	if (!entry)
		return;
	values = values_of(entry);
	memcpy(memo->places, places_of(entry), entry->mark_count * sizeof(*memo->places));
	for (uint32_t i = 0; i < entry->mark_count; i++)
		callers += is_among(values[i] - 1, frames, frame_count);
	/* The innermost frame is no caller, and one may be without a return address: a signal's. */
	if (callers + 2 < frame_count)
		return;
	for (uint32_t i = 0; i < entry->mark_count; i++)
		memo->is_kept[i] =
			is_among(values[i] - 1, frames, frame_count) ||
			(values[i] >= own->start && values[i] < own->end) ||
			points_below(entry, values[i], memo->places, values, frames, frame_count);
	for (uint32_t i = 0; i < entry->mark_count; i++) {
		if (!memo->is_kept[i])
			continue;
		values[kept] = values[i];
		memo->places[kept++] = memo->places[i];
	}
	entry->mark_count = (uint16_t)kept;
	entry->is_learnt = true;
	memcpy(places_of(entry), memo->places, kept * sizeof(*memo->places));
	forget_same(memo, entry);
}

void launch_memo_clear(struct launch_memo *memo)
{
	memset(memo->heads, 0, sizeof(memo->heads));
	memo->used = 0;
}
