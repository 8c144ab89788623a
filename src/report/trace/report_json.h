/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of traces as JSON: HTA's analyses, each of the view of one index. They append objects
 * to an array that is open. Described in docs/json.md.
 */
#pragma once

#include "analyses/trace_results.h"
#include "base/json.h"

#define TRACE_REPORT_JSON_VERSION 1

/* Time as a number of nanoseconds. */
void trace_json_ns(struct json_writer *json, const char *key, int64_t ns);
/* A trace and what is to be known of it: an object. */
void trace_json_trace(struct json_writer *json, const struct trace_view *view);

/* All return 0 or -ENOMEM. */
/* The member "cpu_summary", null with device work. */
int trace_json_cpu_summary(struct json_writer *json, struct trace_results *results);
