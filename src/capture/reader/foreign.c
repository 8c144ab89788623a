/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what other recorders tell of GPUs: stages, and the calls that submitted them. */
#include <stdio.h>

#include "capture/fields.h"
#include "capture/reader/state.h"

/* A GPU's context: of which process. */
int reader_graphics_context(
	struct reader *reader, struct sequence *sequence, struct pb_bytes message)
{
	struct pb_cursor cursor = pb_cursor(message);
	uint64_t iid = 0, pid = 0;
	struct pb_field field;
	int more, result;

	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(CONTEXT_IID))
			iid = field.value;
		else if (field.tag == PB_VARINT(CONTEXT_PID))
			pid = field.value;
	}
	if (more < 0)
		return more;
	result = reader_retain(reader, sizeof(iid));
	if (result == 0)
		result = iid_table_set(&sequence->contexts, iid, (uint32_t)pid);
	return result;
}

struct foreign_stage {
	uint64_t context_iid, queue_iid, gpu;
	const char *name;
};

static int take_stage_field(
	struct reader *reader, const struct pb_field *field, struct foreign_stage *stage)
{
	switch (field->tag) {
	case PB_VARINT(STAGE_CONTEXT):
		stage->context_iid = field->value;
		return 0;
	case PB_VARINT(STAGE_QUEUE_IID):
		stage->queue_iid = field->value;
		return 0;
	case PB_VARINT(STAGE_GPU):
		stage->gpu = field->value;
		return 0;
	case PB_BYTES(STAGE_NAME):
		return reader_text(reader, field->bytes, &stage->name);
	default:
		return 0;
	}
}

int reader_foreign_stage(
	struct reader *reader, struct sequence *sequence, uint64_t time_ns, struct pb_bytes message)
{
	struct capture_device_work work = {
		.start_ns = time_ns, .end_ns = time_ns, .kind = WIRE_DEVICE_KERNEL};
	struct pb_cursor cursor = pb_cursor(message);
	struct foreign_stage stage = {0};
	uint64_t name_iid = 0;
	struct pb_field field;
	char device[32];
	int more = 0, result = reader_stage(message, &work, &name_iid);

	while (result == 0 && (more = pb_next(&cursor, &field)) > 0)
		result = take_stage_field(reader, &field, &stage);
	if (result < 0 || more < 0)
		return result < 0 ? result : more;
	snprintf(device, sizeof(device), "GPU %u", (unsigned)stage.gpu);
	work.device = device;
	work.name = stage.name ?: reader_specification(reader, sequence, name_iid);
	work.queue = (uint32_t)stage.queue_iid;
	work.pid = iid_table_get(&sequence->contexts, stage.context_iid);
	return reader_visit(reader, device_work, &work);
}

/* A slice that submitted stages: their launch, of which the begin is known. */
int reader_submissions(
	struct reader *reader, const struct capture_range_event *event, struct pb_bytes correlation)
{
	struct pb_cursor cursor = pb_cursor(correlation);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		struct capture_launch launch = {
			.time_ns = event->time_ns,
			.pid = event->pid,
			.tid = event->tid,
			.kind = WIRE_DEVICE_KERNEL,
		};

		if (field.tag == PB_VARINT(GPU_CORRELATION_SUBMISSIONS)) {
			launch.correlation = field.value;
			result = reader_visit(reader, launch, &launch);
		} else if (field.tag == PB_BYTES(GPU_CORRELATION_SUBMISSIONS)) {
			struct pb_cursor packed = pb_cursor(field.bytes);

			while (result == 0 && packed.at < packed.end) {
				result = pb_read_varint(&packed, &launch.correlation);
				result =
					result < 0 ? result : reader_visit(reader, launch, &launch);
			}
		}
	}
	return result < 0 ? result : more;
}
