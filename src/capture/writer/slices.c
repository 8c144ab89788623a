/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device work and its launches as plain slices with arrows from launch to work, beside the packets
 * that say the same: for viewers that draw no arrows between GPU stages. Readers of ours pass over
 * their tracks.
 */
#include "capture/writer/messages.h"
#include "capture/writer/state.h"

#define DEVICE_TRACK   "sonde device"
#define LANE_TRACK     "sonde lane"
#define LAUNCHES_TRACK "sonde launches"
/* Work of one queue that runs at once; beyond these lanes, slices are cut by one another. */
#define MAX_LANES 64

static uint64_t flow_of(const struct capture_writer *writer, uint32_t pid, uint64_t correlation)
{
	const uint64_t key[] = {writer->sequence_id, pid, correlation};

	return correlation ? hash_bytes(key, sizeof(key), 0) | 1 : 0;
}

static int put_slice(struct capture_writer *writer, uint64_t track, const char *name,
	uint64_t begin_ns, uint64_t end_ns, const struct slice_flow *flow)
{
	uint64_t name_iid;
	int result = interning_event_name(&writer->interning, name, &name_iid);

	if (result < 0)
		return result;
	put_slice_begin(writer_begin_timed_packet(writer, begin_ns), track, name_iid, flow);
	result = writer_end_timed_packet(writer);
	if (result < 0)
		return result;
	put_slice_end(writer_begin_timed_packet(writer, MAX(begin_ns, end_ns)), track);
	return writer_end_timed_packet(writer);
}

/* ---- launches ---- */

/* Work of one launch, such as that of a graph, comes in a row, or nearly. */
static bool has_slice(struct capture_writer *writer, uint64_t flow)
{
	uint64_t *recent = &writer->recent_launches[flow / 2 % ARRAY_SIZE(writer->recent_launches)];
	bool is_known = *recent == flow;

	*recent = flow;
	return flow && is_known;
}

static int put_launch_slice(struct capture_writer *writer, uint32_t pid, uint32_t tid,
	const char *name, uint64_t begin_ns, uint64_t end_ns, uint64_t id)
{
	uint64_t thread = writer_track_uuid(writer, tid, true);
	uint64_t track = writer_named_track(writer, LAUNCHES_TRACK, tid);
	const struct slice_flow flow = {.id = id};
	int result;

	if (!tid || has_slice(writer, id))
		return 0;
	result = writer_describe_thread(writer, pid, tid);
	if (result == 0)
		result = writer_describe_track(writer, track, thread, "Launches");
	if (result == 0)
		result = put_slice(writer, track, name, begin_ns, end_ns, &flow);
	return result;
}

int writer_put_launch_slice(struct capture_writer *writer, const struct capture_launch *launch)
{
	return put_launch_slice(writer, launch->pid, launch->tid,
		wire_device_kind_name(launch->kind), launch->time_ns,
		launch->time_ns + launch->duration_ns,
		flow_of(writer, launch->pid, launch->correlation));
}

/* ---- work ---- */

static int describe_lane(struct capture_writer *writer, const struct capture_device_work *work,
	uint64_t lane, unsigned place)
{
	uint32_t device = (uint32_t)hash_bytes(work->device, strlen(work->device), 0);
	uint64_t parent = writer_named_track(writer, DEVICE_TRACK, device);
	_cleanup_strbuf_ struct strbuf name = {0};
	int result = writer_describe_track(writer, parent, 0, work->device);

	writer_name_queue(work, &name);
	if (place)
		strbuf_addf(&name, ", %u", place + 1);
	if (result == 0)
		result = strbuf_status(&name);
	if (result == 0)
		result = writer_describe_track(writer, lane, parent, strbuf_cstr(&name));
	return result;
}

/* The first lane of its queue that nothing takes at that time; work comes nearly in order. */
static int find_lane(
	struct capture_writer *writer, const struct capture_device_work *work, uint64_t *ret_track)
{
	uint64_t busy_until_ns = 0;
	unsigned place = 0;

	for (;; place++) {
		const uint32_t key[] = {work->pid, work->context, work->queue, work->stream, place};

		*ret_track = writer_named_track(
			writer, LANE_TRACK, (uint32_t)hash_bytes(key, sizeof(key), 0));
		if (!map_u64_get(&writer->lanes, *ret_track, &busy_until_ns) ||
			busy_until_ns <= work->start_ns || place == MAX_LANES - 1)
			break;
	}
	int result = describe_lane(writer, work, *ret_track, place);

	if (result == 0)
		result = map_u64_set(&writer->lanes, *ret_track, MAX(busy_until_ns, work->end_ns));
	return result;
}

int writer_put_work_slices(struct capture_writer *writer, const struct capture_device_work *work)
{
	const char *name = work->name ? work->name : wire_device_kind_name(work->kind);
	const struct slice_flow flow = {
		.id = flow_of(writer, work->pid, work->correlation), .ends = true};
	uint64_t track;
	int result = 0;

	if (work->launch_ns)
		result = put_launch_slice(writer, work->pid, work->tid, name, work->launch_ns,
			work->launch_ns + work->launch_duration_ns, flow.id);
	if (result == 0)
		result = find_lane(writer, work, &track);
	if (result == 0)
		result = put_slice(writer, track, name, work->start_ns, work->end_ns, &flow);
	return result;
}
