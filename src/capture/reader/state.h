/* SPDX-License-Identifier: Apache-2.0 */
/* What a read of a capture remembers between packets, shared by the reader's files. */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "capture/protobuf.h"
#include "capture/reader/clocks.h"
#include "capture/reader/iid_table.h"
#include "capture/reader/inflater.h"
#include "capture/reader/reader.h"
#include "capture/row_state.h"

/* The two numbers of a StackSample context: pid and tid, or cpu and mode. */
struct sample_context {
	uint32_t first, second;
};

/* Of TrackEvents: the thread's or process's own, or one below another. */
struct track {
	uint64_t parent; /* 0: none */
	uint32_t pid, tid;
	uint32_t name;        /* of counters: a string + 1; 0: none */
	uint32_t title;       /* of all others, the same */
	uint32_t trace_track; /* number + 1 of an imported trace's track; 0: none */
	bool repeats;         /* its events say what windows and steps say */
};

/* The state of one packet sequence: iids mean nothing outside of it. */
struct sequence {
	uint32_t id;
	bool has_state; /* packets that need incremental state can be read */
	uint32_t default_clock;
	struct clocks clocks;
	/* → string id + 1 */
	struct iid_table function_names, source_paths, mapping_paths, build_ids;
	/* → ids of this read */
	struct iid_table mappings, frames, callstacks;
	/* → index + 1 */
	struct iid_table task_iids, execution_iids;
	struct iid_table specifications; /* → string id + 1 */
	struct iid_table contexts;       /* of other recorders → pid */
	struct iid_table energy_domains; /* → ids of this read */
	struct iid_table event_categories, event_names, annotation_names, annotation_texts;
	uint64_t default_track; /* of TrackEvents */
	/* Its packets are rows of an imported trace's track, by default of this one; 0: they are
	 * not. */
	uint32_t trace_track;
	struct row_state *rows; /* NULL: there were none */
	ARRAY_OF(struct sample_context) tasks, executions;
};

struct reader {
	const char *name;
	const struct capture_visitor *visitor;
	void *context;
	struct capture_read_result *result;
	const char *cause; /* of a corrupt packet; NULL: its fields do not decode */
	int stopped;       /* what a visitor returned to stop */
	bool lacks_state;  /* the packet refers to interned data that is not there */
	bool is_trace;     /* a first packet was there */
	bool is_ours;      /* a recording of sonde */
	uint64_t packet_offset;
	uint64_t input_bytes, total_bytes, next_progress; /* of the file */

	struct intern strings;
	struct intern mappings;  /* keys of reader_mapping_key() */
	uint64_t retained_bytes; /* what stays in memory because the file says so */
	struct map_u64 sequence_index;
	ARRAY_OF(struct sequence *) sequences;
	struct sequence *last_sequence; /* of the packet before; NULL: none */
	struct clocks clocks;
	struct map_u64 track_index; /* uuid → index */
	ARRAY_OF(struct track) tracks;
	ARRAY_OF(struct capture_range_field) range_fields; /* of the event being read */
	bool is_counter;                                   /* the same event is one: its value */
	uint64_t counter_bits;
	struct pb_bytes submissions;  /* of the same event; empty: none */
	struct capture_trace_row row; /* of an imported trace, being read */
	/* Of that trace: what event ids are made of. */
	uint64_t event_id_base, uncorrelated_base, trace_rows;
	uint32_t empty_string;
	ARRAY_OF(struct capture_trace_category) categories; /* of the trace being read */
	capture_id frame_count, callstack_count;
	uint32_t energy_domain_count;
	ARRAY_OF(capture_id) frame_ids; /* of the callstack being read */
	struct inflater inflater;
	struct gpu_slices *gpu_slices; /* of other recorders; NULL: there were none */
};

/*
 * Calls a visitor's function when it has one; a negative return stops the read. Worth 0 or that
 * return.
 */
#define reader_visit(reader, function, ...)                                                        \
	({                                                                                         \
		int _visited = 0;                                                                  \
		if ((reader)->visitor->function)                                                   \
			_visited = (reader)->visitor->function((reader)->context, __VA_ARGS__);    \
		if (_visited < 0)                                                                  \
			(reader)->stopped = _visited;                                              \
		_visited < 0 ? _visited : 0;                                                       \
	})

/* -EBADMSG with the cause, for the sentence that names the offset. */
static inline int reader_corrupt(struct reader *reader, const char *cause)
{
	reader->cause = cause;
	return -EBADMSG;
}

/* Counts memory that the file makes us keep: 0, or -EBADMSG beyond any honest capture. */
int reader_retain(struct reader *reader, size_t bytes);

/* Keeps a text or bytes for the whole read. */
int reader_string(struct reader *reader, struct pb_bytes bytes, uint32_t *ret_id);
int reader_text(struct reader *reader, struct pb_bytes bytes, const char **ret_text);

/*
 * The fields of one TracePacket that we read. Imported traces have millions of packets with rows
 * and nothing else: the rest is only set, and looked at, with has_rest.
 */
struct packet {
	uint64_t timestamp;
	uint32_t clock, sequence_id, flags;
	bool has_timestamp, previous_dropped, has_rest;
	struct pb_bytes track_event, gpu_stage, trace_row;
	struct {
		bool has_zstd;
		bool has_other; /* data of a source that is not read */
		enum capture_device_event_kind device_event_kind;
		struct pb_bytes device_event; /* of that kind */
		struct pb_bytes interned_data, defaults, clock_snapshot, compressed, perf_sample,
			stack_sample, wait_sample, device_work, launch, launch_stack, track,
			symbols, session, stats, process_info, window, step, trace, trace_track,
			trace_flow, trace_counter, trace_group, energy_domain, energy_interval,
			energy_state, energy_absence;
	} rest;
};

/*
 * Splits a packet into its fields. `strict` is for the first of a file, to tell captures from other
 * bytes: TracePacket's own fields are varints and messages, so other wire types mean that it is
 * none.
 */
int reader_decode_packet(struct pb_bytes bytes, bool strict, struct packet *ret_packet);
/* Takes in a packet that is not a compressed one, and counts it. */
int reader_take_packet(struct reader *reader, const struct packet *packet);

void sequence_clear(struct sequence *sequence);
void sequence_free(struct sequence *sequence);

/* TracePacket.interned_data */
int reader_interned_data(struct reader *reader, struct sequence *sequence, struct pb_bytes data);
/* A name of gpu_specifications; NULL when the file does not have it. */
const char *reader_specification(
	const struct reader *reader, const struct sequence *sequence, uint64_t iid);
/* The text of an iid in one of a sequence's tables of strings; "" when the file lacks it. */
const char *reader_interned_text(
	const struct reader *reader, const struct iid_table *table, uint64_t iid);
/*
 * The key by which equal mappings of several sequences are one; `verbatim` is the path's form (see
 * sonde_verbatim_path in schema/sonde.proto).
 */
void reader_mapping_key(struct strbuf *key, bool verbatim, struct pb_bytes build_id,
	const char *path, size_t path_length);

/* The other messages of a packet. Return 0 or a negative errno. */
int reader_session(struct reader *reader, struct pb_bytes message);
int reader_stats(struct reader *reader, struct pb_bytes message);
int reader_track(struct reader *reader, struct pb_bytes track, struct pb_bytes process_info);
int reader_module_symbols(struct reader *reader, struct pb_bytes message);
int reader_perf_sample(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message);
int reader_stack_sample(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message);
int reader_device_work(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes stage, struct pb_bytes message);
int reader_launch(struct reader *reader, uint64_t time_ns, struct pb_bytes message);
int reader_launch_stack(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message);
int reader_track_event(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message);
int reader_window(struct reader *reader, struct pb_bytes message);
int reader_step(struct reader *reader, const struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message);
/* Remembers what the track of a TrackDescriptor belongs to. */
int reader_event_track(struct reader *reader, struct pb_bytes descriptor);
int reader_device_event(struct reader *reader, uint64_t time_ns,
	enum capture_device_event_kind kind, struct pb_bytes message);
/* ---- foreign.c ---- */

int reader_graphics_context(
	struct reader *reader, struct sequence *sequence, struct pb_bytes message);
/* A stage of which DeviceWork says nothing more. */
int reader_foreign_stage(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message);
int reader_submissions(struct reader *reader, const struct capture_range_event *event,
	struct pb_bytes correlation);

/* gpu_slices.c: a slice of another recorder begins or ends. *ret_is_work: it is work of a GPU,
 * which is told as such, and no range. Sets the event's thread where the slice says it. */
int reader_gpu_slice(struct reader *reader, const char *track_name,
	struct capture_range_event *event, bool *ret_is_work);
void reader_gpu_slices_done(struct reader *reader);

/* ---- energy.c ---- */

int reader_energy_domain(struct reader *reader, struct sequence *sequence, struct pb_bytes message);
int reader_energy_interval(struct reader *reader, const struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message);
int reader_energy_state(struct reader *reader, const struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message);
int reader_energy_absence(struct reader *reader, struct pb_bytes message);

/* ---- trace.c ---- */

int reader_trace(struct reader *reader, struct pb_bytes message);
int reader_trace_track(struct reader *reader, struct pb_bytes message);
/* Defaults of a sequence were written: are its packets rows? */
int reader_begin_rows(struct reader *reader, struct sequence *sequence);
/* `fields`: its TraceRow, where it is beside the event. */
int reader_trace_slice(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message, struct pb_bytes fields);
int reader_trace_stage(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes stage, struct pb_bytes message);
int reader_trace_flow(struct reader *reader, struct pb_bytes message);
int reader_trace_counter(struct reader *reader, struct pb_bytes message);
int reader_trace_group(struct reader *reader, struct pb_bytes message);

/* A GpuRenderStageEvent; work->start_ns is known. */
int reader_stage(struct pb_bytes message, struct capture_device_work *work, uint64_t *ret_name_iid);
uint64_t reader_fixed64(struct pb_bytes bytes);
int reader_wait_sample(struct reader *reader, struct sequence *sequence, uint64_t time_ns,
	struct pb_bytes message);
