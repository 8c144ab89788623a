/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of a recording while it runs, for live messages: what a reader of the growing capture
 * visits goes in, and the data of messages come out, as schema/api.json describes them.
 *
 * Memory is bounded by what the capture itself names (functions, threads, requests), and by windows
 * of fixed length. What has a definition in src/analyses has the same here; the files say which.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "capture/reader/reader.h"

enum live_message {
	LIVE_SESSION,
	LIVE_SUMMARY,
	LIVE_POWER,
	LIVE_TOKENS,
	LIVE_PHASES,
	LIVE_CURRENT,
	LIVE_FUNCTIONS,
	LIVE_KERNELS,
	LIVE_LAYERS,
	LIVE_ENDED,
	LIVE_MESSAGE_MAX,
};

/* "live_session" …: the types of schema/api.json. */
extern const char *const live_message_types[LIVE_MESSAGE_MAX];

/* No message is longer. */
#define LIVE_MESSAGE_BYTES ((size_t)900 << 10)

struct live_figures;

/* `capture`, `name`: its id and its file's name in messages; copied. Returns 0 or -ENOMEM. */
int live_figures_new(struct live_figures **ret_figures, const char *capture, const char *name,
	uint64_t generation);
struct live_figures *live_figures_free(struct live_figures *figures);

/* The context is the figures. */
extern const struct capture_visitor live_visitor;

/* The recording wrote its end. */
bool live_has_ended(const struct live_figures *figures);
/* Of the file, for the summary. */
void live_set_bytes(struct live_figures *figures, uint64_t bytes);
/* The session will be written again: for who was not there. */
void live_repeat_session(struct live_figures *figures);

enum live_pace {
	LIVE_OFTEN = 1,  /* summary, power, tokens, phases, open ranges */
	LIVE_SELDOM = 2, /* functions, kernels, layers: tables, which cost more */
};

/* A message's member `data` as JSON, and the same as columns (live/columns.h); 0 bytes: it is none
 * of those that have them. */
struct live_data {
	const char *json;
	size_t length;
	const void *columns;
	size_t columns_length;
};

/*
 * Hands over the messages of these paces that have something to say; batches are empty then. A
 * negative return of `emit` stops. Returns 0, that, or -ENOMEM.
 */
int live_emit(struct live_figures *figures, unsigned paces,
	int (*emit)(void *context, enum live_message message, const struct live_data *data),
	void *context);
/* The data of LIVE_ENDED. `reason`: as in the schema; `sentence`: NULL: none. */
void live_write_ended(const struct live_figures *figures, const char *reason, const char *sentence,
	struct strbuf *out);
