/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views of real traces by compat/hta have the figures of HTA f4d0062, which stand as CSV
 * files in the folder that $SONDE_TRACES names. Without that folder the tests are skipped.
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

#include "analyses/device/copies.h"
#include "analyses/device/idle.h"
#include "analyses/device/kernels.h"
#include "analyses/device/launches.h"
#include "analyses/device/queue.h"
#include "analyses/device/temporal.h"
#include "compat/hta/hta.h"
#include "importers/kineto/kineto.h"

#define MAX_CELLS 16
#define US        1000.0

static const struct reference {
	const char *folder, *trace;
} references[] = {
	{"alexnet_cp", "kineto/critical_path_alexnet.json.gz"},
	{"simple_add_cp", "kineto/critical_path_simple_add.json.gz"},
	{"cuda_event_sync", "kineto/cuda_event_sync.json.gz"},
	{"cuda_event_sync_ms", "kineto/cuda_event_sync_multi_stream.json.gz"},
	{"ns_resolution", "kineto/ns_resolution.json.gz"},
	{"df_index_resolver", "kineto/df_index_resolver.json.gz"},
	{"megatron_rank0", "megatron-tp8/kineto_0.json.gz"},
};

/* ---- CSV ---- */

struct csv {
	FILE *file;
	char *line;
	size_t size;
	char *cells[MAX_CELLS];
	size_t count;
};

static bool csv_open(struct csv *csv, const char *folder, const char *name, int headers)
{
	char path[4096];

	*csv = (struct csv){0};
	snprintf(path, sizeof(path), "%s/reference/hta/%s/%s.csv", getenv("SONDE_TRACES"), folder,
		name);
	csv->file = fopen(path, "r");
	for (int i = 0; csv->file && i < headers; i++)
		assert_true(getline(&csv->line, &csv->size, csv->file) > 0);
	return csv->file != NULL;
}

/* A cell in quotes may contain commas; quotes in it are doubled. False: it was the last one. */
static bool split_cell(char **cursor, char **ret_cell)
{
	char *to = *cursor;
	bool quoted = **cursor == '"', has_next;

	*ret_cell = to;
	if (quoted)
		(*cursor)++;
	for (; **cursor && (quoted || **cursor != ','); (*cursor)++) {
		if (quoted && **cursor == '"' && *++*cursor != '"')
			break;
		*to++ = **cursor;
	}
	has_next = **cursor == ',';
	(*cursor)++;
	*to = '\0';
	return has_next;
}

static bool csv_next(struct csv *csv)
{
	char *cursor;

	if (getline(&csv->line, &csv->size, csv->file) <= 0)
		return false;
	csv->line[strcspn(csv->line, "\r\n")] = '\0';
	cursor = csv->line;
	csv->count = 0;
	while (csv->count + 1 < MAX_CELLS && split_cell(&cursor, &csv->cells[csv->count]))
		csv->count++;
	csv->count++;
	return true;
}

static void csv_close(struct csv *csv)
{
	fclose(csv->file);
	free(csv->line);
}

/* Equal to 1e-9; an empty cell is NaN. `step`: what the cell was rounded to; 0: nothing. */
static void check_cell(const struct csv *csv, size_t cell, double value, double step)
{
	const char *text;
	double expected, limit;

	assert_true(cell < csv->count);
	text = csv->cells[cell];
	if (!*text) {
		assert_true(isnan(value));
		return;
	}
	expected = strtod(text, NULL);
	limit = fabs(expected) * 1e-9 + step * 0.5000001;
	if (!(fabs(value - expected) <= limit))
		fail_msg("column %zu: %.17g, but HTA has %s", cell, value, text);
}

/* ---- comparisons ---- */

static void check_temporal(const char *folder, const struct trace_view *view)
{
	_cleanup_temporal_ struct temporal temporal = {0};
	const struct temporal_device *device;
	struct csv csv;
	double communication_ns;

	assert_int_equal(temporal_init(&temporal, view), 0);
	assert_int_equal(temporal.devices.count, 1);
	device = &temporal.devices.items[0];
	assert_true(csv_open(&csv, folder, "temporal_breakdown", 1));
	assert_true(csv_next(&csv));
	check_cell(&csv, 2, (double)device->idle_ns / US, 0);
	check_cell(&csv, 3, (double)device->by_kind_ns[TRACE_COMPUTE] / US, 0);
	check_cell(&csv, 4, (double)temporal_non_compute_ns(device) / US, 0);
	check_cell(&csv, 5, (double)temporal_span_ns(device) / US, 0);
	csv_close(&csv);

	communication_ns = (double)device->by_kind_ns[TRACE_COMMUNICATION];
	assert_true(csv_open(&csv, folder, "comm_comp_overlap", 1));
	assert_true(csv_next(&csv));
	check_cell(&csv, 2,
		100 * (double)device->communication_beside_compute_ns / communication_ns, 0.01);
	csv_close(&csv);
}

static double time_of_set(const struct trace_view *view, const char *types)
{
	_cleanup_temporal_ struct temporal temporal = {0};
	unsigned set = 0;

	for (unsigned kind = 0; kind < TRACE_OTHER_KIND; kind++) {
		if (strstr(types, hta_definitions.kind_names[kind]))
			set |= 1U << kind;
	}
	assert_int_equal(temporal_init(&temporal, view), 0);
	return (double)temporal.devices.items[0].by_set_ns[set] / US;
}

/* A type of 0 us is there or not as equal times happened to be sorted: it says nothing. */
static void check_types(const char *folder, const struct trace_view *view)
{
	struct csv csv;

	assert_true(csv_open(&csv, folder, "kernel_breakdown_0", 1));
	while (csv_next(&csv))
		check_cell(&csv, 2, time_of_set(view, csv.cells[1]), 0);
	csv_close(&csv);
}

static const struct kernel_row *find_kernel(
	const struct kernels *kernels, const char *name, int kind)
{
	array_foreach (&kernels->rows, row) {
		if (strcmp(row->name, name) == 0 && (kind < 0 || (int)row->kind == kind))
			return row;
	}
	fail_msg("no row of %s", name);
	return NULL;
}

static void check_kernel(const struct csv *csv, const struct kernel_row *row)
{
	check_cell(csv, 2, (double)row->total_ns / US, 0);
	check_cell(csv, 3, (double)row->most_ns / US, 0);
	check_cell(csv, 4, (double)row->least_ns / US, 0);
	check_cell(csv, 5, row->deviation_ns / US, 1e-12);
	check_cell(csv, 6, row->mean_ns / US, 0);
}

static void check_kernels(const char *folder, const struct trace_view *view)
{
	_cleanup_kernels_ struct kernels kernels = {0};
	struct csv csv;
	size_t count = 0;

	assert_int_equal(kernels_init(&kernels, view, 1), 0);
	assert_true(csv_open(&csv, folder, "kernel_breakdown_1", 1));
	for (; csv_next(&csv); count++) {
		int kind = 0;

		while (strcmp(csv.cells[7], hta_definitions.kind_names[kind]) != 0)
			kind++;
		check_kernel(&csv, find_kernel(&kernels, csv.cells[1], kind));
	}
	assert_int_equal(count, kernels.rows.count);
	csv_close(&csv);
}

static void check_annotations(const char *folder, const struct trace_view *view)
{
	_cleanup_kernels_ struct kernels annotations = {0};
	struct csv csv;
	size_t count = 0;

	assert_int_equal(kernels_of_annotations(&annotations, view, 1), 0);
	if (!csv_open(&csv, folder, "user_anno_breakdown", 1))
		return;
	for (; csv_next(&csv); count++)
		check_kernel(&csv, find_kernel(&annotations, csv.cells[1], -1));
	assert_int_equal(count, annotations.rows.count);
	csv_close(&csv);
}

/* Eight columns from `first` on: count, mean, std, min, 25%, 50%, 75%, max. */
static void check_describe(const struct csv *csv, size_t first,
	const struct trace_describe *describe, double unit, double step)
{
	const double values[] = {describe->mean, describe->deviation, describe->least,
		describe->quarter, describe->median, describe->three_quarters, describe->most};

	check_cell(csv, first, (double)describe->count, 0);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		check_cell(csv, first + 1 + i, values[i] / unit, step);
}

static const struct device_idle_place *find_place(
	const struct device_idle *idle, const struct trace_view *view, const char *stream)
{
	array_foreach (&idle->places, place) {
		if (view->streams.items[place->stream].number == strtoll(stream, NULL, 10))
			return place;
	}
	fail_msg("no stream %s", stream);
	return NULL;
}

static enum device_idle_cause find_cause(const char *name)
{
	int cause = 0;

	while (strcmp(device_idle_cause_name((enum device_idle_cause)cause), name) != 0)
		cause++;
	return (enum device_idle_cause)cause;
}

static void check_idle(const char *folder, const struct trace_view *view)
{
	_cleanup_device_idle_ struct device_idle idle = {0};
	struct csv csv;
	size_t listed = 0, count = 0;

	assert_int_equal(hta_definitions.idle(&idle, view), 0);
	array_foreach (&idle.places, place) {
		for (int cause = 0; cause < DEVICE_IDLE_CAUSE_MAX; cause++)
			listed += place->is_listed[cause];
	}
	assert_true(csv_open(&csv, folder, "idle_breakdown_0", 1));
	for (; csv_next(&csv); count++) {
		const struct device_idle_place *place = find_place(&idle, view, csv.cells[2]);
		enum device_idle_cause cause = find_cause(csv.cells[3]);

		check_cell(&csv, 4, (double)place->by_cause_ns[cause] / US, 0);
		check_cell(
			&csv, 5, (double)place->by_cause_ns[cause] / (double)place->idle_ns, 0.01);
	}
	assert_int_equal(count, listed);
	csv_close(&csv);
	assert_true(csv_open(&csv, folder, "idle_breakdown_1", 1));
	while (csv_next(&csv)) {
		const struct device_idle_place *place = find_place(&idle, view, csv.cells[2]);
		struct trace_describe gaps;

		assert_int_equal(
			device_idle_describe(&idle, place, find_cause(csv.cells[0]), &gaps), 0);
		check_describe(&csv, 3, &gaps, US, 0.01);
	}
	csv_close(&csv);
}

static void check_queue(const char *folder, const struct trace_view *view)
{
	_cleanup_queue_ struct queue queue = {0};
	struct csv csv;
	size_t count = 0;

	assert_int_equal(hta_definitions.queue(&queue, view), 0);
	assert_true(csv_open(&csv, folder, "queue_length_summary", 3));
	for (; csv_next(&csv); count++) {
		const struct queue_stream *stream = queue.streams.items;

		while (view->streams.items[stream->stream].number !=
			strtoll(csv.cells[1], NULL, 10))
			stream++;
		check_describe(&csv, 2, &stream->points, 1, 0);
	}
	assert_int_equal(count, queue.streams.count);
	csv_close(&csv);
}

static void check_copies(const char *folder, const struct trace_view *view)
{
	_cleanup_copies_ struct copies copies = {0};
	struct csv csv;
	size_t count = 0;

	assert_int_equal(hta_definitions.copies(&copies, view), 0);
	assert_true(csv_open(&csv, folder, "memory_bw_summary", 3));
	for (; csv_next(&csv); count++) {
		const struct copies_row *row = copies.rows.items;

		while (row->name_length != strlen(csv.cells[1]) ||
			memcmp(row->name, csv.cells[1], row->name_length) != 0)
			row++;
		check_describe(&csv, 2, &row->points, 1, 0);
	}
	assert_int_equal(count, copies.rows.count);
	csv_close(&csv);
}

static void check_launches(const char *folder, const struct trace_view *view)
{
	_cleanup_launches_ struct launches launches = {0};
	struct csv csv;
	size_t count = 0;

	assert_int_equal(hta_definitions.launches(&launches, view), 0);
	assert_true(csv_open(&csv, folder, "launch_stats_0", 1));
	for (; csv_next(&csv); count++) {
		const struct launch *launch = &launches.rows.items[count];

		assert_true(count < launches.rows.count);
		check_cell(&csv, 1, (double)launch->correlation, 0);
		check_cell(&csv, 2, (double)launch->call_ns / US, 0);
		check_cell(&csv, 3, (double)launch->work_ns / US, 0);
		check_cell(&csv, 4, (double)launch->delay_ns / US, 0);
	}
	assert_int_equal(count, launches.rows.count);
	csv_close(&csv);
}

static void figures_are_those_of_hta(void **state)
{
	static void (*const checks[])(const char *, const struct trace_view *) = {check_temporal,
		check_types, check_kernels, check_annotations, check_idle, check_queue,
		check_copies, check_launches};
	const struct trace_view_options options = {0};
	const struct reference *reference = *state;
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_trace_ struct trace *trace = NULL;
	struct errmsg err = {{0}};
	char path[4096];

	if (!getenv("SONDE_TRACES") || access(getenv("SONDE_TRACES"), R_OK) < 0) {
		print_message("SONDE_TRACES names no folder of traces\n");
		skip();
	}
	snprintf(path, sizeof(path), "%s/%s", getenv("SONDE_TRACES"), reference->trace);
	if (kineto_read(&trace, path, NULL, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(hta_definitions.view(&view, trace, 0, &options), 0);
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		checks[i](reference->folder, &view);
}

int main(void)
{
	struct CMUnitTest tests[ARRAY_SIZE(references)];

	for (size_t i = 0; i < ARRAY_SIZE(references); i++)
		tests[i] = (struct CMUnitTest){
			.name = references[i].folder,
			.test_func = figures_are_those_of_hta,
			.initial_state = (void *)&references[i],
		};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
