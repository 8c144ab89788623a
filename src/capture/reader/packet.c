/* SPDX-License-Identifier: Apache-2.0 */
/* Reading one TracePacket: its fields, its sequence's state, and then the message it carries. */
#include <errno.h>

#include "capture/fields.h"
#include "capture/reader/state.h"

/* Every data source of a recorded machine has one; a hostile file may not have them all. */
#define MAX_SEQUENCES 65536

static void take_packet_number(const struct pb_field *field, struct packet *packet)
{
	switch (field->tag) {
	case PB_VARINT(PACKET_TIMESTAMP):
		packet->timestamp = field->value;
		packet->has_timestamp = true;
		break;
	case PB_VARINT(PACKET_TIMESTAMP_CLOCK):
		packet->clock = (uint32_t)field->value;
		break;
	case PB_VARINT(PACKET_SEQUENCE_ID):
		packet->sequence_id = (uint32_t)field->value;
		break;
	case PB_VARINT(PACKET_SEQUENCE_FLAGS):
		packet->flags = (uint32_t)field->value;
		break;
	case PB_VARINT(PACKET_PREVIOUS_DROPPED):
		packet->previous_dropped = field->value;
		break;
	}
}

/* What Perfetto's service says of itself is no data: its configuration, statistics, events, marks.
 */
static bool is_of_the_service(uint32_t field)
{
	static const uint32_t fields[] = {PACKET_PROCESS_TREE, 33, 35, 36, PACKET_SYSTEM_INFO, 46,
		69, 70, PACKET_EXTENSION_DESCRIPTOR, PACKET_TRACE_UUID};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (field == fields[i])
			return true;
	}
	return false;
}

/* Their kinds have numbers in a row. */
static void take_device_event_field(const struct pb_field *field, struct packet *packet)
{
	uint32_t kind = (field->tag >> 3) - PACKET_SONDE_DEVICE_EVENT;

	if ((field->tag & 7) != PB_WIRE_BYTES)
		return;
	if (kind >= CAPTURE_DEVICE_EVENT_MAX) {
		packet->has_other |= !is_of_the_service(field->tag >> 3);
		return;
	}
	packet->device_event = field->bytes;
	packet->device_event_kind = (enum capture_device_event_kind)kind;
}

/* Of recordings; each is a field of its own of the packet. */
static void take_sonde_message(const struct pb_field *field, struct packet *packet)
{
	switch (field->tag) {
	case PB_BYTES(PACKET_SONDE_SESSION):
		packet->session = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_STATS):
		packet->stats = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_WAIT):
		packet->wait_sample = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_DEVICE_WORK):
		packet->device_work = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_LAUNCH):
		packet->launch = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_LAUNCH_STACK):
		packet->launch_stack = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_PROCESS):
		packet->process_info = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_WINDOW):
		packet->window = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_STEP):
		packet->step = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_ENERGY_DOMAIN):
		packet->energy_domain = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_ENERGY_INTERVAL):
		packet->energy_interval = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_ENERGY_STATE):
		packet->energy_state = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_ENERGY_ABSENCE):
		packet->energy_absence = field->bytes;
		break;
	default:
		take_device_event_field(field, packet);
		break;
	}
}

/* Of imported traces, which have the most packets. */
static void take_trace_message(const struct pb_field *field, struct packet *packet)
{
	switch (field->tag) {
	case PB_BYTES(PACKET_SONDE_TRACE):
		packet->trace = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_TRACE_TRACK):
		packet->trace_track = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_TRACE_ROW):
		packet->trace_row = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_TRACE_FLOW):
		packet->trace_flow = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_TRACE_COUNTER):
		packet->trace_counter = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_TRACE_GROUP):
		packet->trace_group = field->bytes;
		break;
	default:
		take_sonde_message(field, packet);
		break;
	}
}

/* Perfetto's own. */
static void take_packet_message(const struct pb_field *field, struct packet *packet)
{
	switch (field->tag) {
	case PB_BYTES(PACKET_INTERNED_DATA):
		packet->interned_data = field->bytes;
		break;
	case PB_BYTES(PACKET_DEFAULTS):
		packet->defaults = field->bytes;
		break;
	case PB_BYTES(PACKET_CLOCK_SNAPSHOT):
		packet->clock_snapshot = field->bytes;
		break;
	case PB_BYTES(PACKET_COMPRESSED):
		packet->compressed = field->bytes;
		break;
	case PB_BYTES(PACKET_PERF_SAMPLE):
		packet->perf_sample = field->bytes;
		break;
	case PB_BYTES(PACKET_STACK_SAMPLE):
		packet->stack_sample = field->bytes;
		break;
	case PB_BYTES(PACKET_TRACK_EVENT):
		packet->track_event = field->bytes;
		break;
	case PB_BYTES(PACKET_TRACK_DESCRIPTOR):
		packet->track = field->bytes;
		break;
	case PB_BYTES(PACKET_MODULE_SYMBOLS):
	case PB_BYTES(PACKET_SONDE_SYMBOLS):
		packet->symbols = field->bytes;
		break;
	case PB_BYTES(PACKET_GPU_STAGE):
		packet->gpu_stage = field->bytes;
		break;
	case PB_BYTES(PACKET_ZSTD):
		packet->has_zstd = true;
		break;
	default:
		take_trace_message(field, packet);
		break;
	}
}

int reader_decode_packet(struct pb_bytes bytes, bool strict, struct packet *ret_packet)
{
	struct pb_cursor cursor = pb_cursor(bytes);
	struct pb_field field;
	int more;

	*ret_packet = (struct packet){0};
	while ((more = pb_next(&cursor, &field)) > 0) {
		uint32_t wire = field.tag & 7;

		if (strict && wire != PB_WIRE_VARINT && wire != PB_WIRE_BYTES)
			return -EBADMSG;
		if (wire == PB_WIRE_VARINT)
			take_packet_number(&field, ret_packet);
		else
			take_packet_message(&field, ret_packet);
	}
	return more;
}

static int add_sequence(struct reader *reader, uint32_t id, struct sequence **ret_sequence)
{
	struct sequence *sequence;

	if (reader->sequences.count == MAX_SEQUENCES)
		return reader_corrupt(reader, "it has more than 65536 packet sequences");
	sequence = calloc(1, sizeof(*sequence));
	if (!sequence || array_append(&reader->sequences, sequence) < 0) {
		free(sequence);
		return -ENOMEM;
	}
	sequence->id = id;
	sequence->default_clock = CLOCK_ID_BOOTTIME;
	*ret_sequence = sequence;
	return map_u64_set(&reader->sequence_index, id, reader->sequences.count - 1);
}

static int get_sequence(struct reader *reader, uint32_t id, struct sequence **ret_sequence)
{
	uint64_t index;

	if (!map_u64_get(&reader->sequence_index, id, &index))
		return add_sequence(reader, id, ret_sequence);
	*ret_sequence = reader->sequences.items[index];
	return 0;
}

static int read_event_defaults(struct sequence *sequence, struct pb_bytes message)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more;

	while ((more = pb_next(&cursor, &field)) > 0) {
		if (field.tag == PB_VARINT(EVENT_DEFAULT_TRACK))
			sequence->default_track = field.value;
	}
	return more;
}

static int read_defaults(struct sequence *sequence, struct pb_bytes message)
{
	struct pb_cursor cursor = pb_cursor(message);
	struct pb_field field;
	int more, result = 0;

	while ((more = pb_next(&cursor, &field)) > 0 && result == 0) {
		if (field.tag == PB_VARINT(DEFAULTS_TIMESTAMP_CLOCK))
			sequence->default_clock = (uint32_t)field.value;
		else if (field.tag == PB_BYTES(DEFAULTS_TRACK_EVENT))
			result = read_event_defaults(sequence, field.bytes);
	}
	return result < 0 ? result : more;
}

/* What the packet says about its sequence, in the order in which the parts build on each other. */
static int update_sequence(
	struct reader *reader, struct sequence *sequence, const struct packet *packet)
{
	int result = 0;

	if (packet->flags & SEQUENCE_CLEARED) {
		sequence_clear(sequence);
		sequence->has_state = true;
	} else if (packet->previous_dropped) {
		sequence->has_state = false;
	}
	if (packet->defaults.at)
		result = read_defaults(sequence, packet->defaults);
	if (result == 0 && packet->defaults.at)
		result = reader_begin_rows(reader, sequence);
	if (result == 0 && packet->clock_snapshot.at)
		result = clocks_take_snapshot(
			&reader->clocks, &sequence->clocks, packet->clock_snapshot);
	if (result == 0 && packet->interned_data.at)
		result = reader_interned_data(reader, sequence, packet->interned_data);
	return result;
}

/* The timestamp in CLOCK_MONOTONIC. Every packet counts: the clock may be incremental. */
static uint64_t packet_time_ns(
	struct reader *reader, struct sequence *sequence, const struct packet *packet)
{
	uint32_t clock = packet->clock ? packet->clock : sequence->default_clock;

	if (!packet->has_timestamp)
		return 0;
	return clocks_to_monotonic(&reader->clocks, &sequence->clocks, clock, packet->timestamp);
}

static int read_sequenced(struct reader *reader, const struct packet *packet)
{
	struct sequence *sequence;
	uint64_t time_ns;
	int result = get_sequence(reader, packet->sequence_id, &sequence);

	if (result < 0)
		return result;
	if ((packet->flags & (SEQUENCE_CLEARED | SEQUENCE_NEEDS_STATE)) == SEQUENCE_NEEDS_STATE &&
		!sequence->has_state) {
		reader->lacks_state = true;
		return 0;
	}
	result = update_sequence(reader, sequence, packet);
	time_ns = packet_time_ns(reader, sequence, packet);
	if (result == 0 && packet->perf_sample.at)
		result = reader_perf_sample(reader, sequence, time_ns, packet->perf_sample);
	if (result == 0 && packet->wait_sample.at)
		result = reader_wait_sample(reader, sequence, time_ns, packet->wait_sample);
	if (result == 0 && packet->stack_sample.at)
		result = reader_stack_sample(reader, sequence, time_ns, packet->stack_sample);
	if (result == 0 && packet->device_work.at)
		result = reader_device_work(
			reader, sequence, time_ns, packet->gpu_stage, packet->device_work);
	if (result == 0 && packet->launch.at)
		result = reader_launch(reader, time_ns, packet->launch);
	if (result == 0 && packet->launch_stack.at)
		result = reader_launch_stack(reader, sequence, time_ns, packet->launch_stack);
	if (result == 0 && packet->track_event.at)
		result = sequence->trace_track ? reader_trace_slice(reader, sequence, time_ns,
							 packet->track_event, packet->trace_row)
					       : reader_track_event(reader, sequence, time_ns,
							 packet->track_event);
	if (result == 0 && packet->gpu_stage.at && sequence->trace_track)
		result = reader_trace_stage(
			reader, sequence, time_ns, packet->gpu_stage, packet->trace_row);
	else if (result == 0 && packet->gpu_stage.at && !packet->device_work.at)
		result = reader_foreign_stage(reader, sequence, time_ns, packet->gpu_stage);
	if (result == 0 && packet->step.at)
		result = reader_step(reader, sequence, time_ns, packet->step);
	if (result == 0 && packet->energy_domain.at)
		result = reader_energy_domain(reader, sequence, packet->energy_domain);
	if (result == 0 && packet->energy_interval.at)
		result = reader_energy_interval(reader, sequence, time_ns, packet->energy_interval);
	if (result == 0 && packet->energy_state.at)
		result = reader_energy_state(reader, sequence, time_ns, packet->energy_state);
	if (result == 0 && packet->device_event.at)
		result = reader_device_event(
			reader, time_ns, packet->device_event_kind, packet->device_event);
	return result;
}

/* Packets of other data sources make no sequence state: they may use a great many sequences. */
static bool concerns_sequence(const struct packet *packet)
{
	return packet->interned_data.at || packet->defaults.at || packet->clock_snapshot.at ||
	       packet->perf_sample.at || packet->stack_sample.at || packet->wait_sample.at ||
	       packet->device_work.at || packet->launch.at || packet->launch_stack.at ||
	       packet->device_event.at || packet->track_event.at || packet->step.at ||
	       packet->energy_domain.at || packet->energy_interval.at || packet->energy_state.at ||
	       packet->has_timestamp || packet->flags & SEQUENCE_CLEARED ||
	       packet->previous_dropped;
}

static int read_messages(struct reader *reader, const struct packet *packet)
{
	int result = 0;

	if (concerns_sequence(packet))
		result = read_sequenced(reader, packet);
	if (result == 0 && packet->session.at)
		result = reader_session(reader, packet->session);
	if (result == 0 && packet->window.at)
		result = reader_window(reader, packet->window);
	if (result == 0 && packet->energy_absence.at)
		result = reader_energy_absence(reader, packet->energy_absence);
	if (result == 0 && packet->trace.at)
		result = reader_trace(reader, packet->trace);
	if (result == 0 && packet->trace_track.at)
		result = reader_trace_track(reader, packet->trace_track);
	if (result == 0 && packet->trace_flow.at)
		result = reader_trace_flow(reader, packet->trace_flow);
	if (result == 0 && packet->trace_counter.at)
		result = reader_trace_counter(reader, packet->trace_counter);
	if (result == 0 && packet->trace_group.at)
		result = reader_trace_group(reader, packet->trace_group);
	if (result == 0 && packet->track.at)
		result = reader_track(reader, packet->track, packet->process_info);
	if (result == 0 && packet->symbols.at)
		result = reader_module_symbols(reader, packet->symbols);
	if (result == 0 && packet->stats.at)
		result = reader_stats(reader, packet->stats);
	return result;
}

int reader_take_packet(struct reader *reader, const struct packet *packet)
{
	int result;

	if (packet->has_zstd)
		return -EOPNOTSUPP;
	reader->lacks_state = false;
	result = read_messages(reader, packet);
	reader->result->packets++;
	reader->result->skipped_packets += reader->lacks_state;
	reader->result->other_packets += packet->has_other && !reader->is_ours;
	return result;
}
