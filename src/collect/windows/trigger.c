/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/windows/trigger.h"

#include "base/macros.h"

void window_trigger_start(struct window_trigger *trigger, uint64_t now_ns)
{
	trigger->start_ns = now_ns;
}

static uint64_t earliest_ns(const struct window_trigger *trigger)
{
	return trigger->closed_ns ? trigger->closed_ns + WINDOW_FLAG_GAP_NS : 0;
}

enum window_action window_trigger_flag(struct window_trigger *trigger, bool is_up, uint64_t now_ns)
{
	bool was_up = trigger->is_flag_up;

	trigger->is_flag_up = is_up;
	if (!is_up) {
		trigger->needs_rest = false;
		return was_up && trigger->is_open ? WINDOW_CLOSE : WINDOW_STAY;
	}
	if (trigger->is_open || trigger->needs_rest)
		return WINDOW_STAY;
	if (now_ns < earliest_ns(trigger)) {
		trigger->held_back += !was_up;
		return WINDOW_STAY;
	}
	return WINDOW_OPEN;
}

enum window_action window_trigger_signal(const struct window_trigger *trigger)
{
	return trigger->is_open ? WINDOW_CLOSE : WINDOW_OPEN;
}

uint64_t window_trigger_planned_end_ns(const struct window_trigger *trigger)
{
	const struct window_spec *spec = trigger->spec;
	uint64_t end_ns = UINT64_MAX;

	if (spec->max_duration_ns)
		end_ns = trigger->begin_ns + spec->max_duration_ns;
	if (spec->trigger == CAPTURE_TRIGGER_TIME && spec->end_ns && !trigger->is_past)
		end_ns = MIN(end_ns, trigger->start_ns + spec->end_ns);
	return end_ns == UINT64_MAX ? 0 : end_ns;
}

static bool is_time_to_open(const struct window_trigger *trigger, uint64_t now_ns)
{
	return trigger->spec->trigger == CAPTURE_TRIGGER_TIME && !trigger->is_past &&
	       now_ns >= trigger->start_ns + trigger->spec->begin_ns;
}

enum window_action window_trigger_tick(
	struct window_trigger *trigger, uint64_t now_ns, enum capture_window_reason *ret_reason)
{
	uint64_t end_ns = window_trigger_planned_end_ns(trigger);

	if (trigger->is_open) {
		if (!end_ns || now_ns < end_ns)
			return WINDOW_STAY;
		*ret_reason =
			trigger->spec->max_duration_ns &&
					end_ns == trigger->begin_ns + trigger->spec->max_duration_ns
				? CAPTURE_REASON_MAX_DURATION
				: CAPTURE_REASON_TRIGGER;
		return WINDOW_CLOSE;
	}
	if (is_time_to_open(trigger, now_ns))
		return WINDOW_OPEN;
	return trigger->is_flag_up && !trigger->needs_rest && now_ns >= earliest_ns(trigger)
		       ? WINDOW_OPEN
		       : WINDOW_STAY;
}

uint64_t window_trigger_due_ns(const struct window_trigger *trigger)
{
	const struct window_spec *spec = trigger->spec;

	if (trigger->is_open) {
		uint64_t end_ns = window_trigger_planned_end_ns(trigger);

		return end_ns ? end_ns : UINT64_MAX;
	}
	if (spec->trigger == CAPTURE_TRIGGER_TIME && !trigger->is_past)
		return trigger->start_ns + spec->begin_ns;
	return trigger->is_flag_up && !trigger->needs_rest ? earliest_ns(trigger) : UINT64_MAX;
}

void window_trigger_opened(struct window_trigger *trigger, uint64_t now_ns)
{
	trigger->is_open = true;
	trigger->begin_ns = now_ns;
}

void window_trigger_closed(
	struct window_trigger *trigger, enum capture_window_reason reason, uint64_t now_ns)
{
	trigger->is_open = false;
	trigger->closed_ns = now_ns;
	trigger->is_past = true;
	/* Closed by a limit, or by hand: only a new flag opens the next one. */
	trigger->needs_rest = trigger->is_flag_up && reason != CAPTURE_REASON_LEADER_ENDED;
}
