/* SPDX-License-Identifier: Apache-2.0 */
/* What `sonde record` says at its end: what was recorded, what is missing and what it cost. */
#pragma once

#include "collect/session/session.h"

/* To standard error. */
void record_print_summary(
	const struct session_result *result, const struct session_options *options);
