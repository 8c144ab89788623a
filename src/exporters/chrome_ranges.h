/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges in a trace of Chrome's format: beside the slices of samples. */
#pragma once

#include "base/strbuf.h"
#include "model/model.h"

/* Trace times are microseconds; nanoseconds follow the point. */
void chrome_add_time(struct strbuf *out, const char *key, uint64_t ns);
/*
 * Appends events, each after a comma. `process_numbers` are those of the model's processes. Returns
 * 0 or -ENOMEM.
 */
int chrome_add_ranges(struct strbuf *out, const struct model *model, uint64_t origin_ns,
	const uint64_t *process_numbers);
