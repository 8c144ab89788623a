/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted over all windows: for who watches the recording. */
#include <string.h>

#include "capture/series/state.h"

/* Of different names; a program may make up as many as it likes. */
#define MOST_DEVICES 64
#define TOKEN_MARK   "token"

int series_count_energy(struct capture_series *series, const struct wire_energy_interval *interval)
{
	array_foreach (&series->domains, domain) {
		size_t index = (size_t)(domain - series->domains.items);

		if (domain->id != interval->domain || interval->gap)
			continue;
		series->rails.items[index].energy_nj += interval->energy_nj;
	}
	return 0;
}

int series_add_rail(struct capture_series *series, const struct wire_energy_domain *domain)
{
	const struct capture_series_rail rail = {
		.name = domain->name,
		.source = domain->source,
		.part = wire_energy_part_name(domain->part),
		.quality = wire_energy_quality_name(domain->quality),
	};

	return array_append(&series->rails, rail);
}

int series_count_work(struct capture_series *series, const struct capture_device_work *work)
{
	struct capture_series_device device = {.name = work->device};
	int r;

	array_foreach (&series->devices, known) {
		if (strcmp(known->name, work->device) != 0)
			continue;
		known->works++;
		known->busy_ns += work->end_ns > work->start_ns ? work->end_ns - work->start_ns : 0;
		return 0;
	}
	if (series->devices.count >= MOST_DEVICES)
		return 0;
	r = split_tables_text(&series->tables, work->device, &device.name);
	if (r == 0)
		r = array_append(&series->devices, device);
	return r < 0 ? r : series_count_work(series, work);
}

void series_count_mark(struct capture_series *series, const struct capture_range_event *event)
{
	if (event->kind == CAPTURE_RANGE_MARK && strcmp(event->name, TOKEN_MARK) == 0)
		series->account.tokens++;
}

void capture_series_figures(
	const struct capture_series *series, struct capture_series_figures *ret_figures)
{
	*ret_figures = (struct capture_series_figures){
		.start_realtime_ns = series->session.start_realtime_ns,
		.processes = series->processes.count,
		.losses = series->losses.items,
		.loss_count = series->losses.count,
		.rails = series->rails.items,
		.rail_count = series->rails.count,
		.devices = series->devices.items,
		.device_count = series->devices.count,
	};
}
