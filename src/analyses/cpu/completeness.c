/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/completeness.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyses/counts.h"

static void count_stops(struct completeness *completeness, const struct model *model,
	const struct stack_counts *stacks)
{
	for (size_t i = 0; i < model->stacks.count; i++) {
		unsigned stop = model->stacks.items[i].stop;

		if (stop >= WIRE_STOP_MAX)
			stop = WIRE_STOP_READ_FAULT;
		completeness->by_stop[stop] += stacks->by_stack[i];
	}
	for (size_t i = 0; i < model->stacks.count; i++)
		completeness->by_python[model->stacks.items[i].python] += stacks->by_stack[i];
	/* Where no Python code runs there are no Python frames to find: in native threads, and
	 * while the interpreter starts or ends. */
	for (int python = WIRE_PYTHON_FRAMES; python < WIRE_PYTHON_MAX; python++) {
		if (python != WIRE_PYTHON_NO_STATE && python != WIRE_PYTHON_NO_FRAMES &&
			python != WIRE_PYTHON_STARTING)
			completeness->python_stacks += completeness->by_python[python];
	}
	completeness->python_complete = completeness->by_python[WIRE_PYTHON_FRAMES];
	completeness->no_stack = stacks->no_stack;
	completeness->complete_stacks = completeness->by_stop[WIRE_STOP_COMPLETE];
	completeness->user_stacks = completeness->samples - stacks->no_stack -
				    completeness->by_stop[WIRE_STOP_NO_USER_STACK];
}

/* Counts leaves without a name by module; code in no module comes last. */
static int count_unnamed(struct completeness *completeness, const struct model *model,
	const struct stack_counts *stacks)
{
	_cleanup_free_ uint64_t *by_module = calloc(model->modules.count + 1, sizeof(*by_module));

	if (!by_module)
		return -ENOMEM;
	for (size_t i = 0; i < model->stacks.count; i++) {
		uint32_t leaf = model_stack_leaf(model, (uint32_t)i);
		const struct model_function *function;

		if (!stacks->by_stack[i] || leaf == MODEL_NONE)
			continue;
		function = &model->functions.items[model->frames.items[leaf].function];
		if (!function->unnamed)
			continue;
		completeness->unnamed_leaves += stacks->by_stack[i];
		by_module[MIN(function->module, model->modules.count)] += stacks->by_stack[i];
	}
	completeness->worst_unnamed_module = MODEL_NONE;
	for (uint32_t i = 0; i <= model->modules.count; i++) {
		if (by_module[i] <= completeness->worst_unnamed_samples)
			continue;
		completeness->worst_unnamed_samples = by_module[i];
		completeness->worst_unnamed_module = i < model->modules.count ? i : MODEL_NONE;
	}
	return 0;
}

int completeness_init(struct completeness *completeness, const struct model *model,
	const struct selected *selected)
{
	_cleanup_stack_counts_ struct stack_counts stacks = {0};
	int r = stack_counts_init(&stacks, model, selected);

	if (r < 0)
		return r;
	*completeness = (struct completeness){
		.samples = stacks.samples,
		.losses_known = model->stats.present,
		.lost = model->stats.values.samples_lost,
	};
	array_foreach (&model->samples, sample)
		completeness->recorded += model_sample_counts(sample, MODEL_WEIGHT_CPU);
	count_stops(completeness, model, &stacks);
	return count_unnamed(completeness, model, &stacks);
}

double completeness_share(const struct completeness *completeness)
{
	if (!completeness->user_stacks)
		return NAN;
	return (double)completeness->complete_stacks / (double)completeness->user_stacks;
}

double completeness_python_share(const struct completeness *completeness)
{
	if (!completeness->python_stacks)
		return NAN;
	return (double)completeness->python_complete / (double)completeness->python_stacks;
}

enum wire_python completeness_worst_python(const struct completeness *completeness)
{
	enum wire_python worst = WIRE_PYTHON_FRAMES;
	uint64_t most = 0;

	for (int python = WIRE_PYTHON_READ_FAULT; python < WIRE_PYTHON_MAX; python++) {
		if (completeness->by_python[python] <= most)
			continue;
		most = completeness->by_python[python];
		worst = (enum wire_python)python;
	}
	return worst;
}

const char *completeness_python_advice(enum wire_python python)
{
	static const char *const advice[WIRE_PYTHON_MAX] = {
		[WIRE_PYTHON_NONE] = "no Python in the process",
		[WIRE_PYTHON_FRAMES] = "all Python frames are there",
		[WIRE_PYTHON_NO_STATE] = "a native thread, which never ran Python",
		[WIRE_PYTHON_NO_FRAMES] = "the interpreter ran no Python code just then: it was "
					  "starting, ending, or importing",
		[WIRE_PYTHON_STARTING] = "the interpreter was starting",
		[WIRE_PYTHON_READ_FAULT] = "the interpreter's memory could not be read: it was "
					   "paged out",
		[WIRE_PYTHON_DEPTH] = "the stack is deeper than the limit of Python frames: deep "
				      "recursion",
		[WIRE_PYTHON_UNKNOWN] = "this build of Python is not known to sonde: the notes say "
					"which and why",
		[WIRE_PYTHON_NOT_MERGED] = "native and Python frames did not match, and their "
					   "order is a guess",
		[WIRE_PYTHON_TOO_EARLY] = "taken in the first moments of the process, before sonde "
					  "had found its interpreter",
		[WIRE_PYTHON_USER_MODE] = "Python frames need the BPF mode",
	};

	return (unsigned)python < WIRE_PYTHON_MAX ? advice[python] : "an unknown reason";
}

enum wire_stop completeness_worst_stop(const struct completeness *completeness)
{
	enum wire_stop worst = WIRE_STOP_COMPLETE;
	uint64_t most = 0;

	for (int stop = WIRE_STOP_NO_USER_STACK + 1; stop < WIRE_STOP_MAX; stop++) {
		if (completeness->by_stop[stop] <= most)
			continue;
		most = completeness->by_stop[stop];
		worst = (enum wire_stop)stop;
	}
	return worst;
}

const char *completeness_advice(enum wire_stop stop, bool is_bpf)
{
	static const char *const advice[WIRE_STOP_MAX] = {
		[WIRE_STOP_COMPLETE] = "reaches the thread's entry",
		[WIRE_STOP_NO_USER_STACK] = "a kernel thread: there is no user stack",
		[WIRE_STOP_NO_MAPPING] =
			"the code lies in no file, as generated code does: make the runtime keep "
			"frame pointers",
		[WIRE_STOP_NO_TABLE] = "the file's unwind table was not ready yet: record longer; "
				       "the next recording finds it in the cache",
		[WIRE_STOP_NO_RULE] = "the code has no unwind rule there, as hand-written assembly "
				      "may: build it with .cfi directives",
		[WIRE_STOP_READ_FAULT] = "the stack's memory could not be read: it was paged out, "
					 "or the thread was ending",
		[WIRE_STOP_NO_PROGRESS] = "the caller's frame is not where it should be: the stack "
					  "or the unwind rule is wrong",
		[WIRE_STOP_DEPTH] = "the stack is deeper than 16,384 frames: deep recursion",
		[WIRE_STOP_FRAME_POINTER] = "generated code without frame pointers: turn them on "
					    "in its runtime",
		[WIRE_STOP_STACK_COPY] = "the copied part of the stack was too short: the BPF "
					 "mode unwinds stacks in place, of any depth",
		[WIRE_STOP_COMPAT] = "a 32-bit process: only 64-bit stacks are unwound",
		[WIRE_STOP_NEW_MAPPING] = "the process or its library was so new that sonde did "
					  "not know it: leave sonde a CPU, or lower the rate (-F)",
		[WIRE_STOP_OTHER_STACK] =
			"the caller is on another stack: a goroutine's, or the one that a signal "
			"handler with a stack of its own interrupted (the BPF mode unwinds both)",
	};

	/* There stacks are copied only while something is missing. */
	if (is_bpf && stop == WIRE_STOP_STACK_COPY)
		return "the stack was copied, since the file's unwind table was not ready yet, and "
		       "the copied part was too short: the next recording finds the table in the "
		       "cache";
	if (is_bpf && stop == WIRE_STOP_OTHER_STACK)
		return "the caller is on another stack: Go's runtime does a goroutine's work on "
		       "the thread's own stack, and of a signal handler with a stack of its own "
		       "only that one is copied while the file's unwind table is not ready yet";
	return (unsigned)stop < WIRE_STOP_MAX ? advice[stop] : "an unknown reason";
}
