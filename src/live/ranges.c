/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges that are open: on each track an end is that of the innermost one, as in
 * model/builder/ranges.c. */
#include <stdlib.h>

#include "live/state.h"

#define TOKEN_DOMAIN    "sonde.token"
#define MODEL_DOMAIN    "sonde.model"
#define GENERATE_DOMAIN "transformers"
#define GENERATE        "generate"
/* Deeper ones are counted, so that their ends are not those of others. */
#define MOST_OPEN    4096
#define CURRENT_ROWS 64

/* ---- what an event carries ---- */

const struct capture_range_field *live_field(
	const struct capture_range_event *event, const char *name)
{
	for (uint32_t i = 0; i < event->field_count; i++) {
		if (strcmp(event->fields[i].name, name) == 0)
			return &event->fields[i];
	}
	return NULL;
}

/* As range_u64() of analyses/program/range_fields.h. */
bool live_field_u64(const struct capture_range_event *event, const char *name, uint64_t *ret_value)
{
	const struct capture_range_field *field = live_field(event, name);
	double value;

	if (!field || field->type == WIRE_RANGE_TEXT)
		return false;
	if (field->type == WIRE_RANGE_U64) {
		*ret_value = field->value;
	} else if (field->type == WIRE_RANGE_I64) {
		*ret_value = (int64_t)field->value < 0 ? 0 : field->value;
	} else {
		memcpy(&value, &field->value, sizeof(value));
		*ret_value = value > 0 && value < 0x1p63 ? (uint64_t)value : 0;
	}
	return true;
}

const char *live_field_text(const struct capture_range_event *event, const char *name)
{
	const struct capture_range_field *field = live_field(event, name);

	return field && field->type == WIRE_RANGE_TEXT && field->text ? field->text : "";
}

/* ---- begins and ends ---- */

static int find_track(struct live_figures *figures, const struct capture_range_event *event,
	struct live_track **ret_track)
{
	uint64_t place;
	int r;

	if (!map_u64_get(&figures->track_index, event->track, &place)) {
		place = figures->tracks.count;
		r = array_append(&figures->tracks, (struct live_track){0});
		if (r == 0)
			r = map_u64_set(&figures->track_index, event->track, place);
		if (r < 0)
			return r;
	}
	*ret_track = &figures->tracks.items[place];
	(*ret_track)->pid = event->pid;
	(*ret_track)->tid = event->lane ? 0 : event->tid;
	return 0;
}

static int begin_phase(struct live_figures *figures, const struct capture_range_event *event,
	struct live_range *range)
{
	const char *name = live_phase_name(event);
	struct live_process *process = name ? live_process_of(figures, event->pid) : NULL;
	struct live_phase phase;
	int r;

	if (!name)
		return 0;
	if (!process)
		return -ENOMEM;
	process->has_phases = true;
	r = live_begin_phase(figures, "phase", name, event->pid, event->time_ns, &phase);
	range->phase = phase.id;
	range->phase_name = phase.name;
	return r;
}

static int begin(struct live_figures *figures, struct live_track *track,
	const struct capture_range_event *event)
{
	struct live_range range = {.since_ns = event->time_ns, .own_from_ns = event->time_ns};
	int r;

	if (track->open.count == MOST_OPEN) {
		track->too_deep++;
		return 0;
	}
	r = live_keep_text(figures, event->domain, &range.domain);
	if (r == 0)
		r = live_keep_text(figures, event->name, &range.name);
	if (r == 0)
		r = begin_phase(figures, event, &range);
	if (r == 0 && strcmp(event->domain, GENERATE_DOMAIN) == 0 &&
		strcmp(event->name, GENERATE) == 0)
		range.request = live_generated_request(figures, event);
	if (r == 0)
		r = array_append(&track->open, range);
	if (r == 0 && track->tid && strcmp(event->domain, MODEL_DOMAIN) == 0)
		r = live_begin_layer(figures, track, event);
	return r;
}

static int end(struct live_figures *figures, struct live_track *track, uint64_t time_ns)
{
	struct live_range range;
	struct live_phase phase;
	int r = 0;

	if (track->too_deep) {
		track->too_deep--;
		return 0;
	}
	if (!track->open.count)
		return 0;
	range = track->open.items[--track->open.count];
	if (range.layer)
		live_end_layer(figures, track, &range, MAX(time_ns, range.since_ns));
	if (range.phase) {
		phase = (struct live_phase){.id = range.phase,
			.begin_ns = range.since_ns,
			.kind = "phase",
			.name = range.phase_name,
			.pid = track->pid};
		r = live_end_phase(figures, &phase, MAX(time_ns, range.since_ns));
	}
	if (r == 0 && range.request)
		r = live_end_request(figures, range.request - 1, time_ns);
	return r;
}

int live_add_range(struct live_figures *figures, const struct capture_range_event *event)
{
	struct live_track *track;
	int r;

	if (event->kind == CAPTURE_RANGE_MARK)
		return strcmp(event->domain, TOKEN_DOMAIN) == 0 ? live_add_token(figures, event)
								: 0;
	r = find_track(figures, event, &track);
	if (r < 0)
		return r;
	return event->kind == CAPTURE_RANGE_BEGIN ? begin(figures, track, event)
						  : end(figures, track, event->time_ns);
}

/* ---- what runs now ---- */

static void write_open(const struct live_figures *figures, struct json_writer *json,
	const struct live_track *track)
{
	const struct live_range *range = &track->open.items[track->open.count - 1];
	uint64_t name = 0;

	map_u64_get(&figures->thread_names, (uint64_t)track->pid << 32 | track->tid, &name);
	if (!name)
		map_u64_get(&figures->pids, track->pid, &name);
	json_begin_object(json);
	json_member_u64(json, "pid", track->pid);
	json_member_u64(json, "tid", track->tid);
	live_member_name(json, "thread", name ? live_text(figures, (uint32_t)name - 1) : "");
	live_member_text(figures, json, "domain", range->domain);
	live_member_text(figures, json, "name", range->name);
	json_member_u64(json, "depth", track->open.count + track->too_deep);
	live_member_t_ms(figures, json, "since_ms", range->since_ns);
	json_end_object(json);
}

int live_write_current(struct live_figures *figures, struct json_writer *json)
{
	size_t rows = 0;

	live_begin_message(figures, json);
	live_member_t_ms(figures, json, "t_ms", figures->newest_ns);
	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; i < figures->tracks.count && rows < CURRENT_ROWS; i++) {
		const struct live_track *track = &figures->tracks.items[i];

		if (!track->tid || !track->open.count)
			continue;
		write_open(figures, json, track);
		rows++;
	}
	json_end_array(json);
	json_end_object(json);
	return 0;
}
