/* SPDX-License-Identifier: Apache-2.0 */
/* A capture with energy of two rails, one of them a part of the other, and what it reads as. */
#pragma once

#include <math.h>

#include "capture-window-example.h"

static inline int text_energy_domain(void *context, const struct wire_energy_domain *domain)
{
	struct strbuf *out = context;

	strbuf_addf(out,
		"energy domain %u in %u part=%u quality=%u period=%" PRIu64 " cost=%" PRIu64
		" error=%g idle=%g%s",
		domain->id, domain->parent, domain->part, domain->quality, domain->period_ns,
		domain->cost_ns, domain->relative_error, domain->idle_w,
		domain->is_replayed ? " replayed" : "");
	text_string(out, "name", domain->name);
	text_string(out, "source", domain->source);
	text_string(out, "device", domain->device);
	if (domain->limit_w > 0)
		strbuf_addf(out, " limit=%g", domain->limit_w);
	if (domain->cpus && *domain->cpus)
		text_string(out, "cpus", domain->cpus);
	strbuf_add_char(out, '\n');
	return 0;
}

static inline int text_energy_interval(void *context, const struct wire_energy_interval *interval)
{
	strbuf_addf(context,
		"energy of %u %" PRIu64 "..%" PRIu64 " gap=%u nj=%" PRIu64 " busy=%" PRIu64 "\n",
		interval->domain, interval->start_ns, interval->end_ns, interval->gap,
		interval->energy_nj, interval->busy_ns);
	return 0;
}

static inline int text_energy_state(void *context, const struct wire_energy_state *state)
{
	strbuf_addf(context, "energy state of %u at %" PRIu64 " %d mC %u MHz\n", state->domain,
		state->time_ns, state->temperature_mc, state->clock_mhz);
	return 0;
}

static inline int text_energy_absence(void *context, const struct wire_energy_absence *absence)
{
	strbuf_add(context, "no energy");
	text_string(context, "source", absence->source);
	text_string(context, "reason", absence->reason);
	strbuf_add_char(context, '\n');
	return 0;
}

static inline struct capture_visitor energy_text_visitor(void)
{
	struct capture_visitor visitor = window_text_visitor();

	visitor.energy_domain = text_energy_domain;
	visitor.energy_interval = text_energy_interval;
	visitor.energy_state = text_energy_state;
	visitor.energy_absence = text_energy_absence;
	return visitor;
}

static const struct wire_energy_domain energy_example_domains[] = {
	{
		.id = 1,
		.part = WIRE_ENERGY_CPU,
		.quality = WIRE_ENERGY_COUNTER,
		.name = "package-0",
		.source = "perf",
		.device = "socket 0",
		.period_ns = 10000000,
		.cost_ns = 900,
		.relative_error = 0.05,
		.idle_w = 12.5,
		.limit_w = 65.5,
		.cpus = "0-3,8",
	},
	{
		.id = 2,
		.parent = 1,
		.part = WIRE_ENERGY_CORES,
		.quality = WIRE_ENERGY_MODELLED,
		.is_replayed = true,
		.name = "cores",
		.source = "replay",
		.device = "",
		.relative_error = NAN,
		.idle_w = NAN,
	},
};

/* Times are since the session's start. */
static inline int write_energy_interval(struct capture_writer *writer, uint32_t domain,
	uint64_t start_ns, uint64_t end_ns, uint64_t energy_nj, uint32_t gap)
{
	const struct wire_energy_interval interval = {
		.start_ns = example_session.start_time_ns + start_ns,
		.end_ns = example_session.start_time_ns + end_ns,
		.domain = domain,
		.energy_nj = energy_nj,
		.gap = gap,
		.busy_ns = gap ? UINT64_MAX : (end_ns - start_ns) / 2,
	};

	return capture_writer_energy_interval(writer, &interval);
}

static inline int write_energy_example(struct capture_writer *writer)
{
	const struct wire_energy_state states[] = {
		{.time_ns = example_session.start_time_ns + 5,
			.domain = 1,
			.temperature_mc = -1500,
			.clock_mhz = 2400},
		{.time_ns = example_session.start_time_ns + 15,
			.domain = 2,
			.temperature_mc = INT32_MIN},
	};
	const struct wire_energy_absence absence = {
		.source = "nvml", .reason = "there is no libnvidia-ml.so.1"};
	int r = capture_writer_session(writer, &example_session);

	for (unsigned i = 0; i < ARRAY_SIZE(energy_example_domains); i++)
		r = r ?: capture_writer_energy_domain(writer, &energy_example_domains[i]);
	r = r ?: capture_writer_energy_absence(writer, &absence);
	r = r ?: write_energy_interval(writer, 1, 0, 10, 1000, WIRE_ENERGY_NO_GAP);
	r = r ?: write_energy_interval(writer, 2, 0, 10, 400, WIRE_ENERGY_NO_GAP);
	r = r ?: capture_writer_energy_state(writer, &states[0]);
	r = r ?: write_energy_interval(writer, 1, 10, 20, 0, WIRE_ENERGY_SUSPENDED);
	r = r ?: capture_writer_energy_state(writer, &states[1]);
	return r ?: write_energy_interval(writer, 1, 20, 30, 0, WIRE_ENERGY_NO_GAP);
}
