/* SPDX-License-Identifier: Apache-2.0 */
/* What kept the recorded process from CPUs, as counters of it: see capture/capture.h. */
#include <stdio.h>

#include "base/file.h"
#include "collect/session/internal.h"

void session_find_limits(struct session *session)
{
	struct session_limits *limits = &session->limits;
	char path[64];

	limits->pid = session->target.pid           ? (uint32_t)session->target.pid
		      : session->options->pid_count ? session->options->pids[0]
						    : 0;
	snprintf(path, sizeof(path), "/proc/%u/cgroup", limits->pid);
	if (limits->pid) {
		cpu_limits_find(&limits->place, "/sys", path);
		cpu_limits_read(&limits->place, &limits->first);
	}
}

static int put(struct session *session, const char *name, double value)
{
	const struct capture_counter counter = {
		.time_ns = monotonic_now_ns(),
		.pid = session->limits.pid,
		.name = name,
		.value = value,
	};

	return capture_writer_counter(session->writer, &counter);
}

/* Nothing where there is no quota, and no heat since the beginning: most captures have neither. */
int session_write_limits(struct session *session)
{
	const struct session_limits *limits = &session->limits;
	struct cpu_limits now;
	int r = 0;

	if (!limits->pid)
		return 0;
	cpu_limits_read(&limits->place, &now);
	if (limits->first.has_quota && now.has_quota) {
		r = put(session, CAPTURE_COUNTER_QUOTA, limits->place.quota_cpus);
		if (r == 0)
			r = put(session, CAPTURE_COUNTER_THROTTLED,
				(double)(now.throttled_ns - limits->first.throttled_ns) / NS_PER_S);
	}
	if (r == 0 && limits->first.has_heat && now.heat_ns > limits->first.heat_ns)
		r = put(session, CAPTURE_COUNTER_HEAT,
			(double)(now.heat_ns - limits->first.heat_ns) / NS_PER_S);
	return r;
}
