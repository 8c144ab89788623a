/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock-cost SECONDS: the clock that ranges are timed by, as JSON: what a look at it costs beside
 * one at CLOCK_MONOTONIC, and how far apart they are. The error is that against the middle of two
 * looks at the real clock around it, where these are near enough to one another to tell.
 */
#include <stdio.h>
#include <stdlib.h>

#include "inject/clock.h"

#define LOOKS      1000000
#define MAX_ERRORS 4000000
#define NEAR_NS    60
#define BETWEEN_NS 500
#define NS_PER_S   1e9

static int compare(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static double cost_ns(struct inject_clock *clock)
{
	uint64_t begin_ns = inject_now_ns(), sum = 0;

	for (unsigned i = 0; i < LOOKS; i++)
		sum += clock ? inject_clock_now(clock) : inject_now_ns();
	return sum ? (double)(inject_now_ns() - begin_ns) / LOOKS : 0;
}

int main(int count, char **arguments)
{
	double seconds = count > 1 ? atof(arguments[1]) : 0;
	static uint32_t errors[MAX_ERRORS];
	struct inject_clock clock = {0};
	uint64_t end_ns, back = 0, last_ns = 0;
	size_t found = 0;

	if (seconds <= 0) {
		fprintf(stderr, "clock-cost: SECONDS\n");
		return 2;
	}
	inject_clock_open();
	end_ns = inject_now_ns() + (uint64_t)(seconds * NS_PER_S);
	while (last_ns < end_ns && found < MAX_ERRORS) {
		uint64_t before_ns = inject_now_ns(), now_ns = inject_clock_now(&clock),
			 after_ns = inject_now_ns(), middle_ns = (before_ns + after_ns) / 2;

		back += now_ns < last_ns;
		last_ns = now_ns;
		if (after_ns - before_ns <= NEAR_NS)
			errors[found++] = (uint32_t)(now_ns > middle_ns ? now_ns - middle_ns
									: middle_ns - now_ns);
		while (inject_now_ns() < after_ns + BETWEEN_NS)
			;
	}
	if (!found) {
		fprintf(stderr, "clock-cost: two looks at the clock are never near\n");
		return 1;
	}
	qsort(errors, found, sizeof(*errors), compare);
	printf("{\"looks\": %zu, \"went_back\": %llu, \"error_p50_ns\": %u, \"error_p99_ns\": %u, "
	       "\"error_max_ns\": %u, \"clock_ns\": %.2f, \"real_ns\": %.2f}\n",
		found, (unsigned long long)back, errors[found / 2], errors[found * 99 / 100],
		errors[found - 1], cost_ns(&clock), cost_ns(NULL));
	return 0;
}
