/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/collectives/calls.h"

#include <ctype.h>
#include <string.h>

/* Names without their prefix, in small letters and digits alone. */
static const char *const calls[] = {
	"allreduce",
	"allgather",
	"allgatherbase",
	"allgatherintotensor",
	"alltoall",
	"alltoallbase",
	"alltoallsingle",
	"barrier",
	"monitoredbarrier",
	"reducescatter",
	"reducescatterbase",
	"reducescattertensor",
	"mpiallreduce",
	"mpiallgather",
	"mpialltoall",
	"mpibarrier",
	"mpireducescatter",
	NULL,
};

bool collective_is_call(const char *name)
{
	const char *colon = strrchr(name, ':');
	char letters[32];
	size_t length = 0;

	for (name = colon ? colon + 1 : name; *name; name++) {
		if (!isalnum((unsigned char)*name))
			continue;
		if (length + 1 == sizeof(letters))
			return false;
		letters[length++] = (char)tolower((unsigned char)*name);
	}
	letters[length] = '\0';
	for (const char *const *call = calls; *call; call++) {
		if (strcmp(*call, letters) == 0)
			return true;
	}
	return false;
}

/* Calls without a group are of one that all ranks are in: it has no name. */
static int add_group(struct collective_matches *matches, const struct collective_call *call,
	struct collective_match_kind *kind)
{
	const char *group = call->group ? call->group : "";
	_cleanup_strbuf_ struct strbuf key = {0};
	int r;

	strbuf_addf(&key, "call\n%s", group);
	r = strbuf_status(&key);
	if (r == 0)
		r = intern_add(&matches->strings, strbuf_cstr(&key), key.length, &kind->group);
	if (r >= 0)
		r = intern_add(&matches->strings, group, strlen(group), &kind->group_name);
	return r < 0 ? r : 0;
}

int collective_calls_add(struct collective_matches *matches, struct intern *kinds,
	const struct collective_call *call)
{
	struct collective_match_kind kind;
	struct collective_part part = {
		.step = call->sequence == TRACE_NO_NUMBER ? call->step : RANK_NO_STEP,
		.sequence = call->sequence,
		.bytes = call->bytes,
		.start_ns = call->start_ns,
		.end_ns = call->end_ns,
		.is_call = true,
	};
	int r;

	memset(&kind, 0, sizeof(kind));
	kind.elements = TRACE_NO_NUMBER;
	kind.group_size = call->group_size;
	kind.has_sequence = call->sequence != TRACE_NO_NUMBER;
	r = add_group(matches, call, &kind);
	if (r == 0)
		r = intern_add(&matches->strings, call->name, strlen(call->name), &kind.name);
	if (r >= 0)
		r = intern_add(&matches->ranks, &call->rank, sizeof(call->rank), &part.rank);
	if (r >= 0)
		r = intern_add(kinds, &kind, sizeof(kind), &part.kind);
	if (r > 0)
		r = array_append(&matches->kinds, kind);
	return r < 0 ? r : array_append(&matches->parts, part);
}
