/* SPDX-License-Identifier: Apache-2.0 */
/* Section: device work by what operators do. */
#include "analyses/device/category_use.h"
#include "report/columns.h"
#include "report/sections.h"

static const struct report_column row_columns[] = {
	{.key = "share", .title = "GPU", .kind = REPORT_SHARE, .help = "of the time of all work"},
	{.key = "sum_ns", .title = "Total", .kind = REPORT_NS},
	{.key = "count", .title = "Count", .kind = REPORT_COUNT},
	{.key = "least_ns",
		.title = "Least",
		.kind = REPORT_NS,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "of a rank; null: there is one"},
	{.key = "least_rank", .title = "Rank", .kind = REPORT_INTEGER, .hide = REPORT_HIDE_UNKNOWN},
	{.key = "most_ns", .title = "Most", .kind = REPORT_NS, .hide = REPORT_HIDE_UNKNOWN},
	{.key = "most_rank", .title = "Rank", .kind = REPORT_INTEGER, .hide = REPORT_HIDE_UNKNOWN},
	{.key = "category",
		.title = "Kind",
		.kind = REPORT_TEXT,
		.help = "GEMM, convolution, attention, norm, MoE, elementwise, reduce, copy, "
			"communication or other"},
	{.key = "names", .title = "Kernels", .kind = REPORT_COUNT, .help = "different ones"},
	{.key = "largest_share",
		.title = "Largest",
		.kind = REPORT_SHARE,
		.decimals = 1,
		.help = "of this kind's time, of the next"},
	{.key = "largest", .title = "", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 16},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static void add_row(struct result *result, const struct category_use *use,
	const struct category_row *row, bool has_ranks)
{
	result_share(result, (double)row->total_ns, (double)use->total_ns);
	result_i64(result, row->total_ns);
	result_u64(result, row->works);
	result_known(result, has_ranks, (uint64_t)row->least_ns);
	result_known(result, has_ranks, row->least_rank);
	result_known(result, has_ranks, (uint64_t)row->most_ns);
	result_known(result, has_ranks, row->most_rank);
	result_text(result, op_category_name(row->category));
	result_u64(result, row->names);
	result_share(result, (double)row->name_ns, (double)row->total_ns);
	result_text(result, row->name);
}

static int make(struct result *result, const struct report_input *input)
{
	struct category_use use;
	uint32_t table;
	int r;

	if (!report_is_own(input))
		return report_nothing(result, input, "Other tools have no table of categories.");
	if (!columns_has_works(result, input))
		return 0;
	r = category_use_init(&use, input->trace->views, input->trace->count);
	if (r < 0)
		return r;
	table = result_open(result);
	for (size_t i = 0; i < use.count; i++)
		add_row(result, &use, &use.rows[i], input->trace->count > 1);
	result_close(result);
	result_heading(result, "What kinds of operators took the GPU's time");
	result_show(result, table, &(struct result_show){0});
	return 0;
}

const struct report_section categories_section = {
	.value = {.key = "categories",
		.kind = REPORT_ROWS,
		.shape = &row_shape,
		.help = "of all ranks, most time first"},
	.by = "category",
	.summary = "device work by what operators do: GEMM, attention, norm, communication …",
	.needs = REPORT_NEEDS_ROWS,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
