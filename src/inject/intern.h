/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open hash of what has an id that the collector must know: kernel names by their text, streams
 * by their number. One thread at a time; it allocates.
 */
#pragma once

#include "inject/inject.h"

struct interned {
	uint64_t hash;    /* 0: free */
	char *text;       /* NULL: the hash is the key */
	uint32_t id;      /* 0: none yet */
	uint32_t sent_to; /* inject_image(): what one session knows, the next one does not */
};

struct interner {
	uint32_t id_base; /* WIRE_DEVICE_IDS_OF() */
	struct interned *table;
	size_t count, capacity; /* a power of two */
	uint32_t last_id;
};

/* By a number below 2^64 - 1; NULL: out of memory. A place is good until the next call. */
struct interned *intern_number(struct interner *interner, uint64_t number);
struct interned *intern_text(struct interner *interner, const char *text);
bool interned_is_sent(const struct interned *place);
/* Its id, which is given now where there is none; sent when that is said. */
uint32_t interned_id(struct interner *interner, struct interned *place);
void interned_set_sent(struct interned *place);
