/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the energy went that was measured. For each interval of each domain
 *
 *     measured = idle share + what samples and device work are charged with + gaps + unattributed
 *
 * holds, to 1e-9 of the measured: energy_use_init() asserts it. A domain's own part is never added
 * to its parent's: the sum is of domains of which none contains another, and they are named.
 */
#pragma once

#include "analyses/energy/sample_fit.h"
#include "analyses/energy/span_state.h"
#include "model/model.h"
#include "model/weigh.h"

/* Energy that no sample and no device work is charged with. */
enum energy_rest_kind {
	ENERGY_REST_IDLE,
	ENERGY_REST_GAP, /* between pieces of device work */
	ENERGY_REST_UNATTRIBUTED,
	ENERGY_REST_MAX
};

/* How the energy of a domain, or of a class of device work, was split. */
enum energy_method {
	ENERGY_METHOD_NONE,       /* it was not */
	ENERGY_METHOD_CPU_TIME,   /* by time on a processor */
	ENERGY_METHOD_COUNTERS,   /* by what processors counted: cycles and instructions */
	ENERGY_METHOD_TIME_SHARE, /* by time on the device: see docs/energy.md for its error */
	ENERGY_METHOD_REGRESSION, /* by the power of classes of device work */
	ENERGY_METHOD_MAX
};

/* "none", "cpu_time", "counters", "time_share", "regression" */
const char *energy_method_name(enum energy_method method);

/* Joules and watts are NaN where they are not known. */
struct energy_domain_use {
	double measured_j, uncertainty_j;
	double idle_j;       /* NaN: its idle power is not known, and all of it counts as dynamic */
	double attributed_j; /* to samples, or to device work */
	double gaps_j;       /* between pieces of device work that follow each other closely */
	double unattributed_j;
	double average_w, peak_w;
	uint64_t measured_ns;                 /* that was measured */
	uint64_t gap_ns[WIRE_ENERGY_GAP_MAX]; /* that was not, by reason */
	uint64_t period_ns;                   /* as the source says, or as seen; 0: not known */
	uint64_t overlap_ns; /* of device work, with other such: split in equal parts */
	double residual;     /* the largest of its intervals, relative: of conservation */
	uint32_t interval_count, cut_count;
	uint8_t method;                        /* enum energy_method */
	struct sample_fit fit;                 /* of a processor's */
	uint16_t rest_errors[ENERGY_REST_MAX]; /* by enum energy_rest_kind: index in the model's
						  energy_errors */
	/* Among those whose energy is added up; if not, why: "part of package-0". */
	bool is_counted;
	const char *why_not;
	/* While it was measured, at each reading; INT32_MIN and 0: not known. */
	int32_t lowest_mc, highest_mc;
	uint32_t lowest_mhz, highest_mhz;
	struct span_state state;
};

/* Kernels of one name and size, or copies of one kind. */
struct energy_class {
	const char *name;
	uint32_t domain;       /* index */
	uint32_t size;         /* of kernels: threads, the power of two below */
	uint64_t time_ns;      /* of device work */
	uint64_t count;        /* pieces of it */
	double energy_j;       /* that it is charged with, without the idle share */
	double uncertainty_j;  /* of the sensor and of the power; NaN: split by time */
	double power_w;        /* by the regression; NaN: not published */
	double standard_error; /* of the power, relative; NaN: there was no regression */
	uint8_t method;        /* enum energy_method */
	uint32_t merged;       /* with how many others, whose times go up and down with its own */
};

struct energy_use {
	ARRAY_OF(struct energy_domain_use) domains; /* by domain of the model */
	ARRAY_OF(struct energy_class) classes;      /* most energy first */
	ARRAY_OF(struct model_energy_rest) rests;   /* of the domains that are counted */
	/* Of the domains that are counted; NaN: there are none, or nothing was measured. */
	double measured_j, uncertainty_j, idle_j, attributed_j, gaps_j, unattributed_j;
	size_t last_rest[ENERGY_REST_MAX]; /* indices of rests, while they are gathered */
};

/*
 * Charges samples and device work of the model with their energy (energy_j of each), and adds up.
 * Before the model is narrowed or weighed, and once. Returns 0 or -ENOMEM.
 */
int energy_use_init(struct energy_use *use, struct model *model);
void energy_use_done(struct energy_use *use);
#define _cleanup_energy_use_ _cleanup_(energy_use_done)

/* Is anything measured at all? */
bool energy_use_has_any(const struct energy_use *use);
/* Appends "package-0 + dram-0 + gpu0": what the sums are of. */
void energy_use_name_sum(
	const struct energy_use *use, const struct model *model, struct strbuf *out);
