/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices of other recorders that are work of a GPU, or calls that launch it: rocprofv3 and
 * PyTorch write them as slices of a category on tracks that they name, and not as GPU stages.
 * Work becomes device work when its slice ends, joined to the call of its correlation where that
 * came before.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/reader/state.h"

enum slice_kind {
	SLICE_OTHER,
	SLICE_CALL,
	SLICE_KERNEL,
	SLICE_COPY,
	SLICE_FILL,
};

/* A slice that has begun on a track, and what it lies in there. */
struct gpu_open {
	uint64_t begin_ns, correlation, bytes, global_size;
	const char *name, *device;
	uint32_t below; /* index + 1 in `open`; 0: the outermost */
	uint32_t tid, local_size, queue;
	enum slice_kind kind;
};

struct gpu_call {
	uint64_t begin_ns, duration_ns;
	uint32_t tid;
};

struct gpu_slices {
	ARRAY_OF(struct gpu_open) open;
	ARRAY_OF(uint32_t) free;  /* indices in `open` */
	struct map_u64 innermost; /* track → index + 1 */
	ARRAY_OF(struct gpu_call) calls;
	struct map_u64 call_of; /* correlation → index */
};

void reader_gpu_slices_done(struct reader *reader)
{
	struct gpu_slices *slices = reader->gpu_slices;

	if (!slices)
		return;
	array_done(&slices->open);
	array_done(&slices->free);
	array_done(&slices->calls);
	map_u64_done(&slices->innermost);
	map_u64_done(&slices->call_of);
	free(slices);
}

static enum slice_kind kind_of(const char *category)
{
	static const struct {
		const char *category;
		enum slice_kind kind;
	} kinds[] = {
		{"kernel_dispatch", SLICE_KERNEL}, /* rocprofv3 */
		{"memory_copy", SLICE_COPY},
		{"hip_api", SLICE_CALL},
		{"hsa_api", SLICE_CALL},
		{"rccl_api", SLICE_CALL},
		{"marker_api", SLICE_CALL},
		{"kernel", SLICE_KERNEL}, /* PyTorch */
		{"gpu_memcpy", SLICE_COPY},
		{"gpu_memset", SLICE_FILL},
		{"cuda_runtime", SLICE_CALL},
		{"cuda_driver", SLICE_CALL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(category, kinds[i].category) == 0)
			return kinds[i].kind;
	}
	return SLICE_OTHER;
}

/* ---- what a slice says ---- */

static bool is_any(const char *name, const char *first, const char *second)
{
	return strcmp(name, first) == 0 || strcmp(name, second) == 0;
}

/* "GPU 4" of rocprofv3's "4", "4-1" or "GPU-4". */
static int name_device(
	struct reader *reader, const struct capture_range_field *field, const char **ret_device)
{
	char text[64];

	if (field->type == WIRE_RANGE_TEXT && !isdigit((unsigned char)field->text[0])) {
		*ret_device = field->text;
		return 0;
	}
	if (field->type == WIRE_RANGE_TEXT)
		snprintf(text, sizeof(text), "GPU %.40s", field->text);
	else
		snprintf(text, sizeof(text), "GPU %llu", (unsigned long long)field->value);
	return reader_text(
		reader, (struct pb_bytes){(const uint8_t *)text, strlen(text)}, ret_device);
}

static int take_field(
	struct reader *reader, const struct capture_range_field *field, struct gpu_open *slice)
{
	const char *name = field->name;

	if (is_any(name, "corr_id", "correlation"))
		slice->correlation = field->value;
	else if (is_any(name, "copy_bytes", "bytes"))
		slice->bytes = field->value;
	else if (is_any(name, "queue", "stream"))
		slice->queue = slice->queue ?: (uint32_t)field->value;
	else if (strcmp(name, "tid") == 0)
		slice->tid = (uint32_t)field->value;
	else if (strcmp(name, "workgroup_size") == 0)
		slice->local_size = (uint32_t)field->value;
	else if (strcmp(name, "grid_size") == 0)
		slice->global_size = field->value;
	else if (is_any(name, "agent", "dst_agent") || strcmp(name, "device") == 0)
		return name_device(reader, field, &slice->device);
	return 0;
}

/* "COMPUTE AGENT [4] STREAM [7] (GPU)": 7. */
static uint32_t queue_of_track(const char *name)
{
	const char *at = strstr(name, "STREAM [");

	return at ? (uint32_t)strtoul(at + strlen("STREAM ["), NULL, 10) : 0;
}

/* ---- begin and end ---- */

static int push(
	struct reader *reader, struct gpu_slices *slices, uint64_t track, struct gpu_open slice)
{
	uint64_t below = 0, index = slices->open.count;
	int r = 0;

	map_u64_get(&slices->innermost, track, &below);
	slice.below = (uint32_t)below;
	if (slices->free.count) {
		index = slices->free.items[--slices->free.count];
		slices->open.items[index] = slice;
	} else {
		r = reader_retain(reader, sizeof(slice));
		if (r == 0)
			r = array_append(&slices->open, slice);
	}
	return r < 0 ? r : map_u64_set(&slices->innermost, track, index + 1);
}

static bool pop(struct gpu_slices *slices, uint64_t track, struct gpu_open *ret_slice)
{
	uint64_t index;

	if (!map_u64_get(&slices->innermost, track, &index) || !index)
		return false;
	*ret_slice = slices->open.items[index - 1];
	map_u64_set(&slices->innermost, track, ret_slice->below);
	return array_append(&slices->free, (uint32_t)(index - 1)) == 0;
}

static int begin_slice(struct reader *reader, struct gpu_slices *slices, const char *track_name,
	struct capture_range_event *event, enum slice_kind kind)
{
	struct gpu_open slice = {.begin_ns = event->time_ns,
		.name = event->name,
		.device = "GPU 0",
		.tid = event->tid,
		.queue = queue_of_track(track_name),
		.kind = kind};
	int r = 0;

	for (uint32_t i = 0; r == 0 && kind != SLICE_OTHER && i < event->field_count; i++)
		r = take_field(reader, &event->fields[i], &slice);
	event->tid = slice.tid;
	return r < 0 ? r : push(reader, slices, event->track, slice);
}

static int add_call(struct reader *reader, struct gpu_slices *slices, const struct gpu_open *slice,
	uint64_t end_ns)
{
	const struct gpu_call call = {slice->begin_ns, end_ns - slice->begin_ns, slice->tid};
	int r = reader_retain(reader, sizeof(call));

	if (!slice->correlation)
		return 0;
	if (r == 0)
		r = map_u64_set(&slices->call_of, slice->correlation, slices->calls.count);
	return r < 0 ? r : array_append(&slices->calls, call);
}

static uint32_t work_kind(const struct gpu_open *slice)
{
	if (slice->kind == SLICE_KERNEL)
		return WIRE_DEVICE_KERNEL;
	if (slice->kind == SLICE_FILL)
		return WIRE_DEVICE_FILL;
	if (strstr(slice->name, "HOST_TO_DEVICE") || strstr(slice->name, "HtoD"))
		return WIRE_DEVICE_WRITE;
	if (strstr(slice->name, "DEVICE_TO_HOST") || strstr(slice->name, "DtoH"))
		return WIRE_DEVICE_READ;
	return WIRE_DEVICE_COPY;
}

static int add_work(struct reader *reader, const struct gpu_slices *slices,
	const struct gpu_open *slice, const struct capture_range_event *end)
{
	struct capture_device_work work = {
		.start_ns = slice->begin_ns,
		.end_ns = MAX(end->time_ns, slice->begin_ns),
		.pid = end->pid,
		.correlation = slice->correlation,
		.kind = (enum wire_device_kind)work_kind(slice),
		.name = slice->name,
		.device = slice->device,
		.queue = slice->queue,
		.bytes = slice->bytes,
		.global_size = {slice->global_size},
		.local_size = {slice->local_size},
	};
	uint64_t index;

	if (slice->correlation && map_u64_get(&slices->call_of, slice->correlation, &index)) {
		const struct gpu_call *call = &slices->calls.items[index];

		work.launch_ns = call->begin_ns;
		work.launch_duration_ns = call->duration_ns;
		work.tid = call->tid;
	}
	return reader_visit(reader, device_work, &work);
}

int reader_gpu_slice(struct reader *reader, const char *track_name,
	struct capture_range_event *event, bool *ret_is_work)
{
	enum slice_kind kind = kind_of(event->domain);
	struct gpu_slices *slices = reader->gpu_slices;
	struct gpu_open slice;

	*ret_is_work = false;
	if (event->kind == CAPTURE_RANGE_BEGIN && !slices) {
		slices = reader->gpu_slices = calloc(1, sizeof(*slices));
		if (!slices)
			return -ENOMEM;
	}
	if (event->kind == CAPTURE_RANGE_BEGIN) {
		*ret_is_work = kind >= SLICE_KERNEL;
		return begin_slice(reader, slices, track_name, event, kind);
	}
	if (event->kind != CAPTURE_RANGE_END || !slices || !pop(slices, event->track, &slice))
		return 0;
	event->tid = slice.tid;
	*ret_is_work = slice.kind >= SLICE_KERNEL;
	if (*ret_is_work)
		return add_work(reader, slices, &slice, event);
	return slice.kind == SLICE_CALL ? add_call(reader, slices, &slice, event->time_ns) : 0;
}
