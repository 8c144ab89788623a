/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of each dimension of samples: what their columns are, and what fills them. */
#include "report/cpu/dimensions.h"

#include "model/format.h"
#include "model/kinds.h"

#define NAME_COLUMNS 24

/* Of dimensions in which a function calls others. */
#define SELF_AND_TOTAL REPORT_SELF_COLUMNS, REPORT_TOTAL_COLUMNS
/* Of those in which self and total are one. */
#define ONLY_TOTAL                                                                                 \
	REPORT_WEIGHT_KEYS("self"),                                                                \
		REPORT_WEIGHT_COLUMNS("total", "Share", "Time", "Count", "Energy", "Bytes")

#define RANK_COLUMN                                                                                \
	{                                                                                          \
		.key = "rank", .title = "Rank", .kind = REPORT_INTEGER,                            \
		.hide = REPORT_HIDE_UNKNOWN                                                        \
	}

/* ---- columns ---- */

static const struct report_column function_columns[] = {
	SELF_AND_TOTAL,
	{.key = "name",
		.title = "Function",
		.kind = REPORT_TEXT,
		.is_name = true,
		.shrinks_to = 16},
	{.key = "named", .kind = REPORT_FLAG, .help = "false: no symbol"},
	{.title = "Module",
		.kind = REPORT_TEXT,
		.is_dim = true,
		.shrinks_to = 6,
		.largest = NAME_COLUMNS},
	{.key = "module", .kind = REPORT_TEXT},
	{.key = "module_path", .kind = REPORT_TEXT},
	{.key = "kind", .kind = REPORT_TEXT, .help = "native, kernel, interpreted, jit"},
	{.key = "source_file", .kind = REPORT_TEXT},
	{.key = "class", .kind = REPORT_TEXT, .help = "whose code it is"},
};

static const struct report_column module_columns[] = {
	SELF_AND_TOTAL,
	{.title = "Module", .kind = REPORT_TEXT, .shrinks_to = 10, .largest = 2 * NAME_COLUMNS},
	{.key = "name", .kind = REPORT_TEXT},
	{.key = "path",
		.title = "Path",
		.kind = REPORT_TEXT,
		.is_path = true,
		.is_dim = true,
		.shrinks_to = 12},
	{.key = "build_id", .kind = REPORT_TEXT, .help = "hexadecimal"},
};

static const struct report_column line_columns[] = {
	SELF_AND_TOTAL,
	{.title = "Line", .kind = REPORT_TEXT, .is_path = true, .shrinks_to = 14},
	{.key = "source_file", .kind = REPORT_TEXT},
	{.key = "line", .kind = REPORT_INTEGER},
	{.key = "function",
		.title = "Function",
		.kind = REPORT_TEXT,
		.is_name = true,
		.shrinks_to = 10},
	{.key = "module",
		.title = "Module",
		.kind = REPORT_TEXT,
		.is_dim = true,
		.shrinks_to = 6,
		.largest = NAME_COLUMNS},
};

static const struct report_column process_columns[] = {
	ONLY_TOTAL,
	RANK_COLUMN,
	{.title = "PID", .kind = REPORT_TEXT, .is_right = true},
	{.key = "pid", .kind = REPORT_INTEGER},
	{.key = "parent_pid", .kind = REPORT_INTEGER},
	{.key = "name",
		.title = "Name",
		.kind = REPORT_TEXT,
		.shrinks_to = 10,
		.largest = NAME_COLUMNS},
	{.title = "Command", .kind = REPORT_TEXT, .is_dim = true, .shrinks_to = 12},
	{.key = "command_line", .kind = REPORT_TEXT},
	{.key = "cgroup", .kind = REPORT_TEXT},
	{.key = "processes", .kind = REPORT_COUNT, .help = "how many are in this row"},
};

static const struct report_column thread_columns[] = {
	ONLY_TOTAL,
	RANK_COLUMN,
	{.key = "tid", .title = "TID", .kind = REPORT_INTEGER},
	{.key = "name", .title = "Thread", .kind = REPORT_TEXT, .shrinks_to = 10},
	{.title = "Process", .kind = REPORT_TEXT, .is_dim = true, .shrinks_to = 10},
	{.key = "pid", .kind = REPORT_INTEGER},
	{.key = "process", .kind = REPORT_TEXT},
};

static const struct report_column cpu_columns[] = {
	ONLY_TOTAL,
	{.key = "cpu", .title = "CPU", .kind = REPORT_INTEGER},
};

static const struct report_column cgroup_columns[] = {
	ONLY_TOTAL,
	{.key = "cgroup",
		.title = "Group",
		.kind = REPORT_TEXT,
		.shrinks_to = 16,
		.unknown = "[unknown]"},
};

static const struct report_column rank_columns[] = {
	ONLY_TOTAL,
	{.key = "rank", .title = "Rank", .kind = REPORT_INTEGER, .unknown = "[no rank]"},
};

static const struct report_column class_columns[] = {
	SELF_AND_TOTAL,
	{.key = "class", .title = "Class", .kind = REPORT_TEXT, .unknown = "[no stack]"},
	{.title = "Meaning", .kind = REPORT_TEXT, .is_dim = true, .shrinks_to = 12},
};

static const struct report_column gil_columns[] = {
	ONLY_TOTAL,
	{.key = "gil", .title = "Lock", .kind = REPORT_TEXT},
	{.title = "Meaning", .kind = REPORT_TEXT, .is_dim = true, .shrinks_to = 12},
};

static const struct report_column frame_columns[] = {
	{.key = "function", .kind = REPORT_TEXT},
	{.key = "module", .kind = REPORT_TEXT},
	{.key = "address", .kind = REPORT_INTEGER, .help = "in the file"},
	{.key = "source_file", .kind = REPORT_TEXT},
	{.key = "line", .kind = REPORT_INTEGER},
	{.key = "inlined", .kind = REPORT_FLAG},
	{.key = "kind", .kind = REPORT_TEXT},
	{.key = "class", .kind = REPORT_TEXT},
};
static const struct report_shape frame_shape = REPORT_SHAPE(frame_columns);

static const struct report_column stack_columns[] = {
	ONLY_TOTAL,
	{.key = "stop", .kind = REPORT_TEXT, .help = "why the stack ends"},
	{.key = "python", .kind = REPORT_TEXT, .help = "why its Python frames are as they are"},
	{.key = "frames",
		.kind = REPORT_ROWS,
		.shape = &frame_shape,
		.help = "from the outermost on"},
};

static const struct report_shape row_shapes[BREAKDOWN_MAX] = {
	[BREAKDOWN_FUNCTION] = REPORT_SHAPE(function_columns),
	[BREAKDOWN_MODULE] = REPORT_SHAPE(module_columns),
	[BREAKDOWN_LINE] = REPORT_SHAPE(line_columns),
	[BREAKDOWN_PROCESS] = REPORT_SHAPE(process_columns),
	[BREAKDOWN_THREAD] = REPORT_SHAPE(thread_columns),
	[BREAKDOWN_CPU] = REPORT_SHAPE(cpu_columns),
	[BREAKDOWN_CGROUP] = REPORT_SHAPE(cgroup_columns),
	[BREAKDOWN_STACK] = REPORT_SHAPE(stack_columns),
	[BREAKDOWN_CLASS] = REPORT_SHAPE(class_columns),
	[BREAKDOWN_GIL] = REPORT_SHAPE(gil_columns),
	[BREAKDOWN_RANK] = REPORT_SHAPE(rank_columns),
};

/* ---- tables ---- */

#define ROWS_OF(by)                                                                                \
	{                                                                                          \
		.key = "rows", .total = "rows_total", .kind = REPORT_ROWS,                         \
		.shape = &row_shapes[by]                                                           \
	}

static const struct report_column tables_of[BREAKDOWN_MAX] = {
	[BREAKDOWN_FUNCTION] = ROWS_OF(BREAKDOWN_FUNCTION),
	[BREAKDOWN_MODULE] = ROWS_OF(BREAKDOWN_MODULE),
	[BREAKDOWN_PROCESS] = ROWS_OF(BREAKDOWN_PROCESS),
	[BREAKDOWN_CPU] = ROWS_OF(BREAKDOWN_CPU),
	[BREAKDOWN_CGROUP] = ROWS_OF(BREAKDOWN_CGROUP),
	[BREAKDOWN_CLASS] = ROWS_OF(BREAKDOWN_CLASS),
	[BREAKDOWN_GIL] = ROWS_OF(BREAKDOWN_GIL),
	[BREAKDOWN_RANK] = ROWS_OF(BREAKDOWN_RANK),
};
/* In the terminal also the source around the lines of some files. */
static const struct report_column lines_of[] = {
	ROWS_OF(BREAKDOWN_LINE),
	{.kind = REPORT_ROWS, .shape = &report_source_shape},
	{.kind = REPORT_ROWS, .shape = &report_source_shape},
	{.kind = REPORT_ROWS, .shape = &report_source_shape},
};
_Static_assert(ARRAY_SIZE(lines_of) == 1 + REPORT_SOURCE_FILES, "a table for each file");
static const struct report_column threads_of[] = {
	ROWS_OF(BREAKDOWN_THREAD),
	{.key = "names_missing",
		.kind = REPORT_TEXT,
		.help = "why Python threads have the name of their process; null: they have their "
			"own"},
};
/* The terminal has the hottest path, and stacks with one frame a row. */
static const struct report_column stacks_of[] = {
	ROWS_OF(BREAKDOWN_STACK),
	{.kind = REPORT_ROWS, .shape = &report_path_shape},
	{.kind = REPORT_ROWS, .shape = &report_listing_shape},
};

#define TABLE(by)                                                                                  \
	[by] = {                                                                                   \
		.columns = &tables_of[by],                                                         \
		.count = 1,                                                                        \
	}
const struct report_shape report_table_shapes[BREAKDOWN_MAX] = {
	TABLE(BREAKDOWN_FUNCTION),
	TABLE(BREAKDOWN_MODULE),
	[BREAKDOWN_LINE] = REPORT_SHAPE(lines_of),
	TABLE(BREAKDOWN_PROCESS),
	[BREAKDOWN_THREAD] = REPORT_SHAPE(threads_of),
	TABLE(BREAKDOWN_CPU),
	TABLE(BREAKDOWN_CGROUP),
	[BREAKDOWN_STACK] = REPORT_SHAPE(stacks_of),
	TABLE(BREAKDOWN_CLASS),
	TABLE(BREAKDOWN_GIL),
	TABLE(BREAKDOWN_RANK),
};

const struct report_column *report_breakdown_column(enum breakdown_by by)
{
	return &report_table_shapes[by].columns[0];
}

/* ---- what fills them ---- */

static void add_function(struct result *result, const struct model *model, uint32_t index)
{
	const struct model_function *function =
		index == MODEL_NONE ? NULL : &model->functions.items[index];
	const struct model_module *module = function && function->module != MODEL_NONE
						    ? &model->modules.items[function->module]
						    : NULL;

	result_text(result, model_function_name(model, index));
	result_flag(result, function && !function->unnamed);
	result_text(result, model_function_module(model, index));
	result_text(result, module ? module->name : NULL);
	result_text(result, module ? module->path : NULL);
	result_text(result, function ? kind_name(function->kind) : NULL);
	result_text(result, function ? function->source_file : NULL);
	result_text(result, function ? model_class_to_string(function->class) : NULL);
}

static void add_module(struct result *result, const struct model *model, uint32_t index)
{
	const struct model_module *module =
		index < model->modules.count ? &model->modules.items[index] : NULL;
	char hex[BUILD_ID_HEX_SIZE];

	result_text(result, module                ? module->name
			    : index == MODEL_NONE ? "[no stack]"
						  : "[unknown]");
	result_text(result, module ? module->name : NULL);
	result_text(result, module ? module->path : NULL);
	result_text(result, module ? build_id_hex(module, hex) : NULL);
}

static void add_line(
	struct result *result, const struct model *model, const struct breakdown_line *line)
{
	uint32_t function = line ? line->function : MODEL_NONE;

	if (line && line->line)
		result_textf(result, "%s:%u",
			*line->source_file ? line->source_file : "[unknown file]", line->line);
	else
		result_text(result, line ? "[no line information]" : "[no stack]");
	result_text(result, line ? line->source_file : NULL);
	result_known(result, line && line->line, line ? line->line : 0);
	result_text(result, model_function_name(model, function));
	result_text(result, model_function_module(model, function));
}

static void add_rank(struct result *result, uint32_t rank)
{
	result_known(result, rank != MODEL_NONE, rank);
}

/* As the table shows it. */
static void add_command(struct result *result, const char *command)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (command)
		format_command(&text, command);
	strbuf_inherit_status(&result->texts, &text);
	result_text(result, command ? strbuf_cstr(&text) : NULL);
}

static void add_process(
	struct result *result, const struct model *model, const struct breakdown_row *row)
{
	const struct model_process *process = &model->processes.items[row->key];

	add_rank(result, process->rank);
	if (row->merged)
		result_textf(result, "%u \xc3\x97", row->merged + 1);
	else
		result_textf(result, "%u", process->pid);
	result_u64(result, process->pid);
	result_known(result, process->parent_pid != 0, process->parent_pid);
	result_text(result, process->name);
	add_command(result, row->merged ? NULL : process->command_line);
	result_text(result, process->command_line);
	result_text(result, process->cgroup);
	result_u64(result, 1 + (uint64_t)row->merged);
}

static void add_thread(struct result *result, const struct model *model, uint32_t index)
{
	const struct model_thread *thread = &model->threads.items[index];
	const struct model_process *process = &model->processes.items[thread->process];

	add_rank(result, process->rank);
	result_u64(result, thread->tid);
	result_text(result, thread->name);
	result_textf(result, "%s (%u)", process->name, process->pid);
	result_u64(result, process->pid);
	result_text(result, process->name);
}

static void add_class(struct result *result, uint32_t class)
{
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

	result_text(result, class == MODEL_NONE ? NULL : model_class_to_string(class));
	result_text(result, class == MODEL_NONE ? NULL : meanings[class]);
}

static void add_gil(struct result *result, uint32_t gil)
{
	static const char *const meanings[WIRE_GIL_MAX] = {
		[WIRE_GIL_NONE] = "no Python thread, a build without the lock, or not known",
		[WIRE_GIL_HELD] = "ran with the lock: no other thread of the process ran Python",
		[WIRE_GIL_WAITING] = "waited for the lock",
		[WIRE_GIL_RELEASED] = "ran without the lock, in native code",
	};

	result_text(result, wire_gil_name(gil));
	result_text(result, meanings[gil]);
}

static void add_stack(struct result *result, const struct model *model, uint32_t key)
{
	const struct model_stack *stack = key == MODEL_NONE ? NULL : &model->stacks.items[key];

	result_text(result, stack ? wire_stop_name(stack->stop) : NULL);
	result_text(result, stack ? wire_python_name(stack->python) : NULL);
	result_open(result);
	for (uint32_t i = 0; stack && i < stack->count; i++) {
		const struct model_frame *frame =
			&model->frames.items[model->stack_frames.items[stack->first + i]];
		const struct model_function *function = &model->functions.items[frame->function];

		result_text(result, function->name);
		result_text(result, model_function_module(model, frame->function));
		result_u64(result, frame->rel_pc);
		result_text(result, frame->source_file);
		result_known(result, frame->line != 0, frame->line);
		result_flag(result, frame->inlined);
		result_text(result, kind_name(function->kind));
		result_text(result, model_class_to_string(function->class));
	}
	result_close(result);
}

static void add_key(struct result *result, const struct model *model,
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	uint32_t key = row->key;

	switch (breakdown->by) {
	case BREAKDOWN_FUNCTION:
		return add_function(result, model, key);
	case BREAKDOWN_MODULE:
		return add_module(result, model, key);
	case BREAKDOWN_LINE:
		return add_line(
			result, model, key == MODEL_NONE ? NULL : &breakdown->lines.items[key]);
	case BREAKDOWN_PROCESS:
		return add_process(result, model, row);
	case BREAKDOWN_THREAD:
		return add_thread(result, model, key);
	case BREAKDOWN_CPU:
		return result_u64(result, key);
	case BREAKDOWN_CGROUP:
		return result_text(result, breakdown->cgroups.items[key]);
	case BREAKDOWN_CLASS:
		return add_class(result, key);
	case BREAKDOWN_RANK:
		return add_rank(result, breakdown->ranks.items[key]);
	case BREAKDOWN_GIL:
		return add_gil(result, key);
	default:
		return add_stack(result, model, key);
	}
}

uint32_t report_add_breakdown(struct result *result, const struct model *model,
	const struct breakdown *breakdown, size_t first, size_t count)
{
	uint32_t table = result_open(result);

	for (size_t i = first; i < first + count; i++) {
		const struct breakdown_row *row = &breakdown->rows.items[i];

		report_add_weight(result, model, breakdown->samples, row->self_samples,
			breakdown_uncertainty(breakdown, model, row, false));
		report_add_weight(result, model, breakdown->samples, row->total_samples,
			breakdown_uncertainty(breakdown, model, row, true));
		add_key(result, model, breakdown, row);
	}
	result_leave_out(result, breakdown->rows.count - count);
	result_close(result);
	return table;
}
