/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the NVTX door share: texts by id, and how an event is written. */
#pragma once

#include "inject/inject.h"
#include "inject/nvtx/abi.h"
#include "wire/range.h"

/* Once or again: opens the session; false when there is none. */
bool nvtx_open(void);
/* The same with the session in a folder: see inject_open_folder(). */
bool nvtx_open_folder(const char *path);

/* ---- texts: text.c ---- */

/* A name that was seen: never freed, so that its address is the program's handle for it. */
struct nvtx_text {
	uint32_t id, hash;
	_Atomic bool is_defined; /* the collector has it */
	bool is_cut;
	uint16_t length;
	char bytes[];
};

/* Once; false when there is no memory for them. */
bool nvtx_texts_open(void);
/*
 * The text of these bytes, of WIRE_RANGE_TEXT_BYTES at most; "[too many names]" when the space for
 * them is used up. Without locks.
 */
struct nvtx_text *nvtx_text_of(const char *bytes, size_t length, bool is_cut);
/* The same of a terminated text; NULL of NULL. */
struct nvtx_text *nvtx_text_ascii(const char *text);
struct nvtx_text *nvtx_text_wide(const wchar_t *text);
/* NULL of what is no text of ours. */
struct nvtx_text *nvtx_text_registered(void *handle);
/* To another collector: all texts are sent again. */
void nvtx_texts_forget(void);
/* For nvtx_text_id(). */
void nvtx_text_define(struct nvtx_text *text);

/* Tells the collector once; to be called where the text is used. 0 of NULL. */
static inline uint32_t nvtx_text_id(struct nvtx_text *text)
{
	if (!text)
		return 0;
	if (!atomic_load_explicit(&text->is_defined, memory_order_relaxed))
		nvtx_text_define(text);
	return text->id;
}

/* ---- events: event.c ---- */

struct nvtx_event {
	nvtx_handle domain;
	struct nvtx_text *name;
	uint32_t category;
	uint64_t id;
	uint32_t field_count;
	struct wire_range_field fields[WIRE_RANGE_MAX_FIELDS];
};

/* For nvtx_enter(). */
bool nvtx_enter_open(void);

/*
 * Around all that a call does: false when nothing is recorded. Each nvtx_enter() that was true
 * needs its nvtx_leave().
 */
static inline bool nvtx_enter(void)
{
	return inject_is_open() && nvtx_enter_open();
}

void nvtx_leave(void);
/* The name as it was seen last at this address, when it still stands there. */
struct nvtx_text *nvtx_text_recent(const char *text);
/* The event's level, or what NVTX wants instead. */
int nvtx_push(const struct nvtx_event *event);
int nvtx_pop(const struct nvtx_event *event);
/*
 * The same for what has nothing but a name, nvtx_enter() and nvtx_leave() included. A NULL domain
 * is sonde's own.
 */
void nvtx_push_name(const char *name);
void nvtx_push_text(nvtx_handle domain, struct nvtx_text *name);
void nvtx_pop_last(nvtx_handle domain);
void nvtx_mark(struct nvtx_event *event);
/* The range's id. */
uint64_t nvtx_start(struct nvtx_event *event);
void nvtx_end(struct nvtx_event *event);
void nvtx_counter(struct nvtx_text *name, double value);
/* A definition: WIRE_RECORD_RANGE_CATEGORY or _THREAD. */
void nvtx_define(uint16_t type, nvtx_handle domain, uint32_t id, struct nvtx_text *name);
/* Of sonde's own API: named when the texts are opened. */
nvtx_handle nvtx_own_domain(void);
void nvtx_name_own_domain(struct nvtx_text *name);
/* NULL when there are too many, which is the default domain. */
nvtx_handle nvtx_domain_of(struct nvtx_text *name);

/* To another collector: what threads know of their rings is not so any more. */
void nvtx_threads_forget(void);

/* ---- payloads with schemas: payload.c ---- */

/*
 * Reads what the data's schemas say into the event's fields; gives it the schema's name, or that of
 * the entry that is the message, when it has none.
 */
void nvtx_payload_read(
	struct nvtx_event *event, const struct nvtx_payload_data *data, size_t count);
