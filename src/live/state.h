/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: figures.c dispatches to the others. Nothing else includes
 * it.
 */
#pragma once

#include "base/array.h"
#include "base/json.h"
#include "base/map.h"
#include "live/live.h"

#define LIVE_RECENT_SECONDS 10

/* An amount since the start, and in each of the last seconds of the recording. */
struct live_recent {
	uint64_t total, second;
	uint64_t amounts[LIVE_RECENT_SECONDS]; /* of `second` and those before it, by % */
};

/* ---- parts ---- */

struct live_session {
	uint32_t host, wait_mode, launch_stacks; /* texts + 1; 0: none */
	ARRAY_OF(uint32_t) command;              /* texts */
	uint64_t start_realtime_ns, period_ns;
	bool whole_machine;
};

struct live_rail {
	uint32_t name, source, device;
	uint32_t parent, part, quality;
	bool is_replayed, has_intervals;
	uint64_t period_ns;
	double limit_w;
	uint64_t energy_nj;
	ARRAY_OF(struct live_point {
		uint64_t end_ns;
		double w; /* NaN: a gap */
	})
	points; /* that were not sent yet */
};

struct live_mapping {
	uint32_t path;
	bool is_interpreter, is_sonde, is_start; /* is_start: native code, or the C library */
};

struct live_frame {
	uint64_t rel_pc;
	uint32_t name;    /* text + 1; 0: none */
	uint32_t mapping; /* id; 0: none */
	uint32_t cost;    /* in `costs` + 1; 0: none yet */
	bool is_python, is_interpreter, is_sonde, is_start;
};

struct live_cost {
	uint32_t frame; /* id */
	struct live_recent samples;
};

struct live_functions {
	ARRAY_OF(struct live_mapping) mappings;
	ARRAY_OF(struct live_frame) frames;
	ARRAY_OF(uint32_t) innermost; /* of each callstack, the frame's id; 0: none */
	ARRAY_OF(struct live_cost) costs;
	struct live_recent without_stack;
	struct map_u64 symbols; /* of a place in a mapping: text of the innermost function */
};

struct live_kernel {
	uint32_t name, device;
	uint64_t count;
	struct live_recent time_ns;
};

struct live_busy {
	uint64_t start_ns, end_ns;
};

struct live_device {
	uint32_t name;
	ARRAY_OF(struct live_busy) busy; /* of the last seconds, in order, apart */
};

struct live_devices {
	ARRAY_OF(struct live_kernel) kernels;
	ARRAY_OF(struct live_device) devices;
	struct map_u64 kernel_index, device_index;
	uint64_t kernel_count;
};

struct live_range {
	uint32_t domain, name;
	uint64_t since_ns;
	uint64_t phase; /* 0: it is none */
	uint32_t phase_name;
	uint32_t request;             /* + 1, of generate(); 0: none */
	uint32_t layer;               /* row + 1; 0: none */
	uint64_t own_ns, own_from_ns; /* of a layer's */
};

/* Where ranges nest. */
struct live_track {
	uint32_t pid, tid; /* tid 0: of the process */
	uint64_t too_deep;
	ARRAY_OF(struct live_range) open;
};

struct live_layer {
	uint64_t layer; /* UINT64_MAX: beside the layers */
	uint32_t pid, role;
	uint64_t calls;
	struct live_recent own_ns;
	bool has_inner;
};

struct live_request {
	uint32_t pid, id; /* id: a text */
	uint64_t arrival_ns, prefill_ns, first_ns, last_ns;
	uint64_t marks, by_index; /* tokens, if each mark is one; and if indices count them */
	uint64_t last_index, last_window, phase;
	bool falls; /* indices do not always rise */
	bool is_running, is_done;
};

struct live_token {
	uint32_t pid, request, phase; /* texts */
	uint64_t index, time_ns, gap_ns;
	bool has_index, has_gap;
};

struct live_request_event {
	uint32_t pid, request;
	uint64_t time_ns;
	const char *event;
};

struct live_tokens {
	ARRAY_OF(struct live_request) requests;
	struct intern keys; /* of pid and id → the latest request of this name */
	ARRAY_OF(uint32_t) latest;
	ARRAY_OF(struct live_token) tokens; /* that were not sent yet; and these: */
	ARRAY_OF(struct live_request_event) events;
	uint64_t count; /* of requests that others of the same name have followed */
	uint64_t running, done;
	struct live_recent recent;
};

struct live_phase {
	uint64_t id, begin_ns, end_ns;
	const char *kind;
	uint32_t name, pid;
	bool is_open;
};

struct live_process {
	uint32_t pid;
	bool has_phases; /* ranges of them */
	struct live_phase step;
};

struct live_phases {
	ARRAY_OF(struct live_phase) changed; /* that were not sent yet */
	ARRAY_OF(struct live_process) processes;
	struct map_u64 process_index;
	struct map_u64 windows; /* number → id */
	uint64_t last_id;
	uint64_t window_changes; /* windows that opened or closed */
};

struct live_loss {
	uint32_t where;
	uint64_t count;
};

struct live_absence {
	uint32_t source, reason;
};

struct live_figures {
	char *capture, *name;
	uint64_t generation, bytes;
	struct intern texts;
	uint64_t start_ns, newest_ns;
	bool has_start, session_changed, has_ended;
	int32_t exit_status;
	struct live_session session;
	/* Names by pid, and by pid and tid: text + 1; 0: not known. */
	struct map_u64 pids, thread_names;
	struct live_recent samples, waited_ns;
	uint64_t samples_lost;
	ARRAY_OF(struct live_loss) losses;
	ARRAY_OF(struct live_absence) absences;
	ARRAY_OF(struct live_rail) rails;
	struct live_functions functions;
	struct live_devices devices;
	ARRAY_OF(struct live_track) tracks;
	struct map_u64 track_index;
	ARRAY_OF(struct live_layer) layers;
	struct intern layer_keys;
	struct live_tokens tokens;
	struct live_phases phases;
};

/* ---- figures.c ---- */

/* The newest moment of the recording, which "recent" is before. */
void live_see_time(struct live_figures *figures, uint64_t time_ns);
int live_keep_text(struct live_figures *figures, const char *text, uint32_t *ret_text);
static inline const char *live_text(const struct live_figures *figures, uint32_t text)
{
	return intern_get(&figures->texts, text);
}
int live_see_thread(struct live_figures *figures, uint32_t pid, uint32_t tid);

/* ---- recent.c ---- */

uint64_t live_second(const struct live_figures *figures, uint64_t time_ns);
void live_recent_add(struct live_recent *recent, uint64_t second, uint64_t amount);
/* Time from one moment to another, each second what lies in it. */
void live_recent_add_span(const struct live_figures *figures, struct live_recent *recent,
	uint64_t start_ns, uint64_t end_ns);
/* Of the last seconds. */
uint64_t live_recent_sum(const struct live_figures *figures, const struct live_recent *recent);
/* How long those are, in seconds; 0: nothing was recorded yet. */
double live_recent_s(const struct live_figures *figures);
uint64_t live_recent_begin_ns(const struct live_figures *figures);

/* ---- functions.c ---- */

int live_add_mapping(
	struct live_figures *figures, capture_id id, const struct capture_mapping *mapping);
int live_add_frame(struct live_figures *figures, capture_id id, const struct capture_frame *frame);
int live_add_callstack(
	struct live_figures *figures, capture_id id, const capture_id *frames, size_t count);
int live_add_symbols(struct live_figures *figures, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count);
int live_count_sample(struct live_figures *figures, const struct capture_sample *sample);
int live_write_functions(struct live_figures *figures, struct json_writer *json);
void live_functions_done(struct live_functions *functions);

/* ---- device.c ---- */

int live_add_work(struct live_figures *figures, const struct capture_device_work *work);
void live_write_busy(struct live_figures *figures, struct json_writer *json);
int live_write_kernels(struct live_figures *figures, struct json_writer *json);
void live_devices_done(struct live_devices *devices);

/* ---- power.c ---- */

int live_add_rail(struct live_figures *figures, const struct wire_energy_domain *domain);
int live_add_interval(struct live_figures *figures, const struct wire_energy_interval *interval);
void live_write_rails(const struct live_figures *figures, struct json_writer *json);
void live_write_joules(const struct live_figures *figures, struct json_writer *json);
/* From rail `first` on, as many as one message takes; *ret_next is the first that is left. */
bool live_has_power(const struct live_figures *figures);
int live_write_power(struct live_figures *figures, size_t first, size_t *ret_next,
	struct json_writer *json, struct strbuf *columns);

/* ---- ranges.c ---- */

const struct capture_range_field *live_field(
	const struct capture_range_event *event, const char *name);
bool live_field_u64(const struct capture_range_event *event, const char *name, uint64_t *ret_value);
/* "" where there is none. */
const char *live_field_text(const struct capture_range_event *event, const char *name);
int live_add_range(struct live_figures *figures, const struct capture_range_event *event);
int live_write_current(struct live_figures *figures, struct json_writer *json);

/* ---- layers.c ---- */

/* Of a range of DOMAIN_MODEL, which `track` has open innermost when it begins. */
int live_begin_layer(struct live_figures *figures, struct live_track *track,
	const struct capture_range_event *event);
/* It ended, and is no longer in the track. */
void live_end_layer(struct live_figures *figures, struct live_track *track,
	const struct live_range *range, uint64_t end_ns);
int live_write_layers(struct live_figures *figures, struct json_writer *json);

/* ---- tokens.c ---- */

int live_add_token(struct live_figures *figures, const struct capture_range_event *mark);
/* The request that a call of generate() names; 0: it is not known. */
uint32_t live_generated_request(
	struct live_figures *figures, const struct capture_range_event *event);
int live_end_request(struct live_figures *figures, uint32_t index, uint64_t time_ns);
uint64_t live_token_count(const struct live_figures *figures);
bool live_has_tokens(const struct live_figures *figures);
/* At most as many as one message takes. */
int live_write_tokens(
	struct live_figures *figures, struct json_writer *json, struct strbuf *columns);
void live_tokens_done(struct live_tokens *tokens);

/* ---- phases.c ---- */

/* NULL: no memory. */
struct live_process *live_process_of(struct live_figures *figures, uint32_t pid);
/* The phase that a range is, by its name; NULL: it is none. */
const char *live_phase_name(const struct capture_range_event *event);
int live_begin_phase(struct live_figures *figures, const char *kind, const char *name, uint32_t pid,
	uint64_t begin_ns, struct live_phase *ret_phase);
int live_end_phase(struct live_figures *figures, const struct live_phase *phase, uint64_t end_ns);
int live_add_step(struct live_figures *figures, const struct capture_step *step);
int live_add_window(struct live_figures *figures, const struct capture_window *window);
bool live_has_phases(const struct live_figures *figures);
void live_write_phases(struct live_figures *figures, struct json_writer *json);
void live_phases_done(struct live_phases *phases);

/* ---- messages.c ---- */

double live_t_ms(const struct live_figures *figures, uint64_t time_ns);
/* {"capture": …, without the end. */
void live_begin_message(const struct live_figures *figures, struct json_writer *json);
void live_member_t_ms(const struct live_figures *figures, struct json_writer *json, const char *key,
	uint64_t time_ns);
/* In ms; with three decimals. */
void live_member_ms(struct json_writer *json, const char *key, double ns);
/* How much of it is shown: names that are long are cut. */
size_t live_cut(const char *text);
/* Cut where it is long. */
void live_member_string(struct json_writer *json, const char *key, const char *text);
/* The same, null for "". */
void live_member_name(struct json_writer *json, const char *key, const char *text);
void live_member_text(const struct live_figures *figures, struct json_writer *json, const char *key,
	uint32_t text);
