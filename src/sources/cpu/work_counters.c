/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/cpu/work_counters.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

enum { CYCLES, INSTRUCTIONS, KINDS };

struct event {
	unsigned type;
	unsigned long long config;
};

struct work_counters {
	int cpu_count;
	int fds[][KINDS]; /* by CPU number; -1: offline */
};

static int choose_events(struct event events[KINDS], struct errmsg *reason)
{
	const char *text = getenv("SONDE_COUNTERS");

	events[CYCLES] = (struct event){PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES};
	events[INSTRUCTIONS] = (struct event){PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS};
	if (!text || sscanf(text, "%u:%llu,%u:%llu", &events[0].type, &events[0].config,
			     &events[1].type, &events[1].config) == 4)
		return 0;
	return errmsg_set(
		reason, -EINVAL, "SONDE_COUNTERS=%s is not TYPE:CONFIG,TYPE:CONFIG", text);
}

static int open_event(const struct event *event, int cpu)
{
	struct perf_event_attr attributes = {
		.type = event->type,
		.size = sizeof(attributes),
		.config = event->config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_cpu(struct work_counters *counters, const struct event events[KINDS], int cpu)
{
	for (unsigned kind = 0; kind < KINDS; kind++) {
		int fd = open_event(&events[kind], cpu);

		if (fd == -ENODEV)
			return 0; /* offline */
		if (fd < 0)
			return fd;
		counters->fds[cpu][kind] = fd;
	}
	return 1;
}

static int explain(struct errmsg *reason, int error)
{
	if (error == -ENOENT || error == -EOPNOTSUPP)
		return errmsg_set(reason, error,
			"this processor offers no counters of cycles and instructions; most "
			"virtual machines have none");
	if (error == -EMFILE)
		return errmsg_set(reason, error,
			"counters of cycles and instructions need two file descriptors for each "
			"CPU; raise `ulimit -n`");
	return errmsg_set(reason, error, "cannot open counters of cycles and instructions: %s",
		strerror(-error));
}

int work_counters_open(
	struct work_counters **ret_counters, int cpu_count, struct errmsg *ret_reason)
{
	_cleanup_work_counters_ struct work_counters *counters = NULL;
	struct event events[KINDS];
	int r = choose_events(events, ret_reason), online = 0;

	if (r < 0)
		return r;
	counters = malloc(sizeof(*counters) + (size_t)cpu_count * sizeof(counters->fds[0]));
	if (!counters)
		return errmsg_set(ret_reason, -ENOMEM, "out of memory");
	counters->cpu_count = cpu_count;
	memset(counters->fds, 0xff, (size_t)cpu_count * sizeof(counters->fds[0]));
	for (int cpu = 0; r >= 0 && cpu < cpu_count; cpu++) {
		r = open_cpu(counters, events, cpu);
		online += r > 0;
	}
	if (r < 0 || !online)
		return explain(ret_reason, r < 0 ? r : -ENOENT);
	*ret_counters = TAKE_PTR(counters);
	return 0;
}

int work_counters_insert(const struct work_counters *counters, int cycles_fd, int instructions_fd)
{
	const int maps[KINDS] = {cycles_fd, instructions_fd};

	for (int cpu = 0; cpu < counters->cpu_count; cpu++) {
		for (unsigned kind = 0; kind < KINDS && counters->fds[cpu][kind] >= 0; kind++) {
			if (bpf_map_update_elem(
				    maps[kind], &cpu, &counters->fds[cpu][kind], BPF_ANY) < 0)
				return -errno;
		}
	}
	return 0;
}

struct work_counters *work_counters_free(struct work_counters *counters)
{
	for (int cpu = 0; counters && cpu < counters->cpu_count; cpu++) {
		for (unsigned kind = 0; kind < KINDS; kind++)
			closep(&counters->fds[cpu][kind]);
	}
	free(counters);
	return NULL;
}

void work_counters_freep(struct work_counters **counters)
{
	work_counters_free(*counters);
}
