/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The energy of spans of time of a program: steps, ranges, tokens, layers, phases, requests.
 *
 * A sensor that is read every 10 ms says nothing of a span of 1 ms. So a figure is given for one
 * span when it lasts ten periods of the slowest sensor, for many alike together when there are
 * twenty of them and they last that long together, and else not at all.
 */
#pragma once

#include "analyses/energy/span_state.h"
#include "analyses/energy/use.h"

/* Host: processors and their memory. Device: GPUs and other accelerators. */
enum span_energy_side {
	SPAN_ENERGY_HOST,
	SPAN_ENERGY_DEVICE,
	SPAN_ENERGY_SIDES,
};

/* What the figures are, or why there are none. */
enum span_energy_kind {
	SPAN_ENERGY_NO_SOURCE,           /* nothing of this side was measured */
	SPAN_ENERGY_NOT_MEASURED,        /* not while the span lasted: a gap of the source */
	SPAN_ENERGY_SHORTER_THAN_SENSOR, /* too short, and too few of them */
	SPAN_ENERGY_NOTHING_RAN,         /* of the thread or process, on this side */
	SPAN_ENERGY_SINGLE,              /* each span is long enough by itself */
	SPAN_ENERGY_AGGREGATED,          /* of all of them together */
	SPAN_ENERGY_KIND_MAX
};

/* "no_source", "not_measured", "shorter_than_sensor", "nothing_ran", "single", "aggregated" */
const char *span_energy_kind_name(enum span_energy_kind kind);

static inline bool span_energy_is_known(enum span_energy_kind kind)
{
	return kind >= SPAN_ENERGY_NOTHING_RAN;
}

struct energy_span {
	uint64_t start_ns, end_ns;
	uint32_t process; /* index; MODEL_NONE: of all */
	uint32_t thread;  /* index; MODEL_NONE: of all threads of the process */
};

/* Of all the spans that were asked for, together. NaN where it is not known. */
struct span_energy_part {
	enum span_energy_kind kind;
	/*
	 * Charged to what the thread or process did in the spans, and to the device work that it
	 * launched in them. 0, and known, with SPAN_ENERGY_NOTHING_RAN.
	 */
	double net_j;
	/* The same, and the idle share of the spans' time; as net_j where idle power is not known.
	 */
	double full_j;
	double uncertainty_j; /* of either */
	/* Of the side's rails, with what else ran on them, while the spans lasted. */
	double rail_j, average_w, peak_w;
	uint64_t period_ns;      /* of the slowest sensor */
	struct span_state state; /* also where the energy is not known */
};

struct span_energy_answer {
	struct span_energy_part sides[SPAN_ENERGY_SIDES];
	uint64_t duration_ns; /* of all spans together */
	uint32_t count;       /* of spans */
};

struct span_energy;

/*
 * Of a model that energy_use_init() charged and that was not weighed since. Both must outlive it.
 * Returns 0 or -ENOMEM.
 */
int span_energy_new(
	struct span_energy **ret_energy, const struct model *model, const struct energy_use *use);
struct span_energy *span_energy_free(struct span_energy *energy);
void span_energy_freep(struct span_energy **energy);
#define _cleanup_span_energy_ _cleanup_(span_energy_freep)

/* `spans` are alike, such as all runs of one layer, in any order, and may overlap. */
void span_energy_ask(const struct span_energy *energy, const struct energy_span *spans,
	size_t count, struct span_energy_answer *ret_answer);
