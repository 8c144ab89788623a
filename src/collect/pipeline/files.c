/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/pipeline/files_state.h"

/* More files than this are opened again when they are needed. */
#define MAXIMUM_OPEN_FILES   4096
#define RESERVED_DESCRIPTORS 16

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

int stored_file_open(const struct stored_file *file, struct elf_file **ret_elf)
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
	result = stored_file_open(file, &elf) == 0 ? copy_headers(file, elf) : 0;
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
		if (stored_file_open(file, &file->elf) < 0)
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

	return file && file->is_elf ? stored_file_open(file, ret_elf) : -ENOENT;
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
	result = store->event_fd < 0 ? -errno
				     : -pthread_create(&store->thread, NULL, file_worker, store);
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
