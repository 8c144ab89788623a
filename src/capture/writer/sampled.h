/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which code samples have been in. Perfetto knows the frames of samples alone, so that symbols of
 * others are errors to it.
 */
#pragma once

#include "capture/writer/interning.h"

struct sampled {
	ARRAY_OF(capture_id) latest; /* frames of the callstack that was interned last */
	capture_id latest_callstack;
	ARRAY_OF(uint64_t) callstacks; /* bits, by id: its frames are all in `places` */
	struct map_u64 places;         /* of frames: mappings and addresses, hashed */
};

void sampled_done(struct sampled *sampled);
/* A callstack was interned, for whatever will have it. Returns 0 or -ENOMEM. */
int sampled_interned(
	struct sampled *sampled, capture_id callstack, const capture_id *frames, size_t count);
/* A sample has the callstack, which was interned last or is an earlier sample's. */
int sampled_has(struct sampled *sampled, const struct interning *interning, capture_id callstack);
/* Is there a sample with a frame of that place? */
bool sampled_knows(const struct sampled *sampled, capture_id mapping, uint64_t rel_pc);
