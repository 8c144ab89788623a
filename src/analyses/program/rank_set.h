/* SPDX-License-Identifier: Apache-2.0 */
/* Are the traces of a job those of all its ranks, each once? */
#pragma once

#include "base/strbuf.h"
#include "model/trace.h"

/*
 * What is wrong, one sentence without its period: "rank 3 is there twice (a.json, b.json) and
 * counts as two ranks; rank 6 of 8 is missing: figures over ranks cover the others". Nothing where
 * all is well, of one trace, and where a trace does not say its rank. Names a few ranks and files,
 * and counts the rest. `traces`: by rank.
 */
void rank_set_describe(const struct trace *const *traces, size_t count, struct strbuf *out);
