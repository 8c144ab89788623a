/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/selection_match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "model/energy.h"

enum {
	BY_PROCESS = 1 << 0,
	BY_THREAD = 1 << 1,
	BY_TIME = 1 << 2,
	BY_WINDOW = 1 << 3,
	BY_RANGE = 1 << 4,
	BY_SYMBOL = 1 << 5,
	BY_STEP = 1 << 6,
	BY_ALL = (1 << 7) - 1,
};

/* Counters and memory have no thread; ranges, steps and counters have no stack. */
static const struct {
	const char *name;
	unsigned filters;
} kinds[SELECTION_KIND_MAX] = {
	[SELECTION_SAMPLES] = {"samples", BY_ALL},
	[SELECTION_DEVICE_WORK] = {"device work", BY_ALL},
	[SELECTION_RANGES] = {"ranges", BY_ALL & ~BY_SYMBOL},
	[SELECTION_STEPS] = {"steps", BY_ALL & ~BY_SYMBOL},
	[SELECTION_COUNTERS] = {"counters", BY_PROCESS | BY_TIME | BY_WINDOW | BY_STEP},
	[SELECTION_ENERGY] = {"energy of rails", BY_TIME | BY_WINDOW},
	[SELECTION_WINDOWS] = {"windows", BY_ALL & ~(BY_TIME | BY_STEP)},
	[SELECTION_GRAPHS] = {"CUDA graphs", BY_PROCESS | BY_TIME | BY_WINDOW | BY_STEP},
	[SELECTION_DEVICE_MEMORY] = {"device memory", BY_PROCESS | BY_TIME | BY_WINDOW | BY_STEP},
	[SELECTION_DEVICE_IDLE] = {"idle time of devices", BY_TIME | BY_WINDOW | BY_STEP},
	[SELECTION_PCS] = {"samples of instructions", BY_PROCESS | BY_WINDOW},
	[SELECTION_VLLM_TABLES] = {"tables of vLLM", BY_WINDOW},
	[SELECTION_TRACES] = {"rows of traces", BY_WINDOW},
	[SELECTION_FOREIGN_ROWS] = {"rows of other tools' traces", BY_WINDOW | BY_TIME | BY_STEP},
};

const char *selection_kind_name(enum selection_kind kind)
{
	return kinds[kind].name;
}

/* The first filter given of those in `filters`. */
static const char *find_filter(const struct selection *selection, unsigned filters)
{
	const struct {
		const char *name, *value;
	} given[] = {
		{"--process", selection->process},
		{"--thread", selection->thread},
		{"--time", selection->time},
		{"--window", selection->window},
		{"--range", selection->range},
		{"--symbol", selection->symbol},
		{"--step", selection->step},
	};

	for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
		if (given[i].value && filters & 1U << i)
			return given[i].name;
	}
	return NULL;
}

const char *selection_first_filter(const struct selection *selection)
{
	return find_filter(selection, BY_ALL);
}

const char *selection_refused(const struct selection *selection, enum selection_kind kind)
{
	return find_filter(selection, ~kinds[kind].filters);
}

bool selection_narrows(const struct selection *selection)
{
	return find_filter(selection, BY_ALL & ~BY_WINDOW) != NULL;
}

int selection_check(const struct selection *selection, enum selection_kind kind, struct errmsg *err)
{
	const char *refused = selection_refused(selection, kind);

	if (!refused)
		return 0;
	return errmsg_set(
		err, -EINVAL, "%s does not apply to %s: leave it out", refused, kinds[kind].name);
}

bool selection_left_out(const struct model *model, enum selection_kind kind)
{
	return model->left_out & 1U << kind;
}

void selection_describe_left_out(
	const struct selection *selection, const struct model *model, struct strbuf *out)
{
	unsigned left_out = model->left_out;

	if (!left_out)
		return;
	strbuf_add(out, "Left out, because a filter does not apply to them:");
	for (unsigned kind = 0; kind < SELECTION_KIND_MAX; kind++) {
		if (!(left_out & 1U << kind))
			continue;
		left_out &= ~(1U << kind);
		strbuf_addf(out, " %s (%s)%s", kinds[kind].name,
			selection_refused(selection, (enum selection_kind)kind),
			left_out ? "," : ".");
	}
}

static void matcher_done(struct matcher *matcher)
{
	if (matcher->has_pattern)
		regfree(&matcher->pattern);
	matcher->has_pattern = false;
}

#define _cleanup_matcher_ _cleanup_(matcher_done)

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

/* `option` and `subject` are for the sentence. `number_allowed`: digits alone are an id. */
static int matcher_init(struct matcher *matcher, const char *text, bool number_allowed,
	const char *option, const char *subject, struct errmsg *err)
{
	char reason[128];
	int r;

	if (!text) {
		matcher->any = true;
		return 0;
	}
	if (number_allowed && is_number(text)) {
		matcher->is_number = true;
		matcher->number = strtoull(text, NULL, 10);
		return 0;
	}
	r = regcomp(&matcher->pattern, text, REG_EXTENDED | REG_NOSUB);
	if (r == 0) {
		matcher->has_pattern = true;
		return 0;
	}
	regerror(r, &matcher->pattern, reason, sizeof(reason));
	return errmsg_set(err, -EINVAL,
		"%s '%.200s' is not an extended regular expression (%s): give %s; put a backslash "
		"before ( ) [ { * + ? . | ^ $ to mean the character itself",
		option, text, reason, subject);
}

bool matcher_fits(const struct matcher *matcher, uint64_t number, const char *text)
{
	if (matcher->any)
		return true;
	if (matcher->is_number)
		return number == matcher->number;
	return regexec(&matcher->pattern, text, 0, NULL, 0) == 0;
}

static int parse_time(
	struct selection_match *match, const char *text, uint64_t origin_ns, struct errmsg *err)
{
	uint64_t start = 0, end = UINT64_MAX;
	int r = text ? selection_parse_time(text, &start, &end, err) : 0;

	if (r < 0)
		return r;
	match->start_ns = text ? origin_ns + start : 0;
	match->end_ns = end > UINT64_MAX - origin_ns ? UINT64_MAX : origin_ns + end;
	return 0;
}

/* ---- steps ---- */

static int compare_spans(const void *left, const void *right)
{
	const struct selection_span *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* Those that begin at once are as good as one: a moment looks for the last that has begun. */
static int add_span(struct selection_match *match, const struct model_step *step)
{
	const struct selection_span own = {step->start_ns, step->end_ns, step->process};
	const struct selection_span any = {step->start_ns, step->end_ns, MODEL_NONE};
	int r = array_append(&match->spans, own);

	return r ?: array_append(&match->spans, any);
}

/* Joins those of a process that overlap. */
static void join_spans(struct selection_match *match)
{
	size_t kept = 0;

	qsort(match->spans.items, match->spans.count, sizeof(*match->spans.items), compare_spans);
	for (size_t i = 1; i < match->spans.count; i++) {
		struct selection_span *last = &match->spans.items[kept];
		const struct selection_span *span = &match->spans.items[i];

		if (span->process == last->process && span->start_ns <= last->end_ns)
			last->end_ns = MAX(last->end_ns, span->end_ns);
		else
			match->spans.items[++kept] = *span;
	}
	match->spans.count = kept + 1;
}

static int match_steps(struct selection_match *match, const struct selection *selection,
	const struct model *model, struct errmsg *err)
{
	const struct model_step *steps = model->steps.items;
	size_t count = model->steps.count;
	uint64_t lowest = UINT64_MAX, highest = 0;
	int r = 0;

	if (!selection->step)
		return 0;
	/* Of all, where filters have left some out. */
	if (model->chosen_steps.count) {
		steps = model->chosen_steps.items;
		count = model->chosen_steps.count;
	}
	r = selection_parse_steps(selection->step, &match->steps, err);
	for (size_t i = 0; r == 0 && i < count; i++) {
		lowest = MIN(lowest, steps[i].number);
		highest = MAX(highest, steps[i].number);
		if (selection_match_has_step(match, &steps[i]))
			r = add_span(match, &steps[i]);
	}
	if (r < 0)
		return r;
	if (!match->spans.count)
		return selection_no_step(selection->step, lowest, highest, err);
	join_spans(match);
	match->has_steps = true;
	return 0;
}

/* The last span of the process that has begun; NULL: none has. */
static const struct selection_span *find_span(
	const struct selection_match *match, uint32_t process, uint64_t time_ns)
{
	size_t low = 0, high = match->spans.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct selection_span *span = &match->spans.items[middle];

		if (span->process < process ||
			(span->process == process && span->start_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low && match->spans.items[low - 1].process == process ? &match->spans.items[low - 1]
								     : NULL;
}

static bool has_spans(const struct selection_match *match, uint32_t process)
{
	return find_span(match, process, UINT64_MAX) != NULL;
}

bool selection_match_in_step(
	const struct selection_match *match, uint32_t process, uint64_t time_ns)
{
	const struct selection_span *span;

	if (!match->has_steps)
		return true;
	span = find_span(match, has_spans(match, process) ? process : MODEL_NONE, time_ns);
	return span && time_ns < span->end_ns;
}

static int match_threads(struct selection_match *match, const struct selection *selection,
	const struct model *model, struct errmsg *err)
{
	_cleanup_matcher_ struct matcher by_process = {0};
	_cleanup_matcher_ struct matcher by_thread = {0};
	int r = matcher_init(&by_process, selection->process, true, "--process",
		"a pid or a pattern for process names", err);

	if (r == 0)
		r = matcher_init(&by_thread, selection->thread, true, "--thread",
			"a tid or a pattern for thread names", err);
	if (r < 0)
		return r;
	match->any_thread = by_thread.any;
	match->processes = calloc(model->processes.count + 1, sizeof(*match->processes));
	match->threads = calloc(model->threads.count + 1, sizeof(*match->threads));
	if (!match->processes || !match->threads)
		return -ENOMEM;
	for (size_t i = 0; i < model->processes.count; i++) {
		const struct model_process *process = &model->processes.items[i];

		match->processes[i] = matcher_fits(&by_process, process->pid, process->name);
	}
	for (size_t i = 0; i < model->threads.count; i++) {
		const struct model_thread *thread = &model->threads.items[i];

		match->threads[i] = match->processes[thread->process] &&
				    matcher_fits(&by_thread, thread->tid, thread->name);
	}
	return 0;
}

static bool stack_has(
	const struct model *model, const struct model_stack *stack, const bool *functions)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		uint32_t frame = model->stack_frames.items[stack->first + i];

		if (functions[model->frames.items[frame].function])
			return true;
	}
	return false;
}

static int match_stacks(struct selection_match *match, const struct selection *selection,
	const struct model *model, struct errmsg *err)
{
	_cleanup_free_ bool *functions = NULL;
	int r;

	if (!selection->symbol)
		return 0;
	r = matcher_init(&match->by_symbol, selection->symbol, false, "--symbol",
		"a pattern for function names", err);
	if (r < 0)
		return r;
	functions = calloc(model->functions.count + 1, sizeof(*functions));
	match->stacks = calloc(model->stacks.count + 1, sizeof(*match->stacks));
	if (!functions || !match->stacks)
		return -ENOMEM;
	for (size_t i = 0; i < model->functions.count; i++)
		functions[i] = matcher_fits(&match->by_symbol, 0, model->functions.items[i].name);
	for (size_t i = 0; i < model->stacks.count; i++)
		match->stacks[i] = stack_has(model, &model->stacks.items[i], functions);
	return 0;
}

static int match_ranges(struct selection_match *match, const struct selection *selection,
	const struct model *model, struct errmsg *err)
{
	_cleanup_matcher_ struct matcher by_name = {0};
	int r;

	if (!selection->range)
		return 0;
	r = matcher_init(
		&by_name, selection->range, false, "--range", "a pattern for names of ranges", err);
	if (r < 0)
		return r;
	match->ranges = calloc(model->ranges.count + 1, sizeof(*match->ranges));
	if (!match->ranges)
		return -ENOMEM;
	for (size_t i = 0; i < model->ranges.count; i++)
		match->ranges[i] = matcher_fits(&by_name, 0, model->ranges.items[i].name);
	return 0;
}

int selection_match_init(struct selection_match *match, const struct selection *selection,
	const struct model *model, struct errmsg *err)
{
	int r = parse_time(match, selection->time, model_start_ns(model), err);

	r = r ?: match_threads(match, selection, model, err);
	r = r ?: match_stacks(match, selection, model, err);
	r = r ?: match_ranges(match, selection, model, err);
	r = r ?: match_steps(match, selection, model, err);
	return r == -ENOMEM ? errmsg_set(err, r, "memory ran out while filtering") : r;
}

void selection_match_done(struct selection_match *match)
{
	matcher_done(&match->by_symbol);
	free(match->processes);
	free(match->threads);
	free(match->stacks);
	free(match->ranges);
	array_done(&match->spans);
	*match = (struct selection_match){0};
}

struct in_ranges {
	const bool *ranges;
	bool *fits; /* by the moment's index */
};

static int found_in_range(void *context, const struct range_moment *moment, uint32_t range)
{
	struct in_ranges *in = context;

	if (in->ranges[range])
		in->fits[moment->index] = true;
	return 0;
}

int selection_match_moments(const struct selection_match *match, const struct model *model,
	struct range_moment *moments, size_t count, bool *fits)
{
	struct in_ranges in = {.ranges = match->ranges, .fits = fits};

	return range_find(model, moments, count, found_in_range, &in);
}

/*
 * One bool for each sample: it, or the launch of the work that it stands for, lies in a range that
 * fits. NULL in *ret_fits: every sample does.
 */
static int find_samples_in_ranges(
	const struct selection_match *match, const struct model *model, bool **ret_fits)
{
	_cleanup_free_ struct range_moment *moments = NULL;
	_cleanup_free_ bool *fits = NULL;
	int r;

	*ret_fits = NULL;
	if (!match->ranges)
		return 0;
	moments = calloc(model->samples.count + 1, sizeof(*moments));
	fits = calloc(model->samples.count + 1, sizeof(*fits));
	if (!moments || !fits)
		return -ENOMEM;
	for (size_t i = 0; i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];

		moments[i] = (struct range_moment){
			.time_ns = sample->launch_ns ? sample->launch_ns : sample->time_ns,
			.process = model->threads.items[sample->thread].process,
			.thread = sample->thread,
			.index = (uint32_t)i,
		};
	}
	r = selection_match_moments(match, model, moments, model->samples.count, fits);
	if (r == 0)
		*ret_fits = TAKE_PTR(fits);
	return r;
}

/* It, or the launch of the work that it stands for. */
static bool is_in_step(const struct model *model, const struct selection_match *match,
	const struct model_sample *sample)
{
	return selection_match_in_step(match, model->threads.items[sample->thread].process,
		sample->launch_ns ? sample->launch_ns : sample->time_ns);
}

static void mark(const struct model *model, enum model_weight weight,
	const struct selection_match *match, const bool *in_ranges, struct selected *selected)
{
	for (size_t i = 0; i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];

		selected->samples[i] =
			model_sample_counts(sample, weight) && sample->time_ns >= match->start_ns &&
			sample->time_ns <= match->end_ns && match->threads[sample->thread] &&
			is_in_step(model, match, sample) && (!in_ranges || in_ranges[i]) &&
			(!match->stacks ||
				(sample->stack != MODEL_NONE && match->stacks[sample->stack]));
		selected->count += selected->samples[i] ? sample->count : 0;
	}
}

int selection_narrow_energy(
	const struct selection *selection, struct model *model, struct errmsg *err)
{
	struct selection_match match = {0};
	size_t kept = 0;
	int r = parse_time(&match, selection->time, model_start_ns(model), err);

	if (r < 0 || !selection->time)
		return r;
	for (size_t i = 0; i < model->energy_intervals.count; i++) {
		struct model_energy_interval interval = model->energy_intervals.items[i];

		if (model_energy_cut(&interval, match.start_ns, match.end_ns))
			model->energy_intervals.items[kept++] = interval;
	}
	model->energy_intervals.count = kept;
	kept = 0;
	array_foreach (&model->energy_states, state) {
		if (state->time_ns >= match.start_ns && state->time_ns <= match.end_ns)
			model->energy_states.items[kept++] = *state;
	}
	model->energy_states.count = kept;
	model_energy_index(model);
	return 0;
}

int selection_apply(const struct selection *selection, const struct model *model,
	struct selected *ret_selected, struct errmsg *err)
{
	static const struct selection everything = {0};
	_cleanup_selection_match_ struct selection_match match = {0};
	_cleanup_free_ bool *in_ranges = NULL;
	struct selected selected = {0};
	int r;

	if (!selection)
		selection = &everything;
	r = selection_match_init(&match, selection, model, err);
	if (r < 0)
		return r;
	selected.samples = calloc(model->samples.count + 1, sizeof(*selected.samples));
	if (!selected.samples || find_samples_in_ranges(&match, model, &in_ranges) < 0) {
		selected_done(&selected);
		return errmsg_set(err, -ENOMEM, "memory ran out while filtering samples");
	}
	mark(model, selection->weight, &match, in_ranges, &selected);
	*ret_selected = selected;
	return 0;
}

void selected_done(struct selected *selected)
{
	free(selected->samples);
	*selected = (struct selected){0};
}
