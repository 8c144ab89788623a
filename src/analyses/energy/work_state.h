/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of charging device work share: works.c has classes, their times and what each
 * gets, work_powers.c the power of each class. Nothing else includes this.
 */
#pragma once

#include "analyses/energy/internal.h"
#include "base/macros.h"

/* Classes of their own, by their time; all others are one. */
#define CLASSES 48
#define COLUMNS (CLASSES + 3)

struct moment;

struct class_time {
	const char *name;
	uint32_t size; /* of kernels, a power of two */
	uint32_t column;
	uint64_t time_ns, count;
};

struct charging {
	struct energy_use *use;
	struct model *model;
	const struct model_energy_domain *domain;
	const struct model_energy_interval *intervals;
	uint32_t index; /* of the domain */
	uint32_t gpus;  /* rails of GPUs that are counted */
	/* Columns: of classes, of all other classes, of gaps, of times when nobody feeds it. */
	uint32_t others, between, unfed, column_count;
	ARRAY_OF(uint32_t) works;      /* indices */
	ARRAY_OF(uint32_t) classes_of; /* by work in `works`: its class */
	ARRAY_OF(struct class_time) classes;
	ARRAY_OF(struct moment) moments;
	double *seconds;         /* interval × column_count */
	double power_w[COLUMNS]; /* that energy is split by, without the idle power */
	double fitted_w[COLUMNS], error[COLUMNS]; /* NaN: not fitted */
	bool published[COLUMNS];
	uint16_t errors[COLUMNS]; /* indices in energy_errors */
	uint32_t merged[COLUMNS];
	double all_ns[COLUMNS];
};

/*
 * Fills power_w, and of columns that the regression is sure of fitted_w, error and published.
 * Returns 0 or -ENOMEM.
 */
int energy_find_powers(struct charging *charging);
