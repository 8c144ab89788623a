/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports of Nsight Systems as SQLite databases (`nsys export --type sqlite`), of every release:
 * which tables and columns there are is seen from the file. A row of a table becomes one of the
 * trace; times count from the start of the session.
 */
#include <errno.h>
#include <string.h>

#include "importers/importers.h"
#include "importers/nsys/state.h"

/* ---- for all tables ---- */

uint32_t nsys_string(const struct nsys *nsys, sqlite3_stmt *statement, int column)
{
	uint64_t string = 0;

	map_u64_get(&nsys->strings, (uint64_t)nsys_number(statement, column, -1), &string);
	return (uint32_t)string;
}

void nsys_times(sqlite3_stmt *row, struct trace_event *event)
{
	event->start_ns = nsys_number(row, 0, 0);
	if (sqlite3_column_type(row, 1) == SQLITE_NULL)
		return;
	if (__builtin_sub_overflow(nsys_number(row, 1, 0), event->start_ns, &event->duration_ns) ||
		event->duration_ns < 0)
		event->duration_ns = -1; /* counted as repaired */
}

int nsys_read_table(struct nsys *nsys, const char *table, const char *const *columns,
	int (*take)(struct nsys *nsys, sqlite3_stmt *row))
{
	_cleanup_statement_ sqlite3_stmt *statement = NULL;
	int r = nsys_select(&nsys->database, table, columns, &statement);

	while (r >= 0 && statement && (r = nsys_next(&nsys->database, statement)) > 0) {
		r = take(nsys, statement);
		if (r < 0)
			return r;
	}
	return r;
}

/* ---- names ---- */

static int take_string(struct nsys *nsys, sqlite3_stmt *row)
{
	const char *text = (const char *)sqlite3_column_text(row, 1);
	uint32_t string = 0;
	int r = 0;

	if (text)
		r = import_rows_text(
			&nsys->rows, text, (size_t)sqlite3_column_bytes(row, 1), &string);
	return r < 0 ? r : map_u64_set(&nsys->strings, (uint64_t)nsys_number(row, 0, 0), string);
}

static int take_process(struct nsys *nsys, sqlite3_stmt *row)
{
	const char *text = (const char *)sqlite3_column_text(row, 1);
	uint32_t string;
	int r;

	if (!text)
		return 0;
	text = strrchr(text, '/') ? strrchr(text, '/') + 1 : text;
	r = import_rows_text(&nsys->rows, text, strlen(text), &string);
	return r < 0 ? r
		     : map_u64_set(&nsys->processes,
			       (uint64_t)nsys_pid((uint64_t)nsys_number(row, 0, 0)), string);
}

static int take_thread(struct nsys *nsys, sqlite3_stmt *row)
{
	uint64_t global = (uint64_t)nsys_number(row, 0, 0);

	return map_u64_set(&nsys->threads, global & ((1ULL << 2 * NSYS_ID_BITS) - 1),
		nsys_string(nsys, row, 1));
}

static int take_start(struct nsys *nsys, sqlite3_stmt *row)
{
	int64_t start_ns = nsys_number(row, 0, 0);

	nsys->rows.trace->base_ns = start_ns > 0 ? (uint64_t)start_ns : 0;
	return 0;
}

static int read_names(struct nsys *nsys)
{
	static const char *const strings[] = {"id", "value", NULL};
	static const char *const processes[] = {"globalPid", "name", NULL};
	static const char *const threads[] = {"globalTid", "nameId", NULL};
	static const char *const start[] = {"utcEpochNs", NULL};
	int r = nsys_read_table(nsys, "StringIds", strings, take_string);

	if (r == 0)
		r = nsys_read_table(nsys, "PROCESSES", processes, take_process);
	if (r == 0)
		r = nsys_read_table(nsys, "ThreadNames", threads, take_thread);
	if (r == 0)
		r = nsys_read_table(nsys, "TARGET_INFO_SESSION_START_TIME", start, take_start);
	return r < 0 ? r : nsys_read_gpus(nsys);
}

/* ---- what is left out ---- */

static int note_left_out(struct nsys *nsys)
{
	static const struct {
		const char *table, *what;
	} tables[] = {
		{"COMPOSITE_EVENTS", "samples of the CPU"},
		{"SCHED_EVENTS", "switches of threads"},
		{"OSRT_API", "calls of the C library"},
		{"GPU_METRICS", "values of the GPU's counters"},
		{"CUDA_UM_CPU_PAGE_FAULT_EVENTS", "page faults of managed memory"},
		{"CUBLAS_EVENTS", "calls of cuBLAS"},
		{"CUDNN_EVENTS", "calls of cuDNN"},
		{"MPI_COLLECTIVES_EVENTS", "collectives of MPI"},
	};
	_cleanup_strbuf_ struct strbuf what = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(tables); i++) {
		uint64_t count = 0;

		r = nsys_count(&nsys->database, tables[i].table, &count);
		if (count)
			strbuf_addf(&what, "%s%llu %s", what.length ? ", " : "",
				(unsigned long long)count, tables[i].what);
	}
	if (r == 0)
		r = strbuf_status(&what);
	if (r < 0 || !what.length)
		return r;
	return import_rows_note(&nsys->rows, "left out, sonde has no rows for them: %s", what.data);
}

/* ---- all of it ---- */

static int read_all(struct nsys *nsys)
{
	int r = read_names(nsys);

	if (r == 0)
		r = nsys_read_device(nsys);
	if (r == 0)
		r = nsys_read_host(nsys);
	if (r == 0)
		r = note_left_out(nsys);
	/* What was read before is shown. */
	if (r == -EBADMSG && nsys->rows.trace->events.count) {
		nsys->rows.trace->damage.truncated = true;
		r = 0;
	}
	return r;
}

static void nsys_done(struct nsys *nsys)
{
	nsys_database_close(&nsys->database);
	import_rows_done(&nsys->rows);
	map_u64_done(&nsys->strings);
	map_u64_done(&nsys->processes);
	map_u64_done(&nsys->threads);
	map_u64_done(&nsys->domains);
	array_done(&nsys->gpus);
	array_done(&nsys->events);
}

static int nsys_read(struct trace **ret_trace, const char *path,
	const struct trace_read_options *options, struct errmsg *err)
{
	_cleanup_(nsys_done) struct nsys nsys = {0};
	int r = nsys_database_open(&nsys.database, path, err);

	if (r < 0)
		return r;
	r = import_rows_init(&nsys.rows, path, options);
	if (r == 0)
		r = read_all(&nsys);
	if (r == -EBADMSG || r == -EIO)
		return errmsg_set(err, r,
			"cannot read %s: the SQLite database is damaged or cut off; export it "
			"again with `nsys export --type sqlite`",
			path);
	return import_rows_finish(&nsys.rows, r,
		"it is an SQLite database without work of a device, calls of CUDA and ranges, "
		"which an export of Nsight Systems would have; rocpd reads that of rocprofv3, "
		"`sonde runs --store FILE` runs that sonde has stored",
		ret_trace, err);
}

static bool nsys_knows(const char *head, size_t length)
{
	static const char magic[] = "SQLite format 3";

	return length >= sizeof(magic) && memcmp(head, magic, sizeof(magic)) == 0;
}

static const char *const endings[] = {".sqlite", NULL};

const struct importer nsys_importer = {
	.name = "nsys",
	.description = "exports of Nsight Systems as SQLite",
	.endings = endings,
	.knows = nsys_knows,
	.read = nsys_read,
};
