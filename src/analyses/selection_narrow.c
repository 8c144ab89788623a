/* SPDX-License-Identifier: Apache-2.0 */
/* The filters, applied to everything of a model but its samples, which selection_apply() marks. */
#include "analyses/selection_match.h"

#include <errno.h>

#include "base/macros.h"
#include "base/strbuf.h"
#include "model/weigh.h"

/* What the filters look at. An event without a stack lies in no function. */
struct event {
	uint64_t start_ns, end_ns;
	struct range_moment moment; /* the launch's, of device work */
	bool fits_symbol, fits_range;
	bool is_step, is_chosen; /* by --step */
};

struct narrowing {
	const struct selection *selection;
	struct selection_match match;
	struct model *model;
};

typedef int event_function(const struct narrowing *narrowing, size_t index, struct event *event);

static bool thread_fits(const struct selection_match *match, const struct range_moment *moment)
{
	if (moment->thread == MODEL_NONE)
		return match->any_thread && match->processes[moment->process];
	return match->threads[moment->thread];
}

static bool step_fits(const struct selection_match *match, const struct event *event)
{
	return event->is_step ? event->is_chosen
			      : selection_match_in_step(
					match, event->moment.process, event->moment.time_ns);
}

/* ---- what the filters look at, of each kind ---- */

/* As samples of --weight gpu do, whose stacks end in the name of the work. */
static int symbol_fits(
	const struct narrowing *narrowing, const struct model_device_work *work, bool *ret_fits)
{
	const struct selection_match *match = &narrowing->match;
	_cleanup_strbuf_ struct strbuf names = {0};

	*ret_fits = !match->stacks || (work->stack != MODEL_NONE && match->stacks[work->stack]);
	if (*ret_fits)
		return 0;
	strbuf_add(&names, MODEL_GPU_LEAF);
	strbuf_add(&names, work->name);
	*ret_fits = matcher_fits(&match->by_symbol, 0, strbuf_cstr(&names));
	if (!*ret_fits && work->stack == MODEL_NONE) {
		strbuf_clear(&names);
		strbuf_addf(&names, MODEL_UNATTRIBUTED_LEAF "%s]",
			model_unattributed_to_string(work->unattributed));
		*ret_fits = matcher_fits(&match->by_symbol, 0, strbuf_cstr(&names));
	}
	return strbuf_status(&names);
}

/* `thread` MODEL_NONE: it is of the process. */
static void set_span(
	struct event *event, uint32_t process, uint32_t thread, uint64_t start_ns, uint64_t end_ns)
{
	event->start_ns = start_ns;
	event->end_ns = end_ns;
	event->moment =
		(struct range_moment){.time_ns = start_ns, .process = process, .thread = thread};
}

/* Of what has a process and a moment. */
static void set_moment(struct event *event, uint32_t process, uint64_t time_ns)
{
	set_span(event, process, MODEL_NONE, time_ns, time_ns);
}

/* Work is where it starts. */
static int work_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	const struct model_device_work *work = &narrowing->model->device_works.items[index];

	event->start_ns = event->end_ns = work->start_ns;
	event->moment = (struct range_moment){
		.time_ns = work->launch_ns ? work->launch_ns : work->start_ns,
		.process = work->process,
		.thread = work->thread,
	};
	return symbol_fits(narrowing, work, &event->fits_symbol);
}

static int wait_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	const struct model *model = narrowing->model;
	const struct model_device_wait *wait = &model->device_waits.items[index];

	set_span(event, model->threads.items[wait->thread].process, wait->thread, wait->start_ns,
		wait->end_ns);
	return 0;
}

static int sync_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	const struct model_device_sync *sync = &narrowing->model->device_syncs.items[index];

	set_span(event, sync->process, MODEL_NONE, sync->start_ns, sync->end_ns);
	return 0;
}

static int device_call_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	const struct model_device_call *call = &narrowing->model->device_calls.items[index];

	set_span(event, call->process, call->thread, call->start_ns, call->end_ns);
	return 0;
}

static int unified_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	const struct model_unified_memory *item = &narrowing->model->unified_memory.items[index];

	set_span(event, item->process, MODEL_NONE, item->start_ns, item->end_ns);
	return 0;
}

static int range_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	const struct model_range *range = &narrowing->model->ranges.items[index];

	set_span(event, range->process, range->thread, range->start_ns, range->end_ns);
	event->fits_range = narrowing->match.ranges && narrowing->match.ranges[index];
	return 0;
}

static int step_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	const struct model_step *step = &narrowing->model->steps.items[index];

	event->is_step = true;
	event->is_chosen =
		!narrowing->match.has_steps || selection_match_has_step(&narrowing->match, step);
	set_span(event, step->process, step->thread, step->start_ns, step->end_ns);
	return 0;
}

static int counter_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	const struct model_counter *counter = &narrowing->model->counters.items[index];

	set_moment(event, counter->process, counter->time_ns);
	return 0;
}

static int memory_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	const struct model_device_memory *memory = &narrowing->model->device_memory.items[index];

	set_moment(event, memory->process, memory->time_ns);
	return 0;
}

static int overhead_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	const struct model_overhead *overhead = &narrowing->model->overheads.items[index];

	set_moment(event, overhead->process, overhead->time_ns);
	return 0;
}

static int pc_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	const struct model_pc *pc = &narrowing->model->pcs.items[index];

	set_moment(event, pc->process, pc->time_ns);
	return 0;
}

static int captured_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	const struct model_captured_call *call = &narrowing->model->captured_calls.items[index];

	set_span(event, call->process, call->thread, call->start_ns, call->end_ns);
	return 0;
}

/* How a graph was captured is of all its replays, whenever they were. */
static void set_capture(const struct narrowing *narrowing, struct event *event, uint32_t process)
{
	set_moment(event, process, narrowing->match.start_ns);
	event->is_step = event->is_chosen = true;
}

static int call_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	set_capture(narrowing, event, narrowing->model->graph_calls.items[index].process);
	return 0;
}

static int node_event(const struct narrowing *narrowing, size_t index, struct event *event)
{
	set_capture(narrowing, event, narrowing->model->graph_nodes.items[index].process);
	return 0;
}

/* ---- what is kept ---- */

/* Which of `count` events fit. An event that lies in a range that fits keeps its mark. */
static int find_kept(
	struct narrowing *narrowing, size_t count, event_function *event_of, bool *kept)
{
	const struct selection_match *match = &narrowing->match;
	_cleanup_free_ struct range_moment *moments = NULL;
	_cleanup_free_ bool *in_ranges = calloc(count + 1, sizeof(*in_ranges));
	int r = 0;

	moments = calloc(count + 1, sizeof(*moments));
	if (!moments || !in_ranges)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct event event = {.fits_symbol = !match->stacks};

		r = event_of(narrowing, i, &event);
		kept[i] = event.fits_symbol && thread_fits(match, &event.moment) &&
			  step_fits(match, &event) && event.start_ns <= match->end_ns &&
			  event.end_ns >= match->start_ns;
		in_ranges[i] = event.fits_range || !match->ranges;
		moments[i] = event.moment;
		moments[i].index = (uint32_t)i;
	}
	if (r == 0 && match->ranges)
		r = selection_match_moments(match, narrowing->model, moments, count, in_ranges);
	for (size_t i = 0; i < count; i++)
		kept[i] &= in_ranges[i];
	return r;
}

/* Notes that events of this kind are left out, if a filter does not apply to them. */
static bool leave_out(struct narrowing *narrowing, enum selection_kind kind, size_t count)
{
	if (!selection_refused(narrowing->selection, kind))
		return false;
	if (count)
		narrowing->model->left_out |= 1U << kind;
	return true;
}

/* Ranges come last: the others look at them. */
#define NARROW(narrowing, array, kind, event_of)                                                   \
	({                                                                                         \
		size_t _count = (narrowing)->model->array.count, _left = 0;                        \
		bool *_kept = calloc(_count + 1, sizeof(*_kept));                                  \
		int _r = _kept ? 0 : -ENOMEM;                                                      \
                                                                                                   \
		if (_r == 0 && !leave_out(narrowing, kind, _count))                                \
			_r = find_kept(narrowing, _count, event_of, _kept);                        \
		for (size_t _i = 0; _r == 0 && _i < _count; _i++) {                                \
			if (_kept[_i])                                                             \
				(narrowing)->model->array.items[_left++] =                         \
					(narrowing)->model->array.items[_i];                       \
		}                                                                                  \
		if (_r == 0)                                                                       \
			(narrowing)->model->array.count = _left;                                   \
		free(_kept);                                                                       \
		_r;                                                                                \
	})

/* What captured graphs stays, for replays that are kept: it is shown where it fits itself. */
static int hide_captured(struct narrowing *narrowing)
{
	struct model *model = narrowing->model;
	size_t count = model->captured_calls.count;
	_cleanup_free_ bool *kept = calloc(count + 1, sizeof(*kept));
	int r = kept ? 0 : -ENOMEM;

	if (r == 0 && !selection_refused(narrowing->selection, SELECTION_DEVICE_WORK))
		r = find_kept(narrowing, count, captured_event, kept);
	for (size_t i = 0; r == 0 && i < count; i++)
		model->captured_calls.items[i].is_elsewhere |= !kept[i];
	return r;
}

/* Those that are not in `ranges` any more. */
static void hide_capture_ranges(struct model *model)
{
	array_foreach (&model->capture_ranges, range)
		range->is_elsewhere = true;
	array_foreach (&model->ranges, range) {
		if (range->capture_range)
			model->capture_ranges.items[range->capture_range - 1].is_elsewhere = false;
	}
}

static int narrow(struct narrowing *narrowing)
{
	int r;

	leave_out(narrowing, SELECTION_DEVICE_IDLE, narrowing->model->device_works.count);
	leave_out(narrowing, SELECTION_ENERGY, narrowing->model->energy_domains.count);
	leave_out(narrowing, SELECTION_WINDOWS, narrowing->model->windows.count);
	r = NARROW(narrowing, device_works, SELECTION_DEVICE_WORK, work_event);
	r = r ?: NARROW(narrowing, device_waits, SELECTION_DEVICE_WORK, wait_event);
	r = r ?: NARROW(narrowing, device_syncs, SELECTION_DEVICE_WORK, sync_event);
	r = r ?: NARROW(narrowing, device_calls, SELECTION_DEVICE_WORK, device_call_event);
	r = r ?: NARROW(narrowing, pcs, SELECTION_PCS, pc_event);
	r = r ?: NARROW(narrowing, unified_memory, SELECTION_DEVICE_WORK, unified_event);
	r = r ?: NARROW(narrowing, steps, SELECTION_STEPS, step_event);
	r = r ?: NARROW(narrowing, counters, SELECTION_COUNTERS, counter_event);
	r = r ?: NARROW(narrowing, device_memory, SELECTION_DEVICE_MEMORY, memory_event);
	r = r ?: NARROW(narrowing, overheads, SELECTION_DEVICE_MEMORY, overhead_event);
	r = r ?: NARROW(narrowing, graph_calls, SELECTION_GRAPHS, call_event);
	r = r ?: NARROW(narrowing, graph_nodes, SELECTION_GRAPHS, node_event);
	r = r ?: hide_captured(narrowing);
	r = r ?: NARROW(narrowing, ranges, SELECTION_RANGES, range_event);
	hide_capture_ranges(narrowing->model);
	return r;
}

/* What --step chooses from, whatever other filters leave of it. */
static int remember_steps(struct model *model)
{
	int r = 0;

	for (size_t i = model->chosen_steps.count; r == 0 && i < model->steps.count; i++)
		r = array_append(&model->chosen_steps, model->steps.items[i]);
	return r;
}

int selection_narrow(const struct selection *selection, struct model *model, struct errmsg *err)
{
	struct narrowing narrowing = {.selection = selection, .model = model};
	int r;

	if (!selection_narrows(selection))
		return 0;
	if (selection->step && remember_steps(model) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while filtering");
	r = selection_match_init(&narrowing.match, selection, model, err);
	if (r == 0 && narrow(&narrowing) < 0)
		r = errmsg_set(err, -ENOMEM, "memory ran out while filtering");
	selection_match_done(&narrowing.match);
	model->is_narrowed = true;
	model->launches = (struct model_launches){0}; /* of all events */
	return r;
}
