/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several captures as one: a visitor that hears of them one after another, as if they were one
 * file. Its ids go on from capture to capture; times become those of one clock; and processes of
 * different hosts that have one pid get numbers that no kernel gives.
 */
#pragma once

#include "capture/reader/reader.h"

struct capture_join;

/* `visitor` and `context` outlive it. Returns 0 or -ENOMEM. */
int capture_join_new(
	struct capture_join **ret_join, const struct capture_visitor *visitor, void *context);
struct capture_join *capture_join_free(struct capture_join *join);
void capture_join_freep(struct capture_join **join);
#define _cleanup_capture_join_ _cleanup_(capture_join_freep)

/* The visitor from the next capture on. */
void capture_join_set_visitor(struct capture_join *join, const struct capture_visitor *visitor);
/* Ids of interned things begin at 1 again: what takes each capture for itself. */
void capture_join_renew_ids(struct capture_join *join);

/*
 * The next one, whose times become those of `clock`. Its session has the file and the clock, but
 * for recordings of a merged file, which have their own. Imported traces are passed over. Returns
 * as capture_read().
 */
int capture_join_read(struct capture_join *join, const char *path,
	const struct capture_clock *clock, struct capture_read_result *ret_result,
	struct errmsg *err);
