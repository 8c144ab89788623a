/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring-source RATE SECONDS: a stand-in for a device runtime, to be recorded by sonde. Writes so
 * many records of kernels that nobody ran in each second, through the rings that the injected
 * library has, and prints what became of them as JSON. RATE 0: as fast as it can.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "inject/inject.h"

#define NS_PER_S   1000000000ULL
#define NAMES      24
#define QUEUES     4
#define DEVICE     1
#define TICK_NS    500000ULL /* the records of so long come in a row, as from a driver's callbacks */
#define CLOCK_STEP 777777777777ULL /* of the device's clock against the host's */

static const char *const stems[] = {"gemm_128x64_nn", "softmax_forward", "layer_norm_backward",
	"elementwise_add", "reduce_sum", "transpose"};

static uint64_t random_state = 88172645463325252ULL;
static uint64_t free_at[QUEUES];

static uint64_t random_below(uint64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % limit;
}

static void define_all(void)
{
	char text[64];

	inject_define(WIRE_RECORD_DEVICE_DEVICE, DEVICE, 0, "stand-in device");
	for (uint32_t i = 1; i <= QUEUES; i++)
		inject_define(WIRE_RECORD_DEVICE_QUEUE, i, DEVICE, "");
	for (uint32_t i = 1; i <= NAMES; i++) {
		snprintf(text, sizeof(text), "%s_%u", stems[i % (sizeof(stems) / sizeof(*stems))],
			i);
		inject_define(WIRE_RECORD_DEVICE_NAME, i, 0, text);
	}
}

/* Work that was launched at this moment and ran when its queue was free. */
static bool write_work(uint64_t now_ns, uint64_t length_ns)
{
	struct wire_device_activity activity = {
		.record = {.type = WIRE_RECORD_DEVICE_ACTIVITY, .length_bytes = sizeof(activity)},
		.correlation = inject_correlation(),
		.enter_ns = now_ns,
		.before_ns = now_ns + 90 + random_below(60),
		.device = DEVICE,
		.queue = (uint32_t)random_below(QUEUES) + 1,
		.name = (uint32_t)random_below(NAMES) + 1,
		.tid = inject_tid(),
		.kind = WIRE_DEVICE_KERNEL,
		.global_size = {4096 << random_below(4), 1, 1},
		.local_size = {256, 1, 1},
	};
	uint64_t *queue_is_free = &free_at[activity.queue - 1];

	activity.after_ns = activity.before_ns + 500 + random_below(400);
	activity.queued = activity.before_ns + 200 + random_below(200) + CLOCK_STEP;
	activity.submit = activity.queued + 300 + random_below(300);
	activity.start = activity.submit + 1000 + random_below(500);
	if (activity.start < *queue_is_free)
		activity.start = *queue_is_free + random_below(100);
	activity.end = activity.start + length_ns / 2 + random_below(length_ns);
	*queue_is_free = activity.end;
	return inject_write(&activity.record);
}

struct outcome {
	uint64_t written, lost;
};

/* All that is due since the last tick, spread over it. */
static void write_due(struct outcome *outcome, uint64_t rate, uint64_t from_ns, uint64_t due)
{
	uint64_t apart_ns = rate ? NS_PER_S / rate : 400;

	for (uint64_t i = 0; i < due; i++) {
		if (write_work(from_ns + i * apart_ns, apart_ns * QUEUES / 2 + 1))
			outcome->written++;
		else
			outcome->lost++;
	}
}

static struct outcome run(uint64_t rate, uint64_t length_ns)
{
	uint64_t start_ns = inject_now_ns(), due, tick_ns = start_ns, last_ns = start_ns;
	struct timespec until;
	struct outcome outcome = {0};

	while (tick_ns - start_ns < length_ns) {
		uint64_t next_ns = tick_ns + TICK_NS;

		due = rate ? (tick_ns - start_ns) * rate / NS_PER_S - outcome.written - outcome.lost
			   : 1000;
		write_due(&outcome, rate, last_ns, due);
		last_ns = tick_ns;
		if (rate) {
			until = (struct timespec){.tv_sec = (time_t)(next_ns / NS_PER_S),
				.tv_nsec = (long)(next_ns % NS_PER_S)};
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		}
		tick_ns = inject_now_ns();
	}
	return outcome;
}

int main(int count, char **arguments)
{
	uint64_t rate = count > 1 ? strtoull(arguments[1], NULL, 10) : 0;
	double seconds = count > 2 ? strtod(arguments[2], NULL) : 1;
	uint64_t start_ns;
	struct outcome outcome;

	if (!inject_open()) {
		fprintf(stderr, "ring-source: to be run by 'sonde record --'\n");
		return 2;
	}
	define_all();
	start_ns = inject_now_ns();
	outcome = run(rate, (uint64_t)(seconds * NS_PER_S));
	printf("{\"written\": %llu, \"lost\": %llu, \"seconds\": %.3f}\n",
		(unsigned long long)outcome.written, (unsigned long long)outcome.lost,
		(double)(inject_now_ns() - start_ns) / NS_PER_S);
	return 0;
}
