/* SPDX-License-Identifier: Apache-2.0 */
/* A ModuleSymbols message in the making: symbols of one mapping share its path and build id. */
#pragma once

#include "base/strbuf.h"
#include "capture/capture.h"
#include "capture/writer/interning.h"

struct symbol_batch {
	struct strbuf module; /* ModuleSymbols; empty: none begun */
	capture_id mapping;
};

static inline bool symbol_batch_is_empty(const struct symbol_batch *batch)
{
	return batch->module.length == 0;
}

/* Whether symbols of `mapping` belong to the message that is being made. */
static inline bool symbol_batch_takes(const struct symbol_batch *batch, capture_id mapping)
{
	return !symbol_batch_is_empty(batch) && batch->mapping == mapping;
}

void symbol_batch_start(
	struct symbol_batch *batch, const struct interning *interning, capture_id mapping);
/* Returns 0, or -ENOMEM and leaves the batch as it was. */
int symbol_batch_add(struct symbol_batch *batch, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count);
void symbol_batch_clear(struct symbol_batch *batch);
void symbol_batch_done(struct symbol_batch *batch);
