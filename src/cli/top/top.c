/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde top`: where the time goes now, in the terminal. Nothing is kept. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "cli/commands.h"
#include "cli/load_options.h"
#include "cli/target_options.h"
#include "cli/top/screen.h"
#include "cli/top/view.h"
#include "collect/session/session.h"
#include "load/capture.h"
#include "model/builder/builder.h"
#include "report/table.h"

#define DEFAULT_WINDOW_NS (10 * NS_PER_S)
#define KEPT_NS           (300 * NS_PER_S)
/* Callstacks that are kept; then all are forgotten, and the window begins anew. */
#define MOST_CALLSTACKS 500000

static struct {
	struct target_options target;
	uint64_t frequency_hz, count;
	double duration_s, interval_s;
	const char *by, *sort, *output, *wait, *energy;
	struct shown_options shown;
	bool batch, json;
} arguments = {
	.frequency_hz = 99,
	.interval_s = 1,
	.by = "function",
	.sort = "self",
	.shown.weight = "cpu",
	.output = "/dev/null",
	.wait = "sample",
	.energy = "auto",
};

struct top {
	struct model_builder *builder;
	struct top_view view;
	struct strbuf lines; /* as last shown */
	uint64_t begin_ns;   /* of what the builder knows; 0: sampling has not begun */
	uint64_t picture_ns; /* what is shown ends here */
	uint64_t printed;    /* pictures, with --batch */
	const char *command; /* NULL: none */
	bool left;           /* by a key */
	int failure;
};

/* ---- one picture ---- */

static int make_lines(struct top *top, struct top_lines *ret_marks)
{
	uint64_t window_ns = MIN(top->picture_ns, top->view.window_ns);
	struct model *model;
	int r = model_builder_snapshot(top->builder, top->picture_ns - window_ns, &model);

	if (r < 0)
		return r;
	top->view.seen_ns = MIN(window_ns, top->picture_ns - top->begin_ns);
	strbuf_clear(&top->lines);
	if (arguments.json)
		return top_view_json(&top->view, model, &top->lines);
	return top_view_print(&top->view, model, &top->lines, ret_marks);
}

/* As text, on standard output. */
static int print_lines(struct top *top)
{
	struct top_lines marks;
	int r;

	top->view.width = terminal_of(stdout).width;
	top->view.height = 0;
	r = make_lines(top, &marks);
	if (r == 0 && (printf("%s%s", top->printed++ && !arguments.json ? "\n" : "",
			       strbuf_cstr(&top->lines)) < 0 ||
			      fflush(stdout) != 0))
		r = -errno;
	return r;
}

static int draw_lines(struct top *top)
{
	struct top_lines marks = {0};
	int r;

	screen_size(&top->view.width, &top->view.height);
	r = make_lines(top, &marks);
	if (r == 0)
		screen_draw(strbuf_cstr(&top->lines), marks.header, marks.selected);
	return r;
}

/* ---- the loop ---- */

/* Returns whether something was pressed; *ret_end when that ends it. */
static bool take_keys(struct top *top, bool *ret_end)
{
	bool any = false;
	int key;

	while (!*ret_end && (key = screen_key()) >= 0) {
		*ret_end = !top_view_key(&top->view, key);
		any = true;
	}
	return any;
}

static void keep_window(struct top *top, struct session *session, uint64_t now_ns)
{
	uint64_t oldest_ns = now_ns - MIN(now_ns, KEPT_NS);

	top->picture_ns = now_ns;
	if (model_builder_forget_samples(top->builder, oldest_ns) <= MOST_CALLSTACKS)
		return;
	model_builder_forget_callstacks(top->builder);
	session_forget_callstacks(session);
	top->begin_ns = now_ns;
}

static void leave_command(struct top *top)
{
	screen_close();
	top->left = true;
	if (top->command)
		fprintf(stderr,
			"sonde: %s is still running, and sonde waits for it; Ctrl-C ends it\n",
			top->command);
}

static bool on_tick(void *context, struct session *session)
{
	struct top *top = context;
	uint64_t now_ns = monotonic_now_ns();
	bool end = false, pressed = take_keys(top, &end);
	bool is_due = now_ns - top->picture_ns >= (uint64_t)(arguments.interval_s * NS_PER_S);

	if (end) {
		leave_command(top);
		return false;
	}
	if (!top->begin_ns) {
		top->begin_ns = top->picture_ns = now_ns;
		return true;
	}
	model_builder_pause(top->builder, top->view.frozen);
	if (!pressed && (!is_due || top->view.frozen))
		return true;
	if (!top->view.frozen)
		keep_window(top, session, now_ns);
	top->failure = arguments.batch ? print_lines(top) : draw_lines(top);
	return top->failure == 0 && (!arguments.count || top->printed < arguments.count);
}

static int watch(struct top *top, struct session_options *options, struct session_result *result,
	struct errmsg *err)
{
	int r = model_builder_new(&top->builder);

	if (r == 0 && !arguments.batch)
		r = screen_open(arguments.output, err);
	if (r < 0)
		return r;
	options->live.visitor = &model_builder_visitor;
	options->live.visitor_context = top->builder;
	options->live.tick = on_tick;
	options->live.tick_context = top;
	options->live.input_fd = screen_input_fd();
	r = session_run(options, result, err);
	screen_close();
	/* What a command did to its end stays to be read. */
	if (r == 0 && top->failure == 0 && top->command && !top->left && !arguments.batch) {
		top->view.help = false;
		top->failure = print_lines(top);
	}
	return r ?: top->failure;
}

static void view_init(struct top_view *view)
{
	*view = (struct top_view){
		.by = breakdown_by_from_string(arguments.by),
		.sort = arguments.sort[0] == 't' ? BREAKDOWN_SORT_TOTAL : BREAKDOWN_SORT_SELF,
		.weight = shown_weight(&arguments.shown),
		.side = shown_side(&arguments.shown),
		.interpreter = arguments.shown.interpreter,
		.fold = arguments.shown.fold_libraries && arguments.shown.fold_libraries[0] == 'y',
		.window_ns = DEFAULT_WINDOW_NS,
	};
}

static int run_top(int count, char **words)
{
	uint32_t pids[TARGET_MAXIMUM_PIDS];
	struct session_result *result = calloc(1, sizeof(*result));
	struct top top = {.command = count ? words[0] : NULL};
	struct session_options options = {
		.period_ns = NS_PER_S / arguments.frequency_hz,
		.duration_ns = (uint64_t)(arguments.duration_s * NS_PER_S),
		.command = count ? words : NULL,
		.pids = pids,
		.wait = arguments.wait[0] == 's',
		.energy = arguments.energy,
	};
	struct errmsg err = {{0}};
	int r, status;

	if (!result)
		return EXIT_ERROR;
	if (!count && !arguments.target.pids.count)
		arguments.target.all = true;
	if (target_options_parse(&arguments.target, count, pids, &options, &err) < 0) {
		free(result);
		return fail_usage(&err);
	}
	view_init(&top.view);
	arguments.batch |= arguments.json;
	r = watch(&top, &options, result, &err);
	if (r < 0 && !err.text[0])
		errmsg_set(&err, r, "top failed: %s", strerror(-r));
	if (r < 0)
		fail(&err);
	status = target_exit_status(result, r);
	model_builder_free(top.builder);
	strbuf_done(&top.lines);
	session_result_done(result);
	free(result);
	return status;
}

static const char *const by_choices[] = {
	"function", "line", "thread", "process", "module", "class", "gil", "stack", NULL};
static const char *const wait_choices[] = {"sample", "off", NULL};
static const char *const weight_of_top_choices[] = {"cpu", "wait", "wall", "energy", NULL};

static const struct option top_options[] = {
	{.long_name = "by",
		.type = OPTION_CHOICE,
		.argument = "WHAT",
		.help = "The table to begin with; keys change it.",
		.value = (void *)&arguments.by,
		.choices = by_choices},
	{.long_name = "sort",
		.type = OPTION_CHOICE,
		.argument = "WHICH",
		.help = "Sort by self, the time in the function itself, or total, including "
			"everything it calls.",
		.value = (void *)&arguments.sort,
		.choices = sort_choices},
	{.long_name = "weight",
		.type = OPTION_CHOICE,
		.argument = "WHAT",
		.help = "What the table counts. cpu: time on a CPU; wait: time waiting; wall: "
			"both; energy: joules.",
		.value = (void *)&arguments.shown.weight,
		.choices = weight_of_top_choices},
	{.short_name = 'i',
		.long_name = "interval",
		.type = OPTION_DOUBLE,
		.argument = "SECONDS",
		.help = "Update the screen this often.",
		.value = &arguments.interval_s,
		.minimum = 0.1,
		.maximum = 3600},
	{.short_name = 'b',
		.long_name = "batch",
		.type = OPTION_FLAG,
		.help = "Print tables one after another, for a file or a pipe.",
		.value = &arguments.batch},
	{.long_name = "json",
		.type = OPTION_FLAG,
		.help = "Print an object of JSON a line for each interval, with every row, as with "
			"--batch.",
		.value = &arguments.json},
	{.short_name = 'n',
		.long_name = "count",
		.type = OPTION_U64,
		.argument = "PICTURES",
		.help = "With --batch, end after this many. Default: do not end.",
		.value = &arguments.count,
		.minimum = 1,
		.maximum = UINT32_MAX},
	{.short_name = 'F',
		.long_name = "frequency",
		.type = OPTION_U64,
		.argument = "HZ",
		.help = "Samples per second and CPU.",
		.value = &arguments.frequency_hz,
		.minimum = 1,
		.maximum = 20000},
	{.long_name = "wait",
		.type = OPTION_CHOICE,
		.argument = "HOW",
		.help = "sample: also sample threads that wait, 10 times a second; off: do not.",
		.value = (void *)&arguments.wait,
		.choices = wait_choices},
	{.short_name = 'd',
		.long_name = "duration",
		.type = OPTION_DOUBLE,
		.argument = "SECONDS",
		.help = "End after this time. Default: do not end.",
		.value = &arguments.duration_s,
		.minimum = 0,
		.maximum = 1e6},
	{.long_name = "output",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write the command's output here while the screen is in use.",
		.value = (void *)&arguments.output},
	{.long_name = "energy",
		.type = OPTION_STRING,
		.argument = "SOURCES",
		.help = "Sources of power and energy, as with `sonde record`. Default: auto.",
		.value = (void *)&arguments.energy},
	TARGET_OPTIONS(arguments.target),
	SHOWN_OPTIONS(arguments.shown),
	{0},
};

const struct command top_command = {
	.name = "top",
	.summary = "watch where the time goes, live in the terminal",
	.usage = "[options] [-- COMMAND [ARGUMENT…]]",
	.description =
		"Samples as `sonde record` does and shows the last ten seconds as a table that "
		"changes: functions, source lines, threads or processes, by time on a CPU or by "
		"time waiting. Nothing is written. Without -p and without a command it watches the "
		"whole machine.\n\nKeys: f functions, l lines, t threads, p processes, m modules, "
		"c class of code, g Python's lock, k stacks; s sorts by self or total, w switches "
		"between CPU time, waiting and both, u charges what libraries do to the line of "
		"your code that called them, + and - change the time span, / filters by function, "
		"Enter opens the row, Esc drops filters, space freezes the picture, ? lists all "
		"keys, q quits.\n\nA command's output would garble the screen, so it goes to "
		"--output, by default nowhere. When the command ends, the last table is printed. "
		"The exit status is the command's own.",
	.examples = "sudo sonde top\n    The whole machine.\n"
		    "sonde top -- python3 train.py\n    A training run, from its start.\n"
		    "sonde top -p 4711 --by line --fold-libraries yes\n    Lines of a running "
		    "program's own code.\n"
		    "sonde top -b -n 1 -i 5 -p 4711\n    One table of five seconds, as text.",
	.options = top_options,
	.maximum_arguments = -1,
	.stops_at_first_argument = true,
	.run = run_top,
};
