/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/energy/busy_clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "sources/energy/sysfs.h"

#define DISTANCE_NS (50 * NS_PER_MS)

void busy_clock_open(struct busy_clock *ret_clock, const char *path)
{
	long ticks = sysconf(_SC_CLK_TCK);

	*ret_clock = (struct busy_clock){
		.fd = sysfs_open(path), .ticks_per_s = ticks > 0 ? (uint64_t)ticks : 100};
	if (ret_clock->fd < 0)
		ret_clock->fd = -1;
}

void busy_clock_close(struct busy_clock *clock)
{
	closep(&clock->fd);
}

/* "cpu  user nice system idle iowait irq softirq steal …": guests are in user. */
static int read_ticks(int fd, uint64_t *ret_ticks)
{
	char text[256], *at = text + strlen("cpu");
	uint64_t sum = 0;
	int r = sysfs_reread_text(fd, text, sizeof(text));

	if (r < 0)
		return r;
	if (strncmp(text, "cpu ", strlen("cpu ")) != 0)
		return -EINVAL;
	for (unsigned column = 0; column < 8; column++) {
		char *end;
		uint64_t value = strtoull(at, &end, 10);

		if (end == at)
			return -EINVAL;
		at = end;
		if (column != 3 && column != 4) /* idle, and idle with something to wait for */
			sum += value;
	}
	*ret_ticks = sum;
	return 0;
}

void busy_clock_read(struct busy_clock *clock, uint64_t now_ns, bool now)
{
	unsigned last = (clock->count - 1) % BUSY_POINTS;
	uint64_t ticks, busy_ns;

	if (clock->fd < 0 ||
		(clock->count &&
			(now_ns <= clock->points[last].time_ns ||
				(!now && now_ns - clock->points[last].time_ns < DISTANCE_NS))))
		return;
	if (read_ticks(clock->fd, &ticks) < 0) {
		closep(&clock->fd);
		return;
	}
	busy_ns = ticks * (NS_PER_S / clock->ticks_per_s);
	/* Columns of a processor that went offline have been seen to shrink. */
	if (clock->count)
		busy_ns = MAX(busy_ns, clock->points[last].busy_ns);
	last = clock->count++ % BUSY_POINTS;
	clock->points[last].time_ns = now_ns;
	clock->points[last].busy_ns = busy_ns;
}

/* False before the first point that is kept, and after the last. */
static bool busy_at(const struct busy_clock *clock, uint64_t time_ns, double *ret_busy_ns)
{
	unsigned count = MIN(clock->count, (unsigned)BUSY_POINTS);

	for (unsigned back = 1; back < count; back++) {
		unsigned b = (clock->count - back) % BUSY_POINTS;
		unsigned a = (clock->count - back - 1) % BUSY_POINTS;
		uint64_t a_ns = clock->points[a].time_ns, b_ns = clock->points[b].time_ns;

		if (time_ns > b_ns)
			return false;
		if (time_ns < a_ns)
			continue;
		*ret_busy_ns = (double)clock->points[a].busy_ns +
			       (double)(clock->points[b].busy_ns - clock->points[a].busy_ns) *
				       (double)(time_ns - a_ns) / (double)(b_ns - a_ns);
		return true;
	}
	return false;
}

uint64_t busy_clock_between(const struct busy_clock *clock, uint64_t start_ns, uint64_t end_ns)
{
	double start, end;

	if (!busy_at(clock, start_ns, &start) || !busy_at(clock, end_ns, &end) || end < start)
		return UINT64_MAX;
	return (uint64_t)(end - start + 0.5);
}

uint64_t busy_clock_until_ns(const struct busy_clock *clock)
{
	if (clock->fd < 0)
		return UINT64_MAX;
	return clock->count ? clock->points[(clock->count - 1) % BUSY_POINTS].time_ns : 0;
}
