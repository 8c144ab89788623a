/* SPDX-License-Identifier: Apache-2.0 */
/* Section: memory over time, by device, and which operators asked for it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/memory/memory.h"
#include "analyses/selection.h"
#include "model/classify.h"
#include "model/shown.h"
#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

static const struct report_column op_columns[] = {
	{.kind = REPORT_INTEGER, .join = REPORT_JOIN_RANK},
	{.key = "bytes",
		.title = "Bytes",
		.kind = REPORT_BYTES,
		.join = REPORT_JOIN_SUM,
		.is_lead = true},
	REPORT_RANK_SPREAD(0),
	{.key = "allocations",
		.title = "Allocations",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM},
	{.key = "kept_bytes",
		.kind = REPORT_BYTES,
		.help = "what its calls allocated and did not release; may be negative"},
	{.key = "at_peak_bytes",
		.title = "At the peak",
		.kind = REPORT_BYTES,
		.join = REPORT_JOIN_SUM,
		.help = "that it had been given and were in use at the peak"},
	{.key = "name",
		.title = "Operator",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.unknown = "[outside of operators]",
		.is_name = true,
		.shrinks_to = 16},
};
static const struct report_shape op_shape = REPORT_SHAPE(op_columns);

static const struct report_column stack_columns[] = {
	{.kind = REPORT_INTEGER, .join = REPORT_JOIN_RANK},
	{.key = "at_peak_bytes",
		.title = "At the peak",
		.kind = REPORT_BYTES,
		.join = REPORT_JOIN_SUM,
		.is_lead = true},
	REPORT_RANK_SPREAD(0),
	{.key = "bytes", .title = "Bytes", .kind = REPORT_BYTES, .join = REPORT_JOIN_SUM},
	{.key = "allocations",
		.title = "Allocations",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM},
	{.key = "unreleased_bytes",
		.title = "Unreleased",
		.kind = REPORT_BYTES,
		.join = REPORT_JOIN_SUM},
	{.key = "own",
		.title = "Own code",
		.kind = REPORT_TEXT,
		.shrinks_to = 16,
		.help = "the innermost frame of the user's code; null: there is none"},
	{.key = "frame", .title = "Innermost frame", .kind = REPORT_TEXT, .shrinks_to = 16},
	{.key = "stack",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.is_name = true,
		.help = "from the outermost frame on, with semicolons between; null: not known"},
};
static const struct report_shape stack_shape = REPORT_SHAPE(stack_columns);

static const struct report_column point_columns[] = {
	{.key = "time_ns", .kind = REPORT_NS},
	{.key = "allocated_bytes", .kind = REPORT_BYTES},
	{.key = "reserved_bytes", .kind = REPORT_BYTES},
};
static const struct report_shape point_shape = REPORT_SHAPE(point_columns);

static const struct report_column columns[] = {
	REPORT_RANK_COLUMN,
	{.key = "device", .title = "Device", .kind = REPORT_TEXT, .unknown = "GPUs"},
	{.kind = REPORT_INTEGER, .join = REPORT_JOIN_KEY}, /* the type of device */
	{.key = "device_name",
		.title = "",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.shrinks_to = 12},
	{.key = "peak_bytes",
		.title = "Peak",
		.kind = REPORT_BYTES,
		.join = REPORT_JOIN_MEAN,
		.is_lead = true,
		.help = "in use by what the allocator says, else of the allocations that were "
			"seen"},
	REPORT_RANK_SPREAD(0),
	{.key = "peak_ns", .kind = REPORT_NS, .help = "when most was allocated"},
	{.key = "peak_reserved_bytes",
		.title = "Reserved",
		.kind = REPORT_BYTES,
		.join = REPORT_JOIN_MEAN,
		.hide = REPORT_HIDE_UNKNOWN},
	{.key = "unused_at_peak_bytes",
		.title = "Unused",
		.kind = REPORT_BYTES,
		.join = REPORT_JOIN_MEAN,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "reserved and in use by nobody at the peak"},
	{.key = "most_unused_bytes",
		.title = "Most unused",
		.kind = REPORT_BYTES,
		.join = REPORT_JOIN_MEAN,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "the same when it was most: what fragmentation and caching take"},
	{.key = "peak_unseen_bytes",
		.kind = REPORT_BYTES,
		.help = "of the peak: allocated before the trace, by whom is not known"},
	{.key = "allocations",
		.title = "Allocations",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM},
	{.key = "allocated_bytes", .title = "", .kind = REPORT_BYTES, .join = REPORT_JOIN_SUM},
	{.key = "releases", .title = "Releases", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	{.key = "released_bytes", .title = "", .kind = REPORT_BYTES, .join = REPORT_JOIN_SUM},
	{.key = "unreleased", .kind = REPORT_COUNT},
	{.key = "unreleased_bytes",
		.title = "Unreleased",
		.kind = REPORT_BYTES,
		.join = REPORT_JOIN_SUM},
	{.key = "operators",
		.total = "operators_total",
		.kind = REPORT_ROWS,
		.shape = &op_shape,
		.help = "most bytes first"},
	{.key = "stacks",
		.total = "stacks_total",
		.kind = REPORT_ROWS,
		.shape = &stack_shape,
		.help = "most bytes at the peak first"},
	{.key = "timeline",
		.kind = REPORT_ROWS,
		.shape = &point_shape,
		.help = "with --by memory, otherwise null"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* Returns the table. */
static uint32_t add_ops(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct trace_memory_device *device)
{
	uint32_t table = result_open(result);
	size_t wanted = report_rows_wanted(result, input, device->ops.count);

	for (size_t i = 0; i < wanted; i++) {
		const struct trace_memory_op *op = &device->ops.items[i];

		result_u64(result, view->rank);
		result_u64(result, op->bytes);
		report_add_rank_spread(result);
		result_u64(result, op->allocations);
		result_i64(result, op->kept);
		result_u64(result, op->at_peak);
		result_text(result, op->name ? trace_text(view->trace, op->name) : NULL);
	}
	result_close(result);
	return table;
}

/* "name (file:line)" of the user's own code? */
static bool is_own(const char *frame, size_t length)
{
	const char *begin = memrchr(frame, '(', length), *end;
	_cleanup_strbuf_ struct strbuf file = {0};

	if (!begin || begin == frame || begin[-1] != ' ')
		return false;
	begin++;
	end = memrchr(begin, ':', length - (size_t)(begin - frame));
	if (!end)
		return false;
	strbuf_add_bytes(&file, begin, (size_t)(end - begin));
	return strbuf_status(&file) == 0 && !strstr(file.data, "/site-packages/") &&
	       !strstr(file.data, "/dist-packages/") && text_ends_in(file.data, ".py") &&
	       classify_trimmed_python(file.data) == MODEL_CLASS_USER;
}

/* Of a recording, which knows whose code a function is. */
static bool add_recorded_own(struct result *result, const struct model *model, uint32_t recorded)
{
	_cleanup_strbuf_ struct strbuf place = {0};
	const struct model_stack *stack;
	int64_t own;

	if (!model || !recorded)
		return false;
	stack = &model->stacks.items[recorded - 1];
	own = model_own_frame(model, stack);
	if (own < 0)
		return false;
	model_frame_place(model, model->stack_frames.items[stack->first + (size_t)own], &place);
	strbuf_inherit_status(&result->texts, &place);
	result_text(result, strbuf_cstr(&place));
	return true;
}

static bool add_own(struct result *result, const char *stack)
{
	size_t end = strlen(stack), begin;
	const char *separator;

	for (; end; end = begin ? begin - 1 : 0) {
		separator = memrchr(stack, TRACE_STACK_SEPARATOR, end);
		begin = separator ? (size_t)(separator + 1 - stack) : 0;
		if (is_own(stack + begin, end - begin)) {
			result_textf(result, "%.*s", (int)(end - begin), stack + begin);
			return true;
		}
	}
	return false;
}

/* The innermost frame stands last. */
static void add_frames(
	struct result *result, const struct model *model, const char *stack, uint32_t recorded)
{
	size_t length, begin;
	const char *separator;

	assert(stack); /* interned */
	length = strlen(stack);
	if (!add_recorded_own(result, model, recorded) && !add_own(result, stack))
		result_null(result);
	separator = memrchr(stack, TRACE_STACK_SEPARATOR, length);
	begin = separator ? (size_t)(separator + 1 - stack) : 0;
	result_text(result, length ? stack + begin : NULL);
	result_text(result, length ? stack : NULL);
}

/* Returns the table. */
static uint32_t add_stacks(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct trace_memory_use *use,
	const struct trace_memory_device *device)
{
	uint32_t table = result_open(result);
	size_t wanted = report_rows_wanted(result, input, device->stacks.count);

	for (size_t i = 0; i < wanted; i++) {
		const struct trace_memory_stack *stack = &device->stacks.items[i];

		result_u64(result, view->rank);
		result_u64(result, stack->at_peak);
		report_add_rank_spread(result);
		result_u64(result, stack->bytes);
		result_u64(result, stack->allocations);
		result_u64(result, stack->unreleased_bytes);
		add_frames(result, view->trace->recorded, intern_get(&use->stacks, stack->stack),
			stack->recorded);
	}
	result_close(result);
	return table;
}

static void add_points(struct result *result, const struct trace_memory_device *device)
{
	result_open(result);
	array_foreach (&device->points, point) {
		result_i64(result, point->time_ns);
		result_i64(result, point->allocated);
		columns_add_number(result, point->reserved);
	}
	result_close(result);
}

/* Who asked for it, below the table of devices. */
struct details {
	char device[64];
	int64_t type;
	uint32_t table, stacks;
};

struct all_details {
	ARRAY_OF(struct details) items;
};

static void all_details_done(struct all_details *all)
{
	array_done(&all->items);
}

static int add_device(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct trace_memory_use *use,
	const struct trace_memory_device *device, struct all_details *all)
{
	struct details details = {.type = device->type};

	trace_memory_device_name(device, details.device, sizeof(details.device));
	result_u64(result, view->rank);
	result_text(result, details.device);
	result_i64(result, device->type);
	result_text(result, device->type == TRACE_DEVICE_CUDA
				    ? trace_device_name(view->trace, device->id)
				    : NULL);
	result_i64(result, device->peak);
	report_add_rank_spread(result);
	result_i64(result, device->peak_ns);
	columns_add_number(result, device->peak_reserved);
	columns_add_number(result, device->unused_at_peak);
	columns_add_number(result, device->most_unused);
	result_u64(result, device->peak_unseen);
	result_u64(result, device->allocations);
	result_u64(result, device->allocated_bytes);
	result_u64(result, device->releases);
	result_u64(result, device->released_bytes);
	result_u64(result, device->unreleased);
	result_u64(result, device->unreleased_bytes);
	details.table = add_ops(result, input, view, device);
	details.stacks = add_stacks(result, input, view, use, device);
	if (input->is_alone)
		add_points(result, device);
	else
		result_null(result);
	return array_append(&all->items, details);
}

static int add_rank(struct result *result, const struct report_input *input,
	const struct trace_view *view, struct all_details *all)
{
	_cleanup_trace_memory_ struct trace_memory_use use = {0};
	int r = trace_memory_init(&use, view->trace);

	for (size_t i = 0; r == 0 && i < use.devices.count; i++)
		r = add_device(result, input, view, &use, &use.devices.items[i], all);
	return r;
}

static void show_who(struct result *result, const struct report_input *input, const char *device,
	uint32_t ops, uint32_t stacks)
{
	result_lines(result, "\n");
	result_sentencef(result, 0, "Allocated on %s by:", device);
	result_show(result, ops,
		&(struct result_show){
			.limit = report_rows_shown(input, 20, 10), .noun = "operators"});
	result_lines(result, "\n");
	result_sentencef(result, 0, "In use on %s at its peak, by stack:", device);
	result_show(result, stacks,
		&(struct result_show){.limit = report_rows_shown(input, 20, 10), .noun = "stacks"});
}

/* Of all ranks' devices of a type. */
static void show_joined(struct result *result, const struct report_input *input,
	const struct all_details *all, const struct details *first, uint32_t *ops, uint32_t *stacks)
{
	const char *name = first->device;
	size_t count = 0;

	array_foreach (&all->items, details) {
		if (details->type != first->type)
			continue;
		if (strcmp(details->device, name) != 0)
			name = "GPUs";
		ops[count] = details->table;
		stacks[count++] = details->stacks;
	}
	show_who(result, input, name, report_join_tables(result, input, ops, count),
		report_join_tables(result, input, stacks, count));
}

static bool is_first_of_type(const struct all_details *all, const struct details *details)
{
	array_foreach (&all->items, before) {
		if (before->type == details->type)
			return before == details;
	}
	return true;
}

static int show_details(
	struct result *result, const struct report_input *input, const struct all_details *all)
{
	bool are_joined = input->trace->count > 1 && report_is_own(input);
	_cleanup_free_ uint32_t *ops = calloc(all->items.count + 1, sizeof(*ops));
	_cleanup_free_ uint32_t *stacks = calloc(all->items.count + 1, sizeof(*stacks));

	if (!ops || !stacks || result_status(result) < 0)
		return -ENOMEM;
	array_foreach (&all->items, details) {
		if (!are_joined)
			show_who(result, input, details->device, details->table, details->stacks);
		else if (is_first_of_type(all, details))
			show_joined(result, input, all, details, ops, stacks);
	}
	return 0;
}

static const char *why_none(const struct report_input *input)
{
	if (report_is_foreign(input))
		return "There are no memory events: profile with profile_memory=True.";
	return "No allocation of device memory was recorded: CUPTI reports those of programs that "
	       "use CUDA.";
}

static int make(struct result *result, const struct report_input *input)
{
	_cleanup_(all_details_done) struct all_details all = {0};
	uint32_t table;
	int r = 0;

	if (selection_left_out(input->view->model, SELECTION_DEVICE_MEMORY))
		return report_nothing(result, input, why_none(input));
	table = result_open(result);
	for (size_t i = 0; r == 0 && i < input->trace->count; i++)
		r = add_rank(result, input, &input->trace->views[i], &all);
	result_close(result);
	if (r < 0)
		return r;
	if (!all.items.count)
		return report_nothing(result, input, why_none(input));
	result_heading(result, "Memory");
	result_show(result, report_join_ranks(result, input, table), &(struct result_show){0});
	return input->is_alone ? show_details(result, input, &all) : 0;
}

const struct report_section memory_section = {
	.value = {.key = "memory",
		.kind = REPORT_ROWS,
		.shape = &shape,
		.help = "by rank and device"},
	.by = "memory",
	.summary = "memory over time, by device and operator",
	.needs = REPORT_NEEDS_ROWS,
	.shows = SELECTION_DEVICE_MEMORY,
	.make = make,
};
