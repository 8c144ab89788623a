/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/energy/busy_clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu_list.h"
#include "base/file.h"
#include "sources/energy/sysfs.h"

#define DISTANCE_NS (50 * NS_PER_MS)
/* Lines of processors come first: this is room for some 5,000 of them. */
#define TEXT_BYTES (512 << 10)
#define LINE_BYTES 256

void busy_clock_open(struct busy_clock *ret_clock, const char *path)
{
	long ticks = sysconf(_SC_CLK_TCK);

	*ret_clock = (struct busy_clock){.fd = sysfs_open(path),
		.ticks_per_s = ticks > 0 ? (uint64_t)ticks : 100,
		.group_count = 1};
	if (ret_clock->fd < 0)
		ret_clock->fd = -1;
}

void busy_clock_close(struct busy_clock *clock)
{
	for (unsigned i = 1; i < clock->group_count; i++) {
		free(TAKE_PTR(clock->groups[i].cpus));
		free(TAKE_PTR(clock->groups[i].set));
	}
	clock->group_count = 1;
	free(TAKE_PTR(clock->text));
	closep(&clock->fd);
}

int busy_clock_group(struct busy_clock *clock, const char *cpus)
{
	unsigned group = 1;

	if (!cpus || !*cpus)
		return 0;
	while (group < clock->group_count && strcmp(clock->groups[group].cpus, cpus) != 0)
		group++;
	if (group < clock->group_count)
		return (int)group;
	if (group == BUSY_GROUPS)
		return -E2BIG;
	clock->text = clock->text ? clock->text : malloc(TEXT_BYTES);
	clock->groups[group].cpus = strdup(cpus);
	clock->groups[group].set = malloc(sizeof(*clock->groups[group].set));
	clock->groups[group].since = clock->count;
	if (!clock->text || !clock->groups[group].cpus || !clock->groups[group].set) {
		free(TAKE_PTR(clock->groups[group].cpus));
		free(TAKE_PTR(clock->groups[group].set));
		return -ENOMEM;
	}
	cpu_set_parse(clock->groups[group].set, cpus);
	clock->group_count++;
	return (int)group;
}

/* " user nice system idle iowait irq softirq steal …": guests are in user. */
static int sum_ticks(const char *at, uint64_t *ret_ticks)
{
	uint64_t sum = 0;

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

/* "cpu3 …" to the groups that have it. */
static void add_line(const struct busy_clock *clock, const char *line, uint64_t *ticks)
{
	unsigned long cpu;
	uint64_t own;
	char *end;

	cpu = strtoul(line + strlen("cpu"), &end, 10);
	if (end == line + strlen("cpu") || sum_ticks(end, &own) < 0)
		return;
	for (unsigned group = 1; group < clock->group_count; group++) {
		if (cpu < CPU_NUMBERS && cpu_set_has(clock->groups[group].set, (unsigned)cpu))
			ticks[group] += own;
	}
}

/* "cpu  …" is all of them, and is followed by a line of each. */
static int read_ticks(const struct busy_clock *clock, uint64_t ticks[BUSY_GROUPS])
{
	char line[LINE_BYTES], *text = clock->text ? clock->text : line;
	ssize_t got = pread(clock->fd, text, (clock->text ? TEXT_BYTES : sizeof(line)) - 1, 0);
	int r;

	if (got < 0)
		return -errno;
	text[got] = '\0';
	if (strncmp(text, "cpu ", strlen("cpu ")) != 0)
		return -EINVAL;
	r = sum_ticks(text + strlen("cpu"), &ticks[0]);
	while (r == 0 && clock->text && (text = strchr(text, '\n')) &&
		strncmp(++text, "cpu", strlen("cpu")) == 0)
		add_line(clock, text, ticks);
	return r;
}

void busy_clock_read(struct busy_clock *clock, uint64_t now_ns, bool now)
{
	const unsigned before = (clock->count - 1) % BUSY_POINTS, own = clock->count % BUSY_POINTS;
	uint64_t ticks[BUSY_GROUPS] = {0};

	if (clock->fd < 0 ||
		(clock->count &&
			(now_ns <= clock->points[before].time_ns ||
				(!now && now_ns - clock->points[before].time_ns < DISTANCE_NS))))
		return;
	if (read_ticks(clock, ticks) < 0) {
		closep(&clock->fd);
		return;
	}
	for (unsigned group = 0; group < clock->group_count; group++) {
		uint64_t busy_ns = ticks[group] * (NS_PER_S / clock->ticks_per_s);

		/* Columns of a processor that went offline have been seen to shrink. */
		if (clock->count > clock->groups[group].since)
			busy_ns = MAX(busy_ns, clock->points[before].busy_ns[group]);
		clock->points[own].busy_ns[group] = busy_ns;
	}
	clock->points[own].time_ns = now_ns;
	clock->count++;
}

/* False before the first point that is kept, and after the last. */
static bool busy_at(
	const struct busy_clock *clock, int group, uint64_t time_ns, double *ret_busy_ns)
{
	unsigned count = MIN(clock->count - clock->groups[group].since, (unsigned)BUSY_POINTS);

	for (unsigned back = 1; back < count; back++) {
		unsigned b = (clock->count - back) % BUSY_POINTS;
		unsigned a = (clock->count - back - 1) % BUSY_POINTS;
		uint64_t a_ns = clock->points[a].time_ns, b_ns = clock->points[b].time_ns;
		uint64_t a_busy_ns = clock->points[a].busy_ns[group];

		if (time_ns > b_ns)
			return false;
		if (time_ns < a_ns)
			continue;
		*ret_busy_ns = (double)a_busy_ns +
			       (double)(clock->points[b].busy_ns[group] - a_busy_ns) *
				       (double)(time_ns - a_ns) / (double)(b_ns - a_ns);
		return true;
	}
	return false;
}

uint64_t busy_clock_between(
	const struct busy_clock *clock, int group, uint64_t start_ns, uint64_t end_ns)
{
	double start, end;

	if (group < 0 || !busy_at(clock, group, start_ns, &start) ||
		!busy_at(clock, group, end_ns, &end) || end < start)
		return UINT64_MAX;
	return (uint64_t)(end - start + 0.5);
}

uint64_t busy_clock_until_ns(const struct busy_clock *clock)
{
	if (clock->fd < 0)
		return UINT64_MAX;
	return clock->count ? clock->points[(clock->count - 1) % BUSY_POINTS].time_ns : 0;
}
