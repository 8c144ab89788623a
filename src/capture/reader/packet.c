/* SPDX-License-Identifier: Apache-2.0 */
/* Reading one TracePacket: its fields, its sequence's state, and then the message it carries. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "capture/device_messages.h"
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

static void take_device_event_field(const struct pb_field *field, struct packet *packet)
{
	enum capture_device_event_kind kind = device_event_kind_of(field->tag >> 3);

	if ((field->tag & 7) != PB_WIRE_BYTES)
		return;
	if (kind == CAPTURE_DEVICE_EVENT_MAX) {
		packet->rest.has_other |= !is_of_the_service(field->tag >> 3);
		return;
	}
	packet->rest.device_event = field->bytes;
	packet->rest.device_event_kind = kind;
}

/* Of recordings; each is a field of its own of the packet. */
static void take_sonde_message(const struct pb_field *field, struct packet *packet)
{
	switch (field->tag) {
	case PB_BYTES(PACKET_SONDE_SESSION):
		packet->rest.session = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_STATS):
		packet->rest.stats = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_WAIT):
		packet->rest.wait_sample = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_DEVICE_WORK):
		packet->rest.device_work = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_LAUNCH):
		packet->rest.launch = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_LAUNCH_STACK):
		packet->rest.launch_stack = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_PROCESS):
		packet->rest.process_info = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_WINDOW):
		packet->rest.window = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_STEP):
		packet->rest.step = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_ENERGY_DOMAIN):
		packet->rest.energy_domain = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_ENERGY_INTERVAL):
		packet->rest.energy_interval = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_ENERGY_STATE):
		packet->rest.energy_state = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_ENERGY_ABSENCE):
		packet->rest.energy_absence = field->bytes;
		break;
	default:
		take_device_event_field(field, packet);
		break;
	}
}

/* Of imported traces, but for their rows. */
static void take_trace_message(const struct pb_field *field, struct packet *packet)
{
	switch (field->tag) {
	case PB_BYTES(PACKET_SONDE_TRACE):
		packet->rest.trace = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_TRACE_TRACK):
		packet->rest.trace_track = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_TRACE_FLOW):
		packet->rest.trace_flow = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_TRACE_COUNTER):
		packet->rest.trace_counter = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_TRACE_GROUP):
		packet->rest.trace_group = field->bytes;
		break;
	default:
		take_sonde_message(field, packet);
		break;
	}
}

/* Perfetto's own. */
static void take_rest(const struct pb_field *field, struct packet *packet)
{
	if (!packet->has_rest)
		memset(&packet->rest, 0, sizeof(packet->rest));
	packet->has_rest = true;
	switch (field->tag) {
	case PB_BYTES(PACKET_INTERNED_DATA):
		packet->rest.interned_data = field->bytes;
		break;
	case PB_BYTES(PACKET_DEFAULTS):
		packet->rest.defaults = field->bytes;
		break;
	case PB_BYTES(PACKET_CLOCK_SNAPSHOT):
		packet->rest.clock_snapshot = field->bytes;
		break;
	case PB_BYTES(PACKET_COMPRESSED):
		packet->rest.compressed = field->bytes;
		break;
	case PB_BYTES(PACKET_PERF_SAMPLE):
		packet->rest.perf_sample = field->bytes;
		break;
	case PB_BYTES(PACKET_STACK_SAMPLE):
		packet->rest.stack_sample = field->bytes;
		break;
	case PB_BYTES(PACKET_TRACK_DESCRIPTOR):
		packet->rest.track = field->bytes;
		break;
	case PB_BYTES(PACKET_MODULE_SYMBOLS):
	case PB_BYTES(PACKET_SONDE_SYMBOLS):
		packet->rest.symbols = field->bytes;
		break;
	case PB_BYTES(PACKET_ZSTD):
		packet->rest.has_zstd = true;
		break;
	default:
		take_trace_message(field, packet);
		break;
	}
}

static void take_packet_message(const struct pb_field *field, struct packet *packet)
{
	switch (field->tag) {
	case PB_BYTES(PACKET_TRACK_EVENT):
		packet->track_event = field->bytes;
		break;
	case PB_BYTES(PACKET_GPU_STAGE):
		packet->gpu_stage = field->bytes;
		break;
	case PB_BYTES(PACKET_SONDE_TRACE_ROW):
		packet->trace_row = field->bytes;
		break;
	default:
		take_rest(field, packet);
		break;
	}
}

int reader_decode_packet(struct pb_bytes bytes, bool strict, struct packet *ret_packet)
{
	struct pb_cursor cursor = pb_cursor(bytes);
	struct pb_field field;
	int more;

	memset(ret_packet, 0, offsetof(struct packet, rest));
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
	struct sequence *last = reader->last_sequence;
	uint64_t index;
	int result = 0;

	if (last && last->id == id) {
		*ret_sequence = last;
		return 0;
	}
	if (map_u64_get(&reader->sequence_index, id, &index))
		*ret_sequence = reader->sequences.items[index];
	else
		result = add_sequence(reader, id, ret_sequence);
	if (result == 0)
		reader->last_sequence = *ret_sequence;
	return result;
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
	if (!packet->has_rest)
		return 0;
	if (packet->rest.defaults.at)
		result = read_defaults(sequence, packet->rest.defaults);
	if (result == 0 && packet->rest.defaults.at)
		result = reader_begin_rows(reader, sequence);
	if (result == 0 && packet->rest.clock_snapshot.at)
		result = clocks_take_snapshot(
			&reader->clocks, &sequence->clocks, packet->rest.clock_snapshot);
	if (result == 0 && packet->rest.interned_data.at)
		result = reader_interned_data(reader, sequence, packet->rest.interned_data);
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

/* Samples, and work of recordings. */
static int read_samples(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	const struct packet *packet)
{
	int result = 0;

	if (packet->rest.perf_sample.at)
		result = reader_perf_sample(reader, sequence, time_ns, packet->rest.perf_sample);
	if (result == 0 && packet->rest.wait_sample.at)
		result = reader_wait_sample(reader, sequence, time_ns, packet->rest.wait_sample);
	if (result == 0 && packet->rest.stack_sample.at)
		result = reader_stack_sample(reader, sequence, time_ns, packet->rest.stack_sample);
	if (result == 0 && packet->rest.device_work.at)
		result = reader_device_work(
			reader, sequence, time_ns, packet->gpu_stage, packet->rest.device_work);
	if (result == 0 && packet->rest.launch.at)
		result = reader_launch(reader, time_ns, packet->rest.launch);
	if (result == 0 && packet->rest.launch_stack.at)
		result = reader_launch_stack(reader, sequence, time_ns, packet->rest.launch_stack);
	return result;
}

static int read_events(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	const struct packet *packet)
{
	bool has_work = packet->has_rest && packet->rest.device_work.at;
	int result = 0;

	if (packet->track_event.at)
		result = sequence->trace_track ? reader_trace_slice(reader, sequence, time_ns,
							 packet->track_event, packet->trace_row)
					       : reader_track_event(reader, sequence, time_ns,
							 packet->track_event);
	if (result == 0 && packet->gpu_stage.at && sequence->trace_track)
		result = reader_trace_stage(
			reader, sequence, time_ns, packet->gpu_stage, packet->trace_row);
	else if (result == 0 && packet->gpu_stage.at && !has_work)
		result = reader_foreign_stage(reader, sequence, time_ns, packet->gpu_stage);
	return result;
}

static int read_measured(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	const struct packet *packet)
{
	int result = 0;

	if (packet->rest.step.at)
		result = reader_step(reader, sequence, time_ns, packet->rest.step);
	if (result == 0 && packet->rest.energy_domain.at)
		result = reader_energy_domain(reader, sequence, packet->rest.energy_domain);
	if (result == 0 && packet->rest.energy_interval.at)
		result = reader_energy_interval(
			reader, sequence, time_ns, packet->rest.energy_interval);
	if (result == 0 && packet->rest.energy_state.at)
		result = reader_energy_state(reader, sequence, time_ns, packet->rest.energy_state);
	if (result == 0 && packet->rest.device_event.at)
		result = reader_device_event(
			reader, time_ns, packet->rest.device_event_kind, packet->rest.device_event);
	return result;
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
	if (result == 0 && packet->has_rest)
		result = read_samples(reader, sequence, time_ns, packet);
	if (result == 0)
		result = read_events(reader, sequence, time_ns, packet);
	if (result == 0 && packet->has_rest)
		result = read_measured(reader, sequence, time_ns, packet);
	return result;
}

/* Packets of other data sources make no sequence state: they may use a great many sequences. */
static bool concerns_sequence(const struct packet *packet)
{
	if (packet->track_event.at || packet->has_timestamp || packet->previous_dropped ||
		packet->flags & SEQUENCE_CLEARED)
		return true;
	return packet->has_rest &&
	       (packet->rest.interned_data.at || packet->rest.defaults.at ||
		       packet->rest.clock_snapshot.at || packet->rest.perf_sample.at ||
		       packet->rest.stack_sample.at || packet->rest.wait_sample.at ||
		       packet->rest.device_work.at || packet->rest.launch.at ||
		       packet->rest.launch_stack.at || packet->rest.device_event.at ||
		       packet->rest.step.at || packet->rest.energy_domain.at ||
		       packet->rest.energy_interval.at || packet->rest.energy_state.at);
}

/* What is of no sequence. */
static int read_messages(struct reader *reader, const struct packet *packet)
{
	int result = 0;

	if (packet->rest.session.at)
		result = reader_session(reader, packet->rest.session);
	if (result == 0 && packet->rest.window.at)
		result = reader_window(reader, packet->rest.window);
	if (result == 0 && packet->rest.energy_absence.at)
		result = reader_energy_absence(reader, packet->rest.energy_absence);
	if (result == 0 && packet->rest.trace.at)
		result = reader_trace(reader, packet->rest.trace);
	if (result == 0 && packet->rest.trace_track.at)
		result = reader_trace_track(reader, packet->rest.trace_track);
	if (result == 0 && packet->rest.trace_flow.at)
		result = reader_trace_flow(reader, packet->rest.trace_flow);
	if (result == 0 && packet->rest.trace_counter.at)
		result = reader_trace_counter(reader, packet->rest.trace_counter);
	if (result == 0 && packet->rest.trace_group.at)
		result = reader_trace_group(reader, packet->rest.trace_group);
	if (result == 0 && packet->rest.track.at)
		result = reader_track(reader, packet->rest.track, packet->rest.process_info);
	if (result == 0 && packet->rest.symbols.at)
		result = reader_module_symbols(reader, packet->rest.symbols);
	if (result == 0 && packet->rest.stats.at)
		result = reader_stats(reader, packet->rest.stats);
	return result;
}

int reader_take_packet(struct reader *reader, const struct packet *packet)
{
	int result = 0;

	if (packet->has_rest && packet->rest.has_zstd)
		return -EOPNOTSUPP;
	reader->lacks_state = false;
	if (concerns_sequence(packet))
		result = read_sequenced(reader, packet);
	if (result == 0 && packet->has_rest)
		result = read_messages(reader, packet);
	reader->result->packets++;
	reader->result->skipped_packets += reader->lacks_state;
	reader->result->other_packets +=
		packet->has_rest && packet->rest.has_other && !reader->is_ours;
	return result;
}
