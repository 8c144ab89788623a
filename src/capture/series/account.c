/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources count from the recording's begin. A window's counts are the difference between its end
 * and its begin, as last seen, so that those of all windows together are those of the recording.
 */
#include <stdio.h>
#include <string.h>

#include "capture/series/state.h"

/* Counts that grow; peaks, and the number of processes, are as they are. */
static void subtract(struct capture_stats *stats, const struct capture_stats *begin)
{
	const uint64_t *device_begin = (const uint64_t *)&begin->device;
	const uint64_t *ranges_begin = (const uint64_t *)&begin->ranges;
	uint64_t *device = (uint64_t *)&stats->device, *ranges = (uint64_t *)&stats->ranges;
	uint64_t processes = stats->device.processes, error_ns = stats->device.clock_error_ns;

	for (size_t i = 0; i < WIRE_STOP_MAX; i++)
		stats->stacks_by_stop[i] -= begin->stacks_by_stop[i];
	for (size_t i = 0; i < WIRE_PYTHON_MAX; i++)
		stats->stacks_by_python[i] -= begin->stacks_by_python[i];
	for (size_t i = 0; i < CAPTURE_DEVICE_STATS; i++)
		device[i] -= MIN(device[i], device_begin[i]);
	for (size_t i = 0; i < CAPTURE_RANGE_STATS; i++)
		ranges[i] -= MIN(ranges[i], ranges_begin[i]);
	stats->device.processes = processes;
	stats->device.clock_error_ns = error_ns;
	stats->samples_lost -= begin->samples_lost;
	stats->user_frames -= begin->user_frames;
	stats->kernel_frames -= begin->kernel_frames;
	stats->python_frames -= begin->python_frames;
	stats->bpf_run_count -= begin->bpf_run_count;
	stats->bpf_run_time_ns -= begin->bpf_run_time_ns;
	stats->wait_run_count -= begin->wait_run_count;
	stats->wait_run_time_ns -= begin->wait_run_time_ns;
	stats->stacks_unwound_in_user_space -= begin->stacks_unwound_in_user_space;
	stats->collector_cpu_ns -= begin->collector_cpu_ns;
	stats->collector_start_cpu_ns -= begin->collector_start_cpu_ns;
	stats->collector_end_cpu_ns -= begin->collector_end_cpu_ns;
	stats->tables_built -= begin->tables_built;
	stats->tables_from_cache -= begin->tables_from_cache;
	stats->table_build_ns -= begin->table_build_ns;
	stats->waited_ns -= begin->waited_ns;
}

static uint64_t lost_before(const struct series_part *part, const struct capture_loss *loss)
{
	array_foreach (&part->begin_losses, before)
		if (before->cpu == loss->cpu && strcmp(before->where, loss->where) == 0)
			return before->count;
	return 0;
}

static int add_losses(struct capture_series *series, struct series_part *part)
{
	int r = 0;

	array_clear(&part->end_losses);
	array_foreach (&series->losses, loss) {
		struct capture_loss own = *loss;

		own.count -= MIN(own.count, lost_before(part, loss));
		if (own.count && r == 0)
			r = array_append(&part->end_losses, own);
	}
	return r;
}

int series_settle(struct capture_series *series, struct series_part *part)
{
	if (part->is_settled)
		return 0;
	part->end = series->account.stats;
	part->is_settled = true;
	return add_losses(series, part);
}

static int keep_losses(struct capture_series *series, const struct capture_stats *stats)
{
	int r = 0;

	array_clear(&series->losses);
	for (uint32_t i = 0; r == 0 && i < stats->loss_count; i++) {
		struct capture_loss kept = stats->losses[i];

		r = split_tables_text(&series->tables, kept.where, &kept.where);
		if (r == 0)
			r = array_append(&series->losses, kept);
	}
	return r;
}

int series_write_account(struct capture_series *series, struct series_part *part, bool is_complete)
{
	const struct capture_stats *last = &series->account.stats;
	struct capture_stats out;
	int r;

	if (!part->is_settled) {
		part->end = *last;
		r = add_losses(series, part);
		if (r < 0)
			return r;
	}
	out = part->end;
	subtract(&out, &part->begin);
	out.end_time_ns = is_complete || part->is_settled
				  ? part->end_ns
				  : MAX(part->begin_ns, MIN(part->end_ns, last->end_time_ns));
	out.samples = part->samples;
	out.wait_samples = part->wait_samples;
	out.losses = part->end_losses.items;
	out.loss_count = (uint32_t)part->end_losses.count;
	out.bytes_written = capture_writer_bytes(part->writer);
	out.complete = is_complete;
	return capture_writer_stats(part->writer, &out);
}

int series_count(struct capture_series *series, const struct capture_stats *stats)
{
	int r = keep_losses(series, stats);

	series->account.stats = *stats;
	series->account.stats.losses = NULL;
	series->account.stats.loss_count = 0;
	for_parts (series, part) {
		if (r < 0 || !part->writer)
			continue;
		r = series_write_account(series, part, false);
		if (r == 0)
			r = series_written(part, capture_writer_flush(part->writer, &part->error));
	}
	return r;
}
