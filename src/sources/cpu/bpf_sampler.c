/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU sampler that unwinds in the kernel: loads sampler.bpf.c, feeds its maps, drains its ring.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "bpf/namespace.skel.h"
#include "bpf/sampler.skel.h"
#include "bpf/sampler_shared.h"
#include "sources/cpu/bpf_probe.h"
#include "sources/cpu/bpf_sampler.h"
#include "sources/cpu/bpf_spaces.h"
#include "sources/cpu/sampler.h"
#include "sources/cpu/work_counters.h"

#define RING_MINIMUM_BYTES (16U << 20)
#define RING_MAXIMUM_BYTES (256U << 20)
#define TABLE_BATCH        64
/* PROC_PID_INIT_INO, include/linux/proc_ns.h. */
#define MACHINE_PID_NAMESPACE_INODE 0xeffffffcU

struct cpu_event {
	int fd;
	struct bpf_link *link;
};

struct bpf_sampler_state {
	struct sampler_bpf *skeleton;
	struct bpf_spaces *spaces;
	struct ring_buffer *ring;
	struct cpu_sampler_options options;
	int stats_fd;
	int cpu_count;
	struct cpu_event *events;               /* by CPU number; fd -1: offline */
	struct work_counters *counters;         /* NULL: samples are not counted */
	cpu_sampler_record_function *on_record; /* during drain */
	void *on_record_context;
};

/* ---- open ---- */

static uint32_t ring_size(const struct cpu_sampler_options *options, int cpu_count)
{
	uint64_t samples_per_s = NS_PER_S / options->period_ns * (uint64_t)cpu_count;
	uint64_t wanted = options->ring_bytes ? options->ring_bytes
					      : RING_MINIMUM_BYTES / 2 + 2 * samples_per_s * 1024;
	uint32_t size = options->ring_bytes ? 4096 : RING_MINIMUM_BYTES;

	while (size < wanted && size < RING_MAXIMUM_BYTES)
		size *= 2;
	return size;
}

/*
 * How deep the collector's PID namespace is: 0 for the machine's own, else its task is asked for,
 * since /proc/self/status counts from the namespace of /proc.
 */
static int pid_namespace_level(uint32_t inode, uint32_t *ret_level)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	struct namespace_bpf *skeleton;
	int result;

	*ret_level = 0;
	if (inode == MACHINE_PID_NAMESPACE_INODE)
		return 0;
	skeleton = namespace_bpf__open_and_load();
	if (!skeleton)
		return -errno;
	result = bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.own_level), &run);
	*ret_level = run.retval;
	namespace_bpf__destroy(skeleton);
	return result;
}

static int set_knobs(struct bpf_sampler_state *state, struct errmsg *err)
{
	struct sampler_bpf *skeleton = state->skeleton;
	uint32_t ring_bytes = ring_size(&state->options, state->cpu_count);
	uint32_t level = 0, inode;
	struct stat namespace;
	int result;

	if (stat("/proc/self/ns/pid", &namespace) < 0)
		return errmsg_set(err, -errno,
			"cannot read /proc/self/ns/pid: %s; is /proc mounted?", strerror(errno));
	inode = (uint32_t) namespace.st_ino;
	result = pid_namespace_level(inode, &level);
	if (result < 0)
		return errmsg_set(
			err, result, "cannot tell sonde's PID namespace: %s", strerror(-result));
	skeleton->rodata->whole_machine = state->options.whole_machine;
	skeleton->rodata->wakeup_bytes = ring_bytes / 8;
	skeleton->rodata->pid_namespace_level = level;
	skeleton->rodata->pid_namespace_inode = inode;
	bpf_map__set_max_entries(skeleton->maps.samples, ring_bytes);
	bpf_map__set_max_entries(skeleton->maps.scratches, (uint32_t)state->cpu_count);
	skeleton->rodata->counts_work = state->counters;
	bpf_map__set_max_entries(skeleton->maps.cycle_events, (uint32_t)state->cpu_count);
	bpf_map__set_max_entries(skeleton->maps.instruction_events, (uint32_t)state->cpu_count);
	return 0;
}

static int on_ring_record(void *context, void *data, size_t size)
{
	struct bpf_sampler_state *state = context;
	const struct wire_record *record = data;

	if (size >= sizeof(*record) && record->length_bytes <= size)
		state->on_record(state->on_record_context, record);
	return 0;
}

static void bpf_sampler_close(void *sampler)
{
	struct bpf_sampler_state *state = sampler;

	if (!state)
		return;
	for (int cpu = 0; state->events && cpu < state->cpu_count; cpu++) {
		bpf_link__destroy(state->events[cpu].link);
		closep(&state->events[cpu].fd);
	}
	free(state->events);
	work_counters_free(state->counters);
	ring_buffer__free(state->ring);
	bpf_spaces_free(state->spaces);
	sampler_bpf__destroy(state->skeleton);
	closep(&state->stats_fd);
	free(state);
}

static int load(struct bpf_sampler_state *state, struct errmsg *err)
{
	struct bpf_spaces_maps maps;
	int result;

	state->skeleton = sampler_bpf__open();
	if (!state->skeleton)
		return errmsg_set(err, -errno, "cannot open the BPF programs: %s", strerror(errno));
	result = set_knobs(state, err);
	if (result < 0)
		return result;
	result = sampler_bpf__load(state->skeleton);
	if (result == -EMFILE)
		return errmsg_set(err, result,
			"cannot open the BPF programs: out of file descriptors; raise `ulimit -n`");
	if (result < 0)
		return errmsg_set(err, result,
			"the kernel refused the BPF programs: %s; `sonde doctor` says what is "
			"missing, SONDE_DEBUG_BPF=1 shows the verifier's log",
			strerror(-result));
	result = sampler_bpf__attach(state->skeleton);
	if (result < 0)
		return errmsg_set(err, result, "cannot attach the process-tree tracepoints: %s",
			strerror(-result));
	if (state->counters)
		result = work_counters_insert(state->counters,
			bpf_map__fd(state->skeleton->maps.cycle_events),
			bpf_map__fd(state->skeleton->maps.instruction_events));
	if (result < 0)
		return errmsg_set(err, result, "cannot hand the CPUs' counters to BPF: %s",
			strerror(-result));
	maps = (struct bpf_spaces_maps){
		.mappings_fd = bpf_map__fd(state->skeleton->maps.mappings),
		.processes_fd = bpf_map__fd(state->skeleton->maps.processes),
		.interpreters_fd = bpf_map__fd(state->skeleton->maps.interpreters),
	};
	result = bpf_spaces_new(&state->spaces, &maps, state->options.whole_machine);
	if (result < 0)
		return result;
	state->ring = ring_buffer__new(
		bpf_map__fd(state->skeleton->maps.samples), on_ring_record, state, NULL);
	if (!state->ring)
		return errmsg_set(err, -errno,
			"cannot map the sample ring (%u MB): %s; memory is limited (`ulimit -v`)",
			bpf_map__max_entries(state->skeleton->maps.samples) >> 20, strerror(errno));
	return 0;
}

static int bpf_sampler_open(
	void **ret_sampler, const struct cpu_sampler_options *options, struct errmsg *err)
{
	struct bpf_sampler_state *state = calloc(1, sizeof(*state));
	struct errmsg uncounted; /* `sonde doctor` says it */
	int result;

	if (!state)
		return -ENOMEM;
	bpf_set_print();
	state->options = *options;
	state->cpu_count = libbpf_num_possible_cpus();
	if (options->counts_work && state->cpu_count > 0)
		work_counters_open(&state->counters, state->cpu_count, &uncounted);
	/* Run times of the programs; where it is not allowed they are not measured. */
	state->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	state->events = calloc((size_t)MAX(state->cpu_count, 1), sizeof(*state->events));
	for (int cpu = 0; state->events && cpu < state->cpu_count; cpu++)
		state->events[cpu].fd = -1;
	result = state->events && state->cpu_count > 0 ? load(state, err) : -ENOMEM;
	if (result < 0) {
		bpf_sampler_close(state);
		return result;
	}
	*ret_sampler = state;
	return 0;
}

/* ---- sampling ---- */

static int bpf_sampler_follow(void *sampler, uint32_t pid, struct errmsg *err)
{
	struct bpf_sampler_state *state = sampler;
	int result = bpf_spaces_follow(state->spaces, pid);

	if (result < 0)
		return errmsg_set(
			err, result, "cannot follow process %u: %s", pid, strerror(-result));
	return 0;
}

static int start_cpu(struct bpf_sampler_state *state, int cpu, struct errmsg *err)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = state->options.period_ns,
		.exclude_idle = 1,
	};
	struct cpu_event *event = &state->events[cpu];

	event->fd =
		(int)syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (event->fd < 0 && errno == ENODEV)
		return 0; /* offline */
	if (event->fd < 0)
		return errmsg_set(err, -errno, "cannot open the cpu-clock of CPU %d: %s", cpu,
			strerror(errno));
	event->link = bpf_program__attach_perf_event(state->skeleton->progs.take_sample, event->fd);
	if (!event->link)
		return errmsg_set(err, -errno, "cannot attach the sampler to CPU %d: %s%s", cpu,
			strerror(errno), errno == EMFILE ? "; raise `ulimit -n`" : "");
	return 0;
}

static int bpf_sampler_start(void *sampler, struct errmsg *err)
{
	struct bpf_sampler_state *state = sampler;
	int result = 0;

	for (int cpu = 0; cpu < state->cpu_count && result == 0; cpu++)
		result = start_cpu(state, cpu, err);
	return result;
}

/* What counters counted between windows is no sample's. */
static int forget_counts(const struct bpf_sampler_state *state)
{
	_cleanup_free_ struct sampler_counts *none =
		calloc((size_t)state->cpu_count, sizeof(*none));
	uint32_t zero = 0;

	if (!none)
		return -ENOMEM;
	return bpf_map_update_elem(
		       bpf_map__fd(state->skeleton->maps.last_counts), &zero, none, BPF_ANY) < 0
		       ? -errno
		       : 0;
}

static int bpf_sampler_set_active(void *sampler, bool active)
{
	struct bpf_sampler_state *state = sampler;
	unsigned long request = active ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
	int result = active && state->counters ? forget_counts(state) : 0;

	if (result < 0)
		return result;
	for (int cpu = 0; cpu < state->cpu_count; cpu++) {
		if (state->events[cpu].fd >= 0 && ioctl(state->events[cpu].fd, request, 0) < 0)
			return -errno;
	}
	return 0;
}

static void bpf_sampler_stop(void *sampler)
{
	struct bpf_sampler_state *state = sampler;

	for (int cpu = 0; cpu < state->cpu_count; cpu++) {
		bpf_link__destroy(TAKE_PTR(state->events[cpu].link));
		closep(&state->events[cpu].fd);
	}
}

static size_t bpf_sampler_descriptors(void *sampler, int *ret_fds, size_t capacity)
{
	struct bpf_sampler_state *state = sampler;

	if (capacity)
		ret_fds[0] = ring_buffer__epoll_fd(state->ring);
	return MIN(capacity, (size_t)1);
}

static int bpf_sampler_drain(void *sampler, cpu_sampler_record_function *on_record, void *context)
{
	struct bpf_sampler_state *state = sampler;
	int result;

	state->on_record = on_record;
	state->on_record_context = context;
	result = ring_buffer__consume(state->ring);
	return MIN(result, 0);
}

void bpf_sampler_parts(void *sampler, struct bpf_sampler_parts *ret_parts)
{
	const struct bpf_sampler_state *state = sampler;
	struct sampler_bpf *skeleton = state->skeleton;

	*ret_parts = (struct bpf_sampler_parts){
		.samples = bpf_map__fd(skeleton->maps.samples),
		.processes = bpf_map__fd(skeleton->maps.processes),
		.mappings = bpf_map__fd(skeleton->maps.mappings),
		.interpreters = bpf_map__fd(skeleton->maps.interpreters),
		.sent_codes = bpf_map__fd(skeleton->maps.sent_codes),
		.tables = bpf_map__fd(skeleton->maps.tables),
		.cached_rules = bpf_map__fd(skeleton->maps.cached_rules),
		.counters = bpf_map__fd(skeleton->maps.counters),
		.whole_machine = skeleton->rodata->whole_machine,
		.pid_namespace_level = skeleton->rodata->pid_namespace_level,
		.pid_namespace_inode = skeleton->rodata->pid_namespace_inode,
		.wakeup_bytes = skeleton->rodata->wakeup_bytes,
	};
}

/* ---- accounts ---- */

static uint64_t sum_counter(const struct bpf_sampler_state *state, uint32_t counter,
	uint64_t *ret_per_cpu, size_t capacity)
{
	_cleanup_free_ uint64_t *values = calloc((size_t)state->cpu_count, sizeof(*values));
	uint64_t sum = 0;

	if (!values || bpf_map_lookup_elem(
			       bpf_map__fd(state->skeleton->maps.counters), &counter, values) < 0)
		return 0;
	for (int cpu = 0; cpu < state->cpu_count; cpu++) {
		sum += values[cpu];
		if (ret_per_cpu && (size_t)cpu < capacity)
			ret_per_cpu[cpu] = values[cpu];
	}
	return sum;
}

static void bpf_sampler_account(void *sampler, struct cpu_sampler_account *ret_account)
{
	struct bpf_sampler_state *state = sampler;
	struct bpf_prog_info information = {0};
	uint32_t length = sizeof(information);
	uint64_t children_lost;

	*ret_account = (struct cpu_sampler_account){
		.cpu_count = MIN((uint32_t)state->cpu_count,
			(uint32_t)ARRAY_SIZE(ret_account->lost_per_cpu)),
	};
	ret_account->samples = sum_counter(state, SAMPLER_COUNT_SAMPLES, NULL, 0);
	sum_counter(state, SAMPLER_COUNT_LOST, ret_account->lost_per_cpu,
		ARRAY_SIZE(ret_account->lost_per_cpu));
	children_lost = sum_counter(state, SAMPLER_COUNT_CHILDREN_LOST, NULL, 0);
	if (children_lost)
		snprintf(ret_account->notes, sizeof(ret_account->notes),
			"%llu child processes were not sampled: more than %d run at once",
			(unsigned long long)children_lost, SAMPLER_MAX_PROCESSES);
	if (state->stats_fd >= 0 &&
		bpf_obj_get_info_by_fd(bpf_program__fd(state->skeleton->progs.take_sample),
			&information, &length) == 0) {
		ret_account->run_count = information.run_cnt;
		ret_account->run_time_ns = information.run_time_ns;
	}
}

/* ---- address spaces and tables ---- */

static int bpf_sampler_map(void *sampler, uint32_t pid, const struct mapping *mapping,
	uint64_t bias, bool frame_pointer)
{
	return bpf_spaces_map(
		((struct bpf_sampler_state *)sampler)->spaces, pid, mapping, bias, frame_pointer);
}

static void bpf_sampler_unmap(void *sampler, uint32_t pid, const struct mapping *mapping)
{
	bpf_spaces_unmap(((struct bpf_sampler_state *)sampler)->spaces, pid, mapping);
}

static void bpf_sampler_clear_space(void *sampler, uint32_t pid)
{
	bpf_spaces_clear(((struct bpf_sampler_state *)sampler)->spaces, pid);
}

static int bpf_sampler_fork_space(void *sampler, uint32_t parent_pid, uint32_t child_pid)
{
	return bpf_spaces_fork(
		((struct bpf_sampler_state *)sampler)->spaces, parent_pid, child_pid);
}

static int bpf_sampler_set_python(
	void *sampler, uint32_t pid, const struct python_image_facts *facts)
{
	return bpf_spaces_set_python(((struct bpf_sampler_state *)sampler)->spaces, pid, facts);
}

/* An inner map with the table's words, written through a mapping: one copy, no system call per
 * element. */
static int make_table_map(const struct unwinder_table *table)
{
	static const union {
		struct unwind_table_header header;
		uint64_t words[UNWIND_HEADER_WORDS];
	} empty = {.header = {.magic = UNWIND_TABLE_MAGIC, .version = UNWIND_TABLE_VERSION}};
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	const uint64_t *words = table->words ? table->words : empty.words;
	uint64_t count = table->words ? table->word_count : UNWIND_HEADER_WORDS;
	_cleanup_close_ int fd = -1;
	void *memory;

	if (count > UINT32_MAX)
		return -EFBIG;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_table", sizeof(uint32_t), sizeof(uint64_t),
		(uint32_t)count, &options);
	if (fd < 0)
		return -errno;
	memory = mmap(NULL, count * sizeof(*words), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	memcpy(memory, words, count * sizeof(*words));
	munmap(memory, count * sizeof(*words));
	return TAKE_FD(fd);
}

/* Each update of a map of maps waits for an RCU grace period (milliseconds); a batch waits once. */
static int insert_tables(int outer_fd, const uint32_t *files, const int *table_fds, uint32_t count)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options, .elem_flags = BPF_ANY);
	uint32_t done = count;

	if (bpf_map_update_batch(outer_fd, files, table_fds, &done, &options) == 0)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		if (bpf_map_update_elem(outer_fd, &files[i], &table_fds[i], BPF_ANY) < 0)
			return -errno;
	}
	return 0;
}

static int bpf_sampler_add_tables(void *sampler, const struct unwinder_table *tables, size_t count)
{
	struct bpf_sampler_state *state = sampler;
	int outer_fd = bpf_map__fd(state->skeleton->maps.tables), result = 0;

	while (count) {
		size_t batch = MIN(count, (size_t)TABLE_BATCH), filled = 0;
		uint32_t files[TABLE_BATCH];
		int fds[TABLE_BATCH];

		for (size_t i = 0; i < batch; i++) {
			int fd = tables[i].file_index < SAMPLER_MAX_FILES
					 ? make_table_map(&tables[i])
					 : -E2BIG;

			if (fd < 0) {
				result = fd;
				continue;
			}
			files[filled] = tables[i].file_index;
			fds[filled++] = fd;
		}
		if (filled) {
			int inserted = insert_tables(outer_fd, files, fds, (uint32_t)filled);

			result = result < 0 ? result : inserted;
		}
		while (filled)
			close(fds[--filled]);
		tables += batch;
		count -= batch;
	}
	return result;
}

static void bpf_sampler_unwinder(void *sampler, struct source_unwinder *ret_unwinder)
{
	*ret_unwinder = (struct source_unwinder){
		.state = sampler,
		.map = bpf_sampler_map,
		.unmap = bpf_sampler_unmap,
		.clear_space = bpf_sampler_clear_space,
		.fork_space = bpf_sampler_fork_space,
		.set_python = bpf_sampler_set_python,
		.add_tables = bpf_sampler_add_tables,
	};
}

const struct cpu_sampler bpf_sampler = {
	.name = "bpf",
	.probe = bpf_probe,
	.open = bpf_sampler_open,
	.follow = bpf_sampler_follow,
	.start = bpf_sampler_start,
	.set_active = bpf_sampler_set_active,
	.descriptors = bpf_sampler_descriptors,
	.drain = bpf_sampler_drain,
	.stop = bpf_sampler_stop,
	.account = bpf_sampler_account,
	.close = bpf_sampler_close,
	.unwinder = bpf_sampler_unwinder,
};
