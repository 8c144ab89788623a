/* SPDX-License-Identifier: Apache-2.0 */
/* What is written of windows: their steps, the windows themselves, and the manifest beside the
 * capture. */
#include <errno.h>
#include <string.h>

#include "collect/session/internal.h"
#include "collect/session/window.h"
#include "sources/target/map_guard.h"

void session_say(struct session *session, const struct errmsg *sentence)
{
	const struct session_options *options = session->options;

	if (sentence->text[0] && options->on_message)
		options->on_message(options->context, sentence->text);
}

/* ---- steps of processes ---- */

static uint64_t step_key(uint32_t pid, const struct wire_step *step)
{
	return hash_u64(((uint64_t)pid << 32 | step->image) ^ hash_u64(step->counter));
}

/* The name stands in the process's file, as long as that is there. */
static const char *find_step_name(
	struct session *session, uint32_t pid, const struct wire_step *step)
{
	struct session_windows *windows = &session->windows;
	struct step_source found = {.key = step_key(pid, step)};
	struct target_process process;
	size_t position = 0;

	array_foreach (&windows->step_sources, source) {
		if (source->key == found.key)
			return source->name;
	}
	target_rings_lock(session->device.rings);
	while (target_rings_next(session->device.rings, &position, &process)) {
		if (process.pid != pid || (uint32_t)process.start_time_ns != step->image ||
			!process.steps || step->counter >= WIRE_STEP_NAMES)
			continue;
		map_guard_enter(process.guard);
		memcpy(found.name, process.steps[step->counter].name, sizeof(found.name) - 1);
		map_guard_leave();
	}
	target_rings_unlock(session->device.rings);
	if (!found.name[0] || array_append(&windows->step_sources, found) < 0)
		return NULL;
	return windows->step_sources.items[windows->step_sources.count - 1].name;
}

/* Of a window that no steps opened: those that were made in it, by the first that makes any. */
static void count_step(struct session *session, const struct capture_step *step)
{
	struct session_windows *windows = &session->windows;
	struct capture_window *window = windows_last(&windows->list);

	if (!window || step->time_ns < window->begin_ns ||
		window_spec_is_scheduled(session_window_spec(session)))
		return;
	if (!window->leader_pid) {
		window->leader_pid = step->pid;
		window->first_step = step->number;
	}
	if (window->leader_pid == step->pid)
		window->last_step = MAX(window->last_step, step->number);
}

int session_windows_step(struct session *session, uint32_t pid, const struct wire_step *step)
{
	struct session_windows *windows = &session->windows;
	struct capture_step out = {.pid = pid};

	if (step->record.length_bytes < sizeof(*step)) {
		windows->steps_lost++;
		return 0;
	}
	out.time_ns = step->time_ns;
	out.tid = step->tid;
	out.number = step->number;
	out.name = find_step_name(session, pid, step);
	if (!out.name) {
		windows->steps_lost++;
		return 0;
	}
	if (!windows_has(&windows->list, out.time_ns))
		return 0;
	count_step(session, &out);
	if (windows->manifest)
		session_keep_failure(session, manifest_step(windows->manifest, pid, out.name));
	return capture_writer_step(session->writer, &out);
}

/* ---- the capture and the manifest ---- */

int session_windows_describe(struct session *session, const struct capture_session *described)
{
	if (session->windows.list.is_whole || session->options->live.visitor)
		return 0;
	return manifest_new(&session->windows.manifest, session->options->output,
		&session->options->how, described, target_rings_folder(session->device.rings));
}

int session_windows_rename(struct session *session)
{
	struct manifest *manifest = session->windows.manifest;

	return manifest ? manifest_rename(manifest, session->result->output) : 0;
}

/* Their ranks are read while they live. */
static int tell_processes(struct session *session)
{
	struct session_windows *windows = &session->windows;
	const struct process *process;
	size_t position = 0;
	int result = 0;

	if (!windows->manifest || session->options->whole_machine)
		return 0;
	while (result == 0 && (process = address_spaces_next(session->spaces, &position))) {
		uint64_t programs = process->exec_count + 1ULL, known = 0;

		map_u64_get(&windows->known_processes, process->pid, &known);
		if (process->exited || known == programs)
			continue;
		result = manifest_process(windows->manifest, process->pid,
			windows->list.items.count &&
				process->first_seen_ns > windows->list.items.items[0].begin_ns);
		if (result == 0)
			result = map_u64_set(&windows->known_processes, process->pid, programs);
	}
	return result;
}

static void write_manifest(struct session *session, bool is_last)
{
	struct session_windows *windows = &session->windows;
	struct errmsg err = {{0}};

	manifest_write(windows->manifest, is_last, &err);
	windows->manifest_note = err; /* what failed earlier may be right now */
}

void session_windows_finish(struct session *session)
{
	array_foreach (&session->windows.list.items, window)
		session->result->windows_ns += window->end_ns - window->begin_ns;
	session->result->window_count = (uint32_t)session->windows.list.items.count;
	if (!session->windows.manifest)
		return;
	if (session->result->part_count)
		manifest_split(session->windows.manifest);
	write_manifest(session, true);
	session_say(session, &session->windows.manifest_note); /* notes are written by now */
}

int session_windows_write(struct session *session)
{
	struct session_windows *windows = &session->windows;
	bool is_news = false;
	int result = tell_processes(session);

	while (result == 0 && windows->written < windows->list.items.count) {
		struct capture_window *window = &windows->list.items.items[windows->written];

		if (!window->end_ns && windows->is_written_open)
			break;
		result = capture_writer_window(session->writer, window);
		if (result == 0 && windows->manifest)
			result = manifest_window(windows->manifest, window);
		windows->is_written_open = !window->end_ns;
		windows->written += window->end_ns != 0;
		is_news = true;
	}
	if (is_news && windows->manifest)
		write_manifest(session, false);
	return result;
}
