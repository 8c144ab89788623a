/* SPDX-License-Identifier: Apache-2.0 */
/* Where threads waited, as the report shows it. */
#include <errno.h>

#include "analyses/waiting.h"
#include "cli/report_view.h"
#include "exporters/format.h"

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
		[WIRE_WAIT_UNSEEN] = "not seen: over before a look",
	};

	return meanings[reason];
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

static int add_table(const struct report_view *view, const struct waiting *waiting, size_t limit)
{
	struct table_column columns[] = {
		{.title = "Waited", .right = true},
		{.title = "Time", .right = true},
		{.title = "For", .shrinks_to = 12},
		{.title = "Line", .is_text = true, .shrinks_to = 14},
		{.title = "Function", .shrinks_to = 10},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};

	for (size_t i = 0; i < MIN(limit, waiting->rows.count); i++) {
		const struct waiting_row *row = &waiting->rows.items[i];
		_cleanup_strbuf_ struct strbuf time = {0};

		table_cellf(
			&table, "%.2f %%", 100.0 * (double)row->time_ns / (double)waiting->time_ns);
		format_duration(&time, row->time_ns);
		table_cell(&table, strbuf_cstr(&time));
		table_cell(&table, meaning(row->reason));
		add_place(&table, view->model, row->frame);
	}
	return table_print(&table, &view->terminal, view->out);
}

/* "train.py:12 work", or why it is not known. */
static void spell_place(const struct model *model, uint32_t index, struct strbuf *out)
{
	const struct model_frame *frame = index == MODEL_NONE ? NULL : &model->frames.items[index];

	if (!frame) {
		strbuf_add(out, "[not seen]");
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
		{.title = "Here", .is_text = true, .shrinks_to = 14},
		{.title = "While the lock was held here", .is_text = true, .shrinks_to = 14},
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
		spell_place(view->model, row->waiter, &waiter);
		spell_place(view->model, row->holder, &holder);
		table_cell(&table, strbuf_cstr(&waiter));
		table_cell(&table, strbuf_cstr(&holder));
	}
	return table_print(&table, &view->terminal, view->out);
}

int report_waiting(const struct report_view *view, size_t limit)
{
	_cleanup_waiting_ struct waiting waiting = {0};
	_cleanup_strbuf_ struct strbuf heading = {0};
	struct errmsg err = {{0}};
	int r = waiting_init(&waiting, view->model, view->selection, &err);

	if (r < 0 || !waiting.time_ns)
		return r;
	strbuf_add(&heading, "Waiting (");
	format_duration(&heading, waiting.time_ns);
	strbuf_add(&heading, " of all threads together)");
	report_heading(view, strbuf_cstr(&heading));
	r = add_table(view, &waiting, limit ? limit : waiting.rows.count);
	if (r == 0 && waiting.holders.count)
		r = add_holders(view, &waiting, limit ? limit : waiting.holders.count);
	return r;
}
