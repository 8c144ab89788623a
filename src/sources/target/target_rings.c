/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/target/target_rings.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "sources/target/map_guard.h"
#include "sources/target/ring_owner.h"
#include "sources/target/session_folder.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Files of one session; a runaway program must not take all of our memory. */
#define MAX_FILES 4096
/* Of one ring, damage included, before the next one's turn: owners may write as fast as we read. */
#define MAX_IN_A_ROW (WIRE_RING_BYTES / sizeof(struct wire_record))
/* Where more waits than this share of a ring, it becomes larger. */
#define LATE_SHARE 0.25
/* Of all processes; steps of more names are counted without their name. */
#define MAX_STEP_NAMES 64
#define FOLDER_BYTES   512
#define PAGE_BYTES     4096 /* the smallest there are */

struct ring_file {
	char name[NAME_MAX + 1];
	uint32_t pid;           /* in our PID namespace */
	uint64_t pid_namespace; /* of the pid that the process says */
	uint64_t start_time_ns;
	struct wire_ring_file *memory; /* NULL: its owner is done, or it was refused */
	/* Of an owner that is done: its last records are looked at later. NULL: it named no step.
	 */
	struct wire_step_counter *left_steps;
	struct map_guard guard; /* its owner may cut it at any time */
	struct wire_ring_cursor cursors[WIRE_RING_COUNT];
};

struct target_rings {
	char folder[FOLDER_BYTES];
	int folder_fd, watch_fd;
	pthread_mutex_t lock;
	struct target_gate gate;
	ARRAY_OF(struct ring_file *) files;
	struct target_rings_account account;
	struct target_steps steps[MAX_STEP_NAMES]; /* of files that are closed */
	size_t step_count;
	double fullest;   /* the share of one ring that waited at the last drain */
	bool is_searched; /* the folder has no ring file that is not known */
};

static bool is_gone(uint32_t pid)
{
	return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

static int watch_folder(struct target_rings *rings)
{
	rings->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (rings->watch_fd < 0 ||
		inotify_add_watch(rings->watch_fd, rings->folder, IN_CREATE | IN_MOVED_TO) < 0)
		return -errno;
	return 0;
}

int target_rings_open(struct target_rings **ret_rings, const struct target_gate_options *options,
	struct errmsg *err)
{
	struct target_rings *rings = calloc(1, sizeof(*rings));
	int result;

	if (!rings)
		return -ENOMEM;
	rings->folder_fd = rings->watch_fd = rings->gate.fd = -1;
	pthread_mutex_init(&rings->lock, NULL);
	map_guard_install();
	result = session_folder_make(rings->folder, sizeof(rings->folder), &rings->folder_fd, err);
	if (result == 0) {
		result = target_gate_make(&rings->gate, rings->folder_fd, options);
		result = result < 0 ? result : watch_folder(rings);
		if (result < 0)
			errmsg_set(err, result, "device work is not recorded: cannot use %s: %s",
				rings->folder, strerror(-result));
	}
	if (result < 0) {
		target_rings_free(rings);
		return result;
	}
	*ret_rings = rings;
	return 0;
}

/* What its owner counted. */
static void add_counts(struct target_rings_account *account, struct ring_file *file)
{
	const struct wire_ring_file *memory = file->memory;

	map_guard_enter(&file->guard);
	account->no_ring += atomic_load(&memory->no_ring);
	account->no_context += atomic_load(&memory->no_context);
	account->no_copy += atomic_load(&memory->no_copy);
	account->no_range += atomic_load(&memory->no_range);
	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++)
		account->lost += atomic_load(&memory->rings[i].lost);
	map_guard_leave();
}

static void add_counter(
	const struct wire_step_counter *counter, struct target_steps *steps, size_t *count)
{
	uint32_t state = atomic_load(&counter->state);
	uint64_t made = atomic_load(&counter->owned) + atomic_load(&counter->shared);
	char name[WIRE_STEP_NAME_BYTES];
	size_t at = 0;

	if (state != WIRE_STEP_NAMED && state != WIRE_STEP_CHOSEN)
		return;
	memcpy(name, counter->name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	while (at < *count && strcmp(steps[at].name, name) != 0)
		at++;
	if (at == MAX_STEP_NAMES)
		return;
	if (at == *count) {
		steps[(*count)++] = (struct target_steps){0};
		memcpy(steps[at].name, name, sizeof(name));
	}
	steps[at].count += made;
	steps[at].most = MAX(steps[at].most, made);
	steps[at].processes++;
	steps[at].is_chosen = steps[at].is_chosen || state == WIRE_STEP_CHOSEN;
}

static void add_steps(struct ring_file *file, struct target_steps *steps, size_t *count)
{
	map_guard_enter(&file->guard);
	for (uint32_t i = 0; i < WIRE_STEP_NAMES; i++)
		add_counter(&file->memory->steps[i], steps, count);
	map_guard_leave();
}

static void unmap_file(struct ring_file *file)
{
	if (file->memory)
		munmap(TAKE_PTR(file->memory), WIRE_RING_FILE_BYTES);
}

/* Without memory for it these steps have no name, which is counted. */
static void keep_steps(struct ring_file *file)
{
	struct wire_step_counter *steps = malloc(sizeof(file->memory->steps));
	bool is_named = false;

	if (!steps)
		return;
	map_guard_enter(&file->guard);
	memcpy(steps, file->memory->steps, sizeof(file->memory->steps));
	map_guard_leave();
	for (uint32_t i = 0; i < WIRE_STEP_NAMES; i++)
		is_named = is_named || steps[i].name[0];
	if (is_named)
		file->left_steps = TAKE_PTR(steps);
	free(steps);
}

static void close_file(struct target_rings *rings, struct ring_file *file)
{
	if (!file->memory)
		return;
	add_counts(&rings->account, file);
	add_steps(file, rings->steps, &rings->step_count);
	unmap_file(file);
	unlinkat(rings->folder_fd, file->name, 0);
}

struct target_rings *target_rings_free(struct target_rings *rings)
{
	if (!rings)
		return NULL;
	target_gate_close(&rings->gate);
	array_foreach (&rings->files, file) {
		close_file(rings, *file);
		free((*file)->left_steps);
		free(*file);
	}
	array_done(&rings->files);
	if (rings->folder_fd >= 0)
		session_folder_remove(rings->folder, rings->folder_fd);
	closep(&rings->folder_fd);
	target_gate_done(&rings->gate);
	closep(&rings->watch_fd);
	pthread_mutex_destroy(&rings->lock);
	free(rings);
	return NULL;
}

const char *target_rings_folder(const struct target_rings *rings)
{
	return rings->folder;
}

struct target_gate *target_rings_gate(struct target_rings *rings)
{
	return &rings->gate;
}

void target_rings_lock(struct target_rings *rings)
{
	pthread_mutex_lock(&rings->lock);
}

void target_rings_unlock(struct target_rings *rings)
{
	pthread_mutex_unlock(&rings->lock);
}

int target_rings_descriptor(const struct target_rings *rings)
{
	return rings->watch_fd;
}

bool target_rings_is_used(const struct target_rings *rings)
{
	return rings->account.processes;
}

bool target_rings_next(
	const struct target_rings *rings, size_t *position, struct target_process *ret_process)
{
	struct ring_file *file;

	if (*position >= rings->files.count)
		return false;
	file = rings->files.items[(*position)++];
	*ret_process = (struct target_process){
		.pid = file->pid,
		.start_time_ns = file->start_time_ns,
		.steps = file->memory ? file->memory->steps : file->left_steps,
		.facts = file->memory ? &file->memory->facts : NULL,
		.guard = &file->guard,
	};
	return true;
}

bool target_rings_is_removed(const struct target_rings *rings)
{
	struct stat status;

	return fstat(rings->folder_fd, &status) == 0 && status.st_nlink == 0;
}

double target_rings_fill(const struct target_rings *rings)
{
	return rings->fullest;
}

static bool is_holding(struct ring_file *file)
{
	bool is_holding;

	map_guard_enter(&file->guard);
	is_holding =
		atomic_load_explicit(&file->memory->held, memory_order_acquire) == WIRE_HELD_SOME;
	map_guard_leave();
	return is_holding && !is_gone(file->pid);
}

unsigned target_rings_holding(const struct target_rings *rings)
{
	unsigned holding = 0;

	array_foreach (&rings->files, file)
		holding += (*file)->memory && is_holding(*file);
	return holding;
}

/* ---- files ---- */

static bool is_known(const struct target_rings *rings, const char *name)
{
	array_foreach (&rings->files, file) {
		if (strcmp((*file)->name, name) == 0)
			return true;
	}
	return false;
}

static bool has_full_size(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	       status.st_size == (off_t)WIRE_RING_FILE_BYTES;
}

static int map_file(struct ring_file *file, int fd, const char *name)
{
	void *memory = mmap(NULL, WIRE_RING_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	snprintf(file->name, sizeof(file->name), "%s", name);
	file->memory = memory;
	file->guard = (struct map_guard){.memory = memory, .bytes = WIRE_RING_FILE_BYTES};
	return 0;
}

enum file_state { FILE_NOT_READY, FILE_OURS, FILE_FOREIGN };

static enum file_state look_at_file(struct ring_file *file)
{
	const struct wire_ring_file *memory = file->memory;
	enum file_state state = FILE_FOREIGN;

	assert(memory);
	map_guard_enter(&file->guard);
	file->pid = memory->pid; /* in its own PID namespace, yet */
	file->pid_namespace = memory->pid_namespace;
	file->start_time_ns = memory->start_time_ns;
	if (!memory->magic)
		state = FILE_NOT_READY;
	else if (memory->magic == WIRE_RING_MAGIC && memory->version == WIRE_RING_VERSION &&
		 memory->ring_count == WIRE_RING_COUNT && memory->ring_bytes == WIRE_RING_BYTES)
		state = FILE_OURS;
	map_guard_leave();
	return state;
}

/* Returns 0, 1 for a file that is not ready yet, or a negative errno. */
static int add_file(struct target_rings *rings, const char *name)
{
	_cleanup_close_ int fd =
		openat(rings->folder_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	enum file_state state = FILE_NOT_READY;
	struct ring_file *file;
	int result;

	if (fd < 0 || !has_full_size(fd))
		return 1;
	file = calloc(1, sizeof(*file));
	result = file ? map_file(file, fd, name) : -ENOMEM;
	if (result == 0)
		state = look_at_file(file);
	if (result == 0 && state != FILE_NOT_READY)
		result = array_append(&rings->files, file);
	if (result < 0 || state == FILE_NOT_READY) {
		if (file)
			unmap_file(file);
		free(file);
		return result < 0 ? result : 1;
	}
	if (state == FILE_FOREIGN) {
		rings->account.refused++;
		unmap_file(file);
	} else {
		file->pid = ring_owner_find(fd, file->pid, file->pid_namespace);
		rings->account.processes++;
	}
	return 0;
}

static bool may_be_new(const struct target_rings *rings, const char *name)
{
	return strncmp(name, WIRE_RING_PREFIX, strlen(WIRE_RING_PREFIX)) == 0 &&
	       rings->files.count < MAX_FILES && !is_known(rings, name);
}

static int search_folder(struct target_rings *rings)
{
	int fd = openat(rings->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!folder) {
		/* Somebody removed it: nothing more comes. Else it is tried again. */
		rings->is_searched = errno == ENOENT;
		closep(&fd);
		return 0;
	}
	rings->is_searched = true;
	while (r >= 0 && (entry = readdir(folder))) {
		if (!may_be_new(rings, entry->d_name))
			continue;
		r = add_file(rings, entry->d_name);
		if (r != 0)
			rings->is_searched = false;
	}
	closedir(folder);
	return MIN(r, 0);
}

/*
 * The folder is read when a file came into it, and as long as one there is not ready. Its time of
 * modification would not do: that is the kernel's tick, in which another file may come after a
 * look.
 */
static int find_files(struct target_rings *rings)
{
	char events[4096];

	if (read(rings->watch_fd, events, sizeof(events)) > 0)
		rings->is_searched = false;
	return rings->is_searched ? 0 : search_folder(rings);
}

uint64_t target_rings_read(struct wire_ring_file *file, uint32_t pid,
	struct wire_ring_cursor *cursors, target_rings_record_function *on_record, void *context,
	uint64_t *damaged)
{
	union {
		struct wire_record record;
		__u64 words[WIRE_LAUNCH_MAX_BYTES / 8];
	} copy;
	uint64_t records = 0;

	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++) {
		uint64_t begin = cursors[i].tail;

		for (uint64_t in_a_row = 0;
			in_a_row < MAX_IN_A_ROW && cursors[i].tail - begin < WIRE_RING_BYTES;
			in_a_row++) {
			enum wire_ring_got got = wire_ring_read(&file->rings[i],
				wire_ring_data(file, i), &cursors[i], &copy, sizeof(copy));

			if (got == WIRE_RING_NOTHING)
				break;
			if (got == WIRE_RING_DAMAGED) {
				(*damaged)++;
				continue;
			}
			records++;
			on_record(context, pid, &copy.record);
		}
	}
	return records;
}

/* Backs it by memory, where there is any. Before Linux 5.14 by reads, of which a page of a file in
 * memory comes, too, and which fail where a fault would end us. */
static bool populate(unsigned char *memory, uint64_t bytes)
{
	char byte;
	struct iovec local = {.iov_base = &byte, .iov_len = 1};

	if (madvise(memory, bytes, MADV_POPULATE_WRITE) == 0)
		return true;
	if (errno != EINVAL)
		return false;
	for (uint64_t at = 0; at < bytes; at += PAGE_BYTES) {
		struct iovec remote = {.iov_base = memory + at, .iov_len = 1};

		if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1)
			return false;
	}
	return true;
}

/* Backed by memory here, so that its owner has no part in it; with no memory it stays as it is. */
static void enlarge(struct wire_ring_file *file, uint32_t ring, uint64_t usable)
{
	if (usable < WIRE_RING_BYTES &&
		populate((unsigned char *)wire_ring_data(file, ring) + usable, usable))
		atomic_store_explicit(
			&file->rings[ring].usable, (__u32)(2 * usable), memory_order_relaxed);
}

static void note_fill(struct target_rings *rings, struct ring_file *file)
{
	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++) {
		struct wire_ring *ring = &file->memory->rings[i];
		uint64_t usable = wire_ring_usable(ring);
		uint64_t waiting = wire_ring_between(ring, file->cursors[i].tail,
			atomic_load_explicit(&ring->head, memory_order_relaxed));
		double share = MIN(1.0, (double)waiting / (double)usable);

		rings->fullest = MAX(rings->fullest, share);
		if (share > LATE_SHARE)
			enlarge(file->memory, i, usable);
	}
}

static void drain_file(struct target_rings *rings, struct ring_file *file,
	target_rings_record_function *on_record, void *context)
{
	bool is_over = is_gone(file->pid);
	uint64_t got;

	map_guard_enter(&file->guard);
	note_fill(rings, file);
	got = target_rings_read(file->memory, file->pid, file->cursors, on_record, context,
		&rings->account.damaged);
	map_guard_leave();
	rings->account.records += got;
	if (file->guard.is_cut) {
		rings->account.damaged++;
		unmap_file(file);
	} else if (is_over && !got) {
		keep_steps(file);
		close_file(rings, file);
	}
}

int target_rings_drain(
	struct target_rings *rings, target_rings_record_function *on_record, void *context)
{
	int result = find_files(rings);

	rings->fullest = 0;
	target_gate_beat(&rings->gate);
	for (size_t i = 0; i < rings->files.count; i++) {
		if (rings->files.items[i]->memory)
			drain_file(rings, rings->files.items[i], on_record, context);
	}
	return result;
}

void target_rings_account(
	const struct target_rings *rings, struct target_rings_account *ret_account)
{
	*ret_account = rings->account;
	array_foreach (&rings->files, file) {
		if ((*file)->memory)
			add_counts(ret_account, *file);
	}
}

size_t target_rings_steps(
	const struct target_rings *rings, struct target_steps *ret_steps, size_t capacity)
{
	struct target_steps steps[MAX_STEP_NAMES];
	size_t count = rings->step_count;

	memcpy(steps, rings->steps, sizeof(steps));
	array_foreach (&rings->files, file) {
		if ((*file)->memory)
			add_steps(*file, steps, &count);
	}
	memcpy(ret_steps, steps, MIN(count, capacity) * sizeof(*steps));
	return count;
}
