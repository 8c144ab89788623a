/* SPDX-License-Identifier: Apache-2.0 */
/* Sections: device work by kind and by name; annotations of devices' timelines. */
#include <errno.h>
#include <math.h>

#include "analyses/device/occupancy.h"
#include "model/format.h"
#include "report/columns.h"
#include "report/sections.h"

/* As REPORT_DEVICE_COLUMNS; the device is not worth a column where there is one. */
#define DEVICE_COLUMNS                                                                             \
	{.title = "GPU", .kind = REPORT_TEXT, .hide = REPORT_HIDE_SAME},                           \
		{.key = "rank", .kind = REPORT_INTEGER},                                           \
		{.key = "device", .kind = REPORT_INTEGER},                                         \
	{                                                                                          \
		.key = "device_name", .kind = REPORT_TEXT                                          \
	}

/* What rows of kernels and of annotations have; the name follows. */
#define FIGURE_COLUMNS                                                                             \
	{.title = "Time", .kind = REPORT_SHARE},                                                   \
		{.key = "sum_ns", .title = "Total", .kind = REPORT_NS},                            \
		{.key = "count", .title = "Count", .kind = REPORT_COUNT},                          \
		{.key = "median_ns", .title = "Median", .kind = REPORT_NS, .yields = true},        \
		{.key = "mean_ns", .title = "Mean", .kind = REPORT_NS},                            \
		{.key = "std_ns",                                                                  \
			.title = "Std",                                                            \
			.kind = REPORT_NS,                                                         \
			.yields = true,                                                            \
			.help = "of the sample"},                                                  \
		{.key = "min_ns", .title = "Min", .kind = REPORT_NS, .yields = true},              \
		{.key = "max_ns", .title = "Max", .kind = REPORT_NS},                              \
		{.title = "Least (rank)", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY},         \
	{                                                                                          \
		.title = "Most (rank)", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY             \
	}

static void add_rank_total(struct result *result, int64_t total_ns, uint32_t rank)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	format_duration(&text, (uint64_t)MAX(total_ns, (int64_t)0));
	strbuf_inherit_status(&result->texts, &text);
	result_textf(result, "%s (%u)", strbuf_cstr(&text), rank);
}

static void add_figures(struct result *result, const struct kernels *kernels,
	const struct kernel_row *row, bool joined)
{
	result_share(result, (double)row->total_ns, (double)kernels->total_ns);
	result_i64(result, row->total_ns);
	result_u64(result, row->count);
	result_i64(result, row->median_ns);
	result_number(result, row->mean_ns);
	result_number(result, row->deviation_ns);
	result_i64(result, row->least_ns);
	result_i64(result, row->most_ns);
	if (joined) {
		add_rank_total(result, row->least_total_ns, row->least_rank);
		add_rank_total(result, row->most_total_ns, row->most_rank);
	} else {
		result_null(result);
		result_null(result);
	}
}

/* `view` NULL: of several. */
static void add_device(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct kernel_row *row)
{
	if (view && row->device < view->devices.count) {
		columns_add_device(result, input->trace, view, row->device);
		return;
	}
	result_null(result);
	result_known(result, view != NULL, view ? view->rank : 0);
	result_null(result);
	result_null(result);
}

/* Adds rows of a table that is open. */
typedef void add_rows(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct kernels *kernels);

/* A table of each rank's rows, which is JSON's, and of several one of all together, which is the
 * terminal's. Returns what to show. */
static int add_tables(struct result *result, const struct report_input *input,
	int (*init)(struct kernels *kernels, const struct trace_view *views, size_t count),
	add_rows *add, uint32_t *ret_table)
{
	const struct trace_report *report = input->trace;
	_cleanup_kernels_ struct kernels all = {0};
	int r = 0;

	*ret_table = result_open(result);
	for (size_t i = 0; r == 0 && i < report->count; i++) {
		_cleanup_kernels_ struct kernels kernels = {0};

		r = init(&kernels, &report->views[i], 1);
		add(result, input, &report->views[i], &kernels);
	}
	result_close(result);
	if (r < 0 || report->count < 2) {
		result_null(result);
		return r;
	}
	r = init(&all, report->views, report->count);
	*ret_table = result_open(result);
	add(result, input, NULL, &all);
	result_close(result);
	return r;
}

/* ---- kernels ---- */

static const struct report_column block_columns[] = {
	{.key = "threads", .kind = REPORT_COUNT},
};
static const struct report_shape block_shape = REPORT_SHAPE(block_columns);

static const struct report_column kernel_columns[] = {
	DEVICE_COLUMNS,
	FIGURE_COLUMNS,
	{.key = "kernel_type",
		.title = "Kind",
		.kind = REPORT_TEXT,
		.help = "compute, communication or memory"},
	{.key = "known_by",
		.title = "Known by",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of communication: operator, group, option, name or stream"},
	{.key = "mean_queue_ns",
		.title = "Queue",
		.kind = REPORT_NS,
		.hide = REPORT_HIDE_EMPTY,
		.help = "from when the driver handed it to the device to its start, on average; "
			"null: not recorded (CUDA: --cuda-latency)"},
	{.title = "Priority", .kind = REPORT_INTEGER, .hide = REPORT_HIDE_SAME},
	{.key = "name", .title = "Kernel", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 16},
	{.key = "priority",
		.kind = REPORT_INTEGER,
		.help = "of the longest run's launch, the lower the more urgent; null: not known"},
	{.key = "priorities_differ", .kind = REPORT_FLAG, .help = "other runs had others"},
	{.key = "block",
		.kind = REPORT_LIST,
		.shape = &block_shape,
		.help = "three sizes; this and the next ones are of the longest run; null: not "
			"known"},
	{.key = "registers", .kind = REPORT_COUNT, .help = "of a thread"},
	{.key = "shared_bytes", .kind = REPORT_BYTES, .help = "of a block"},
	{.key = "configurations_differ", .kind = REPORT_FLAG, .help = "other runs had others"},
	{.key = "theoretical_occupancy",
		.kind = REPORT_SHARE,
		.help = "null: the GPU's facts are not known"},
	{.key = "occupancy_limit", .kind = REPORT_TEXT},
};
static const struct report_shape kernel_shape = REPORT_SHAPE(kernel_columns);

static bool find_occupancy(const struct report_input *input, const struct kernel_row *row,
	struct occupancy *ret_occupancy)
{
	return occupancy_of_work(input->trace->views->trace, row->configuration, ret_occupancy);
}

static void add_configuration(
	struct result *result, const struct report_input *input, const struct kernel_row *row)
{
	const struct trace_work *configuration = row->configuration;
	struct occupancy occupancy;

	if (!configuration) {
		for (int i = 0; i < 6; i++)
			result_null(result);
		return;
	}
	result_open(result);
	for (int i = 0; i < 3; i++)
		result_u64(result, configuration->block[i]);
	result_close(result);
	result_known(result, configuration->registers != 0, configuration->registers);
	result_u64(result, configuration->shared_bytes);
	result_flag(result, row->configurations_differ);
	if (find_occupancy(input, row, &occupancy)) {
		result_number(result, occupancy.share);
		result_text(result, occupancy_limit_name(occupancy.limit));
	} else {
		result_null(result);
		result_null(result);
	}
}

static void add_priority(struct result *result, const struct kernel_row *row)
{
	if (row->has_priority)
		result_i64(result, row->priority);
	else
		result_null(result);
}

static void add_kernels(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct kernels *kernels)
{
	size_t wanted = report_rows_wanted(result, input, kernels->rows.count);

	for (size_t i = 0; i < wanted; i++) {
		const struct kernel_row *row = &kernels->rows.items[i];

		add_device(result, input, view, row);
		add_figures(result, kernels, row, !view);
		result_text(result, input->trace->definitions->kind_names[row->kind]);
		result_text(result, communication_evidence_name(row->evidence));
		result_number(result,
			row->queue_count ? (double)row->queue_total_ns / (double)row->queue_count
					 : (double)NAN);
		add_priority(result, row);
		result_text(result, row->name);
		add_priority(result, row);
		result_flag(result, row->priorities_differ);
		add_configuration(result, input, row);
	}
}

/* ---- launch configurations, in the terminal alone ---- */

static const struct report_column configuration_columns[] = {
	{.title = "Time", .kind = REPORT_SHARE},
	{.title = "Block", .kind = REPORT_TEXT},
	{.title = "Registers", .kind = REPORT_COUNT},
	{.title = "Shared", .kind = REPORT_BYTES},
	{.title = "Occupancy", .kind = REPORT_SHARE},
	{.title = "Limited by", .kind = REPORT_TEXT},
	{.title = "Kernel", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 16},
};
static const struct report_shape configuration_shape = REPORT_SHAPE(configuration_columns);

static void add_configuration_row(struct result *result, const struct report_input *input,
	const struct kernels *kernels, const struct kernel_row *row)
{
	const struct trace_work *configuration = row->configuration;
	struct occupancy occupancy;
	bool known = find_occupancy(input, row, &occupancy);

	result_share(result, (double)row->total_ns, (double)kernels->total_ns);
	result_textf(result, "%u\xc3\x97%u\xc3\x97%u", configuration->block[0],
		configuration->block[1], configuration->block[2]);
	result_known(result, configuration->registers != 0, configuration->registers);
	result_u64(result, configuration->shared_bytes);
	result_number(result, known ? occupancy.share : (double)NAN);
	result_text(result,
		known && occupancy.share < 1 ? occupancy_limit_name(occupancy.limit) : NULL);
	result_text(result, row->name);
}

/* Of the kernels that have one; null when none has. */
static int add_configurations(
	struct result *result, const struct report_input *input, uint32_t *ret_table)
{
	const struct kernels *kernels = trace_results_kernels(input->trace->results);
	size_t count = 0;

	if (!kernels)
		return -ENOMEM;
	array_foreach (&kernels->rows, row)
		count += row->configuration != NULL;
	*ret_table = MODEL_NONE;
	if (!count) {
		result_null(result);
		return 0;
	}
	*ret_table = result_open(result);
	array_foreach (&kernels->rows, row) {
		if (row->configuration)
			add_configuration_row(result, input, kernels, row);
	}
	result_close(result);
	return 0;
}

/* ---- kinds ---- */

static const struct report_column kind_columns[] = {
	{.key = "share", .title = "Time", .kind = REPORT_SHARE},
	{.key = "sum_ns", .title = "Total", .kind = REPORT_NS},
	DEVICE_COLUMNS,
	{.key = "kernel_type",
		.title = "What ran",
		.kind = REPORT_TEXT,
		.help = "with + between kinds that ran at the same time"},
};
static const struct report_shape kind_shape = REPORT_SHAPE(kind_columns);

static void add_set_name(
	struct result *result, const struct trace_definitions *definitions, unsigned set)
{
	_cleanup_strbuf_ struct strbuf name = {0};

	for (unsigned kind = 0; kind < TRACE_OTHER_KIND; kind++) {
		if (set & 1U << kind)
			strbuf_addf(&name, "%s%s", name.length ? definitions->between_kinds : "",
				definitions->kind_names[kind]);
	}
	strbuf_inherit_status(&result->texts, &name);
	result_text(result, strbuf_cstr(&name));
}

static int64_t sum_of(const int64_t *sets_ns)
{
	int64_t sum_ns = 0;

	for (unsigned set = 1; set < TEMPORAL_SETS; set++)
		sum_ns += sets_ns[set];
	return sum_ns;
}

/* `view` NULL: of all devices together. */
static void add_sets(struct result *result, const struct report_input *input,
	const struct trace_view *view, uint32_t device, const int64_t *sets_ns)
{
	int64_t sum_ns = sum_of(sets_ns);

	for (unsigned set = 1; set < TEMPORAL_SETS; set++) {
		if (!sets_ns[set])
			continue;
		result_share(result, (double)sets_ns[set], (double)sum_ns);
		result_i64(result, sets_ns[set]);
		if (view)
			columns_add_device(result, input->trace, view, device);
		for (int i = 0; !view && i < 4; i++)
			result_null(result);
		add_set_name(result, input->trace->definitions, set);
	}
}

/* Of each device; and all of them in one table, which is the terminal's. */
static int add_kinds(struct result *result, const struct report_input *input, uint32_t *ret_table)
{
	const struct trace_report *report = input->trace;
	int64_t all_ns[TEMPORAL_SETS] = {0};

	result_open(result);
	for (size_t i = 0; i < report->count; i++) {
		const struct temporal *temporal = trace_results_temporal(report->results, i);

		if (!temporal)
			return -ENOMEM;
		for (uint32_t k = 0; k < temporal->devices.count; k++) {
			const int64_t *sets_ns = temporal->devices.items[k].by_set_ns;

			add_sets(result, input, &report->views[i], k, sets_ns);
			for (unsigned set = 1; set < TEMPORAL_SETS; set++)
				all_ns[set] += sets_ns[set];
		}
	}
	result_close(result);
	*ret_table = result_open(result);
	add_sets(result, input, NULL, 0, all_ns);
	result_close(result);
	return 0;
}

/* ---- the sections ---- */

static const struct report_column columns[] = {
	{.key = "kernels",
		.total = "kernels_total",
		.kind = REPORT_ROWS,
		.shape = &kernel_shape,
		.help = "by rank, then most time first"},
	{.kind = REPORT_ROWS, .shape = &kernel_shape}, /* of several ranks together */
	{.kind = REPORT_ROWS, .shape = &configuration_shape},
	{.key = "types", .kind = REPORT_ROWS, .shape = &kind_shape, .help = "by device"},
	{.kind = REPORT_ROWS, .shape = &kind_shape}, /* of all devices together */
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static int make(struct result *result, const struct report_input *input)
{
	const struct result_show show = {
		.limit = report_rows_shown(input, 20, 10), .noun = "kernels"};
	uint32_t kernels, configurations, kinds;
	int r;

	if (!columns_has_works(result, input))
		return 0;
	result_open(result);
	r = add_tables(result, input, kernels_init, add_kernels, &kernels);
	if (r < 0)
		return r;
	r = add_configurations(result, input, &configurations);
	if (r < 0)
		return r;
	r = add_kinds(result, input, &kinds);
	if (r < 0)
		return r;
	result_close(result);
	result_heading(result, "Kernel breakdown");
	result_show(result, kinds, &(struct result_show){0});
	result_lines(result, "\n");
	result_show(result, kernels, &show);
	if (configurations == MODEL_NONE)
		return 0;
	result_heading(result, "Theoretical occupancy of kernels, in their longest run");
	result_show(result, configurations, &(struct result_show){.limit = show.limit});
	return 0;
}

const struct report_section kernel_section = {
	.value = {.key = "kernel",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "time by kind of work, and by kernel"},
	.by = "kernel",
	.summary = "time by kind of work, and by kernel",
	.needs = REPORT_NEEDS_ROWS,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};

/* ---- annotations ---- */

static const struct report_column annotation_columns[] = {
	{.key = "rank", .kind = REPORT_INTEGER},
	FIGURE_COLUMNS,
	{.key = "name", .title = "Annotation", .kind = REPORT_TEXT, .shrinks_to = 16},
};
static const struct report_shape annotation_shape = REPORT_SHAPE(annotation_columns);

static void add_annotations(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct kernels *kernels)
{
	size_t wanted = report_rows_wanted(result, input, kernels->rows.count);

	for (size_t i = 0; i < wanted; i++) {
		result_known(result, view != NULL, view ? view->rank : 0);
		add_figures(result, kernels, &kernels->rows.items[i], !view);
		result_text(result, kernels->rows.items[i].name);
	}
}

static const struct report_column both_columns[] = {
	{.key = "annotations",
		.total = "annotations_total",
		.kind = REPORT_ROWS,
		.shape = &annotation_shape,
		.help = "time on the device of record_function() blocks: by rank, then most time "
			"first"},
	{.kind = REPORT_ROWS, .shape = &annotation_shape}, /* of several ranks together */
};
static const struct report_shape both_shape = REPORT_SHAPE(both_columns);

static int make_annotations(struct result *result, const struct report_input *input)
{
	const struct result_show show = {
		.limit = report_rows_shown(input, 20, 10), .noun = "annotations"};
	uint32_t table;
	int r;

	result_open(result);
	r = add_tables(result, input, kernels_of_annotations, add_annotations, &table);
	if (r < 0)
		return r;
	result_close(result);
	if (!result_count(result, table))
		return report_nothing(result, input,
			"There are no annotations of the GPU's timeline: PyTorch writes them for "
			"record_function() blocks that launch work.");
	result_heading(result, "GPU user annotations");
	result_show(result, table, &show);
	return 0;
}

/* A recording has the same as ranges. */
const struct report_section annotations_section = {
	.value = {.kind = REPORT_OBJECT, .shape = &both_shape},
	.by = "annotations",
	.summary = "time on the GPU of record_function() blocks",
	.needs = REPORT_NEEDS_ROWS,
	.is_extra_of_recordings = true,
	.shows = SELECTION_DEVICE_WORK,
	.make = make_annotations,
};
