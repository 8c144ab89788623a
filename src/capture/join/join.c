/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/join/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

/* Above all pids of Linux: PID_MAX_LIMIT. */
#define PIDS_MAX ((uint32_t)1 << 22)

/* Who else may have the same pid. */
struct pid_key {
	uint32_t host, pid;
};

struct capture_join {
	const struct capture_visitor *visitor;
	void *context;
	/* Of the capture that is read. */
	const char *path;
	struct capture_clock clock;
	uint32_t host; /* of the recording that is read; id + 1; 0: not known */
	uint32_t number;
	/* Ids of those before it, and the largest so far. */
	capture_id mappings, frames, callstacks;
	capture_id last_mapping, last_frame, last_callstack;
	uint32_t domains, last_domain;
	struct intern hosts;
	struct intern pid_keys;    /* of host and pid → the number, by its id */
	ARRAY_OF(uint32_t) pids;   /* by that id */
	struct map_u64 taken;      /* numbers of processes */
	uint32_t next_pid;         /* of processes whose pid is taken */
	ARRAY_OF(capture_id) list; /* of the callstack that is read */
	int failed;                /* in a function that returns an id */
};

#define pass(join, function, ...)                                                                  \
	((join)->failed ? (join)->failed                                                           \
			: ((join)->visitor->function ? (join)->visitor->function(                  \
							       (join)->context, __VA_ARGS__)       \
						     : 0))

/* ---- what becomes of numbers ---- */

/* 0 stays 0: not known. */
static uint64_t time_of(const struct capture_join *join, uint64_t time_ns)
{
	return time_ns ? capture_clock_ns(&join->clock, time_ns) : 0;
}

static capture_id id_of(capture_id id, capture_id before, capture_id *last)
{
	if (!id)
		return 0;
	*last = MAX(*last, before + id);
	return before + id;
}

static int take_pid(struct capture_join *join, uint32_t pid, uint32_t *ret_number)
{
	uint32_t number = pid;

	if (map_u64_get(&join->taken, pid, NULL)) {
		while (map_u64_get(&join->taken, join->next_pid, NULL))
			join->next_pid++;
		number = join->next_pid++;
	}
	*ret_number = number;
	return map_u64_set(&join->taken, number, 1);
}

/* Of one host a pid is one process, in however many captures it is. */
static uint32_t pid_of(struct capture_join *join, uint32_t pid)
{
	const struct pid_key key = {join->host, pid};
	uint32_t id, number = pid;
	int r = pid ? intern_add(&join->pid_keys, &key, sizeof(key), &id) : -ENODATA;

	if (r == -ENODATA)
		return pid;
	if (r > 0) {
		r = take_pid(join, pid, &number);
		if (r == 0)
			r = array_append(&join->pids, number);
	} else if (r == 0) {
		number = join->pids.items[id];
	}
	if (r < 0)
		join->failed = r;
	return number;
}

/* A process's first thread has its number. */
static uint32_t tid_of(uint32_t tid, uint32_t pid_before, uint32_t pid)
{
	return tid == pid_before ? pid : tid;
}

static void move_ids(struct capture_join *join, uint32_t *pid, uint32_t *tid)
{
	uint32_t before = *pid;

	*pid = pid_of(join, before);
	*tid = tid_of(*tid, before, *pid);
}

/* Ranges nest on a track of their capture. */
static uint64_t track_of(const struct capture_join *join, uint64_t track)
{
	return join->number ? hash_u64(track ^ hash_u64(join->number)) : track;
}

/* ---- the callbacks ---- */

static int join_session(void *context, const struct capture_session *session)
{
	struct capture_join *join = context;
	struct capture_session out = *session;
	uint32_t host = 0;
	int r = intern_add(&join->hosts, session->host, strlen(session->host), &host);

	if (r < 0)
		return r;
	join->host = host + 1;
	out.start_time_ns = time_of(join, session->start_time_ns);
	if (!out.file) {
		out.file = join->path;
		out.clock = join->clock;
	}
	return pass(join, session, &out);
}

static int join_mapping(void *context, capture_id id, const struct capture_mapping *mapping)
{
	struct capture_join *join = context;

	return pass(join, mapping, id_of(id, join->mappings, &join->last_mapping), mapping);
}

static int join_frame(void *context, capture_id id, const struct capture_frame *frame)
{
	struct capture_join *join = context;
	struct capture_frame out = *frame;

	out.mapping = id_of(frame->mapping, join->mappings, &join->last_mapping);
	return pass(join, frame, id_of(id, join->frames, &join->last_frame), &out);
}

static int join_callstack(void *context, capture_id id, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python)
{
	struct capture_join *join = context;
	int r = 0;

	array_clear(&join->list);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = array_append(&join->list, id_of(frames[i], join->frames, &join->last_frame));
	if (r < 0)
		return r;
	return pass(join, callstack, id_of(id, join->callstacks, &join->last_callstack),
		join->list.items, count, stop, python);
}

static int join_process(void *context, const struct capture_process *process)
{
	struct capture_join *join = context;
	struct capture_process out = *process;

	out.pid = pid_of(join, process->pid);
	out.parent_pid = pid_of(join, process->parent_pid);
	out.start_time_ns = time_of(join, process->start_time_ns);
	return pass(join, process, &out);
}

static int join_thread(void *context, const struct capture_thread *thread)
{
	struct capture_join *join = context;
	struct capture_thread out = *thread;

	move_ids(join, &out.pid, &out.tid);
	return pass(join, thread, &out);
}

static int join_sample(void *context, const struct capture_sample *sample)
{
	struct capture_join *join = context;
	struct capture_sample out = *sample;

	move_ids(join, &out.pid, &out.tid);
	out.gil_holder_tid = tid_of(sample->gil_holder_tid, sample->pid, out.pid);
	out.time_ns = time_of(join, sample->time_ns);
	out.callstack = id_of(sample->callstack, join->callstacks, &join->last_callstack);
	return pass(join, sample, &out);
}

static int join_device_work(void *context, const struct capture_device_work *work)
{
	struct capture_join *join = context;
	struct capture_device_work out = *work;

	move_ids(join, &out.pid, &out.tid);
	out.start_ns = time_of(join, work->start_ns);
	out.end_ns = MAX(time_of(join, work->end_ns), out.start_ns);
	out.queued_ns = time_of(join, work->queued_ns);
	out.submit_ns = time_of(join, work->submit_ns);
	out.launch_ns = time_of(join, work->launch_ns);
	return pass(join, device_work, &out);
}

static int join_launch(void *context, const struct capture_launch *launch)
{
	struct capture_join *join = context;
	struct capture_launch out = *launch;

	move_ids(join, &out.pid, &out.tid);
	out.time_ns = time_of(join, launch->time_ns);
	return pass(join, launch, &out);
}

static int join_launch_stack(void *context, const struct capture_launch_stack *stack)
{
	struct capture_join *join = context;
	struct capture_launch_stack out = *stack;

	move_ids(join, &out.pid, &out.tid);
	out.time_ns = time_of(join, stack->time_ns);
	out.callstack = id_of(stack->callstack, join->callstacks, &join->last_callstack);
	return pass(join, launch_stack, &out);
}

static int join_range(void *context, const struct capture_range_event *event)
{
	struct capture_join *join = context;
	struct capture_range_event out = *event;

	move_ids(join, &out.pid, &out.tid);
	out.time_ns = time_of(join, event->time_ns);
	out.track = track_of(join, event->track);
	return pass(join, range, &out);
}

static int join_counter(void *context, const struct capture_counter *counter)
{
	struct capture_join *join = context;
	struct capture_counter out = *counter;

	out.pid = pid_of(join, counter->pid);
	out.time_ns = time_of(join, counter->time_ns);
	return pass(join, counter, &out);
}

static uint32_t domain_of(struct capture_join *join, uint32_t domain)
{
	return id_of(domain, join->domains, &join->last_domain);
}

static int join_energy_domain(void *context, const struct wire_energy_domain *domain)
{
	struct capture_join *join = context;
	struct wire_energy_domain out = *domain;

	out.id = domain_of(join, domain->id);
	out.parent = domain_of(join, domain->parent);
	return pass(join, energy_domain, &out);
}

static int join_energy_interval(void *context, const struct wire_energy_interval *interval)
{
	struct capture_join *join = context;
	struct wire_energy_interval out = *interval;

	out.domain = domain_of(join, interval->domain);
	out.start_ns = time_of(join, interval->start_ns);
	out.end_ns = time_of(join, interval->end_ns);
	return pass(join, energy_interval, &out);
}

static int join_energy_state(void *context, const struct wire_energy_state *state)
{
	struct capture_join *join = context;
	struct wire_energy_state out = *state;

	out.domain = domain_of(join, state->domain);
	out.time_ns = time_of(join, state->time_ns);
	return pass(join, energy_state, &out);
}

static int join_energy_absence(void *context, const struct wire_energy_absence *absence)
{
	struct capture_join *join = context;

	return pass(join, energy_absence, absence);
}

static int join_device_event(void *context, const struct capture_device_event *event)
{
	struct capture_join *join = context;
	struct capture_device_event out = *event;

	out.pid = pid_of(join, event->pid);
	out.time_ns = time_of(join, event->time_ns);
	if (event->kind == CAPTURE_GRAPH_CALL)
		out.graph.tid = tid_of(event->graph.tid, event->pid, out.pid);
	else if (event->kind == CAPTURE_OVERHEAD)
		out.overhead.tid = tid_of(event->overhead.tid, event->pid, out.pid);
	return pass(join, device_event, &out);
}

static int join_window(void *context, const struct capture_window *window)
{
	struct capture_join *join = context;
	struct capture_window out = *window;

	out.begin_ns = time_of(join, window->begin_ns);
	out.end_ns = time_of(join, window->end_ns);
	out.leader_pid = pid_of(join, window->leader_pid);
	return pass(join, window, &out);
}

static int join_step(void *context, const struct capture_step *step)
{
	struct capture_join *join = context;
	struct capture_step out = *step;

	move_ids(join, &out.pid, &out.tid);
	out.time_ns = time_of(join, step->time_ns);
	return pass(join, step, &out);
}

static int join_symbols(void *context, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	struct capture_join *join = context;

	return pass(join, symbols, id_of(mapping, join->mappings, &join->last_mapping), rel_pc,
		lines, count);
}

static int join_stats(void *context, const struct capture_stats *stats)
{
	struct capture_join *join = context;
	struct capture_stats out = *stats;

	out.end_time_ns = time_of(join, stats->end_time_ns);
	return pass(join, stats, &out);
}

static int join_progress(void *context, uint64_t bytes, uint64_t total_bytes)
{
	struct capture_join *join = context;

	return pass(join, progress, bytes, total_bytes);
}

static const struct capture_visitor join_visitor = {
	.session = join_session,
	.mapping = join_mapping,
	.frame = join_frame,
	.callstack = join_callstack,
	.process = join_process,
	.thread = join_thread,
	.sample = join_sample,
	.device_work = join_device_work,
	.launch = join_launch,
	.launch_stack = join_launch_stack,
	.range = join_range,
	.counter = join_counter,
	.energy_domain = join_energy_domain,
	.energy_interval = join_energy_interval,
	.energy_state = join_energy_state,
	.energy_absence = join_energy_absence,
	.device_event = join_device_event,
	.window = join_window,
	.step = join_step,
	.symbols = join_symbols,
	.stats = join_stats,
	.progress = join_progress,
};

/* ---- captures ---- */

int capture_join_new(
	struct capture_join **ret_join, const struct capture_visitor *visitor, void *context)
{
	struct capture_join *join = calloc(1, sizeof(*join));

	if (!join)
		return -ENOMEM;
	join->visitor = visitor;
	join->context = context;
	join->next_pid = PIDS_MAX + 1;
	*ret_join = join;
	return 0;
}

struct capture_join *capture_join_free(struct capture_join *join)
{
	if (!join)
		return NULL;
	intern_done(&join->hosts);
	intern_done(&join->pid_keys);
	array_done(&join->pids);
	map_u64_done(&join->taken);
	array_done(&join->list);
	free(join);
	return NULL;
}

void capture_join_freep(struct capture_join **join)
{
	*join = capture_join_free(*join);
}

void capture_join_set_visitor(struct capture_join *join, const struct capture_visitor *visitor)
{
	join->visitor = visitor;
}

void capture_join_renew_ids(struct capture_join *join)
{
	join->last_mapping = join->last_frame = join->last_callstack = join->last_domain = 0;
}

int capture_join_read(struct capture_join *join, const char *path,
	const struct capture_clock *clock, struct capture_read_result *ret_result,
	struct errmsg *err)
{
	int r;

	join->path = path;
	join->clock = *clock;
	join->host = 0;
	join->mappings = join->last_mapping;
	join->frames = join->last_frame;
	join->callstacks = join->last_callstack;
	join->domains = join->last_domain;
	r = capture_read(path, &join_visitor, join, ret_result, err);
	join->number++;
	return r < 0 ? r : join->failed;
}
