/* SPDX-License-Identifier: Apache-2.0 */
/* What threads did, in an export of Nsight Systems: calls of CUDA, and ranges of NVTX. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "importers/nsys/state.h"
#include "model/nvtx_operator.h"

static int find_thread(struct nsys *nsys, uint64_t global, struct trace_track *track)
{
	int64_t pid = nsys_pid(global), tid = nsys_tid(global);
	uint64_t name;

	*track = import_rows_thread(pid, tid);
	if (map_u64_get(&nsys->processes, (uint64_t)pid, &name))
		track->process_name = (uint32_t)name;
	if (map_u64_get(&nsys->threads, (uint64_t)pid << NSYS_ID_BITS | (uint64_t)tid, &name))
		track->thread_name = (uint32_t)name;
	return 0;
}

/* ---- calls ---- */

/* "cudaLaunchKernel_v7000" is cudaLaunchKernel: the version is that of the interface. */
static size_t name_length(const char *name)
{
	const char *version = strrchr(name, '_');

	if (!version || version[1] != 'v' || !isdigit((unsigned char)version[2]) ||
		version[2 + strspn(version + 2, "0123456789")])
		return strlen(name);
	return (size_t)(version - name);
}

static int take_call(struct nsys *nsys, sqlite3_stmt *row)
{
	uint64_t global = (uint64_t)nsys_number(row, 2, 0);
	uint64_t correlation = (uint64_t)nsys_number(row, 3, 0);
	const char *name = trace_text(nsys->rows.trace, nsys_string(nsys, row, 4));
	bool is_driver = strncmp(name, "cu", 2) == 0 && isupper((unsigned char)name[2]);
	struct trace_event event =
		import_rows_event(&nsys->rows, is_driver ? TRACE_DRIVER : TRACE_RUNTIME);
	struct trace_track track;
	int r = 0;

	nsys_times(row, &event);
	find_thread(nsys, global, &track);
	if (correlation)
		r = import_rows_correlation(
			&nsys->rows, (uint64_t)nsys_pid(global), correlation, &event.correlation);
	if (r == 0)
		r = import_rows_text(&nsys->rows, name, name_length(name), &event.name);
	if (r == 0)
		r = import_rows_track(&nsys->rows, &track, 0, &event.track);
	return r < 0 ? r : import_rows_add(&nsys->rows, &event);
}

/* ---- NVTX ---- */

enum { NVTX_MARK = 34, NVTX_PUSH_POP = 59, NVTX_START_END = 60, NVTX_DOMAIN = 75 };
enum { START, END, TYPE, TEXT, TEXT_ID, GLOBAL, DOMAIN };
static const char *const nvtx_columns[] = {
	"start", "end", "eventType", "text", "textId", "globalTid", "domainId", NULL};

static int read_text(struct nsys *nsys, sqlite3_stmt *row, uint32_t *ret_string)
{
	const char *text = (const char *)sqlite3_column_text(row, TEXT);

	if (text)
		return import_rows_text(
			&nsys->rows, text, (size_t)sqlite3_column_bytes(row, TEXT), ret_string);
	*ret_string = nsys_string(nsys, row, TEXT_ID);
	return 0;
}

static uint64_t domain_key(sqlite3_stmt *row)
{
	return (uint64_t)nsys_pid((uint64_t)nsys_number(row, GLOBAL, 0)) << 32 |
	       (uint32_t)nsys_number(row, DOMAIN, 0);
}

static int take_domain(struct nsys *nsys, sqlite3_stmt *row)
{
	uint32_t name;
	int r;

	if (nsys_number(row, TYPE, 0) != NVTX_DOMAIN)
		return 0;
	r = read_text(nsys, row, &name);
	return r < 0 ? r : map_u64_set(&nsys->domains, domain_key(row), name);
}

static int take_operator(struct nsys *nsys, struct trace_event *event, const char *name,
	const struct nvtx_operator *marked)
{
	struct trace_op op = trace_no_op;
	int r = import_rows_text(&nsys->rows, name, marked->name_bytes, &event->name);

	event->category = TRACE_CPU_OP;
	event->category_name = nsys->rows.categories[TRACE_CPU_OP];
	if (r == 0 && marked->sizes)
		r = import_rows_text(
			&nsys->rows, marked->sizes, marked->sizes_bytes, &op.input_dims);
	if (r < 0)
		return r;
	return marked->sizes ? import_rows_add_op(&nsys->rows, event, &op)
			     : import_rows_add(&nsys->rows, event);
}

/* Ranges that begin and end by their handle may overlap: they have a line of their own. */
static int find_line(struct nsys *nsys, sqlite3_stmt *row, uint32_t *ret_track)
{
	struct trace_track track;
	char text[48];
	int r = 0;

	find_thread(nsys, (uint64_t)nsys_number(row, GLOBAL, 0), &track);
	if (nsys_number(row, TYPE, 0) == NVTX_START_END) {
		snprintf(text, sizeof(text), "ranges of %lld", (long long)track.tid);
		track.owner_tid = track.tid;
		track.tid = TRACE_NO_NUMBER;
		r = import_rows_text(&nsys->rows, text, strlen(text), &track.tid_text);
	}
	return r < 0 ? r : import_rows_track(&nsys->rows, &track, 0, ret_track);
}

static int take_range(struct nsys *nsys, sqlite3_stmt *row)
{
	int64_t type = nsys_number(row, TYPE, 0);
	struct trace_event event = import_rows_event(&nsys->rows, TRACE_USER_ANNOTATION);
	struct nvtx_operator marked;
	uint64_t domain = 0;
	const char *name;
	int r;

	if (type != NVTX_MARK && type != NVTX_PUSH_POP && type != NVTX_START_END)
		return 0;
	r = read_text(nsys, row, &event.name);
	if (r == 0)
		r = find_line(nsys, row, &event.track);
	if (r < 0)
		return r;
	nsys_times(row, &event);
	if (type == NVTX_MARK)
		event.duration_ns = TRACE_NO_DURATION;
	else if (event.duration_ns == TRACE_NO_DURATION)
		nsys->rows.trace->damage.unended_events++;
	name = trace_text(nsys->rows.trace, event.name);
	if (nvtx_operator_read(name, &marked))
		return take_operator(nsys, &event, name, &marked);
	map_u64_get(&nsys->domains, domain_key(row), &domain);
	return import_rows_add_range(
		&nsys->rows, &event, trace_text(nsys->rows.trace, (uint32_t)domain));
}

int nsys_read_host(struct nsys *nsys)
{
	static const char *const call_columns[] = {
		"start", "end", "globalTid", "correlationId", "nameId", NULL};
	int r = nsys_read_table(nsys, "CUPTI_ACTIVITY_KIND_RUNTIME", call_columns, take_call);

	if (r == 0)
		r = nsys_read_table(nsys, "NVTX_EVENTS", nvtx_columns, take_domain);
	return r < 0 ? r : nsys_read_table(nsys, "NVTX_EVENTS", nvtx_columns, take_range);
}
