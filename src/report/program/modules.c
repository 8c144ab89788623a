/* SPDX-License-Identifier: Apache-2.0 */
/* Section: time by module of the model, and by what modules ran. */
#include "analyses/program/modules.h"

#include <stdlib.h>
#include <string.h>

#include "report/columns.h"
#include "report/sections.h"

#define BY_MODULES     "nn-module"
#define DEEPEST_INDENT 12U

/* Tables: with device work, and without. */
enum { WITH_WORK, WITHOUT_WORK };
#define ONLY_WITH    (1U << WITH_WORK)
#define ONLY_WITHOUT (1U << WITHOUT_WORK)
#define BOTH         (ONLY_WITH | ONLY_WITHOUT)

#define TIME_COLUMNS                                                                               \
	{.title = "GPU", .kind = REPORT_SHARE, .views = ONLY_WITH},                                \
		{.key = "gpu_ns",                                                                  \
			.title = "Total",                                                          \
			.kind = REPORT_NS,                                                         \
			.views = ONLY_WITH,                                                        \
			.help = "of device work, with that of the modules in it"},                 \
		{.key = "gpu_self_ns",                                                             \
			.title = "Self",                                                           \
			.kind = REPORT_NS,                                                         \
			.views = ONLY_WITH,                                                        \
			.help = "without"},                                                        \
		{.key = "gpu_forward_ns",                                                          \
			.title = "Forward",                                                        \
			.kind = REPORT_NS,                                                         \
			.views = ONLY_WITH,                                                        \
			.help = "of gpu_ns, as is the next"},                                      \
		{.key = "gpu_backward_ns",                                                         \
			.title = "Backward",                                                       \
			.kind = REPORT_NS,                                                         \
			.views = ONLY_WITH},                                                       \
		{.key = "works", .title = "Work", .kind = REPORT_COUNT, .views = ONLY_WITH},       \
		{.title = "Threads", .kind = REPORT_SHARE, .views = ONLY_WITHOUT},                 \
		{.key = "host_ns",                                                                 \
			.title = "On threads",                                                     \
			.kind = REPORT_NS,                                                         \
			.views = BOTH,                                                             \
			.hide = REPORT_HIDE_EMPTY,                                                 \
			.help = "how long threads were in it, running or waiting; the next "       \
				"three as of devices"},                                            \
		{.key = "host_self_ns",                                                            \
			.title = "Self",                                                           \
			.kind = REPORT_NS,                                                         \
			.views = ONLY_WITHOUT},                                                    \
		{.key = "host_forward_ns",                                                         \
			.title = "Forward",                                                        \
			.kind = REPORT_NS,                                                         \
			.views = ONLY_WITHOUT},                                                    \
	{                                                                                          \
		.key = "host_backward_ns", .title = "Backward", .kind = REPORT_NS,                 \
		.views = ONLY_WITHOUT                                                              \
	}

static const struct report_column category_columns[] = {
	{.key = "category", .kind = REPORT_TEXT},
	{.key = "gpu_ns", .kind = REPORT_NS},
};
static const struct report_shape category_shape = REPORT_SHAPE(category_columns);

static const struct report_column row_columns[] = {
	TIME_COLUMNS,
	{.key = "instances",
		.title = "Instances",
		.kind = REPORT_COUNT,
		.views = BOTH,
		.help = "modules of one class at one place of the model"},
	{.title = "Module", .kind = REPORT_TEXT, .views = BOTH, .shrinks_to = 20},
	{.key = "path",
		.kind = REPORT_TEXT,
		.help = "classes from the outermost, with / between; of what no module launched, "
			"the outermost annotation around it"},
	{.key = "is_module", .kind = REPORT_FLAG},
	{.key = "by_category_ns",
		.kind = REPORT_MAP,
		.shape = &category_shape,
		.help = "of gpu_self_ns, by kind of operator"},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column instance_columns[] = {
	TIME_COLUMNS,
	{.key = "of_mean",
		.title = "Of the mean",
		.kind = REPORT_SHARE,
		.decimals = 1,
		.views = BOTH,
		.help = "its time over the mean of the instances of its row"},
	{.key = "path", .title = "Module", .kind = REPORT_TEXT, .views = BOTH, .shrinks_to = 20},
};
static const struct report_shape instance_shape = REPORT_SHAPE(instance_columns);

static const struct report_column operator_columns[] = {
	{.title = "GPU", .kind = REPORT_SHARE},
	{.key = "gpu_ns", .title = "Time", .kind = REPORT_NS},
	{.key = "works", .title = "Work", .kind = REPORT_COUNT},
	{.key = "pass", .title = "Pass", .kind = REPORT_TEXT, .help = "forward or backward"},
	{.key = "category", .title = "Kind", .kind = REPORT_TEXT},
	{.key = "operator",
		.title = "Operator",
		.kind = REPORT_TEXT,
		.unknown = "[no operator]",
		.shrinks_to = 12},
	{.key = "path", .title = "Module", .kind = REPORT_TEXT, .shrinks_to = 16},
};
static const struct report_shape operator_shape = REPORT_SHAPE(operator_columns);

static const struct report_column columns[] = {
	{.key = "rows",
		.total = "rows_total",
		.kind = REPORT_ROWS,
		.shape = &row_shape,
		.help = "of all ranks; a row before those in it, most time first"},
	{.key = "instances",
		.total = "instances_total",
		.kind = REPORT_ROWS,
		.shape = &instance_shape,
		.help = "of rows that have several, most time first"},
	{.key = "operators",
		.total = "operators_total",
		.kind = REPORT_ROWS,
		.shape = &operator_shape,
		.help = "what modules ran by themselves, most time first"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* ---- values ---- */

static void add_times(struct result *result, const struct modules *modules,
	const struct module_time *self, const struct module_time *total)
{
	const struct module_time *all = &modules->all;

	result_share(result, (double)module_device_ns(total), (double)module_device_ns(all));
	result_i64(result, module_device_ns(total));
	result_i64(result, module_device_ns(self));
	result_i64(result, total->device_ns[MODULE_FORWARD]);
	result_i64(result, total->device_ns[MODULE_BACKWARD]);
	result_u64(result, total->works[MODULE_FORWARD] + total->works[MODULE_BACKWARD]);
	result_share(result, (double)module_host_ns(total), (double)module_host_ns(all));
	result_i64(result, module_host_ns(total));
	result_i64(result, module_host_ns(self));
	result_i64(result, total->host_ns[MODULE_FORWARD]);
	result_i64(result, total->host_ns[MODULE_BACKWARD]);
}

/* "Net / Block / Linear". Paths of hostile files may be deep: the middle is left out. */
static void add_row_path(struct strbuf *out, const struct modules *modules, uint32_t index)
{
	const struct module_row *row = &modules->rows.items[index];

	if (row->parent != MODEL_NONE && row->depth <= 64) {
		add_row_path(out, modules, row->parent);
		strbuf_add(out, " / ");
	} else if (row->parent != MODEL_NONE) {
		strbuf_add(out, "\xe2\x80\xa6 / ");
	}
	strbuf_add(out, row->name);
}

static void add_path(struct result *result, const struct modules *modules, uint32_t index)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	add_row_path(&text, modules, index);
	strbuf_inherit_status(&result->texts, &text);
	result_text(result, strbuf_cstr(&text));
}

static void add_instance_path(struct result *result, const struct modules *modules, uint32_t index)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint32_t chain[65], depth = 0;

	for (; index != MODEL_NONE && depth < ARRAY_SIZE(chain);
		index = modules->instances.items[index].parent)
		chain[depth++] = index;
	if (index != MODEL_NONE)
		strbuf_add(&text, "\xe2\x80\xa6 / ");
	while (depth--)
		strbuf_addf(&text, "%s%s", modules->instances.items[chain[depth]].name,
			depth ? " / " : "");
	strbuf_inherit_status(&result->texts, &text);
	result_text(result, strbuf_cstr(&text));
}

static void add_categories(struct result *result, const struct module_row *row)
{
	result_open(result);
	for (int category = 0; category < OP_CATEGORY_MAX; category++) {
		if (!row->by_category_ns[category])
			continue;
		result_text(result, op_category_name((enum op_category)category));
		result_i64(result, row->by_category_ns[category]);
	}
	result_close(result);
}

static void add_row(struct result *result, const struct modules *modules, uint32_t index)
{
	const struct module_row *row = &modules->rows.items[index];
	_cleanup_strbuf_ struct strbuf indented = {0};

	add_times(result, modules, &row->self, &row->total);
	result_known(result, row->is_module, row->instances);
	for (uint32_t i = 0; i < MIN(row->depth, DEEPEST_INDENT); i++)
		strbuf_add_char(&indented, ' ');
	strbuf_add(&indented, row->name);
	strbuf_inherit_status(&result->texts, &indented);
	result_text(result, strbuf_cstr(&indented));
	add_path(result, modules, index);
	result_flag(result, row->is_module);
	add_categories(result, row);
}

static uint32_t add_rows(
	struct result *result, const struct report_input *input, const struct modules *modules)
{
	uint32_t table = result_open(result);
	size_t wanted = report_rows_wanted(result, input, modules->rows.count);

	for (uint32_t i = 0; i < wanted; i++)
		add_row(result, modules, i);
	result_close(result);
	return table;
}

/* ---- instances ---- */

static int64_t weight_of(const struct modules *modules, const struct module_time *time)
{
	return modules->has_device_work ? module_device_ns(time) : module_host_ns(time);
}

struct weighed {
	int64_t weight_ns;
	uint32_t instance;
};

static int compare_weighed(const void *left, const void *right)
{
	const struct weighed *a = left, *b = right;

	if (a->weight_ns != b->weight_ns)
		return a->weight_ns > b->weight_ns ? -1 : 1;
	return a->instance < b->instance ? -1 : a->instance > b->instance;
}

static void add_instance(struct result *result, const struct modules *modules, uint32_t index)
{
	const struct module_instance *instance = &modules->instances.items[index];
	const struct module_row *row = &modules->rows.items[instance->row];

	add_times(result, modules, &instance->self, &instance->total);
	result_share(result, (double)weight_of(modules, &instance->total) * row->instances,
		(double)weight_of(modules, &row->total));
	add_instance_path(result, modules, index);
}

static int add_instances(struct result *result, const struct report_input *input,
	const struct modules *modules, uint32_t *ret_table)
{
	_cleanup_free_ struct weighed *order = calloc(modules->instances.count + 1, sizeof(*order));
	size_t count = 0, wanted;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < modules->instances.count; i++) {
		const struct module_instance *instance = &modules->instances.items[i];

		if (modules->rows.items[instance->row].instances > 1)
			order[count++] = (struct weighed){weight_of(modules, &instance->total), i};
	}
	qsort(order, count, sizeof(*order), compare_weighed);
	*ret_table = result_open(result);
	wanted = report_rows_wanted(result, input, count);
	for (size_t i = 0; i < wanted; i++)
		add_instance(result, modules, order[i].instance);
	result_close(result);
	return 0;
}

/* ---- operators ---- */

static uint32_t add_operators(
	struct result *result, const struct report_input *input, const struct modules *modules)
{
	uint32_t table = result_open(result);
	size_t wanted = report_rows_wanted(result, input, modules->operators.count);

	for (size_t i = 0; i < wanted; i++) {
		const struct module_operator *op = &modules->operators.items[i];

		result_share(
			result, (double)op->device_ns, (double)module_device_ns(&modules->all));
		result_i64(result, op->device_ns);
		result_u64(result, op->works);
		result_text(result, op->pass == MODULE_BACKWARD ? "backward" : "forward");
		result_text(result, op_category_name(op->category));
		result_text(result, op->name);
		add_path(result, modules, op->row);
	}
	result_close(result);
	return table;
}

/* ---- the section ---- */

/* --by module is about files first. */
static int say_nothing(struct result *result, const struct report_input *input, const char *why)
{
	bool is_meant = input->by && strcmp(input->by, BY_MODULES) == 0;

	return is_meant ? report_nothing(result, input, why) : 0;
}

static const char *why_nothing(const struct report_input *input)
{
	if (report_is_foreign(input))
		return "There are no modules: the trace has no rows nn.Module, which PyTorch's "
		       "profiler writes with with_stack=True.";
	return "There are no modules: no work was launched in a range of sonde.watch(model), or "
	       "by a Python function Class.forward.";
}

static int make(struct result *result, const struct report_input *input)
{
	_cleanup_modules_ struct modules modules = {0};
	uint32_t rows, instances, operators;
	unsigned view;
	int r;

	if (!report_is_own(input))
		return say_nothing(result, input, "Other tools have no table of modules.");
	r = modules_init(&modules, input->trace->views, input->trace->count);
	if (r < 0)
		return r;
	if (!modules.has_modules)
		return say_nothing(result, input, why_nothing(input));
	view = modules.has_device_work ? WITH_WORK : WITHOUT_WORK;
	result_open(result);
	rows = add_rows(result, input, &modules);
	r = add_instances(result, input, &modules, &instances);
	if (r < 0)
		return r;
	operators = add_operators(result, input, &modules);
	result_close(result);
	result_heading(result, "Modules of the model");
	result_show(result, rows,
		&(struct result_show){.limit = report_rows_shown(input, 40, 15),
			.noun = "modules",
			.view = view});
	if (!input->is_alone)
		return 0;
	if (result_count(result, instances)) {
		result_heading(result, "Instances that took most");
		result_show(result, instances,
			&(struct result_show){.limit = report_rows_shown(input, 10, 10),
				.noun = "instances",
				.view = view});
	}
	if (!modules.has_device_work)
		return 0;
	result_heading(result, "What modules ran by themselves");
	result_show(result, operators,
		&(struct result_show){
			.limit = report_rows_shown(input, 20, 20), .noun = "operators"});
	return 0;
}

static const struct report_name also[] = {
	{"module", "modules of the program and its libraries; nn.Modules of the model"},
	{0},
};

const struct report_section modules_section = {
	.value = {.key = "modules",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "time by nn.Module, forward and backward"},
	.by = BY_MODULES,
	.also = also,
	.summary = "GPU time by nn.Module, forward and backward, and what each ran",
	.needs = REPORT_NEEDS_ROWS,
	.comes_along = true,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
