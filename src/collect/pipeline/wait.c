/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait: samples of where, and how long it was in the end. */
#include <errno.h>

#include "collect/pipeline/state.h"

static uint64_t thread_key(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

static bool find_last_wait(
	struct pipeline *pipeline, uint32_t pid, uint32_t tid, struct capture_sample **ret_wait)
{
	uint64_t index;

	if (!map_u64_get(&pipeline->last_waits, thread_key(pid, tid), &index))
		return false;
	*ret_wait = &pipeline->waits.items[index];
	return true;
}

int pipeline_write_wait(struct pipeline *pipeline, const struct capture_sample *sample)
{
	if (!sample->duration_ns)
		return 0;
	pipeline->account.wait_samples++;
	pipeline->account.waited_ns += sample->duration_ns;
	return capture_writer_sample(pipeline->parts.writer, sample);
}

int pipeline_write_exact_wait(struct pipeline *pipeline, const struct capture_sample *wait,
	uint64_t runnable_ns, uint32_t flags)
{
	struct capture_sample part = *wait;
	int result;

	runnable_ns = MIN(runnable_ns, wait->duration_ns);
	part.time_ns -= runnable_ns;
	part.duration_ns -= runnable_ns;
	part.wait_is_open = flags & WIRE_SAMPLE_OPEN && !runnable_ns;
	result = pipeline_write_wait(pipeline, &part);
	if (result < 0 || !(flags & WIRE_SAMPLE_FOR_CPU))
		return result;
	part = *wait;
	part.wait = WIRE_WAIT_CPU;
	part.duration_ns = runnable_ns;
	part.wait_is_open = flags & WIRE_SAMPLE_OPEN;
	return pipeline_write_wait(pipeline, &part);
}

int pipeline_keep_wait(struct pipeline *pipeline, const struct capture_sample *wait)
{
	struct capture_sample *known;
	int result;

	if (find_last_wait(pipeline, wait->pid, wait->tid, &known)) {
		/* A sample that waited for tables may be older than what came meanwhile. */
		if (known->time_ns <= wait->time_ns)
			*known = *wait;
		return 0;
	}
	result = array_append(&pipeline->waits, *wait);
	return result < 0 ? result
			  : map_u64_set(&pipeline->last_waits, thread_key(wait->pid, wait->tid),
				    pipeline->waits.count - 1);
}

void pipeline_forget_waits(struct pipeline *pipeline)
{
	pipeline->waits.count = 0;
	map_u64_clear(&pipeline->last_waits);
}

/* The wait's sample is itself waiting for tables: the time is added to it. */
static bool add_to_unresolved(
	struct pipeline *pipeline, const struct wire_wake *wake, uint64_t not_before_ns)
{
	for (size_t i = pipeline->waiting.count; i-- > 0;) {
		struct wire_sample *sample = pipeline->waiting.items[i].sample;

		if (sample->tid != wake->tid || sample->pid != wake->pid || !sample->wait ||
			sample->time_ns < not_before_ns)
			continue;
		sample->waited_ns += wake->waited_ns;
		sample->runnable_ns = wake->runnable_ns;
		sample->flags |= wake->flags;
		sample->time_ns = wake->time_ns;
		return true;
	}
	return false;
}

int pipeline_handle_wake(struct pipeline *pipeline, const struct wire_wake *wake)
{
	struct capture_sample *wait = NULL;

	/* Where it waited in an earlier window says nothing of this one. */
	if (find_last_wait(pipeline, wake->pid, wake->tid, &wait) && pipeline->parts.windows &&
		!pipeline->parts.windows->is_whole &&
		windows_find(pipeline->parts.windows, wait->time_ns) !=
			windows_find(pipeline->parts.windows, wake->time_ns))
		wait = NULL;
	if (add_to_unresolved(pipeline, wake, wait ? wait->time_ns : 0))
		return 0;
	if (!wait) {
		const struct capture_sample unseen = {
			.time_ns = wake->time_ns,
			.pid = wake->pid,
			.tid = wake->tid,
			.mode = CAPTURE_MODE_KERNEL,
			.wait = WIRE_WAIT_UNSEEN,
			.duration_ns = wake->waited_ns,
		};

		return pipeline_write_wait(pipeline, &unseen);
	}
	wait->time_ns = wake->time_ns;
	wait->duration_ns = wake->waited_ns;
	if (!(wake->flags & WIRE_SAMPLE_EXACT))
		return pipeline_write_wait(pipeline, wait);
	return pipeline_write_exact_wait(pipeline, wait, wake->runnable_ns, wake->flags);
}

bool pipeline_cut_wait(
	struct windows *windows, __u64 *time_ns, __u64 *waited_ns, __u64 *runnable_ns)
{
	uint64_t end_ns = *time_ns, begin_ns = end_ns - MIN(*waited_ns, *time_ns), after_ns;

	if (!windows)
		return true;
	if (!*waited_ns) /* how long it waited comes later */
		return windows_has(windows, end_ns);
	if (!windows_cut(windows, &begin_ns, &end_ns))
		return false;
	after_ns = *time_ns - end_ns;
	*runnable_ns -= MIN(*runnable_ns, after_ns);
	*time_ns = end_ns;
	*waited_ns = end_ns - begin_ns;
	return true;
}

int pipeline_handle_wait_count(struct pipeline *pipeline, const struct wire_wait_count *counted)
{
	const struct capture_sample sample = {
		.time_ns = counted->time_ns,
		.pid = counted->pid,
		.tid = counted->tid,
		.mode = CAPTURE_MODE_KERNEL,
		.wait = counted->wait,
		.wait_count = (uint32_t)MIN(counted->count, (uint64_t)UINT32_MAX),
		.duration_ns = counted->waited_ns,
	};

	return pipeline_write_wait(pipeline, &sample);
}
