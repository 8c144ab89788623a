/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the environment of a process that may be a rank. */
#include <stdlib.h>

#include "sources/process/proc_ranks.h"
#include "target.h"

static void check(int64_t number)
{
	if (number < -1 || number > INT32_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_strbuf_ struct strbuf environment = {0};
	struct proc_ranks ranks;

	strbuf_add_bytes(&environment, bytes, length);
	ranks = proc_find_ranks(&environment);
	check(ranks.rank);
	check(ranks.world_size);
	check(ranks.local_rank);
	if (ranks.rank < 0 && (ranks.world_size >= 0 || ranks.local_rank >= 0))
		abort();
	return 0;
}
