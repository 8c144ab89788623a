/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/charge.h"

struct counting {
	struct calls *calls;
	const struct trace_view *view;
	const uint32_t *parents; /* by row; NULL: no lines are counted */
	uint32_t *known;         /* string → place in calls.rows, + 1 */
	struct intern lines;     /* keys → place in calls.lines */
};

/* Where a thread is in calls up to. */
struct covered {
	int64_t call_ns, load_ns;
};

bool call_loads_code(const char *name)
{
	static const char *const words[] = {"ModuleLoad", "LibraryLoad", "LinkCreate", "LinkAdd",
		"LinkComplete", "ModuleGetFunction", "ModuleGetGlobal", "LibraryGet",
		"KernelGetFunction", "FuncLoad", "GetFuncBySymbol", "FuncGetAttributes",
		"GetSymbolAddress", "GetSymbolSize"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strstr(name, words[i]))
			return true;
	}
	return false;
}

static int find_row(struct counting *counting, uint32_t string)
{
	const char *name = trace_text(counting->view->trace, string);
	struct calls *calls = counting->calls;
	int r = 0;

	if (!counting->known[string]) {
		r = array_append(&calls->rows,
			(struct call_use){.name = name, .is_load = call_loads_code(name)});
		counting->known[string] = (uint32_t)calls->rows.count;
	}
	return r;
}

static bool is_call(const struct trace_event *event)
{
	return event->category == TRACE_RUNTIME || event->category == TRACE_DRIVER;
}

/* Code that is loaded in another call has that call's. */
static uint32_t stack_of(const struct counting *counting, uint32_t row)
{
	const struct trace *trace = counting->view->trace;
	uint32_t stack = trace_call_stack(trace, &trace->events.items[row]);

	for (row = counting->parents[row];
		stack == MODEL_NONE && row != MODEL_NONE && is_call(&trace->events.items[row]);
		row = counting->parents[row])
		stack = trace_call_stack(trace, &trace->events.items[row]);
	return stack;
}

static int count_line(struct counting *counting, uint32_t row, int64_t duration_ns)
{
	const struct trace *trace = counting->view->trace;
	const struct trace_event *event = &trace->events.items[row];
	struct call_line line = {.name = trace_text(trace, event->name), .longest_ns = -1}, *found;
	struct charge_key key;
	uint32_t stack, id;
	int r;

	if (!counting->parents)
		return 0;
	stack = stack_of(counting, row);
	line.frame = charge_frame(trace->recorded, stack);
	key = charge_key(trace->recorded, line.frame, event->name);
	r = intern_add(&counting->lines, &key, sizeof(key), &id);
	if (r > 0)
		r = array_append(&counting->calls->lines, line);
	if (r < 0)
		return r;
	found = &counting->calls->lines.items[id];
	found->count++;
	found->total_ns = trace_add_ns(found->total_ns, duration_ns);
	if (duration_ns > found->longest_ns)
		found->stack = stack;
	found->longest_ns = MAX(found->longest_ns, duration_ns);
	return 0;
}

/* Rows come by start: what of this one lies behind those before it. */
static int64_t new_ns(int64_t *until_ns, int64_t start_ns, int64_t end_ns)
{
	int64_t from_ns = MAX(*until_ns, start_ns);

	if (end_ns <= from_ns)
		return 0;
	*until_ns = end_ns;
	return trace_difference_ns(end_ns, from_ns);
}

static int64_t duration_of(int64_t start_ns, int64_t end_ns)
{
	return MAX(trace_difference_ns(end_ns, start_ns), (int64_t)0);
}

static void count_call(struct calls *calls, struct call_use *use, struct covered *covered,
	int64_t start_ns, int64_t end_ns)
{
	int64_t duration_ns = duration_of(start_ns, end_ns);

	use->count++;
	use->total_ns = trace_add_ns(use->total_ns, duration_ns);
	use->longest_ns = MAX(use->longest_ns, duration_ns);
	calls->covered_ns =
		trace_add_ns(calls->covered_ns, new_ns(&covered->call_ns, start_ns, end_ns));
	if (use->is_load)
		calls->load_ns =
			trace_add_ns(calls->load_ns, new_ns(&covered->load_ns, start_ns, end_ns));
}

static int add_track(struct counting *counting, const struct trace_track *track)
{
	struct covered covered = {INT64_MIN, INT64_MIN};
	const struct trace_view *view = counting->view;
	const struct trace *trace = view->trace;
	struct calls *calls = counting->calls;

	for (uint32_t i = track->first; i < track->first + track->count; i++) {
		const struct trace_event *event = &trace->events.items[trace->rows.items[i]];
		int64_t start_ns, end_ns;
		int r;

		if (!is_call(event) || event->duration_ns == TRACE_NO_DURATION ||
			!trace_view_has(view, event))
			continue;
		start_ns = trace_view_start_ns(view, event);
		end_ns = trace_view_end_ns(view, event);
		r = find_row(counting, event->name);
		r = r ?: count_line(counting, trace->rows.items[i], duration_of(start_ns, end_ns));
		if (r < 0)
			return r;
		count_call(calls, &calls->rows.items[counting->known[event->name] - 1], &covered,
			start_ns, end_ns);
	}
	return 0;
}

/* Recorded in any case: those on events for the sake of what waits for them, and allocations. */
static bool is_always_recorded(const char *name)
{
	static const char *const words[] = {"EventRecord", "RecordEvent", "WaitEvent", "Malloc",
		"MemAlloc", "HostAlloc", "cudaFree", "MemFree", "cuMemCreate", "cuMemRelease",
		"ArrayCreate", "Array3DCreate", "ArrayDestroy"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strstr(name, words[i]))
			return true;
	}
	return false;
}

static void count_recorded(struct counting *counting)
{
	const struct trace *trace = counting->view->trace;
	struct calls *calls = counting->calls;

	array_foreach (&trace->recorded->device_calls, call) {
		struct call_use *use;
		uint32_t string;

		calls->others += !is_always_recorded(call->name);
		if (!intern_find(&trace->strings, call->name, strlen(call->name), &string) ||
			!counting->known[string])
			continue;
		use = &calls->rows.items[counting->known[string] - 1];
		use->recorded++;
		use->failed += call->failed;
	}
}

static int compare_rows(const void *left, const void *right)
{
	const struct call_use *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int compare_lines(const void *left, const void *right)
{
	const struct call_line *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return a->frame < b->frame ? -1 : a->frame > b->frame;
}

static void sort_lines(struct calls *calls)
{
	bool is_known = false;

	array_foreach (&calls->lines, line)
		is_known |= line->frame != MODEL_NONE;
	if (!is_known)
		array_clear(&calls->lines);
	if (calls->lines.count)
		qsort(calls->lines.items, calls->lines.count, sizeof(*calls->lines.items),
			compare_lines);
}

static int count_calls(struct counting *counting)
{
	const struct trace *trace = counting->view->trace;
	int r = 0;

	/* Without a stack there are no lines. */
	if (trace->recorded && trace->call_stacks.count) {
		counting->parents = trace_parents(trace, false);
		r = counting->parents ? 0 : -ENOMEM;
	}
	counting->known = calloc(trace->strings.entries.count + 1, sizeof(*counting->known));
	if (!counting->known)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < trace->tracks.count; i++)
		r = add_track(counting, &trace->tracks.items[i]);
	if (r == 0 && trace->recorded)
		count_recorded(counting);
	return r;
}

int calls_init(struct calls *calls, const struct trace_view *view)
{
	struct counting counting = {.calls = calls, .view = view};
	int r;

	*calls = (struct calls){0};
	r = count_calls(&counting);
	intern_done(&counting.lines);
	free(counting.known);
	if (r < 0) {
		calls_done(calls);
		return r;
	}
	sort_lines(calls);
	if (calls->rows.count)
		qsort(calls->rows.items, calls->rows.count, sizeof(*calls->rows.items),
			compare_rows);
	return 0;
}

void calls_done(struct calls *calls)
{
	array_done(&calls->rows);
	array_done(&calls->lines);
}
