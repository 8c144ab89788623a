/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU sampler that needs no privileges: a clock event on each followed thread and CPU,
 * inherited by children. The kernel copies registers and the top of the stack into our rings; the
 * collector unwinds them.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "arch/arch.h"
#include ARCH_HEADER(perf)
#include "base/file.h"
#include "base/map.h"
#include "sources/cpu/perf_sample.h"
#include "sources/cpu/sampler.h"
#include "sources/cpu/thread_names.h"
#include "sources/process/perf_ring_set.h"

/* The kernel's limit for the clock event; shorter periods are quietly made this long. */
#define MIN_PERIOD_NS ((uint64_t)10 * NS_PER_US)

#define MAX_RING_BYTES     ((size_t)4 * 1024 * 1024)
#define DEFAULT_RING_BYTES ((size_t)2 * 1024 * 1024)
#define MIN_RING_BYTES     ((size_t)64 * 1024)
/* What the process events' rings take of the same allowance, with their control page. */
#define SIDEBAND_BYTES ((size_t)(128 + 4) * 1024)

/* A ring must hold what comes until we get to run: this long at full rate, within bounds. */
#define RING_TIME_NS     (20 * NS_PER_MS)
#define MIN_RING_SAMPLES ((size_t)4)
#define MAX_RING_SAMPLES ((size_t)16)

/* A record has 16 bits of size; the rest is for its other fields. */
#define MAX_STACK_BYTES   ((size_t)65528 - 2048)
#define SMALL_STACK_BYTES ((size_t)16 * 1024)
#define SAMPLE_HEAD_BYTES ((size_t)512)

struct perf_sampler {
	struct perf_ring_set rings;
	struct perf_event_attr attr;
	struct thread_names names;
	struct map_u64 followed;    /* pids */
	struct wire_sample *sample; /* reused; PERF_SAMPLE_MAX_BYTES */
	uint64_t samples, malformed, throttled;
	uint64_t *recorded_lost; /* by ring: the sum of its LOST records */
	_Atomic bool started;
	_Atomic bool names_are_old; /* comm records were missed */
};

/* ---- draining ---- */

struct drain {
	struct perf_sampler *sampler;
	cpu_sampler_record_function *on_record;
	void *context;
	int error;
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
};

static void drain_sample(struct drain *drain, const struct perf_set_record *record)
{
	struct perf_sampler *sampler = drain->sampler;
	struct wire_sample *sample = sampler->sample;

	if (!perf_sample_convert(record->header, sampler->attr.sample_type, sample)) {
		sampler->malformed++;
		return;
	}
	if (!thread_names_knows(&sampler->names, sample->tid) &&
		thread_names_read(&sampler->names, sample->pid) < 0)
		drain->error = -ENOMEM;
	thread_names_get(&sampler->names, sample->pid, sample->tid, sample->process_name,
		sample->thread_name, &sample->exec_id);
	sampler->samples++;
	drain->on_record(drain->context, &sample->record);
}

static void drain_lost(struct perf_sampler *sampler, const struct perf_set_record *record)
{
	const struct lost_record *lost = (const struct lost_record *)record->header;

	if (lost->header.size >= sizeof(*lost))
		sampler->recorded_lost[record->ring] += lost->lost;
}

static void drain_record(void *context, const struct perf_set_record *record)
{
	struct drain *drain = context;
	int error = 0;

	switch (record->header->type) {
	case PERF_RECORD_SAMPLE:
		drain_sample(drain, record);
		break;
	case PERF_RECORD_LOST:
		drain_lost(drain->sampler, record);
		break;
	case PERF_RECORD_THROTTLE:
		drain->sampler->throttled++;
		break;
	default:
		error = thread_names_apply(&drain->sampler->names, record->header);
	}
	if (error < 0)
		drain->error = error;
}

static int perf_sampler_drain(void *state, cpu_sampler_record_function *on_record, void *context)
{
	struct perf_sampler *sampler = state;
	struct drain drain = {.sampler = sampler, .on_record = on_record, .context = context};

	if (atomic_exchange(&sampler->names_are_old, false))
		thread_names_forget(&sampler->names);
	perf_ring_set_drain(&sampler->rings, drain_record, &drain);
	return drain.error;
}

/* ---- opening ---- */

static bool kernel_is_allowed(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
	};
	_cleanup_close_ int fd = perf_event_open(&attr, 0, -1, -1);

	return fd >= 0;
}

static int perf_sampler_probe(struct errmsg *reason)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	_cleanup_close_ int fd = perf_event_open(&attr, 0, -1, -1);

	return fd < 0 ? perf_event_explain(reason, fd, "cannot sample processes", 2) : 0;
}

static size_t power_of_two_below(size_t value)
{
	size_t power = 1;

	while (power <= value / 2)
		power *= 2;
	return power;
}

/* Bytes of perf buffers that one user may lock on each CPU, our process's RLIMIT_MEMLOCK shared
 * out. */
static size_t lockable_bytes_per_cpu(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/sys/kernel/perf_event_mlock_kb", "re");
	size_t cpus = (size_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L), kilobytes;
	struct rlimit limit = {0};

	if (!file || fscanf(file, "%zu", &kilobytes) != 1)
		kilobytes = 516; /* the kernel's default with 4 KB pages */
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur / cpus > MAX_RING_BYTES)
		return MAX_RING_BYTES;
	return kilobytes * 1024 + limit.rlim_cur / cpus;
}

static size_t choose_ring_bytes(uint32_t wanted_bytes)
{
	size_t lockable = lockable_bytes_per_cpu(), bytes = DEFAULT_RING_BYTES;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (wanted_bytes)
		bytes = MIN(MAX((size_t)wanted_bytes, MIN_RING_BYTES), MAX_RING_BYTES);
	else if (geteuid() != 0 && lockable > SIDEBAND_BYTES + page + MIN_RING_BYTES)
		bytes = MIN(bytes, lockable - SIDEBAND_BYTES - page);
	return power_of_two_below(bytes);
}

/* Every sample takes this much of the ring, however deep its stack is. */
static uint32_t choose_stack_bytes(size_t ring_bytes, uint64_t period_ns)
{
	size_t samples = (size_t)(RING_TIME_NS / period_ns) + 1, bytes;

	samples = MIN(MAX(samples, MIN_RING_SAMPLES), MAX_RING_SAMPLES);
	bytes = ring_bytes / samples - SAMPLE_HEAD_BYTES;
	return (uint32_t)(MIN(bytes, MAX_STACK_BYTES) & ~(size_t)7);
}

static void init_attr(struct perf_sampler *sampler, uint64_t period_ns)
{
	bool kernel = kernel_is_allowed();

	sampler->attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.sample_type = PERF_SAMPLE_USER_STACK_TYPE | (kernel ? PERF_SAMPLE_CALLCHAIN : 0),
		.sample_regs_user = ARCH_PERF_MASK,
		.sample_stack_user =
			choose_stack_bytes(sampler->rings.rings[0].data_bytes, period_ns),
		.disabled = 1,
		.inherit = 1,
		.exclude_kernel = !kernel,
		.exclude_hv = 1,
		.exclude_callchain_user = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
	};
}

static int check_options(const struct cpu_sampler_options *options, struct errmsg *err)
{
	if (options->whole_machine)
		return errmsg_set(err, -EPERM, "the whole machine is sampled by BPF");
	if (options->period_ns < MIN_PERIOD_NS)
		return errmsg_set(err, -EINVAL,
			"cannot sample every %llu ns: the kernel's clock allows 10000 at least; "
			"choose a lower rate",
			(unsigned long long)options->period_ns);
	return 0;
}

static void perf_sampler_close(void *state)
{
	struct perf_sampler *sampler = state;

	if (!sampler)
		return;
	perf_ring_set_done(&sampler->rings);
	thread_names_done(&sampler->names);
	map_u64_done(&sampler->followed);
	free(sampler->sample);
	free(sampler->recorded_lost);
	free(sampler);
}

static int allocate(struct perf_sampler *sampler)
{
	sampler->sample = malloc(PERF_SAMPLE_MAX_BYTES);
	sampler->recorded_lost = calloc(sampler->rings.count, sizeof(*sampler->recorded_lost));
	return sampler->sample && sampler->recorded_lost ? 0 : -ENOMEM;
}

static int perf_sampler_open(
	void **ret_state, const struct cpu_sampler_options *options, struct errmsg *err)
{
	struct perf_sampler *sampler;
	int error = check_options(options, err);

	if (error < 0)
		return error;
	sampler = calloc(1, sizeof(*sampler));
	if (!sampler)
		return errmsg_set(err, -ENOMEM, "cannot sample: out of memory");
	error = perf_ring_set_open(
		&sampler->rings, choose_ring_bytes(options->ring_bytes), MIN_RING_BYTES, err);
	if (error == 0 && allocate(sampler) < 0)
		error = errmsg_set(err, -ENOMEM, "cannot sample: out of memory");
	if (error < 0) {
		perf_sampler_close(sampler);
		return error;
	}
	init_attr(sampler, options->period_ns);
	*ret_state = sampler;
	return 0;
}

/* ---- following ---- */

static int explain_follow(struct errmsg *err, int error, uint32_t pid)
{
	char what[64];

	snprintf(what, sizeof(what), "cannot sample process %u", pid);
	return perf_event_explain(err, error, what, 2);
}

static int perf_sampler_follow(void *state, uint32_t pid, struct errmsg *err)
{
	struct perf_sampler *sampler = state;
	int error;

	if (map_u64_get(&sampler->followed, pid, NULL))
		return 0;
	sampler->attr.disabled = !sampler->started;
	error = perf_ring_set_attach_process(&sampler->rings, &sampler->attr, (pid_t)pid);
	if (error < 0)
		return explain_follow(err, error, pid);
	if (map_u64_set(&sampler->followed, pid, 0) < 0 ||
		thread_names_read(&sampler->names, pid) < 0)
		return errmsg_set(err, -ENOMEM, "cannot sample: out of memory");
	return 0;
}

static int perf_sampler_start(void *state, struct errmsg *err)
{
	struct perf_sampler *sampler = state;
	size_t position = 0;
	uint64_t pid, value;
	int error = perf_ring_set_control(&sampler->rings, PERF_EVENT_IOC_ENABLE);

	if (error < 0)
		return errmsg_set(err, error, "cannot start sampling: %s", strerror(-error));
	sampler->started = true;
	/* Names may have changed since follow(); from now on the events tell. */
	while (map_u64_next(&sampler->followed, &position, &pid, &value)) {
		if (thread_names_read(&sampler->names, (uint32_t)pid) < 0)
			return errmsg_set(err, -ENOMEM, "cannot start sampling: out of memory");
	}
	return 0;
}

/* Names that changed while events reported nothing are read when they are needed. */
static int perf_sampler_set_active(void *state, bool active)
{
	struct perf_sampler *sampler = state;

	sampler->names_are_old = active;
	sampler->started = active;
	return perf_ring_set_control(
		&sampler->rings, active ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE);
}

static void perf_sampler_stop(void *state)
{
	struct perf_sampler *sampler = state;

	perf_ring_set_control(&sampler->rings, PERF_EVENT_IOC_DISABLE);
	sampler->started = false;
}

static size_t perf_sampler_descriptors(void *state, int *ret_fds, size_t capacity)
{
	struct perf_sampler *sampler = state;

	return perf_ring_set_descriptors(&sampler->rings, ret_fds, capacity);
}

/* ---- accounting ---- */

static uint64_t count_malformed(const struct perf_sampler *sampler)
{
	uint64_t malformed = sampler->malformed + sampler->rings.malformed;

	for (uint32_t i = 0; i < sampler->rings.count; i++)
		malformed += sampler->rings.rings[i].malformed;
	return malformed;
}

static void add_note(struct strbuf *notes, const char *format, ...) _printf_(2, 3);

static void add_note(struct strbuf *notes, const char *format, ...)
{
	va_list arguments;

	if (notes->length)
		strbuf_add(notes, "\n");
	va_start(arguments, format);
	strbuf_vaddf(notes, format, arguments);
	va_end(arguments);
}

static void add_small_stack_note(struct strbuf *notes, uint32_t bytes)
{
	_cleanup_strbuf_ struct strbuf size = {0};

	strbuf_add_count(&size, bytes);
	add_note(notes,
		"stacks deeper than %s bytes are cut: little memory may be locked; raise "
		"kernel.perf_event_mlock_kb or `ulimit -l`",
		strbuf_cstr(&size));
}

static void describe_limits(const struct perf_sampler *sampler, struct cpu_sampler_account *account)
{
	_cleanup_strbuf_ struct strbuf notes = {0};
	unsigned long long malformed = count_malformed(sampler);

	if (sampler->attr.exclude_kernel) /* report/cpu/samples.c knows how the note begins */
		add_note(&notes,
			"time in the kernel is not sampled: kernel.perf_event_paranoid is %d; run "
			"as root, or set it to 1",
			perf_event_paranoid());
	if (sampler->attr.sample_stack_user < SMALL_STACK_BYTES)
		add_small_stack_note(&notes, sampler->attr.sample_stack_user);
	if (sampler->throttled)
		add_note(&notes,
			"the kernel paused sampling %llu times because it took too long; choose a "
			"lower rate",
			(unsigned long long)sampler->throttled);
	if (malformed)
		add_note(&notes, "%llu records of the kernel were invalid and skipped", malformed);
	snprintf(account->notes, sizeof(account->notes), "%s", strbuf_cstr(&notes));
}

static void perf_sampler_account(void *state, struct cpu_sampler_account *ret_account)
{
	const struct perf_sampler *sampler = state;

	*ret_account = (struct cpu_sampler_account){.samples = sampler->samples};
	for (uint32_t i = 0; i < sampler->rings.count; i++) {
		uint32_t cpu = sampler->rings.rings[i].cpu;
		uint64_t counted = perf_ring_set_lost(&sampler->rings, i);

		if (cpu >= ARRAY_SIZE(ret_account->lost_per_cpu))
			continue;
		/* The kernel's count has what was lost last; older kernels have only the records.
		 */
		ret_account->lost_per_cpu[cpu] = MAX(counted, sampler->recorded_lost[i]);
		ret_account->cpu_count = MAX(ret_account->cpu_count, cpu + 1);
	}
	describe_limits(sampler, ret_account);
}

const struct cpu_sampler perf_sampler = {
	.name = "user",
	.probe = perf_sampler_probe,
	.open = perf_sampler_open,
	.follow = perf_sampler_follow,
	.start = perf_sampler_start,
	.set_active = perf_sampler_set_active,
	.descriptors = perf_sampler_descriptors,
	.drain = perf_sampler_drain,
	.stop = perf_sampler_stop,
	.account = perf_sampler_account,
	.close = perf_sampler_close,
};
