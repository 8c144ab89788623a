/* SPDX-License-Identifier: Apache-2.0 */
/* A part of model/model.h: energy as it was measured, and how it was split. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A rail that takes energy: see wire/energy.h. Of captures that were joined, the same rail of the
 * same host is one.
 */
struct model_energy_domain {
	const char *name, *source, *device;     /* device: "" when unknown */
	const char *host;                       /* "" when unknown */
	uint32_t parent;                        /* index; MODEL_NONE: a root */
	uint8_t part;                           /* enum wire_energy_part */
	uint8_t quality;                        /* enum wire_energy_quality */
	bool is_replayed;                       /* from a file, not of the machine */
	uint64_t period_ns, cost_ns;            /* 0: not known */
	double relative_error, idle_w, limit_w; /* NaN: not known */
	const char *cpus; /* that it feeds, "0-7,16-23"; "": all, or not known */
	uint32_t first_interval, interval_count; /* energy_intervals.items[first_interval] … */
	uint32_t made_thread; /* that model_weigh() made for its rest; MODEL_NONE: none */
};

/* Energy of a domain in [start_ns, end_ns): those of one domain do not overlap. */
struct model_energy_interval {
	uint64_t start_ns, end_ns; /* end > start */
	double energy_j;           /* 0 with a gap, and means nothing then */
	double busy_ns;            /* of the processors that it feeds, not idle; NaN: not known */
	uint32_t domain;           /* index */
	uint8_t gap;               /* enum wire_energy_gap */
	bool is_cut; /* a part of what was measured: at a window's edge, or of a chosen time */
};

/* Temperature and clock of a domain at a moment. */
struct model_energy_state {
	uint64_t time_ns;
	uint32_t domain;        /* index */
	int32_t temperature_mc; /* thousandths of a degree Celsius; INT32_MIN: not known */
	uint32_t clock_mhz;     /* 0: not known */
};

/* How energy was split that a sample or a rest has: where its uncertainty comes from. */
enum model_energy_split {
	MODEL_ENERGY_UNKNOWN,
	MODEL_ENERGY_MEASURED,  /* it was not */
	MODEL_ENERGY_SAMPLED,   /* by samples */
	MODEL_ENERGY_UNSAMPLED, /* what samples left to other programs */
	MODEL_ENERGY_REGRESSED, /* by the power of a class of device work */
	MODEL_ENERGY_SHARED,    /* by time on a device */
};

/* Of all energy that was split in one way. Errors are relative. */
struct model_energy_error {
	double sensor; /* NaN: not known */
	double power; /* standard error of MODEL_ENERGY_REGRESSED, and of samples split by counts */
	uint8_t split; /* enum model_energy_split */
};

/* All that was charged, before anything is selected: what a row's energy is a share of. */
struct model_energy_pool {
	double sampled_j, unsampled_j;
	double squares_j2; /* of what was sampled in each period: their sum */
	double shared_j;
	uint64_t host_period_ns, device_period_ns; /* of the slowest sensor; 0: none */
};

/* A kind of source of energy that there was not, and why. */
struct model_energy_absence {
	const char *source, *reason;
};
