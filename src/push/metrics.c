/* SPDX-License-Identifier: Apache-2.0 */
#include "push/metrics.h"

#include <stddef.h>
#include <stdio.h>

#include "base/macros.h"

#define JOULE_DIGITS  6
#define SECOND_DIGITS 9

static void begin(const struct metric_visitor *visitor, const struct metric *metric)
{
	visitor->begin(visitor->context, metric);
}

static void end(const struct metric_visitor *visitor, const struct metric *metric)
{
	if (visitor->end)
		visitor->end(visitor->context, metric);
}

static void add_labelled_count(const struct metric_visitor *visitor, const struct metric *metric,
	const struct metric_label *labels, size_t label_count, uint64_t count)
{
	visitor->point(visitor->context, metric,
		&(struct metric_point){.labels = labels,
			.label_count = label_count,
			.is_count = true,
			.count = count});
}

static void add_labelled_number(const struct metric_visitor *visitor, const struct metric *metric,
	const struct metric_label *labels, size_t label_count, double number, int digits)
{
	visitor->point(visitor->context, metric,
		&(struct metric_point){.labels = labels,
			.label_count = label_count,
			.number = number,
			.digits = digits});
}

/* A metric of one point. */
static void add_count(const struct metric_visitor *visitor, const char *name, enum metric_kind kind,
	const char *unit, const char *help, uint64_t count)
{
	const struct metric metric = {name, kind, unit, help};

	begin(visitor, &metric);
	add_labelled_count(visitor, &metric, NULL, 0, count);
	end(visitor, &metric);
}

static void add_seconds(const struct metric_visitor *visitor, const char *name,
	enum metric_kind kind, const char *help, uint64_t ns)
{
	const struct metric metric = {name, kind, "s", help};

	begin(visitor, &metric);
	add_labelled_number(visitor, &metric, NULL, 0, (double)ns / 1e9, SECOND_DIGITS);
	end(visitor, &metric);
}

/* ---- the figures ---- */

static void add_recording(
	const struct metric_figures *figures, const struct metric_visitor *visitor)
{
	static const struct metric build = {
		"sonde_build_info", METRIC_GAUGE, "1", "The version that records."};
	static const struct metric_label version = {"version", SONDE_VERSION};
	const struct capture_stats *stats = &figures->account->stats;

	begin(visitor, &build);
	add_labelled_count(visitor, &build, &version, 1, 1);
	end(visitor, &build);
	add_seconds(visitor, "sonde_recording_start_time_seconds", METRIC_GAUGE,
		"When the recording began, since 1970.", figures->series->start_realtime_ns);
	add_count(visitor, "sonde_samples_total", METRIC_COUNTER, "{sample}",
		"Samples of running threads.", stats->samples);
	add_count(visitor, "sonde_wait_samples_total", METRIC_COUNTER, "{sample}",
		"Samples of waiting threads.", stats->wait_samples);
	add_count(visitor, "sonde_samples_lost_total", METRIC_COUNTER, "{sample}",
		"Samples that were lost.", stats->samples_lost);
	add_count(visitor, "sonde_processes", METRIC_GAUGE, "{process}",
		"Processes that were seen and live.", figures->series->processes);
	add_count(visitor, "sonde_device_launches_total", METRIC_COUNTER, "{launch}",
		"Launches of work for devices.", stats->device.launches);
	add_count(visitor, "sonde_steps_total", METRIC_COUNTER, "{step}",
		"Steps that programs reported.", figures->account->steps);
	add_count(visitor, "sonde_tokens_total", METRIC_COUNTER, "{token}",
		"Tokens that programs reported with marks.", figures->account->tokens);
}

static void add_overhead(const struct capture_stats *stats, const struct metric_visitor *visitor)
{
	add_seconds(visitor, "sonde_collector_cpu_seconds_total", METRIC_COUNTER,
		"CPU time of the recorder itself.", stats->collector_cpu_ns);
	add_count(visitor, "sonde_collector_memory_peak_bytes", METRIC_GAUGE, "By",
		"Most memory that the recorder had.", stats->collector_peak_rss_bytes);
	add_seconds(visitor, "sonde_bpf_cpu_seconds_total", METRIC_COUNTER,
		"CPU time of sampling in the kernel, where it is measured.",
		stats->bpf_run_time_ns + stats->wait_run_time_ns + stats->device.stack_run_time_ns);
}

static void add_losses(const struct metric_figures *figures, const struct metric_visitor *visitor)
{
	static const struct metric metric = {"sonde_records_lost_total", METRIC_COUNTER, "{record}",
		"Records that were lost, by place. CPU 0 stands for places without one."};

	if (!figures->series->loss_count)
		return;
	begin(visitor, &metric);
	for (size_t i = 0; i < figures->series->loss_count; i++) {
		const struct capture_loss *loss = &figures->series->losses[i];
		char cpu[16];
		const struct metric_label labels[] = {{"place", loss->where}, {"cpu", cpu}};

		snprintf(cpu, sizeof(cpu), "%u", loss->cpu);
		add_labelled_count(visitor, &metric, labels, ARRAY_SIZE(labels), loss->count);
	}
	end(visitor, &metric);
}

static void add_rails(const struct metric_figures *figures, const struct metric_visitor *visitor)
{
	static const struct metric metric = {"sonde_energy_joules_total", METRIC_COUNTER, "J",
		"Energy by rail. A part of another rail is in both: do not add rails up."};

	if (!figures->series->rail_count)
		return;
	begin(visitor, &metric);
	for (size_t i = 0; i < figures->series->rail_count; i++) {
		const struct capture_series_rail *rail = &figures->series->rails[i];
		const struct metric_label labels[] = {{"rail", rail->name},
			{"source", rail->source}, {"part", rail->part}, {"quality", rail->quality}};

		add_labelled_number(visitor, &metric, labels, ARRAY_SIZE(labels),
			(double)rail->energy_nj / 1e9, JOULE_DIGITS);
	}
	end(visitor, &metric);
}

static void add_devices(const struct metric_figures *figures, const struct metric_visitor *visitor)
{
	static const struct metric works = {"sonde_device_works_total", METRIC_COUNTER, "{work}",
		"Kernels, copies and fills of devices."};
	static const struct metric times = {"sonde_device_work_seconds_total", METRIC_COUNTER, "s",
		"Time of these works. Those at the same time count each."};
	const struct capture_series_figures *series = figures->series;

	if (!series->device_count)
		return;
	begin(visitor, &works);
	for (size_t i = 0; i < series->device_count; i++) {
		const struct metric_label device = {"device", series->devices[i].name};

		add_labelled_count(visitor, &works, &device, 1, series->devices[i].works);
	}
	end(visitor, &works);
	begin(visitor, &times);
	for (size_t i = 0; i < series->device_count; i++) {
		const struct metric_label device = {"device", series->devices[i].name};

		add_labelled_number(visitor, &times, &device, 1,
			(double)series->devices[i].busy_ns / 1e9, SECOND_DIGITS);
	}
	end(visitor, &times);
}

static void add_windows(const struct metric_figures *figures, const struct metric_visitor *visitor)
{
	const struct capture_series_account *account = figures->account;
	const struct window_folder_account *folder = figures->folder;

	add_count(visitor, "sonde_windows_total", METRIC_COUNTER, "{window}",
		"Windows that are complete.", account->windows);
	add_count(visitor, "sonde_windows_failed_total", METRIC_COUNTER, "{window}",
		"Windows that could not be written whole.", account->failed_windows);
	add_count(visitor, "sonde_window_written_bytes_total", METRIC_COUNTER, "By",
		"Size of complete windows.", account->bytes);
	add_count(visitor, "sonde_window_open_bytes", METRIC_GAUGE, "By",
		"Size of windows that are written.", figures->open_bytes);
	add_count(visitor, "sonde_events_late_total", METRIC_COUNTER, "{event}",
		"Events that came after their window was closed.", account->late);
	add_count(visitor, "sonde_events_dropped_total", METRIC_COUNTER, "{event}",
		"Events of windows that could not be written.", account->dropped);
	add_count(visitor, "sonde_folder_windows", METRIC_GAUGE, "{window}",
		"Windows in the folder.", folder->windows);
	add_count(visitor, "sonde_folder_bytes", METRIC_GAUGE, "By",
		"Size of windows in the folder.", folder->bytes);
	add_count(visitor, "sonde_windows_removed_total", METRIC_COUNTER, "{window}",
		"Windows that were removed to keep the folder small.", folder->removed);
}

static void add_receivers(
	const struct metric_figures *figures, const struct metric_visitor *visitor)
{
#define COUNT(field) offsetof(struct sender_counts, field)
	static const struct {
		struct metric metric;
		size_t offset;
	} counts[] = {
		{{"sonde_windows_delivered_total", METRIC_COUNTER, "{window}",
			 "Windows that receivers took."},
			COUNT(delivered)},
		{{"sonde_window_delivered_bytes_total", METRIC_COUNTER, "By", "Size of them."},
			COUNT(delivered_bytes)},
		{{"sonde_delivery_failures_total", METRIC_COUNTER, "{attempt}",
			 "Attempts that failed."},
			COUNT(failures)},
		{{"sonde_windows_dropped_total", METRIC_COUNTER, "{window}",
			 "Windows that were removed before they were delivered."},
			COUNT(dropped)},
		{{"sonde_windows_rejected_total", METRIC_COUNTER, "{window}",
			 "Windows that receivers do not want."},
			COUNT(rejected)},
		{{"sonde_windows_waiting", METRIC_GAUGE, "{window}",
			 "Windows that wait to be delivered."},
			COUNT(waiting)},
	};
#undef COUNT

	for (size_t k = 0; figures->receiver_count && k < ARRAY_SIZE(counts); k++) {
		begin(visitor, &counts[k].metric);
		for (size_t i = 0; i < figures->receiver_count; i++) {
			const struct metric_receiver *receiver = &figures->receivers[i];
			const char *base = (const char *)receiver->counts + counts[k].offset;
			const struct metric_label name = {"receiver", receiver->name};

			add_labelled_count(visitor, &counts[k].metric, &name, 1,
				*(const _Atomic uint64_t *)(const void *)base);
		}
		end(visitor, &counts[k].metric);
	}
}

void metrics_visit(const struct metric_figures *figures, const struct metric_visitor *visitor)
{
	add_recording(figures, visitor);
	add_overhead(&figures->account->stats, visitor);
	add_losses(figures, visitor);
	add_rails(figures, visitor);
	add_devices(figures, visitor);
	add_windows(figures, visitor);
	add_receivers(figures, visitor);
}
