/* SPDX-License-Identifier: Apache-2.0 */
/* What threads waited for, and where; who held Python's interpreter lock meanwhile. */
#include "analyses/cpu/waiting.h"

#include <string.h>

#include "model/format.h"
#include "report/columns.h"
#include "report/cpu/samples.h"
#include "report/sections.h"
#include "report/view.h"

#define BACKGROUND_NAMED 3

static const struct report_column reason_columns[] = {
	{.key = "reason", .kind = REPORT_TEXT},
	{.key = "time_ns", .kind = REPORT_NS},
};
static const struct report_shape reason_shape = REPORT_SHAPE(reason_columns);

static const struct report_column row_columns[] = {
	{.key = "waits",
		.title = "Waits",
		.kind = REPORT_COUNT,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "null where waits were sampled"},
	{.key = "open_waits", .kind = REPORT_COUNT, .help = "of them: had not ended"},
	{.title = "Waited", .kind = REPORT_SHARE},
	{.key = "time_ns", .title = "Time", .kind = REPORT_NS},
	{.title = "For", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 12},
	{.key = "reason", .kind = REPORT_TEXT},
	{.key = "system_call",
		.kind = REPORT_TEXT,
		.help = "the system call, for vague reasons, if known"},
	REPORT_FRAME_COLUMNS("Line"),
	{.key = "stack_taken",
		.kind = REPORT_FLAG,
		.help = "false: waits that were counted without their stacks"},
	{.key = "background", .kind = REPORT_FLAG, .help = "a pool's or a runtime's thread"},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column holder_columns[] = {
	{.title = "Waited", .kind = REPORT_SHARE},
	{.key = "time_ns", .title = "Time", .kind = REPORT_NS},
	{.title = "Here", .kind = REPORT_TEXT, .is_path = true, .shrinks_to = 14},
	{.title = "While the lock was held here",
		.kind = REPORT_TEXT,
		.is_path = true,
		.shrinks_to = 14},
	{.key = "waiter_function", .kind = REPORT_TEXT},
	{.key = "waiter_source_file", .kind = REPORT_TEXT},
	{.key = "waiter_line", .kind = REPORT_INTEGER},
	{.key = "has_holder",
		.kind = REPORT_FLAG,
		.help = "false: no known thread held it when sampled"},
	{.key = "holder_function", .kind = REPORT_TEXT},
	{.key = "holder_source_file", .kind = REPORT_TEXT},
	{.key = "holder_line", .kind = REPORT_INTEGER},
};
static const struct report_shape holder_shape = REPORT_SHAPE(holder_columns);

static const struct report_column columns[] = {
	{.key = "mode", .kind = REPORT_TEXT, .help = "sample or exact"},
	{.key = "waits",
		.kind = REPORT_COUNT,
		.help = "this and the next four: null where waits were sampled"},
	{.key = "open_waits", .kind = REPORT_COUNT},
	{.key = "wait_min_ns", .kind = REPORT_NS},
	{.key = "waits_without_stack", .kind = REPORT_COUNT},
	{.key = "time_without_stack_ns", .kind = REPORT_NS},
	{.key = "time_ns", .kind = REPORT_NS, .help = "of all threads together"},
	{.key = "background_time_ns", .kind = REPORT_NS},
	{.key = "background_threads",
		.kind = REPORT_COUNT,
		.help = "threads that wait in rows of the background only"},
	{.key = "time_by_reason_ns", .kind = REPORT_MAP, .shape = &reason_shape},
	{.key = "rows", .kind = REPORT_ROWS, .shape = &row_shape},
	{.key = "gil_holders", .kind = REPORT_ROWS, .shape = &holder_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* What the terminal shows of it. */
struct waiting_view {
	const struct model *model;
	const struct waiting *waiting;
	bool fold;        /* what waits in the background is one sentence */
	uint64_t time_ns; /* what shares are of */
	size_t limit;
	uint32_t rows, holders; /* tables */
};

/* ---- rows ---- */

const char *report_wait_meaning(enum wire_wait reason)
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

static void add_meaning(struct result *result, const struct waiting_row *row, const char *call)
{
	if (call && row->reason == WIRE_WAIT_OTHER)
		result_textf(result, "the call %s", call);
	else if (call)
		result_textf(result, "%s in %s", report_wait_meaning(row->reason), call);
	else
		result_text(result, report_wait_meaning(row->reason));
}

static void add_row(
	struct result *result, const struct waiting_view *view, const struct waiting_row *row)
{
	const char *call = waiting_call_name(view->model, row);
	bool exact = view->waiting->exact;

	result_known(result, exact, row->waits);
	result_known(result, exact, row->open_waits);
	result_share(result, (double)row->time_ns, (double)view->time_ns);
	result_u64(result, row->time_ns);
	add_meaning(result, row, call);
	result_text(result, wire_wait_name(row->reason));
	result_text(result, call);
	columns_add_frame(result, view->model, row->frame,
		row->is_count ? "[counted: no stack]" : "[no stack]");
	result_flag(result, !row->is_count);
	result_flag(result, row->is_background);
}

/* "train.py:12 work", or why it is not known. */
static void add_place(
	struct result *result, const struct model *model, uint32_t index, const char *without)
{
	const struct model_frame *frame = index == MODEL_NONE ? NULL : &model->frames.items[index];

	if (!frame)
		result_text(result, without);
	else if (frame->line)
		result_textf(result, "%s:%u %s", frame->source_file, frame->line,
			model_function_name(model, frame->function));
	else
		result_text(result, model_function_name(model, frame->function));
}

static void add_holder_frame(struct result *result, const struct model *model, uint32_t index)
{
	const struct model_frame *frame = index == MODEL_NONE ? NULL : &model->frames.items[index];

	result_text(result, frame ? model_function_name(model, frame->function) : NULL);
	result_text(result, frame ? frame->source_file : NULL);
	result_known(result, frame && frame->line, frame ? frame->line : 0);
}

static void add_holder(
	struct result *result, const struct waiting_view *view, const struct waiting_holder *row)
{
	result_share(result, (double)row->time_ns, (double)view->waiting->by_reason[WIRE_WAIT_GIL]);
	result_u64(result, row->time_ns);
	add_place(result, view->model, row->waiter, "[no stack]");
	add_place(result, view->model, row->holder,
		row->has_holder ? "[too short to be sampled]" : "[changing hands]");
	add_holder_frame(result, view->model, row->waiter);
	result_flag(result, row->has_holder);
	add_holder_frame(result, view->model, row->holder);
}

static void add_members(struct result *result, struct waiting_view *view)
{
	const struct waiting *waiting = view->waiting;
	bool exact = waiting->exact;

	result_text(result, view->model->session.wait_mode);
	result_known(result, exact, waiting->waits);
	result_known(result, exact, waiting->open_waits);
	result_known(result, exact, view->model->session.wait_min_ns);
	result_known(result, exact, waiting->counted);
	result_known(result, exact, waiting->counted_ns);
	result_u64(result, waiting->time_ns);
	result_u64(result, waiting->background_ns);
	result_u64(result, waiting->background_threads);
	result_open(result);
	for (unsigned reason = WIRE_WAIT_CPU; reason < WIRE_WAIT_MAX; reason++) {
		result_text(result, wire_wait_name(reason));
		result_u64(result, waiting->by_reason[reason]);
	}
	result_close(result);
	view->rows = result_open(result);
	array_foreach (&waiting->rows, row) {
		if (!view->fold || !row->is_background)
			add_row(result, view, row);
	}
	result_close(result);
	view->holders = result_open(result);
	array_foreach (&waiting->holders, row)
		add_holder(result, view, row);
	result_close(result);
}

/* ---- sentences ---- */

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
static void say_background(struct result *result, const struct waiting_view *view)
{
	const struct waiting *waiting = view->waiting;
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "\xe2\x80\xa6 ");
	format_duration(&text, waiting->background_ns);
	strbuf_add(&text, " more without your code in the stack");
	if (waiting->background_threads)
		strbuf_addf(&text, ", by %u thread%s of libraries", waiting->background_threads,
			waiting->background_threads == 1 ? "" : "s");
	add_background_names(&text, view->model, waiting);
	strbuf_add(&text, " (--by wait lists all)");
	result_say(result, 2, &text);
}

/* What has no stack, and what had not ended. */
static void say_exact(struct result *result, const struct waiting_view *view)
{
	const struct waiting *waiting = view->waiting;
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
		result_say(result, 0, &text);
}

/* "Waiting (2.01 s of all threads together, measured exactly)" */
static void say_heading(struct result *result, const struct waiting_view *view)
{
	uint64_t period_ns = view->model->session.wait_period_ns;
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "Waiting (");
	format_duration(&text, view->time_ns);
	strbuf_add(&text, " of all threads together, ");
	if (view->waiting->exact)
		strbuf_add(&text, "measured exactly)");
	else if (period_ns)
		strbuf_addf(&text, "sampled %.3g times a second)", 1e9 / (double)period_ns);
	else
		strbuf_add(&text, "sampled)");
	strbuf_inherit_status(&result->texts, &text);
	result_heading(result, strbuf_cstr(&text));
}

static void show(struct result *result, const struct waiting_view *view)
{
	say_heading(result, view);
	result_show(
		result, view->rows, &(struct result_show){.limit = view->limit, .noun = "places"});
	if (view->fold)
		say_background(result, view);
	if (view->waiting->exact)
		say_exact(result, view);
	if (!view->waiting->holders.count)
		return;
	result_heading(result, "Who held Python's interpreter lock while others waited for it");
	result_show(result, view->holders,
		&(struct result_show){.limit = view->limit, .noun = "places"});
}

static bool was_recorded(const struct model *model)
{
	const char *mode = model->session.wait_mode;

	return strcmp(mode, "sample") == 0 || strcmp(mode, "exact") == 0 ||
	       report_has_waiting(model);
}

static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *recording = input->view;
	bool lists_all = input->is_alone && recording->by != BREAKDOWN_GIL;
	_cleanup_waiting_ struct waiting waiting = {0};
	struct waiting_view view = {.model = recording->model, .waiting = &waiting};
	struct errmsg err = {{0}};
	int r;

	if (!was_recorded(recording->model))
		return report_nothing(
			result, input, "Waiting was not recorded: record with --wait sample.");
	r = waiting_init(&waiting, recording->model, recording->selection, &err);
	if (r < 0)
		return r;
	view.fold = !input->is_json && !lists_all && waiting.background_ns;
	view.time_ns = waiting.time_ns - (view.fold ? waiting.background_ns : 0);
	view.limit = report_rows_shown(input, 20, 8);
	result_open(result);
	add_members(result, &view);
	result_close(result);
	if (waiting.time_ns)
		show(result, &view);
	else
		report_nothing(result, input, "No thread waited.");
	return 0;
}

/* Who held the lock is asked for by its states, too. */
static const struct report_name names[] = {{.by = "gil"}, {0}};

const struct report_section waiting_section = {
	.value = {.key = "waiting",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "null when it was not recorded"},
	.by = "wait",
	.also = names,
	.summary = "what threads waited for, and who held what they waited for",
	.needs = REPORT_NEEDS_RECORDING,
	.comes_along = true,
	.shows = SELECTION_SAMPLES,
	.make = make,
};
