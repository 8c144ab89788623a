/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/vllm_log/time.h"

#include <time.h>

#include "base/macros.h"

#define DAY_S 86400
/* The clocks of the log's writer and of the file system, or their zones, may differ. */
#define SLACK_S   DAY_S
#define LEAP_YEAR 8 /* 29 February comes again within so many years */

/* -1 for a day that the year does not have. */
static int64_t seconds_of(const struct vllm_log_time *time, int year)
{
	struct tm local = {
		.tm_year = year - 1900,
		.tm_mon = time->month - 1,
		.tm_mday = time->day,
		.tm_hour = time->hour,
		.tm_min = time->minute,
		.tm_sec = time->second,
		.tm_isdst = -1,
	};
	time_t seconds = mktime(&local);

	return local.tm_mon == time->month - 1 && seconds >= 0 ? (int64_t)seconds : -1;
}

void vllm_log_clock_begin(struct vllm_log_clock *clock, const struct vllm_log_time *last,
	unsigned new_years, int64_t modified_s)
{
	time_t modified = (time_t)modified_s;
	struct tm local;
	int year;

	localtime_r(&modified, &local);
	year = local.tm_year + 1900 + 1;
	for (int back = 0; back <= LEAP_YEAR && !last->year; back++, year--) {
		int64_t seconds = seconds_of(last, year);

		if (seconds >= 0 && seconds <= modified_s + SLACK_S)
			break;
	}
	*clock = (struct vllm_log_clock){.year = year - (int)new_years, .month = 1};
}

uint64_t vllm_log_clock_ns(struct vllm_log_clock *clock, const struct vllm_log_time *time)
{
	int64_t seconds;

	if (!time->year && clock->month - time->month > 6)
		clock->year++;
	clock->month = time->month;
	seconds = seconds_of(time, time->year ?: clock->year);
	return (uint64_t)MAX(seconds, (int64_t)0) * NS_PER_S + time->nanosecond;
}
