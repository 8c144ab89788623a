/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a recording of energy. */
#include <stdlib.h>

#include "base/strbuf.h"
#include "sources/energy/replay.h"
#include "target.h"

/* Intervals of a domain follow each other, in a domain that there is; a gap has no energy. */
static void check(const struct energy_replay *replay)
{
	uint64_t until_ns[REPLAY_DOMAINS_MAX + 1] = {0};

	array_foreach (&replay->intervals, interval) {
		if (!interval->domain || interval->domain > replay->domain_count ||
			interval->start_ns >= interval->end_ns ||
			interval->start_ns < until_ns[interval->domain] ||
			(interval->gap && interval->energy_nj))
			abort();
		until_ns[interval->domain] = interval->end_ns;
	}
	for (unsigned i = 0; i < replay->domain_count; i++) {
		if (replay->domains[i].parent > i || !replay->domains[i].name[0])
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	/* With a NUL behind it, as a file that was read. */
	_cleanup_strbuf_ struct strbuf text = {0};
	struct energy_replay *replay = NULL;
	struct errmsg err;

	strbuf_add_bytes(&text, bytes, length);
	if (energy_replay_parse(&replay, strbuf_cstr(&text), length, "input", &err) == 0)
		check(replay);
	energy_replay_free(replay);
	if (energy_model_parse(&replay, strbuf_cstr(&text), length, "input", &err) == 0)
		energy_replay_free(replay);
	return 0;
}
