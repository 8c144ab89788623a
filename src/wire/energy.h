/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sources of power and energy say: the rails that there are (domains), and how much energy
 * each took from one moment to the next. A source turns what it reads (a counter that wraps, power
 * at a moment) into intervals: who reads a capture never sees a raw counter. Domains are a tree:
 * the energy of one is a part of its parent's, and is never added to it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a domain feeds. */
enum wire_energy_part {
	WIRE_ENERGY_PLATFORM = 1, /* the whole machine: psys, a module, a battery's output */
	WIRE_ENERGY_CPU = 2,      /* a processor package */
	WIRE_ENERGY_CORES = 3,
	WIRE_ENERGY_UNCORE = 4,
	WIRE_ENERGY_DRAM = 5,
	WIRE_ENERGY_GPU = 6,
	WIRE_ENERGY_GPU_MEMORY = 7,
	WIRE_ENERGY_NPU = 8,
	WIRE_ENERGY_OTHER = 9,
	WIRE_ENERGY_PART_MAX
};

/* How good its figures are, best first. */
enum wire_energy_quality {
	WIRE_ENERGY_COUNTER = 1,    /* a hardware counter of energy */
	WIRE_ENERGY_INTEGRATED = 2, /* power that hardware measured, integrated by sonde */
	WIRE_ENERGY_AVERAGED = 3,   /* power that is a mean over more than its update period */
	WIRE_ENERGY_MODELLED = 4,   /* the vendor's model, shown as a counter */
	WIRE_ENERGY_ESTIMATED = 5,  /* a model given to sonde: of est_ fields only */
	WIRE_ENERGY_QUALITY_MAX
};

/* Their stable names, in files and reports; NULL: there is no such value. */
static inline const char *wire_energy_part_name(unsigned part)
{
	static const char *const names[WIRE_ENERGY_PART_MAX] = {
		[WIRE_ENERGY_PLATFORM] = "platform",
		[WIRE_ENERGY_CPU] = "cpu",
		[WIRE_ENERGY_CORES] = "cores",
		[WIRE_ENERGY_UNCORE] = "uncore",
		[WIRE_ENERGY_DRAM] = "dram",
		[WIRE_ENERGY_GPU] = "gpu",
		[WIRE_ENERGY_GPU_MEMORY] = "gpu_memory",
		[WIRE_ENERGY_NPU] = "npu",
		[WIRE_ENERGY_OTHER] = "other",
	};

	return part < WIRE_ENERGY_PART_MAX ? names[part] : NULL;
}

static inline const char *wire_energy_quality_name(unsigned quality)
{
	static const char *const names[WIRE_ENERGY_QUALITY_MAX] = {
		[WIRE_ENERGY_COUNTER] = "counter",
		[WIRE_ENERGY_INTEGRATED] = "integrated",
		[WIRE_ENERGY_AVERAGED] = "averaged",
		[WIRE_ENERGY_MODELLED] = "modelled",
		[WIRE_ENERGY_ESTIMATED] = "estimated",
	};

	return quality < WIRE_ENERGY_QUALITY_MAX ? names[quality] : NULL;
}

/* Why an interval has no energy. */
enum wire_energy_gap {
	WIRE_ENERGY_NO_GAP,
	WIRE_ENERGY_READ_FAILED, /* see the domain's `error` */
	WIRE_ENERGY_IMPLAUSIBLE, /* more than the domain can take: a reset, a counter that jumped */
	WIRE_ENERGY_WENT_BACK,   /* a counter that does not wrap was less than before */
	WIRE_ENERGY_SUSPENDED,   /* the machine slept */
	WIRE_ENERGY_STALLED, /* the source did not answer in time, or gave the same value for long
			      */
	WIRE_ENERGY_SOURCE_ENDED, /* it vanished; a replay's last reading */
	WIRE_ENERGY_GAP_MAX
};

/* Ids count from 1 in the order in which domains are sent; a parent comes before its children. */
#define WIRE_ENERGY_NO_DOMAIN 0

struct wire_energy_domain {
	uint32_t id, parent;   /* parent: an id; WIRE_ENERGY_NO_DOMAIN: a root */
	uint32_t part;         /* enum wire_energy_part */
	uint32_t quality;      /* enum wire_energy_quality */
	bool is_replayed;      /* from a file, not of this machine */
	const char *name;      /* "package-0", "gpu0"; unique in its source */
	const char *source;    /* "perf", "powercap", "nvml", "hwmon", "battery", "replay" */
	const char *device;    /* what it is of: a GPU's UUID or PCI address, "socket 0"; "" */
	uint64_t period_ns;    /* between two updates, as seen or as documented; 0: not known */
	uint64_t cost_ns;      /* of one reading, as measured at the start; 0: not measured */
	double relative_error; /* of the sensor: 0.05 is ± 5 %; NaN: not known */
	double idle_w;         /* as the source or a baseline says; NaN: not known */
	double limit_w;        /* what it is set to take at most; 0: not known */
	const char *cpus; /* processors that it feeds, "0-7,16-23"; NULL or "": all, or not known */
};

/* Energy that a domain took in [start_ns, end_ns), CLOCK_MONOTONIC; they do not overlap. */
struct wire_energy_interval {
	uint64_t start_ns, end_ns;
	uint32_t domain;
	uint32_t gap; /* enum wire_energy_gap: with one, `energy_nj` is 0 and means nothing */
	uint64_t energy_nj;
	/* Of the processors that it feeds, not idle meanwhile (/proc/stat); UINT64_MAX: not known.
	 */
	uint64_t busy_ns;
};

/* The state in which figures were taken; of a moment. */
struct wire_energy_state {
	uint64_t time_ns;
	uint32_t domain;
	int32_t temperature_mc; /* thousandths of a degree Celsius; INT32_MIN: not known */
	uint32_t clock_mhz;     /* 0: not known */
};

/* A kind of source that there is not, or cannot be read: why, and what would change it. */
struct wire_energy_absence {
	const char *source; /* as in the domain */
	const char *reason; /* a sentence */
};
