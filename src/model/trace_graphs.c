/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_graphs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/trace_graph_rows.h"

/* Of candidates compared, a step each: files may say anything. */
#define MOST_STEPS 400000000ULL

bool trace_is_graph_launch(const char *call)
{
	return strstr(call, "GraphLaunch") != NULL;
}

struct node {
	uint32_t row, launch;
	int64_t launch_ns, start_ns;
};

/* How a capture fits a replay. */
enum fit {
	FIT_NOT,
	FIT_ORDER, /* call by call */
	FIT_PART,  /* with calls between that gave no node */
	FIT_NAMES, /* the same kernels, in another order */
};

struct candidate {
	uint32_t capture;
	uint8_t fit;
};

/* Replays of the same kernels in the same order. */
struct pattern {
	size_t first_replay; /* of it */
	size_t first, count; /* of candidates */
};

struct replay {
	uint32_t launch;
	size_t first, count; /* nodes */
	struct capture_key key;
	uint64_t graph; /* 0: not known */
	bool is_forked; /* several streams ran it */
	uint32_t pattern;
	uint32_t capture; /* MODEL_NONE: not decided */
	bool is_alike;
	uint8_t unknown; /* enum trace_replay_unknown */
};

struct joining {
	struct trace *trace;
	const struct trace *captured;
	struct graph_captures captures;
	ARRAY_OF(struct node) nodes;
	ARRAY_OF(struct replay) replays; /* in the order of their launches */
	ARRAY_OF(struct pattern) patterns;
	ARRAY_OF(struct candidate) candidates; /* by pattern, then by capture */
	ARRAY_OF(struct graph_origin) origins;
	struct intern pattern_keys;
	uint64_t steps;
};

static void joining_done(struct joining *joining)
{
	graph_captures_done(&joining->captures);
	array_done(&joining->nodes);
	array_done(&joining->replays);
	array_done(&joining->patterns);
	array_done(&joining->candidates);
	array_done(&joining->origins);
	intern_done(&joining->pattern_keys);
}

static const struct trace_event *event_of(const struct joining *joining, uint32_t row)
{
	return &joining->trace->events.items[row];
}

/* ---- replays ---- */

static int compare_nodes(const void *left, const void *right)
{
	const struct node *a = left, *b = right;

	if (a->launch_ns != b->launch_ns)
		return a->launch_ns < b->launch_ns ? -1 : 1;
	if (a->launch != b->launch)
		return a->launch < b->launch ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

/* Nodes whose call is not known yet. A graph that was timed as one has none. */
static int find_nodes(struct joining *joining)
{
	const struct trace *trace = joining->trace;
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < trace->events.count; row++) {
		const struct trace_event *event = &trace->events.items[row], *call;
		const struct trace_work *work =
			trace_is_work(event) ? trace_work(trace, event) : NULL;
		uint32_t launch;

		if (!work || work->captured_by || (work->graph && !work->graph_node))
			continue;
		launch = trace_launch(trace, event);
		if (launch == MODEL_NONE)
			continue;
		call = &trace->events.items[launch];
		if (trace_is_graph_launch(trace_text(trace, call->name)))
			r = array_append(&joining->nodes,
				(struct node){row, launch, call->start_ns, event->start_ns});
	}
	if (r == 0 && joining->nodes.count)
		qsort(joining->nodes.items, joining->nodes.count, sizeof(*joining->nodes.items),
			compare_nodes);
	return r;
}

/* CUPTI's ids of nodes have their graph's above their own. */
static uint64_t graph_of(const struct trace_work *work)
{
	return work->graph ? work->graph : work->graph_node >> 32;
}

static int add_replay(struct joining *joining, size_t first, size_t count)
{
	const struct node *nodes = &joining->nodes.items[first];
	const struct trace_work *work = trace_work(joining->trace, event_of(joining, nodes->row));
	struct replay replay = {
		.launch = nodes->launch,
		.first = first,
		.count = count,
		.graph = graph_of(work),
		.capture = MODEL_NONE,
	};

	for (size_t i = 0; i < count; i++) {
		const struct trace_event *event = event_of(joining, nodes[i].row);
		const struct trace_work *other = trace_work(joining->trace, event);

		capture_key_add(&replay.key, graph_node_kind(joining->trace, event), event->name);
		replay.is_forked |= other->stream != work->stream || other->device != work->device;
	}
	joining->trace->replays.replays++;
	joining->trace->replays.nodes += count;
	return array_append(&joining->replays, replay);
}

static int find_replays(struct joining *joining)
{
	const struct node *nodes;
	int r = find_nodes(joining);

	nodes = joining->nodes.items;
	for (size_t first = 0, next; r == 0 && first < joining->nodes.count; first = next) {
		next = first + 1;
		while (next < joining->nodes.count && nodes[next].launch == nodes[first].launch)
			next++;
		r = add_replay(joining, first, next - first);
	}
	return r;
}

/* ---- which captures have their nodes ---- */

static const struct graph_capture *capture_at(const struct joining *joining, uint32_t index)
{
	return &joining->captures.items.items[index];
}

static bool is_call_of(
	const struct joining *joining, const struct graph_call *call, const struct node *node)
{
	const struct trace_event *event = event_of(joining, node->row);

	return call->kind == graph_node_kind(joining->trace, event) &&
	       (call->kind != TRACE_KERNEL || !call->kernel || call->kernel == event->name);
}

/* Each node the first call that is left, or the last one where that is asked for. */
static bool align(struct joining *joining, const struct replay *replay,
	const struct graph_capture *capture, bool from_end, uint32_t *ret_calls)
{
	const struct graph_call *calls = &joining->captures.calls.items[capture->first];
	const struct node *nodes = &joining->nodes.items[replay->first];
	size_t call = 0;

	for (size_t i = 0; i < replay->count; i++) {
		const struct node *node = &nodes[from_end ? replay->count - 1 - i : i];
		size_t at;

		do {
			if (call == capture->count)
				return false;
			joining->steps++;
			at = from_end ? capture->count - 1 - call : call;
			call++;
		} while (!is_call_of(joining, &calls[at], node));
		if (ret_calls)
			ret_calls[from_end ? replay->count - 1 - i : i] = (uint32_t)at;
	}
	return true;
}

static enum fit fit_of(
	struct joining *joining, const struct replay *replay, const struct graph_capture *capture)
{
	size_t extra = capture->count - replay->count;

	joining->steps++;
	if (capture->count < replay->count || !capture->count || joining->steps > MOST_STEPS)
		return FIT_NOT;
	if (!capture->is_named)
		return extra == 0 && !replay->is_forked && !capture->is_forked &&
				       replay->key.kinds == capture->key.kinds
			       ? FIT_ORDER
			       : FIT_NOT;
	if (extra == 0 && replay->key.order == capture->key.order)
		return FIT_ORDER;
	if (extra == 0 && replay->is_forked && replay->key.names == capture->key.names)
		return FIT_NAMES;
	/* A library's call that only asks what it would launch. */
	if (extra > 0 && extra <= 1 + capture->count / 100 &&
		align(joining, replay, capture, false, NULL))
		return FIT_PART;
	return FIT_NOT;
}

static int find_candidates(struct joining *joining, size_t first_replay)
{
	const struct replay *replay = &joining->replays.items[first_replay];
	struct pattern pattern = {.first_replay = first_replay, .first = joining->candidates.count};
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < joining->captures.items.count; i++) {
		enum fit fit = fit_of(joining, replay, capture_at(joining, i));

		if (fit != FIT_NOT)
			r = array_append(&joining->candidates, (struct candidate){i, (uint8_t)fit});
	}
	pattern.count = joining->candidates.count - pattern.first;
	return r ?: array_append(&joining->patterns, pattern);
}

static int find_patterns(struct joining *joining)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < joining->replays.count; i++) {
		struct replay *replay = &joining->replays.items[i];
		const uint64_t key[] = {
			replay->key.order, replay->key.kinds, replay->count, replay->is_forked};

		r = intern_add(&joining->pattern_keys, key, sizeof(key), &replay->pattern);
		if (r > 0)
			r = find_candidates(joining, i);
	}
	return MIN(r, 0);
}

/* A capture is of its process, and has ended before it is replayed. */
static bool is_before(const struct joining *joining, const struct graph_capture *capture,
	const struct replay *replay)
{
	const struct trace_event *launch = event_of(joining, replay->launch);

	return capture->pid == joining->trace->tracks.items[launch->track].pid &&
	       (int64_t)((uint64_t)capture->end_ns + joining->captured->base_ns -
			 joining->trace->base_ns) <= launch->start_ns;
}

/* NULL: it is none. */
static const struct candidate *candidate_of(
	const struct joining *joining, const struct replay *replay, uint32_t capture)
{
	const struct pattern *pattern = &joining->patterns.items[replay->pattern];
	size_t low = pattern->first, high = pattern->first + pattern->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct candidate *one = &joining->candidates.items[middle];

		if (one->capture == capture)
			return is_before(joining, capture_at(joining, capture), replay) ? one
											: NULL;
		if (one->capture < capture)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* ---- which of them it is ---- */

static void decide(struct joining *joining, struct replay *replay, uint32_t capture)
{
	if (replay->capture == MODEL_NONE && candidate_of(joining, replay, capture))
		replay->capture = capture;
}

/* The only one that fits; else why there is none. */
static void decide_only(struct joining *joining, struct replay *replay)
{
	const struct pattern *pattern = &joining->patterns.items[replay->pattern];
	uint32_t found = MODEL_NONE;
	size_t before = 0, count = 0;

	replay->unknown = TRACE_REPLAY_SEVERAL;
	for (size_t i = 0; i < pattern->count && count < 2; i++) {
		const struct candidate *one = &joining->candidates.items[pattern->first + i];

		if (joining->steps++ > MOST_STEPS)
			return;
		if (!is_before(joining, capture_at(joining, one->capture), replay))
			continue;
		found = one->capture;
		count++;
	}
	if (count == 1)
		replay->capture = found;
	if (count)
		return;
	for (uint32_t i = 0;
		i < joining->captures.items.count && !before && joining->steps++ <= MOST_STEPS; i++)
		before += is_before(joining, capture_at(joining, i), replay);
	replay->unknown = !before             ? TRACE_REPLAY_NO_CAPTURE
			  : replay->is_forked ? TRACE_REPLAY_STREAMS
					      : TRACE_REPLAY_NO_FIT;
}

/* A graph is of one capture: what is known of one replay holds for the others. */
static int decide_by_graphs(struct joining *joining)
{
	struct map_u64 captures = {0};
	uint64_t capture;
	int r = 0;

	array_foreach (&joining->replays, replay) {
		if (r < 0 || replay->capture == MODEL_NONE || !replay->graph)
			continue;
		if (map_u64_get(&captures, replay->graph, &capture) && capture != replay->capture)
			r = map_u64_set(&captures, replay->graph, MODEL_NONE);
		else
			r = map_u64_set(&captures, replay->graph, replay->capture);
	}
	array_foreach (&joining->replays, replay) {
		if (replay->graph && map_u64_get(&captures, replay->graph, &capture) &&
			capture != MODEL_NONE)
			decide(joining, replay, (uint32_t)capture);
	}
	map_u64_done(&captures);
	return r;
}

/* Between two that are known, as many replays as captures, and each fits: as in the pieces of a
 * model, which run in the order in which they were captured. */
static void decide_between(struct joining *joining, size_t before, size_t after)
{
	struct replay *replays = joining->replays.items;
	size_t first = replays[before].capture;

	if (replays[after].capture <= first || replays[after].capture - first != after - before)
		return;
	for (size_t i = before + 1; i < after; i++) {
		if (!candidate_of(joining, &replays[i], (uint32_t)(first + i - before)))
			return;
	}
	for (size_t i = before + 1; i < after; i++)
		replays[i].capture = (uint32_t)(first + i - before);
}

static void decide_by_neighbours(struct joining *joining)
{
	size_t before = SIZE_MAX;

	for (size_t i = 0; i < joining->replays.count; i++) {
		if (joining->replays.items[i].capture == MODEL_NONE)
			continue;
		if (before != SIZE_MAX && i - before > 1)
			decide_between(joining, before, i);
		before = i;
	}
}

/* Those that fit and came before: are they alike? Then the first of them stands for all. */
static void decide_alike(struct joining *joining, struct replay *replay)
{
	const struct pattern *pattern = &joining->patterns.items[replay->pattern];
	uint32_t found = MODEL_NONE;

	if (replay->capture != MODEL_NONE)
		return;
	for (size_t i = 0; i < pattern->count; i++) {
		uint32_t one = joining->candidates.items[pattern->first + i].capture;

		if (joining->steps++ > MOST_STEPS)
			return;
		if (!is_before(joining, capture_at(joining, one), replay))
			continue;
		if (found == MODEL_NONE)
			found = one;
		else if (joining->steps > MOST_STEPS || capture_at(joining, found)->operators !=
								capture_at(joining, one)->operators)
			return;
	}
	replay->capture = found;
	replay->is_alike = found != MODEL_NONE;
}

static int decide_all(struct joining *joining)
{
	int r;

	array_foreach (&joining->replays, replay)
		decide_only(joining, replay);
	r = decide_by_graphs(joining);
	if (r < 0)
		return r;
	decide_by_neighbours(joining);
	r = decide_by_graphs(joining);
	array_foreach (&joining->replays, replay)
		decide_alike(joining, replay);
	return r;
}

/* ---- origins ---- */

static int add_origin(struct joining *joining, const struct replay *replay, size_t node,
	const struct graph_call *call)
{
	const struct trace_event *event =
		event_of(joining, joining->nodes.items[replay->first + node].row);

	return array_append(&joining->origins, (struct graph_origin){event->detail, call->row});
}

/* Where a node may be of either of two calls, their operators must be the same. */
static int take_part(
	struct joining *joining, const struct replay *replay, const struct graph_capture *capture)
{
	const struct graph_call *calls = &joining->captures.calls.items[capture->first];
	_cleanup_free_ uint32_t *first = malloc((replay->count + 1) * sizeof(*first));
	_cleanup_free_ uint32_t *last = malloc((replay->count + 1) * sizeof(*last));
	int r = first && last ? 0 : -ENOMEM;

	if (r < 0 || !align(joining, replay, capture, false, first) ||
		!align(joining, replay, capture, true, last))
		return r;
	for (size_t i = 0; r == 0 && i < replay->count; i++) {
		if (calls[first[i]].operators == calls[last[i]].operators)
			r = add_origin(joining, replay, i, &calls[first[i]]);
	}
	return r;
}

/* A kernel's only call, or its first one of several in the same operators. */
static int take_names(
	struct joining *joining, const struct replay *replay, const struct graph_capture *capture)
{
	const struct graph_call *calls = &joining->captures.calls.items[capture->first];
	struct map_u64 by_name = {0}; /* kind and name → call + 1; 0: calls that differ */
	int r = 0;

	for (size_t i = 0; r == 0 && i < capture->count; i++) {
		uint64_t key = (uint64_t)calls[i].kind << 32 | calls[i].kernel, known;

		if (!map_u64_get(&by_name, key, &known))
			r = map_u64_set(&by_name, key, i + 1);
		else if (known && calls[known - 1].operators != calls[i].operators)
			r = map_u64_set(&by_name, key, 0);
	}
	for (size_t i = 0; r == 0 && i < replay->count; i++) {
		const struct trace_event *event =
			event_of(joining, joining->nodes.items[replay->first + i].row);
		uint8_t kind = graph_node_kind(joining->trace, event);
		uint64_t key = (uint64_t)kind << 32 | (kind == TRACE_KERNEL ? event->name : 0);
		uint64_t call;

		if (map_u64_get(&by_name, key, &call) && call)
			r = add_origin(joining, replay, i, &calls[call - 1]);
	}
	map_u64_done(&by_name);
	return r;
}

static int take_origins(struct joining *joining, const struct replay *replay)
{
	const struct graph_capture *capture = capture_at(joining, replay->capture);
	const struct candidate *candidate = candidate_of(joining, replay, replay->capture);
	int r = 0;

	if (candidate->fit == FIT_PART)
		return take_part(joining, replay, capture);
	if (candidate->fit == FIT_NAMES)
		return take_names(joining, replay, capture);
	for (size_t i = 0; r == 0 && i < replay->count; i++)
		r = add_origin(
			joining, replay, i, &joining->captures.calls.items[capture->first + i]);
	return r;
}

static int take_all(struct joining *joining)
{
	struct trace_replays *replays = &joining->trace->replays;
	int r = 0;

	array_foreach (&joining->replays, replay) {
		size_t before = joining->origins.count;

		if (replay->capture == MODEL_NONE) {
			replays->unknown[replay->unknown]++;
			continue;
		}
		if (r == 0)
			r = take_origins(joining, replay);
		replays->alike += replay->is_alike;
		replays->unclear_nodes += replay->count - (joining->origins.count - before);
	}
	replays->known_nodes += joining->origins.count;
	return r;
}

/* Replays that an earlier call did not decide count again. */
static struct trace_replays forget_unknown(struct trace *trace)
{
	const struct trace_replays before = trace->replays;

	for (size_t i = 0; i < TRACE_REPLAY_UNKNOWN_MAX; i++)
		trace->replays.unknown[i] = 0;
	return before;
}

int64_t trace_join_graphs(struct trace *trace, const struct trace *captured)
{
	_cleanup_(joining_done) struct joining joining = {.trace = trace, .captured = captured};
	const struct trace_replays before = forget_unknown(trace);
	int r = find_replays(&joining);

	trace->replays.replays = MAX(trace->replays.replays - before.replays, before.replays);
	trace->replays.nodes = MAX(trace->replays.nodes - before.nodes, before.nodes);
	if (r == 0 && joining.replays.count)
		r = graph_captures_init(&joining.captures, captured, trace);
	r = r ?: find_patterns(&joining);
	r = r ?: decide_all(&joining);
	r = r ?: take_all(&joining);
	if (r == 0 && captured != trace && !joining.origins.count) {
		trace->replays = before;
		return 0;
	}
	trace->replays.captures += joining.captures.items.count;
	r = r ?: graph_origins_apply(trace, captured, joining.origins.items, joining.origins.count);
	return r < 0 ? r : (int64_t)joining.origins.count;
}
