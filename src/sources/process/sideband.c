/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/process/sideband.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "sources/process/perf_ring_set.h"

/*
 * A fork, exec and exit make about 1 KB of records. 1 MB on each CPU holds 100 ms of the fastest
 * storms seen; on large machines a storm on every CPU at once is not to be expected, and locked
 * memory adds up.
 */
#define MACHINE_RING_BYTES       ((size_t)1024 * 1024)
#define LARGE_MACHINE_RING_BYTES ((size_t)512 * 1024)
#define LARGE_MACHINE_CPUS       64
/* Without privileges the sampler's rings need most of what may be locked. */
#define PROCESS_RING_BYTES ((size_t)128 * 1024)
#define MIN_RING_BYTES     ((size_t)16 * 1024)

struct sideband {
	bool machine;
	struct perf_event_attr attr;
	struct perf_ring_set rings;
	uint64_t *recorded_lost;  /* by ring: the sum of its LOST records */
	uint64_t *announced_lost; /* by ring: the sum of our SIDEBAND_LOST events */
};

/* The records' layouts, include/uapi/linux/perf_event.h. */
struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, length, file_offset;
	union {
		struct {
			uint32_t device_major, device_minor;
			uint64_t inode, inode_generation;
		};
		struct {
			uint8_t build_id_length, reserved[3];
			uint8_t build_id[20];
		};
	};
	uint32_t protection, flags;
	char path[];
};

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char name[];
};

struct task_record { /* fork and exit */
	struct perf_event_header header;
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time_ns;
};

struct ksymbol_record {
	struct perf_event_header header;
	uint64_t address;
	uint32_t length;
	uint16_t kind, flags;
	char name[];
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
};

static_assert(sizeof(struct mmap2_record) == 72, "PERF_RECORD_MMAP2's fixed part");
static_assert(sizeof(struct task_record) == 32, "PERF_RECORD_FORK's fixed part");

static bool decode_mmap(const struct perf_event_header *header, struct sideband_event *event)
{
	const struct mmap2_record *record = (const struct mmap2_record *)header;

	event->type = SIDEBAND_MMAP;
	event->name = perf_record_text(header, sizeof(*record));
	if (!event->name || !(record->protection & PROT_EXEC))
		return false;
	event->pid = record->pid;
	event->tid = record->tid;
	event->address = record->address;
	event->length = record->length;
	event->file_offset = record->file_offset;
	if (!(header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		event->device = makedev(record->device_major, record->device_minor);
		event->inode = record->inode;
		event->inode_generation = record->inode_generation;
		return true;
	}
	event->build_id.length = MIN(record->build_id_length, (uint8_t)sizeof(record->build_id));
	memcpy(event->build_id.bytes, record->build_id, event->build_id.length);
	return true;
}

static bool decode_comm(const struct perf_event_header *header, struct sideband_event *event)
{
	const struct comm_record *record = (const struct comm_record *)header;

	event->type = SIDEBAND_COMM;
	event->name = perf_record_text(header, sizeof(*record));
	if (!event->name)
		return false;
	event->pid = record->pid;
	event->tid = record->tid;
	event->is_exec = header->misc & PERF_RECORD_MISC_COMM_EXEC;
	return true;
}

static bool decode_task(const struct perf_event_header *header, struct sideband_event *event)
{
	const struct task_record *record = (const struct task_record *)header;

	if (header->size < sizeof(*record))
		return false;
	event->type = header->type == PERF_RECORD_FORK ? SIDEBAND_FORK : SIDEBAND_EXIT;
	event->pid = record->pid;
	event->tid = record->tid;
	event->parent_pid = record->parent_pid;
	return true;
}

static bool decode_ksymbol(const struct perf_event_header *header, struct sideband_event *event)
{
	const struct ksymbol_record *record = (const struct ksymbol_record *)header;

	event->type = SIDEBAND_KSYMBOL;
	event->name = perf_record_text(header, offsetof(struct ksymbol_record, name));
	if (!event->name)
		return false;
	event->address = record->address;
	event->length = record->length;
	event->removed = record->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	return true;
}

/*
 * Losses are learned from LOST records and, because those come only with the next record that fits,
 * from the kernel's count; each loss is reported once.
 */
static bool decode_lost(struct sideband *sideband, const struct perf_set_record *set_record,
	struct sideband_event *event)
{
	const struct lost_record *record = (const struct lost_record *)set_record->header;
	uint64_t *announced = &sideband->announced_lost[set_record->ring];
	uint64_t *recorded = &sideband->recorded_lost[set_record->ring];

	if (set_record->header->size < sizeof(*record))
		return false;
	*recorded += record->lost;
	if (*recorded <= *announced)
		return false;
	event->type = SIDEBAND_LOST;
	event->lost = *recorded - *announced;
	*announced = *recorded;
	return true;
}

static bool decode(struct sideband *sideband, const struct perf_set_record *record,
	struct sideband_event *event)
{
	switch (record->header->type) {
	case PERF_RECORD_MMAP2:
		return decode_mmap(record->header, event);
	case PERF_RECORD_COMM:
		return decode_comm(record->header, event);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return decode_task(record->header, event);
	case PERF_RECORD_KSYMBOL:
		return decode_ksymbol(record->header, event);
	case PERF_RECORD_LOST:
		return decode_lost(sideband, record, event);
	default:
		return false; /* a kind we did not ask for */
	}
}

struct drain {
	struct sideband *sideband;
	void (*on_event)(void *context, const struct sideband_event *event);
	void *context;
};

static void drain_record(void *context, const struct perf_set_record *record)
{
	struct drain *drain = context;
	struct sideband_event event = {.time_ns = record->id.time_ns, .cpu = record->id.cpu};

	if (decode(drain->sideband, record, &event))
		drain->on_event(drain->context, &event);
}

static void announce_silent_losses(const struct drain *drain)
{
	struct sideband *sideband = drain->sideband;

	for (uint32_t i = 0; i < sideband->rings.count; i++) {
		struct perf_ring *ring = &sideband->rings.rings[i];
		struct sideband_event event = {.type = SIDEBAND_LOST, .cpu = ring->cpu};
		uint64_t lost;

		if (ring->fullest_bytes < ring->data_bytes / 2)
			continue; /* nothing can have been lost since the last look */
		ring->fullest_bytes = 0;
		lost = perf_ring_set_lost(&sideband->rings, i);
		if (lost <= sideband->announced_lost[i])
			continue;
		event.lost = lost - sideband->announced_lost[i];
		event.time_ns = monotonic_now_ns();
		sideband->announced_lost[i] = lost;
		drain->on_event(drain->context, &event);
	}
}

int sideband_drain(struct sideband *sideband,
	void (*on_event)(void *context, const struct sideband_event *event), void *context)
{
	struct drain drain = {.sideband = sideband, .on_event = on_event, .context = context};

	perf_ring_set_drain(&sideband->rings, drain_record, &drain);
	announce_silent_losses(&drain);
	return 0;
}

/* Kernels that know fewer kinds of records answer EINVAL: ask for less until one is content. */
static int attach(struct sideband *sideband, uint32_t pid)
{
	struct perf_event_attr *attr = &sideband->attr;

	for (;;) {
		int error = pid ? perf_ring_set_attach_process(&sideband->rings, attr, (pid_t)pid)
				: perf_ring_set_attach(&sideband->rings, attr, -1);

		if (error == -EINVAL && attr->build_id)
			attr->build_id = 0; /* before Linux 5.12 */
		else if (error == -EINVAL && attr->ksymbol)
			attr->ksymbol = 0; /* before Linux 5.1 */
		else
			return error;
	}
}

static void init_attr(struct perf_event_attr *attr, bool machine)
{
	*attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = !machine,
		.exclude_hv = !machine,
		.inherit = !machine,
		.mmap = 1, /* executable mappings; mmap_data would be the others */
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.ksymbol = machine,
		/*
		 * In place of the inode, which tells files apart even where mounts or snapshots
		 * hide it. Root can open what is mapped, and goes by the inode: a build-id is what
		 * the file says of itself.
		 */
		.build_id = geteuid() != 0,
	};
}

static int attach_or_explain(struct sideband *sideband, uint32_t pid, struct errmsg *err)
{
	int error = attach(sideband, pid);
	char what[96];

	if (error == 0)
		return 0;
	if (!pid)
		return perf_event_explain(
			err, error, "cannot watch the machine's process events", 0);
	snprintf(what, sizeof(what), "cannot watch process %u", pid);
	return perf_event_explain(err, error, what, 2);
}

int sideband_follow(struct sideband *sideband, uint32_t pid, struct errmsg *err)
{
	return sideband->machine ? 0 : attach_or_explain(sideband, pid, err);
}

static int allocate_losses(struct sideband *sideband, struct errmsg *err)
{
	uint32_t count = sideband->rings.count;

	sideband->recorded_lost = calloc(count, sizeof(*sideband->recorded_lost));
	sideband->announced_lost = calloc(count, sizeof(*sideband->announced_lost));
	if (sideband->recorded_lost && sideband->announced_lost)
		return 0;
	return errmsg_set(err, -ENOMEM, "cannot watch process events: out of memory");
}

static size_t wanted_ring_bytes(uint32_t pid)
{
	if (pid)
		return PROCESS_RING_BYTES;
	return sysconf(_SC_NPROCESSORS_ONLN) > LARGE_MACHINE_CPUS ? LARGE_MACHINE_RING_BYTES
								  : MACHINE_RING_BYTES;
}

int sideband_open(struct sideband **ret_sideband, uint32_t pid, struct errmsg *err)
{
	struct sideband *sideband = calloc(1, sizeof(*sideband));
	int error;

	if (!sideband)
		return errmsg_set(err, -ENOMEM, "cannot watch process events: out of memory");
	sideband->machine = pid == 0;
	init_attr(&sideband->attr, sideband->machine);
	error = perf_ring_set_open(&sideband->rings, wanted_ring_bytes(pid), MIN_RING_BYTES, err);
	if (error == 0)
		error = allocate_losses(sideband, err);
	if (error == 0)
		error = attach_or_explain(sideband, pid, err);
	if (error < 0) {
		sideband_free(sideband);
		return error;
	}
	*ret_sideband = sideband;
	return 0;
}

size_t sideband_descriptors(struct sideband *sideband, int *ret_fds, size_t capacity)
{
	return perf_ring_set_descriptors(&sideband->rings, ret_fds, capacity);
}

struct sideband *sideband_free(struct sideband *sideband)
{
	if (!sideband)
		return NULL;
	perf_ring_set_done(&sideband->rings);
	free(sideband->recorded_lost);
	free(sideband->announced_lost);
	free(sideband);
	return NULL;
}
