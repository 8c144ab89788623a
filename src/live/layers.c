/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers and components of models by the time of their own, as in analyses/inference/layers.h: each
 * range without those inside it. Ranges that are still open do not count yet.
 */
#include <stdlib.h>

#include "live/state.h"

#define NO_LAYER UINT64_MAX
#define ROWS     2000

struct key {
	uint64_t layer;
	uint32_t pid, role;
};

static struct live_layer *row_of(struct live_figures *figures, const struct live_range *range)
{
	return range->layer ? &figures->layers.items[range->layer - 1] : NULL;
}

/* The layer that a range names, or that of the one around it. */
static uint64_t layer_of(struct live_figures *figures, const struct capture_range_event *event,
	const struct live_range *outer)
{
	const struct live_layer *row = outer ? row_of(figures, outer) : NULL;
	uint64_t layer;

	if (live_field_u64(event, "layer", &layer))
		return layer;
	return row ? row->layer : NO_LAYER;
}

/* A forward pass without ranges inside: its time says nothing about parts. */
static bool is_unwatched(
	const struct capture_range_event *event, const struct live_range *outer, const char *role)
{
	uint64_t value;

	return !outer && strcmp(role, "step") == 0 &&
	       live_field_u64(event, "instrumented", &value) && value == 0;
}

int live_begin_layer(struct live_figures *figures, struct live_track *track,
	const struct capture_range_event *event)
{
	struct live_range *range = &track->open.items[track->open.count - 1];
	struct live_range *outer = track->open.count > 1 ? range - 1 : NULL;
	const char *role = live_field_text(event, "role");
	struct key key = {.layer = layer_of(figures, event, outer), .pid = event->pid};
	uint32_t row = 0;
	int r;

	if (is_unwatched(event, outer, role))
		return 0;
	r = live_keep_text(figures, *role ? role : event->name, &key.role);
	if (r == 0)
		r = intern_add(&figures->layer_keys, &key, sizeof(key), &row);
	if (r == 1)
		r = array_append(&figures->layers, (struct live_layer){
							   .layer = key.layer,
							   .pid = key.pid,
							   .role = key.role,
						   });
	if (r < 0)
		return r;
	range->layer = row + 1;
	if (outer && outer->layer) {
		row_of(figures, outer)->has_inner = true;
		if (event->time_ns > outer->own_from_ns)
			outer->own_ns += event->time_ns - outer->own_from_ns;
		outer->own_from_ns = MAX(outer->own_from_ns, event->time_ns);
	}
	return 0;
}

void live_end_layer(struct live_figures *figures, struct live_track *track,
	const struct live_range *range, uint64_t end_ns)
{
	struct live_layer *row = row_of(figures, range);
	uint64_t own_ns = range->own_ns;

	if (end_ns > range->own_from_ns)
		own_ns += end_ns - range->own_from_ns;
	row->calls++;
	live_recent_add(&row->own_ns, live_second(figures, end_ns), own_ns);
	if (track->open.count)
		track->open.items[track->open.count - 1].own_from_ns =
			MAX(track->open.items[track->open.count - 1].own_from_ns, end_ns);
}

/* What is left of a range that has others inside. */
static const char *component_of(const struct live_figures *figures, const struct live_layer *row)
{
	const char *role = live_text(figures, row->role);

	if (!row->has_inner)
		return role;
	if (strcmp(role, "self_attn") == 0)
		return "attn_core";
	return strcmp(role, "mlp") == 0 ? "mlp_core" : "other";
}

int live_write_layers(struct live_figures *figures, struct json_writer *json)
{
	live_begin_message(figures, json);
	live_member_t_ms(figures, json, "t_ms", figures->newest_ns);
	json_key(json, "rows");
	json_begin_array(json);
	for (size_t i = 0; i < MIN(figures->layers.count, (size_t)ROWS); i++) {
		const struct live_layer *row = &figures->layers.items[i];

		json_begin_object(json);
		json_member_u64(json, "pid", row->pid);
		json_member_known(json, "layer", row->layer != NO_LAYER, row->layer);
		live_member_string(json, "component", component_of(figures, row));
		json_member_u64(json, "calls", row->calls);
		live_member_ms(json, "own_ms", (double)row->own_ns.total);
		live_member_ms(json, "recent_ms", (double)live_recent_sum(figures, &row->own_ns));
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
	return 0;
}
