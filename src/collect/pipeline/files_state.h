/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the store of files share: files.c has what the main thread asks, file_worker.c
 * the thread that builds tables and symbols. Nothing else includes this.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/array.h"
#include "base/file.h"
#include "collect/pipeline/files.h"
#include "collect/pipeline/process_roots.h"
#include "unwind/build.h"
#include "unwind/function_starts.h"

/* CPU time of the thread for files that take more than their share, all together. */
#define TOTAL_CPU_NS (60 * NS_PER_S)

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

/* Through the kept descriptor, or anew where none was kept. Returns 0 or a negative errno. */
int stored_file_open(const struct stored_file *file, struct elf_file **ret_elf);
/* The thread; the argument is the store. */
void *file_worker(void *argument);
