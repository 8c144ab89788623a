/* SPDX-License-Identifier: Apache-2.0 */
/* What every window needs to stand by itself. Processes and threads are given to those with events
 * of theirs; the session, rails, GPUs and graphs to all. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "capture/series/state.h"

/* Of graphs, their nodes and GPUs, of all processes that live. */
#define MOST_DEFINITIONS 16384
/* From a process to its ancestors. */
#define MOST_ANCESTORS 64

static int keep_text(struct capture_series *series, const char **text)
{
	return *text ? split_tables_text(&series->tables, *text, text) : 0;
}

int series_keep_session(struct capture_series *series, const struct capture_session *session)
{
	struct capture_session *kept = &series->session;
	const char **texts[] = {&kept->sonde_version, &kept->host, &kept->kernel_release,
		&kept->architecture, &kept->unwind_mode, &kept->unwind_mode_reason,
		&kept->wait_mode, &kept->launch_stacks};
	int r = 0;

	*kept = *session;
	series->has_session = true;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++)
		r = keep_text(series, texts[i]);
	free(series->command);
	series->command = calloc(session->command_count + 1ULL, sizeof(*series->command));
	if (!series->command)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < session->command_count; i++) {
		series->command[i] = session->command[i];
		r = keep_text(series, &series->command[i]);
	}
	kept->command = session->command ? series->command : NULL;
	return r;
}

/* ---- processes and threads ---- */

static void process_done(struct series_process *kept)
{
	free(kept->texts);
	free(kept->cmdline);
}

/* A copy of its texts, one after the other. */
static int copy_process(const struct capture_process *process, struct series_process *ret_kept)
{
	struct series_process kept = {.process = *process};
	_cleanup_strbuf_ struct strbuf texts = {0};
	const char *at;

	kept.cmdline = calloc(process->cmdline_count + 1ULL, sizeof(*kept.cmdline));
	strbuf_add_bytes(
		&texts, process->name ? process->name : "", strlen(process->name ?: "") + 1);
	strbuf_add_bytes(
		&texts, process->cgroup ? process->cgroup : "", strlen(process->cgroup ?: "") + 1);
	for (uint32_t i = 0; i < process->cmdline_count; i++)
		strbuf_add_bytes(&texts, process->cmdline[i], strlen(process->cmdline[i]) + 1);
	if (!kept.cmdline || strbuf_status(&texts) < 0) {
		free(kept.cmdline);
		return -ENOMEM;
	}
	kept.texts = TAKE_PTR(texts.data);
	at = kept.texts;
	kept.process.name = at;
	at += strlen(at) + 1;
	kept.process.cgroup = process->cgroup ? at : NULL;
	at += strlen(at) + 1;
	for (uint32_t i = 0; i < process->cmdline_count; i++) {
		kept.cmdline[i] = at;
		at += strlen(at) + 1;
	}
	kept.process.cmdline = kept.cmdline;
	*ret_kept = kept;
	return 0;
}

int series_keep_process(struct capture_series *series, const struct capture_process *process)
{
	struct series_process kept;
	uint64_t index;
	int r = copy_process(process, &kept);

	if (r < 0)
		return r;
	if (map_u64_get(&series->process_index, process->pid, &index)) {
		process_done(&series->processes.items[index]);
		series->processes.items[index] = kept;
	} else {
		r = map_u64_set(&series->process_index, process->pid, series->processes.count);
		if (r == 0)
			r = array_append(&series->processes, kept);
		if (r < 0)
			process_done(&kept);
	}
	for_parts (series, part) {
		if (r == 0 && part->writer && map_u64_get(&part->processes, process->pid, NULL))
			r = capture_writer_process(part->writer, process);
	}
	return r;
}

int series_keep_thread(struct capture_series *series, const struct capture_thread *thread)
{
	struct series_thread kept = {.pid = thread->pid, .tid = thread->tid};
	uint64_t index;
	int r = 0;

	snprintf(kept.name, sizeof(kept.name), "%s", thread->name ? thread->name : "");
	if (map_u64_get(&series->thread_index, thread->tid, &index)) {
		series->threads.items[index] = kept;
	} else {
		r = map_u64_set(&series->thread_index, thread->tid, series->threads.count);
		if (r == 0)
			r = array_append(&series->threads, kept);
	}
	for_parts (series, part) {
		if (r == 0 && part->writer && map_u64_get(&part->threads, thread->tid, NULL))
			r = capture_writer_thread(part->writer, thread);
	}
	return r;
}

static int tell_process(struct capture_series *series, struct series_part *part, uint32_t pid)
{
	uint64_t index;
	int r = 0;

	for (int i = 0; r == 0 && i < MOST_ANCESTORS; i++) {
		const struct capture_process *process;

		if (map_u64_get(&part->processes, pid, NULL) ||
			!map_u64_get(&series->process_index, pid, &index))
			break;
		process = &series->processes.items[index].process;
		r = map_u64_set(&part->processes, pid, 1);
		if (r == 0)
			r = capture_writer_process(part->writer, process);
		pid = process->parent_pid;
	}
	return r;
}

int series_tell_thread(
	struct capture_series *series, struct series_part *part, uint32_t pid, uint32_t tid)
{
	const struct series_thread *thread;
	uint64_t index;
	int r = tell_process(series, part, pid);

	if (r < 0 || !tid || map_u64_get(&part->threads, tid, NULL) ||
		!map_u64_get(&series->thread_index, tid, &index))
		return r;
	thread = &series->threads.items[index];
	r = map_u64_set(&part->threads, tid, 1);
	return r < 0 ? r
		     : capture_writer_thread(
			       part->writer, &(struct capture_thread){.pid = thread->pid,
						     .tid = thread->tid,
						     .name = thread->name});
}

static bool has_ended(const struct capture_series *series, uint32_t pid)
{
	for_parts (series, part) {
		if (map_u64_get(&part->processes, pid, NULL))
			return false;
	}
	return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

static int keep_living_processes(struct capture_series *series)
{
	size_t kept = 0;
	int r = 0;

	map_u64_clear(&series->process_index);
	array_foreach (&series->processes, process) {
		if (has_ended(series, process->process.pid)) {
			process_done(process);
			continue;
		}
		if (r == 0)
			r = map_u64_set(&series->process_index, process->process.pid, kept);
		series->processes.items[kept++] = *process;
	}
	series->processes.count = kept;
	return r;
}

static int keep_living_threads(struct capture_series *series)
{
	size_t kept = 0;
	int r = 0;

	map_u64_clear(&series->thread_index);
	array_foreach (&series->threads, thread) {
		if (!map_u64_get(&series->process_index, thread->pid, NULL) &&
			has_ended(series, thread->pid))
			continue;
		if (r == 0)
			r = map_u64_set(&series->thread_index, thread->tid, kept);
		series->threads.items[kept++] = *thread;
	}
	series->threads.count = kept;
	return r;
}

static uint32_t pid_of(const struct series_definition *definition)
{
	return definition->event.kind == CAPTURE_DEVICE_EVENT_MAX ? definition->launch.pid
								  : definition->event.pid;
}

static int keep_living_definitions(struct capture_series *series)
{
	size_t kept = 0;
	int r = 0;

	map_u64_clear(&series->definition_launches);
	array_foreach (&series->definitions, definition) {
		const struct capture_launch *launch = &definition->launch;

		if (has_ended(series, pid_of(definition)))
			continue;
		if (r == 0 && launch->correlation)
			r = map_u64_set(&series->definition_launches,
				series_launch_key(launch->pid, launch->correlation), kept + 1);
		series->definitions.items[kept++] = *definition;
	}
	series->definitions.count = kept;
	return r;
}

int series_forget_ended(struct capture_series *series)
{
	int r = keep_living_processes(series);

	if (r == 0)
		r = keep_living_threads(series);
	return r < 0 ? r : keep_living_definitions(series);
}

/* ---- rails, GPUs and graphs ---- */

int series_keep_domain(struct capture_series *series, const struct wire_energy_domain *domain)
{
	struct wire_energy_domain kept = *domain;
	const char **texts[] = {&kept.name, &kept.source, &kept.device, &kept.cpus};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++)
		r = keep_text(series, texts[i]);
	for_parts (series, part) {
		if (r == 0 && part->writer)
			r = capture_writer_energy_domain(part->writer, &kept);
	}
	array_foreach (&series->domains, known) {
		if (known->id == kept.id) {
			*known = kept;
			return r;
		}
	}
	if (r == 0)
		r = series_add_rail(series, &kept);
	return r < 0 ? r : array_append(&series->domains, kept);
}

int series_keep_absence(struct capture_series *series, const struct wire_energy_absence *absence)
{
	struct wire_energy_absence kept = *absence;
	int r = keep_text(series, &kept.source);

	if (r == 0)
		r = keep_text(series, &kept.reason);
	for_parts (series, part) {
		if (r == 0 && part->writer)
			r = capture_writer_energy_absence(part->writer, &kept);
	}
	array_foreach (&series->absences, known) /* texts that are equal are one */
		if (known->source == kept.source && known->reason == kept.reason)
			return r;
	return r < 0 ? r : array_append(&series->absences, kept);
}

int series_keep_definition(
	struct capture_series *series, const struct series_definition *definition)
{
	struct series_definition kept = *definition;
	int r = keep_text(series, &kept.event.text);

	if (r < 0 || series->definitions.count >= MOST_DEFINITIONS)
		return r;
	if (kept.launch.correlation)
		r = map_u64_set(&series->definition_launches,
			series_launch_key(kept.launch.pid, kept.launch.correlation),
			series->definitions.count + 1);
	return r < 0 ? r : array_append(&series->definitions, kept);
}

static int tell_definition(struct capture_series *series, struct series_part *part,
	const struct series_definition *definition)
{
	struct capture_launch_stack stack = definition->stack;
	int r = series_tell_thread(series, part, pid_of(definition), definition->launch.tid);

	if (r == 0 && definition->event.kind != CAPTURE_DEVICE_EVENT_MAX)
		return capture_writer_device_event(part->writer, &definition->event);
	if (r == 0)
		r = capture_writer_launch(part->writer, &definition->launch);
	if (r < 0 || !stack.correlation)
		return r;
	r = series_callstack(series, part, stack.callstack, false, &stack.callstack);
	return r < 0 ? r : capture_writer_launch_stack(part->writer, &stack);
}

int series_begin_part(struct capture_series *series, struct series_part *part)
{
	struct capture_session session = series->session;
	uint64_t later_ns = part->begin_ns - session.start_time_ns;
	int r;

	session.start_time_ns = part->begin_ns;
	session.start_realtime_ns = part->begin_realtime_ns;
	session.start_boottime_ns += later_ns;
	r = capture_writer_session(part->writer, &session);
	array_foreach (&series->domains, domain)
		if (r == 0)
			r = capture_writer_energy_domain(part->writer, domain);
	array_foreach (&series->absences, absence)
		if (r == 0)
			r = capture_writer_energy_absence(part->writer, absence);
	array_foreach (&series->definitions, definition)
		if (r == 0)
			r = tell_definition(series, part, definition);
	return r;
}

void series_facts_done(struct capture_series *series)
{
	array_foreach (&series->processes, process)
		process_done(process);
	array_done(&series->processes);
	array_done(&series->threads);
	array_done(&series->domains);
	array_done(&series->rails);
	array_done(&series->devices);
	array_done(&series->absences);
	array_done(&series->definitions);
	map_u64_done(&series->process_index);
	map_u64_done(&series->thread_index);
	map_u64_done(&series->definition_launches);
	free(series->command);
}
