/* SPDX-License-Identifier: Apache-2.0 */
#include "push/prometheus.h"

#include <string.h>

#include "base/macros.h"

/* ---- the format ---- */

static void add_head(struct strbuf *out, const char *name, const char *type, const char *help)
{
	strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Quotes, backslashes and lines' ends are escaped; other control characters are left out. */
static void add_label(
	struct strbuf *out, const char *separator, const char *name, const char *value)
{
	strbuf_addf(out, "%s%s=\"", separator, name);
	for (const char *c = value ? value : ""; *c; c++) {
		if (*c == '\n')
			strbuf_add(out, "\\n");
		else if (*c == '"' || *c == '\\')
			strbuf_addf(out, "\\%c", *c);
		else if ((unsigned char)*c >= ' ')
			strbuf_add_char(out, *c);
	}
	strbuf_add_char(out, '"');
}

static void add_count(
	struct strbuf *out, const char *name, const char *type, const char *help, uint64_t value)
{
	add_head(out, name, type, help);
	strbuf_addf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void add_seconds(
	struct strbuf *out, const char *name, const char *type, const char *help, uint64_t ns)
{
	add_head(out, name, type, help);
	strbuf_addf(out, "%s %.9f\n", name, (double)ns / 1e9);
}

/* ---- the figures ---- */

static void add_recording(const struct prometheus_figures *figures, struct strbuf *out)
{
	const struct capture_stats *stats = &figures->account->stats;

	add_head(out, "sonde_build_info", "gauge", "The version that records.");
	strbuf_add(out, "sonde_build_info{version=\"" SONDE_VERSION "\"} 1\n");
	add_seconds(out, "sonde_recording_start_time_seconds", "gauge",
		"When the recording began, since 1970.", figures->series->start_realtime_ns);
	add_count(out, "sonde_samples_total", "counter", "Samples of running threads.",
		stats->samples);
	add_count(out, "sonde_wait_samples_total", "counter", "Samples of waiting threads.",
		stats->wait_samples);
	add_count(out, "sonde_samples_lost_total", "counter", "Samples that were lost.",
		stats->samples_lost);
	add_count(out, "sonde_processes", "gauge", "Processes that were seen and live.",
		figures->series->processes);
	add_count(out, "sonde_device_launches_total", "counter", "Launches of work for devices.",
		stats->device.launches);
	add_count(out, "sonde_steps_total", "counter", "Steps that programs reported.",
		figures->account->steps);
	add_count(out, "sonde_tokens_total", "counter", "Tokens that programs reported with marks.",
		figures->account->tokens);
}

static void add_overhead(const struct capture_stats *stats, struct strbuf *out)
{
	add_seconds(out, "sonde_collector_cpu_seconds_total", "counter",
		"CPU time of the recorder itself.", stats->collector_cpu_ns);
	add_count(out, "sonde_collector_memory_peak_bytes", "gauge",
		"Most memory that the recorder had.", stats->collector_peak_rss_bytes);
	add_seconds(out, "sonde_bpf_cpu_seconds_total", "counter",
		"CPU time of sampling in the kernel, where it is measured.",
		stats->bpf_run_time_ns + stats->wait_run_time_ns + stats->device.stack_run_time_ns);
}

static void add_losses(const struct prometheus_figures *figures, struct strbuf *out)
{
	if (!figures->series->loss_count)
		return;
	add_head(out, "sonde_records_lost_total", "counter",
		"Records that were lost, by place. CPU 0 stands for places without one.");
	for (size_t i = 0; i < figures->series->loss_count; i++) {
		const struct capture_loss *loss = &figures->series->losses[i];

		add_label(out, "sonde_records_lost_total{", "place", loss->where);
		strbuf_addf(out, ",cpu=\"%u\"} %llu\n", loss->cpu, (unsigned long long)loss->count);
	}
}

static void add_rails(const struct prometheus_figures *figures, struct strbuf *out)
{
	if (!figures->series->rail_count)
		return;
	add_head(out, "sonde_energy_joules_total", "counter",
		"Energy by rail. A part of another rail is in both: do not add rails up.");
	for (size_t i = 0; i < figures->series->rail_count; i++) {
		const struct capture_series_rail *rail = &figures->series->rails[i];

		add_label(out, "sonde_energy_joules_total{", "rail", rail->name);
		add_label(out, ",", "source", rail->source);
		add_label(out, ",", "part", rail->part);
		add_label(out, ",", "quality", rail->quality);
		strbuf_addf(out, "} %.6f\n", (double)rail->energy_nj / 1e9);
	}
}

static void add_devices(const struct prometheus_figures *figures, struct strbuf *out)
{
	if (!figures->series->device_count)
		return;
	add_head(out, "sonde_device_works_total", "counter",
		"Kernels, copies and fills of devices.");
	for (size_t i = 0; i < figures->series->device_count; i++) {
		add_label(out, "sonde_device_works_total{", "device",
			figures->series->devices[i].name);
		strbuf_addf(out, "} %llu\n", (unsigned long long)figures->series->devices[i].works);
	}
	add_head(out, "sonde_device_work_seconds_total", "counter",
		"Time of these works. Those at the same time count each.");
	for (size_t i = 0; i < figures->series->device_count; i++) {
		add_label(out, "sonde_device_work_seconds_total{", "device",
			figures->series->devices[i].name);
		strbuf_addf(out, "} %.9f\n", (double)figures->series->devices[i].busy_ns / 1e9);
	}
}

static void add_windows(const struct prometheus_figures *figures, struct strbuf *out)
{
	add_count(out, "sonde_windows_total", "counter", "Windows that are complete.",
		figures->account->windows);
	add_count(out, "sonde_windows_failed_total", "counter",
		"Windows that could not be written whole.", figures->account->failed_windows);
	add_count(out, "sonde_window_written_bytes_total", "counter", "Size of complete windows.",
		figures->account->bytes);
	add_count(out, "sonde_window_open_bytes", "gauge", "Size of windows that are written.",
		figures->open_bytes);
	add_count(out, "sonde_events_late_total", "counter",
		"Events that came after their window was closed.", figures->account->late);
	add_count(out, "sonde_events_dropped_total", "counter",
		"Events of windows that could not be written.", figures->account->dropped);
	add_count(out, "sonde_folder_windows", "gauge", "Windows in the folder.",
		figures->folder->windows);
	add_count(out, "sonde_folder_bytes", "gauge", "Size of windows in the folder.",
		figures->folder->bytes);
	add_count(out, "sonde_windows_removed_total", "counter",
		"Windows that were removed to keep the folder small.", figures->folder->removed);
}

static void add_receivers(const struct prometheus_figures *figures, struct strbuf *out)
{
#define COUNT(field) offsetof(struct sender_counts, field)
	static const struct {
		const char *name, *type, *help;
		size_t offset;
	} counts[] = {
		{"sonde_windows_delivered_total", "counter", "Windows that receivers took.",
			COUNT(delivered)},
		{"sonde_window_delivered_bytes_total", "counter", "Size of them.",
			COUNT(delivered_bytes)},
		{"sonde_delivery_failures_total", "counter", "Attempts that failed.",
			COUNT(failures)},
		{"sonde_windows_dropped_total", "counter",
			"Windows that were removed before they were delivered.", COUNT(dropped)},
		{"sonde_windows_rejected_total", "counter", "Windows that receivers do not want.",
			COUNT(rejected)},
		{"sonde_windows_waiting", "gauge", "Windows that wait to be delivered.",
			COUNT(waiting)},
	};
#undef COUNT

	for (size_t k = 0; figures->receiver_count && k < ARRAY_SIZE(counts); k++) {
		add_head(out, counts[k].name, counts[k].type, counts[k].help);
		for (size_t i = 0; i < figures->receiver_count; i++) {
			const struct prometheus_receiver *receiver = &figures->receivers[i];
			const char *base = (const char *)receiver->counts + counts[k].offset;

			strbuf_addf(out, "%s", counts[k].name);
			add_label(out, "{", "receiver", receiver->name);
			strbuf_addf(out, "} %llu\n",
				(unsigned long long)*(const _Atomic uint64_t *)(const void *)base);
		}
	}
}

void prometheus_write(const struct prometheus_figures *figures, struct strbuf *out)
{
	add_recording(figures, out);
	add_overhead(&figures->account->stats, out);
	add_losses(figures, out);
	add_rails(figures, out);
	add_devices(figures, out);
	add_windows(figures, out);
	add_receivers(figures, out);
}
