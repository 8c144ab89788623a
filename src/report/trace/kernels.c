/* SPDX-License-Identifier: Apache-2.0 */
/* Sections: kinds of work and kernels by name; annotations of the GPU's timeline. */
#include <errno.h>

#include "model/format.h"
#include "report/trace/report_json.h"
#include "report/trace/trace.h"

/* ---- kinds ---- */

static int sum_sets(const struct trace_report *report, int64_t *sets_ns)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct trace_temporal *temporal = trace_results_temporal(report->results, i);

		if (!temporal)
			return -ENOMEM;
		array_foreach (&temporal->devices, device) {
			for (unsigned set = 1; set < TRACE_KIND_SETS; set++)
				sets_ns[set] += device->by_set_ns[set];
		}
	}
	return 0;
}

static void add_set(struct table *table, unsigned set, bool hta)
{
	_cleanup_strbuf_ struct strbuf name = {0};

	trace_kinds_name(set, hta, " overlapping ", &name);
	table_cell(table, strbuf_cstr(&name));
}

static int print_sets(const struct trace_report *report)
{
	static const struct table_column columns[] = {
		{.title = "Time", .right = true},
		{.title = "What ran"},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	int64_t sets_ns[TRACE_KIND_SETS] = {0}, sum_ns = 0;
	int r = sum_sets(report, sets_ns);

	for (unsigned set = 1; set < TRACE_KIND_SETS; set++)
		sum_ns += sets_ns[set];
	for (unsigned set = 1; set < TRACE_KIND_SETS; set++) {
		if (!sets_ns[set])
			continue;
		report_trace_part(&table, sets_ns[set], sum_ns);
		add_set(&table, set, report->views->options.hta_compatible);
	}
	return r ?: table_print(&table, &report->page.terminal, report->page.out);
}

/* ---- by name ---- */

static void add_rank_total(struct table *table, int64_t total_ns, uint32_t rank)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	format_duration(&text, (uint64_t)MAX(total_ns, (int64_t)0));
	strbuf_addf(&text, " (%u)", rank);
	table_cell(table, strbuf_cstr(&text));
}

static bool knows_communication(const struct trace_kernel_ranks *ranks)
{
	bool knows = false;

	array_foreach (&ranks->rows, row)
		knows = knows || row->evidence != COMMUNICATION_NOT;
	return knows;
}

static void add_row(struct table *table, const struct trace_report *report,
	const struct trace_kernel_ranks *ranks, const struct trace_kernel_ranks_row *row,
	bool annotations)
{
	report_trace_share(table, row->total_ns, ranks->total_ns);
	report_trace_time(table, row->total_ns);
	table_count(table, row->count);
	report_trace_time(table, row->median_ns);
	report_trace_figure(table, row->mean_ns);
	report_trace_figure(table, row->deviation_ns);
	report_trace_time(table, row->least_ns);
	report_trace_time(table, row->most_ns);
	if (report->count > 1) {
		add_rank_total(table, row->least_total_ns, row->least_rank);
		add_rank_total(table, row->most_total_ns, row->most_rank);
	}
	if (!annotations)
		table_cell(table, report->views->options.hta_compatible
					  ? trace_kind_hta_name(row->kind)
					  : trace_kind_name(row->kind));
	if (!annotations && knows_communication(ranks))
		table_cell(table, communication_evidence_name(row->evidence) ?: "");
	table_cell(table, row->name);
}

/* The columns of ranks are there where there are several. Returns how many. */
static size_t make_columns(struct table_column *columns, const struct trace_report *report,
	const struct trace_kernel_ranks *ranks, bool annotations)
{
	static const char *const figures[] = {
		"Time", "Total", "Count", "Median", "Mean", "Std", "Min", "Max"};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		columns[count++] = (struct table_column){.title = figures[i], .right = true};
	if (report->count > 1) {
		columns[count++] = (struct table_column){.title = "Least (rank)", .right = true};
		columns[count++] = (struct table_column){.title = "Most (rank)", .right = true};
	}
	if (!annotations)
		columns[count++] = (struct table_column){.title = "Kind"};
	if (!annotations && knows_communication(ranks))
		columns[count++] = (struct table_column){.title = "Known by"};
	columns[count++] = (struct table_column){
		.title = annotations ? "Annotation" : "Kernel",
		.is_text = annotations,
		.shrinks_to = 16,
	};
	return count;
}

static int print_names(
	const struct trace_report *report, const struct trace_kernel_ranks *ranks, bool annotations)
{
	size_t shown = report->limit ? MIN(report->limit, ranks->rows.count) : ranks->rows.count;
	struct table_column columns[13];
	_cleanup_table_ struct table table = {.columns = columns};
	int r;

	table.column_count = make_columns(columns, report, ranks, annotations);
	for (size_t i = 0; i < shown; i++)
		add_row(&table, report, ranks, &ranks->rows.items[i], annotations);
	r = table_print(&table, &report->page.terminal, report->page.out);
	report_trace_rest(
		report, ranks->rows.count - shown, annotations ? "annotations" : "kernels");
	return r;
}

static int print_kernels(const struct trace_report *report)
{
	const struct trace_kernel_ranks *ranks;
	int r;

	if (!report_trace_has_works(report))
		return 0;
	ranks = trace_results_kernels(report->results);
	if (!ranks)
		return -ENOMEM;
	report_heading(&report->page, "Kernel breakdown");
	r = print_sets(report);
	strbuf_add_char(report->page.out, '\n');
	return r ?: print_names(report, ranks, false);
}

static int write_kernels(const struct trace_report *report, struct json_writer *json)
{
	int r;

	json_begin_object(json);
	json_key(json, "types");
	r = report_trace_write(report, json, trace_json_types);
	json_key(json, "kernels");
	r = r ?: report_trace_write(report, json, trace_json_kernels);
	json_end_object(json);
	return r;
}

const struct report_section kernel_section = {
	.value.key = "kernel",
	.by = "kernel",
	.summary = "time by kind of work, and by kernel",
	.needs = REPORT_NEEDS_TRACE,
	.print_trace = print_kernels,
	.write_trace = write_kernels,
};

/* ---- annotations ---- */

static int print_annotations(const struct trace_report *report)
{
	_cleanup_trace_kernel_ranks_ struct trace_kernel_ranks ranks = {0};
	int r = trace_kernel_ranks_init(&ranks, report->views, report->count, true);

	if (r < 0)
		return r;
	if (!ranks.rows.count) {
		if (report->alone)
			report_paragraph(&report->page,
				"There are no annotations of the GPU's timeline: PyTorch writes "
				"them for record_function() blocks that launch work.",
				0);
		return 0;
	}
	report_heading(&report->page, "GPU user annotations");
	return print_names(report, &ranks, true);
}

static int write_annotations(const struct trace_report *report, struct json_writer *json)
{
	return report_trace_write(report, json, trace_json_annotations);
}

const struct report_section annotations_section = {
	.value.key = "annotations",
	.by = "annotations",
	.summary = "time on the GPU of record_function() blocks",
	.needs = REPORT_NEEDS_TRACE,
	.print_trace = print_annotations,
	.write_trace = write_annotations,
};
