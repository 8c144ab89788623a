/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where figures of power and energy come from: each source finds its rails at the start, and is
 * then read on a schedule by a thread (worker.h). A source says what it reads, counters
 * or power; meter.h makes intervals of that, and sampler.h hands them to the session.
 *
 * To add a source: NAME.c with `const struct energy_source NAME_energy` at its bottom; a line in
 * the table in sources.c and its declaration here; the file in meson.build; a made-up tree in
 * tests/unit/test-energy-sources.c; a section in docs/energy.md. `sonde doctor` and --energy know
 * it from the table.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "wire/energy.h"

#define ENERGY_MAX_RAILS 32   /* of a source */
#define RAIL_CPUS_MAX    1280 /* holds every second one of 640 */
/* Of a core, for each thread that reads: two of them and who takes what they read cost at most half
 * a percent. */
#define ENERGY_SHARE 0.0018

/* The machine that is looked at. */
struct energy_place {
	const char *root; /* "": this machine; else a folder with its sys/, for tests */
	const char *nvml; /* the library's name */
	bool is_amd, is_guest;
};

/* As it is; by CPUID where there is one. */
struct energy_place energy_place_machine(void);

enum energy_kind {
	ENERGY_COUNTER, /* values are energy since some moment */
	ENERGY_POWER,   /* values are microwatts at the moment */
};

/* Bits of energy_rail.encloses and energy_source.parts. */
#define ENERGY_PART(part) (1U << (part))
#define ENERGY_CPU_PARTS                                                                           \
	(ENERGY_PART(WIRE_ENERGY_CPU) | ENERGY_PART(WIRE_ENERGY_CORES) |                           \
		ENERGY_PART(WIRE_ENERGY_UNCORE))
#define ENERGY_RAPL_PARTS                                                                          \
	(ENERGY_CPU_PARTS | ENERGY_PART(WIRE_ENERGY_DRAM) | ENERGY_PART(WIRE_ENERGY_PLATFORM))
#define ENERGY_ALL_PARTS (ENERGY_PART(WIRE_ENERGY_PART_MAX) - 1)

struct energy_rail {
	char name[64], device[96]; /* as in struct wire_energy_domain */
	enum wire_energy_part part;
	enum wire_energy_quality quality;
	enum energy_kind kind;
	int parent;        /* the rail of this source that contains it; -1: none */
	uint32_t encloses; /* ENERGY_PART() of what it contains of other sources */
	bool may_rest;     /* takes nothing for long at times: the same value again is no fault */
	uint64_t range;    /* of a counter: after this value it begins at 0 again; 0: it does not */
	double nj_per_unit;   /* of a counter */
	double implausible_w; /* more than this is no measurement */
	double limit_w;       /* what it is set to take at most; 0: not known */
	uint64_t period_ns;   /* between two updates, as documented; 0: seen while reading */
	double relative_error;
	char cpus[RAIL_CPUS_MAX]; /* that it feeds, "0-7,16-23"; "": all, or not known */
};

struct energy_reading {
	uint64_t value;
	/* When it was read; 0: in the middle of the read() as a whole. */
	uint64_t time_ns;
	int error; /* a negative errno in place of a value; 0 */
};

/* What a source found. */
struct energy_found {
	struct energy_rail rails[ENERGY_MAX_RAILS];
	unsigned count;
	/*
	 * One sentence: what is missing, with the paths that were tried, why, and what would change
	 * it. "": nothing is.
	 */
	struct errmsg absence;
	uint64_t tick_ns; /* read this often, unless that costs too much */
};

struct energy_source {
	const char *name;  /* as in struct wire_energy_domain */
	const char *title; /* for a person */
	uint32_t parts;    /* ENERGY_PART() of what it may measure */
	bool may_hang;     /* its calls may not return: it gets a worker of its own */
	/*
	 * Finds and opens rails. Returns 0 with one at least, or a negative errno with the absence.
	 * May block: it runs in the source's thread.
	 */
	int (*open)(
		void **ret_state, const struct energy_place *place, struct energy_found *ret_found);
	/* A reading for each rail. No allocation. */
	void (*read)(void *state, struct energy_reading *readings);
	/* Temperature and clock of each rail, once a second; domain and time are the caller's.
	 * NULL: it knows none. */
	void (*look)(void *state, struct wire_energy_state *states);
	void (*close)(void *state);
};

extern const struct energy_source perf_energy, powercap_energy, hwmon_energy, nvml_energy,
	battery_energy;

/* The best first: of two that read one rail, the first one counts; those that may hang last. Ends
 * with NULL. */
extern const struct energy_source *const energy_sources[];

/* A new rail, or NULL when there is no place for one more. */
struct energy_rail *energy_found_add(struct energy_found *found, enum wire_energy_part part,
	const char *device, const char *name_format, ...) _printf_(4, 5);
/* "PATH: why" as a part of the absence. */
void energy_found_tried(struct energy_found *found, const char *path, int error);
