/* SPDX-License-Identifier: Apache-2.0 */
/* Where threads waited, as the report shows it. */
#include <errno.h>
#include <string.h>

#include "analyses/cpu/waiting.h"
#include "model/format.h"
#include "report/view.h"

#define BACKGROUND_NAMED 3

static const char *meaning(enum wire_wait reason)
{
	static const char *const meanings[WIRE_WAIT_MAX] = {
		[WIRE_WAIT_CPU] = "a CPU: another thread ran",
		[WIRE_WAIT_LOCK] = "a lock or condition",
		[WIRE_WAIT_GIL] = "Python's interpreter lock",
		[WIRE_WAIT_POLL] = "poll, select, epoll",
		[WIRE_WAIT_SLEEP] = "sleep",
		[WIRE_WAIT_PIPE] = "a pipe",
		[WIRE_WAIT_SOCKET] = "a socket",
		[WIRE_WAIT_DISK] = "a file or disk",
		[WIRE_WAIT_FAULT] = "a page of memory",
		[WIRE_WAIT_CHILD] = "a child process",
		[WIRE_WAIT_STOPPED] = "being stopped",
		[WIRE_WAIT_OTHER] = "another system call",
		[WIRE_WAIT_UNSEEN] = "too short to be sampled",
		[WIRE_WAIT_FILE_LOCK] = "a lock on a file",
		[WIRE_WAIT_UNKNOWN] = "unknown: uninterruptible",
	};

	return meanings[reason];
}

static void add_meaning(
	struct table *table, const struct model *model, const struct waiting_row *row)
{
	const char *call = waiting_call_name(model, row);

	if (call && row->reason == WIRE_WAIT_OTHER)
		table_cellf(table, "the call %s", call);
	else if (call)
		table_cellf(table, "%s in %s", meaning(row->reason), call);
	else
		table_cell(table, meaning(row->reason));
}

static void add_place(struct table *table, const struct model *model, uint32_t index)
{
	const struct model_frame *frame = index == MODEL_NONE ? NULL : &model->frames.items[index];
	_cleanup_strbuf_ struct strbuf name = {0};

	if (!frame) {
		table_cell(table, "[no stack]");
		table_cell(table, "");
		return;
	}
	if (frame->line)
		table_cellf(table, "%s:%u", frame->source_file, frame->line);
	else
		table_cell(table, model_function_module(model, frame->function));
	model_frame_name(model, index, &name);
	table_cell(table, strbuf_cstr(&name));
}

static void add_short(struct table *table)
{
	table_cell(table, "[counted: no stack]");
	table_cell(table, "");
}

/* At most `limit` rows; with `fold` none of the background. */
static int add_table(
	const struct report_view *view, const struct waiting *waiting, size_t limit, bool fold)
{
	struct table_column columns[] = {
		{.title = "Waits", .right = true},
		{.title = "Waited", .right = true},
		{.title = "Time", .right = true},
		{.title = "For", .shrinks_to = 12},
		{.title = "Line", .is_path = true, .shrinks_to = 14},
		{.title = "Function", .shrinks_to = 10},
	};
	const size_t first = waiting->exact ? 0 : 1; /* how often is known where all are measured */
	const uint64_t all_ns = waiting->time_ns - (fold ? waiting->background_ns : 0);
	_cleanup_table_ struct table table = {
		.columns = columns + first, .column_count = ARRAY_SIZE(columns) - first};

	array_foreach (&waiting->rows, row) {
		_cleanup_strbuf_ struct strbuf waits = {0};

		if ((fold && row->is_background) || !limit)
			continue;
		limit--;
		format_count(&waits, row->waits);
		if (waiting->exact)
			table_cell(&table, strbuf_cstr(&waits));
		table_cellf(&table, "%.2f %%", 100.0 * (double)row->time_ns / (double)all_ns);
		table_duration(&table, row->time_ns);
		add_meaning(&table, view->model, row);
		if (row->is_count)
			add_short(&table);
		else
			add_place(&table, view->model, row->frame);
	}
	return table_print(&table, &view->terminal, view->out);
}

/* "epoll_wait, libtorch_cpu.so.1.13": the functions, or files of unnamed ones, that wait most. */
static void add_background_names(
	struct strbuf *text, const struct model *model, const struct waiting *waiting)
{
	const char *named[BACKGROUND_NAMED] = {0};
	size_t count = 0;

	array_foreach (&waiting->rows, row) {
		const struct model_function *function;
		const char *name;
		bool known = false;

		if (!row->is_background || row->frame == MODEL_NONE || count == BACKGROUND_NAMED)
			continue;
		function = &model->functions.items[model->frames.items[row->frame].function];
		name = function->unnamed ? model_module_name(model, function->module)
					 : function->name;
		for (size_t i = 0; i < count; i++)
			known |= strcmp(named[i], name) == 0;
		if (known)
			continue;
		strbuf_addf(text, "%s%s", count ? ", " : ", most in ", name);
		named[count++] = name;
	}
}

/* "… 183 s more in threads of libraries, …". */
static void add_background(const struct report_view *view, const struct waiting *waiting)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "\xe2\x80\xa6 ");
	format_duration(&text, waiting->background_ns);
	strbuf_add(&text, " more without your code in the stack");
	if (waiting->background_threads)
		strbuf_addf(&text, ", by %u thread%s of libraries", waiting->background_threads,
			waiting->background_threads == 1 ? "" : "s");
	add_background_names(&text, view->model, waiting);
	strbuf_add(&text, " (--by wait lists all)");
	strbuf_add(view->out, terminal_dim(&view->terminal));
	report_paragraph(view, strbuf_cstr(&text), 2);
	strbuf_add(view->out, terminal_plain(&view->terminal));
}

/* "train.py:12 work", or why it is not known. */
static void spell_place(
	const struct model *model, uint32_t index, const char *without, struct strbuf *out)
{
	const struct model_frame *frame = index == MODEL_NONE ? NULL : &model->frames.items[index];

	if (!frame) {
		strbuf_add(out, without);
		return;
	}
	if (frame->line)
		strbuf_addf(out, "%s:%u ", frame->source_file, frame->line);
	model_frame_name(model, index, out);
}

static int add_holders(const struct report_view *view, const struct waiting *waiting, size_t limit)
{
	struct table_column columns[] = {
		{.title = "Waited", .right = true},
		{.title = "Time", .right = true},
		{.title = "Here", .is_path = true, .shrinks_to = 14},
		{.title = "While the lock was held here", .is_path = true, .shrinks_to = 14},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};

	report_heading(view, "Who held Python's interpreter lock while others waited for it");
	for (size_t i = 0; i < MIN(limit, waiting->holders.count); i++) {
		const struct waiting_holder *row = &waiting->holders.items[i];
		_cleanup_strbuf_ struct strbuf time = {0}, waiter = {0}, holder = {0};

		table_cellf(&table, "%.2f %%",
			100.0 * (double)row->time_ns / (double)waiting->by_reason[WIRE_WAIT_GIL]);
		format_duration(&time, row->time_ns);
		table_cell(&table, strbuf_cstr(&time));
		spell_place(view->model, row->waiter, "[no stack]", &waiter);
		spell_place(view->model, row->holder,
			row->has_holder ? "[too short to be sampled]" : "[changing hands]",
			&holder);
		table_cell(&table, strbuf_cstr(&waiter));
		table_cell(&table, strbuf_cstr(&holder));
	}
	return table_print(&table, &view->terminal, view->out);
}

/* What has no stack, and what had not ended. */
static void explain_exact(const struct report_view *view, const struct waiting *waiting)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (waiting->counted) {
		format_count(&text, waiting->counted);
		strbuf_add(&text, waiting->counted == 1 ? " wait, " : " waits, ");
		format_duration(&text, waiting->counted_ns);
		strbuf_add(&text, " together, were shorter than ");
		format_duration(&text, view->model->session.wait_min_ns);
		strbuf_add(&text,
			", a new thread's first for a CPU, or more than could be written: counted "
			"without their stacks.");
	}
	if (waiting->open_waits) {
		strbuf_add(&text, text.length ? " " : "");
		format_count(&text, waiting->open_waits);
		strbuf_add(&text, waiting->open_waits == 1 ? " wait" : " waits");
		strbuf_add(&text, " had not ended when the recording did.");
	}
	if (text.length)
		report_paragraph(view, strbuf_cstr(&text), 0);
}

/* "all threads together, measured exactly" */
static void add_how(struct strbuf *heading, const struct model *model, bool exact)
{
	uint64_t period_ns = model->session.wait_period_ns;

	strbuf_add(heading, " of all threads together, ");
	if (exact)
		strbuf_add(heading, "measured exactly)");
	else if (period_ns)
		strbuf_addf(heading, "sampled %.3g times a second)", 1e9 / (double)period_ns);
	else
		strbuf_add(heading, "sampled)");
}

int report_waiting(const struct report_view *view, size_t limit, bool fold)
{
	_cleanup_waiting_ struct waiting waiting = {0};
	_cleanup_strbuf_ struct strbuf heading = {0};
	struct errmsg err = {{0}};
	int r = waiting_init(&waiting, view->model, view->selection, &err);

	if (r < 0 || !waiting.time_ns)
		return r;
	fold = fold && waiting.background_ns;
	strbuf_add(&heading, "Waiting (");
	format_duration(&heading, waiting.time_ns - (fold ? waiting.background_ns : 0));
	add_how(&heading, view->model, waiting.exact);
	report_heading(view, strbuf_cstr(&heading));
	r = add_table(view, &waiting, limit ? limit : waiting.rows.count, fold);
	if (fold)
		add_background(view, &waiting);
	if (r == 0 && waiting.exact)
		explain_exact(view, &waiting);
	if (r == 0 && waiting.holders.count)
		r = add_holders(view, &waiting, limit ? limit : waiting.holders.count);
	return r;
}
