/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shades a chart of power: phases of inference, by the ranges that
 * analyses/inference/phases.h takes them from; steps; windows.
 */
#include <stdio.h>
#include <stdlib.h>

#include "live/state.h"

/* That wait for a message; of more the older half is left out. */
#define MOST_WAITING   20000
#define MESSAGE_PHASES 2000
/* A phase that ends is looked for among so many of those that wait. */
#define LOOK_BACK 64

struct live_process *live_process_of(struct live_figures *figures, uint32_t pid)
{
	struct live_phases *phases = &figures->phases;
	uint64_t place;

	if (!map_u64_get(&phases->process_index, pid, &place)) {
		place = phases->processes.count;
		if (array_append(&phases->processes, (struct live_process){.pid = pid}) < 0 ||
			map_u64_set(&phases->process_index, pid, place) < 0)
			return NULL;
	}
	return &phases->processes.items[place];
}

const char *live_phase_name(const struct capture_range_event *event)
{
	static const char *const names[] = {
		"pre_inference", "prefill", "mixed", "decode", "post_inference"};
	const char *name = event->name;

	if (strcmp(event->domain, "vllm") == 0 && strcmp(event->name, "forward") == 0)
		name = live_field_text(event, "phase");
	else if (strcmp(event->domain, "transformers") != 0 && strcmp(event->domain, "sonde") != 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], name) == 0)
			return names[i];
	}
	return NULL;
}

static int add_changed(struct live_figures *figures, const struct live_phase *phase)
{
	struct live_phases *phases = &figures->phases;

	if (phases->changed.count >= MOST_WAITING)
		array_drop_first(&phases->changed, MOST_WAITING / 2);
	return array_append(&phases->changed, *phase);
}

int live_begin_phase(struct live_figures *figures, const char *kind, const char *name, uint32_t pid,
	uint64_t begin_ns, struct live_phase *ret_phase)
{
	struct live_phase phase = {.id = ++figures->phases.last_id,
		.kind = kind,
		.pid = pid,
		.begin_ns = begin_ns,
		.is_open = true};
	int r = live_keep_text(figures, name, &phase.name);

	*ret_phase = phase;
	return r ?: add_changed(figures, &phase);
}

int live_end_phase(struct live_figures *figures, const struct live_phase *phase, uint64_t end_ns)
{
	struct live_phases *phases = &figures->phases;
	struct live_phase ended = *phase;

	ended.is_open = false;
	ended.end_ns = MAX(end_ns, phase->begin_ns);
	/* Where its begin was not sent yet, both go together. */
	for (size_t i = 0; i < MIN(phases->changed.count, (size_t)LOOK_BACK); i++) {
		struct live_phase *known = &phases->changed.items[phases->changed.count - 1 - i];

		if (known->id == phase->id) {
			known->is_open = false;
			known->end_ns = ended.end_ns;
			return 0;
		}
	}
	return add_changed(figures, &ended);
}

/* ---- steps and windows ---- */

static int end_step(struct live_figures *figures, struct live_process *process, uint64_t end_ns)
{
	int r = process->step.id ? live_end_phase(figures, &process->step, end_ns) : 0;

	process->step = (struct live_phase){0};
	return r;
}

int live_add_step(struct live_figures *figures, const struct capture_step *step)
{
	struct live_process *process = live_process_of(figures, step->pid);
	char name[200];
	int r = process ? end_step(figures, process, step->time_ns) : -ENOMEM;

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%.150s%s%llu", step->name, *step->name ? " " : "step ",
		(unsigned long long)step->number);
	return live_begin_phase(figures, "step", name, step->pid, step->time_ns, &process->step);
}

static int end_window(struct live_figures *figures, const struct live_phase *phase, uint64_t end_ns)
{
	int r = live_end_phase(figures, phase, end_ns);

	for (size_t i = 0; r == 0 && i < figures->phases.processes.count; i++)
		r = end_step(figures, &figures->phases.processes.items[i], end_ns);
	return r;
}

int live_add_window(struct live_figures *figures, const struct capture_window *window)
{
	struct live_phases *phases = &figures->phases;
	struct live_phase phase = {.kind = "window", .begin_ns = window->begin_ns};
	char name[200];
	int r = 0;

	snprintf(name, sizeof(name), "%.150s%s%u", window->label, *window->label ? " " : "window ",
		window->number);
	phases->window_changes++;
	if (map_u64_get(&phases->windows, window->number, &phase.id)) {
		r = live_keep_text(figures, name, &phase.name);
	} else {
		r = live_begin_phase(figures, "window", name, 0, window->begin_ns, &phase);
		if (r == 0)
			r = map_u64_set(&phases->windows, window->number, phase.id);
	}
	if (r == 0 && window->end_ns)
		r = end_window(figures, &phase, window->end_ns);
	return r;
}

/* ---- messages ---- */

bool live_has_phases(const struct live_figures *figures)
{
	return figures->phases.changed.count;
}

static void write_phase(const struct live_figures *figures, struct json_writer *json,
	const struct live_phase *phase)
{
	json_begin_object(json);
	json_member_u64(json, "id", phase->id);
	json_member_text(json, "kind", phase->kind);
	live_member_text(figures, json, "name", phase->name);
	json_member_known(json, "pid", phase->pid, phase->pid);
	live_member_t_ms(figures, json, "t_ms", phase->begin_ns);
	if (phase->is_open) {
		json_key(json, "end_ms");
		json_null(json);
	} else {
		live_member_t_ms(figures, json, "end_ms", phase->end_ns);
	}
	json_end_object(json);
}

void live_write_phases(struct live_figures *figures, struct json_writer *json)
{
	struct live_phases *phases = &figures->phases;
	size_t count = MIN(phases->changed.count, (size_t)MESSAGE_PHASES);

	live_begin_message(figures, json);
	json_key(json, "phases");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++)
		write_phase(figures, json, &phases->changed.items[i]);
	json_end_array(json);
	json_end_object(json);
	array_drop_first(&phases->changed, count);
}

void live_phases_done(struct live_phases *phases)
{
	array_done(&phases->changed);
	array_done(&phases->processes);
	map_u64_done(&phases->process_index);
	map_u64_done(&phases->windows);
}
