/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pipeline/jit_names.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/process_view.h"
#include "symbols/perf_map.h"

#define READER_NICENESS 5
#define TURN_BYTES      ((size_t)1 << 20)
/* Between two readings of one map: it grows line by line, and each line is asked for. */
#define READ_INTERVAL_NS (20 * NS_PER_MS)
/* Processes without a map are looked at again so often. */
#define NO_FILE_INTERVAL_NS (100 * NS_PER_MS)
/* A process may take this much of the thread before it gets no more than a tenth of it. */
#define FREE_READING_NS (2 * NS_PER_S)
#define BUSY_SHARE      10
/* A sample waits so long for a map, and is written without its names then. */
#define PATIENCE_NS (200 * NS_PER_MS)
/* Of all maps together; the largest is given up first. */
#define TOTAL_MAX_BYTES ((size_t)1 << 30)
/* Addresses without a name, of one process. */
#define KEPT_MAX 65536

struct jit_process {
	struct jit_process_key key;
	struct process_view view;
	bool has_view;

	pthread_mutex_t map_lock; /* held for a turn by the thread, for a look by who asks */
	struct perf_map *map;     /* NULL: no file yet */

	/* Under the store's lock. */
	uint64_t asked_ns;   /* what was written by then is to be read */
	uint64_t waiting_ns; /* since when that is asked for */
	uint64_t read_ns;    /* what was written by then has been read */
	uint64_t pass_ns;    /* when the reading under way began; 0: none is */
	uint64_t not_before_ns, spent_ns;
	size_t map_bytes;
	uint64_t ended_ns; /* 0: it lives */
	bool has_file, given_up, in_turn;

	/* Of who asks. */
	struct map_u64 kept; /* address → frame */
	uint32_t mapping;
};

struct jit_names {
	void (*announce)(void *context);
	void *context;
	struct map_u64 by_pid; /* → struct jit_process *, who asks reads and writes it */

	pthread_t thread;
	bool thread_runs;
	pthread_mutex_t lock; /* what follows */
	pthread_cond_t wake;
	ARRAY_OF(struct jit_process *) processes;
	size_t next; /* whose turn it is */
	bool ending;
	struct jit_names_account account;
};

/* ---- the thread ---- */

static bool is_wanted(const struct jit_process *process)
{
	return !process->given_up && process->asked_ns > process->read_ns;
}

/* Who may read now, in turns; NULL and how long nobody may. */
static struct jit_process *next_due(struct jit_names *names, uint64_t *ret_wait_ns)
{
	uint64_t now_ns = monotonic_now_ns();

	*ret_wait_ns = UINT64_MAX;
	for (size_t i = 0; i < names->processes.count; i++) {
		size_t index = (names->next + i) % names->processes.count;
		struct jit_process *process = names->processes.items[index];

		if (!is_wanted(process))
			continue;
		if (process->not_before_ns <= now_ns) {
			names->next = index + 1;
			return process;
		}
		*ret_wait_ns = MIN(*ret_wait_ns, process->not_before_ns - now_ns);
	}
	return NULL;
}

static void wait_for_work(struct jit_names *names, uint64_t wait_ns)
{
	struct timespec until;
	uint64_t until_ns;

	if (wait_ns == UINT64_MAX) {
		pthread_cond_wait(&names->wake, &names->lock);
		return;
	}
	until_ns = monotonic_now_ns() + wait_ns;
	until = (struct timespec){
		.tv_sec = (time_t)(until_ns / NS_PER_S), .tv_nsec = (long)(until_ns % NS_PER_S)};
	pthread_cond_timedwait(&names->wake, &names->lock, &until);
}

/* 1: there is more; else the map was read to its end, or a negative errno says why not. */
static int read_turn(struct jit_process *process, struct errmsg *ret_reason)
{
	int result = 0;

	pthread_mutex_lock(&process->map_lock);
	if (!process->map)
		result = perf_map_open(&process->map, &process->view, process->key.pid, ret_reason);
	if (process->map)
		result = perf_map_read(process->map, TURN_BYTES);
	if (result == -EFBIG)
		errmsg_set(ret_reason, 0,
			"the perf map of process %u is too large: names of code that was generated "
			"late are missing",
			process->key.pid);
	pthread_mutex_unlock(&process->map_lock);
	return result;
}

static void count(uint64_t *count, struct errmsg *example, const struct errmsg *reason)
{
	if ((*count)++ == 0)
		*example = *reason;
}

/* Says how a turn went, under the lock. True when a map was read to its end. */
static bool account_turn(struct jit_names *names, struct jit_process *process, int result,
	uint64_t cost_ns, const struct errmsg *reason)
{
	process->spent_ns += cost_ns;
	process->not_before_ns = monotonic_now_ns() + (result == 1 ? 0 : READ_INTERVAL_NS);
	if (process->spent_ns > FREE_READING_NS)
		process->not_before_ns += BUSY_SHARE * cost_ns;
	process->has_file = process->map != NULL;
	process->map_bytes = process->map ? perf_map_memory(process->map) : 0;
	if (result == 1)
		return false;
	process->read_ns = process->pass_ns;
	process->pass_ns = 0;
	if (result == -EFBIG) {
		process->given_up = true;
		count(&names->account.cut, &names->account.cut_example, reason);
	} else if (result < 0 && result != -ENOENT && !process->map) {
		process->given_up = true;
		count(&names->account.refused, &names->account.refused_example, reason);
	}
	return true;
}

/* The map that takes most memory goes when all take too much. */
static void keep_in_bounds(struct jit_names *names)
{
	struct jit_process *largest = NULL;
	struct errmsg reason;
	size_t total = 0;

	array_foreach (&names->processes, process) {
		total += (*process)->map_bytes;
		if (!largest || (*process)->map_bytes > largest->map_bytes)
			largest = *process;
	}
	if (total <= TOTAL_MAX_BYTES)
		return;
	pthread_mutex_lock(&largest->map_lock);
	largest->map = perf_map_free(largest->map);
	pthread_mutex_unlock(&largest->map_lock);
	largest->map_bytes = 0;
	largest->given_up = true;
	errmsg_set(&reason, 0,
		"the perf maps of all processes take too much memory: that of process %u, the "
		"largest, was left out",
		largest->key.pid);
	count(&names->account.cut, &names->account.cut_example, &reason);
}

static void take_turn(struct jit_names *names, struct jit_process *process)
{
	uint64_t start_ns = monotonic_now_ns();
	struct errmsg reason = {""};
	bool finished;
	int result;

	process->in_turn = true;
	if (!process->pass_ns)
		process->pass_ns = start_ns;
	pthread_mutex_unlock(&names->lock);
	result = read_turn(process, &reason);
	pthread_mutex_lock(&names->lock);
	process->in_turn = false;
	finished = account_turn(names, process, result, monotonic_now_ns() - start_ns, &reason);
	keep_in_bounds(names);
	if (finished)
		names->announce(names->context);
}

static void *reader(void *argument)
{
	struct jit_names *names = argument;
	struct jit_process *process;
	uint64_t wait_ns;

	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), READER_NICENESS);
	pthread_mutex_lock(&names->lock);
	while (!names->ending) {
		process = next_due(names, &wait_ns);
		if (process)
			take_turn(names, process);
		else
			wait_for_work(names, wait_ns);
	}
	pthread_mutex_unlock(&names->lock);
	return NULL;
}

/* ---- processes ---- */

static struct jit_process *process_free(struct jit_process *process)
{
	if (process->has_view)
		process_view_done(&process->view);
	perf_map_free(process->map);
	pthread_mutex_destroy(&process->map_lock);
	map_u64_done(&process->kept);
	free(process);
	return NULL;
}

/* Its view is taken now: soon it may have ended. */
static struct jit_process *add_process(struct jit_names *names, const struct jit_process_key *key)
{
	struct jit_process *process = calloc(1, sizeof(*process));
	int result;

	if (!process)
		return NULL;
	process->key = *key;
	pthread_mutex_init(&process->map_lock, NULL);
	process->has_view = process_view_open(&process->view, key->pid) == 0;
	process->given_up = !process->has_view;
	pthread_mutex_lock(&names->lock);
	result = array_append(&names->processes, process);
	pthread_mutex_unlock(&names->lock);
	if (result < 0)
		return process_free(process);
	/* Without its place in the map it is ended and freed as any other. */
	map_u64_set(&names->by_pid, key->pid, (uintptr_t)process);
	return process;
}

static struct jit_process *find_process(struct jit_names *names, uint32_t pid)
{
	uint64_t known;

	return map_u64_get(&names->by_pid, pid, &known) ? (struct jit_process *)(uintptr_t)known
							: NULL;
}

static struct jit_process *process_of(struct jit_names *names, const struct jit_process_key *key)
{
	struct jit_process *process = find_process(names, key->pid);

	if (process && process->key.incarnation == key->incarnation)
		return process;
	if (process) {
		jit_names_end_process(names, key->pid);
		map_u64_remove(&names->by_pid, key->pid);
	}
	return add_process(names, key);
}

/* ---- asking ---- */

/* True when there is nothing to wait for: what was written by `time_ns` was read. */
static bool is_answered(const struct jit_process *process, uint64_t time_ns, uint64_t now_ns)
{
	if (process->given_up || process->read_ns >= time_ns)
		return true;
	return process->read_ns && !process->has_file &&
	       now_ns - process->read_ns < NO_FILE_INTERVAL_NS;
}

/* Asks for what was written by `time_ns`. */
static enum jit_name_state ask(
	struct jit_names *names, struct jit_process *process, uint64_t time_ns, bool is_busy)
{
	enum jit_name_state state = JIT_NAME_PENDING;
	uint64_t now_ns = monotonic_now_ns();

	pthread_mutex_lock(&names->lock);
	if (!is_busy && is_answered(process, time_ns, now_ns)) {
		state = process->has_file && !process->given_up ? JIT_NAME_NONE : JIT_NAME_LATER;
	} else {
		if (!is_wanted(process))
			process->waiting_ns = now_ns;
		process->asked_ns = MAX(process->asked_ns, time_ns);
		if (now_ns - process->waiting_ns > PATIENCE_NS)
			state = JIT_NAME_LATER;
		pthread_cond_signal(&names->wake);
	}
	pthread_mutex_unlock(&names->lock);
	return state;
}

enum jit_name_state jit_names_find(struct jit_names *names, const struct jit_process_key *key,
	uint64_t address, uint64_t time_ns, struct strbuf *ret_name)
{
	struct jit_process *process = process_of(names, key);
	const char *name = NULL;
	bool is_busy;

	if (!process)
		return JIT_NAME_LATER;
	is_busy = pthread_mutex_trylock(&process->map_lock) != 0;
	if (!is_busy) {
		if (process->map && perf_map_find(process->map, address, &name)) {
			strbuf_clear(ret_name);
			strbuf_addf(ret_name, "%s", name);
		}
		pthread_mutex_unlock(&process->map_lock);
	}
	return name ? JIT_NAME_FOUND : ask(names, process, time_ns, is_busy);
}

/* ---- the end of processes ---- */

static void end_process(struct jit_process *process, uint64_t now_ns)
{
	if (process->ended_ns)
		return;
	process->ended_ns = process->asked_ns = now_ns;
	process->not_before_ns = 0;
}

void jit_names_end_process(struct jit_names *names, uint32_t pid)
{
	struct jit_process *process = find_process(names, pid);

	if (!process)
		return;
	pthread_mutex_lock(&names->lock);
	end_process(process, monotonic_now_ns());
	pthread_cond_signal(&names->wake);
	pthread_mutex_unlock(&names->lock);
}

void jit_names_end_all(struct jit_names *names)
{
	uint64_t now_ns = monotonic_now_ns();

	pthread_mutex_lock(&names->lock);
	array_foreach (&names->processes, process)
		end_process(*process, now_ns);
	pthread_cond_signal(&names->wake);
	pthread_mutex_unlock(&names->lock);
}

bool jit_names_idle(struct jit_names *names)
{
	bool idle = true;

	pthread_mutex_lock(&names->lock);
	array_foreach (&names->processes, process)
		idle &= !(*process)->ended_ns || (!is_wanted(*process) && !(*process)->in_turn);
	pthread_mutex_unlock(&names->lock);
	return idle;
}

bool jit_names_kept(struct jit_names *names, const struct jit_process_key *key, uint64_t address,
	uint32_t *ret_frame, uint32_t *ret_mapping)
{
	struct jit_process *process = process_of(names, key);
	uint64_t frame;

	*ret_mapping = process ? process->mapping : 0;
	if (!process || !map_u64_get(&process->kept, address, &frame))
		return false;
	*ret_frame = (uint32_t)frame;
	return true;
}

int jit_names_keep(struct jit_names *names, const struct jit_process_key *key, uint64_t address,
	uint32_t frame, uint32_t mapping)
{
	struct jit_process *process = process_of(names, key);

	if (!process || process->kept.count >= KEPT_MAX)
		return 0;
	process->mapping = mapping;
	return map_u64_set(&process->kept, address, frame);
}

/* Names what the map of an ended process has names for. The thread has done with it. */
static int name_kept(const struct jit_process *process,
	int (*name)(void *context, uint32_t mapping, uint64_t address, const char *text),
	void *context)
{
	uint64_t address, frame;
	size_t position = 0;
	const char *text;
	int result = 0;

	while (result == 0 && process->map &&
		map_u64_next(&process->kept, &position, &address, &frame)) {
		if (perf_map_find(process->map, address, &text))
			result = name(context, process->mapping, address, text);
	}
	return result;
}

/* Takes one process out that ended some time ago, or ended at all with `now`; NULL: none. */
static struct jit_process *take_ended(struct jit_names *names, uint64_t ended_before_ns)
{
	struct jit_process *taken = NULL;

	pthread_mutex_lock(&names->lock);
	for (size_t i = 0; i < names->processes.count && !taken; i++) {
		struct jit_process *process = names->processes.items[i];

		if (!process->ended_ns || process->ended_ns > ended_before_ns ||
			is_wanted(process) || process->in_turn)
			continue;
		taken = process;
		names->processes.items[i] = names->processes.items[--names->processes.count];
	}
	pthread_mutex_unlock(&names->lock);
	if (taken && find_process(names, taken->key.pid) == taken)
		map_u64_remove(&names->by_pid, taken->key.pid);
	return taken;
}

int jit_names_take_late(struct jit_names *names, uint64_t ended_before_ns,
	int (*name)(void *context, uint32_t mapping, uint64_t address, const char *text),
	void *context)
{
	struct jit_process *process;
	int result = 0;

	while (result == 0 && (process = take_ended(names, ended_before_ns))) {
		result = name_kept(process, name, context);
		process_free(process);
	}
	return result;
}

/* ---- life ---- */

void jit_names_account(struct jit_names *names, struct jit_names_account *ret_account)
{
	pthread_mutex_lock(&names->lock);
	*ret_account = names->account;
	pthread_mutex_unlock(&names->lock);
}

int jit_names_new(struct jit_names **ret_names, void (*announce)(void *context), void *context)
{
	struct jit_names *names = calloc(1, sizeof(*names));
	pthread_condattr_t attributes;
	int result;

	if (!names)
		return -ENOMEM;
	names->announce = announce;
	names->context = context;
	pthread_mutex_init(&names->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&names->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	result = -pthread_create(&names->thread, NULL, reader, names);
	names->thread_runs = result == 0;
	if (result < 0) {
		jit_names_free(names);
		return result;
	}
	*ret_names = names;
	return 0;
}

struct jit_names *jit_names_free(struct jit_names *names)
{
	if (!names)
		return NULL;
	if (names->thread_runs) {
		pthread_mutex_lock(&names->lock);
		names->ending = true;
		pthread_cond_signal(&names->wake);
		pthread_mutex_unlock(&names->lock);
		pthread_join(names->thread, NULL);
	}
	array_foreach (&names->processes, process)
		process_free(*process);
	array_done(&names->processes);
	map_u64_done(&names->by_pid);
	pthread_cond_destroy(&names->wake);
	pthread_mutex_destroy(&names->lock);
	free(names);
	return NULL;
}
