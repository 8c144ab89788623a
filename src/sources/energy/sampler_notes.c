/* SPDX-License-Identifier: Apache-2.0 */
/* What to know of the figures, in sentences. */
#include <string.h>

#include "sources/energy/sampler_internal.h"

static const char *gap_reason(uint32_t gaps)
{
	static const char *const reasons[WIRE_ENERGY_GAP_MAX] = {
		[WIRE_ENERGY_READ_FAILED] = "it could not be read",
		[WIRE_ENERGY_IMPLAUSIBLE] = "the counter jumped by an impossible amount",
		[WIRE_ENERGY_WENT_BACK] = "the counter went back",
		[WIRE_ENERGY_SUSPENDED] = "the machine slept",
		[WIRE_ENERGY_STALLED] =
			"the source did not answer in time, or its value did not change",
	};

	return reasons[__builtin_ctz(gaps)];
}

static void add_gap_note(
	const struct rail *rail, void (*add)(void *context, const char *sentence), void *context)
{
	const struct energy_sampled *sampled = &rail->sampled;
	struct errmsg note;
	int error = 0;

	/* A replay's are no news: they are in its file. */
	if (!rail->gaps || !rail->channel)
		return;
	if (rail->gaps & 1U << WIRE_ENERGY_READ_FAILED)
		error = atomic_load_explicit(
			&rail->channel->error[rail->index], memory_order_relaxed);
	errmsg_set(&note, 0, "the energy of %s (%s) is not known for %.2f s of %.2f s: %s%s%s",
		sampled->domain.name, sampled->domain.source, (double)sampled->gap_ns / 1e9,
		(double)(sampled->gap_ns + sampled->measured_ns) / 1e9, gap_reason(rail->gaps),
		error ? ": " : "", error ? strerror(-error) : "");
	add(context, note.text);
}

/* Who asks for a source by its name learns when it is not there. */
static void add_absence_notes(const struct energy_sampler *sampler,
	void (*add)(void *context, const char *sentence), void *context)
{
	const struct energy_source *source;
	const char *absence;

	for (unsigned i = 0; (absence = energy_sampler_absence(sampler, i, &source)); i++) {
		struct errmsg note;

		if (sampler->is_auto || !*absence)
			continue;
		errmsg_set(&note, 0, "energy from %s: %s", source->name, absence);
		add(context, note.text);
	}
}

void energy_sampler_notes(const struct energy_sampler *sampler,
	void (*add)(void *context, const char *sentence), void *context)
{
	bool has_rapl = false;

	add_absence_notes(sampler, add, context);
	for (unsigned i = 0; i < sampler->placed_count; i++) {
		const struct rail *rail = &sampler->rails[sampler->order[i]];

		has_rapl = has_rapl || (rail->channel && is_rapl(rail->channel->source));
		add_gap_note(rail, add, context);
	}
	if (has_rapl && sampler->place.is_guest)
		add(context, "this is a virtual machine: RAPL may count the host's whole socket, "
			     "with everything else that runs on it");
	if (sampler->twin_note.text[0])
		add(context, sampler->twin_note.text);
	if (sampler->replay && sampler->replay->note.text[0])
		add(context, sampler->replay->note.text);
	if (sampler->replay_goes_on)
		add(context, "the replayed energy goes on after the end of this recording: that "
			     "part is not used");
}
