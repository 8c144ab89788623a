/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of the hooks of the Python package (python/sonde/hooks): each process appends a line
 * to a file of its own in the session's folder when the state of one changes. The processes write
 * these files, so that nothing in them is believed.
 */
#pragma once

#include <stdint.h>

#include "base/array.h"
#include "base/map.h"

enum hook_state {
	HOOK_WAITING, /* its module is not imported */
	HOOK_APPLIED,
	HOOK_NOT_FOUND, /* the module has no such attribute */
	HOOK_ERROR,
	HOOK_STATE_MAX,
	HOOK_STATE_INVALID = -EINVAL,
};

const char *hook_state_to_string(enum hook_state state);

/* One hook in all processes. Texts live as long as the table. */
struct hook_status {
	const char *group, *module, *attribute;
	/* Of the last process where it is not found or failed, else what the first one found; "":
	 * none. */
	const char *detail;
	uint64_t processes[HOOK_STATE_MAX]; /* where it is in this state */
	uint64_t process;                   /* the last one that reported it */
	enum hook_state state;              /* there */
};

struct hook_table {
	ARRAY_OF(struct hook_status) hooks; /* those of a group in the order in which they came */
	struct intern texts;
	uint64_t processes; /* that reported any */
	uint64_t malformed; /* lines that say nothing, or are one hook too many */
};

/* What one process has written. Returns 0 or -ENOMEM. */
int hook_table_add(struct hook_table *table, const char *text, size_t length);
/* All files of the session's folder. Returns 0 or -ENOMEM. */
int hook_table_read(struct hook_table *table, const char *folder);
void hook_table_done(struct hook_table *table);

/* The worst of its states: what failed anywhere is to be seen. */
enum hook_state hook_status_state(const struct hook_status *hook);
