/* SPDX-License-Identifier: Apache-2.0 */
/* What changed by call tree: operators at their places with their kernels, and a paragraph. */
#include <math.h>
#include <string.h>

#include "model/format.h"
#include "model/shorten.h"
#include "report/diff/internal.h"

#define KERNELS_SHOWN   3U
#define MENTIONED       3U
#define LEAST_MENTIONED 0.05 /* of all that changed */
#define NAME_COLUMNS    60U
#define SHAPE_COLUMNS   40U
#define COUNT_DIFFERS   0.01

static const struct report_column kernel_columns[] = {
	{.key = "name", .kind = REPORT_TEXT},
	{.key = "device_before_ns", .kind = REPORT_NS},
	{.key = "device_after_ns", .kind = REPORT_NS},
	{.key = "count_before", .kind = REPORT_NUMBER},
	{.key = "count_after", .kind = REPORT_NUMBER},
};
static const struct report_shape kernel_shape = REPORT_SHAPE(kernel_columns);

static const struct report_column row_columns[] = {
	{.key = "change_ns",
		.kind = REPORT_NS,
		.is_change = true,
		.help = "of device time, or of threads' time where there is no device work"},
	{.key = "device_before_ns",
		.kind = REPORT_NS,
		.help = "of kernels that it launched itself"},
	{.key = "device_after_ns", .kind = REPORT_NS},
	{.key = "host_before_ns",
		.kind = REPORT_NS,
		.help = "of threads in it and in nothing that is in it"},
	{.key = "host_after_ns", .kind = REPORT_NS},
	{.key = "count_before", .kind = REPORT_NUMBER},
	{.key = "count_after", .kind = REPORT_NUMBER},
	{.key = "why",
		.kind = REPORT_TEXT,
		.help = "new, gone, shapes, count, kernels or duration"},
	{.key = "name", .kind = REPORT_TEXT},
	{.key = "path", .kind = REPORT_TEXT, .help = "what it lies in, outermost first"},
	{.key = "is_moved", .kind = REPORT_FLAG, .help = "it has another path than before"},
	{.key = "shapes_before", .kind = REPORT_TEXT, .help = "input dimensions that took most"},
	{.key = "shapes_after", .kind = REPORT_TEXT},
	{.key = "kernels", .kind = REPORT_ROWS, .shape = &kernel_shape},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

/* The terminal's: operators, and below each its kernels. */
static const struct report_column shown_columns[] = {
	{.title = "Time", .kind = REPORT_NS, .is_change = true},
	{.title = "A", .kind = REPORT_NS},
	{.title = "B", .kind = REPORT_NS},
	{.title = "Count A", .kind = REPORT_NUMBER, .digits = 3},
	{.title = "B", .kind = REPORT_NUMBER, .digits = 3},
	{.title = "Why", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY},
	{.title = "Operator, and its kernels",
		.kind = REPORT_TEXT,
		.is_name = true,
		.shrinks_to = 20},
	{.title = "In", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY, .shrinks_to = 16},
};
static const struct report_shape shown_shape = REPORT_SHAPE(shown_columns);

static const struct report_column columns[] = {
	{.key = "per_step",
		.kind = REPORT_FLAG,
		.help = "figures are of one step of one rank; else of one rank"},
	{.key = "step_before_ns", .kind = REPORT_NS, .help = "mean duration; null: no steps"},
	{.key = "step_after_ns", .kind = REPORT_NS},
	{.key = "device_before_ns", .kind = REPORT_NS, .help = "of all device work"},
	{.key = "device_after_ns", .kind = REPORT_NS},
	{.key = "busy_before_ns", .kind = REPORT_NS, .help = "while any device work ran"},
	{.key = "busy_after_ns", .kind = REPORT_NS},
	{.key = "summary", .kind = REPORT_TEXT, .help = "what got slower, and why"},
	{.key = "rows",
		.total = "rows_total",
		.kind = REPORT_ROWS,
		.shape = &row_shape,
		.help = "no row is in another; the largest change first"},
	{.kind = REPORT_ROWS, .shape = &shown_shape},
};
const struct report_shape diff_tree_shape = REPORT_SHAPE(columns);

/* ---- why ---- */

enum why { WHY_NEW, WHY_GONE, WHY_SHAPES, WHY_COUNT, WHY_KERNELS, WHY_DURATION };

static const char *const why_names[] = {"new", "gone", "shapes", "count", "kernels", "duration"};

struct exchange {
	const struct tree_diff_kernel *gone, *came; /* NULL: none */
};

/* The kernels that took most of those that only one run has. */
static struct exchange find_exchange(const struct tree_diff *diff, const struct tree_diff_row *row)
{
	struct exchange found = {0};

	for (uint32_t i = row->first_kernel; i < row->first_kernel + row->kernel_count; i++) {
		const struct tree_diff_kernel *kernel = &diff->kernels.items[i];

		if (!found.gone && kernel->count[0] > 0 && kernel->count[1] <= 0)
			found.gone = kernel;
		if (!found.came && kernel->count[1] > 0 && kernel->count[0] <= 0)
			found.came = kernel;
	}
	return found;
}

static bool differs(double before, double after)
{
	return fabs(after - before) > COUNT_DIFFERS * fmax(before, after);
}

/* Of work that no operator launched there are only the kernels' counts. */
static double runs_of(const struct tree_diff *diff, const struct tree_diff_row *row, int side)
{
	double sum = row->count[side];

	for (uint32_t i = row->first_kernel;
		!*row->name && i < row->first_kernel + row->kernel_count; i++)
		sum += diff->kernels.items[i].count[side];
	return sum;
}

static enum why why_of(const struct tree_diff *diff, const struct tree_diff_row *row)
{
	const struct exchange exchange = find_exchange(diff, row);
	double before = runs_of(diff, row, 0), after = runs_of(diff, row, 1);

	if (before <= 0 || after <= 0)
		return before <= 0 ? WHY_NEW : WHY_GONE;
	if (*row->shapes[0] && *row->shapes[1] && strcmp(row->shapes[0], row->shapes[1]) != 0)
		return WHY_SHAPES;
	if (differs(before, after))
		return WHY_COUNT;
	return exchange.came || exchange.gone ? WHY_KERNELS : WHY_DURATION;
}

/* ---- the paragraph ---- */

static void add_ns(struct strbuf *out, double ns)
{
	format_duration(out, (uint64_t)fabs(ns));
}

/* "12.3 ms longer (+8.1 %)". */
static void add_change(struct strbuf *out, double before_ns, double after_ns)
{
	add_ns(out, after_ns - before_ns);
	strbuf_add(out, after_ns > before_ns ? " longer" : " shorter");
	if (before_ns > 0)
		strbuf_addf(out, " (%+.1f %%)", 100 * (after_ns - before_ns) / before_ns);
}

static void add_totals(struct strbuf *out, const struct tree_diff *diff)
{
	const struct tree_diff_side *a = &diff->sides[0], *b = &diff->sides[1];

	if (diff->per_step && fabs(b->step_ns - a->step_ns) < 1) {
		strbuf_add(out, "A step takes as long as before: ");
		add_ns(out, a->step_ns);
		strbuf_add(out, ". ");
	} else if (diff->per_step) {
		strbuf_add(out, "A step takes ");
		add_change(out, a->step_ns, b->step_ns);
		strbuf_add(out, ": ");
		add_ns(out, a->step_ns);
		strbuf_add(out, " before, ");
		add_ns(out, b->step_ns);
		strbuf_add(out, " after. ");
	}
	if (!diff->has_device_work)
		return;
	strbuf_add(out, diff->per_step ? "Its device work is " : "Device work of a rank is ");
	add_change(out, a->device_ns, b->device_ns);
	if (diff->per_step) {
		double idle_ns = b->step_ns - b->busy_ns - (a->step_ns - a->busy_ns);

		strbuf_add(out, ", and the time in which the device does nothing ");
		add_ns(out, idle_ns);
		strbuf_add(out, idle_ns > 0 ? " longer" : " shorter");
	}
	strbuf_add(out, ". ");
}

static void add_short(struct strbuf *out, const char *text, size_t width)
{
	shorten_text(out, text, width);
}

static void add_reason(
	struct strbuf *out, const struct tree_diff *diff, const struct tree_diff_row *row)
{
	const struct exchange exchange = find_exchange(diff, row);
	enum why why = why_of(diff, row);
	bool is_longer = tree_diff_change(diff, row) > 0;

	if (why == WHY_NEW || why == WHY_GONE) {
		strbuf_add(out, why == WHY_NEW ? "it is new" : "it is gone");
	} else if (why == WHY_SHAPES) {
		strbuf_add(out, "its inputs are ");
		add_short(out, row->shapes[1], SHAPE_COLUMNS);
		strbuf_add(out, " in place of ");
		add_short(out, row->shapes[0], SHAPE_COLUMNS);
	} else if (why == WHY_COUNT) {
		strbuf_addf(out, "it runs %.3g times in place of %.3g", runs_of(diff, row, 1),
			runs_of(diff, row, 0));
	} else if (exchange.came) {
		shorten_kernel(out, exchange.came->name, NAME_COLUMNS);
		strbuf_add(out, exchange.gone ? " runs in place of " : " runs, too");
		if (exchange.gone)
			shorten_kernel(out, exchange.gone->name, NAME_COLUMNS);
	} else if (exchange.gone) {
		shorten_kernel(out, exchange.gone->name, NAME_COLUMNS);
		strbuf_add(out, " runs no more");
	} else {
		strbuf_add(out,
			!diff->has_device_work ? "each call takes " : "the same kernels take ");
		strbuf_add(out, is_longer ? "longer" : "less");
	}
}

static void add_mention(
	struct strbuf *out, const struct tree_diff *diff, const struct tree_diff_row *row)
{
	double change = tree_diff_change(diff, row);

	strbuf_add(out, *row->name ? row->name : "What no operator launched");
	if (*row->path) {
		strbuf_add(out, " in ");
		add_short(out, row->path, NAME_COLUMNS);
	}
	strbuf_add(out, " takes ");
	add_ns(out, change);
	strbuf_add(out, change > 0 ? " more: " : " less: ");
	add_reason(out, diff, row);
	strbuf_add(out, ". ");
}

static void add_mentions(struct strbuf *out, const struct tree_diff *diff)
{
	double all = 0;
	size_t mentioned = 0;

	array_foreach (&diff->rows, row)
		all += fabs(tree_diff_change(diff, row));
	for (size_t i = 0; i < diff->rows.count && mentioned < MENTIONED; i++) {
		const struct tree_diff_row *row = &diff->rows.items[i];

		if (fabs(tree_diff_change(diff, row)) < fmax(LEAST_MENTIONED * all, 1))
			break;
		add_mention(out, diff, row);
		mentioned++;
	}
	if (!mentioned)
		strbuf_add(out, "No operator changed much.");
}

static void describe(struct strbuf *out, const struct tree_diff *diff)
{
	add_totals(out, diff);
	add_mentions(out, diff);
	while (out->length && out->data[out->length - 1] == ' ')
		out->data[--out->length] = '\0';
}

/* ---- values ---- */

static void add_kernels(
	struct result *result, const struct tree_diff *diff, const struct tree_diff_row *row)
{
	result_open(result);
	for (uint32_t i = row->first_kernel; i < row->first_kernel + row->kernel_count; i++) {
		const struct tree_diff_kernel *kernel = &diff->kernels.items[i];

		result_text(result, kernel->name);
		result_number(result, kernel->device_ns[0]);
		result_number(result, kernel->device_ns[1]);
		result_number(result, kernel->count[0]);
		result_number(result, kernel->count[1]);
	}
	result_close(result);
}

static void add_row(
	struct result *result, const struct tree_diff *diff, const struct tree_diff_row *row)
{
	result_number(result, tree_diff_change(diff, row));
	for (int side = 0; side < 2; side++)
		result_number(result, row->device_ns[side]);
	for (int side = 0; side < 2; side++)
		result_number(result, row->host_ns[side]);
	for (int side = 0; side < 2; side++)
		result_number(result, row->count[side]);
	result_text(result, why_names[why_of(diff, row)]);
	result_text(result, row->name);
	result_text(result, row->path);
	result_flag(result, row->is_moved);
	result_text(result, row->shapes[0]);
	result_text(result, row->shapes[1]);
	add_kernels(result, diff, row);
}

static void add_shown_kernels(
	struct result *result, const struct tree_diff *diff, const struct tree_diff_row *row)
{
	for (uint32_t i = 0; i < MIN(row->kernel_count, KERNELS_SHOWN); i++) {
		const struct tree_diff_kernel *kernel = &diff->kernels.items[row->first_kernel + i];
		_cleanup_strbuf_ struct strbuf name = {0};

		strbuf_addf(&name, "\xe2\x94\x94 %s", kernel->name);
		strbuf_inherit_status(&result->texts, &name);
		result_number(result, kernel->device_ns[1] - kernel->device_ns[0]);
		result_number(result, kernel->device_ns[0]);
		result_number(result, kernel->device_ns[1]);
		result_number(result, kernel->count[0]);
		result_number(result, kernel->count[1]);
		result_null(result);
		result_text(result, strbuf_cstr(&name));
		result_null(result);
	}
}

static void add_shown(
	struct result *result, const struct tree_diff *diff, const struct tree_diff_row *row)
{
	result_number(result, tree_diff_change(diff, row));
	for (int side = 0; side < 2; side++)
		result_number(
			result, diff->has_device_work ? row->device_ns[side] : row->host_ns[side]);
	for (int side = 0; side < 2; side++)
		result_number(result, runs_of(diff, row, side));
	result_text(result, why_names[why_of(diff, row)]);
	result_text(result, *row->name ? row->name : "[no operator]");
	result_text(result, row->path);
	add_shown_kernels(result, diff, row);
}

/* Rows without a change say nothing, but for programs. */
static bool has_changed(const struct tree_diff *diff, const struct tree_diff_row *row)
{
	return fabs(tree_diff_change(diff, row)) >= 0.5;
}

static uint32_t add_shown_rows(
	struct result *result, const struct diff_report *report, size_t *ret_changed)
{
	size_t limit = report->limit ? report->limit : DIFF_TREE_SHOWN;
	uint32_t table = result_open(result);

	*ret_changed = 0;
	array_foreach (&report->tree->rows, row) {
		if (has_changed(report->tree, row) && (*ret_changed)++ < limit)
			add_shown(result, report->tree, row);
	}
	result_close(result);
	return table;
}

struct diff_tree diff_add_tree(struct result *result, const struct diff_report *report)
{
	const struct tree_diff *diff = report->tree;
	const struct tree_diff_side *a = &diff->sides[0], *b = &diff->sides[1];
	size_t wanted = report->limit ? MIN(report->limit, diff->rows.count) : diff->rows.count;
	_cleanup_strbuf_ struct strbuf summary = {0};
	struct diff_tree shown = {0};

	describe(&summary, diff);
	strbuf_inherit_status(&result->texts, &summary);
	result_open(result);
	result_flag(result, diff->per_step);
	result_number(result, a->step_ns);
	result_number(result, b->step_ns);
	result_number(result, a->device_ns);
	result_number(result, b->device_ns);
	result_number(result, a->busy_ns);
	result_number(result, b->busy_ns);
	result_text(result, strbuf_cstr(&summary));
	result_open(result);
	result_leave_out(result, diff->rows.count - wanted);
	for (size_t i = 0; i < wanted; i++)
		add_row(result, diff, &diff->rows.items[i]);
	result_close(result);
	shown.table = add_shown_rows(result, report, &shown.changed);
	result_close(result);
	return shown;
}

void diff_show_tree(
	struct result *result, const struct diff_report *report, const struct diff_tree *shown)
{
	size_t limit = report->limit ? report->limit : DIFF_TREE_SHOWN;
	_cleanup_strbuf_ struct strbuf summary = {0};

	describe(&summary, report->tree);
	result_heading(result, "What got slower or faster, and why");
	result_say(result, 0, &summary);
	if (!shown->changed)
		return;
	result_heading(result, report->tree->per_step
				       ? "Operators by call tree (of one step of one rank)"
				       : "Operators by call tree (of one rank)");
	result_show(result, shown->table, &(struct result_show){0});
	if (shown->changed > limit)
		result_sentencef(result, 0, "\xe2\x80\xa6 %zu more operators (--limit shows more)",
			shown->changed - limit);
}
