/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges in a trace of Chrome's format: beside the slices of samples. */
#pragma once

#include "base/strbuf.h"
#include "exporters/chrome/time.h"

/*
 * Appends events, each after a comma. `process_numbers` are those of the model's processes. Returns
 * 0 or -ENOMEM.
 */
int chrome_add_ranges(struct strbuf *out, const struct model *model,
	const struct chrome_clock *clock, const uint64_t *process_numbers);
