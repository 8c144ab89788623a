/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the windows that were asked for: sentences for the capture's notes. */
#include <stdarg.h>
#include <stdio.h>

#include "collect/session/internal.h"
#include "collect/session/window.h"

#define MAX_NAMES    64
#define FEW_SAMPLES  20 /* of a thread that always runs, in one window */
#define GOOD_SAMPLES 100
#define MAX_HZ       20000 /* as sonde record takes */

typedef void add_function(struct session *session, const char *sentence);

static void _printf_(3, 4)
	add_note(struct session *session, add_function *add, const char *format, ...)
{
	struct errmsg note;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(note.text, sizeof(note.text), format, arguments);
	va_end(arguments);
	add(session, note.text);
}

/* The chosen steps: how many one process made at most. False: none were made. */
static bool get_chosen(struct session *session, uint64_t *ret_most, struct strbuf *other_names)
{
	struct target_steps steps[MAX_NAMES];
	uint64_t most = session->windows.own_steps;
	size_t count;

	target_rings_lock(session->device.rings);
	count = target_rings_steps(session->device.rings, steps, MAX_NAMES);
	target_rings_unlock(session->device.rings);
	for (size_t i = 0; i < MIN(count, (size_t)MAX_NAMES); i++) {
		if (steps[i].is_chosen)
			most = MAX(most, steps[i].most);
		else
			strbuf_addf(other_names, "%s'%s' (%llu)", other_names->length ? ", " : "",
				steps[i].name, (unsigned long long)steps[i].most);
	}
	*ret_most = most;
	return most;
}

static void note_no_steps(struct session *session, add_function *add, const char *other_names)
{
	const struct window_spec *spec = &session->options->window;

	if (*other_names)
		add_note(session, add,
			"no window was opened: no step matches --step-on '%s'; there were %s",
			spec->step_on, other_names);
	else
		add_note(session, add,
			"no window was opened: the program made no steps; make them with "
			"sonde_step(), sonde.step() in Python, or an NVTX mark that --step-on "
			"names; or use --window flag:PATH or time:START..END, which need none");
}

/* How far the last cycle came: of a schedule in steps. */
static void note_steps(struct session *session, add_function *add, uint64_t made)
{
	const struct wire_schedule *schedule = &session->options->window.schedule;
	uint64_t before = schedule->wait + schedule->warmup, length = before + schedule->active;
	uint64_t cycles = made / length, at = made % length;

	if (schedule->repeat && cycles >= schedule->repeat)
		return;
	if (!schedule->repeat && (!at || (cycles && at <= before)))
		return; /* again and again: it was cut off between two windows */
	if (!cycles && at < before)
		add_note(session, add,
			"no window was opened: %llu steps were made, and wait=%llu, warmup=%llu, "
			"active=%llu needs %llu; make more steps, or give smaller numbers",
			(unsigned long long)made, (unsigned long long)schedule->wait,
			(unsigned long long)schedule->warmup, (unsigned long long)schedule->active,
			(unsigned long long)length);
	else
		add_note(session, add,
			"%llu steps were made, and wait=%llu, warmup=%llu, active=%llu, "
			"repeat=%llu needs %llu: %llu cycles are complete, and of the next one "
			"%llu of %llu active steps were recorded; make more steps, or give smaller "
			"numbers",
			(unsigned long long)made, (unsigned long long)schedule->wait,
			(unsigned long long)schedule->warmup, (unsigned long long)schedule->active,
			(unsigned long long)schedule->repeat,
			(unsigned long long)(MAX(schedule->repeat, cycles + 1) * length),
			(unsigned long long)cycles,
			(unsigned long long)(at > before ? at - before : 0),
			(unsigned long long)schedule->active);
}

static void note_calls(struct session *session, add_function *add, uint64_t made)
{
	const struct wire_schedule *schedule = &session->options->window.schedule;
	uint64_t last = schedule->intervals[schedule->interval_count - 1].last;
	unsigned whole = 0;

	for (uint32_t i = 0; i < schedule->interval_count; i++)
		whole += made > schedule->intervals[i].last;
	if (whole == schedule->interval_count)
		return;
	add_note(session, add,
		"%llu steps were made, and --window %s needs %llu, including the end of the last "
		"call: %u of its %u windows are complete; make more steps, or give earlier calls",
		(unsigned long long)made, session->options->window.text,
		(unsigned long long)last + 1, whole, schedule->interval_count);
}

static void note_schedule(struct session *session, add_function *add)
{
	_cleanup_strbuf_ struct strbuf other_names = {0};
	struct session_windows *windows = &session->windows;
	uint32_t missed = target_gate_cycles_missed(target_rings_gate(session->device.rings));
	uint64_t made;

	if (!get_chosen(session, &made, &other_names))
		note_no_steps(session, add, strbuf_cstr(&other_names));
	else if (session->options->window.trigger == CAPTURE_TRIGGER_STEPS)
		note_steps(session, add, made);
	else
		note_calls(session, add, made);
	if (windows->is_leader_ended)
		add_note(session, add,
			"the process whose steps opened the windows ended in an open window: the "
			"window was closed, and the next process that made a step took over");
	if (missed)
		add_note(session, add,
			"%u windows were left out: they came faster than sonde could follow; give "
			"a longer wait",
			missed);
}

static uint64_t mean_length_ns(const struct windows *windows)
{
	uint64_t length_ns = 0;

	array_foreach (&windows->items, window)
		length_ns += window->end_ns - window->begin_ns;
	return windows->items.count ? length_ns / windows->items.count : 0;
}

/* One below a multiple of 1000, so that it keeps no step with timers; 0: none is high enough. */
static uint64_t frequency_for(uint64_t length_ns)
{
	uint64_t wanted_hz = GOOD_SAMPLES * NS_PER_S / length_ns;

	return MIN((wanted_hz / 1000 + 1) * 1000, (uint64_t)MAX_HZ) - 1;
}

/* Windows in which even a thread that always runs has few samples. */
static void note_short(struct session *session, add_function *add)
{
	uint64_t length_ns = mean_length_ns(&session->windows.list);
	uint64_t period_ns = session->options->period_ns;
	unsigned long long most;

	if (!length_ns || session->options->scope > SESSION_SCOPE_CPU ||
		length_ns >= FEW_SAMPLES * period_ns ||
		frequency_for(length_ns) <= NS_PER_S / period_ns)
		return;
	most = length_ns / period_ns + 1;
	add_note(session, add,
		"windows of %.3g ms, as these are on average, hold at most %llu samples of a "
		"thread at %llu samples a second; record with -F %llu, or make them longer",
		(double)length_ns / NS_PER_MS, most, (unsigned long long)(NS_PER_S / period_ns),
		(unsigned long long)frequency_for(length_ns));
}

void session_windows_notes(struct session *session, add_function *add)
{
	const struct session_windows *windows = &session->windows;
	const struct window_spec *spec = &session->options->window;

	if (windows->late)
		add_note(session, add,
			"%u window%s sampled late: number %u from %.1f ms after its begin; give "
			"warm-up steps that last longer than that, or leave sonde a CPU",
			windows->late, windows->late == 1 ? " was" : "s were", windows->first_late,
			(double)windows->first_late_ns / 1e6);
	if (windows->steps_lost)
		add_note(session, add, "%llu steps have no name, and were left out",
			(unsigned long long)windows->steps_lost);
	if (windows->list.is_whole || !session->device.rings)
		return;
	if (window_spec_is_scheduled(spec))
		note_schedule(session, add);
	else if (!windows->list.items.count)
		add_note(session, add,
			"no window was opened: --window %s never applied during the recording, so "
			"the capture is empty",
			spec->text);
	note_short(session, add);
	if (windows->is_too_many)
		add_note(session, add,
			"there were more than %d windows: later ones were not recorded; give "
			"longer ones",
			WINDOWS_MAX);
	if (windows->trigger.held_back)
		add_note(session, add,
			"%llu times the flag came back within %d ms after a window: the next one "
			"began that late",
			(unsigned long long)windows->trigger.held_back,
			(int)(WINDOW_FLAG_GAP_NS / NS_PER_MS));
	if (windows->manifest_note.text[0])
		add_note(session, add, "%s", windows->manifest_note.text);
	if (windows->note.text[0])
		add_note(session, add, "%s", windows->note.text);
}
