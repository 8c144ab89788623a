/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/advice.h"

#include "analyses/device/idle_limits.h"

/* With fewer launches shares are chance. */
#define MIN_LAUNCHES 20
/* What is less of the time is not worth a word. */
#define MIN_PERCENT 20
/*
 * Idle time for each launch up to which launching is its cause: frameworks take 5 to 50 us for one.
 * Where the device idles longer, something else keeps the program.
 */
#define MAX_LAUNCH_GAP_NS 100000

const char *device_advice_name(enum device_advice advice)
{
	static const char *const names[DEVICE_ADVICE_MAX] = {
		[DEVICE_ADVICE_LAUNCH_BOUND] = "launch_bound",
		[DEVICE_ADVICE_HOST_BOUND] = "host_bound",
		[DEVICE_ADVICE_QUEUED] = "queued",
		[DEVICE_ADVICE_BLOCKING] = "blocking_calls",
		[DEVICE_ADVICE_COPIES] = "copies",
		[DEVICE_ADVICE_COMMUNICATION] = "communication",
	};

	return advice < DEVICE_ADVICE_MAX ? names[advice] : NULL;
}

/* Why it is idle. */
static enum device_advice idle_advice(
	uint64_t idle_ns, const struct device_launches_device *launches)
{
	if (launches->empty_ns < launches->span_ns / 2)
		return DEVICE_ADVICE_QUEUED;
	if (launches->kernel_launches >= MIN_LAUNCHES &&
		launches->short_kernels >= launches->kernel_launches / 2 &&
		idle_ns / launches->launches <= MAX_LAUNCH_GAP_NS)
		return DEVICE_ADVICE_LAUNCH_BOUND;
	return DEVICE_ADVICE_HOST_BOUND;
}

enum device_advice device_advice(const struct device_overlap_device *overlap,
	const struct device_launches_device *launches, const struct trace_idle_place *idle)
{
	uint64_t idle_ns = overlap->by_set[0], copy_ns = overlap->by_set[DEVICE_COPY];
	uint64_t communication_ns = overlap->by_set[DEVICE_COMMUNICATION];
	uint64_t most_ns = MAX(idle_ns, copy_ns);

	most_ns = MAX(most_ns, communication_ns);
	if (most_ns < overlap->span_ns / 100 * MIN_PERCENT)
		return DEVICE_ADVICE_NONE;
	if (launches->launches < MIN_LAUNCHES &&
		(most_ns != idle_ns || idle_ns < overlap->span_ns / 100 * IDLE_ADVICE_PERCENT))
		return DEVICE_ADVICE_NONE;
	if (most_ns == copy_ns)
		return DEVICE_ADVICE_COPIES;
	if (most_ns == communication_ns)
		return DEVICE_ADVICE_COMMUNICATION;
	if (idle && idle->by_cause_ns[TRACE_IDLE_BLOCKED] >= (int64_t)idle_ns / 2)
		return DEVICE_ADVICE_BLOCKING;
	return idle_advice(idle_ns, launches);
}
