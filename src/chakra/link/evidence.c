/* SPDX-License-Identifier: Apache-2.0 */
/* Are the two traces of one run? What speaks against it, as a sentence. */
#include <errno.h>
#include <inttypes.h>

#include "chakra/link/state.h"

/* So many operators may be matched by chance where ids do not tell. */
#define MATCHED_BY_CHANCE 20

int link_check_process(const struct link *link, struct errmsg *err)
{
	const struct trace_track *other = NULL;

	if (!link->host->pid || link->options.any_process)
		return 0;
	array_foreach (&link->device->events, event) {
		const struct trace_track *track = &link->device->tracks.items[event->track];

		if (!link_is_operator(event) || track->pid == TRACE_NO_NUMBER)
			continue;
		if ((uint64_t)track->pid == link->host->pid)
			return 0;
		other = track;
	}
	if (!other)
		return 0;
	return errmsg_set(err, -ENODATA,
		"%s is of process %" PRIu64 ", but the operators in %s are of process %" PRId64
		": they are of different runs or ranks; --any-process links them anyway",
		link->host->path, link->host->pid, link->device->path, other->pid);
}

int link_check_ids(const struct link *link, struct errmsg *err)
{
	uint64_t differ = link->result->names_differ;

	if (differ <= link->names_agree)
		return 0;
	return errmsg_set(err, -ENODATA,
		"%s and %s are of different runs: of %" PRIu64
		" ids of record functions that are in both, %" PRIu64
		" are of operators with different names; pass the observer to the profiler that "
		"writes the other file",
		link->host->path, link->device->path, differ + link->names_agree, differ);
}

static uint64_t count_operators(const struct trace *device)
{
	uint64_t count = 0;

	array_foreach (&device->events, event)
		count += link_is_operator(event);
	return count;
}

static int say_no_match(const struct link *link, uint64_t operators, struct errmsg *err)
{
	if (!operators)
		return errmsg_set(err, -ENODATA,
			"%s has no operators: record it with torch.profiler and "
			"ProfilerActivity.CPU",
			link->device->path);
	if (!link->result->host_nodes)
		return errmsg_set(err, -ENODATA, "%s has no operators", link->host->path);
	return errmsg_set(err, -ENODATA,
		"%s and %s are of different runs: of %" PRIu64 " and %" PRIu64
		" operators, %" PRIu64
		" have one id and different names, and neither ids nor the order of names agree "
		"for most; pass the observer to the profiler that writes the other file",
		link->host->path, link->device->path, link->result->host_nodes, operators,
		link->result->names_differ);
}

/*
 * Host operators of the time that both traces tell. The observer may have begun before the other
 * trace, as for steps that warm up, and may have ended after it; the latter counts as evidence
 * where the matched ones could be there by chance. Nodes get their ids when they begin.
 */
static uint64_t count_common(const struct link *link, uint64_t matched)
{
	bool is_certain =
		link->result->matched[EXECUTION_BY_RF_ID] ||
		(link->result->matched[EXECUTION_BY_OFFSET] && matched > MATCHED_BY_CHANCE);
	uint64_t first = UINT64_MAX, last = is_certain ? 0 : UINT64_MAX, count = 0;

	array_foreach (&link->host->nodes, node) {
		if (node->match == EXECUTION_UNMATCHED)
			continue;
		first = MIN(first, node->id);
		last = MAX(last, node->id);
	}
	array_foreach (&link->host->nodes, node)
		count += node->id >= first && node->id <= last && !link_is_process_or_thread(node);
	return count;
}

int link_check_matched(const struct link *link, struct errmsg *err)
{
	uint64_t matched = link_matched_count(link);
	uint64_t operators = count_operators(link->device), common;

	if (!matched)
		return say_no_match(link, operators, err);
	common = count_common(link, matched);
	if (matched * 2 >= common)
		return 0;
	return errmsg_set(err, -ENODATA,
		"%s and %s are of different runs, or one is damaged or cut off: only %" PRIu64
		" of %" PRIu64 " operators are in the other trace, which has %" PRIu64
		"; pass the observer to the profiler that writes the other file, and let both "
		"finish writing",
		link->host->path, link->device->path, matched, common, operators);
}
