/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analyses/selection.h"
#include "base/escape.h"
#include "model/format.h"
#include "model/shorten.h"
#include "model/shown.h"
#include "model/weigh.h"
#include "report/cpu/samples.h"
#include "report/sections.h"
#include "report/view.h"

#define SEPARATOR   " \xc2\xb7 "
#define ROWS_AROUND 5 /* lines that are no rows: two of state, two empty, header, keys */
#define BATCH_ROWS  20

static const uint64_t windows_s[] = {1, 2, 5, 10, 30, 60, 300};

/* ---- keys ---- */

static const struct {
	int key;
	enum breakdown_by by;
	const char *name;
} tables[] = {
	{'f', BREAKDOWN_FUNCTION, "functions"},
	{'l', BREAKDOWN_LINE, "lines"},
	{'t', BREAKDOWN_THREAD, "threads"},
	{'p', BREAKDOWN_PROCESS, "processes"},
	{'m', BREAKDOWN_MODULE, "modules"},
	{'c', BREAKDOWN_CLASS, "whose code"},
	{'g', BREAKDOWN_GIL, "Python's lock"},
	{'k', BREAKDOWN_STACK, "stacks"},
};

static const char keys_line[] = "f functions  l lines  t threads  k stacks  s sort  w weight  / "
				"filter  space freeze  ? help  q quit";

static const char *const help_lines[] = {
	"f l t p m         functions, lines, threads, processes, modules",
	"c g k             whose code, Python's lock, the hottest path and stacks",
	"s                 sort by self (the function itself) or total (including what it calls)",
	"w                 weigh by CPU time, waiting, both, or energy",
	"u                 charge what libraries do to the line of your code that called them",
	"i                 show the Python interpreter's own functions",
	"+ -               show a longer or shorter time",
	"/                 only stacks with a function that matches a pattern",
	"Enter             open the row: a thread's functions, a function's stacks",
	"Esc               drop the filters",
	"up down           move; also j and J, Page Up, Page Down, Home",
	"space             freeze the picture, and continue",
	"q                 quit; a command that sonde started keeps running",
};

static const char *table_name(enum breakdown_by by)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		if (tables[i].by == by)
			return tables[i].name;
	}
	return breakdown_by_to_string(by);
}

static void show_table(struct top_view *view, enum breakdown_by by)
{
	view->by = by;
	view->selected = view->first = 0;
}

static void change_window(struct top_view *view, int step)
{
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(windows_s) && windows_s[i] * NS_PER_S < view->window_ns)
		i++;
	if (step < 0 && i > 0)
		i--;
	else if (step > 0 && i + 1 < ARRAY_SIZE(windows_s))
		i++;
	view->window_ns = windows_s[i] * NS_PER_S;
}

/* Cut off where it is too long. */
static void set_text(char *text, size_t size, const char *value)
{
	size_t length = MIN(strlen(value), size - 1);

	memcpy(text, value, length);
	text[length] = '\0';
}

/* The name as a pattern that only fits itself; "" when it is too long for one. */
static void set_exactly(char *pattern, size_t size, const char *name)
{
	size_t length = 0;

	pattern[length++] = '^';
	for (; *name && length + 4 < size; name++) {
		if (strchr("()[{*+?.|^$\\", *name))
			pattern[length++] = '\\';
		pattern[length++] = *name;
	}
	pattern[length++] = '$';
	pattern[length] = '\0';
	if (*name)
		pattern[0] = '\0';
}

static void look_into(struct top_view *view)
{
	if (!view->chosen[0])
		return;
	switch (view->by) {
	case BREAKDOWN_PROCESS:
		set_text(view->process, sizeof(view->process), view->chosen);
		return show_table(view, BREAKDOWN_FUNCTION);
	case BREAKDOWN_THREAD:
		set_text(view->thread, sizeof(view->thread), view->chosen);
		return show_table(view, BREAKDOWN_FUNCTION);
	case BREAKDOWN_FUNCTION:
		set_exactly(view->symbol, sizeof(view->symbol), view->chosen);
		return show_table(view, BREAKDOWN_STACK);
	default:
		set_text(view->message, sizeof(view->message),
			"Enter opens a function, a thread or a process");
	}
}

static void drop_filters(struct top_view *view)
{
	bool from_stacks = view->by == BREAKDOWN_STACK && view->symbol[0];

	view->symbol[0] = view->process[0] = view->thread[0] = '\0';
	if (from_stacks)
		show_table(view, BREAKDOWN_FUNCTION);
}

static void edit(struct top_view *view, int key)
{
	size_t length = strlen(view->edited);

	switch (key) {
	case TOP_KEY_ENTER:
		set_text(view->symbol, sizeof(view->symbol), view->edited);
		view->editing = false;
		break;
	case TOP_KEY_ESCAPE:
		view->editing = false;
		break;
	case TOP_KEY_BACKSPACE:
		/* All bytes of a character. */
		while (length && ((unsigned char)view->edited[--length] & 0xc0) == 0x80)
			;
		view->edited[length] = '\0';
		break;
	default:
		if (key >= ' ' && key < 0x100 && length + 1 < sizeof(view->edited)) {
			view->edited[length] = (char)key;
			view->edited[length + 1] = '\0';
		}
	}
}

static void move(struct top_view *view, ptrdiff_t rows)
{
	if (rows < 0 && view->selected < (size_t)-rows)
		view->selected = 0;
	else
		view->selected += (size_t)rows; /* the end is known when rows are printed */
}

static size_t page(const struct top_view *view)
{
	return view->height > ROWS_AROUND + 2 ? view->height - ROWS_AROUND : 2;
}

/* Keys that choose a table. */
static bool is_table_key(struct top_view *view, int key)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		if (tables[i].key == key) {
			show_table(view, tables[i].by);
			return true;
		}
	}
	return false;
}

static bool is_moving_key(struct top_view *view, int key)
{
	switch (key) {
	case TOP_KEY_UP:
	case 'J':
		move(view, -1);
		return true;
	case TOP_KEY_DOWN:
	case 'j':
		move(view, 1);
		return true;
	case TOP_KEY_PAGE_UP:
		move(view, -(ptrdiff_t)page(view));
		return true;
	case TOP_KEY_PAGE_DOWN:
		move(view, (ptrdiff_t)page(view));
		return true;
	case TOP_KEY_HOME:
		view->selected = 0;
		return true;
	default:
		return false;
	}
}

/* Energy has its turn where it is measured. */
static enum model_weight next_weight(const struct top_view *view)
{
	if (view->weight == MODEL_WEIGHT_WALL)
		return view->has_energy ? MODEL_WEIGHT_ENERGY : MODEL_WEIGHT_CPU;
	return view->weight == MODEL_WEIGHT_ENERGY ? MODEL_WEIGHT_CPU : view->weight + 1;
}

static void change_view(struct top_view *view, int key)
{
	switch (key) {
	case 's':
		view->sort = view->sort == BREAKDOWN_SORT_SELF ? BREAKDOWN_SORT_TOTAL
							       : BREAKDOWN_SORT_SELF;
		break;
	case 'w':
		view->weight = next_weight(view);
		break;
	case 'u':
		view->fold = !view->fold;
		break;
	case 'i':
		view->interpreter = !view->interpreter;
		break;
	case '+':
	case '-':
		change_window(view, key == '+' ? 1 : -1);
		break;
	case '/':
		view->editing = true;
		view->edited[0] = '\0';
		break;
	case ' ':
		view->frozen = !view->frozen;
		break;
	case TOP_KEY_ENTER:
		look_into(view);
		break;
	case TOP_KEY_ESCAPE:
		drop_filters(view);
		break;
	case '?':
	case 'h':
		view->help = true;
		break;
	default:
		break;
	}
}

bool top_view_key(struct top_view *view, int key)
{
	bool had_help = view->help;

	view->message[0] = '\0';
	view->help = false;
	if (view->editing)
		edit(view, key);
	else if (key == 'q')
		return had_help; /* the first one leaves the help */
	else if (!had_help && !is_table_key(view, key) && !is_moving_key(view, key))
		change_view(view, key);
	return true;
}

/* ---- lines ---- */

static void add_line(struct strbuf *out, const struct top_view *view, const struct strbuf *text)
{
	_cleanup_strbuf_ struct strbuf plain = {0};

	escape_plain(&plain, strbuf_cstr(text));
	shorten_text(out, strbuf_cstr(&plain), view->width);
	strbuf_add_char(out, '\n');
}

static void add_plural(struct strbuf *out, uint64_t count, const char *noun, const char *ending)
{
	format_count(out, count);
	strbuf_addf(out, " %s%s", noun, count == 1 ? "" : ending);
}

struct top_load top_view_load(const struct top_view *view, const struct model *model)
{
	double seen_ns = (double)MAX(view->seen_ns, UINT64_C(1));
	uint64_t running_ns = 0, waiting_ns = 0;

	array_foreach (&model->samples, sample) {
		if (sample->wait == WIRE_WAIT_NONE)
			running_ns += model->session.period_ns;
		else
			waiting_ns += sample->duration_ns;
	}
	return (struct top_load){(double)running_ns / seen_ns, (double)waiting_ns / seen_ns};
}

static void add_load(struct strbuf *out, const struct top_view *view, const struct model *model)
{
	const struct top_load load = top_view_load(view, model);

	strbuf_addf(out, "%.2f of %u CPUs busy", load.busy_cpus, model->session.cpu_count);
	if (load.waiting_threads > 0)
		strbuf_addf(out, SEPARATOR "%.1f threads waiting", load.waiting_threads);
}

static void add_state(struct strbuf *out, const struct top_view *view, const struct model *model)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "sonde top" SEPARATOR);
	add_load(&text, view, model);
	strbuf_addf(&text, SEPARATOR "last %.0f s" SEPARATOR,
		(double)MIN(view->window_ns, view->seen_ns) / NS_PER_S);
	add_plural(&text, model->samples.count, "sample", "s");
	if (model->stats.values.samples_lost) {
		strbuf_add(&text, SEPARATOR);
		format_count(&text, model->stats.values.samples_lost);
		strbuf_add(&text, " lost");
	}
	add_line(out, view, &text);
}

static void add_choices(struct strbuf *out, const struct top_view *view)
{
	static const char *const weights[MODEL_WEIGHT_MAX] = {
		[MODEL_WEIGHT_CPU] = "CPU time",
		[MODEL_WEIGHT_WAIT] = "time waiting",
		[MODEL_WEIGHT_WALL] = "CPU time and waiting",
		[MODEL_WEIGHT_ENERGY] = "energy",
	};
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text, "%s%s by %s%s", view->frozen ? "FROZEN" SEPARATOR : "",
		table_name(view->by), view->sort == BREAKDOWN_SORT_TOTAL ? "total " : "",
		weights[view->weight]);
	if (view->fold)
		strbuf_add(&text, SEPARATOR "libraries charged to your code");
	if (view->interpreter)
		strbuf_add(&text, SEPARATOR "with the interpreter");
	if (view->process[0])
		strbuf_addf(&text, SEPARATOR "process %s", view->process);
	if (view->thread[0])
		strbuf_addf(&text, SEPARATOR "thread %s", view->thread);
	if (view->symbol[0])
		strbuf_addf(&text, SEPARATOR "filter %s", view->symbol);
	add_line(out, view, &text);
}

static void add_keys(struct strbuf *out, const struct top_view *view)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (view->editing)
		strbuf_addf(&text, "functions that match: %s_   (Enter: apply, Esc: cancel)",
			view->edited);
	else
		strbuf_add(&text, view->message[0] ? view->message : keys_line);
	add_line(out, view, &text);
}

/* What Enter would look into. */
static void choose(
	struct top_view *view, const struct model *model, const struct breakdown *breakdown)
{
	uint32_t key;

	view->chosen[0] = '\0';
	if (view->selected >= breakdown->rows.count)
		return;
	key = breakdown->rows.items[view->selected].key;
	if (breakdown->by == BREAKDOWN_PROCESS)
		snprintf(view->chosen, sizeof(view->chosen), "%u", model->processes.items[key].pid);
	else if (breakdown->by == BREAKDOWN_THREAD)
		snprintf(view->chosen, sizeof(view->chosen), "%u", model->threads.items[key].tid);
	else if (breakdown->by == BREAKDOWN_FUNCTION && key != MODEL_NONE)
		set_text(view->chosen, sizeof(view->chosen), model_function_name(model, key));
}

/* Keeps the cursor in the table and the table in the screen. Returns the rows to show. */
static size_t place_rows(struct top_view *view, size_t row_count)
{
	size_t rows = page(view);

	if (!view->height) {
		view->first = 0;
		return MIN((size_t)BATCH_ROWS, row_count);
	}
	view->selected = MIN(view->selected, row_count - 1);
	if (view->selected < view->first)
		view->first = view->selected;
	if (view->selected >= view->first + rows)
		view->first = view->selected - rows + 1;
	return MIN(rows, row_count - view->first);
}

static int add_rows(struct top_view *view, const struct report_view *report, struct strbuf *out,
	struct top_lines *ret_lines)
{
	const struct terminal terminal = {.width = view->width};
	_cleanup_breakdown_ struct breakdown breakdown = {0};
	_cleanup_result_ struct result result = {.column = report_breakdown_column(view->by)};
	uint32_t table;
	size_t count;
	int r = breakdown_init(&breakdown, report->model, report->selected, view->by, view->sort);

	if (r < 0)
		return r;
	count = place_rows(view, breakdown.rows.count);
	choose(view, report->model, &breakdown);
	ret_lines->header = 3;
	if (view->height)
		ret_lines->selected = ret_lines->header + 1 + view->selected - view->first;
	table = report_add_breakdown(&result, report->model, &breakdown, view->first, count);
	result_show(&result, table, &(struct result_show){0});
	return report_render_terminal(&result, &terminal, out);
}

/* Lines of `text` from the one that the cursor is at, as many as fit. */
static void add_scrolled(struct top_view *view, const char *text, struct strbuf *out)
{
	const char *line = text;
	size_t left = view->height ? page(view) + 1 : SIZE_MAX;

	for (size_t i = 0; i < view->selected; i++) {
		const char *next = strchr(line, '\n');

		if (!next || !next[1]) {
			view->selected = i;
			break;
		}
		line = next + 1;
	}
	while (*line && left--) {
		size_t length = strcspn(line, "\n") + (strchr(line, '\n') != NULL);

		strbuf_add_bytes(out, line, length);
		line += length;
	}
}

static int add_stacks(struct top_view *view, const struct report_view *report, struct strbuf *out)
{
	const struct terminal terminal = {.width = view->width};
	const struct report_input input = {.view = report, .is_alone = true, .limit = BATCH_ROWS};
	_cleanup_result_ struct result result = {.column = &tables_section.value};
	_cleanup_strbuf_ struct strbuf text = {0};
	int r = tables_section.make(&result, &input);

	if (r == 0)
		r = report_render_terminal(&result, &terminal, &text);
	add_scrolled(view, strbuf_cstr(&text) + strspn(strbuf_cstr(&text), "\n"), out);
	return r;
}

static int add_table(struct top_view *view, struct model *model, const struct selected *selected,
	struct strbuf *out, struct top_lines *ret_lines)
{
	const struct selection selection = {.weight = view->weight};
	const struct report_view report = {
		.model = model,
		.selection = &selection,
		.selected = selected,
		.by = view->by,
		.sort = view->sort,
	};

	if (!selected->count) {
		strbuf_add(out, view->symbol[0] || view->process[0] || view->thread[0]
					? "Nothing passes the filters now; Esc drops them.\n"
				: view->weight == MODEL_WEIGHT_WAIT
					? "No thread waited, or waiting is not recorded.\n"
				: view->weight == MODEL_WEIGHT_ENERGY
					? "No energy was measured: sonde doctor says what this "
					  "machine can measure.\n"
					: "Nothing ran on a CPU in this time.\n");
		return strbuf_status(out);
	}
	return view->by == BREAKDOWN_STACK ? add_stacks(view, &report, out)
					   : add_rows(view, &report, out, ret_lines);
}

static void add_help(struct strbuf *out, const struct top_view *view)
{
	for (size_t i = 0; i < ARRAY_SIZE(help_lines); i++) {
		_cleanup_strbuf_ struct strbuf text = {0};

		strbuf_add(&text, help_lines[i]);
		add_line(out, view, &text);
	}
}

/* A pattern that is none is dropped: the screen goes on. */
static int select_samples(
	struct top_view *view, const struct model *model, struct selected *ret_selected)
{
	struct selection selection = {
		.symbol = view->symbol[0] ? view->symbol : NULL,
		.process = view->process[0] ? view->process : NULL,
		.thread = view->thread[0] ? view->thread : NULL,
		.weight = view->weight,
	};
	struct errmsg err;
	int r = selection_apply(&selection, model, ret_selected, &err);

	if (r != -EINVAL)
		return r;
	snprintf(view->message, sizeof(view->message),
		"'%s' is not an extended regular expression: nothing is filtered", view->symbol);
	view->symbol[0] = '\0';
	selection.symbol = NULL;
	return selection_apply(&selection, model, ret_selected, &err);
}

static size_t count_lines(const struct strbuf *text, size_t from)
{
	size_t lines = 0;

	for (size_t i = from; i < text->length; i++)
		lines += text->data[i] == '\n';
	return lines;
}

static int weigh(struct model *model, enum model_weight weight)
{
	_cleanup_energy_use_ struct energy_use energy = {0};
	int r;

	if (weight != MODEL_WEIGHT_ENERGY)
		return model_weigh(model, weight);
	r = energy_use_init(&energy, model);
	return r ?: model_weigh_energy(model, energy.rests.items, energy.rests.count);
}

int top_view_prepare(struct top_view *view, struct model *model, struct selected *ret_selected)
{
	int r = 0;

	if (!view->interpreter) {
		model_hide_interpreter(model);
		r = model_hide_sonde(model);
	}
	r = r ?: model_show_side(model, view->side);
	r = r ?: weigh(model, view->weight);
	if (view->fold)
		model_fold_libraries(model, true);
	return r ?: select_samples(view, model, ret_selected);
}

int top_view_print(
	struct top_view *view, struct model *model, struct strbuf *out, struct top_lines *ret_lines)
{
	_cleanup_(selected_done) struct selected selected = {0};
	size_t begin = out->length;
	int r;

	*ret_lines = (struct top_lines){SIZE_MAX, SIZE_MAX};
	view->has_energy = model->energy_domains.count;
	add_state(out, view, model);
	r = top_view_prepare(view, model, &selected);
	add_choices(out, view);
	strbuf_add_char(out, '\n');
	if (view->help)
		add_help(out, view);
	else
		r = r ?: add_table(view, model, &selected, out, ret_lines);
	if (view->height) {
		for (size_t lines = count_lines(out, begin); lines + 1 < view->height; lines++)
			strbuf_add_char(out, '\n');
		add_keys(out, view);
	}
	return r ?: strbuf_status(out);
}
