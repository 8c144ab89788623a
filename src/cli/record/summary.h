/* SPDX-License-Identifier: Apache-2.0 */
/* What `sonde record` says at its end: what was recorded, what is missing and what it cost. */
#pragma once

#include "collect/session/session.h"

struct continuous;
/* To standard error; after an error only what was kept. `continuous` may be NULL. One of ranks: the
 * capture has the name of a rank, by which a report of all finds it. */
void record_print_end(const struct session_result *result, const struct session_options *options,
	int error, const struct continuous *continuous, bool is_one_of_ranks);
