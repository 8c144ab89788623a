/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "analyses/cpu/thread_names.h"
#include "analyses/program/rank_use.h"
#include "model/format.h"
#include "report/view.h"

#define NAME_COLUMNS 24

/* One dimension's table: what its name columns are, and how a row fills them. */
struct table_shape {
	const char *heading;
	bool self_and_total;          /* two pairs of share and time, else one */
	struct table_column names[4]; /* ended by one without a title */
	void (*fill)(struct table *table, const struct model *model,
		const struct breakdown *breakdown, const struct breakdown_row *row);
	const char *many; /* for "12 more functions" */
};

static void fill_function(struct table *table, const struct model *model,
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	uint32_t key = row->key;
	table_cell(table, model_function_name(model, key));
	table_cell(table, model_function_module(model, key));
}

static void fill_module(struct table *table, const struct model *model,
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	uint32_t key = row->key;
	bool known = key < model->modules.count;

	table_cell(table, key == MODEL_NONE ? "[no stack]"
			  : known           ? model->modules.items[key].name
					    : "[unknown]");
	table_cell(table, known ? model->modules.items[key].path : "");
}

static void fill_line(struct table *table, const struct model *model,
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	uint32_t key = row->key;
	const struct breakdown_line *line = key == MODEL_NONE ? NULL : &breakdown->lines.items[key];

	if (line && line->line)
		table_cellf(table, "%s:%u",
			*line->source_file ? line->source_file : "[unknown file]", line->line);
	else
		table_cell(table, line ? "[no line information]" : "[no stack]");
	table_cell(table, line ? model_function_name(model, line->function) : "");
	table_cell(table, line ? model_function_module(model, line->function) : "");
}

static void fill_process(struct table *table, const struct model *model,
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	uint32_t key = row->key;
	const struct model_process *process = &model->processes.items[key];

	if (row->merged)
		table_cellf(table, "%u \xc3\x97", row->merged + 1);
	else
		table_cellf(table, "%u", process->pid);
	table_cell(table, process->name);
	table_cell(table, row->merged ? "" : process->command_line);
}

static void fill_thread(struct table *table, const struct model *model,
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	uint32_t key = row->key;
	const struct model_thread *thread = &model->threads.items[key];
	const struct model_process *process = &model->processes.items[thread->process];

	table_cellf(table, "%u", thread->tid);
	table_cell(table, thread->name);
	table_cellf(table, "%s (%u)", process->name, process->pid);
}

static void fill_cpu(struct table *table, const struct model *model,
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	uint32_t key = row->key;
	table_cellf(table, "%u", key);
}

static void fill_cgroup(struct table *table, const struct model *model,
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	uint32_t key = row->key;
	const char *cgroup = breakdown->cgroups.items[key];

	table_cell(table, *cgroup ? cgroup : "[unknown]");
}

static void fill_rank(struct table *table, const struct model *model,
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	uint32_t rank = breakdown->ranks.items[row->key];

	if (rank == MODEL_NONE)
		table_cell(table, "[no rank]");
	else
		table_cellf(table, "%u", rank);
}

static void fill_class(struct table *table, const struct model *model,
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	uint32_t key = row->key;
	static const char *const meanings[MODEL_CLASS_MAX] = {
		[MODEL_CLASS_USER] = "your own code",
		[MODEL_CLASS_LIBRARY] = "Python's library and packages, generated code, headers",
		[MODEL_CLASS_FRAMEWORK] = "PyTorch, NumPy and their like, with their native code",
		[MODEL_CLASS_INTERPRETER] = "Python itself",
		[MODEL_CLASS_NATIVE] = "other native code",
		[MODEL_CLASS_RUNTIME] = "the C library, loaders and drivers",
		[MODEL_CLASS_SONDE] = "sonde itself",
		[MODEL_CLASS_KERNEL] = "the kernel",
	};

	table_cell(table, key == MODEL_NONE ? "[no stack]" : model_class_to_string(key));
	table_cell(table, key == MODEL_NONE ? "" : meanings[key]);
}

static void fill_gil(struct table *table, const struct model *model,
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	uint32_t key = row->key;
	static const char *const meanings[WIRE_GIL_MAX] = {
		[WIRE_GIL_NONE] = "no Python thread, or not known",
		[WIRE_GIL_HELD] = "ran with the lock: no other thread of the process ran Python",
		[WIRE_GIL_WAITING] = "waited for the lock",
		[WIRE_GIL_RELEASED] = "ran without the lock, in native code",
	};

	table_cell(table, wire_gil_name(key));
	table_cell(table, meanings[key]);
}

static const struct table_shape shapes[BREAKDOWN_MAX] = {
	[BREAKDOWN_FUNCTION] =
		{
			"Hottest functions",
			true,
			{{.title = "Function", .shrinks_to = 16}, {.title = "Module",
									  .is_text = true,
									  .dim = true,
									  .shrinks_to = 6,
									  .largest = NAME_COLUMNS}},
			fill_function,
			"functions",
		},
	[BREAKDOWN_MODULE] =
		{
			"Modules",
			true,
			{{.title = "Module",
				 .is_text = true,
				 .shrinks_to = 10,
				 .largest = 2 * NAME_COLUMNS},
				{.title = "Path", .is_path = true, .dim = true, .shrinks_to = 12}},
			fill_module,
			"modules",
		},
	[BREAKDOWN_LINE] =
		{
			"Hottest lines",
			true,
			{{.title = "Line", .is_path = true, .shrinks_to = 14},
				{.title = "Function", .shrinks_to = 10},
				{.title = "Module",
					.is_text = true,
					.dim = true,
					.shrinks_to = 6,
					.largest = NAME_COLUMNS}},
			fill_line,
			"lines",
		},
	[BREAKDOWN_PROCESS] =
		{
			"Processes",
			false,
			{{.title = "PID", .right = true},
				{.title = "Name",
					.is_text = true,
					.shrinks_to = 10,
					.largest = NAME_COLUMNS},
				{.title = "Command",
					.is_text = true,
					.dim = true,
					.shrinks_to = 12}},
			fill_process,
			"processes",
		},
	[BREAKDOWN_THREAD] =
		{
			"Threads",
			false,
			{{.title = "TID", .right = true},
				{.title = "Thread", .is_text = true, .shrinks_to = 10},
				{.title = "Process",
					.is_text = true,
					.dim = true,
					.shrinks_to = 10}},
			fill_thread,
			"threads",
		},
	[BREAKDOWN_CPU] =
		{
			"CPUs",
			false,
			{{.title = "CPU", .right = true}},
			fill_cpu,
			"CPUs",
		},
	[BREAKDOWN_CGROUP] =
		{
			"Control groups",
			false,
			{{.title = "Group", .is_text = true, .shrinks_to = 16}},
			fill_cgroup,
			"control groups",
		},
	[BREAKDOWN_RANK] =
		{
			"Ranks",
			false,
			{{.title = "Rank", .right = true}},
			fill_rank,
			"ranks",
		},
	[BREAKDOWN_CLASS] =
		{
			"Whose code",
			true,
			{{.title = "Class"}, {.title = "Meaning", .dim = true, .shrinks_to = 12}},
			fill_class,
			"classes",
		},
	[BREAKDOWN_GIL] =
		{
			"Python's global interpreter lock",
			false,
			{{.title = "Lock"}, {.title = "Meaning", .dim = true, .shrinks_to = 12}},
			fill_gil,
			"states",
		},
};

static void add_counts(
	struct table *table, const struct report_view *view, uint64_t samples, uint64_t all)
{
	_cleanup_strbuf_ struct strbuf time = {0};

	table_cellf(table, "%.2f %%", 100.0 * (double)samples / (double)all);
	report_add_time(&time, view->model, samples);
	table_cell(table, strbuf_cstr(&time));
}

/* Tables of processes have a column for the rank, where any has one. */
static bool shows_ranks(const struct report_view *view, const struct breakdown *breakdown)
{
	return (breakdown->by == BREAKDOWN_PROCESS || breakdown->by == BREAKDOWN_THREAD) &&
	       model_has_ranks(view->model);
}

static void add_rank(struct table *table, const struct model *model,
	const struct breakdown *breakdown, uint32_t key)
{
	uint32_t process =
		breakdown->by == BREAKDOWN_PROCESS ? key : model->threads.items[key].process;
	uint32_t rank = model->processes.items[process].rank;

	if (rank == MODEL_NONE)
		table_cell(table, "");
	else
		table_cellf(table, "%u", rank);
}

/* The columns of figures and the shape's names. Returns how many. */
static size_t make_columns(const struct report_view *view, const struct table_shape *shape,
	bool has_rank, struct table_column *columns)
{
	static const char *const titles[2][3][2] = {
		{{"Samples", "Count"}, {"CPU", "CPU time"}, {"Energy", "Energy"}},
		{{"Total", "Total count"}, {"Total", "Total time"}, {"Total", "Total energy"}},
	};
	static const char *const weights[MODEL_WEIGHT_MAX][2] = {
		[MODEL_WEIGHT_WAIT] = {"Waited", "Time waited"},
		[MODEL_WEIGHT_WALL] = {"Time", "CPU and waiting"},
		[MODEL_WEIGHT_GPU] = {"Device", "Device time"},
		[MODEL_WEIGHT_GPU_IDLE] = {"Idle", "Idle time"},
		[MODEL_WEIGHT_CPU_GPU] = {"Time", "CPU and device"},
		[MODEL_WEIGHT_ENERGY] = {"Energy", "Energy"},
	};
	enum model_weight weight = view->selection->weight;
	bool timed = model_has_time(view->model), is_energy = view->model->counts_energy;
	size_t count = 0;

	if (shape->self_and_total) {
		columns[count++] = (struct table_column){.title = "Self", .right = true};
		columns[count++] = (struct table_column){.title = is_energy ? "Self energy"
								  : timed   ? "Self time"
									    : "Self count",
			.right = true};
	}
	for (size_t i = 0; i < 2; i++)
		columns[count++] = (struct table_column){
			.title = weight == MODEL_WEIGHT_CPU || shape->self_and_total
					 ? titles[shape->self_and_total][is_energy ? 2 : timed][i]
					 : weights[weight][i],
			.right = true};
	if (has_rank)
		columns[count++] = (struct table_column){.title = "Rank", .right = true};
	for (size_t i = 0; i < ARRAY_SIZE(shape->names) && shape->names[i].title; i++)
		columns[count++] = shape->names[i];
	return count;
}

static void add_rest(
	const struct report_view *view, const struct breakdown *breakdown, size_t shown)
{
	const struct table_shape *shape = &shapes[breakdown->by];
	size_t rest = breakdown->rows.count - shown;
	uint64_t samples = 0;

	if (!rest)
		return;
	for (size_t i = shown; i < breakdown->rows.count; i++) {
		samples += breakdown->rows.items[i].self_samples;
		rest += breakdown->rows.items[i].merged;
	}
	strbuf_addf(view->out, "%s\xe2\x80\xa6 ", terminal_dim(&view->terminal));
	format_count(view->out, rest);
	strbuf_addf(view->out, " more %s with %.2f %%%s (--limit shows more)%s\n", shape->many,
		100.0 * (double)samples / (double)breakdown->samples,
		shape->self_and_total ? " self" : "", terminal_plain(&view->terminal));
}

int report_rows(const struct report_view *view, const struct breakdown *breakdown, size_t first,
	size_t count)
{
	const struct table_shape *shape = &shapes[breakdown->by];
	struct table_column columns[5 + ARRAY_SIZE(shape->names)];
	_cleanup_table_ struct table table = {.columns = columns};
	bool has_rank = shows_ranks(view, breakdown);

	table.column_count = make_columns(view, shape, has_rank, columns);
	for (size_t i = first; i < first + count; i++) {
		const struct breakdown_row *row = &breakdown->rows.items[i];

		if (shape->self_and_total)
			add_counts(&table, view, row->self_samples, breakdown->samples);
		add_counts(&table, view, row->total_samples, breakdown->samples);
		if (has_rank)
			add_rank(&table, view->model, breakdown, row->key);
		shape->fill(&table, view->model, breakdown, row);
	}
	return table_print(&table, &view->terminal, view->out);
}

/* Of the whole machine: what recording took, wherever its row is. */
static void add_sonde(const struct report_view *view, const struct breakdown *breakdown)
{
	uint64_t samples = 0;

	if (!view->model->session.whole_machine)
		return;
	array_foreach (&breakdown->rows, row) {
		if (strcmp(view->model->processes.items[row->key].name, "sonde") == 0)
			samples += row->self_samples;
	}
	strbuf_addf(view->out, "%ssonde itself: %.2f %%, ", terminal_dim(&view->terminal),
		100.0 * (double)samples / (double)breakdown->samples);
	report_add_time(view->out, view->model, samples);
	strbuf_addf(view->out, " of the above%s\n", terminal_plain(&view->terminal));
}

int report_table(const struct report_view *view, enum breakdown_by by, enum breakdown_sort sort,
	size_t limit)
{
	_cleanup_breakdown_ struct breakdown breakdown = {0};
	size_t shown;
	int r;

	if (by == BREAKDOWN_STACK)
		return report_stacks(view, limit);
	r = breakdown_init(&breakdown, view->model, view->selected, by, sort);
	if (r == 0 && by == BREAKDOWN_PROCESS)
		r = breakdown_merge_processes(&breakdown, view->model);
	if (r < 0)
		return r;
	shown = limit ? MIN(limit, breakdown.rows.count) : breakdown.rows.count;
	report_heading(view, shapes[by].heading);
	r = report_rows(view, &breakdown, 0, shown);
	add_rest(view, &breakdown, shown);
	if (by == BREAKDOWN_PROCESS)
		add_sonde(view, &breakdown);
	if (by == BREAKDOWN_THREAD && thread_names_missing(view->model))
		report_paragraph(view, thread_names_missing(view->model), 0);
	if (r == 0 && by == BREAKDOWN_LINE)
		report_source(view, &breakdown);
	return r;
}
