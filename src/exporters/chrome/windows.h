/* SPDX-License-Identifier: Apache-2.0 */
/* Windows and steps in a trace of Chrome's format. */
#pragma once

#include "base/strbuf.h"
#include "exporters/chrome/time.h"

/*
 * Appends events, each after a comma: windows on a line of their own, under "Windows", and the
 * steps of a process on one below it. `process_numbers` are those of the model's processes. Returns
 * 0 or -ENOMEM.
 */
int chrome_add_windows(struct strbuf *out, const struct model *model,
	const struct chrome_clock *clock, const uint64_t *process_numbers);
