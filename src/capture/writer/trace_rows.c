/* SPDX-License-Identifier: Apache-2.0 */
/* A trace's rows: what sonde reads back, and what viewers show. */
#include <errno.h>
#include <string.h>

#include "capture/fields.h"
#include "capture/writer/arguments.h"
#include "capture/writer/messages.h"
#include "capture/writer/trace_state.h"

static void put_row_value(
	struct capture_trace_writer *trace, struct strbuf *packet, unsigned field, uint64_t value)
{
	struct row_state *state = &trace->state;
	uint64_t step = value - state->previous[field];

	state->previous[field] = value;
	switch (row_coding(field)) {
	case ROW_CODING_TEXT:
		if (step)
			pb_put_u64(packet, field,
				trace_text_iid(trace, TEXT_ANNOTATION, (uint32_t)value));
		break;
	case ROW_CODING_NEXT:
		if (step != 1)
			pb_put_u64(packet, field, zigzag(step));
		break;
	case ROW_CODING_STRIDE:
		if (step != state->stride)
			pb_put_u64(packet, field, zigzag(step));
		state->stride = step;
		break;
	default:
		if (step)
			pb_put_u64(packet, field, zigzag(step));
	}
}

/* What differs from the row before; nothing at all where that says everything. */
static void put_row_fields(struct capture_trace_writer *trace, struct strbuf *packet,
	uint32_t number, const struct capture_trace_row *row, uint64_t layout_key)
{
	struct row_state *state = &trace->state;
	size_t before = packet->length, begin = pb_begin(packet, number);
	uint64_t layout = 0;

	map_u64_get(&state->layouts, layout_key, &layout);
	if (layout != row->layout) {
		pb_put_u64(packet, ROW_LAYOUT, layout ^ row->layout);
		if (map_u64_set(&state->layouts, layout_key, row->layout) < 0)
			packet->status = -ENOMEM;
	}
	if (row->kind == CAPTURE_ROW_STAGE && row->category != state->category) {
		pb_put_u64(packet, ROW_CATEGORY,
			trace_text_iid(trace, TEXT_ANNOTATION, row->category));
		state->category = row->category;
	}
	layout = row->layout & ROW_VALUES;
	for (; layout; layout &= layout - 1) {
		unsigned field = (unsigned)__builtin_ctzll(layout);

		put_row_value(trace, packet, field, row->values[field]);
	}
	if (strbuf_status(packet) == 0 && packet->length == begin)
		pb_cut(packet, before);
	else
		pb_end(packet, begin);
}

/* ---- for viewers, where they are asked for ---- */

/* The iid of an argument's name is its field's number. */
static void put_argument_name(struct capture_trace_writer *trace, unsigned field)
{
	size_t begin;

	if (trace->argument_names & ROW_BIT(field))
		return;
	trace->argument_names |= ROW_BIT(field);
	begin = pb_begin(&trace->pending, INTERNED_ANNOTATION_NAMES);
	pb_put_u64(&trace->pending, STRING_IID, field);
	pb_put_text(&trace->pending, STRING_BYTES, row_argument_name(field));
	pb_end(&trace->pending, begin);
}

/* Of a slice. */
static void put_arguments(struct capture_trace_writer *trace, struct strbuf *packet,
	const struct capture_trace_row *row)
{
	uint64_t fields = trace->writer->row_arguments ? row_arguments(row) : 0;

	for (; fields; fields &= fields - 1) {
		unsigned field = (unsigned)__builtin_ctzll(fields);
		size_t begin = pb_begin(packet, EVENT_ANNOTATION);

		put_argument_name(trace, field);
		pb_put_u64(packet, ANNOTATION_NAME_IID, field);
		if (ROW_TEXTS & ROW_BIT(field))
			pb_put_u64(packet, ANNOTATION_TEXT_IID,
				trace_text_iid(
					trace, TEXT_ANNOTATION, (uint32_t)row->values[field]));
		else
			pb_put_u64(packet, ANNOTATION_INT, row->values[field]);
		pb_end(packet, begin);
	}
}

/* Of a stage, whose arguments are texts and have no table. */
static void put_extra_data(struct capture_trace_writer *trace, struct strbuf *packet,
	const struct capture_trace_row *row)
{
	uint64_t fields = trace->writer->row_arguments ? row_arguments(row) : 0;

	for (; fields; fields &= fields - 1) {
		unsigned field = (unsigned)__builtin_ctzll(fields);
		size_t begin = pb_begin(packet, STAGE_EXTRA_DATA);
		char number[24];

		snprintf(number, sizeof(number), "%lld", (long long)row->values[field]);
		pb_put_text(packet, EXTRA_DATA_NAME, row_argument_name(field));
		pb_put_text(packet, EXTRA_DATA_VALUE,
			ROW_TEXTS & ROW_BIT(field)
				? intern_get(trace->strings, (uint32_t)row->values[field])
				: number);
		pb_end(packet, begin);
	}
}

/* Where Perfetto draws an arrow from the launch to its work. */
static void put_arrow(struct strbuf *packet, uint64_t event_id)
{
	size_t begin = pb_begin(packet, EVENT_GPU_CORRELATION);

	pb_put_u64(packet, GPU_CORRELATION_SUBMISSIONS, event_id);
	pb_end(packet, begin);
}

/* Arrows of other traces and captures have other ids. */
static void put_flow(const struct capture_trace_writer *trace, struct strbuf *packet,
	uint32_t field, uint64_t id)
{
	if (id)
		pb_put_fixed64(packet, field, hash_u64(trace->event_id_base ^ id));
}

static void put_slice(struct capture_trace_writer *trace, struct strbuf *packet,
	const struct capture_trace_row *row)
{
	uint64_t category = 0;
	size_t begin = pb_begin(packet, PACKET_TRACK_EVENT);

	pb_put_u64(packet, EVENT_TYPE, row->kind);
	if (row->lane)
		pb_put_u64(packet, EVENT_TRACK, trace_lane_uuid(trace, row->lane));
	if (row->kind != CAPTURE_ROW_END) {
		if (row->category) {
			category = trace_text_iid(trace, TEXT_CATEGORY, row->category);
			pb_put_u64(packet, EVENT_CATEGORY_IID, category);
		}
		pb_put_u64(packet, EVENT_NAME_IID, trace_text_iid(trace, TEXT_NAME, row->name));
		put_flow(trace, packet, EVENT_FLOW, row->flow);
		put_flow(trace, packet, EVENT_TERMINATING_FLOW, row->ended_flow);
		if (row->launches)
			put_arrow(packet, trace->event_id_base + row->values[ROW_CORRELATION]);
		put_arguments(trace, packet, row);
	}
	pb_end(packet, begin);
	/* Not in the event: Perfetto would show the differences as its arguments. */
	if (row->kind != CAPTURE_ROW_END)
		put_row_fields(trace, packet, PACKET_SONDE_TRACE_ROW, row, category);
}

static void put_sizes(struct strbuf *packet, uint32_t number, const uint64_t sizes[3])
{
	size_t begin = pb_begin(packet, number);

	for (unsigned i = 0; i < 3; i++)
		put_nonzero(packet, DIMENSION_X + i, sizes[i]);
	pb_end(packet, begin);
}

static uint64_t queue_iid(struct capture_trace_writer *trace)
{
	_cleanup_strbuf_ struct strbuf name = {0};

	if (!trace->queue_iid) {
		trace_name_track(&trace->track, &name);
		trace->queue_iid =
			trace_put_interned(trace, TEXT_SPECIFICATION, strbuf_cstr(&name));
		strbuf_inherit_status(&trace->pending, &name);
	}
	return trace->queue_iid;
}

static uint64_t event_id(struct capture_trace_writer *trace, const struct capture_trace_row *row)
{
	return row->layout & ROW_BIT(ROW_CORRELATION)
		       ? trace->event_id_base + row->values[ROW_CORRELATION]
		       : trace->uncorrelated_base + trace->uncorrelated_count++;
}

/* The stage's process. */
static void put_context(struct capture_trace_writer *trace, struct strbuf *packet, uint32_t pid)
{
	uint64_t known = 0;
	size_t begin;

	if (!pid)
		return;
	pb_put_u64(packet, STAGE_CONTEXT, pid);
	if (map_u64_get(&trace->contexts, pid, &known) && known == trace->sequence)
		return;
	if (map_u64_set(&trace->contexts, pid, trace->sequence) < 0)
		packet->status = -ENOMEM;
	begin = pb_begin(&trace->pending, INTERNED_CONTEXTS);
	pb_put_u64(&trace->pending, CONTEXT_IID, pid);
	pb_put_u64(&trace->pending, CONTEXT_PID, pid);
	pb_end(&trace->pending, begin);
}

static void put_stage(struct capture_trace_writer *trace, struct strbuf *packet,
	const struct capture_trace_row *row)
{
	struct capture_trace_row rest = *row;
	size_t stage = pb_begin(packet, PACKET_GPU_STAGE), launch;
	const uint64_t *grid = row->values + ROW_GRID, *block = row->values + ROW_BLOCK;

	rest.layout &= ~(ROW_BIT(ROW_CORRELATION) | ROW_GRID_BITS | ROW_BLOCK_BITS);
	pb_put_u64(packet, STAGE_EVENT_ID, event_id(trace, row));
	pb_put_u64(packet, STAGE_DURATION, row->duration_ns);
	put_context(trace, packet, row->pid);
	if (row->layout & ROW_BIT(ROW_DEVICE))
		pb_put_u64(packet, STAGE_GPU, (uint32_t)row->values[ROW_DEVICE]);
	pb_put_u64(packet, STAGE_QUEUE_IID, queue_iid(trace));
	pb_put_u64(packet, STAGE_NAME_IID, trace_text_iid(trace, TEXT_SPECIFICATION, row->name));
	if (row->layout & (ROW_GRID_BITS | ROW_BLOCK_BITS)) {
		launch = pb_begin(packet, STAGE_LAUNCH);
		if (row->layout & ROW_GRID_BITS)
			put_sizes(packet, STAGE_GRID, grid);
		if (row->layout & ROW_BLOCK_BITS)
			put_sizes(packet, STAGE_GROUP, block);
		pb_end(packet, launch);
	}
	put_extra_data(trace, packet, row);
	pb_end(packet, stage);
	put_row_fields(trace, packet, PACKET_SONDE_TRACE_ROW, &rest, ROW_STAGES);
}

static uint64_t timestamp(struct capture_trace_writer *trace, uint64_t time_ns)
{
	uint64_t reading = (time_ns - trace->last_ns) / trace->unit_ns;

	if (!trace->is_long)
		return time_ns;
	trace->last_ns = time_ns;
	return reading;
}

int capture_trace_row(struct capture_trace_writer *trace, const struct capture_trace_row *row)
{
	struct strbuf *packet = &trace->writer->output.packets;
	int result = 0;

	for (; result == 0 && row->lane >= trace->lane_count; trace->lane_count++)
		result = trace_describe_lane(trace, trace->lane_count);
	if (result < 0)
		return result;
	output_begin_packet(&trace->writer->output);
	pb_put_u64(packet, PACKET_TIMESTAMP, timestamp(trace, row->time_ns));
	pb_put_u64(packet, PACKET_SEQUENCE_ID, trace->sequence);
	if (row->kind == CAPTURE_ROW_STAGE)
		put_stage(trace, packet, row);
	else
		put_slice(trace, packet, row);
	/* Fields of a message may stand in any order: what was just interned comes last. */
	if (trace->pending.length) {
		strbuf_inherit_status(packet, &trace->pending);
		pb_put_bytes(
			packet, PACKET_INTERNED_DATA, trace->pending.data, trace->pending.length);
		strbuf_clear(&trace->pending);
	}
	return writer_end_packet(trace->writer);
}
