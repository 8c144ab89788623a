/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/chrome/time.h"

#include <stdio.h>
#include <stdlib.h>

/* So many digits tell any two doubles apart; fewer often do. */
#define FEWEST_DIGITS 15
#define MOST_DIGITS   17

static uint64_t end_of(const struct model *model)
{
	uint64_t end_ns =
		MAX(model_start_ns(model) + model_elapsed_ns(model), model->windows_end_ns);
	uint64_t period_ns = model_has_time(model) ? model_sample_weight_ns(model) : NS_PER_MS;

	array_foreach (&model->samples, sample)
		end_ns = MAX(end_ns, sample->time_ns + period_ns);
	array_foreach (&model->device_works, work) {
		end_ns = MAX(end_ns, work->end_ns);
		end_ns = MAX(end_ns, work->launch_ns + work->launch_duration_ns);
	}
	array_foreach (&model->ranges, range)
		end_ns = MAX(end_ns, range->end_ns);
	array_foreach (&model->steps, step)
		end_ns = MAX(end_ns, step->end_ns);
	array_foreach (&model->windows, window)
		end_ns = MAX(end_ns, window->end_ns);
	array_foreach (&model->counters, counter)
		end_ns = MAX(end_ns, counter->time_ns);
	return end_ns;
}

struct chrome_clock chrome_clock_of(const struct model *model)
{
	struct chrome_clock clock = {.origin_ns = model_start_ns(model), .first_ns = NS_PER_US};
	uint64_t end_ns = end_of(model);

	while (clock.first_ns < end_ns - clock.origin_ns + NS_PER_US &&
		clock.first_ns < UINT64_MAX / 4)
		clock.first_ns *= 2;
	return clock;
}

static uint64_t time_of(const struct chrome_clock *clock, uint64_t time_ns)
{
	return clock->first_ns + (time_ns > clock->origin_ns ? time_ns - clock->origin_ns : 0);
}

static void add_ns(struct strbuf *out, const char *key, uint64_t ns)
{
	strbuf_addf(out, ",\"%s\":%llu.%03llu", key, (unsigned long long)(ns / NS_PER_US),
		(unsigned long long)(ns % NS_PER_US));
}

/* The double that readers have of what add_ns() writes: both are rounded correctly. */
static double as_read(uint64_t ns)
{
	return (double)ns / NS_PER_US;
}

void chrome_add_moment(struct strbuf *out, const struct chrome_clock *clock, uint64_t time_ns)
{
	uint64_t ns = time_of(clock, time_ns);

	strbuf_addf(out, "%llu.%03llu", (unsigned long long)(ns / NS_PER_US),
		(unsigned long long)(ns % NS_PER_US));
}

void chrome_add_time(struct strbuf *out, const struct chrome_clock *clock, uint64_t time_ns)
{
	add_ns(out, "ts", time_of(clock, time_ns));
}

void chrome_add_span(
	struct strbuf *out, const struct chrome_clock *clock, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t from_ns = time_of(clock, start_ns), to_ns = time_of(clock, MAX(start_ns, end_ns));
	double from = as_read(from_ns), to = as_read(to_ns);
	char text[48];

	add_ns(out, "ts", from_ns);
	if (as_read(to_ns - from_ns) == to - from) {
		add_ns(out, "dur", to_ns - from_ns);
		return;
	}
	for (int digits = FEWEST_DIGITS; digits <= MOST_DIGITS; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, to - from);
		if (strtod(text, NULL) == to - from)
			break;
	}
	strbuf_addf(out, ",\"dur\":%s", text);
}
