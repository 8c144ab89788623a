/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources of one recording: runs all of a table by their interface, in its order. Call order
 * and threads are those of source.h. A set of zeros is empty, and every call does nothing on it.
 */
#pragma once

#include "sources/source.h"

#define SOURCES_MAX 16

struct source_entry {
	const struct source *source;
	void *state; /* NULL: it is not open */
	bool is_started;
	struct errmsg note; /* why there is none */
};

struct source_set {
	struct source_entry entries[SOURCES_MAX];
	size_t count;
	struct source_capabilities offered;
};

/* Those of the table, which ends with NULL, that are asked for. An error of one that is optional is
 * its note. */
int source_set_probe(struct source_set *set, const struct source *const *table,
	const struct source_settings *settings, struct errmsg *err);
/* Those of this moment; with SOURCE_AT_LAUNCH they are started, too. */
int source_set_open(struct source_set *set, enum source_moment moment,
	const struct source_settings *settings, struct errmsg *err);
int source_set_follow(struct source_set *set, uint32_t pid, struct errmsg *err);
int source_set_start(struct source_set *set, struct errmsg *err);
int source_set_switch(struct source_set *set, bool active);
void source_set_pause(struct source_set *set);
int source_set_resume(struct source_set *set, uint64_t from_ns);
size_t source_set_descriptors(struct source_set *set, int *ret_fds, size_t capacity);
/* The least of all, at most `otherwise`. */
int source_set_timeout_ms(struct source_set *set, int otherwise);
int source_set_drain(struct source_set *set, const struct source_sink *sink);
void source_set_stop(struct source_set *set);
int source_set_finish(struct source_set *set, uint64_t end_ns, const struct source_sink *sink);
/* `ret_account` is overwritten; to be ended by source_account_done(). */
void source_set_account(struct source_set *set, struct source_account *ret_account);
void source_set_notes(struct source_set *set, source_note_function *add, void *context);
void source_set_close(struct source_set *set);
