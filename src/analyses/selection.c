/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/selection.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/range_finder.h"
#include "base/macros.h"

/* A number to compare with, or a pattern. */
struct matcher {
	bool any, is_number;
	uint64_t number;
	regex_t pattern;
	bool has_pattern;
};

struct time_range {
	uint64_t start_ns, end_ns; /* inclusive */
};

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
		"%s '%.200s' is no extended regular expression (%s): give %s; put a backslash "
		"before ( ) [ { * + ? . | ^ $ to mean the character itself",
		option, text, reason, subject);
}

static bool matcher_fits(const struct matcher *matcher, uint64_t number, const char *text)
{
	if (matcher->any)
		return true;
	if (matcher->is_number)
		return number == matcher->number;
	return regexec(&matcher->pattern, text, 0, NULL, 0) == 0;
}

/* Reads one end of a range, nanoseconds; an empty one leaves *ret_ns. Returns the end, or NULL. */
static const char *parse_seconds(const char *text, uint64_t *ret_ns)
{
	char *end;
	double seconds;

	if (!isdigit((unsigned char)*text))
		return text;
	/* A number's own dot must not eat the dots of the range: "1..2" is 1 and 2. */
	seconds = (double)strtoull(text, &end, 10);
	if (end[0] == '.' && isdigit((unsigned char)end[1]))
		seconds = strtod(text, &end);
	if (!isfinite(seconds) || seconds > 1e9)
		return NULL;
	*ret_ns = (uint64_t)(seconds * NS_PER_S + 0.5);
	return end;
}

static int parse_time(
	const char *text, uint64_t origin_ns, struct time_range *ret_range, struct errmsg *err)
{
	uint64_t start = 0, end = UINT64_MAX - origin_ns;
	const char *cursor;

	*ret_range = (struct time_range){.end_ns = UINT64_MAX};
	if (!text)
		return 0;
	cursor = parse_seconds(text, &start);
	if (cursor && strncmp(cursor, "..", 2) == 0)
		cursor = parse_seconds(cursor + 2, &end);
	else
		cursor = NULL;
	if (!cursor || *cursor || start > end)
		return errmsg_set(err, -EINVAL,
			"--time '%.100s' is no range of time: give START..END in seconds since the "
			"recording began, such as 1.5..4, 10.. or ..2",
			text);
	ret_range->start_ns = origin_ns + start;
	ret_range->end_ns = origin_ns + end;
	return 0;
}

/* One bool for each thread: its process and its own name or id fit. */
static int match_threads(const struct selection *selection, const struct model *model,
	bool **ret_fits, struct errmsg *err)
{
	_cleanup_matcher_ struct matcher by_process = {0};
	_cleanup_matcher_ struct matcher by_thread = {0};
	bool *fits;
	int r = 0;

	r = r
		    ?: matcher_init(&by_process, selection->process, true, "--process",
			       "a pid or a pattern for process names", err);
	r = r
		    ?: matcher_init(&by_thread, selection->thread, true, "--thread",
			       "a tid or a pattern for thread names", err);
	if (r < 0)
		return r;
	fits = calloc(model->threads.count + 1, sizeof(*fits));
	if (!fits)
		return -ENOMEM;
	for (size_t i = 0; i < model->threads.count; i++) {
		const struct model_thread *thread = &model->threads.items[i];
		const struct model_process *process = &model->processes.items[thread->process];

		fits[i] = matcher_fits(&by_process, process->pid, process->name) &&
			  matcher_fits(&by_thread, thread->tid, thread->name);
	}
	*ret_fits = fits;
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

/* One bool for each stack: a function in it fits. NULL in *ret_fits: every stack does. */
static int match_stacks(const struct selection *selection, const struct model *model,
	bool **ret_fits, struct errmsg *err)
{
	_cleanup_matcher_ struct matcher by_symbol = {0};
	_cleanup_free_ bool *functions = NULL;
	bool *fits;
	int r;

	*ret_fits = NULL;
	if (!selection->symbol)
		return 0;
	r = matcher_init(&by_symbol, selection->symbol, false, "--symbol",
		"a pattern for function names", err);
	if (r < 0)
		return r;
	functions = calloc(model->functions.count + 1, sizeof(*functions));
	fits = calloc(model->stacks.count + 1, sizeof(*fits));
	if (!functions || !fits) {
		free(fits);
		return -ENOMEM;
	}
	for (size_t i = 0; i < model->functions.count; i++)
		functions[i] = matcher_fits(&by_symbol, 0, model->functions.items[i].name);
	for (size_t i = 0; i < model->stacks.count; i++)
		fits[i] = stack_has(model, &model->stacks.items[i], functions);
	*ret_fits = fits;
	return 0;
}

struct in_ranges {
	const bool *fits; /* by range */
	bool *samples;
};

static int found_in_range(void *context, const struct range_moment *moment, uint32_t range)
{
	struct in_ranges *in = context;

	if (in->fits[range])
		in->samples[moment->index] = true;
	return 0;
}

static int find_in_ranges(const struct model *model, const bool *fits, bool *samples)
{
	struct in_ranges in = {.fits = fits, .samples = samples};
	struct range_moment *moments = calloc(model->samples.count + 1, sizeof(*moments));
	int r;

	if (!moments)
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
	r = range_find(model, moments, model->samples.count, found_in_range, &in);
	free(moments);
	return r;
}

/*
 * One bool for each sample: it, or the launch of the work that it stands for, lies in a range whose
 * name fits. NULL in *ret_fits: every sample does.
 */
static int match_ranges(const struct selection *selection, const struct model *model,
	bool **ret_fits, struct errmsg *err)
{
	_cleanup_matcher_ struct matcher by_name = {0};
	_cleanup_free_ bool *ranges = NULL;
	bool *fits;
	int r;

	*ret_fits = NULL;
	if (!selection->range)
		return 0;
	r = matcher_init(
		&by_name, selection->range, false, "--range", "a pattern for names of ranges", err);
	if (r < 0)
		return r;
	ranges = calloc(model->ranges.count + 1, sizeof(*ranges));
	fits = calloc(model->samples.count + 1, sizeof(*fits));
	if (!ranges || !fits) {
		free(fits);
		return -ENOMEM;
	}
	for (size_t i = 0; i < model->ranges.count; i++)
		ranges[i] = matcher_fits(&by_name, 0, model->ranges.items[i].name);
	*ret_fits = fits;
	return find_in_ranges(model, ranges, fits);
}

static void mark(const struct model *model, enum model_weight weight,
	const struct time_range *range, const bool *threads, const bool *stacks, const bool *ranges,
	struct selected *selected)
{
	for (size_t i = 0; i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];

		selected->samples[i] =
			model_sample_counts(sample, weight) && sample->time_ns >= range->start_ns &&
			sample->time_ns <= range->end_ns && threads[sample->thread] &&
			(!ranges || ranges[i]) &&
			(!stacks || (sample->stack != MODEL_NONE && stacks[sample->stack]));
		selected->count += selected->samples[i] ? sample->count : 0;
	}
}

int selection_apply(const struct selection *selection, const struct model *model,
	struct selected *ret_selected, struct errmsg *err)
{
	static const struct selection everything = {0};
	_cleanup_free_ bool *threads = NULL, *stacks = NULL, *ranges = NULL;
	struct selected selected = {0};
	struct time_range range;
	int r = 0;

	if (!selection)
		selection = &everything;
	r = r ?: parse_time(selection->time, model_start_ns(model), &range, err);
	r = r ?: match_threads(selection, model, &threads, err);
	r = r ?: match_stacks(selection, model, &stacks, err);
	r = r ?: match_ranges(selection, model, &ranges, err);
	if (r < 0 && r != -ENOMEM)
		return r;
	selected.samples = calloc(model->samples.count + 1, sizeof(*selected.samples));
	if (r < 0 || !threads || !selected.samples) {
		selected_done(&selected);
		return errmsg_set(err, -ENOMEM, "memory ran out while filtering samples");
	}
	mark(model, selection->weight, &range, threads, stacks, ranges, &selected);
	*ret_selected = selected;
	return 0;
}

void selected_done(struct selected *selected)
{
	free(selected->samples);
	*selected = (struct selected){0};
}
