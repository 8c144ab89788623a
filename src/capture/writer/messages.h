/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that are written once or rarely: each call appends one field to a TracePacket. */
#pragma once

#include "base/strbuf.h"
#include "capture/capture.h"

/* The clock that samples count in: nanoseconds from one packet of the sequence to the next. */
#define SAMPLE_CLOCK_ID 64

/* trace_packet_defaults: the clock and what a sample stands for. */
void put_defaults(struct strbuf *packet, uint64_t period_ns, bool stack_sample);
/* clock_snapshot: the three clocks of the session's start, and the sample clock set to it. */
void put_clock_snapshot(struct strbuf *packet, const struct capture_session *session);
void put_system_info(struct strbuf *packet, const struct capture_session *session);
void put_session(struct strbuf *packet, const struct capture_session *session);
/* track_descriptor, with sonde_process for the rest. */
void put_process(struct strbuf *packet, const struct capture_process *process, uint64_t uuid);
/* process_tree: what Perfetto does not take from the track. */
void put_process_tree(struct strbuf *packet, const struct capture_process *process);
void put_thread(struct strbuf *packet, const struct capture_thread *thread, uint64_t uuid);
/* Iids of names in gpu_specifications. */
struct device_work_names {
	uint64_t name, queue, device;
};

/* gpu_render_stage_event, with sonde_device_work for the rest. */
void put_device_work(struct strbuf *packet, const struct capture_device_work *work,
	const struct device_work_names *names, uint64_t event_id);
void put_launch(struct strbuf *packet, const struct capture_launch *launch);
void put_launch_stack(struct strbuf *packet, const struct capture_launch_stack *stack);
/* Iids of a TrackEvent's names; 0: none. */
struct range_event_names {
	uint64_t name, domain, category;
	uint64_t fields[WIRE_RANGE_MAX_FIELDS];
};

/* track_event. */
void put_range_event(struct strbuf *packet, const struct capture_range_event *event,
	const struct range_event_names *names);
/* track_descriptor of a track below another one. */
void put_child_track(struct strbuf *packet, uint64_t uuid, uint64_t parent, const char *name);
/* That of windows or steps; parent 0: it is below none. */
void put_counter_track(struct strbuf *packet, uint64_t uuid, uint64_t parent, const char *name);
/* Of a domain's power, in watts; its values repeat what sonde_energy_interval says. */
void put_power_track(struct strbuf *packet, uint64_t uuid, const char *name);
/* `name`: 0, of a track whose own name is enough. */
void put_counter(struct strbuf *packet, const struct capture_counter *counter, uint64_t track,
	uint64_t name);
void put_repeating_track(struct strbuf *packet, uint64_t uuid, uint64_t parent, const char *name);
void put_window(struct strbuf *packet, const struct capture_window *window);
/* With the event that begins its slice. */
void put_step(struct strbuf *packet, const struct capture_step *step, uint64_t name_iid,
	uint64_t number_iid, uint64_t track);
/* An arrow between slices with this id. */
struct slice_flow {
	uint64_t id; /* 0: none */
	bool ends;   /* here */
};

/* track_event that begins a slice of this name, or ends one; flow NULL: none. */
void put_slice_begin(
	struct strbuf *packet, uint64_t track, uint64_t name_iid, const struct slice_flow *flow);
void put_slice_end(struct strbuf *packet, uint64_t track);
/* The inside of a RecordingStats message. */
void put_stats(struct strbuf *message, const struct capture_stats *stats);
