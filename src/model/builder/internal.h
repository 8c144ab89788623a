/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What builder.c gathers and resolve.c turns into a model. Strings are ids in the model's table.
 *
 * builder.c has model_builder_visitor, the callbacks that the reader calls; resolve.c has
 * model_builder_finish(), which calls the builder_resolve_…() below. Those are in the file of their
 * subject: captures.c, collectives.c, counters.c, cut_off.c, device.c, device_events.c,
 * device_pcs.c, device_syncs.c, energy.c, ranges.c, recordings.c, stacks.c, traces.c,
 * windows.c.
 */
#pragma once

#include "model/builder/builder.h"
#include "model/windows.h"

struct raw_frame {
	uint64_t rel_pc;
	uint32_t name, source_file; /* MODEL_NONE: unknown */
	uint32_t line;
	uint32_t module; /* MODEL_NONE: unknown */
	enum capture_frame_kind kind;
};

struct raw_stack {
	uint32_t first, count;
	enum wire_stop stop;
	enum wire_python python;
};

struct raw_line {
	uint32_t name, source_file; /* MODEL_NONE: unknown */
	uint32_t line;
};

/* Lines of one site, innermost inlined function first: lines.items[first] … */
struct raw_site {
	uint32_t first, count;
};

struct raw_sample {
	uint64_t time_ns;
	uint32_t pid, tid;
	uint32_t callstack; /* index of a raw stack; 0: none */
	uint32_t gil_holder_tid;
	uint16_t cpu;
	uint8_t mode, gil, wait;
	bool wait_is_open;
	uint32_t wait_count;
	uint64_t duration_ns;
	uint32_t cycles, instructions;
};

/* A range or mark, without its process and thread, which are found by pid, tid and time. */
struct raw_range {
	struct model_range range;
	uint32_t pid, tid; /* tid 0: of the process */
};

struct raw_counter {
	struct model_counter counter; /* without its process */
	uint32_t pid;
};

/* A step without its process, thread, window and end. */
struct raw_step {
	struct model_step step;
	uint32_t pid, tid;
};

/* The ranges that are open on a track, outermost first: indices of raw ranges. */
struct range_track {
	ARRAY_OF(uint32_t) open;
};

/* Key of the table of sites. */
struct site_key {
	uint64_t rel_pc;
	uint32_t module;
	uint32_t zero; /* the key is hashed as bytes */
};

/*
 * Captures repeat frames and callstacks: for each sequence of packets, and each rank of a run has
 * those of the others. Which of those kept a capture's are, and the kept ones by hash.
 */
struct builder_stacks {
	ARRAY_OF(uint32_t) frames, stacks; /* by capture id: index; 0: none */
	struct map_u64 frame_hashes, stack_hashes;
};

struct trace_builder;

struct model_builder {
	struct model *model;
	ARRAY_OF(uint32_t) modules_by_mapping; /* by capture id */
	struct intern module_keys;             /* build id and path → index of module */
	struct builder_stacks stacks_seen;
	ARRAY_OF(struct raw_frame) frames; /* equal ones once; the first stands for none */
	ARRAY_OF(uint32_t) stack_frames;   /* indices of frames */
	ARRAY_OF(struct raw_stack) stacks; /* equal ones once; the first stands for none */
	struct intern sites;
	ARRAY_OF(struct raw_site) site_lines; /* by id of `sites` */
	ARRAY_OF(struct raw_line) lines;
	ARRAY_OF(struct raw_sample) samples;
	ARRAY_OF(struct capture_device_work) device_works; /* texts are the model's */
	ARRAY_OF(struct capture_launch) launches;
	ARRAY_OF(struct capture_launch_stack) launch_stacks; /* callstack: index of a raw stack */
	ARRAY_OF(struct raw_counter) counters;
	ARRAY_OF(struct model_window) windows; /* end 0: none is known */
	ARRAY_OF(struct raw_step) steps;
	const char *host;              /* of the recording that is read; NULL: unknown */
	struct model_stats earlier;    /* the accounts of the recordings before it, added */
	ARRAY_OF(uint32_t) energy_ids; /* by id of the read: index in the model; MODEL_NONE */
	ARRAY_OF(struct wire_energy_interval) energy_intervals; /* domain: the index, as below */
	ARRAY_OF(struct wire_energy_state) energy_states;
	struct window_choice window_choice;
	ARRAY_OF(struct raw_range) ranges;
	ARRAY_OF(struct range_track) range_tracks;
	struct map_u64 range_track_index;                    /* track → index */
	ARRAY_OF(struct capture_device_event) device_events; /* texts are the model's */
	struct map_u64 processes;            /* pid → the latest process of that pid */
	ARRAY_OF(uint32_t) earlier_same_pid; /* by process: the one before with this pid */
	struct map_u64 threads;              /* process << 32 | tid → thread */
	struct map_u64 functions;            /* name << 32 | module → function */
	struct trace_builder *traces;        /* NULL: none was imported */
	struct cut_off {
		uint32_t ended;     /* recordings with their last account */
		uint64_t start_ns;  /* of the recording whose account has not come; 0: none */
		uint64_t latest_ns; /* that its accounts speak of */
		uint64_t least_ns;
	} cut_off;
	bool paused;
	bool drop_arguments; /* of imported traces' rows */
	model_progress_function *progress;
	void *progress_context;
};

/* visitor->frame and ->callstack; the kept one of a capture's callstack, or 0. Return 0 or -ENOMEM.
 */
int builder_visit_frame(void *context, capture_id id, const struct capture_frame *frame);
int builder_visit_callstack(void *context, capture_id id, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python);
uint32_t builder_stack_of(const struct model_builder *builder, capture_id callstack);
void builder_forget_stacks(struct model_builder *builder);
void builder_stacks_done(struct model_builder *builder);

/*
 * Makes items[id] of an array by capture id exist, with `filler` in every slot that it adds. The
 * array's slot 0 stands for "none".
 */
#define reach_id(array, id, filler)                                                                \
	({                                                                                         \
		int _reach_result = 0;                                                             \
		while (_reach_result == 0 && (array)->count <= (id))                               \
			_reach_result = array_append(array, filler);                               \
		_reach_result;                                                                     \
	})

uint32_t builder_module_of_mapping(const struct model_builder *builder, capture_id mapping);

/* visitor->session, as far as there may be several, and visitor->stats. Return 0 or -ENOMEM. */
int builder_recording_begins(struct model_builder *builder, const struct capture_session *session);
int builder_visit_stats(void *context, const struct capture_stats *stats);
void builder_recordings_done(struct model_builder *builder);

/* A recording begins, its account has come, and the file has ended: which of them have no end.
 * The last returns 0 or -ENOMEM. */
void builder_cut_off_begins(struct model_builder *builder, const struct capture_session *session);
void builder_cut_off_account(struct model_builder *builder, const struct capture_stats *stats);
int builder_resolve_cut_off(struct model_builder *builder);

/* device_graphs.c: graphs that devices launched get the correlation of the host's launch that they
 * are charged to, where it is known. Returns 0 or -ENOMEM. */
int builder_charge_device_graphs(struct model_builder *builder);
/* Puts works, launches and stacks together; the stacks are there already. Returns 0 or -ENOMEM. */
int builder_resolve_device(struct model_builder *builder);

/* visitor->range, and the ranges in the model. Return 0 or -ENOMEM. */
int builder_visit_range(void *context, const struct capture_range_event *event);
int builder_resolve_ranges(struct model_builder *builder);
void builder_ranges_done(struct model_builder *builder);

/* What kernels of NCCL move, once works and ranges are there. Returns 0 or -ENOMEM. */
int builder_resolve_collectives(struct model_builder *builder);

/* visitor->counter, and the counters in the model. Return 0 or -ENOMEM. */
int builder_visit_counter(void *context, const struct capture_counter *counter);
int builder_resolve_counters(struct model_builder *builder);
void builder_counters_done(struct model_builder *builder);

/* visitor->energy_domain and the others, and energy in the model, after its windows, from a moment
 * on; 0: all. Return 0 or -ENOMEM. */
int builder_visit_energy_domain(void *context, const struct wire_energy_domain *given);
int builder_visit_energy_interval(void *context, const struct wire_energy_interval *interval);
int builder_visit_energy_state(void *context, const struct wire_energy_state *state);
int builder_visit_energy_absence(void *context, const struct wire_energy_absence *absence);
int builder_resolve_energy(struct model_builder *builder, uint64_t from_ns);
void builder_forget_energy(struct model_builder *builder, uint64_t before_ns);
void builder_energy_done(struct model_builder *builder);

/* visitor->trace and the others of its kind, and the last trace in the model. Return 0 or -ENOMEM.
 */
int builder_visit_trace(void *context, const struct capture_trace *about);
int builder_visit_trace_track(void *context, const struct capture_trace_track *about);
int builder_visit_trace_row(void *context, const struct capture_trace_row *given);
int builder_visit_trace_flow(void *context, const struct capture_trace_flow *given);
int builder_visit_trace_counter(void *context, const struct capture_trace_counter *given);
int builder_visit_trace_group(void *context, const struct capture_trace_group *given);
int builder_resolve_traces(struct model_builder *builder);
void builder_traces_done(struct model_builder *builder);

/* visitor->window and ->step, and both in the model: before all else, which asks
 * builder_is_chosen(). Return 0 or -ENOMEM. */
int builder_visit_window(void *context, const struct capture_window *window);
int builder_visit_step(void *context, const struct capture_step *step);
int builder_resolve_windows(struct model_builder *builder);
void builder_windows_done(struct model_builder *builder);
/* Is this moment in a window that was chosen? Without a choice every moment is. */
bool builder_is_chosen(const struct model_builder *builder, uint64_t time_ns);

/* What came for one correlation id of one process: indices + 1; 0: nothing. */
struct device_join {
	uint32_t launch, stack;
	uint32_t captured; /* a launch that became nodes of a graph, whenever it was */
	uint32_t call;     /* the model's captured call of it, + 1 */
	bool has_work;
	bool is_graph_call;  /* and no launch */
	bool is_call;        /* it launches nothing: its stack is no launch's */
	uint32_t other_call; /* in device_events: CAPTURE_DEVICE_CALL */
	bool is_elsewhere; /* the stack, or what was captured, is of a moment that was not chosen */
};

struct device_joins {
	struct intern keys;
	ARRAY_OF(struct device_join) items; /* by id of `keys` */
};

/* Finds or makes it. Returns 0 or -ENOMEM. */
int device_joins_add(struct device_joins *joins, uint32_t pid, uint64_t correlation,
	struct device_join **ret_join);
/* NULL: nothing came for it. */
struct device_join *device_joins_find(
	struct device_joins *joins, uint32_t pid, uint64_t correlation);
/* The stack of a call; MODEL_NONE: not known. */
uint32_t device_join_stack(const struct model_builder *builder, const struct device_join *join);
/* captures.c: the model's call of what was captured, made where there is none. Returns 0 or
 * -ENOMEM.
 */
int builder_captured_call(
	struct model_builder *builder, struct device_join *join, uint32_t *ret_call);

struct captured_span {
	uint64_t start_ns, end_ns;
	uint32_t pid, tid;
};

/* When and on which threads the model's captured calls were, by thread and time. */
struct captured_spans {
	ARRAY_OF(struct captured_span) items;
};

/* Returns 0 or -ENOMEM. */
int captured_spans_init(struct captured_spans *spans, const struct model *model);
void captured_spans_done(struct captured_spans *spans);
/* Does one of the calls lie in the range? */
bool captured_spans_are_in(const struct captured_spans *spans, const struct raw_range *range);
/* device_events.c: GPUs, graphs and the like; their indices by process and number in `ret_gpus`. */
int builder_resolve_device_events(
	struct model_builder *builder, struct device_joins *joins, struct map_u64 *ret_gpus);
/* device_pcs.c: `texts` has those of the ids of each process. Return 0 or a negative errno. */
int builder_add_pc_text(
	const struct capture_device_event *event, uint32_t process, struct map_u64 *texts);
int builder_add_pc(struct model_builder *builder, const struct capture_device_event *event,
	uint32_t process, const struct map_u64 *texts);
int builder_add_pc_counts(struct model_builder *builder, const struct capture_device_event *event);
/* device_syncs.c: of what is in the model, on which device waits were, and for what. Returns 0 or
 * -ENOMEM. */
int builder_join_device_syncs(struct model *model);
#define DEVICE_GPU_KEY(pid, number) ((uint64_t)(pid) << 32 | (number))

/* Interns `text` in the model; NULL and "" give MODEL_NONE. Returns 0 or -ENOMEM. */
int builder_text(struct model_builder *builder, const char *text, uint32_t *ret_id);
/* Interns `text` in the model and gives the lasting copy, "" for NULL. Returns 0 or -ENOMEM. */
int builder_keep(struct model_builder *builder, const char *text, const char **ret_text);
/* The thread `tid` of a process, made with a placeholder's name when there is none. */
int builder_thread(
	struct model_builder *builder, uint32_t process, uint32_t tid, uint32_t *ret_thread);
/* The process with `pid` that was alive at `time_ns`, made with a placeholder's name when there is
 * none. */
int builder_process_at(
	struct model_builder *builder, uint32_t pid, uint64_t time_ns, uint32_t *ret_process);
