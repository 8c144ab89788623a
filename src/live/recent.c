/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts of the last seconds. Time is that of the recording, not that of the reader. */
#include "live/state.h"

uint64_t live_second(const struct live_figures *figures, uint64_t time_ns)
{
	return time_ns > figures->start_ns ? (time_ns - figures->start_ns) / NS_PER_S : 0;
}

void live_recent_add(struct live_recent *recent, uint64_t second, uint64_t amount)
{
	recent->total += amount;
	if (second > recent->second) {
		uint64_t newer = MIN(second - recent->second, (uint64_t)LIVE_RECENT_SECONDS);

		for (uint64_t i = 0; i < newer; i++)
			recent->amounts[(second - i) % LIVE_RECENT_SECONDS] = 0;
		recent->second = second;
	}
	if (recent->second - second < LIVE_RECENT_SECONDS)
		recent->amounts[second % LIVE_RECENT_SECONDS] += amount;
}

void live_recent_add_span(const struct live_figures *figures, struct live_recent *recent,
	uint64_t start_ns, uint64_t end_ns)
{
	uint64_t last = live_second(figures, end_ns), second = live_second(figures, start_ns);
	uint64_t earliest = last >= LIVE_RECENT_SECONDS ? last - LIVE_RECENT_SECONDS + 1 : 0;

	if (second < earliest) {
		uint64_t cut_ns = figures->start_ns + earliest * NS_PER_S;

		live_recent_add(recent, second, cut_ns - start_ns);
		start_ns = cut_ns;
		second = earliest;
	}
	for (; second < last; second++) {
		uint64_t next_ns = figures->start_ns + (second + 1) * NS_PER_S;

		live_recent_add(recent, second, next_ns - start_ns);
		start_ns = next_ns;
	}
	if (end_ns > start_ns)
		live_recent_add(recent, last, end_ns - start_ns);
}

uint64_t live_recent_sum(const struct live_figures *figures, const struct live_recent *recent)
{
	uint64_t now = live_second(figures, figures->newest_ns), sum = 0;

	for (uint64_t i = 0; i < LIVE_RECENT_SECONDS && i <= recent->second; i++) {
		uint64_t second = recent->second - i;

		if (second <= now && now - second < LIVE_RECENT_SECONDS)
			sum += recent->amounts[second % LIVE_RECENT_SECONDS];
	}
	return sum;
}

/* Whole seconds and the one that has begun: what the amounts are of. */
uint64_t live_recent_begin_ns(const struct live_figures *figures)
{
	uint64_t now = live_second(figures, figures->newest_ns);

	return figures->start_ns +
	       (now >= LIVE_RECENT_SECONDS ? now - LIVE_RECENT_SECONDS + 1 : 0) * NS_PER_S;
}

double live_recent_s(const struct live_figures *figures)
{
	if (figures->newest_ns <= figures->start_ns)
		return 0;
	return (double)(figures->newest_ns - live_recent_begin_ns(figures)) / (double)NS_PER_S;
}
