/* SPDX-License-Identifier: Apache-2.0 */
/* What devices did, in an export of Nsight Systems: the tables that CUPTI's activities became. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "importers/nsys/state.h"

/* ---- devices ---- */

static int take_gpu(struct nsys *nsys, sqlite3_stmt *row)
{
	const char *name = (const char *)sqlite3_column_text(row, 1);

	if (!name)
		return 0;
	return trace_name_device(nsys->rows.trace, nsys_number(row, 0, 0), name, strlen(name));
}

static int take_ordinal(struct nsys *nsys, sqlite3_stmt *row)
{
	const struct nsys_gpu gpu = {
		.gpu = nsys_number(row, 0, 0),
		.ordinal = nsys_number(row, 1, 0),
		.pid = nsys_number(row, 2, 0),
	};

	return array_append(&nsys->gpus, gpu);
}

int nsys_read_gpus(struct nsys *nsys)
{
	static const char *const gpus[] = {"id", "name", NULL};
	static const char *const ordinals[] = {"gpuId", "cudaId", "pid", NULL};
	int r = nsys_read_table(nsys, "TARGET_INFO_GPU", gpus, take_gpu);

	return r < 0 ? r : nsys_read_table(nsys, "TARGET_INFO_CUDA_DEVICE", ordinals, take_ordinal);
}

/* CUDA_VISIBLE_DEVICES makes every process count its own from 0. */
static int64_t find_gpu(const struct nsys *nsys, int64_t pid, int64_t ordinal)
{
	array_foreach (&nsys->gpus, gpu) {
		if (gpu->pid == pid && gpu->ordinal == ordinal)
			return gpu->gpu;
	}
	return ordinal;
}

/* ---- columns that tables have in common ---- */

/* In this order, behind which each table has its own. */
#define WORK_COLUMNS                                                                               \
	"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"
enum { START, END, DEVICE, CONTEXT, STREAM, CORRELATION, PROCESS, OWN };

static int find_stream(
	struct nsys *nsys, int64_t pid, const struct trace_work *work, uint32_t *ret_track)
{
	struct trace_track track = import_rows_thread(work->device, work->stream);
	uint64_t name;
	char text[64];
	int r;

	track.is_device = true;
	if (map_u64_get(&nsys->processes, (uint64_t)pid, &name))
		track.process_name = (uint32_t)name;
	snprintf(text, sizeof(text), "GPU %lld", (long long)work->device);
	r = import_rows_text(&nsys->rows, text, strlen(text), &track.process_labels);
	if (r < 0)
		return r;
	snprintf(text, sizeof(text), "stream %lld", (long long)work->stream);
	r = import_rows_text(&nsys->rows, text, strlen(text), &track.thread_name);
	return r < 0 ? r : import_rows_track(&nsys->rows, &track, (uint64_t)pid, ret_track);
}

/* What all device work has. A stream of -1 is that of all. */
static int begin_work(
	struct nsys *nsys, sqlite3_stmt *row, struct trace_event *event, struct trace_work *work)
{
	int64_t pid = nsys_pid((uint64_t)nsys_number(row, PROCESS, 0));
	uint64_t correlation = (uint64_t)nsys_number(row, CORRELATION, 0);
	int r = 0;

	*work = trace_no_work;
	nsys_times(row, event);
	work->device = find_gpu(nsys, pid, nsys_number(row, DEVICE, 0));
	work->context = nsys_number(row, CONTEXT, TRACE_NO_NUMBER);
	work->stream = nsys_number(row, STREAM, 0);
	if (work->stream == UINT32_MAX)
		work->stream = -1;
	if (correlation)
		r = import_rows_correlation(
			&nsys->rows, (uint64_t)pid, correlation, &event->correlation);
	return r < 0 ? r : find_stream(nsys, pid, work, &event->track);
}

/* ---- kernels ---- */

static const char *const kernel_columns[] = {WORK_COLUMNS, "demangledName", "shortName",
	"mangledName", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "gridX",
	"gridY", "gridZ", "blockX", "blockY", "blockZ", "graphNodeId", "graphId", NULL};

static int take_kernel(struct nsys *nsys, sqlite3_stmt *row)
{
	struct trace_event event = import_rows_event(&nsys->rows, TRACE_KERNEL);
	struct trace_work work;
	int r = begin_work(nsys, row, &event, &work);

	if (r < 0)
		return r;
	for (int i = 0; !event.name && i < 3; i++)
		event.name = nsys_string(nsys, row, OWN + i);
	work.registers = (uint32_t)nsys_number(row, OWN + 3, 0);
	work.shared_bytes = (uint32_t)(nsys_number(row, OWN + 4, 0) + nsys_number(row, OWN + 5, 0));
	for (int i = 0; i < 3; i++) {
		work.grid[i] = (uint32_t)nsys_number(row, OWN + 6 + i, 0);
		work.block[i] = (uint32_t)nsys_number(row, OWN + 9 + i, 0);
	}
	work.graph_node = (uint64_t)nsys_number(row, OWN + 12, 0);
	work.graph = (uint64_t)nsys_number(row, OWN + 13, 0);
	/* Releases before graphs had ids of their own have those of nodes, with the graph above. */
	if (work.graph_node && !work.graph)
		work.graph = work.graph_node >> 32;
	return import_rows_add_work(&nsys->rows, &event, &work);
}

static const char *const graph_columns[] = {WORK_COLUMNS, "graphId", "graphExecId", NULL};

/* A replay that was recorded as one piece. */
static int take_graph(struct nsys *nsys, sqlite3_stmt *row)
{
	struct trace_event event = import_rows_event(&nsys->rows, TRACE_KERNEL);
	struct trace_work work;
	char name[64];
	int r = begin_work(nsys, row, &event, &work);

	if (r < 0)
		return r;
	work.graph = (uint64_t)nsys_number(row, OWN, 0);
	snprintf(name, sizeof(name), "[CUDA graph %llu]", (unsigned long long)work.graph);
	r = import_rows_text(&nsys->rows, name, strlen(name), &event.name);
	return r < 0 ? r : import_rows_add_work(&nsys->rows, &event, &work);
}

/* ---- copies and fills ---- */

static const char *name_of(const char *const *names, size_t count, int64_t number)
{
	return number >= 0 && number < (int64_t)count && names[number] ? names[number] : "?";
}

static const char *const copy_columns[] = {
	WORK_COLUMNS, "bytes", "copyKind", "srcKind", "dstKind", "graphNodeId", NULL};

/* As Kineto calls them. */
static int take_copy(struct nsys *nsys, sqlite3_stmt *row)
{
	static const char *const directions[] = {"?", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
		"AtoD", "DtoA", "DtoD", "HtoH", "PtoP", "UVM HtoD", "UVM DtoH", "UVM DtoD"};
	static const char *const kinds[] = {"Pageable", "Pinned", "Device", "Array", "Managed",
		"Device Static", "Managed Static"};
	struct trace_event event = import_rows_event(&nsys->rows, TRACE_MEMCPY);
	struct trace_work work;
	char name[96];
	int r = begin_work(nsys, row, &event, &work);

	if (r < 0)
		return r;
	work.bytes = (uint64_t)nsys_number(row, OWN, 0);
	work.graph_node = (uint64_t)nsys_number(row, OWN + 4, 0);
	work.graph = work.graph_node >> 32;
	snprintf(name, sizeof(name), "Memcpy %s (%s -> %s)",
		name_of(directions, ARRAY_SIZE(directions), nsys_number(row, OWN + 1, -1)),
		name_of(kinds, ARRAY_SIZE(kinds), nsys_number(row, OWN + 2, -1)),
		name_of(kinds, ARRAY_SIZE(kinds), nsys_number(row, OWN + 3, -1)));
	r = import_rows_text(&nsys->rows, name, strlen(name), &event.name);
	return r < 0 ? r : import_rows_add_work(&nsys->rows, &event, &work);
}

static const char *const fill_columns[] = {WORK_COLUMNS, "bytes", "graphNodeId", NULL};

static int take_fill(struct nsys *nsys, sqlite3_stmt *row)
{
	static const char name[] = "Memset (Device)";
	struct trace_event event = import_rows_event(&nsys->rows, TRACE_MEMSET);
	struct trace_work work;
	int r = begin_work(nsys, row, &event, &work);

	if (r < 0)
		return r;
	work.bytes = (uint64_t)nsys_number(row, OWN, 0);
	work.graph_node = (uint64_t)nsys_number(row, OWN + 1, 0);
	work.graph = work.graph_node >> 32;
	r = import_rows_text(&nsys->rows, name, strlen(name), &event.name);
	return r < 0 ? r : import_rows_add_work(&nsys->rows, &event, &work);
}

/* ---- waits ---- */

static const char *const event_columns[] = {"deviceId", "contextId", "streamId", "correlationId",
	"globalPid", "eventId", "eventSyncId", NULL};

static bool is_event_sync(int64_t id)
{
	return id > 0 && id != UINT32_MAX;
}

static int take_event(struct nsys *nsys, sqlite3_stmt *row)
{
	struct nsys_event event = {
		.pid = nsys_pid((uint64_t)nsys_number(row, 4, 0)),
		.context = nsys_number(row, 1, 0),
		.id = nsys_number(row, 5, 0),
		.correlation = nsys_number(row, 3, 0),
		.stream = nsys_number(row, 2, 0),
	};
	int64_t event_sync = nsys_number(row, 6, 0);
	int r;

	event.device = find_gpu(nsys, event.pid, nsys_number(row, 0, 0));
	r = array_append(&nsys->events, event);
	if (r < 0 || !is_event_sync(event_sync))
		return r;
	event.context = -1;
	event.id = event_sync;
	return array_append(&nsys->events, event);
}

static int compare_keys(const struct nsys_event *a, const struct nsys_event *b)
{
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static int compare_events(const void *left, const void *right)
{
	const struct nsys_event *a = left, *b = right;
	int order = compare_keys(a, b);

	if (order)
		return order;
	return a->correlation < b->correlation ? -1 : a->correlation > b->correlation;
}

/* The last of its key with a smaller correlation; NULL: there is none. */
static const struct nsys_event *find_event(const struct nsys *nsys, const struct nsys_event *wanted)
{
	const struct nsys_event *items = nsys->events.items;
	size_t first = 0, last = nsys->events.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (compare_events(&items[middle], wanted) < 0)
			first = middle + 1;
		else
			last = middle;
	}
	return first && compare_keys(&items[first - 1], wanted) == 0 ? &items[first - 1] : NULL;
}

static const char *const sync_columns[] = {
	WORK_COLUMNS, "syncType", "eventId", "eventSyncId", NULL};

/* What a wait for an event waits for; without an eventSyncId, as before CUDA 12.8, that is the last
 * record of the event before it. */
static int join_event(struct nsys *nsys, sqlite3_stmt *row, struct trace_work *work)
{
	struct nsys_event wanted = {
		.pid = nsys_pid((uint64_t)nsys_number(row, PROCESS, 0)),
		.context = nsys_number(row, CONTEXT, 0),
		.id = nsys_number(row, OWN + 1, 0),
		.correlation = nsys_number(row, CORRELATION, 0),
	};
	int64_t event_sync = nsys_number(row, OWN + 2, 0);
	const struct nsys_event *event;

	if (is_event_sync(event_sync)) {
		wanted.context = -1;
		wanted.id = event_sync;
		wanted.correlation = INT64_MAX;
	}
	event = find_event(nsys, &wanted);
	if (!event)
		return 0;
	/* Streams have a number on their device. */
	if (event->device == work->device)
		work->wait_stream = event->stream;
	return import_rows_correlation(&nsys->rows, (uint64_t)wanted.pid,
		(uint64_t)event->correlation, &work->wait_correlation);
}

enum { SYNC_EVENT = 1, SYNC_WAIT = 2 };

static int take_sync(struct nsys *nsys, sqlite3_stmt *row)
{
	static const char *const kinds[] = {
		"?", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
	const char *kind = name_of(kinds, ARRAY_SIZE(kinds), nsys_number(row, OWN, -1));
	struct trace_event event = import_rows_event(&nsys->rows, TRACE_SYNC);
	struct trace_work work;
	int r = begin_work(nsys, row, &event, &work);

	if (r < 0)
		return r;
	work.wait_event = nsys_number(row, OWN + 1, TRACE_NO_NUMBER);
	if (nsys_number(row, OWN, 0) == SYNC_EVENT || nsys_number(row, OWN, 0) == SYNC_WAIT)
		r = join_event(nsys, row, &work);
	if (r < 0)
		return r;
	r = import_rows_text(&nsys->rows, kind, strlen(kind), &work.sync_kind);
	event.name = work.sync_kind;
	return r < 0 ? r : import_rows_add_work(&nsys->rows, &event, &work);
}

/* ---- memory ---- */

static const char *const memory_columns[] = {"start", "bytes", "memoryOperationType", "address",
	"memKind", "deviceId", "globalPid", NULL};

/* Kinds 0 and 1 are memory of the host. */
static int take_memory(struct nsys *nsys, sqlite3_stmt *row)
{
	static const char name[] = "[memory]";
	int64_t pid = nsys_pid((uint64_t)nsys_number(row, 6, 0)), kind = nsys_number(row, 4, 2);
	struct trace_event event = import_rows_event(&nsys->rows, TRACE_CPU_INSTANT);
	struct trace_track track = import_rows_thread(pid, TRACE_NO_NUMBER);
	struct trace_memory memory = trace_no_memory;
	int64_t bytes = nsys_number(row, 1, 0);
	int r = import_rows_text(&nsys->rows, "process", strlen("process"), &track.tid_text);

	if (r < 0 || bytes < 0)
		return r;
	track.owner_tid = TRACE_OF_PROCESS;
	event.start_ns = nsys_number(row, 0, 0);
	memory.bytes = nsys_number(row, 2, 0) == 1 ? -bytes : bytes;
	memory.address = (uint64_t)nsys_number(row, 3, 0);
	memory.device_type = kind == 0 || kind == 1 ? 0 : TRACE_DEVICE_CUDA;
	memory.device_id = memory.device_type ? find_gpu(nsys, pid, nsys_number(row, 5, 0)) : 0;
	r = import_rows_text(&nsys->rows, name, strlen(name), &event.name);
	if (r == 0)
		r = import_rows_track(&nsys->rows, &track, 0, &event.track);
	return r < 0 ? r : import_rows_add_memory(&nsys->rows, &event, &memory);
}

int nsys_read_device(struct nsys *nsys)
{
	static const struct {
		const char *name;
		const char *const *columns;
		int (*take)(struct nsys *nsys, sqlite3_stmt *row);
	} tables[] = {
		{"CUPTI_ACTIVITY_KIND_KERNEL", kernel_columns, take_kernel},
		{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", graph_columns, take_graph},
		{"CUPTI_ACTIVITY_KIND_MEMCPY", copy_columns, take_copy},
		{"CUPTI_ACTIVITY_KIND_MEMSET", fill_columns, take_fill},
		{"CUPTI_ACTIVITY_KIND_CUDA_EVENT", event_columns, take_event},
		{"CUDA_GPU_MEMORY_USAGE_EVENTS", memory_columns, take_memory},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(tables); i++)
		r = nsys_read_table(nsys, tables[i].name, tables[i].columns, tables[i].take);
	if (r == 0 && nsys->events.count)
		qsort(nsys->events.items, nsys->events.count, sizeof(*nsys->events.items),
			compare_events);
	return r < 0 ? r
		     : nsys_read_table(nsys, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", sync_columns,
			       take_sync);
}
