/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/target/target_rings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "sources/target/ring_owner.h"

/* Files of one session; a runaway program must not take all of our memory. */
#define MAX_FILES 4096
/* Records of one ring that are taken in a row: its owner may write faster than we read. */
#define MAX_IN_A_ROW  (4 * WIRE_RING_BYTES / sizeof(struct wire_record))
#define FOLDER_BYTES  512
#define FOLDER_PREFIX "sonde-"

struct ring_file {
	char name[NAME_MAX + 1];
	int fd;
	uint32_t pid;                  /* in our PID namespace */
	struct wire_ring_file *memory; /* NULL: its owner is done, or it was refused */
	struct wire_ring_cursor cursors[WIRE_RING_COUNT];
};

struct target_rings {
	char folder[FOLDER_BYTES];
	int folder_fd, watch_fd;
	int gate_fd; /* locked as long as we live */
	struct wire_gate *gate;
	ARRAY_OF(struct ring_file *) files;
	struct target_rings_account account;
	bool is_over;     /* the gate stays closed */
	uint64_t fullest; /* bytes that waited in one ring at the last drain */
};

static bool is_gone(uint32_t pid)
{
	return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

/* ---- the folder ---- */

/* Whatever is in the folder: processes may have made more than we looked at. */
static void empty_folder(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	if (!folder) {
		closep(&copy);
		return;
	}
	while ((entry = readdir(folder)))
		unlinkat(fd, entry->d_name, 0);
	closedir(folder);
}

/* Of a sonde that was killed: nobody holds its gate's lock any more. */
static void remove_if_left(int base_fd, const char *name)
{
	_cleanup_close_ int fd =
		openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_close_ int gate_fd = -1;
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 || status.st_uid != geteuid())
		return;
	gate_fd = openat(fd, WIRE_GATE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (gate_fd < 0 || flock(gate_fd, LOCK_EX | LOCK_NB) < 0)
		return;
	empty_folder(fd);
	unlinkat(base_fd, name, AT_REMOVEDIR);
}

static void remove_left_folders(const char *base)
{
	int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!folder) {
		closep(&fd);
		return;
	}
	while ((entry = readdir(folder))) {
		if (strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)) == 0)
			remove_if_left(dirfd(folder), entry->d_name);
	}
	closedir(folder);
}

/* Memory, not a disk, and this user's alone. */
static int make_folder(struct target_rings *rings, struct errmsg *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	const char *const bases[] = {"/dev/shm", runtime, "/tmp"};
	int error = ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(bases); i++) {
		if (!bases[i] || bases[i][0] != '/' ||
			(size_t)snprintf(rings->folder, sizeof(rings->folder),
				"%s/" FOLDER_PREFIX "%d-XXXXXX", bases[i],
				(int)getpid()) >= sizeof(rings->folder))
			continue;
		remove_left_folders(bases[i]);
		if (mkdtemp(rings->folder)) {
			rings->folder_fd = open(rings->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			return rings->folder_fd < 0 ? -errno : 0;
		}
		error = errno;
	}
	rings->folder[0] = '\0';
	return errmsg_set(err, -error,
		"device work is not recorded: cannot make a folder in /dev/shm or /tmp: %s",
		strerror(error));
}

/* It has its name only when it is locked, since remove_if_left() may come by. */
static int make_gate(struct target_rings *rings, enum wire_graph_mode graph_mode)
{
	static const char unfinished[] = WIRE_GATE_NAME ".new";
	int fd = openat(rings->folder_fd, unfinished, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	void *memory;

	rings->gate_fd = fd;
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ||
		ftruncate(fd, sizeof(struct wire_gate)) < 0)
		return -errno;
	memory = mmap(NULL, sizeof(struct wire_gate), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	rings->gate = memory;
	rings->gate->version = WIRE_RING_VERSION;
	rings->gate->collector_pid = (uint32_t)getpid();
	rings->gate->graph_mode = (__u8)graph_mode;
	atomic_store(&rings->gate->heartbeat_ns, monotonic_now_ns());
	rings->gate->magic = WIRE_GATE_MAGIC;
	atomic_store(&rings->gate->state, WIRE_GATE_OPEN);
	return renameat(rings->folder_fd, unfinished, rings->folder_fd, WIRE_GATE_NAME) < 0 ? -errno
											    : 0;
}

static int watch_folder(struct target_rings *rings)
{
	rings->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (rings->watch_fd < 0 || inotify_add_watch(rings->watch_fd, rings->folder, IN_CREATE) < 0)
		return -errno;
	return 0;
}

int target_rings_open(
	struct target_rings **ret_rings, enum wire_graph_mode graph_mode, struct errmsg *err)
{
	struct target_rings *rings = calloc(1, sizeof(*rings));
	int result;

	if (!rings)
		return -ENOMEM;
	rings->folder_fd = rings->watch_fd = rings->gate_fd = -1;
	result = make_folder(rings, err);
	if (result == 0) {
		result = make_gate(rings, graph_mode);
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

static void close_file(struct target_rings *rings, struct ring_file *file)
{
	struct wire_ring_file *memory = file->memory;

	if (!memory)
		return;
	rings->account.no_ring += atomic_load(&memory->no_ring);
	rings->account.no_context += atomic_load(&memory->no_context);
	rings->account.no_range += atomic_load(&memory->no_range);
	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++)
		rings->account.lost += atomic_load(&memory->rings[i].lost);
	munmap(memory, WIRE_RING_FILE_BYTES);
	file->memory = NULL;
	closep(&file->fd);
	unlinkat(rings->folder_fd, file->name, 0);
}

struct target_rings *target_rings_free(struct target_rings *rings)
{
	if (!rings)
		return NULL;
	target_rings_close_gate(rings);
	array_foreach (&rings->files, file) {
		close_file(rings, *file);
		free(*file);
	}
	array_done(&rings->files);
	if (rings->folder_fd >= 0) {
		empty_folder(rings->folder_fd);
		rmdir(rings->folder);
	}
	closep(&rings->folder_fd);
	closep(&rings->gate_fd);
	if (rings->gate)
		munmap(rings->gate, sizeof(*rings->gate));
	closep(&rings->watch_fd);
	free(rings);
	return NULL;
}

const char *target_rings_folder(const struct target_rings *rings)
{
	return rings->folder;
}

int target_rings_descriptor(const struct target_rings *rings)
{
	return rings->watch_fd;
}

bool target_rings_is_used(const struct target_rings *rings)
{
	return rings->account.processes;
}

bool target_rings_next_pid(const struct target_rings *rings, size_t *position, uint32_t *ret_pid)
{
	if (*position >= rings->files.count)
		return false;
	*ret_pid = rings->files.items[(*position)++]->pid;
	return true;
}

void target_rings_set_ready(struct target_rings *rings)
{
	atomic_store_explicit(&rings->gate->is_ready, 1, memory_order_release);
}

bool target_rings_is_removed(const struct target_rings *rings)
{
	struct stat status;

	return fstat(rings->folder_fd, &status) == 0 && status.st_nlink == 0;
}

double target_rings_fill(const struct target_rings *rings)
{
	return (double)rings->fullest / WIRE_RING_BYTES;
}

void target_rings_drain_gate(struct target_rings *rings)
{
	rings->is_over = true;
	atomic_store(&rings->gate->state, WIRE_GATE_DRAINING);
}

unsigned target_rings_holding(const struct target_rings *rings)
{
	unsigned holding = 0;

	array_foreach (&rings->files, file) {
		if ((*file)->memory && atomic_load_explicit(&(*file)->memory->held,
					       memory_order_acquire) == WIRE_HELD_SOME)
			holding += !is_gone((*file)->pid);
	}
	return holding;
}

void target_rings_close_gate(struct target_rings *rings)
{
	rings->is_over = true;
	if (rings->gate)
		atomic_store(&rings->gate->state, WIRE_GATE_CLOSED);
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

/* 0 also for a file that is not ready yet, which is looked at again. */
static int add_file(struct target_rings *rings, const char *name)
{
	_cleanup_close_ int fd =
		openat(rings->folder_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct wire_ring_file *memory;
	struct ring_file *file;
	bool is_ready;

	if (fd < 0 || !has_full_size(fd))
		return 0;
	memory = mmap(NULL, WIRE_RING_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	is_ready = memory->magic;
	file = is_ready ? calloc(1, sizeof(*file)) : NULL;
	if (!file || array_append(&rings->files, file) < 0) {
		munmap(memory, WIRE_RING_FILE_BYTES);
		free(file);
		return is_ready ? -ENOMEM : 0;
	}
	snprintf(file->name, sizeof(file->name), "%s", name);
	file->fd = TAKE_FD(fd);
	file->memory = memory;
	file->pid = ring_owner_find(file->fd, memory->pid);
	if (memory->magic != WIRE_RING_MAGIC || memory->version != WIRE_RING_VERSION ||
		memory->ring_count != WIRE_RING_COUNT || memory->ring_bytes != WIRE_RING_BYTES) {
		rings->account.refused++;
		munmap(memory, WIRE_RING_FILE_BYTES);
		file->memory = NULL;
		closep(&file->fd);
		return 0;
	}
	rings->account.processes++;
	return 0;
}

static int find_files(struct target_rings *rings)
{
	int fd = openat(rings->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char events[4096];
	int result = 0;

	if (!folder) {
		closep(&fd);
		return 0; /* somebody removed it: nothing more comes */
	}
	while (read(rings->watch_fd, events, sizeof(events)) > 0)
		;
	while (result == 0 && (entry = readdir(folder))) {
		if (strncmp(entry->d_name, WIRE_RING_PREFIX, strlen(WIRE_RING_PREFIX)) == 0 &&
			rings->files.count < MAX_FILES && !is_known(rings, entry->d_name))
			result = add_file(rings, entry->d_name);
	}
	closedir(folder);
	return result;
}

uint64_t target_rings_read(struct wire_ring_file *file, uint32_t pid,
	struct wire_ring_cursor *cursors, target_rings_record_function *on_record, void *context,
	uint64_t *damaged)
{
	union {
		struct wire_record record;
		__u64 words[WIRE_DEVICE_MAX_BYTES / 8];
	} copy;
	uint64_t records = 0;

	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++) {
		for (uint64_t in_a_row = 0; in_a_row < MAX_IN_A_ROW; in_a_row++) {
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

static void note_fill(struct target_rings *rings, const struct ring_file *file)
{
	for (uint32_t i = 0; i < WIRE_RING_COUNT; i++) {
		uint64_t waiting =
			atomic_load_explicit(&file->memory->rings[i].head, memory_order_relaxed) -
			file->cursors[i].tail;

		rings->fullest = MAX(rings->fullest, MIN(waiting, (uint64_t)WIRE_RING_BYTES));
	}
}

int target_rings_drain(
	struct target_rings *rings, target_rings_record_function *on_record, void *context)
{
	int result = find_files(rings);

	rings->fullest = 0;
	/* A process with a full ring may have taken a slow flush for our death. */
	if (!rings->is_over)
		atomic_store_explicit(&rings->gate->state, WIRE_GATE_OPEN, memory_order_relaxed);
	atomic_store_explicit(&rings->gate->heartbeat_ns, monotonic_now_ns(), memory_order_relaxed);
	for (size_t i = 0; i < rings->files.count; i++) {
		struct ring_file *file = rings->files.items[i];
		bool is_over;
		uint64_t got;

		if (!file->memory)
			continue;
		/* A process that cuts its file would have us read beyond its end. */
		if (!has_full_size(file->fd)) {
			rings->account.damaged++;
			munmap(file->memory, WIRE_RING_FILE_BYTES);
			file->memory = NULL;
			closep(&file->fd);
			continue;
		}
		is_over = is_gone(file->pid);
		note_fill(rings, file);
		got = target_rings_read(file->memory, file->pid, file->cursors, on_record, context,
			&rings->account.damaged);
		rings->account.records += got;
		if (is_over && !got)
			close_file(rings, file);
	}
	return result;
}

void target_rings_account(
	const struct target_rings *rings, struct target_rings_account *ret_account)
{
	*ret_account = rings->account;
	array_foreach (&rings->files, file) {
		struct wire_ring_file *memory = (*file)->memory;

		if (!memory)
			continue;
		ret_account->no_ring += atomic_load(&memory->no_ring);
		ret_account->no_context += atomic_load(&memory->no_context);
		ret_account->no_range += atomic_load(&memory->no_range);
		for (uint32_t i = 0; i < WIRE_RING_COUNT; i++)
			ret_account->lost += atomic_load(&memory->rings[i].lost);
	}
}
