/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/process/perf_ring_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu_list.h"
#include "base/file.h"
#include "sources/process/proc_info.h"

/* A record this far in the future has a broken clock; waiting for its time would block the ring. */
#define CLOCK_BROKEN_NS NS_PER_S

int perf_event_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

int perf_event_paranoid(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int value;

	return file && fscanf(file, "%d", &value) == 1 ? value : 2;
}

static int explain_access(struct errmsg *err, const char *what, int paranoid_needed)
{
	int paranoid = perf_event_paranoid();

	if (paranoid > paranoid_needed)
		return errmsg_set(err, -EACCES,
			"%s: kernel.perf_event_paranoid is %d; run as root, give sonde "
			"CAP_PERFMON, or run `sysctl kernel.perf_event_paranoid=%d`",
			what, paranoid, paranoid_needed);
	return errmsg_set(err, -EACCES,
		"%s: it belongs to another user or is protected (set-uid, not dumpable); run as "
		"its user or as root",
		what);
}

/*
 * perf_event_paranoid and the check of the process's owner answer EACCES, seccomp filters and
 * security modules EPERM.
 */
int perf_event_explain(struct errmsg *err, int error, const char *what, int paranoid_needed)
{
	switch (-error) {
	case EACCES:
		return explain_access(err, what, paranoid_needed);
	case EPERM:
		return errmsg_set(err, error,
			"%s: a seccomp filter or security module blocks perf_event_open; in a "
			"container, add `--cap-add PERFMON` or a seccomp profile that allows the "
			"call",
			what);
	case ENOSYS:
	case ENOENT:
	case EOPNOTSUPP:
		return errmsg_set(err, error,
			"%s: there are no perf events (%s): the kernel was built without "
			"CONFIG_PERF_EVENTS, or a sandbox such as gVisor hides them; record outside "
			"of it",
			what, strerror(-error));
	case EMFILE:
	case ENFILE:
		return errmsg_set(err, error,
			"%s: out of file descriptors, one per thread and CPU is needed; raise "
			"`ulimit -n`, or follow a process with fewer threads",
			what);
	case ESRCH:
		return errmsg_set(
			err, error, "%s: it has ended; give the pid of a running process", what);
	default:
		return errmsg_set(err, error,
			"%s: perf_event_open failed: %s; `sonde doctor` shows what works here",
			what, strerror(-error));
	}
}

/* "0-3,8" → 0, 1, 2, 3, 8. */
static int parse_cpu_list(const char *text, uint32_t **ret_cpus, uint32_t *ret_count)
{
	ARRAY_OF(uint32_t) cpus = {0};
	unsigned first, last;

	while (cpu_list_next(&text, &first, &last)) {
		for (unsigned cpu = first; cpu <= last; cpu++) {
			if (array_append(&cpus, cpu) < 0) {
				array_done(&cpus);
				return -ENOMEM;
			}
		}
	}
	*ret_cpus = cpus.items;
	*ret_count = (uint32_t)cpus.count;
	return cpus.count ? 0 : -ENODATA;
}

static int list_online_cpus(uint32_t **ret_cpus, uint32_t *ret_count)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	int error = read_whole_file("/sys/devices/system/cpu/online", 1 << 16, &text);

	if (error == 0)
		error = parse_cpu_list(strbuf_cstr(&text), ret_cpus, ret_count);
	if (error == 0 || error == -ENOMEM)
		return error;
	/* No sysfs: CPUs are numbered without gaps nearly everywhere. */
	strbuf_clear(&text);
	strbuf_addf(&text, "0-%ld", MAX(sysconf(_SC_NPROCESSORS_CONF), 1L) - 1);
	return parse_cpu_list(strbuf_cstr(&text), ret_cpus, ret_count);
}

/* An event that counts nothing and never ends: our own process's, so that a ring lives as long as
 * we want. */
static int open_ring_owner(uint32_t cpu, size_t data_bytes)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_RING_SET_SAMPLE_TYPE,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)(data_bytes / 4),
	};

	return perf_event_open(&attr, 0, (int)cpu, -1);
}

static void close_rings(struct perf_ring_set *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		perf_ring_done(&set->rings[i]);
	set->count = 0;
}

/* Sets *ret_mapping_failed when memory, not the event, was refused. */
static int open_rings(struct perf_ring_set *set, const uint32_t *cpus, uint32_t cpu_count,
	size_t data_bytes, bool *ret_mapping_failed)
{
	*ret_mapping_failed = false;
	for (uint32_t i = 0; i < cpu_count; i++) {
		int fd = open_ring_owner(cpus[i], data_bytes), error;

		if (fd == -ENODEV || fd == -ENXIO)
			continue; /* went offline since we looked */
		if (fd < 0)
			return fd;
		error = perf_ring_map(&set->rings[set->count], fd, cpus[i], data_bytes);
		*ret_mapping_failed = error < 0;
		if (error < 0)
			return error;
		set->count++;
	}
	return set->count ? 0 : -ENODEV;
}

static int explain_mapping(struct errmsg *err, int error, size_t bytes, uint32_t cpu_count)
{
	return errmsg_set(err, error,
		"cannot map the perf event buffers (%zu KB on each of %u CPUs): %s; end other "
		"profilers, or raise kernel.perf_event_mlock_kb or `ulimit -l`",
		bytes / 1024, cpu_count, strerror(-error));
}

static int allocate_rings(struct perf_ring_set *set, uint32_t cpu_count)
{
	set->rings = calloc(cpu_count, sizeof(*set->rings));
	set->heap = calloc(cpu_count, sizeof(*set->heap));
	set->next_time_ns = calloc(cpu_count, sizeof(*set->next_time_ns));
	return set->rings && set->heap && set->next_time_ns ? 0 : -ENOMEM;
}

int perf_ring_set_open(
	struct perf_ring_set *set, size_t max_bytes, size_t min_bytes, struct errmsg *err)
{
	_cleanup_free_ uint32_t *cpus = NULL;
	uint32_t cpu_count = 0;
	bool mapping_failed;
	int error = list_online_cpus(&cpus, &cpu_count);

	if (error == 0)
		error = allocate_rings(set, cpu_count);
	if (error < 0)
		return errmsg_set(
			err, error, "cannot set up the perf event buffers: %s", strerror(-error));
	for (size_t bytes = max_bytes;; bytes /= 2) {
		error = open_rings(set, cpus, cpu_count, bytes, &mapping_failed);
		if (error == 0)
			return 0;
		close_rings(set);
		if (!mapping_failed)
			return perf_event_explain(err, error, "cannot watch process events", 2);
		if ((error != -EPERM && error != -ENOMEM) || bytes <= min_bytes)
			return explain_mapping(err, error, bytes, cpu_count);
	}
}

/* A followed process may have more threads × CPUs than the soft limit of descriptors lets us open.
 */
static bool raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static int open_event(struct perf_event_attr *attr, pid_t tid, uint32_t cpu)
{
	int fd = perf_event_open(attr, tid, (int)cpu, -1);

	if (fd == -EMFILE && raise_descriptor_limit())
		fd = perf_event_open(attr, tid, (int)cpu, -1);
	if (fd == -EINVAL && attr->read_format == PERF_FORMAT_LOST) {
		attr->read_format = 0; /* before Linux 6.0 */
		fd = perf_event_open(attr, tid, (int)cpu, -1);
	}
	return fd;
}

static int attach_to_ring(
	struct perf_ring_set *set, struct perf_event_attr *attr, pid_t tid, uint32_t ring)
{
	_cleanup_close_ int fd = open_event(attr, tid, set->rings[ring].cpu);
	struct perf_ring_event event = {.fd = fd, .ring = ring};
	int error;

	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, set->rings[ring].fd) < 0)
		return -errno;
	error = array_append(&set->events, event);
	if (error == 0)
		TAKE_FD(fd);
	return error;
}

static void close_events_from(struct perf_ring_set *set, size_t first)
{
	while (set->events.count > first)
		close(set->events.items[--set->events.count].fd);
}

int perf_ring_set_attach(struct perf_ring_set *set, const struct perf_event_attr *attr, pid_t tid)
{
	struct perf_event_attr complete = *attr;
	size_t first = set->events.count;

	complete.size = sizeof(complete);
	complete.sample_type |= PERF_RING_SET_SAMPLE_TYPE;
	complete.sample_id_all = 1;
	complete.use_clockid = 1;
	complete.clockid = CLOCK_MONOTONIC;
	complete.read_format = PERF_FORMAT_LOST;
	for (uint32_t ring = 0; ring < set->count; ring++) {
		int error = attach_to_ring(set, &complete, tid, ring);

		if (error == 0 || error == -ENODEV || error == -ENXIO)
			continue; /* a CPU that went offline has nothing to tell */
		close_events_from(set, first);
		return error;
	}
	return set->events.count > first ? 0 : -ENODEV;
}

/*
 * The list is complete before the first event is opened: a thread that comes later may have
 * inherited the events already, and would be followed twice.
 */
int perf_ring_set_attach_process(
	struct perf_ring_set *set, const struct perf_event_attr *attr, pid_t pid)
{
	size_t first = set->events.count;
	struct pid_list threads = {0};
	int error = proc_list_threads((uint32_t)pid, &threads);

	for (size_t i = 0; error == 0 && i < threads.pids.count; i++) {
		error = perf_ring_set_attach(set, attr, (pid_t)threads.pids.items[i]);
		if (error == -ESRCH)
			error = 0; /* it ended meanwhile */
	}
	array_done(&threads.pids);
	if (error < 0)
		close_events_from(set, first);
	else if (set->events.count == first)
		error = -ESRCH;
	return error;
}

int perf_ring_set_control(struct perf_ring_set *set, unsigned long request)
{
	array_foreach (&set->events, event) {
		if (ioctl(event->fd, request, 0) < 0)
			return -errno;
	}
	return 0;
}

/* A sample has the same fields near its head: ip, pid, tid, time. */
static bool read_record_id(const struct perf_event_header *header, struct perf_record_id *ret_id)
{
	const uint8_t *fields = (const uint8_t *)header + sizeof(*header) + sizeof(uint64_t);

	if (header->type != PERF_RECORD_SAMPLE)
		return perf_record_id(header, ret_id);
	if (header->size < sizeof(*header) + sizeof(uint64_t) + 16)
		return false;
	*ret_id = (struct perf_record_id){0};
	memcpy(ret_id, fields, 16);
	return true;
}

/* The next record of this ring from before `until_ns`; false when there is none. */
static bool next_record(struct perf_ring_set *set, uint32_t ring, uint64_t until_ns,
	struct perf_set_record *ret_record)
{
	struct perf_set_record record = {.ring = ring};

	while ((record.header = perf_ring_peek(&set->rings[ring]))) {
		if (read_record_id(record.header, &record.id)) {
			if (record.id.time_ns > until_ns &&
				record.id.time_ns - until_ns < CLOCK_BROKEN_NS)
				return false;
			*ret_record = record;
			return true;
		}
		set->malformed++;
		perf_ring_consume(&set->rings[ring]);
	}
	return false;
}

/* Moves the ring at `slot` down to its place in the heap of `count` rings. */
static void sift_down(struct perf_ring_set *set, uint32_t slot, uint32_t count)
{
	const uint64_t *time_ns = set->next_time_ns;
	uint32_t *heap = set->heap, ring = heap[slot];

	for (uint32_t child; (child = 2 * slot + 1) < count; slot = child) {
		if (child + 1 < count && time_ns[heap[child + 1]] < time_ns[heap[child]])
			child++;
		if (time_ns[ring] <= time_ns[heap[child]])
			break;
		heap[slot] = heap[child];
	}
	heap[slot] = ring;
}

static uint32_t build_heap(struct perf_ring_set *set, uint64_t until_ns)
{
	struct perf_set_record record;
	uint32_t count = 0;

	for (uint32_t ring = 0; ring < set->count; ring++) {
		perf_ring_update(&set->rings[ring]);
		if (!next_record(set, ring, until_ns, &record))
			continue;
		set->next_time_ns[ring] = record.id.time_ns;
		set->heap[count++] = ring;
	}
	for (uint32_t slot = count / 2; slot-- > 0;)
		sift_down(set, slot, count);
	return count;
}

void perf_ring_set_drain(struct perf_ring_set *set, perf_record_function *on_record, void *context)
{
	/* Taken before the rings' heads: what happened before this moment is in them. */
	uint64_t until_ns = monotonic_now_ns();
	uint32_t count = build_heap(set, until_ns);
	struct perf_set_record record;

	while (count) {
		uint32_t ring = set->heap[0];

		if (next_record(set, ring, until_ns, &record)) {
			on_record(context, &record);
			perf_ring_consume(&set->rings[ring]);
		}
		if (next_record(set, ring, until_ns, &record))
			set->next_time_ns[ring] = record.id.time_ns;
		else
			set->heap[0] = set->heap[--count];
		if (count)
			sift_down(set, 0, count);
	}
}

uint64_t perf_ring_set_lost(const struct perf_ring_set *set, uint32_t ring)
{
	struct {
		uint64_t value, lost;
	} counts;
	uint64_t lost = 0;

	array_foreach (&set->events, event) {
		if (event->ring == ring &&
			read(event->fd, &counts, sizeof(counts)) == (ssize_t)sizeof(counts))
			lost += counts.lost;
	}
	return lost;
}

size_t perf_ring_set_descriptors(const struct perf_ring_set *set, int *ret_fds, size_t capacity)
{
	size_t count = MIN((size_t)set->count, capacity);

	for (size_t i = 0; i < count; i++)
		ret_fds[i] = set->rings[i].fd;
	return count;
}

void perf_ring_set_done(struct perf_ring_set *set)
{
	close_events_from(set, 0);
	array_done(&set->events);
	close_rings(set);
	free(set->rings);
	free(set->heap);
	free(set->next_time_ns);
	*set = (struct perf_ring_set){0};
}
