/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/diff_device.h"

#include <math.h>

#include "base/text.h"
#include "cli/command.h"
#include "model/format.h"
#include "report/table.h"

static void add_change(struct strbuf *out, const struct device_diff *diff, double change_ns)
{
	if (diff->per_second)
		strbuf_addf(out, "%+.3g ms/s", change_ns / NS_PER_MS);
	else
		format_duration_change(out, change_ns / NS_PER_S);
}

static void add_total(struct strbuf *out, const struct device_diff *diff)
{
	double before = (double)diff->before.total_ns * diff->before.weight;
	double after = (double)diff->after.total_ns * diff->after.weight;

	strbuf_add(out, diff->per_second ? "\nDevice time per second: " : "\nDevice time: ");
	add_change(out, diff, after - before);
	if (before > 0)
		strbuf_addf(out, " (%+.2f %%)", 100 * (after - before) / before);
	strbuf_add(out, ", A ");
	format_duration(out, diff->before.total_ns);
	strbuf_add(out, " in ");
	format_count(out, diff->before.count);
	strbuf_add(out, ", B ");
	format_duration(out, diff->after.total_ns);
	strbuf_add(out, " in ");
	format_count(out, diff->after.count);
	strbuf_add(out, " pieces of work\n");
}

static void add_mean(struct table *table, const struct device_diff_figures *figures)
{
	if (figures->count)
		table_duration(table, (uint64_t)llround(figures->mean_ns));
	else
		table_cell(table, "");
}

static bool is_longer_or_shorter(const struct device_diff_row *row)
{
	return row->duration_q <= DEVICE_DIFF_SIGNIFICANT;
}

/* Which of the two parts of the change is known, and larger. */
static const char *reason_of(const struct device_diff_row *row)
{
	if (!row->before.count || !row->after.count)
		return row->before.count ? "gone" : "new";
	if (is_longer_or_shorter(row) && fabs(row->by_duration_ns) > fabs(row->by_count_ns))
		return row->by_duration_ns > 0 ? "each longer" : "each shorter";
	if (row->before.count != row->after.count)
		return row->after.count > row->before.count ? "more often" : "less often";
	return isnan(row->duration_q) ? "too few to tell" : "noise";
}

static void add_row(
	struct table *table, const struct device_diff *diff, const struct device_diff_row *row)
{
	_cleanup_strbuf_ struct strbuf change = {0};

	add_change(&change, diff, row->change_ns);
	table_cell(table, strbuf_cstr(&change));
	table_cellf(table, "%+.2f", 100 * (row->after.share - row->before.share));
	table_duration(table, row->before.total_ns);
	table_duration(table, row->after.total_ns);
	table_count(table, row->before.count);
	table_count(table, row->after.count);
	add_mean(table, &row->before);
	add_mean(table, &row->after);
	table_cell(table, reason_of(row));
	table_cell(table, wire_device_kind_name(row->kind));
	table_cell(table, row->kind == WIRE_DEVICE_KERNEL ? row->name : "");
}

static bool is_known(const struct device_diff_row *row)
{
	return device_diff_known_change_ns(row) != 0;
}

int diff_device_print(const struct device_diff *diff, size_t limit, bool all, struct strbuf *out)
{
	static const struct table_column columns[] = {
		{.title = "Time", .right = true},
		{.title = "Share", .right = true},
		{.title = "A", .right = true},
		{.title = "B", .right = true},
		{.title = "Count A", .right = true},
		{.title = "B", .right = true},
		{.title = "Mean A", .right = true},
		{.title = "B", .right = true},
		{.title = "Change"},
		{.title = "Kind"},
		{.title = "Kernel", .shrinks_to = 16},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	const struct terminal terminal = terminal_of(stdout);
	size_t fitting = 0, others = 0;
	int r;

	add_total(out, diff);
	strbuf_add_char(out, '\n');
	array_foreach (&diff->rows, row) {
		if (!all && !is_known(row))
			others++;
		else if (fitting++ < limit)
			add_row(&table, diff, row);
	}
	if (!fitting)
		strbuf_add(out, "No device work changed significantly.\n");
	r = table_print(&table, &terminal, out);
	if (fitting > limit)
		strbuf_addf(out, "\xe2\x80\xa6 %zu more (--limit shows more)\n", fitting - limit);
	if (others)
		strbuf_addf(out,
			"%zu of device work did not change significantly (--all shows them)\n",
			others);
	return r ?: strbuf_status(out);
}

bool diff_device_check(const struct device_diff *diff, double percent)
{
	struct device_diff_regression found;
	struct errmsg err;

	device_diff_find_regression(diff, percent, &found);
	if (found.row) {
		errmsg_set(&err, 0,
			"the %s %.400s got slower by %.2f %% of the device time of the run before "
			"(limit %g %%): %s",
			wire_device_kind_name(found.row->kind), found.row->name, found.row_percent,
			percent, reason_of(found.row));
		fail(&err);
	}
	if (found.total) {
		errmsg_set(&err, 0,
			"the total device time grew by %.2f %% of that of the run before (limit %g "
			"%%)",
			found.total_percent, percent);
		fail(&err);
	}
	return found.row || found.total;
}
