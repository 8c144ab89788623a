/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/step_use.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyses/statistics.h"

/* Fewer steps are not judged. */
#define FEWEST_STEPS 4U
/* Standard deviations of a normal distribution with this median deviation. */
#define DEVIATIONS      3.5
#define SIGMA_OF_MEDIAN 1.4826
#define LEAST_SHARE     0.05

const char *step_mark_name(enum step_mark mark)
{
	static const char *const names[STEP_MARK_MAX] = {
		[STEP_WARM_UP] = "warm-up",
		[STEP_SLOW] = "slow",
		[STEP_FAST] = "fast",
	};

	return names[mark];
}

static int compare_numbers(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static double median_of(double *numbers, size_t count)
{
	qsort(numbers, count, sizeof(*numbers), compare_numbers);
	return statistics_median(numbers, count);
}

/* What is usual, and how far from it is odd. */
struct usual {
	double median, limit;
};

/* `numbers` is put in order. */
static struct usual usual_of(double *numbers, size_t count)
{
	struct usual usual = {.median = median_of(numbers, count)};

	for (size_t i = 0; i < count; i++)
		numbers[i] = fabs(numbers[i] - usual.median);
	usual.limit = fmax(DEVIATIONS * SIGMA_OF_MEDIAN * median_of(numbers, count),
		LEAST_SHARE * usual.median);
	return usual;
}

struct marking {
	const struct model *model;
	struct step_cost *costs;
	uint32_t *steps; /* those that ended, in order of time */
	size_t count;
	double *numbers; /* room for as many */
};

static double duration_ns(const struct marking *marking, size_t i)
{
	const struct model_step *step = &marking->model->steps.items[marking->steps[i]];

	return (double)(step->end_ns - step->start_ns);
}

static double busy_ns(const struct marking *marking, size_t i)
{
	return (double)marking->costs[marking->steps[i]].device_busy_ns;
}

static double rest_ns(const struct marking *marking, size_t i)
{
	return duration_ns(marking, i) - busy_ns(marking, i);
}

/* Of the steps from `first` on. */
static struct usual find_usual(struct marking *marking, size_t first,
	double (*figure)(const struct marking *marking, size_t i))
{
	for (size_t i = first; i < marking->count; i++)
		marking->numbers[i - first] = figure(marking, i);
	return usual_of(marking->numbers, marking->count - first);
}

/* The first steps that are slow, half of all at most. */
static size_t count_warm_up(struct marking *marking)
{
	const struct usual usual = find_usual(marking, 0, duration_ns);
	size_t count = 0;

	while (count < marking->count / 2 &&
		duration_ns(marking, count) > usual.median + usual.limit)
		count++;
	return count;
}

static void mark_steps(struct marking *marking, struct step_row *row)
{
	size_t warm_up = count_warm_up(marking);
	const struct usual usual = find_usual(marking, warm_up, duration_ns);
	const struct usual busy = find_usual(marking, warm_up, busy_ns);
	const struct usual rest = find_usual(marking, warm_up, rest_ns);

	row->warm_up_count = warm_up;
	row->steady_p50_ns = (uint64_t)usual.median;
	for (size_t i = 0; i < marking->count; i++) {
		struct step_cost *cost = &marking->costs[marking->steps[i]];
		double more_ns = duration_ns(marking, i) - usual.median;

		cost->of_steady = usual.median > 0 ? duration_ns(marking, i) / usual.median : NAN;
		cost->more_busy_ns = busy_ns(marking, i) - busy.median;
		cost->more_rest_ns = rest_ns(marking, i) - rest.median;
		if (i < warm_up)
			cost->mark = STEP_WARM_UP;
		else if (fabs(more_ns) > usual.limit)
			cost->mark = more_ns > 0 ? STEP_SLOW : STEP_FAST;
		row->odd_count += cost->mark == STEP_SLOW || cost->mark == STEP_FAST;
	}
}

int step_use_mark(
	struct step_use *use, const struct model *model, struct step_row *row, uint32_t end_of_row)
{
	size_t room = end_of_row - row->first_step;
	_cleanup_free_ uint32_t *steps = calloc(room + 1, sizeof(*steps));
	_cleanup_free_ double *numbers = calloc(room + 1, sizeof(*numbers));
	struct marking marking = {
		.model = model, .costs = use->costs.items, .steps = steps, .numbers = numbers};

	if (!steps || !numbers)
		return -ENOMEM;
	for (uint32_t i = row->first_step; i < end_of_row; i++) {
		use->costs.items[i].of_steady = NAN;
		if (!model->steps.items[i].is_cut)
			steps[marking.count++] = i;
	}
	if (marking.count >= FEWEST_STEPS)
		mark_steps(&marking, row);
	return 0;
}
