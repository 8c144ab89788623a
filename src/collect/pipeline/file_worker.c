/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that builds unwind tables and symbols, within limits of time and memory. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cache_limit.h"
#include "collect/pipeline/files_state.h"

/* Below the target's threads, yet not starved when they keep every CPU busy. */
#define WORKER_NICENESS 5
#define WORKER_BATCH    32
/*
 * CPU time of the thread for one table, or one file's symbols. The largest libraries known take two
 * seconds. What files take beyond a fair share counts against a total, so that a user with many
 * such files cannot keep the thread from the others'.
 */
#define FILE_CPU_NS       (10 * NS_PER_S)
#define FILE_CPU_SHARE_NS (200 * NS_PER_MS)
/* Of symbols that no cache file holds, all files together. */
#define SYMBOLS_MAX_BYTES ((uint64_t)1 << 30)
/* Functions of libraries have some 300 bytes on average. */
#define CODE_PER_FUNCTION_MAX_BYTES 2048
/* So little is read in a few milliseconds, and the linker's own functions are in its .eh_frame. */
#define CODE_READ_ANYWAY_BYTES ((uint64_t)256 << 10)

/* On disk, of tables and of symbols each: PyTorch has 13 MB of both. */
#define CACHE_MAX_BYTES ((uint64_t)1 << 30)

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
	int result = stored_file_open(file, ret_elf);

	if (result == 0)
		elf_file_limit(*ret_elf, &limits);
	return result;
}

static void spend(struct file_store *store, uint64_t since_ns)
{
	uint64_t now_ns = thread_cpu_ns(), spent_ns = now_ns - since_ns;

	pthread_mutex_lock(&store->lock);
	store->account.cpu_ns = now_ns;
	pthread_mutex_unlock(&store->lock);
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
		errmsg_set(ret_reason, result, "cannot identify the functions of %s: %s",
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

void *file_worker(void *argument)
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
