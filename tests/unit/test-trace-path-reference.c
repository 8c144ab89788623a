/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Critical paths and comparisons of real traces by compat/hta are those of HTA f4d0062. The
 * paths stand as CSV and JSON in the folder that $SONDE_TRACES names, other figures here. Without
 * that folder the tests are skipped.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyses/path/critical_path.h"
#include "analyses/program/sequences.h"
#include "compat/hta/diff.h"
#include "compat/hta/hta.h"
#include "importers/kineto/kineto.h"

#define FORWARD "[param|pytorch.model.alex_net|0|0|0|measure|forward]"

/* Nodes and edges of graphs are those of critical_path.json. */
static const struct reference {
	const char *folder, *trace, *annotation;
	uint32_t instance;
	uint64_t nodes, edges;
} references[] = {
	{"alexnet_cp", "kineto/critical_path_alexnet.json.gz", FORWARD, 1, 418, 421},
	{"simple_add_cp", "kineto/critical_path_simple_add.json.gz", FORWARD, 1, 414, 415},
	{"cuda_event_sync", "kineto/cuda_event_sync.json.gz", "ProfilerStep", 0, 54, 57},
	{"cuda_event_sync_ms", "kineto/cuda_event_sync_multi_stream.json.gz", "", 0, 78, 82},
	{"ns_resolution", "kineto/ns_resolution.json.gz", "ProfilerStep", 0, 11230, 11229},
	{"df_index_resolver", "kineto/df_index_resolver.json.gz", "ProfilerStep", 0, 45084, 45076},
	{"megatron_rank0", "megatron-tp8/kineto_0.json.gz", "ProfilerStep", 0, 15620, 15584},
};

static FILE *open_reference(const char *folder, const char *name)
{
	char path[4096];

	snprintf(
		path, sizeof(path), "%s/reference/hta/%s/%s", getenv("SONDE_TRACES"), folder, name);
	return fopen(path, "r");
}

static void load(struct trace **trace, struct trace_view *view, const char *name, uint32_t rank)
{
	static const struct trace_view_options options = {0};
	char path[4096];
	struct errmsg err;

	if (!getenv("SONDE_TRACES") || access(getenv("SONDE_TRACES"), R_OK) < 0) {
		print_message("no real traces: $SONDE_TRACES does not name their folder\n");
		skip();
	}
	snprintf(path, sizeof(path), "%s/%s", getenv("SONDE_TRACES"), name);
	assert_int_equal(kineto_read(trace, path, NULL, &err), 0);
	assert_int_equal(hta_definitions.view(view, *trace, rank, &options), 0);
}

/* ---- breakdowns: one line for each edge of the path, in no order ---- */

static int compare_lines(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

struct lines {
	ARRAY_OF(char *) items;
};

static void lines_done(struct lines *lines)
{
	array_foreach (&lines->items, line)
		free(*line);
	array_done(&lines->items);
}

static void lines_add(
	struct lines *lines, int64_t event, double duration_us, const char *type, const char *bound)
{
	char *line;

	assert_true(
		asprintf(&line, "%jd %.0f %s %s", (intmax_t)event, duration_us, type, bound) > 0);
	assert_int_equal(array_append(&lines->items, line), 0);
}

static void lines_sort(struct lines *lines)
{
	qsort(lines->items.items, lines->items.count, sizeof(char *), compare_lines);
}

/* ",event_idx,duration,type,s_name,…,bound_by" */
static void read_breakdown(struct lines *lines, const char *folder)
{
	FILE *file = open_reference(folder, "critical_path_breakdown.csv");
	char *line = NULL;
	size_t size = 0;

	assert_non_null(file);
	assert_true(getline(&line, &size, file) > 0);
	while (getline(&line, &size, file) > 0) {
		char *cursor = line, *event, *duration, *type, *bound;

		line[strcspn(line, "\r\n")] = '\0';
		(void)strsep(&cursor, ",");
		event = strsep(&cursor, ",");
		duration = strsep(&cursor, ",");
		type = strsep(&cursor, ",");
		bound = strrchr(cursor, ',') + 1;
		lines_add(lines, *event ? strtoll(event, NULL, 10) : -1, strtod(duration, NULL),
			type, bound);
	}
	free(line);
	fclose(file);
}

static void check_breakdown(
	const char *folder, const struct trace *trace, const struct critical_path *path)
{
	_cleanup_(lines_done) struct lines theirs = {0};
	_cleanup_(lines_done) struct lines ours = {0};

	read_breakdown(&theirs, folder);
	array_foreach (&path->steps, step) {
		const struct trace_event *event =
			step->event == MODEL_NONE ? NULL : &trace->events.items[step->event];

		lines_add(&ours, event ? (int64_t)event->file_index : -1,
			(double)step->duration_ns / 1e3, trace_path_kind_name(step->kind),
			trace_path_bound_name(step->bound));
	}
	lines_sort(&theirs);
	lines_sort(&ours);
	assert_int_equal(ours.items.count, theirs.items.count);
	for (size_t i = 0; i < ours.items.count; i++)
		assert_string_equal(ours.items.items[i], theirs.items.items[i]);
}

static void check_summary(const char *folder, const struct critical_path *path)
{
	FILE *file = open_reference(folder, "critical_path_summary.csv");
	char line[256];

	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	while (fgets(line, sizeof(line), file)) {
		char *cursor = line;
		const char *name = strsep(&cursor, ",");
		int64_t expected_ns = llround(strtod(cursor, NULL) * 1000), found_ns = -1;

		for (int i = 0; i < TRACE_PATH_BOUND_MAX; i++) {
			if (strcmp(trace_path_bound_name((enum trace_path_bound)i), name) == 0)
				found_ns = path->by_bound[i];
		}
		assert_int_equal(found_ns, expected_ns);
	}
	fclose(file);
}

/* ---- edges: [[row, row, "OPERATOR_KERNEL", 4.0], …] in no order; not of all traces ---- */

static void read_edges(struct lines *lines, FILE *file)
{
	char kind[64], line[160];
	unsigned from, to;
	double duration;

	while (fscanf(file, "%*[^0-9]%u, %u, \"%63[A-Z_]\", %lf]", &from, &to, kind, &duration) ==
		4) {
		snprintf(line, sizeof(line), "%u %s", to, kind);
		lines_add(lines, from, duration, line, "");
	}
}

static void check_edges(
	const char *folder, const struct trace *trace, const struct critical_path *path)
{
	static const char *const kinds[TRACE_PATH_KIND_MAX] = {
		[TRACE_PATH_OPERATOR] = "OPERATOR_KERNEL",
		[TRACE_PATH_DEPENDENCY] = "DEPENDENCY",
		[TRACE_PATH_LAUNCH_DELAY] = "KERNEL_LAUNCH_DELAY",
		[TRACE_PATH_KERNEL_DELAY] = "KERNEL_KERNEL_DELAY",
		[TRACE_PATH_SYNC] = "SYNC_DEPENDENCY",
	};
	_cleanup_(lines_done) struct lines theirs = {0};
	_cleanup_(lines_done) struct lines ours = {0};
	FILE *file = open_reference(folder, "critical_path_edges.json");
	char line[160];

	if (!file)
		return;
	read_edges(&theirs, file);
	fclose(file);
	array_foreach (&path->steps, step) {
		snprintf(line, sizeof(line), "%u %s", trace->events.items[step->to].file_index,
			kinds[step->kind]);
		lines_add(&ours, trace->events.items[step->from].file_index,
			(double)step->duration_ns / 1e3, line, "");
	}
	lines_sort(&theirs);
	lines_sort(&ours);
	assert_int_equal(ours.items.count, theirs.items.count);
	for (size_t i = 0; i < ours.items.count; i++)
		assert_string_equal(ours.items.items[i], theirs.items.items[i]);
}

static void paths_are_those_of_hta(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(references); i++) {
		const struct reference *reference = &references[i];
		_cleanup_trace_ struct trace *trace = NULL;
		_cleanup_trace_view_ struct trace_view view = {0};
		_cleanup_critical_paths_ struct critical_paths paths = {0};
		struct critical_path_options options = {.annotation = reference->annotation,
			.first = reference->instance,
			.last = reference->instance};
		const struct critical_path *path;

		load(&trace, &view, reference->trace, 0);
		assert_int_equal(hta_definitions.paths(&paths, &view, &options), 0);
		assert_int_equal(paths.windows.count, 1);
		path = &paths.windows.items[0];
		assert_int_equal(path->nodes, reference->nodes);
		assert_int_equal(path->edges, reference->edges);
		check_breakdown(reference->folder, trace, path);
		check_summary(reference->folder, path);
		check_edges(reference->folder, trace, path);
	}
}

/* ---- comparisons: figures of HTA f4d0062, run with these traces ---- */

static void comparisons_are_those_of_hta(void **state)
{
	static const struct {
		const char *name;
		uint64_t rows;
	} changes[] = {{"added", 4}, {"deleted", 29}, {"increased", 21}, {"decreased", 34},
		{"unchanged", 310}};
	_cleanup_trace_ struct trace *before = NULL, *after = NULL;
	_cleanup_trace_view_ struct trace_view first = {0}, second = {0};
	_cleanup_row_diff_ struct row_diff diff = {0};
	uint64_t found[ARRAY_SIZE(changes)] = {0}, counts[2] = {0};
	int64_t times_ns[2] = {0};

	load(&before, &first, "kineto/timeline_rank0.json.gz", 0);
	load(&after, &second, "kineto/timeline_rank1.json.gz", 1);
	assert_int_equal(hta_diff_init(&diff, (const struct trace_view *[]){&first, &second}), 0);
	array_foreach (&diff.rows, row) {
		for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
			found[i] += strcmp(changes[i].name, hta_diff_change_name(row)) == 0;
		for (int i = 0; i < 2; i++) {
			counts[i] += row->sides[i].count;
			times_ns[i] += row->sides[i].total_ns;
		}
	}
	assert_int_equal(diff.rows.count, 398);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		assert_int_equal(found[i], changes[i].rows);
	assert_int_equal(counts[0], 2403);
	assert_int_equal(counts[1], 2339);
	assert_int_equal(times_ns[0] / 1000, 2235240);
	assert_int_equal(times_ns[1] / 1000, 2245239);
	/* The largest change. */
	assert_int_equal(diff.rows.items[0].sides[0].count, 5);
	assert_int_equal(diff.rows.items[0].sides[0].total_ns / 1000, 195327);
	assert_int_equal(diff.rows.items[0].sides[1].total_ns / 1000, 168027);
}

static void stragglers_are_those_of_hta(void **state)
{
	_cleanup_trace_ struct trace *first = NULL, *second = NULL;
	_cleanup_ranks_ struct ranks ranks = {0};
	struct trace_view views[2] = {0};
	struct rank_input input = {
		.views = views, .view_count = 2, .definition = hta_definitions.ranks};

	load(&first, &views[0], "kineto/timeline_rank0.json.gz", 0);
	load(&second, &views[1], "kineto/timeline_rank1.json.gz", 1);
	input.definition.candidates = 1;
	assert_int_equal(ranks_init(&ranks, &input), 0);
	/* Step 551: 47,652 µs from 269,204 on, and 17,614 from 433,395. */
	assert_int_equal(ranks.stream, 84);
	assert_int_equal(ranks.steps, 1);
	assert_int_equal(ranks.lateness.items[0].rank, 1);
	assert_int_equal(ranks.lateness.items[0].lateness_ns, (433395 - 269204) * 1000);
	assert_int_equal(ranks.lateness.items[0].duration_ns, 17614 * 1000);
	assert_int_equal(ranks.lateness.items[1].duration_ns, 47652 * 1000);
	trace_view_done(&views[0]);
	trace_view_done(&views[1]);
}

static void sequences_are_those_of_hta(void **state)
{
	_cleanup_trace_ struct trace *trace = NULL;
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_trace_sequences_ struct trace_sequences sequences = {0};

	load(&trace, &view, "kineto/critical_path_alexnet.json.gz", 0);
	assert_int_equal(trace_sequences_init(&sequences, &view,
				 &(struct trace_sequence_options){.op = "aten::conv2d"}),
		0);
	assert_int_equal(sequences.items.count, 5);
	assert_int_equal(sequences.items.items[0].count, 6);
	assert_int_equal(sequences.items.items[0].kernel_count, 4);
	assert_int_equal(sequences.items.items[0].kernel_ns / 1000, 2403);
	assert_int_equal(sequences.items.items[0].op_ns / 1000, 5034);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_those_of_hta),
		cmocka_unit_test(comparisons_are_those_of_hta),
		cmocka_unit_test(stragglers_are_those_of_hta),
		cmocka_unit_test(sequences_are_those_of_hta),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
