/* SPDX-License-Identifier: Apache-2.0 */
/* What people and programs say of runs that they want, for commands and for the server. */
#pragma once

#include "store/documents.h"

/* By names that people sort by: the best, the least or the newest first. */
extern const char *const store_order_names[];

/*
 * Fills in column and direction of the order called `name`, or the other way round; NULL is "time".
 * Returns 0, or -EINVAL: there is none of this name.
 */
int store_order_choose(struct store_order *order, const char *name, bool is_reversed);

/*
 * "2026-11-23", "2026-11-23T14:30" or "...:05", of this machine's time, or "7d", so many days ago,
 * as Unix time in nanoseconds. NULL and "" leave it as it is. Returns 0, or -EINVAL with a sentence
 * in which `what` names it.
 */
int store_time_parse(const char *what, const char *text, int64_t *ret_ns, struct errmsg *err);

/* "0.25/kWh" and "400g/kWh"; NULL and "" are not known. Returns 0, or -EINVAL with a sentence. */
int store_rates_parse(
	const char *price, const char *co2, struct energy_rates *ret_rates, struct errmsg *err);
