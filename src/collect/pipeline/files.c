/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pipeline/files.h"

#include <dirent.h>
#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cache_limit.h"
#include "base/file.h"
#include "collect/pipeline/process_roots.h"
#include "unwind/build.h"
#include "unwind/function_starts.h"

/* Below the target's threads, yet not starved when they keep every CPU busy. */
#define WORKER_NICENESS 5
#define WORKER_BATCH    32
/* More files than this are opened again when they are needed. */
#define MAXIMUM_OPEN_FILES   4096
#define RESERVED_DESCRIPTORS 16
/*
 * CPU time of the thread for one table, or one file's symbols. The largest libraries known take two
 * seconds. What files take beyond a fair share counts against a total, so that a user with many
 * such files cannot keep the thread from the others'.
 */
#define FILE_CPU_NS       (10 * NS_PER_S)
#define FILE_CPU_SHARE_NS (200 * NS_PER_MS)
#define TOTAL_CPU_NS      (60 * NS_PER_S)
/* Of symbols that no cache file holds, all files together. */
#define SYMBOLS_MAX_BYTES ((uint64_t)1 << 30)
/* Functions of libraries have some 300 bytes on average. */
#define CODE_PER_FUNCTION_MAX_BYTES 2048
/* So little is read in a few milliseconds, and the linker's own functions are in its .eh_frame. */
#define CODE_READ_ANYWAY_BYTES ((uint64_t)256 << 10)

/* On disk, of tables and of symbols each: PyTorch has 13 MB of both. */
#define CACHE_MAX_BYTES ((uint64_t)1 << 30)

/* Set by the worker with release order, after the data they stand for. */
enum file_stage {
	STAGE_IDLE, /* nobody asked */
	STAGE_QUEUED,
	STAGE_TABLE, /* the table is there, symbols are coming */
	STAGE_DONE,
	STAGE_ABSENT,
};

struct stored_file {
	struct mapped_file origin; /* a copy, with its own path */
	const char *root;          /* prefix of the path where the process lives */
	/* Kept so that the file outlives its process and its name; -1: unreadable, or too many are
	 * open: then it is opened again each time. */
	int fd;
	bool is_elf;
	bool unreadable, missed; /* it could not be opened; a sample has asked for it */
	uint64_t identity;
	struct build_id build_id;
	struct elf_segment *segments; /* executable ones */
	size_t segment_count;
	_Atomic int stage;
	struct unwind_table table;
	struct symbol_table *symbols;
	struct function_starts starts; /* of a file without symbols whose .eh_frame lacks them */
	struct elf_file *elf; /* opened when function starts are asked for; the main thread's */
};

struct file_store {
	struct source_unwinder unwinder;
	char *cache_tables, *cache_symbols;
	ARRAY_OF(struct stored_file *) files;
	struct process_roots roots;
	size_t open_count, open_limit; /* of the files' descriptors */
	int line_fd;                   /* what file_store_path() opened last */
	struct strbuf line_path;
	int event_fd;
	pthread_t thread;
	bool thread_runs;

	pthread_mutex_t lock; /* what follows */
	pthread_cond_t wake;
	ARRAY_OF(struct stored_file *) queue;
	struct file_store_account account;

	uint64_t cpu_left_ns, symbol_bytes; /* the thread's */
	atomic_bool ending;
};

static struct stored_file *stored(const struct file_store *store, uint32_t index)
{
	return index < store->files.count ? store->files.items[index] : NULL;
}

/* ---- opening ---- */

/* Every process has the same vDSO; ours is at hand. Its image ends with the section headers. */
static int open_vdso(struct elf_file **ret_elf)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);

	if (!header)
		return -ENOENT;
	return elf_file_open_memory(ret_elf, header,
		header->e_shoff + (size_t)header->e_shnum * header->e_shentsize, "[vdso]", NULL);
}

/* Opens through the kept descriptor, or anew where none was kept. */
static int open_elf(const struct stored_file *file, struct elf_file **ret_elf)
{
	_cleanup_close_ int again = -1;

	if (file->origin.kind == MAPPING_VDSO)
		return open_vdso(ret_elf);
	if (file->fd < 0) {
		again = mapped_file_open(&file->origin, NULL);
		if (again < 0)
			return again;
	}
	return elf_file_open_fd(ret_elf, file->fd < 0 ? again : file->fd, file->origin.path, NULL);
}

static int copy_headers(struct stored_file *file, const struct elf_file *elf)
{
	size_t count = elf_file_segment_count(elf);

	file->identity = elf_file_identity(elf);
	file->build_id = *elf_file_build_id(elf);
	file->segments = calloc(count ? count : 1, sizeof(*file->segments));
	if (!file->segments)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);

		if (segment->executable)
			file->segments[file->segment_count++] = *segment;
	}
	file->is_elf = true;
	return 0;
}

/* Opens the file for the first time and learns what it is; the descriptor stays, within bounds. */
static int first_open(struct file_store *store, struct stored_file *file)
{
	_cleanup_elf_file_ struct elf_file *elf = NULL;
	int result;

	if (file->origin.kind == MAPPING_FILE) {
		file->fd = mapped_file_open(&file->origin, NULL);
		file->unreadable = file->fd < 0;
		if (file->unreadable)
			return 0;
		file->root = process_roots_prefix(&store->roots, file->origin.pid);
	}
	result = open_elf(file, &elf) == 0 ? copy_headers(file, elf) : 0;
	if (file->is_elf)
		file->stage = STAGE_IDLE;
	if (file->fd >= 0 && (!file->is_elf || store->open_count >= store->open_limit))
		closep(&file->fd);
	store->open_count += file->fd >= 0;
	return result;
}

int file_store_add(struct file_store *store, const struct mapped_file *mapped)
{
	struct stored_file *file = calloc(1, sizeof(*file));
	int result;

	if (!file)
		return -ENOMEM;
	file->origin = *mapped;
	file->origin.path = strdup(mapped->path);
	file->root = "";
	file->fd = -1;
	file->build_id = mapped->build_id;
	file->stage = STAGE_ABSENT;
	result = file->origin.path ? array_append(&store->files, file) : -ENOMEM;
	if (result < 0) {
		free(file->origin.path);
		free(file);
		return result;
	}
	if (mapped->kind != MAPPING_FILE && mapped->kind != MAPPING_VDSO)
		return 0;
	return first_open(store, file);
}

int file_store_see(struct file_store *store, const struct mapped_file *mapped)
{
	struct stored_file *file = stored(store, mapped->index);

	if (!file || !file->unreadable || file->origin.pid == mapped->pid)
		return 0;
	file->origin.pid = mapped->pid;
	file->origin.start = mapped->start;
	file->origin.end = mapped->end;
	return first_open(store, file);
}

bool file_store_bias(
	const struct file_store *store, const struct mapping *mapping, uint64_t *ret_bias)
{
	const struct stored_file *file = stored(store, mapping->file);

	if (!file || !file->is_elf)
		return false;
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *segment = &file->segments[i];
		uint64_t page_start = segment->file_offset & ~4095ULL;

		/* The kernel maps whole pages: the mapping may begin before the segment does. */
		if (mapping->file_offset < page_start ||
			mapping->file_offset >= segment->file_offset + segment->file_size)
			continue;
		*ret_bias = mapping->start -
			    (segment->vaddr + mapping->file_offset - segment->file_offset);
		return true;
	}
	return false;
}

/* ---- the thread ---- */

static uint64_t thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Opens the file within what the thread may still spend. */
static int open_limited(
	struct file_store *store, const struct stored_file *file, struct elf_file **ret_elf)
{
	struct elf_limits limits = {
		.given_up = &store->ending,
		.cpu_ns = FILE_CPU_SHARE_NS + MIN(FILE_CPU_NS, store->cpu_left_ns),
	};
	int result = open_elf(file, ret_elf);

	if (result == 0)
		elf_file_limit(*ret_elf, &limits);
	return result;
}

static void spend(struct file_store *store, uint64_t since_ns)
{
	uint64_t spent_ns = thread_cpu_ns() - since_ns;

	if (spent_ns > FILE_CPU_SHARE_NS)
		store->cpu_left_ns -= MIN(spent_ns - FILE_CPU_SHARE_NS, store->cpu_left_ns);
}

/* Remembers that a file was too much, and the first as an example. Ending is no such reason. */
static void note_left_out(struct file_store *store, int error, const struct errmsg *reason)
{
	if (error != -EFBIG && error != -ETIME && error != -ESTALE)
		return;
	pthread_mutex_lock(&store->lock);
	if (store->account.left_out++ == 0)
		store->account.left_out_example = *reason;
	pthread_mutex_unlock(&store->lock);
}

static void build_table(struct file_store *store, struct stored_file *file)
{
	_cleanup_elf_file_ struct elf_file *elf = NULL;
	struct unwind_build_stats stats = {0};
	uint64_t start_ns = monotonic_now_ns(), cpu_ns = thread_cpu_ns();
	struct errmsg reason, why = {0};
	int result = open_limited(store, file, &elf);

	if (result == 0)
		result = unwind_table_open(&file->table, elf, store->cache_tables, &stats, &why);
	if (result < 0) {
		file->table = (struct unwind_table){0};
		errmsg_set(&reason, 0, "%s: %s", file->origin.path, why.text);
		note_left_out(store, result, &reason);
	}
	spend(store, cpu_ns);
	pthread_mutex_lock(&store->lock);
	store->account.tables_built += result == 0 && !stats.from_cache;
	store->account.tables_from_cache += result == 0 && stats.from_cache;
	store->account.table_build_ns += monotonic_now_ns() - start_ns;
	pthread_mutex_unlock(&store->lock);
}

/* True when .eh_frame_hdr knows far too few functions for so much code, or none. */
static bool lacks_function_starts(const struct elf_file *elf)
{
	uint64_t vaddr, length, code = 0;
	size_t position = 0;

	if (elf_file_find_section_of_type(elf, SHT_SYMTAB))
		return false;
	while (elf_file_next_code(elf, &position, &vaddr, &length))
		code += MIN(length, elf_file_loaded_length(elf, vaddr));
	return code < CODE_READ_ANYWAY_BYTES ||
	       code / CODE_PER_FUNCTION_MAX_BYTES >= elf_file_function_count(elf);
}

/* Where functions begin in stripped files that were compiled without .eh_frame. */
static int find_function_starts(
	struct stored_file *file, struct elf_file *elf, struct errmsg *ret_reason)
{
	int result = lacks_function_starts(elf) ? function_starts_from_code(&file->starts, elf) : 0;

	if (result < 0)
		errmsg_set(ret_reason, result, "cannot tell the functions of %s apart: %s",
			file->origin.path, elf_file_explain(result));
	return result;
}

static void build_symbols(struct file_store *store, struct stored_file *file)
{
	_cleanup_elf_file_ struct elf_file *elf = NULL;
	uint64_t cpu_ns = thread_cpu_ns(), bytes;
	struct errmsg reason = {0};
	int result = open_limited(store, file, &elf);

	if (result == 0)
		result = symbol_table_open(&file->symbols, elf, file->origin.path, file->root,
			store->cache_symbols, &reason);
	if (result == 0)
		result = find_function_starts(file, elf, &reason);
	bytes = result == 0 ? symbol_table_memory(file->symbols) : 0;
	if (bytes > SYMBOLS_MAX_BYTES - store->symbol_bytes) {
		file->symbols = symbol_table_free(file->symbols);
		result = errmsg_set(&reason, -EFBIG,
			"cannot name the functions of %s: symbols of all files together take more "
			"than %llu MB",
			file->origin.path, (unsigned long long)(SYMBOLS_MAX_BYTES >> 20));
	}
	if (result < 0)
		note_left_out(store, result, &reason);
	else
		store->symbol_bytes += bytes;
	spend(store, cpu_ns);
}

void file_store_announce(struct file_store *store)
{
	uint64_t one = 1;

	/* Only fails when the counter is full: then it is readable anyway. */
	if (write(store->event_fd, &one, sizeof(one)) < 0)
		return;
}

/* A table that the unwinder does not take does no harm: it goes on sending copies of such stacks.
 */
static void hand_over(struct file_store *store, const struct unwinder_table *tables, size_t count)
{
	uint64_t refused = 0;

	if (!store->unwinder.add_tables ||
		store->unwinder.add_tables(store->unwinder.state, tables, count) == 0)
		return;
	for (size_t i = 0; i < count; i++)
		refused += store->unwinder.add_tables(store->unwinder.state, &tables[i], 1) < 0;
	pthread_mutex_lock(&store->lock);
	store->account.tables_refused += refused;
	pthread_mutex_unlock(&store->lock);
}

/* Tables first, for all: samples wait for those; then names. */
static void work_on(struct file_store *store, struct stored_file **files, size_t count)
{
	struct unwinder_table tables[WORKER_BATCH];

	for (size_t i = 0; i < count; i++) {
		if (store->ending)
			return;
		build_table(store, files[i]);
		tables[i] = (struct unwinder_table){
			.file_index = files[i]->origin.index,
			.words = files[i]->table.words,
			.word_count = files[i]->table.word_count,
		};
		atomic_store_explicit(&files[i]->stage, STAGE_TABLE, memory_order_release);
	}
	file_store_announce(store);
	hand_over(store, tables, count);
	for (size_t i = 0; i < count && !store->ending; i++) {
		build_symbols(store, files[i]);
		atomic_store_explicit(&files[i]->stage, STAGE_DONE, memory_order_release);
		file_store_announce(store);
	}
}

/* What a recording has added to, it keeps within its limits. */
static void limit_caches(const struct file_store *store)
{
	if (!store->account.tables_built)
		return;
	if (store->cache_tables)
		cache_limit(store->cache_tables, CACHE_MAX_BYTES);
	if (store->cache_symbols)
		cache_limit(store->cache_symbols, CACHE_MAX_BYTES);
}

static void *worker(void *argument)
{
	struct file_store *store = argument;
	struct stored_file *files[WORKER_BATCH];

	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), WORKER_NICENESS);
	pthread_mutex_lock(&store->lock);
	while (!store->ending) {
		size_t count = MIN(store->queue.count, (size_t)WORKER_BATCH);

		if (!count) {
			pthread_cond_wait(&store->wake, &store->lock);
			continue;
		}
		memcpy(files, store->queue.items, count * sizeof(files[0]));
		store->queue.count -= count;
		memmove(store->queue.items, store->queue.items + count,
			store->queue.count * sizeof(files[0]));
		pthread_mutex_unlock(&store->lock);
		work_on(store, files, count);
		pthread_mutex_lock(&store->lock);
	}
	pthread_mutex_unlock(&store->lock);
	limit_caches(store);
	return NULL;
}

static void request(struct file_store *store, struct stored_file *file)
{
	int idle = STAGE_IDLE;

	if (!atomic_compare_exchange_strong(&file->stage, &idle, STAGE_QUEUED))
		return;
	pthread_mutex_lock(&store->lock);
	if (array_append(&store->queue, file) < 0)
		file->stage = STAGE_ABSENT;
	pthread_cond_signal(&store->wake);
	pthread_mutex_unlock(&store->lock);
}

/* ---- asking ---- */

/* Remembers, once, that a sample met a file that could not be read; the first is the example. */
static void note_missed(struct file_store *store, struct stored_file *file)
{
	if (!file || !file->unreadable || file->missed)
		return;
	file->missed = true;
	pthread_mutex_lock(&store->lock);
	if (store->account.unreadable++ == 0)
		mapped_file_explain(&file->origin, &store->account.unreadable_example);
	pthread_mutex_unlock(&store->lock);
}

enum file_readiness file_store_table(struct file_store *store, uint32_t index,
	const uint64_t **ret_words, uint64_t *ret_word_count)
{
	struct stored_file *file = stored(store, index);
	int stage = file ? atomic_load_explicit(&file->stage, memory_order_acquire) : STAGE_ABSENT;

	if (stage == STAGE_IDLE)
		request(store, file);
	if (stage == STAGE_ABSENT) {
		note_missed(store, file);
		return FILE_ABSENT;
	}
	if (stage < STAGE_TABLE)
		return FILE_PENDING;
	if (!file->table.words)
		return FILE_ABSENT;
	*ret_words = file->table.words;
	*ret_word_count = file->table.word_count;
	return FILE_READY;
}

enum file_readiness file_store_symbols(
	struct file_store *store, uint32_t index, const struct symbol_table **ret_symbols)
{
	struct stored_file *file = stored(store, index);
	int stage = file ? atomic_load_explicit(&file->stage, memory_order_acquire) : STAGE_ABSENT;

	if (stage == STAGE_IDLE)
		request(store, file);
	if (stage == STAGE_ABSENT) {
		note_missed(store, file);
		return FILE_ABSENT;
	}
	if (stage < STAGE_DONE)
		return FILE_PENDING;
	if (!file->symbols)
		return FILE_ABSENT;
	*ret_symbols = file->symbols;
	return FILE_READY;
}

bool file_store_function_start(
	struct file_store *store, uint32_t index, uint64_t vaddr, uint64_t *ret_start)
{
	struct stored_file *file = stored(store, index);
	uint64_t start;
	bool found;

	if (!file || !file->is_elf)
		return false;
	if (!file->elf) {
		if (open_elf(file, &file->elf) < 0)
			return false;
		store->open_count++;
	}
	found = elf_file_function_start(file->elf, vaddr, ret_start);
	if (found && elf_file_function_covers(file->elf, vaddr))
		return true;
	if (atomic_load_explicit(&file->stage, memory_order_acquire) == STAGE_DONE &&
		function_starts_before(&file->starts, vaddr, &start) &&
		(!found || start > *ret_start)) {
		*ret_start = start;
		found = true;
	}
	return found;
}

int file_store_open_elf(const struct file_store *store, uint32_t index, struct elf_file **ret_elf)
{
	const struct stored_file *file = stored(store, index);

	return file && file->is_elf ? open_elf(file, ret_elf) : -ENOENT;
}

const struct build_id *file_store_build_id(const struct file_store *store, uint32_t index)
{
	static const struct build_id none;
	const struct stored_file *file = stored(store, index);

	return file ? &file->build_id : &none;
}

/* True when the path leads to the file behind the descriptor. */
static bool leads_to(const char *path, int fd)
{
	struct stat named, opened;

	return stat(path, &named) == 0 && fstat(fd, &opened) == 0 &&
	       named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

const char *file_store_path(struct file_store *store, uint32_t index, const char **ret_root)
{
	const struct stored_file *file = stored(store, index);
	struct strbuf *path = &store->line_path;
	int fd;

	if (!file || !file->is_elf || file->origin.kind != MAPPING_FILE)
		return NULL;
	closep(&store->line_fd);
	if (file->fd < 0)
		store->line_fd = mapped_file_open(&file->origin, NULL);
	fd = file->fd < 0 ? store->line_fd : file->fd;
	if (fd < 0)
		return NULL;
	*ret_root = file->root;
	strbuf_clear(path);
	strbuf_addf(path, "%s%s", file->root, file->origin.path);
	if (strbuf_status(path) == 0 && !leads_to(path->data, fd)) {
		strbuf_clear(path);
		strbuf_addf(path, "/proc/self/fd/%d", fd);
	}
	return strbuf_status(path) < 0 ? NULL : strbuf_cstr(path);
}

int file_store_descriptor(const struct file_store *store)
{
	return store->event_fd;
}

void file_store_acknowledge(struct file_store *store)
{
	uint64_t count;

	if (read(store->event_fd, &count, sizeof(count)) < 0)
		return; /* nothing was announced */
}

void file_store_account(struct file_store *store, struct file_store_account *ret_account)
{
	pthread_mutex_lock(&store->lock);
	*ret_account = store->account;
	pthread_mutex_unlock(&store->lock);
}

/* ---- life ---- */

static size_t count_open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

/* What the limit leaves when the events of each CPU and what is opened for a moment have room. */
static size_t open_limit(void)
{
	size_t taken = count_open_descriptors() + RESERVED_DESCRIPTORS +
		       2 * (size_t)MAX(sysconf(_SC_NPROCESSORS_CONF), 1L);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= taken)
		return 0;
	return MIN((size_t)limit.rlim_cur - taken, (size_t)MAXIMUM_OPEN_FILES);
}

int file_store_new(
	struct file_store **ret_store, const struct source_unwinder *unwinder, struct errmsg *err)
{
	struct file_store *store = calloc(1, sizeof(*store));
	int result;

	if (!store)
		return -ENOMEM;
	if (unwinder)
		store->unwinder = *unwinder;
	store->open_limit = open_limit();
	store->line_fd = -1;
	store->cpu_left_ns = TOTAL_CPU_NS;
	pthread_mutex_init(&store->lock, NULL);
	pthread_cond_init(&store->wake, NULL);
	store->cache_tables = cache_directory("unwind");
	store->cache_symbols = cache_directory("symbols");
	store->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	result =
		store->event_fd < 0 ? -errno : -pthread_create(&store->thread, NULL, worker, store);
	store->thread_runs = result == 0;
	if (result < 0) {
		file_store_free(store);
		return errmsg_set(err, result, "cannot start the table-building thread: %s",
			strerror(-result));
	}
	*ret_store = store;
	return 0;
}

static void stored_file_free(struct stored_file *file)
{
	closep(&file->fd);
	unwind_table_done(&file->table);
	symbol_table_free(file->symbols);
	function_starts_done(&file->starts);
	elf_file_free(file->elf);
	free(file->segments);
	free(file->origin.path);
	free(file);
}

struct file_store *file_store_free(struct file_store *store)
{
	if (!store)
		return NULL;
	if (store->thread_runs) {
		pthread_mutex_lock(&store->lock);
		store->ending = true;
		pthread_cond_signal(&store->wake);
		pthread_mutex_unlock(&store->lock);
		pthread_join(store->thread, NULL);
	}
	array_foreach (&store->files, file)
		stored_file_free(*file);
	array_done(&store->files);
	array_done(&store->queue);
	process_roots_done(&store->roots);
	strbuf_done(&store->line_path);
	closep(&store->line_fd);
	closep(&store->event_fd);
	free(store->cache_tables);
	free(store->cache_symbols);
	pthread_cond_destroy(&store->wake);
	pthread_mutex_destroy(&store->lock);
	free(store);
	return NULL;
}
