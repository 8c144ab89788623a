/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of programs in a trace of Chrome's format: counter events of their processes. */
#pragma once

#include "base/strbuf.h"
#include "exporters/chrome/time.h"

/*
 * Appends events, each after a comma; values that are no numbers are left out. `process_numbers`
 * are those of the model's processes.
 */
void chrome_add_counters(struct strbuf *out, const struct model *model,
	const struct chrome_clock *clock, const uint64_t *process_numbers);
