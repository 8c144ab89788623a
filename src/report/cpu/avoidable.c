/* SPDX-License-Identifier: Apache-2.0 */
/* What to change: costs that a program can often do without, where they are large. */
#include "analyses/cpu/avoidable.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/format.h"
#include "report/columns.h"
#include "report/sections.h"

#define ADVICE_MAX 5

static const struct report_column row_columns[] = {
	{.key = "id", .title = "Cost", .kind = REPORT_TEXT},
	{.key = "time_ns",
		.title = "Time",
		.kind = REPORT_NS,
		.help = "on CPUs, or waiting, of all threads together"},
	{.key = "share",
		.title = "Share",
		.kind = REPORT_SHARE,
		.help = "of `of`: null where that took no time"},
	{.key = "of", .title = "Of", .kind = REPORT_TEXT},
	{.key = "threads", .title = "Threads", .kind = REPORT_COUNT},
	{.key = "line_time_ns",
		.title = "In a line",
		.kind = REPORT_NS,
		.help = "of the line that has most of it"},
	REPORT_FRAME_COLUMNS("Line"),
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column columns[] = {
	{.key = "rows", .kind = REPORT_ROWS, .shape = &row_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* What a cost is a share of. */
enum base {
	OF_CPU_TIME,
	OF_WANTED, /* CPU time, and the cost itself: waiting for what it takes to run */
	OF_DURATION,
};

static const char *const base_names[] = {
	[OF_CPU_TIME] = "cpu_time",
	[OF_WANTED] = "wanted_time",
	[OF_DURATION] = "duration",
};

struct rule {
	const char *id;
	enum base base;
	double min_share;
	uint64_t min_ns;
	bool is_of_line; /* share and time are of the heaviest line alone */
	bool has_leaf;   /* name the innermost function */
	bool has_line;   /* and the line that leads there */
	const char *what, *help;
};

/* From which shares on: what a user would look for, far above what healthy programs have. */
static const struct rule rules[AVOIDABLE_MAX] = {
	[AVOIDABLE_REFERENCE_BLAS] = {"reference_blas", OF_CPU_TIME, 0.1, 300 * NS_PER_MS,
		.has_leaf = true, .has_line = true, .what = "is in the reference BLAS",
		.help = "It is written to be read, not to be fast: install an optimised one "
			"(Debian's libopenblas0-pthread), or NumPy and PyTorch from PyPI, which "
			"bring their own."},
	[AVOIDABLE_SPINNING] = {"spinning_threads", OF_CPU_TIME, 0.15, 300 * NS_PER_MS,
		.has_leaf = true, .has_line = true,
		.what = "is spent by threads that spin until others arrive",
		.help = "There is too little work for so many threads, or it is uneven: use fewer "
			"(OMP_NUM_THREADS, torch.set_num_threads), or give each call more to do. "
			"OMP_WAIT_POLICY=passive leaves the CPUs to others meanwhile."},
	[AVOIDABLE_PAGE_FAULTS] = {"page_faults", OF_CPU_TIME, 0.2, 300 * NS_PER_MS,
		.has_line = true, .what = "is page faults: memory that the kernel hands out",
		.help = "Use buffers again in place of new ones; for malloc, "
			"MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ keep freed memory in "
			"the process."},
	[AVOIDABLE_ALLOCATION] = {"allocation", OF_CPU_TIME, 0.2, 300 * NS_PER_MS, .has_line = true,
		.what = "is malloc and free",
		.help = "Allocate outside of the loop, or try another allocator (jemalloc or "
			"tcmalloc, with LD_PRELOAD)."},
	[AVOIDABLE_IMPORTS] = {"imports", OF_CPU_TIME, 0.3, NS_PER_S, .has_line = true,
		.what = "is the import of Python modules",
		.help = "Import what is rarely needed where it is needed; python -X importtime "
			"says what each module takes."},
	[AVOIDABLE_INTERPRETER] = {"python_loop", OF_CPU_TIME, 0.3, 500 * NS_PER_MS,
		.is_of_line = true, .has_line = true, .what = "is Python itself, on one line",
		.help = "Have NumPy or PyTorch do the loop for whole arrays, or compile it (Numba, "
			"Cython)."},
	[AVOIDABLE_LOADING] = {"loading_in_the_main_thread", OF_DURATION, 0.2, NS_PER_S,
		.has_line = true, .what = "is loading of data in the thread that uses it",
		.help = "DataLoader(num_workers=N) loads in other processes meanwhile."},
	[AVOIDABLE_CPU_WAIT] = {"threads_wait_for_cpus", OF_WANTED, 0.3, NS_PER_S},
	[AVOIDABLE_GIL_WAIT] = {"interpreter_lock", OF_WANTED, 0.25, NS_PER_S, .has_line = true,
		.what = "is waiting for Python's interpreter lock",
		.help = "Only one thread runs Python at a time: use processes, or native code that "
			"releases the lock. --by gil says who held it."},
	[AVOIDABLE_DATA_WAIT] = {"data_loader_too_slow", OF_DURATION, 0.2, NS_PER_S,
		.has_line = true, .what = "is waiting for the processes that load data",
		.help = "Give DataLoader more of them (num_workers), let them load further ahead "
			"(prefetch_factor), or make loading cheaper."},
};

/* A rule and what was found. */
struct finding {
	const struct rule *rule;
	const struct avoidable_use *use;
	uint64_t time_ns;
	double share; /* NaN: of nothing */
};

static uint64_t whole_of(
	const struct model *model, const struct avoidable_uses *uses, const struct finding *finding)
{
	switch (finding->rule->base) {
	case OF_CPU_TIME:
		return uses->running_ns;
	case OF_WANTED:
		return uses->running_ns + finding->use->time_ns;
	case OF_DURATION:
		return model_duration_ns(model);
	}
	return 0;
}

static struct finding find(
	const struct model *model, const struct avoidable_uses *uses, enum avoidable cost)
{
	struct finding found = {.rule = &rules[cost], .use = &uses->items[cost]};
	uint64_t whole = whole_of(model, uses, &found);

	found.time_ns = found.rule->is_of_line ? found.use->frame_ns : found.use->time_ns;
	found.share = whole ? (double)found.time_ns / (double)whole : NAN;
	return found;
}

static bool is_large(const struct finding *finding)
{
	return finding->time_ns >= finding->rule->min_ns &&
	       finding->share >= finding->rule->min_share;
}

static void add_row(struct result *result, const struct model *model, const struct finding *finding)
{
	result_text(result, finding->rule->id);
	result_u64(result, finding->time_ns);
	result_number(result, finding->share);
	result_text(result, base_names[finding->rule->base]);
	result_u64(result, finding->use->threads);
	result_u64(result, finding->use->frame_ns);
	columns_add_frame(result, model, finding->use->frame, NULL);
}

/* ---- sentences ---- */

static void add_place(struct strbuf *text, const struct model *model, const struct finding *finding)
{
	uint32_t index = finding->use->frame;
	const struct model_frame *frame;

	if (finding->rule->has_leaf && finding->use->leaf != MODEL_NONE) {
		uint32_t function = model->frames.items[finding->use->leaf].function;
		const char *module = model_function_module(model, function);

		if (model->functions.items[function].unnamed)
			strbuf_addf(text, " (in %s)", module);
		else
			strbuf_addf(
				text, " (%s of %s)", model_function_name(model, function), module);
	}
	if (!finding->rule->has_line || index == MODEL_NONE ||
		model->functions.items[model->frames.items[index].function].class !=
			MODEL_CLASS_USER)
		return;
	frame = &model->frames.items[index];
	if (finding->rule->is_of_line)
		strbuf_add(text, ": ");
	else if (finding->use->frame_ns > finding->time_ns / 2)
		strbuf_add(text, ", most of it under ");
	else
		strbuf_add(text, ", for example under ");
	if (frame->line)
		strbuf_addf(text, "%s:%u", frame->source_file, frame->line);
	else
		strbuf_add(text, model_function_name(model, frame->function));
}

/* Threads that could run: of this program more than there are CPUs, or are others in the way? */
static void say_cpu_wait(struct strbuf *text, const struct model *model,
	const struct avoidable_uses *uses, const struct finding *finding)
{
	double wanted = (double)(uses->running_ns + finding->time_ns);
	double duration = (double)model_duration_ns(model);
	unsigned cpus = model->session.cpu_count;

	format_duration(text, finding->time_ns);
	strbuf_addf(text,
		" of threads' time is waiting for a CPU, %.0f %% of the time in which "
		"they could run. ",
		100 * finding->share);
	if (wanted > duration * cpus)
		strbuf_addf(text,
			"On average %.1f threads could run, and there %s %u CPU%s: use fewer "
			"threads or processes (OMP_NUM_THREADS, torch.set_num_threads, "
			"num_workers).",
			wanted / duration, cpus == 1 ? "is" : "are", cpus, cpus == 1 ? "" : "s");
	else
		strbuf_add(text,
			"Other programs had the CPUs, or the threads may not use all of them "
			"(affinity, a quota of the cgroup).");
}

static void say(struct strbuf *text, const struct model *model, const struct avoidable_uses *uses,
	const struct finding *finding)
{
	static const char *const bases[] = {
		[OF_CPU_TIME] = "CPU time",
		[OF_WANTED] = "time in which threads could run",
		[OF_DURATION] = "recording",
	};
	const struct rule *rule = finding->rule;

	if (finding->use == &uses->items[AVOIDABLE_CPU_WAIT]) {
		say_cpu_wait(text, model, uses, finding);
		return;
	}
	strbuf_addf(text, "%.0f %% of the %s (", 100 * finding->share, bases[rule->base]);
	format_duration(text, finding->time_ns);
	strbuf_addf(text, ") %s", rule->what);
	add_place(text, model, finding);
	strbuf_addf(text, ". %s", rule->help);
}

static int advise(struct result *result, const struct model *model,
	const struct avoidable_uses *uses, const struct finding *finding)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	say(&text, model, uses, finding);
	strbuf_inherit_status(&result->texts, &text);
	result_advise(result,
		&(struct result_advice){.id = finding->rule->id,
			.saves_ns = finding->time_ns,
			.evidence = {{"time_ns", (double)finding->time_ns},
				{"share", finding->share},
				{"threads", (double)finding->use->threads}}},
		strbuf_cstr(&text));
	return strbuf_status(&text);
}

/* ---- the section ---- */

static int compare_findings(const void *left, const void *right)
{
	const struct finding *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	return a->rule < b->rule ? -1 : a->rule > b->rule;
}

static int show(struct result *result, const struct report_input *input,
	const struct avoidable_uses *uses, const struct finding findings[AVOIDABLE_MAX],
	uint32_t table)
{
	bool has_heading = input->is_alone;
	unsigned count = 0;
	int r = 0;

	if (input->is_alone) {
		result_heading(result, "Costs that can often be avoided");
		result_show(result, table, &(struct result_show){0});
	}
	for (unsigned i = 0; r == 0 && i < AVOIDABLE_MAX && count < ADVICE_MAX; i++) {
		if (!is_large(&findings[i]))
			continue;
		if (!has_heading)
			result_heading(result, "What to change");
		has_heading = true;
		count++;
		r = advise(result, input->view->model, uses, &findings[i]);
	}
	return r;
}

static int make(struct result *result, const struct report_input *input)
{
	const struct model *model = input->view->model;
	struct finding findings[AVOIDABLE_MAX];
	struct avoidable_uses uses;
	struct errmsg err = {{0}};
	uint32_t table;
	int r;

	if (!model_has_time(model))
		return report_nothing(result, input, "The samples have no known duration.");
	r = avoidable_uses_init(&uses, model, input->view->selection, &err);
	if (r < 0)
		return r;
	if (!uses.samples)
		return report_nothing(result, input, "There are no samples of running threads.");
	for (unsigned cost = 0; cost < AVOIDABLE_MAX; cost++)
		findings[cost] = find(model, &uses, (enum avoidable)cost);
	qsort(findings, AVOIDABLE_MAX, sizeof(*findings), compare_findings);
	result_open(result);
	table = result_open(result);
	for (unsigned i = 0; i < AVOIDABLE_MAX && findings[i].time_ns; i++)
		add_row(result, model, &findings[i]);
	result_close(result);
	result_close(result);
	return show(result, input, &uses, findings, table);
}

const struct report_section avoidable_section = {
	.value = {.key = "avoidable",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "costs that a program can often do without; null without samples"},
	.by = "avoidable",
	.summary = "costs that can often be avoided: slow libraries, spinning, waiting for data",
	.needs = REPORT_NEEDS_RECORDING,
	.make = make,
};
