/* SPDX-License-Identifier: Apache-2.0 */
#include "report/diff/diff.h"

#include "model/format.h"
#include "report/diff/internal.h"
#include "report/render.h"

#define VERSION       2
#define DEFAULT_LIMIT 20

static const struct report_column side_columns[] = {
	{.key = "path", .kind = REPORT_TEXT},
	{.key = "ranks", .kind = REPORT_COUNT},
	{.key = "steps", .kind = REPORT_COUNT, .help = "of the first rank"},
	{.key = "device_works", .kind = REPORT_COUNT},
	{.key = "device_ns", .kind = REPORT_NS, .help = "of all device work together"},
};
static const struct report_shape side_shape = REPORT_SHAPE(side_columns);

static const struct report_column columns[] = {
	{.key = "format", .kind = REPORT_TEXT, .help = "sonde-diff"},
	{.key = "version", .kind = REPORT_INTEGER},
	{.key = "sonde_version", .kind = REPORT_TEXT, .help = "of the program that wrote it"},
	{.key = "hta_compatible", .kind = REPORT_FLAG},
	{.key = "before", .kind = REPORT_OBJECT, .shape = &side_shape},
	{.key = "after", .kind = REPORT_OBJECT, .shape = &side_shape},
	{.key = "samples",
		.kind = REPORT_OBJECT,
		.shape = &diff_samples_shape,
		.help = "null: a side is a trace, or --by is work"},
	{.key = "work",
		.kind = REPORT_OBJECT,
		.shape = &diff_work_shape,
		.help = "what threads and devices did"},
	{.key = "tree",
		.kind = REPORT_OBJECT,
		.shape = &diff_tree_shape,
		.help = "the same by call tree; null with --hta-compatible and --per-second"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);
static const struct report_column document = {.kind = REPORT_OBJECT, .shape = &shape};

bool diff_takes_row(
	struct diff_rows *rows, struct result *result, const struct diff_report *report, bool fits)
{
	size_t limit = report->limit ? report->limit : report->is_json ? SIZE_MAX : DEFAULT_LIMIT;

	if (!fits && !report->is_json && !report->all) {
		rows->others++;
		return false;
	}
	if (rows->fitting++ < limit)
		return true;
	result_leave_out(result, 1);
	return false;
}

void diff_add_time_change(struct strbuf *out, bool per_second, double ns)
{
	if (per_second)
		strbuf_addf(out, "%+.3g ms/s", ns / NS_PER_MS);
	else
		format_duration_change(out, ns / NS_PER_S);
}

static void add_side(struct result *result, const struct diff_report *report, int side)
{
	const struct row_diff_side *figures = &report->rows->sides[side];

	result_open(result);
	result_text(result, report->paths[side]);
	result_u64(result, report->ranks[side]);
	result_u64(result, figures->steps);
	result_u64(result, figures->works);
	result_i64(result, figures->device_ns);
	result_close(result);
}

static void say_side(struct result *result, const struct diff_report *report, int side)
{
	const struct diff *samples = report->samples;
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text, "%s %s: ", side ? "B" : "A", report->paths[side]);
	if (samples)
		diff_say_samples_of(&text, samples, side ? &samples->after : &samples->before);
	else
		strbuf_addf(&text, "%zu rank%s, %llu profiler step%s", report->ranks[side],
			report->ranks[side] == 1 ? "" : "s",
			(unsigned long long)report->rows->sides[side].steps,
			report->rows->sides[side].steps == 1 ? "" : "s");
	result_say(result, 0, &text);
}

int diff_report_make(struct result *result, const struct diff_report *report)
{
	struct diff_rows samples = {0}, work;
	struct diff_tree tree = {0};

	result->column = &document;
	result_open(result);
	result_text(result, "sonde-diff");
	result_u64(result, VERSION);
	result_text(result, SONDE_VERSION);
	result_flag(result, report->hta_compatible);
	add_side(result, report, 0);
	add_side(result, report, 1);
	if (report->samples)
		samples = diff_add_samples(result, report);
	else
		result_null(result);
	work = diff_add_work(result, report);
	if (report->tree)
		tree = diff_add_tree(result, report);
	else
		result_null(result);
	result_close(result);
	say_side(result, report, 0);
	say_side(result, report, 1);
	if (report->samples)
		diff_show_samples(result, report, &samples);
	if (report->tree && report->tree->rows.count)
		diff_show_tree(result, report, &tree);
	if (report->rows->rows.count || !report->samples)
		diff_show_work(result, report, &work);
	return result_status(result);
}

int diff_report_schema(struct strbuf *out)
{
	return report_render_schema_document(&shape, "sonde diff --json", out);
}
