/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question that is answered in a child process: the model of the parent stays as it is, and a
 * question that crashes or takes too much costs one answer.
 */
#pragma once

#include "base/errmsg.h"
#include "base/strbuf.h"

/* Appends the answer, as query_report() does. */
typedef int (*query_ask)(void *context, struct strbuf *out, struct errmsg *err);

/*
 * Forks, and waits for the answer, of at most `max_bytes`. Call it with one thread: a child has no
 * others. Returns what `ask` returned, with its sentence; -EIO with one where the child was ended
 * by a signal, -EFBIG where the answer is too large, or another negative errno with a sentence.
 */
int query_in_child(
	query_ask ask, void *context, size_t max_bytes, struct strbuf *out, struct errmsg *err);
