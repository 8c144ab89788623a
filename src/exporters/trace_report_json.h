/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of a trace's report as JSON: one value each, of one rank. Described in docs/json.md.
 */
#pragma once

#include "analyses/trace_temporal.h"
#include "base/json.h"

/* Time as a number of nanoseconds. */
void trace_json_ns(struct json_writer *json, const char *key, int64_t ns);
/* "rank", and "device": null when it is not known, or all. */
void trace_json_place(struct json_writer *json, const struct trace_view *view, uint32_t device);

void trace_json_temporal(struct json_writer *json, const struct trace_view *view,
	const struct trace_temporal *temporal);
