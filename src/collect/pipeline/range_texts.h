/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts that ranges refer to by ids, each of one process image, and the names of categories.
 * Long ones come in pieces.
 */
#pragma once

#include <stdbool.h>

#include "base/array.h"
#include "base/map.h"
#include "wire/range.h"

struct partial_text;

/* Zero-initialise. */
struct range_texts {
	struct intern texts;
	size_t text_bytes;
	struct intern names;           /* struct name_key → name_texts.items[id] */
	ARRAY_OF(uint32_t) name_texts; /* ids in texts */
	ARRAY_OF(struct partial_text) partial;
};

void range_texts_done(struct range_texts *texts);

/* Whatever is in the record. Returns 0, -ENOMEM, or -EINVAL: it is damaged, or there are too many.
 */
int range_texts_add(struct range_texts *texts, uint32_t pid, const struct wire_range_text *text);
/* The text that a name stands for, for range_texts_text(). False: unknown. */
bool range_texts_find(const struct range_texts *texts, uint32_t pid,
	const struct wire_range_name *name, uint32_t *ret_text);
/* Returns as range_texts_add(). */
int range_texts_name_category(
	struct range_texts *texts, uint32_t pid, const struct wire_range_name *name, uint32_t text);

const char *range_texts_text(const struct range_texts *texts, uint32_t text);
/* NULL: unknown, or not yet known. */
const char *range_texts_get(
	const struct range_texts *texts, uint32_t pid, uint32_t image, uint32_t id);
/* Likewise: that of an event. */
const char *range_texts_category(
	const struct range_texts *texts, uint32_t pid, const struct wire_range_event *event);
