/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/writer/sampled.h"

#include <string.h>

#define WORD_BITS 64

void sampled_done(struct sampled *sampled)
{
	array_done(&sampled->latest);
	array_done(&sampled->callstacks);
	map_u64_done(&sampled->places);
}

static uint64_t place_key(capture_id mapping, uint64_t rel_pc)
{
	return hash_u64(rel_pc ^ hash_u64(mapping));
}

int sampled_interned(
	struct sampled *sampled, capture_id callstack, const capture_id *frames, size_t count)
{
	int r;

	sampled->latest_callstack = 0;
	array_clear(&sampled->latest);
	r = array_reserve(&sampled->latest, count);
	if (r < 0)
		return r;
	if (count)
		memcpy(sampled->latest.items, frames, count * sizeof(*frames));
	sampled->latest.count = count;
	sampled->latest_callstack = callstack;
	return 0;
}

int sampled_has(struct sampled *sampled, const struct interning *interning, capture_id callstack)
{
	size_t word = callstack / WORD_BITS;
	uint64_t bit = 1ULL << callstack % WORD_BITS;
	int r = 0;

	if (callstack != sampled->latest_callstack)
		return 0;
	while (r == 0 && sampled->callstacks.count <= word)
		r = array_append(&sampled->callstacks, 0);
	if (r < 0 || sampled->callstacks.items[word] & bit)
		return r;
	array_foreach (&sampled->latest, frame) {
		capture_id mapping;
		uint64_t rel_pc = interning_frame_place(interning, *frame, &mapping);

		if (r == 0)
			r = map_u64_set(&sampled->places, place_key(mapping, rel_pc), 1);
	}
	if (r == 0)
		sampled->callstacks.items[word] |= bit;
	return r;
}

bool sampled_knows(const struct sampled *sampled, capture_id mapping, uint64_t rel_pc)
{
	return map_u64_get(&sampled->places, place_key(mapping, rel_pc), NULL);
}
