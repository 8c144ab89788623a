/* SPDX-License-Identifier: Apache-2.0 */
#include "load/graph_captures.h"

#include <errno.h>
#include <stdlib.h>

#include "base/warn.h"
#include "model/trace_graphs.h"

static bool has_unknown(const struct trace *trace)
{
	return trace->replays.known_nodes < trace->replays.nodes;
}

/* A file that replays what was captured before it is none of captures. */
static int join_one(struct model *model, size_t captured, bool *ret_is_used)
{
	const struct trace *from = model->traces.items[captured];

	*ret_is_used = false;
	for (size_t i = 0; i < model->traces.count; i++) {
		struct trace *trace = model->traces.items[i];
		int64_t nodes;

		if (i == captured || !trace || trace->rank != from->rank || !has_unknown(trace) ||
			from->replays.unknown[TRACE_REPLAY_NO_CAPTURE])
			continue;
		nodes = trace_join_graphs(trace, from);
		if (nodes < 0)
			return (int)nodes;
		if (!nodes)
			continue;
		warn("%s has the captures of graphs that %s replays: %lld nodes have their "
		     "operators from it, and the rest of it is not shown",
			from->path, trace->path, (long long)nodes);
		*ret_is_used = true;
	}
	return 0;
}

int join_graph_captures(struct model *model)
{
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && model->traces.count > 1 && i < model->traces.count; i++) {
		bool is_used;

		r = join_one(model, i, &is_used);
		if (r == 0 && is_used)
			model->traces.items[i] = trace_free(model->traces.items[i]);
	}
	for (size_t i = 0; i < model->traces.count; i++) {
		if (model->traces.items[i])
			model->traces.items[kept++] = model->traces.items[i];
	}
	model->traces.count = kept;
	return r;
}
