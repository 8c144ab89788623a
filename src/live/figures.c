/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader of the capture visits, to the parts that count it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "live/state.h"

int live_keep_text(struct live_figures *figures, const char *text, uint32_t *ret_text)
{
	int r = intern_add(&figures->texts, text ? text : "", text ? strlen(text) : 0, ret_text);

	return r < 0 ? r : 0;
}

/* Text + 1; 0: there is none. */
static int keep_optional(struct live_figures *figures, const char *text, uint32_t *ret_text)
{
	int r = 0;

	*ret_text = 0;
	if (text && *text) {
		r = live_keep_text(figures, text, ret_text);
		++*ret_text;
	}
	return r;
}

void live_see_time(struct live_figures *figures, uint64_t time_ns)
{
	if (!time_ns)
		return;
	if (!figures->has_start) {
		figures->has_start = true;
		figures->start_ns = figures->newest_ns = time_ns;
		figures->session_changed = true;
	}
	figures->newest_ns = MAX(figures->newest_ns, time_ns);
}

static uint64_t thread_key(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

int live_see_thread(struct live_figures *figures, uint32_t pid, uint32_t tid)
{
	uint64_t known;
	int r = 0;

	if (!map_u64_get(&figures->pids, pid, NULL))
		r = map_u64_set(&figures->pids, pid, 0);
	if (r == 0 && tid && !map_u64_get(&figures->thread_names, thread_key(pid, tid), &known))
		r = map_u64_set(&figures->thread_names, thread_key(pid, tid), 0);
	return r;
}

/* ---- the recording ---- */

static int see_session(void *context, const struct capture_session *session)
{
	struct live_figures *figures = context;
	struct live_session *known = &figures->session;
	int r = keep_optional(figures, session->host, &known->host);

	if (r == 0)
		r = keep_optional(figures, session->wait_mode, &known->wait_mode);
	if (r == 0)
		r = keep_optional(figures, session->launch_stacks, &known->launch_stacks);
	array_clear(&known->command);
	for (uint32_t i = 0; r == 0 && i < session->command_count; i++) {
		uint32_t text;

		r = live_keep_text(figures, session->command[i], &text);
		if (r == 0)
			r = array_append(&known->command, text);
	}
	known->start_realtime_ns = session->start_realtime_ns;
	known->period_ns = session->period_ns;
	known->whole_machine = session->whole_machine;
	live_see_time(figures, session->start_time_ns);
	figures->session_changed = true;
	return r;
}

static int add_loss(struct live_figures *figures, const struct capture_loss *loss)
{
	uint32_t where;
	int r = live_keep_text(figures, loss->where, &where);

	if (r < 0 || !loss->count)
		return r;
	array_foreach (&figures->losses, known) {
		if (known->where == where) {
			known->count += loss->count;
			return 0;
		}
	}
	return array_append(&figures->losses, (struct live_loss){where, loss->count});
}

static int see_stats(void *context, const struct capture_stats *stats)
{
	struct live_figures *figures = context;
	int r = 0;

	live_see_time(figures, stats->end_time_ns);
	figures->samples_lost = stats->samples_lost;
	array_clear(&figures->losses);
	for (uint32_t i = 0; r == 0 && i < stats->loss_count; i++)
		r = add_loss(figures, &stats->losses[i]);
	figures->has_ended = stats->complete;
	figures->exit_status = stats->exit_status;
	return r;
}

static int see_process(void *context, const struct capture_process *process)
{
	struct live_figures *figures = context;
	uint32_t name = 0;
	int r = keep_optional(figures, process->name, &name);

	return r < 0 ? r : map_u64_set(&figures->pids, process->pid, name);
}

static int see_thread(void *context, const struct capture_thread *thread)
{
	struct live_figures *figures = context;
	uint32_t name = 0;
	int r = live_see_thread(figures, thread->pid, thread->tid);

	if (r == 0)
		r = keep_optional(figures, thread->name, &name);
	if (r < 0)
		return r;
	return map_u64_set(&figures->thread_names, thread_key(thread->pid, thread->tid), name);
}

/* ---- events ---- */

static int see_mapping(void *context, capture_id id, const struct capture_mapping *mapping)
{
	return live_add_mapping(context, id, mapping);
}

static int see_frame(void *context, capture_id id, const struct capture_frame *frame)
{
	return live_add_frame(context, id, frame);
}

static int see_callstack(void *context, capture_id id, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python)
{
	(void)stop;
	(void)python;
	return live_add_callstack(context, id, frames, count);
}

static int see_symbols(void *context, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count)
{
	return live_add_symbols(context, mapping, rel_pc, lines, count);
}

static int see_sample(void *context, const struct capture_sample *sample)
{
	struct live_figures *figures = context;
	int r = live_see_thread(figures, sample->pid, sample->tid);

	live_see_time(figures, sample->time_ns);
	if (sample->wait != WIRE_WAIT_NONE) {
		live_recent_add_span(figures, &figures->waited_ns,
			sample->time_ns - MIN(sample->duration_ns, sample->time_ns),
			sample->time_ns);
		return r;
	}
	live_recent_add(&figures->samples, live_second(figures, sample->time_ns), 1);
	return r ?: live_count_sample(figures, sample);
}

static int see_work(void *context, const struct capture_device_work *work)
{
	return live_add_work(context, work);
}

static int see_range(void *context, const struct capture_range_event *event)
{
	live_see_time(context, event->time_ns);
	return live_add_range(context, event);
}

static int see_domain(void *context, const struct wire_energy_domain *domain)
{
	return live_add_rail(context, domain);
}

static int see_interval(void *context, const struct wire_energy_interval *interval)
{
	live_see_time(context, interval->end_ns);
	return live_add_interval(context, interval);
}

static int see_absence(void *context, const struct wire_energy_absence *absence)
{
	struct live_figures *figures = context;
	struct live_absence kept;
	int r = live_keep_text(figures, absence->source, &kept.source);

	if (r == 0)
		r = live_keep_text(figures, absence->reason, &kept.reason);
	figures->session_changed = true;
	return r ?: array_append(&figures->absences, kept);
}

static int see_window(void *context, const struct capture_window *window)
{
	return live_add_window(context, window);
}

static int see_step(void *context, const struct capture_step *step)
{
	live_see_time(context, step->time_ns);
	return live_add_step(context, step);
}

const struct capture_visitor live_visitor = {
	.session = see_session,
	.mapping = see_mapping,
	.frame = see_frame,
	.callstack = see_callstack,
	.process = see_process,
	.thread = see_thread,
	.sample = see_sample,
	.device_work = see_work,
	.range = see_range,
	.energy_domain = see_domain,
	.energy_interval = see_interval,
	.energy_absence = see_absence,
	.window = see_window,
	.step = see_step,
	.symbols = see_symbols,
	.stats = see_stats,
};

/* ---- life ---- */

int live_figures_new(struct live_figures **ret_figures, const char *capture, const char *name,
	uint64_t generation)
{
	struct live_figures *figures = calloc(1, sizeof(*figures));

	if (figures) {
		figures->capture = strdup(capture);
		figures->name = strdup(name);
		figures->generation = generation;
		figures->exit_status = -1;
	}
	if (!figures || !figures->capture || !figures->name) {
		live_figures_free(figures);
		return -ENOMEM;
	}
	*ret_figures = figures;
	return 0;
}

struct live_figures *live_figures_free(struct live_figures *figures)
{
	if (!figures)
		return NULL;
	live_functions_done(&figures->functions);
	live_devices_done(&figures->devices);
	live_tokens_done(&figures->tokens);
	live_phases_done(&figures->phases);
	array_foreach (&figures->tracks, track)
		array_done(&track->open);
	array_done(&figures->tracks);
	map_u64_done(&figures->track_index);
	array_foreach (&figures->rails, rail)
		array_done(&rail->points);
	array_done(&figures->rails);
	array_done(&figures->layers);
	intern_done(&figures->layer_keys);
	array_done(&figures->losses);
	array_done(&figures->absences);
	array_done(&figures->session.command);
	map_u64_done(&figures->pids);
	map_u64_done(&figures->thread_names);
	intern_done(&figures->texts);
	free(figures->capture);
	free(figures->name);
	free(figures);
	return NULL;
}

bool live_has_ended(const struct live_figures *figures)
{
	return figures->has_ended;
}

void live_set_bytes(struct live_figures *figures, uint64_t bytes)
{
	figures->bytes = bytes;
}

void live_repeat_session(struct live_figures *figures)
{
	figures->session_changed = true;
}
