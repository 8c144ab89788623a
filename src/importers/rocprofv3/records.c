/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a result of rocprofv3 as rows. */
#include <stdio.h>
#include <string.h>

#include "importers/rocprofv3/state.h"

/* What each record may have. */
enum {
	KIND,
	OPERATION,
	THREAD,
	CORRELATION,
	BEGIN,
	END,
	DISPATCH,
	STREAM,
	DESTINATION,
	SOURCE,
	BYTES,
	AGENT,
	ADDRESS,
	SIZE,
	MEMBER_MAX,
};
static const char *const members[] = {"kind", "operation", "thread_id", "correlation_id",
	"start_timestamp", "end_timestamp", "dispatch_info", "stream_id", "dst_agent_id",
	"src_agent_id", "bytes", "agent_id", "address", "allocation_size", NULL};

struct record {
	struct json_text values[MEMBER_MAX];
	uint64_t kind, operation;
};

/* {"handle": 7} */
static uint64_t handle_of(const struct json_text *value)
{
	struct json_text handle = json_part_member(value, "handle");

	return json_part_u64(&handle, json_part_u64(value, 0));
}

static int begin_row(
	struct rocprof *rocprof, const struct record *record, struct trace_event *event)
{
	struct json_text internal = json_part_member(&record->values[CORRELATION], "internal");
	uint64_t correlation = json_part_u64(&internal, 0);
	int64_t end_ns = json_part_i64(&record->values[END], 0);

	event->start_ns = json_part_i64(&record->values[BEGIN], 0);
	if (__builtin_sub_overflow(end_ns, event->start_ns, &event->duration_ns) ||
		event->duration_ns < 0)
		event->duration_ns = -1; /* counted as repaired */
	if (!correlation)
		return 0;
	return import_rows_correlation(
		rocprof->rows, (uint64_t)rocprof->pid, correlation, &event->correlation);
}

/* ---- threads ---- */

static int find_thread(struct rocprof *rocprof, const struct record *record, uint32_t *ret_track)
{
	struct trace_track track = import_rows_thread(
		rocprof->pid, json_part_i64(&record->values[THREAD], TRACE_NO_NUMBER));

	track.process_name = rocprof->process_name;
	return import_rows_track(rocprof->rows, &track, 0, ret_track);
}

/* A call of HIP is one of the runtime, those of HSA below it are the driver's. */
static int add_call(struct rocprof *rocprof, const struct record *record)
{
	bool is_driver = strncmp(rocprof_kind_name(rocprof, record->kind), "HSA", 3) == 0;
	struct trace_event event =
		import_rows_event(rocprof->rows, is_driver ? TRACE_DRIVER : TRACE_RUNTIME);
	const char *name = rocprof_operation(rocprof, record->kind, record->operation);
	int r = begin_row(rocprof, record, &event);

	if (r == 0)
		r = find_thread(rocprof, record, &event.track);
	if (r == 0)
		r = import_rows_text(rocprof->rows, name, strlen(name), &event.name);
	return r < 0 ? r : import_rows_add(rocprof->rows, &event);
}

/* What a program marked by roctx. Calls without a text are those that steer the profiler. */
static int add_marker(struct rocprof *rocprof, const struct record *record)
{
	struct json_text internal = json_part_member(&record->values[CORRELATION], "internal");
	struct trace_event event = import_rows_event(rocprof->rows, TRACE_USER_ANNOTATION);
	const char *call = rocprof_operation(rocprof, record->kind, record->operation);
	uint64_t text;
	int r;

	if (!map_u64_get(&rocprof->markers, json_part_u64(&internal, 0), &text)) {
		rocprof->left_out++;
		return 0;
	}
	r = begin_row(rocprof, record, &event);
	event.name = (uint32_t)text;
	event.correlation = 0;
	if (strstr(call, "Mark"))
		event.duration_ns = TRACE_NO_DURATION;
	if (r == 0)
		r = find_thread(rocprof, record, &event.track);
	return r < 0 ? r : import_rows_add(rocprof->rows, &event);
}

/* ---- devices ---- */

/* A stream of HIP where there is one, else the queue; of copies neither may be known. */
static int find_stream(struct rocprof *rocprof, struct trace_work *work, uint32_t *ret_track)
{
	struct trace_track track = import_rows_thread(work->device, work->stream);
	char text[64];
	int r;

	track.is_device = true;
	track.process_name = rocprof->process_name;
	snprintf(text, sizeof(text), "GPU %lld", (long long)work->device);
	r = import_rows_text(rocprof->rows, text, strlen(text), &track.process_labels);
	if (work->stream == TRACE_NO_NUMBER)
		snprintf(text, sizeof(text), "copies");
	else
		snprintf(text, sizeof(text), "stream %lld", (long long)work->stream);
	if (r == 0)
		r = import_rows_text(rocprof->rows, text, strlen(text), &track.thread_name);
	if (work->stream == TRACE_NO_NUMBER)
		track.tid_text = track.thread_name;
	return r < 0 ? r
		     : import_rows_track(rocprof->rows, &track, (uint64_t)rocprof->pid, ret_track);
}

static void read_size(const struct json_text *value, uint32_t size[3])
{
	static const char *const names[] = {"x", "y", "z", NULL};
	struct json_text values[3];

	json_part_members(value, names, values);
	for (int i = 0; i < 3; i++)
		size[i] = (uint32_t)json_part_u64(&values[i], 0);
}

/* The grid is given in threads there, and in blocks in rows. */
static int add_kernel(struct rocprof *rocprof, const struct record *record)
{
	static const char *const names[] = {"agent_id", "queue_id", "kernel_id",
		"group_segment_size", "workgroup_size", "grid_size", NULL};
	struct trace_event event = import_rows_event(rocprof->rows, TRACE_KERNEL);
	struct trace_work work = trace_no_work;
	struct json_text values[6];
	uint64_t name = 0;
	int r = begin_row(rocprof, record, &event);

	json_part_members(&record->values[DISPATCH], names, values);
	map_u64_get(&rocprof->kernels, json_part_u64(&values[2], 0), &name);
	event.name = (uint32_t)name;
	work.device = rocprof_gpu(rocprof, handle_of(&values[0]));
	work.stream = (int64_t)(record->values[STREAM].bytes ? handle_of(&record->values[STREAM])
							     : handle_of(&values[1]));
	work.shared_bytes = (uint32_t)json_part_u64(&values[3], 0);
	read_size(&values[4], work.block);
	read_size(&values[5], work.grid);
	for (int i = 0; i < 3; i++) {
		if (work.block[i])
			work.grid[i] = (work.grid[i] + work.block[i] - 1) / work.block[i];
	}
	if (r == 0)
		r = find_stream(rocprof, &work, &event.track);
	return r < 0 ? r : import_rows_add_work(rocprof->rows, &event, &work);
}

/* "MEMORY_COPY_HOST_TO_DEVICE" as Kineto calls it. */
static const char *copy_name(const char *operation)
{
	static const struct {
		const char *ending, *name;
	} names[] = {
		{"HOST_TO_HOST", "Memcpy HtoH"},
		{"HOST_TO_DEVICE", "Memcpy HtoD"},
		{"DEVICE_TO_HOST", "Memcpy DtoH"},
		{"DEVICE_TO_DEVICE", "Memcpy DtoD"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (text_ends_in(operation, names[i].ending))
			return names[i].name;
	}
	return "Memcpy";
}

static int add_copy(struct rocprof *rocprof, const struct record *record)
{
	const char *operation = rocprof_operation(rocprof, record->kind, record->operation);
	struct trace_event event = import_rows_event(rocprof->rows, TRACE_MEMCPY);
	struct trace_work work = trace_no_work;
	const char *name = copy_name(operation);
	int r = begin_row(rocprof, record, &event);

	work.device = rocprof_gpu(rocprof, handle_of(&record->values[DESTINATION]));
	if (work.device < 0)
		work.device = rocprof_gpu(rocprof, handle_of(&record->values[SOURCE]));
	if (record->values[STREAM].bytes)
		work.stream = (int64_t)handle_of(&record->values[STREAM]);
	work.bytes = json_part_u64(&record->values[BYTES], 0);
	if (r == 0)
		r = import_rows_text(rocprof->rows, name, strlen(name), &event.name);
	if (r == 0)
		r = find_stream(rocprof, &work, &event.track);
	return r < 0 ? r : import_rows_add_work(rocprof->rows, &event, &work);
}

/* Where memory is released its size is not given. */
static int add_allocation(struct rocprof *rocprof, const struct record *record)
{
	static const char name[] = "[memory]";
	const char *operation = rocprof_operation(rocprof, record->kind, record->operation);
	struct trace_event event = import_rows_event(rocprof->rows, TRACE_CPU_INSTANT);
	struct trace_memory memory = trace_no_memory;
	int64_t gpu = rocprof_gpu(rocprof, handle_of(&record->values[AGENT]));
	uint64_t bytes = json_part_u64(&record->values[SIZE], 0);
	int r = begin_row(rocprof, record, &event);

	memory.address =
		json_part_u64(&record->values[ADDRESS], handle_of(&record->values[ADDRESS]));
	if (strstr(operation, "FREE")) {
		map_u64_get(&rocprof->held, memory.address, &bytes);
		memory.bytes = -(int64_t)(bytes & INT64_MAX);
	} else {
		memory.bytes = (int64_t)(bytes & INT64_MAX);
		if (r == 0)
			r = map_u64_set(&rocprof->held, memory.address, bytes);
	}
	event.duration_ns = TRACE_NO_DURATION;
	memory.device_type = gpu < 0 ? 0 : TRACE_DEVICE_CUDA;
	memory.device_id = gpu < 0 ? 0 : gpu;
	if (r == 0)
		r = import_rows_text(rocprof->rows, name, strlen(name), &event.name);
	if (r == 0)
		r = find_thread(rocprof, record, &event.track);
	return r < 0 ? r : import_rows_add_memory(rocprof->rows, &event, &memory);
}

/* ---- all records ---- */

static int leave_out(struct rocprof *rocprof, const struct record *record _unused_)
{
	rocprof->left_out++;
	return 0;
}

typedef int take_record(struct rocprof *rocprof, const struct record *record);

/* Names of arrays, of today's rocprofv3 and of the SDK's own tool. */
static take_record *taker_of(const struct json_text *name)
{
	static const struct {
		const char *name;
		take_record *take;
	} takers[] = {
		{"kernel_dispatch", add_kernel},
		{"memory_copy", add_copy},
		{"memory_copies", add_copy},
		{"memory_allocation", add_allocation},
		{"memory_allocations", add_allocation},
		{"hip_api", add_call},
		{"hip_api_traces", add_call},
		{"hsa_api", add_call},
		{"hsa_api_traces", add_call},
		{"rccl_api", add_call},
		{"rccl_api_traces", add_call},
		{"marker_api", add_marker},
		{"marker_api_traces", add_marker},
	};

	for (size_t i = 0; i < ARRAY_SIZE(takers); i++) {
		if (json_text_equals(name, takers[i].name))
			return takers[i].take;
	}
	return leave_out;
}

static int read_array(struct rocprof *rocprof, const struct json_text *array, take_record *take)
{
	struct json_reader items = json_part_begin(array);
	struct json_text item;
	int r = 0;

	while (r == 0 && json_part_next(&items, &item)) {
		struct record record;

		json_part_members(&item, members, record.values);
		record.kind = json_part_u64(&record.values[KIND], UINT64_MAX);
		record.operation = json_part_u64(&record.values[OPERATION], UINT64_MAX);
		r = take(rocprof, &record);
	}
	return r;
}

int rocprof_read_records(struct rocprof *rocprof, const struct json_text *records)
{
	struct json_reader reader = {
		.at = records->bytes, .end = records->bytes + records->length, .is_last = true};
	struct json_text key, value;
	enum json_status status = records->bytes ? json_reader_enter(&reader, '{') : JSON_DONE;
	int r = 0;

	while (r == 0 && status == JSON_OK && json_reader_member(&reader, &key) == JSON_OK) {
		status = json_reader_value(&reader, &value);
		if (status == JSON_OK)
			r = read_array(rocprof, &value, taker_of(&key));
	}
	return r;
}
