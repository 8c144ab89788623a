/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges and marks that a program tells of, as an injected library writes them into the rings of
 * wire/ring.h. Names are texts: defined once in each process image, in whichever ring, and referred
 * to by id from then on; a ring may be read before the one that has the definition.
 */
#pragma once

#include "wire/record.h"

enum wire_range_record_type {
	WIRE_RECORD_RANGE_TEXT = 64,     /* struct wire_range_text */
	WIRE_RECORD_RANGE_CATEGORY = 65, /* struct wire_range_name; id: the category */
	WIRE_RECORD_RANGE_THREAD = 66,   /* struct wire_range_name; id: the tid */
	WIRE_RECORD_RANGE_FIELDS = 67,   /* struct wire_range_fields: of the event that follows */
	/* struct wire_range_event: */
	WIRE_RECORD_RANGE_PUSH = 68,
	WIRE_RECORD_RANGE_POP = 69,
	WIRE_RECORD_RANGE_MARK = 70,
	WIRE_RECORD_RANGE_THREAD_END = 71, /* the thread ended with pushed ranges */
	WIRE_RECORD_RANGE_START = 72,
	WIRE_RECORD_RANGE_END = 73, /* maybe on another thread */
	WIRE_RECORD_COUNTER = 74,   /* struct wire_counter */
	/* struct wire_range_short: */
	WIRE_RECORD_RANGE_SHORT_PUSH = 75,
	WIRE_RECORD_RANGE_SHORT_POP = 76,
	WIRE_RECORD_RANGE_LAST = WIRE_RECORD_RANGE_SHORT_POP,
};

/* Longer names are cut. */
#define WIRE_RANGE_TEXT_BYTES 1024
/* Of one record. */
#define WIRE_RANGE_PIECE_BYTES 480
#define WIRE_RANGE_MAX_FIELDS  16

/* Instead of a depth. */
#define WIRE_RANGE_NO_DEPTH  0xffff /* not known: one more than the last, or the last */
#define WIRE_RANGE_NO_RANGE  0xfffe /* a pop without a push */
#define WIRE_RANGE_MAX_DEPTH 0xfff0

/*
 * A piece of a text, `bytes` of it follow, padded to 8 bytes, without a terminator. Its pieces come
 * in order in one ring.
 */
struct wire_range_text {
	struct wire_record record;
	__u32 image; /* which of the programs that the process was: see wire_range_event */
	__u32 id;    /* not 0 */
	__u16 at, bytes, total;
	__u16 is_cut; /* there was more */
};

_Static_assert(sizeof(struct wire_range_text) == 24, "wire_range_text is part of the format");

struct wire_range_name {
	struct wire_record record;
	__u32 image;
	__u32 name;   /* id of a text */
	__u32 domain; /* the text that names it; 0: the default one */
	__u32 id;
};

_Static_assert(sizeof(struct wire_range_name) == 24, "wire_range_name is part of the format");

struct wire_range_event {
	struct wire_record record;
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 tid;
	__u32 name;     /* id of a text; 0: none */
	__u32 domain;   /* the text that names it; 0: the default one */
	__u32 category; /* 0: none */
	__u32 image;    /* ids mean nothing in the next program that the process executes */
	/* How many ranges the thread has open around this one in its domain, or the above. */
	__u16 depth;
	__u16 reserved;
	__u64 id; /* of START and END, unique in the process; else 0 */
};

_Static_assert(sizeof(struct wire_range_event) == 48, "wire_range_event is part of the format");

/*
 * Most pushes and pops: a wire_range_event without a category, whose depth is the record's
 * `reserved`. The two of a range take one cache line.
 */
struct wire_range_short {
	struct wire_record record;
	__u64 time_ns;
	__u32 tid, image, name, domain;
};

_Static_assert(sizeof(struct wire_range_short) == 32, "wire_range_short is part of the format");

/* What a program counts, at a moment. */
struct wire_counter {
	struct wire_record record;
	__u64 time_ns;
	__u32 tid, image;
	__u32 name; /* id of a text */
	__u32 reserved;
	__u64 value; /* the bits of a double */
};

_Static_assert(sizeof(struct wire_counter) == 40, "wire_counter is part of the format");

enum wire_range_value {
	WIRE_RANGE_U64 = 1,
	WIRE_RANGE_I64 = 2,
	WIRE_RANGE_DOUBLE = 3, /* its bits */
	WIRE_RANGE_TEXT = 4,   /* id of a text */
	WIRE_RANGE_VALUE_MAX
};

struct wire_range_field {
	__u32 name; /* id of a text; 0: the event's one payload */
	__u32 type; /* enum wire_range_value */
	__u64 value;
};

/* The payload of the event of this thread and moment. `count` fields follow. */
struct wire_range_fields {
	struct wire_record record;
	__u64 time_ns;
	__u32 tid;
	__u32 image;
	__u32 count;
	__u32 reserved;
};

_Static_assert(sizeof(struct wire_range_field) == 16, "wire_range_field is part of the format");
_Static_assert(sizeof(struct wire_range_fields) == 32, "wire_range_fields is part of the format");
