/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames of a deep stack a sample keeps, see wire/sample.h. For BPF and for user space. */
#pragma once

#include <linux/types.h>

/* Frames of one kind that are in the record, of all that were walked. */
static inline __attribute__((always_inline)) __u32 kept_frames(__u32 walked, __u32 room)
{
	return walked < room ? walked : room;
}

/* The place of a frame among those of its kind: the last `outer` of `room` places are a ring. */
static inline __attribute__((always_inline)) __u32 frame_place(__u32 index, __u32 room, __u32 outer)
{
	__u32 inner = room - outer;

	return index < inner ? index : inner + ((index - inner) & (outer - 1));
}
