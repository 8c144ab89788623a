/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether graphs are timed by node or as a whole. CUPTI has one level for the process, that of the
 * kinds which are enabled. With --graph auto some replays of a graph are timed by node, then some
 * as a whole, and their medians say what timing nodes costs. Where it costs too much, graphs are
 * timed as a whole from then on, and nodes in a few replays, for as long as the writer takes to
 * look again. Releases that err after a switch are not switched.
 */
#include <stdio.h>
#include <stdlib.h>

#include "inject/cuda/cuda.h"

#define REPLAYS       8  /* of a graph at each level, of which the median counts */
#define OPEN_REPLAYS  16 /* whose nodes may still come, between those of others */
#define MAX_GRAPHS    64 /* that are measured */
#define TRIAL_REPLAYS 256
#define MAX_TRIALS    3
#define NAMED_GRAPHS  3  /* in a note */
#define COSTS_PERCENT 10 /* from here on nodes are not timed */
/* Sampled nodes add no more than so much of the time of replays. */
#define SAMPLES_COST   0.01
#define LEAST_INTERVAL 10
#define MOST_INTERVAL  10000

enum level {
	BY_NODE,
	AS_WHOLE,
	LEVELS,
};

static enum {
	FIXED,      /* nothing is measured */
	UNSWITCHED, /* the time between nodes is measured alone */
	TRY_NODES,
	TRY_WHOLE,
	SAMPLED_WHOLE,
	SAMPLED_NODES,
} state;
static const char *why_unswitched;

static struct graph {
	uint32_t exec;
	uint32_t nodes; /* of the replay with the most */
	uint64_t count[LEVELS];
	uint64_t span_ns[LEVELS][REPLAYS]; /* of the last ones */
	uint64_t between[REPLAYS];         /* nodes: parts per thousand of the span */
} graphs[MAX_GRAPHS];
static size_t graph_count;

static struct replay {
	uint32_t exec, correlation, nodes; /* no nodes: free */
	uint64_t start, end, work_ns;
} replays[OPEN_REPLAYS];
static size_t newest_replay;

static uint64_t seen;                        /* replays of which a record came */
static uint64_t switched_seen, switched_for; /* when the trial began; launched, not seen by then */
static uint64_t whole_seen;                  /* in the trial */
static unsigned trials;
static uint64_t interval;      /* one replay of so many has its nodes timed */
static uint64_t next_launches; /* when nodes are timed again, or had begun to be */

static uint64_t launches(void)
{
	return atomic_load_explicit(&cuda.graph_launches, memory_order_relaxed);
}

/* ---- replays ---- */

static struct graph *graph_of(uint32_t exec)
{
	for (size_t i = 0; i < graph_count; i++)
		if (graphs[i].exec == exec)
			return &graphs[i];
	if (graph_count == MAX_GRAPHS)
		return NULL;
	graphs[graph_count] = (struct graph){.exec = exec};
	return &graphs[graph_count++];
}

static void add_span(struct graph *graph, enum level level, uint64_t span_ns)
{
	graph->span_ns[level][graph->count[level]++ % REPLAYS] = span_ns;
}

/* No node of it will come: it counts if none is missing. */
static void close_replay(const struct replay *replay)
{
	struct graph *graph = replay->nodes ? graph_of(replay->exec) : NULL;
	uint64_t span_ns = replay->end - replay->start;

	if (!graph || replay->nodes < graph->nodes || !span_ns)
		return;
	if (replay->nodes > graph->nodes)
		graph->count[BY_NODE] = 0; /* nodes of those before were missing */
	graph->nodes = replay->nodes;
	graph->between[graph->count[BY_NODE] % REPLAYS] =
		replay->work_ns < span_ns ? (span_ns - replay->work_ns) * 1000 / span_ns : 0;
	add_span(graph, BY_NODE, span_ns);
}

static struct replay *find_replay(uint32_t exec, uint32_t correlation)
{
	for (size_t i = 0; i < OPEN_REPLAYS; i++) {
		struct replay *replay = &replays[(newest_replay + OPEN_REPLAYS - i) % OPEN_REPLAYS];

		if (replay->nodes && replay->exec == exec && replay->correlation == correlation)
			return replay;
	}
	return NULL;
}

static void take_node(const struct cuda_replayed *node)
{
	struct replay *replay = find_replay(node->exec, node->correlation);

	if (!replay) {
		newest_replay = (newest_replay + 1) % OPEN_REPLAYS;
		replay = &replays[newest_replay];
		close_replay(replay);
		*replay = (struct replay){.exec = node->exec,
			.correlation = node->correlation,
			.start = node->start,
			.end = node->end};
		seen++;
	}
	replay->nodes++;
	replay->start = node->start < replay->start ? node->start : replay->start;
	replay->end = node->end > replay->end ? node->end : replay->end;
	replay->work_ns += node->end - node->start;
}

void cuda_level_take(const struct cuda_replayed *replayed)
{
	struct graph *graph;

	bool is_measured_now = state == UNSWITCHED || state == TRY_NODES || state == TRY_WHOLE;

	if (!is_measured_now || replayed->end < replayed->start)
		return;
	if (!replayed->is_whole) {
		take_node(replayed);
		return;
	}
	seen++;
	whole_seen++;
	graph = graph_of(replayed->exec);
	if (graph && replayed->end > replayed->start)
		add_span(graph, AS_WHOLE, replayed->end - replayed->start);
}

/* ---- figures ---- */

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static uint64_t median(const uint64_t *figures)
{
	uint64_t sorted[REPLAYS];

	for (size_t i = 0; i < REPLAYS; i++)
		sorted[i] = figures[i];
	qsort(sorted, REPLAYS, sizeof(*sorted), compare);
	return (sorted[REPLAYS / 2 - 1] + sorted[REPLAYS / 2]) / 2;
}

static bool is_measured(const struct graph *graph, enum level level)
{
	return graph->count[level] >= REPLAYS;
}

static size_t count_measured(enum level level)
{
	size_t count = 0;

	for (size_t i = 0; i < graph_count; i++)
		count += is_measured(&graphs[i], BY_NODE) && is_measured(&graphs[i], level);
	return count;
}

/* What timing nodes adds to the replays of all graphs that were measured at both levels, each as
 * often as it was replayed; 0: nothing. */
static double measured_cost(void)
{
	double by_node = 0, as_whole = 0;

	for (size_t i = 0; i < graph_count; i++) {
		const struct graph *graph = &graphs[i];
		double count = (double)(graph->count[BY_NODE] + graph->count[AS_WHOLE]);

		if (!is_measured(graph, BY_NODE) || !is_measured(graph, AS_WHOLE))
			continue;
		by_node += count * (double)median(graph->span_ns[BY_NODE]);
		as_whole += count * (double)median(graph->span_ns[AS_WHOLE]);
	}
	return as_whole > 0 && by_node > as_whole ? by_node / as_whole - 1 : 0;
}

/* "graph 20: 1.500 ms by node, 1.000 ms as a whole; …" */
static const char *figures_text(char *text, size_t bytes)
{
	size_t length = 0, named = 0;

	*text = '\0';
	for (size_t i = 0; i < graph_count && named < NAMED_GRAPHS; i++) {
		const struct graph *graph = &graphs[i];

		if (!is_measured(graph, BY_NODE) || !is_measured(graph, AS_WHOLE))
			continue;
		length += (size_t)snprintf(text + length, bytes - length,
			"%sgraph %u: %.3f ms by node, %.3f ms as a whole", named++ ? "; " : "",
			graph->exec, (double)median(graph->span_ns[BY_NODE]) / 1e6,
			(double)median(graph->span_ns[AS_WHOLE]) / 1e6);
		if (length >= bytes)
			break;
	}
	return text;
}

/* ---- what is decided ---- */

static bool set_level(bool whole)
{
	cupti_result result = cupti_enable(&cuda.cupti, CUPTI_KIND_GRAPH_TRACE, whole);

	if (result == CUPTI_OK) {
		cuda.graph_level = whole;
		return true;
	}
	state = FIXED;
	inject_note(WIRE_NOTE_FAULTY,
		"--graph auto: CUPTI refuses to time graphs %s (error %d), and they stay as they "
		"are, timed %s.",
		whole ? "as a whole" : "by node", result,
		cuda.graph_level ? "as a whole" : "by node");
	return false;
}

static void stay_by_node(const char *why)
{
	if (set_level(false))
		inject_note(WIRE_NOTE_FAULTY,
			"--graph auto: the nodes of graphs stay timed, as %s.", why);
	state = FIXED;
}

static void decide(void)
{
	double cost = measured_cost();
	char text[256];

	figures_text(text, sizeof(text));
	if (cost * 100 < COSTS_PERCENT) {
		if (set_level(false))
			inject_note(WIRE_NOTE_TRACER,
				"--graph auto: the nodes of graphs stay timed, which adds %.1f %% "
				"to a replay (medians of %d replays, %s).",
				100 * cost, REPLAYS, text);
		state = FIXED;
		return;
	}
	interval = (uint64_t)(cost / SAMPLES_COST + 0.5);
	interval = interval < LEAST_INTERVAL ? LEAST_INTERVAL : interval;
	interval = interval > MOST_INTERVAL ? MOST_INTERVAL : interval;
	next_launches = launches() + interval;
	state = SAMPLED_WHOLE;
	inject_note(WIRE_NOTE_FAULTY,
		"--graph auto: timing the nodes of graphs adds %.1f %% to a replay (medians of %d "
		"replays, %s). From then on graphs are timed as a whole, and nodes in one replay "
		"of %llu, which adds about 1 %%: kernels in the others have no times.",
		100 * cost, REPLAYS, text, (unsigned long long)interval);
}

static void begin_trial(void)
{
	whole_seen = 0;
	switched_seen = seen;
	switched_for = launches() > seen ? launches() - seen : 0;
	trials++;
	for (size_t i = 0; i < graph_count; i++)
		graphs[i].count[AS_WHOLE] = 0;
	if (set_level(true))
		state = TRY_WHOLE;
}

static void follow_trial(void)
{
	size_t measured = count_measured(AS_WHOLE);

	if (measured && (measured == count_measured(BY_NODE) || whole_seen >= TRIAL_REPLAYS)) {
		decide();
	} else if (!whole_seen && seen - switched_seen > switched_for + TRIAL_REPLAYS) {
		stay_by_node("CUPTI went on timing them in graphs that were made before it was "
			     "asked for graphs as a whole; --graph graph asks from the start");
	} else if (whole_seen < TRIAL_REPLAYS) {
		return;
	} else if (trials == MAX_TRIALS) {
		stay_by_node("no graph was replayed often enough to compare both levels");
	} else if (set_level(false)) {
		state = TRY_NODES;
		for (size_t i = 0; i < graph_count; i++)
			graphs[i].count[BY_NODE] = 0;
	}
}

/* Of a release that is not switched: what can be seen by node alone. */
static void say_between(void)
{
	const struct graph *graph = graphs;

	while (!is_measured(graph, BY_NODE))
		graph++;
	state = FIXED;
	inject_note(WIRE_NOTE_FAULTY,
		"--graph auto: the nodes of graphs stay timed, and what that costs was not "
		"measured: %s. Of a replay of graph %u (%.3f ms, median of %d) %.1f %% lie "
		"between nodes, where that cost is; --graph graph avoids it.",
		why_unswitched, graph->exec, (double)median(graph->span_ns[BY_NODE]) / 1e6, REPLAYS,
		(double)median(graph->between) / 10);
}

/* As many replays go by as a whole as were sampled, times the interval. */
static void sample(void)
{
	uint64_t now = launches();

	if (state == SAMPLED_WHOLE && now >= next_launches) {
		if (!set_level(false))
			return;
		state = SAMPLED_NODES;
		next_launches = launches();
	} else if (state == SAMPLED_NODES && now > next_launches) {
		if (!set_level(true))
			return;
		state = SAMPLED_WHOLE;
		now = launches();
		next_launches = now + (now - next_launches) * (interval - 1);
	}
}

void cuda_level_follow(void)
{
	switch (state) {
	case UNSWITCHED:
		if (count_measured(BY_NODE))
			say_between();
		break;
	case TRY_NODES:
		if (count_measured(BY_NODE))
			begin_trial();
		break;
	case TRY_WHOLE:
		follow_trial();
		break;
	case SAMPLED_WHOLE:
	case SAMPLED_NODES:
		sample();
		break;
	default:
		break;
	}
}

void cuda_level_forget(void)
{
	seen = launches();
	switched_seen = seen;
	switched_for = 0;
}

void cuda_level_rest(void)
{
	if (state == SAMPLED_NODES && set_level(true)) {
		state = SAMPLED_WHOLE;
		next_launches = launches() + interval;
	}
}

/* ---- what can be done ---- */

static void set_shared_level(void)
{
	uint8_t whole = 1;
	cupti_result result = cupti_set_attribute(
		&cuda.cupti, CUPTI_ATTRIBUTE_SHARED_GRAPH_LEVEL, sizeof(whole), &whole);

	if (result != CUPTI_OK)
		inject_note(WIRE_NOTE_FAULTY,
			"CUPTI does not set the level of graphs for all tools that may trace with "
			"it (error %d): with --graph graph their nodes may be timed all the same.",
			result);
}

static const char *find_obstacle(void)
{
	if (cuda.cupti.is_shared)
		return "several tools may trace with this CUPTI, which then keeps one level";
	if (cupti_known_fault(cuda.cupti.version, CUPTI_AGAIN, 0))
		return "this CUPTI gives graph launches wrong correlation ids after a switch "
		       "(13.1 update 1 is right)";
	return NULL;
}

void cuda_level_init(void)
{
	static bool is_known;

	if (cuda.cupti.is_shared && cuda.graph_level)
		set_shared_level();
	if (is_known || !inject_is_timed() || inject_graph_mode() != WIRE_GRAPH_AUTO)
		return;
	is_known = true;
	why_unswitched = find_obstacle();
	state = why_unswitched ? UNSWITCHED : TRY_NODES;
	cuda.tells_nodes = !why_unswitched;
}
