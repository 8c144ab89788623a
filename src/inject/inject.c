/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * Correlation ids: when the process began to write, the ring's number, and how many launches the
 * ring has seen. A process that becomes another program keeps its pid, and must not say an id
 * twice.
 */
#define START_SHIFT      48
#define RING_SHIFT       40
#define START_TICK_SHIFT 20   /* of nanoseconds: a millisecond */
#define PAGE_BYTES       4096 /* at least */
/* A thread that found no free ring; it does not look again. */
#define NO_RING ((struct wire_ring *)-1)

static const struct wire_gate closed_gate = {.next_edge = WIRE_STEP_NEVER};
_Atomic(const struct wire_gate *) inject_gate = &closed_gate;
_Atomic(const _Atomic uint32_t *) inject_state = &closed_gate.state;
_Atomic(void (*)(void)) inject_on_thread_end, inject_on_fork, inject_on_reopen;

static struct wire_ring_file *ring_file;
static uint64_t correlation_start;
static struct wire_gate *session_gate;
static char gate_path[PATH_MAX];
static bool is_child; /* of a fork: the file is its parent's */
static pthread_key_t ring_key;
static pthread_once_t open_once = PTHREAD_ONCE_INIT, wait_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t folder_lock = PTHREAD_MUTEX_INITIALIZER;

/* The fast kind of thread variables, of which a library may have a few bytes. */
static __thread struct wire_ring *thread_ring __attribute__((tls_model("initial-exec")));
/* Where its records are. */
static __thread unsigned char *thread_data __attribute__((tls_model("initial-exec")));
__thread uint32_t inject_known_tid __attribute__((tls_model("initial-exec")));

/* ---- the session ---- */

/* A file of the session, mapped; NULL when it is not there or too short. */
static void *map_file(int directory, const char *name, int flags, size_t bytes)
{
	int fd = openat(directory, name, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
	void *memory = MAP_FAILED;
	struct stat status;

	if (fd < 0)
		return NULL;
	if (flags & O_CREAT ? ftruncate(fd, (off_t)bytes) == 0
			    : fstat(fd, &status) == 0 && status.st_size >= (off_t)bytes)
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

/*
 * Backs memory by pages now: where the file system is full that fails, and a later write would end
 * the program.
 */
static bool populate(void *memory, size_t bytes)
{
	char byte;
	struct iovec local = {.iov_base = &byte, .iov_len = 1};

	if (madvise(memory, bytes, MADV_POPULATE_WRITE) == 0)
		return true;
	if (errno != EINVAL)
		return false;
	/* Before Linux 5.14. A read brings a page of a file in memory, too, and can fail. */
	for (size_t at = 0; at < bytes; at += PAGE_BYTES) {
		struct iovec remote = {.iov_base = (char *)memory + at, .iov_len = 1};

		if (syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0) != 1)
			return false;
	}
	return true;
}

static struct wire_ring_file *make_ring_file(int directory)
{
	uint64_t now_ns = inject_now_ns();
	struct stat pid_namespace = {0};
	struct wire_ring_file *file;
	char name[64];

	snprintf(name, sizeof(name), WIRE_RING_PREFIX "%d.%llu", (int)getpid(),
		(unsigned long long)now_ns);
	file = map_file(directory, name, O_CREAT | O_EXCL, WIRE_RING_FILE_BYTES);
	if (!file || !populate(file, WIRE_RING_DATA_OFFSET))
		return NULL;
	file->version = WIRE_RING_VERSION;
	file->pid = (uint32_t)getpid();
	if (stat("/proc/self/ns/pid", &pid_namespace) == 0)
		file->pid_namespace = pid_namespace.st_ino;
	file->start_time_ns = now_ns;
	correlation_start = now_ns >> START_TICK_SHIFT << START_SHIFT;
	file->ring_count = WIRE_RING_COUNT;
	file->ring_bytes = WIRE_RING_BYTES;
	atomic_store_explicit(&file->magic, WIRE_RING_MAGIC, memory_order_release);
	return file;
}

/* The ring goes to the next thread; what is in it is read as ever. */
static void return_ring(void *ring)
{
	void (*on_end)(void) = atomic_load_explicit(&inject_on_thread_end, memory_order_relaxed);

	if (on_end)
		on_end();
	thread_ring = NO_RING;
	atomic_store_explicit(
		&((struct wire_ring *)ring)->tid, WIRE_RING_TID_NONE, memory_order_release);
}

static void use_gate(const struct wire_gate *gate)
{
	atomic_store_explicit(&inject_state, &gate->state, memory_order_release);
	atomic_store_explicit(&inject_gate, gate, memory_order_release);
}

/*
 * The parent goes on writing to its rings: a forked child says nothing until it executes, or opens
 * the session by itself. It has one thread, and locks that others may have held.
 */
static void close_in_child(void)
{
	void (*on_fork)(void) = atomic_load_explicit(&inject_on_fork, memory_order_relaxed);

	use_gate(&closed_gate);
	thread_ring = NO_RING;
	is_child = true;
	pthread_mutex_init(&folder_lock, NULL);
	if (on_fork)
		on_fork();
}

/* Says so to the collector where launches will lack their stacks for it. */
static bool has_waited_enough(uint64_t begin_ns)
{
	uint8_t probe = atomic_load_explicit(&session_gate->launch_probe, memory_order_relaxed);
	uint64_t longest_ns = probe == WIRE_LAUNCH_PROBE_LOADS ? WIRE_PROBE_NS : WIRE_READY_NS;
	bool is_enough = inject_now_ns() - begin_ns >= longest_ns;

	if (is_enough && probe != WIRE_LAUNCH_PROBE_DECIDED)
		atomic_store_explicit(&session_gate->went_unprobed, 1, memory_order_relaxed);
	return is_enough;
}

/*
 * The collector prepares for launches when it sees the first ring file. Here, where the program
 * loads its driver, is the one place where we wait for it.
 */
static void wait_until_ready(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t begin_ns = inject_now_ns();
	int saved_errno = errno;

	atomic_store_explicit(&session_gate->is_launching, 1, memory_order_relaxed);
	while (!atomic_load_explicit(&session_gate->is_ready, memory_order_acquire) &&
		atomic_load_explicit(&session_gate->state, memory_order_relaxed) ==
			WIRE_GATE_OPEN &&
		!has_waited_enough(begin_ns))
		nanosleep(&pause, NULL);
	errno = saved_errno;
}

/* The session's gate; NULL: there is none of our release in this folder. */
static struct wire_gate *map_gate(int directory)
{
	struct wire_gate *gate = map_file(directory, WIRE_GATE_NAME, 0, sizeof(*gate));

	if (!gate || (gate->magic == WIRE_GATE_MAGIC && gate->version == WIRE_RING_VERSION))
		return gate;
	munmap(gate, sizeof(*gate));
	return NULL;
}

static void set_gate_path(const char *path)
{
	snprintf(gate_path, sizeof(gate_path), "%s/" WIRE_GATE_NAME, path);
}

static void open_first(const char *path, int directory)
{
	session_gate = map_gate(directory);
	if (session_gate && pthread_key_create(&ring_key, return_ring) == 0 &&
		pthread_atfork(NULL, NULL, close_in_child) == 0)
		ring_file = make_ring_file(directory);
	if (!ring_file)
		return;
	set_gate_path(path);
	use_gate(session_gate);
}

/* ---- one session after another ---- */

/* Its folder is gone, or its collector. */
static bool is_over(void)
{
	uint64_t heartbeat_ns =
		atomic_load_explicit(&session_gate->heartbeat_ns, memory_order_relaxed);

	return access(gate_path, F_OK) != 0 || inject_now_ns() - heartbeat_ns > WIRE_HEARTBEAT_NS;
}

/* The threads keep their rings, and what counts steps its names. */
static bool take_over(struct wire_ring_file *file)
{
	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++) {
		uint32_t tid = atomic_load_explicit(&ring_file->rings[i].tid, memory_order_relaxed);

		if (tid != WIRE_RING_TID_NONE &&
			!populate(wire_ring_data(file, i), WIRE_RING_AT_FIRST))
			return false;
		atomic_store_explicit(&file->rings[i].tid, tid, memory_order_relaxed);
	}
	memcpy(file->steps, ring_file->steps, sizeof(file->steps));
	for (uint32_t i = 0; i < WIRE_STEP_NAMES; i++) {
		atomic_store_explicit(&file->steps[i].owned, 0, memory_order_relaxed);
		atomic_store_explicit(&file->steps[i].shared, 0, memory_order_relaxed);
	}
	return true;
}

/*
 * The new session's memory comes to where the last one's was, so that whatever points there stays
 * good. The gate is closed until its own turn comes: nobody writes meanwhile.
 */
static bool move_to(struct wire_ring_file *file, struct wire_gate *gate)
{
	void (*on_reopen)(void) = atomic_load_explicit(&inject_on_reopen, memory_order_relaxed);

	atomic_store_explicit(&session_gate->state, WIRE_GATE_CLOSED, memory_order_relaxed);
	if (mremap(file, WIRE_RING_FILE_BYTES, WIRE_RING_FILE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
		    ring_file) == MAP_FAILED)
		return false;
	if (on_reopen)
		on_reopen();
	return mremap(gate, sizeof(*gate), sizeof(*gate), MREMAP_MAYMOVE | MREMAP_FIXED,
		       session_gate) != MAP_FAILED;
}

static bool open_next(const char *path, int directory)
{
	struct wire_ring_file *file;
	struct wire_gate *gate;
	bool is_open = false;

	if (is_child || !is_over())
		return false;
	gate = map_gate(directory);
	file = gate ? make_ring_file(directory) : NULL;
	if (file && take_over(file))
		is_open = move_to(file, gate);
	if (is_open)
		set_gate_path(path);
	else if (gate)
		munmap(gate, sizeof(*gate));
	if (!is_open && file)
		munmap(file, WIRE_RING_FILE_BYTES);
	return is_open;
}

/*
 * A forked child's own file comes to where its parent's was, in this process alone. For the thread
 * that forked, before there is another one: its ring is that of the parent's thread.
 */
static bool open_in_child(int directory)
{
	void (*on_end)(void) = atomic_load_explicit(&inject_on_thread_end, memory_order_relaxed);
	void (*on_reopen)(void) = atomic_load_explicit(&inject_on_reopen, memory_order_relaxed);
	struct wire_ring_file *file = is_over() ? NULL : make_ring_file(directory);

	if (!file)
		return false;
	if (mremap(file, WIRE_RING_FILE_BYTES, WIRE_RING_FILE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
		    ring_file) == MAP_FAILED) {
		munmap(file, WIRE_RING_FILE_BYTES);
		return false;
	}
	if (on_end)
		on_end();
	if (on_reopen)
		on_reopen();
	pthread_setspecific(ring_key, NULL);
	thread_ring = NULL;
	inject_known_tid = 0;
	is_child = false;
	use_gate(session_gate);
	return true;
}

static void open_session(void)
{
	const char *path = secure_getenv("SONDE_SESSION");
	int directory, saved_errno = errno;

	if (!path)
		return;
	directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory >= 0) {
		open_first(path, directory);
		close(directory);
	}
	errno = saved_errno;
}

bool inject_open_at_once(void)
{
	pthread_once(&open_once, open_session);
	return ring_file != NULL;
}

static bool is_here(const char *path)
{
	size_t length = strlen(path);

	return strncmp(gate_path, path, length) == 0 &&
	       strcmp(gate_path + length, "/" WIRE_GATE_NAME) == 0;
}

bool inject_open_folder(const char *path)
{
	int directory, saved_errno = errno;
	bool is_open = false;

	inject_open_at_once();
	pthread_mutex_lock(&folder_lock);
	directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory >= 0 && !ring_file) {
		open_first(path, directory);
		is_open = ring_file;
	} else if (directory >= 0 && is_here(path)) {
		is_open = !is_child || open_in_child(directory);
	} else if (directory >= 0) {
		is_open = open_next(path, directory);
	}
	if (directory >= 0)
		close(directory);
	pthread_mutex_unlock(&folder_lock);
	errno = saved_errno;
	return is_open;
}

bool inject_open_in_child(void)
{
	char path[sizeof(gate_path)];

	if (!is_child)
		return true;
	snprintf(path, sizeof(path), "%.*s", (int)(strlen(gate_path) - strlen("/" WIRE_GATE_NAME)),
		gate_path);
	return inject_open_folder(path);
}

bool inject_open(void)
{
	if (!inject_open_at_once())
		return false;
	pthread_once(&wait_once, wait_until_ready);
	return true;
}

struct wire_ring_file *inject_file(void)
{
	return is_child ? NULL : ring_file;
}

struct wire_gate *inject_session_gate(void)
{
	return session_gate;
}

const char *inject_gate_path(void)
{
	return gate_path;
}

uint32_t inject_image(void)
{
	return (uint32_t)ring_file->start_time_ns;
}

unsigned inject_graph_mode(void)
{
	return session_gate->graph_mode;
}

unsigned inject_tracer_mode(void)
{
	return session_gate->tracer_mode;
}

unsigned inject_call_mode(void)
{
	return session_gate->call_mode;
}

bool inject_also_records(enum wire_also what)
{
	return session_gate->also_recorded & what;
}

void inject_set_held(enum wire_held held)
{
	if (atomic_load_explicit(&ring_file->held, memory_order_relaxed) != held)
		atomic_store_explicit(&ring_file->held, held, memory_order_release);
}

/* ---- the thread's ring ---- */

uint32_t inject_ask_tid(void)
{
	inject_known_tid = (uint32_t)syscall(SYS_gettid);
	return inject_known_tid;
}

static __attribute__((noinline)) struct wire_ring *claim_ring(void)
{
	int saved_errno = errno;

	thread_ring = NO_RING;
	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++) {
		uint32_t nobody = WIRE_RING_TID_NONE;

		if (!atomic_compare_exchange_strong_explicit(&ring_file->rings[i].tid, &nobody,
			    inject_tid(), memory_order_acquire, memory_order_relaxed))
			continue;
		if (!populate(
			    wire_ring_data(ring_file, i), wire_ring_usable(&ring_file->rings[i]))) {
			atomic_store_explicit(
				&ring_file->rings[i].tid, WIRE_RING_TID_NONE, memory_order_release);
			break;
		}
		thread_ring = &ring_file->rings[i];
		thread_data = wire_ring_data(ring_file, i);
		pthread_setspecific(ring_key, thread_ring);
		break;
	}
	errno = saved_errno;
	return thread_ring;
}

/* NULL: all are taken. */
static inline struct wire_ring *own_ring(void)
{
	struct wire_ring *ring = thread_ring ? thread_ring : claim_ring();

	return ring == NO_RING ? NULL : ring;
}

/* Nobody reads: the gate is closed for all processes of the session when the reader is gone. */
void inject_ring_is_full(void)
{
	uint64_t heartbeat_ns =
		atomic_load_explicit(&session_gate->heartbeat_ns, memory_order_relaxed);

	uint32_t open = WIRE_GATE_OPEN;

	if (inject_now_ns() - heartbeat_ns > WIRE_HEARTBEAT_NS)
		atomic_compare_exchange_strong(&session_gate->state, &open, WIRE_GATE_CLOSED);
}

struct wire_ring *inject_ring(unsigned char **ret_data, uint32_t *ret_index)
{
	struct wire_ring *ring = own_ring();

	if (!ring) {
		atomic_fetch_add_explicit(&ring_file->no_ring, 1, memory_order_relaxed);
		return NULL;
	}
	*ret_index = (uint32_t)(ring - ring_file->rings);
	*ret_data = wire_ring_data(ring_file, *ret_index);
	return ring;
}

/* Nobody writes, or there is no room. Apart from what is done for each record. */
static __attribute__((noinline, cold)) void meet_full_ring(const struct wire_ring *ring)
{
	if (ring)
		inject_ring_is_full();
	else
		atomic_fetch_add_explicit(&ring_file->no_ring, 1, memory_order_relaxed);
}

/* With `left_bytes` free behind it. */
static inline void *reserve(uint32_t bytes, uint32_t left_bytes, struct inject_place *ret_place)
{
	struct wire_ring *ring;
	void *to = NULL;
	__u64 head = 0;

	if (!inject_is_writable())
		return NULL;
	ring = own_ring();
	if (ring)
		to = wire_ring_reserve(ring, thread_data, bytes + left_bytes, &head);
	if (!to)
		meet_full_ring(ring);
	*ret_place = (struct inject_place){.ring = ring, .head = head - left_bytes};
	return to;
}

void *inject_reserve(uint32_t bytes, struct inject_place *ret_place)
{
	return reserve(bytes, INJECT_LAST_BYTES, ret_place);
}

static inline bool put(const struct wire_record *record, uint32_t left_bytes)
{
	struct inject_place place;
	void *to = reserve(record->length_bytes, left_bytes, &place);

	if (!to)
		return false;
	memcpy(to, record, record->length_bytes);
	inject_commit(&place);
	return true;
}

bool inject_write(const struct wire_record *record)
{
	return put(record, INJECT_LAST_BYTES);
}

bool inject_write_last(const struct wire_device_counts *counts)
{
	return put(&counts->record, 0);
}

uint64_t inject_correlation(void)
{
	struct wire_ring *ring = own_ring();

	if (!ring)
		return 0;
	return correlation_start | (uint64_t)(ring - ring_file->rings + 1) << RING_SHIFT |
	       ++ring->launches;
}

int inject_ring_number(void)
{
	struct wire_ring *ring = inject_is_open() ? own_ring() : NULL;

	return ring ? (int)(ring - ring_file->rings) : -1;
}

uint64_t inject_room(void)
{
	struct wire_ring *ring = own_ring();

	if (!ring)
		return 0;
	return wire_ring_usable(ring) -
	       wire_ring_between(ring, atomic_load_explicit(&ring->tail, memory_order_relaxed),
		       atomic_load_explicit(&ring->head, memory_order_relaxed));
}

const struct wire_launch_facts *inject_facts(void)
{
	return &ring_file->facts;
}

void inject_count_no_copy(void)
{
	if (inject_is_open())
		atomic_fetch_add_explicit(&ring_file->no_copy, 1, memory_order_relaxed);
}

void inject_count_no_range(void)
{
	if (ring_file)
		atomic_fetch_add_explicit(&ring_file->no_range, 1, memory_order_relaxed);
}

void inject_count_no_context(void)
{
	atomic_fetch_add_explicit(&ring_file->no_context, 1, memory_order_relaxed);
}
