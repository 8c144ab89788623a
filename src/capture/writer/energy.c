/* SPDX-License-Identifier: Apache-2.0 */
/* Writing energy, with a track of each domain's power for viewers. */
#include <stdio.h>
#include <string.h>

#include "capture/energy_messages.h"
#include "capture/fields.h"
#include "capture/writer/messages.h"
#include "capture/writer/state.h"

#define POWER_TRACK "sonde power"

int capture_writer_energy_domain(
	struct capture_writer *writer, const struct wire_energy_domain *domain)
{
	uint64_t track = writer_named_track(writer, POWER_TRACK, domain->id);
	char name[128];
	int r;

	if (writer->visitor)
		return writer->visitor->energy_domain
			       ? writer->visitor->energy_domain(writer->visitor_context, domain)
			       : 0;
	r = writer_start(writer);
	if (r == 0)
		r = writer_is_new_track(writer, track);
	if (r < 0)
		return r;
	if (r > 0) {
		snprintf(name, sizeof(name), "power %.100s%s", domain->name,
			domain->is_replayed ? " (replayed)" : "");
		put_power_track(writer_begin_packet(writer), track, name);
		r = writer_end_packet(writer);
	}
	if (r < 0)
		return r;
	put_energy_domain(writer_begin_packet(writer), domain);
	return writer_end_packet(writer);
}

/* A gap has no power: viewers keep drawing the one before it. */
int capture_writer_energy_interval(
	struct capture_writer *writer, const struct wire_energy_interval *interval)
{
	uint64_t length_ns = interval->end_ns - interval->start_ns;
	struct strbuf *packet;
	int r;

	if (writer->visitor)
		return writer->visitor->energy_interval
			       ? writer->visitor->energy_interval(writer->visitor_context, interval)
			       : 0;
	r = writer_start(writer);
	if (r < 0)
		return r;
	packet = writer_begin_timed_packet(writer, interval->start_ns);
	if (!interval->gap && length_ns) {
		const struct capture_counter power = {
			.value = (double)interval->energy_nj / (double)length_ns};

		put_counter(packet, &power,
			writer_named_track(writer, POWER_TRACK, interval->domain), 0);
	}
	put_energy_interval(packet, interval);
	return writer_end_timed_packet(writer);
}

int capture_writer_energy_state(
	struct capture_writer *writer, const struct wire_energy_state *state)
{
	int r;

	if (writer->visitor)
		return writer->visitor->energy_state
			       ? writer->visitor->energy_state(writer->visitor_context, state)
			       : 0;
	r = writer_start(writer);
	if (r < 0)
		return r;
	put_energy_state(writer_begin_timed_packet(writer, state->time_ns), state);
	return writer_end_timed_packet(writer);
}

int capture_writer_energy_absence(
	struct capture_writer *writer, const struct wire_energy_absence *absence)
{
	int r;

	if (writer->visitor)
		return writer->visitor->energy_absence
			       ? writer->visitor->energy_absence(writer->visitor_context, absence)
			       : 0;
	r = writer_start(writer);
	if (r < 0)
		return r;
	put_energy_absence(writer_begin_packet(writer), absence);
	return writer_end_packet(writer);
}
