/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/rank_set.h"

#include <inttypes.h>

#include "base/macros.h"

#define NAMED 4U /* ranks that are missing or twice, and files of one rank */

/* How many traces are of the rank of this one, which is the first of it. */
static size_t count_same(const struct trace *const *traces, size_t count)
{
	size_t same = 1;

	while (same < count && traces[same]->rank == traces[0]->rank)
		same++;
	return same;
}

/* "rank 3 is there twice (a.json, b.json) and counts as two ranks" */
static void add_double(const struct trace *const *traces, size_t count, struct strbuf *out)
{
	strbuf_addf(out, "%srank %" PRIu32 " is there ", out->length ? "; " : "", traces[0]->rank);
	if (count == 2)
		strbuf_add(out, "twice (");
	else
		strbuf_addf(out, "%zu times (", count);
	for (size_t i = 0; i < MIN(count, (size_t)NAMED); i++)
		strbuf_addf(out, "%s%s", i ? ", " : "", traces[i]->path);
	if (count > NAMED)
		strbuf_addf(out, " and %zu more", count - NAMED);
	if (count == 2)
		strbuf_add(out, ") and counts as two ranks");
	else
		strbuf_addf(out, ") and counts as %zu ranks", count);
}

static void add_doubles(const struct trace *const *traces, size_t count, struct strbuf *out)
{
	size_t doubles = 0;

	for (size_t i = 0, same; i < count; i += same) {
		same = count_same(traces + i, count - i);
		if (same > 1 && doubles++ < NAMED)
			add_double(traces + i, same, out);
	}
	if (doubles > NAMED)
		strbuf_addf(out, "; %zu more rank%s there more than once", doubles - NAMED,
			doubles - NAMED == 1 ? " is" : "s are");
}

/* "ranks 0, 2, 3, 4 and 3 more of 9 are missing: …" */
static void add_missing(const struct trace *const *traces, size_t count, struct strbuf *out)
{
	uint32_t world_size = traces[count - 1]->world_size, missing = world_size, named = 0;

	for (size_t i = 0; i < count; i++) {
		bool is_first = i == 0 || traces[i]->rank != traces[i - 1]->rank;

		missing -= is_first && traces[i]->rank < world_size;
	}
	if (!missing)
		return;
	strbuf_addf(out, "%srank%s ", out->length ? "; " : "", missing == 1 ? "" : "s");
	for (uint32_t rank = 0, i = 0; rank < world_size && named < MIN(missing, NAMED); rank++) {
		while (i < count && traces[i]->rank < rank)
			i++;
		if (i < count && traces[i]->rank == rank)
			continue;
		strbuf_addf(out, "%s%" PRIu32, named ? ", " : "", rank);
		named++;
	}
	if (missing > named)
		strbuf_addf(out, " and %" PRIu32 " more", missing - named);
	strbuf_addf(out, " of %" PRIu32 " %s missing: figures over ranks cover the others",
		world_size, missing == 1 ? "is" : "are");
}

void rank_set_describe(const struct trace *const *traces, size_t count, struct strbuf *out)
{
	for (size_t i = 0; i < count; i++) {
		if (traces[i]->rank == MODEL_NONE)
			return;
	}
	if (count < 2)
		return;
	add_doubles(traces, count, out);
	add_missing(traces, count, out);
}
