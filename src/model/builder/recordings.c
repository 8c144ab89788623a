/* SPDX-License-Identifier: Apache-2.0 */
/* The recordings of a file, or of a run: each one's account, and all of them added. */
#include <stdlib.h>
#include <string.h>

#include "model/builder/internal.h"

/* ---- accounts ---- */

static void stats_done(struct model_stats *stats)
{
	free((void *)stats->values.losses);
	free((void *)stats->values.notes);
	*stats = (struct model_stats){0};
}

/* Copies what the account points to, with room for more; on failure what was copied is with `kept`
 * and freed with it. */
static int stats_copy(struct model_builder *builder, const struct capture_stats *stats,
	const struct capture_stats *more, struct model_stats *kept)
{
	struct capture_loss *losses =
		calloc((size_t)stats->loss_count + more->loss_count + 1, sizeof(*losses));
	const char **notes =
		calloc((size_t)stats->note_count + more->note_count + 1, sizeof(*notes));
	int r = losses && notes ? 0 : -ENOMEM;

	*kept = (struct model_stats){.values = *stats, .present = true};
	kept->values.losses = losses;
	kept->values.notes = notes;
	for (uint32_t i = 0; r == 0 && i < stats->loss_count; i++) {
		losses[i] = stats->losses[i];
		r = builder_keep(builder, stats->losses[i].where, &losses[i].where);
	}
	for (uint32_t i = 0; r == 0 && i < stats->note_count; i++)
		r = builder_keep(builder, stats->notes[i], &notes[i]);
	return r;
}

static void add_numbers(void *sum, const void *more, size_t bytes)
{
	uint64_t *to = sum;
	const uint64_t *from = more;

	for (size_t i = 0; i < bytes / sizeof(*to); i++)
		to[i] += from[i];
}

static void add_counts(struct capture_stats *sum, const struct capture_stats *more)
{
	uint64_t clock_error_ns = MAX(sum->device.clock_error_ns, more->device.clock_error_ns);

	sum->samples += more->samples;
	sum->samples_lost += more->samples_lost;
	add_numbers(sum->stacks_by_stop, more->stacks_by_stop, sizeof(sum->stacks_by_stop));
	sum->user_frames += more->user_frames;
	sum->kernel_frames += more->kernel_frames;
	sum->bpf_run_count += more->bpf_run_count;
	sum->bpf_run_time_ns += more->bpf_run_time_ns;
	sum->stacks_unwound_in_user_space += more->stacks_unwound_in_user_space;
	sum->collector_cpu_ns += more->collector_cpu_ns;
	sum->collector_start_cpu_ns += more->collector_start_cpu_ns;
	sum->collector_end_cpu_ns += more->collector_end_cpu_ns;
	sum->collector_peak_rss_bytes =
		MAX(sum->collector_peak_rss_bytes, more->collector_peak_rss_bytes);
	sum->tables_built += more->tables_built;
	sum->tables_from_cache += more->tables_from_cache;
	sum->table_build_ns += more->table_build_ns;
	sum->bytes_written += more->bytes_written;
	add_numbers(sum->stacks_by_python, more->stacks_by_python, sizeof(sum->stacks_by_python));
	sum->python_frames += more->python_frames;
	sum->wait_samples += more->wait_samples;
	sum->waited_ns += more->waited_ns;
	sum->wait_run_count += more->wait_run_count;
	sum->wait_run_time_ns += more->wait_run_time_ns;
	add_numbers(&sum->device, &more->device, sizeof(sum->device));
	sum->device.clock_error_ns = clock_error_ns;
	add_numbers(&sum->ranges, &more->ranges, sizeof(sum->ranges));
}

/* What was lost at one place counts once, whatever the recording. */
static void add_loss(struct capture_stats *sum, const struct capture_loss *loss)
{
	struct capture_loss *losses = (struct capture_loss *)sum->losses;

	for (uint32_t i = 0; i < sum->loss_count; i++) {
		if (losses[i].where == loss->where && losses[i].cpu == loss->cpu) {
			losses[i].count += loss->count;
			return;
		}
	}
	losses[sum->loss_count++] = *loss;
}

static void add_note(struct capture_stats *sum, const char *note)
{
	const char **notes = (const char **)sum->notes;

	for (uint32_t i = 0; i < sum->note_count; i++) {
		if (notes[i] == note)
			return;
	}
	notes[sum->note_count++] = note;
}

/* Strings are the model's: equal ones are equal pointers. `sum` has room. */
static void stats_add(struct capture_stats *sum, const struct capture_stats *more)
{
	add_counts(sum, more);
	sum->end_time_ns = MAX(sum->end_time_ns, more->end_time_ns);
	sum->complete &= more->complete;
	/* One that failed says more than one that did not. */
	if (more->exit_status > 0 || sum->exit_status < 0)
		sum->exit_status = more->exit_status;
	for (uint32_t i = 0; i < more->loss_count; i++)
		add_loss(sum, &more->losses[i]);
	for (uint32_t i = 0; i < more->note_count; i++)
		add_note(sum, more->notes[i]);
}

static void note_account(struct model_recording *recording, const struct capture_stats *stats)
{
	recording->end_ns = stats->end_time_ns;
	recording->samples = stats->samples;
	recording->samples_lost = stats->samples_lost;
	recording->wait_samples = stats->wait_samples;
	recording->records_lost = stats->device.records_lost + stats->device.records_without_ring +
				  stats->device.stacks_lost + stats->ranges.ends_lost;
	recording->is_complete = stats->complete;
}

int builder_visit_stats(void *context, const struct capture_stats *stats)
{
	struct model_builder *builder = context;
	struct model *model = builder->model;
	struct model_stats kept;
	int r = stats_copy(builder, stats, &builder->earlier.values, &kept);

	if (r < 0) {
		stats_done(&kept);
		return r;
	}
	if (builder->earlier.present)
		stats_add(&kept.values, &builder->earlier.values);
	builder_cut_off_account(builder, stats);
	if (model->recordings.count)
		note_account(&model->recordings.items[model->recordings.count - 1], stats);
	stats_done(&model->stats);
	model->stats = kept;
	return 0;
}

/* ---- recordings ---- */

/* The run begins with the first of them. */
static void note_begin(struct model *model, uint64_t start_ns)
{
	struct model_session *session = &model->session;

	if (model->recordings.count == 1 || start_ns >= session->start_time_ns)
		return;
	if (session->start_realtime_ns)
		session->start_realtime_ns -= session->start_time_ns - start_ns;
	session->start_time_ns = start_ns;
}

int builder_recording_begins(struct model_builder *builder, const struct capture_session *session)
{
	static const struct capture_stats none = {0};
	struct model *model = builder->model;
	struct model_recording recording = {
		.clock = session->clock,
		.start_ns = session->start_time_ns,
		.cpu_count = session->cpu_count,
	};
	int r = builder_keep(builder, session->host, &builder->host);

	builder_cut_off_begins(builder, session);
	recording.host = builder->host;
	if (r == 0)
		r = builder_keep(builder, session->file, &recording.file);
	if (r == 0)
		r = array_append(&model->recordings, recording);
	if (r < 0)
		return r;
	note_begin(model, session->start_time_ns);
	stats_done(&builder->earlier);
	return model->stats.present
		       ? stats_copy(builder, &model->stats.values, &none, &builder->earlier)
		       : 0;
}

void builder_recordings_done(struct model_builder *builder)
{
	stats_done(&builder->earlier);
}
